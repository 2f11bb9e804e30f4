"""Time that is lost at each value of a setting, and at which value it is least.

`interval` and `detector` each try the values of one setting with what is here; `tideover.reports.lost_time`
shows it. ``record`` is what ``--json`` prints: keys may be added there, and none renamed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import tideover
from tideover.models.advice import warnings
from tideover.models.coarsening import coarsened
from tideover.models.config import Scenario, if_nothing_fails
from tideover.models.evaluation.bottleneck import Load, Used
from tideover.models.schema import LOSSY, remark
from tideover.models.strategies.base import given
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.saturation import period_of
from tideover.scenarios.statistics.availability import Cause, down_s, simulated
from tideover.scenarios.statistics.intervals import BOOTSTRAP_SEED, LEVEL, Estimate, estimate
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults import Fault
from tideover.sim.kernel import standing
from tideover.sim.registry import kind_of
from tideover.sim.units import DAY, MAX_DURATION, S, format_duration

_STEPS = ((math.sqrt(5) - 1) / 2, math.sqrt(2) - 1, (math.sqrt(13) - 3) / 2)
_LONGER = 3
"""A run in which a failure is not over is made twice as long, so many times."""


class Felt(NamedTuple):
    """What a failure did (s; None: it is not known): for how many ``seconds`` the run was other than without
    it (None: to its end), until when it was noticed, and until when what failed was ready (``down``), with
    its state; how the recovery ended: with loss if one of several did.
    """

    seconds: float | None
    noticed: float | None
    down: float | None
    ended: str


class Stretch(NamedTuple):
    """The moments at which a failure may strike (ns): from ``begin`` on for ``length``, in which all that
    recurs (checkpoints, windows) is in each of its states about as often as ever.
    """

    begin: int
    length: int

    @staticmethod
    def of(scenario: Scenario) -> Stretch:
        """The first one after the warm-up, and after a first checkpoint."""
        warmup, most = scenario.run.warmup, period_of(scenario)
        if (cycle := scenario.strategy.cycle()) is None:
            return Stretch(warmup, most or S)
        first, period = cycle
        before = max(1, -(-(warmup - first) // period))
        return Stretch(first + before * period, -(-most // period) * period)

    def moment(self, part: float) -> int:
        return self.begin + round(part * self.length)


def spread(seed: int, name: str, replication: int, dimensions: int = 1) -> list[float]:
    """Numbers in (0, 1), at most three, for a replication. Those of replications 0, 2, 4 … are even in each
    dimension, and in all together: steps that are far from all fractions (golden, silver and bronze means),
    from where a draw begins. Replications 1, 3, 5 … mirror them: so what grows evenly with the number (work
    since the last checkpoint) has its mean in each pair.
    """
    begins = uniform01(Draws(seed).bits(name, Purpose.FAULT, np.arange(dimensions)))
    pair, mirrored = divmod(replication, 2)
    found = [
        math.fmod(float(begin) + pair * step, 1.0)
        for begin, step in zip(begins, _STEPS[:dimensions], strict=True)
    ]
    return [1 - value for value in found] if mirrored else found


def strike(
    scenario: Scenario,
    causes: Sequence[Cause],
    replications: int,
    tell: Callable[[int], None],
    *,
    longer: int = 0,
    useless: bool = False,
) -> tuple[tuple[Part, ...], float | None, float | None]:
    """What failures of each cause take; and on average over all, each as often as its cause, how long it is
    until they are noticed, and until what failed is ready (s; where it is not known it is left out).

    ``tell`` is called before each replication, whose runs go on ``longer`` (ns) by so much. ``useless``: none
    strikes, and nothing is known.
    """
    stretch = Stretch.of(scenario)
    found: list[list[Felt]] = [[] for _ in causes]
    for replication in range(0 if useless else replications):
        tell(replication)
        for cause, felts in zip(causes, found, strict=True):
            (part,) = spread(scenario.run.seed, cause.name, replication)
            fault = cause.strikes[replication // 2 % len(cause.strikes)]
            tail = scenario.run.duration - (fault.latest or 0) + longer
            felts.append(struck(scenario, fault, stretch.moment(part), tail, replication))
    parts = []
    noticed: list[tuple[float, float]] = []
    down: list[tuple[float, float]] = []
    for cause, felts in zip(causes, found, strict=True):
        rate, seconds = cause.rate_per_s, tuple(one.seconds for one in felts) or (None,) * replications
        parts.append(Part(cause.name, rate, seconds, tuple(one.ended for one in felts)))
        noticed += [(rate, one.noticed) for one in felts if one.noticed is not None]
        down += [(rate, one.down) for one in felts if one.down is not None]
    return tuple(parts), _mean(noticed), _mean(down)


def _mean(known: list[tuple[float, float]]) -> float | None:
    """Of values with their rates."""
    rates = sum(rate for rate, _ in known)
    return sum(rate * value for rate, value in known) / rates if rates else None


def struck(
    scenario: Scenario, fault: Fault, moment: int, tail: int, replication: int, longer: int = _LONGER
) -> Felt:
    """What a failure does that strikes at a ``moment`` (ns). The run goes on for ``tail`` (ns), and if it is
    not over then for twice as long, ``longer`` times.
    """
    once = fault.model_copy(update={"at": moment, "within": None, "in_interval": None})
    run = scenario.run.model_copy(update={"duration": moment + tail})
    one = scenario.model_copy(update={"failures": (once,), "run": run})
    done = simulated(one, replication, fault.kind)
    seconds = down_s(done, one)
    if seconds is None and longer:
        return struck(scenario, fault, moment, 2 * tail, replication, longer - 1)
    first = done.recoveries[0]
    known = [row for row in done.recoveries if None not in (row["ready_at_s"], row["restore_s"])]
    downs = [row["ready_at_s"] + row["restore_s"] - row["failed_at_s"] for row in known]
    noticed, endings = first["detected_at_s"], [row["ended"] for row in done.recoveries]
    return Felt(
        seconds,
        None if noticed is None else noticed - first["failed_at_s"],
        max(downs) if downs else None,
        LOSSY if LOSSY in endings else endings[0],
    )


FULL = 0.995
"""What is busy for so much of the time has none to lose."""


class Kept(NamedTuple):
    """What checkpoints keep from work: the task (or the cores, or the card) that is set back most by them,
    which part of the time it is busy without them, and which part they keep it; ``gives_up``: whether tuples
    are given up that wait for a checkpoint, though nothing fails.
    """

    name: str
    busy: float
    part: float
    gives_up: bool = False

    @property
    def behind(self) -> float:
        """Part of the time in which it stands still for them, or catches up with what came meanwhile."""
        full = self.gives_up or self.busy + self.part >= FULL
        return math.inf if full else self.part / (1 - self.busy)


def keeps(scenario: Scenario, interval: int) -> Kept:
    """What checkpoints at the scenario's ``interval`` (ns) keep from work: the task that they set back most.

    Found by two runs of one replication with the same luck, of which one makes none, or free ones: what is
    busy for longer in the other is so by them. Both are as long as what the scenario measures, in whole
    intervals. A store is not asked: what it writes keeps nobody from work that does not wait for it.
    """
    begin = Stretch.of(scenario).begin
    measured = max(interval, scenario.run.duration - scenario.run.warmup)
    end = begin + -(-measured // interval) * interval
    strategy, key = scenario.strategy, scenario.strategy.saves_every
    if strategy.needs.one_job:  # snapshots that take no time: without any, the log would keep all of the run
        free = dict.fromkeys((name for keys in strategy.costs.values() for name in keys), 0)
    else:
        free = dict.fromkeys((key, *given(strategy, strategy.gives_up)), MAX_DURATION // 4)
    without = scenario.model_copy(update={"strategy": strategy.model_copy(update=free)})
    (less, _), (more, gives_up) = _busy(without, begin, end), _busy(scenario, begin, end)
    found = [
        Kept(a.words, a.busy, max(0.0, b.busy - a.busy), gives_up)
        for a, b in zip(less, more, strict=True)
        if a.kind != "store"
    ]
    full = max(found, key=lambda kept: kept.busy)
    return full if full.busy >= FULL else max(found, key=lambda kept: (kept.behind, kept.busy))


@standing()  # the worlds go when they end
def _busy(scenario: Scenario, begin: int, end: int) -> tuple[list[Load], bool]:
    """How busy everything is from ``begin`` to ``end`` (ns), if nothing fails, and whether tuples are given
    up all the same.
    """
    run = scenario.run.model_copy(update={"duration": end, "warmup": begin})
    longer = scenario.model_copy(update={"run": run})
    quiet = if_nothing_fails(longer, Draws(run.seed))
    world = World(coarsened(quiet), judge_windows=False, looks=1)
    world.run()
    assert world.usage is not None
    return Used.of(world.usage).loads(begin, end), len(world.losses.false_timeouts) > 0


Floats = npt.NDArray[np.float64]
Report = Callable[[str, int, int], None]
"""Called with what is being done, how many runs are done, and of how many."""

_LEAST_REPLICATIONS = 10
"""So many runs at each value, if the scenario does not ask for more."""
FLAT = 1.05
"""Values at which so many times the least is lost are as good."""
_NEAR = 4.5
"""The curve is fitted up to so many times, and down to such a part of, the best value that was tried."""
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Part:
    """Time that is lost to one sort of event, of which so many come in a second: for how many ``seconds`` one
    is felt in each replication (see `spread`; None: until the end of the run), and how each recovery ended
    (`tideover.models.schema`).
    """

    name: str
    rate_per_s: float
    seconds: tuple[float | None, ...]
    ended: tuple[str, ...] = ()

    @property
    def felt(self) -> Floats:
        """Its mean in pairs of replications, whose moments mirror each other; NaN where it is not known."""
        known = np.array(self.seconds, np.float64)  # None is NaN
        return np.asarray(known.reshape(-1, 2).mean(axis=1))

    @property
    def lost(self) -> Floats:
        return self.rate_per_s * self.felt if self.rate_per_s else np.zeros(len(self.seconds) // 2)

    def to_dict(self) -> dict[str, Any]:
        return {
            "per_day": self.rate_per_s * DAY / S,
            "felt_s": estimate(self.felt, resample=False).record(),
            "ended": remark(self.ended),
        }


@dataclass(frozen=True)
class Point:
    """What is lost at one value (ns) of a setting: to events, and always (a part of the time)."""

    value: int
    parts: tuple[Part, ...]
    always: float = 0.0

    @property
    def lost(self) -> Floats:
        """Part of the time, by pair; NaN where it is not known."""
        return np.asarray(self.always + np.sum([part.lost for part in self.parts], axis=0))

    @property
    def estimate(self) -> Estimate:
        """The mean; None where a pair does not know it: the mean of the others would be too low."""
        found = estimate(self.lost, resample=False)
        return Estimate(found.n, found.undefined, None, None, None, None) if found.undefined else found

    def to_dict(self) -> dict[str, Any]:
        parts = {part.name: part.to_dict() for part in self.parts}
        return {"value_s": self.value / S, "lost": self.estimate.record(), "events": parts}


PointT = TypeVar("PointT", bound=Point)


def even(replications: int | None, scenario: Scenario) -> int:
    """How many replications, if so many are asked for (None: as the scenario has it, at least 10)."""
    asked = replications or max(scenario.run.replications, _LEAST_REPLICATIONS)
    return max(4, asked + asked % 2)


def as_good(points: Sequence[PointT]) -> list[PointT]:
    """The point at which the least is lost, and those that cannot be told from it: 0 is in the 95 % interval
    of the paired difference. In the order in which they are given.
    """
    best = best_of(points)
    return [
        point
        for point in known(points)
        if point is best or (best and (t := estimate(point.lost - best.lost, resample=False).t) and t[0] <= 0)
    ]


def best_of(points: Sequence[PointT]) -> PointT | None:
    """The point at which the least is lost; None: none is known."""
    return min(known(points), key=lambda point: float(point.lost.mean()), default=None)


def known(points: Sequence[PointT]) -> list[PointT]:
    """Those of which it is known in all replications what is lost."""
    return [point for point in points if np.isfinite(point.lost).all()]


@dataclass(frozen=True)
class Tries:
    """What is to be tried.

    key, own      the setting in the scenario, and the scenario's own value (ns)
    values        those that are tried (ns), rising
    replications  runs for each cause and value
    """

    scenario: Scenario
    key: str
    own: int
    causes: tuple[Cause, ...]
    remarks: tuple[str, ...]
    values: tuple[int, ...]
    replications: int

    def at(self, value: int) -> Scenario:
        """The scenario with another value. Raises ScenarioError if it is not allowed."""
        return load(self.scenario, {self.key: format_duration(value)})

    def answered(self, points: Sequence[Point]) -> dict[str, Any]:
        """What an answer says of them all, with what an expert would remark on the runs and the question."""
        run = self.scenario.run.model_copy(update={"replications": self.replications})
        struck = self.causes[0].struck(self.scenario.model_copy(update={"run": run}), 0)
        return {
            "scenario": self.scenario,
            "key": self.key,
            "own": self.own,
            "points": tuple(points),
            "replications": self.replications,
            "warnings": [*warnings(struck), *self.remarks],
        }


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[PointT]):
    """What was found; see `Tries`. ``points``: what is lost at each value that was tried, rising."""

    scenario: Scenario
    key: str
    own: int
    points: tuple[PointT, ...]
    replications: int
    warnings: list[str]

    def record(self, more: Mapping[str, Any], points: str) -> dict[str, Any]:
        """As ``--json`` has it, with what is said ``more``, and the name of the points there."""
        return {
            "scenario": to_data(self.scenario),
            "strategy": kind_of(self.scenario.strategy),
            "seed": self.scenario.run.seed,
            "replications": self.replications,
            "warnings": self.warnings,
            "key": self.key,
            "own_s": self.own / S,
            **more,
            points: [point.to_dict() for point in self.points],
            "version": tideover.__version__,
        }


@dataclass(frozen=True)
class Least:
    """Where the least time is lost, by a curve a + b / value + c value through the points around it.

    seconds, low, high          the value, with its 95 % interval; values are in it that cannot be told from
                                the best that was tried
    lost, lost_low, lost_high   part of the time that is lost there
    flat                        from where to where at most `FLAT` times as much is, as far as it was tried
    edge                        the least (``shortest``) or greatest (``longest``) value that was tried is the
                                best; None: the best is between two
    """

    seconds: float
    low: float
    high: float
    lost: float
    lost_low: float
    lost_high: float
    flat: tuple[float, float]
    edge: str | None


def least(points: Sequence[Point]) -> Least | None:
    """Where the least is lost; None if fewer than three values are known.

    Young's curve, b / T + c T, has this form; others are near it around their optimum. The intervals are
    percentiles of resampled pairs of replications (with a fixed seed), all values with the same ones, as they
    have their luck in common.
    """
    every = sorted(known(points), key=lambda point: point.value)
    best = best_of(every)
    if best is None or len(every) < 3:
        return None
    near = [point for point in every if best.value / _NEAR <= point.value <= best.value * _NEAR]
    near = near if len(near) >= 3 else every
    x, lost_at = np.array([point.value / S for point in near]), np.array([point.lost for point in near])
    # One row a value, one column a pair of replications. Values weigh less the more is lost at them.
    weights = 1 / np.maximum(lost_at.mean(axis=1), 1e-300)
    fit = np.linalg.pinv(_form(x, x) * weights[:, None]) * weights
    coefficients = fit @ lost_at.mean(axis=1, keepdims=True)
    (value,), (lost,) = _lowest(x, coefficients)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.integers(0, lost_at.shape[1], (_RESAMPLES, lost_at.shape[1]))
    resampled = _lowest(x, fit @ lost_at[:, drawn].mean(axis=2))
    (low, high), (lost_low, lost_high) = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1).T
    alike = [point.value / S for point in as_good(every)]
    if len(alike) > 1:
        low, high = min(low, alike[0]), max(high, alike[-1])
    edge = "shortest" if value <= every[0].value / S else "longest" if value >= every[-1].value / S else None
    fine = np.geomspace(x[0], x[-1], 1_000)
    flat = fine[_form(fine, x) @ fit @ lost_at.mean(axis=1) <= FLAT * float(lost)]
    return Least(
        float(value),
        float(min(low, value)),
        float(max(high, value)),
        float(lost),
        float(max(0.0, min(lost_low, lost))),
        float(max(lost_high, lost)),
        (float(flat[0]), float(flat[-1])),
        edge,
    )


def _form(at: Floats, x: Floats) -> Floats:
    """What a, b and c are multiplied with at some values (s), scaled by the least of the fitted ones."""
    scaled = at / x[0]
    return np.stack([np.ones_like(at), 1 / scaled, scaled], axis=1)


def _lowest(x: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """For each column of a, b and c the best value within those of the curve, and what is lost there."""
    _, b, c = coefficients
    ends = x[[0, -1]]
    at_end = ends[np.argmin(_form(ends, x) @ coefficients, axis=0)]
    valley = (b > 0) & (c > 0)
    inner = x[0] * np.sqrt(np.where(valley, b, 1.0) / np.where(valley, c, 1.0))
    best = np.where(valley, np.clip(inner, x[0], x[-1]), at_end)
    return best, np.sum(_form(best, x).T * coefficients, axis=0)
