"""From the raw events of a session to its tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from tideover.calibrate.real import truth
from tideover.calibrate.real.pipelines import MICROSECONDS, read_batches
from tideover.calibrate.real.plan import LOCALITY_WAIT_S, Episode, SessionPlan, executors_of
from tideover.calibrate.real.supervisor import NAN, Row, Session, machine
from tideover.calibrate.real.truth import Ledger

Dtype = Literal["string", "int64", "float64", "bool"]


@dataclass(frozen=True)
class Column:
    """One column. ``unit`` is "" for names and texts; ``undefined`` says when a value is missing."""

    meaning: str
    unit: str = ""
    dtype: Dtype = "float64"
    undefined: str = ""


def _text(meaning: str) -> Column:
    return Column(meaning, "", "string")


def _count(meaning: str, unit: str) -> Column:
    return Column(meaning, unit, "int64")


def _time(meaning: str, undefined: str = "") -> Column:
    return Column(f"{meaning}, since the session's t0", "s", "float64", undefined)


def _phase(meaning: str) -> Column:
    return Column(meaning, "ms", "float64", _UNENDED)


_UNENDED = "its driver was killed before it could tell; only its results were seen"
_SESSION = _text("name of the session")
_EPISODE = _count("number of the episode in its session", "index")
_LIFE = {
    "query": _count("0, or 1 for the second of two queries", "index"),
    "life": _count("how often the query's driver was started before", "index"),
}
_RUN = {
    "session": _SESSION,
    **_LIFE,
    "run": _count("how often the query was started before in this life of its driver", "index"),
}
_BATCH = {**_RUN, "batch": _count("Spark's number of the batch", "index")}

TABLES: dict[str, dict[str, Column]] = {
    "sessions": {
        "session": _SESSION,
        "strategy": _text("micro_batch, source_replay or active_replication"),
        "pipeline": _text("word_count (windows) or running_count (keys)"),
        "master": _text("Spark's master"),
        "keys": _count("keys of a running count", "keys"),
        "work": _count("extra work per row: so many times 64 bytes are hashed with SHA-512", "units"),
        "trigger_s": Column("trigger interval", "s"),
        "window_s": _count("length of the windows", "s"),
        "partitions": _count("partitions of the source and of the state", "partitions"),
        "executors": _count("executors of each query; 0: the driver itself runs the tasks", "executors"),
        "cores": _count("tasks that a query runs at the same time", "cores"),
        "locality_wait_s": Column("how long a task waits for the executor that has, or had, its state", "s"),
        "seed": _count("seed of the content", "number"),
        "schedule": _text("JSON: t0, pieces [[from_s, rate_per_s], ...], end_s"),
        "t0": _text("when the input began, UTC"),
        "spark": _text("version of Spark"),
        "java": _text("version of Java"),
        "tideover": _text("version of Tideover"),
        "python": _text("version of Python"),
        "os": _text("operating system"),
        "machine": _text("processor, cores, memory"),
        "error": _text("why the session was not carried out to its end; empty if it was"),
    },
    "episodes": {
        "session": _SESSION,
        "episode": _EPISODE,
        "purpose": _text("steady or recovery"),
        "held_out": Column("not for the fit: compared with what is predicted", "", "bool"),
        "begin_s": _time("beginning"),
        "end_s": _time("end"),
        "rate_per_s": _count("rows per second", "1/s"),
        "fault": _text("none, kill_executor, kill_driver or stop_executor"),
        "planned_s": _time("when the fault is planned", "no fault"),
        "stop_s": Column("how long the executor is stopped", "s", "float64", "no executor is stopped"),
        "emitted": _count("words in the windows that lie in the episode; rows of a running count", "tuples"),
        "counted_right": _count("of these, counted as they should be", "tuples"),
        "missing": _count("of these, not counted", "tuples"),
        "extra": _count("counted too often", "tuples"),
        "windows": _count("windows that lie in the episode", "windows"),
        "windows_right": _count("of these, with a result that is exact", "windows"),
        "latency_p50_s": Column("median, over its rows, of the time from stamp to sink", "s"),
        "latency_p95_s": Column("95th percentile of the same", "s"),
        "others_cores": Column(
            "cores busy with other programs, on average: above some tenths the episode was disturbed",
            "cores",
            undefined="the episode was shorter than a second",
        ),
    },
    "batches": {
        **_BATCH,
        "start_s": _time("when it was triggered", _UNENDED),
        "latest_offset_ms": _phase("asking the source how far it is"),
        "wal_ms": _phase("writing the batch's range to the offset log"),
        "planning_ms": _phase("planning"),
        "get_batch_ms": _phase("asking the source for the rows, without reading them"),
        "add_batch_ms": _phase("running both stages, and handing the results to the sink"),
        "commit_ms": _phase("writing the commit log"),
        "trigger_ms": _phase("the whole batch"),
        "first_row": _count("first row of the batch", "index"),
        "last_row": _count("the row after its last", "index"),
        "rows": _count("rows of the batch", "rows"),
        "state_rows": Column("rows in the state after the batch", "rows", undefined=_UNENDED),
        "state_updated": Column("rows of the state that the batch wrote", "rows", undefined=_UNENDED),
        "state_update_ms": _phase("writing them, summed over the partitions"),
        "state_commit_ms": _phase("committing the state, summed over the partitions"),
        "rocksdb_load_ms": _phase("RocksDB: loading a version of the state, summed"),
        "rocksdb_flush_ms": _phase("RocksDB: flush at commit, summed"),
        "rocksdb_checkpoint_ms": _phase("RocksDB: local checkpoint at commit, summed"),
        "rocksdb_sync_ms": _phase("RocksDB: copying files to the checkpoint directory, summed"),
        "rocksdb_bytes": Column("RocksDB: size of all state files", "bytes", undefined=_UNENDED),
        "sink_s": _time("when its results were in the sink", "they never were"),
        "end_s": _time("when it ended", _UNENDED),
    },
    "tasks": {
        **_BATCH,
        "stage": _text(
            "map: reads rows, writes the shuffle; reduce: counts, commits a partition of the state"
        ),
        "stage_attempt": _count("how often the stage failed before", "index"),
        "partition": _count("number of the task in its stage", "index"),
        "attempt": _count("how often the task was tried before in this attempt of the stage", "index"),
        "executor": _text("number of the executor; driver for a local master"),
        "locality": _text(
            "how near it is to where it prefers to be; reduce tasks prefer where their state is"
        ),
        "result": _text("Success, ExecutorLostFailure, FetchFailed, ..."),
        "launch_s": _time("when it was sent to the executor"),
        "finish_s": _time("when its end was known to the driver"),
        "run_ms": Column("time that it ran", "ms", undefined="it did not succeed"),
        "cold_ms": Column("time until it could run: code and data are loaded", "ms", undefined="as run_ms"),
    },
    "windows": {
        **_RUN,
        "window": _count("number of the window; the first begins at t0", "index"),
        "end_s": _time("where the window ends"),
        "seen_s": _time("when its result was complete in the sink"),
        "first": Column("the first result of this window, which the sink keeps", "", "bool"),
        "right": Column("the result that the sink keeps is exact", "", "bool"),
    },
    "faults": {
        "session": _SESSION,
        "episode": _EPISODE,
        **_LIFE,
        "fault": _text("kill_executor, kill_driver or stop_executor"),
        "at_s": _time("when the signal was sent"),
        "victim": _count("number of the executor, the oldest; -1: the driver", "index"),
        "batch_running": Column("the batch that ran", "index", undefined="between batches"),
        "in_batch_s": Column("time since that batch began", "s", undefined="between batches"),
        "logged": Column("the batch that ran was in the offset log already", "", "bool"),
        "detected_s": _time("when it was noticed", "a stopped executor is not noticed"),
        "ready_s": _time("when the new executor was registered; the new query was started; the stop ended"),
        "first_batch_s": _time("when the first results after it were in the sink", "there were none"),
    },
}


def frame(table: str, rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a table with all its columns, in their order and with their types.

    Raises:
        KeyError: a row has a column that is not described
    """
    columns = TABLES[table]
    rows = list(rows)
    unknown = {name for row in rows for name in row} - set(columns)
    if unknown:
        raise KeyError(f"table {table!r}: columns {sorted(unknown)} are not described")
    return pd.DataFrame(
        {
            name: pd.Series(
                [row.get(name, "" if column.dtype == "string" else NAN) for row in rows], dtype=column.dtype
            )
            for name, column in columns.items()
        }
    )


def read_tasks(directory: Path, since: Callable[[float], float]) -> list[Row]:
    """The tasks that one life of a driver ran for its batches, from Spark's own event log.

    directory: where Spark wrote its log. since: turns a unix time into s since t0; what ran before that has
    warmed up. A batch has two stages: the one that reads the rows and writes the shuffle is called map, the
    other one reduce.
    """
    rows: list[Row] = []
    for path in sorted(directory.glob("*")):
        rows += [row for row in _from_log(path, since) if row["launch_s"] >= 0]
    return rows


def _from_log(path: Path, since: Callable[[float], float]) -> list[Row]:
    batches: dict[int, tuple[str, int]] = {}  # by stage: the run of the query, and the batch
    rows = []
    for line in path.read_text(errors="replace").splitlines(keepends=True):
        if line.startswith('{"Event":"SparkListenerJobStart"') and line.endswith("\n"):
            event = json.loads(line)
            properties = event.get("Properties") or {}
            if "streaming.sql.batchId" in properties:
                found = properties["spark.jobGroup.id"], int(properties["streaming.sql.batchId"])
                batches |= dict.fromkeys(event["Stage IDs"], found)
        elif line.startswith('{"Event":"SparkListenerTaskEnd"') and line.endswith("\n"):
            event = json.loads(line)
            if event["Stage ID"] in batches:
                rows.append(_row(event, *batches[event["Stage ID"]], since))
    return rows


def _row(event: Row, run_id: str, batch: int, since: Callable[[float], float]) -> Row:
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    return {
        "run_id": run_id,
        "batch": batch,
        "stage": "map" if event["Task Type"] == "ShuffleMapTask" else "reduce",
        "stage_attempt": event["Stage Attempt ID"],
        "partition": info["Index"],
        "attempt": info["Attempt"],
        "executor": info["Executor ID"],
        "locality": info["Locality"],
        "result": event["Task End Reason"]["Reason"],
        "launch_s": since(info["Launch Time"] / 1000),
        "finish_s": since(info["Finish Time"] / 1000),
        "run_ms": metrics.get("Executor Run Time", NAN),
        "cold_ms": metrics.get("Executor Deserialize Time", NAN),
    }


def episodes(session: Session, batches: pd.DataFrame) -> list[Row]:
    counted = _words_counted if session.plan.pipeline == "word_count" else _keys_counted
    copied = ("purpose", "held_out", "begin_s", "end_s", "rate_per_s")
    rows = []
    for number, (episode, counts) in enumerate(zip(session.plan.episodes, counted(session), strict=True)):
        fault = episode.fault
        p50, p95 = _latencies(session, batches, episode)
        rows.append(
            {
                "session": session.plan.name,
                "episode": number,
                **{name: getattr(episode, name) for name in copied},
                "fault": fault.kind if fault else "none",
                "planned_s": episode.begin_s + fault.at_s if fault else NAN,
                "stop_s": fault.stop_s if fault and fault.kind == "stop_executor" else NAN,
                **counts,
                "latency_p50_s": p50,
                "latency_p95_s": p95,
                "others_cores": _others(session, episode),
            }
        )
    return rows


def _words_counted(session: Session) -> list[Row]:
    """Of each episode, the windows that lie in it wholly."""
    plan = session.plan
    rows = []
    for episode in plan.episodes:
        windows = range(math.ceil(episode.begin_s / plan.window_s), math.floor(episode.end_s / plan.window_s))
        ledger, right, emitted = Ledger(), 0, 0
        for window in windows:
            true = truth.words_of_window(plan, session.schedule, window)
            emitted += true.total()
            ledger += truth.compare_words(true, session.windows.get(window, {}))
            right += true == session.windows.get(window)
        rows.append(_counted(emitted, ledger, len(windows), right))
    return rows


def _keys_counted(session: Session) -> list[Row]:
    """The counts of all keys at the first batch that holds all rows of an episode. A mistake that was there
    before the episode is not the episode's.
    """
    plan, schedule = session.plan, session.schedule
    got = np.zeros(plan.keys, np.int64)
    ends = [schedule.rows_before(round(episode.end_s * MICROSECONDS)) for episode in plan.episodes]
    rows: list[Row] = []
    begin, before = schedule.rows_before(round(plan.episodes[0].begin_s * MICROSECONDS)), Ledger()
    for end, table in read_batches(session.directory / "sink" / "batches" / "0"):
        got[table.column("key").to_numpy()] = table.column("count").to_numpy()
        while len(rows) < len(ends) and end >= ends[len(rows)]:
            now = truth.compare_keys(truth.keys_until(plan, end), got)
            missing, extra = max(0, now.missing - before.missing), max(0, now.extra - before.extra)
            rows.append(_counted(end - begin, Ledger(end - begin - missing, missing, extra)))
            begin, before = end, now
    return rows + [_counted(0, Ledger())] * (len(ends) - len(rows))


def _counted(emitted: int, ledger: Ledger, windows: int = 0, right: int = 0) -> Row:
    return {
        "emitted": emitted,
        "counted_right": ledger.right,
        "missing": ledger.missing,
        "extra": ledger.extra,
        "windows": windows,
        "windows_right": right,
    }


def _others(session: Session, episode: Episode) -> float:
    """Cores that other programs kept busy, in the mean; NaN: nobody looked."""
    seen = [
        event["cores"]
        for event in session.supervisor
        if event["event"] == "others" and episode.begin_s <= session.since(event["at"]) < episode.end_s
    ]
    return float(np.mean(seen)) if seen else NAN


def _latencies(session: Session, batches: pd.DataFrame, episode: Episode) -> tuple[float, float]:
    """Median and 95th percentile, over the rows of an episode, of the time until the sink first has them."""
    ends = (episode.begin_s, episode.end_s)
    first, last = (session.schedule.rows_before(round(s * MICROSECONDS)) for s in ends)
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
    session = Session.read(directory)
    batches = frame("batches", _batches(session))
    rows = {
        "sessions": [_session(session, error)],
        "episodes": episodes(session, batches),
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


def _batches(session: Session) -> list[Row]:
    rows = []
    for (query, life), events in session.lives.items():
        run_of = _runs(events)
        starts = {e["run"]: e["start_row"] for e in events if e["event"] == "query"}
        seen = {(e["run"], e["batch"]): e for e in events if e["event"] == "in_sink"}
        for event in events:
            if event["event"] != "progress" or not event["progress"]["numInputRows"]:
                continue
            progress = event["progress"]
            run = run_of(progress["runId"])
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


def _runs(events: list[Row]) -> Callable[[str], int]:
    """The number of a run by Spark's id. A progress may come before the driver has noted that it began."""
    runs = {e["run_id"]: e["run"] for e in events if e["event"] == "query"}
    return lambda run_id: runs.get(run_id, max(runs.values(), default=0))


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
        run_of = _runs(events)
        for row in read_tasks(session.directory / "spark-events" / f"{query}-{life}", session.since):
            run = run_of(row.pop("run_id"))
            rows.append({**_identity(session, query, life, run, row["batch"]), **row})
    return rows


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
