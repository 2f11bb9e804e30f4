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


def _bounded(scenario: Scenario, bounds: Mapping[str, Bounds]) -> str | None:
    """The first bolt whose queue has a bound; None: there is none."""
    bolts = (name for name, config in scenario.topology.items() if isinstance(config, BoltConfig))
    return next((name for name in bolts if bounds[name].length is not None), None)


def _where(scenario: Scenario, component: str) -> tuple[str, ...]:
    """Where the bound of a component stands."""
    config = scenario.topology[component]
    own = config.queue is not None and config.queue.length is not None
    return ("topology", component, "queue") if own else ("queues",)


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
    first = _bounded(scenario, bounds)
    if first is None:
        return
    if strategy.bounded_queues:
        yield from _dropped(scenario, bounds)
        return
    where = _where(scenario, first)
    reason = "all that its tasks read waits in logs, which have room for any number of tuples"
    if strategy.needs.batches:
        reason = "its tasks run in batches, and no queues are between them"
    elif not strategy.needs.log:
        reason = "it does not say that it goes with them (bounded_queues)"
    yield where, f"bounded queues do not go with the strategy {strategy.kind}: {reason}"


def _dropped(scenario: Scenario, bounds: Mapping[str, Bounds]) -> Iterator[Found]:
    """Queues that lose what finds no place, under a strategy that does not go with them."""
    if not scenario.strategy.needs.log:
        return
    for name, bound in bounds.items():
        if isinstance(scenario.topology[name], BoltConfig) and bound.length and bound.when_full == "drop":
            own = scenario.topology[name].queue
            mine = own is not None and own.when_full is not None
            where = ("topology", name, "queue", "when_full") if mine else ("queues", "when_full")
            why = "what a queue drops is never read again; only block and credits go with it"
            yield where, f"under {scenario.strategy.kind} {why}"


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
        if strategy.needs.log:
            message = "nothing holds back a spout whose tuples wait in a log: give a rate"
            yield ("topology", name, "arrivals"), f"{message} (strategy {strategy.kind})"
        elif not any(bounds[reader].holds_back for reader in readers):
            keys = " or ".join(f"strategy.{key}" for key in strategy.spouts_wait)
            message = (
                f"nothing holds back a spout that saturates: bound the queues that it sends to "
                f"(queues: 1000){', or give ' + keys if keys else ''}"
            )
            yield ("topology", name, "arrivals"), message
