"""False restarts: how often a pause counts as a death, what that costs, and the timeout that loses least."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tideover
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.schema import LOSSY, remark
from tideover.models.world import World
from tideover.reports.html import render
from tideover.reports.lost_time import page
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.lost_time.detector import Pauses, ask
from tideover.sim.distributions import Constant, Distribution, Exponential
from tideover.sim.units import DAY, S

INTERVAL, TIMEOUT, LAUNCH, LOAD, EVERY = 2, 4, 5, 0.5, 10


def stream(**changed: Any) -> tideover.Scenario:
    """log -> count: 10 tuples/s that take half of the time; it is missed 2 to 4 s after it stops, and
    launched anew in 5 s; what came since the last snapshot is read again.
    """
    count = {"bolt": "windowed_count", "from": {"log": "shuffle"}, "service": f"{100 * LOAD} ms"}
    detector = {"kind": "heartbeats", "interval": f"{INTERVAL} s", "timeout": f"{TIMEOUT} s"}
    return tideover.load(
        {
            "name": "stream",
            "topology": {
                "log": {"spout": "keys", "keys": 1, "rate": "10/s"},
                "count": count | {"window": {"length": "5 s", "trigger": "marker"}},
            },
            "strategy": {"kind": "aligned_snapshots", "checkpoint_interval": f"{EVERY} s"},
            "detector": detector | {"launch": f"{LAUNCH} s"},
            "failures": [{"kind": "crash_task", "at": "30 s", "component": "count"}],
            "run": {"duration": "90 s", "warmup": "10 s"},
        }
        | changed
    )


def test_pauses_of_a_long_run_are_missed_as_often_as_the_closed_form_says() -> None:
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
            "detector": {"kind": "heartbeats", "interval": f"{INTERVAL} s", "timeout": f"{TIMEOUT} s"},
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
def test_rare_long_pauses_are_counted(means: float) -> None:
    """Exponential pauses of mean m: (m / I) (exp(-(t - I) / m) - exp(-t / m)), be t so many means or more."""
    detector = Heartbeats(interval=2 * S, timeout=round(means * S) + 2 * S)
    t, i = detector.timeout / S, detector.interval / S
    law = (math.exp(-(t - i)) - math.exp(-t)) / i
    assert Pauses(Exponential(mean=S)).missed(detector) == pytest.approx(law, rel=2e-3)


@pytest.mark.parametrize("lengths", [Constant(value=3 * S), Exponential(mean=S)])
def test_missed_pauses_are_drawn_as_they_come(lengths: Distribution) -> None:
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


def test_what_is_lost_is_that_of_the_closed_form() -> None:
    """A missed pause of 3 s begins 1.5 s after a heartbeat, on average. It is as a crash: down for 4 - 1.5 +
    5 s, then 10/2 s of input again; the pause alone is 3 s. At a load of 1/2 all takes twice as long.
    """
    found = tideover.detector(stream(), "3 s", "1 h", {"failures.0": "1 d"}, timeouts=["4 s", "6 s"])
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


def test_the_usual_timeouts_hold_the_scenario_s_and_the_shortest_that_is_enough() -> None:
    values = [t / S for t in ask(stream(), Constant(value=3 * S), 3600 * S, {"failures.0": "1 d"}).timeouts]
    assert values == sorted(values)
    assert values[0] == INTERVAL
    assert {TIMEOUT, 5} <= {*values}


def test_a_longer_pause_than_the_restart_is_better_ended() -> None:
    """The same for a pause of a minute, of which all are missed: a false restart gains time."""
    mtbf = {"failures.0": "1 d"}
    found = tideover.detector(stream(), "60 s", "1 h", mtbf, timeouts=["4 s"], replications=4)
    law = (TIMEOUT - INTERVAL / 2 + LAUNCH + LOAD * EVERY / 2 - 60) / (1 - LOAD)
    assert found.points[0].missed == 1
    assert found.points[0].false.felt.mean() == pytest.approx(law, rel=0.02)


def test_what_is_lost_for_good_is_said() -> None:
    """Law: a time of a recovery with loss never stands alone: under amnesia every restart loses roots."""
    mtbf = {"failures.0": "1 d"}
    found = tideover.detector(
        stream(strategy={"kind": "none"}), "3 s", "1 h", mtbf, timeouts=["4 s"], replications=4
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
def test_other_detectors_are_refused(changed: dict[str, Any], said: str) -> None:
    strategy = {"kind": "none"}
    with pytest.raises(ScenarioError, match=said):
        tideover.detector(stream(strategy=strategy, **changed), "3 s", "1 h", {"failures.0": "1 d"})


def test_a_timeout_shorter_than_the_interval_is_refused_before_anything_runs() -> None:
    with pytest.raises(ScenarioError, match="must not be longer than timeout"):
        tideover.detector(stream(), "3 s", "1 h", {"failures.0": "1 d"}, timeouts=["1 s"])
    with pytest.raises(ScenarioError, match=r"--pauses: .*as 12 s, or \{kind: exponential"):
        tideover.detector(stream(), "exponential 3 s", "1 h", {"failures.0": "1 d"})
