"""How long a recovery under aligned snapshots takes, in closed form.

`posterior` fits it and `profile` tells it. ``tests/calibrate/test_recoveries.py`` holds it to what the
simulator does, so what changes here changes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri

from tideover.calibrate.episodes import Floats
from tideover.calibrate.recoveries.measurements import Points, Setting

# A process is counted as lost once its last heartbeat is as old as the timeout, and that was sent up to an
# interval before the failure. Nothing of this is fitted. The restart (cancel, deploy, open) is.

READ_S = 12**-0.5
"""Standard deviation of a time that is read in whole seconds."""
_EVEN = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True)
class Restart:
    """How long a restart takes, s: its mean, the error of that, and its standard deviation."""

    mean: float
    error: float
    spread: float

    def lasts(self, quantile: Floats | float) -> Any:
        """A quantile of the time that the next one takes, s."""
        return np.maximum(self.mean + np.hypot(self.error, self.spread) * ndtri(quantile), 0.0)

    def outages(self, place: Setting) -> Floats:
        """When a job is seen to read again, s after the failure: equally likely each, rising."""
        read = (READ_S * ndtri(_EVEN))[:, None]
        noticed = place.timeout - place.beat * _EVEN[:, None]
        detected = np.quantile((noticed + self.lasts(_EVEN)).ravel(), _EVEN)
        return np.sort((detected + read).ravel())


def fit_restarts(workloads: Mapping[str, Points]) -> dict[str, Restart]:
    """Restarts of each workload; how they differ from run to run is found from all of them together.

    What the age of a heartbeat and the reading do not explain of the variance is the restart's.
    """
    lasted = {
        name: (p.outage - np.mean(p.detection, axis=0), np.diff(p.detection, axis=0))
        for name, p in workloads.items()
        if p.outage is not None
    }
    freedom = sum(len(restart) - 1 for restart, _ in lasted.values())
    squares = sum(float(((restart - restart.mean()) ** 2).sum()) for restart, _ in lasted.values())
    variance = squares / freedom if freedom else 0.0
    ages = np.concatenate([beats.ravel() for _, beats in lasted.values()] or [np.zeros(1)])
    spread = float(np.sqrt(max(variance - np.mean(ages**2) / 12 - READ_S**2, 0.0)))
    return {
        name: Restart(float(restart.mean()), float(np.sqrt(variance / len(restart))), spread)
        for name, (restart, _) in lasted.items()
    }


# A fluid queue: the job is down for ``outage``. The input of that time, and of the time since the last
# complete snapshot, waits in the log. It is worked off at the capacity that the snapshots leave. The
# simulator says the same, within 2 %, at a thousand times the cost.

LAG_WINDOW_S = 30.0
"""Kafka's ``metrics.sample.window.ms``; a metric holds two such windows (``metrics.num.samples``)."""
_LONGEST_S = 1e6
"""Stands for never."""

Quantity = Floats | np.float64 | float
Window = float | None
"""Of the metric in which the end of a backlog is seen, s; None: it is seen at once."""


class Values(NamedTuple):
    """What a recovery depends on; numbers or arrays, one element a draw.

    outage     detection and restart together, s; where heartbeats tell the detection, the restart alone
    capacity   most tuples per second that the job can process
    fraction   part of the interval that had passed when the failure struck
    snapshot   time that a snapshot keeps the job from working, s
    """

    outage: Quantity
    capacity: Quantity
    fraction: Quantity
    snapshot: Quantity


def catch_up(values: Values, interval: Quantity, rate: Quantity) -> Floats:
    """Time from the restart until the backlog is gone, s; 1e6 s if that never happens."""
    left = values.capacity * (1 - np.minimum(values.snapshot / interval, 1)) - rate
    backlog = rate * (values.fraction * interval + values.outage)
    return np.where(left > 0, np.minimum(backlog / np.where(left > 0, left, 1), _LONGEST_S), _LONGEST_S)


def shown(catch_up: Floats, window: Window) -> Floats:
    """Time from the restart until a metric shows that the backlog is gone (``run.lag_window``), s."""
    return catch_up if window is None else window * (np.floor(catch_up / window) + 2)


def recovery(values: Values, interval: Quantity, rate: Quantity, window: Window) -> Floats:
    """Time from the failure until the backlog is seen to be gone, s; infinite if it never is."""
    after = catch_up(values, interval, rate)
    return np.where(after < _LONGEST_S, values.outage + shown(after, window), np.inf)


def fluid(values: Values, points: Points) -> Floats:
    """The plain fluid law that the mechanism is compared with, ``D + r (f T + D) / (C - r)``: outage D,
    capacity C, fraction f of the interval T; the mean detection is added to D where heartbeats tell it.
    """
    detected = np.mean(points.detection, axis=0)
    return recovery(values._replace(outage=values.outage + detected), points.interval, points.rate, None)


def fit_fluid(points: Points) -> Values:
    """The plain fluid law, fitted: what is measured is taken to be the end of the backlog itself, and
    snapshots to cost nothing.

    Least squares of the logarithms, robust (soft L1), from several starts.
    """
    top = float(points.rate.max())
    bounds = ([0.01, 1.001 * top, 0.0], [float(points.recovery.max()), 100 * top, 1.0])

    def residuals(x: Floats) -> Floats:
        values = Values(x[0], x[1], x[2], 0.0)
        return np.log(fluid(values, points) / points.recovery)

    half = 0.5 * float(points.recovery.min())
    begins = [[half, start * top, 0.7] for start in (1.2, 1.6, 2.5, 4.0)]
    robust: dict[str, Any] = {"loss": "soft_l1", "f_scale": 0.1, "x_scale": [10, top, 1]}
    found = [least_squares(residuals, begin, bounds=bounds, **robust) for begin in begins]
    best = min(found, key=lambda result: float(result.cost))
    outage, capacity, fraction = map(float, best.x)
    return Values(outage, capacity, fraction, 0.0)
