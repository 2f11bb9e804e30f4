"""Storm's state checkpoints: transactions go through the topology, and acks wait for their commit.

s ──▶ p ──▶ count    a one every 10 ms from 10 ms on; times in ms; wires take none, and the
                          store 1 ns for an entry
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tideover
from tests.models.chain import windows
from tests.models.counting import failed
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.job.components import Store
from tideover.models.simulation import Replication, simulate

EXAMPLES = Path(__file__).parents[2] / "examples"


ONES = spout("values", values=(1,) * 12)
ENDLESS = {"length": 10_000 * MS}


def played(
    bolts: dict[str, Any],
    *failures: Any,
    until: float,
    interval: float = 25,
    timeout: float = 1000,
    store: Store | None = None,
    **more: Any,
) -> Replication:
    """Twelve ones into these bolts, which save their state at such an interval. ``more``: for the strategy,
    in ms.
    """
    times = {"checkpoint_interval": interval, "message_timeout": timeout} | more
    keys = {name: round(value * MS) for name, value in times.items()} | ({"store": store} if store else {})
    return simulate(world({"s": ONES} | bolts, "storm_checkpoint", failures, until, **keys), trace=True)


def run(
    *failures: Any,
    interval: float = 25,
    at_p: float = 1,
    window: dict[str, Any] = ENDLESS,
    until: float = 395,
) -> Replication:
    """Rotations every 100: what is not acked 100 to 200 after its emission comes again."""
    bolts = {
        "p": bolt("forward", {"s": "shuffle"}, at_p),
        "count": bolt("windowed_count", {"p": "shuffle"}, window=window),
    }
    return played(bolts, *failures, until=until, interval=interval, timeout=100, timeout_phase=0)


def crash(component: str, at: float, restart: float = 0) -> Any:
    return fault("crash_task", at, component=component, restart=restart)


def acked(done: Replication) -> list[tuple[int, int]]:
    """(root, when its commit was in the store) in ms, less the ns of the store."""
    assert all(time % MS in (1, 2) for _, _, time in done.trace.completed)
    return sorted((root, time // MS) for root, _, time in done.trace.completed)


def state(done: Replication) -> int:
    """What the count has at the end."""
    return done.trace.final_state["count", 0, 0].get(0, 0)


def test_acks_wait_for_the_commit() -> None:
    """Roots 0, 1, … are emitted at 10, 20, …, and markers go in at 25, 50, …: that of 50 comes behind the
    tuple of the same instant, which p has done at 51. All is acked when the state that has it is saved.
    """
    assert [time for _, time in acked(run())[:10]] == [25] * 2 + [51] * 3 + [75] * 2 + [101] * 3


def test_a_marker_waits_its_turn() -> None:
    """p takes 15 ms: done at 25, 40, 55, …. The prepare of 25 comes behind the tuple of 20, and reaches the
    count at 40; the commit follows at once, behind the tuples of 30 and 40, at 70. So the next prepare begins
    at 70, not at 50: behind the tuples of 50, 60 and 70 it is there at 115, and its commit at 175.
    """
    assert [time for _, time in acked(run(at_p=15))[:7]] == [70] * 2 + [175] * 5


def test_a_failure_takes_every_state_back_to_the_commit() -> None:
    """p crashes at 62: the count forgets the one of 60, which times out at the rotation at 200. A live task
    gives it up, but because of the failure: no timeout is false. Nothing is lost or counted twice.
    """
    done = run(crash("p", 62))
    assert failed(done) == [(5, 0, 200)]
    assert state(done) == 12
    counts = [done.ledger[name] for name in ("completed", "lost", "duplicated", "false_timeouts")]
    assert counts == [12, 0, 0, 0]


def test_a_commit_can_be_gone_back_to_twice() -> None:
    """Markers at 40 and, after the failure at 62, not before 102: that at 72 goes back to the commit of
    41 again, and what was counted at 71 is not in it.
    """
    done = run(crash("p", 62), crash("p", 72), interval=40)
    assert [root for root, _, _ in failed(done)] == [4, 5, 6]
    assert state(done) == 12
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


def test_windows_of_tuples_that_were_put_out_keep_their_numbers() -> None:
    """Windows of four: those of 50 to 80 are put out at 81, after the commit of 75, and the count crashes at
    82. With the committed ones of 50 to 70 and that of 90 a window is full again: it is another one, for what
    it has of 90 comes in no other. Twice count the four of 50 to 80.
    """
    done = run(crash("count", 82), window={"tuples": 4})
    assert [row[3] for row in done.trace.windows] == [1, 2, 3, 4]
    assert [done.ledger[name] for name in ("lost", "duplicated", "false_timeouts")] == [0, 4, 0]


@pytest.mark.parametrize("read", [1, 3])
def test_a_tick_that_waits_where_the_state_is_lost_ends_no_window(read: float) -> None:
    """s ──▶ count (4): the prepare of 30 has its turn at 34 and holds three. The tick of 50 waits for the
    tuple of 50, which is to be done at 54, but at 52 the count loses its state, and reads what the store
    has until 53 (55, after the tick's turn would have come). The tick is gone, however long that takes:
    the next one finds these three, and the tuples of 50 to 100, at 104.
    """
    count = bolt("windowed_count", {"s": "shuffle"}, 4, window={"length": 50 * MS})
    store = Store(latency=round(read * MS), bandwidth=2**50)
    lost = fault("lose_state", 52, component="count")
    done = played({"count": count}, lost, until=130, interval=30, store=store, entry_size=0)
    assert windows(done) == [(2, 104, 9)]


def test_nothing_waits_for_a_marker() -> None:
    """s ──▶ a (1), b (30) ──▶ count: the marker of 25 comes from a at once; from b it would at 70, behind the
    tuples of 10 and 20, but b crashes at 50. The count takes what comes from a meanwhile.
    """
    bolts = {
        "a": bolt("forward", {"s": "shuffle"}, 1),
        "b": bolt("forward", {"s": "shuffle"}, 30),
        "count": bolt("windowed_count", {"a": "shuffle", "b": "shuffle"}, window=ENDLESS),
    }
    done = played(bolts, crash("b", 50, restart=1000), until=95)
    counted = [row[6] / MS for row in done.trace.processed if row[0] == "count"]
    assert counted == [11, 21, 31, 40, 41, 51, 61, 71, 81, 91]


def test_markers_of_one_instant_act_in_the_order_of_tasks() -> None:
    """s ──▶ p ──▶ a, s ──▶ a, s ──▶ b: the counts a and b write for 10 each, one after the other. When b, the
    last, has prepared, at 45, the commit begins: p hands its marker on, and that is at a, at this instant,
    before b has its turn. So a writes until 55, and b until 65, as they did for the prepare.
    """
    bolts = {
        "p": bolt("forward", {"s": "shuffle"}),
        "a": bolt("windowed_count", {"s": "shuffle", "p": "shuffle"}, window=ENDLESS),
        "b": bolt("windowed_count", {"s": "shuffle"}, window=ENDLESS),
    }
    done = played(bolts, until=70, store=Store(latency=10 * MS, bandwidth=2**50))
    steps = [(step.what, step.who, step.at // MS) for step in done.trace.steps]
    assert [step for step in steps if step[0] in ("prepared", "committed")][:6] == [
        ("prepared", "p.0", 25),
        ("prepared", "a.0", 35),
        ("prepared", "b.0", 45),
        ("committed", "p.0", 45),
        ("committed", "a.0", 55),
        ("committed", "b.0", 65),
    ]


def test_it_says_when_roots_must_time_out() -> None:
    """A root that waits for a commit as long as its timeout is emitted again and again."""
    scenario = EXAMPLES / "storm-word-count.yaml"
    warned = [
        any(
            text.startswith("checkpoint_interval: ")
            for text in tideover.run(scenario, more).to_dict()["warnings"]
        )
        for more in ({}, {"strategy.checkpoint_interval": "10 s"})
    ]
    assert warned == [False, True]


def test_the_example() -> None:
    """It loses nothing."""
    ledger = tideover.run(EXAMPLES / "storm-word-count.yaml").to_dict()["ledger"]
    assert (ledger["completed"], ledger["false_timeouts"]) == (ledger["emitted"], 0)


def test_a_window_whose_end_is_on_its_way_is_not_missing() -> None:
    """A preparing task is kept for 60 ms from 95 on: the marker of 100 comes behind it, so the run ends with
    that window not put out, though one that saves nothing would have put it out at 101.
    """
    bolts = {
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "count": bolt("windowed_count", {"p": "shuffle"}, window={"length": 100 * MS, "trigger": "marker"}),
    }
    early, late = (played(bolts, until=until, interval=95, write_time=60).windows for until in (130, 395))
    assert early == {"emitted": 0, "correct": 0, "wrong": 0, "missing": 0}
    assert late["correct"] == late["emitted"] > 0
    assert late["missing"] == 0


def test_a_task_that_is_stopped_as_it_writes_goes_on_later() -> None:
    """s ──▶ count: the prepare of 25 keeps the count for 20, until 45, and the commit until 65. Stopped from
    40 to 50 it hands the marker on at 55, and acks at 75; stopped from 50 to 80, while it commits, it acks at
    95, and not at 65, when the store has it.
    """
    count = {"count": bolt("windowed_count", {"s": "shuffle"}, window=ENDLESS)}
    found = []
    for at, length in ((40, 10), (50, 30)):
        pause = fault("pause", at, component="count", duration=length * MS)
        done = played(count, pause, until=120, write_time=20)
        begun = next(step.at // MS for step in done.trace.steps if step.what == "commit begun")
        found.append((begun, [(root, time // MS) for root, _, time in done.trace.completed[:2]]))
    assert found == [(55, [(0, 75), (1, 75)]), (45, [(0, 95), (1, 95)])]


def test_a_task_that_goes_back_acks_one_transaction_while_it_acks_another() -> None:
    """s ──▶ count: the commit of 100 acks ten tuples, from 120 to 300. At 130 p, beside it, has failed, and
    the count goes on: it has two tuples in the next transaction, of 230, and acks them at 250 and 270.
    """
    bolts = {
        "t": spout("values", values=(1,), offset=1000),
        "p": bolt("forward", {"t": "shuffle"}),
        "count": bolt("windowed_count", {"s": "shuffle"}, window=ENDLESS),
    }
    done = played(bolts, fault("lose_state", 130, component="p"), until=275, interval=100, ack_cost=20)
    assert [(root >> 1, time // MS) for root, _, time in done.trace.completed] == [
        *((n, 120 + 20 * n) for n in range(7)),
        (10, 250),
        (7, 260),
        (11, 270),
    ]
    check(done.world.scenario)
