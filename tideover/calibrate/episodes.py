"""Measured episodes, their backlog over time, and the noise around batch durations.

`calibration` reads them from a campaign's tables; fits, predictions and comparison work on them. A measured
and a simulated episode are brought into the same form here, and the same functions read both: so a difference
between the two is not one of definitions, as long as what is changed here is changed for both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import TypeAdapter

from tideover.models.evaluation import curves
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

Progress = Callable[[float, str], None]
"""Called with the fraction that is done, 0 to 1, and with what is being done."""


STEP = SLOT / S
"""Resolution of backlogs, s."""
CALM = curves.CALM / S
"""For how long (s) a backlog has to stay normal until it counts as caught up."""


@dataclass(frozen=True)
class BacklogCurve:
    """Rows that came in and rows whose results were out, over time.

    outputs   moments (s, rising) at which the sink got results of rows that it had none of before
    done      rows whose results are out from that moment on (rising)
    emitted   moments (s, rising) of a grid, and rows created up to each: linear in between
    """

    outputs: Floats
    done: Floats
    emitted: tuple[Floats, Floats]

    def backlog(self, at: Floats) -> Floats:
        """Rows created whose results are not out at the moments ``at`` (s)."""
        done = np.concatenate(([0.0], self.done))[np.searchsorted(self.outputs, at, "right")]
        return np.maximum(np.interp(at, *self.emitted) - done, 0.0)

    def latencies(self, begin: float, end: float, rows: int = 20_000) -> Floats:
        """Time (s) from creation until the result is out, of rows evenly chosen among those whose results
        come out in [begin, end).
        """
        first, last = np.searchsorted(self.outputs, (begin, end), "left")
        first = max(first, 1)  # when the rows of the first output came in is not known
        if last <= first:
            return np.zeros(0)
        low, high = self.done[first - 1], self.done[last - 1]
        row = low + (np.arange(rows) + 0.5) * (high - low) / rows
        moments, counts = self.emitted
        created = np.interp(row, counts, moments)
        return self.outputs[np.searchsorted(self.done, row, "left")] - created


def emitted(pieces: Any, end: float) -> tuple[Floats, Floats]:
    """Moments (s) at which the rate changes, and the end, and rows created up to each; ``pieces``: since when
    (s) which rate (1/s).
    """
    since, rates = np.array(pieces, float).T
    edges = np.append(since, end)
    return edges, np.concatenate(([0.0], np.cumsum(rates * np.diff(edges))))


def new_outputs(moments: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Those outputs after which more rows are done than after any before: their moments, and rows done.

    ``moments`` (s) in any order, ``rows``: rows done up to each. A batch that is run again after a failure
    brings nothing new, nor does the slower of two queries.
    """
    order = np.argsort(moments, kind="stable")
    moments, rows = np.asarray(moments, float)[order], np.asarray(rows, float)[order]
    most = np.maximum.accumulate(rows)
    new = np.concatenate((most[:1] > 0, most[1:] > most[:-1]))
    return moments[new], most[new]


def output_gap(curve: BacklogCurve, failed: float, until: float) -> float | None:
    """The longest silence of the sink (s) that contains or follows the fault and ends before ``until``."""
    starts, ends = curve.outputs[:-1], curve.outputs[1:]
    counted = (ends > failed) & (ends <= until)
    return float((ends - starts)[counted].max()) if counted.any() else None


def normal(curve: BacklogCurve, since: float, failed: float) -> float:
    """The 99th percentile of the backlog in [since, failed), before a fault; NaN: that is empty."""
    before = curve.backlog(np.arange(since, failed, STEP))
    return float(np.quantile(before, 0.99)) if len(before) else NAN


def catch_up(curve: BacklogCurve, since: float, failed: float, until: float) -> float | None:
    """From the fault to the first output from which on the backlog stays normal (s); None: not by ``until``.

    The tolerance is that of a simulated run (`tideover.models.evaluation.curves`): a quarter more than
    normal, for 4 s. But nobody knows what a real run would have been without its fault: normal is the 99th
    percentile of its backlog in [since, failed), for its rate is constant, and real batches vary. If the
    backlog stays normal from the fault on, there was nothing to catch up with: 0.
    """
    most = curves.SLACK * normal(curve, since, failed)
    after = curve.outputs[(curve.outputs > failed) & (curve.outputs <= until)]
    if np.isnan(most) or not len(after):
        return None
    at = np.arange(failed, until, STEP)
    back = curves.first_calm(curve.backlog(at) > most, 0, 0)
    if not back:
        return None if back is None else 0.0
    # The backlog falls at outputs only, so it became normal at the last one before this moment of the grid.
    return float(after[np.searchsorted(after, at[back], "right") - 1]) - failed


PRE = 8.0
"""Seconds before a fault in which the backlog is taken for normal."""
DISTURBED = 0.5
"""Cores busy with other programs at which an episode is no basis for a fit."""
SETTLE = 1.0
"""Seconds after the begin of an episode in which batches still have the rate of the one before."""
CAUGHT_UP = 3.0
"""Before a fault the rows of at most so many trigger intervals may wait: those of the batch under way and
those since are two, and batches vary. A query with more has not caught up, or cannot keep up.
"""

BATCH = ["life", "run", "batch"]
"""What names a batch within a session and query."""

NAN = float("nan")

Figures = dict[str, float]
"""By measure: batch_duration_s, latency_p50_s, latency_p95_s, output_gap_s, catch_up_s."""


def recovery(curve: BacklogCurve, since: float, failed: float, until: float, calm: float = 0.0) -> Figures:
    """Both figures of a fault, s; without those that are not over by ``until``, or ``calm`` s later."""
    gap, back = output_gap(curve, failed, until), catch_up(curve, since, failed, until + calm)
    both = {"output_gap_s": gap, "catch_up_s": back}
    return {measure: value for measure, value in both.items() if value is not None}


class Condition(NamedTuple):
    """What the cost of a batch depends on, rows and state apart."""

    strategy: str
    pipeline: str
    master: str


class Kind(NamedTuple):
    """A kind of fault under a strategy; ``none`` is one, too."""

    strategy: str
    fault: str


@dataclass(frozen=True)
class Setup:
    """What all episodes of a session share: its row in the table ``sessions`` (see `real.tables`)."""

    session: str
    strategy: str
    pipeline: str
    master: str
    keys: int
    trigger_s: float
    window_s: float
    partitions: int
    executors: int
    cores: int
    jvm: str
    locality_wait_s: float
    t0: datetime


@dataclass(frozen=True)
class Fault:
    """What was done to a process, and when it was over; times in s since the session's t0.

    kind         ``none``, ``kill_executor``, ``kill_driver`` or ``stop_executor``
    stop_s       how long an executor was stopped
    in_batch_s   when in the running batch the fault struck; NaN: between batches
    second_kill  an executor was killed before, and its state has stayed with the one that is killed now
    """

    kind: str = "none"
    at_s: float = NAN
    stop_s: float = NAN
    in_batch_s: float = NAN
    detected_s: float = NAN
    ready_s: float = NAN
    second_kill: bool = False


@dataclass(frozen=True)
class Episode:
    """One rate and at most one fault; times in s since the session's t0, which is a whole second.

    disturbed      by other programs, while others of its kind were not
    batches        the batches that were started in it (of the query that the fault hits, if there are two)
    other_batches  those of the other query
    tasks          of the query that the fault hits, in the whole session
    curve          of the whole session
    """

    setup: Setup
    number: int
    purpose: str
    held_out: bool
    rate_per_s: float
    begin_s: float
    end_s: float
    fault: Fault
    others_cores: float
    batches: pd.DataFrame
    other_batches: pd.DataFrame
    tasks: pd.DataFrame
    curve: BacklogCurve
    disturbed: bool = False

    @property
    def name(self) -> str:
        return f"{self.setup.session}/{self.number}"

    @property
    def condition(self) -> Condition:
        return Condition(self.setup.strategy, self.setup.pipeline, self.setup.master)

    @property
    def kind(self) -> Kind:
        return Kind(self.setup.strategy, self.fault.kind)

    @property
    def fitted(self) -> bool:
        """Whether the fit sees it: not held out, nor disturbed while others of its kind were not."""
        return not self.held_out and not self.disturbed

    def stages(self) -> dict[str, float]:
        """Of the settled batches, the mean times (s) from the trigger to the first task (``lead``), and of a
        task that reads (``map``) or counts (``reduce``). NaN: single tasks were not measured.
        """
        mine = self.tasks[self.tasks["result"] == "Success"]
        mine = mine.merge(self.settled()[[*BATCH, "start_s"]], on=BATCH)
        lasted = (mine["finish_s"] - mine["launch_s"]).groupby(mine["stage"]).mean()
        lead = (mine["launch_s"] - mine["start_s"]).groupby([mine[name] for name in BATCH]).min()
        found = {"lead": float(lead.mean()) if len(lead) else NAN}
        return found | {stage: float(lasted.get(stage, NAN)) for stage in ("map", "reduce")}

    def first_task_s(self, stage: str) -> float:
        """By how much (s) the first task of a stage is longer on an executor that came after the fault; NaN:
        none ran there. A stateful task counts only where a task that reads has run before.
        """
        mean = self.stages()[stage]
        done = self._tasks_of_life()
        done = done[done["result"] == "Success"]
        late = []
        for _, mine in done.groupby("executor"):
            first = mine[mine["stage"] == stage].head(1)
            began, joined = float(first["launch_s"].min()), float(mine["launch_s"].min())
            new = (began if stage == "reduce" else joined) > self.fault.at_s
            warm = (joined < began) == (stage == "reduce")
            if new and warm and began < self.end_s:
                late.append(float((first["finish_s"] - first["launch_s"]).iloc[0]) - mean)
        return max(0.0, float(np.mean(late))) if late else NAN

    def _tasks_of_life(self) -> pd.DataFrame:
        """Tasks of the driver that lives at the fault, as they were launched."""
        life = self.tasks[self.tasks["launch_s"] < self.fault.at_s]["life"].max()
        return self.tasks[self.tasks["life"] == life].sort_values("launch_s")

    def worker_again_s(self) -> float:
        """By how much (s) a task that reads is longer where one was stopped with the query, or where only
        others have run before: the worker that reads has to start. NaN: there was none.
        """
        late = []
        for _, mine in self._tasks_of_life().groupby("executor"):
            after = mine[mine["finish_s"] > self.fault.at_s]
            read = after[(after["stage"] == "map") & (after["result"] == "Success")].head(1)
            began = float(read["launch_s"].min())
            earlier = after[after["finish_s"] <= began]
            new = len(after) == len(mine)
            stopped = (earlier["stage"] == "map") & (earlier["result"] == "TaskKilled")
            if began < self.end_s and (stopped.any() or (new and len(earlier))):
                late.append(float((read["finish_s"] - read["launch_s"]).iloc[0]) - self.stages()["map"])
        return max(0.0, float(np.mean(late))) if late else NAN

    def first_batch_late_s(self) -> float:
        """By how much (s) the first task of a query that started anew comes later than in other batches."""
        ready = self.fault.ready_s
        after = self.tasks[(self.tasks["launch_s"] > ready) & (self.tasks["launch_s"] < self.end_s)]
        return float(after["launch_s"].min()) - ready - self.stages()["lead"]

    def settled(self, batches: pd.DataFrame | None = None) -> pd.DataFrame:
        """Batches of normal operation: after the begin has passed, before any fault."""
        batches = self.batches if batches is None else batches
        until = self.end_s if self.fault.kind == "none" else self.fault.at_s
        return batches[(batches["start_s"] >= self.begin_s + SETTLE) & (batches["end_s"] <= until)]

    def noise(self) -> Floats:
        """Log of the durations of the settled batches, less their mean."""
        lasted = _log_durations(self.settled())
        return lasted - lasted.mean() if len(lasted) else lasted

    def slowdown(self) -> Floats:
        """Log of the durations of the other query's batches while the one that was hit starts again, less
        the mean before the fault; empty if one of the two is not known.
        """
        before = _log_durations(self.settled(self.other_batches))
        began = self.other_batches["start_s"]
        during = self.other_batches[(began > self.fault.at_s) & (began <= self.fault.ready_s)]
        return _log_durations(during) - before.mean() if len(before) else before

    @property
    def since_s(self) -> float:
        """From when on what is seen before the fault is normal."""
        return max(self.begin_s + SETTLE, self.fault.at_s - PRE)

    @property
    def caught_up(self) -> bool:
        """Whether the query had caught up, when its fault struck, with what had been before that: else its
        silence and its catch-up are not of this fault alone, nor is its backlog before it what is normal.
        """
        if self.fault.kind == "none":
            return True
        most = CAUGHT_UP * self.setup.trigger_s * self.rate_per_s
        return normal(self.curve, self.since_s, self.fault.at_s) <= most

    def figures(self) -> Figures:
        """What was measured: the figures that predictions are compared with."""
        if self.fault.kind != "none":
            return recovery(self.curve, self.since_s, self.fault.at_s, self.end_s, CALM)
        begin = self.begin_s + SETTLE
        found: Figures = {}
        batches = self.settled()
        if len(batches):
            found["batch_duration_s"] = float((batches["end_s"] - batches["start_s"]).mean())
        latency = self.curve.latencies(begin + self.setup.trigger_s, self.end_s)
        if len(latency):
            found["latency_p50_s"], found["latency_p95_s"] = np.quantile(latency, (0.5, 0.95)).tolist()
        return found


def _log_durations(batches: pd.DataFrame) -> Floats:
    """From the start of a batch until the sink has it."""
    return np.log((batches["sink_s"] - batches["start_s"]).dropna().to_numpy(float))


def episodes(tables: Mapping[str, pd.DataFrame]) -> list[Episode]:
    """All episodes of a campaign whose sessions did not fail; ``tables`` as the campaign returns them."""
    found = []
    for session in tables["sessions"].to_dict("records"):
        if isinstance(session.get("error"), str) and session["error"]:
            continue
        setup = TypeAdapter(Setup).validate_python(session)
        mine = {name: table[table["session"] == setup.session] for name, table in tables.items()}
        curve = _curve(mine["batches"], str(session["schedule"]), float(mine["episodes"]["end_s"].max()))
        batches, tasks, faults = mine["batches"], mine["tasks"], mine["faults"]
        for row in mine["episodes"].sort_values("episode").to_dict("records"):
            begin, end = float(row["begin_s"]), float(row["end_s"])
            inside = batches[batches["start_s"].between(begin, end, "left")].sort_values("start_s")
            one = Episode(
                setup=setup,
                number=int(row["episode"]),
                purpose=str(row["purpose"]),
                held_out=bool(row["held_out"]),
                rate_per_s=float(row["rate_per_s"]),
                begin_s=begin,
                end_s=end,
                fault=_fault(row, faults),
                others_cores=float(row["others_cores"]),
                batches=inside[inside["query"] == 0],
                other_batches=inside[inside["query"] != 0],
                tasks=tasks[tasks["query"] == 0],
                curve=curve,
            )
            found.append(one)
    return marked(found)


def marked(found: list[Episode]) -> list[Episode]:
    """Episodes with who was ``disturbed``: those next to other programs, if the fit has a quiet one of their
    kind that can be used.
    """
    fit = [e for e in found if not e.held_out and e.caught_up]
    quiet = {(e.condition, e.kind) for e in fit if not e.others_cores > DISTURBED}
    return [
        replace(e, disturbed=e.others_cores > DISTURBED and (e.condition, e.kind) in quiet) for e in found
    ]


def _fault(episode: Mapping[Any, Any], faults: pd.DataFrame) -> Fault:
    struck = faults[faults["episode"] == episode["episode"]].to_dict("records")
    if not struck:
        return Fault()
    fault = struck[0]
    earlier = faults[(faults["at_s"] < fault["at_s"]) & (faults["fault"] == "kill_executor")]
    same_driver = (earlier["life"] == fault["life"]) & (earlier["query"] == fault["query"])
    return Fault(
        kind=str(episode["fault"]),
        stop_s=float(episode["stop_s"]),
        second_kill=fault["fault"] == "kill_executor" and bool(same_driver.any()),
        **{name: float(fault[name]) for name in ("at_s", "in_batch_s", "detected_s", "ready_s")},
    )


def _curve(batches: pd.DataFrame, schedule: str, end: float) -> BacklogCurve:
    out = batches.dropna(subset=["sink_s", "last_row"])
    moments, rows = new_outputs(out["sink_s"].to_numpy(float), out["last_row"].to_numpy(float))
    return BacklogCurve(moments, rows, emitted(json.loads(schedule)["pieces"], end))


# A simulated batch takes its mean time. Real ones vary, and they take longer while something else on the
# same processors starts. The figures of a fault hang on single batches (a backlog that is just normal, or
# just not), so a prediction is made of many runs, each with noise of its own.


@dataclass(frozen=True)
class Batches:
    """The batches of one query, in order; one value each.

    triggered, visible, committed   s
    done                            rows whose results are out as soon as the batch is visible
    """

    triggered: Floats
    visible: Floats
    committed: Floats
    done: Floats

    def median_s(self) -> float:
        """Median time from a batch's trigger until it is visible."""
        return float(np.median(self.visible - self.triggered)) if len(self.visible) else 0.0

    def delayed(self, extra: Floats, interval: float, rate: float) -> tuple[Floats, Floats]:
        """When batches would have been visible (s), and up to which row, if each took ``extra`` s longer.

        A batch starts at a trigger, every ``interval`` s, or as soon as the one before is committed; one that
        starts later takes the rows that came meanwhile, too (``rate`` per s).
        """
        shifts = np.zeros(len(extra))
        free = before = due = -np.inf
        for i, (trigger, committed) in enumerate(zip(self.triggered, self.committed, strict=True)):
            waited = trigger <= before  # for the batch before
            begin = max(due if waited else trigger, free)
            shifts[i] = begin - trigger
            before, free = committed, committed + shifts[i] + extra[i]
            due = (np.floor(begin / interval) + 1) * interval
        return self.visible + shifts + extra, self.done + rate * shifts

    def extra_s(self, slowdown: Floats, sigma: Floats, z: Floats) -> Floats:
        """By how much (s) each batch is longer than its mean: ``slowdown`` times as long, and noise of the
        standard deviation ``sigma`` (of the log of its duration) times ``z``.
        """
        return self.median_s() * (slowdown * np.exp(sigma * z) - 1)
