"""Aligned snapshots, held to what their papers say. Times in milliseconds, unless a name says otherwise.

The small world of most tests is   s ──▶ count   with roots 0 … 7 at 1 … 8 and 3 a root, so that there is a
queue: nothing in the way, root n is counted at 4 + 3n.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import ONES, counted, windows
from tests.models.test_exactness import check
from tests.models.traced import trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario, topology_of
from tideover.models.job.components import BoltConfig, Links
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.faults import FAULTS

FOREVER = 10**6
EIGHT: dict[str, Any] = {"kind": "values", "values": (1,) * 8, "gap": 1}
TIMES = ("checkpoint_interval", "checkpoint_phase", "min_pause", "checkpoint_timeout", "snapshot_time")
TIMES += ("snapshot_cost", "upload_time", "restore_time", "restore_cost")


def job(topology: dict[str, Any], failures: tuple[Any, ...] = (), until: float = 60, **more: Any) -> Scenario:
    """A job whose store takes no time; snapshots every 1000 from ``checkpoint_phase`` on."""
    more.setdefault("checkpoint_interval", 1000)
    times = {name: round(more.pop(name) * MS) for name in TIMES if name in more}
    return world(topology, "aligned_snapshots", failures, until, entry_size=0, **times, **more)


def counts(senders: str, service: float = 0, length: float = FOREVER, **more: Any) -> BoltConfig:
    """Of senders with names of a letter each."""
    inputs = dict.fromkeys(senders, "shuffle")
    return bolt("windowed_count", inputs, service, window={"length": round(length * MS)}, **more)


def counted_at(scenario: Scenario) -> list[float]:
    """When the count was done with each."""
    return [row[6] / MS for row in trace_of(scenario).processed if row[0] == "count"]


def queue(failures: tuple[Any, ...] = (), until: float = 60, **more: Any) -> Scenario:
    """s ──▶ count (3)."""
    return job({"s": spout(**EIGHT), "count": counts("s", 3)}, failures, until, **more)


def two_ways(service: float, **more: Any) -> Scenario:
    """a ──▶ p (1) ──▶ count ◀── q (8) ◀── b: a has roots at 10, 20, …, b at 15, 25, …"""
    topology = {
        "a": spout(**ONES),
        "b": spout(**ONES, offset=5),
        "p": bolt("forward", {"a": "shuffle"}, 1),
        "q": bolt("forward", {"b": "shuffle"}, 8),
        "count": counts("pq", service),
    }
    return job(topology, **more)


def crash(at: float, component: str = "count", **more: Any) -> Any:
    return fault("crash_task", at, component=component, **more)


def steps(run: Replication, *words: str) -> list[tuple[float, str]]:
    """(when, which snapshot) of the steps with one of these words."""
    found = [step for step in run.trace.steps if any(word in step.what for word in words)]
    return [(step.at / MS, step.detail.split()[1]) for step in found]


# -- barriers ------------------------------------------------------------------------------------------------


def test_a_source_has_its_barrier_where_it_reads() -> None:
    """Trigger at 5: root 0 (4) is done, root 1 in service until 7. The barrier passes the rest of the queue:
    at 7 the state (roots 0 and 1) is copied, which takes 2, and root 2 is done at 12 instead of 10.

    Crash at 14, ready at once: roots 0 and 1 are back, all others are read again, from 14 on.
    """
    run = simulate(queue((crash(14),), checkpoint_phase=5, snapshot_time=2), trace=True)
    before = [(0, 4), (1, 7), (2, 12)]
    assert counted(run) == [*before, *((n, 14 + 3 * (n - 1)) for n in range(2, 8))]
    (recovery,) = run.recoveries
    assert (recovery["restored"], recovery["missing"], recovery["extra"]) == (2, 0, 0)
    assert recovery["replayed"] == 6
    assert recovery["state_recovery_s"] * 1000 == pytest.approx(18)  # until root 7 is counted again, at 32
    assert list(run.trace.final_state.values()) == [{0: 8}]


def test_a_barrier_goes_with_the_data_behind_a_bolt() -> None:
    """s ──▶ p (0) ──▶ count (3): the barrier leaves p at 5, at once, behind roots 0 … 4. It waits for its
    turn in the queue of count until 16: the snapshot holds those five, and takes 2.
    """
    topology = {
        "s": spout(**EIGHT),
        "p": bolt("forward", {"s": "shuffle"}, 0),
        "count": counts("p", 3),
    }
    run = simulate(job(topology, (crash(20),), checkpoint_phase=5, snapshot_time=2), trace=True)
    assert counted(run)[:5] == [(n, 4 + 3 * n) for n in range(5)]
    assert counted(run)[5:] == [(5, 23), (6, 26), (7, 29)]
    assert run.recoveries[0]["restored"] == 5


@pytest.mark.parametrize(
    ("phase", "done"),
    [
        (FOREVER, [("a", 13), ("a", 23), ("b", 25), ("a", 33)]),
        (19.5, [("a", 13), ("b", 25), ("a", 27), ("a", 33)]),
    ],
)
def test_who_has_a_barrier_waits_for_the_others(phase: float, done: list[tuple[str, float]]) -> None:
    """a ──▶ p (1) ──▶ count (2) ◀── q (8) ◀── b: roots of a (10, 20, …) are with count at 11, 21, …; those of
    b (15, 25, …) at 23, 33, ….

    A trigger at 19.5 finds p idle, so count has its barrier at once. q's leaves behind the root in service,
    at 23. So a's root of 21 belongs to the time after the snapshot: it is set aside until q's barrier has its
    turn, behind b's root, at 25.
    """
    rows = trace_of(two_ways(2, checkpoint_phase=phase, until=34)).processed
    rows = [row for row in rows if row[0] == "count"]
    assert [("ab"[row[3] >> 1 & 1], row[6] / MS) for row in rows] == done


def test_what_waits_behind_a_barrier_belongs_to_the_time_after() -> None:
    """a ──▶ p (0) ──▶ count (3) ◀── q (12) ◀── b: a's roots come to count at 1 … 8, b's only one at 13.

    A trigger at 2.5: p's barrier is behind a's roots 0 and 1, and has its turn at 7; roots 2 to 6 are then
    behind it in the queue, root 7 is to come. All wait until q's barrier has had its turn behind b's root, at
    16. The crash at 18 goes back to a0, a1 and b0.
    """
    topology = {
        "a": spout(**EIGHT),
        "b": spout("values", values=(1,), gap=1),
        "p": bolt("forward", {"a": "shuffle"}, 0),
        "q": bolt("forward", {"b": "shuffle"}, 12),
        "count": counts("pq", 3),
    }
    scenario = job(topology, (crash(18),), checkpoint_phase=2.5)
    assert counted_at(scenario) == [4, 7, 16, *(18 + 3 * n for n in range(1, 7))]
    assert simulate(scenario).recoveries[0]["restored"] == 3


def test_a_barrier_does_not_change_windows_by_tuple() -> None:
    """Windows of four: the departures of 3 to 7 are taken back at 5, and given anew 2 later."""
    topology = {
        "s": spout(**EIGHT),
        "count": bolt("windowed_count", {"s": "shuffle"}, 3, window={"tuples": 4}),
    }
    run = simulate(job(topology, checkpoint_phase=5, snapshot_time=2), trace=True)
    assert windows(run) == [(1, 15, 4), (2, 27, 4)]


# -- which snapshot counts -----------------------------------------------------------------------------------


def test_an_interrupted_snapshot_does_not_count() -> None:
    """Snapshots at 5 (of roots 0 and 1, at 7) and 15 (roots 0 to 4, at 16); each is durable 4 later.

    A crash at 18 finds the second one under way: roots 2 to 7 are read again. One at 21 goes back to it: 5 to
    7 are.
    """
    more = {"checkpoint_phase": 5, "checkpoint_interval": 10, "upload_time": 4}
    early = simulate(queue((crash(18),), **more), trace=True)
    late = simulate(queue((crash(21),), **more), trace=True)
    assert counted(early)[5:] == [(2, 21), (3, 24), (4, 27), (5, 30), (6, 33), (7, 36)]
    assert counted(late)[5:] == [(5, 19), (5, 24), (6, 27), (7, 30)]
    assert [r.recoveries[0]["restored"] for r in (early, late)] == [2, 5]


def test_one_snapshot_at_a_time() -> None:
    """Triggers are due at 30, 40, 50, …. A snapshot takes 25: those of 40 and 50 wait, as one, until 55.

    With a pause of 3 until 58. With a timeout of 12 it is abandoned at 42, and the one due at 40 begins.
    """
    more = {"checkpoint_phase": 30, "checkpoint_interval": 10, "upload_time": 25, "until": 90}
    begun = simulate(queue(**more), trace=True)
    assert steps(begun, "triggered", "complete") == [(30, "1"), (55, "1"), (55, "2"), (80, "2"), (80, "3")]
    paused = simulate(queue(**more, min_pause=3), trace=True)
    assert steps(paused, "triggered") == [(30, "1"), (58, "2"), (86, "3")]
    abandoned = simulate(queue(**more, checkpoint_timeout=12), trace=True)
    assert steps(abandoned, "triggered") == [(30, "1"), (42, "2"), (54, "3"), (66, "4"), (78, "5"), (90, "6")]
    assert not steps(abandoned, "complete")


def test_the_next_trigger_is_one_interval_after_the_restart() -> None:
    """Due at 10, 20, 30. Crash at 24, ready at 30, restored at 33: the next ones are at 43 and 53."""
    run = simulate(queue((crash(24, restart=6),), checkpoint_interval=10, restore_time=3), trace=True)
    assert steps(run, "triggered") == [(10, "1"), (20, "2"), (43, "3"), (53, "4")]


def test_what_is_set_aside_is_let_go_when_a_snapshot_is_abandoned() -> None:
    """As above, a ──▶ p (1) ──▶ count (0) ◀── q (8) ◀── b: count waits from 19.5 to 23 for q's barrier;
    with a timeout of 2 it gives up at 21.5, and counts a's root of 21 then.
    """
    scenario = two_ways(0, checkpoint_phase=19.5, checkpoint_timeout=2, until=32)
    assert counted_at(scenario) == [11, 21.5, 23, 31]
    assert not steps(simulate(scenario, trace=True), "complete")


# -- the job fails as one ------------------------------------------------------------------------------------


def test_all_tasks_stop_and_what_passes_between_them_is_gone() -> None:
    """s ──▶ p (3) ──5──▶ count: roots leave p at 4, 7, 10, … and are 5 on the way. A crash of count at 10
    takes root 2 with it, which has just left, and root 1, which has not arrived; p stops, too. No snapshot:
    all eight are read again, from 12 on.

    The log does not lose what comes while the job is down, whatever ``while_down`` says (drop).
    """
    topology = {
        "s": spout(**EIGHT, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, 3, hosts=(0,)),
        "count": counts("p", hosts=(1,)),
    }
    links = Links(latency=ms(5), local=ms(0))
    lost = fault("lose_state", 10, component="count", restart=2)
    for hit in (crash(10, restart=2), lost, crash(10, "p", restart=2)):
        run = simulate(job(topology, (hit,), hosts=2, links=links), trace=True)
        assert counted(run) == [(0, 9), *((n, 12 + 3 * (n + 1) + 5) for n in range(8))]
        assert (run.ledger["lost"], run.ledger["duplicated"], run.ledger["in_flight"]) == (0, 0, 0)


def test_a_spout_that_crashes_only_stops_producing() -> None:
    """The spout is down from 4.5 to 6.5: the roots that it has sent are counted in time, the job goes on."""
    hit = crash(4.5, "s", restart=2)
    run = simulate(queue((hit,), checkpoint_phase=5, snapshot_time=2), trace=True)
    assert counted(run) == [(0, 4), (1, 7), *((n, 12 + 3 * (n - 2)) for n in range(2, 8))]
    assert run.recoveries[0]["replayed"] == 0
    assert run.recoveries[0]["state_recovery_s"] is None


def test_windows_come_once_and_in_full() -> None:
    """s ──▶ count (1) ──▶ total, windows of 20 ended by markers. Roots at 10, 20, …; a window has two of
    them.

    The snapshot of 15 is older than the windows of 20 and 40. After the crash at 45 both tasks emit them once
    more: total gets the counts of both again, for it went back too, and no window is wrong. Readers keep the
    windows that they have: the sink falls silent only until 60.
    """
    topology = {
        "s": spout(**ONES),
        "count": counts("s", 1, 20),
        "total": bolt("windowed_count", {"count": "global"}, 0, window={"length": 20 * MS}),
    }
    scenario = job(topology, (crash(45),), until=90, checkpoint_interval=30, checkpoint_phase=15)
    run = simulate(scenario, trace=True)
    quiet = simulate(scenario.model_copy(update={"failures": ()}), trace=True)
    mine, theirs = ({(row[0], row[3]): row[5] for row in one.trace.windows} for one in (run, quiet))
    assert mine == theirs
    assert [w for w in windows(run) if w[0] <= 2] != [w for w in windows(quiet) if w[0] <= 2]  # again, indeed
    assert run.windows == {"emitted": 8, "correct": 8, "wrong": 0, "missing": 0}
    assert run.recoveries[0]["output_gap_s"] == pytest.approx(0.020, abs=0.002)
    assert (run.ledger["duplicated"], run.recoveries[0]["extra"], run.recoveries[0]["missing"]) == (0, 0, 0)


def test_windows_are_open_again_until_they_are_put_out_once_more() -> None:
    """s ──▶ count (4), windows of 30 ended by markers. Root n is emitted at 10 (n + 1); by the crash at 100,
    before any snapshot, three windows are out, with roots 0 to 8. The job begins anew: roots 0, 1 and 2 are
    counted at 104, 108 and 112, and window 1 is put out again. Of the eleven roots at 115 the job has done
    three; readers have all three windows.
    """
    scenario = job({"s": spout(**ONES), "count": counts("s", 4, 30)}, (crash(100),), until=115)
    run = simulate(scenario, trace=True)
    assert windows(run) == [(1, 34, 3), (2, 64, 3), (3, 94, 3), (1, 112, 3)]
    assert run.windows == {"emitted": 3, "correct": 3, "wrong": 0, "missing": 0}
    balance = {name: run.ledger[name] for name in ("completed", "in_flight", "lost", "duplicated")}
    assert balance == {"completed": 3, "in_flight": 8, "lost": 0, "duplicated": 0}
    check(scenario)


# -- how long it takes ---------------------------------------------------------------------------------------


def catch_up(
    load: float, interval: float, into: float, down: float, *, stop_after: float = 1.1, **more: Any
) -> tuple[float | None, float]:
    """(catch_up_s, the law's) of a crash ``into`` of an interval after the third snapshot, in seconds.

    s, 200/s ──▶ count: D + r (E + D) / (C - r), with D = ``down``, of which a third is detection, and E the
    time since the trigger of the snapshot that the job goes back to.
    """
    topology = {"s": spout(**ONES | {"gap": 5}), "count": counts("s", 5 * load, 10**4 * FOREVER)}
    hit = fault(
        "crash_task", 3001 * interval, component="count", in_interval=into,
        detection=1000 * down / 3, restart=2000 * down / 3,
    )  # fmt: skip
    lost = more.pop("lost_intervals", 0)
    capacity = load / (1 - more.get("snapshot_time", 0) / 1000 / interval)  # as a part of what it is left
    law = down + capacity * ((into + lost) * interval + down) / (1 - capacity)
    until = 1000 * ((4 + into) * interval + stop_after * law + 3)
    run = simulate(job(topology, (hit,), until, checkpoint_interval=1000 * interval, **more))
    return run.recoveries[0]["catch_up_s"], law


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.floats(0.3, 0.95), st.floats(5, 60), st.floats(0.05, 1), st.floats(2, 40))
def test_law_of_recovery(load: float, interval: float, into: float, down: float) -> None:
    """Carbone et al., PVLDB 2017, section 4: what was read since the snapshot, and what came meanwhile, is
    worked off at what capacity the stream leaves. Free snapshots, one source, one bolt: within 2 %.
    """
    found, law = catch_up(load, interval, into, down)
    assert found == pytest.approx(law, rel=0.02)


@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.floats(0.3, 0.9), st.floats(5, 60), st.floats(0.05, 0.45), st.floats(2, 40), st.floats(0.01, 0.5))
def test_an_interrupted_snapshot_costs_an_interval(
    load: float, interval: float, into: float, down: float, more: float
) -> None:
    """The snapshot is durable only after the crash: the law holds with E = fT + T."""
    upload = 1000 * interval * (into + more)
    found, law = catch_up(load, interval, into, down, upload_time=upload, lost_intervals=1)
    assert found == pytest.approx(law, rel=0.02)


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(st.floats(0.65, 0.75), st.floats(2, 4), st.floats(0.2, 0.9), st.floats(15, 25), st.floats(0.08, 0.15))
def test_stalls_cost_capacity(load: float, interval: float, into: float, down: float, part: float) -> None:
    """A snapshot that keeps the task for a part x of the interval leaves C (1 - x). Where the recovery spans
    many intervals the law holds with that; the fault strikes when the last stall is over.

    The first trigger is one interval after the restart, and the last stall may or may not fall inside, or
    into the second for which the backlog must stay normal.
    """
    stall = part * interval
    found, law = catch_up(load, interval, into, down, snapshot_time=1000 * stall, stop_after=1.5)
    slack = 2 * stall / (1 - load / (1 - part)) + 1
    assert found == pytest.approx(law, abs=slack)
    free = down + load * (into * interval + down) / (1 - load)
    assert law - free > 2 * slack  # it could not be met without the stalls


# -- what its users say of it --------------------------------------------------------------------------------


def test_moments_in_the_interval() -> None:
    """The first moment at or after ``at`` that lies the fraction of a period after a beginning, 7 + 10 k."""
    cycle = queue(checkpoint_interval=10, checkpoint_phase=7).strategy.cycle()
    for at, part, moment in (
        *((0, 0.3, 10), (10, 0.3, 10), (10.1, 0.3, 20)),
        *((0, 1.0, 17), (17, 1.0, 17), (34, 0.5, 42)),
    ):
        hit = FAULTS["crash_task"](at=round(at * MS), in_interval=part, component="count")
        assert list(hit.moments(0, None, FOREVER * MS, cycle)) == [moment * MS]


WORD_COUNT = ("strategy.kind=aligned_snapshots", "strategy.checkpoint_interval=10 s")


def test_the_word_count_runs_under_it() -> None:
    """Its windows of 30 s, ended by ticks elsewhere, are ended by markers here; all are right."""
    scenario = load("wordcount", WORD_COUNT)
    assert topology_of(scenario).marker_length == 30_000 * MS
    run = simulate(scenario)
    assert run.windows == {"emitted": 8, "correct": 8, "wrong": 0, "missing": 0}
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


OTHER = "topology.other={bolt: windowed_count, from: {split: global}, service: 1 ms, window: 20 s}"
HALF = "failures.0.in_interval=0.5"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([*WORD_COUNT, OTHER], "must have one length; this strategy lets markers end all"),
        (["strategy.kind=none", HALF], "in_interval: none does nothing at regular intervals"),
        ([*WORD_COUNT, "failures.0.within=0 s", "failures.0.at=236 s", HALF],
         "in_interval: the first such moment is 245 s, not within the run"),
    ],
)  # fmt: skip
def test_bad_input_is_told(settings: list[str], says: str) -> None:
    """Windows of two lengths; a fraction of an interval that the strategy does not have, or the run."""
    with pytest.raises(ScenarioError, match=says):
        load("wordcount", settings)
    load("wordcount", [*WORD_COUNT, HALF])


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"upload_time": "12 s"}, "a snapshot takes up to 12.*longer than the interval"),
        ({"upload_time": "12 s", "checkpoint_timeout": "11 s"}, "checkpoint_timeout 11 s"),
        ({"snapshot_time": "11 s"}, "count: load 1.1"),  # stalls are part of it
    ],
)
def test_advice(times: dict[str, str], said: str) -> None:
    slow = load("wordcount", [*WORD_COUNT, *(f"strategy.{key}={value}" for key, value in times.items())])
    assert any(re.search(said, text) for text in warnings(slow))
    assert not warnings(load("wordcount", WORD_COUNT))


def test_what_a_crash_repeats_at_the_instant_of_the_last_replay_counts_for_the_crash_before() -> None:
    """s ──▶ p (3) ──▶ q ◀── s. The crash of 5 is over with root 4, which leaves p at 20. Until then q has
    read five roots again at 5 (latencies 0 to 4), had three as they came, and five from p (7, 9 … 15); the
    crash of 20 makes it read all eight again at that very instant (12 to 19).
    """
    topology = {
        "s": spout(**EIGHT),
        "p": bolt("forward", {"s": "shuffle"}, 3),
        "q": bolt("forward", {"p": "shuffle", "s": "shuffle"}),
    }
    scenario = job(topology, (crash(5, "p"), crash(20, "p")), 30)
    row = simulate(scenario).recoveries[0]
    assert row["latency_mean_ms"] == pytest.approx((10 + 55 + 124) / 21)
    check(scenario)
