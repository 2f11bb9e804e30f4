"""A replica that comes back, tuple by tuple: what it copies, what it holds meanwhile, and what it does
without a peer. Each list is worked out by hand, and held against engine and reference. Times in milliseconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests import oracle
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.simulation import simulate

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}
FOREVER = 1000
TICKS_OF_20 = {"length": 20 * MS}


def engine(scenario: Scenario) -> Any:
    run = simulate(scenario, trace=True)
    assert run.trace is not None
    return run.trace, run.ledger


def reference(scenario: Scenario) -> Any:
    trace = oracle.run(scenario)
    return trace, trace.ledger


both = pytest.mark.parametrize("simulated", [engine, reference])


def queueing(*failures: Any, window: dict[str, Any] = TICKS_OF_20, **more: Any) -> Scenario:
    """s (every 5) ──▶ count (8), twice. While nothing fails root n comes at 5n + 5 and is counted at 8n + 13,
    and the tick of 20 has its turn at 37, behind the roots 0 to 3, that of 40 at 69, behind 4 to 7.
    """
    topology = {
        "s": spout(gap=5, **ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, 8, window=window),
    }
    return world(topology, "active_replication", failures, 82, k=1, **more)


def instant(*failures: Any, **more: Any) -> Scenario:
    """s (every 10) ──▶ p ──▶ count, twice (p is there once): root n is counted at 10n + 10, at once."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"p": "shuffle"}, window=more.pop("window", {"length": 50 * MS})),
    }
    more.setdefault("components", ("count",))
    return world(topology, "active_replication", failures, 55, k=1, **more)


def lost(at: float, replica: int = 0, **more: Any) -> Any:
    return fault("lose_state", at, component="count", replica=replica, **more)


def dies(at: float, replica: int = 1) -> Any:
    return fault("crash_task", at, component="count", replica=replica, restart=FOREVER)


def p_holds(at: float, until: float) -> Any:
    """p is down, and lets in at ``until`` what has come meanwhile."""
    return fault("crash_task", at, component="p", restart=until - at, while_down="hold")


def counted(trace: Any, replica: int = 0) -> list[tuple[int, float, float]]:
    """(root, came, counted) at one replica of the count, in its order."""
    rows = [row for row in trace.processed if row[0] == "count" and row[2] == replica]
    return [(row[3], row[5] / MS, row[6] / MS) for row in rows]


def windows(trace: Any, replica: int = 0) -> list[tuple[int, float, int]]:
    """(number, when, sum) of the windows of one replica of the count."""
    rows = [row for row in trace.windows if row[0] == "count" and row[2] == replica]
    return sorted((row[3], row[4] / MS, sum(row[5].values())) for row in rows)


# -- ticks ---------------------------------------------------------------------------------------------------


@both
def test_a_queue_is_copied_with_the_ticks_in_it(simulated: Any) -> None:
    """State lost at 22, with 0 and 1 counted: the copy has them, root 2 (in service there), root 3 and the
    tick of 20. Served from 22 on: 2 at 30, 3 at 38, and there the window, of four as with the peer. Of the
    own queue (2, 3, the tick) nothing is left.
    """
    trace, ledger = simulated(queueing(lost(22)))
    assert windows(trace, 1) == [(1, 37, 4), (2, 69, 4)]
    assert windows(trace) == [(1, 38, 4), (2, 70, 4)]
    assert counted(trace)[:5] == [(0, 5, 13), (1, 10, 21), (2, 22, 30), (3, 22, 38), (4, 25, 46)]
    assert ledger["duplicated"] == ledger["lost"] == 0


@both
def test_a_copy_that_takes_its_time_comes_with_the_ticks_too(simulated: Any) -> None:
    """The same with copy_time 10: at 32 the peer has counted 0, 1 and 2, and serves 3; the tick of 20 and the
    roots 4 and 5 wait. From 32 on: 3 at 40, the window, then 4 to 7 up to 72, and the tick of 40, which came
    in time.
    """
    trace, ledger = simulated(queueing(lost(22), copy_time=10 * MS))
    assert windows(trace) == [(1, 40, 4), (2, 72, 4)]
    came = [(0, 5, 13), (1, 10, 21), (3, 32, 40), (4, 32, 48), (5, 32, 56), (6, 35, 64), (7, 40, 72)]
    assert counted(trace)[:7] == came
    assert ledger["duplicated"] == ledger["lost"] == 0


@both
def test_the_tick_that_a_stopped_peer_has_yet_to_serve_is_copied(simulated: Any) -> None:
    """Replica 1 is stopped from 15 to 45: at 30 it has counted root 0, and before it wait 1, the tick of 20,
    and 2. Replica 0 has emitted window 1 (roots 0 and 1) when it loses its state at 30. With the copy it
    emits that window once more, which is void, then counts 2, and at 40 window 2 is right.
    """
    stopped = fault("pause", 15, component="count", replica=1, duration=30 * MS)
    trace, ledger = simulated(instant(stopped, lost(30), window=TICKS_OF_20))
    assert windows(trace) == [(1, 20, 2), (1, 30, 2), (2, 40, 2)]
    assert windows(trace, 1) == [(1, 45, 2), (2, 45, 2)]
    assert (ledger["duplicated"], ledger["lost"], ledger["completed"]) == (0, 0, 5)


# -- no peer any more ----------------------------------------------------------------------------------------


@both
def test_who_waits_for_a_peer_that_dies_goes_on_with_its_own_queue(simulated: Any) -> None:
    """State lost at 22, the copy is due at 32, but the peer dies at 25. At 32 the replica goes on alone: its
    own 2 and 3, then 4 and 5, which came while it waited. The tick of 20 is gone, as in downtime; that of 40
    comes behind 6 and 7 and has its turn at 80, with six.
    """
    trace, ledger = simulated(queueing(lost(22), dies(25), copy_time=10 * MS))
    alone = [(2, 32, 40), (3, 32, 48), (4, 32, 56), (5, 32, 64), (6, 35, 72), (7, 40, 80)]
    assert counted(trace) == [(0, 5, 13), (1, 10, 21), *alone]
    assert windows(trace) == [(2, 80, 6)]
    assert (ledger["lost"], ledger["completed"]) == (2, 6)


@both
def test_tuples_that_are_served_anew_count_once_towards_their_window(simulated: Any) -> None:
    """The same with windows of four tuples: root 2, which was in service at 22, is the first of four all the
    same, and not the second: 2, 3, 4, 5 are a window at 64.
    """
    trace, _ = simulated(queueing(lost(22), dies(25), copy_time=10 * MS, window={"tuples": 4}))
    assert windows(trace) == [(1, 64, 4)]


@both
def test_state_lost_again_while_waiting_for_a_peer_that_is_gone(simulated: Any) -> None:
    """State lost at 22, the copy is due at 42; the peer dies at 25; at 30 the state is lost again, and now
    there is nobody to wait for: at once 2, 3, 4 and 5 (which comes at 30) are served.
    """
    trace, _ = simulated(queueing(lost(22), dies(25), lost(30), copy_time=20 * MS))
    assert counted(trace)[2:6] == [(2, 30, 38), (3, 30, 46), (4, 30, 54), (5, 30, 62)]


# -- what is held when the next fault strikes ----------------------------------------------------------------


@both
def test_what_a_waiting_replica_holds_is_in_its_memory(simulated: Any) -> None:
    """State lost at 12, the copy is due at 62: root 1, of 20, is held. From 25 the replica is down, with its
    memory kept; root 2, of 30, waits with its sender. At 32 it crashes: root 1 is gone, root 2 is not.
    """
    crash = fault("crash_task", 32, component="count", restart=FOREVER, while_down="hold")
    down = lost(25, restart=10, while_down="hold")
    trace, ledger = simulated(instant(lost(12), down, crash, copy_time=50 * MS))
    assert trace.destroyed == [("count", 0, 0, 1, 32 * MS)]
    assert counted(trace, 1) == [(n, 10 * n + 10, 10 * n + 10) for n in range(5)]
    assert ledger["lost"] == 0


@both
def test_what_a_waiting_replica_holds_has_been_filtered_when_nobody_is_left(simulated: Any) -> None:
    """p has two replicas as well, so each root comes twice. State lost at 12; root 1 is held, twice; the
    replica is down from 25 to 35, its peer dies at 28. At 35 it goes on with root 1, once.
    """
    failures = (lost(12), lost(25, restart=10, while_down="drop"), dies(28))
    trace, ledger = simulated(instant(*failures, copy_time=50 * MS, components=None))
    assert counted(trace) == [(0, 10, 10), (1, 35, 35), (3, 40, 40), (4, 50, 50)]
    assert (ledger["lost"], ledger["duplicated"]) == (2, 0)


# -- what leaves the topology --------------------------------------------------------------------------------


@both
def test_what_a_copied_queue_sends_out_again_is_no_duplicate(simulated: Any) -> None:
    """s (every 10) ──0──▶ p (6), ──5──▶ its replica. Replica 0 is done with roots 0 and 1 at 16 and 26, and
    crashes at 27. The other one has then just begun with root 1 (25 to 31), so the copy sends it out at 33
    once more: their reader has it.
    """
    topology = {
        "s": spout(hosts=(0,), **ONES),
        "count": bolt("forward", {"s": "shuffle"}, 6, hosts=(1,)),
    }
    links = Links(latency=ms(0), local=ms(0), pairs={"0-2": ms(5)})
    failures = (fault("crash_task", 27, component="count"),)
    trace, ledger = simulated(world(topology, "active_replication", failures, 40, k=1, hosts=3, links=links))
    assert counted(trace) == [(0, 10, 16), (1, 20, 26), (1, 27, 33), (2, 30, 39)]
    assert (ledger["completed"], ledger["duplicated"], ledger["lost"]) == (3, 0, 0)


def test_outputs_of_a_longer_run_are_all_there() -> None:
    """s (every 0.05) ──▶ p, twice: 6,000 roots, more than the ledger has room for at its start."""
    topology = {"s": spout(gap=0.05, **ONES), "count": bolt("forward", {"s": "shuffle"})}
    ledger = simulate(world(topology, "active_replication", until=300, k=1)).ledger
    assert (ledger["emitted"], ledger["completed"], ledger["duplicated"]) == (6000, 6000, 0)


@both
def test_what_an_end_without_replicas_sends_out_again_is_no_duplicate(simulated: Any) -> None:
    """s (every 20) ──0──▶ p ──0──▶ count, and by p's replica 5 + 5 later. The last bolt crashes at 22 and is
    back at once: the second root 0, at 30, is new to it, but not to who reads it.
    """
    topology = {
        "s": spout(gap=20, hosts=(0,), **ONES),
        "p": bolt("forward", {"s": "shuffle"}, hosts=(1,)),
        "count": bolt("forward", {"p": "shuffle"}, hosts=(0,)),
    }
    more: dict[str, Any] = {"k": 1, "hosts": 3, "components": ("p",)}
    more["links"] = Links(latency=ms(0), local=ms(0), pairs={"0-2": ms(5)})
    trace, ledger = simulated(
        world(topology, "active_replication", (fault("crash_task", 22, component="count"),), 45, **more)
    )
    assert counted(trace) == [(0, 20, 20), (0, 30, 30), (1, 40, 40)]
    assert (ledger["completed"], ledger["duplicated"], ledger["lost"]) == (2, 0, 0)


# -- what comes at the instant of the fault ------------------------------------------------------------------


@both
def test_what_comes_between_fault_and_readiness_is_not_counted_twice(simulated: Any) -> None:
    """At 30 the state is lost, and p is back, which lets root 2 go at once: it is counted by both replicas at
    30. Then the copy is made, of a state with root 2 in it: once is enough.
    """
    trace, ledger = simulated(instant(p_holds(25, 30), lost(30)))
    assert counted(trace) == [(n, 10 * n + 10, 10 * n + 10) for n in range(5)]
    assert windows(trace) == [(1, 50, 5)]
    assert (ledger["duplicated"], ledger["completed"]) == (0, 5)


@both
def test_who_waits_already_goes_on_holding_when_its_state_is_lost_again(simulated: Any) -> None:
    """State lost at 12, the copy is due at 62; root 1, of 20, is held; the peer dies at 28. At 30 the state
    is lost again, and p lets root 2 go: it waits behind root 1, and with nobody to copy from both are let in,
    in order. Root 0 is lost.
    """
    failures = (lost(12), p_holds(25, 30), dies(28), lost(30))
    trace, ledger = simulated(instant(*failures, copy_time=50 * MS))
    assert counted(trace) == [(0, 10, 10), (1, 30, 30), (2, 30, 30), (3, 40, 40), (4, 50, 50)]
    assert windows(trace) == [(1, 50, 4)]
    assert (ledger["lost"], ledger["completed"]) == (1, 4)


@both
def test_what_the_copy_waits_for_may_be_held_up_once_more(simulated: Any) -> None:
    """s and p are on host 0, replicas of count on 1 and 2. Replica 0 is back at 32, and root 2, sent to the
    other at 30, is to be in the copy: it is held up until 45, and then, since the link is cut again at 40,
    until 75 with all that follows. Root 7 is the first that replica 0 counts by itself.
    """
    hosts, ends = ({"hosts": (0,)}, {"hosts": (1,)})
    topology = {
        "s": spout(**ONES, **hosts),
        "p": bolt("forward", {"s": "shuffle"}, **hosts),
        "count": bolt("windowed_count", {"p": "shuffle"}, window={"length": FOREVER * MS}, **ends),
    }
    cuts = [
        fault("partition", at, hosts=(0,), others=(2,), duration=length * MS)
        for at, length in ((25, 20), (40, 35))
    ]
    scenario = world(
        topology, "active_replication", (lost(28, restart=4), *cuts), 95, hosts=3, k=1, components=("count",)
    )
    trace, _ = simulated(scenario)
    first, other = ([(root, at) for root, _, at in counted(trace, replica)] for replica in (0, 1))
    assert first == [(0, 10), (1, 20), (7, 80), (8, 90)]
    assert other == [(0, 10), (1, 20), *((root, 75) for root in range(2, 7)), (7, 80), (8, 90)]
