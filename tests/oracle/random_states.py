"""Random small worlds in which bolts have a `state` that is saved with them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.job.stores import Backend, Memory, Redis, RocksDB

from .random_times import TICK
from .worlds import MS

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


@st.composite
def looked_up(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these, of transactions, with a `state` in most of its bolts, which lies in the store."""
    scenario = draw(saved(scenarios))
    work = draw(st.sampled_from((0, 0, TICK // 10, TICK, 7 * MS + 1)))
    changes: dict[str, Any] = {
        "look_up_work": work,
        "round_trip": work + draw(st.sampled_from((0, TICK // 2, TICK, 3 * MS))),
        "access_cost": draw(st.sampled_from((0, 0, TICK // 10, MS))),
    }
    stores = dict(scenario.stores)
    if draw(st.booleans()):
        per_second = draw(st.sampled_from((1.0, 30.0, 1e6)))
        stores["redis"] = Redis(latency=draw(st.sampled_from((0, TICK))), operations=per_second)
        changes["store"] = "redis"
    strategy = scenario.strategy.model_copy(update=changes)
    return scenario.model_copy(update={"strategy": strategy, "stores": stores})
