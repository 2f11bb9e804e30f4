"""Fit of what a fault costs, on kills that are not held out.

Detection and restart are measured by themselves, and so is what the loss of an executor costs on top: the
first tasks on a new one, and the first batch of a query that starts anew; and how the restart of one query
slows the other down. What a new driver costs on top shows only in how late the results are, so it is fitted
through the simulator: such that output gaps and catch-up times come out as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tideover.calibrate.costs import DRAWS
from tideover.calibrate.episodes import Episode, Figures, figures
from tideover.calibrate.scatter import Scatter, by_kind
from tideover.calibrate.worlds import Costs, Faults, likely, predicted

Floats = npt.NDArray[np.float64]
Condition = tuple[str, str, str]
"""Strategy, pipeline, master."""
Kind = tuple[str, str]
"""Strategy and fault."""

MEASURES = ("output_gap_s", "catch_up_s")
COLD = (("micro_batch", "kill_driver"), ("source_replay", "kill_driver"))
"""Where ``cold_s`` is fitted through the simulator: of a replica that is lost the sink sees nothing."""
POINTS = 9
"""Values of ``cold_s`` that are simulated at a time."""
FINE = 401
"""Values of it that are compared."""
ODD = 0.1
"""Log residual from which on the loss grows no faster than the residual: one odd kill must not lead."""
NEVER = 3.0
"""Residual of a simulation that never gets as far as was measured: about twenty times as long."""


@dataclass(frozen=True)
class FaultFit:
    """The fit of one kind: estimate, draws, and the scatter of each measure.

    cold_told  whether the kills tell the time of a cold start from 0
    """

    faults: Faults
    draws: tuple[Faults, ...]
    scatter: dict[str, Scatter]
    cold_told: bool


def fit_faults(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    bits: np.random.Generator,
    progress: Callable[[float, str], None],
) -> dict[Kind, FaultFit]:
    """Costs of faults by strategy and kind; ``costs`` by condition."""
    known = [e for e in episodes if e.fitted and e.fault != "none" and e.condition in costs]
    kinds = sorted({(e.strategy, e.fault) for e in known})
    found: dict[Kind, FaultFit] = {}
    left: dict[Kind, Floats] = {}
    for i, kind in enumerate(kinds):
        progress(i / len(kinds), f"fitting {kind[1].replace('_', ' ')} under {kind[0].replace('_', ' ')}")
        mine = [e for e in known if (e.strategy, e.fault) == kind]
        executor = found.get(("micro_batch", "kill_executor"))
        found[kind] = _fit(mine, costs, bits, None if executor is None else executor.faults)
        made = [median(likely(e, costs[e.condition], found[kind].faults, bits)) for e in mine]
        left[kind] = _log_ratio(mine, made)
    scatters = {m: by_kind({kind: left[kind][:, i] for kind in kinds}) for i, m in enumerate(MEASURES)}
    return {
        kind: replace(fit, scatter={m: scatters[m][kind] for m in MEASURES}) for kind, fit in found.items()
    }


def median(ways: Sequence[Figures]) -> Figures:
    """The middle of what may happen, for each measure; NaN if in most ways it does not."""
    found = {}
    for measure in MEASURES:
        middle = float(np.median([np.nan_to_num(way[measure], nan=np.inf) for way in ways]))
        found[measure] = middle if np.isfinite(middle) else float("nan")
    return found


def _log_ratio(episodes: Sequence[Episode], made: Sequence[Figures]) -> Floats:
    """Log of predicted over measured, by episode and measure; NaN: not measured."""
    floor = np.array([[e.trigger_s] for e in episodes])  # less is not seen at the sink
    seen = np.array([[figures(e).get(m, np.nan) for m in MEASURES] for e in episodes])
    said = np.array([[one[m] for m in MEASURES] for one in made])
    left = np.log(np.maximum(said, floor) / np.maximum(seen, floor))
    return np.where(np.isnan(said) & np.isfinite(seen), NEVER, left)


def _fit(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    bits: np.random.Generator,
    executor: Faults | None,
) -> FaultFit:
    even = np.ones(len(episodes))
    weights = bits.dirichlet(even, DRAWS) * len(episodes)
    base = _direct(episodes, even, executor)
    draws = [_direct(episodes, w, executor) for w in weights]
    if (episodes[0].strategy, episodes[0].fault) not in COLD:
        return FaultFit(base, tuple(draws), {}, False)
    axis = _axis(episodes, costs, base)
    (near,) = _cold(episodes, costs, base, axis, [even])
    wide = 2 * float(axis[1] - axis[0])
    axis = np.linspace(max(0.0, near - wide), near + wide, POINTS)  # once more, closer to it
    best, *drawn = _cold(episodes, costs, base, axis, [even, *weights])
    return FaultFit(
        replace(base, cold_s=best),
        tuple(replace(draw, cold_s=cold) for draw, cold in zip(draws, drawn, strict=True)),
        {},
        bool(best > axis[1] - axis[0]),
    )


def _axis(episodes: Sequence[Episode], costs: Mapping[Condition, Costs], base: Faults) -> Floats:
    """Values of ``cold_s`` to simulate: from 0 to more than what explains the longest delay."""
    over = [0.5]
    for e in episodes:
        seen, plain = figures(e), predicted(e, costs[e.condition], base)
        over += [seen.get(m, np.nan) - plain[m] for m in MEASURES]
    return np.linspace(0.0, 1.25 * float(np.nanmax(over)), POINTS)


def _cold(
    episodes: Sequence[Episode],
    costs: Mapping[Condition, Costs],
    base: Faults,
    axis: Floats,
    weights: Sequence[Floats],
) -> list[float]:
    """The ``cold_s`` with the least residuals, for each set of weights of the episodes.

    Simulated at the values of ``axis``, and linear in between.
    """
    table = [
        _log_ratio(
            episodes, [predicted(e, costs[e.condition], replace(base, cold_s=float(at))) for e in episodes]
        )
        for at in axis
    ]
    fine = np.linspace(axis[0], axis[-1], FINE)
    left = np.apply_along_axis(lambda column: np.interp(fine, axis, column), 0, np.array(table))
    loss = np.nansum(np.sqrt(1 + (left / ODD) ** 2) - 1, axis=2)
    return [float(fine[np.argmin(loss @ w)]) for w in weights]


def _direct(episodes: Sequence[Episode], weights: Floats, executor: Faults | None) -> Faults:
    """What the stamps say: weighted means.

    ``executor``: what is known of lost executors from queries that keep their state. One that keeps none does
    not wait for its executor, so its own stamps tell when it went on, and not when the executor came back.
    """
    detection = np.array([e.detected_s - e.at_s for e in episodes])  # NaN: it was not noticed (a stop)
    restart = np.array([e.ready_s - e.detected_s for e in episodes])
    found = Faults(detection_s=_mean(detection, weights), restart_s=_mean(restart, weights))
    if episodes[0].strategy == "active_replication":
        found = _held_up(found, [e.held_up() for e in episodes], weights)
    if episodes[0].fault != "kill_executor":
        return found
    known = executor or found
    found = replace(
        found,
        executor_cold_s=_mean(np.array([e.first_task_s("map") for e in episodes]), weights),
        state_cold_s=_mean(np.array([e.first_task_s("reduce") for e in episodes]), weights)
        or known.state_cold_s,
    )
    if episodes[0].strategy != "source_replay":
        return found
    busy = np.array([not np.isnan(e.moment_s) for e in episodes])
    idle = _mean(restart, weights * ~busy) if (~busy).any() else found.restart_s
    stop = max(0.0, _mean(restart, weights * busy) - idle) if busy.any() else 0.0
    cold = _mean(np.array([e.first_batch_late_s() for e in episodes]), weights)
    return replace(found, restart_s=known.restart_s, recovery_s=idle, stop_s=stop, cold_s=max(0.0, cold))


def _mean(values: Floats, weights: Floats) -> float:
    known = np.isfinite(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else 0.0


def _held_up(found: Faults, logs: Sequence[Floats], weights: Floats) -> Faults:
    """By how much the other query is slower: over all of its batches, as logs by episode."""
    all_of, each = np.concatenate(logs), np.repeat(weights, [len(log) for log in logs])
    if not len(all_of):
        return found
    mean = float(np.average(all_of, weights=each))
    unsteady = float(np.sqrt(np.average((all_of - mean) ** 2, weights=each)))
    return replace(found, slower=float(np.exp(mean)), unsteady=unsteady)
