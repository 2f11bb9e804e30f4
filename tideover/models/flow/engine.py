"""Which runs the compiled data plane moves: the one place where that is chosen."""

from __future__ import annotations

import os

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.deployment import Deployment
from tideover.sim.registry import kind_of

STRATEGIES = frozenset({"none", "source_replay"})
OPERATORS = frozenset(
    {
        "split_words",
        "filter",
        "generic",
        "forward",
        "windowed_count",
        "windowed_join",
        "running_count",
        "distinct",
    }
)
SOURCES = frozenset({"kafka", "kestrel"})
GROUPINGS = frozenset({"shuffle", "fields", "direct", "global", "all"})


def moves_compiled(scenario: Scenario, deployment: Deployment, fates: bool = False) -> bool:
    """Whether all that the scenario asks for is there; ``fates``: and who asks what became of each tuple."""
    if os.environ.get("TIDEOVER_TRAINS"):
        return False
    if getattr(scenario.strategy, "kind", None) not in STRATEGIES:
        return False
    if fates and scenario.strategy.composed_of:
        return False
    if any(bounds.length is not None for bounds in deployment.bounds.values()):
        return False
    hosts = deployment.cluster.hosts
    if any(host.nic is not None for host in hosts) or deployment.moves:
        return False
    if any(fault.kind == "partition" for fault in scenario.failures):
        return False
    links = deployment.links
    if links.serialise or links.serialise_cost or links.deserialise or links.deserialise_cost:
        return False
    if not all(each.law().compiled for each in (links.latency, links.local, *links.pairs.values())):
        return False
    return all(_is_known(config) for config in scenario.topology.values())


def _is_known(config: SpoutConfig | BoltConfig) -> bool:
    if isinstance(config, SpoutConfig):
        return config.source is None or kind_of(config.source) in SOURCES
    groupings = {kind_of(grouping) for grouping in config.from_.values()}
    return kind_of(config.bolt) in OPERATORS and groupings <= GROUPINGS
