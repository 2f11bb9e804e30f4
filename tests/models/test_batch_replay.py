"""Micro-batches that keep no state: what is read again, and what is promised of it. Times in milliseconds.

The small world is that of `tests.models.test_micro_batch`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import counted, windows
from tests.models.test_exactness import FEW, SHARED, check
from tests.models.test_micro_batch import batches, driver_lost, executor_lost, query, run, whole
from tests.oracle.random_settings import fixed
from tests.oracle.random_settings import going_on as counts_that_go_on
from tests.oracle.random_windows import batch_event_windows, sliding_windows
from tests.oracle.random_windows import windows as plain_windows
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models import conformance
from tideover.models.advice import warnings
from tideover.models.config import Scenario, deployment_of
from tideover.models.job.components import BoltConfig
from tideover.models.operators.base import Stateful
from tideover.models.operators.kinds import RunningCount
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.sim.registry import kind_of


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


def going_on(scenario: Scenario, name: str = "count") -> Scenario:
    """The same with a count that goes on with what its windows have put out."""
    config = scenario.topology[name]
    assert isinstance(config, BoltConfig)
    assert isinstance(config.bolt, Stateful)
    more = config.model_copy(update={"bolt": RunningCount(window=config.bolt.window)})
    return scenario.model_copy(update={"topology": scenario.topology | {name: more}})


def test_a_count_that_goes_on_is_made_again_from_the_beginning() -> None:
    """Windows of 200; host 0 dies at 362. The sums of the first window are in those of the second: all 36
    tuples are read again in the batch of 365. p.0 has host 1 until 370 + 46; p.1 runs on host 0, which is
    back at 415, until 425, and count.0 there until 425 + 10 + 72 + 4.
    """
    lost = (executor_lost(362, restart=50),)
    scenario = going_on(query(lost, until=630, window=200, recovery="replay", recovery_time=0))
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
    lost = (executor_lost(362, restart=50),)
    scenario = going_on(query(lost, until=500, window=200, recovery="replay", recovery_time=0))
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


@pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])
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
    assert done.trace is not None
    assert [sums for *_, at, sums in done.trace.windows if at == 105 * MS] == pairs
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    assert (done.windows["wrong"] > 0) == (tasks == 2)
    assert promise(scenario) == ("at least once" if tasks == 2 else "exactly once")
    assert any("windows by tuple" in remark for remark in warnings(scenario)) == (tasks == 2)


@pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])
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


def without_state(**more: Any) -> Strategy:
    times = {"trigger_interval": 10**9, "task_time": 50 * MS, "commit_time": 30 * MS}
    return STRATEGIES["micro_batch"].model_validate({"recovery": "replay"} | times | more)


LONG = (conformance.keeps_its_promise, conformance.conserves_roots)
CHECKS = [
    pytest.param(check, id=check.__name__, marks=[pytest.mark.long] * (check in LONG))
    for check in conformance.CHECKS
]


@pytest.mark.parametrize("one", CHECKS)
def test_it_keeps_its_promise(one: Any) -> None:
    one(without_state())


@pytest.mark.parametrize(
    "one", [conformance.survives_without_failures, conformance.survives_during_its_steps]
)
def test_it_keeps_its_promise_to_a_count_that_goes_on(one: Any) -> None:
    one(without_state(), RunningCount)


# -- promise against result, in any world --------------------------------------------------------------------


def promise_is_kept(scenario: Scenario) -> None:
    """After faults of kinds that it survives, if the run is exact without them."""
    survived = tuple(fault for fault in scenario.failures if kind_of(fault) in scenario.strategy.survives)
    quiet, done = (
        simulate(scenario.model_copy(update={"failures": failures})) for failures in ((), survived)
    )
    if quiet.windows["wrong"] or quiet.windows["missing"] or quiet.ledger["lost"]:
        return  # windows of tuples are others than without batches, or what comes late is in none
    assert done.ledger["lost"] == 0
    if promise(scenario) == "exactly once":
        whole(done)


@st.composite
def any_world(draw: st.DrawFn, recovery: str) -> Scenario:
    endings = draw(st.sampled_from((plain_windows, sliding_windows, batch_event_windows)))
    more = st.one_of(worlds(("micro_batch",), endings), overlapping(("micro_batch",)))
    return draw(fixed(st.one_of(more, more.map(counts_that_go_on)), recovery=(recovery,)))


@pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])
@pytest.mark.parametrize("how", [FEW, pytest.param(SHARED, marks=pytest.mark.long)], ids=["few", "many"])
def test_the_promise_is_kept(how: settings, recovery: str) -> None:
    how(given(any_world(recovery))(promise_is_kept))()
