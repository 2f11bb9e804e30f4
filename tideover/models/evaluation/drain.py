"""How long queues before spouts take to drain after a failure."""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.models.evaluation.normal import CALM, SLACK, greatest_near
from tideover.sim.train import Ints
from tideover.sim.units import S


def figures(lag: Ints, without: Ints, failed_at: int, spouts: int) -> dict[str, Any]:
    """The greatest lag after a failure, and how long it is more than normal (s; None: to the end of the run);
    nothing if there are no queues.

    ``lag``, ``without``: unread records at the beginning of each second, of the run and of its reference.
    Normal is what it is of a backlog (`tideover.models.evaluation.normal`), looked at second by second.
    """
    if not len(lag):
        return {}
    first, calm = -(-failed_at // S), CALM // S
    near = greatest_near(without, calm)
    end, too_high = len(lag) - first, lag > np.maximum(SLACK * near, near + spouts)
    high = np.append(np.flatnonzero(too_high[first:]), end)
    rests = np.diff(high, prepend=-1) - 1  # seconds between those in which the lag is too great
    long_enough = np.flatnonzero((rests >= calm) | ((high == end) & (rests > 0)))
    if not len(long_enough):
        return {"max_lag": int(lag[first:].max(initial=0)), "drain_s": None}
    over = first + int(high[long_enough[0]] - rests[long_enough[0]])
    most = int(lag[first : over + 1].max(initial=0))
    return {"max_lag": most, "drain_s": 0.0 if over == first else over - failed_at / S}
