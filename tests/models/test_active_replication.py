"""Active replication (k-safety), held to its paper's sums; and, tuple by tuple, a replica that comes back:
what it copies, what it holds meanwhile, and what it does without a peer. Times in milliseconds.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.models.chain import ONES
from tests.models.test_exactness import few_and_many
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.job.groupings import GROUPINGS
from tideover.models.simulation import Replication, simulate
from tideover.sim.distributions import Exponential

ALL_RIGHT = {"emitted": 40, "correct": 40, "wrong": 0, "missing": 0}


def markers(length: float) -> dict[str, Any]:
    """Windows of so many ms that markers end."""
    return {"length": length * MS, "trigger": "marker"}


def replicated(topology: dict[str, Any], *failures: Any, until: float = 55, **more: Any) -> Scenario:
    return world(topology, "active_replication", failures, until, **{"k": 1, **more})


def on_two_hosts(
    window: dict[str, Any],
    *failures: Any,
    until: float,
    latency: float = 0,
    pairs: dict[str, Any] | None = None,
    service: float = 0,
    s: dict[str, Any] = ONES,
    **more: Any,
) -> Replication:
    """s (host 0) ──▶ count (host 1, its replica on host 2); ``pairs``: latencies between hosts (ms)."""
    topology = {
        "s": spout(**s, hosts=(0,)),
        "count": bolt("windowed_count", {"s": "shuffle"}, service, hosts=(1,), window=window),
    }
    between = {pair: ms(value) for pair, value in (pairs or {}).items()}
    links = Links(latency=ms(latency), local=ms(0), pairs=between)
    return simulate(replicated(topology, *failures, until=until, hosts=3, links=links, **more), trace=True)


def word_count(failures: tuple[Any, ...] = (), k: int = 1, until: float = 629, **more: Any) -> Scenario:
    """s ──shuffle──▶ split x 2 ──fields──▶ count x 2 (markers every 30) ──▶ out

    k + 1 replicas of split and count, each on a host of its own; s and out have none.
    """
    count = bolt("windowed_count", {"split": "shuffle"}, 0.1, parallelism=2, window=markers(30))
    count.from_["split"] = GROUPINGS["fields"](fields=("word",))
    topology = {
        "s": spout("sentences", 4, 1),
        "split": bolt("split_words", {"s": "shuffle"}, 0.2, parallelism=2),
        "count": count,
        "out": bolt("forward", {"count": "global"}),
    }
    more.setdefault("links", Links(latency=ms(0.5), local=ms(0)))
    more |= {"k": k, "components": ("split", "count")}
    return replicated(topology, *failures, until=until, **more)


def windows(trace: Any, component: str = "count", replica: int = 0) -> list[tuple[int, float, int]]:
    """(number, when, sum) of the windows of one replica, in order."""
    rows = (row for row in trace.windows if row[0] == component and row[2] == replica)
    return sorted((row[3], row[4] / MS, sum(row[5].values())) for row in rows)


PRIMARIES = {"split.0": 1, "split.1": 2, "count.0": 3, "count.1": 4}
"""Hosts: s 0, then split and count in order, out 5; replicas six further on."""


@pytest.mark.parametrize("host", [*PRIMARIES.values(), *(host + 6 for host in PRIMARIES.values())])
@pytest.mark.parametrize("restart", [50, 10_000])
def test_one_host_down_shows_nowhere(host: int, restart: float) -> None:
    """Any one host of split and count crashes, for a while or for good: every window is right, and the sink
    is never silent for longer than it always is between two windows (30). No root is lost, none counted
    twice.
    """
    run = simulate(word_count((fault("crash_host", 317, host=host, restart=restart),)))
    (recovery,) = run.recoveries
    assert recovery["output_gap_s"] == pytest.approx(recovery["sink_spacing_s"])
    assert run.windows == ALL_RIGHT
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["replayed"]) == (0, 0, 0)
    assert recovery["missing"] == 0 or recovery["restored"] > 0 or restart == 10_000


def test_two_down_of_one_set_is_a_loss() -> None:
    """Hosts 3 and 9 hold both replicas of count.0. Down together from 317 to 367: the windows of markers 330
    and 360 are not emitted by it, and what was counted and what came meanwhile is lost. With k = 2, a third
    one has it all.
    """
    failures = tuple(fault("crash_host", 317, host=host, restart=50) for host in (3, 9))
    run = simulate(word_count(failures))
    assert run.ledger["lost"] > 0
    assert run.windows["wrong"] + run.windows["missing"] >= 2
    assert run.windows["correct"] == 40 - run.windows["wrong"] - run.windows["missing"]
    lives = run.recoveries[1]  # count.1 does
    assert lives["output_gap_s"] == pytest.approx(lives["sink_spacing_s"])
    safe = simulate(word_count(failures, k=2))
    assert safe.ledger["lost"] == 0
    assert safe.windows == ALL_RIGHT


@pytest.mark.parametrize("k", [0, 1, 2])
def test_messages_by_edge(k: int) -> None:
    """s ──(k+1)──▶ split ──(k+1)^2──▶ count ──(k+1)──▶ out: times what is sent without replicas.

    By hand, for k = 0 and 629 ms: s emits at 5, 9, …, 629: 157 roots, each to one task of split, and 20
    markers to both of them. split is done with a sentence after 0.7 ms, and its words are counted within 2
    more: those of all sentences but the last go to one task of count each, and 20 markers of each split to
    both. A message is 256 B, and all tasks are on hosts of their own: all of it goes over the network.
    """
    run = simulate(word_count(k=k), trace=True)
    words = sum(row[0] == "count" and row[2] == 0 for row in run.trace.processed)
    assert run.edges["s->split"]["messages"] == (157 + 2 * 20) * (k + 1)
    assert run.edges["split->count"]["messages"] == (words + 2 * 2 * 20) * (k + 1) ** 2
    plain = simulate(word_count(k=0))
    assert run.edges["count->out"]["messages"] == plain.edges["count->out"]["messages"] * (k + 1)
    for edge in run.edges.values():
        assert edge["bytes"] == edge["remote_bytes"] == 256 * edge["messages"]
    assert run.cost["network_bytes"] == sum(edge["bytes"] for edge in run.edges.values())
    assert run.cost["hosts"] == 6 + 4 * k


def test_cpu_is_k_plus_1_times_that_of_one() -> None:
    """Every replica serves every tuple: 0.2 ms a sentence at split, 0.1 ms a word at count; a duplicate is
    dropped without service.
    """
    one, two, three = (simulate(word_count(k=k)).cost["cpu_s"] for k in (0, 1, 2))
    assert (two, three) == (pytest.approx(2 * one), pytest.approx(3 * one))


def test_what_is_left_out_loses_so_nothing_is_promised() -> None:
    """A task of count crashes in the middle of a window: with replicas, and without."""
    whole = word_count((fault("crash_task", 80, component="count", restart=30),))
    split = whole.strategy.model_copy(update={"components": ("split",)})
    assert simulate(whole).ledger["lost"] == 0
    assert simulate(whole.model_copy(update={"strategy": split})).ledger["lost"] > 0
    assert split.promises() == "none"


def numbers(trigger: str, slow: str, until: float) -> Scenario:
    """s (2, 3, 3, 5 at 10, 20, 30, 40) ──▶ count on hosts 1 and 2 (window 42) ──▶ out: the link to one of
    them takes 5.
    """
    topology = {
        "s": spout("values", values=(2, 3, 3, 5), hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, hosts=(1,), window=markers(42) | {"trigger": trigger}
        ),
        "out": bolt("windowed_count", {"count": "shuffle"}, hosts=(0,), window={"tuples": 1}),
    }
    links = Links(latency=ms(0), local=ms(0), pairs={slow: ms(5)})
    return replicated(topology, until=until, components=("count",), hosts=3, links=links)


@pytest.mark.parametrize("slow", ["0-1", "0-2"])
def test_numbers_2_3_3_5(slow: str) -> None:
    """The paper's example. On a timer of 42, the replica behind the slow link has not had the 5 (40 + 5): it
    emits 8, the other 13, and the one that comes first stands. At 84 the slow one has the 5 left, alone. By
    markers both wait for what was sent before the marker: 13 and 13.
    """
    fast, late = (1, 0) if slow == "0-1" else (0, 1)
    ticked = simulate(numbers("tick", slow, 100), trace=True)
    assert windows(ticked.trace, "count", fast) == [(1, 42, 13), (2, 84, 0)]
    assert windows(ticked.trace, "count", late) == [(1, 42, 8), (2, 84, 5)]
    # 13 of the fast one at once; of the slow one 8 (dropped: window 1 is known) and 5
    assert [total for _, _, total in windows(ticked.trace, "out")] == [13, 5]
    assert ticked.windows["wrong"] > 0
    marked = simulate(numbers("marker", slow, 80), trace=True)
    assert windows(marked.trace, "count", fast) == [(1, 42, 13)]
    assert windows(marked.trace, "count", late) == [(1, 47, 13)]
    assert [total for _, _, total in windows(marked.trace, "out")] == [13]
    assert (marked.windows["wrong"], marked.windows["missing"]) == (0, 0)


def test_a_replica_that_comes_back_is_like_its_peer() -> None:
    """s (every 10) ──1──▶ count (2): replica 0 is down from 25 to 35 and copies at 40 (copy_time 5), with 0,
    1, 2 counted by the other at 13, 23, 33.

    Then replica 1 dies for good at 45 (root 3, of 41, counted by both at 43): replica 0 alone emits window 1
    of all five roots at 53.
    """
    first = fault("crash_task", 25, component="count", restart=10)
    then = fault("crash_task", 45, component="count", replica=1, restart=500)
    run = on_two_hosts(markers(50), first, then, until=108, latency=1, service=2, copy_time=5 * MS)
    assert windows(run.trace, "count", 0) == [(1, 53, 5), (2, 103, 5)]
    assert windows(run.trace, "count", 1) == []
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}
    assert run.recoveries[0]["restored"] == 3


@few_and_many(settings(max_examples=8, deadline=None), settings(max_examples=400, deadline=None))
def test_a_replica_that_comes_back_can_take_over_alone(how: settings) -> None:
    """s x 2 ──shuffle──▶ split x 2 ──shuffle──▶ count x 2, k = 1, markers every 30, jitter on all links.

    One replica of one task fails, comes back and copies; at least 30 later (no message is that long on the
    wire) the other one dies for good. Whoever it is, whenever it is: nothing is lost, nothing counted twice,
    and every window is right.
    """

    @how
    @given(
        seed=st.integers(0, 2**40),
        at=st.integers(20 * MS, 250 * MS),
        restart=st.integers(0, 60 * MS),
        later=st.integers(0, 100 * MS),
        victim=st.sampled_from((("split", 0), ("split", 1), ("count", 0), ("count", 1))),
        first=st.integers(0, 1),
        kind=st.sampled_from(("lose_state", "crash_task")),
        hold=st.booleans(),
        copy=st.integers(0, 5 * MS),
        spread=st.floats(0.1, 3),
    )
    def tried(seed, at, restart, later, victim, first, kind, hold, copy, spread):  # type: ignore[no-untyped-def]
        quick = Exponential(mean=MS // 10)
        topology = {
            "s": spout("sentences", 9, None, parallelism=2),
            "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 2), parallelism=2),
            "count": bolt("windowed_count", {"split": "shuffle"}, quick, parallelism=2, window=markers(30)),
        }
        of: dict[str, Any] = {"component": victim[0], "task": victim[1]}
        down = {"restart": restart / MS, "while_down": "hold" if hold else "drop"}
        back = fault(kind, at / MS, replica=first, **of, **down)
        alone = (at + restart + copy + later) / MS + 30
        dies = fault("crash_task", alone, replica=1 - first, restart=9000, **of)
        jitter = Exponential(mean=round(spread * MS))
        more = {"links": Links(latency=jitter, local=jitter), "k": 1, "copy_time": copy}
        run = simulate(world(topology, "active_replication", (back, dies), 628, seed, **more))
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
        assert run.windows == ALL_RIGHT

    tried()


def test_a_window_that_a_faster_replica_ends_with_the_run_is_right() -> None:
    """s ──1──▶ count.0, ──0──▶ its replica; the run ends with marker 3, at 90: of window 3 only the replica's
    is there, and right.
    """
    run = on_two_hosts(markers(30), until=90, pairs={"0-1": 1})
    assert windows(run.trace, "count", 0) == [(1, 31, 3), (2, 61, 3)]
    assert windows(run.trace, "count", 1) == [(1, 30, 3), (2, 60, 3), (3, 90, 3)]
    assert run.windows == {"emitted": 3, "correct": 3, "wrong": 0, "missing": 0}


def test_the_lead_is_the_live_replica_with_the_lowest_number() -> None:
    """s (every 100 from 150 on) ──5──▶ count.0, ──0──▶ its replica. Latency is the primary's 5; while it is
    down (2 s to 4 s) that of the replica, 0; then the primary's again. Each tuple is measured once: 10 a
    second.
    """
    hit = fault("crash_task", 2000, component="count", restart=2000)
    seldom = ONES | {"gap": 100, "offset": 50}
    run = on_two_hosts(markers(1000), hit, until=6000, pairs={"0-1": 5}, s=seldom)
    assert [row["latency_mean_ms"] for row in run.timeline] == [5, 5, 0, 0, 5, 5]
    assert [row["throughput_per_s"] for row in run.timeline] == [9, 10, 10, 10, 10, 10]
    assert run.windows["wrong"] == 0
    assert run.ledger["duplicated"] == 0


# -- a replica that comes back, tuple by tuple: lists by hand, held against engine and reference -------------

FOREVER = 1000
TICKS_OF_20 = {"length": 20 * MS}


def engine(scenario: Scenario) -> Any:
    run = simulate(scenario, trace=True)
    return run.trace, run.ledger


def reference(scenario: Scenario) -> Any:
    trace = oracle.run(scenario)
    return trace, trace.ledger


both = pytest.mark.parametrize("simulated", [engine, reference])


def queueing(*failures: Any, window: dict[str, Any] = TICKS_OF_20, **more: Any) -> Scenario:
    """s (every 5) ──▶ count (8), twice. While nothing fails root n comes at 5n + 5 and is counted at 8n + 13,
    and the tick of 20 has its turn at 37, behind the roots 0 to 3, that of 40 at 69, behind 4 to 7.
    """
    count = bolt("windowed_count", {"s": "shuffle"}, 8, window=window)
    return replicated({"s": spout(gap=5, **ONES), "count": count}, *failures, until=82, **more)


def instant(*failures: Any, **more: Any) -> Scenario:
    """s (every 10) ──▶ p ──▶ count, twice (p is there once): root n is counted at 10n + 10, at once."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"p": "shuffle"}, window=more.pop("window", {"length": 50 * MS})),
    }
    return replicated(topology, *failures, **{"components": ("count",), **more})


def lost(at: float, replica: int = 0, **more: Any) -> Any:
    return fault("lose_state", at, component="count", replica=replica, **more)


def dies(at: float, replica: int = 1) -> Any:
    return fault("crash_task", at, component="count", replica=replica, restart=FOREVER)


def p_holds(at: float, until: float) -> Any:
    """p is down, and lets in at ``until`` what has come meanwhile."""
    return fault("crash_task", at, component="p", restart=until - at, while_down="hold")


def had(trace: Any, replica: int = 0) -> list[tuple[int, float, float]]:
    """(root, came, counted) at one replica of the count, in its order."""
    rows = [row for row in trace.processed if row[0] == "count" and row[2] == replica]
    return [(row[3], row[5] / MS, row[6] / MS) for row in rows]


@both
def test_a_queue_is_copied_with_the_ticks_in_it(simulated: Any) -> None:
    """State lost at 22, with 0 and 1 counted: the copy has them, root 2 (in service there), root 3 and the
    tick of 20. Served from 22 on: 2 at 30, 3 at 38, and there the window, of four as with the peer. Of the
    own queue (2, 3, the tick) nothing is left.
    """
    trace, ledger = simulated(queueing(lost(22)))
    assert windows(trace, replica=1) == [(1, 37, 4), (2, 69, 4)]
    assert windows(trace) == [(1, 38, 4), (2, 70, 4)]
    assert had(trace)[:5] == [(0, 5, 13), (1, 10, 21), (2, 22, 30), (3, 22, 38), (4, 25, 46)]
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
    assert had(trace)[:7] == came
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
    assert windows(trace, replica=1) == [(1, 45, 2), (2, 45, 2)]
    assert (ledger["duplicated"], ledger["lost"], ledger["completed"]) == (0, 0, 5)


@both
def test_who_waits_for_a_peer_that_dies_goes_on_with_its_own_queue(simulated: Any) -> None:
    """State lost at 22, the copy is due at 32, but the peer dies at 25. At 32 the replica goes on alone: its
    own 2 and 3, then 4 and 5, which came while it waited. The tick of 20 is gone, as in downtime; that of 40
    comes behind 6 and 7 and has its turn at 80, with six.
    """
    trace, ledger = simulated(queueing(lost(22), dies(25), copy_time=10 * MS))
    alone = [(2, 32, 40), (3, 32, 48), (4, 32, 56), (5, 32, 64), (6, 35, 72), (7, 40, 80)]
    assert had(trace) == [(0, 5, 13), (1, 10, 21), *alone]
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
    assert had(trace)[2:6] == [(2, 30, 38), (3, 30, 46), (4, 30, 54), (5, 30, 62)]


@both
def test_what_a_waiting_replica_holds_is_in_its_memory(simulated: Any) -> None:
    """State lost at 12, the copy is due at 62: root 1, of 20, is held. From 25 the replica is down, with its
    memory kept; root 2, of 30, waits with its sender. At 32 it crashes: root 1 is gone, root 2 is not.
    """
    crash = fault("crash_task", 32, component="count", restart=FOREVER, while_down="hold")
    down = lost(25, restart=10, while_down="hold")
    trace, ledger = simulated(instant(lost(12), down, crash, copy_time=50 * MS))
    assert trace.destroyed == [("count", 0, 0, 1, 32 * MS)]
    assert had(trace, 1) == [(n, 10 * n + 10, 10 * n + 10) for n in range(5)]
    assert ledger["lost"] == 0


@both
def test_what_a_waiting_replica_holds_has_been_filtered_when_nobody_is_left(simulated: Any) -> None:
    """p has two replicas as well, so each root comes twice. State lost at 12; root 1 is held, twice; the
    replica is down from 25 to 35, its peer dies at 28. At 35 it goes on with root 1, once.
    """
    failures = (lost(12), lost(25, restart=10, while_down="drop"), dies(28))
    trace, ledger = simulated(instant(*failures, copy_time=50 * MS, components=None))
    assert had(trace) == [(0, 10, 10), (1, 35, 35), (3, 40, 40), (4, 50, 50)]
    assert (ledger["lost"], ledger["duplicated"]) == (2, 0)


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
    crash = fault("crash_task", 27, component="count")
    trace, ledger = simulated(replicated(topology, crash, until=40, hosts=3, links=links))
    assert had(trace) == [(0, 10, 16), (1, 20, 26), (1, 27, 33), (2, 30, 39)]
    assert (ledger["completed"], ledger["duplicated"], ledger["lost"]) == (3, 0, 0)


def test_outputs_of_a_longer_run_are_all_there() -> None:
    """s (every 0.05) ──▶ p, twice: 6,000 roots, more than the ledger has room for at its start."""
    topology = {"s": spout(gap=0.05, **ONES), "count": bolt("forward", {"s": "shuffle"})}
    ledger = simulate(replicated(topology, until=300)).ledger
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
    links = Links(latency=ms(0), local=ms(0), pairs={"0-2": ms(5)})
    more: dict[str, Any] = {"hosts": 3, "components": ("p",), "links": links}
    trace, ledger = simulated(
        replicated(topology, fault("crash_task", 22, component="count"), until=45, **more)
    )
    assert had(trace) == [(0, 20, 20), (0, 30, 30), (1, 40, 40)]
    assert (ledger["completed"], ledger["duplicated"], ledger["lost"]) == (2, 0, 0)


@both
def test_what_comes_between_fault_and_readiness_is_not_counted_twice(simulated: Any) -> None:
    """At 30 the state is lost, and p is back, which lets root 2 go at once: it is counted by both replicas at
    30. Then the copy is made, of a state with root 2 in it: once is enough.
    """
    trace, ledger = simulated(instant(p_holds(25, 30), lost(30)))
    assert had(trace) == [(n, 10 * n + 10, 10 * n + 10) for n in range(5)]
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
    assert had(trace) == [(0, 10, 10), (1, 30, 30), (2, 30, 30), (3, 40, 40), (4, 50, 50)]
    assert windows(trace) == [(1, 50, 4)]
    assert (ledger["lost"], ledger["completed"]) == (1, 4)


@both
def test_what_the_copy_waits_for_may_be_held_up_once_more(simulated: Any) -> None:
    """s and p are on host 0, replicas of count on 1 and 2. Replica 0 is back at 32, and root 2, sent to the
    other at 30, is to be in the copy: it is held up until 45, and then, since the link is cut again at 40,
    until 75 with all that follows. Root 7 is the first that replica 0 counts by itself.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, hosts=(0,)),
        "count": bolt("windowed_count", {"p": "shuffle"}, window={"length": FOREVER * MS}, hosts=(1,)),
    }
    cuts = [
        fault("partition", at, hosts=(0,), others=(2,), duration=length * MS)
        for at, length in ((25, 20), (40, 35))
    ]
    failures = (lost(28, restart=4), *cuts)
    trace, _ = simulated(replicated(topology, *failures, until=95, hosts=3, components=("count",)))
    first, other = ([(root, at) for root, _, at in had(trace, replica)] for replica in (0, 1))
    assert first == [(0, 10), (1, 20), (7, 80), (8, 90)]
    assert other == [(0, 10), (1, 20), *((root, 75) for root in range(2, 7)), (7, 80), (8, 90)]
