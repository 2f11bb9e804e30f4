"""What a verdict judges a strategy by: its runs and recoveries, pooled, and its rank among the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.results.headline import counted
from tideover.models.schema.fields import HEADLINE, named
from tideover.reports.formatting import listed
from tideover.scenarios.statistics.estimates import Estimate, estimate
from tideover.scenarios.statistics.replications import of_replications

if TYPE_CHECKING:
    import pandas as pd

_JUDGED = [named("runs", name) for name in ("network_bytes", "cpu_s", "store_bytes")]
RESOURCES = {one.name: f"{one.label} bytes" if one.unit == "B" else one.label for one in _JUDGED}
"""The costs that a verdict speaks of, in its words."""

_COUNTS = {
    "lost": "lost",
    "duplicated": "duplicated",
    "emitted": "emitted",
    "windows": "windows_emitted",
    "wrong": "windows_wrong",
    "missing": "windows_missing",
}
_REPLICATION = ["strategy", "seed", "replication"]


@dataclass(frozen=True)
class Outcome:
    """One strategy's recoveries and runs, pooled; runs that failed are left out of all but ``runs``.

    time                   time to recover (s) of each replication, its failures averaged; undefined if it had
                           not recovered from one of them by the end of the run
    endings                how each recovery ended
    lost … missing         roots, and windows, of all runs together
    costs                  mean per run
    """

    strategy: str
    time: Estimate
    endings: tuple[str, ...]
    lost: int
    duplicated: int
    emitted: int
    windows: int
    wrong: int
    missing: int
    costs: dict[str, float]
    failed_runs: int
    runs: int

    @property
    def ran(self) -> bool:
        """At least one run ended without an error."""
        return self.failed_runs < self.runs

    @property
    def traceless(self) -> bool:
        """Correct, and output, state and backlog never were other than without failures."""
        return self.exact and self.time.mean == 0 and not self.time.undefined

    @property
    def harm(self) -> tuple[float, ...]:
        """What is incorrect, per run: lost roots, then wrong or missing windows, then roots counted twice."""
        runs = max(1, self.runs - self.failed_runs)
        return (self.lost / runs, (self.wrong + self.missing) / runs, self.duplicated / runs)

    @property
    def exact(self) -> bool:
        """Nothing is lost, counted twice, wrong or missing."""
        return not any(self.harm)

    @property
    def rank(self) -> tuple[float, ...]:
        """Less is better: correct, then recovered each time, then soon, then cheap."""
        soon = math.inf if self.time.mean is None and self.time.undefined else self.time.mean or 0.0
        return (not self.ran, *self.harm, self.time.undefined, soon, self.costs["network_bytes"])

    def harm_in_words(self) -> str:
        """``loses no root, but counts 750 of 11,245 roots twice``: for a strategy that is not exact."""
        said = [f"loses {self.lost:,} of {counted(self.emitted, 'root')}"] if self.lost else []
        if self.duplicated:
            said.append(f"counts {self.duplicated:,} of {counted(self.emitted, 'root')} twice")
        if self.wrong:
            said.append(f"puts out {self.wrong:,} of {counted(self.windows, 'window')} wrong")
        if self.missing:
            said.append(f"leaves out {counted(self.missing, 'window')}")
        return listed(said) if self.lost else f"loses no root, but {listed(said)}"


def outcome(strategy: str, recoveries: pd.DataFrame, runs: pd.DataFrame) -> Outcome:
    """The outcome of a strategy in frames that may hold several; ``recoveries`` as `whole` gives them."""
    mine, done = recoveries[recoveries["strategy"] == strategy], runs[runs["strategy"] == strategy]
    means = mine.groupby(_REPLICATION, sort=True)[HEADLINE].mean()
    good = done[done["error"].isna()]
    costs = {name: float(good[name].sum()) / max(1, len(good)) for name in RESOURCES}
    counts = {name: int(good[column].fillna(0).sum()) for name, column in _COUNTS.items()}
    time = estimate(float(value) for value in means)
    ended = tuple(map(str, mine["ended"]))
    return Outcome(
        strategy, time, ended, costs=costs, failed_runs=len(done) - len(good), runs=len(done), **counts
    )


def of_record(record: Mapping[str, Any]) -> Outcome:
    """The outcome of one result, as ``run --json`` prints it, in which no run failed."""
    column = named("recoveries", HEADLINE)
    times = of_replications([(one["replication"], one[HEADLINE]) for one in record["recoveries"]], column)
    found = {f"windows_{key}": count for key, count in (record["windows"] or {}).items()} | record["ledger"]
    return Outcome(
        record["strategy"],
        estimate(times),
        tuple(one["ended"] for one in record["recoveries"]),
        costs={name: float(record["cost"][name]) for name in RESOURCES},
        failed_runs=0,
        runs=record["replications"],
        **{name: int(found.get(column) or 0) for name, column in _COUNTS.items()},
    )


def whole(recoveries: pd.DataFrame) -> pd.DataFrame:
    """The recoveries, with the headline undefined for all failures of a replication that has not recovered
    from one of them: a mean of the others would favour strategies that recover only sometimes.
    """
    if recoveries.empty:
        return recoveries
    known = recoveries[HEADLINE].notna()
    each = known.groupby([recoveries[name] for name in _REPLICATION]).transform("all")
    return recoveries.assign(**{HEADLINE: recoveries[HEADLINE].where(each)})
