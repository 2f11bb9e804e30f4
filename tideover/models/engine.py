"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.deployment import Deployment


def moves_compiled(scenario: Scenario, deployment: Deployment, closely: bool = False) -> bool:
    """Whether all that the scenario asks for is there; ``closely``: and who looks at each tuple."""
    strategy = scenario.strategy
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    compiled = strategy.goes_compiled()
    if compiled == "never" or (compiled == "apart" and not _apart(scenario, deployment)):
        return False
    if closely and strategy.composed_of:
        return False
    # tasks that move share other cores there
    return not (deployment.moves and any(host.cores is not None for host in deployment.cluster.hosts))


def _apart(scenario: Scenario, deployment: Deployment) -> bool:
    """Whether tasks feel one another by their messages alone, at one speed, over wires that carry them."""
    shared = any(host.cores is not None or host.nic is not None for host in deployment.cluster.hosts)
    bounded = any(bound.length is not None for bound in deployment.bounds.values())
    slowed = any(fault.kind in ("slow_host", "slow_link", "partition") for fault in scenario.failures)
    return not (shared or bounded or slowed or deployment.moves)
