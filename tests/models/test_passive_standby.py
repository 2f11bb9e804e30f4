"""Passive standby: checkpoints go to a secondary, which takes over at detection; upstream replays the rest.

Most tests have   s ──▶ p (1) ──▶ count (1)   with a root every 10 ms from 10 on: root n is with p until
10n + 11 and is counted at 10n + 12. Checkpoints go to the secondaries every 20 ms; s and p keep what they
have sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, chain, counted, lost, windows
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.operators.keyed_state import KeyedSums, KeySet, RunningSums
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.train import Train

EXAMPLES = Path(__file__).parents[2] / "examples"


def crash(at: float, detection: float = 5, restart: float = 100) -> Any:
    return fault("crash_task", at, component="count", detection=detection, restart=restart)


def passive(scenario: Scenario, **keys: Any) -> Replication:
    """The same world, with secondaries every 20 ms."""
    strategy = STRATEGIES["passive_standby"].model_validate({"checkpoint_interval": 20 * MS} | keys)
    return simulate(scenario.with_strategy(strategy), trace=True)


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
    """s ──▶ split ──▶ count ──▶ total, with checkpoints every 70. The count puts out a window and crashes; 9
    ms after it is back the total crashes, which had that window in its state alone. It comes again out of the
    output queue of the count's secondary. Under R+SM it is lost with the count.
    """
    window = {"length": 20 * MS} if trigger == "tick" else {"tuples": 10}
    topology = {
        "s": spout("sentences", 5),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window=window),
        "total": bolt("windowed_count", {"count": "shuffle"}, window={"length": 100 * MS}),
    }
    times = {"detection": 1, "restart": 4}
    faults = [
        fault("crash_task", at, component=name, **times) for at, name in ((161, "count"), (175, "total"))
    ]
    scenario = world(topology, "passive_standby", tuple(faults), 531, checkpoint_interval=70 * MS)
    done = simulate(scenario)
    assert done.windows["wrong"] == done.windows["missing"] == 0
    managed = STRATEGIES["rsm"].model_validate({"checkpoint_interval": 70 * MS})
    assert simulate(scenario.with_strategy(managed)).windows["wrong"] > 0


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
    none = simulate(scenario.with_strategy(STRATEGIES["none"]()), trace=True)
    assert done.trace is not None
    assert none.trace is not None
    assert sorted(done.trace.processed) == sorted(none.trace.processed)
    assert done.timeline == none.timeline
    messages = 2 + 2 + 2 + 2 if delta else 2 + 3 + 3 + 3
    more = done.cost["network_bytes"] - none.cost["network_bytes"]
    assert more == 4 * size + messages * MESSAGE


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
    assert full.trace is not None
    assert delta.trace is not None
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

    def under(strategy: str, restart: int, **keys: int) -> Replication:
        times = {"detection": detection / MS, "restart": restart / MS, "while_down": down}
        hit = fault(kind, at / MS, component="count", **times)
        keys |= {"replay_cost": cost, "entry_size": 0}
        return simulate(world(topology, strategy, (hit,), 300, seed, links=links, **keys), trace=True)

    ours, theirs = (
        under("passive_standby", 50 * MS, checkpoint_interval=20 * MS),
        under("rsm", 0, checkpoint_interval=20 * MS),
    )
    assert ours.trace is not None
    assert theirs.trace is not None
    assert sorted(ours.trace.processed) == sorted(theirs.trace.processed)
    assert sorted(ours.trace.windows, key=str) == sorted(theirs.trace.windows, key=str)
    assert ours.recoveries == theirs.recoveries
    assert (ours.ledger, ours.windows) == (theirs.ledger, theirs.windows)
