"""What ``compare`` concludes: which strategies are correct, which recover first, at what cost, how surely.

The sentences are a mechanical reading of the figures. Correctness comes first and names every strategy; then
the best strategy is compared with the reference by its time to recover, which is defined alike for all, then
by its cost. The verdict says so when there are too few pairs, when nothing varies, when no difference shows,
and when a strategy has not recovered. Called by pages, by the terminal, and by `tideover.compare`; which
strategy is better is decided by ``Outcome.rank``, and by nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tideover.models.results import counted
from tideover.models.schema import HEADLINE, LOSSY, OPEN, named
from tideover.reports.columns import conform
from tideover.reports.formatting import (
    capitalised,
    fixed,
    listed,
    places_for,
    size,
    strategy_name,
    with_ending,
)
from tideover.scenarios.statistics.intervals import (
    Estimate,
    Paired,
    estimate,
    of_replications,
    paired,
    paired_columns,
)

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
FEW_PAIRS = 5
"""With fewer pairs an interval leans on a normality that nobody can check."""
SAME_COST = 0.05

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
        """As sentences call it."""
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

    @property
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

    @property
    def shortfalls(self) -> list[str]:
        """``… has not recovered by the end of the run in 3 of 5 replications``, ``… has lost roots for good
        in both recoveries``; none if it always has, and never has.
        """
        missed, total = self.time.undefined, self.time.undefined + self.time.n
        said = []
        if missed:
            where = "in the one replication" if total == 1 else f"in {missed} of {total} replications"
            said.append(f"{self.name} has not recovered by the end of the run {where}")
        ended = [each for each in self.endings if each != OPEN]
        if lossy := ended.count(LOSSY):
            where = _all(lossy, "recovery", "recoveries")
            where = f"{lossy} of {len(ended)} recoveries" if lossy < len(ended) else where
            said.append(f"{self.name} has lost roots for good in {where}")
        return said

    @property
    def by_itself(self) -> str:
        """What it did, where there is nothing to subtract."""
        time = self.time
        if not time.n and not time.undefined:
            return f"{self.name} ran without a failure"
        if self.traceless:
            zero = f"time to recover 0 s in {_all(time.n, 'replication')}"
            return f"{self.name} shows no trace of a failure in output, state or backlog ({zero})"
        if time.mean is None:
            return self.shortfalls[0]
        places = places_for(time.half_width)
        note = _interval(time, places, "replication")
        recovers = f"{self.name} recovers {fixed(time.mean, places)} s after a failure ({note})"
        return "; ".join([recovers, *self.shortfalls])


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
    pairs = [paired_columns(recoveries, name, strategies[0], COMPARED) for name in strategies[1:]]
    lossy = tuple(one.strategy for one in outcomes if LOSSY in one.endings)
    text = _text(outcomes, best, other, recoveries)
    return Verdict(text, strategies[0], best.strategy, tuple(pair for each in pairs for pair in each), lossy)


def run_sentence(found: Outcome) -> str:
    """One strategy alone: whether it is correct, and how long it takes to recover."""
    return _lines([correctness([found]), found.by_itself])


def _text(outcomes: Sequence[Outcome], best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    if not best.ran:
        return "No run ended without an error, so there is nothing to compare."
    failed, runs = sum(o.failed_runs for o in outcomes), sum(o.runs for o in outcomes)
    whose = listed(f"{o.failed_runs} of {o.name}" for o in outcomes if o.failed_runs)
    left_out = f"{failed} of {counted(runs, 'run')} failed and are left out: {whose}" if failed else ""
    if not other.ran:
        return _lines([correctness([best]), best.by_itself, left_out])
    time, sooner = best.time.mean, []
    for o in outcomes:
        mean = o.time.mean
        if o.ran and o.harm > best.harm and time is not None and mean is not None and mean < time:
            took = with_ending(f"{fixed(mean, places_for(o.time.half_width))} s", o.endings)
            sooner.append(f"{o.name} ({took} after a failure)")
    less = f"sooner than {best.name}, but less correct: {listed(sooner)}" if sooner else ""
    # without failures the costs of normal operation are all there is to compare
    others = [other] if len(recoveries) else [o for o in outcomes if o is not best and o.ran]
    costs = [_cost(best, one) for one in others]
    return _lines([correctness(outcomes), _time(best, other, recoveries), less, *costs, left_out])


def _lines(sentences: Iterable[str]) -> str:
    return "\n".join(f"{capitalised(text)}." for text in sentences if text)


def correctness(outcomes: Sequence[Outcome]) -> str:
    """``R+SM loses no root, counts none twice and puts out no wrong window; …``: all strategies that ran."""
    ran = [o for o in outcomes if o.ran]
    exact = [o.name for o in ran if o.exact]
    said = []
    if exact:
        verbs = ("lose", "count", "put") if len(exact) > 1 else ("loses", "counts", "puts")
        parts = [f"{verbs[0]} no root", f"{verbs[1]} none twice"]
        if any(o.windows or o.missing for o in ran):
            parts.append(f"{verbs[2]} out every window right")
        said.append(f"{listed(exact)} {listed(parts)}")
    return "; ".join([*said, *(f"{o.name} {o.harm_in_words}" for o in ran if not o.exact)])


def _time(best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    if recoveries.empty:
        return "no failure was simulated, so there is no recovery to compare"
    if best.traceless and other.traceless:
        return f"neither {best.name} nor {other.name} shows a trace of a failure in output, state or backlog"
    pair = paired(recoveries, best.strategy, other.strategy, HEADLINE)
    if pair.difference.n and not best.traceless and not other.traceless:
        return "; ".join([difference_clause(pair), *best.shortfalls, *other.shortfalls])
    return f"{best.by_itself}, where {other.by_itself}"


def difference_clause(pair: Paired) -> str:
    """``R+SM recovers 57.8 s sooner after a failure than source replay (95 % interval …, 10 pairs)``."""
    a, b, found = strategy_name(pair.first), strategy_name(pair.second), pair.difference
    if found.mean is None:
        return f"{a} and {b} have no pair in which both have recovered"
    both = " in which both have recovered" if found.undefined else ""
    places = places_for(found.half_width)
    if found.constant and abs(found.mean) < 1e-9:
        return f"{a} and {b} recover equally soon in {_all(found.n, 'pair')}{both}"
    if found.t is not None and not found.constant and found.t[0] <= 0 <= found.t[1]:
        shown = f"difference {fixed(found.mean, places)} s, {_interval(found, places, 'pair')}{both}"
        return f"{a} and {b} cannot be told apart by their time to recover ({shown})"
    word = "later" if found.mean > 0 else "sooner"
    note = _interval(found if found.mean > 0 else pair.mirrored().difference, places, "pair")
    return f"{a} recovers {fixed(abs(found.mean), places)} s {word} after a failure than {b} ({note}{both})"


def _interval(found: Estimate, places: int, unit: str) -> str:
    if found.t is None:
        return f"{counted(found.n, unit)}, so no interval"
    if found.constant:
        return f"the same in {_all(found.n, unit)}"
    only = "only " if found.n < FEW_PAIRS else ""
    low, high = (fixed(end, places) for end in found.t)
    return f"95 % interval {low} to {high} s, {only}{counted(found.n, unit)}"


def _all(count: int, unit: str, units: str = "") -> str:
    units = units or f"{unit}s"
    return {1: f"the one {unit}", 2: f"both {units}"}.get(count, f"all {count:,} {units}")


def _cost(best: Outcome, other: Outcome) -> str:
    """Where the resources differ by more than 5 %: factors, or amounts where one of the two uses none."""
    a, b = best.name, other.name

    def amount(name: str, value: float) -> str:
        return f"{fixed(value, 1)} s" if name.endswith("_s") else size(value)

    factors: list[str] = []
    amounts: list[str] = []
    for name, words in RESOURCES.items():
        mine, theirs = best.costs[name], other.costs[name]
        if mine > 0 and theirs > 0 and abs(mine / theirs - 1) > SAME_COST:
            share = mine / theirs
            factor = fixed(share, 1 if share >= 0.95 else 2) if share >= 0.005 else "less than 0.01"
            factors.append(f"{factor} times the {words}")
        elif mine > 0 and theirs == 0:
            amounts.append(f"{amount(name, mine)} of {words} per run where {b} needs none")
        elif theirs > 0 and mine == 0:
            amounts.append(f"no {words} where {b} needs {amount(name, theirs)} per run")
    if not factors and not amounts:
        return f"{a} and {b} cost the same to within {100 * SAME_COST:g} %"
    parts = [f"{listed(factors)} of {b}"] if factors else []
    return f"{a} costs {', and '.join([*parts, *([listed(amounts)] if amounts else [])])}"
