"""Fit of what a batch costs, on batches of normal operation.

A batch lasts from its trigger to its commit: planning, up to its first task, then tasks and sink, then the
commit log. Planning and commit are measured by themselves. The time of tasks and sink is a constant, plus a
cost per row, plus a cost per row of state. The simulator shares the rows out among tasks that work side by
side, so what is fitted to the whole batch is multiplied by their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from tideover.calibrate.counterpart import Costs
from tideover.calibrate.episodes import Condition, Episode
from tideover.calibrate.types import Floats

DRAWS = 100
"""Bootstrap draws of every fit."""
STAGES = 2
"""Stages of a batch: one reads, one counts."""
LEAST_BATCHES = 3
"""Batches that an episode must have for its mean to be of use."""
PHASES = ("latest_offset_ms", "wal_ms", "planning_ms", "get_batch_ms")


@dataclass(frozen=True)
class CostFit:
    """The fit of one condition: the estimate, and draws of it.

    rows_vary, state_varies    whether their costs can be told from the constant
    """

    costs: Costs
    draws: tuple[Costs, ...]
    rows_vary: bool
    state_varies: bool

    @property
    def identified(self) -> int:
        """How many costs can be told from each other by the work of batches."""
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
            rows_vary=_rows_vary(table),
            state_varies=_state_varies(table),
        )
    return found


def _noise(episodes: Sequence[Episode]) -> float:
    """Standard deviation of the log of the duration of batches of one episode."""
    noise = np.concatenate([e.noise() for e in episodes])
    return float(np.sqrt((noise**2).sum() / max(1, len(noise) - len(episodes))))


def _rows_vary(table: pd.DataFrame) -> bool:
    """Whether batches of different size were seen."""
    return bool(table["rows"].max() > 1.5 * table["rows"].min())


def _state_varies(table: pd.DataFrame) -> bool:
    """Whether states of different size were seen, beyond the few words of a window."""
    return bool(table["state_rows"].max() > 1.5 * table["state_rows"].min() + 1000)


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
    known = [True, _rows_vary(table), _state_varies(table)]  # others are part of the constant
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
