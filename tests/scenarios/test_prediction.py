"""The estimate of a prediction: what is least wrong relative to what comes true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tideover.scenarios.prediction import least_relative


@pytest.mark.parametrize("seed", range(5))
def test_no_other_estimate_has_a_smaller_relative_error(seed: int) -> None:
    """The mean of |estimate / value - 1| has its least at one of the values; all of them are tried."""
    values = np.random.default_rng(seed).lognormal(4, 0.6, 31)

    def error(estimate: float) -> float:
        return float(np.abs(estimate / values - 1).mean())

    found = least_relative(values)
    assert error(found) == pytest.approx(min(map(error, values)), rel=1e-12)
    assert found <= np.median(values)


def test_what_mostly_never_ends_has_no_estimate() -> None:
    """Of three values, one without an end weighs nothing; with two there is nothing to expect."""
    assert least_relative([math.inf, 10.0, 30.0]) == 10
    assert math.isinf(least_relative([math.inf, 10.0, math.inf]))
