"""Micro-batches, held to what Spark does. Times in milliseconds, unless a name says otherwise.

The small world of most tests:

    s ──▶ p.0, p.1 (1 a tuple) ──▶ count.0, count.1 (2 a tuple)     p.i and count.i on host i, s on 2

Root n is emitted at 10 (n + 1); all tuples go to p.0 and, by their key, to count.0. Triggers every 100; plan
5, a task 10 besides its tuples, a state 4 to commit and 6 to load, output 2, commit 3. So the batch of ten
tuples that is triggered at 100 is logged at 105, p.0 ends at 125, count.0 at 159, the sink has it at 161, and
it is committed at 164.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES, counted, windows
from tests.models.test_long_runs import figures, figures_if_always_settled
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Periodic
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load

TIMES: dict[str, float] = {
    "trigger_interval": 100,
    "plan_time": 5,
    "task_time": 10,
    "state_time": 4,
    "output_time": 2,
    "commit_time": 3,
    "reload_time": 6,
    "locality_wait": 8,
    "resubmit_time": 7,
    "recovery_time": 5,
}
OTHERS = (
    "poll_interval",
    "state_cost",
    "reload_cost",
    "executor_cold",
    "state_cold",
    "worker_cold",
    "cold_time",
)
FIRST = [(n, 161) for n in range(10)]
"""(root, when) of the first batch, if nothing fails."""


def query(failures: tuple[Any, ...] = (), until: float = 195, window: float = 1000, **more: Any) -> Scenario:
    """The small world."""
    topology = {
        "s": spout(**ONES, hosts=(2,)),
        "p": bolt("forward", {"s": "global"}, 1, parallelism=2, hosts=(0, 1)),
        "count": bolt(
            "windowed_count",
            {"p": "fields"},
            2,
            parallelism=2,
            hosts=(0, 1),
            window={"length": round(window * MS)},
        ),
    }
    times = TIMES | {name: more.pop(name) for name in (*TIMES, *OTHERS) if name in more}
    return world(
        topology,
        "micro_batch",
        failures,
        until,
        hosts=3,
        **{name: round(time * MS) for name, time in times.items()},
        **more,
    )


def run(failures: tuple[Any, ...] = (), until: float = 195, **more: Any) -> Replication:
    return simulate(query(failures, until, **more), trace=True)


def executor_lost(at: float, host: int = 0, detection: float = 3, restart: float = 1000) -> Any:
    return fault("crash_host", at, host=host, detection=detection, restart=restart)


def driver_lost(at: float, restart: float = 50) -> Any:
    return fault("crash_task", at, component="driver", restart=restart)


def whole(done: Replication) -> None:
    """Nothing is lost, nothing counted twice."""
    ledger = done.ledger
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"]
    assert (ledger["lost"], ledger["duplicated"]) == (0, 0)
    assert done.windows["wrong"] == done.windows["missing"] == 0


def batches(done: Replication) -> list[tuple[float, float, float, int]]:
    """(trigger, in the sink, committed, tuples) of each batch."""
    history = done.world.job.context.runner.history
    return [(b.triggered / MS, b.visible / MS, b.committed / MS, b.tuples) for b in history]


def at(moment: float, roots: range = range(10)) -> list[tuple[int, float]]:
    """(root, when), if all of these are counted then."""
    return [(n, moment) for n in roots]


def steady(rate: float, interval: float, *services: float) -> Replication:
    """20 s of evenly spaced roots into bolts with these services, the last of which counts."""
    up, topology = "s", {"s": spout("keys", keys=1, arrivals=Periodic(rate=rate, fixed_offset=0))}
    for service in services[:-1]:
        topology["p"], up = bolt("forward", {up: "shuffle"}, service), "p"
    topology["count"] = bolt("windowed_count", {up: "shuffle"}, services[-1], window={"length": 10**6 * MS})
    times = TIMES | {"trigger_interval": interval}
    times = {name: round(time * MS) for name, time in times.items()}
    return simulate(world(topology, "micro_batch", (), 20_000, **times), trace=True)


# -- batch after batch ---------------------------------------------------------------------------------------


def test_a_batch_shows_at_one_instant() -> None:
    """The batches of 100 and 200: everything between 0 and 100 shows at 161, the next at 261."""
    done = run(until=290)
    assert counted(done) == FIRST + at(261, range(10, 20))
    assert batches(done) == [(100, 161, 164, 10), (200, 261, 264, 10)]
    whole(done)


def test_a_batch_that_overran_is_followed_at_once() -> None:
    """Triggers every 40: the batch of 40 has 4 tuples, takes 5 + 14 + 22 + 2 + 3 and ends at 86; the trigger
    of 80 has passed, so the next begins at 86 (with 50 … 80), ends at 132, and the third has 5 tuples.
    """
    done = run(until=185, trigger_interval=40)
    assert batches(done) == [(40, 83, 86, 4), (86, 129, 132, 4), (132, 178, 181, 5)]


def test_back_to_the_grid() -> None:
    """A trigger that comes late does not move the later ones: a driver that starts at 110 takes 11 tuples at
    once, is done at 183, and goes on with the trigger of 200.
    """
    done = run((driver_lost(30, restart=75),), until=290)
    assert [b[0] for b in batches(done)] == [110, 200]


def test_an_idle_driver_looks_again() -> None:
    """Without an interval, an empty log is looked at every 15: at 0 and 15 (root 0, of 10, is taken then).

    That batch takes 5 + 11 + 16 + 2 + 3 and ends at 52, with roots 1 to 4 in the log: the next begins.
    """
    done = run(until=110, trigger_interval=0, poll_interval=15)
    assert batches(done)[:2] == [(15, 49, 52, 1), (52, 95, 98, 4)]


def test_windows_end_with_the_batch_that_holds_their_end() -> None:
    """Marker 1 of 100 is in the batch of 100, with all before it: the window shows with it, at 161."""
    done = run(until=290, window=100)
    assert [w for w in windows(done) if w[2]] == [(1, 161, 10), (2, 261, 10)]
    whole(done)


def test_rows_of_state_take_time() -> None:
    """One key: one row in count.0 after the batch, which takes 5 more."""
    assert counted(run(state_cost=5)) == at(166)


@pytest.mark.parametrize("rate", [200.0, 700.0])
def test_law_of_the_batch(rate: float) -> None:
    """Interval I longer than a batch: each takes F + r I c, and tuples have waited uniformly long for it,
    from 0 to I less one period.

    c = 0.3 (0.1 at p, 0.2 at count); F = 5 + 2 x 10 + 4 + 2 to the sink.
    """
    interval, cost, fixed = 1.0, 0.0003, 0.031
    done = steady(rate, 1000 * interval, 0.1, 0.2)
    lasted = fixed + rate * interval * cost
    for triggered, visible, _, tuples in batches(done)[1:]:
        assert tuples == rate * interval
        assert (visible - triggered) / 1000 == pytest.approx(lasted)
    found = done.latency.summary(1e9)
    assert found["mean"] == pytest.approx((interval - 1 / rate) / 2 + lasted, rel=1e-5)
    assert found["max"] == pytest.approx(interval - 1 / rate + lasted, rel=1e-5)


@pytest.mark.parametrize("rate", [200.0, 1000.0])
def test_law_of_batches_without_an_interval(rate: float) -> None:
    """A batch takes what came during the one before: its duration d = F + r d c has the fixed point
    F / (1 - r c).
    """
    done = steady(rate, 0, 0.5)
    lasted = [committed - triggered for triggered, _, committed, _ in batches(done)[20:]]
    fixed, left = 5 + 10 + 4 + 2 + 3, 1 - rate * 0.0005
    # a batch has whole tuples, so it is off by the cost of one, and so is the next by a part of that
    assert sum(lasted) / len(lasted) == pytest.approx(fixed / left, abs=0.5 / left)


# -- an executor is lost -------------------------------------------------------------------------------------


def test_executor_lost_in_the_first_stage() -> None:
    """At 110 p.0 runs on host 0; noticed at 113; host 1 is busy with p.1 until 115; p.0 again, until 135.
    count.1 has its state there and runs until 149; count.0 has waited until 143 for its executor, goes to
    host 1 at 149, loads its state, and ends at 189.
    """
    done = run((executor_lost(110),))
    assert counted(done) == at(191)
    whole(done)
    (recovery,) = done.recoveries
    assert recovery["detected_at_s"] == recovery["ready_at_s"] == 0.113  # host 1 takes over
    assert recovery["state_recovery_s"] == pytest.approx(0.191 - 0.113)
    assert (recovery["replayed"], done.ledger["replayed"]) == (10, 10)
    assert recovery["restore_s"] == pytest.approx(0.149 + 0.006 - 0.113)


@pytest.mark.parametrize(
    ("failures", "more", "when"),
    [
        # count.0 runs on host 0. It is free to go elsewhere from 133, and host 1 from 139; what p.0 has left
        # for it died with host 0: 7 later p.0 runs again, 146 to 166, and count.0 after it, with a load
        ([executor_lost(130)], {"until": 240}, 208),
        # count.1 runs on host 1, and p.1 has left (nothing) for it there. count.0 has read all that it needs
        # and goes on until 159; then p.1 is run again after 7, and count.1 after it: 166, 176, and 20 more
        ([executor_lost(130, host=1)], {"until": 240}, 198),
        # both die; host 1 is back at 140, and runs p.0 until 160, p.1 until 170, count.0 (load, 34) until
        # 210, count.1 (load, 14) until 230
        ([executor_lost(110), executor_lost(110, host=1, restart=27)], {"until": 240}, 232),
        # the copy of a state is lost before: it is loaded
        ([fault("lose_state", 50, component="count")], {}, 167),
        # count.0 fails at 130, and may run from 150 on, where it was: until 184
        ([fault("crash_task", 130, component="count", restart=20)], {}, 186),
        # the first batch of a new driver is cold: with 100 of warming up, what was 227 (see below) is 327
        ([driver_lost(110)], {"until": 340, "cold_time": 100}, 327),
    ],
    ids=["last stage", "read already", "both", "lost copy", "task", "cold driver"],
)
def test_when_the_first_batch_is_there(failures: list[Any], more: dict[str, Any], when: float) -> None:
    done = run(tuple(failures), **more)
    assert counted(done)[:10] == at(when)
    whole(done)


def test_a_stopped_executor_ends_later() -> None:
    """Host 0 is stopped from 130 to 150: count.0 ends at 179. Nobody notices, nothing runs again."""
    done = run((fault("pause", 130, component="count", duration=20 * MS),))
    assert counted(done) == at(181)
    assert done.ledger["replayed"] == 0


def test_a_lost_copy_of_a_state_is_loaded_by_the_next_batch() -> None:
    """count.0, which loses it at 130, runs on."""
    done = run((fault("lose_state", 130, component="count"),), until=290)
    assert counted(done) == FIRST + at(267, range(10, 20))
    assert done.recoveries[0]["restored"] == 10


def test_executor_lost_between_output_and_commit() -> None:
    """At 162 the sink has the batch: it is committed at 164. The next finds one executor: p.0 and p.1 one
    after the other, 205 to 235; count.1 until 249; count.0 with a load until 289.
    """
    done = run((executor_lost(162),), until=295)
    assert batches(done) == [(100, 161, 164, 10), (200, 291, 294, 10)]
    whole(done)


def test_a_state_stays_where_it_was_loaded() -> None:
    """As before, but host 0 is back at 265, without state: from then on it runs p.0, and both counts run on
    host 1, count.1 until 339 and count.0, without a load, until 373.
    """
    done = run((executor_lost(162, restart=100),), until=395)
    assert [b[1] for b in batches(done)] == [161, 291, 375]


def test_a_new_executor_is_cold() -> None:
    """The same, but p.0, the first task on the new executor, takes 50 more."""
    done = run((executor_lost(162, restart=100),), until=440, executor_cold=50)
    assert [b[1] for b in batches(done)] == [161, 291, 425]


@pytest.mark.parametrize(
    ("moment", "cold", "visible"),
    [(110, {}, 201), (110, {"worker_cold": 30}, 231), (130, {"worker_cold": 30}, 227)],
)
def test_a_worker_ends_with_its_task(moment: float, cold: dict[str, float], visible: float) -> None:
    """Host 1 is lost; 3 later the query starts anew, on host 0 alone: p.0, p.1, count.0, count.1. At 110 both
    p were stopped: 118 + (10 + 11) + 10 + (14 + 22) + 14 + 2, and the new p.0 waits for a worker. At 130 they
    had ended: 138 + (10 + 13) + 10 + (14 + 26) + 14 + 2.
    """
    lost = executor_lost(moment, host=1)
    done = run((lost,), until=290, recovery="replay", recovery_time=0, executor_cold=50, **cold)
    assert batches(done)[0][1] == visible
    whole(done)


def test_a_state_comes_before_the_worker() -> None:
    """As at 110 before, but host 1 is back at 175, and count.1, from 179 on, is the first task there: it
    waits for the process (50 - 30) and its state (20), and p.1 of the next batch, from 243 on, for the worker
    alone.
    """
    lost = executor_lost(110, host=1, restart=62)
    cold = {"executor_cold": 50, "worker_cold": 30, "state_cold": 20}
    done = run((lost,), until=360, recovery="replay", recovery_time=0, **cold)
    assert batches(done)[:2] == [(113, 235, 238, 11), (238, 323, 326, 12)]


# -- the driver is lost --------------------------------------------------------------------------------------


def test_driver_lost_before_the_range_was_logged() -> None:
    """At 103: up again at 153, it has read its logs at 158, and its first batch takes all until then."""
    done = run((driver_lost(103),), until=250)
    # 15 tuples: 5 + 25 + (6 + 10 + 30 + 4) + 2
    assert counted(done) == at(240, range(15))
    whole(done)


def test_driver_lost_after_the_range_was_logged() -> None:
    """At 110: from 165 on the same ten tuples are run again, without a plan, with loads: 20 + 40 + 2; what
    came meanwhile is in the batch after it, whose trigger, of 200, has passed at 230.
    """
    done = run((driver_lost(110),), until=330)
    first, second = batches(done)[:2]
    assert first == (165, 227, 230, 10)
    assert (second[0], second[3]) == (230, 13)
    assert counted(done)[:10] == at(227)
    whole(done)


def test_driver_lost_between_output_and_commit() -> None:
    """At 162 the sink has the batch, and its window, but no log says so: both come again at 279. The window
    is void then, and no tuple counts twice.
    """
    done = run((driver_lost(162),), until=285, window=100)
    assert counted(done)[:20] == FIRST + at(279)
    assert [w for w in windows(done) if w[2]] == [(1, 161, 10), (1, 279, 10)]
    whole(done)
    assert done.windows["emitted"] == 2  # of count.0 and of count.1
    assert done.ledger["replayed"] == 10


def test_a_window_that_may_be_taken_back_is_not_settled() -> None:
    """At 261 the window of 150 shows, with roots 0 to 14. At 262 its batch is taken back, and the window is
    open again: the first ten are in the state, the others, and what has come since, wait in the log. Nothing
    is there twice.
    """
    lost = query((driver_lost(262),), until=263.5, window=150)
    ledger = simulate(lost).ledger
    assert (ledger["completed"], ledger["in_flight"], ledger["duplicated"]) == (10, 16, 0)
    assert figures_if_always_settled(lost) == figures(lost)


def test_what_will_be_filtered_out_is_not_settled_while_it_waits() -> None:
    """No tuple gets as far as count: nothing of its root is missing, and yet it is in the log."""
    nothing = query(until=250)
    holder = bolt("filter", {"s": "global"}, 1, parallelism=2, hosts=(0, 1), keep=0.0)
    nothing = nothing.model_copy(update={"topology": nothing.topology | {"p": holder}})
    assert figures_if_always_settled(nothing) == figures(nothing)


@pytest.mark.parametrize("at", range(95, 175, 3))
def test_no_driver_failure_disturbs_a_window(at: int) -> None:
    whole(run((driver_lost(at, restart=37),), until=900, window=100))


# -- what is measured ----------------------------------------------------------------------------------------


def test_silence_of_a_sink_that_gets_updates() -> None:
    """Every batch is an output: at 161, then, as the driver was lost at 203, at 340."""
    done = run((driver_lost(203),), until=395, output_mode="update")
    (recovery,) = done.recoveries
    shown = [b[1] for b in batches(done)]
    assert shown == [161, 340]
    assert recovery["output_gap_s"] == pytest.approx(0.340 - 0.161)


def test_catch_up_compares_peaks() -> None:
    """Batches of 43 have 14 tuples in the system when they end. The executor dies at 1130, so that of 1100
    ends at 1184, with 18; the next, with both counts on one host, at 1248, again with 14. The backlog is as
    before from 1184 on, known to a slot.
    """
    lost = executor_lost(1130, restart=40)
    done = run((lost,), until=4000, task_time=1)
    (recovery,) = done.recoveries
    assert [b[1] for b in batches(done) if b[0] in (1100, 1200)] == [1184, 1248]
    assert recovery["catch_up_s"] * 1000 == pytest.approx(1184 - 1130, abs=20)


def test_a_batch_takes_so_many_tuples_at_most() -> None:
    """Four of the ten that wait at 100: p.0 ends at 105 + 14, count.0 at 141, the sink has them at 143. Then
    four of the sixteen that wait at 200, and so on: one trigger, one batch.
    """
    done = run(max_offsets_per_trigger=4, until=395)
    assert counted(done) == [(n, 143 + 100 * (n // 4)) for n in range(12)]
    assert counted(run(max_offsets_per_trigger=10)) == counted(run())


def test_who_reads_gets_a_share_of_the_cap_by_what_waits_there() -> None:
    """At 100 nine tuples of a wait with p, and one of b with q. Of five p has 5 x 9 / 10 = 4.5, which is 4,
    and q 0.5, which is 1, so that it does not starve.
    """
    topology = {
        "a": spout("values", 11, values=(1,), repeat=True),
        "b": spout("values", 95, values=(1,), repeat=True),
        "p": bolt("forward", {"a": "shuffle"}),
        "q": bolt("forward", {"b": "shuffle"}),
    }
    batched = {"trigger_interval": 100 * MS, "max_offsets_per_trigger": 5}
    done = simulate(world(topology, "micro_batch", (), 150, **batched), trace=True)
    assert [row[0] for row in done.trace.processed if row[6] <= 150 * MS].count("p") == 4
    assert [row[0] for row in done.trace.processed].count("q") == 1


def test_law_of_a_cap_after_an_outage() -> None:
    """The driver is lost at 50, and triggers at 1055, when 105 tuples wait. A batch of n is out after 31 + 3n
    (the first 6 later, by a load) and committed 3 later. All of them at once are out at 1407. By 20, the
    first are at 1152, and the last of the 105, in the sixth batch, at 1622: sooner first, later in the end.
    """
    lost = (driver_lost(50, restart=1000),)
    at_once, by_20 = run(lost, until=1640), run(lost, until=1640, max_offsets_per_trigger=20)
    assert counted(at_once)[:105] == [(n, 1055 + 31 + 3 * 105 + 6) for n in range(105)]
    assert counted(by_20)[:120] == [(n, 1152 + 94 * (n // 20)) for n in range(120)]
    for done in (at_once, by_20):
        whole(done)


def test_what_the_log_has_deleted_counts_in_the_cap_and_is_lost() -> None:
    """The same outage, and a log that keeps what is not older than 655. Of the 105 at 1055 those of before
    400 are lost: 39. By 20 the first 20 are lost then, 20 at 1100 (of before 445), 14 at 1200, 4 at 1300.
    """
    lost = (driver_lost(50, restart=1000),)
    for cap, gone in ((None, {*range(39)}), (20, {*range(54), *range(60, 64)})):
        done = run(lost, until=1990, retention=655 * MS, max_offsets_per_trigger=cap)
        assert {*range(100)} - {n for n, _ in counted(done)} == gone
        ledger = done.ledger
        assert (ledger["lost"], ledger["duplicated"]) == (len(gone), 0)
        assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"] + len(gone)


def test_the_peak_of_a_log_counts_nothing_that_it_has_deleted() -> None:
    """At 1055 there are the 66 of 400 to 1050, and two end markers of the window. They are planned by 1060,
    served by 1136 and 1288, and committed at 1293: by then 24 more have come.
    """
    done = run((driver_lost(50, restart=1000),), until=1990, retention=655 * MS)
    assert done.cost["peak_buffered_tuples"] == 66 + 2 + 24


def test_remarks() -> None:
    """100 tuples/s: p.0 needs 0.1 s of a second, the count that has the only key 0.2 s. A batch of 40 takes
    34 + 0.3 x 40. With a tuple every 1.9 both stages need more than half of the time. A driver is
    lost where there is none.
    """
    assert warnings(query()) == []
    (slow,) = warnings(query(trigger_interval=40))
    assert "takes about 0.046 s" in slow
    crowded = query().model_copy(update={"topology": query().topology | {"s": spout(**ONES, gap=1.9)}})
    assert ["without end" in remark for remark in warnings(crowded)] == [True]
    other = query((driver_lost(50),)).with_strategy(STRATEGIES["none"].model_validate({}))
    assert any("no driver" in remark for remark in warnings(other))
    (few,) = warnings(query(max_offsets_per_trigger=9))
    assert few.startswith("max_offsets_per_trigger 9: about 10 tuples come in a trigger_interval of 0.1 s")


def test_bad_input() -> None:
    """A component may not be called driver; a pause is not detected."""
    text = {
        "name": "x",
        "topology": {
            "s": {"spout": "sentences", "rate": "10/s"},
            "driver": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms"},
        },
        "strategy": {"kind": "micro_batch"},
        "run": {"duration": "1 s"},
    }
    with pytest.raises(ScenarioError, match="stands for the driver"):
        load(text)
    text["topology"]["p"] = text["topology"].pop("driver")
    text["failures"] = [
        {"kind": "pause", "component": "p", "at": "0.5 s", "duration": "1 s", "detection": "1 s"}
    ]
    with pytest.raises(ScenarioError, match="duration alone"):
        load(text)
    text["failures"] = []
    text["strategy"] = {"kind": "micro_batch", "recovery": "replay", "max_offsets_per_trigger": 5}
    with pytest.raises(ScenarioError, match="which reads all at once"):
        load(text)
    text["strategy"] = {"kind": "micro_batch", "executor_cold": "1 s", "worker_cold": "1.5 s"}
    with pytest.raises(ScenarioError, match=r"worker_cold \(1.5 s\) is a part of executor_cold \(1 s\)"):
        load(text)
