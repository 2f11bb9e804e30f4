"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.deployment import Deployment


def moves_compiled(scenario: Scenario, deployment: Deployment, closely: bool = False) -> bool:
    """Whether all that the scenario asks for is there; ``closely``: and who looks at each tuple."""
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    if not vars(type(scenario.strategy)).get("compiled", False):
        return False
    if closely and scenario.strategy.composed_of:
        return False
    # what replicas find full, and hold one another up by, is not exact in all worlds
    held_back = any(bound.holds_back for bound in deployment.bounds.values())
    if held_back and scenario.strategy.needs.paths:
        return False
    # tasks that move share other cores there
    return not (deployment.moves and any(host.cores is not None for host in deployment.cluster.hosts))
