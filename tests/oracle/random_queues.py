"""Random small worlds whose queues have an end, and whose services are long enough to fill them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Periodic
from tideover.models.job.components import BoltConfig
from tideover.models.job.stores import RocksDB

from .random_parameters import STRATEGY_NAMES
from .random_times import TICK, TICK_MS, durations, times
from .random_worlds import overlapping, worlds
from .worlds import MS, queued

WHEN_FULL = ("block", "block", "drop", "credits")


@st.composite
def _queue(draw: st.DrawFn, bolt: bool, when_full: tuple[str, ...]) -> dict[str, Any]:
    """Of one component; a spout has only a line."""
    more: dict[str, Any] = {"send": draw(st.sampled_from((0, 0, 1, 3)))}
    if bolt and (length := draw(st.sampled_from((1, 1, 1, 2, 2, 4, None)))):
        more |= {"length": length, "when_full": draw(st.sampled_from(when_full))}
    return more


@st.composite
def queues(
    draw: st.DrawFn,
    strategies: tuple[str, ...] = STRATEGY_NAMES,
    when_full: tuple[str, ...] = WHEN_FULL,
    overlap: bool = False,
) -> Scenario:
    """A whole scenario of `random_worlds`, with queues, and with bolts that are slow now and then."""
    scenario = draw(overlapping(strategies) if overlap else worlds(strategies))
    ties = draw(st.booleans())
    topology = dict(scenario.topology)
    for name, config in topology.items():
        bolt = isinstance(config, BoltConfig)
        if bolt and draw(st.integers(0, 3)):
            config = config.model_copy(update={"service": draw(durations(ties, 4, 8, 14, 20))})
        elif not bolt and draw(st.integers(0, 3)):
            gap, offset = draw(times(ties, 2, 3, 4)) + TICK_MS, draw(st.sampled_from((None, 0, 5 * TICK)))
            arrivals = Periodic(pause=round(gap * MS), fixed_offset=offset)
            config = config.model_copy(update={"arrivals": arrivals})
        topology[name] = queued(config, **draw(_queue(bolt, when_full)))
    return scenario.model_copy(update={"topology": topology})


@st.composite
def series(draw: st.DrawFn, strategies: tuple[str, ...]) -> Scenario:
    """One of `queues` in which each queue has one sender: bolts have one input, of one task."""
    scenario = draw(queues(strategies, ("block",)))
    topology, read = dict(scenario.topology), set()
    for name, config in topology.items():
        if isinstance(config, BoltConfig):
            up, grouping = next(iter(config.from_.items()))
            topology[name] = config.model_copy(update={"from_": {up: grouping}})
            read.add(up)
    topology = {
        name: topology[name] for name in topology if name in read or isinstance(topology[name], BoltConfig)
    }
    for name, config in topology.items():
        if name in read:
            hosts = None if config.hosts is None else config.hosts[:1]
            topology[name] = config.model_copy(update={"parallelism": 1, "hosts": hosts})
    first = {"task": 0}
    failures = tuple(
        fault.model_copy(update=first) if getattr(fault, "task", None) else fault
        for fault in scenario.failures
        if getattr(fault, "component", "acker") in (*topology, "acker")
    )
    return scenario.model_copy(update={"topology": topology, "failures": failures})


@st.composite
def overtaken(draw: st.DrawFn, overlap: bool = False, late: bool = False) -> Scenario:
    """The same with unaligned snapshots, most of them so close that a failure finds one with full queues.
    ``late``: barriers do not overtake at once.
    """
    scenario = draw(queues(("aligned_snapshots",), ("block",), overlap))
    changes: dict[str, Any] = {"unaligned": True}
    if late:
        changes |= {"aligned_timeout": draw(st.sampled_from((1, 2, 3, 5, 8, 13))) * TICK}
    if draw(st.integers(0, 3)):
        changes |= {"checkpoint_interval": 7 * TICK, "min_pause": 0, "checkpoint_timeout": 1000 * TICK}
    return scenario.model_copy(update={"strategy": scenario.strategy.model_copy(update=changes)})


@st.composite
def backed(draw: st.DrawFn, strategies: tuple[str, ...], when_full: tuple[str, ...]) -> Scenario:
    """One of `queues` in which some bolts have state in a backend, where each access takes a while."""
    scenario = draw(queues(strategies, when_full))
    topology = dict(scenario.topology)
    for name, config in topology.items():
        if isinstance(config, BoltConfig) and draw(st.booleans()):
            cost = draw(st.sampled_from((TICK, 3 * TICK, 137)))
            backend = RocksDB(accesses=draw(st.integers(0, 3)), access_cost=cost)
            topology[name] = config.model_copy(update={"state": backend})
    return scenario.model_copy(update={"topology": topology})
