"""Fits of what a batch costs and of what a fault costs, and what no parameter explains.

`comparison.fit` calls ``fit_costs`` and ``fit_faults``. Equal seeds give equal draws: the order in which the
generator is asked is part of the result. Another model of costs is another matrix of ``fit_costs``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.optimize import least_squares, lsq_linear
from scipy.stats import norm
from scipy.stats import t as student

from tideover.calibrate.counterpart import Costs, Faults, noisy, predicted
from tideover.calibrate.episodes import NAN, Condition, Episode, Figures, Floats, Kind, Progress
from tideover.sim.train import Ints

# Residuals: by how much predictions are off for reasons that no parameter explains, and intervals with it.
#
# Their spread is told by the episodes of the fit alone. A few kills of one kind do not tell it, so kinds
# borrow from each other: the spread that is typical of all kinds counts as much as a few kills of the kind
# itself (the conjugate prior of a variance: A. Gelman and others, *Bayesian Data Analysis*, 3rd edition,
# section 2.6).

K = TypeVar("K", bound=Hashable)

LEVEL = 0.9
LEAST = 0.1
"""No prediction of what a fault does to a wall clock is better than a tenth."""
STEADY = 0.05
"""What is expected of a mean over many batches."""
PRIOR_FREEDOM = 2.0
"""Degrees of freedom that the typical spread counts for: of 1 to 16, this gave kills of a fit the greatest
likelihood when each was left out and predicted from the others (docs/calibration.md).
"""
QUANTILES = 201
"""Values that stand for the distribution of residuals, evenly spread: nothing is left to chance."""
_STEPS = 100
"""Of expectation and maximisation: far more than change anything."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation of log(predicted / measured), and for how many degrees of freedom it is known."""

    scale: float
    freedom: float

    @property
    def normal(self) -> float:
        """The standard deviation of a normal distribution with the same 90 % interval."""
        side = 0.5 + LEVEL / 2
        return self.scale * float(student.ppf(side, self.freedom) / norm.ppf(side))

    def interval(self, values: Floats, floor: float = 0.0) -> tuple[float, float]:
        """Interval of prediction (s): of positive ``values`` that are equally likely, each with residuals,
        with no bound if infinite. What is less than ``floor`` (s) is not told apart, and reaches to 0.
        """
        if not len(values):
            return NAN, NAN
        residuals = student.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, self.freedom) * self.scale
        likely = np.maximum(values, floor)[:, None] * np.exp(residuals)
        low, high = np.quantile(likely, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2), method="inverted_cdf").tolist()
        return (low if low > floor else 0.0), high


def spread_of(residuals: Floats, parameters: int, typical: float) -> Spread:
    """Of the residuals (log) of a fit with so many parameters; ``typical``: what is expected of it."""
    known = residuals[np.isfinite(residuals)]
    freedom = PRIOR_FREEDOM + max(0, len(known) - parameters)
    return Spread(float(np.sqrt((PRIOR_FREEDOM * typical**2 + (known**2).sum()) / freedom)), freedom)


def spread_beside_luck(residuals: Floats, parameters: int, typical: float) -> Spread:
    """The same for predictions by several runs, as likely as one another: a row of residuals for each
    measurement, which came about as in one of its runs. Which one is not known, so each counts by how likely
    it is with the spread that comes of it (expectation and maximisation: Dempster, Laird and Rubin, *Maximum
    Likelihood from Incomplete Data via the EM Algorithm*, J. R. Stat. Soc. B 39, 1977).
    """
    rows = residuals[np.isfinite(residuals).all(axis=1)]
    found = spread_of(np.sqrt((rows**2).mean(axis=1)), parameters, typical)
    for _ in range(_STEPS):
        odds = -0.5 * (rows / found.scale) ** 2
        weights = np.exp(odds - odds.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        found = spread_of(np.sqrt((weights * rows**2).sum(axis=1)), parameters, typical)
    return found


Law = Callable[[float, float], Figures]
"""The fluid law: the figures after a fault at a rate (1/s), and with an age (s) of what is gone back to."""


def fluid_law(found: Sequence[tuple[float, float, Figures]], floor: float = 0.0) -> Law:
    """The simplest law that could do it, fitted to faults (rate, age, figures) by least squares of logs:
    the sink is silent for D, and the backlog is gone after D + r (a + D) / (C - r), with rate r and age a.

    ``floor``: what is shorter (s) counts as that long. A catch-up that was never measured is not told.
    """
    top = max(rate for rate, _, _ in found)

    def law(rate: float, age: float, outage: float, capacity: float) -> Figures:
        left = max(capacity - rate, 1e-9 * capacity)
        return {"output_gap_s": outage, "catch_up_s": outage + rate * (age + outage) / left}

    def residuals(logs: Floats) -> Floats:
        made = [(law(rate, age, *np.exp(logs)), figures) for rate, age, figures in found]
        pairs = [(max(one[m], floor), max(figures[m], floor)) for one, figures in made for m in figures]
        return np.log([said / seen for said, seen in pairs if seen])

    known = [figures["output_gap_s"] for _, _, figures in found if "output_gap_s" in figures]
    begin = np.log(np.array([max(np.mean(known), floor), 2 * top], float))
    best = least_squares(residuals, begin, bounds=([-np.inf, np.log(1.001 * top)], np.inf))
    outage, capacity = np.exp(best.x).tolist()
    untold = {} if any("catch_up_s" in figures for _, _, figures in found) else {"catch_up_s": NAN}
    return lambda rate, age: law(rate, age, outage, capacity) | untold


def spread_by_kind(residuals: Mapping[K, Floats]) -> dict[K, Spread]:
    """Of each kind, out of the residuals (log) of all; each kind has one mean of its own."""
    known = {kind: values[np.isfinite(values)] for kind, values in residuals.items()}
    own = [np.sqrt((values**2).sum() / (len(values) - 1)) for values in known.values() if len(values) > 1]
    typical = max(LEAST, float(np.median(own))) if own else LEAST
    found = {kind: spread_of(values, 1, typical) for kind, values in known.items()}
    return {kind: replace(one, scale=max(LEAST, one.scale)) for kind, one in found.items()}


# Fit of what a batch costs, on batches of normal operation.
#
# A batch lasts from its trigger to its commit: planning, up to its first task, then tasks and sink, then
# the commit log. Planning and commit are measured by themselves. The time of tasks and sink is a constant,
# plus a cost per row, plus a cost per row of state. The simulator shares the rows out among tasks that work
# side by side, so what is fitted to the whole batch is multiplied by their number.

DRAWS = 100
STAGES = 2
"""Stages of a batch: one reads, one counts."""
LEAST_BATCHES = 3
"""Batches that an episode must have for its mean to be of use."""
PHASES = ("latest_offset_ms", "wal_ms", "planning_ms", "get_batch_ms")


@dataclass(frozen=True)
class CostFit:
    """The fit of one condition: the estimate, and draws of it; ``rows_vary`` and ``state_varies``: whether
    their costs can be told from the constant.
    """

    costs: Costs
    draws: tuple[Costs, ...]
    rows_vary: bool
    state_varies: bool


def fit_costs(episodes: Sequence[Episode], rng: np.random.Generator) -> dict[Condition, CostFit]:
    """Costs by condition, from episodes of the same query that are not held out.

    Each episode counts once, by its mean batch. The bootstrap is Bayesian (Rubin, *The Bayesian Bootstrap*,
    Annals of Statistics 9(1), 1981): episodes get random weights, none is left out, so few of them suffice.
    """
    found = {}
    known = [e for e in episodes if e.fitted and len(e.settled()) >= LEAST_BATCHES]
    for condition in sorted({e.condition for e in known}):
        mine = [e for e in known if _same_query(e.condition) == _same_query(condition)]
        noise = np.concatenate([e.noise() for e in mine])
        deviation = float(np.sqrt((noise**2).sum() / max(1, len(noise) - len(mine))))
        table = pd.DataFrame([_means(e) for e in mine])
        found[condition] = costs_of(table, mine[0].setup.partitions, rng, np.arange(len(mine)), deviation)
    return found


def _same_query(condition: Condition) -> Condition:
    """Until something fails a query that replays its source is one that has a checkpoint (`real.driver`)."""
    return condition._replace(strategy="micro_batch") if condition.strategy == "source_replay" else condition


def costs_of(
    table: pd.DataFrame, partitions: int, rng: np.random.Generator, groups: Ints, noise: float = 0.0
) -> CostFit:
    """The fit to one condition. ``table``: one row a mean batch (s, rows): plan, work, commit, map, reduce,
    rows, state_rows; ``groups``: rows with the same number, from 0, get the same weight in the bootstrap.
    """
    rows, state = table["rows"], table["state_rows"]
    # Whether batches of different size were seen, and states, beyond the few words of a window.
    vary = bool(rows.max() > 1.5 * rows.min()), bool(state.max() > 1.5 * state.min() + 1000)
    even = np.ones(int(groups.max()) + 1)
    weights = rng.dirichlet(even, DRAWS) * len(even)
    costs, *draws = (
        replace(_solve(table, w[groups], partitions, vary), noise=noise) for w in [even, *weights]
    )
    return CostFit(costs, tuple(draws), *vary)


def _means(episode: Episode) -> dict[str, float]:
    """The mean batch of an episode (s, rows)."""
    batches = episode.settled()
    stages = episode.stages()
    plan = stages.pop("lead")
    if not np.isfinite(plan):
        plan = float(batches[list(PHASES)].sum(axis=1).mean()) / 1000
    return stages | {
        "plan": plan,
        "work": float((batches["sink_s"] - batches["start_s"]).mean()) - plan,
        "commit": float((batches["end_s"] - batches["sink_s"]).mean()),
        "rows": float(batches["rows"].mean()),
        "state_rows": float(batches["state_rows"].mean()),
    }


def _solve(table: pd.DataFrame, weights: Floats, partitions: int, vary: tuple[bool, bool]) -> Costs:
    """Costs that meet the weighted episodes best, by relative error; none of them is negative.

    Of the constant, ``task_s`` is that of any task, and ``state_s`` what a stateful one takes longer; the
    rest is the driver's. Where single tasks were not measured, half of the constant is taken for theirs.
    """
    work = table["work"].to_numpy()
    columns = np.column_stack([np.ones(len(work)), table["rows"], table["state_rows"]])
    scale = np.array([1.0, 1e-6, 1e-6])  # s, us a row, us a row of state: of like size
    known = [True, *vary]  # others are part of the constant
    root = np.sqrt(weights) / work
    found = np.zeros(3)
    found[known] = lsq_linear((columns * scale)[:, known] * root[:, None], work * root, (0, np.inf)).x
    constant, row, state = found * scale
    mean = table.mul(weights, axis=0).sum() / weights.sum()
    reading = float(mean["map"]) - row * float(mean["rows"])
    counting = float(mean["reduce"]) - state * float(mean["state_rows"])
    task_s, state_s = constant / 2 / STAGES, 0.0
    if np.isfinite(reading + counting):
        task_s = max(0.0, min(reading, counting))
        state_s = max(0.0, counting - task_s)
        scale_to = min(1.0, constant / max(STAGES * task_s + state_s, 1e-9))
        task_s, state_s = scale_to * task_s, scale_to * state_s
    return Costs(
        plan_s=float(mean["plan"]),
        task_s=task_s,
        row_s=row * partitions,
        state_s=state_s,
        state_row_s=state * partitions,
        output_s=constant - STAGES * task_s - state_s,
        commit_s=float(mean["commit"]),
    )


# Fit of what a fault costs, on kills that are not held out.
#
# Detection and restart are measured by themselves, and so is what the loss of an executor costs on top: the
# first tasks on a new one, and the first batch of a query that starts anew; and how the restart of one
# query slows the other down. What a new driver costs on top shows only in how late the results are, so it
# is fitted through the simulator: such that output gaps and catch-up times come out as measured.

MEASURES = ("output_gap_s", "catch_up_s")
COLD = (Kind("micro_batch", "kill_driver"), Kind("source_replay", "kill_driver"))
"""Where ``cold_s`` is fitted through the simulator: of a replica that is lost the sink sees nothing."""
SIMULATED = 9
"""Values of ``cold_s`` that are simulated at a time."""
COMPARED = 401
"""Values of ``cold_s`` that are compared, between the simulated ones."""
ROBUST = 0.1
"""Log residual from which on the loss grows no faster than the residual: one odd kill must not lead."""
NEVER = 3.0
"""Residual of a simulation that never gets as far as was measured: about twenty times as long."""


@dataclass(frozen=True)
class FaultFit:
    """The fit of one kind of fault: estimate, draws, and the spread of each measure's residuals;
    ``cold_identified``: whether the kills tell the time of a cold start from 0.
    """

    faults: Faults
    draws: tuple[Faults, ...]
    cold_identified: bool
    spread: dict[str, Spread] = field(default_factory=dict)


def fit_faults(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    rng: np.random.Generator,
    progress: Progress,
) -> dict[Kind, FaultFit]:
    """Costs of faults by kind; ``costs`` by condition."""
    known = [e for e in episodes if e.fitted and e.fault.kind != "none" and e.condition in costs]
    kinds = sorted({e.kind for e in known})
    found: dict[Kind, FaultFit] = {}
    residuals: dict[Kind, Floats] = {}
    for i, kind in enumerate(kinds):
        progress(i / len(kinds), f"fitting {kind.fault} under {kind.strategy}".replace("_", " "))
        mine = [e for e in known if e.kind == kind]
        executor = found.get(Kind("micro_batch", "kill_executor"))
        found[kind] = _fit(mine, costs, rng, None if executor is None else executor.faults)
        made = [median(noisy(e, costs[e.condition], found[kind].faults, rng)) for e in mine]
        residuals[kind] = _residuals(mine, made)
    spreads = {
        m: spread_by_kind({kind: residuals[kind][:, i] for kind in kinds}) for i, m in enumerate(MEASURES)
    }
    return {kind: replace(fit, spread={m: spreads[m][kind] for m in MEASURES}) for kind, fit in found.items()}


def median(runs: Sequence[Figures]) -> Figures:
    """Of each measure over all runs; NaN: undefined in most of them."""
    found = {}
    for measure in MEASURES:
        middle = float(np.median([np.nan_to_num(run[measure], nan=np.inf) for run in runs]))
        found[measure] = middle if np.isfinite(middle) else NAN
    return found


def _residuals(episodes: Sequence[Episode], made: Sequence[Figures]) -> Floats:
    """Log of predicted over measured, by episode and measure; NaN: not measured."""
    floor = np.array([[e.setup.trigger_s] for e in episodes])  # the sink cannot see less
    figures = [e.figures() for e in episodes]
    measured = np.array([[seen.get(m, NAN) for m in MEASURES] for seen in figures])
    predicted = np.array([[one[m] for m in MEASURES] for one in made])
    residuals = np.log(np.maximum(predicted, floor) / np.maximum(measured, floor))
    return np.where(np.isnan(predicted) & np.isfinite(measured), NEVER, residuals)


def _fit(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    rng: np.random.Generator,
    executor: Faults | None,
) -> FaultFit:
    even = np.ones(len(episodes))
    weights = [even, *rng.dirichlet(even, DRAWS) * len(episodes)]
    base, *draws = _from_stamps(episodes, weights, executor)
    if episodes[0].kind not in COLD:
        return FaultFit(base, tuple(draws), False)

    def best_cold(grid: Floats, weights: Sequence[Floats]) -> list[float]:
        """Those with the least residuals, for each set of weights of the episodes: simulated at the values of
        ``grid``, and linear in between.
        """
        table = []
        for cold_s in grid.tolist():
            tried = replace(base, cold_s=cold_s)
            table.append(_residuals(episodes, [predicted(e, costs[e.condition], tried) for e in episodes]))
        fine = np.linspace(grid[0], grid[-1], COMPARED)
        residuals = np.apply_along_axis(lambda column: np.interp(fine, grid, column), 0, np.array(table))
        loss = np.nansum(np.sqrt(1 + (residuals / ROBUST) ** 2) - 1, axis=2)
        return [float(fine[np.argmin(loss @ w)]) for w in weights]

    delays = [0.5]
    for e in episodes:
        seen, plain = e.figures(), predicted(e, costs[e.condition], base)
        delays += [seen.get(m, NAN) - plain[m] for m in MEASURES]
    # From 0 to more than what explains the longest delay; then once more, closer to the best.
    grid = np.linspace(0.0, 1.25 * float(np.nanmax(delays)), SIMULATED)
    (near,) = best_cold(grid, [even])
    wide = 2 * float(grid[1] - grid[0])
    grid = np.linspace(max(0.0, near - wide), near + wide, SIMULATED)
    best, *drawn = best_cold(grid, weights)
    return FaultFit(
        replace(base, cold_s=best),
        tuple(replace(draw, cold_s=cold) for draw, cold in zip(draws, drawn, strict=True)),
        bool(best > grid[1] - grid[0]),
    )


def _from_stamps(
    episodes: Sequence[Episode], weights: Sequence[Floats], executor: Faults | None
) -> list[Faults]:
    """What the stamps of the processes say by themselves of a kind of fault: weighted means, for each set of
    weights. NaN: not measured, or (detection of a stop) not noticed.

    ``executor``: what is known of lost executors from queries that keep their state. A query that keeps none
    does not wait for its executor: its own stamps tell when it went on, and not when the executor came back.
    """
    strategy, kind = episodes[0].kind
    faults = [e.fault for e in episodes]
    detection = np.array([fault.detected_s - fault.at_s for fault in faults])
    restart = np.array([fault.ready_s - fault.detected_s for fault in faults])
    busy = np.array([not np.isnan(fault.in_batch_s) for fault in faults])
    slowdowns = [e.slowdown() for e in episodes] if strategy == "active_replication" else []
    slower = np.concatenate(slowdowns) if slowdowns else np.zeros(0)  # batches of the other query, as logs
    lost = kind == "kill_executor"
    reading = np.array([e.first_task_s("map") for e in episodes if lost])
    counting = np.array([e.first_task_s("reduce") for e in episodes if lost])
    again = np.array([e.worker_again_s() for e in episodes if lost])
    anew = lost and strategy == "source_replay"
    first_batch = np.array([e.first_batch_late_s() for e in episodes if anew])
    every = []
    for w in weights:
        found = Faults(detection_s=_mean(detection, w), restart_s=_mean(restart, w))
        if len(slower):
            each = np.repeat(w, [len(log) for log in slowdowns])
            mean = float(np.average(slower, weights=each))
            noise = float(np.sqrt(np.average((slower - mean) ** 2, weights=each)))
            found = replace(found, slowdown=float(np.exp(mean)), noise=noise)
        known = executor or found
        if lost:
            state_cold_s = _mean(counting, w) or known.state_cold_s
            found = replace(found, executor_cold_s=_mean(reading, w), state_cold_s=state_cold_s)
            if np.isfinite(again).any():
                worker = _mean(again, w)  # which a new executor has to start, too
                cold = max(worker, found.executor_cold_s)
                found = replace(found, worker_cold_s=worker, executor_cold_s=cold)
        if anew:
            idle = _mean(restart, w * ~busy) if (~busy).any() else found.restart_s
            stop = max(0.0, _mean(restart, w * busy) - idle) if busy.any() else 0.0
            cold = max(0.0, _mean(first_batch, w))
            found = replace(found, restart_s=known.restart_s, recovery_s=idle, stop_s=stop, cold_s=cold)
        every.append(found)
    return every


def _mean(values: Floats, weights: Floats) -> float:
    """Weighted mean of the finite values; 0: there are none."""
    known = np.isfinite(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else 0.0
