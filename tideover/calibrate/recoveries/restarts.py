"""When a job reads again after one of its processes was lost: heartbeats that stop, then a restart.

A process is counted as lost once its last heartbeat is as old as the timeout, and that was sent up to an
interval before the failure. Nothing of this is fitted. The restart (cancel, deploy, open) is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from tideover.calibrate.recoveries.measurements import Points, Setting
from tideover.calibrate.types import Floats

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

    def outages(self, place: Setting) -> Floats:
        """When a job is seen to read again, s after the failure: equally likely each, rising."""
        read = (READ_S * ndtri(_EVEN))[:, None]
        noticed = place.timeout - place.beat * _EVEN[:, None]
        detected = np.quantile((noticed + self.lasts(_EVEN)).ravel(), _EVEN)
        return np.sort((detected + read).ravel())

    def scatter(self, place: Setting) -> float:
        """By how much a reading differs from what is read: standard deviation of the logarithm."""
        return READ_S / (place.detected + self.mean)


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
