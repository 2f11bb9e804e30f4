"""Random small worlds with a bit of everything that tasks and messages wait for, at once: full queues, few
cores, cards, records, links and hosts that are slow or cut off.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.strategies.base import STRATEGIES

from .random_cores import FACTORS
from .random_logs import reading
from .random_networks import hosts_of, on_cards
from .random_queues import queues
from .random_times import TICK, TICK_MS
from .worlds import fault


@st.composite
def _troubles(draw: st.DrawFn, found: Scenario) -> Any:
    """A host or a link that is slow for a while, or a host that is cut off."""
    hosts = hosts_of(found)
    kinds = ("slow_host", "slow_link", "partition") if len(hosts) > 1 else ("slow_host",)
    kind, host = draw(st.sampled_from(kinds)), draw(st.sampled_from(hosts))
    at = draw(st.integers(5, 60)) * TICK_MS + draw(st.sampled_from((0, 0, 0.000137)))
    more: dict[str, Any] = {"duration": draw(st.integers(1, 30)) * TICK}
    if kind == "slow_host":
        return fault(kind, at, host=host, factor=draw(st.sampled_from(FACTORS)), **more)
    other = draw(st.sampled_from([None, *((each,) for each in hosts if each != host)]))
    more |= {"hosts": (host,), "others": other}
    if kind == "slow_link":
        more["latency_factor"] = draw(st.sampled_from((1.5, 3.0, 10.0)))
        more["transfer_factor"] = draw(st.sampled_from((1.0, 1.5, 4.0)))
    elif STRATEGIES[found.strategy.kind].loses_messages:
        more["messages"] = draw(st.sampled_from(("hold", "lose")))
    return fault(kind, at, **more)


@st.composite
def together(draw: st.DrawFn, strategies: tuple[str, ...]) -> Scenario:
    """A world of `queues`, on machines with cards and cores or without, to which this and that happens."""
    found = draw(queues(strategies, overlap=draw(st.booleans())))
    if draw(st.integers(0, 2)) == 0:
        found = draw(reading(st.just(found), (None, None, 2, 15, 40)))
    return draw(troubled(st.just(found)))


@st.composite
def troubled(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these worlds, on such machines, to which this and that happens."""
    found = draw(on_cards(scenarios))
    hosts: Any = found.hosts
    cores = st.sampled_from((1, 1, 2, None))
    machines = {
        name: each.model_copy(update={"cores": draw(cores)} | ({"nic": None} if draw(st.booleans()) else {}))
        for name, each in hosts.machines.items()
    }
    found = found.model_copy(update={"hosts": hosts.model_copy(update={"machines": machines})})
    more = [draw(_troubles(found)) for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3))))]
    failures = tuple(draw(st.permutations([*found.failures, *more])))
    longer = found.run.model_copy(update={"duration": found.run.duration + 40 * TICK})
    return found.model_copy(update={"failures": failures, "run": longer})
