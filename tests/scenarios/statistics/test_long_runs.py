"""One long run: batch means, and where the warm-up ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tideover.scenarios.statistics.intervals import batch_means
from tideover.scenarios.statistics.warm_up import mser5


def test_batches_of_independent_values_make_student_s_interval() -> None:
    """3,600 values: 30 batches of 120, whose means are as replications."""
    values = np.random.default_rng(1).normal(5, 2, 3_605)
    found = batch_means(values)
    wanted = stats.ttest_1samp(values[5:].reshape(30, 120).mean(axis=1), 0).confidence_interval(0.95)
    assert (found.batches, found.size, found.correlated) == (30, 120, False)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_a_run_that_remembers_too_long_has_no_interval() -> None:
    """A random walk: batches depend on one another however long they are."""
    found = batch_means(np.cumsum(np.random.default_rng(2).normal(size=5_000)))
    assert (found.correlated, found.low, found.high) == (True, None, None)
    assert found.mean is not None


def test_few_values_have_no_interval() -> None:
    assert batch_means([1.0] * 39).low is None
    assert (batch_means([1.0] * 40).low, batch_means([]).mean) == (1.0, None)
    with pytest.raises(ValueError, match="every place"):
        batch_means([1.0, float("nan")])


def slow(series: np.ndarray) -> int:
    """The rule as it is written: the least variance of the rest over how many are left."""
    means = [float(np.mean(series[i : i + 5])) for i in range(0, len(series) - 4, 5)]
    last = len(means) - 5
    errors = [np.var(means[d:]) / (len(means) - d) for d in range(last + 1)]
    return 5 * int(np.argmin(errors))


@given(st.integers(0, 10_000), st.integers(50, 300), st.floats(0, 50))
def test_the_rule_is_what_it_says(seed: int, n: int, bias: float) -> None:
    rng = np.random.default_rng(seed)
    series = rng.normal(size=n) + bias * np.exp(-np.arange(n) / 20)
    assert mser5(series).values == slow(series)


def test_a_warm_up_is_found() -> None:
    """A queue that starts empty and needs 200 s to fill: the rest has mean 10."""
    rng = np.random.default_rng(3)
    series = rng.poisson(10 * np.minimum(1, np.arange(2_000) / 200))
    found = mser5(series)
    assert 120 <= found.values <= 300
    assert not found.too_short


def test_what_never_settles_is_too_short() -> None:
    assert mser5(np.arange(200.0)).too_short
    assert mser5(np.ones(49)).too_short
    with pytest.raises(ValueError, match="every place"):
        mser5([float("nan")] * 60)
