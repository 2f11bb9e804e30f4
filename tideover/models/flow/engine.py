"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.deployment import Deployment

STRATEGIES = frozenset({"none", "source_replay"})


def moves_compiled(scenario: Scenario, deployment: Deployment, fates: bool = False) -> bool:
    """Whether all that the scenario asks for is there; ``fates``: and who asks what became of each tuple."""
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    if getattr(scenario.strategy, "kind", None) not in STRATEGIES:
        return False
    if fates and scenario.strategy.composed_of:
        return False
    hosts = deployment.cluster.hosts
    if any(host.nic is not None for host in hosts) or deployment.moves:
        return False
    if any(fault.kind == "partition" for fault in scenario.failures):
        return False
    links = deployment.links
    if links.serialise or links.serialise_cost or links.deserialise or links.deserialise_cost:
        return False
    return all(each.law().compiled for each in (links.latency, links.local, *links.pairs.values()))
