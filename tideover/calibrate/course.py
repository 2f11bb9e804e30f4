"""The course of an episode, measured or simulated, and the figures that both are compared by.

A measured and a simulated episode are brought into the same form, and the same functions read both: so a
difference between them is not one of definitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tideover.models.evaluation import normal
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEP = SLOT / S
"""Resolution of backlogs, s."""
CALM = normal.CALM / S
"""For how long (s) a backlog has to stay normal until it counts as caught up."""


@dataclass(frozen=True)
class Course:
    """Rows that came in and rows whose results were out, over time.

    outputs   moments (s, rising) at which the sink got results of rows that it had none of before
    done      rows whose results are out from that moment on (rising)
    emitted   moments (s, rising) of a grid, and rows created up to each: linear in between
    """

    outputs: Floats
    done: Floats
    emitted: tuple[Floats, Floats]

    def created_by(self, at: Floats) -> Floats:
        """Rows created up to the moments ``at``."""
        return np.interp(at, *self.emitted)

    def done_by(self, at: Floats) -> Floats:
        """Rows whose results are out at the moments ``at``."""
        before = np.searchsorted(self.outputs, at, "right")
        return np.concatenate(([0.0], self.done))[before]

    def backlog(self, at: Floats) -> Floats:
        """Rows created whose results are not out at the moments ``at``."""
        return np.maximum(self.created_by(at) - self.done_by(at), 0.0)

    def latencies(self, begin: float, end: float, rows: int = 20_000) -> Floats:
        """Time (s) from creation until the result is out, of rows evenly chosen among those whose results
        come out in [begin, end).
        """
        first, last = np.searchsorted(self.outputs, (begin, end), "left")
        if first == 0:
            first = 1  # of what came before the first output nothing is known
        if last <= first:
            return np.zeros(0)
        low, high = self.done[first - 1], self.done[last - 1]
        row = low + (np.arange(rows) + 0.5) * (high - low) / rows
        moments, counts = self.emitted
        created = np.interp(row, counts, moments)
        return self.outputs[np.searchsorted(self.done, row, "left")] - created


def progress(moments: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Outputs that tell something new: those after which more rows are done than after any before.

    ``moments`` (s) in any order, ``rows``: rows done up to each. A batch that is run again after a failure,
    or the slower of two queries, brings nothing new.
    """
    order = np.argsort(moments, kind="stable")
    moments, rows = np.asarray(moments, float)[order], np.asarray(rows, float)[order]
    best = np.maximum.accumulate(rows)
    new = np.concatenate((best[:1] > 0, best[1:] > best[:-1]))
    return moments[new], best[new]


def output_gap(course: Course, failed: float, until: float) -> float | None:
    """The longest silence of the sink (s) that contains or follows the fault and ends before ``until``."""
    starts, ends = course.outputs[:-1], course.outputs[1:]
    counted = (ends > failed) & (ends <= until)
    return float((ends - starts)[counted].max()) if counted.any() else None


def catch_up(course: Course, since: float, failed: float, until: float) -> float | None:
    """From the fault to the first output from which on the backlog stays usual (s); None: not before
    ``until``.

    The tolerance is that of a simulated run (`tideover.models.evaluation.normal`): a quarter more than usual,
    for 4 s.
    But nobody knows what a real run would have been without its fault. Its rate is constant, so usual is what
    it was in [since, failed), its 99th percentile there, for real batches vary. If it stays so from the fault
    on, there was nothing to catch up with: 0.
    """
    before = course.backlog(np.arange(since, failed, STEP))
    after = course.outputs[(course.outputs > failed) & (course.outputs <= until)]
    if not len(before) or not len(after):
        return None
    usual = normal.SLACK * float(np.quantile(before, 0.99))
    at = np.arange(failed, until, STEP)
    calm = normal.first_calm(course.backlog(at) > usual, 0, 0)
    if not calm:
        return None if calm is None else 0.0
    moment = at[calm]
    # the backlog falls at outputs only: of the moment on the grid, the output just before
    return float(after[np.searchsorted(after, moment, "right") - 1]) - failed
