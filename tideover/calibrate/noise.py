"""The noise of batch durations, put on top of a simulated run.

A simulated batch takes its mean time. Real ones vary, and they take longer while something else on the same
processors starts. The figures of a fault hang on single batches (a backlog that is just usual, or just not),
so a prediction is made of many runs, each with noise of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tideover.calibrate.types import Floats


@dataclass(frozen=True)
class Batches:
    """The batches of one query, in order; one value each.

    triggered, visible, committed   s
    done                            rows whose results are out as soon as the batch is visible
    """

    triggered: Floats
    visible: Floats
    committed: Floats
    done: Floats

    def median_s(self) -> float:
        """Median time from a batch's trigger until it is visible."""
        return float(np.median(self.visible - self.triggered)) if len(self.visible) else 0.0

    def delayed(self, extra: Floats, interval: float, rate: float) -> tuple[Floats, Floats]:
        """When batches would have been visible (s), and up to which row, if each took ``extra`` s longer.

        A batch starts at a trigger, every ``interval`` s, or as soon as the one before is committed; one that
        starts later takes the rows that came meanwhile, too (``rate`` per s).
        """
        shifts = np.zeros(len(extra))
        free = before = due = -np.inf
        for i, (trigger, committed) in enumerate(zip(self.triggered, self.committed, strict=True)):
            waited = trigger <= before  # for the batch before
            begin = max(due if waited else trigger, free)
            shifts[i] = begin - trigger
            before, free = committed, committed + shifts[i] + extra[i]
            due = (np.floor(begin / interval) + 1) * interval
        return self.visible + shifts + extra, self.done + rate * shifts

    def extra_s(self, slowdown: Floats, sigma: Floats, z: Floats) -> Floats:
        """By how much (s) each batch is longer than its mean: ``slowdown`` times as long, and noise of the
        standard deviation ``sigma`` (of the log of its duration) times ``z``.
        """
        return self.median_s() * (slowdown * np.exp(sigma * z) - 1)
