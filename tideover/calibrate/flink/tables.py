"""From what a session on Flink leaves to its tables: kills and their stages, checkpoints, outputs.

`sessions` calls ``tables`` for each session. A new column is described in ``TABLES``, and filled in by the
function of its table. Stages are read off the JobManager's log by `calibrate.logs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from tideover.calibrate.episodes import NAN, Floats
from tideover.calibrate.flink.plan import SessionPlan
from tideover.calibrate.logs.files import LogFile, head
from tideover.calibrate.logs.findings import Failure, Problems
from tideover.calibrate.logs.flink_log import Log
from tideover.calibrate.real import sessions
from tideover.calibrate.real.processes import machine, read_events
from tideover.models.schema import Column

Row = dict[str, Any]


_SESSION = sessions.text("session", "name of the session")
_PLANNED = (
    Column("interval_s", "between the beginnings of two checkpoints", "s"),
    sessions.count("taskmanagers", "TaskManagers, each with one slot", "processes"),
    sessions.count("keys", "keys of each split of the log", "keys"),
    sessions.count("row_us", "CPU time that counting a row costs", "us"),
    Column("replace_s", "from a kill until its replacement is started", "s"),
    Column("restart_delay_s", "of the fixed-delay restart strategy", "s"),
    Column("heartbeat_s", "interval of heartbeats", "s"),
    Column("timeout_s", "timeout of heartbeats", "s"),
)
"""Columns of ``sessions`` that are as they are in the plan."""
_NEVER = "it is not in the log"
TABLES: dict[str, tuple[Column, ...]] = {
    "sessions": (
        _SESSION,
        *_PLANNED,
        sessions.count("rows", "rows of the log, over all splits", "rows"),
        sessions.text("pieces", "JSON: rates of the log, [[from_s, rate_per_s], ...]"),
        Column("end_s", "end of the last episode", "s"),
        *sessions.about("Flink"),
    ),
    "kills": (
        _SESSION,
        sessions.count("episode", "number of the episode in its session"),
        Column("held_out", "not for the fit: compared with what is predicted", "", "bool"),
        sessions.time("begin_s", "beginning of the episode"),
        sessions.time("end_s", "end of the episode"),
        sessions.count("rate_per_s", "rows per second", "1/s"),
        sessions.text("victim", "the TaskManager"),
        sessions.time("at_s", "when the signal was sent"),
        sessions.time("triggered_s", "begin of the checkpoint that the job went back to", _NEVER),
        sessions.time("detected_s", "the first task counts as failed", _NEVER),
        sessions.count("restarts", "restarts that were tried, the last of which went well", "restarts"),
        Column(
            "refused_s",
            "from a restart that failed, as it was on the lost TaskManager, until it did; on average",
            "s",
            undefined="none failed",
        ),
        sessions.time("given_up_s", "the lost TaskManager is no longer reachable", _NEVER),
        sessions.time("freed_s", "it is not for the ResourceManager, either, and its slots are free", _NEVER),
        sessions.time("registered_s", "its replacement had registered", _NEVER),
        sessions.time("ordered_s", "the restart that went well was ordered", _NEVER),
        sessions.time("slots_s", "there were slots for all tasks, as both had come", _NEVER),
        sessions.time("running_s", "all tasks run again", _NEVER),
        sessions.time("output_s", "all put out a row again, be it for the second time", "there was none"),
        sessions.count("few", "rows of the episode, from its kill on, whose count was too small", "rows"),
        sessions.count("many", "the same, too large", "rows"),
        Column("others_cores", "cores busy with other programs, on average", "cores"),
    ),
    "checkpoints": (
        _SESSION,
        sessions.count("checkpoint", "Flink's number of the checkpoint"),
        sessions.text("status", "COMPLETED, FAILED or IN_PROGRESS"),
        sessions.time("triggered_s", "its beginning"),
        Column("duration_s", "until the last task has acknowledged it", "s"),
        sessions.count("bytes", "size of the state", "bytes"),
    ),
    "outputs": (
        _SESSION,
        sessions.time("at_s", "when the sink noted it"),
        sessions.count("rows", "rows of the log up to which all are put out, over all splits", "rows"),
    ),
}


class Output(NamedTuple):
    """What one writer of the sink noted: moments (ms since the epoch), rows that came, and of these those
    with too small and too large a count, and the newest row of each split.
    """

    subtask: int
    at: Floats
    came: Floats
    few: Floats
    many: Floats
    newest: Floats


def read_outputs(directory: Path, splits: int) -> Iterator[Output]:
    """The files of the sink's writers (see ``CountJob.java``); a last line that was cut off is left out."""
    for path in sorted(directory.glob("out-*-*.csv")):
        lines = path.read_text().splitlines(keepends=True)
        rows = [line.split(",") for line in lines if line.endswith("\n")]
        cells = np.array(rows, float).reshape(-1, 4 + splits)
        at, came, few, many = cells[:, :4].T
        yield Output(int(path.stem.split("-")[1]), at, came, few, many, cells[:, 4:])


def put_out(outputs: list[Output], splits: int) -> tuple[Floats, Floats]:
    """When the sink had noted more (ms since the epoch, rising), and the rows that all were put out up to.

    A split's rows go to all subtasks, to each in their order; so those up to the oldest of the subtasks'
    newest ones are out. Splits go on side by side: the slowest tells, as a watermark does.
    """
    moments = np.unique(np.concatenate([output.at for output in outputs] or [np.zeros(0)]))
    oldest = np.full(len(moments), np.inf)
    for subtask in range(splits):
        newest = np.full((len(moments), splits), -1.0)
        for output in (output for output in outputs if output.subtask == subtask):
            np.maximum.at(newest, np.searchsorted(moments, output.at), output.newest)
        np.minimum(oldest, np.maximum.accumulate(newest, axis=0).min(axis=1), out=oldest)
    return moments, (oldest + 1) * splits


def tables(directory: Path, error: str = "") -> dict[str, pd.DataFrame]:
    """All tables of a session that began; ``error``: why it did not come to its end."""
    begun = json.loads((directory / "session.json").read_text())
    plan: SessionPlan = TypeAdapter(SessionPlan).validate_python(begun["plan"])
    t0, name = float(begun["t0"]), {"session": plan.name}
    outputs = list(read_outputs(directory, plan.taskmanagers))
    moments, rows = put_out(outputs, plan.taskmanagers)
    about = {
        **described(plan),
        "t0": datetime.fromtimestamp(t0, UTC).isoformat(),
        "java": begun["java"],
        "error": error,
    }
    noted = [name | {"at_s": (at - 1000 * t0) / 1000, "rows": n} for at, n in zip(moments, rows, strict=True)]
    found: dict[str, list[Row]] = {
        "sessions": [about],
        "kills": [name | row for row in _kills(directory, plan, t0, outputs)],
        "checkpoints": [name | row for row in _checkpoints(directory, t0)],
        "outputs": noted,
    }
    return {table: sessions.frame(TABLES[table], mine) for table, mine in found.items()}


def described(plan: SessionPlan) -> Row:
    """What is known of a session before it begins: a part of its row in ``sessions``."""
    return {
        "session": plan.name,
        **{column.name: getattr(plan, column.name) for column in _PLANNED},
        "rows": plan.split_rows * plan.taskmanagers,
        "pieces": json.dumps(plan.pieces),
        "end_s": plan.end_s,
        "flink": version("apache-flink-libraries"),
        **machine(),
    }


def _kills(directory: Path, plan: SessionPlan, t0: float, outputs: list[Output]) -> Iterator[Row]:
    events = list(read_events(directory / "supervisor.jsonl"))
    struck = [event for event in events if event["event"] == "kill"]
    looks = np.array([(e["at"], e["cores"]) for e in events if e["event"] == "others"]).reshape(-1, 2)
    log = _log(directory)
    (job,) = log.jobs.values()
    failures = log.failures(job)
    instead = {event["episode"]: event["name"] for event in events if event["event"] == "replaced"}
    restored = [row["triggered"] for row in job.checkpoints.values() if row.get("restored")]
    ends = [*(event["at"] for event in struck[1:]), np.inf]
    for event, end in zip(struck, ends, strict=True):
        episode, at = plan.episodes[event["episode"]], event["at"]
        mine = next((failure for failure in failures if at <= failure.began < end), None)
        inside = (looks[:, 0] >= t0 + episode.begin_s) & (looks[:, 0] < t0 + episode.end_s)
        yield {
            "episode": event["episode"],
            "held_out": episode.held_out,
            "begin_s": episode.begin_s,
            "end_s": episode.end_s,
            "rate_per_s": episode.rate_per_s,
            "victim": event["victim"],
            "at_s": at - t0,
            "triggered_s": max((moment - t0 for moment in restored if moment <= at), default=NAN),
            "freed_s": log.freed.get(event["victim"], NAN) - t0,
            "registered_s": log.registered.get(instead.get(event["episode"], ""), NAN) - t0,
            **_stages(mine, t0),
            **_seen(outputs, at, min(end, t0 + episode.end_s), t0),
            "others_cores": float(looks[inside, 1].mean()) if inside.any() else NAN,
        }


def _log(directory: Path) -> Log:
    path, log = directory / "jobmanager.log", Log()
    log.feed(LogFile(path, path.name, Problems(), head(path)))
    return log


def _stages(failure: Failure | None, t0: float) -> Row:
    """What the log says of a failure; without one nothing is known of it."""
    if failure is None:
        return {"restarts": 0}
    first = next(stage.at for stage in failure.stages if stage.name == "detected")
    tried = [stage for stage in failure.stages if stage.name in ("restart_tried", "restart_failed")]
    refused = [b.at - a.at for a, b in pairwise(tried) if b.name == "restart_failed"]
    later = {f"{name}_s": failure.at(name) for name in ("given_up", "slots", "running")}
    known = {name: NAN if at is None else at - t0 for name, at in later.items()}
    mean = float(np.mean(refused)) if refused else NAN
    ordered = max((stage.at - t0 for stage in tried if stage.name == "restart_tried"), default=NAN)
    return {
        "restarts": failure.attempts,
        "detected_s": first - t0,
        "refused_s": mean,
        "ordered_s": ordered,
        **known,
    }


def _seen(outputs: list[Output], at: float, end: float, t0: float) -> Row:
    """When all subtasks had put something out after one moment and before another (s since the epoch) by
    writers that were new, and rows with a wrong count that came meanwhile.
    """
    wrong = {"few": 0, "many": 0}
    for output in outputs:
        edges = np.searchsorted(output.at, [at * 1000, end * 1000], "right")
        for name in wrong:
            seen = np.concatenate(([0.0], getattr(output, name)))
            wrong[name] += int(seen[edges[1]] - seen[edges[0]])
    begun = [(float(output.at[0]) / 1000, output.subtask) for output in outputs if len(output.at)]
    first: dict[int, float] = {}
    for moment, subtask in sorted(begun):
        if at < moment < end:
            first.setdefault(subtask, moment)
    every = {output.subtask for output in outputs} == first.keys()
    return {"output_s": max(first.values()) - t0 if first and every else NAN} | wrong


def _checkpoints(directory: Path, t0: float) -> Iterator[Row]:
    path = directory / "checkpoints.json"
    told = json.loads(path.read_text()) if path.exists() else None
    for one in reversed((told or {}).get("history", [])):
        yield {
            "checkpoint": one["id"],
            "status": one["status"],
            "triggered_s": one["trigger_timestamp"] / 1000 - t0,
            "duration_s": one["end_to_end_duration"] / 1000,
            "bytes": one["state_size"],
        }
