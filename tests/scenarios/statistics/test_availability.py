"""Availability from single recoveries: beside failures that are drawn one by one, and small cases by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from tideover.scenarios.statistics.availability import YEAR_S, compound_poisson, conditioned

DAY = 86_400.0


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


def test_the_time_down_is_that_of_failures_one_by_one() -> None:
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
def test_equal_times_make_a_poisson_distribution(count: float) -> None:
    """Each event takes 7: the sum is 7 times a Poisson variable, however many are expected."""
    found = compound_poisson([(count, np.array([7.0]))])
    for q in (0.5, 0.95, 0.999):
        wanted = 7 * stats.poisson.ppf(q, count)
        assert found.quantile(q) == pytest.approx(wanted, abs=max(0.1, 2e-4 * wanted))
    limit = 7 * (stats.poisson.ppf(0.9, count) + 0.5)
    assert found.above(limit) == pytest.approx(stats.poisson.sf(limit // 7, count), abs=2e-3)


def test_the_interval_is_the_mean_s_through_exp() -> None:
    values, rate = [60.0, 90.0, 75.0, 100.0], 3e-5
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = conditioned({"host": values}, {"host": rate})
    assert (found.low, found.high) == pytest.approx((math.exp(-rate * high), math.exp(-rate * low)))


def test_the_interval_of_two_kinds_is_welch_s() -> None:
    """Of opposite signs, the difference of two means: scipy's Welch interval has the same width."""
    a, b = np.array([60.0, 90.0, 75.0, 100.0]), np.array([500.0, 900.0, 800.0])
    wanted = stats.ttest_ind(a * 3e-5, b * 1e-6, equal_var=False).confidence_interval(0.95)
    found = conditioned({"host": a, "rack": b}, {"host": 3e-5, "rack": 1e-6})
    assert math.log(found.high / found.low) == pytest.approx(wanted.high - wanted.low)


def test_failures_of_one_replication_count_as_one() -> None:
    """Two failures each that take equally long tell no more than one: the interval is the same."""
    once = conditioned({"host": [60.0, 90.0, 70.0]}, {"host": 1e-6})
    twice = conditioned({"host": [[60.0, 60.0], [90.0, 90.0], [70.0, 70.0]]}, {"host": 1e-6})
    assert twice == once


def test_what_is_not_recovered_from_leaves_availability_unknown() -> None:
    found = conditioned({"host": [60.0, None, 70.0], "task": [1.0]}, {"host": 1e-6, "task": 1e-6})
    assert (found.value, found.low, found.minutes_per_year, found.undefined) == (None, None, None, 1)
    assert conditioned({"host": [60.0, None]}, {"host": 0.0}).value == 1.0  # hosts do not fail


def test_the_budget_is_what_the_objective_leaves() -> None:
    """Ten hosts, 30 d each, 60 s to recover: 121.75 failures a year of 60 s, of 4.383 h that may be down."""
    rate = 10 / (30 * DAY)
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
def test_what_cannot_be_is_refused(recoveries, rates, more, said) -> None:
    with pytest.raises(ValueError, match=said):
        conditioned(recoveries, rates, **more)
