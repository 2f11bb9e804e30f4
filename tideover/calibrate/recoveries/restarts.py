"""When a job reads again after one of its processes was lost: heartbeats that stop, then a restart.

A process is counted as lost once its last heartbeat is ``TIMEOUT_S`` old, and that was sent up to an interval
before the failure. Nothing of this is fitted. The restart (cancel, deploy, open) is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from tideover.calibrate.recoveries.measurements import Points
from tideover.calibrate.types import Floats

TIMEOUT_S, INTERVAL_S = 20.0, 5.0
"""Flink's ``heartbeat.timeout`` and ``heartbeat.interval`` in Demeter (M. Geldenhuys et al., 2024)."""
READ_S = 12**-0.5
"""Standard deviation of a time that is read in whole seconds."""
_EVEN = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True)
class Restart:
    """How long a restart takes, s.

    mean    mean over runs
    error   standard error of it
    spread  standard deviation from run to run
    """

    mean: float
    error: float
    spread: float

    def lasts(self, quantile: Floats | float) -> Any:
        """A quantile of the time that the next one takes, s."""
        return np.maximum(self.mean + np.hypot(self.error, self.spread) * ndtri(quantile), 0.0)

    @property
    def outage(self) -> float:
        """Mean time until a job reads again, s."""
        return float(detections(0.5)) + self.mean

    def outages(self) -> Floats:
        """When a job is seen to read again, s after the failure: equally likely each, rising."""
        read = (READ_S * ndtri(_EVEN))[:, None]
        detected = np.quantile((detections(_EVEN)[:, None] + self.lasts(_EVEN)).ravel(), _EVEN)
        return np.sort((detected + read).ravel())

    @property
    def scatter(self) -> float:
        """By how much a reading differs from what is read: standard deviation of the logarithm."""
        return READ_S / self.outage


def detections(age: Any) -> Any:
    """Times until a loss is noticed, s; ``age`` of the last heartbeat: from 0 to 1, in intervals."""
    return TIMEOUT_S - INTERVAL_S * age


def fit_restarts(workloads: Mapping[str, Points]) -> dict[str, Restart]:
    """Restarts of each workload; how they differ from run to run is found from all of them together.

    What the age of a heartbeat and the reading do not explain of the variance is the restart's.
    """
    outages = {name: p.outage for name, p in workloads.items() if p.outage is not None}
    freedom = sum(len(outage) - 1 for outage in outages.values())
    squares = sum(float(((outage - outage.mean()) ** 2).sum()) for outage in outages.values())
    variance = squares / freedom if freedom else 0.0
    spread = float(np.sqrt(max(variance - INTERVAL_S**2 / 12 - READ_S**2, 0.0)))
    return {
        name: Restart(float(outage.mean()) - detections(0.5), float(np.sqrt(variance / len(outage))), spread)
        for name, outage in outages.items()
    }
