"""Peers see the connections of a dead process closed: who notices, what fails on its slots, where tasks go.

Times in ms, in the worlds of test_detectors.py; those of the sample in seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import chain, crashed, lost
from tests.models.test_detectors import AT_ONCE, heard, job, moments, placed, rows
from tests.models.test_exactness import check
from tests.models.test_free_slots import found_on
from tests.models.traced import hosts_at_end, trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario, deployment_of
from tideover.models.detectors.base import ExponentialDelay, FailureRate, FixedDelay
from tideover.models.detectors.heartbeats import Heartbeats, process_name
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.simulation import simulate
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.draws import Draws
from tideover.sim.units import S

SLOW: dict[str, Any] = {"connection": ms(3), "failed_deployment": ms(2)}
"""Peers notice after 3; what is deployed on slots of the dead fails 2 later."""
TEN = FixedDelay(delay=10 * MS)


def refused(scenario: Scenario, dies: int, who: tuple[str, int, int], threshold: int = 2) -> list[int]:
    """When two give up a process that dies then (ns): who gives out slots asks it for a heartbeat each
    interval, and so does the job's master, each at a phase of its own; both count requests that fail.
    """
    detector = scenario.detector
    assert isinstance(detector, Heartbeats)
    draws = Draws(scenario.run.seed)
    names = process_name(deployment_of(scenario).cluster.worker_of[who]), "job master"
    found = []
    for phase in (detector.phase(draws, name) for name in names):
        requests = range(phase, dies + 10 * detector.interval, detector.interval)
        found.append([at for at in requests if at > dies][threshold - 1])
    return found


def dropped(scenario: Scenario, dies: int, who: tuple[str, int, int], threshold: int = 2) -> int:
    """When nothing is deployed on its slots any more (ns): one of the two tells the other, or the job."""
    return min(refused(scenario, dies, who, threshold))


def deployed(noticed: float, wait: float, fails: float, until: float) -> list[float]:
    """When restarts are, the last of them being the first that does not fail: at or after ``until``."""
    found = [noticed + wait]
    while found[-1] < until:
        found.append(found[-1] + fails + wait)
    return found


# -- restarts on slots of the dead ---------------------------------------------------------------------------


@pytest.mark.parametrize("of_a_job", [False, True])
@pytest.mark.parametrize("threshold", [1, 2])
def test_a_restart_on_slots_of_the_dead_is_a_failure_of_its_own(threshold: int, of_a_job: bool) -> None:
    """count dies at 30 and is noticed at 33; a restart waits 10, fails after 2, and so on until the slots are
    dropped. Then a process is launched in 6, and prepared in 9. If one request in vain is enough, that is
    sent within 20, which may be before 33: then that tells.
    """
    detector = heard(20, 50, 6, 9, restarts=TEN, rpc_failure_threshold=threshold, **SLOW)
    scenario = job((crashed(30, 0),), detector=detector)
    (row,) = simulate(scenario).recoveries if of_a_job else rows((crashed(30, 0),), detector)
    until = dropped(scenario, 30 * MS, ("count", 0, 0), threshold) / MS
    noticed = min(33, until)
    tried = deployed(noticed, 10, 2, until)
    assert moments(row) == pytest.approx((30, noticed, tried[-1], tried[-1] + 6, tried[-1] + 15))
    assert row["failed_restarts"] == len(tried) - 1 >= threshold - 1


def test_the_trace_says_which_restarts_have_failed() -> None:
    detector = heard(20, 50, restarts=TEN, rpc_failure_threshold=2, **SLOW)
    scenario = job((crashed(30, 0),), detector=detector)
    tried = deployed(33, 10, 2, dropped(scenario, 30 * MS, ("count", 0, 0)) / MS)
    failed = [step.at / MS for step in trace_of(scenario).steps if "restart failed" in step.what]
    assert failed == [at + 2 for at in tried[:-1]]


def test_without_a_threshold_only_silence_drops_the_slots() -> None:
    """It is silent from its last heartbeat on, at 10 or later: for 50."""
    detector = heard(20, 50, restarts=TEN, **SLOW)
    (silent,) = rows((crashed(30, 0),), heard(20, 50))
    (row,) = rows((crashed(30, 0),), detector)
    tried = deployed(33, 10, 2, moments(silent)[1])
    assert moments(row)[1:3] == pytest.approx((33, tried[-1]))


def test_silence_may_tell_before_connections_do() -> None:
    late = heard(20, 50, 6, 9, connection=ms(1000))
    (row,), (silent,) = rows((crashed(30, 0),), late), rows((crashed(30, 0),), heard(20, 50, 6, 9))
    assert moments(row) == moments(silent)


@pytest.mark.parametrize(
    ("restarts", "waits"),
    [
        (ExponentialDelay(initial=8 * MS, factor=2, most=64 * MS), (8, 16, 32, 64)),
        (FixedDelay(delay=8 * MS, attempts=2), (8, 8)),
        (FailureRate(delay=8 * MS, most_failures=2, within=500 * MS), (8, 8)),
    ],
)
@pytest.mark.parametrize("of_a_job", [False, True])
def test_failed_restarts_count_for_the_strategy(
    restarts: Any, waits: tuple[int, ...], of_a_job: bool
) -> None:
    """The next waits longer; or there is none, and the job is given up."""
    detector = heard(20, 50, restarts=restarts, **SLOW)
    failures = (crashed(30, 0),)
    (row,) = simulate(job(failures, detector=detector)).recoveries if of_a_job else rows(failures, detector)
    at, end = 33.0, moments(rows(failures, heard(20, 50))[0])[1]
    tried = []
    for wait in waits:
        tried.append(at + wait)
        at += wait + 2
    works = [moment for moment in tried if moment >= end]
    assert row["ready_at_s"] == (pytest.approx(works[0] / 1000) if works else None)
    assert row["failed_restarts"] == sum(moment < end for moment in tried)


def test_a_host_that_loses_power_closes_nothing() -> None:
    """Nor does it answer requests that they cannot reach it: silence alone tells, and nothing fails."""
    power = fault("crash_host", 30, host=2)
    closing = heard(20, 50, 6, 9, rpc_failure_threshold=1, **SLOW)
    (row,), (silent,) = rows((power,), closing), rows((power,), heard(20, 50, 6, 9))
    assert (moments(row), row["failed_restarts"]) == (moments(silent), 0)


@pytest.mark.parametrize("cut_off", [1, 0])
def test_who_is_cut_off_is_not_seen_to_die(cut_off: int) -> None:
    """The host of count is cut off from the listener from 20 to 40, or that of p is: count dies at 30."""
    cut = fault("partition", 20, hosts=(2 if cut_off else 1,), duration=20 * MS)
    detector = heard(20, 50, 6, 9, listener=0, **SLOW)
    _, row = rows((cut, crashed(30, 0)), detector)
    (silent,) = rows((crashed(30, 0),), heard(20, 50, 6, 9))
    assert moments(row)[1] == (moments(silent)[1] if cut_off else 33)


# -- a job, and its failures ---------------------------------------------------------------------------------


def test_another_failure_overtakes_a_restart_that_waits() -> None:
    """count dies at 30, which is noticed at 33: a restart would be deployed at 43. But p loses its state at
    40, and that restart is deployed at 50; it fails at 52, if the slots are not dropped by then, which they
    are by silence at 60 at the earliest: then that of 62 fails as well, at 64.
    """
    detector = heard(20, 50, restarts=TEN, **SLOW)
    scenario = job((crashed(30, 0), lost(40, "p")), detector=detector)
    tried = deployed(40, 10, 2, moments(rows((crashed(30, 0),), heard(20, 50))[0])[1])
    steps = [step.at / MS for step in trace_of(scenario).steps if "restart failed" in step.what]
    assert steps == [at + 2 for at in tried[:-1]]
    assert [row["ready_at_s"] for row in simulate(scenario).recoveries] == [
        pytest.approx(tried[-1] / 1000)
    ] * 2


def test_a_restart_is_overtaken_as_it_is_deployed() -> None:
    """It is deployed at 43, and would fail at 45; at 44 p loses its state. Nothing has failed by itself, and
    the next restart is deployed at 54.
    """
    detector = heard(20, 50, restarts=TEN, **SLOW)
    scenario = job((crashed(30, 0), lost(44, "p")), detector=detector)
    tried = deployed(44, 10, 2, moments(rows((crashed(30, 0),), heard(20, 50))[0])[1])
    steps = [step.at / MS for step in trace_of(scenario).steps if "restart failed" in step.what]
    assert steps == [at + 2 for at in tried[:-1]]


def test_a_restart_that_was_overtaken_launches_nobody() -> None:
    """The slots of count are dropped with the first request in vain, by 50. Its restart waits 30, until 60 at
    the earliest; at 59 p loses its state. So count is launched by the restart of 89, in 6, and prepared in 9.
    """
    detector = heard(20, 50, 6, 9, restarts=FixedDelay(delay=30 * MS), rpc_failure_threshold=1, **SLOW)
    _, row = simulate(job((crashed(30, 0), lost(59, "p")), detector=detector)).recoveries
    assert moments(row) == pytest.approx((59, 59, 89, 95, 104))


def test_a_job_is_noticed_with_the_first_of_its_processes() -> None:
    """The hosts of both bolts lose power at 30. Without `connection` that is noticed when both are missed;
    with it when the first is, and restarts fail until the other is.
    """
    power = (fault("crash_rack", 30, rack=0),)
    detector = heard(20, 50, restarts=FixedDelay(delay=MS), connection=ms(3), failed_deployment=ms(2))
    scenario = placed(job(power, detector=detector), s=0, p=1, count=2)
    silent = [moments(rows((crashed(30, 0, name),), heard(20, 50))[0])[1] for name in ("p", "count")]
    tried = deployed(min(silent), 1, 2, max(silent))
    steps = [step.at / MS for step in trace_of(scenario).steps if "restart failed" in step.what]
    assert steps == pytest.approx([at + 2 for at in tried[:-1]])
    assert len(tried) > 1


TRIES = FixedDelay(delay=8 * MS)
CLOSING = {
    "closed": heard(20, 50, 6, 9, restarts=TRIES, rpc_failure_threshold=2, **SLOW),
    "replaced": heard(20, 50, 0, 9, restarts=TRIES, replacement=ms(40), **SLOW),
}


@pytest.mark.parametrize("failures", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("detector", CLOSING.values(), ids=CLOSING)
def test_the_engine_equals_the_reference_when_failures_come_together(
    detector: Any, failures: tuple[Any, ...]
) -> None:
    check(placed(job(failures, 200, detector), s=0, p=1, count=1))


# -- where tasks go ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait", "registers"), [(10, 40), (90, 40)])
def test_a_restart_waits_for_the_process_that_registers(wait: int, registers: int) -> None:
    """count is missed by silence at N, and a restart ordered at N + wait; another process has registered at
    30 + 40, whatever is ordered. Tasks are prepared from the later of both on.
    """
    detector = heard(20, 50, 0, 9, restarts=FixedDelay(delay=wait * MS), replacement=ms(registers))
    (row,), (silent,) = rows((crashed(30, 0),), detector), rows((crashed(30, 0),), heard(20, 50))
    ordered = moments(silent)[1] + wait
    launched = max(ordered, 30 + registers)
    assert moments(row)[2:] == pytest.approx((ordered, launched, launched + 9))


@pytest.mark.parametrize("snapshots", [False, True], ids=["alone", "with the job"])
def test_slots_of_the_dead_count_until_who_gives_slots_out_has_given_it_up(snapshots: bool) -> None:
    """count dies at 30, and another process has registered at 35. The job's master may give the dead one up
    before who gives out slots does: then the restart is ordered, and waits.
    """
    detector = heard(20, 50, 0, 9, restarts=TEN, rpc_failure_threshold=2, replacement=ms(5), **SLOW)
    waits = set()
    for seed in range(12):
        found = job if snapshots else chain
        found = found((crashed(30, 0),), 400).model_copy(update={"detector": detector})
        scenario = found.model_copy(update={"run": found.run.model_copy(update={"seed": seed})})
        freed, told = (at / MS for at in refused(scenario, 30 * MS, ("count", 0, 0)))
        ordered = deployed(33, 10, 2, min(freed, told))[-1]
        (row,) = simulate(scenario).recoveries
        launched = max(ordered, freed)
        assert moments(row)[2:] == pytest.approx((ordered, launched, launched + 9))
        waits.add(freed > ordered)
        check(scenario)
    assert waits == {False, True}


def test_it_registers_when_its_host_is_repaired() -> None:
    broken = fault("crash_host", 30, host=2, repair=300 * MS)
    (row,) = rows((broken,), heard(20, 50, 0, 9, replacement=ms(40)), until=600)
    assert moments(row)[3:] == pytest.approx((370, 379))


FIRST = {"its process": crashed(30, 0), "its host": fault("crash_host", 30, host=2, repair=60 * MS)}


@pytest.mark.parametrize("registers", [None, 40])
@pytest.mark.parametrize("snapshots", [False, True], ids=["alone", "with the job"])
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_nothing_is_launched_on_a_host_that_fails_meanwhile(
    first: Any, snapshots: bool, registers: int | None
) -> None:
    """What is dead waits for its order, which comes at 60 or later, and for its host, which crashes at 50 and
    is repaired at 350; 6 later it runs.
    """
    more = {} if registers is None else {"replacement": ms(registers)}
    found = job if snapshots else chain
    found = found((first, fault("crash_host", 50, host=2, repair=300 * MS)), 600)
    scenario = found.model_copy(update={"detector": heard(20, 50, 6, 9, **more)})
    check(scenario)
    row, _ = simulate(scenario).recoveries
    assert row["ready_at_s"] * 1000 == pytest.approx(350 + (registers or 0) + 6 + 9)


DIES = fault("crash_worker", 100, host=1)


def test_tasks_of_a_dead_process_go_to_a_spare_one() -> None:
    """p's process dies at 100, on a host that lives; it is missed 40 later. Host 2 has a process that waits
    for tasks: it has them at once, and p is back after the 20 of its launch.
    """
    scenario = found_on(DIES, slots=1, replacement=ms(90))
    (row,) = simulate(scenario).recoveries
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 2}
    assert row["ready_at_s"] == pytest.approx((100 + 40 + 20) / 1000, abs=2e-6)


def test_without_a_spare_process_they_wait_for_the_one_that_registers() -> None:
    """Host 2 is down from 50 on, and host 0's slot is taken: p's own is replaced at 190."""
    scenario = found_on(fault("crash_host", 50, host=2, repair=500 * MS), DIES, slots=1, replacement=ms(90))
    _, row = simulate(scenario).recoveries
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1}
    assert row["ready_at_s"] == pytest.approx((190 + 20) / 1000, abs=2e-6)


def test_a_host_whose_process_is_dead_has_no_slots() -> None:
    """q's process, on host 2, dies at 90: q gets the slot that host 0 has. p's dies at 100: host 2 has no
    task any more, but nobody has registered there before 180, and the slots of host 0 are taken.
    """
    scenario = found_on(fault("crash_worker", 90, host=2), DIES, slots=2, replacement=ms(90))
    q = bolt("forward", {"p": "shuffle"}, 1, hosts=(2,))
    scenario = scenario.model_copy(update={"topology": scenario.topology | {"q": q}})
    of_q, of_p = simulate(scenario).recoveries
    assert hosts_at_end(scenario) == {"s.0": 0, "p.0": 1, "q.0": 0}
    assert of_q["ready_at_s"] == pytest.approx((90 + 40 + 20) / 1000, abs=2e-6)
    assert of_p["ready_at_s"] == pytest.approx((190 + 20) / 1000, abs=2e-6)


# -- one that was seen ---------------------------------------------------------------------------------------


def killed_task_manager(spare: int, seed: int) -> Scenario:
    """A log; a source and a count of three tasks each: two of each on one TaskManager, one of each on
    another. Each has slots for four; ``spare``: so many others wait. Heartbeats are requested each 2 s, a
    restart waits 1 s, another TaskManager has registered 9.4 s after the kill, tasks need 3.1 s then.
    """
    topology = {
        "log": spout(gap=100, hosts=(0,)),
        "source": bolt("forward", {"log": "shuffle"}, 1, parallelism=3, hosts=(1, 1, 2)),
        "count": bolt("forward", {"source": "fields"}, 1, parallelism=3, hosts=(1, 1, 2)),
    }
    machines = {"log": MachineType(count=1, slots=1), "taskmanager": MachineType(count=2 + spare, slots=4)}
    killed = fault("crash_worker", 10_000, host=1)
    found = world(topology, "none", (killed,), 25_000, hosts=Hosts(machines=machines))
    detector = Heartbeats(
        interval=2 * S,
        timeout=10 * S,
        connection=ms(330),
        rpc_failure_threshold=2,
        failed_deployment=ms(65),
        replacement=ms(9400),
        prepare=ms(3100),
        restart_on="free_slot",
        restarts=FixedDelay(delay=S, attempts=100),
    )
    run = found.run.model_copy(update={"seed": seed})
    snapshots = AlignedSnapshots(checkpoint_interval=2 * S)
    return found.model_copy(update={"detector": detector, "run": run, "strategy": snapshots})


def as_in_the_sample() -> int:
    """A seed with which who gives out slots gives up the dead between 2.6 and 3 s after the kill, as it did,
    at 2.8 s, and the job's master not before.
    """
    for seed in range(100):
        freed, told = refused(killed_task_manager(0, seed), 10 * S, ("count", 0, 0))
        if 12.6 * S < freed < min(13 * S, told):
            return seed
    raise AssertionError


@pytest.mark.parametrize(("spare", "launched"), [(0, 9.4), (1, 3.46)])
def test_the_double_restart_of_a_killed_task_manager(spare: int, launched: float) -> None:
    """Flink 2.3.0 on one machine: noticed after 0.33 s by the closed connection; restarts after 1.4 and
    2.5 s failed (here those of 0.33 + 1 = 1.33 s, and of 1.33 + 0.065 + 1 = 2.395 s, each 0.065 s later). The
    TaskManager was "no longer reachable" after 2.8 s; the next restart (here of 3.46 s) found half of the
    slots that it needed, and waited for those of the TaskManager that registered after 9.4 s; all ran after
    12.5 s. With another TaskManager in reserve it would not have waited. Tasks get slots one by one, each
    where the fewest are.
    """
    scenario = killed_task_manager(spare, as_in_the_sample())
    found = simulate(scenario, trace=True)
    (row,) = found.recoveries
    failed = [step.at / S - 10 for step in found.trace.steps if "restart failed" in step.what]
    assert failed == pytest.approx([1.395, 2.46])
    assert row["failed_restarts"] == 2
    stages = (row["detect_s"], row["delay_s"], row["launch_s"], row["prepare_s"])
    assert stages == pytest.approx((0.33, 3.46 - 0.33, launched - 3.46, 3.1))
    assert row["ready_at_s"] == pytest.approx(10 + launched + 3.1)
    assert found.ledger["lost"] == 0
    hosts = hosts_at_end(scenario)
    places = [hosts[f"{name}.{task}"] for name in ("source", "count") for task in range(3)]
    assert places == ([3, 3, 2, 2, 3, 2] if spare else [2, 2, 2, 1, 1, 2])


# -- in a scenario -------------------------------------------------------------------------------------------


def test_only_where_a_restart_may_fail_results_say_how_many_did() -> None:
    (row,) = rows((crashed(30, 0),), heard(20, 50))
    assert "failed_restarts" not in row


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("rpc_failure_threshold: 2", "rpc_failure_threshold needs connection: give 0 s if peers notice"),
        ("connection: 0 s, rpc_failure_threshold: 0", "detector.rpc_failure_threshold"),
    ],
)
def test_what_cannot_be_is_refused(keys: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        load("wordcount", [f"detector={{kind: heartbeats, {keys}}}"])
