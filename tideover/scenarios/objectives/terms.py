"""The terms of an objective: what has to be how large."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tideover.models.job.components import Run
from tideover.scenarios.objectives.intervals import least_tries
from tideover.scenarios.objectives.metrics import Metric

LEVEL = 0.95
"""Of intervals, unless an objective says otherwise."""

Rule = Literal["every", "mean", "quantile", "runs", "time"]

_MEETS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Terms:
    """What is asked of a run.

    text       as it was written, but for spaces
    metric     table and column
    rule       what of the replications has to meet the limit:
               every     each of them
               mean      their mean
               quantile  their quantile ``share``
               runs      at least the part ``share`` of them
               time      at least the part ``share`` of the seconds, mean over the replications
    sign       ``<=``, ``<``, ``>=``, ``>`` or ``=``
    limit      in the column's unit
    share      as ``rule`` says; 1 for ``every``, unused for ``mean``
    level      of the interval, between a half and one
    """

    text: str
    metric: Metric
    rule: Rule
    sign: str
    limit: float
    share: float = 1.0
    level: float = LEVEL

    def meets(self, value: Any) -> Any:
        """Whether a value, or each of an array, is as the limit asks."""
        return _MEETS[self.sign](value, self.limit)

    @property
    def worst(self) -> float:
        """The value that breaks the objective whatever its limit."""
        return -math.inf if self.sign in (">=", ">") else math.inf

    @property
    def needed(self) -> int:
        """So few replications at least can decide it: an interval of the mean needs two; a quantile, or a
        part of the runs, so many that even if all of them meet the limit the interval does so.
        """
        if self.rule == "every":
            return 1
        if self.rule in ("mean", "time"):
            return 2
        easier = self.share if self.rule == "runs" or self.sign in ("<=", "<") else 1 - self.share
        return least_tries(easier, self.level)

    def remarks(self, run: Run) -> list[str]:
        """What an expert would say of it before any such run."""
        found = self._of_everything()
        lumps = "run.lump" if run.lump > 1 else "run.lump_rate" if run.lump_rate is not None else None
        if lumps and self.metric.column.name.startswith(("latency", "end_to_end")):
            found.append(
                f"{self.text}: latencies are those of lumps of tuples ({lumps}), which wait and are served "
                "as one, mostly longer than a tuple's: it may be met where it is called broken; without "
                "lumps they are exact, and a run takes longer"
            )
        return found

    def _of_everything(self) -> list[str]:
        """What is to be said of an objective of 100 %."""
        whole = self.rule == "time" and self.share == 1
        ratio = self.metric.column.name == "availability" and self.limit == 1
        if not whole and not ratio:
            return []
        return [
            f"{self.text}: an objective of 100 % leaves no error budget: any failure breaks it; ask for "
            "less, such as 99.9 % (Beyer et al. (2016), Site Reliability Engineering, ch. 3)"
        ]
