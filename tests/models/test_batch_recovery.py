"""Batches after a failure: what is read again, computed again or run again, what is promised of it, and how
what has waited is worked off. Times in milliseconds.

The small world is that of `tests.models.test_micro_batch`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import counted, windows
from tests.models.test_exactness import SHARED, check, few_and_many
from tests.models.test_micro_batch import TIMES, batches, driver_lost, executor_lost, query, run, whole
from tests.oracle.random_changes import fixed
from tests.oracle.random_changes import going_on as counts_that_go_on
from tests.oracle.random_worlds import batch_event_windows, overlapping, sliding_windows, worlds
from tests.oracle.random_worlds import windows as plain_windows
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario, deployment_of, if_nothing_fails, timed
from tideover.models.job.arrivals import Day, Periodic
from tideover.models.operators.kinds import RunningCount
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws
from tideover.sim.faults import FAULTS
from tideover.sim.registry import kind_of

S = 1000 * MS


def history_of(done: Replication) -> Any:
    """The batches that were committed."""
    return done.world.job.context.runner.history


RECOVERIES = pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])


def test_without_checkpoints_the_window_is_read_again() -> None:
    """Windows of 200: that of 200 shows with the batch of 200, at 261. Host 0 dies at 362, with the ten
    tuples of the batch of 300 in the state; it is noticed at 365: the query begins without state, on host 1,
    and reads all of the window that is not finished: the 16 tuples of 210 … 360 in one batch.

    p.0 and p.1 one after the other until 406, count.0 (nothing is to be loaded) until 452; host 0 is back at
    415, and takes count.1.
    """
    done = run((executor_lost(362, restart=50),), until=520, window=200, recovery="replay", recovery_time=0)
    assert batches(done)[2] == (365, 454, 457, 16)
    whole(done)
    (recovery,) = done.recoveries
    assert recovery["ready_at_s"] == 0.365
    assert recovery["replayed"] == 20  # those that had been read before, by p.0 and by count.0
    assert recovery["state_recovery_s"] == pytest.approx(0.454 - 0.365)
    assert recovery["restored"] == 0


@pytest.mark.parametrize("at", range(95, 175, 5))
@pytest.mark.parametrize("kill", [executor_lost, driver_lost])
def test_without_checkpoints_no_window_is_wrong(at: int, kill: Any) -> None:
    whole(run((kill(at, restart=37),), until=900, window=200, recovery="replay"))


# -- what a partition holds up -------------------------------------------------------------------------------


def cut(at: float, until: float) -> Any:
    return fault("partition", at, hosts=(0,), others=(1,), duration=round((until - at) * MS))


def test_a_task_that_is_cut_off_from_what_it_reads_waits() -> None:
    """Hosts 0 and 1 are cut off from 110 to 150. p.0 and p.1 have ended by 125; count.0 reads p.1, too, and
    begins at 150: until 150 + 10 + 20 + 4. Nothing is on a wire, and nothing comes after its batch.
    """
    scenario = query((cut(110, 150),), until=260)
    done = simulate(scenario, trace=True)
    assert counted(done) == [(n, 186) for n in range(10)]
    assert batches(done) == [(100, 186, 189, 10)]
    check(scenario)


def test_one_that_has_begun_has_read_all() -> None:
    """The same from 130 to 200: count.0, launched at 125, ends as ever. The batch is out at 161, with the
    marker that p.1 hands on from the other side.
    """
    done = run((cut(130, 200),), window=100)
    assert counted(done) == [(n, 161) for n in range(10)]
    assert [w for w in windows(done) if w[2]] == [(1, 161, 10)]


def test_what_waits_for_a_partition_is_given_up_with_its_batch() -> None:
    """The task p.0 fails at 140, and the query starts at once: at 145, with 14 tuples. p.0 ends at 150 + 24;
    the network has healed by then, and count.0 ends at 174 + 10 + 28 + 4. What had waited does not come
    as well.
    """
    lost = fault("crash_task", 140, component="p")
    scenario = query((cut(110, 150), lost), until=225, recovery="replay")
    done = simulate(scenario, trace=True)
    assert counted(done) == [(n, 218) for n in range(14)]
    whole(done)
    check(scenario)


# -- from where it is read again -----------------------------------------------------------------------------


def going_on(until: float) -> Scenario:
    """A count that goes on with what its windows of 200 have put out; host 0 dies at 362."""
    lost = (executor_lost(362, restart=50),)
    scenario = query(lost, until=until, window=200, recovery="replay", recovery_time=0)
    config = scenario.topology["count"]
    more = config.model_copy(update={"bolt": RunningCount(window=config.bolt.window)})
    return scenario.model_copy(update={"topology": scenario.topology | {"count": more}})


def test_a_count_that_goes_on_is_made_again_from_the_beginning() -> None:
    """The sums of the first window are in those of the second: all 36
    tuples are read again in the batch of 365. p.0 has host 1 until 370 + 46; p.1 runs on host 0, which is
    back at 415, until 425, and count.0 there until 425 + 10 + 72 + 4.
    """
    scenario = going_on(until=630)
    done = simulate(scenario, trace=True)
    assert batches(done)[2] == (365, 513, 516, 36)
    assert [w for w in windows(done) if w[2]] == [(1, 261, 20), (1, 513, 20), (2, batches(done)[3][1], 40)]
    whole(done)
    check(scenario)


def test_windows_of_two_sorts_are_put_out_again_from_the_beginning() -> None:
    """One bolt counts windows of 400 that slide by 200, another those of 200: tuples that the first needs
    once more are in no window of the other that is open. So all windows come again, and nothing is there
    twice.
    """
    base = query((executor_lost(730, restart=50),), until=1500, window=200, recovery="replay")
    slides = {"length": 400 * MS, "slide": 200 * MS}
    more = {"slow": bolt("windowed_count", {"p": "fields"}, 0, hosts=(1,), window=slides)}
    scenario = base.model_copy(update={"topology": base.topology | more})
    done = simulate(scenario)
    whole(done)
    assert done.windows["emitted"] == 3 * 7
    check(scenario)


def test_windows_that_come_again_are_open_until_then() -> None:
    """The window of 200, at 261, is of the beginning, which is read again after 362: until 513 of all roots
    nothing is counted, though readers have the window.
    """
    scenario = going_on(until=500)
    done = simulate(scenario)
    assert (done.ledger["completed"], done.ledger["in_flight"], done.ledger["duplicated"]) == (0, 50, 0)
    assert done.windows == {"emitted": 2, "correct": 2, "wrong": 0, "missing": 0}
    check(scenario)


# -- what is promised ----------------------------------------------------------------------------------------


def promise(scenario: Scenario) -> str:
    return scenario.strategy.promises_in(deployment_of(scenario).topology)


def in_twos(recovery: str, tasks: int, failures: tuple[Any, ...] = ()) -> Scenario:
    """s ──fields──▶ p (in ``tasks``) ──▶ count    windows of two tuples. Root n, at 10 (n + 1), has the key n
    mod 2; a batch each 20, which takes no time.
    """
    topology = {
        "s": spout("keys", 10, keys=2, order="in_turn", hosts=(2,)),
        "p": bolt("forward", {"s": "fields"}, parallelism=tasks, hosts=(0, 1)[:tasks]),
        "count": bolt("windowed_count", {"p": "global"}, hosts=(0,), window={"tuples": 2}),
    }
    times = {"trigger_interval": 20 * MS}
    return world(topology, "micro_batch", failures, 195, hosts=3, recovery=recovery, **times)


@RECOVERIES
@pytest.mark.parametrize("tasks", [1, 2])
def test_what_is_in_a_window_of_tuples_depends_on_the_batches(recovery: str, tasks: int) -> None:
    """A batch of two tuples is a window with both keys. The driver is down from 65 to 105: the batch after
    that has roots 6 to 9 (all up to 9, without checkpoints), those of p.0 first, so that its windows are
    others. With one p they come in the order of the log, and it makes no difference.
    """
    scenario = in_twos(recovery, tasks, (driver_lost(65, restart=40),))
    done = simulate(scenario, trace=True)
    order = sorted(range(0 if recovery == "replay" else 6, 10), key=lambda root: root % tasks)
    pairs = [Counter(root % 2 for root in order[i : i + 2]) for i in range(0, len(order), 2)]
    assert [sums for *_, at, sums in done.trace.windows if at == 105 * MS] == pairs
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    assert (done.windows["wrong"] > 0) == (tasks == 2)
    assert promise(scenario) == ("at least once" if tasks == 2 else "exactly once")
    assert any("windows by tuple" in remark for remark in warnings(scenario)) == (tasks == 2)


@RECOVERIES
def test_what_is_in_no_window_is_put_out_again_by_a_replay(recovery: str) -> None:
    """p is the last bolt: the ten tuples of the batch of 100 have left at 127, and it is committed at 130.
    The driver dies at 131. A query that knows nothing of that reads them again, and puts them out again.
    """
    base = query((driver_lost(131),), until=290, recovery=recovery)
    scenario = base.model_copy(update={"topology": {name: base.topology[name] for name in ("s", "p")}})
    ledger = simulate(scenario).ledger
    assert (ledger["lost"], ledger["duplicated"]) == (0, 10 if recovery == "replay" else 0)
    assert promise(scenario) == ("at least once" if recovery == "replay" else "exactly once")
    assert any("puts out again" in remark for remark in warnings(scenario)) == (recovery == "replay")
    check(scenario)


@RECOVERIES
def test_what_is_put_out_when_a_tuple_comes_can_be_ahead_of_a_late_marker(recovery: str) -> None:
    """a, b ──▶ pairs (two tuples) ──▶ count (100)    a batch each 50, which takes no time.

    Roots come from a alone, at 20, 40 … 200. Pairs are full at 40, 80, 120, 160 and 200: two of them before
    the markers of 100, and three then. b is down from 95 to 135, and so is its marker of 100: the pair of 120
    is ahead of it, and in the first window. From one task of a spout its marker comes in its place.
    """
    b_dies = fault("crash_task", 95, component="b", restart=40)
    sums = {}
    for ups in (("a",), ("a", "b")):
        topology = {
            "a": spout("values", 20, values=(1,), repeat=True),
            "b": spout("values", 1000, values=(1,)),
            "pairs": bolt("windowed_count", dict.fromkeys(ups, "global"), window={"tuples": 2}),
            "count": bolt("windowed_count", {"pairs": "global"}, window={"length": 100 * MS}),
            "of_b": bolt("windowed_count", {"b": "global"}, window={"length": 100 * MS}),
        }
        keys = {"recovery": recovery, "trigger_interval": 50 * MS}
        scenario = world(topology, "micro_batch", (b_dies,), 310, **keys)
        done = simulate(scenario, trace=True)
        sums[ups] = [sum(row[5].values()) for row in done.trace.windows if row[0] == "count"][:2]
        assert (done.windows["wrong"] > 0) == (len(ups) > 1)
        assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
        assert promise(scenario) == ("at least once" if len(ups) > 1 else "exactly once")
        assert any("count: windows of time" in remark for remark in warnings(scenario)) == (len(ups) > 1)
        promise_is_kept(scenario)
        check(scenario)
    assert sums == {("a",): [4, 6], ("a", "b"): [6, 4]}


@RECOVERIES
def test_what_is_put_out_with_a_batch_can_be_behind_a_marker(recovery: str) -> None:
    """s ──▶ count (10 s of events) ──▶ again (1000)    a batch each 100, which takes no time.

    Events of 1, 12, 13, 14 and 15 s at 300, 600 … 1500. The batch of 900 puts out what has ended by 12 s: in
    the first window of `again`. The driver is down from 850 to 1050, and the batch of 1050 has the marker of
    1000, too: all that it puts out is behind that.
    """
    arrivals = Periodic(pause=300 * MS, fixed_offset=0)
    keys = {"arrivals": arrivals, "recovery": recovery, "trigger_interval": 100 * MS}
    lost = (driver_lost(850, restart=200),)
    base = of_events((1, 12, 13, 14, 15), lost, 2400, {"watermark_interval": 100 * MS}, **keys)
    more = {"again": bolt("windowed_count", {"count": "global"}, window={"length": S})}
    scenario = base.model_copy(update={"topology": base.topology | more})
    quiet, done = (
        simulate(each, trace=True) for each in (scenario.model_copy(update={"failures": ()}), scenario)
    )
    first, second = (
        {row[3]: row[5] for row in run.trace.windows if row[0] == "again"} for run in (quiet, done)
    )
    assert (first[1], second[1], second[2]) == ({0: 1}, {}, {0: 1})
    assert (quiet.windows["wrong"], done.windows["wrong"]) == (0, 2)
    assert promise(scenario) == "at least once"
    promise_is_kept(scenario)
    check(scenario)


def of_events(
    stamps: tuple[float, ...], failures: tuple[Any, ...], until: float, window: dict[str, Any], **more: Any
) -> Scenario:
    """s ──▶ count, in windows of 10 s of events. Root n has the event ``stamps[n]`` (s), and the bit n."""
    arrivals, bits = more.pop("arrivals"), tuple(1 << n for n in range(len(stamps)))
    told = tuple(round(stamp * S) for stamp in stamps)
    event = {"by": "event", "length": 10 * S} | window
    topology = {
        "s": spout("values", values=bits, stamps=told, arrivals=arrivals),
        "count": bolt("windowed_count", {"s": "fields"}, window=event),
    }
    return world(topology, "micro_batch", failures, until, **more)


def counts_of(done: Replication) -> list[tuple[int, int]]:
    """(number, sum) of each window, in order."""
    return [(number, sum(sums.values())) for *_, number, _, sums in sorted(done.trace.windows)]


@RECOVERIES
def test_which_events_are_late_depends_on_the_batches(recovery: str) -> None:
    """Events of 1, 12, 9, 31, 32 and 50 s at 60, 120 … 360; a batch each 100, which takes no time; lag 1 s.
    That of 200 has 12 s and 9 s, so both are in time: the watermark moves to 11 s behind it. The driver is
    down from 95 to 150, and the batch of 150 has 1 s and 12 s: in that of 200 9 s is late, and in no window.
    With a lag of 4 s, which is how much later than newer ones an event comes, it makes no difference.
    """
    gap = Periodic(pause=60 * MS, fixed_offset=0)
    more = {"arrivals": gap, "recovery": recovery, "trigger_interval": 100 * MS}
    for lag, first, late in ((1, 0b001, 1), (4, 0b101, 0)):
        scenario = of_events(
            (1, 12, 9, 31, 32, 50), (driver_lost(95, restart=55),), 1500, {"lag": lag * S}, **more
        )
        quiet = simulate(scenario.model_copy(update={"failures": ()}), trace=True)
        done = simulate(scenario, trace=True)
        assert counts_of(quiet) == [(1, 0b101), (2, 0b010)]
        assert counts_of(done) == [(1, first), (2, 0b010)]
        assert (quiet.ledger["late"], done.ledger["late"]) == (0, late)
        assert (done.windows["wrong"], done.ledger["duplicated"]) == (late, 0)
        assert promise(scenario) == "exactly once"
        promise_is_kept(scenario)
        check(scenario)


def test_what_is_wrong_at_that_time_of_day_is_so_without_the_failure() -> None:
    """Roots come at 10 … 60, until noon; then nothing does. Events of 12 and 9 s are both in the
    batch of 20, where neither is late; a task that looks each 10 finds that 9 s is. So the window of 10 s,
    which is put out with the batch of 40, has more than the twin's, be the driver lost at noon or not. If its
    failure is left out of a scenario with ``fails_at`` the run begins at noon itself, and has no window.
    """
    morning = Day(by_hour=(0.0,) * 11 + (1.0,) + (0.0,) * 12, peak=100, interpolation="steps")
    lost, often = (driver_lost(60, restart=5),), {"watermark_interval": 10 * MS}
    stamps = (12, 9, 31, 32, 33, 34)
    base = of_events(stamps, lost, 150, often, arrivals=morning, trigger_interval=20 * MS)
    scenario = base.model_copy(update={"run": base.run.model_copy(update={"fails_at": "12:00"})})
    done = simulate(scenario, trace=True)
    assert counts_of(done) == [(1, 0b10), (2, 0b01)]
    assert (done.windows["wrong"], done.wrong_without) == (1, 1)
    quiet = simulate(if_nothing_fails(scenario, Draws(scenario.run.seed)), trace=True)
    assert (counts_of(quiet), quiet.windows["wrong"]) == (counts_of(done), 1)
    promise_is_kept(scenario)
    check(scenario)


# -- promise against result, in any world --------------------------------------------------------------------


def promise_is_kept(scenario: Scenario) -> None:
    """After faults of kinds that it survives, if the run is exact without them: at the same time of day, and
    for longer, as a failure can bring a window out earlier. Events that are late are in none of these.
    """
    scenario = timed(scenario, Draws(scenario.run.seed))
    survived = tuple(fault for fault in scenario.failures if kind_of(fault) in scenario.strategy.survives)
    longer = scenario.run.model_copy(update={"duration": 2 * scenario.run.duration})
    quiet = simulate(scenario.model_copy(update={"failures": (), "run": longer}))
    done = simulate(scenario.model_copy(update={"failures": survived}))
    wrong = quiet.windows["wrong"] + quiet.windows["missing"]
    if wrong or quiet.ledger["late"] or quiet.ledger["lost"]:
        return  # windows are others than without batches, or what comes late is in none
    late = done.ledger["late"]
    assert done.ledger["lost"] <= late
    if promise(scenario) == "exactly once":
        assert done.ledger["duplicated"] == 0
        if not late:
            whole(done)


@st.composite
def any_world(draw: st.DrawFn, recovery: str) -> Scenario:
    endings = draw(st.sampled_from((plain_windows, sliding_windows, batch_event_windows)))
    more = st.one_of(worlds(("micro_batch",), endings), overlapping(("micro_batch",)))
    return draw(fixed(st.one_of(more, more.map(counts_that_go_on)), recovery=(recovery,)))


@RECOVERIES
@few_and_many(many=SHARED)
def test_the_promise_is_kept(how: settings, recovery: str) -> None:
    how(given(any_world(recovery))(promise_is_kept))()


# -- jobs that are run again, held to what Hadoop does -------------------------------------------------------

# A job begins at 100 with ten tuples, p.0 and p.1 work from 105, count.0 and count.1 from 125, the committer
# has moved the results at 161.


def job(*failures: Any, until: float = 240, **more: Any) -> Replication:
    scenario = query(failures, until)
    strategy = STRATEGIES["batch_rerun"](**{name: round(t * MS) for name, t in TIMES.items()}, **more)
    return simulate(scenario.model_copy(update={"strategy": strategy}), trace=True)


def test_nothing_is_to_be_seen_before_the_end() -> None:
    """All of the results are there at 161, and none before."""
    assert counted(job(until=195)) == [(n, 161) for n in range(10)]
    assert counted(job(until=160)) == []


FAILED = fault("crash_task", 130, component="count", restart=20)


@pytest.mark.parametrize(
    ("failure", "retry", "moved"),
    [
        # noticed at 113, the job begins anew at 118, with the same input, on host 1: p.0 until 138, p.1 until
        # 148, count.0 until 182, count.1 until 196
        (executor_lost(110), "job", 198),
        # p.0 and count.0 alone: as under micro_batch
        (executor_lost(110), "task", 191),
        # the next master, of 160, begins the job again at 165
        (driver_lost(110), "job", 221),
        # states are read again, too
        (driver_lost(110), "task", 227),
        # it may run from 150 on: the job begins again at 155
        (FAILED, "job", 211),
        # count.0 alone
        (FAILED, "task", 186),
    ],
)
def test_the_job_again_or_some_tasks(failure: Any, retry: str, moved: float) -> None:
    """Host 0 dies, or the master, which takes the job with it, or the task count.0 fails."""
    done = job(failure, retry=retry)
    assert counted(done) == [(n, moved) for n in range(10)]
    whole(done)


@pytest.mark.parametrize(
    "other",
    [
        *(executor_lost(at, detection=80) for at in (110, 112, 115)),
        fault("crash_task", 110, component="count", restart=80),
    ],
)
def test_a_new_master_waits_for_nobody(other: Any) -> None:
    """The master dies at 112, and the next one, of 120, has new executors. That host 0 has died before, at
    that instant, or since then, would be noticed at 190 or later; count.0 would be back at 190. But the job
    begins again at 125: p.0 until 145, count.0 until 179.
    """
    done = job(driver_lost(112, restart=8), other, until=195)
    assert counted(done) == [(n, 181) for n in range(10)]
    whole(done)


def test_between_two_jobs_there_is_nothing_to_run_again() -> None:
    """Host 0 dies at 170; the next job, of 200, is run on host 1 alone: p.0 and p.1 until 235, count.0 until
    269, count.1 until 283.
    """
    done = job(executor_lost(170), until=295)
    assert counted(done)[10:] == [(n, 285) for n in range(10, 20)]
    assert done.ledger["replayed"] == 0


@pytest.mark.parametrize("at", range(95, 175, 3))
@pytest.mark.parametrize("retry", ["job", "task"])
def test_no_failure_disturbs_a_window(at: int, retry: str) -> None:
    whole(job(driver_lost(at, restart=37), executor_lost(at + 60, restart=90), until=900, retry=retry))


def test_what_nobody_feels_ends_no_recovery() -> None:
    """Host 0 dies at 1000, with s and the work of p.0, of 3 s, which is not done again by the end; whether or
    not that host is slow at 2300, which has nothing to do with batches. The backlog is the usual one.
    """
    found = []
    for others in ((), (fault("slow_host", 2300, host=0, duration=50 * MS, factor=0.5),)):
        scenario = query((executor_lost(1000, restart=20), *others), until=2500)
        topology = scenario.topology | {"s": scenario.topology["s"].model_copy(update={"hosts": (0,)})}
        times = {name: round(t * MS) for name, t in (TIMES | {"task_time": 3000}).items()}
        changes = {"topology": topology, "strategy": STRATEGIES["batch_rerun"](**times)}
        found.append(simulate(scenario.model_copy(update=changes)).recoveries)
    (alone,), (first, other) = found
    assert first == alone
    assert alone["time_to_recover_s"] is None
    assert other["time_to_recover_s"] == 0


def test_law_of_running_again() -> None:
    """A job of length L is begun anew at each failure, which come at rate 1/m: it ends after m (e^(L/m) - 1)
    on average (A. Duda, *The Effects of Checkpointing on Program Execution Time*, 1983, without
    checkpoints). Here L = m = 1 s, so 1.718 s; the standard deviation is sqrt(e^2 - 2 e - 1) = 0.976 s, of
    the mean of 300 runs 0.056 s.
    """
    runs, length = 300, 1000
    topology = {
        "s": spout("values", 400, 500, values=(1,)),
        "count": bolt("windowed_count", {"s": "shuffle"}, 0, window={"length": 10**6 * MS}),
    }
    dies = FAULTS["crash_task"](component="driver", every=Exponential(mean=length * MS))
    settings = {"trigger_interval": length * MS, "task_time": length * MS}
    scenario = world(topology, "batch_rerun", (dies,), 15_000, **settings)
    found = [simulate(scenario, number, trace=True) for number in range(runs)]
    took = [when - 1000 for done in found for _, when in counted(done)]
    assert len(took) == runs
    assert sum(took) / runs == pytest.approx(1000 * (math.e - 1), abs=2.5 * 56)


# -- how a query works off what has waited while its driver was dead: batch by batch, by recursion -----------

GAP, COUNT, WINDOW = 4 * MS, 3_600_000, 30 * S
"""A tuple every 4 ms, 3.6 ms to count it: a load of 0.9; a marker ends each window."""
TIMES_OF_A_BATCH = PLAN, TASK, OUTPUT, COMMIT, RELOAD, RECOVERY, COLD = tuple(
    n * MS for n in (20, 10, 5, 10, 200, 1500, 800)
)
KILLED, BACK, END = 60 * S + 350 * MS, 70 * S + 350 * MS, 200 * S


def waiting(after: int, until: int) -> tuple[int, int]:
    """Tuples and markers that come in this time, its end included, without its beginning."""
    return until // GAP - after // GAP, until // WINDOW - after // WINDOW


def recursion(interval: int) -> list[tuple[int, int, int, int]]:
    """(trigger, shown, committed, tuples) of each batch: it takes what has come since the one before it was
    triggered, and the next begins when it is committed, on the grid if it was in time.

    What was logged when the driver died is run again, without a plan, with a load and cold.
    """
    found = []
    now = read = 0
    again: int | None = None
    dies, late = True, 0
    while now <= END:
        tuples, markers = waiting(read, now) if again is None else (again, 0)
        ends = now
        if tuples or markers:
            shown = now + (PLAN if again is None else 0) + late + TASK + tuples * COUNT + OUTPUT
            ends = shown + COMMIT
        if dies and ends >= KILLED:
            dies, late = False, COLD + RELOAD
            if ends > now and now + PLAN < KILLED:
                again, read = tuples, now
            now = BACK + RECOVERY
            continue
        if ends > now:
            read = now if again is None else read
            found.append((now, shown, ends, tuples))
            again, late = None, 0
        now = max(ends, (now // interval + 1) * interval)
    return [batch for batch in found if batch[2] <= END]


@pytest.mark.parametrize("interval_ms", [500, 1000, 5000])
def test_a_new_driver_catches_up_batch_by_batch(interval_ms: int) -> None:
    """s ──▶ count. Ten seconds wait, and one batch takes them all; from then on each has what came during the
    one before, a tenth less, until one ends in time again.
    """
    topology = {
        "s": spout("keys", keys=1, arrivals=Periodic(pause=GAP, fixed_offset=0)),
        "count": bolt("windowed_count", {"s": "shuffle"}, COUNT / MS, window={"length": WINDOW}),
    }
    killed = fault("crash_task", KILLED / MS, component="driver", restart=(BACK - KILLED) / MS)
    named = zip(
        ("plan", "task", "output", "commit", "reload", "recovery", "cold"), TIMES_OF_A_BATCH, strict=True
    )
    times = {"trigger_interval": interval_ms * MS} | {f"{name}_time": time for name, time in named}
    done = simulate(world(topology, "micro_batch", (killed,), END / MS, **times), trace=True)
    history = [(b.triggered, b.visible, b.committed, b.tuples) for b in history_of(done)]
    assert history == recursion(interval_ms * MS)
    assert max(b[3] for b in history) > (BACK - KILLED) / GAP


# -- D-Streams: states that are lost are computed again, by all executors, from the newest that was saved ----

# s ──▶ count, in as many tasks as there are keys. Ten tuples come for each key in a second. Executors have
# one core and LOST tasks each; nothing takes time but tuples.

LOST = 6
"""States on the executor that dies."""


def lineage(executors: int, work: float, kill: float, interval: float, until: float) -> list[Any]:
    """Those that were committed, if the first executor dies after ``kill`` s, and a tuple takes ``work`` ms;
    triggers come each ``interval`` s, states are saved each 60 s.
    """
    tasks = LOST * executors
    of_each = {"parallelism": tasks, "hosts": tuple(task // LOST for task in range(tasks))}
    count = bolt("windowed_count", {"s": "fields"}, work, window={"length": 10**6 * MS}, **of_each)
    s = spout("keys", gap=100 / tasks, keys=tasks, order="in_turn", hosts=(executors,))
    times = {"trigger_interval": round(interval * S), "checkpoint_interval": 60 * S}
    where = {"hosts": executors + 1, "recovery": "lineage"}
    dies = fault("crash_host", 1000 * kill, host=0, restart=10**6)
    topology = {"s": s, "count": count}
    done = simulate(world(topology, "micro_batch", (dies,), 1000 * until, **times, **where), trace=True)
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    return history_of(done)


@pytest.mark.parametrize("others", [1, 2, 3, 6])
def test_law_of_parallel_recovery(others: int) -> None:
    """States were saved in the batch of 60 s. The executor dies at 115, after those of 70 ... 110: five, of
    100 tuples for each task. In the batch of 120 each of the others works off its own 6 tasks, and 6 /
    others of those that were lost, each with six batches: what it takes longer falls in proportion to
    their number.
    """
    (batch,) = (b for b in lineage(others + 1, 1, 115, 10, 125) if b.triggered == 120 * S)
    assert batch.visible - batch.triggered == (6 + 6 * 6 // others) * 100 * MS


@pytest.mark.parametrize("others", [3, pytest.param(6, marks=pytest.mark.long)])
def test_law_of_catching_up(others: int) -> None:
    """At a load of 0.5 the executor dies before the batch of 120; 59 batches of 1 s have come since its
    states were saved. Of N executors N - 1 are left, with N / 2 to do for what comes, and the rest of
    their time for 59 / 2 s of lost work: from 120 on it takes 0.5 * 59 / (N - 1 - N / 2) s, known to an
    interval. For many executors that is load / (N (1 - load)) of the time since the states were saved: M.
    Zaharia et al., SOSP 2013, section 3.3.
    """
    load = 0.5
    history = lineage(others + 1, 100 * load / LOST, 119.9, 1, 180)
    late = [b for b in history if b.committed - b.triggered > S and b.triggered >= 120 * S]
    closed_form = load * 59 / (others - load * (others + 1))
    assert late[-1].committed / S - 120 == pytest.approx(closed_form, abs=1)
