"""Fit of what a fault costs, on kills that are not held out.

Detection and restart are measured by themselves, and so is what the loss of an executor costs on top: the
first tasks on a new one, and the first batch of a query that starts anew. What a new driver costs on top, and
how the restart of one query disturbs the other, shows only in how late the results are, so it is fitted
through the simulator: such that output gaps and catch-up times come out as measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import least_squares
from scipy.stats import t as student

from tideover.calibrate.costs import DRAWS
from tideover.calibrate.episodes import Episode, figures
from tideover.calibrate.worlds import Costs, Faults, predicted

Floats = npt.NDArray[np.float64]
Kind = tuple[str, str]
"""Strategy and fault."""

MEASURES = ("output_gap_s", "catch_up_s")
FREE: dict[Kind, tuple[str, ...]] = {
    ("micro_batch", "kill_driver"): ("cold_s",),
    ("source_replay", "kill_driver"): ("cold_s",),
    ("active_replication", "kill_executor"): ("late_s",),
    ("active_replication", "kill_driver"): ("late_s",),
}
"""What is fitted through the simulator. Of a lost replica the sink sees only how it disturbs the other."""
POINTS = 9
"""Values of a free parameter that are simulated at a time."""
NEVER = 3.0
"""Residual of a simulation that never gets as far as was measured: about twenty times as long."""
SCATTER = (0.1, 1.0)
"""Least and most scatter: no prediction of a wall clock is better than a tenth, and a few kills do
not tell how much worse than this it is.
"""


@dataclass(frozen=True)
class FaultFit:
    """The fit of one kind: estimate, draws, and the scatter (std of log residuals) of each measure.

    episodes    how many kills it rests on
    identified  by parameter: whether the kills tell it from 0
    """

    faults: Faults
    draws: tuple[Faults, ...]
    scatter: dict[str, float]
    episodes: int
    identified: dict[str, bool]


def fit_faults(
    episodes: Sequence[Episode],
    costs: Mapping[tuple[str, str, str], Costs],
    bits: np.random.Generator,
    progress: Callable[[float, str], None],
) -> dict[Kind, FaultFit]:
    """Costs of faults by strategy and kind; ``costs`` by condition."""
    known = [e for e in episodes if e.fitted and e.fault != "none" and e.condition in costs]
    kinds = sorted({(e.strategy, e.fault) for e in known})
    found: dict[Kind, FaultFit] = {}
    for i, kind in enumerate(kinds):
        progress(i / len(kinds), f"fitting {kind[1].replace('_', ' ')} under {kind[0].replace('_', ' ')}")
        mine = [e for e in known if (e.strategy, e.fault) == kind]
        executor = found.get(("micro_batch", "kill_executor"))
        known_of = None if executor is None else executor.faults
        found[kind] = _fit(mine, costs, FREE.get(kind, ()), bits, known_of)
    return found


def _fit(
    episodes: Sequence[Episode],
    costs: Mapping[tuple[str, str, str], Costs],
    free: tuple[str, ...],
    bits: np.random.Generator,
    executor: Faults | None,
) -> FaultFit:
    seen = np.array([[figures(e).get(m, np.nan) for m in MEASURES] for e in episodes])
    weights = bits.dirichlet(np.ones(len(episodes)), DRAWS) * len(episodes)
    even = np.ones(len(episodes))
    base = _direct(episodes, even, executor)
    grid = _grid(episodes, seen, costs, base, free)
    residuals = _residuals(episodes, seen, costs, base, free, grid)
    best = _minimise(residuals, grid, even)
    if free:  # once more, closer to it
        grid = [_closer(axis, value) for axis, value in zip(grid, best, strict=True)]
        residuals = _residuals(episodes, seen, costs, base, free, grid)
        best = _minimise(residuals, grid, even)
    draws = []
    for w in weights:
        values = dict(zip(free, _minimise(residuals, grid, w), strict=True))
        draws.append(replace(_direct(episodes, w, executor), **values))
    left = residuals(np.array(best))
    spread = {m: _spread(left[:, i], len(free)) for i, m in enumerate(MEASURES)}
    inside = {
        name: bool(value > axis[1] - axis[0]) for name, axis, value in zip(free, grid, best, strict=True)
    }
    return FaultFit(
        replace(base, **dict(zip(free, best, strict=True))), tuple(draws), spread, len(episodes), inside
    )


def _direct(episodes: Sequence[Episode], weights: Floats, executor: Faults | None) -> Faults:
    """What the stamps say: weighted means.

    ``executor``: what is known of lost executors from queries that keep their state. One that keeps none does
    not wait for its executor, so its own stamps tell when it went on, and not when the executor came back.
    """
    detection = np.array([e.detected_s - e.at_s for e in episodes])  # NaN: it was not noticed (a stop)
    restart = np.array([e.ready_s - e.detected_s for e in episodes])
    found = Faults(detection_s=_mean(detection, weights), restart_s=_mean(restart, weights))
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


def _grid(
    episodes: Sequence[Episode],
    seen: Floats,
    costs: Mapping[tuple[str, str, str], Costs],
    base: Faults,
    free: tuple[str, ...],
) -> list[Floats]:
    """Values of each free parameter to simulate: from 0 to more than what explains the longest delay."""
    if not free:
        return []
    plain = np.array([[predicted(e, costs[e.condition], base)[m] for m in MEASURES] for e in episodes])
    over = float(np.nanmax(np.append(seen - plain, 0.5)))
    return [np.linspace(0.0, 1.25 * over + getattr(base, name), POINTS) for name in free]


def _closer(axis: Floats, value: float) -> Floats:
    """As many values again, from two steps of the coarse grid before ``value`` to two steps after."""
    wide = 2 * float(axis[1] - axis[0])
    return np.linspace(max(0.0, value - wide), value + wide, len(axis))


Residuals = Callable[[Floats], Floats]


def _residuals(
    episodes: Sequence[Episode],
    seen: Floats,
    costs: Mapping[tuple[str, str, str], Costs],
    base: Faults,
    free: tuple[str, ...],
    grid: list[Floats],
) -> Residuals:
    """Log of predicted over measured, by episode and measure, at any values of the free parameters.

    Simulated on the grid, and linear in between.
    """
    floor = np.array([[e.trigger_s] for e in episodes])  # less is not seen at the sink

    def at(values: tuple[float, ...]) -> Floats:
        faults = replace(base, **dict(zip(free, values, strict=True)))
        made = [[predicted(e, costs[e.condition], faults)[m] for m in MEASURES] for e in episodes]
        left = np.log(np.maximum(made, floor) / np.maximum(seen, floor))
        return np.where(np.isnan(made) & np.isfinite(seen), NEVER, left)

    table = np.array([at(values) for values in product(*grid)])
    if not free:
        return lambda _: table[0]
    shape = tuple(len(axis) for axis in grid)
    between = RegularGridInterpolator(grid, table.reshape(*shape, *seen.shape))
    return lambda values: np.asarray(between(values)).reshape(seen.shape)


def _minimise(residuals: Residuals, grid: list[Floats], weights: Floats) -> list[float]:
    """The free parameters with the least weighted residuals (absolute values: one odd kill must not lead)."""
    if not grid:
        return []

    low, high = [a[0] for a in grid], [a[-1] for a in grid]

    def loss(values: Floats) -> Floats:
        left = residuals(np.clip(values, [a[0] for a in grid], [a[-1] for a in grid])).reshape(
            len(weights), -1
        )
        left = np.where(np.isfinite(left), left, 0.0)
        return (left * np.sqrt(weights)[:, None]).ravel()

    start = min(product(*grid), key=lambda v: float(np.abs(loss(np.array(v))).sum()))
    inside = np.clip(start, np.array(low) + 1e-6, np.array(high) - 1e-6)
    found = least_squares(
        loss, inside, bounds=(low, high), loss="soft_l1", f_scale=0.1, diff_step=[0.01] * len(grid)
    )
    return [float(v) for v in found.x]


def _spread(left: Floats, parameters: int) -> float:
    """Standard deviation of log residuals, for as many degrees of freedom as there are."""
    left = left[np.isfinite(left)]
    free = max(1, len(left) - max(1, parameters // 2))
    return float(np.clip(np.sqrt((left**2).sum() / free), *SCATTER))


def interval(
    draws: Floats, estimate: float, scatter: float, episodes: int, floor: float = 0.0, level: float = 0.9
) -> tuple[float, float]:
    """Interval of prediction: spread of the draws and scatter together, with Student's t for few episodes.

    ``draws``: predictions with the drawn parameters. What is less than ``floor`` (s) is not told apart.
    """
    known = np.maximum(draws[np.isfinite(draws)], floor)
    if not np.isfinite(estimate) or not len(known):
        return float("nan"), float("nan")
    middle = max(estimate, floor)
    spread = float(np.sqrt(np.log(known / middle).var() + scatter**2))
    wide = float(student.ppf(0.5 + level / 2, max(2, episodes - 1))) * spread
    low = middle * float(np.exp(-wide))
    return low if low > floor else 0.0, middle * float(np.exp(wide))
