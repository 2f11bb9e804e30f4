"""Random small worlds for settings of strategies that are protocols of their own."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.operators.kinds import RunningCount, WindowedCount

from .random_queues import overtaken
from .random_sinks import copied, transactional
from .random_states import saved
from .random_times import TICK
from .random_worlds import overlapping, worlds

Worlds = st.SearchStrategy[Scenario]


def both(strategy: str) -> Worlds:
    """Worlds of this strategy: any, or such in which failures overlap."""
    return st.one_of(worlds((strategy,)), overlapping((strategy,)))


@st.composite
def fixed(draw: st.DrawFn, scenarios: Worlds, **settings: tuple[Any, ...]) -> Scenario:
    """One of these, with one of these values for each of these settings of its strategy."""
    scenario = draw(scenarios)
    values = {name: draw(st.sampled_from(some)) for name, some in settings.items()}
    return scenario.model_copy(update={"strategy": scenario.strategy.model_copy(update=values)})


def going_on(scenario: Scenario) -> Scenario:
    """The same, with counts that go on with what their windows have put out."""
    topology = dict(scenario.topology)
    for name, config in topology.items():
        if (
            isinstance(config, BoltConfig)
            and isinstance(config.bolt, WindowedCount)
            and config.bolt.window.extent is None
        ):
            running = RunningCount(window=config.bolt.window)
            topology[name] = config.model_copy(update={"bolt": running})
    return scenario.model_copy(update={"topology": topology})


SNAPSHOTS, CHANGELOG, LINEAGE = both("aligned_snapshots"), both("changelog"), both("micro_batch")
OVERTAKEN, LATER = (st.one_of(overtaken(late=late), overtaken(True, late)) for late in (False, True))
INTERVALS = tuple(ticks * TICK for ticks in (4, 15, 40, 100))

SETTINGS: dict[str, Worlds] = {
    "aligned_snapshots, sink": transactional(SNAPSHOTS),
    "aligned_snapshots, local_recovery": copied(SNAPSHOTS),
    "aligned_snapshots, unaligned": OVERTAKEN,
    "aligned_snapshots, aligned_timeout": LATER,
    "aligned_snapshots, all of these": saved(copied(transactional(st.one_of(SNAPSHOTS, OVERTAKEN, LATER)))),
    "micro_batch, lineage": fixed(LINEAGE, recovery=("lineage",), checkpoint_interval=INTERVALS),
    "micro_batch, replay": fixed(LINEAGE, recovery=("replay",)),
    "micro_batch, running_count": LINEAGE.map(going_on),
    "changelog, exactly_once": fixed(
        CHANGELOG, guarantee=("exactly_once",), batch_interval=(None,), local_state=(False,)
    ),
    "changelog, standby_replicas": fixed(CHANGELOG, standby_replicas=(1, 1, 2)),
    "changelog, local_state": fixed(CHANGELOG, guarantee=("at_least_once",), local_state=(True,)),
}
