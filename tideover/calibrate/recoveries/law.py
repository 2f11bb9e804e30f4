"""How long a recovery under aligned snapshots takes, in closed form.

A fluid queue: the job is down for ``outage``; meanwhile, and since its last complete snapshot, input has
piled up in the log, and is worked off at what capacity the snapshots leave. The simulator says the same
(``tests/calibrate/test_recoveries.py`` holds the two to 2 %) at a thousand times the cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tideover.calibrate.recoveries.measurements import Floats

LAG_WINDOW_S = 30.0
"""Kafka's ``metrics.sample.window.ms``; a metric holds two such windows (``metrics.num.samples``)."""
_LONGEST_S = 1e6
"""Stands for never."""


Quantity = Floats | np.float64 | float


class Values(NamedTuple):
    """What a recovery depends on; numbers or arrays, one element a draw.

    outage     detection and restart together, s
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


def shown(catch_up: Floats, window: float | None) -> Floats:
    """Time from the restart until a metric shows that the backlog is gone (``run.lag_window``), s."""
    return catch_up if window is None else window * (np.floor(catch_up / window) + 2)


def recovery(values: Values, interval: Quantity, rate: Quantity, window: float | None) -> Floats:
    """Time from the failure until the backlog is seen to be gone, s; infinite if it never is."""
    after = catch_up(values, interval, rate)
    return np.where(after < _LONGEST_S, values.outage + shown(after, window), np.inf)
