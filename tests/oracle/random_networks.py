"""Random small worlds whose hosts have network cards, and whose messages cost their tasks something.

Their components are on hosts of their own; or the last is with the first; or all are together, where what a
card has sent may bring about what it is to send, at once or later.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario, deployment_of
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import BoltConfig, Links, MachineType, SpoutConfig

from .random_parameters import STRATEGY_NAMES
from .random_times import TICK
from .random_worlds import overlapping, worlds
from .worlds import ms

EACH = 2
"""Hosts of a component."""


@st.composite
def networks(
    draw: st.DrawFn, strategies: tuple[str, ...] = STRATEGY_NAMES, overlap: bool = False
) -> Scenario:
    """Any world, on machines with cards."""
    return draw(on_cards((overlapping if overlap else worlds)(strategies)))


@st.composite
def on_cards(draw: st.DrawFn, found: st.SearchStrategy[Scenario]) -> Scenario:
    """One of these worlds, on machines with cards."""
    scenario = draw(found)
    names = list(scenario.topology)
    groups = {name: place for place, name in enumerate(names)}
    links = scenario.links
    together = draw(st.sampled_from(("no", "ends", "all")))
    if together == "ends":
        groups[names[-1]] = 0
    elif together == "all":
        groups = dict.fromkeys(names, 0)
        links = Links(latency=ms(draw(st.sampled_from((0, 100, 300)))), local=links.local)
    count = EACH * len(names) + draw(st.integers(0, 1))
    topology = {
        name: _seated(draw, config, EACH * groups[name]) for name, config in scenario.topology.items()
    }
    speeds = st.sampled_from((2560, 5120, 3000, 1717, None))
    machines = {name: MachineType(count=n, nic=draw(speeds)) for name, n in (("a", count - 1), ("b", 1))}
    ns = st.sampled_from((0, 0, TICK // 10, TICK // 7))
    links = links.model_copy(
        update={
            "header": draw(st.sampled_from((0, 0, 64))),
            "serialise": draw(ns),
            "deserialise": draw(ns),
            "serialise_cost": draw(st.sampled_from((0, 0, TICK // 1000))),
            "deserialise_cost": draw(st.sampled_from((0, 0, TICK // 1000))),
        }
    )
    update: dict[str, Any] = {"topology": topology, "hosts": Hosts(machines=machines), "links": links}
    return scenario.model_copy(update=update)


def _seated(draw: st.DrawFn, config: SpoutConfig | BoltConfig, first: int) -> SpoutConfig | BoltConfig:
    hosts = tuple(first + draw(st.integers(0, EACH - 1)) for _ in range(config.parallelism))
    size = draw(st.sampled_from((256, 256, 100)))
    return config.model_copy(update={"hosts": hosts, "tuple_size": size})


def hosts_of(scenario: Scenario) -> list[int]:
    """The hosts that have a task."""
    return sorted(set(deployment_of(scenario).hosts.values()))
