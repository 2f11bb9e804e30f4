"""Fits of what a batch costs and of what a fault costs, and what no parameter explains."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear
from scipy.stats import norm
from scipy.stats import t as student

from tideover.calibrate.counterpart import Costs, Faults, noisy, predicted
from tideover.calibrate.episodes import NAN, Condition, Episode, Figures, Floats, Kind, Progress

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
        """Interval of prediction (s): of positive ``values`` that are equally likely, each with residuals.

        Infinite values have no bound. What is less than ``floor`` (s) is not told apart, and reaches to 0.
        """
        if not len(values):
            return float("nan"), float("nan")
        residuals = student.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES, self.freedom) * self.scale
        likely = np.maximum(values, floor)[:, None] * np.exp(residuals)
        low, high = np.quantile(likely, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2), method="inverted_cdf").tolist()
        return (low if low > floor else 0.0), high


def spread_of(residuals: Floats, parameters: int, typical: float) -> Spread:
    """Of the residuals (log) of a fit with so many parameters; ``typical``: what is expected of it."""
    known = residuals[np.isfinite(residuals)]
    freedom = PRIOR_FREEDOM + max(0, len(known) - parameters)
    return Spread(float(np.sqrt((PRIOR_FREEDOM * typical**2 + (known**2).sum()) / freedom)), freedom)


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

    @property
    def identified(self) -> int:
        return 1 + self.rows_vary + self.state_varies


def fit_costs(episodes: Sequence[Episode], rng: np.random.Generator) -> dict[Condition, CostFit]:
    """Costs by condition, from episodes that are not held out.

    Each episode counts once, by its mean batch. The bootstrap is Bayesian (Rubin, *The Bayesian Bootstrap*,
    Annals of Statistics 9(1), 1981): episodes get random weights, none is left out, so few of them suffice.
    """
    found = {}
    known = [e for e in episodes if e.fitted and len(e.settled()) >= LEAST_BATCHES]
    for condition in sorted({e.condition for e in known}):
        mine = [e for e in known if e.condition == condition]
        table = pd.DataFrame([_means(e) for e in mine])
        partitions = mine[0].setup.partitions
        weights = rng.dirichlet(np.ones(len(mine)), DRAWS) * len(mine)
        noise = _noise(mine)
        found[condition] = CostFit(
            costs=replace(_solve(table, np.ones(len(mine)), partitions), noise=noise),
            draws=tuple(replace(_solve(table, w, partitions), noise=noise) for w in weights),
            rows_vary=_vary(table)[0],
            state_varies=_vary(table)[1],
        )
    return found


def _noise(episodes: Sequence[Episode]) -> float:
    """Standard deviation of the log of the duration of batches of one episode."""
    noise = np.concatenate([e.noise() for e in episodes])
    return float(np.sqrt((noise**2).sum() / max(1, len(noise) - len(episodes))))


def _vary(table: pd.DataFrame) -> tuple[bool, bool]:
    """Whether batches of different size were seen, and states, beyond the few words of a window."""
    rows, state = table["rows"], table["state_rows"]
    return bool(rows.max() > 1.5 * rows.min()), bool(state.max() > 1.5 * state.min() + 1000)


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


def _solve(table: pd.DataFrame, weights: Floats, partitions: int) -> Costs:
    """Costs that meet the weighted episodes best, by relative error; none of them is negative."""
    work = table["work"].to_numpy()
    columns = np.column_stack([np.ones(len(work)), table["rows"], table["state_rows"]])
    scale = np.array([1.0, 1e-6, 1e-6])  # s, us a row, us a row of state: of like size
    known = [True, *_vary(table)]  # others are part of the constant
    root = np.sqrt(weights) / work
    found = np.zeros(3)
    found[known] = lsq_linear((columns * scale)[:, known] * root[:, None], work * root, (0, np.inf)).x
    constant, row, state = found * scale
    mean = table.mul(weights, axis=0).sum() / weights.sum()
    task_s, state_s = _stages(mean, row, state, constant)
    return Costs(
        plan_s=float(mean["plan"]),
        task_s=task_s,
        row_s=row * partitions,
        state_s=state_s,
        state_row_s=state * partitions,
        output_s=constant - STAGES * task_s - state_s,
        commit_s=float(mean["commit"]),
    )


def _stages(mean: pd.Series[float], row: float, state: float, constant: float) -> tuple[float, float]:
    """The constant time of any task, and what a stateful one takes longer; the rest is the driver's.

    Where single tasks were not measured, half of the constant is taken for theirs.
    """
    reading = float(mean["map"]) - row * float(mean["rows"])
    counting = float(mean["reduce"]) - state * float(mean["state_rows"])
    if not np.isfinite(reading + counting):
        return constant / 2 / STAGES, 0.0
    task_s = max(0.0, min(reading, counting))
    state_s = max(0.0, counting - task_s)
    scale = min(1.0, constant / max(STAGES * task_s + state_s, 1e-9))
    return scale * task_s, scale * state_s


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
    weights = rng.dirichlet(even, DRAWS) * len(episodes)
    stamps = _Stamps(episodes)
    base = _from_stamps(stamps, even, executor)
    draws = [_from_stamps(stamps, w, executor) for w in weights]
    if episodes[0].kind not in COLD:
        return FaultFit(base, tuple(draws), False)
    grid = _grid(episodes, costs, base)
    (near,) = _best_cold(episodes, costs, base, grid, [even])
    wide = 2 * float(grid[1] - grid[0])
    grid = np.linspace(max(0.0, near - wide), near + wide, SIMULATED)  # once more, closer to it
    best, *drawn = _best_cold(episodes, costs, base, grid, [even, *weights])
    return FaultFit(
        replace(base, cold_s=best),
        tuple(replace(draw, cold_s=cold) for draw, cold in zip(draws, drawn, strict=True)),
        bool(best > grid[1] - grid[0]),
    )


def _grid(episodes: Sequence[Episode], costs: Mapping[Condition, Costs], base: Faults) -> Floats:
    """Values of ``cold_s`` to simulate: from 0 to more than what explains the longest delay."""
    delays = [0.5]
    for e in episodes:
        seen, plain = e.figures(), predicted(e, costs[e.condition], base)
        delays += [seen.get(m, NAN) - plain[m] for m in MEASURES]
    return np.linspace(0.0, 1.25 * float(np.nanmax(delays)), SIMULATED)


def _best_cold(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    base: Faults,
    grid: Floats,
    weights: Sequence[Floats],
) -> list[float]:
    """The ``cold_s`` with the least residuals, for each set of weights of the episodes.

    Simulated at the values of ``grid``, and linear in between.
    """
    table = []
    for cold_s in grid.tolist():
        tried = replace(base, cold_s=cold_s)
        table.append(_residuals(episodes, [predicted(e, costs[e.condition], tried) for e in episodes]))
    fine = np.linspace(grid[0], grid[-1], COMPARED)
    residuals = np.apply_along_axis(lambda column: np.interp(fine, grid, column), 0, np.array(table))
    loss = np.nansum(np.sqrt(1 + (residuals / ROBUST) ** 2) - 1, axis=2)
    return [float(fine[np.argmin(loss @ w)]) for w in weights]


class _Stamps:
    """Times that the stamps of the processes say by themselves, s, one for each episode of a kind; read off
    once, for all draws. NaN: not measured, or (detection of a stop) not noticed. ``busy``: whether a batch
    was running; ``slowdowns``: of the other query's batches, as logs.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.strategy, self.fault = episodes[0].kind
        faults = [e.fault for e in episodes]
        self.detection = np.array([fault.detected_s - fault.at_s for fault in faults])
        self.restart = np.array([fault.ready_s - fault.detected_s for fault in faults])
        self.busy = np.array([not np.isnan(fault.in_batch_s) for fault in faults])
        lost = self.fault == "kill_executor"
        self.reading = np.array([e.first_task_s("map") for e in episodes if lost])
        self.counting = np.array([e.first_task_s("reduce") for e in episodes if lost])
        anew = lost and self.strategy == "source_replay"
        self.first_batch = np.array([e.first_batch_late_s() for e in episodes if anew])
        twice = self.strategy == "active_replication"
        self.slowdowns = [e.slowdown() for e in episodes if twice]


def _from_stamps(stamps: _Stamps, weights: Floats, executor: Faults | None) -> Faults:
    """What the stamps of the processes say by themselves: weighted means.

    ``executor``: what is known of lost executors from queries that keep their state. A query that keeps none
    does not wait for its executor: its own stamps tell when it went on, and not when the executor came back.
    """
    restart = stamps.restart
    found = Faults(detection_s=_mean(stamps.detection, weights), restart_s=_mean(restart, weights))
    if stamps.strategy == "active_replication":
        found = _with_slowdown(found, stamps.slowdowns, weights)
    if stamps.fault != "kill_executor":
        return found
    known = executor or found
    found = replace(
        found,
        executor_cold_s=_mean(stamps.reading, weights),
        state_cold_s=_mean(stamps.counting, weights) or known.state_cold_s,
    )
    if stamps.strategy != "source_replay":
        return found
    busy = stamps.busy
    idle = _mean(restart, weights * ~busy) if (~busy).any() else found.restart_s
    stop = max(0.0, _mean(restart, weights * busy) - idle) if busy.any() else 0.0
    cold = max(0.0, _mean(stamps.first_batch, weights))
    return replace(found, restart_s=known.restart_s, recovery_s=idle, stop_s=stop, cold_s=cold)


def _mean(values: Floats, weights: Floats) -> float:
    """Weighted mean of the finite values; 0: there are none."""
    known = np.isfinite(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else 0.0


def _with_slowdown(found: Faults, logs: Sequence[Floats], weights: Floats) -> Faults:
    """By how much the other query is slower: over all of its batches, as logs by episode."""
    every, each = np.concatenate(logs), np.repeat(weights, [len(log) for log in logs])
    if not len(every):
        return found
    mean = float(np.average(every, weights=each))
    noise = float(np.sqrt(np.average((every - mean) ** 2, weights=each)))
    return replace(found, slowdown=float(np.exp(mean)), noise=noise)
