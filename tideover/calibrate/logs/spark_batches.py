"""Batches of a query: how late they are, when they are on time again, and what one costs.

`spark` asks for it; what a batch costs is the law of `calibrate.fits`, fitted to single batches here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from tideover.calibrate.fits import CostFit, costs_of
from tideover.calibrate.logs.findings import Failure, Quantity, instant, unknown
from tideover.calibrate.logs.spark_events import PHASES, Batch
from tideover.models.evaluation.curves import SLACK

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

WARM = 3
"""Batches of a new run that are no measure of what is normal."""
BEFORE = 30
"""Batches before a failure that say what is normal, and the fewest that can."""
FEWEST = 3
CALM = 3
"""Batches in a row that are on time when the backlog is worked off."""
IDLE_S = 1.0
ON_GRID_S = 0.05
"""How far from a whole number of intervals a trigger fires."""
MOST_FITTED = 2000
BLOCK = 10
"""Batches in a row that are drawn together when the fit is repeated: neighbours are alike."""
PARTITIONS = 2
"""Tasks that read rows side by side in the scenario `micro-batch`, which the costs are for."""
_SIDE = 0.05


def lateness(mine: Sequence[Batch]) -> Floats:
    """For each batch, s from when its oldest row came until its results were out: it came just after the
    batch before was triggered, or, if nothing ran and nothing came, at most one interval before.
    """
    start, end = _times(mine)
    if not len(start):
        return start
    interval = trigger(mine)[0]
    waited = np.diff(start, prepend=start[0])
    idle = np.concatenate(([0.0], start[1:] - end[:-1])) > max(2 * interval, IDLE_S)
    same = np.array([False, *(a.run == b.run for a, b in pairwise(mine))])
    waited[idle & same] = interval
    found: Floats = end - start + waited
    return found


def _times(mine: Sequence[Batch]) -> tuple[Floats, Floats]:
    return np.array([b.start for b in mine]), np.array([b.end for b in mine])


def trigger(mine: Sequence[Batch]) -> tuple[float, int]:
    """The trigger interval (s) and how many batches say it: with `Trigger.ProcessingTime` a batch that had to
    wait for no other starts at a whole number of intervals since 1970 (`ProcessingTimeExecutor`). 0: each
    starts as soon as the one before has ended, or no two starts say more.
    """
    start, end = _times(mine)
    gaps = np.diff(start)
    waits = gaps - (end - start)[:-1]
    calm = gaps[(waits > ON_GRID_S) & (gaps > 0)]
    if len(calm) < FEWEST:
        return 0.0, 0
    interval = round(float(np.median(calm)), 1)
    if interval <= 0:
        return 0.0, 0
    off = np.abs((start + interval / 2) % interval - interval / 2)
    fits = int((off[1:][waits > ON_GRID_S] < ON_GRID_S).sum())
    return (interval, fits) if fits > len(calm) / 2 else (0.0, 0)


def first_after(mine: Sequence[Batch], at: float, run: str = "") -> int | None:
    """The place of the first batch that ends after a moment, of a run if one is named."""
    return next((i for i, b in enumerate(mine) if b.end > at and run in ("", b.run)), None)


def _normal(mine: Sequence[Batch], late: Floats, began: float) -> tuple[float, float] | None:
    """How late batches are, and how many rows they leave behind, at most, if all is normal: a quarter more
    than the last few before a moment (the tolerance of a simulated run). None: too few are known.
    """
    fresh = _warm(mine)
    before = [i for i, b in enumerate(mine) if b.end <= began and not fresh[i]][-BEFORE:]
    if len(before) < FEWEST:
        return None
    behind = np.nan_to_num([mine[i].behind for i in before])
    rows = float(np.median([mine[i].rows for i in before]))
    return SLACK * float(np.quantile(late[before], 0.99)), SLACK * float(behind.max()) + rows


def _warm(mine: Sequence[Batch]) -> Mask:
    """Which batches are among the first of their run."""
    seen: dict[str, int] = {}
    found = []
    for b in mine:
        seen[b.run] = seen.get(b.run, 0) + 1
        found.append(seen[b.run] <= WARM)
    return np.array(found, np.bool_)


def caught_up(
    mine: Sequence[Batch], late: Floats, began: float, first: int, before: float = np.inf
) -> int | None:
    """The place of the batch with whose results the backlog was gone: the last one that was late before
    ``CALM`` in a row were not, or the ``first`` with results, if it was on time. None: it was not seen until
    ``before``, or nobody knows what is normal.
    """
    if (most := _normal(mine, late, began)) is None:
        return None
    calm, last = 0, first
    for place in range(first, len(mine)):
        if mine[place].start >= before:
            return None
        if late[place] <= most[0] and np.nan_to_num(mine[place].behind) <= most[1]:
            calm += 1
            if calm == CALM:
                return last
        else:
            calm, last = 0, place
    return None


def quiet(mine: Sequence[Batch], late: Floats, recoveries: Sequence[tuple[float, float]]) -> Mask:
    """Batches of normal operation: neither among the first of a run nor within a recovery."""
    found = ~_warm(mine) & np.isfinite(late)
    for began, ended in recoveries:
        found &= np.array([b.end < began or b.start >= ended for b in mine], np.bool_)
    return found


def table(mine: Sequence[Batch], late: Floats) -> pd.DataFrame:
    """One row a batch."""
    phases = np.array([b.spent for b in mine]).reshape(-1, len(PHASES))
    start, _ = _times(mine)
    return pd.DataFrame(
        {
            "query": [b.query for b in mine],
            "run": [b.run for b in mine],
            "batch": [b.number for b in mine],
            "at": [instant(b.start) for b in mine],
            "start_s": start - start[0],
            "rows": [b.rows for b in mine],
            "duration_s": [b.end - b.start for b in mine],
            "late_s": late,
            "behind": [b.behind for b in mine],
            "state_rows": [b.state_rows for b in mine],
            **dict(zip(PHASES, phases.T, strict=True)),
            "file": [b.file for b in mine],
            "line": [b.line for b in mine],
        }
    )


# What is learnt from them


def quantities(mine: Sequence[Batch], calm: Mask, failures: Sequence[Failure]) -> list[Quantity]:
    """All that batches and failures tell, and what they do not."""
    if not mine:
        text = "no batch of a streaming query is in the log; it would be in one of a query's driver"
        return [unknown("rate", "rows/s", text)]
    normal = [b for b, mine_ in zip(mine, calm, strict=True) if mine_]
    return [
        _interval(mine),
        _rate(mine, calm),
        _of("batch_duration", [b.end - b.start for b in normal], "a batch, from its trigger to its end"),
        *_costs(mine, failures),
        *_recoveries(failures),
    ]


def _of(name: str, values: Sequence[float], meaning: str, unit: str = "s") -> Quantity:
    """The median, and between what nine in ten are."""
    known = np.array(values, float)
    known = known[np.isfinite(known)]
    if not len(known):
        return unknown(name, unit, meaning)
    low, middle, high = np.quantile(known, (_SIDE, 0.5, 1 - _SIDE)).tolist()
    return Quantity(name, unit, middle, low, high, len(known), True, meaning)


def _interval(mine: Sequence[Batch]) -> Quantity:
    interval, n = trigger(mine)
    text = "trigger interval: batches that waited for no other start at whole numbers of it"
    if not n:
        why = "each batch starts as soon as the one before has ended, so the log does not tell the "
        return unknown("trigger_interval", "s", f"{why}trigger interval (spark.readStream's trigger would)")
    return Quantity("trigger_interval", "s", interval, interval, interval, n, True, text)


def _rate(mine: Sequence[Batch], calm: Mask) -> Quantity:
    """Rows over time from start to start, of blocks of batches in normal operation."""
    start, _ = _times(mine)
    rows = np.array([b.rows for b in mine], float)
    gaps = np.diff(start, prepend=np.nan)
    good = calm & np.isfinite(gaps) & (gaps > 0)
    if not good.any():
        return unknown("rate", "rows/s", "rows per second: there is no batch of normal operation")
    places = np.flatnonzero(good)
    blocks = np.array_split(places, max(1, len(places) // BLOCK))
    rates = [float(rows[b].sum() / gaps[b].sum()) for b in blocks]
    return _of("rate", rates, f"rows per second, over {BLOCK} batches in normal operation", "rows/s")


def fit(mine: Sequence[Batch], failures: Sequence[Failure], seed: int = 1) -> CostFit | None:
    """What a batch costs, from all that neither begin a run nor were hit themselves; catching up is the best
    of them, as those have many rows. None: there are too few.
    """
    hit = [(f.began, f.at("restored") or np.inf) for f in failures]
    fresh = _warm(mine)
    known = [
        b
        for b, new in zip(mine, fresh, strict=True)
        if b.rows and not new and not any(b.end > began and b.start < ended for began, ended in hit)
    ]
    if len(known) < 2 * FEWEST:
        return None
    known = [known[i] for i in np.linspace(0, len(known) - 1, min(len(known), MOST_FITTED)).astype(int)]
    spent = dict(zip(PHASES, np.array([b.spent for b in known]).T / 1000, strict=True))
    work, commit = spent["add_batch_ms"], np.nan_to_num(spent["commit_ms"])
    means = pd.DataFrame(
        {
            "plan": np.maximum(spent["trigger_ms"] - work - commit, 0.0),
            "work": np.maximum(work, 1e-3),
            "commit": commit,
            "rows": [float(b.rows) for b in known],
            "state_rows": np.nan_to_num([b.state_rows for b in known]),
            "map": np.nan,
            "reduce": np.nan,
        }
    )
    places = np.arange(len(known)) // BLOCK
    return costs_of(means, PARTITIONS, np.random.default_rng(seed), places)


def _costs(mine: Sequence[Batch], failures: Sequence[Failure]) -> list[Quantity]:
    found = fit(mine, failures)
    rows = "batches of different size (half of the rows and twice as many) would tell"
    if found is None:
        return [
            unknown("fixed_cost", "s", f"of a batch, besides its rows: too few batches; {rows}"),
            unknown("row_cost", "s", f"of a row: too few batches; {rows}"),
            unknown("catch_up_capacity", "rows/s", f"rows per second when there is a backlog; {rows}"),
        ]
    every = (found.costs, *found.draws)
    fixed = [c.plan_s + c.commit_s + c.output_s + 2 * c.task_s + c.state_s for c in every]
    row = [c.row_s / PARTITIONS for c in every]
    draws = len(found.draws)
    quantities = [_drawn("fixed_cost", "s", fixed, True, draws, "of a batch, besides its rows")]
    if not found.rows_vary or row[0] <= 0 or np.quantile(row[1:], _SIDE) <= 0:
        why = f"all batches are about as large, so a row's cost cannot be told from the constant; {rows}"
        return [
            *quantities,
            unknown("row_cost", "s", f"of a row: {why}"),
            unknown("catch_up_capacity", "rows/s", f"rows per second when there is a backlog: {why}"),
        ]
    capacity = [1 / max(cost, 1e-12) for cost in row]
    text = "rows per second when there is a backlog, in batches so large that only rows count"
    return [
        *quantities,
        _drawn("row_cost", "s", row, True, draws, "of a row, in the whole batch"),
        _drawn("catch_up_capacity", "rows/s", capacity, True, draws, text),
    ]


def _drawn(name: str, unit: str, values: Sequence[float], known: bool, n: int, meaning: str) -> Quantity:
    """The first is the estimate, the others are draws of it."""
    low, high = np.quantile(values[1:], (_SIDE, 1 - _SIDE)).tolist()
    return Quantity(name, unit, values[0], low, high, n, known, meaning)


def _recoveries(failures: Sequence[Failure]) -> list[Quantity]:
    struck = [f for f in failures if f.kind != "stop"]
    lost = [f for f in struck if f.at("slots") is not None]
    slots = [float(f.at("slots") or 0) - float(f.at("detected") or 0) for f in lost]
    anew = [float(f.at("deployed") or f.at("restart_tried") or 0) - f.began for f in struck if f.attempts]
    named = {"restored": "from the first sign of a failure to the first results after it"}
    named["caught_up"] = "from the first sign of a failure until batches are on time again"
    found = [
        _of("executor_restart", slots, "from the removal of an executor until another one is added"),
        _of("query_restart", anew, "from the end of a run of the query until another one begins"),
    ]
    for name, text in named.items():
        found.append(_of(f"{name}_s", [f.after(name) or np.nan for f in struck], text))
    return [one for one in found if one.n] or [
        unknown("restored_s", "s", "the log has no failure: one executor killed on purpose would tell most")
    ]
