"""Active replication (k-safety), held to its paper's sums. Times in milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.job.groupings import GROUPINGS
from tideover.models.simulation import Replication, simulate
from tideover.sim.distributions import Exponential

ONES: dict[str, Any] = {"kind": "values", "values": (1,), "repeat": True}
FIELDS = {"fields": ("word",)}


def word_count(failures: tuple[Any, ...] = (), k: int = 1, until: float = 629, **more: Any) -> Scenario:
    """s ──shuffle──▶ split x 2 ──fields──▶ count x 2 (markers every 30) ──▶ out

    k + 1 replicas of split and count, each on a host of its own; s and out have none.
    """
    count = bolt(
        "windowed_count",
        {"split": "shuffle"},
        0.1,
        parallelism=2,
        window={"length": 30 * MS, "trigger": "marker"},
    )
    count.from_["split"] = GROUPINGS["fields"](**FIELDS)
    topology = {
        "s": spout("sentences", 4, 1),
        "split": bolt("split_words", {"s": "shuffle"}, 0.2, parallelism=2),
        "count": count,
        "out": bolt("forward", {"count": "global"}),
    }
    more.setdefault("links", Links(latency=ms(0.5), local=ms(0)))
    return world(topology, "active_replication", failures, until, k=k, components=("split", "count"), **more)


def windows(run: Replication, component: str, replica: int = 0) -> list[tuple[int, float, int]]:
    """(number, when, sum) of the windows of one replica."""
    assert run.trace is not None
    rows = [row for row in run.trace.windows if row[0] == component and row[2] == replica]
    return [(row[3], row[4] / MS, sum(row[5].values())) for row in rows]


# -- one host of a replica set down: nothing to see ----------------------------------------------------------

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
    assert run.windows == {"emitted": 40, "correct": 40, "wrong": 0, "missing": 0}
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
    assert run.recoveries[1]["output_gap_s"] == pytest.approx(
        run.recoveries[1]["sink_spacing_s"]
    )  # count.1 lives
    safe = simulate(word_count(failures, k=2))
    assert safe.ledger["lost"] == 0
    assert safe.windows == {"emitted": 40, "correct": 40, "wrong": 0, "missing": 0}


# -- what it costs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 2])
def test_messages_by_edge(k: int) -> None:
    """s ──(k+1)──▶ split ──(k+1)^2──▶ count ──(k+1)──▶ out: times what is sent without replicas.

    By hand, for k = 0 and 629 ms: s emits at 5, 9, …, 629: 157 roots, each to one task of split, and 20
    markers to both of them. split is done with a sentence after 0.7 ms, and its words are counted within 2
    more: those of all sentences but the last go to one task of count each, and 20 markers of each split to
    both. A message is 256 B, and all tasks are on hosts of their own: all of it goes over the network.
    """
    run = simulate(word_count(k=k), trace=True)
    assert run.trace is not None
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


# -- what triggers an aggregate ------------------------------------------------------------------------------


def numbers(trigger: str, slow: str, until: float) -> Scenario:
    """s (2, 3, 3, 5 at 10, 20, 30, 40) ──▶ count on hosts 1 and 2 (window 42) ──▶ out: the link to one of
    them takes 5.
    """
    topology = {
        "s": spout("values", values=(2, 3, 3, 5), hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, hosts=(1,), window={"length": 42 * MS, "trigger": trigger}
        ),
        "out": bolt("windowed_count", {"count": "shuffle"}, hosts=(0,), window={"tuples": 1}),
    }
    links = Links(latency=ms(0), local=ms(0), pairs={slow: ms(5)})
    more: dict[str, Any] = {"k": 1, "components": ("count",), "hosts": 3, "links": links}
    return world(topology, "active_replication", until=until, **more)


@pytest.mark.parametrize("slow", ["0-1", "0-2"])
def test_numbers_2_3_3_5(slow: str) -> None:
    """The paper's example. On a timer of 42, the replica behind the slow link has not had the 5 (40 + 5): it
    emits 8, the other 13, and the one that comes first stands. At 84 the slow one has the 5 left, alone. By
    markers both wait for what was sent before the marker: 13 and 13.
    """
    fast, late = (1, 0) if slow == "0-1" else (0, 1)
    ticked = simulate(numbers("tick", slow, 100), trace=True)
    assert windows(ticked, "count", fast) == [(1, 42, 13), (2, 84, 0)]
    assert windows(ticked, "count", late) == [(1, 42, 8), (2, 84, 5)]
    # 13 of the fast one at once; of the slow one 8 (dropped: window 1 is known) and 5
    assert [total for _, _, total in windows(ticked, "out")] == [13, 5]
    assert ticked.windows["wrong"] > 0
    marked = simulate(numbers("marker", slow, 80), trace=True)
    assert windows(marked, "count", fast) == [(1, 42, 13)]
    assert windows(marked, "count", late) == [(1, 47, 13)]
    assert [total for _, _, total in windows(marked, "out")] == [13]
    assert (marked.windows["wrong"], marked.windows["missing"]) == (0, 0)


def test_replicas_of_a_timer_disagree_and_the_result_is_wrong() -> None:
    """s (1 every 10) ──▶ count x 2 replicas, timer 100, link to the primary 15 ms slower: each of its windows
    lacks one or two that the other has.

    The deduplicated output adds up windows of both; the truth is that of the primary without a replica, so
    the result is wrong.
    """
    links = Links(latency=ms(0), local=ms(0), pairs={"0-1": ms(15)})
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "count": bolt("windowed_count", {"s": "shuffle"}, hosts=(1,), window={"length": 100 * MS}),
    }
    run = simulate(world(topology, "active_replication", until=450, hosts=3, links=links, k=1), trace=True)
    assert windows(run, "count", 0)[0] == (1, 100, 8)  # sent at 10 … 80: there by 95
    assert windows(run, "count", 1)[0] == (1, 100, 10)


# -- deduplication -------------------------------------------------------------------------------------------


def test_each_tuple_is_served_once_by_every_replica() -> None:
    """The words of one sentence leave two replicas of split at different times; each replica of count serves
    each word once, in order.
    """
    jitter = Exponential(mean=2 * MS)
    run = simulate(word_count(k=2, until=300, links=Links(latency=jitter, local=jitter)), trace=True)
    assert run.trace is not None
    for task in range(2):
        served = [
            [row[3] for row in run.trace.processed if row[:3] == ("count", task, replica)]
            for replica in range(3)
        ]
        for uids in served:
            assert len(uids) == len(set(uids)) > 50
        shortest = min(len(uids) for uids in served) - 30
        assert set(served[0][:shortest]) <= set(served[1])
        assert set(served[0][:shortest]) <= set(served[2])


# -- a replica that comes back -------------------------------------------------------------------------------


def test_a_replica_that_comes_back_is_like_its_peer() -> None:
    """s (every 10) ──1──▶ count (2): replica 0 is down from 25 to 35 and copies at 40 (copy_time 5), with 0,
    1, 2 counted by the other at 13, 23, 33.

    Then replica 1 dies for good at 45 (root 3, of 41, counted by both at 43): replica 0 alone emits window 1
    of all five roots at 53.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, 2, hosts=(1,), window={"length": 50 * MS, "trigger": "marker"}
        ),
    }
    first = fault("crash_task", 25, component="count", restart=10)
    then = fault("crash_task", 45, component="count", replica=1, restart=500)
    links = Links(latency=ms(1), local=ms(0))
    more: dict[str, Any] = {"hosts": 3, "links": links, "k": 1, "copy_time": 5 * MS}
    run = simulate(world(topology, "active_replication", (first, then), 108, **more), trace=True)
    assert windows(run, "count", 0) == [(1, 53, 5), (2, 103, 5)]
    assert windows(run, "count", 1) == []
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}
    assert run.recoveries[0]["restored"] == 3


COMING_BACK = given(
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


def takes_over(
    seed: int,
    at: int,
    restart: int,
    later: int,
    victim: tuple[str, int],
    first: int,
    kind: str,
    hold: bool,
    copy: int,
    spread: float,
) -> None:
    """s x 2 ──shuffle──▶ split x 2 ──shuffle──▶ count x 2, k = 1, markers every 30, jitter on all links.

    One replica of one task fails, comes back and copies; at least 30 later (no message is that long on the
    wire) the other one dies for good. Whoever it is, whenever it is: nothing is lost, nothing counted twice,
    and every window is right.
    """
    topology = {
        "s": spout("sentences", 9, None, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 2), parallelism=2),
        "count": bolt(
            "windowed_count",
            {"split": "shuffle"},
            Exponential(mean=MS // 10),
            parallelism=2,
            window={"length": 30 * MS, "trigger": "marker"},
        ),
    }
    name, task = victim
    down = "hold" if hold else "drop"
    back = fault(
        kind, at / MS, component=name, task=task, replica=first, restart=restart / MS, while_down=down
    )
    alone = (at + restart + copy + later) / MS + 30
    dies = fault("crash_task", alone, component=name, task=task, replica=1 - first, restart=9000)
    jitter = Exponential(mean=round(spread * MS))
    links = Links(latency=jitter, local=jitter)
    run = simulate(
        world(topology, "active_replication", (back, dies), 628, seed, links=links, k=1, copy_time=copy)
    )
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
    assert run.windows == {"emitted": 40, "correct": 40, "wrong": 0, "missing": 0}


def test_a_replica_that_comes_back_can_take_over_alone() -> None:
    settings(max_examples=8, deadline=None)(COMING_BACK(takes_over))()


@pytest.mark.long
def test_a_replica_that_comes_back_can_take_over_alone_in_many_worlds() -> None:
    settings(max_examples=400, deadline=None)(COMING_BACK(takes_over))()


def test_a_window_that_a_faster_replica_ends_with_the_run_is_right() -> None:
    """s ──1──▶ count.0, ──0──▶ its replica; the run ends with marker 3, at 90: of window 3 only the replica's
    is there, and right.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, hosts=(1,), window={"length": 30 * MS, "trigger": "marker"}
        ),
    }
    links = Links(latency=ms(0), local=ms(0), pairs={"0-1": ms(1)})
    run = simulate(world(topology, "active_replication", until=90, hosts=3, links=links, k=1), trace=True)
    assert windows(run, "count", 0) == [(1, 31, 3), (2, 61, 3)]
    assert windows(run, "count", 1) == [(1, 30, 3), (2, 60, 3), (3, 90, 3)]
    assert run.windows == {"emitted": 3, "correct": 3, "wrong": 0, "missing": 0}


# -- who is measured -----------------------------------------------------------------------------------------


def test_the_lead_is_the_live_replica_with_the_lowest_number() -> None:
    """s (every 100 from 150 on) ──5──▶ count.0, ──0──▶ its replica. Latency is the primary's 5; while it is
    down (2 s to 4 s) that of the replica, 0; then the primary's again. Each tuple is measured once: 10 a
    second.
    """
    topology = {
        "s": spout("values", 100, 50, values=(1,), repeat=True, hosts=(0,)),
        "count": bolt(
            "windowed_count", {"s": "shuffle"}, hosts=(1,), window={"length": 1000 * MS, "trigger": "marker"}
        ),
    }
    hit = fault("crash_task", 2000, component="count", restart=2000)
    links = Links(latency=ms(0), local=ms(0), pairs={"0-1": ms(5)})
    run = simulate(world(topology, "active_replication", (hit,), 6000, hosts=3, links=links, k=1))
    assert [row["latency_mean_ms"] for row in run.timeline] == [5, 5, 0, 0, 5, 5]
    assert [row["throughput_per_s"] for row in run.timeline] == [9, 10, 10, 10, 10, 10]
    assert run.windows["wrong"] == 0
    assert run.ledger["duplicated"] == 0
