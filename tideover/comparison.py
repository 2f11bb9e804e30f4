"""What a comparison of strategies found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tideover.models.results import headline
from tideover.models.schema.fields import frame

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results.result import Result
    from tideover.reports.verdict import Verdict


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found: ``results`` by strategy, the reference first.

    recoveries, runs, timeline, tasks, usage    tidy tables of all strategies together
    differences                          paired differences: each strategy minus the reference, by replication
    verdict                              the figures in a few sentences, and the best strategy
    """

    results: dict[str, Result]

    def __repr__(self) -> str:
        rows = self._headlines()
        shown = [f"{row['strategy']}: {headline.sentence(row)}" for row in rows]
        return "\n  ".join([f"<Comparison {rows[0]['scenario']!r}", *shown]) + ">"

    def _repr_html_(self) -> str:
        return headline.html(self._headlines())

    def _headlines(self) -> list[dict[str, Any]]:
        return [result.headline() for result in self.results.values()]

    @property
    def recoveries(self) -> pd.DataFrame:
        """One row a failure."""
        return self._joined("recoveries")

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run."""
        return self._joined("runs")

    @property
    def timeline(self) -> pd.DataFrame:
        """One row a simulated second."""
        return self._joined("timeline")

    @property
    def tasks(self) -> pd.DataFrame:
        """One row a task and run: how busy it was."""
        return self._joined("tasks")

    @property
    def usage(self) -> pd.DataFrame:
        """One row a resource, stretch of the run, and run."""
        return self._joined("usage")

    @cached_property
    def verdict(self) -> Verdict:
        """``text``, ``reference``, ``best``, and ``pairs`` for every compared column."""
        from tideover.reports.verdict import verdict

        return verdict(self.recoveries, self.runs)

    @property
    def differences(self) -> pd.DataFrame:
        """One row a strategy and column: mean of the paired differences, with two 95 % intervals."""
        import pandas as pd

        return pd.DataFrame([row for rows in self._differences().values() for row in rows])

    def to_list(self) -> list[dict[str, Any]]:
        """For each strategy what ``run --json`` prints, and ``differences``, ``reference``, ``verdict``."""
        found = self.verdict
        rows = self._differences()
        more = {"reference": found.reference, "best": found.best, "verdict": found.text}
        return [
            result.to_dict() | {"differences": rows.get(kind, [])} | more
            for kind, result in self.results.items()
        ]

    def _joined(self, name: str) -> pd.DataFrame:
        return frame(name, [row for result in self.results.values() for row in result.rows(name)])

    def _differences(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {}
        for pair in self.verdict.pairs:
            found = pair.difference
            low, high = found.t or (None, None)
            boot_low, boot_high = found.bootstrap or (None, None)
            rows.setdefault(pair.first, []).append(
                {
                    "strategy": pair.first,
                    "minus": pair.second,
                    "column": pair.column,
                    "mean": found.mean,
                    "t_low": low,
                    "t_high": high,
                    "bootstrap_low": boot_low,
                    "bootstrap_high": boot_high,
                    "pairs": found.n,
                    "undefined": found.undefined,
                }
            )
        return rows
