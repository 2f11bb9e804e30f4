"""Passive standby: checkpoints go to a secondary, which takes over at detection; upstream replays the rest.
Upstream backup: nothing is saved; who sends keeps it until all that depends on it is done.

Most tests have   s ──▶ p (1) ──▶ count (1)   with a root every 10 ms from 10 on: root n is with p until
10n + 11 and is counted at 10n + 12. Every 20 ms checkpoints go to the secondaries, or tasks tell their
senders what is done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, ONES, chain, counted, lost, windows
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.operators.keyed_state import KeyedSums, KeySet, RunningSums
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.train import Train

EXAMPLES = Path(__file__).parents[2] / "examples"


def crash(at: float, component: str = "count", detection: float = 5, restart: float = 100) -> Any:
    return fault("crash_task", at, component=component, detection=detection, restart=restart)


def under(strategy: str, scenario: Scenario, **keys: Any) -> Replication:
    """The same world under another strategy."""
    return simulate(scenario.with_strategy(STRATEGIES[strategy].model_validate(keys)), trace=True)


def passive(scenario: Scenario, **keys: Any) -> Replication:
    """With secondaries every 20 ms."""
    return under("passive_standby", scenario, **{"checkpoint_interval": 20 * MS} | keys)


def backed_up(scenario: Scenario, **keys: Any) -> Replication:
    """With acks every 20 ms."""
    return under("upstream_backup", scenario, **{"ack_interval": 20 * MS, "replay_cost": MS} | keys)


def bytes_beyond_amnesia(scenario: Scenario, done: Replication) -> int:
    """What goes over the network besides; every tuple has its time under amnesia."""
    none = under("none", scenario)
    assert sorted(done.trace.processed) == sorted(none.trace.processed)
    assert done.timeline == none.timeline
    assert done.cost["cpu_s"] == none.cost["cpu_s"]
    return done.cost["network_bytes"] - none.cost["network_bytes"]


def totals(strategy: str, window: dict[str, Any], in_total: dict[str, Any], **keys: Any) -> Scenario:
    """s ──▶ split ──▶ count ──▶ total. The count crashes at 161, after a window, and the total at 175."""
    topology = {
        "s": spout("sentences", 5),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window=window),
        "total": bolt("windowed_count", {"count": "shuffle"}, window=in_total),
    }
    faults = (crash(161, "count", 1, 4), crash(175, "total", 1, 4))
    return world(topology, strategy, faults, 531, **keys)


def test_the_scenario_is_ready_at_detection() -> None:
    """A crash at 72 s that is noticed 2 s later: the restart of 20 s is not waited for. The words of 2 s
    since the checkpoint of 70 s, and of the 2 s until 74 s, come again, in steps of 3 ms.
    """
    done = simulate(load(EXAMPLES / "passive-standby.yaml"))
    (row,) = done.recoveries
    assert (row["ready_at_s"], row["restart_s"], row["missing"], row["extra"]) == (74, 0, 0, 0)
    assert row["replay_s"] == pytest.approx(0.003 * row["replayed"], abs=0.002)
    assert row["replayed"] == pytest.approx(10 * 4.4 * (2 + 2), rel=0.15)
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    assert done.windows == {"emitted": 4, "correct": 4, "wrong": 0, "missing": 0}
    assert done.cost["store_bytes"] == 0


# -- the time to recover is detection and replay -------------------------------------------------------------


@pytest.mark.parametrize("restart", [0, 100, 10_000])
def test_it_takes_over_at_detection_and_replays(restart: float) -> None:
    """The checkpoint of 40 holds roots 0, 1, 2; root 3 was counted at 42. Crash at 45, noticed at 50, when
    root 4 comes to p: the request waits for it until 51. Then 3 and 4 leave at 52 and 53; root 4, which came
    directly at 51, is dropped. Root 5 follows as if nothing had been, however long a restart takes.
    """
    done = passive(chain((crash(45, restart=restart),), until=75), replay_cost=MS)
    assert counted(done) == [*EVERY_10[:4], (3, 53), (4, 54), *EVERY_10[5:7]]
    (row,) = done.recoveries
    assert (row["detected_at_s"], row["ready_at_s"]) == (0.05, 0.05)
    assert (row["restored"], row["replayed"], row["dropped"]) == (3, 2, 1)
    assert (row["missing"], row["extra"], done.ledger["lost"]) == (0, 0, 0)


def test_a_restart_that_is_waited_for_costs_its_length() -> None:
    """The same crash under R+SM: root 4 comes with the replay at 150 ms, 100 ms later."""
    done = simulate(chain((crash(45),), until=195, replay_cost=1), trace=True)
    assert dict(counted(done)[4:])[4] == 154


def test_spouts_keep_what_they_sent() -> None:
    """s ──▶ count (1): root n is counted at 10n + 11. The checkpoint of 40 waits for root 3, until 41. Crash
    at 45, noticed at 50, when root 4 is sent, and not taken in: it comes again at 51. That keeps the spout
    for 1, and its pause of 10 begins after it.
    """
    scenario = chain((crash(45),), until=66)
    count = bolt("windowed_count", {"s": "shuffle"}, 1, window={"length": 1000 * MS})
    direct = {"s": scenario.topology["s"], "count": count}
    done = passive(scenario.model_copy(update={"topology": direct}), replay_cost=MS)
    assert counted(done) == [(0, 11), (1, 21), (2, 31), (3, 41), (4, 52), (5, 62)]
    assert done.ledger["lost"] == 0


@pytest.mark.parametrize("trigger", ["tick", "tuples"])
def test_the_secondary_has_the_output_queue(trigger: str) -> None:
    """With checkpoints every 70. The count puts out a window and crashes; 9 ms after it is back the total
    crashes, which had that window in its state alone. It comes again out of the output queue of the count's
    secondary. Under R+SM it is lost with the count.
    """
    window = {"length": 20 * MS} if trigger == "tick" else {"tuples": 10}
    scenario = totals("passive_standby", window, {"length": 100 * MS}, checkpoint_interval=70 * MS)
    done = simulate(scenario)
    assert done.windows["wrong"] == done.windows["missing"] == 0
    assert under("rsm", scenario, checkpoint_interval=70 * MS).windows["wrong"] > 0


def test_a_window_that_has_come_is_not_put_out_again() -> None:
    """Windows of 50 ended by ticks; that of 50 has four roots. The count is lost at 51: what the secondary
    has is the empty state of 50, not that of 40.
    """
    done = passive(chain((lost(51),), 115, {"length": 50 * MS}))
    assert windows(done) == [(1, 50, 4), (2, 100, 5)]
    assert done.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}


# -- it changes nothing while nothing fails ------------------------------------------------------------------


MESSAGE = 256
"""Bytes of one within a host."""


@pytest.mark.parametrize("size", [0, 64, 1000])
@pytest.mark.parametrize("delta", [False, True])
def test_without_a_failure_it_costs_only_its_bytes(size: int, delta: bool) -> None:
    """Every tuple at its time under amnesia. The checkpoints of the count, due at 20, 40, 60 and 80 when it
    is idle, have one entry each. At those moments it has counted up to root 0, 2, 4 and 6, and p serves the
    next one until 21, 41, 61 and 81; its checkpoint comes then, and the trim behind it. So p's have roots 0
    and 1; 1 to 3; 3 to 5; 5 to 7. Of a delta the one entry is part (its sum has grown), but only two messages
    each.
    """
    scenario = chain(until=95)
    done = passive(scenario, entry_size=size, delta=delta)
    messages = 2 + 2 + 2 + 2 if delta else 2 + 3 + 3 + 3
    assert bytes_beyond_amnesia(scenario, done) == 4 * size + messages * MESSAGE


def _tuples(keys: list[int]) -> Train:
    column = np.array(keys, np.int64)
    return Train(column, column, column, column)


@pytest.mark.parametrize(("kind", "twice"), [(KeyedSums, 1), (RunningSums, 1), (KeySet, 0)])
def test_an_entry_has_changed_if_it_is_not_what_it_was(kind: type[KeyedSums], twice: int) -> None:
    """Key 0 comes a second time: its sum has grown, but a set that has it is as it was. An entry that is gone
    with its window is none.
    """
    old = kind(5)
    old.add(_tuples([0, 1, 2]))
    new = old.copy()
    assert new.changed_since(old) == 0
    new.add(_tuples([0, 3]))
    assert (new.entries, new.changed_since(old)) == (4, 1 + twice)
    assert new.changed_since(new.fresh()) == 4
    if kind is not RunningSums:
        new.end_window()
        assert (new.entries, new.changed_since(old)) == (0, 0)


def test_a_delta_brings_back_what_a_full_checkpoint_does() -> None:
    """Sentences for 5 s, with a checkpoint every 100 ms: 19 words of which each sentence changes about four.
    The count crashes, and everything after it comes at the same time with the same sum. Deltas are fewer
    bytes, though the output queues of the split, trimmed at each checkpoint, are the same in both.
    """
    topology = {
        "s": spout("sentences", 50),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window={"length": 1000 * MS}),
    }
    hit = fault("crash_task", 1777, component="count", detection=90, restart=1000)
    keys = {"checkpoint_interval": 100 * MS, "replay_cost": MS, "entry_size": 640}
    full, delta = (
        simulate(world(topology, "passive_standby", (hit,), 5000, delta=each, **keys), trace=True)
        for each in (False, True)
    )
    assert full.trace.processed == delta.trace.processed
    assert full.trace.windows == delta.trace.windows
    assert full.windows == {"emitted": 5, "correct": 5, "wrong": 0, "missing": 0}
    assert full.recoveries == delta.recoveries
    none = simulate(world(topology, "none", until=5000)).cost["network_bytes"]
    assert delta.cost["network_bytes"] - none < 0.6 * (full.cost["network_bytes"] - none)


# -- R+SM without a restart, and a store that takes no time --------------------------------------------------


@settings(max_examples=16, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    at=st.integers(1, 200 * MS),
    kind=st.sampled_from(("lose_state", "crash_task")),
    detection=st.integers(0, 30 * MS),
    hold=st.booleans(),
    tasks=st.integers(1, 2),
    trigger=st.sampled_from(("marker", "tick")),
    cost=st.integers(0, 1 * MS),
)
def test_it_recovers_as_state_management_would_at_once(
    seed: int, at: int, kind: str, detection: int, hold: bool, tasks: int, trigger: str, cost: int
) -> None:
    """s x 2 ──▶ split ──▶ count, one fault at any moment: every tuple is processed at the same time, every
    window put out at the same time, with the same sum, and the recovery is described by the same figures.
    """
    window = {"length": 30 * MS, "trigger": trigger}
    topology = {
        "s": spout("sentences", 9, None, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 2), parallelism=tasks),
        "count": bolt(
            "windowed_count", {"split": "shuffle"}, Constant(value=MS // 10), parallelism=tasks, window=window
        ),
    }
    jitter, down = Exponential(mean=MS), "hold" if hold else "drop"
    links = Links(latency=jitter, local=jitter)

    def recovered(strategy: str, restart: int) -> Replication:
        times = {"detection": detection / MS, "restart": restart, "while_down": down}
        hit = fault(kind, at / MS, component="count", **times)
        keys = {"replay_cost": cost, "entry_size": 0, "checkpoint_interval": 20 * MS}
        return simulate(world(topology, strategy, (hit,), 300, seed, links=links, **keys), trace=True)

    ours, theirs = recovered("passive_standby", 50), recovered("rsm", 0)
    assert sorted(ours.trace.processed) == sorted(theirs.trace.processed)
    assert sorted(ours.trace.windows, key=str) == sorted(theirs.trace.windows, key=str)
    assert ours.recoveries == theirs.recoveries
    assert (ours.ledger, ours.windows) == (theirs.ledger, theirs.windows)


# -- upstream backup -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [0, 100, 10_000])
def test_an_empty_secondary_gets_the_whole_window_again(restart: float) -> None:
    """Crash at 45, noticed at 50 (a restart would come no sooner), when root 4 comes to p: the request waits
    for it until 51. Then p sends all five roots, 52 to 56, and each is counted 1 later. Root 5 follows as
    ever.
    """
    done = backed_up(chain((crash(45, restart=restart),), until=65))
    assert counted(done) == [*EVERY_10[:4], *[(n, 53 + n) for n in range(5)], EVERY_10[5]]
    (row,) = done.recoveries
    assert (row["ready_at_s"], row["restored"], row["replayed"], row["dropped"]) == (0.05, 0, 5, 1)
    assert (row["missing"], row["extra"], done.ledger["lost"]) == (0, 0, 0)


def test_a_task_without_state_does_everything_again_and_its_receiver_drops_it() -> None:
    """p crashes at 45, noticed at 50, when the spout sends root 4. The spout has all five, as the count's
    window is open: they come to p at 51 to 55, and leave it 1 later. The count has had 0 to 3; root 4 comes
    at 56. The spout was busy until 55, and its next call is 10 after that.
    """
    done = backed_up(chain((crash(45, "p"),), until=70))
    assert counted(done) == [*EVERY_10[:4], (4, 57), (5, 67)]
    assert (done.ledger["lost"], done.ledger["duplicated"], done.recoveries[0]["dropped"]) == (0, 0, 4)


def test_what_was_sent_again_is_kept_for_who_fails_next() -> None:
    """The same, and then the count crashes at 60, noticed at 65, when root 5 comes to p, until 66. p, which
    went down with all that it had sent, has all five roots again, and root 5: they leave at 67 to 72.
    """
    done = backed_up(chain((crash(45, "p"), crash(60)), until=76))
    assert counted(done) == [*EVERY_10[:4], (4, 57), *[(n, 68 + n) for n in range(6)]]
    assert (done.ledger["lost"], done.recoveries[1]["missing"]) == (0, 0)


def test_acks_go_from_hop_to_hop() -> None:
    """A window of 50 with roots 0 to 3. The acks of the count at 60 say that four messages are done, and p,
    busy with root 5, trims them at 61. p had sent four roots by the mark that it made at 41 (at 40 it served
    root 3): at its next acks, due at 80 and sent at 81 behind root 7, the spout trims its four.
    """
    done = backed_up(chain((), until=95, window={"length": 50 * MS}))
    trims = [(s.at / MS, s.who, s.detail) for s in done.trace.steps if s.what == "buffer trimmed"]
    first = {who: at for at, who, detail in reversed(trims) if detail == "up to number 4"}
    assert first == {"p.0": 61, "s.0": 81}
    assert all(detail in ("up to number 0", "up to number 4") for _, _, detail in trims)


def test_a_window_that_is_over_is_not_rebuilt() -> None:
    """The window of 50 has four roots; the count crashes at 55, before its acks of 60, when p serves root 5.
    At 61 p sends all six, of which the secondary knows that the first four are over: they are dropped, as is
    root 5 as it comes directly. The window of 100 has five.
    """
    done = backed_up(chain((crash(55),), 115, {"length": 50 * MS}))
    assert windows(done) == [(1, 50, 4), (2, 100, 5)]
    assert (done.recoveries[0]["replayed"], done.recoveries[0]["dropped"]) == (2, 4 + 1)
    assert done.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}


def test_what_is_sent_again_of_a_window_that_is_over_is_not_counted() -> None:
    """p crashes when the first window is over, and sends its five roots again, under new numbers: the count
    has had them. Then that crashes. Its secondary knows no root, and p, of which it asks what followed the
    first window, has the five behind that: they are dropped again, since their epoch is over.
    """
    done = backed_up(chain((crash(65, "p"), crash(85)), 180, {"length": 50 * MS, "trigger": "marker"}))
    assert windows(done) == [(1, 52, 5), (2, 101, 4), (3, 150, 5)]
    assert (done.recoveries[1]["replayed"], done.recoveries[1]["dropped"]) == (3, 5)
    assert done.windows == {"emitted": 3, "correct": 3, "wrong": 0, "missing": 0}


@pytest.mark.parametrize("size", [0, 64])
def test_without_a_failure_it_costs_only_its_acks(size: int) -> None:
    """Every tuple at its time under amnesia. The count tells p and its secondary at 20, 40, 60 and 80 that
    nothing is done yet; p has nothing to tell then.
    """
    scenario = chain(until=95)
    assert bytes_beyond_amnesia(scenario, backed_up(scenario, ack_size=size)) == 4 * 2 * size


def test_sums_that_went_down_with_their_task_come_again() -> None:
    """Windows by marker of 100, and of 30 tuples. The count puts window 1 out at 100 and crashes with what it
    kept of it; at 175 the total crashes, which had that window in its state alone. As it is not done there,
    spouts still have its tuples: the count has put it out again, and the total gets it.
    """
    by_marker = {"length": 100 * MS, "trigger": "marker"}
    done = simulate(totals("upstream_backup", by_marker, {"tuples": 30}, ack_interval=20 * MS))
    assert (done.windows["wrong"], done.windows["missing"], done.ledger["lost"]) == (0, 0, 0)


def test_what_follows_a_window_is_not_done_with_its_marker() -> None:
    """Marker 1 of 50 ms comes to m from s at 50, and from t, behind a slow bolt, at 65: the first root of s,
    of 60, has gone on to the count ahead of it. The count, which has the marker from the slower one at 90
    only, tells at 80 that nothing is done, and crashes at 85: the root comes again.
    """
    topology = {
        "s": spout(**ONES, offset=50),
        "t": spout(**ONES | {"gap": 40}),
        "slow": bolt("forward", {"t": "shuffle"}, 25),
        "slower": bolt("forward", {"t": "shuffle"}, 50),
        "m": bolt("forward", {"s": "shuffle", "slow": "shuffle"}),
        "count": bolt(
            "windowed_count",
            {"m": "shuffle", "slower": "shuffle"},
            window={"length": 50 * MS, "trigger": "marker"},
        ),
    }
    done = simulate(world(topology, "upstream_backup", (crash(85),), 400, ack_interval=20 * MS))
    assert (done.windows["wrong"], done.windows["missing"], done.ledger["lost"]) == (0, 0, 0)


REFUSED = """
topology:
  s: {spout: keys, rate: 10/s}
  c: {bolt: windowed_count, from: {s: {fields: [key]}}, service: 1 ms, window: 10 s}
strategy: {kind: upstream_backup}
run: {duration: 30 s}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("windowed_count", "running_count", "topology.c: .* goes on from window to window"),
        ("window: 10 s", "window: 10 s, state: {kind: memory}", "topology.c: .* `state` is never done with"),
    ],
)
def test_state_without_an_end_is_refused(old: str, new: str, words: str) -> None:
    """It could not be rebuilt from what upstream keeps, or all would have to be kept."""
    load_text(REFUSED, "good.yaml")
    with pytest.raises(ScenarioError, match=words):
        load_text(REFUSED.replace(old, new), "bad.yaml")


def test_what_an_ack_sets_free_arrives_before_others_act() -> None:
    """s, every 500 ──▶ x (100), y (100) ──▶ q (0) ──▶ r (1), and x, y ──▶ r. At 1100 x and y have done their
    tuple of 1000, and first have their turn with acks and trims of that instant; the marker of 1000 that ends
    their windows is behind. That of x is at r both ways, directly and past q, before y has its turn.
    """
    ends = {"window": {"length": 1000 * MS, "trigger": "marker"}}
    topology = {
        "s": spout("keys", 500, keys=1),
        "x": bolt("windowed_count", {"s": "shuffle"}, 100, **ends),
        "y": bolt("windowed_count", {"s": "shuffle"}, 100, **ends),
        "q": bolt("forward", {"x": "shuffle", "y": "shuffle"}),
        "r": bolt("forward", {"x": "shuffle", "y": "shuffle", "q": "shuffle"}, 1),
    }
    done = backed_up(world(topology, until=1999), ack_interval=500 * MS)
    ways = {0: "x", 1: "y", 2: "x and q", 6: "y and q"}
    came = [(ways[row[3] % 16], row[6] / MS) for row in done.trace.processed if row[0] == "r"]
    assert came == [("x", 1101), ("x and q", 1102), ("y", 1103), ("y and q", 1104)]


def test_what_is_done_is_told_once() -> None:
    """s emits at 290 and 580; p hands on at once; count's windows of 500 end by tick. Marks each 100: those
    of p at 300, 400 and 500 say the same (the first root was sent), and that root leaves the count at 500, of
    which p hears behind its own mark. At 600 the newest of the three is told, and the others are forgotten
    with it: that of 600, with the second root, is not done. It is at 1000, and p tells at 1100. (Marks before
    300, of nothing, are told as they are made.)
    """
    topology = {
        "s": spout("values", 290, values=(1, 1)),
        "p": bolt("forward", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"p": "shuffle"}, window={"length": 500 * MS, "trigger": "tick"}),
    }
    found = backed_up(world(topology, until=1150), ack_interval=100 * MS)
    told = [step.at / MS for step in found.trace.steps if (step.who, step.what) == ("p.0", "acks sent")]
    assert [at for at in told if at > 300] == [600, 1100]
