"""What should have been counted, computed from the schedule, and what is missing or too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tideover.calibrate.real.pipelines import MICROSECONDS, Content, Schedule, sentences
from tideover.calibrate.real.plan import SessionPlan

_CHUNK = 1_000_000


@dataclass(frozen=True)
class Ledger:
    """Words or rows that were counted as they should be, that are missing, and that are too much."""

    right: int = 0
    missing: int = 0
    extra: int = 0

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(self.right + other.right, self.missing + other.missing, self.extra + other.extra)


def content(plan: SessionPlan, start: int = 0) -> Content:
    """What the rows of a session hold, for a query that begins to read at the row ``start``."""
    return Content(plan.seed, start, plan.partitions, sentences(plan.pipeline), plan.keys)


def words_of_window(plan: SessionPlan, schedule: Schedule, window: int) -> Counter[str]:
    """The true counts of one window of a word count."""
    edges = [schedule.rows_before((window + k) * plan.window_s * MICROSECONDS) for k in (0, 1)]
    rows = content(plan)
    numbers, times = np.unique(rows.numbers(np.arange(*edges, dtype=np.int64)), return_counts=True)
    found: Counter[str] = Counter()
    for number, n in zip(numbers.tolist(), times.tolist(), strict=True):
        for word in rows.sentences[number].split():
            found[word] += n
    return found


def keys_until(plan: SessionPlan, row: int) -> npt.NDArray[np.int64]:
    """The true count of each key among the rows below this one."""
    found = np.zeros(plan.keys, np.int64)
    for first in range(0, row, _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, row), dtype=np.int64)
        found += np.bincount(content(plan).numbers(rows), minlength=plan.keys)
    return found


def compare_words(true: Counter[str], got: Mapping[str, int]) -> Ledger:
    counted = Counter(got)
    return Ledger((true & counted).total(), (true - counted).total(), (counted - true).total())


def compare_keys(true: npt.NDArray[np.int64], got: npt.NDArray[np.int64]) -> Ledger:
    return Ledger(
        int(np.minimum(true, got).sum()),
        int(np.maximum(true - got, 0).sum()),
        int(np.maximum(got - true, 0).sum()),
    )
