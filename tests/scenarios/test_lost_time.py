"""The checkpoint interval that loses the least time, beside closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tideover
from tideover.reports.lost_time import page
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.lost_time.curve import Kept, Part, Point, as_good, keeps, least, spread
from tideover.scenarios.lost_time.interval import AtInterval, BestInterval, ask
from tideover.scenarios.planning.checkpoint_interval import at_load, behind, young
from tideover.sim.units import MS, S

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


def test_the_curve_and_its_least_are_those_of_the_closed_form() -> None:
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


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_the_formula_is_the_least_of_what_it_says_is_lost(load: float) -> None:
    """Law: nowhere on a fine grid is a stream behind for less, where failures are rare; and with a load of 1
    that is Young's interval.
    """
    times = np.geomspace(10, 10_000, 4_000)
    lost = [behind(float(t), 1.0, 1e6, load, 30.0) for t in times]
    assert at_load(1.0, 1e6, load, 30.0) == pytest.approx(times[int(np.argmin(lost))], rel=0.01)
    assert at_load(1.0, 1e6, 1 - 1e-6) == pytest.approx(young(1.0, 1e6), rel=1e-3)


def test_a_curve_is_young_s_whatever_replications_share() -> None:
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
def test_a_best_at_the_edge_is_said_to_be_one(values: tuple[int, ...], edge: str) -> None:
    points = [Point(t * S, (Part("crash", 1.0, (0.01 * t,) * 4),), 1 / t) for t in values]
    found = least(points)
    assert found.edge == edge
    assert found.seconds == pytest.approx({"shortest": values[0], "longest": values[-1]}[edge])


def test_what_cannot_be_told_from_the_best_is_in_its_interval() -> None:
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
    answer = BestInterval(stream(), "strategy.checkpoint_interval", 10 * S, shown, found, MTBF, 4, [])
    assert "40 s, 80 s and 160 s cannot be told apart" in page(answer, "stream").verdict


def test_what_is_not_recovered_from_is_in_no_mean() -> None:
    """The mean of the other replications would be too low."""

    def point(seconds: int, last: float | None) -> Point:
        return Point(seconds * S, (Part("crash", 1.0, (1.0, 1.0, 2.0, last)),), 1 / seconds)

    points = [point(1, 2.0), point(2, None), point(4, 2.0)]
    assert [one.estimate.mean is None for one in points] == [False, True, False]
    assert least(points) is None


def test_moments_are_spread_evenly_and_mirrored() -> None:
    """Law: of n pairs no gap is longer than 3 / n in any dimension, and the mean of each pair is 1/2."""
    for n in (5, 15):
        for row in zip(*(spread(1, "crash", r, 3) for r in range(2 * n)), strict=True):
            values = np.array(row)
            assert values[::2] + values[1::2] == pytest.approx(1.0)
            ordered = np.sort(values[::2])
            assert 0 <= ordered[0] <= ordered[-1] < 1
            assert np.diff(np.append(ordered, ordered[0] + 1)).max() < 3 / n


def test_checkpoints_for_which_tuples_are_given_up_cannot_be_used() -> None:
    """Acked at a commit, tuples time out after 15 to 30 s: with one a minute they are emitted again."""
    storm = stream(kind="storm_checkpoint", message_timeout="30 s", write_time="0.2 s")
    assert math.isfinite(keeps(storm, 10 * S).behind)
    slow = tideover.load(storm, {"strategy.checkpoint_interval": "60 s"})
    assert keeps(slow, 60 * S).gives_up
    assert keeps(slow, 60 * S).behind == math.inf


def test_the_search_goes_on_beyond_what_it_tried() -> None:
    """The scenario's own 10 s are among them, and the best is none at the edge."""
    found = tideover.interval(stream(), MEAN, replications=4)
    values = [point.value for point in found.points]
    assert values == sorted(values)
    assert 10 * S in values
    assert found.least.edge is None


def test_short_keys_may_say_what_fails() -> None:
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
def test_what_has_no_best_interval_is_refused(changed: dict[str, str], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        tideover.interval(stream(**changed), {"failures.0": "1 h"})


def test_a_full_task_has_no_time_to_lose() -> None:
    with pytest.raises(ScenarioError, match=r"busy for 100\.0 % of the time"):
        tideover.interval(stream(load=1.5), {"failures.0": "1 h"})
    assert keeps(stream(load=0.99), 10 * S).behind == math.inf
    assert keeps(stream(), 10 * S).part == pytest.approx(COST * S / (10 * S), abs=MS / S)
