"""A task that Nimbus moves uses the links, cards and cores of where it is. Times in ms.

s ──▶ p, on hosts 0 and 1; host 2 is in reserve, and free. p dies at 100, and Nimbus gives it up just before
140 (its heartbeats and Nimbus's looks come each microsecond): p is ready on host 2 from 160 on, and stays.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.models.test_cards import served
from tests.models.test_storm_detector import storm
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.storm import Storm
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World

DIES = fault("crash_task", 100, component="p")


def nimbus(**more: float) -> Storm:
    """It misses a task after 40, and is quicker than supervisors."""
    detector = storm(nimbus=40, launch=20, prepare=0, **more)
    return detector.model_copy(update={"nimbus_round": 1000, "supervisor_worker_timeout": 2000 * MS})


def three(*failures: Any, nics: tuple[Any, ...] = (None,) * 3, until: float = 300, **links: Any) -> Scenario:
    """s (each 10, at 10, 20, …) ──▶ p (1) on hosts with these cards."""
    topology = {"s": spout(**ONES, hosts=(0,)), "p": bolt("forward", {"s": "shuffle"}, 1, hosts=(1,))}
    machines = {f"m{i}": MachineType(count=1, nic=nic) for i, nic in enumerate(nics)}
    given = Links(**{"latency": ms(5), "local": ms(0)} | links)
    hosts = Hosts(machines=machines, reserve=1)
    found = world(topology, "none", failures or (DIES,), until, hosts=hosts, links=given)
    return found.model_copy(update={"detector": nimbus()})


def delays(found: Replication) -> list[tuple[int, float]]:
    """(root, from its emission to its arrival at p) of those that p was done with."""
    return [(uid, round(arrived - 10 * (uid + 1), 3)) for uid, arrived, _ in served(found, "p")]


BEFORE, AFTER = range(9), range(15, 29)
"""Roots that p is done with where it was, and where it is: it is ready when root 15 (160) comes."""


def test_its_messages_take_the_new_links() -> None:
    """5 from host 0 to host 1, 2 to host 2."""
    found = simulate(three(pairs={"0-2": ms(2)}), trace=True)
    assert delays(found) == [*((root, 5) for root in BEFORE), *((root, 2) for root in AFTER)]
    assert [row["kind"] for row in found.recoveries] == ["crash_task", "reassigned"]
    assert found.cost["hosts"] == 3


def test_its_messages_go_through_the_new_card() -> None:
    """The card of host 1 takes 1 for a message, that of host 2 takes 4. Each is busy with what comes to it:
    messages of 10 to 130 to the one, of 140 to 290 to the other.
    """
    scenario = three(nics=(None, 256_000, 64_000))
    found = simulate(scenario, trace=True)
    assert delays(found) == [*((root, 6) for root in BEFORE), *((root, 9) for root in AFTER)]
    one = World(scenario)
    one.run()
    busy = {(card.name, card.host): card.busy_ns(300 * MS) for card in one.job.network.cards}
    assert busy["card in", 1] == 13 * MS
    assert busy["card in", 2] == 16 * 4 * MS


def test_what_is_on_the_wire_when_it_moves_arrives_without_a_card() -> None:
    """With 15 on the wire the messages of 15 to 115 come to host 1's card until 130. Those of 125 and 135
    would come at 140 and 150: p has moved, they need no card, and wait for it until 160. That of 145 comes to
    host 2's card at 160, and takes 4 there.
    """
    plain = three(nics=(None, 256_000, 64_000), latency=ms(15))
    dies = fault("crash_task", 100, component="p", while_down="hold")
    spouts = {"s": spout(**ONES, hosts=(0,), offset=5)}
    scenario = plain.model_copy(update={"failures": (dies,), "topology": plain.topology | spouts})
    one = World(scenario, trace=True)
    one.run()
    assert one.trace is not None
    arrivals = {row[3]: round(row[5] / MS, 2) for row in one.trace.processed if row[0] == "p"}
    assert [arrivals[root] for root in (6, 7, 11, 12, 13, 14)] == [91, 160, 160, 160, 164, 174]
    card = next(card for card in one.job.network.cards if (card.name, card.host) == ("card in", 1))
    assert card.busy_ns(300 * MS) == 11 * MS


def test_within_a_host_nothing_is_packed_and_no_header_sent() -> None:
    """Without a free host p goes to host 0, which kills s. A message has 300 bytes with its header, and p
    takes 4 to unpack it and to serve it; within a host it has 256, and p takes 1. There they stay: host 1 is
    repaired until after the end.
    """
    detector, slow = nimbus(), fault("crash_host", 100, host=1, repair=1000 * MS)
    scenario = three(slow, until=400, header=44, deserialise=3 * MS).model_copy(
        update={"detector": detector, "hosts": 2}
    )
    found = simulate(scenario, trace=True)
    served_in = [round(left - arrived, 3) for _, arrived, left in served(found, "p")]
    moved = next(row for row in found.recoveries if row["kind"] == "reassigned")
    assert moved["component"] == "worker 1.0 to 0.0"
    assert served_in == [4] * 9 + [1] * (len(served_in) - 9)
    assert len(served_in) > 25
    (edge,) = found.edges.values()
    assert edge["remote_bytes"] == 13 * 300  # of 10 to 130
    assert edge["bytes"] == edge["remote_bytes"] + (edge["messages"] - 13) * 256


def test_what_waits_at_its_senders_is_served_by_the_new_links() -> None:
    """s ──▶ p (9, and 3 to pack a message for another host) ──▶ q. q moves to p's host, into a free worker:
    the tuple that p has in service since 130 is done at 142, and those that wait take 9 each.
    """
    topology = {
        "s": spout(**ONES, hosts=(1,)),
        "p": bolt("forward", {"s": "shuffle"}, 9, hosts=(0,)),
        "q": bolt("forward", {"p": "shuffle"}, 0, hosts=(2,)),
    }
    hosts = Hosts(machines={"m": MachineType(count=3)}, workers=2)
    links = Links(latency=ms(0), local=ms(0), serialise=3 * MS)
    dies = fault("crash_task", 100, component="q")
    scenario = world(topology, "none", (dies,), 200, hosts=hosts, links=links)
    found = simulate(scenario.model_copy(update={"detector": nimbus()}), trace=True)
    assert [row["component"] for row in found.recoveries] == ["q", "worker 2.0 to 0.1"]
    assert [left for _, _, left in served(found, "p")] == [*range(22, 143, 12), *range(151, 197, 9)]


def test_later_faults_hit_it_where_it_is() -> None:
    """A crash of host 1 at 200 hits nothing; one of host 2 hits p, and Nimbus waits: p is new."""
    old, new = (fault("crash_host", 200, host=host) for host in (1, 2))
    for later, lost in ((old, 0), (new, 10)):
        found = simulate(three(DIES, later), trace=True)
        assert found.recoveries[-1]["kind"] == "crash_host"
        gone = [root for root in AFTER if root not in dict(delays(found))]
        assert len(gone) == lost


def test_a_cut_holds_what_is_between_the_sides_now() -> None:
    """Host 1 is cut off from 60 to 500: what is sent to p from 60 on waits. When p moves to host 2, that
    arrives, finds it down, and is lost; nothing waits any more. And the other way round, if host 2 is cut
    off: then all waits from there on.
    """
    one, two = (fault("partition", 60, hosts=(host,), duration=440 * MS) for host in (1, 2))
    found = simulate(three(DIES, one), trace=True)
    assert delays(found) == [(n, 5) for n in (*BEFORE[:5], *AFTER)]
    assert found.trace is not None
    assert {round(row[4] / MS, 2) for row in found.trace.destroyed} == {140, 145, 155}
    assert delays(simulate(three(DIES, two), trace=True)) == [(n, 5) for n in BEFORE]


def done(found: Replication, component: str, begin: float, end: float) -> int:
    return sum(begin < left <= end for _, _, left in served(found, component))


@pytest.mark.parametrize(("levels", "expected"), [(1, 458.3), (2, 430.6)])
def test_after_a_failover_two_tasks_share_a_core(levels: int, expected: float) -> None:
    """Three hosts with a core each carry 625 tuples/s that take p 4 ms. Host 2 is gone for good at 300: its p
    goes to a host that has one. A third of the load, 208.3/s, is carried by the p that is alone, and two
    share a core that does 250/s; or 222.2/s, if what p is done with takes q 0.5 ms on the same host.
    """
    hosts: tuple[int, ...] = (0, 1, 2)
    topology: dict[str, Any] = {"s": spout("keys", gap=1.6, keys=3, order="in_turn", hosts=(0,))}
    topology["p"] = bolt("forward", {"s": "direct"}, 4, parallelism=3, hosts=hosts)
    if levels > 1:
        topology["q"] = bolt("forward", {"p": "direct"}, 0.5, parallelism=3, hosts=hosts)
    gone = fault("crash_host", 300, host=2, repair=5000 * MS)
    machines = Hosts(machines={"m": MachineType(count=3, cores=1)})
    scenario = world(topology, "none", (gone,), 800, hosts=machines)
    scenario = scenario.model_copy(update={"detector": nimbus(task_launch=5000)})
    found = simulate(scenario, trace=True)
    assert done(found, "p", 100, 300) == pytest.approx(125, abs=2)
    assert done(found, "p", 500, 800) == pytest.approx(expected * 0.3, abs=2)


def test_cores_are_busy_with_what_is_done_on_them() -> None:
    """p works 1 in 10, on host 1 for roots 0 to 8, and on host 2 for roots 15 to 28."""
    machines = Hosts(machines={"m": MachineType(count=3, cores=1)}, reserve=1)
    scenario = three(fault("slow_host", 299, host=0, factor=0.5, duration=MS), DIES, until=300)
    one = World(scenario.model_copy(update={"hosts": machines}))
    one.run()
    busy = {host: cores.busy_ns(300 * MS) for host, cores in one.job.context.cores.items()}
    assert busy == {0: 0, 1: 9 * MS, 2: 14 * MS}


def test_nothing_is_moved_to_a_host_that_is_repaired() -> None:
    """Host 2 is down from 50 to 550: p goes to host 0, next to s; home it goes when Nimbus looks next."""
    broken = fault("crash_host", 50, host=2, repair=500 * MS)
    found = simulate(three(broken, DIES), trace=True)
    moves = [row["component"] for row in found.recoveries if row["kind"] == "reassigned"]
    assert moves == ["worker 1.0 to 0.0", "back to worker 1.0"]


def test_who_moves_in_one_round_moves_before_any_of_them_is_ready() -> None:
    """p and q are in two workers of host 1, which dies at 100; p goes to host 0, then q to host 2. p is ready
    at once, with the roots it was sent meanwhile: these take the 2 to where q is, not the 5 to where it was.
    """
    dies = fault("crash_host", 100, host=1, repair=100 * MS, while_down="hold")
    found = three(dies, pairs={"0-2": ms(2)}, until=160)
    bolts = {
        "p": bolt("forward", {"s": "shuffle"}, 0, hosts=(1,)),
        "q": bolt("forward", {"p": "shuffle"}, 0, hosts=(1,)),
    }
    hosts: Any = found.hosts
    changes = {
        "topology": found.topology | bolts,
        "detector": nimbus().model_copy(update={"launch": ms(0)}),
        "hosts": hosts.model_copy(update={"workers": 2}),
    }
    found = found.model_copy(update=changes)
    run = simulate(found, trace=True)
    at = {root: round(arrived, 2) for root, arrived, _ in served(run, "q") if root > BEFORE[-1]}
    assert at == {**dict.fromkeys(range(9, 14), 142), 14: 152}
    assert run.recoveries[1]["component"] == "worker 1.0 to 0.1"
    assert run.recoveries[2]["component"] == "worker 1.1 to 2.0"
