"""Random small worlds in which bolts have a `state` that is saved with them."""

from __future__ import annotations

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.backends.base import Backend
from tideover.models.job.backends.memory import Memory
from tideover.models.job.backends.rocksdb import RocksDB
from tideover.models.job.components import BoltConfig

SIZES = (1, 2, 3, 10, 40)


@st.composite
def backends(draw: st.DrawFn) -> Backend:
    """Few entries, so that tuples change many of them."""
    settings = {"entries": draw(st.sampled_from(SIZES)), "entry_size": draw(st.sampled_from((0, 64, 1000)))}
    settings |= {"accesses": draw(st.sampled_from((0, 1, 1, 3))), "access_cost": 0}
    if draw(st.integers(0, 3)):
        return RocksDB(incremental=draw(st.sampled_from((True, True, False))), **settings)
    return Memory(**settings)


@st.composite
def saved(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these, with a `state` in most of its bolts."""
    scenario = draw(scenarios)
    topology = dict(scenario.topology)
    for name, config in topology.items():
        if isinstance(config, BoltConfig) and draw(st.integers(0, 3)):
            topology[name] = config.model_copy(update={"state": draw(backends())})
    return scenario.model_copy(update={"topology": topology})
