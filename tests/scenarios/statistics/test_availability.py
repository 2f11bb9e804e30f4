"""Availability from single recoveries, beside failures as they come and small cases by hand."""

import math

import numpy as np
import pytest
from scipy import stats

import tideover
from tideover.models.evaluation.measures import availability
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.statistics.availability import YEAR_S, causes, compound_poisson, conditioned
from tideover.scenarios.statistics.intervals import Estimate, estimate
from tideover.sim.units import DAY, S


def drawn(rates: dict[str, float], values: dict[str, np.ndarray], years: int, over: float) -> np.ndarray:
    """How long each of so many periods is down: failures one by one, what overlaps counted once."""
    rng, down = np.random.default_rng(5), np.zeros(years)
    for year in range(years):
        begins, ends = [], []
        for kind, rate in rates.items():
            n = rng.poisson(rate * over)
            moments = rng.uniform(0, over, n)
            begins.append(moments)
            ends.append(moments + rng.choice(values[kind], n))
        begin = np.concatenate(begins)
        order = np.argsort(begin)
        begin, end = begin[order], np.concatenate(ends)[order]
        reached = np.maximum.accumulate(np.concatenate([[0.0], end]))[:-1]
        down[year] = np.maximum(0.0, end - np.maximum(begin, reached)).sum()
    return down


def test_the_time_down_is_that_of_failures_one_by_one():
    """Two kinds, 2 % of the time down: mean, median, p95, and the chance to exceed a budget."""
    values = {"host": np.array([20.0, 60.0, 100.0]), "rack": np.array([400.0, 2_000.0])}
    rates = {"host": 1 / 5_000, "rack": 1 / 100_000}
    over = 1e6
    found = conditioned(values, rates, objective=0.975, over_s=over)
    down = drawn(rates, values, 4_000, over)
    assert found.value == math.exp(-60 / 5_000 - 1_200 / 100_000)
    spread = down.std() / math.sqrt(len(down))
    assert found.down_s == pytest.approx(down.mean(), abs=3 * spread)
    assert found.down_median_s == pytest.approx(np.quantile(down, 0.5), rel=0.02)
    assert found.down_p95_s == pytest.approx(np.quantile(down, 0.95), rel=0.02)
    assert found.exceeded == pytest.approx((down > found.budget_s).mean(), abs=0.03)


@pytest.mark.parametrize("count", [0.3, 12.0, 5_000.0, 3e6])
def test_equal_times_make_a_poisson_distribution(count):
    """Each event takes 7: the sum is 7 times a Poisson variable, however many are expected."""
    found = compound_poisson([(count, np.array([7.0]))])
    for q in (0.5, 0.95, 0.999):
        wanted = 7 * stats.poisson.ppf(q, count)
        assert found.quantile(q) == pytest.approx(wanted, abs=max(0.1, 2e-4 * wanted))
    limit = 7 * (stats.poisson.ppf(0.9, count) + 0.5)
    assert found.above(limit) == pytest.approx(stats.poisson.sf(limit // 7, count), abs=2e-3)


def test_the_interval_is_the_mean_s_through_exp():
    values, rate = [60.0, 90.0, 75.0, 100.0], 3e-5
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = conditioned({"host": values}, {"host": rate})
    assert (found.low, found.high) == pytest.approx((math.exp(-rate * high), math.exp(-rate * low)))


def test_the_interval_of_two_kinds_is_welch_s():
    """Of opposite signs, the difference of two means: scipy's Welch interval has the same width."""
    a, b = np.array([60.0, 90.0, 75.0, 100.0]), np.array([500.0, 900.0, 800.0])
    wanted = stats.ttest_ind(a * 3e-5, b * 1e-6, equal_var=False).confidence_interval(0.95)
    found = conditioned({"host": a, "rack": b}, {"host": 3e-5, "rack": 1e-6})
    assert math.log(found.high / found.low) == pytest.approx(wanted.high - wanted.low)


def test_failures_of_one_replication_count_as_one():
    """Two failures each that take equally long tell no more than one: the interval is the same."""
    once = conditioned({"host": [60.0, 90.0, 70.0]}, {"host": 1e-6})
    twice = conditioned({"host": [[60.0, 60.0], [90.0, 90.0], [70.0, 70.0]]}, {"host": 1e-6})
    assert twice == once


def test_what_is_not_recovered_from_leaves_availability_unknown():
    found = conditioned({"host": [60.0, None, 70.0], "task": [1.0]}, {"host": 1e-6, "task": 1e-6})
    assert (found.value, found.low, found.minutes_per_year, found.undefined) == (None, None, None, 1)
    assert conditioned({"host": [60.0, None]}, {"host": 0.0}).value == 1.0  # hosts do not fail


def test_the_budget_is_what_the_objective_leaves():
    """Ten hosts, 30 d each, 60 s to recover: 121.75 failures a year of 60 s, of 4.383 h that may be down."""
    rate = 10 / (30 * 86_400)
    found = conditioned({"host": [60.0, 60.0]}, {"host": rate}, objective=0.9995)
    assert found.budget_s == pytest.approx(0.0005 * YEAR_S)
    assert found.minutes_per_year == pytest.approx(121.75, abs=0.02)
    assert found.burnt == pytest.approx(rate * 60 / 0.0005, rel=2e-4)
    assert found.low == found.high == found.value


@pytest.mark.parametrize(
    ("recoveries", "rates", "more", "said"),
    [
        ({"host": [1.0]}, {}, {}, "no rate is given for host"),
        ({}, {}, {}, "no kind of failure"),
        ({"host": [-1.0]}, {"host": 1.0}, {}, "below 0"),
        ({"host": []}, {"host": 1.0}, {}, "at least one replication"),
        ({"host": [1.0]}, {"host": -1.0}, {}, "0 or more per second"),
        ({"host": [1.0]}, {"host": 1.0}, {"objective": 1.0}, "less than 1"),
        ({"host": [1.0]}, {"host": 1.0}, {"over_s": 0.0}, "more than 0"),
    ],
)
def test_what_cannot_be_is_refused(recoveries, rates, more, said):
    with pytest.raises(ValueError, match=said):
        conditioned(recoveries, rates, **more)


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


def test_single_failures_say_what_a_run_with_many_says():
    """Some 50 failures that are waited for, against 8 that are not; a tenth of the time is down."""
    apart, allowed = both("aligned_snapshots", 60, seconds=500, direct=6, single=8)
    assert apart < allowed < 0.03


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "pause", "seconds"),
    [("source_replay", 1_500, 8_000), ("rsm", 150, 3_000), ("aligned_snapshots", 100, 3_000)],
)
def test_single_failures_say_what_long_runs_say(strategy, pause, seconds):
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


def test_every_unit_that_has_tasks_is_struck_in_its_turn():
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


def test_the_moment_is_drawn_unless_the_scenario_says_otherwise():
    """Drawn as the scenario says; over half of what is left of the run; or just then, if that is meant."""
    found, _ = causes(tideover.load(FARM), dict.fromkeys(("failures.0", "failures.1", "failures.2"), "1 d"))
    assert [one.strikes[0].at for one in found] == [10 * S] * 3
    assert [one.strikes[0].within for one in found] == [20 * S, 30 * S, 0]


def test_what_comes_again_and_again_has_a_rate_of_its_own():
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
def test_what_is_wrong_is_said(mtbf, said):
    with pytest.raises(ScenarioError, match=said):
        causes(tideover.load(FARM), mtbf)


def test_a_detector_says_how_long_hosts_are_down():
    """Without a failure of the kind in the scenario, what the detector makes of one is simulated."""
    detector = {"kind": "heartbeats"}
    scenario = tideover.load(FARM | {"failures": [], "detector": detector})
    settings = {"run.replications": 4, "run.duration": "120 s"}
    found = tideover.availability(scenario, {"host": "30 d"}, settings)
    assert found.availability.rate_per_s == {"4 hosts": pytest.approx(4 / (30 * DAY / S))}
    assert found.availability.recovery_s["4 hosts"].mean > 1


def test_what_has_not_recovered_leaves_the_answer_open():
    """The counter is down until after the end of the run."""
    late = [CRASH | {"component": "b", "at": "20 s", "restart": "1000 s", "within": "0 s"}]
    found = tideover.availability(FARM | {"failures": late}, {"failures.0": "30 d"}, slo=0.999)
    assert (found.availability.value, found.availability.undefined) == (None, 1)
    assert any("had not recovered" in text for text in found.warnings)
    assert found.to_dict()["availability"]["exceeded"] is None
