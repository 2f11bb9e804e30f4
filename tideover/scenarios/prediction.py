"""Predictions with intervals, which `runs` asks for: a scenario, simulated with its profile's draws as well.

Each draw is a set of values that fit the measurements together; what the values do not explain comes on top,
as the scatter that the profile states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.advice import overloaded, waits
from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.models.job.spouts import Keys
from tideover.models.schema import named
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.profiles import Profile, again
from tideover.sim.units import S, format_duration, format_rate

LEVEL = 0.9
DRAWS, FEWEST_DRAWS, SIMULATED_S = 40, 12, 15_000
"""How many of the profile's draws are simulated, one replication each; fewer beyond so many seconds."""
_TRIFLE = 1e-3
_FORMATS: dict[str, Callable[[float], str]] = {
    "rate": lambda rate: format_rate(float(f"{rate:.4g}")),
    "interval": lambda ns: format_duration(round(ns)),
}
_STEPS = 201
_SCATTER = [NormalDist().inv_cdf((i + 0.5) / _STEPS) for i in range(_STEPS)]
"""The scatter of each draw, in standard deviations: evenly spread, so nothing is left to luck."""


def predict(
    scenario: Scenario, found: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any] | None, list[str]]:
    """What a run is likely to show, for each measure that the profile knows the scatter of; and remarks.

    ``found``: the recoveries with the profile's own values; draws are simulated for one and a half times as
    long, and to the end of the run only if that is not enough.

    ``estimate`` (``least_relative``), ``low`` and ``high`` (at ``level``), and ``undefined``, the share of
    draws without one. An end is None if the measure is undefined there (a backlog that is never worked off).
    None without a profile, or if nothing fails.
    """
    if scenario.profile is None or not scenario.profile.taken:
        return None, []
    try:
        profile = again(scenario.profile.file)
    except (ScenarioError, OSError):
        return None, [f"profile {scenario.profile.name}: is not there any more, so there are no intervals"]
    if profile.sha256 != scenario.profile.sha256:
        return None, [f"profile {profile.name}: has changed since it was read, so there are no intervals"]
    remarks = [*_beyond(scenario, profile)]
    measures = [
        name for name in profile.scatter if scenario.run.calm or not named("recoveries", name).optional
    ]
    if not measures or not scenario.failures:
        return None, remarks
    # Draws are simulated at first for as long as recoveries here ask for.
    duration, last = scenario.run.duration, [row[name] for row in found for name in measures]
    if len(scenario.failures) == 1 and last and None not in last:
        # under another replication's draw a failure may come later than it did here
        latest = [(fault.latest or 0) / S for fault in scenario.failures]
        failed = max(*(row["failed_at_s"] for row in found), *latest)
        duration = min(duration, round((failed + 60 + 1.5 * max(last)) * S))
    rows, unfit, cut = _simulated(scenario, profile, measures, duration)
    if unfit:
        first = unfit[0].problems[0]
        remarks.append(
            f"profile {profile.name}: {len(unfit)} of its draws do not fit the scenario, and the prediction "
            f"is without them: {first.key}: {first.message}"
        )
    if not rows:
        return None, remarks
    if cut:
        end = format_duration(scenario.run.duration)
        remarks.append(
            f"profile {profile.name}: {cut} of {len(rows)} recoveries under its draws are not over at the "
            f"end of the run ({end}) and count as never; with a longer run.duration they may end"
        )
    return {name: _interval([row[name] for row in rows], profile.scatter[name]) for name in measures}, remarks


def _beyond(scenario: Scenario, profile: Profile) -> Iterator[str]:
    """Where the scenario lies outside of what was measured for its profile."""
    cycle = scenario.strategy.cycle()
    spouts = [c for c in scenario.topology.values() if isinstance(c, SpoutConfig)]
    asked = {
        "rate": sum(c.processes * S / c.arrivals.mean_gap_ns for c in spouts),
        "interval": None if cycle is None else cycle[1],
    }
    for what, (low, high) in profile.ranges.items():
        here = asked[what]
        # Gaps are whole nanoseconds, so a rate may come out a trifle off what was given.
        if here is not None and not low * (1 - _TRIFLE) <= here <= high * (1 + _TRIFLE):
            shown, least, most = (_FORMATS[what](value) for value in (here, low, high))
            measured = least if low == high else f"{least} to {most}"
            yield (
                f"profile {profile.name}: the {what} is {shown}, but measured was {measured}: "
                "the prediction extrapolates"
            )
    yield from _other_conditions(scenario, profile)


def _other_conditions(scenario: Scenario, profile: Profile) -> Iterator[str]:
    """Where the job runs under other conditions than its profile was measured under. How many tasks the bolts
    have that it gives values to, and how many keys there are, is known, if the scenario does not say
    otherwise.
    """
    taken = scenario.profile.taken if scenario.profile else {}
    bolts = {key.split(".")[1] for key in taken if key.startswith("topology.")}
    spouts = [c.spout for c in scenario.topology.values() if isinstance(c, SpoutConfig)]
    seen = {
        "parallelism": [c.parallelism for name, c in scenario.topology.items() if name in bolts],
        "keys": [spout.keys for spout in spouts if isinstance(spout, Keys)],
    }
    known = {name: max(seen[name]) for name in seen if seen[name] and name in profile.conditions}
    for name, value in (known | scenario.conditions).items():
        measured = profile.conditions.get(name)
        if measured is None:
            yield f"profile {profile.name}: does not say with which {name} it was measured; it is {value}"
        elif not measured.has(value):
            yield (
                f"profile {profile.name}: {name} is {value}, but measured was {measured}: "
                "the profile may not hold"
            )


def _simulated(
    scenario: Scenario, profile: Profile, measures: Sequence[str], duration: int
) -> tuple[list[dict[str, Any]], list[ScenarioError], int]:
    """Recoveries under draws spread over all, why draws could not be used, and how many the end cut off."""
    taken = scenario.profile.taken if scenario.profile else {}
    data = to_data(scenario)
    most = max(FEWEST_DRAWS, min(DRAWS, SIMULATED_S * S // duration))
    n = min(most, len(profile.draws))
    chosen = [profile.draws[i * len(profile.draws) // n] for i in range(n)] or [{}]
    rows: list[dict[str, Any]] = []
    unfit: list[ScenarioError] = []
    cut = 0
    for number, draw in enumerate(chosen):
        try:
            one = load(data, [f"{key}={draw[source]}" for key, source in taken.items() if source in draw])
        except ScenarioError as error:
            unfit.append(error)
            continue
        never = overloaded(one)
        if never and measures == ["catch_up_s"] and all(f.every is None for f in one.failures):
            rows += [{"catch_up_s": None}] * len(scenario.failures)
            continue
        run = one.run.model_copy(update={"duration": duration})
        found = simulate(one.model_copy(update={"run": run}), number)
        asked = [row[name] for row in found.recoveries for name in measures]
        if None in asked or not found.recoveries:
            found = simulate(one, number)
        rows += found.recoveries
        if "catch_up_s" in measures and not never:
            cut += sum(waits(found, row) for row in found.recoveries)
    return rows, unfit, cut


def _interval(values: Sequence[float | None], scatter: float) -> dict[str, Any]:
    spread = sorted(math.inf if v is None else v * math.exp(scatter * z) for v in values for z in _SCATTER)
    ends = (spread[math.ceil(p * len(spread)) - 1] for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    found = dict(zip(("estimate", "low", "high"), (least_relative(spread), *ends), strict=True))
    undefined = sum(value is None for value in values) / len(values)
    shown = {name: value if math.isfinite(value) else None for name, value in found.items()}
    return shown | {"level": LEVEL, "undefined": undefined}


def least_relative(values: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """What minimises the mean of |estimate / value - 1|: the median, each value weighted by its inverse.

    A value that comes true and is small makes the same miss a larger part of it, so this lies a little below
    the median. Infinite values weigh nothing; with more than half of them there is no estimate but infinity.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    if np.isinf(ordered[len(ordered) // 2]):
        return math.inf
    weights = np.cumsum(1 / np.maximum(ordered, 1e-9))
    return float(ordered[np.searchsorted(weights, weights[-1] / 2)])
