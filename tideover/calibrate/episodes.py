"""Measured episodes, out of the tables of a campaign."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.course import CALM, Course, Floats, catch_up, output_gap, progress

PRE = 8.0
"""Seconds before a fault in which the backlog is taken for usual."""
DISTURBED = 0.5
"""Cores busy with other programs at which an episode is no basis for a fit."""
SETTLE = 1.0
"""Seconds after the begin of an episode that still see the rate of the one before."""

BATCH = ("life", "run", "batch")
"""What names a batch within a session and query."""

Figures = dict[str, float]
"""By measure: batch_duration_s, latency_p50_s, latency_p95_s, output_gap_s, catch_up_s."""


@dataclass(frozen=True)
class Episode:
    """One rate and at most one fault; times in s since the session's start, which is a whole second.

    moment_s  when in the running batch the fault struck; NaN: between batches
    prior     an executor was killed before, and its state has stayed with the one that is killed now
    spare     disturbed by other programs, while others of its kind were not
    batches   the batches that were started in it (of the query that the fault hits, if there are two)
    spared    those of the other query
    fault     what was done (``none``, ``kill_executor``, ``kill_driver``, ``stop_executor``) at ``at_s``
    """

    session: str
    number: int
    purpose: str
    held_out: bool
    strategy: str
    pipeline: str
    master: str
    keys: int
    rate_per_s: float
    trigger_s: float
    window_s: float
    partitions: int
    executors: int
    cores: int
    locality_wait_s: float
    begin_s: float
    end_s: float
    t0: float
    fault: str
    at_s: float
    stop_s: float
    moment_s: float
    prior: bool
    others_cores: float
    spare: bool
    detected_s: float
    ready_s: float
    first_batch_s: float
    batches: pd.DataFrame
    spared: pd.DataFrame
    tasks: pd.DataFrame
    course: Course

    @property
    def name(self) -> str:
        """For messages and figures."""
        return f"{self.session}/{self.number}"

    @property
    def kind(self) -> tuple[tuple[str, str, str], str]:
        """Episodes of one kind tell the fit the same things."""
        return self.condition, self.fault

    @property
    def fitted(self) -> bool:
        """Whether the fit sees it: not held out, nor disturbed while others of its kind were not."""
        return not self.held_out and not self.spare

    @property
    def condition(self) -> tuple[str, str, str]:
        """What the cost of a batch depends on besides rows and state: strategy, pipeline, master."""
        return self.strategy, self.pipeline, self.master

    def stages(self) -> dict[str, float]:
        """Of the settled batches, the mean times (s) from the trigger to the first task (``lead``), and of a
        task that reads (``map``) or counts (``reduce``). NaN: single tasks were not measured.
        """
        mine = self.tasks[self.tasks["result"] == "Success"]
        mine = mine.merge(self.settled()[[*BATCH, "start_s"]], on=list(BATCH))
        lasted = (mine["finish_s"] - mine["launch_s"]).groupby(mine["stage"]).mean()
        lead = (mine["launch_s"] - mine["start_s"]).groupby([mine[name] for name in BATCH]).min()
        found = {"lead": float(lead.mean()) if len(lead) else float("nan")}
        return found | {stage: float(lasted.get(stage, np.nan)) for stage in ("map", "reduce")}

    def first_task_s(self, stage: str) -> float:
        """By how much (s) the first task of a stage is longer on an executor that came after the fault; NaN:
        none ran there. Of a stateful one: where a task that reads has run before.
        """
        usual = self.stages()[stage]
        done = self.tasks[self.tasks["result"] == "Success"].sort_values("launch_s")
        done = done[done["life"] == done[done["launch_s"] < self.at_s]["life"].max()]
        late = []
        for _, mine in done.groupby("executor"):
            first = mine[mine["stage"] == stage].head(1)
            began = float(first["launch_s"].min())
            new = began > self.at_s if stage == "reduce" else float(mine["launch_s"].min()) > self.at_s
            warm = (mine["launch_s"].min() < began) == (stage == "reduce")
            if new and warm and began < self.end_s:
                late.append(float((first["finish_s"] - first["launch_s"]).iloc[0]) - usual)
        return max(0.0, float(np.mean(late))) if late else float("nan")

    def first_batch_late_s(self) -> float:
        """By how much (s) the first task of a query that started anew comes later than in other batches."""
        after = self.tasks[(self.tasks["launch_s"] > self.ready_s) & (self.tasks["launch_s"] < self.end_s)]
        return float(after["launch_s"].min()) - self.ready_s - self.stages()["lead"]

    def settled(self) -> pd.DataFrame:
        """Batches of normal operation: after the begin has passed, before any fault."""
        return self._settled(self.batches)

    def _settled(self, batches: pd.DataFrame) -> pd.DataFrame:
        until = self.end_s if self.fault == "none" else self.at_s
        return batches[(batches["start_s"] >= self.begin_s + SETTLE) & (batches["end_s"] <= until)]

    def luck(self) -> Floats:
        """By how much the settled batches differ: log of their durations, less the mean."""
        lasted = _log_durations(self.settled())
        return lasted - lasted.mean() if len(lasted) else lasted

    def held_up(self) -> Floats:
        """Log of the durations of the other query's batches while what was hit starts again, less the mean
        before the fault; empty if one of the two is not known.
        """
        before = _log_durations(self._settled(self.spared))
        began = self.spared["start_s"]
        after = _log_durations(self.spared[(began > self.at_s) & (began <= self.ready_s)])
        return after - before.mean() if len(before) else before


def _log_durations(batches: pd.DataFrame) -> Floats:
    """From the start of a batch until the sink has it."""
    return np.log((batches["sink_s"] - batches["start_s"]).dropna().to_numpy(float))


def episodes(tables: Mapping[str, pd.DataFrame]) -> list[Episode]:
    """All episodes of a campaign whose sessions did not fail; ``tables`` as the campaign returns them."""
    found = []
    for session in tables["sessions"].to_dict("records"):
        if isinstance(session.get("error"), str) and session["error"]:
            continue
        mine = {name: t[t["session"] == session["session"]] for name, t in tables.items()}
        for row in mine["episodes"].sort_values("episode").to_dict("records"):
            found.append(_episode(dict(session), dict(row), mine))
    calm = {e.kind for e in found if not e.held_out and not e.others_cores > DISTURBED}
    return [replace(e, spare=e.others_cores > DISTURBED and e.kind in calm) for e in found]


def _episode(session: Mapping[Any, Any], row: Mapping[Any, Any], tables: Mapping[str, Any]) -> Episode:
    begin, end = float(row["begin_s"]), float(row["end_s"])
    faults = tables["faults"]
    struck = faults[faults["episode"] == row["episode"]].to_dict("records") if len(faults) else []
    fault = struck[0] if struck else {}
    batches = tables["batches"]
    inside = batches[(batches["start_s"] >= begin) & (batches["start_s"] < end)].sort_values("start_s")
    return Episode(
        session=str(session["session"]),
        number=int(row["episode"]),
        purpose=str(row["purpose"]),
        held_out=bool(row["held_out"]),
        strategy=str(session["strategy"]),
        pipeline=str(session["pipeline"]),
        master=str(session["master"]),
        keys=int(session["keys"]),
        rate_per_s=float(row["rate_per_s"]),
        trigger_s=float(session["trigger_s"]),
        window_s=float(session["window_s"]),
        partitions=int(session["partitions"]),
        executors=int(session["executors"]),
        cores=int(session["cores"]),
        locality_wait_s=float(session["locality_wait_s"]),
        begin_s=begin,
        end_s=end,
        t0=pd.Timestamp(session["t0"]).timestamp(),
        fault=str(row["fault"]) if struck else "none",
        at_s=float(fault.get("at_s", np.nan)),
        stop_s=float(row.get("stop_s") or 0.0),
        moment_s=float(fault.get("in_batch_s", np.nan)),
        prior=_prior(faults, fault),
        others_cores=float(row["others_cores"]),
        spare=False,
        detected_s=float(fault.get("detected_s", np.nan)),
        ready_s=float(fault.get("ready_s", np.nan)),
        first_batch_s=float(fault.get("first_batch_s", np.nan)),
        batches=inside[inside["query"] == 0],
        spared=inside[inside["query"] != 0],
        tasks=tables["tasks"][tables["tasks"]["query"] == 0],
        course=_course(batches, session, float(tables["episodes"]["end_s"].max())),
    )


def _prior(faults: pd.DataFrame, fault: Mapping[Any, Any]) -> bool:
    """Whether an executor of the same driver was killed before this one."""
    if fault.get("fault") != "kill_executor":
        return False
    earlier = faults[(faults["at_s"] < fault["at_s"]) & (faults["fault"] == "kill_executor")]
    return bool(((earlier["life"] == fault["life"]) & (earlier["query"] == fault["query"])).any())


def _course(batches: pd.DataFrame, session: Mapping[Any, Any], end: float) -> Course:
    """The course of a whole session, out of all its queries' batches."""
    out = batches.dropna(subset=["sink_s", "last_row"])
    moments, rows = progress(out["sink_s"].to_numpy(float), out["last_row"].to_numpy(float))
    pieces = np.array(json.loads(session["schedule"])["pieces"], float)
    edges = np.append(pieces[:, 0], end)
    created = np.concatenate(([0.0], np.cumsum(pieces[:, 1] * np.diff(edges))))
    return Course(moments, rows, (edges, created))


def figures(episode: Episode) -> Figures:
    """What was measured: the figures that predictions are compared with."""
    found: Figures = {}
    if episode.fault == "none":
        batches = episode.settled()
        if len(batches):
            found["batch_duration_s"] = float((batches["end_s"] - batches["start_s"]).mean())
        latency = episode.course.latencies(episode.begin_s + SETTLE + episode.trigger_s, episode.end_s)
        if len(latency):
            found["latency_p50_s"], found["latency_p95_s"] = np.quantile(latency, (0.5, 0.95)).tolist()
        return found
    gap = output_gap(episode.course, episode.at_s, episode.end_s)
    back = catch_up(
        episode.course, max(episode.begin_s + SETTLE, episode.at_s - PRE), episode.at_s, episode.end_s + CALM
    )
    if gap is not None:
        found["output_gap_s"] = gap
    if back is not None:
        found["catch_up_s"] = back
    return found
