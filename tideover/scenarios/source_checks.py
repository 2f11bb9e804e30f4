"""What must hold between a queue before a spout and the rest of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from tideover.models.config import Scenario
from tideover.models.job.arrivals.saturating import Saturating
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.queues import bounds_of
from tideover.models.strategies.base import STRATEGIES

Found = tuple[tuple[str, ...], str]
"""Where it is wrong, and what."""


def check(scenario: Scenario) -> Iterator[Found]:
    """All problems of queues before spouts."""
    bounds = bounds_of(scenario.topology, scenario.queues)
    bounded = any(
        bounds[name].length is not None or bounds[name].send
        for name, config in scenario.topology.items()
        if isinstance(config, BoltConfig)
    )
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig) or config.source is None:
            continue
        where = ("topology", name, "source")
        if not scenario.strategy.reads_queues:
            kind, logged = scenario.strategy.kind, scenario.strategy.needs.log
            able = ", ".join(kind for kind, cls in STRATEGIES.items() if cls.reads_queues)
            log = "its spouts stand for a log that is read again: leave it out"
            why = log if logged else f"only {able} say how"
            yield where, f"does not go with the strategy {kind}: {why}"
        if bounded and config.source.retention is not None:
            message = "does not go with bounded queues: what is deleted while a spout waits is not simulated"
            yield (*where, "retention"), message
        if isinstance(config.arrivals, Saturating):
            yield where, "does not go with saturating arrivals: give the rate at which records are appended"
        if config.processes < config.parallelism:
            message = (
                f"must be at least parallelism ({config.parallelism}): "
                "a task without a partition would read nothing"
            )
            yield (*where, "partitions"), message
