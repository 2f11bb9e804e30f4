"""Bounded queues where tasks share cards or cores: by hand, and every tuple as in the reference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.models.crowded import ONES, chain, troubled
from tests.models.test_cards import NIC, machines, ring, served
from tests.models.test_cores import done, equal
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Saturating
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType, QueueSettings, WhenFull
from tideover.models.simulation import Replication, simulate


def test_what_a_message_costs_its_receiver_counts_behind_full_queues() -> None:
    """Two spouts that emit each 10 ms, and a task behind them with one place; no cards, but 15 ms to
    deserialise a message: so it is done with one message each 15 ms, though its service takes nothing.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "r": spout(**ONES, hosts=(0,)),
        "q": queued(bolt("forward", {"s": "shuffle", "r": "shuffle"}, 0, hosts=(1,)), 1),
    }
    links = Links(latency=ms(0), local=ms(0), deserialise=15 * MS)
    found = simulate(world(topology, hosts=machines(None, None), links=links, until=95), trace=True)
    assert [done for _, done in times(found, "q")] == [25, 40, 55, 70, 85]


def two_hosts(length: int | None, when_full: WhenFull = "block", latency: float = 0) -> Replication:
    """A tuple every 10 ms; 4 at p, which is with the spout; to q, 15 there: a card out with 1 ms a tuple."""
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 4, hosts=(0,)),
        "q": queued(bolt("forward", {"p": "shuffle"}, 15, hosts=(1,)), length, when_full),
    }
    links = Links(latency=ms(latency), local=ms(0))
    return simulate(world(topology, hosts=machines(NIC, None), links=links, until=95), trace=True)


def times(found: Replication, component: str) -> list[tuple[float, float]]:
    """(arrival, departure) there, ms."""
    return [(came, done) for _, came, done in served(found, component)]


def test_a_message_has_its_place_before_it_comes_to_the_card() -> None:
    """q begins at 15, 30, 45, 60, …: then its place is free, and p's next message leaves for the card. p is
    blocked from 44 on when it has one and q has another that waits.
    """
    found = two_hosts(1)
    assert [done for _, done in times(found, "p")] == [14, 24, 34, 44, 54, 64, 79, 94]
    assert times(found, "q") == [(15, 30), (25, 45), (35, 60), (46, 75), (61, 90)]


def test_credits_come_back_over_the_link_and_through_no_card() -> None:
    """Links take 2 ms: q begins at 17, 32, 47, …; p knows it 2 later, and what it sends is there after 3."""
    found = two_hosts(1, "credits", latency=2)
    assert times(found, "q") == [(17, 32), (27, 47), (37, 62), (52, 77), (67, 92)]


def test_no_more_waits_at_a_card_than_there_are_places() -> None:
    """Law: the spout emits as fast as the card out carries (1 ms a message), however fast it could; at the
    card are as many as the receiver, which serves at once what comes, has places (7); one is in the line.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)).model_copy(update={"arrivals": Saturating(emit_cost=MS // 100)}),
        "q": queued(bolt("forward", {"s": "shuffle"}, 0.5, hosts=(1,)), 7),
    }
    found = simulate(world(topology, hosts=machines(NIC, None), until=1000), trace=True)
    assert len(times(found, "q")) == 999
    assert len(found.trace.emitted) == 999 + 7 + 1


@pytest.mark.parametrize("levels", [1, 2])
def test_bounds_that_are_never_reached_change_nothing_behind_cards(levels: int) -> None:
    """Law: also where what a card has served brings about what comes to it (two levels on each host)."""
    scenario = ring(0.8, levels=levels, hosts=3, seconds=0.2, latency=1)
    bounded = scenario.model_copy(update={"queues": QueueSettings(length=10_000)})
    one, other = simulate(scenario, trace=True), simulate(bounded, trace=True)
    assert len(one.trace.processed) > 150
    assert sorted(one.trace.processed) == sorted(other.trace.processed)
    assert one.ledger == other.ledger


@pytest.mark.parametrize("when_full", ["drop", "block", None])
def test_who_comes_at_one_instant_waits_by_sender(when_full: WhenFull | None) -> None:
    """A tuple of b comes to q at 35, through its card; then a marker of a, which was sent at 30, takes 5 ms
    on the link, and none in the card. So it is ahead of the tuple: the window ends when that of 25 is done.
    """
    window = {"length": 30 * MS, "trigger": "marker"}
    count = bolt("windowed_count", {"a": "shuffle", "b": "shuffle"}, 11, window=window, hosts=(2,))
    topology = {
        "a": spout(**ONES, offset=100, hosts=(0,)),
        "b": spout(**ONES, offset=3, hosts=(1,)),
        "q": queued(count, when_full and 1, when_full),
    }
    links = Links(latency=ms(0), local=ms(0), pairs={"0-2": ms(5)})
    scenario = world(topology, hosts=machines(NIC, NIC, NIC), links=links, until=55)
    check(scenario)
    found = simulate(scenario, trace=True)
    assert times(found, "q") == [(15, 26), (25, 37), (35, 48)]
    assert [row[4] / MS for row in found.trace.windows] == [37]


def test_barriers_that_are_through_a_card_at_one_instant_wait_by_sender() -> None:
    """A tuple of p comes to q's card at 76.5, and is through at 77.5; barriers, sent at 72, come there from r
    at 77, and from p at 77.5. p's is first in q's queue: the next of p is set aside, and arrives at 177.5.
    """
    topology = {
        "a": spout("keys", 50, offset=20, keys=1, hosts=(0,)),
        "b": spout("keys", 1000, offset=900, keys=1, hosts=(1,)),
        "p": bolt("forward", {"a": "shuffle"}, 0, hosts=(0,)),
        "r": bolt("forward", {"b": "shuffle"}, 0, hosts=(1,)),
        "q": bolt("forward", {"p": "shuffle", "r": "shuffle"}, 100, hosts=(2,)),
    }
    links = Links(latency=ms(5), local=ms(0), pairs={"0-2": ms(5.5)})
    more = {"checkpoint_interval": 1000 * MS, "checkpoint_phase": 72 * MS}
    hosts = machines(NIC, NIC, NIC)
    scenario = world(topology, "aligned_snapshots", hosts=hosts, links=links, until=300, **more)
    check(scenario)
    assert times(simulate(scenario, trace=True), "q") == [(77.5, 177.5), (177.5, 277.5)]


def test_what_is_lost_behind_a_card_makes_room_at_once() -> None:
    """q has four places, and takes 140 each; both tasks of a are held back. From 325 on what they send is
    lost as it is through their card, and they go on when it is lost, not when data has moved a step more.
    """
    topology = {
        "a": spout("keys", 30, keys=1, hosts=(0, 0), parallelism=2),
        "q": queued(bolt("forward", {"a": "shuffle"}, 140, hosts=(1,)), 4, "block"),
    }
    cut = fault("partition", 325, duration=120 * MS, hosts=(1,), messages="lose")
    hosts, links = machines(NIC // 5, None), Links(latency=ms(10), local=ms(0))
    scenario = world(topology, failures=(cut,), hosts=hosts, links=links, until=1000)
    check(scenario)


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
    scenario = chain(450, 2, 1, Hosts(machines={"m": MachineType(count=1, cores=1)}), until=1000)
    equal(scenario.model_copy(update={"queues": QueueSettings(length=1000)}))
