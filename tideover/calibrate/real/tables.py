"""From the raw events of a session to its tables. All times are in s since the session's t0."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.real import truth
from tideover.calibrate.real.columns import TABLES, frame
from tideover.calibrate.real.events import read_events
from tideover.calibrate.real.machine import machine
from tideover.calibrate.real.plan import Episode, SessionPlan, session_from_json
from tideover.calibrate.real.schedule import MICROSECONDS, Schedule
from tideover.calibrate.real.settings import LOCALITY_WAIT_S, executors_of
from tideover.calibrate.real.sink import read_batches, read_windows
from tideover.calibrate.real.tasks import read_tasks

Row = dict[str, Any]
NAN = float("nan")

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


@dataclass
class Session:
    """The raw record of one session, read from its directory."""

    directory: Path
    plan: SessionPlan
    schedule: Schedule
    java: str
    lives: dict[tuple[int, int], list[Row]] = field(default_factory=dict)
    supervisor: list[Row] = field(default_factory=list)

    @classmethod
    def read(cls, directory: Path) -> Session:
        """Read what the supervisor and the drivers have written."""
        found = json.loads((directory / "session.json").read_text())
        plan = session_from_json(found["plan"])
        session = cls(directory, plan, plan.schedule(found["t0"]), found["java"])
        for path in sorted(directory.glob("driver-*.jsonl")):
            _, query, life = path.stem.split("-")
            session.lives[int(query), int(life)] = list(read_events(path))
        session.lives = dict(sorted(session.lives.items()))
        session.supervisor = list(read_events(directory / "supervisor.jsonl"))
        return session

    def since(self, unix: float) -> float:
        """A unix time as seconds since t0."""
        return unix - self.schedule.t0


def tables(directory: Path, error: str = "") -> dict[str, pd.DataFrame]:
    """All tables of one session, with the columns of ``columns.TABLES``."""
    session = Session.read(directory)
    batches = frame("batches", _batches(session))
    windows = _windows(session)
    found = {
        "sessions": frame("sessions", [_session(session, error)]),
        "episodes": frame("episodes", _episodes(session, batches)),
        "batches": batches,
        "tasks": frame("tasks", _tasks(session)),
        "windows": frame("windows", windows),
        "faults": frame("faults", _faults(session, batches)),
    }
    assert set(found) == set(TABLES)
    return found


def described(plan: SessionPlan) -> Row:
    """What is known of a session before it begins: a part of its row in ``sessions``."""
    executors, cores = executors_of(plan.master)
    return {
        "session": plan.name,
        "strategy": plan.strategy,
        "pipeline": plan.pipeline,
        "master": plan.master,
        "keys": plan.keys,
        "work": plan.work,
        "trigger_s": plan.trigger_s,
        "window_s": plan.window_s,
        "partitions": plan.partitions,
        "executors": executors,
        "cores": cores,
        "locality_wait_s": LOCALITY_WAIT_S,
        "seed": plan.seed,
        **machine(),
    }


def _session(session: Session, error: str) -> Row:
    versions = [e["version"] for events in session.lives.values() for e in events if e["event"] == "spark"]
    return {
        **described(session.plan),
        "schedule": json.dumps(session.schedule.to_json()),
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
    results = read_windows(session.directory / "sink")
    length = session.plan.window_s
    right = {
        window: truth.words_of_window(session.plan, session.schedule, window) == found
        for window, found in results.items()
    }
    return [
        {
            "session": session.plan.name,
            "query": query,
            "life": life,
            "run": event["run"],
            "window": event["window"],
            "end_s": (event["window"] + 1) * length,
            "seen_s": session.since(event["at"]),
            "first": event["first"],
            "right": right.get(event["window"], False),
        }
        for (query, life), events in session.lives.items()
        for event in events
        if event["event"] == "window"
    ]


def _episodes(session: Session, batches: pd.DataFrame) -> list[Row]:
    counted = _words_counted if session.plan.pipeline == "word_count" else _keys_counted
    ledgers = counted(session)
    rows = []
    for number, episode in enumerate(session.plan.episodes):
        fault = episode.fault
        p50, p95 = _latencies(session, batches, episode.begin_s, episode.end_s)
        rows.append(
            {
                "session": session.plan.name,
                "episode": number,
                "purpose": episode.purpose,
                "held_out": episode.held_out,
                "begin_s": episode.begin_s,
                "end_s": episode.end_s,
                "rate_per_s": episode.rate_per_s,
                "fault": fault.kind if fault else "none",
                "planned_s": episode.begin_s + fault.at_s if fault else NAN,
                "stop_s": fault.stop_s if fault and fault.kind == "stop_executor" else NAN,
                **ledgers[number],
                "latency_p50_s": p50,
                "latency_p95_s": p95,
                "others_cores": _others(session, episode),
            }
        )
    return rows


def _words_counted(session: Session) -> list[Row]:
    """Of each episode, the windows that lie in it wholly."""
    plan, results = session.plan, read_windows(session.directory / "sink")
    rows = []
    for episode in plan.episodes:
        windows = range(math.ceil(episode.begin_s / plan.window_s), math.floor(episode.end_s / plan.window_s))
        ledger, right, emitted = truth.Ledger(), 0, 0
        for window in windows:
            true = truth.words_of_window(plan, session.schedule, window)
            emitted += true.total()
            ledger += truth.compare_words(true, results.get(window, {}))
            right += true == results.get(window)
        rows.append(_counted(emitted, ledger, len(windows), right))
    return rows


def _keys_counted(session: Session) -> list[Row]:
    """The counts of all keys at the first batch that holds all rows of an episode; what is added to what was
    wrong before is the episode's.
    """
    plan, schedule = session.plan, session.schedule
    got = np.zeros(plan.keys, np.int64)
    ends = [schedule.rows_before(round(episode.end_s * MICROSECONDS)) for episode in plan.episodes]
    rows: list[Row] = []
    before, missing, extra = schedule.rows_before(round(plan.episodes[0].begin_s * MICROSECONDS)), 0, 0
    for end, table in read_batches(session.directory / "sink" / "batches" / "0"):
        got[table.column("key").to_numpy()] = table.column("count").to_numpy()
        while len(rows) < len(ends) and end >= ends[len(rows)]:
            ledger = truth.compare_keys(truth.keys_until(plan, end), got)
            new = truth.Ledger(end - before, max(0, ledger.missing - missing), max(0, ledger.extra - extra))
            emitted = end - before
            rows.append(_counted(emitted, truth.Ledger(emitted - new.missing, new.missing, new.extra), 0, 0))
            before, missing, extra = end, ledger.missing, ledger.extra
    return rows + [_counted(0, truth.Ledger(), 0, 0)] * (len(ends) - len(rows))


def _counted(emitted: int, ledger: truth.Ledger, windows: int, right: int) -> Row:
    return {
        "emitted": emitted,
        "counted_right": ledger.right,
        "missing": ledger.missing,
        "extra": ledger.extra,
        "windows": windows,
        "windows_right": right,
    }


def _others(session: Session, episode: Episode) -> float:
    begin, end = session.schedule.t0 + episode.begin_s, session.schedule.t0 + episode.end_s
    seen = [e["cores"] for e in session.supervisor if e["event"] == "others" and begin <= e["at"] < end]
    return float(np.mean(seen)) if seen else NAN


def _latencies(session: Session, batches: pd.DataFrame, begin_s: float, end_s: float) -> tuple[float, float]:
    """Median and 95th percentile, over the rows of an episode, of the time until the sink first has them."""
    first, last = (session.schedule.rows_before(round(s * MICROSECONDS)) for s in (begin_s, end_s))
    if first == last:
        return NAN, NAN
    seen = np.full(last - first, np.inf)
    known = batches.dropna(subset=["sink_s"])
    spans = known[["first_row", "last_row"]].to_numpy(np.int64)
    for (a, b), sink_s in zip(np.clip(spans, first, last) - first, known["sink_s"], strict=True):
        np.minimum(seen[a:b], sink_s, out=seen[a:b])
    latency = seen - session.schedule.stamps(np.arange(first, last)) / MICROSECONDS
    latency = latency[np.isfinite(latency)]
    if not len(latency):
        return NAN, NAN
    p50, p95 = np.percentile(latency, [50, 95])
    return float(p50), float(p95)


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
                "episode": event["episode"],
                "query": event["query"],
                "life": event["life"],
                "fault": event["kind"],
                "at_s": at,
                "victim": event["victim"],
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
    """When the fault was noticed, and when there was a replacement."""
    query, life, at = event["query"], event["life"], event["at"]
    if event["kind"] == "stop_executor":
        ends = [e["at"] for e in session.supervisor if e["event"] == "continued" and e["at"] > at]
        return NAN, session.since(min(ends)) if ends else NAN
    if event["kind"] == "kill_driver":
        spawned = [
            e["at"]
            for e in session.supervisor
            if e["event"] == "spawn" and e["query"] == query and e["life"] == life + 1
        ]
        ready = [e["at"] for e in session.lives.get((query, life + 1), []) if e["event"] == "query"]
    else:
        events = session.lives[query, life]
        spawned = [e["at"] for e in events if e["event"] == "executor_removed" and e["at"] > at]
        replays = session.plan.strategy == "source_replay"
        back = "query" if replays else "executor_added"
        ready = [e["at"] for e in events if e["event"] == back and e["at"] > at]
    return tuple(session.since(min(found)) if found else NAN for found in (spawned, ready))  # type: ignore[return-value]
