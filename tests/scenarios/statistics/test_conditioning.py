"""Failures one at a time, and all of them as they come: both say the same of availability."""

import math

import numpy as np
import pytest

import tideover
from tideover.models.evaluation.measures import availability
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.statistics.availability import causes
from tideover.scenarios.statistics.intervals import Estimate, estimate
from tideover.sim.units import DAY, S

YEAR = 365.25 * DAY / S
CRASH = {"kind": "crash_task", "detection": "2 s", "restart": "4 s", "component": "count"}


TAIL = 120
"""At the end of a run nothing fails for so many seconds, and nothing is measured: all is recovered from."""


def crashing(strategy: str, failures: list[dict], seconds: int) -> tideover.Scenario:
    settings = {"strategy.kind": strategy, "failures": failures, "run.duration": f"{seconds + TAIL} s"}
    return tideover.load("wordcount", settings)


def watched(strategy: str, pause: float, seconds: int, runs: int) -> Estimate:
    """Availability of runs in which the counter crashes as a Poisson process, with this mean pause (s)."""
    rng = np.random.default_rng(1)
    found = []
    for replication in range(runs):
        moments = np.sort(rng.uniform(0, seconds, rng.poisson(seconds / pause)))
        scenario = crashing(strategy, [CRASH | {"at": f"{moment:.6f} s"} for moment in moments], seconds)
        rows = simulate(scenario, replication).recoveries
        found.append(availability(rows, scenario.run.warmup / S, seconds)["availability"])
    return estimate(found)


def both(strategy: str, pause: float, seconds: int, direct: int, single: int) -> tuple[float, float]:
    """How far the two answers are apart, and how far apart they may be: the interval of a difference."""
    often = watched(strategy, pause, seconds, direct)
    once = crashing(strategy, [CRASH | {"at": "60 s", "within": "120 s"}], 240)
    found = tideover.availability(once, {"failures.0": f"{pause} s"}, {"run.replications": single})
    value, low, high = (getattr(found.availability, name) for name in ("value", "low", "high"))
    return abs(value - often.mean), math.hypot(often.half_width, (high - low) / 2)


def test_single_failures_say_what_a_run_with_many_says() -> None:
    """Some 50 failures that are waited for, against 8 that are not; a tenth of the time is down."""
    apart, allowed = both("aligned_snapshots", 60, seconds=500, direct=6, single=8)
    assert apart < allowed < 0.03


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "pause", "seconds"),
    [("source_replay", 1_500, 8_000), ("rsm", 150, 3_000), ("aligned_snapshots", 100, 3_000)],
)
def test_single_failures_say_what_long_runs_say(strategy: str, pause: float, seconds: int) -> None:
    """Down for 5 to 9 % of the time: by 100 to 600 failures that are waited for, and 60 that are not."""
    apart, allowed = both(strategy, pause, seconds, direct=20, single=60)
    assert apart < allowed < 0.025


FARM = {
    "name": "farm",
    "topology": {
        "s": {"spout": "keys", "keys": 4, "rate": "10/s"},
        "a": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms", "parallelism": 2},
        "b": {"bolt": "windowed_count", "from": {"a": "shuffle"}, "service": "1 ms", "window": "5 s"},
    },
    "strategy": {"kind": "none"},
    "hosts": {"machines": {"m": {"count": 6}}, "racks": 3},
    "failures": [
        {"kind": "crash_host", "at": "10 s", "within": "20 s", "host": 1, "restart": "1 s"},
        {"kind": "crash_task", "at": "10 s", "component": "b", "restart": "1 s"},
        {"kind": "crash_rack", "at": "10 s", "rack": 0, "within": "0 s", "restart": "1 s"},
    ],
    "run": {"duration": "70 s", "warmup": "10 s"},
}


def test_every_unit_that_has_tasks_is_struck_in_its_turn() -> None:
    """Four tasks on four of six hosts, in racks of two: each fails as often as it is said of one."""
    scenario = tideover.load(FARM)
    found, remarks = causes(scenario, {"host": "10 d", "task": "30 d", "rack": "365.25 d"})
    hosts, tasks, racks = found
    assert [len(one.strikes) for one in found] == [4, 3, len(racks.strikes)]
    assert hosts.rate_per_s == pytest.approx(4 / (10 * DAY / S))
    assert racks.rate_per_s == pytest.approx(len(racks.strikes) / YEAR)
    struck = [hosts.struck(scenario, r).failures[0].host for r in range(8)]
    assert sorted(struck[:4]) == sorted(set(struck))
    assert struck[:4] == struck[4:]
    assert {(one.component, one.task) for one in tasks.strikes} == {("a", 0), ("a", 1), ("b", 0)}
    assert remarks == []


def test_the_moment_is_drawn_unless_the_scenario_says_otherwise() -> None:
    """Drawn as the scenario says; over half of what is left of the run; or just then, if that is meant."""
    found, _ = causes(tideover.load(FARM), dict.fromkeys(("failures.0", "failures.1", "failures.2"), "1 d"))
    assert [(one.strikes[0].at, one.strikes[0].within) for one in found] == [
        (10 * S, 20 * S),
        (10 * S, 30 * S),
        (10 * S, 0),
    ]


def test_what_comes_again_and_again_has_a_rate_of_its_own() -> None:
    failures = [
        CRASH | {"component": "b", "every": {"kind": "constant", "value": "50 s"}},
        {"kind": "machines_fail", "lifetime": {"kind": "exponential", "mean": "20 d"}, "repair": "0 s"},
        {"kind": "crash_task", "at": "10 s", "component": "b"},
    ]
    found, remarks = causes(tideover.load(FARM | {"failures": failures}), {})
    assert [one.rate_per_s for one in found] == pytest.approx([1 / 50, 4 / (20 * DAY / S)])
    assert [remark.split(" ")[0] for remark in remarks] == ["failures.0.every", "failures.2"]


@pytest.mark.parametrize(
    ("mtbf", "said"),
    [
        ({}, "host=30d"),
        ({"hots": "3 d"}, "did you mean 'host'"),
        ({"failures.7": "3 d"}, "did you mean 'failures."),
        ({"host": "3"}, "has no unit"),
        ({"host": "0 s"}, "more than 0 s"),
        ({"worker": "3 d"}, "needs a failure of kind crash_worker"),
    ],
)
def test_what_is_wrong_is_said(mtbf: dict[str, str], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        causes(tideover.load(FARM), mtbf)


def test_a_detector_says_how_long_hosts_are_down() -> None:
    """Without a failure of the kind in the scenario, what the detector makes of one is simulated."""
    detector = {"kind": "heartbeats"}
    scenario = tideover.load(FARM | {"failures": [], "detector": detector})
    found = tideover.availability(
        scenario, {"host": "30 d"}, {"run.replications": 4, "run.duration": "120 s"}
    )
    assert found.availability.rate_per_s == {"4 hosts": pytest.approx(4 / (30 * DAY / S))}
    assert found.availability.recovery_s["4 hosts"].mean > 1


def test_what_has_not_recovered_leaves_the_answer_open() -> None:
    """The counter is down until after the end of the run."""
    late = [CRASH | {"component": "b", "at": "20 s", "restart": "1000 s", "within": "0 s"}]
    found = tideover.availability(FARM | {"failures": late}, {"failures.0": "30 d"}, slo=0.999)
    assert (found.availability.value, found.availability.undefined) == (None, 1)
    assert any("had not recovered" in text for text in found.warnings)
    assert found.to_dict()["availability"]["exceeded"] is None
