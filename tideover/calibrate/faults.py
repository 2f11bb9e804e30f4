"""Fit of what a fault costs, on kills that are not held out.

Detection and restart are measured by themselves, and so is what the loss of an executor costs on top: the
first tasks on a new one, and the first batch of a query that starts anew; and how the restart of one query
slows the other down. What a new driver costs on top shows only in how late the results are, so it is fitted
through the simulator: such that output gaps and catch-up times come out as measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tideover.calibrate.costs import DRAWS
from tideover.calibrate.counterpart import Costs, Faults, noisy, predicted
from tideover.calibrate.episodes import NAN, Condition, Episode, Figures, Kind
from tideover.calibrate.residuals import Spread, spread_by_kind
from tideover.calibrate.types import Floats, Mask, Progress

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
    """The fit of one kind of fault: estimate, draws, and the spread of each measure's residuals.

    cold_identified  whether the kills tell the time of a cold start from 0
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
    once, for all draws. NaN: not measured.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = episodes
        self.strategy, self.fault = episodes[0].kind

    @cached_property
    def detection(self) -> Floats:
        """NaN: the fault was not noticed (a stop)."""
        return np.array([e.fault.detected_s - e.fault.at_s for e in self.episodes])

    @cached_property
    def restart(self) -> Floats:
        return np.array([e.fault.ready_s - e.fault.detected_s for e in self.episodes])

    @cached_property
    def busy(self) -> Mask:
        """Whether a batch was running."""
        return np.array([not np.isnan(e.fault.in_batch_s) for e in self.episodes])

    @cached_property
    def reading(self) -> Floats:
        return np.array([e.first_task_s("map") for e in self.episodes])

    @cached_property
    def counting(self) -> Floats:
        return np.array([e.first_task_s("reduce") for e in self.episodes])

    @cached_property
    def first_batch(self) -> Floats:
        return np.array([e.first_batch_late_s() for e in self.episodes])

    @cached_property
    def slowdowns(self) -> list[Floats]:
        """Of the other query's batches, as logs."""
        return [e.slowdown() for e in self.episodes]


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
