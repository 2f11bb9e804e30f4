"""How a batch differs from others like it, put on top of a simulated run.

A simulated batch takes its mean time. Real ones vary, and they take longer while something else on the same
processors starts. The figures of a fault hang on single batches (a backlog that is just usual, or just not),
so a prediction is made of many runs, each with luck of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Batches:
    """The batches of one query, in order; one value each.

    triggered, visible, committed   s
    done                            rows whose results are out as soon as it is visible
    """

    triggered: Floats
    visible: Floats
    committed: Floats
    done: Floats

    def usual_s(self) -> float:
        """How long a batch takes until it is visible, in the middle of all."""
        return float(np.median(self.visible - self.triggered)) if len(self.visible) else 0.0

    def put_off(self, longer: Floats, interval: float, rate: float) -> tuple[Floats, Floats]:
        """When batches would have been visible (s), and up to which row, if each took ``longer`` (s).

        A batch starts at a trigger, every ``interval`` s, or as soon as the one before is committed; one that
        starts later takes the rows of that time, too (``rate`` per s).
        """
        shifts = np.zeros(len(longer))
        free = before = due = -np.inf
        for i, (trigger, committed) in enumerate(zip(self.triggered, self.committed, strict=True)):
            waited = trigger <= before  # for the one before
            begin = max(due if waited else trigger, free)
            shifts[i] = begin - trigger
            before, free = committed, committed + shifts[i] + longer[i]
            due = (np.floor(begin / interval) + 1) * interval
        return self.visible + shifts + longer, self.done + rate * shifts


def longer(batches: Batches, slower: Floats, unsteady: Floats, luck: Floats) -> Floats:
    """By how much (s) each batch is longer than its mean: ``slower`` times, and by chance, where ``unsteady``
    is the standard deviation of the log of its duration and ``luck`` says how many of them.
    """
    return batches.usual_s() * (slower * np.exp(unsteady * luck) - 1)
