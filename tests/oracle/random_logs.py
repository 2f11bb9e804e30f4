"""Random small worlds whose spouts read from queues outside the topology."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.models.job.sources import Kafka, Kestrel, Source

from .random_times import TICK, TICK_MS
from .random_worlds import overlapping, worlds
from .worlds import MS, fault

READERS = ("none", "source_replay", "rsm", "active_replication", "storm_checkpoint")


@st.composite
def sources(draw: st.DrawFn, more: dict[str, Any]) -> Source:
    """Of either kind."""
    every = draw(st.sampled_from((7, 10, 25, 1000))) * TICK
    if draw(st.booleans()):
        return Kafka(commit_interval=every, **more)
    timeout = draw(st.sampled_from((2, 9, 30, 80))) * TICK + draw(st.sampled_from((0, 0, 53)))
    return Kestrel(sweep_interval=min(every, 25 * TICK), timeout=timeout, **more)


def logs(strategies: tuple[str, ...] = READERS, overlap: bool = False) -> st.SearchStrategy[Scenario]:
    """Any world of these strategies, with a log before one spout or both; mostly one of them crashes."""
    return reading((overlapping if overlap else worlds)(strategies), (None, None, 2, 15, 40))


@st.composite
def reading(
    draw: st.DrawFn, found: st.SearchStrategy[Scenario], retention: tuple[int | None, ...] = (None,)
) -> Scenario:
    """One of these worlds, in the same way; a log keeps what it has for so many ticks (None: for good)."""
    scenario = draw(found)
    spouts = [name for name, config in scenario.topology.items() if isinstance(config, SpoutConfig)]
    topology = dict(scenario.topology)
    for name in spouts[: draw(st.integers(1, len(spouts)))]:
        config = topology[name]
        ns = draw(st.sampled_from((0, 0, 1, 137)))
        more: dict[str, Any] = {
            "partitions": draw(st.sampled_from((None, config.parallelism, config.parallelism + 1, 4))),
            "poll_cost": draw(st.sampled_from((1, TICK, 3 * TICK, 9 * TICK))) + ns,
            "retention": None if (ticks := draw(st.sampled_from(retention))) is None else ticks * TICK,
        }
        topology[name] = config.model_copy(update={"source": draw(sources(more))})
    failures = []
    for struck in scenario.failures:
        if draw(st.booleans()):
            times = {key: draw(st.sampled_from((0, 3, 10))) * TICK_MS for key in ("detection", "restart")}
            struck = fault("crash_task", struck.at / MS, component=draw(st.sampled_from(spouts)), **times)
        failures.append(struck)
    return scenario.model_copy(update={"topology": topology, "failures": tuple(failures)})
