"""The checkpoint interval and the timeout that lose the least time, beside closed forms."""

import math
from typing import Any

import numpy as np
import pytest

import tideover
from tests.theory.checkpoints import behind
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.arrivals import Day
from tideover.models.schema import LOSSY, remark
from tideover.models.world import World
from tideover.reports.html import render
from tideover.reports.lost_time import page
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.lost_time.curve import Kept, Part, Point, as_good, keeps, least, spread
from tideover.scenarios.lost_time.detector import Pauses
from tideover.scenarios.lost_time.detector import ask as timeouts_asked
from tideover.scenarios.lost_time.interval import AtInterval, BestInterval, ask
from tideover.scenarios.planning.checkpoint_interval import at_load, young
from tideover.sim.distributions import Constant, Exponential
from tideover.sim.units import DAY, MS, S

COST, LOAD, DOWN, MTBF = 0.1, 0.5, 3.0, 1000.0


CRASH = {"kind": "crash_task", "at": "30 s", "component": "count", "detection": "2 s", "restart": "1 s"}
KEPT = Kept("task count.0", LOAD, 0.01)
MEAN = {"failures.0": f"{MTBF} s"}


def stream(load: float = LOAD, **strategy: Any) -> tideover.Scenario:
    """log -> count: 10 tuples/s that take ``load`` of the time; down for 3 s; what came since the last
    snapshot, which keeps the count for 0.1 s, is read again.
    """
    snapshots = {"kind": "aligned_snapshots", "checkpoint_interval": "10 s", "snapshot_time": f"{COST} s"}
    count = {"bolt": "windowed_count", "from": {"log": "shuffle"}, "service": f"{100 * load} ms"}
    return tideover.load(
        {
            "name": "stream",
            "topology": {
                "log": {"spout": "keys", "keys": 1, "rate": "10/s"},
                "count": count | {"window": {"length": "5 s", "trigger": "marker"}},
            },
            "strategy": strategy if "kind" in strategy else snapshots | strategy,
            "failures": [CRASH],
            "run": {"duration": "90 s", "warmup": "10 s"},
        }
    )


def test_the_curve_and_its_least_are_those_of_the_closed_form():
    """Each point: stalls, and half an interval's work done twice, worked off with what is left of the time.

    The runs know nothing of the formula: they are 12 crashes, at moments spread over an interval.
    """
    every = [10, 20, 40]
    found = tideover.interval(stream(), MEAN, intervals=[f"{t} s" for t in every], replications=4)
    for seconds, point in zip(every, found.points, strict=True):
        assert point.takes == pytest.approx(COST)
        assert point.always == pytest.approx(COST / seconds / (1 - LOAD))
        assert point.down == pytest.approx(DOWN, rel=0.02)
        law = behind(seconds, COST, MTBF, LOAD, DOWN)
        assert point.estimate.mean == pytest.approx(law, rel=0.02)
    best = at_load(COST, MTBF, LOAD, DOWN)
    assert found.least.seconds == pytest.approx(best, rel=0.05)
    assert found.least.lost == pytest.approx(behind(best, COST, MTBF, LOAD, DOWN), rel=0.02)
    assert found.formulas["at_load"] == pytest.approx(best, rel=0.01)
    assert found.formulas["young"] == pytest.approx(young(COST, MTBF), rel=0.01)


def test_what_checkpoints_keep_is_that_of_the_time_of_day_of_the_run():
    """10 tuples/s until noon, when the failure strikes, at 30 s; from then on none. The run without failures
    begins at 11:59:30, too: of the 80 s that are looked at, from 20 s on, the count works in the first 10 s,
    at a load of a half.
    """
    until_noon = Day(by_hour=(0.0,) * 11 + (1.0,) + (0.0,) * 12, peak=10, interpolation="steps")
    one = stream()
    topology = one.topology | {"log": one.topology["log"].model_copy(update={"arrivals": until_noon})}
    run = one.run.model_copy(update={"fails_at": "12:00"})
    daily = one.model_copy(update={"topology": topology, "run": run})
    assert keeps(daily, 10 * S).busy == pytest.approx(10 * LOAD / 80)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_the_formula_is_the_least_of_what_it_says_is_lost(load):
    """Law: nowhere on a fine grid is a stream behind for less, where failures are rare; and with a load of 1
    that is Young's interval.
    """
    times = np.geomspace(10, 10_000, 4_000)
    lost = [behind(float(t), 1.0, 1e6, load, 30.0) for t in times]
    assert at_load(1.0, 1e6, load, 30.0) == pytest.approx(times[int(np.argmin(lost))], rel=0.01)
    assert at_load(1.0, 1e6, 1 - 1e-6) == pytest.approx(young(1.0, 1e6), rel=1e-3)


def test_a_curve_is_young_s_whatever_replications_share():
    """a + b / T + c T has its least at sqrt(b / c), and at most 5 % more between two roots. What a
    replication adds everywhere widens the interval of what is lost, not that of the best value.
    """
    luck = (0.9, 0.9, 1.0, 1.0, 1.1, 1.1)

    def point(seconds: float) -> Point:
        failure = tuple(0.1 * each + 0.01 * seconds for each in luck)
        return Point(round(seconds * S), (Part("crash", 1.0, failure),), 1 / seconds)

    found = least([point(seconds) for seconds in (4, 8, 16, 32)])
    assert (found.seconds, found.edge) == (pytest.approx(10.0), None)
    assert (found.low, found.high) == (pytest.approx(10.0), pytest.approx(10.0))
    assert found.lost == pytest.approx(0.3)
    assert found.lost_low < 0.295 < 0.305 < found.lost_high
    half = math.acosh(1 + 0.05 * 0.3 / 0.2)
    assert found.flat == pytest.approx((10 * math.exp(-half), 10 * math.exp(half)), rel=0.01)


@pytest.mark.parametrize(("values", "edge"), [((16, 32, 64), "shortest"), ((1, 2, 4), "longest")])
def test_a_best_at_the_edge_is_said_to_be_one(values, edge):
    points = [Point(t * S, (Part("crash", 1.0, (0.01 * t,) * 4),), 1 / t) for t in values]
    found = least(points)
    assert found.edge == edge
    assert found.seconds == pytest.approx({"shortest": values[0], "longest": values[-1]}[edge])


def test_what_cannot_be_told_from_the_best_is_in_its_interval():
    """A rare recovery of half a minute at one interval: by chance the others look better, but for the
    shortest, whose checkpoints cost more than that.
    """
    seen = {1: (1.0, 1.0), 40: (1.0, 61.0), 80: (31.0, 1.0), 160: (1.0, 1.0)}
    points = [
        Point(t * S, (Part("crash", 1e-3, tuple(s for s in felt for _ in range(2))),), 1 / t)
        for t, felt in seen.items()
    ]
    assert [point.value // S for point in as_good(points)] == [40, 80, 160]
    found = least(points)
    assert (found.low, found.high) == (40, 160)
    shown = tuple(AtInterval(each.value, each.parts, each.always, kept=KEPT) for each in points)
    answer = BestInterval(
        scenario=stream(),
        key="strategy.checkpoint_interval",
        own=10 * S,
        points=shown,
        replications=4,
        warnings=[],
        least=found,
        mtbf=MTBF,
    )
    assert "40 s, 80 s and 160 s cannot be told apart" in page(answer, "stream").verdict


def test_what_is_not_recovered_from_is_in_no_mean():
    """The mean of the other replications would be too low."""

    def point(seconds: int, last: float | None) -> Point:
        return Point(seconds * S, (Part("crash", 1.0, (1.0, 1.0, 2.0, last)),), 1 / seconds)

    points = [point(1, 2.0), point(2, None), point(4, 2.0)]
    assert [one.estimate.mean is None for one in points] == [False, True, False]
    assert least(points) is None


def test_moments_are_spread_evenly_and_mirrored():
    """Law: of n pairs no gap is longer than 3 / n in any dimension, and the mean of each pair is 1/2."""
    for n in (5, 15):
        for row in zip(*(spread(1, "crash", r, 3) for r in range(2 * n)), strict=True):
            values = np.array(row)
            assert values[::2] + values[1::2] == pytest.approx(1.0)
            ordered = np.sort(values[::2])
            assert 0 <= ordered[0] <= ordered[-1] < 1
            assert np.diff(np.append(ordered, ordered[0] + 1)).max() < 3 / n


def test_checkpoints_for_which_tuples_are_given_up_cannot_be_used():
    """Acked at a commit, tuples time out after 15 to 30 s: with one a minute they are emitted again."""
    storm = stream(kind="storm_checkpoint", message_timeout="30 s", write_time="0.2 s")
    assert math.isfinite(keeps(storm, 10 * S).behind)
    slow = tideover.load(storm, {"strategy.checkpoint_interval": "60 s"})
    assert keeps(slow, 60 * S).gives_up
    assert keeps(slow, 60 * S).behind == math.inf


def test_the_search_goes_on_beyond_what_it_tried():
    """The scenario's own 10 s are among them, and the best is none at the edge."""
    found = tideover.interval(stream(), MEAN, replications=4)
    values = [point.value for point in found.points]
    assert values == sorted(values)
    assert 10 * S in values
    assert found.least.edge is None


def test_short_keys_may_say_what_fails():
    """Detection, restart and moment are keys of that scenario, and stand in its failure."""
    asked = ask(tideover.load("flink-recovery"), {"failures.0": "1 d"}, [60 * S, 120 * S], 4)
    assert [(one.run.replications, one.failures) for one in asked.runs] == [(2 * 4, ())] * 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kind": "none"}, "makes no checkpoints at an interval; choose one"),
        ({"snapshot_time": "0 s"}, "say what they take: snapshot_time, snapshot_cost"),
    ],
)
def test_what_has_no_best_interval_is_refused(changed, said):
    with pytest.raises(ScenarioError, match=said):
        tideover.interval(stream(**changed), {"failures.0": "1 h"})


def test_a_full_task_has_no_time_to_lose():
    with pytest.raises(ScenarioError, match=r"busy for 100\.0 % of the time"):
        tideover.interval(stream(load=1.5), {"failures.0": "1 h"})
    assert keeps(stream(load=0.99), 10 * S).behind == math.inf
    assert keeps(stream(), 10 * S).part == pytest.approx(COST * S / (10 * S), abs=MS / S)


# False restarts: how often a pause counts as a death, what that costs, and the timeout that loses least.

INTERVAL, TIMEOUT, LAUNCH, EVERY = 2, 4, 5, 10
DAILY = {"failures.0": "1 d"}
BEATS = {"kind": "heartbeats", "interval": f"{INTERVAL} s", "timeout": f"{TIMEOUT} s"}


def watched(**changed: Any) -> tideover.Scenario:
    """The stream without the cost of snapshots: it is missed 2 to 4 s after it stops, and launched anew in
    5 s; what came since the last snapshot is read again.
    """
    crash = {name: CRASH[name] for name in ("kind", "at", "component")}
    parts = {"detector": BEATS | {"launch": f"{LAUNCH} s"}, "failures": [crash]}
    return tideover.load(stream(snapshot_time="0 s", checkpoint_interval=f"{EVERY} s"), parts | changed)


def test_pauses_of_a_long_run_are_missed_as_often_as_the_closed_form_says():
    """Pauses of 3 s, of a process that is heard of every 2 s: the last sign is older than 1 s half of the
    time, and 4 s are over before the next. Of n pauses n/2 are missed, give or take three deviations.
    """
    every = {"kind": "exponential", "mean": "30 s"}
    pauses = {"kind": "pause", "component": "b", "duration": "3 s", "every": every}
    scenario = tideover.load(
        {
            "name": "pauses",
            "topology": {
                "s": {"spout": "keys", "keys": 1, "rate": "0.2/s"},
                "b": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms"},
            },
            "strategy": {"kind": "none"},
            "detector": BEATS,
            "failures": [pauses],
            "run": {"duration": "12000 s"},
        }
    )
    world = World(scenario, looks=0)
    world.run()
    kinds = [outage.kind for outage in world.outages]
    many, false = kinds.count("pause"), kinds.count("false_detection")
    part = Pauses(Constant(value=3 * S)).missed(scenario.detector)
    assert many > 200
    assert part == pytest.approx(0.5)
    assert false == pytest.approx(many * part, abs=3 * math.sqrt(many * part * (1 - part)))


@pytest.mark.parametrize("means", [0.5, 3.0, 20.0])
def test_rare_long_pauses_are_counted(means):
    """Exponential pauses of mean m: (m / I) (exp(-(t - I) / m) - exp(-t / m)), be t so many means or more."""
    detector = Heartbeats(interval=2 * S, timeout=round(means * S) + 2 * S)
    t, i = detector.timeout / S, detector.interval / S
    law = (math.exp(-(t - i)) - math.exp(-t)) / i
    assert Pauses(Exponential(mean=S)).missed(detector) == pytest.approx(law, rel=2e-3)


@pytest.mark.parametrize("lengths", [Constant(value=3 * S), Exponential(mean=S)])
def test_missed_pauses_are_drawn_as_they_come(lengths):
    """Of pauses at random moments those that are missed have these lengths, and ages of the last heartbeat:
    each drawn one is missed, and the means are those of a hundred thousand that were tried.
    """
    detector = Heartbeats(interval=2 * S, timeout=4 * S)
    rng = np.random.default_rng(3)
    tried = lengths.sample(rng.integers(0, 1 << 63, 100_000, np.uint64) * np.uint64(2))
    ages = rng.uniform(0, detector.interval, len(tried))
    missed = tried + ages > detector.timeout
    pauses, grid = Pauses(lengths), (np.arange(60) + 0.5) / 60
    drawn = np.array([pauses.one_missed(detector, a, b) for a in grid for b in grid])
    assert (drawn.sum(axis=1) > detector.timeout).all()
    assert (drawn[:, 1] < detector.interval).all()
    assert drawn.mean(axis=0) == pytest.approx([tried[missed].mean(), ages[missed].mean()], rel=0.03)
    assert pauses.missed(detector) == pytest.approx(missed.mean(), rel=0.1)


def test_what_is_lost_is_that_of_the_closed_form():
    """A missed pause of 3 s begins 1.5 s after a heartbeat, on average. It is as a crash: down for 4 - 1.5 +
    5 s, then 10/2 s of input again; the pause alone is 3 s. At a load of 1/2 all takes twice as long.
    """
    found = tideover.detector(watched(), "3 s", "1 h", DAILY, timeouts=["4 s", "6 s"])
    short, long = found.points
    assert short.missed == pytest.approx(0.5)
    assert short.false_per_day == pytest.approx(24 / 2)
    law = (TIMEOUT - 1.5 + LAUNCH + LOAD * EVERY / 2 - 3) / (1 - LOAD)
    assert short.false.felt.mean() == pytest.approx(law, rel=0.05)
    assert long.false_per_day == 0
    assert short.lost.mean() * DAY / S == pytest.approx(12 * law + short.parts[0].felt.mean(), rel=0.05)
    for point in found.points:
        assert point.noticed == pytest.approx(point.value / S - INTERVAL / 2, abs=0.4)
    saved = long.parts[0].felt.mean() - short.parts[0].felt.mean()
    assert saved == pytest.approx(2 / (1 - LOAD), rel=0.05)
    assert found.best is long
    assert found.as_good == []
    assert found.enough == 5 * S


def test_the_usual_timeouts_hold_the_scenario_s_and_the_shortest_that_is_enough():
    values = [t / S for t in timeouts_asked(watched(), Constant(value=3 * S), 3600 * S, DAILY).values]
    assert values == sorted(values)
    assert values[0] == INTERVAL
    assert {TIMEOUT, 5} <= {*values}


def test_a_longer_pause_than_the_restart_is_better_ended():
    """The same for a pause of a minute, of which all are missed: a false restart gains time."""
    found = tideover.detector(watched(), "60 s", "1 h", DAILY, timeouts=["4 s"], replications=4)
    law = (TIMEOUT - INTERVAL / 2 + LAUNCH + LOAD * EVERY / 2 - 60) / (1 - LOAD)
    assert found.points[0].missed == 1
    assert found.points[0].false.felt.mean() == pytest.approx(law, rel=0.02)


def test_what_is_lost_for_good_is_said():
    """Law: a time of a recovery with loss never stands alone: under amnesia every restart loses roots."""
    found = tideover.detector(
        watched(strategy={"kind": "none"}), "3 s", "1 h", DAILY, timeouts=["4 s"], replications=4
    )
    assert [each.to_dict()["ended"] for each in found.points[0].parts] == [remark([LOSSY])] * 2
    said = render(page(found, "stream"))
    assert "In 8 of 8 runs roots are lost for good" in said
    assert said.count(f"({remark([LOSSY])})") == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"detector": None}, "there is none"),
        ({"detector": {"kind": "storm"}}, "takes no pause for a death"),
    ],
)
def test_other_detectors_are_refused(changed, said):
    strategy = {"kind": "none"}
    with pytest.raises(ScenarioError, match=said):
        tideover.detector(watched(strategy=strategy, **changed), "3 s", "1 h", DAILY)


def test_a_timeout_shorter_than_the_interval_is_refused_before_anything_runs():
    with pytest.raises(ScenarioError, match="must not be longer than timeout"):
        tideover.detector(watched(), "3 s", "1 h", DAILY, timeouts=["1 s"])
    with pytest.raises(ScenarioError, match=r"--pauses: .*as 12 s, or \{kind: exponential"):
        tideover.detector(watched(), "exponential 3 s", "1 h", DAILY)
