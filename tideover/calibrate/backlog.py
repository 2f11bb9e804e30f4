"""Backlog over time, measured or simulated, and the figures of a fault that are read off it.

A measured and a simulated episode are brought into the same form, and the same functions read both: so a
difference between the two is not one of definitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tideover.calibrate.types import Floats
from tideover.models.evaluation import normal
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

STEP = SLOT / S
"""Resolution of backlogs, s."""
CALM = normal.CALM / S
"""For how long (s) a backlog has to stay normal until it counts as caught up."""


@dataclass(frozen=True)
class BacklogCurve:
    """Rows that came in and rows whose results were out, over time.

    outputs   moments (s, rising) at which the sink got results of rows that it had none of before
    done      rows whose results are out from that moment on (rising)
    emitted   moments (s, rising) of a grid, and rows created up to each: linear in between
    """

    outputs: Floats
    done: Floats
    emitted: tuple[Floats, Floats]

    def backlog(self, at: Floats) -> Floats:
        """Rows created whose results are not out at the moments ``at`` (s)."""
        done = np.concatenate(([0.0], self.done))[np.searchsorted(self.outputs, at, "right")]
        return np.maximum(np.interp(at, *self.emitted) - done, 0.0)

    def latencies(self, begin: float, end: float, rows: int = 20_000) -> Floats:
        """Time (s) from creation until the result is out, of rows evenly chosen among those whose results
        come out in [begin, end).
        """
        first, last = np.searchsorted(self.outputs, (begin, end), "left")
        first = max(first, 1)  # when the rows of the first output came in is not known
        if last <= first:
            return np.zeros(0)
        low, high = self.done[first - 1], self.done[last - 1]
        row = low + (np.arange(rows) + 0.5) * (high - low) / rows
        moments, counts = self.emitted
        created = np.interp(row, counts, moments)
        return self.outputs[np.searchsorted(self.done, row, "left")] - created


def new_outputs(moments: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Those outputs after which more rows are done than after any before: their moments, and rows done.

    ``moments`` (s) in any order, ``rows``: rows done up to each. A batch that is run again after a failure
    brings nothing new, nor does the slower of two queries.
    """
    order = np.argsort(moments, kind="stable")
    moments, rows = np.asarray(moments, float)[order], np.asarray(rows, float)[order]
    most = np.maximum.accumulate(rows)
    new = np.concatenate((most[:1] > 0, most[1:] > most[:-1]))
    return moments[new], most[new]


def output_gap(curve: BacklogCurve, failed: float, until: float) -> float | None:
    """The longest silence of the sink (s) that contains or follows the fault and ends before ``until``."""
    starts, ends = curve.outputs[:-1], curve.outputs[1:]
    counted = (ends > failed) & (ends <= until)
    return float((ends - starts)[counted].max()) if counted.any() else None


def catch_up(curve: BacklogCurve, since: float, failed: float, until: float) -> float | None:
    """From the fault to the first output from which on the backlog stays usual (s); None: not before
    ``until``.

    The tolerance is that of a simulated run (`tideover.models.evaluation.normal`): a quarter more than usual,
    for 4 s.
    But nobody knows what a real run would have been without its fault. Its rate is constant, so usual is the
    99th percentile of its backlog in [since, failed), for real batches vary. If the backlog stays usual from
    the fault on, there was nothing to catch up with: 0.
    """
    before = curve.backlog(np.arange(since, failed, STEP))
    after = curve.outputs[(curve.outputs > failed) & (curve.outputs <= until)]
    if not len(before) or not len(after):
        return None
    usual = normal.SLACK * float(np.quantile(before, 0.99))
    at = np.arange(failed, until, STEP)
    calm = normal.first_calm(curve.backlog(at) > usual, 0, 0)
    if not calm:
        return None if calm is None else 0.0
    # The backlog falls at outputs only, so it became usual at the last one before this moment of the grid.
    return float(after[np.searchsorted(after, at[calm], "right") - 1]) - failed
