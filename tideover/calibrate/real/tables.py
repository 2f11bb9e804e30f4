"""From the raw events of a session to its tables. All times are in s since the session's t0."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from tideover.calibrate.real import counted, truth
from tideover.calibrate.real.columns import TABLES, frame
from tideover.calibrate.real.machine import machine
from tideover.calibrate.real.plan import SessionPlan, executors_of
from tideover.calibrate.real.session import NAN, Row, Session
from tideover.calibrate.real.settings import LOCALITY_WAIT_S
from tideover.calibrate.real.tasks import read_tasks

_PLANNED = ("strategy", "pipeline", "master", "keys", "work", "trigger_s", "window_s", "partitions", "seed")
"""Columns of ``sessions`` that are as they are in the plan."""
_PHASES = {
    "latest_offset_ms": "latestOffset",
    "wal_ms": "walCommit",
    "planning_ms": "queryPlanning",
    "get_batch_ms": "getBatch",
    "add_batch_ms": "addBatch",
    "commit_ms": "commitOffsets",
    "trigger_ms": "triggerExecution",
}
_STATE = {
    "state_rows": "numRowsTotal",
    "state_updated": "numRowsUpdated",
    "state_update_ms": "allUpdatesTimeMs",
    "state_commit_ms": "commitTimeMs",
}
_ROCKSDB = {
    "rocksdb_load_ms": "rocksdbLoadLatencyMs",
    "rocksdb_flush_ms": "rocksdbCommitFlushLatency",
    "rocksdb_checkpoint_ms": "rocksdbCommitCheckpointLatency",
    "rocksdb_sync_ms": "rocksdbCommitFileSyncLatencyMs",
    "rocksdb_bytes": "rocksdbSstFileSize",
}


def tables(directory: Path, error: str = "") -> dict[str, pd.DataFrame]:
    """All tables of one session, with the columns of ``columns.TABLES``."""
    session = Session.read(directory)
    batches = frame("batches", _batches(session))
    rows = {
        "sessions": [_session(session, error)],
        "episodes": counted.episodes(session, batches),
        "tasks": _tasks(session),
        "windows": _windows(session),
        "faults": _faults(session, batches),
    }
    return {table: batches if table == "batches" else frame(table, rows[table]) for table in TABLES}


def described(plan: SessionPlan) -> Row:
    """What is known of a session before it begins: a part of its row in ``sessions``."""
    executors, cores = executors_of(plan.master)
    return {
        "session": plan.name,
        **{name: getattr(plan, name) for name in _PLANNED},
        "executors": executors,
        "cores": cores,
        "locality_wait_s": LOCALITY_WAIT_S,
        **machine(),
    }


def _session(session: Session, error: str) -> Row:
    versions = [e["version"] for events in session.lives.values() for e in events if e["event"] == "spark"]
    return {
        **described(session.plan),
        "schedule": json.dumps(asdict(session.schedule)),
        "t0": datetime.fromtimestamp(session.schedule.t0, UTC).isoformat(),
        "spark": versions[0] if versions else "",
        "java": session.java,
        "error": error,
    }


# Batches.


def _batches(session: Session) -> list[Row]:
    rows = []
    for (query, life), events in session.lives.items():
        runs = _runs(events)
        starts = {e["run"]: e["start_row"] for e in events if e["event"] == "query"}
        seen = {(e["run"], e["batch"]): e for e in events if e["event"] == "in_sink"}
        for event in events:
            if event["event"] != "progress" or not event["progress"]["numInputRows"]:
                continue
            progress = event["progress"]
            run = _run_of(progress["runId"], runs)
            found = seen.pop((run, progress["batchId"]), None)
            rows.append(
                {
                    **_identity(session, query, life, run, progress["batchId"]),
                    **_from_progress(session, progress, starts.get(run, 0)),
                    "sink_s": session.since(found["at"]) if found else NAN,
                }
            )
        for (run, batch), found in seen.items():  # results that were seen, of batches that never ended
            own = _identity(session, query, life, run, batch)
            first, end = _first_row(session, rows, own, starts[run]), found["end_row"]
            known = {"first_row": first, "last_row": end, "rows": end - first}
            rows.append({**own, **known, "sink_s": session.since(found["at"])})
    return sorted(rows, key=lambda row: (row["query"], row["life"], row["run"], row["batch"]))


def _first_row(session: Session, rows: list[Row], batch: Row, start_row: int) -> int:
    """Where the batch before ended; that one may be from an earlier life, if there is a checkpoint."""
    kept = ("query",) if session.plan.strategy != "source_replay" else ("query", "life", "run")
    before = [
        row["last_row"]
        for row in rows
        if row["batch"] == batch["batch"] - 1 and all(row[name] == batch[name] for name in kept)
    ]
    return before[-1] if before else start_row


def _runs(events: list[Row]) -> dict[str, int]:
    """The number of each run by Spark's id."""
    return {e["run_id"]: e["run"] for e in events if e["event"] == "query"}


def _run_of(run_id: str, runs: dict[str, int]) -> int:
    """The number of a run. A progress may come before the driver has noted that the run began."""
    return runs.get(run_id, max(runs.values(), default=0))


def _identity(session: Session, query: int, life: int, run: int, batch: int) -> Row:
    return {"session": session.plan.name, "query": query, "life": life, "run": run, "batch": batch}


def _from_progress(session: Session, progress: Row, start_row: int) -> Row:
    durations = progress["durationMs"]
    state = (progress["stateOperators"] or [{}])[0]
    custom = state.get("customMetrics", {})
    source = progress["sources"][0]
    first = source["startOffset"]
    start = session.since(datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp())
    return {
        "start_s": start,
        **{name: durations.get(key, NAN) for name, key in _PHASES.items()},
        "first_row": _offset(first)["row"] if first else start_row,
        "last_row": _offset(source["endOffset"])["row"],
        "rows": progress["numInputRows"],
        **{name: state.get(key, NAN) for name, key in _STATE.items()},
        **{name: custom.get(key, NAN) for name, key in _ROCKSDB.items()},
        "end_s": start + durations["triggerExecution"] / 1000,
    }


def _offset(value: Any) -> Row:
    return json.loads(value) if isinstance(value, str) else value


def _tasks(session: Session) -> list[Row]:
    rows = []
    for (query, life), events in session.lives.items():
        runs = _runs(events)
        for row in read_tasks(session.directory / "spark-events" / f"{query}-{life}", session.since):
            run = _run_of(row.pop("run_id"), runs)
            rows.append({**_identity(session, query, life, run, row["batch"]), **row})
    return rows


# Windows, and what was counted.


def _windows(session: Session) -> list[Row]:
    if session.plan.pipeline != "word_count":
        return []
    right = {
        window: truth.words_of_window(session.plan, session.schedule, window) == found
        for window, found in session.windows.items()
    }
    return [
        {
            "session": session.plan.name,
            "query": query,
            "life": life,
            **{name: event[name] for name in ("run", "window", "first")},
            "end_s": (event["window"] + 1) * session.plan.window_s,
            "seen_s": session.since(event["at"]),
            "right": right.get(event["window"], False),
        }
        for (query, life), events in session.lives.items()
        for event in events
        if event["event"] == "window"
    ]


# Faults.


def _faults(session: Session, batches: pd.DataFrame) -> list[Row]:
    rows = []
    for event in session.supervisor:
        if event["event"] != "fault":
            continue
        own = batches[batches["query"] == event["query"]]
        batch, start = _running(session, event, own)
        at = session.since(event["at"])
        detected, ready = _recovered(session, event)
        after = own.sink_s[own.sink_s > at]
        rows.append(
            {
                "session": session.plan.name,
                **{name: event[name] for name in ("episode", "query", "life", "victim")},
                "fault": event["kind"],
                "at_s": at,
                "batch_running": batch,
                "in_batch_s": at - start,
                "logged": event["logged"] > event["committed"],
                "detected_s": detected,
                "ready_s": ready,
                "first_batch_s": after.min() if len(after) else NAN,
            }
        )
    return rows


def _running(session: Session, event: Row, own: pd.DataFrame) -> tuple[float, float]:
    """Number and start of the batch that ran when the fault struck; nan between batches."""
    at = session.since(event["at"])
    running = own[(own.start_s <= at) & (own.end_s > at)]
    if len(running):
        return float(running.batch.iloc[0]), float(running.start_s.iloc[0])
    if event["logged"] <= event["committed"]:
        return NAN, NAN
    # It never ended, so there is no progress that would say when it began: with the trigger before its
    # entry in the log, or when the batch before ended if that was later.
    logged = session.since(event["logged_at"])
    grid = math.floor(logged / session.plan.trigger_s) * session.plan.trigger_s
    before = own.end_s[own.end_s <= logged]
    return float(event["logged"]), max(grid, float(before.max()) if len(before) else -math.inf)


def _recovered(session: Session, event: Row) -> tuple[float, float]:
    """When the fault was noticed, and when there was a replacement; NaN: never."""
    at, query, life = event["at"], event["query"], event["life"]
    if event["kind"] == "stop_executor":
        return NAN, session.first_after(at, session.supervisor, event="continued")
    if event["kind"] == "kill_driver":
        next_life = {"query": query, "life": life + 1}
        spawned = session.first_after(at, session.supervisor, event="spawn", **next_life)
        return spawned, session.first_after(at, session.lives.get((query, life + 1), []), event="query")
    events = session.lives[query, life]
    back = "query" if session.plan.strategy == "source_replay" else "executor_added"
    return (
        session.first_after(at, events, event="executor_removed"),
        session.first_after(at, events, event=back),
    )
