"""Intervals of quantiles: ranks by the binomial distribution, and no limit where there are too few values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tideover.scenarios.statistics.intervals import quantile_interval


@given(st.integers(2, 150), st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.95, 0.99]))
def test_limits_lie_between_two_neighbours_of_which_one_covers_enough(n: int, q: float) -> None:
    """Values 1 … n are their own ranks. That the r-th is below the quantile has the chance of at least r
    successes; the limit is at or above the last rank for which that is 97.5 %, and below the next.
    """
    found = quantile_interval(range(1, n + 1), q)
    enough = [r for r in range(1, n + 1) if stats.binom.sf(r - 1, n, q) >= 0.975]
    assert (found.low is None) == (not enough)
    if found.low is not None:
        assert enough[-1] <= found.low <= enough[-1] + 1
    above = [r for r in range(1, n + 1) if stats.binom.cdf(r - 1, n, q) >= 0.975]
    assert (found.high is None) == (not above)
    if found.high is not None:
        assert above[0] - 1 <= found.high <= above[0]


@given(st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=40), st.sampled_from([0.3, 0.5, 0.8]))
def test_negative_values_mirror_the_interval(values: list[float], q: float) -> None:
    there, back = quantile_interval(values, q), quantile_interval([-v for v in values], 1 - q)
    assert there.value == pytest.approx(-back.value)
    assert there.low == (None if back.high is None else pytest.approx(-back.high))


def test_the_median_is_interpolated_as_hettmansperger_and_sheather_do() -> None:
    """n = 10: the 2nd to the 9th value cover 1 - 2 * 11/1024, the 3rd to the 8th 1 - 2 * 56/1024. With
    I = (0.97852 - 0.95) / (0.97852 - 0.89063) the weight of the 3rd is (10 - 2) I / (2 + (10 - 4) I).
    """
    part = ((1 - 22 / 1024) - 0.95) / (90 / 1024)
    weight = 8 * part / (2 + 6 * part)
    found = quantile_interval(np.arange(1, 11), 0.5)
    assert (found.value, found.low, found.high) == pytest.approx((5.5, 2 + weight, 9 - weight))


@pytest.mark.parametrize(("q", "least"), [(0.5, 6), (0.9, 36), (0.95, 72)])
def test_fewer_values_than_it_takes_have_no_upper_limit(q: float, least: int) -> None:
    """q to the power n is the chance that all values are below the quantile: it must not exceed 2.5 %."""
    assert quantile_interval(range(least - 1), q).high is None
    assert quantile_interval(range(least), q).high is not None


def test_undefined_values_are_counted_and_left_out() -> None:
    found = quantile_interval([None, 1.0, float("nan"), 3.0], 0.5)
    assert (found.n, found.undefined, found.value) == (2, 2, 2.0)
    assert quantile_interval([], 0.5).value is None
    with pytest.raises(ValueError, match="less than 1"):
        quantile_interval([1.0], 1.0)


@given(st.lists(st.floats(-10, 10), min_size=6, max_size=90), st.integers(0, 90), st.sampled_from([0.5, 0.9]))
def test_infinite_values_are_only_the_last(values: list[float], never: int, q: float) -> None:
    """As many very late ones in their place give the same figures, until these are very late or infinite."""
    never = min(never, len(values))
    late, infinite = ([*values[never:], *[end] * never] for end in (1e9, np.inf))
    there, here = quantile_interval(late, q, 0.9), quantile_interval(infinite, q, 0.9)
    for one, other in ((there.value, here.value), (there.low, here.low), (there.high, here.high)):
        assert other == (one if one is None or one <= 10 else pytest.approx(one) if other < 1e9 else np.inf)


def test_a_higher_level_takes_a_wider_interval() -> None:
    """n = 10 and the median: the 2nd to the 9th value cover 97.9 %, the 1st and the last 99.8 %."""
    found = [quantile_interval(range(1, 11), 0.5, level) for level in (0.9, 0.95, 1 - 22 / 1024, 0.99)]
    assert [one.low for one in found] == sorted((one.low for one in found), reverse=True)
    assert found[2].low == pytest.approx(2)
    assert found[2].high == pytest.approx(9)
