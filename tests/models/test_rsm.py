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

from tests.models.chain import EVERY_10, ONES, chain, counted, crashed, lost, saved
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.job.components import Links, Store
from tideover.models.job.topology import expected_effects
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.distributions import Exponential

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
        assert (run.ledger["lost"], run.ledger["duplicated"], recovery["missing"], recovery["extra"]) == (
            0,
            0,
            0,
            0,
        )


def test_the_cost_of_a_replay_is_not_the_cost_of_a_tuple() -> None:
    """95 tuples/s through the same bolts: without a failure a replay cost of 3.1 ms changes nothing, not a
    nanosecond.

    (At 3.1 ms a word, 95 x 4.4 words/s would be a load of 1.3.)
    """
    more = [
        "strategy.kind=rsm",
        "topology.sentences.rate=95/s",
        "run.duration=95 s",
        "run.warmup=0 s",
        "failures=[]",
    ]
    scenario = load("stableford-phase2", more)
    strategy = scenario.strategy.model_copy(update={"replay_cost": 3_100_000})
    dear, free = (
        simulate(scenario.with_strategy(strategy)),
        simulate(scenario.with_strategy(strategy.model_copy(update={"replay_cost": 0}))),
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
    run = simulate(chain((crashed(45, 5),), until=75, read=2, restore_time=1, replay_cost=1), trace=True)
    assert counted(run) == [*EVERY_10[:4], (3, 55), (4, 56), *EVERY_10[5:7]]
    (recovery,) = run.recoveries
    assert (recovery["restored"], recovery["replayed"], recovery["dropped"]) == (3, 2, 1)
    assert (recovery["missing"], recovery["extra"]) == (0, 0)
    assert recovery["state_recovery_s"] * 1000 == pytest.approx(5)  # 50 to the arrival of root 4 at 55
    assert recovery["restore_s"] * 1000 == pytest.approx(3)
    assert recovery["replay_s"] * 1000 == pytest.approx(2)
    assert run.ledger == {
        "emitted": 7, "completed": 7, "in_flight": 0, "lost": 0,
        "replayed": 2, "duplicated": 0, "false_timeouts": 0, "late": 0,
    }  # fmt: skip


def test_a_request_waits_in_the_queue_of_the_sender() -> None:
    """p takes 8, so root 4 (50) is in service when the request comes, at 53: it is served at 58, after it,
    and the replay holds root 4, too.

    Roots are with p until 18, 28, 38, 48, 58. The checkpoint of 40 holds 0, 1, 2; root 3 is counted at 49 and
    lost then. Root 4 goes out directly at 58 and is discarded; replays of 3 and 4 leave at 60 and 62 and keep
    p busy: root 5, which came at 60, is served from 62 to 70, though 68 was its time.
    """
    run = simulate(chain((crashed(49, 4),), until=85, at_p=8, replay_cost=2), trace=True)
    assert counted(run) == [(0, 19), (1, 29), (2, 39), (3, 49), (3, 61), (4, 63), (5, 71), (6, 79)]
    assert run.recoveries[0]["dropped"] == 1


@pytest.mark.parametrize(("rate", "step"), [(None, 2), (1000.0, 2), (250.0, 4)])
def test_a_replay_can_be_throttled(rate: float | None, step: float) -> None:
    """Step of a replay = max(replay_cost, 1 / replay_rate). Checkpoint of 40: roots 3 and 4 are replayed from
    53 on.
    """
    run = simulate(chain((lost(53),), until=65, replay_cost=2, replay_rate=rate), trace=True)
    assert counted(run)[5:7] == [(3, 54 + step), (4, 54 + 2 * step)]


def test_a_task_that_keeps_its_queue_counts_nothing_twice() -> None:
    """count takes 15: at 45 root 1 (came at 21) is done at 41, root 2 in service (from 41), root 3 queued.
    lose_state at 45.

    The checkpoint of 40 waits behind root 1, 2, 3 in the queue (they came before it), so none is taken before
    45: nothing to restore. The replay has 0 … 3, at 46 … 49; what is queued is thrown away. Then one after
    the other: 46 + 15 = 61, 76, 91, 106, then root 4, which comes at 51.
    """
    run = simulate(chain((lost(45),), until=122, at_count=15, replay_cost=1), trace=True)
    # the checkpoint of 20 was due when root 0 (11 to 26) was in service: it is taken at 26, and holds root 0
    assert saved(run)[0] == 26
    assert counted(run)[:2] == [(0, 26), (1, 41)]
    assert counted(run)[2:6] == [(1, 61), (2, 76), (3, 91), (4, 106)]
    assert (run.ledger["duplicated"], run.ledger["lost"]) == (0, 0)


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
        assert run.world is not None
        done = [uid for uid, _ in counted(run)]
        again = next((n for n, uid in enumerate(done) if uid in done[:n]), len(done))
        start = words.index(done[again]) if again < len(done) else again
        assert done == words[:again] + words[start : start + len(done) - again]
        bits = run.world.job.topology.by_name["count"].bits
        within += start > 0 and again < len(done) and words[start] >> bits == words[max(0, start - 1)] >> bits
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)
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
    scenario = world(
        topology,
        "rsm",
        (hit,),
        300,
        seed,
        links=Links(latency=jitter, local=jitter),
        store=Store(latency=2 * MS, bandwidth=50_000),
        checkpoint_interval=interval,
        replay_cost=cost,
    )
    running = World(scenario, trace=True)
    running.start()
    task = running.job.bolts["count", 0][0]
    running.kernel.run(at - 1)
    assert task.state is not None
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
    assert task.state is not None
    assert running.trace is not None
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


def test_a_sender_that_dies_too_takes_its_buffer_with_it() -> None:
    """p and count share a host, which crashes at 45 and is back at 55. The checkpoint of 40 holds 0, 1, 2.

    Root 3 was in the count's state and in p's buffer; root 4 (50) finds nobody at p. Both are lost, and the
    ledger says so.
    """
    scenario = chain((fault("crash_host", 45, host=1, restart=10),), hosts=2)
    names = {name: scenario.topology[name].model_copy(update={"hosts": (1,)}) for name in ("p", "count")}
    scenario = scenario.model_copy(update={"topology": scenario.topology | names})
    run = simulate(scenario, trace=True)
    assert counted(run) == [*EVERY_10[:4], *EVERY_10[5:9]]
    assert (run.ledger["lost"], run.ledger["completed"], run.ledger["duplicated"]) == (2, 7, 0)
    assert run.recoveries[0]["missing"] == 1


@pytest.mark.parametrize("at_p", [0, 1])
def test_who_shares_a_host_with_its_sender_is_warned_of_the_loss(at_p: int) -> None:
    """The host of the count crashes, with p on it or without: the warning comes where roots are lost, beside
    the one that the strategy does not promise to survive hosts.
    """
    scenario = chain((fault("crash_host", 45, host=1),), hosts=2)
    places = {"s": 0, "p": at_p, "count": 1}
    named = {
        name: part.model_copy(update={"hosts": (places[name],)}) for name, part in scenario.topology.items()
    }
    scenario = scenario.model_copy(update={"topology": named})
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
    run = simulate(chain((crashed(45, 5), crashed(53.5, 5, "p")), read=2, replay_cost=3), trace=True)
    assert counted(run) == [*EVERY_10[:4], *EVERY_10[5:9]]
    assert (run.ledger["lost"], run.ledger["completed"]) == (2, 7)
    half = simulate(chain((crashed(45, 5), crashed(56.5, 2, "p")), read=2, replay_cost=3), trace=True)
    # root 3 has left at 55, root 4 would have at 58
    assert counted(half) == [*EVERY_10[:4], (3, 56), *EVERY_10[5:9]]
    assert (half.ledger["lost"], half.ledger["completed"]) == (1, 8)


def test_a_fault_during_a_recovery_starts_it_again() -> None:
    """The replay of 3 and 4 leaves at 53 and 54; the state is lost once more at 53.5, with root 3 just come
    (53, in service until 54).

    Restored again at 55.5 from the checkpoint of 40, the count discards what is left of the first replay
    (root 4, at 54) and gets a second one, of 56.5 and 57.5.
    """
    run = simulate(chain((crashed(45, 5), lost(53.5)), read=2, replay_cost=1), trace=True)
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
    run = simulate(chain((lost(44),), read=5, replay_cost=1), trace=True)
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
        run = simulate(chain((lost(45),), replay_cost=cost), trace=True)
        assert saved(run) == times
        assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


@pytest.mark.parametrize("down", ["drop", "hold"])
def test_what_came_while_the_task_was_down_is_in_the_replay(down: str) -> None:
    """count is down from 45 to 67; roots 4 and 5 (51, 61) find it down. Dropped or held: the replay has them,
    and held ones are not counted twice.
    """
    run = simulate(chain((crashed(45, 22, while_down=down),), replay_cost=1), trace=True)
    assert counted(run) == [*EVERY_10[:4], (3, 69), (4, 70), (5, 71), (6, 72), *EVERY_10[7:9]]
    assert run.recoveries[0]["dropped"] == (0 if down == "drop" else 2)
    assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["completed"]) == (0, 0, 9)
