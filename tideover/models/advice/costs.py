"""Costs that nobody chose: what is not given takes no time."""

from __future__ import annotations

from tideover.models.config import Scenario
from tideover.models.job.topology import Topology


def unstated(scenario: Scenario, topology: Topology) -> list[str]:
    """A remark if nothing says how long it takes to save state; then also on what else is free.

    Keys that are given, by the scenario or by a profile, have been chosen, be they 0.
    """
    strategy = scenario.strategy
    if not any(c.window for c in topology.components):
        return []  # there is no state to be saved
    free = strategy.unstated(bool(scenario.failures))
    if not free:
        return []
    listed = f"{', '.join(free[:-1])} and {free[-1]}" if len(free) > 1 else free[0]
    return [
        f"strategy {strategy.kind}: nothing says how long {listed} take, so they take no time, and "
        "short intervals look free; give these keys (0 s if that is meant)"
    ]
