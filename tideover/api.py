"""The verbs of the command line as functions, with tables inside: what ``import tideover`` offers.

>>> import tideover
>>> result = tideover.run("wordcount", settings=["strategy.kind=rsm", "run.replications=2"])
>>> len(result.recoveries)
2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.models.config import Scenario
from tideover.models.results import headline
from tideover.models.schema.fields import frame
from tideover.scenarios import runs
from tideover.scenarios.loader import load, load_for_strategies
from tideover.scenarios.settings import Settings
from tideover.scenarios.writer import to_data

if TYPE_CHECKING:
    import pandas as pd

    from tideover.models.results.result import Result
    from tideover.reports.verdict import Verdict
    from tideover.scenarios.sweep import Sweep

Source = str | Path | Mapping[str, Any] | Scenario
"""A scenario: a built-in name, a path, a mapping as a file would hold it, or one that is loaded already."""


def run(
    scenario: Source,
    settings: Settings = (),
    *,
    trace: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> Result:
    """Simulate all replications of a scenario.

    ``settings``: texts ``key=value`` as given to ``--set``, or a mapping: ``{"run.seed": 3}``. ``trace``:
    keep every tuple, for small runs. ``report``: called with the number of replications that are done, and of
    all.

    Raises ScenarioError for a scenario that cannot be used, TypeError for settings that are neither a list of
    texts nor a mapping, RunFailed if a replication fails.
    """
    return runs.run(loaded(scenario, settings), trace=trace, report=report)


def compare(
    scenario: Source,
    strategies: Sequence[str] | None = None,
    settings: Settings = (),
    *,
    report: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Simulate the same scenario, failures and luck under several strategies; the first is the reference.

    ``strategies``: their kinds, each with the parameters that the scenario's block ``strategies`` has for it;
    None for all that the block names. ``settings`` and ``report`` as for ``run``. Raises like ``run``, and
    ValueError if there are not two strategies.
    """
    found = compared(scenario, strategies, settings)
    total = sum(one.run.replications for one in found.values())
    before = 0
    results: dict[str, Result] = {}
    for kind, one in found.items():

        def tell(done: int, _: int, before: int = before) -> None:
            if report is not None:
                report(before + done, total)

        results[kind] = runs.run(one, report=tell)
        before += one.run.replications
    return Comparison(results)


def sweep(
    spec: str | Path | Mapping[str, Any],
    settings: Settings = (),
    *,
    master: str | None = "local[*,4]",
    out: str | Path | None = None,
    partitions: int | None = None,
    report: Callable[[str, float, int], None] | None = None,
) -> Sweep:
    """Simulate every point of a grid: a sweep file, the name of a built-in sweep, or a mapping.

    ``settings``: as for ``run``; a list of values for a key of the grid takes the place of the grid's.
    ``master``: Spark's; None does without Spark, in this process. ``out``: a directory in which runs are kept
    as they are done; what is there already is not done again. ``partitions``: of one Spark job for all runs.
    ``report``: called with what is being done, how many runs are done, and of how many.

    Raises ScenarioError; JavaNotFound, SparkNotStarted and SweepFailed if Spark does not work; ValueError and
    OSError for ``out``.
    """
    from tideover.reports.parquet import prepare
    from tideover.scenarios import grid
    from tideover.scenarios import sweep as sweeps

    points = grid.read(spec, settings)
    keep = None if out is None else prepare(out) / KEPT
    return sweeps.sweep(points, master=master, keep=keep, partitions=partitions, report=report)


KEPT = ".runs"
"""Where, in the directory for results, single runs are kept."""


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found: ``results`` by strategy, the reference first.

    recoveries, runs, timeline, tasks    tidy tables of all strategies together
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


def loaded(scenario: Source, settings: Settings = ()) -> Scenario:
    """The scenario of a source, with the settings applied; raises ScenarioError."""
    if not isinstance(scenario, Scenario):
        return load(scenario, settings)
    return load(to_data(scenario), settings) if len(settings) else scenario


def compared(
    scenario: Source, strategies: Sequence[str] | None = None, settings: Settings = ()
) -> dict[str, Scenario]:
    """The scenario under each strategy; raises ScenarioError, and ValueError if there are not two."""
    source = to_data(scenario) if isinstance(scenario, Scenario) else scenario
    if isinstance(strategies, str):
        raise TypeError(f"strategies is the text {strategies!r}; give a list, {[strategies]}")
    if strategies is not None and len(set(strategies)) < len(strategies):
        raise ValueError(f"a strategy is named twice in {', '.join(strategies)}; name each once")
    found = load_for_strategies(source, strategies, settings)
    if len(found) < 2:
        only = f", not only {', '.join(found)}" if found else ""
        raise ValueError(f"a comparison needs at least two strategies{only}")
    return found
