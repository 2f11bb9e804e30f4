"""The plain fluid law that the mechanism is compared with: three parameters, least squares.

``D + r (f T + D) / (C - r)``: outage D, capacity C, fraction f of the interval T; what is measured is taken
to be the end of the backlog itself.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from tideover.calibrate.recoveries.law import Values, recovery
from tideover.calibrate.recoveries.measurements import Floats, Points

_STARTS = (1.2, 1.6, 2.5, 4.0)
"""Capacities to begin with, in highest measured rates."""


def fit(points: Points) -> Values:
    """Least squares of the logarithms, robust (soft L1), from several starts."""
    top = float(points.rate.max())
    bounds = ([0.01, 1.001 * top, 0.0], [float(points.recovery.max()), 100 * top, 1.0])

    def residuals(x: Floats) -> Floats:
        values = Values(x[0], x[1], x[2], 0.0)
        return np.log(recovery(values, points.interval, points.rate, None) / points.recovery)

    half = 0.5 * float(points.recovery.min())
    found = [
        least_squares(
            residuals,
            [half, start * top, 0.7],
            bounds=bounds,
            loss="soft_l1",
            f_scale=0.1,
            x_scale=[10, top, 1],
        )
        for start in _STARTS
    ]
    best = min(found, key=lambda result: float(result.cost))
    outage, capacity, fraction = map(float, best.x)
    return Values(outage, capacity, fraction, 0.0)


def predict(values: Values, interval: Floats, rate: Floats) -> Floats:
    """Time of recovery, s; infinite at rates that the capacity does not exceed."""
    return recovery(values, interval, rate, None)
