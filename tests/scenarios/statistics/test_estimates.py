"""Means and their intervals, beside scipy's, and of groups as of each group alone."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtrit

from tideover.scenarios.statistics.intervals import AT_95, estimate, t_quantile

NAN = float("nan")
DRAWS = np.random.default_rng(7).normal(57.8, 1.0, 10)


def test_the_t_interval_is_scipys():
    wanted = stats.ttest_1samp(DRAWS, 0).confidence_interval(0.95)
    assert estimate(DRAWS).t == pytest.approx((wanted.low, wanted.high), rel=1e-12)


def test_the_bootstrap_interval_is_near_scipys():
    wanted = stats.bootstrap(
        (DRAWS,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert estimate(DRAWS).bootstrap == pytest.approx((wanted.low, wanted.high), abs=0.03)


def test_the_bootstrap_is_the_same_each_time():
    assert estimate(DRAWS) == estimate(list(DRAWS))


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    covered = sum(low <= 0 <= high for low, high in (estimate(rng.normal(size=8)).t for _ in range(400)))
    assert 0.92 < covered / 400 < 0.98


@pytest.mark.parametrize(("values", "n", "undefined"), [([], 0, 0), ([NAN, None], 0, 2), ([3.0], 1, 0)])
def test_too_few_values_have_no_interval(values, n, undefined):
    found = estimate(values)
    assert (found.n, found.undefined, found.t, found.bootstrap) == (n, undefined, None, None)


def test_a_large_sample_is_not_too_much():
    found = estimate(np.arange(200_000.0))
    assert found.bootstrap == pytest.approx(found.t, rel=1e-5)


def test_what_is_said_of_students_t_is_what_scipy_finds():
    """Also for what is not written down: more degrees of freedom, another level, an array of them."""
    for freedom in range(1, len(AT_95) + 3):
        assert t_quantile(freedom, 0.95) == stdtrit(freedom, 0.975)
    assert t_quantile(4, 0.9) == stdtrit(4, 0.95)
    assert t_quantile(np.array([1, 2]), 0.95).tolist() == stdtrit([1, 2], 0.975).tolist()
