"""Bounded queues where tasks share the cores of their host, with cards and without: every tuple as in the
reference.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.models.crowded import ONES, chain, machines, troubled
from tests.models.test_cores import done, equal
from tests.oracle.worlds import bolt, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType, QueueSettings


def bounded(scenario: Scenario, seed: int) -> Scenario:
    """The same with a few places in each queue."""
    chance = random.Random(seed)
    queues = QueueSettings(
        length=chance.choice((1, 2, 5)),
        when_full=chance.choice(("block", "block", "credits", "drop")),
        send=chance.choice((0, 0, 2)),
    )
    return scenario.model_copy(update={"queues": queues})


def all_three(seed: int) -> Scenario:
    """Two levels on two hosts with a core and a card of 1 MB/s each, of which both are busy."""
    chance = random.Random(seed)
    hosts = Hosts(machines={"m": MachineType(count=2, cores=1, nic=1_000_000)})
    latency, rate = chance.choice((0, 0.5)), chance.choice((400, 700))
    return bounded(chain(rate, 2, 2, hosts, until=300, latency=latency, seed=seed), seed)


def test_who_is_blocked_uses_no_core() -> None:
    """p and r (4 ms each, every 10) share a core; q, elsewhere, takes 25 ms of what p sends, and has one
    place. From 38 on p is blocked until q begins at 43: r, which began at 40, is alone for 3 ms, and done at
    45. p is blocked again from 48 to 68, from 74 to 93: at 50, 60 and 80 r has the core to itself.
    """
    topology: dict[str, Any] = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "all"}, 4, hosts=(0,)),
        "r": bolt("forward", {"s": "all"}, 4, hosts=(0,)),
        "q": queued(bolt("forward", {"p": "shuffle"}, 25, hosts=(1,)), 1),
    }
    hosts = Hosts(machines={"one": MachineType(count=1, cores=1), "other": MachineType(count=1)})
    scenario = world(topology, hosts=hosts, until=99)
    assert done(scenario, "p") == [18, 28, 38, 48, 74, 98]
    assert done(scenario, "r") == [18, 28, 38, 45, 54, 64, 76, 84, 95]
    assert done(scenario, "q") == [43, 68, 93]


@pytest.mark.parametrize("seed", range(6))
def test_crowded_hosts_with_full_queues_equal_the_reference(seed: int) -> None:
    """Poisson arrivals, exponential services, three faults."""
    equal(bounded(troubled(seed), seed))


@pytest.mark.parametrize("seed", range(4))
def test_queues_cores_and_cards_equal_the_reference(seed: int) -> None:
    equal(all_three(seed))


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_many_crowded_hosts_with_full_queues(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        equal(bounded(troubled(seed), seed))


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_many_queues_cores_and_cards(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        equal(all_three(seed))


def test_several_levels_on_a_core_are_as_in_the_reference() -> None:
    """Load 0.9, and queues that are never full."""
    scenario = chain(450, 2, 1, machines(1, 1), until=1000)
    equal(scenario.model_copy(update={"queues": QueueSettings(length=1000)}))
