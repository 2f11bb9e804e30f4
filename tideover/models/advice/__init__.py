"""What an expert would remark about a scenario before running it, and about its runs."""

from __future__ import annotations

from collections.abc import Iterable

from tideover.models.advice import costs, loads, moments, strategies, timeouts
from tideover.models.config import Scenario, topology_of


def warnings(scenario: Scenario) -> list[str]:
    """Remarks before a run, each one sentence; none if there is nothing to remark."""
    topology = topology_of(scenario)
    found = loads.task_loads(topology, scenario.strategy)
    return [
        *loads.overloads(scenario, topology, found),
        *timeouts.windows(scenario, topology, found),
        *timeouts.held(scenario, topology),
        *strategies.replicas(scenario, topology),
        *strategies.checkpoints(scenario, topology),
        *strategies.buffers(scenario, topology),
        *strategies.batches(scenario, topology, found),
        *strategies.snapshots(scenario, topology),
        *moments.in_step(scenario),
        *moments.seen_once(scenario),
        *costs.unstated(scenario, topology),
        *_profile(scenario),
    ]


def in_short(remarks: Iterable[str]) -> list[str]:
    """The remarks on many scenarios: of those on one key (what stands before the colon) the first, and how
    many others there are.
    """
    found: dict[str, dict[str, None]] = {}
    for text in remarks:
        found.setdefault(text.partition(":")[0], {})[text] = None
    shown = []
    for first, *others in found.values():
        shown.append(f"{first} (and {len(others)} more of this kind)" if others else first)
    return shown


def _profile(scenario: Scenario) -> list[str]:
    profile = scenario.profile
    if profile is None or profile.taken:
        return []
    return [f"profile {profile.name}: gives nothing under {scenario.strategy.kind}; no value was measured"]
