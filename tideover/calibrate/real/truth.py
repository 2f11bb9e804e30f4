"""What should have been counted, computed from the schedule, and what is missing or too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tideover.calibrate.real.pipelines import sentences
from tideover.calibrate.real.plan import SessionPlan
from tideover.calibrate.real.schedule import MICROSECONDS, Schedule
from tideover.calibrate.real.source import Content

_CHUNK = 1_000_000


@dataclass(frozen=True)
class Ledger:
    """Counted as it should be, missing, and too much; in words or rows."""

    right: int = 0
    missing: int = 0
    extra: int = 0

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(self.right + other.right, self.missing + other.missing, self.extra + other.extra)


def content(plan: SessionPlan) -> Content:
    """What the rows of a session hold."""
    return Content(plan.seed, 0, plan.partitions, sentences(plan.pipeline), plan.keys)


def words_of_window(plan: SessionPlan, schedule: Schedule, window: int) -> Counter[str]:
    """The true counts of one window of a word count."""
    edges = [schedule.rows_before((window + k) * plan.window_s * MICROSECONDS) for k in (0, 1)]
    numbers = content(plan).numbers(np.arange(*edges, dtype=np.int64))
    found: Counter[str] = Counter()
    for number, times in enumerate(np.bincount(numbers, minlength=len(content(plan).sentences))):
        for word in content(plan).sentences[number].split():
            found[word] += int(times)
    return +found


def keys_until(plan: SessionPlan, row: int) -> npt.NDArray[np.int64]:
    """The true count of each key among the rows below this one."""
    found = np.zeros(plan.keys, np.int64)
    for first in range(0, row, _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, row), dtype=np.int64)
        found += np.bincount(content(plan).numbers(rows), minlength=plan.keys)
    return found


def compare_words(true: Mapping[str, int], got: Mapping[str, int]) -> Ledger:
    """One window's result beside the truth."""
    words = {*true, *got}
    pairs = [(true.get(word, 0), got.get(word, 0)) for word in words]
    return Ledger(
        sum(min(pair) for pair in pairs),
        sum(max(0, a - b) for a, b in pairs),
        sum(max(0, b - a) for a, b in pairs),
    )


def compare_keys(true: npt.NDArray[np.int64], got: npt.NDArray[np.int64]) -> Ledger:
    """A running count beside the truth."""
    return Ledger(
        int(np.minimum(true, got).sum()),
        int(np.maximum(true - got, 0).sum()),
        int(np.maximum(got - true, 0).sum()),
    )
