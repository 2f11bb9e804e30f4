"""What must hold between the keys that bound queues, and what does not go with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tideover.models.config import Scenario
from tideover.models.job.arrivals.saturating import Saturating
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.queues import Bounds, bounds_of
from tideover.models.strategies.base import Strategy, given

Found = tuple[tuple[str, ...], str]
"""Where it is wrong, and what."""


def check(scenario: Scenario) -> Iterator[Found]:
    """All problems of bounded queues."""
    bounds = bounds_of(scenario.topology, scenario.queues)
    yield from _own(scenario.topology, bounds)
    yield from _strategy(scenario, bounds)
    yield from _saturating(scenario, bounds)


def _own(topology: Mapping[str, SpoutConfig | BoltConfig], bounds: Mapping[str, Bounds]) -> Iterator[Found]:
    """What components say of their own queues."""
    for name, config in topology.items():
        if config.queue is None:
            continue
        for key in ("length", "when_full"):
            if getattr(config.queue, key) is None:
                continue
            if isinstance(config, SpoutConfig):
                message = "nothing comes into a spout; of its queue only send can be given"
                yield ("topology", name, "queue", key), message
            elif bounds[name].length is None:
                yield ("topology", name, "queue", key), "has no effect without a length"


def _strategy(scenario: Scenario, bounds: Mapping[str, Bounds]) -> Iterator[Found]:
    strategy = scenario.strategy
    first = next((name for name, bound in bounds.items() if bound.length is not None), None)
    bolts = [name for name, config in scenario.topology.items() if isinstance(config, BoltConfig)]
    if first is None or strategy.bounded_queues or not any(bounds[name].length for name in bolts):
        return
    where = ("queues",) if scenario.queues is not None else ("topology", first, "queue")
    reason = (
        "its tasks run in batches, and no queues are between them"
        if strategy.needs.batches
        else "this is not simulated"
    )
    yield where, f"bounded queues do not go with the strategy {strategy.kind}: {reason}"


def _saturating(scenario: Scenario, bounds: Mapping[str, Bounds]) -> Iterator[Found]:
    """A spout that emits whenever it may is held back by something."""
    strategy: Strategy = scenario.strategy
    if given(strategy, strategy.spouts_wait):
        return
    for name, config in scenario.topology.items():
        if not isinstance(config, SpoutConfig) or not isinstance(config.arrivals, Saturating):
            continue
        readers = [
            reader
            for reader, other in scenario.topology.items()
            if isinstance(other, BoltConfig) and name in other.from_
        ]
        if not any(bounds[reader].holds_back for reader in readers):
            keys = " or ".join(f"strategy.{key}" for key in strategy.spouts_wait)
            message = (
                f"nothing holds back a spout that saturates: bound the queues that it sends to "
                f"(queues: 1000){', or give ' + keys if keys else ''}"
            )
            yield ("topology", name, "arrivals"), message
