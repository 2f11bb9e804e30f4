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
    if getattr(scenario.strategy, "kind", None) == "rsm" and not _plain(deployment):
        return False
    # tasks that move share other cores there
    return not (deployment.moves and any(host.cores is not None for host in deployment.cluster.hosts))


def _plain(deployment: Deployment) -> bool:
    """Whether tasks feel one another by their messages alone."""
    shared = any(host.cores is not None or host.nic is not None for host in deployment.cluster.hosts)
    bounded = any(bound.length is not None for bound in deployment.bounds.values())
    return not (shared or bounded or deployment.moves)
