"""Detection is an event: heartbeats, what a timeout makes of them, and the stages of a restart. Times in ms.

The small world: s ──▶ p (1) ──▶ count (1), as in the tests of R+SM.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.models.chain import chain, crashed, lost
from tests.models.test_exactness import check
from tests.models.traced import trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.base import Earlier, ExponentialDelay, FailureRate, FixedDelay
from tideover.models.detectors.consumer_group import ConsumerGroup
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.models.strategies.aligned_snapshots import AlignedSnapshots
from tideover.models.strategies.base import STRATEGIES
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.sim.units import S

STAGES = ("detect_s", "delay_s", "launch_s", "prepare_s", "restart_s")


def heard(interval: float, timeout: float, launch: float = 0, prepare: float = 0, **more: Any) -> Heartbeats:
    """A detector, in ms."""
    times = {"interval": round(interval * MS), "timeout": round(timeout * MS)}
    return Heartbeats(**times, launch=ms(launch), prepare=ms(prepare), **more)


def rows(failures: tuple[Any, ...], detector: Heartbeats, until: float = 400) -> Any:
    return simulate(chain(failures, until).model_copy(update={"detector": detector})).recoveries


def placed(scenario: Scenario, **hosts: int) -> Scenario:
    """The same, with each component on its host."""
    old = scenario.topology
    topology = {name: old[name].model_copy(update={"hosts": (host,)}) for name, host in hosts.items()}
    return scenario.model_copy(update={"topology": topology})


def moments(row: dict[str, Any]) -> tuple[float, ...]:
    """Struck, noticed, ordered, launched, prepared."""
    found = [row["failed_at_s"]]
    for stage in STAGES[:-1]:
        found.append(found[-1] + row[stage])
    assert row["restart_s"] == 0
    assert found[1] == pytest.approx(row["detected_at_s"])
    assert found[4] == pytest.approx(row["ready_at_s"])
    return tuple(round(moment * 1000, 6) for moment in found)


DETECTOR = heard(20, 50, 6, 9)


def first_restart() -> tuple[float, ...]:
    """Of count, which dies at 30."""
    (row,) = rows((crashed(30, 0),), DETECTOR)
    return moments(row)


def test_a_timeout_begins_with_the_last_heartbeat() -> None:
    """A heartbeat each 20 is missed 50 after the last one. The new process of the first failure runs from L
    on, and sends its heartbeats at L, L + 20, L + 40: it dies at L + 47, which is noticed at L + 40 + 50, and
    launched 6 later; its task is prepared 9 after that.
    """
    _, noticed, ordered, launched, ready = first_restart()
    assert 30 - 20 < noticed - 50 <= 30
    assert (ordered, launched, ready) == (noticed, noticed + 6, noticed + 6 + 9)
    _, second = rows((crashed(30, 0), crashed(launched + 47, 0)), DETECTOR)
    expected = [launched + 90, launched + 90, launched + 96, launched + 105]
    assert moments(second)[1:] == pytest.approx(expected)


def test_a_task_manager_is_lost_after_15_to_20_s() -> None:
    """Heartbeats each 5 s, a timeout of 20 s: the age of the last heartbeat is spread evenly over [0, 5 s),
    so detection takes 17.5 s in the mean, and the log of a real job manager said 17.6 s, 15 to 20. Of 300 the
    mean lies within 5 standard errors (5 s / sqrt(12) / sqrt(300) = 0.083 s), and each fifth of the span has
    its 60, give or take 5 standard deviations.
    """
    topology = {"s": spout(gap=20_000), "p": bolt("forward", {"s": "shuffle"})}
    quiet = world(topology, "none", (fault("crash_task", 30_000, component="p"),), 60_000)
    lost = quiet.model_copy(update={"detector": Heartbeats(interval=5 * S, timeout=20 * S)})
    found = [simulate(lost, number).recoveries[0]["detect_s"] for number in range(300)]
    assert min(found) > 15
    assert max(found) <= 20
    assert sum(found) / 300 == pytest.approx(17.5, abs=5 * 0.083)
    fifths = [sum(math.ceil(one) == second for one in found) for second in range(16, 21)]
    assert all(abs(count - 60) < 5 * math.sqrt(60 * 0.8) for count in fifths)


def test_what_dies_before_it_is_launched_dies_once() -> None:
    """Between the first failure and the order to launch there is no process that a second could hit: both are
    noticed, and over, together.
    """
    first, second = rows((crashed(30, 0), crashed(50, 0)), DETECTOR)
    assert moments(first) == first_restart()
    assert moments(second)[1:] == first_restart()[1:]


def test_a_failure_during_the_launch_begins_detection_anew() -> None:
    """Its last sign of life is the order, at N: a process that dies 2 into its launch is missed at N + 50,
    its successor is prepared at N + 50 + 6 + 9. The first failure had been noticed before.
    """
    noticed = first_restart()[1]
    first, second = rows((crashed(30, 0), crashed(noticed + 2, 0)), DETECTOR)
    assert moments(second)[1:] == pytest.approx([noticed + 50, noticed + 50, noticed + 56, noticed + 65])
    assert first["detected_at_s"] * 1000 == pytest.approx(noticed)
    assert first["ready_at_s"] == second["ready_at_s"]


def test_a_failure_during_the_preparation_is_missed_after_a_heartbeat() -> None:
    """The process runs from L on, so its heartbeat of L is the last: it dies at L + 8, still prepared."""
    launched = first_restart()[3]
    _, second = rows((crashed(30, 0), crashed(launched + 8, 0)), DETECTOR)
    assert moments(second)[1:] == pytest.approx([launched + 50, launched + 50, launched + 56, launched + 65])


def test_nothing_is_noticed_before_it_happens() -> None:
    """count is known to be down when it strikes again: a state that is lost meanwhile, and a crash before the
    order to launch, are noticed as they strike.
    """
    noticed = first_restart()[1]
    _, state = rows((crashed(30, 0), lost(noticed + 3)), DETECTOR)
    assert state["detected_at_s"] == state["failed_at_s"]
    waiting = heard(20, 50, 6, 9, restarts=FixedDelay(delay=20 * MS))
    _, again = rows((crashed(30, 0), crashed(noticed + 3, 0)), waiting)
    assert again["detected_at_s"] == again["failed_at_s"]


def test_nobody_misses_the_state_of_a_process_that_lives() -> None:
    """A task that loses its state goes on, and its heartbeats too; one that is down stays so."""
    (alive,) = rows((lost(30),), DETECTOR)
    assert alive["detected_at_s"] == alive["ready_at_s"] == 0.03
    down, again = rows((crashed(30, 0), lost(40)), DETECTOR)
    assert down["ready_at_s"] == again["ready_at_s"]
    assert moments(down) == first_restart()


def test_tasks_of_one_worker_are_missed_together() -> None:
    """With both bolts on one host, in one process, two failures at one instant are noticed at one; in
    processes of their own each has a phase of its own.
    """
    both = tuple(fault("crash_task", 30, component=name) for name in ("p", "count"))

    for host_of_count, moments_there_are in ((1, 1), (2, 2)):
        found = placed(chain(both, 400), s=0, p=1, count=host_of_count)
        noticed = simulate(found.model_copy(update={"detector": DETECTOR})).recoveries
        assert len({row["detected_at_s"] for row in noticed}) == moments_there_are


def test_what_comes_after_the_end_is_not_known() -> None:
    """The run ends 10 after the failure, before any timeout."""
    (row,) = rows((crashed(30, 0),), DETECTOR, until=40)
    assert (row["detected_at_s"], row["ready_at_s"], row["time_to_recover_s"]) == (None, None, None)
    assert [row[stage] for stage in STAGES] == [None] * 5


def test_a_restart_that_is_given_up_never_comes() -> None:
    once = heard(20, 50, restarts=FixedDelay(delay=0, attempts=1))
    first, row = rows((crashed(30, 0), crashed(150, 0)), once, until=900)
    assert first["ready_at_s"] is not None
    assert row["detected_at_s"] is not None
    assert (row["ready_at_s"], row["time_to_recover_s"], row["restart_s"]) == (None, None, None)


def test_a_job_begins_again_as_one() -> None:
    """A failure of p stops all: they wait for the one process that is launched, and are prepared together."""
    (alone,) = rows((crashed(30, 0, "p"),), DETECTOR)
    (together,) = simulate(job((crashed(30, 0, "p"),))).recoveries
    assert moments(together) == moments(alone)


def job(failures: tuple[Any, ...], until: float = 400, detector: Heartbeats = DETECTOR) -> Scenario:
    """All of its tasks go back together."""
    snapshots = AlignedSnapshots(checkpoint_interval=10 * MS)
    return chain(failures, until).model_copy(update={"strategy": snapshots, "detector": detector})


def of_a_job(failures: tuple[Any, ...], restarts: Any, until: float = 400) -> Any:
    return simulate(job(failures, until, heard(20, 50, 6, 9, restarts=restarts))).recoveries


def test_waits_of_a_job_count_failures_as_they_are_noticed() -> None:
    """count dies at 30, which is noticed at N, at 60 or later. Before, at 40, p loses its state: this is the
    first failure that is noticed, and waits 8 for that. The death is the second, and waits 16: count's
    process is ordered at N + 16 and runs at N + 22; all are prepared at N + 31.
    """
    noticed = first_restart()[1]
    doubled = ExponentialDelay(initial=8 * MS, factor=2, most=64 * MS)
    death, state = of_a_job((crashed(30, 0), lost(40, "p")), doubled)
    assert moments(state) == pytest.approx((40, 40, 48, noticed + 22, noticed + 31))
    assert moments(death)[1:] == moments(state)[1:]


def test_a_death_that_is_noticed_later_may_be_one_too_many() -> None:
    """There is one restart: that of the state which p loses at 40, before the death at 30 is noticed. It is
    ordered at once, but count, which the job waits for, is not launched any more.
    """
    found = of_a_job((crashed(30, 0), lost(40, "p")), FixedDelay(delay=0, attempts=1))
    assert [row["delay_s"] for row in found] == [0, 0]
    assert [row["ready_at_s"] for row in found] == [None, None]
    (alone,) = of_a_job((lost(40, "p"),), FixedDelay(delay=0, attempts=1))
    assert moments(alone) == (40, 40, 40, 40, 49)


def broken(at: float, host: int) -> Any:
    return fault("crash_host", at, host=host, repair=round(300 * MS))


def test_a_broken_host_is_waited_for() -> None:
    """Nothing can be launched on host 2 before 330."""
    (row,) = rows((broken(30, 2),), DETECTOR, until=600)
    assert moments(row)[1:] == pytest.approx([first_restart()[1], 330, 336, 345])


def test_a_host_in_reserve_takes_the_place_of_a_broken_one() -> None:
    """Host 2 breaks at 30: a fourth host takes its place at once. Host 1 breaks at 40: there is no other any
    more, but host 2 is repaired at 330, ten before host 1 itself.
    """
    hosts = Hosts(machines={"small": MachineType(count=4)}, reserve=1)
    world = chain((broken(30, 2), broken(40, 1)), 600)
    first, second = simulate(world.model_copy(update={"detector": DETECTOR, "hosts": hosts})).recoveries
    assert moments(first) == first_restart()
    assert moments(second)[2:] == pytest.approx([330, 336, 345])


# -- together ------------------------------------------------------------------------------------------------


AT_ONCE = {
    "lost and dead": (lost(30), crashed(30, 0)),
    "lost twice and dead": (lost(30), lost(30), crashed(30, 0)),
    "lost, dead, lost": (lost(30), crashed(30, 0), lost(30)),
    "lost, dead, and dead again": (lost(30, "p"), crashed(30, 0), crashed(30, 0)),
    "noticed together": (crashed(30, 0), crashed(31, 0, "p")),
}


WAITS = ExponentialDelay(initial=8 * MS, factor=2, most=64 * MS)
AGAIN = {
    "heartbeats": ("rsm", heard(20, 50, 6, 9, restarts=WAITS)),
    "consumer_group": ("rsm", ConsumerGroup(heartbeat_interval=3 * MS, session_timeout=10 * MS)),
}
AGAIN["heartbeats of a job"] = ("aligned_snapshots", AGAIN["heartbeats"][1])


@pytest.mark.parametrize("failures", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize(("strategy", "detector"), AGAIN.values(), ids=AGAIN)
def test_the_engine_equals_the_reference_when_failures_come_together(
    strategy: str, detector: Any, failures: tuple[Any, ...]
) -> None:
    """p and the count are in one worker: who dies between the same heartbeats of it is missed together. A
    state that is lost at the instant of a death is noticed with that.
    """
    small = placed(chain(failures, 200), s=0, p=1, count=1)
    changes = {"strategy": STRATEGIES[strategy](checkpoint_interval=20 * MS), "detector": detector}
    check(small.model_copy(update=changes))


# -- how long a restart waits --------------------------------------------------------------------------------


def test_waits_grow_until_it_has_run_for_long_enough() -> None:
    """1, 2, 4, at most 5 s; what has run for 100 s since the last restart begins anew."""
    waits = ExponentialDelay(initial=S, factor=2, most=5 * S, reset_after=100 * S)
    earlier: list[Earlier] = []
    found = []
    for noticed in (0, 10 * S, 20 * S, 30 * S, 140 * S, 150 * S):
        found.append(waits.wait(noticed, tuple(earlier)))
        earlier.append(Earlier(noticed, noticed + 1 * S))
    assert found == [S, 2 * S, 4 * S, 5 * S, S, 2 * S]


def test_failures_that_come_too_often_end_it() -> None:
    """Two within 60 s are allowed, the third is not; the first counts no more 60 s after it."""
    rate = FailureRate(delay=S, most_failures=2, within=60 * S)
    first, second = Earlier(0, S), Earlier(30 * S, 31 * S)
    assert [rate.wait(30 * S, (first,)), rate.wait(59 * S, (first, second))] == [S, None]
    assert rate.wait(60 * S, (first, second)) == S


# -- in a scenario -------------------------------------------------------------------------------------------


def told(scenario: Scenario) -> Result:
    return Result(scenario, [simulate(scenario)])


def test_only_results_that_have_the_stages_show_them() -> None:
    plain = told(chain((crashed(30, 0),), 200))
    staged = told(plain.scenario.model_copy(update={"detector": DETECTOR}))
    new = {"delay", "launch", "prepare"}
    assert not new & plain.to_dict()["recoveries"][0]["stages_s"].keys()
    assert new <= staged.to_dict()["recoveries"][0]["stages_s"].keys()
    assert not {"delay_s", "launch_s", "prepare_s"} & set(plain.recoveries.columns)
    assert staged.recoveries["launch_s"].tolist() == [pytest.approx(0.006)]
    assert "detector" not in plain.to_dict()["scenario"]


@pytest.mark.parametrize(
    ("detector", "more", "says"),
    [
        ("{kind: heartbeats, interval: 30 s, timeout: 20 s}", [],
         r"detector: interval \(30 s\) must not be longer than timeout \(20 s\)"),
        ("{kind: heartbeats, interval: 0 s}", [], "detector.interval: must be more than 0 s"),
        ("heartbeat", [], "unknown detector 'heartbeat'; did you mean 'heartbeats'"),
        ("heartbeats", ["failures.0.detection=5s"],
         "failures.0.detection: does not go with detector: heartbeats"),
        ("heartbeats", ["strategy={kind: micro_batch, trigger_interval: 1 s}"],
         "detector: micro_batch has its own"),
        ("{kind: heartbeats, restarts: {kind: exponential_delay, initial: 2 min}}", [],
         r"must not be longer than most \(60 s\)"),
    ],
)  # fmt: skip
def test_a_detector_that_cannot_be_is_refused(detector: str, more: list[str], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        load("wordcount", [f"detector={detector}", *more])


# -- one that lives is taken for dead ------------------------------------------------------------------------


def paused(at: float, duration: float) -> Any:
    return fault("pause", at, component="count", duration=round(duration * MS))


def test_a_pause_that_is_too_long_is_taken_for_death() -> None:
    """The last heartbeat before the pause, at or before 30, is missed as that of a death would be; then a new
    process is launched and prepared, and the old one's end of the pause changes nothing.
    """
    pause, false = rows((paused(30, 300),), DETECTOR, until=900)
    assert pause["kind"] == "pause"
    assert (false["kind"], false["component"]) == ("false_detection", "count.0")
    noticed = first_restart()[1]
    assert moments(false) == pytest.approx((noticed, noticed, noticed, noticed + 6, noticed + 15))


def test_who_loses_its_state_and_goes_on_holds_nothing_back_when_it_is_killed() -> None:
    """A state that is lost at 15, and is back at once, says nothing of the process that is taken for dead
    later: what arrives until there is a new one is lost.
    """

    def destroyed(*before: Any) -> list[tuple[int, float]]:
        found = chain((*before, paused(30, 300)), 400).model_copy(update={"detector": DETECTOR})
        return [(row[3], row[4]) for row in trace_of(found).destroyed]

    held = fault("lose_state", 15, component="count", detection=0, restart=0, while_down="hold")
    assert len(destroyed()) > 1
    assert destroyed(held) == destroyed()


@pytest.mark.parametrize("later", [-1, 0, 1])
def test_what_hits_a_task_as_it_comes_back_changes_no_stage_of_its_restart(later: int) -> None:
    """State is lost at the instant at which the task is prepared, or 1 ns before or after it."""
    known = first_restart()
    lost = fault("lose_state", known[-1] + later / MS, component="count", detection=0, restart=0)
    first, second = rows((crashed(30, 0), lost), DETECTOR)
    assert moments(first) == pytest.approx(known)
    assert second["ready_at_s"] * 1000 == pytest.approx(known[-1], abs=2 / MS)


def test_a_pause_within_the_timeout_is_not_noticed() -> None:
    """30 long: at most 20 + 30 of silence, and the timeout is 50."""
    (only,) = rows((paused(30, 29),), DETECTOR)
    assert only["kind"] == "pause"


def test_a_pause_sends_no_heartbeats() -> None:
    """It is paused for 29 from 30 on, and dies at 55: its last heartbeat is that before 30, as if it had died
    then. One that dies at 70 has sent its overdue heartbeat at 59, or one since.
    """
    (_, early) = rows((paused(30, 29), crashed(55, 0)), DETECTOR)
    assert early["detected_at_s"] * 1000 == pytest.approx(first_restart()[1])
    (_, late) = rows((paused(30, 29), crashed(60, 0)), DETECTOR)
    assert 109 <= late["detected_at_s"] * 1000 <= 110


def test_a_zombie_counts_nothing() -> None:
    """What the paused process had in its queue is gone with it, and comes again from the upstream buffer:
    nothing is counted twice, nothing is lost.
    """
    world = chain((paused(30, 300),), 900).model_copy(update={"detector": DETECTOR})
    done = simulate(world)
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)
    assert done.ledger["replayed"] > 0


def test_a_job_with_a_false_detection_begins_again_as_one() -> None:
    done = simulate(job((paused(30, 300),), 900))
    assert [row["kind"] for row in done.recoveries] == ["pause", "false_detection"]
    assert (done.dependability["false_detections"], done.ledger["false_timeouts"]) == (1, 0)
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


def test_waits_of_a_job_count_who_was_taken_for_dead() -> None:
    """p dies at 30, and the one restart that there is has been when count is taken for dead."""
    found = of_a_job((crashed(30, 0, "p"), paused(200, 300)), FixedDelay(delay=0, attempts=1), 900)
    assert [row["kind"] for row in found] == ["crash_task", "pause", "false_detection"]
    assert found[0]["ready_at_s"] is not None
    assert (found[2]["detected_at_s"] is not None, found[2]["ready_at_s"]) == (True, None)
