"""What is normal: what a run would have been, at the same instant, without its failures.

A scenario with failures is held against the same scenario, seed and luck without them (`reference.py`). What
recurs in normal operation (a snapshot, a batch) may come a little earlier or later after a failure, and
queues are then filled a little differently; so normal is a band, and its width is stated here once, for
``run``, ``sweep``, ``calibrate`` and all reports.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tideover.sim.recorder import SLOT
from tideover.sim.train import Ints
from tideover.sim.units import S

Bools = npt.NDArray[np.bool_]

SLACK = 1.25
"""A backlog is normal up to this multiple of what it would have been: real batches vary, and an executor that
has two partitions to serve instead of one is a little slower for good.
"""
CALM = 4 * S
"""How near in time (ns) what would have been is looked for, before and after; and for how long a backlog has
to stay normal until it counts as such: a new executor that is cold may stop the results for a second time.
"""


def reach_of(beat: int) -> int:
    """How near in time (ns) what would have been is looked for.

    ``beat``: the period (ns) of what interrupts the flow in normal operation, and may come at another moment
    after a failure; 0: nothing does. Two of them are looked at, so that a whole one is always among them.
    """
    return max(CALM, 2 * beat)


def greatest_near(values: Ints, reach: int) -> Ints:
    """For each element the greatest of those at most ``reach`` places away."""
    # windows of 1, 2, 4, … are put together from two of half the length, and the last from two that overlap
    length = 2 * reach + 1
    padded = np.concatenate((np.repeat(values[:1], reach), values, np.repeat(values[-1:], reach)))
    span = 1
    while 2 * span <= length:
        padded = np.maximum(padded[:-span], padded[span:])
        span *= 2
    rest = length - span
    return np.maximum(padded[: len(padded) - rest], padded[rest:])


def least_near(values: Ints, reach: int) -> Ints:
    """For each element the least of those at most ``reach`` places away."""
    return -greatest_near(-values, reach)


def too_high(backlog: Ints, without: Ints, beat: int, spouts: int) -> Bools:
    """In which slots the backlog is more than normal.

    ``without``: what it would have been, by slot. Normal is up to a quarter more than the greatest of it
    within 4 s (or two beats), and at least a root for each of the ``spouts`` more: spouts that were restarted
    may from then on call together.
    """
    near = greatest_near(without, reach_of(beat) // SLOT)
    return backlog > np.maximum(SLACK * near, near + spouts)


def first_calm(abnormal: Bools, begin: int, beat: int) -> int | None:
    """The first slot from ``begin`` on with which 4 s (or a longer ``beat``, ns) without anything abnormal
    begin; of the last stretch, which the end of the run cuts off, 1 s (or a beat) is enough. None: there is
    none.
    """
    high = np.flatnonzero(abnormal[begin:])
    quiet_from = np.concatenate(([0], high + 1))
    quiet_to = np.concatenate((high, [len(abnormal) - begin]))
    need = np.full(len(quiet_from), max(CALM, beat) // SLOT)
    need[-1] = max(S, beat) // SLOT
    long_enough = np.flatnonzero(quiet_to - quiet_from > need)
    return begin + int(quiet_from[long_enough[0]]) if len(long_enough) else None
