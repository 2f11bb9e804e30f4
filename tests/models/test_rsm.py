"""Recovery by checkpoints and upstream buffers, held to what its papers say. Times in milliseconds.

The small world of most tests is   s ──▶ p (1) ──▶ count (1)   with a root every 10 from 10 on: root n is with
p until 10n + 11 and is counted at 10n + 12. Checkpoints are due every 20. p keeps the upstream buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, ONES, chain, counted, crashed, lost, saved, windows
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.job.components import Links, Store
from tideover.models.job.topology import expected_effects
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant, Exponential


def traced(*args: Any, **more: Any) -> Replication:
    """The small world, with a trace."""
    return simulate(chain(*args, **more), trace=True)


def lossless(run: Replication) -> bool:
    return (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


# -- the published experiment --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "into", "least", "most"),
    [(10, 5, 0, 1), (10, 15, 0, 1), (10, 30, 0, 1), (20, 5, 1, 3), (20, 15, 1, 3), (20, 30, 0, 2)],
)
def test_published_cells(rate: int, into: int, least: float, most: float) -> None:
    """Recovery as in stableford_phase2_recovery.csv: 0 s at 10 tuples/s; 2, 2 and 1 s at 20.

    Stamps of one-second resolution: the difference 0 means under 1 s, 1 under 2 s, 2 between 1 and 3 s. Two
    constants are fitted: replay_cost 3.1 ms and checkpoint_interval 5 s. (A failure 5 s after a checkpoint
    leaves 5 s of words: 5 x rate x 4.4 x 3.1 ms.)
    """
    more = [f"topology.sentences.rate={rate}/s", f"failures.0.at={60 + into} s", "run.log_resolution=null"]
    fitted = ["strategy.kind=rsm", "strategy.replay_cost=3.1 ms", "strategy.checkpoint_interval=5 s"]
    for replication in range(3):
        run = simulate(load("stableford-phase2", [*more, *fitted]), replication)
        (recovery,) = run.recoveries
        assert least <= recovery["state_recovery_s"] < most
        assert recovery["state_recovery_s"] == pytest.approx(5 * rate * 4.4 * 0.0031, rel=0.12)
        assert lossless(run)
        assert (recovery["missing"], recovery["extra"]) == (0, 0)


def test_the_cost_of_a_replay_is_not_the_cost_of_a_tuple() -> None:
    """95 tuples/s through the same bolts: without a failure a replay cost of 3.1 ms changes nothing, not a
    nanosecond.

    (At 3.1 ms a word, 95 x 4.4 words/s would be a load of 1.3.)
    """
    more = ["strategy.kind=rsm", "topology.sentences.rate=95/s", "run.duration=95 s", "run.warmup=0 s"]
    dear, free = (
        simulate(load("stableford-phase2", [*more, "failures=[]", f"strategy.replay_cost={cost}"]))
        for cost in ("3.1 ms", "0 ms")
    )
    assert dear.timeline == free.timeline
    assert dear.latency.summary(1) == free.latency.summary(1)
    assert (dear.cost, dear.windows) == (free.cost, free.windows)


# -- restore and replay --------------------------------------------------------------------------------------


def test_restore_then_replay_what_the_checkpoint_lacks() -> None:
    """The checkpoint of 40 holds roots 0, 1, 2. Crash at 45, ready at 50, read until 52, restored at 53.

    p has then 3 and 4 in its buffer (sent at 41, 51). Its request is served at once: they leave at 54 and 55.
    Root 4 also came directly, at 51, to a task that was not restored: discarded. Root 5 follows as if nothing
    had been.
    """
    run = traced((crashed(45, 5),), until=75, read=2, restore_time=1, replay_cost=1)
    assert counted(run) == [*EVERY_10[:4], (3, 55), (4, 56), *EVERY_10[5:7]]
    (recovery,) = run.recoveries
    assert (recovery["restored"], recovery["replayed"], recovery["dropped"]) == (3, 2, 1)
    assert (recovery["missing"], recovery["extra"]) == (0, 0)
    assert recovery["state_recovery_s"] * 1000 == pytest.approx(5)  # 50 to the arrival of root 4 at 55
    assert recovery["restore_s"] * 1000 == pytest.approx(3)
    assert recovery["replay_s"] * 1000 == pytest.approx(2)
    some = {"emitted": 7, "completed": 7, "replayed": 2}
    assert run.ledger == dict.fromkeys(run.ledger, 0) | some


def test_a_request_waits_in_the_queue_of_the_sender() -> None:
    """p takes 8, so root 4 (50) is in service when the request comes, at 53: it is served at 58, after it,
    and the replay holds root 4, too.

    Roots are with p until 18, 28, 38, 48, 58. The checkpoint of 40 holds 0, 1, 2; root 3 is counted at 49 and
    lost then. Root 4 goes out directly at 58 and is discarded; replays of 3 and 4 leave at 60 and 62 and keep
    p busy: root 5, which came at 60, is served from 62 to 70, though 68 was its time.
    """
    run = traced((crashed(49, 4),), until=85, at_p=8, replay_cost=2)
    assert counted(run) == [(0, 19), (1, 29), (2, 39), (3, 49), (3, 61), (4, 63), (5, 71), (6, 79)]
    assert run.recoveries[0]["dropped"] == 1


@pytest.mark.parametrize(("rate", "step"), [(None, 2), (1000.0, 2), (250.0, 4)])
def test_a_replay_can_be_throttled(rate: float | None, step: float) -> None:
    """Step of a replay = max(replay_cost, 1 / replay_rate). Checkpoint of 40: roots 3 and 4 are replayed from
    53 on.
    """
    run = traced((lost(53),), until=65, replay_cost=2, replay_rate=rate)
    assert counted(run)[5:7] == [(3, 54 + step), (4, 54 + 2 * step)]


def test_a_task_that_keeps_its_queue_counts_nothing_twice() -> None:
    """count takes 15: at 45 root 1 (came at 21) is done at 41, root 2 in service (from 41), root 3 queued.
    lose_state at 45.

    The checkpoint of 40 waits behind root 1, 2, 3 in the queue (they came before it), so none is taken before
    45: nothing to restore. The replay has 0 … 3, at 46 … 49; what is queued is thrown away. Then one after
    the other: 46 + 15 = 61, 76, 91, 106, then root 4, which comes at 51.
    """
    run = traced((lost(45),), until=122, at_count=15, replay_cost=1)
    # the checkpoint of 20 was due when root 0 (11 to 26) was in service: it is taken at 26, and holds root 0
    assert saved(run)[0] == 26
    assert counted(run)[:2] == [(0, 26), (1, 41)]
    assert counted(run)[2:6] == [(1, 61), (2, 76), (3, 91), (4, 106)]
    assert lossless(run)


def test_buffers_are_trimmed_by_number() -> None:
    """s ──▶ split ──▶ count: the words of a sentence leave split at one instant, so time cannot say which of
    them are safe.

    Links have jitter, and each word arrives when it may: there are checkpoints that hold the first words of a
    sentence only. The replay begins with the next word, in the middle of the sentence, and every word is
    counted once, whenever the failure comes.
    """
    topology = {
        "s": spout("sentences", 7, 0),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window={"length": 1000 * MS}),
    }
    jitter = Exponential(mean=3 * MS)
    more: dict[str, Any] = {"links": Links(latency=jitter, local=jitter), "checkpoint_interval": 3 * MS}
    whole = simulate(world(topology, "rsm", until=400, **more), trace=True)
    words = [uid for uid, _ in counted(whole)]
    within = 0
    for at in range(40, 60):
        run = simulate(world(topology, "rsm", (lost(at + 0.5),), 400, **more), trace=True)
        done = [uid for uid, _ in counted(run)]
        again = next((n for n, uid in enumerate(done) if uid in done[:n]), len(done))
        start = words.index(done[again]) if again < len(done) else again
        assert done == words[:again] + words[start : start + len(done) - again]
        bits = run.world.job.topology.by_name["count"].bits
        within += start > 0 and again < len(done) and words[start] >> bits == words[max(0, start - 1)] >> bits
        assert lossless(run)
    assert within >= 3


def test_a_spout_keeps_a_buffer_if_it_is_told_to() -> None:
    """s ──▶ count (1): a checkpoint at 21 (roots 0, 1), crash at 38 with root 2 counted, ready at 52 (roots 3
    and 4, of 40 and 50, find nobody).

    With spout_buffer the three are replayed, at 53, 54, 55, and the spout, busy until 55, calls again 10
    later. Without it they are lost.
    """
    topology = {
        "s": spout(**ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    more: dict[str, Any] = {"checkpoint_interval": 20 * MS, "replay_cost": MS, "entry_size": 0}
    kept = simulate(world(topology, "rsm", (crashed(38, 14),), 80, spout_buffer=True, **more), trace=True)
    assert counted(kept) == [(0, 11), (1, 21), (2, 31), (2, 54), (3, 55), (4, 56), (5, 66), (6, 76)]
    assert kept.ledger["lost"] == 0
    bare = simulate(world(topology, "rsm", (crashed(38, 14),), 80, **more), trace=True)
    assert counted(bare) == [(0, 11), (1, 21), (2, 31), (5, 61), (6, 71)]
    assert (bare.ledger["lost"], bare.recoveries[0]["missing"]) == (3, 1)


# -- the state afterwards ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    at=st.integers(20 * MS, 150 * MS),
    kind=st.sampled_from(("lose_state", "crash_task")),
    restart=st.integers(0, 30 * MS),
    hold=st.booleans(),
    interval=st.integers(3 * MS, 60 * MS),
    cost=st.integers(0, 2 * MS),
    senders=st.integers(1, 2),
)
def test_state_equals_what_it_was_plus_what_came_since(
    seed: int, at: int, kind: str, restart: int, hold: bool, interval: int, cost: int, senders: int
) -> None:
    """s ──▶ split x 1 or 2 ──▶ count, with spread in service and links; one fault, no window ends.

    At the first millisecond at which the recovery is over, and at the end, the state holds, tuple for tuple,
    each once, all that split has sent, apart from what is on the wire or in the queue; and so all that it
    held before.
    """
    topology = {
        "s": spout("sentences", 8, None),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS), parallelism=senders),
        "count": bolt(
            "windowed_count", {"split": "shuffle"}, Exponential(mean=MS // 4), window={"length": 9000 * MS}
        ),
    }
    hit = fault(kind, at / MS, component="count", restart=restart / MS, while_down="hold" if hold else "drop")
    jitter = Exponential(mean=2 * MS)
    outer = {"links": Links(latency=jitter, local=jitter), "store": Store(latency=2 * MS, bandwidth=50_000)}
    keys = {"checkpoint_interval": interval, "replay_cost": cost}
    running = World(world(topology, "rsm", (hit,), 300, seed, **outer, **keys), trace=True)
    running.start()
    task = running.job.bolts["count", 0][0]
    running.kernel.run(at - 1)
    before = set(task.state.effects().uid.tolist())
    moment = at
    while moment < 300 * MS:
        moment = min(moment + MS, 300 * MS)
        running.kernel.run(moment)
        if task.available and running.job.context.settled(running.outages[0]):
            check_state(running, before)
            running.kernel.run(300 * MS)
            break
    check_state(running, before)


def check_state(running: World, before: set[int]) -> None:
    """What the count holds is what split has sent and what is not still to come."""
    running.settle()  # the trace is told of all that was done
    task = running.job.bolts["count", 0][0]
    held = task.state.effects().uid.tolist()
    assert len(held) == len(set(held))
    assert before <= set(held)
    roots = np.array([row[3] for row in running.trace.processed if row[0] == "split"], np.int64)
    # a fault so early that nothing had come yet: no effects at all
    sent = expected_effects(running.job.topology, running.job.draws, roots).get(
        "count", np.zeros(0, np.int64)
    )
    trains = [*task.queue.trains(), *(train for channel in task.inputs for train in channel.on_the_way)]
    coming = {int(uid) for train in trains for uid in train.uid[train.column("mark") == 0]}
    assert set(held) == set(sent.tolist()) - coming


# -- more than one thing goes wrong --------------------------------------------------------------------------


def placed(failure: Any, at_p: int) -> Scenario:
    """s is on host 0 and count on host 1."""
    scenario, places = chain((failure,), hosts=2), {"s": 0, "p": at_p, "count": 1}
    topology = {
        name: part.model_copy(update={"hosts": (places[name],)}) for name, part in scenario.topology.items()
    }
    return scenario.model_copy(update={"topology": topology})


def test_a_sender_that_dies_too_takes_its_buffer_with_it() -> None:
    """p and count share a host, which crashes at 45 and is back at 55. The checkpoint of 40 holds 0, 1, 2.

    Root 3 was in the count's state and in p's buffer; root 4 (50) finds nobody at p. Both are lost, and the
    ledger says so.
    """
    run = simulate(placed(fault("crash_host", 45, host=1, restart=10), at_p=1), trace=True)
    assert counted(run) == [*EVERY_10[:4], *EVERY_10[5:9]]
    assert (run.ledger["lost"], run.ledger["completed"], run.ledger["duplicated"]) == (2, 7, 0)
    assert run.recoveries[0]["missing"] == 1


@pytest.mark.parametrize("at_p", [0, 1])
def test_who_shares_a_host_with_its_sender_is_warned_of_the_loss(at_p: int) -> None:
    """The host of the count crashes, with p on it or without: the warning comes where roots are lost, beside
    the one that the strategy does not promise to survive hosts.
    """
    scenario = placed(fault("crash_host", 45, host=1), at_p)
    about = [text for text in warnings(scenario) if "does not promise to survive" not in text]
    assert ["host 1 has tasks of p and count" in text for text in about] == [True] * at_p
    assert len(about) == len(warnings(scenario)) - 1
    assert (simulate(scenario).ledger["lost"] > 0) == bool(at_p)


def test_a_sender_that_dies_while_it_replays_takes_its_buffer_with_it() -> None:
    """count crashes at 45, is ready at 50, restored at 52; p replays 3 and 4 in steps of 3, but dies at 53.5,
    before the first has left.

    When p is back, at 58.5, the request is served out of an empty buffer. Root 3 is lost (from the state),
    and root 4, which was discarded when it came directly (51) because the replay would bring it.
    """
    run = traced((crashed(45, 5), crashed(53.5, 5, "p")), read=2, replay_cost=3)
    assert counted(run) == [*EVERY_10[:4], *EVERY_10[5:9]]
    assert (run.ledger["lost"], run.ledger["completed"]) == (2, 7)
    half = traced((crashed(45, 5), crashed(56.5, 2, "p")), read=2, replay_cost=3)
    # root 3 has left at 55, root 4 would have at 58
    assert counted(half) == [*EVERY_10[:4], (3, 56), *EVERY_10[5:9]]
    assert (half.ledger["lost"], half.ledger["completed"]) == (1, 8)


def test_a_fault_during_a_recovery_starts_it_again() -> None:
    """The replay of 3 and 4 leaves at 53 and 54; the state is lost once more at 53.5, with root 3 just come
    (53, in service until 54).

    Restored again at 55.5 from the checkpoint of 40, the count discards what is left of the first replay
    (root 4, at 54) and gets a second one, of 56.5 and 57.5.
    """
    run = traced((crashed(45, 5), lost(53.5)), read=2, replay_cost=1)
    assert counted(run) == [*EVERY_10[:4], (3, 57.5), (4, 58.5), *EVERY_10[5:9]]
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["completed"]) == (0, 0, 9)
    first, second = run.recoveries
    assert first["state_recovery_s"] is None
    assert second["state_recovery_s"] * 1000 == pytest.approx(4)
    assert second["restored"] == 3


def test_a_checkpoint_whose_write_was_interrupted_does_not_count() -> None:
    """The store takes 5: the checkpoint of 40 would be safe at 45. At 44 the state is lost: that of 20 (root
    0) is read, until 50 (the store is still busy until 45). p is busy with root 4 until 51, then replays 1,
    2, 3 and 4.
    """
    run = traced((lost(44),), read=5, replay_cost=1)
    assert counted(run)[4:8] == [(1, 53), (2, 54), (3, 55), (4, 56)]
    assert saved(run) == [25, 65, 85]
    assert run.recoveries[0]["restored"] == 1


def test_no_checkpoint_is_taken_during_a_recovery() -> None:
    """count is restored at 45, p replays root 3 and, with 10 a tuple, is not done before 55: the checkpoint
    of 60 is the next; with 20, that of 80.

    A checkpoint of the restored state would be trimmed by a number that is not in it (the published code does
    that).
    """
    for cost, times in ((10, [20, 40, 60, 80]), (20, [20, 40, 80])):
        run = traced((lost(45),), replay_cost=cost)
        assert saved(run) == times
        assert lossless(run)


@pytest.mark.parametrize("down", ["drop", "hold"])
def test_what_came_while_the_task_was_down_is_in_the_replay(down: str) -> None:
    """count is down from 45 to 67; roots 4 and 5 (51, 61) find it down. Dropped or held: the replay has them,
    and held ones are not counted twice.
    """
    run = traced((crashed(45, 22, while_down=down),), replay_cost=1)
    assert counted(run) == [*EVERY_10[:4], (3, 69), (4, 70), (5, 71), (6, 72), *EVERY_10[7:9]]
    assert run.recoveries[0]["dropped"] == (0 if down == "drop" else 2)
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["completed"]) == (0, 0, 9)


def test_a_tick_emits_what_is_restored_by_then_and_the_next_window_gets_the_rest() -> None:
    """Window 50; checkpoint of 40 (0, 1, 2), lost at 47, restored at 48; root 3 leaves p at 52, after the
    tick of 50: window 1 has 3 instead of 4, window 2 one more than its 5. Nothing is lost.
    """
    run = traced((lost(47),), 115, {"length": 50 * MS}, read=1, replay_cost=4)
    assert windows(run) == [(1, 50, 3), (2, 100, 6)]
    assert run.windows == {"emitted": 2, "correct": 0, "wrong": 2, "missing": 0}
    assert lossless(run)


def test_a_tick_that_finds_nothing_restored_emits_nothing() -> None:
    """The same, but the read takes 5, until 52: window 1 does not come at all, and window 2 has all 9."""
    run = traced((lost(47),), 115, {"length": 50 * MS}, read=5, replay_cost=4)
    assert windows(run) == [(2, 100, 9)]
    assert run.windows == {"emitted": 1, "correct": 0, "wrong": 1, "missing": 1}
    assert lossless(run)


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
    run = traced((lost(47),), 115, window, read=5, replay_cost=4)
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
    outer = {"links": Links(latency=jitter, local=jitter), "store": Store(latency=read, bandwidth=50_000)}
    keys = {"checkpoint_interval": 20 * MS, "replay_cost": cost}
    run = simulate(world(topology, "rsm", (hit,), 500, seed, **outer, **keys))
    assert lossless(run)
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
    assert lossless(run)
    assert run.windows == {"emitted": 32, "correct": 32, "wrong": 0, "missing": 0}
