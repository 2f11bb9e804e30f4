"""Predictions with intervals: a scenario with a profile, simulated with the profile's draws as well.

Each draw is a set of values that fit the measurements together; what the values do not explain comes on top,
as the scatter that the profile states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.profiles import Profile, again
from tideover.scenarios.writer import to_data

LEVEL = 0.9
DRAWS = 40
"""How many of the profile's draws are simulated, one replication each."""
_SCATTER = [NormalDist().inv_cdf((i + 0.5) / 21) for i in range(21)]
"""The scatter of each draw, in standard deviations: evenly spread, so nothing is left to luck."""


def predict(scenario: Scenario, draws: int = DRAWS) -> tuple[dict[str, Any] | None, list[str]]:
    """What a run is likely to show, for each measure that the profile knows the scatter of; and remarks.

    ``estimate``, ``low`` and ``high`` (at ``level``), and ``undefined``, the share of draws without one. An
    end is None if the measure is undefined there (a backlog that is never worked off). None without a
    profile, or if nothing fails.
    """
    if scenario.profile is None:
        return None, []
    try:
        profile = again(scenario.profile.file)
    except (ScenarioError, OSError):
        return None, [f"profile {scenario.profile.name}: is not there any more, so there are no intervals"]
    if profile.sha256 != scenario.profile.sha256:
        return None, [f"profile {profile.name}: has changed since it was read, so there are no intervals"]
    if not profile.scatter or not scenario.failures:
        return None, []
    found = _simulated(scenario, profile, draws)
    return {name: _interval([row[name] for row in found], s) for name, s in profile.scatter.items()}, []


def _simulated(scenario: Scenario, profile: Profile, draws: int) -> list[dict[str, Any]]:
    """Recoveries under draws that are spread over all of the profile's."""
    taken = scenario.profile.taken if scenario.profile else {}
    data = to_data(scenario)
    n = min(draws, len(profile.draws))
    chosen = [profile.draws[i * len(profile.draws) // n] for i in range(n)] or [{}]
    rows: list[dict[str, Any]] = []
    for number, draw in enumerate(chosen):
        settings = [f"{key}={draw[source]}" for key, source in taken.items() if source in draw]
        rows += simulate(load(data, settings), number).recoveries
    return rows


def _interval(values: Sequence[float | None], scatter: float) -> dict[str, Any]:
    spread = sorted(
        math.inf if value is None else value * math.exp(scatter * z) for value in values for z in _SCATTER
    )
    undefined = sum(value is None for value in values) / len(values)
    return {
        "estimate": _quantile(spread, 0.5),
        "low": _quantile(spread, (1 - LEVEL) / 2),
        "high": _quantile(spread, (1 + LEVEL) / 2),
        "level": LEVEL,
        "undefined": undefined,
    }


def _quantile(ordered: Sequence[float], p: float) -> float | None:
    found = ordered[min(len(ordered) - 1, math.ceil(p * len(ordered)) - 1)]
    return found if math.isfinite(found) else None
