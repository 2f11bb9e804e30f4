"""Batches of a query: how late they are, when they are on time again, what one costs, and what that and
failures tell of others, also as a profile for the scenario ``micro-batch``.

`spark` asks for it; what a batch costs is the law of `calibrate.fits`, fitted to single batches here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.comparison import Fits
from tideover.calibrate.counterpart import Faults
from tideover.calibrate.episodes import Condition, Floats, Kind, Mask
from tideover.calibrate.fits import DRAWS, STAGES, CostFit, FaultFit, costs_of, spread_of
from tideover.calibrate.logs import durations
from tideover.calibrate.logs.durations import ENDS, USUAL, even, name_of, next_one, observed, spread
from tideover.calibrate.logs.findings import Failure, Prediction, Quantity, Setting, instant, unknown
from tideover.calibrate.logs.flink_quantities import seconds
from tideover.calibrate.logs.spark_events import PHASES, Batch
from tideover.models.evaluation.curves import SLACK

Batches = Sequence[Batch]
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


def lateness(mine: Batches) -> Floats:
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


def _times(mine: Batches) -> tuple[Floats, Floats]:
    return np.array([b.start for b in mine]), np.array([b.end for b in mine])


def trigger(mine: Batches) -> tuple[float, int]:
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


def first_after(mine: Batches, at: float, run: str = "") -> int | None:
    """The place of the first batch that ends after a moment, of a run if one is named."""
    return next((i for i, b in enumerate(mine) if b.end > at and run in ("", b.run)), None)


def _normal(mine: Batches, late: Floats, began: float) -> tuple[float, float] | None:
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


def _warm(mine: Batches) -> Mask:
    """Which batches are among the first of their run."""
    runs = pd.Series([b.run for b in mine], dtype=object)
    return np.asarray(runs.groupby(runs).cumcount() < WARM, np.bool_)


def caught_up(mine: Batches, late: Floats, began: float, first: int, before: float = np.inf) -> int | None:
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


def next_gap(mine: Batches, late: Floats, since: int) -> int | None:
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


def quiet(mine: Batches, late: Floats, recoveries: Sequence[tuple[float, float]]) -> Mask:
    """Batches of normal operation: neither among the first of a run nor within a recovery."""
    start, end = _times(mine)
    found = ~_warm(mine) & np.isfinite(late)
    for began, ended in recoveries:
        found &= (end < began) | (start >= ended)
    return found


def table(mine: Batches, late: Floats) -> pd.DataFrame:
    """One row a batch."""
    told = pd.DataFrame(mine, columns=Batch._fields).rename(columns={"number": "batch"})
    told[list(PHASES)] = told["spent"].tolist()
    told["at"], told["start_s"] = told["start"].map(instant), told["start"] - told["start"].iloc[0]
    told["duration_s"], told["late_s"] = told["end"] - told["start"], late
    seen = ["query", "run", "batch", "at", "start_s", "rows", "duration_s", "late_s", "behind", "state_rows"]
    return told[[*seen, *PHASES, "file", "line"]]


# What is learnt from them


def quantities(
    mine: Batches, calm: Mask, failures: Sequence[Failure], costs: CostFit | None
) -> Iterator[Quantity]:
    """All that batches and failures tell, and what they do not."""
    if not mine:
        text = "no batch of a streaming query is in the log; it would be in one of a query's driver"
        yield unknown("rate", "rows/s", text)
        return
    start, end = _times(mine)
    yield _interval(mine)
    yield _rate(mine, calm)
    yield spread("batch_duration", "s", (end - start)[calm].tolist(), "from a batch's trigger to its end")
    yield from _costs(costs)
    yield from _recoveries(failures)


def _interval(mine: Batches) -> Quantity:
    interval, n = trigger(mine)
    text = "trigger interval: batches that waited for no other start at whole numbers of it"
    if not n:
        why = "each batch starts as soon as the one before has ended, so the log does not tell the "
        return unknown("trigger_interval", "s", f"{why}trigger interval (the trigger of writeStream would)")
    return Quantity("trigger_interval", "s", interval, interval, interval, n, True, text)


def _rate(mine: Batches, calm: Mask) -> Quantity:
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


def fit(mine: Batches, failures: Sequence[Failure], seed: int = 1) -> CostFit | None:
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


def _costs(found: CostFit | None) -> Iterator[Quantity]:
    every = [] if found is None else [found.costs, *found.draws]
    fixed = [c.plan_s + c.commit_s + c.output_s + STAGES * c.task_s + c.state_s for c in every]
    row = [c.row_s / PARTITIONS for c in every] if found is not None and tells_rows(found) else []
    capacity = [1 / max(cost, 1e-12) for cost in row]
    backlog = "rows per second with a backlog, in batches so large that only rows count"
    for name, unit, values, text in (
        ("fixed_cost", "s", fixed, "of a batch, besides its rows"),
        ("row_cost", "s", row, "of a row, in the whole batch"),
        ("catch_up_capacity", "rows/s", capacity, backlog),
    ):
        if values:  # the first is the estimate, the others are draws of it
            low, high = np.quantile(values[1:], ENDS).tolist()
            yield Quantity(name, unit, values[0], low, high, len(values) - 1, True, text)
        else:
            yield unknown(name, unit, f"{text}: too few batches, or all as large; {SIZES} would tell")


def tells_rows(found: CostFit) -> bool:
    """Whether batches tell the cost of a row from the constant."""
    drawn = np.quantile([c.row_s for c in found.draws], ENDS[0])
    return found.rows_vary and float(drawn) > LEAST_TOLD * found.costs.row_s > 0


def executors_back(failures: Sequence[Failure]) -> list[float]:
    """From the removal of each executor until another one is added (s)."""
    ends = [(f.at("slots"), f.at("detected")) for f in failures]
    return [slots - detected for slots, detected in ends if slots is not None and detected is not None]


def queries_back(failures: Sequence[Failure]) -> list[float]:
    """From the end of each run of a query until the next one begins (s), if nobody stopped it."""
    ends = [f.after("deployed") or f.after("restart_tried") for f in failures if f.kind != "stop"]
    return [end for end in ends if end is not None]


def of_kind(failures: Sequence[Failure], anew: bool, stage: str) -> list[float]:
    """When a stage was reached (s), of failures after which the query began anew, or of executors lost."""
    mine = [f for f in failures if f.kind not in ("stop", "gap") and bool(f.attempts) == anew]
    return [after for f in mine if (after := f.after(stage)) is not None]


KINDS = {"executor": False, "driver": True}
"""What is lost, and whether the query begins anew."""


def _recoveries(failures: Sequence[Failure]) -> Iterator[Quantity]:
    if all(f.kind == "stop" for f in failures):
        yield unknown("restored", "s", f"from the first sign of a failure to results: {NO_FAILURE}")
        return
    told = {
        "executor_restart": (executors_back(failures), "from an executor's removal to another one"),
        "query_restart": (queries_back(failures), "from the end of a run of the query to the next"),
    }
    stages = {"restored": "the first results after it", "caught_up": "batches that are on time again"}
    for kind, anew in KINDS.items():
        for stage, text in stages.items():
            meaning = f"from the first sign that the {kind} is lost to {text}"
            told[f"{kind}_{stage}"] = (of_kind(failures, anew, stage), meaning)
    yield from (observed(name, seen, meaning) for name, (seen, meaning) in told.items() if seen)


def predictions(failures: Sequence[Failure], told: Mapping[str, Quantity]) -> Iterator[Prediction]:
    """When results come again after the next failure of each kind, and when it is caught up with."""
    for kind, anew in KINDS.items():
        seen = of_kind(failures, anew, "restored")
        yield from durations.predictions(f"the {kind} is lost", "restored", seen, told)


def most_help(told: Mapping[str, Quantity]) -> str:
    """The one measurement that would tell most of what is missing."""
    if not told["catch_up_capacity"].identified:
        return f"{SIZES}, as after an outage of a minute: they tell what a row costs, and so the catch-up"
    if "restored" in told:
        return "an executor killed on purpose under the usual load, with the event log of that hour"
    return "the moment at which a process was killed, to the tenth of a second: it tells the detection"


def as_profile(
    source: str,
    failures: Sequence[Failure],
    costs: CostFit | None,
    told: Mapping[str, Quantity],
    settings: Mapping[str, Setting],
) -> dict[str, Any] | None:
    """A profile as plain data; None if batches do not tell what they cost.

    It has what a whole batch costs, for the two tasks of that scenario, however many there were. Detection is
    half of its bound; cold starts are not told from the rest of a recovery, and are none.
    """
    if costs is None or not tells_rows(costs):
        return None

    def setting(key: str) -> str:
        return settings[key].value if key in settings else "unknown"

    condition = Condition("micro_batch", "word_count", setting("spark.master"))
    faults = {}
    bound = told["detection"].high
    for kind, back, detection in (
        ("kill_executor", executors_back(failures), bound / 2 if np.isfinite(bound) else 0.0),
        ("kill_driver", queries_back(failures), 0.0),
    ):
        if back:
            base = Faults(detection_s=detection, restart_s=float(np.median(back)))
            draws = tuple(replace(base, restart_s=s) for s in next_one(back, even(DRAWS)).tolist())
            scatter = {"catch_up_s": spread_of(np.zeros(0), 1, USUAL)}
            faults[Kind("micro_batch", kind)] = FaultFit(base, draws, False, scatter)
    provenance = {
        "source": source,
        "measurements": len(failures),
        "method": "batches and failures in Spark's logs; the next ones by Student's distribution",
        "not_identified": "detection, and cold starts apart from the rest of a recovery",
        "java": setting("java.version"),
        "spark": setting("spark.version"),
        "version": f"tideover {__version__}",
    }
    fits = Fits({condition: costs}, faults, {}, {}, 1)
    wait = seconds(setting("spark.locality.wait"))  # written as Flink's (`JavaUtils.timeStringAs`)
    data = profile.profile(name_of(source), condition, fits, provenance, 3.0 if wait is None else wait)
    rate, interval = told["rate"], told["trigger_interval"]
    if rate.identified:
        data["ranges"] = {"rate": {"low": f"{rate.value:.6g}/s", "high": f"{rate.value:.6g}/s"}}
        if interval.identified:
            data["ranges"]["interval"] = {"low": f"{interval.value:g} s", "high": f"{interval.value:g} s"}
    return data
