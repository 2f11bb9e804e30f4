"""What ``compare`` concludes: which strategies are correct, which recover first, at what cost, how surely.

The sentences, which are in ``templates/sentences.j2``, are a mechanical reading of the figures. Correctness
comes first and names every strategy; then the best strategy is compared with the reference by its time to
recover, which is defined alike for all, then by its cost. The verdict says so when there are too few pairs,
when nothing varies, when no difference shows, and when a strategy has not recovered. Called by pages, by the
terminal, and by `tideover.compare`; which strategy is better is decided by ``Outcome.rank`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.schema import HEADLINE, LOSSY, named
from tideover.reports import wording
from tideover.reports.columns import conform
from tideover.reports.formatting import capitalised, strategy_name
from tideover.scenarios.statistics.intervals import Estimate, Paired, estimate, of_replications, paired

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
COMPARED = (
    HEADLINE,
    "state_recovery_s",
    "catch_up_s",
    "throughput_90_s",
    "output_gap_s",
    "end_to_end_median_ms",
    "end_to_end_mean_ms",
    "latency_median_ms",
    "latency_mean_ms",
)
"""Columns of ``recoveries`` that are compared pair by pair."""


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
    def name(self) -> str:
        return strategy_name(self.strategy)

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


def outcome(strategy: str, recoveries: pd.DataFrame, runs: pd.DataFrame) -> Outcome:
    """The outcome of a strategy in frames that may hold several; ``recoveries`` as `whole` gives them."""
    mine, done = recoveries[recoveries["strategy"] == strategy], runs[runs["strategy"] == strategy]
    means = mine.groupby(_REPLICATION, sort=True)[HEADLINE].mean()
    good = done[done["error"].isna()]
    return Outcome(
        strategy,
        estimate(float(value) for value in means),
        tuple(map(str, mine["ended"])),
        costs={name: float(good[name].sum()) / max(1, len(good)) for name in RESOURCES},
        failed_runs=len(done) - len(good),
        runs=len(done),
        **{name: int(good[column].fillna(0).sum()) for name, column in _COUNTS.items()},
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


@dataclass(frozen=True)
class Verdict:
    """``text``: sentences, one a line. ``pairs``: each other strategy minus the reference (the first one),
    for each column in ``COMPARED``. ``lossy``: strategies with a recovery in which something was lost.
    """

    text: str
    reference: str
    best: str
    pairs: tuple[Paired, ...]
    lossy: tuple[str, ...] = ()


def verdict(recoveries: pd.DataFrame, runs: pd.DataFrame) -> Verdict:
    """Compare all strategies in the frames; the first one in ``runs`` is the reference.

    The best strategy is compared with the reference or, if that is the best, with the second best. Raises
    ValueError for fewer than two strategies.
    """
    recoveries, runs = whole(conform("recoveries", recoveries)), conform("runs", runs)
    strategies = list(dict.fromkeys(str(name) for name in runs["strategy"]))
    if len(strategies) < 2:
        raise ValueError("a comparison needs at least two strategies")
    outcomes = [outcome(name, recoveries, runs) for name in strategies]
    reference, (best, second, *_) = outcomes[0], sorted(outcomes, key=lambda one: one.rank)
    other = reference if best is not reference and reference.ran else second
    pairs = [paired(recoveries, name, strategies[0], *COMPARED) for name in strategies[1:]]
    lossy = tuple(one.strategy for one in outcomes if LOSSY in one.endings)
    pair = paired(recoveries, best.strategy, other.strategy, HEADLINE)[0] if len(recoveries) else None
    text = _text("comparison", outcomes, best, other, pair, RESOURCES)
    return Verdict(text, strategies[0], best.strategy, tuple(pair for each in pairs for pair in each), lossy)


def run_sentence(found: Outcome) -> str:
    """One strategy alone: whether it is correct, and how long it takes to recover."""
    return _text("run", found)


def _text(macro: str, *given: Any) -> str:
    return "\n".join(f"{capitalised(line)}." for line in wording.sentences(macro, *given))
