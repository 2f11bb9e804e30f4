"""Windows under R+SM: those that a tick ends are not exact across a failure, those that a marker ends are.
Times in ms.

The small world is   s ──▶ p (1) ──▶ count (1)   with a root every 10, counted at 12, 22, …; checkpoints every
20.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import ONES, chain, lost, saved, windows
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.job.components import Links, Store
from tideover.models.simulation import simulate
from tideover.sim.distributions import Constant, Exponential


def test_a_tick_emits_what_is_restored_by_then_and_the_next_window_gets_the_rest() -> None:
    """Window 50; checkpoint of 40 (0, 1, 2), lost at 47, restored at 48; root 3 leaves p at 52, after the
    tick of 50: window 1 has 3 instead of 4, window 2 one more than its 5. Nothing is lost.
    """
    run = simulate(chain((lost(47),), 115, {"length": 50 * MS}, read=1, replay_cost=4), trace=True)
    assert windows(run) == [(1, 50, 3), (2, 100, 6)]
    assert run.windows == {"emitted": 2, "correct": 0, "wrong": 2, "missing": 0}
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


def test_a_tick_that_finds_nothing_restored_emits_nothing() -> None:
    """The same, but the read takes 5, until 52: window 1 does not come at all, and window 2 has all 9."""
    run = simulate(chain((lost(47),), 115, {"length": 50 * MS}, read=5, replay_cost=4), trace=True)
    assert windows(run) == [(2, 100, 9)]
    assert run.windows == {"emitted": 1, "correct": 0, "wrong": 1, "missing": 1}
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


def test_a_checkpoint_at_the_end_of_a_window_keeps_what_was_put_out_from_the_next() -> None:
    """Window 30; the state is lost at 35, between the checkpoints of 20 and 40. That of 30, when the tick has
    put out roots 0 and 1, has neither: p replays root 2 alone, and window 2 has roots 2, 3 and 4.
    """
    scenario = chain((lost(35),), 65, {"length": 30 * MS})
    run = simulate(scenario, trace=True)
    assert windows(run) == [(1, 30, 2), (2, 60, 3)]
    assert saved(run) == [20, 30, 40, 60]
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}
    check(scenario)


@pytest.mark.parametrize("forgets", [False, True])
def test_before_any_checkpoint_windows_of_tuples_are_numbered_from_the_beginning(forgets: bool) -> None:
    """Windows of three tuples: number 1 is put out at 32. The count crashes at 55, and has no checkpoint: it
    is as it was at the beginning, and so is its number. p replays roots 0 to 4, and the window that ends with
    the third of them is number 1 once more: void, and all others are right.

    If p crashes first, at 35, its buffer begins with root 3: now roots 3, 4 and 5 are in number 1, which
    readers have. p still has them, so they are in flight; windows are one number behind.
    """
    crashes = [fault("crash_task", 35, component="p")] * forgets + [
        fault("crash_task", 55, component="count")
    ]
    scenario = chain(tuple(crashes), 195, {"tuples": 3}, checkpoint_interval=10**6 * MS)
    run = simulate(scenario, trace=True)
    assert run.trace is not None
    out = sorted((at / MS, number) for *_, number, at, _ in run.trace.windows)
    later = [(30 * n + 2, n - forgets) for n in range(2 + forgets, 7)]
    assert out == sorted([(32, 1), (62 if forgets else 58, 1), *later])
    left = {name: run.ledger[name] for name in ("completed", "in_flight", "lost", "duplicated")}
    assert left == {"completed": 19 - 3 * forgets, "in_flight": 3 * forgets, "lost": 0, "duplicated": 0}
    check(scenario)


def test_a_marker_waits_for_the_replay() -> None:
    """The same with windows by marker: marker 1 (50, with p until 50, sent before root 4) is in the buffer,
    behind root 3. It comes again in its place: both windows are right.

    p's buffer at 52: 3, marker 1 and 4 (51), in steps of 4: 56, 60, 64. Root 3 is counted at 57, the window
    ends at 60.
    """
    window = {"length": 50 * MS, "trigger": "marker"}
    run = simulate(chain((lost(47),), 115, window, read=5, replay_cost=4), trace=True)
    assert [(number, total) for number, _, total in windows(run)] == [(1, 5), (2, 5)]
    assert run.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}


def test_what_waits_behind_a_checkpoint_leaves_after_what_others_send_at_that_instant() -> None:
    """s ──▶ by_time (4), by_two (4) ──▶ out: a window ends at marker 1 (20), and one with each second root.

    Root 1 (20) is counted at 24. At 20 a checkpoint gets its place behind it at both counts, and marker 1 the
    one behind that. At 24 root 1 ends the window of by_two, which is at out before any checkpoint has its
    turn; after that of by_time marker 1 ends the other window.
    """
    topology = {
        "s": spout(**ONES),
        "by_time": bolt("windowed_count", {"s": "all"}, 4, window={"length": 20 * MS, "trigger": "marker"}),
        "by_two": bolt("windowed_count", {"s": "all"}, 4, window={"tuples": 2}),
        "out": bolt("forward", {"by_time": "all", "by_two": "all"}),
    }
    run = simulate(world(topology, "rsm", until=25, checkpoint_interval=20 * MS), trace=True)
    assert run.trace is not None
    assert windows(run) == [(1, 24, 2), (1, 24, 2)]
    sender = {0: "by_time", 1: "by_two"}  # by the last digit of the uid: the edge
    found = [(sender[row[3] % 2], row[6] / MS) for row in run.trace.processed if row[0] == "out"]
    assert found == [("by_two", 24), ("by_time", 24)]


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    at=st.integers(1, 200 * MS),
    kind=st.sampled_from(("lose_state", "crash_task")),
    restart=st.integers(0, 30 * MS),
    hold=st.booleans(),
    senders=st.integers(1, 2),
    receivers=st.integers(1, 2),
    read=st.integers(0, 15 * MS),
    cost=st.integers(0, 1 * MS),
)
def test_marker_windows_are_exact_across_any_single_failure(
    seed: int,
    at: int,
    kind: str,
    restart: int,
    hold: bool,
    senders: int,
    receivers: int,
    read: int,
    cost: int,
) -> None:
    """s x 2 ──▶ split x 1 or 2 ──▶ count x 1 or 2 (markers every 30 ms): one task of count fails once, at any
    moment.

    Exactly once: nothing is lost, nothing counted twice, and no window is wrong.
    """
    topology = {
        "s": spout("sentences", 9, None, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 2), parallelism=senders),
        "count": bolt(
            "windowed_count",
            {"split": "shuffle"},
            Constant(value=100_000),
            parallelism=receivers,
            window={"length": 30 * MS, "trigger": "marker"},
        ),
    }
    hit = fault(kind, at / MS, component="count", restart=restart / MS, while_down="hold" if hold else "drop")
    jitter = Exponential(mean=MS)
    run = simulate(
        world(
            topology,
            "rsm",
            (hit,),
            500,
            seed,
            links=Links(latency=jitter, local=jitter),
            store=Store(latency=read, bandwidth=50_000),
            checkpoint_interval=20 * MS,
            replay_cost=cost,
        )
    )
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
    assert run.windows["wrong"] == 0
    assert run.windows["missing"] <= receivers  # those that end with the run
    assert run.windows["correct"] >= 14 * receivers


@pytest.mark.parametrize("at", [25, 30, 41, 59, 60, 60.5, 75])
@pytest.mark.parametrize("component", ["count", "total"])
def test_a_window_that_was_emitted_twice_is_added_once(component: str, at: float) -> None:
    """s ──▶ split ──▶ count ──▶ total, both with windows of 20 ended by markers; one of them loses its state.

    A checkpoint takes 4 ms and more to be written. Restored from one that is older than its last window,
    count comes to emit that window again; total has had it, and must not add it once more.
    """
    window = {"length": 20 * MS, "trigger": "marker"}
    topology = {
        "s": spout("sentences", 5),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window=window),
        "total": bolt("windowed_count", {"count": "shuffle"}, window=window),
    }
    hit = fault("lose_state", at, component=component)
    more = {"checkpoint_interval": 5 * MS, "store": Store(latency=4 * MS, bandwidth=50_000)}
    run = simulate(world(topology, "rsm", (hit,), 331, **more))
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
    assert run.windows == {"emitted": 32, "correct": 32, "wrong": 0, "missing": 0}
