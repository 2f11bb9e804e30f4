"""Intervals of prediction hold as much as they say, and are as wide as the fit knows too little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.calibrate.fits import Spread, spread_by_kind, spread_of


def width(found, value=5.0):
    low, high = found.interval(np.array([value]))
    return high - low


def test_interval_is_wider_for_less_freedom():
    widths = [width(Spread(0.2, freedom)) for freedom in (1, 2, 5, 30, 1000)]
    assert widths == sorted(widths, reverse=True)
    same = Spread(Spread(0.2, 3).normal, 1e9)
    assert width(same) == pytest.approx(width(Spread(0.2, 3)), rel=0.01)


def test_what_is_predicted_nowhere_has_no_interval():
    assert all(np.isnan(Spread(0.1, 5).interval(np.zeros(0))))


def test_what_mostly_never_comes_has_no_upper_end():
    low, high = Spread(0.1, 5).interval(np.array([5.0, 5.0, np.inf, np.inf]))
    assert 3 < low < 5
    assert high == np.inf


def test_less_than_the_floor_reaches_to_nothing():
    low, high = Spread(0.1, 5).interval(np.array([0.0, 0.2]), floor=1.0)
    assert low == 0
    assert 1 < high < 1.5


def test_two_outcomes_are_both_held():
    """A tenth of the ways ends late: the interval reaches as far, the estimate's own scatter would not."""
    _, high = Spread(0.1, 5).interval(np.array([1.0] * 9 + [8.0]))
    assert high > 6


@pytest.mark.parametrize("kills", [2, 3, 5])
def test_nine_of_ten_new_kills_are_held(kills):
    """Kinds of like scatter, each fitted by its mean: a new kill of a kind is in its interval as often as it
    says. The mean of n kills is off by itself, which the draws of a fit know: they are drawn here, too.
    """
    bits = np.random.default_rng(3)
    inside = []
    for _ in range(200):
        seen = bits.normal(0, 0.3, (6, kills))
        means = seen.mean(axis=1)
        found = spread_by_kind({i: seen[i] - means[i] for i in range(6)})
        for i in range(6):
            likely = np.exp(means[i] + bits.normal(0, 0.3 / np.sqrt(kills), 20))
            low, high = found[i].interval(likely)
            inside.append(low < np.exp(bits.normal(0, 0.3)) < high)
    assert 0.84 < np.mean(inside) < 0.96


def test_kinds_borrow_from_each_other():
    """One kill alone has the scatter of the others; many have their own. Two of three kinds have a
    variance of 0.04 * 4 / 3: that is typical, and theirs, over three degrees of freedom of their own and two.
    """
    steady = np.array([0.2, -0.2, 0.2, -0.2])
    found = spread_by_kind({"a": steady, "b": steady, "alone": np.zeros(1), "wild": np.tile([1.0, -1.0], 50)})
    assert found["a"].scale == found["alone"].scale == pytest.approx(np.sqrt(0.16 / 3))
    assert found["wild"].scale == pytest.approx(1.0, rel=0.05)
    assert [found[kind].freedom for kind in ("alone", "a", "wild")] == [2, 5, 101]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(1, 10))
def test_each_parameter_costs_a_degree_of_freedom(left, parameters):
    """With what is expected of it (0.05) for two more."""
    found = spread_of(np.array([*left, np.nan]), parameters, 0.05)
    assert found.freedom == 2 + max(0, len(left) - parameters)
    assert found.scale**2 * found.freedom == pytest.approx(np.square(left).sum() + 2 * 0.05**2)
