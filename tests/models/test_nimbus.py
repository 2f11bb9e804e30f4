"""The race of Storm's supervisors with Nimbus, and tasks that Nimbus moves. Times in ms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES, chain, crashed, lost
from tests.models.test_cards import served
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.storm import Storm
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.results import RECOVERY, figures
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World

# -- the race ------------------------------------------------------------------------------------------------

OFTEN = 1000


def storm(nimbus: float, launch: float = 15, prepare: float = 8, **more: Any) -> Storm:
    """Supervisors wait 30, Nimbus so long."""
    times = {name: round(value * 1e6) for name, value in more.items()}
    fine = dict.fromkeys(("worker_heartbeat", "task_heartbeat", "supervisor_round"), OFTEN)
    return Storm(
        supervisor_worker_timeout=30_000_000,
        nimbus_task_timeout=round(nimbus * 1e6),
        nimbus_round=10_000_000,
        launch=ms(launch),
        prepare=ms(prepare),
        **fine | times,
    )


def run(detector: Storm, *failures: Any, **more: Any) -> Replication:
    """s ──▶ p (1) ──▶ count (1), each on a host of its own, in a worker: 0.0, 1.0 and 2.0. Heartbeats are as
    good as always fresh (each microsecond), supervisors look each microsecond, and Nimbus each 10 ms.
    """
    changes = {"detector": detector, **more}
    return simulate(chain(failures or (crashed(100, 0),), 900).model_copy(update=changes))


def restarts(done: Replication) -> list[tuple[str, str, float, float]]:
    """(kind, where, struck, ready) of each, to 10 microseconds."""
    return [
        (row["kind"], row["component"], *(round(row[at] * 1e3, 2) for at in ("failed_at_s", "ready_at_s")))
        for row in done.recoveries
    ]


def test_a_supervisor_that_is_quick_enough_ends_it() -> None:
    """Missed at 130, launched until 145, prepared until 153: before Nimbus gives up at 160 or later."""
    (only,) = restarts(run(storm(nimbus=60)))
    assert only == ("crash_task", "count", 100, 153)


def test_nimbus_restarts_the_neighbour_twice() -> None:
    """Nimbus gives up in its first round after 140, at N, when the worker is not yet prepared. The task moves
    to worker 1.0, next to what it reads: that is killed, and both are there at N + 23. At N + 10, in its next
    round, Nimbus sees that worker 2.0 is free: the task goes home, and worker 1.0 is killed again; both are
    back at N + 33. So the buffer of p is gone twice.
    """
    done = run(storm(nimbus=40))
    first, moved, home = restarts(done)
    n = moved[2]
    assert 140 <= n < 150
    assert moved == ("reassigned", "worker 2.0 to 1.0", n, pytest.approx(n + 33))
    assert home == ("reassigned", "back to worker 2.0", pytest.approx(n + 10), pytest.approx(n + 33))
    assert first == ("crash_task", "count", 100, pytest.approx(n + 33))
    assert done.ledger["lost"] > run(storm(nimbus=120)).ledger["lost"]


def test_a_host_that_is_stopped_on_purpose_has_crashed_for_all_that_nimbus_knows() -> None:
    """The host of count is away for 20: its worker is missed at 130, as above. Away for 80, until 180, it is
    given up by Nimbus in its first round after 140, at N, and is at home again 40 later.
    """
    back, away = (fault("planned_restart", 100, hosts=(2,), down=ms(down)) for down in (20, 80))
    assert restarts(run(storm(nimbus=60), back)) == [("planned_restart", "host 2", 100, 153)]
    stopped, moved, home = restarts(run(storm(nimbus=40), away))
    n = moved[2]
    assert stopped == ("planned_restart", "host 2", 100, pytest.approx(n + 23))
    assert moved == ("reassigned", "worker 2.0 to 1.0", n, pytest.approx(n + 23))
    assert home == ("reassigned", "back to worker 2.0", pytest.approx(n + 40), pytest.approx(n + 63))


def test_nobody_moves_what_is_killed_and_submitted_again() -> None:
    """The workers of a job that is stopped are silent for 200, and Nimbus has a patience of 40."""
    done = run(storm(nimbus=40), fault("planned_restart", 100, down=ms(200)))
    assert restarts(done) == [("planned_restart", "job", 100, 300)]


def test_nimbus_has_heard_from_a_neighbour_until_it_is_killed() -> None:
    """As above, but Nimbus has no patience for what it has just assigned. The neighbour's task was last heard
    when it was killed, at N, and takes 23 to come back, but is killed again at N + 10, and once more when
    count, last heard at 100, comes again at N + 20. So it is silent for 40 at N + 40, and moved then.
    """
    done = run(storm(nimbus=40, task_launch=0))
    moves = [(row["component"], row["failed_at_s"] * 1e3) for row in done.recoveries[1:]]
    n = moves[0][1]
    assert moves[2] == ("worker 2.0 to 1.0", pytest.approx(n + 20))
    neighbour = next(moment for where, moment in moves if where.startswith("worker 1.0 to"))
    assert neighbour == pytest.approx(n + 40)


def test_what_nimbus_moves_is_no_failure() -> None:
    """Its restarts are rows of their own, but one failure is told of, and the recovery from it."""
    done = run(storm(nimbus=40))
    assert len(done.recoveries) == 3
    told = figures([done])
    assert (told["failures"], told[RECOVERY]) == (1, done.recoveries[0]["time_to_recover_s"])


def test_a_free_worker_takes_the_task_alone() -> None:
    """With a fourth host in reserve nothing else is killed: count moves there, and stays."""
    machines = Hosts(machines={"small": MachineType(count=4)}, reserve=1)
    done = run(storm(nimbus=40), hosts=machines)
    _, moved = restarts(done)
    assert moved == ("reassigned", "worker 2.0 to 3.0", moved[2], pytest.approx(moved[2] + 23))
    assert done.ledger["lost"] == 0


def test_nimbus_has_patience_with_what_it_has_just_assigned() -> None:
    """Tasks that take 100 to prepare are silent for longer than its timeout, but it waits `task_launch`: one
    move, one way home, and no more.
    """
    done = run(storm(nimbus=40, prepare=100, task_launch=300))
    assert [row[0] for row in restarts(done)] == ["crash_task", "reassigned", "reassigned"]


def test_without_patience_it_never_ends() -> None:
    """With none, tasks that take longer than its timeout are moved for ever."""
    done = run(storm(nimbus=40, prepare=100, task_launch=0))
    assert len(done.recoveries) > 6


def test_all_of_a_worker_dies_with_one_task() -> None:
    """p and count are on host 1, in one worker: the crash of count takes p down, a lost state does not."""
    topology = chain().topology
    hosts = {"s": (0,), "p": (1,), "count": (1,)}
    changed = {name: config.model_copy(update={"hosts": hosts[name]}) for name, config in topology.items()}
    done = run(storm(nimbus=500), topology=changed)
    (row,) = restarts(done)
    assert row == ("crash_task", "count", 100, 153)
    assert done.ledger["lost"] > 0  # with the buffer of p
    assert run(storm(nimbus=500), lost(100), topology=changed).ledger["lost"] == 0


def test_who_loses_its_state_twice_at_one_instant_is_back_once() -> None:
    """s (a root each 10) ──▶ p (15), of which there are two. At 55 the first loses its state, and once more:
    it copies the other one once, with its queue, and does what is there one after the other, each once.
    """
    topology = {"s": spout(), "p": bolt("forward", {"s": "shuffle"}, 15)}
    gone = fault("lose_state", 55, component="p")
    replicated = world(topology, "active_replication", (gone, gone), 100, k=1)
    seldom = storm(nimbus=60, worker_heartbeat=1, task_heartbeat=1, supervisor_round=1)
    scenario = replicated.model_copy(update={"detector": seldom})
    check(scenario)
    trace = simulate(scenario, trace=True).trace
    first = [(row[3], row[-1] / 1e6) for row in trace.processed if row[2] == 0]
    assert first == [(0, 25), (1, 40), (2, 55), (3, 70), (4, 85), (5, 100)]


# -- a task that Nimbus moves uses the links, cards and cores of where it is ---------------------------------

DIES = fault("crash_task", 100, component="p")


def nimbus(**more: float) -> Storm:
    """It misses a task after 40, and is quicker than supervisors."""
    detector = storm(nimbus=40, launch=20, prepare=0, **more)
    return detector.model_copy(update={"nimbus_round": 1000, "supervisor_worker_timeout": 2000 * MS})


def three(*failures: Any, nics: tuple[Any, ...] = (None,) * 3, until: float = 300, **links: Any) -> Scenario:
    """s (each 10, at 10, 20, …) ──▶ p (1), on hosts 0 and 1 with these cards; host 2 is in reserve, and free.

    p dies at 100, and Nimbus gives it up just before 140 (its heartbeats and Nimbus's looks come each
    microsecond): p is ready on host 2 from 160 on, and stays.
    """
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
    for later, count in ((old, 0), (new, 10)):
        found = simulate(three(DIES, later), trace=True)
        assert found.recoveries[-1]["kind"] == "crash_host"
        gone = [root for root in AFTER if root not in dict(delays(found))]
        assert len(gone) == count


def test_a_cut_holds_what_is_between_the_sides_now() -> None:
    """Host 1 is cut off from 60 to 500: what is sent to p from 60 on waits. When p moves to host 2, that
    arrives, finds it down, and is lost; nothing waits any more. And the other way round, if host 2 is cut
    off: then all waits from there on.
    """
    one, two = (fault("partition", 60, hosts=(host,), duration=440 * MS) for host in (1, 2))
    found = simulate(three(DIES, one), trace=True)
    assert delays(found) == [(n, 5) for n in (*BEFORE[:5], *AFTER)]
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
