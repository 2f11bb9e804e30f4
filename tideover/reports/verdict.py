"""What ``compare`` concludes: which strategies are correct, which recovers sooner, and at what cost.

The sentences are a mechanical reading of the figures. Correctness comes first and names every strategy; then
the best strategy is compared with the reference by its time to recover, which is defined alike for all
strategies; then by its cost. The verdict says so when there are too few pairs, when nothing varies, when no
difference shows, and when a strategy has not recovered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.results.headline import counted
from tideover.models.schema.endings import LOSSY, OPEN
from tideover.models.schema.fields import HEADLINE
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
from tideover.reports.outcomes import RESOURCES, Outcome, outcome, whole
from tideover.scenarios.statistics.estimates import Estimate
from tideover.scenarios.statistics.paired import Paired, paired, paired_columns

if TYPE_CHECKING:
    import pandas as pd

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
    reference, others = strategies[0], strategies[1:]
    outcomes = {name: outcome(name, recoveries, runs) for name in strategies}
    ranked = sorted(strategies, key=lambda name: outcomes[name].rank)
    best = ranked[0]
    other = reference if best != reference and outcomes[reference].ran else ranked[1]
    pairs = tuple(pair for name in others for pair in paired_columns(recoveries, name, reference, COMPARED))
    text = _text(list(outcomes.values()), outcomes[best], outcomes[other], recoveries)
    lossy = tuple(name for name in strategies if LOSSY in outcomes[name].endings)
    return Verdict(text, reference, best, pairs, lossy)


def run_sentence(found: Outcome) -> str:
    """One strategy alone: whether it is correct, and how long it takes to recover."""
    return _lines([correctness([found]), _alone(found)])


def _text(outcomes: Sequence[Outcome], best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    if not best.ran:
        return "No run ended without an error, so there is nothing to compare."
    if not other.ran:
        return _lines([correctness([best]), _alone(best), _failed(outcomes)])
    found = [
        correctness(outcomes),
        _time(best, other, recoveries),
        _faster_but_less_correct(best, outcomes),
    ]
    if len(recoveries):
        costs = [_cost(best, other)]
    else:  # the costs of normal operation are all there is to compare
        costs = [_cost(best, one) for one in outcomes if one is not best and one.ran]
    return _lines([*found, *costs, _failed(outcomes)])


def _lines(sentences: Iterable[str]) -> str:
    return "\n".join(f"{capitalised(text)}." for text in sentences if text)


def correctness(outcomes: Sequence[Outcome]) -> str:
    """``R+SM loses no root, counts none twice and puts out no wrong window; …``: all strategies that ran."""
    ran = [o for o in outcomes if o.ran]
    exact = [strategy_name(o.strategy) for o in ran if o.exact]
    windows = any(o.windows or o.missing for o in ran)
    said = []
    if exact:
        verbs = ("lose", "count", "put") if len(exact) > 1 else ("loses", "counts", "puts")
        last = f"{verbs[2]} out every window right"
        parts = [f"{verbs[0]} no root", f"{verbs[1]} none twice", *([last] if windows else [])]
        said.append(f"{listed(exact)} {listed(parts)}")
    said += [f"{strategy_name(o.strategy)} {o.harm_in_words()}" for o in ran if not o.exact]
    return "; ".join(said)


def _time(best: Outcome, other: Outcome, recoveries: pd.DataFrame) -> str:
    a, b = strategy_name(best.strategy), strategy_name(other.strategy)
    if recoveries.empty:
        return "no failure was simulated, so there is no recovery to compare"
    if best.traceless and other.traceless:
        return f"neither {a} nor {b} shows a trace of a failure in output, state or backlog"
    pair = paired(recoveries, best.strategy, other.strategy, HEADLINE)
    if pair.difference.n and not best.traceless and not other.traceless:
        said = (difference_clause(pair), _never(best), _lossy(best), _never(other), _lossy(other))
        return "; ".join(clause for clause in said if clause)
    return f"{_alone(best)}, where {_alone(other)}"


def _alone(found: Outcome) -> str:
    """What one strategy did, where there is nothing to subtract."""
    name, time = strategy_name(found.strategy), found.time
    if not time.n and not time.undefined:
        return f"{name} ran without a failure"
    if found.traceless:
        zero = f"time to recover 0 s in {_all(time.n, 'replication')}"
        return f"{name} shows no trace of a failure in output, state or backlog ({zero})"
    if time.mean is None:
        return _never(found)
    places = places_for(time.half_width)
    note = _interval(time, places, "replication")
    recovers = f"{name} recovers {fixed(time.mean, places)} s after a failure ({note})"
    return "; ".join(clause for clause in (recovers, _never(found), _lossy(found)) if clause)


def _never(found: Outcome) -> str:
    """``… has not recovered by the end of the run in 3 of 5 replications``; empty if it always has."""
    missed, total = found.time.undefined, found.time.undefined + found.time.n
    if not missed:
        return ""
    where = "in the one replication" if total == 1 else f"in {missed} of {total} replications"
    return f"{strategy_name(found.strategy)} has not recovered by the end of the run {where}"


def _lossy(found: Outcome) -> str:
    """``… has lost roots for good in 3 of 5 recoveries``; empty if it never has."""
    ended = [each for each in found.endings if each != OPEN]
    lossy = ended.count(LOSSY)
    if not lossy:
        return ""
    where = f"in {_all(lossy, 'recovery', 'recoveries')}"
    if lossy < len(ended):
        where = f"in {lossy} of {len(ended)} recoveries"
    return f"{strategy_name(found.strategy)} has lost roots for good {where}"


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


def _faster_but_less_correct(best: Outcome, outcomes: Sequence[Outcome]) -> str:
    """The strategies that recover sooner than the best one, but are less correct."""
    time = best.time.mean
    if time is None:
        return ""
    said = [
        f"{strategy_name(o.strategy)} ({_after(o)})"
        for o in outcomes
        if o.ran and o.harm > best.harm and o.time.mean is not None and o.time.mean < time
    ]
    return f"sooner than {strategy_name(best.strategy)}, but less correct: {listed(said)}" if said else ""


def _after(found: Outcome) -> str:
    """``12.3 s (loss) after a failure``."""
    time = f"{fixed(found.time.mean, places_for(found.time.half_width))} s"
    return f"{with_ending(time, found.endings)} after a failure"


def _cost(best: Outcome, other: Outcome) -> str:
    """Where the resources differ by more than 5 %: factors, or amounts where one of the two uses none."""
    a, b = strategy_name(best.strategy), strategy_name(other.strategy)
    factors: list[str] = []
    amounts: list[str] = []
    for name, words in RESOURCES.items():
        mine, theirs = best.costs[name], other.costs[name]
        if mine > 0 and theirs > 0 and abs(mine / theirs - 1) > SAME_COST:
            factors.append(f"{_factor(mine / theirs)} times the {words}")
        elif mine > 0 and theirs == 0:
            amounts.append(f"{_amount(name, mine)} of {words} per run where {b} needs none")
        elif theirs > 0 and mine == 0:
            amounts.append(f"no {words} where {b} needs {_amount(name, theirs)} per run")
    if not factors and not amounts:
        return f"{a} and {b} cost the same to within {100 * SAME_COST:g} %"
    parts = [f"{listed(factors)} of {b}"] if factors else []
    return f"{a} costs {', and '.join([*parts, *([listed(amounts)] if amounts else [])])}"


def _amount(name: str, value: float) -> str:
    return f"{fixed(value, 1)} s" if name.endswith("_s") else size(value)


def _factor(value: float) -> str:
    return fixed(value, 1 if value >= 0.95 else 2) if value >= 0.005 else "less than 0.01"


def _failed(outcomes: Sequence[Outcome]) -> str:
    """How many runs failed, and under which strategies."""
    failed, runs = sum(o.failed_runs for o in outcomes), sum(o.runs for o in outcomes)
    if not failed:
        return ""
    whose = listed(f"{o.failed_runs} of {strategy_name(o.strategy)}" for o in outcomes if o.failed_runs)
    return f"{failed} of {counted(runs, 'run')} failed and are left out: {whose}"
