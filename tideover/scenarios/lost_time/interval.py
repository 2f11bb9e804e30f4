"""The checkpoint interval at which the least time is lost, to checkpoints and to failures.

``tideover interval`` and `tideover.api.interval` call ``ask``, then ``find``. What a user may not ask is
refused in ``ask``, before anything is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tideover.models.config import Scenario
from tideover.scenarios.errors import Problem, ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.lost_time import curve
from tideover.scenarios.part_builder import fields_of
from tideover.scenarios.planning import checkpoint_interval as formulas
from tideover.scenarios.statistics.availability import causes
from tideover.sim.registry import kind_of
from tideover.sim.units import MS, S, format_duration

OCTAVES = range(-2, 3)
"""Which powers of two around the formula's optimum are tried, if nothing is named."""
_IDLE = 1e-3
"""What has less to do loses hardly anything when something fails: formulas take it for this load."""
_MOST_MORE = 3
"""So many more are tried beyond the shortest or the longest, if that is the best."""


@dataclass(frozen=True)
class AtInterval(curve.Point):
    """What is lost at one interval. ``kept``: what its checkpoints keep from work; ``down``: how long a
    failed task is away, with its state, on average (s).
    """

    kept: curve.Kept = field(kw_only=True)
    down: float | None = None

    @property
    def takes(self) -> float:
        return self.kept.part * self.value / S

    def to_dict(self) -> dict[str, Any]:
        checkpoints = {"lost": self.always, "task": self.kept.name, "takes_s": self.takes}
        return super().to_dict() | {"checkpoints": checkpoints}


@dataclass(frozen=True)
class Asked(curve.Tries):
    """Intervals that are to be tried; ``more``: whether others may be tried as well."""

    more: bool

    @property
    def runs(self) -> list[Scenario]:
        """About the runs that will be made, by value. Raises ScenarioError if they are too long."""
        found: list[Scenario] = []
        for value in self.values:
            one = self.at(value)
            stretch = curve.Stretch.of(one)
            longest = stretch.begin + stretch.length + one.run.duration - one.run.warmup
            many = 2 * self.replications * len(self.causes)
            run = {"run.duration": format_duration(longest), "run.replications": many}
            try:
                found.append(load(one, run).model_copy(update={"failures": ()}))
            except ScenarioError as error:
                what = f"{format_duration(value)} would need too long a run: {error.problems[0].message}"
                raise ScenarioError([Problem(self.scenario.name, None, self.key, what)]) from None
        return found


@dataclass(frozen=True, kw_only=True)
class BestInterval(curve.Answer[AtInterval]):
    """What ``tideover interval`` says. ``least``: the interval at which the least is lost; None: too little
    is known; ``mtbf``: mean time between failures of any cause (s).
    """

    least: curve.Least | None
    mtbf: float

    @property
    def near(self) -> AtInterval:
        every = curve.known(self.points) or list(self.points)
        best = self.own / S if self.least is None else self.least.seconds
        return min(every, key=lambda one: abs(math.log(one.value / S / best)))

    @property
    def formulas(self) -> dict[str, float]:
        """The optima (s) of closed forms, by name."""
        near = self.near
        cost = near.takes or max(point.takes for point in self.points)
        return {
            "young": formulas.young(cost, self.mtbf),
            "daly": formulas.daly(cost, self.mtbf),
            "closed_form": formulas.closed_form(cost, self.mtbf),
            "at_load": _at_load(cost, self.mtbf, near.kept, near.down or 0.0),
        }

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints. Undefined is None."""
        near = self.near
        more = {
            "best": None if self.least is None else vars(self.least),
            "formulas_s": self.formulas,
            "checkpoint": {"task": near.kept.name, "takes_s": near.takes, "busy_without": near.kept.busy},
            "mtbf_s": self.mtbf,
            "down_s": near.down,
        }
        return self.record(more, "intervals")


def ask(
    scenario: Scenario,
    mtbf: Mapping[str, str],
    values: Sequence[int] | None = None,
    replications: int | None = None,
) -> Asked:
    """Decide what is to be tried; ``mtbf``: as for `causes`. ``values``: intervals (ns); None: around the
    optimum of a formula, for what checkpoints of the scenario take.

    Raises ScenarioError for a strategy that makes no checkpoints by the clock, and where they take nothing.
    """
    strategy, key = scenario.strategy, scenario.strategy.saves_every
    cycle = strategy.cycle()

    def refused(key: str, what: str) -> ScenarioError:
        return ScenarioError([Problem(scenario.name, None, key, what)])

    if cycle is None or key not in fields_of(type(strategy)):
        what = f"{kind_of(strategy)} makes no checkpoints at an interval"
        raise refused("strategy.kind", f"{what}; choose one that does, as aligned_snapshots")
    found, remarks = causes(scenario, mtbf)
    kept = curve.keeps(scenario, cycle[1])
    if kept.busy >= curve.FULL:
        what = f"{kept.name} is busy for {100 * kept.busy:.1f} % of the time without any checkpoint"
        raise refused("topology", f"{what}, and has none to lose; give it less to do")
    if kept.part * cycle[1] < 1:
        keys = ", ".join(key for keys in strategy.costs.values() for key in keys)
        what = f"checkpoints keep no task from work, so the shortest is best; say what they take: {keys}"
        raise refused(f"strategy.{key}", what)
    rate = sum(cause.rate_per_s for cause in found)
    centre = _at_load(kept.part * cycle[1] / S, 1 / rate, kept)
    tried = [_rounded(centre * 2**octave * S) for octave in OCTAVES] if values is None else list(values)
    asked = Asked(
        scenario,
        f"strategy.{key}",
        cycle[1],
        tuple(found),
        tuple(remarks),
        tuple(sorted({*tried, cycle[1]} if values is None else set(tried))),
        curve.even(replications, scenario),
        more=values is None,
    )
    _ = asked.runs  # what is too long is refused before anything is run
    return asked


def _at_load(cost: float, mtbf: float, kept: curve.Kept, down: float = 0.0) -> float:
    return formulas.at_load(cost, mtbf, max(_IDLE, kept.busy), down)


def find(asked: Asked, report: curve.Report | None = None) -> BestInterval:
    """Try all intervals, and some beyond if the best is the shortest or the longest. Raises RunFailed."""
    points: dict[int, AtInterval] = {}
    todo, more = list(asked.values), _MOST_MORE if asked.more else 0
    each = asked.replications
    while todo:
        value, before, total = todo.pop(0), len(points), len(points) + len(todo) + 1

        def tell(done: int, value: int = value, before: int = before, total: int = total) -> None:
            if report is not None:
                report(f"checkpoints every {format_duration(value)}", before * each + done, total * each)

        one = asked.at(value)
        kept = curve.keeps(one, value)
        # Failures are not let strike where checkpoints leave no time for the work.
        useless, longer = math.isinf(kept.behind), round(2 * value * kept.busy / (1 - kept.busy))
        parts, _, down = curve.strike(one, asked.causes, each, tell, longer=longer, useless=useless)
        points[value] = AtInterval(value, parts, kept.behind, down, kept=kept)
        if not todo and more:
            todo, more = _beyond(points), more - 1
    found = [points[value] for value in sorted(points)]
    mtbf = 1 / sum(cause.rate_per_s for cause in asked.causes)
    return BestInterval(**asked.answered(found), least=curve.least(found), mtbf=mtbf)


def _beyond(points: Mapping[int, AtInterval]) -> list[int]:
    """The next interval beyond the shortest or the longest that can be used, if that is the best so far: half
    or twice as long; half the way (by factors) to one that cannot.
    """
    every = curve.known([points[value] for value in sorted(points)])
    best = curve.best_of(every)
    found = []
    for edge, factor in ((every[-1], 2.0), (every[0], 0.5)) if best else ():
        if best is edge:
            further = [value for value in points if (value - edge.value) * (factor - 1) > 0]
            useless = min(further, key=lambda value: abs(value - edge.value), default=None)
            target = edge.value * factor if useless is None else math.sqrt(edge.value * useless)
            found.append(_rounded(target))
    return [value for value in found if value not in points][:1]


def _rounded(interval: float) -> int:
    """To two digits, at least 1 ms (ns)."""
    return max(MS, int(float(f"{interval:.1e}")))
