"""Batches of a query: how late they are, when they are on time again, and what one costs.

`spark` asks for it; what a batch costs is the law of `calibrate.fits`, fitted to single batches here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from tideover.calibrate.episodes import Floats, Mask
from tideover.calibrate.fits import STAGES, CostFit, costs_of
from tideover.calibrate.logs.durations import ENDS, observed, spread
from tideover.calibrate.logs.findings import Failure, Quantity, instant, unknown
from tideover.calibrate.logs.spark_events import PHASES, Batch
from tideover.models.evaluation.curves import SLACK

WARM = 3
"""Batches of a new run that are no measure of what is normal."""
BEFORE = 10
"""Batches before a failure that say what is normal, and the fewest that can."""
FEWEST = 3
CALM = 3
"""Batches in a row that are on time when the backlog is worked off."""
GAP = 2.0
"""A batch so many times as late as what counts as on time is a failure, whatever it was."""
IDLE_S = 1.0
ON_GRID_S = 0.05
"""How far from a whole number of intervals a trigger fires."""
MOST_FITTED = 2000
LEAST_TOLD = 0.1
"""If its interval reaches below this part of it, what a row costs is not told from nothing."""
BLOCK = 10
"""Batches in a row that are drawn together when the fit is repeated: neighbours are alike."""
NO_FAILURE = "there is none in the log; an executor killed on purpose, under the usual load, would tell"
SIZES = "batches of different size (half of the rows and twice as many)"
PARTITIONS = 2
"""Tasks that read rows side by side in the scenario `micro-batch`, which the costs are for."""


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


def next_gap(mine: Sequence[Batch], late: Floats, since: int) -> int | None:
    """The place of the next batch from a place on that is ``GAP`` times as late as what is still on time."""
    fresh = _warm(mine)
    usual: deque[float] = deque(maxlen=BEFORE)
    for place, new in enumerate(fresh.tolist()):
        if place >= since and not new and len(usual) >= FEWEST:
            apart = late[place] / (GAP * SLACK)
            if apart > min(usual) and apart > float(np.quantile(usual, 0.99)):  # the first is cheap
                return place
        if not new:
            usual.append(float(late[place]))
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


def quantities(
    mine: Sequence[Batch], calm: Mask, failures: Sequence[Failure], costs: CostFit | None
) -> list[Quantity]:
    """All that batches and failures tell, and what they do not."""
    if not mine:
        text = "no batch of a streaming query is in the log; it would be in one of a query's driver"
        return [unknown("rate", "rows/s", text)]
    normal = [b for b, mine_ in zip(mine, calm, strict=True) if mine_]
    return [
        _interval(mine),
        _rate(mine, calm),
        spread("batch_duration", "s", [b.end - b.start for b in normal], "from a batch's trigger to its end"),
        *_costs(costs),
        *_recoveries(failures),
    ]


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
    return spread("rate", "rows/s", rates, f"rows per second, over {BLOCK} batches in normal operation")


def fit(mine: Sequence[Batch], failures: Sequence[Failure], seed: int = 1) -> CostFit | None:
    """What a batch costs, from all that neither begin a run nor were hit themselves; catching up is the best
    of them, as those have many rows. None: there are too few.
    """
    hit = [(f.began, max(f.at("restored") or np.inf, f.at("slots") or 0.0)) for f in failures]
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


def _costs(found: CostFit | None) -> list[Quantity]:
    more = f"too few batches, or all as large; {SIZES} would tell"
    if found is None:
        return [unknown("fixed_cost", "s", f"of a batch, besides its rows: {more}"), *_no_rows(more)]
    every = (found.costs, *found.draws)
    fixed = [c.plan_s + c.commit_s + c.output_s + STAGES * c.task_s + c.state_s for c in every]
    quantities = [_drawn("fixed_cost", "s", fixed, "of a batch, besides its rows")]
    if not tells_rows(found):
        return [*quantities, *_no_rows(more)]
    row = [c.row_s / PARTITIONS for c in every]
    text = "rows per second with a backlog, in batches so large that only rows count"
    return [
        *quantities,
        _drawn("row_cost", "s", row, "of a row, in the whole batch"),
        _drawn("catch_up_capacity", "rows/s", [1 / max(cost, 1e-12) for cost in row], text),
    ]


def tells_rows(found: CostFit) -> bool:
    """Whether batches tell the cost of a row from the constant."""
    drawn = np.quantile([c.row_s for c in found.draws], ENDS[0])
    return found.rows_vary and float(drawn) > LEAST_TOLD * found.costs.row_s > 0


def _no_rows(more: str) -> list[Quantity]:
    texts = {"row_cost": ("s", "of a row"), "catch_up_capacity": ("rows/s", "with a backlog")}
    return [unknown(name, unit, f"{text}: {more}") for name, (unit, text) in texts.items()]


def _drawn(name: str, unit: str, values: Sequence[float], meaning: str) -> Quantity:
    """The first is the estimate, the others are draws of it."""
    low, high = np.quantile(values[1:], ENDS).tolist()
    return Quantity(name, unit, values[0], low, high, len(values) - 1, True, meaning)


def executors_back(failures: Sequence[Failure]) -> list[float]:
    """From the removal of each executor until another one is added (s)."""
    ends = [(f.at("slots"), f.at("detected")) for f in failures]
    return [slots - detected for slots, detected in ends if slots is not None and detected is not None]


def queries_back(failures: Sequence[Failure]) -> list[float]:
    """From the end of each run of a query until the next one begins (s), if nobody stopped it."""
    ends = [f.after("deployed") or f.after("restart_tried") for f in failures if f.kind != "stop"]
    return [end for end in ends if end is not None]


def of_kind(failures: Sequence[Failure], anew: bool, stage: str) -> list[float]:
    """When a stage was reached after the first sign (s), of failures after which the query began anew, or of
    losses of executors that it lived through.
    """
    mine = [f for f in failures if f.kind not in ("stop", "gap") and bool(f.attempts) == anew]
    return [after for f in mine if (after := f.after(stage)) is not None]


KINDS = {"executor": False, "driver": True}
"""What is lost, and whether the query begins anew."""


def _recoveries(failures: Sequence[Failure]) -> list[Quantity]:
    if all(f.kind == "stop" for f in failures):
        return [unknown("restored", "s", f"from the first sign of a failure to results: {NO_FAILURE}")]
    found = [
        observed("executor_restart", executors_back(failures), "from an executor's removal to another one"),
        observed("query_restart", queries_back(failures), "from the end of a run of the query to the next"),
    ]
    for kind, anew in KINDS.items():
        for stage, text in (
            ("restored", "the first results after it"),
            ("caught_up", "batches that are on time again"),
        ):
            meaning = f"from the first sign that the {kind} is lost to {text}"
            found.append(observed(f"{kind}_{stage}", of_kind(failures, anew, stage), meaning))
    return [one for one in found if one.n]
