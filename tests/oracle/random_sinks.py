"""Random small worlds whose readers see what is put out in transactions, and such whose tasks keep copies of
what they save on the disks of their hosts.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.job.sinks import TransactionalSink
from tideover.models.job.stores import Disk
from tideover.sim.registry import kind_of

from .random_times import TICK, times
from .worlds import MS


@st.composite
def transactional(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these, with transactions that time out in some outages, in most, or (in three of ten) while
    nothing has failed.
    """
    scenario = draw(scenarios)
    ties = draw(st.booleans())
    timeout = draw(st.sampled_from((5, 20, 25, 30, 40, 40, 60, 60, 1000, 9000)))
    commit = draw(times(ties, 0, 0, 1, 3, 8, 20, 40))
    sink = TransactionalSink(transaction_timeout=timeout * TICK, commit_time=round(commit * MS))
    strategy = scenario.strategy.model_copy(update={"sink": sink})
    return scenario.model_copy(update={"strategy": strategy})


@st.composite
def copied(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these, whose tasks keep copies of what they save on disks, from quick to slower than the store;
    some hosts that crash have to be repaired.
    """
    scenario = draw(scenarios)
    latency, bandwidth = draw(st.sampled_from(((0, 2**50), (TICK // 2, 2000), (7 * TICK, 300))))
    disk = Disk(latency=latency, bandwidth=bandwidth)
    strategy = scenario.strategy.model_copy(update={"local_recovery": "ssd"})
    repairs = st.sampled_from((None, None, 2 * TICK, 30 * TICK))
    failures = tuple(
        fault.model_copy(update={"repair": draw(repairs)}) if kind_of(fault) == "crash_host" else fault
        for fault in scenario.failures
    )
    changes = {"strategy": strategy, "failures": failures, "stores": scenario.stores | {"ssd": disk}}
    return scenario.model_copy(update=changes)
