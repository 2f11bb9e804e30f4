"""What ``compare`` concludes: every strategy against the first, and the best of them in one sentence.

The sentence is a mechanical reading of the figures. Recovery is judged by the time from the failure until the
backlog is gone, which is defined for every strategy, whatever it does meanwhile. The sentence says so when
there are too few pairs, when nothing varies, when no difference shows, and when a value is undefined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.reports.columns import conform
from tideover.reports.estimates import Estimate, estimate
from tideover.reports.paired import Paired, paired
from tideover.reports.words import fixed, listed, places_for, plural, size, strategy_name

if TYPE_CHECKING:
    import pandas as pd

FEW_PAIRS = 5
"""With fewer pairs an interval leans on a normality that nobody can check."""

SAME_COST = 0.05

COMPARED = (
    "state_recovery_s",
    "catch_up_s",
    "throughput_90_s",
    "output_gap_s",
    "latency_median_ms",
    "latency_mean_ms",
)
"""Columns of ``recoveries`` that are compared pair by pair."""

_RESOURCES = {"network_bytes": "network bytes", "cpu_s": "CPU time", "store_bytes": "store bytes"}


@dataclass(frozen=True)
class Verdict:
    """``pairs``: each other strategy minus the reference (the first one), for each column in ``COMPARED``."""

    sentence: str
    reference: str
    best: str
    pairs: tuple[Paired, ...]


@dataclass(frozen=True)
class Outcome:
    """One strategy's recoveries and runs, pooled."""

    strategy: str
    catch_up: Estimate
    lost: int
    emitted: int
    windows: int
    wrong: int
    costs: dict[str, float]
    failed_runs: int
    runs: int

    @property
    def unhindered(self) -> bool:
        """No failure left a backlog."""
        return self.catch_up.mean == 0 and not self.catch_up.undefined

    @property
    def rank(self) -> tuple[float, ...]:
        """Less is better: unfailed, lossless, caught up each time, and fast, then cheap."""
        speed = math.inf if self.catch_up.mean is None else self.catch_up.mean
        missed = self.catch_up.undefined
        return (self.failed_runs == self.runs, self.lost > 0, missed, speed, self.costs["network_bytes"])


def verdict(recoveries: pd.DataFrame, runs: pd.DataFrame) -> Verdict:
    """Compare all strategies in the frames; the first one in ``runs`` is the reference.

    The sentence sets the best strategy beside the reference or, if the reference is the best, beside the
    next. Raises ValueError for fewer than two strategies.
    """
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    strategies = list(dict.fromkeys(str(name) for name in runs["strategy"]))
    if len(strategies) < 2:
        raise ValueError("a comparison needs at least two strategies")
    reference, others = strategies[0], strategies[1:]
    outcomes = {name: _outcome(name, recoveries, runs) for name in strategies}
    ranked = sorted(strategies, key=lambda name: outcomes[name].rank)
    best = ranked[0]
    other = ranked[1] if best == reference else reference
    pairs = tuple(paired(recoveries, name, reference, column) for name in others for column in COMPARED)
    return Verdict(sentence(outcomes[best], outcomes[other], recoveries), reference, best, pairs)


def sentence(best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    """The best strategy beside another: recovery, then loss, then cost. Loss comes first where neither has a
    backlog.
    """
    if best.failed_runs == best.runs:
        return "No run ended without an error, so there is nothing to compare."
    if len(recoveries) and best.unhindered and other.unhindered:
        found = [_kept(best, other)]
    else:
        found = [_recovery(best, other, recoveries), _loss(best, other), _wrong(best, other)]
    clauses = [*found, _cost(best, other), _failed(best, other)]
    text = "; ".join(clause for clause in clauses if clause)
    return f"{text[0].upper()}{text[1:]}."


def run_sentence(recoveries: pd.DataFrame, runs: pd.DataFrame) -> str:
    """One strategy alone: how long it takes to recover, and what is lost."""
    recoveries, runs = conform("recoveries", recoveries), conform("runs", runs)
    found = _outcome(str(runs["strategy"].iloc[0]), recoveries, runs)
    name = strategy_name(found.strategy)
    if found.failed_runs == found.runs:
        return f"Every run of {name} failed."
    recovered = f"{name} {_alone(found)}" if len(recoveries) else f"{name} ran without a failure"
    lost = (
        "no root is lost"
        if found.lost == 0
        else f"{plural(found.lost, 'root')} of {found.emitted:,} are lost"
    )
    failed = (
        f"; {found.failed_runs} of {plural(found.runs, 'run')} failed and are left out"
        if found.failed_runs
        else ""
    )
    return f"{recovered[0].upper()}{recovered[1:]}; {lost}{failed}."


def _outcome(strategy: str, recoveries: pd.DataFrame, runs: pd.DataFrame) -> Outcome:
    mine, done = recoveries[recoveries["strategy"] == strategy], runs[runs["strategy"] == strategy]
    means = mine.groupby(["seed", "replication"], sort=True)["catch_up_s"].mean()
    failed = int(done["error"].notna().sum())
    good = done[done["error"].isna()]
    costs = {name: float(good[name].sum()) / max(1, len(good)) for name in _RESOURCES}
    counted = {"lost": "lost", "emitted": "emitted", "windows": "windows_emitted", "wrong": "windows_wrong"}
    counts = {name: int(good[column].fillna(0).sum()) for name, column in counted.items()}
    catch_up = estimate(float(value) for value in means)
    return Outcome(strategy, catch_up, costs=costs, failed_runs=failed, runs=len(done), **counts)


def _recovery(best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    a, b = strategy_name(best.strategy), strategy_name(other.strategy)
    if recoveries.empty:
        return f"no failure was simulated, so there is no recovery of {a} and {b} to compare"
    pair = paired(recoveries, best.strategy, other.strategy, "catch_up_s")
    if pair.difference.n and not best.unhindered and not other.unhindered:
        return difference_clause(pair)
    alone = {outcome.strategy: _alone(outcome) for outcome in (best, other)}
    return f"{a} {alone[best.strategy]}, where {b} {alone[other.strategy]}"


def _alone(outcome: Outcome) -> str:
    """What one strategy did, where there is nothing to subtract."""
    found = outcome.catch_up
    if outcome.unhindered:
        return "has no backlog after a failure"
    if found.mean is None:
        return "has not caught up by the next failure or the end of the run"
    places = places_for(found.half_width)
    note = _interval(found, places, "replication")
    return f"has caught up {fixed(found.mean, places)} s after a failure ({note})"


def difference_clause(pair: Paired) -> str:
    """``R+SM has caught up 57.8 s sooner than source replay (95 % interval 57.1 to 58.4 s, 10 pairs)``."""
    a, b, found = strategy_name(pair.first), strategy_name(pair.second), pair.difference
    if found.mean is None:
        return f"{a} and {b} have no pair in which both have caught up"
    places = places_for(found.half_width)
    least = found if found.mean >= 0 else pair.mirrored().difference
    note = _interval(least, places, "pair")
    if found.constant and abs(found.mean) < 1e-9:
        return f"{a} and {b} have caught up equally soon in {_all(found.n, 'pair')}"
    if found.t is not None and not found.constant and found.t[0] <= 0 <= found.t[1]:
        note = _interval(found, places, "pair")
        shown = f"difference {fixed(found.mean, places)} s, {note}"
        return f"{a} and {b} cannot be told apart by when they have caught up ({shown})"
    word = "later" if found.mean > 0 else "sooner"
    return f"{a} has caught up {fixed(abs(found.mean), places)} s {word} after a failure than {b} ({note})"


def _interval(found: Estimate, places: int, unit: str) -> str:
    left_out = f", {found.undefined} more undefined and left out" if found.undefined else ""
    if found.t is None:
        return f"{plural(found.n, unit)}, so no interval{left_out}"
    if found.constant:
        return f"the same in {_all(found.n, unit)}{left_out}"
    only = "only " if found.n < FEW_PAIRS else ""
    low, high = (fixed(end, places) for end in found.t)
    return f"95 % interval {low} to {high} s, {only}{plural(found.n, unit)}{left_out}"


def _all(count: int, unit: str) -> str:
    return {1: f"the one {unit}", 2: f"both {unit}s"}.get(count, f"all {plural(count, unit)}")


def _loss(best: Outcome, other: Outcome) -> str:
    if best.lost == other.lost:
        return f"both lose {plural(best.lost, 'root')}" if best.lost else ""
    a, b = ("no root" if o.lost == 0 else plural(o.lost, "root") for o in (best, other))
    return f"it loses {a}, {strategy_name(other.strategy)} {b}"


def _wrong(best: Outcome, other: Outcome) -> str:
    """Wrong windows, where the one that is called better has more of them."""
    if best.wrong * max(1, other.windows) <= other.wrong * max(1, best.windows):
        return ""
    mine, theirs = (
        f"{best.wrong:,} of its {plural(best.windows, 'window')}",
        f"{other.wrong:,} of {other.windows:,}",
    )
    return f"{mine} are wrong, of {strategy_name(other.strategy)}'s {theirs}"


def _kept(best: Outcome, other: Outcome) -> str:
    """What each lost and got wrong, without a word on recovery."""
    a, b = strategy_name(best.strategy), strategy_name(other.strategy)
    mine, theirs = _harm(best), _harm(other)
    if mine == theirs:
        return f"{a} and {b} both {mine.replace('loses', 'lose').replace('emits', 'emit')}"
    return f"{a} {mine}, {b} {theirs}"


def _harm(outcome: Outcome) -> str:
    lost = "no root" if outcome.lost == 0 else plural(outcome.lost, "root")
    wrong = (
        f"{plural(outcome.wrong, 'wrong window')} of {outcome.windows:,}"
        if outcome.wrong
        else "no wrong window"
    )
    return f"loses {lost} and emits {wrong}"


def _cost(best: Outcome, other: Outcome) -> str:
    """Where the resources differ by more than 5 %: factors, or amounts where the other uses none."""
    factors: list[str] = []
    amounts: list[str] = []
    for name, words in _RESOURCES.items():
        mine, theirs = best.costs[name], other.costs[name]
        if theirs > 0 and abs(mine / theirs - 1) > SAME_COST:
            factors.append(f"{_factor(mine / theirs)} times the {words}")
        elif theirs == 0 and mine > 0:
            shown = f"{fixed(mine, 1)} s" if name.endswith("_s") else size(mine)
            amounts.append(f"{shown} of {words} per run where {strategy_name(other.strategy)} needs none")
    if not factors and not amounts:
        return "they cost the same to within 5 %"
    return f"{_it(best, other)} costs {listed(factors + amounts)}"


def _it(best: Outcome, other: Outcome) -> str:
    """The best strategy as the subject of the next clause: by name if the last clause was about both."""
    both = best.unhindered and other.unhindered
    return strategy_name(best.strategy) if both else "it"


def _factor(value: float) -> str:
    return fixed(value, 1 if value >= 0.95 else 2) if value >= 0.005 else "less than 0.01"


def _failed(best: Outcome, other: Outcome) -> str:
    failed, runs = best.failed_runs + other.failed_runs, best.runs + other.runs
    return f"{failed} of {plural(runs, 'run')} failed and are left out" if failed else ""
