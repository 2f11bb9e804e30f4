"""Random small worlds whose faults come again, together, or at a rate of their machines."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.sim.distributions import Exponential, Weibull
from tideover.sim.faults import FAULTS, Fault

from .random_parameters import STRATEGY_NAMES
from .random_times import TICK
from .random_worlds import worlds


@st.composite
def flapping(draw: st.DrawFn, hosts: int, one: Fault) -> Fault:
    times = {"times": draw(st.integers(2, 4)), "period": draw(st.integers(1, 12)) * TICK}
    return one.model_copy(update={"in_interval": None, **times})


@st.composite
def cascade(draw: st.DrawFn, hosts: int, one: Fault) -> Any:
    followers = {"probability": draw(st.sampled_from((0.5, 1.0))), "span": draw(st.integers(0, 20)) * TICK}
    own = {"at": draw(st.integers(5, 40)) * TICK, "restart": draw(st.sampled_from((0, 7))) * TICK}
    return FAULTS["cascade"](host=draw(st.integers(0, hosts - 1)), **followers, **own)


@st.composite
def machines(draw: st.DrawFn, hosts: int, one: Fault) -> Any:
    life = draw(st.integers(20, 80)) * TICK
    spread = draw(st.sampled_from((Exponential(mean=life), Weibull(mean=life, shape=0.7))))
    repair = Exponential(mean=draw(st.integers(1, 10)) * TICK)
    return FAULTS["machines_fail"](lifetime=spread, repair=repair, crews=draw(st.sampled_from((None, 1))))


@st.composite
def schedules(draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES) -> Scenario:
    """A scenario with a fault of each sort that is drawn, and time to recover."""
    scenario = draw(worlds(strategies).filter(lambda found: found.failures and isinstance(found.hosts, int)))
    sorts = draw(st.lists(st.sampled_from((flapping, cascade, machines)), min_size=1, max_size=2))
    assert isinstance(scenario.hosts, int)
    failures = tuple(draw(sort(scenario.hosts, scenario.failures[0])) for sort in sorts)
    longer = scenario.run.model_copy(update={"duration": scenario.run.duration + 100 * TICK})
    return scenario.model_copy(update={"failures": failures, "run": longer})
