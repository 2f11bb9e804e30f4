"""What was found for one workload: each parameter with its interval, and whether the data say it at all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tideover.calibrate.recoveries.fits import Fitted
from tideover.calibrate.recoveries.law import Values
from tideover.calibrate.recoveries.measurements import Floats
from tideover.calibrate.recoveries.posterior import DIMENSIONS

NARROWER = 0.5
"""A parameter is identified if the data make its interval at least this much narrower than it was before."""
_TAIL = 1.6449
"""5 % of a standard normal distribution lie beyond it."""

MEANING = {
    "outage": ("s", "detection and restart together; such data cannot tell them apart"),
    "capacity": ("tuples/s", "most tuples per second that the job can process"),
    "fraction": ("ratio", "part of the interval that had passed when failures struck"),
    "snapshot": ("s", "time that a snapshot keeps the job from working"),
}
_ON_A_LOG_SCALE = ("outage", "capacity")


@dataclass(frozen=True)
class Parameter:
    """One line of the table: value, ends of the interval at 90 %, whether the data determine it."""

    parameter: str
    value: float
    low: float
    high: float
    unit: str
    identified: bool
    meaning: str

    def row(self) -> dict[str, Any]:
        """As a row of the table."""
        return asdict(self)


def parameters(found: Fitted) -> list[Parameter]:
    """All that the mechanism has, those of the instrument last."""
    posterior = found.posterior
    point = Values(*(np.asarray(part)[found.point] for part in posterior.values))
    before = posterior.prior.values(np.array([[-_TAIL] * DIMENSIONS, [_TAIL] * DIMENSIONS]))
    rows = []
    for name, (unit, meaning) in MEANING.items():
        low, high = found.intervals[name]
        known = _width(name, low, high) < NARROWER * _width(name, *getattr(before, name))
        value = float(getattr(point, name))
        rows.append(Parameter(name, value, float(low), float(high), unit, bool(known), meaning))
    window = posterior.prior.window or 0.0
    text = "window of the metric in which the backlog was seen; 0: it was seen at once"
    rows.append(Parameter("lag_window", window, window, window, "s", found.window_gain > 1, text))
    return rows


def _width(name: str, low: Floats, high: Floats) -> float:
    return float(np.log(high / low) if name in _ON_A_LOG_SCALE else high - low)
