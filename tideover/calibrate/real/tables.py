"""From the raw events of a session to its tables, and what should have been counted.

`sessions` calls ``tables`` for each session. A new column is described in ``TABLES``, and filled in by the
function of its table.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from tideover.calibrate.episodes import NAN
from tideover.calibrate.logs import spark_events
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Problems
from tideover.calibrate.logs.spark_events import PHASES, STATE, Told, from_told, offset, stamp
from tideover.calibrate.real import sessions
from tideover.calibrate.real.pipelines import (
    MICROSECONDS,
    Rows,
    Schedule,
    read_batches,
    read_windows,
)
from tideover.calibrate.real.plan import LOCALITY_WAIT_S, SessionPlan, executors_of
from tideover.calibrate.real.processes import machine, read_events
from tideover.calibrate.real.sessions import count as _count
from tideover.calibrate.real.sessions import text as _text
from tideover.calibrate.real.sessions import time as _time
from tideover.models.schema import Column

Row = dict[str, Any]

_UNENDED = "its driver was killed before it could tell; only its results were seen"


_SESSION = _text("session", "name of the session")
_EPISODE = _count("episode", "number of the episode in its session")
_LIFE = (
    _count("query", "0, or 1 for the second of two queries"),
    _count("life", "how often the query's driver was started before"),
)
_RUN = (
    _SESSION,
    *_LIFE,
    _count("run", "how often the query was started before in this life of its driver"),
)
_BATCH = (*_RUN, _count("batch", "Spark's number of the batch"))

_ROCKSDB = {
    "rocksdb_load_ms": ("rocksdbLoadLatencyMs", "RocksDB: loading a version of the state, summed"),
    "rocksdb_flush_ms": ("rocksdbCommitFlushLatency", "RocksDB: flush at commit, summed"),
    "rocksdb_checkpoint_ms": (
        "rocksdbCommitCheckpointLatency",
        "RocksDB: local checkpoint at commit, summed",
    ),
    "rocksdb_sync_ms": (
        "rocksdbCommitFileSyncLatencyMs",
        "RocksDB: copying files to the checkpoint directory, summed",
    ),
    "rocksdb_bytes": ("rocksdbSstFileSize", "RocksDB: size of all state files"),
}


def _told(told: Told) -> Iterable[Column]:
    """Columns of what Spark says of a batch that has ended."""
    for name, (_, meaning) in told.items():
        unit = {"ms": "ms", "bytes": "bytes"}.get(name.rpartition("_")[2], "rows")
        yield Column(name, meaning, unit, undefined=_UNENDED)


_PLANNED = (
    _text("strategy", "micro_batch, source_replay or active_replication"),
    _text("pipeline", "word_count (windows) or running_count (keys)"),
    _text("master", "Spark's master"),
    _count("keys", "keys of a running count", "keys"),
    _count("work", "extra work per row: so many times 64 bytes are hashed with SHA-512", "units"),
    Column("trigger_s", "trigger interval", "s"),
    _count("window_s", "length of the windows", "s"),
    _count("partitions", "partitions of the source and of the state", "partitions"),
    _text("jvm", "shipped: Java is set for even durations; stock: as it comes"),
)
"""Columns of ``sessions`` that are as they are in the plan; the seed is, too."""
_PLANNED_EPISODE = (
    _text("purpose", "steady or recovery"),
    Column("held_out", "not for the fit: compared with what is predicted", "", "bool"),
    _time("begin_s", "beginning"),
    _time("end_s", "end"),
    _count("rate_per_s", "rows per second", "1/s"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "sessions": (
        _SESSION,
        *_PLANNED,
        _count("executors", "executors of each query; 0: the driver itself runs the tasks", "executors"),
        _count("cores", "tasks that a query runs at the same time", "cores"),
        Column("locality_wait_s", "how long a task waits for the executor that has, or had, its state", "s"),
        _count("seed", "seed of the content", "number"),
        _text("schedule", "JSON: t0, pieces [[from_s, rate_per_s], ...], end_s"),
        *sessions.about("Spark"),
    ),
    "episodes": (
        _SESSION,
        _EPISODE,
        *_PLANNED_EPISODE,
        _text("fault", "none, kill_executor, kill_driver or stop_executor"),
        _time("planned_s", "when the fault is planned", "no fault"),
        Column("stop_s", "how long the executor is stopped", "s", undefined="no executor is stopped"),
        _count("emitted", "words in the windows that lie in the episode; rows of a running count", "tuples"),
        _count("counted_right", "of these, counted as they should be", "tuples"),
        _count("missing", "of these, not counted", "tuples"),
        _count("extra", "counted too often", "tuples"),
        _count("windows", "windows that lie in the episode", "windows"),
        _count("windows_right", "of these, with a result that is exact", "windows"),
        Column("latency_p50_s", "median, over its rows, of the time from stamp to sink", "s"),
        Column("latency_p95_s", "95th percentile of the same", "s"),
        Column(
            "others_cores",
            "cores busy with other programs, on average: above some tenths the episode was disturbed",
            "cores",
            undefined="the episode was shorter than a second",
        ),
    ),
    "batches": (
        *_BATCH,
        _time("start_s", "when it was triggered", _UNENDED),
        *_told(PHASES),
        _count("first_row", "first row of the batch"),
        _count("last_row", "the row after its last"),
        _count("rows", "rows of the batch", "rows"),
        *_told(STATE),
        *_told(_ROCKSDB),
        _time("sink_s", "when its results were in the sink", "they never were"),
        _time("end_s", "when it ended", _UNENDED),
    ),
    "tasks": (
        *_BATCH,
        _text(
            "stage", "map: reads rows, writes the shuffle; reduce: counts, commits a partition of the state"
        ),
        _count("stage_attempt", "how often the stage failed before"),
        _count("partition", "number of the task in its stage"),
        _count("attempt", "how often the task was tried before in this attempt of the stage"),
        _text("executor", "number of the executor; driver for a local master"),
        _text(
            "locality", "how near it is to where it prefers to be; reduce tasks prefer where their state is"
        ),
        _text("result", "Success, ExecutorLostFailure, FetchFailed, ..."),
        _time("launch_s", "when it was sent to the executor"),
        _time("finish_s", "when its end was known to the driver"),
        Column("run_ms", "time that it ran", "ms", undefined="it did not succeed"),
        Column("cold_ms", "time until it could run: code and data are loaded", "ms", undefined="as run_ms"),
    ),
    "windows": (
        *_RUN,
        _count("window", "number of the window; the first begins at t0"),
        _time("end_s", "where the window ends"),
        _time("seen_s", "when its result was complete in the sink"),
        Column("first", "the first result of this window, which the sink keeps", "", "bool"),
        Column("right", "the result that the sink keeps is exact", "", "bool"),
    ),
    "faults": (
        _SESSION,
        _EPISODE,
        *_LIFE,
        _text("fault", "kill_executor, kill_driver or stop_executor"),
        _time("at_s", "when the signal was sent"),
        _count("victim", "number of the executor, the oldest; -1: the driver"),
        Column("batch_running", "the batch that ran", "index", undefined="between batches"),
        Column("in_batch_s", "time since that batch began", "s", undefined="between batches"),
        Column("logged", "the batch that ran was in the offset log already", "", "bool"),
        _time("detected_s", "when it was noticed", "a stopped executor is not noticed"),
        _time("ready_s", "when the new executor was registered; the new query was started; the stop ended"),
        _time("first_batch_s", "when the first results after it were in the sink", "there were none"),
    ),
}


def frame(table: str, rows: Iterable[Row]) -> pd.DataFrame:
    """The rows as one of ``TABLES``; raises KeyError for a column that is not described."""
    return sessions.frame(TABLES[table], list(rows))


class Session:
    """The raw record of one session: events of each life of each driver (``lives``, by the numbers of query
    and life), the supervisor's own, and the finished windows' results, by number.
    """

    def __init__(self, directory: Path) -> None:
        begun = json.loads((directory / "session.json").read_text())
        self.directory, self.java = directory, begun["java"]
        self.plan = TypeAdapter(SessionPlan).validate_python(begun["plan"])
        self.schedule = self.plan.schedule(begun["t0"])
        named = {path: path.stem.split("-") for path in directory.glob("driver-*.jsonl")}
        lives = {(int(query), int(life)): path for path, (_, query, life) in named.items()}
        self.lives = {life: list(read_events(path)) for life, path in sorted(lives.items())}
        self.supervisor = list(read_events(directory / "supervisor.jsonl"))
        self.windows = read_windows(directory / "sink")

    def since(self, unix: float) -> float:
        return unix - self.schedule.t0

    def first_after(self, at: float, events: list[Row], **fields: object) -> float:
        """When the first event with these fields came after ``at`` (unix time), s since t0; NaN: none did."""
        found = [event["at"] for event in events if event["at"] > at and fields.items() <= event.items()]
        return self.since(min(found)) if found else NAN

    def identity(self, query: int, life: int, run: int, batch: int) -> Row:
        return {"session": self.plan.name, "query": query, "life": life, "run": run, "batch": batch}


def tables(directory: Path, error: str = "") -> dict[str, pd.DataFrame]:
    """All tables of a session that began; ``error``: why it did not come to its end."""
    session = Session(directory)
    batches = frame("batches", _batches(session))
    versions = [e["version"] for events in session.lives.values() for e in events if e["event"] == "spark"]
    about = {
        **described(session.plan),
        "schedule": json.dumps(asdict(session.schedule)),
        "t0": datetime.fromtimestamp(session.schedule.t0, UTC).isoformat(),
        "spark": versions[0] if versions else "",
        "java": session.java,
        "error": error,
    }
    return {
        "sessions": frame("sessions", [about]),
        "episodes": frame("episodes", _episodes(session, batches)),
        "batches": batches,
        "tasks": frame("tasks", _tasks(session)),
        "windows": frame("windows", _windows(session)),
        "faults": frame("faults", _faults(session, batches)),
    }


def described(plan: SessionPlan) -> Row:
    """What is known of a session before it begins: a part of its row in ``sessions``."""
    executors, cores = executors_of(plan.master)
    return {
        "session": plan.name,
        **{column.name: getattr(plan, column.name) for column in _PLANNED},
        "executors": executors,
        "cores": cores,
        "locality_wait_s": LOCALITY_WAIT_S,
        "seed": plan.seed,
        **machine(),
    }


def _episodes(session: Session, batches: pd.DataFrame) -> list[Row]:
    plan, schedule = session.plan, session.schedule
    counted = (_words_counted if plan.pipeline == "word_count" else _keys_counted)(session)
    looks = [(session.since(e["at"]), e["cores"]) for e in session.supervisor if e["event"] == "others"]
    known = batches.dropna(subset=["sink_s"])
    spans, sinks = known[["first_row", "last_row"]].to_numpy(np.int64), known["sink_s"]
    rows = []
    for number, (episode, counts) in enumerate(zip(plan.episodes, counted, strict=True)):
        fault = episode.fault
        ends = (episode.begin_s, episode.end_s)
        first, last = (schedule.rows_before(round(s * MICROSECONDS)) for s in ends)
        seen = np.full(last - first, np.inf)  # when the sink first has each row
        for (a, b), sink_s in zip(np.clip(spans, first, last) - first, sinks, strict=True):
            np.minimum(seen[a:b], sink_s, out=seen[a:b])
        latency = seen - schedule.stamps(np.arange(first, last)) / MICROSECONDS
        latency = latency[np.isfinite(latency)]
        p50, p95 = np.percentile(latency, [50, 95]).tolist() if len(latency) else (NAN, NAN)
        others = [cores for at, cores in looks if ends[0] <= at < ends[1]]
        rows.append(
            {
                "session": plan.name,
                "episode": number,
                **{column.name: getattr(episode, column.name) for column in _PLANNED_EPISODE},
                "fault": fault.kind if fault else "none",
                "planned_s": episode.begin_s + fault.at_s if fault else NAN,
                "stop_s": fault.stop_s if fault and fault.kind == "stop_executor" else NAN,
                **counts,
                "latency_p50_s": p50,
                "latency_p95_s": p95,
                "others_cores": float(np.mean(others)) if others else NAN,
            }
        )
    return rows


def _words_counted(session: Session) -> list[Row]:
    """Of each episode, the windows that lie in it wholly."""
    plan, rows = session.plan, []
    for episode in plan.episodes:
        windows = range(math.ceil(episode.begin_s / plan.window_s), math.floor(episode.end_s / plan.window_s))
        row = Counter(emitted=0, counted_right=0, missing=0, extra=0, windows=len(windows), windows_right=0)
        for window in windows:
            true = words_of_window(plan, session.schedule, window)
            got = Counter(session.windows.get(window, {}))
            row["emitted"] += true.total()
            row["counted_right"] += (true & got).total()
            row["missing"] += (true - got).total()
            row["extra"] += (got - true).total()
            row["windows_right"] += true == session.windows.get(window)
        rows.append(dict(row))
    return rows


def words_of_window(plan: SessionPlan, schedule: Schedule, window: int) -> Counter[str]:
    edges = [schedule.rows_before((window + k) * plan.window_s * MICROSECONDS) for k in (0, 1)]
    rows = plan.content()
    numbers, times = np.unique(rows.numbers(np.arange(*edges, dtype=np.int64)), return_counts=True)
    found: Counter[str] = Counter()
    for number, n in zip(numbers.tolist(), times.tolist(), strict=True):
        for word in rows.sentences[number].split():
            found[word] += n
    return found


def _keys_counted(session: Session) -> list[Row]:
    """The counts of all keys at the first batch that holds all rows of an episode. A mistake that was there
    before the episode is not the episode's.
    """
    plan, schedule = session.plan, session.schedule
    got = np.zeros(plan.keys, np.int64)
    begin, *ends = (
        schedule.rows_before(round(s * MICROSECONDS))
        for s in (plan.episodes[0].begin_s, *(episode.end_s for episode in plan.episodes))
    )
    none = {"emitted": 0, "counted_right": 0, "missing": 0, "extra": 0, "windows": 0, "windows_right": 0}
    rows: list[Row] = []
    before = np.zeros(2, np.int64)
    for end, table in read_batches(session.directory / "sink" / "batches" / "0"):
        got[table.column("key").to_numpy()] = table.column("count").to_numpy()
        while len(rows) < len(ends) and end >= ends[len(rows)]:
            less = keys_until(plan, end) - got
            now = np.array([np.maximum(less, 0).sum(), np.maximum(-less, 0).sum()])
            missing, extra = np.maximum(0, now - before).tolist()
            counts = {"emitted": end - begin, "counted_right": end - begin - missing}
            rows.append(none | counts | {"missing": missing, "extra": extra})
            begin, before = end, now
    return rows + [none] * (len(ends) - len(rows))


def keys_until(plan: SessionPlan, row: int, at_a_time: int = 1_000_000) -> Rows:
    """The true count of each key among the rows below this one."""
    found = np.zeros(plan.keys, np.int64)
    for first in range(0, row, at_a_time):
        rows = np.arange(first, min(first + at_a_time, row), dtype=np.int64)
        found += np.bincount(plan.content().numbers(rows), minlength=plan.keys)
    return found


def _batches(session: Session) -> list[Row]:
    rows: list[Row] = []
    kept = (
        ("query", "batch") if session.plan.strategy != "source_replay" else ("query", "life", "run", "batch")
    )
    for (query, life), events in session.lives.items():
        run_of = _runs(events)
        starts = {e["run"]: e["start_row"] for e in events if e["event"] == "query"}
        seen = {(e["run"], e["batch"]): e for e in events if e["event"] == "in_sink"}
        for event in events:
            if event["event"] != "progress" or not event["progress"]["numInputRows"]:
                continue
            progress = event["progress"]
            run, batch = run_of(progress["runId"]), progress["batchId"]
            found = seen.pop((run, batch), None)
            told = _from_progress(session, progress, starts.get(run, 0))
            sink_s = session.since(found["at"]) if found else NAN
            rows.append({**session.identity(query, life, run, batch), **told, "sink_s": sink_s})
        for (run, batch), found in seen.items():  # results that were seen, of batches that never ended
            own = session.identity(query, life, run, batch)
            # It began where the batch before ended, which may be of an earlier life if there is a checkpoint.
            last = own | {"batch": batch - 1}
            before = [row["last_row"] for row in rows if all(row[name] == last[name] for name in kept)]
            first, end = before[-1] if before else starts[run], found["end_row"]
            known = {"first_row": first, "last_row": end, "rows": end - first}
            rows.append({**own, **known, "sink_s": session.since(found["at"])})
    return sorted(rows, key=lambda row: (row["query"], row["life"], row["run"], row["batch"]))


def _runs(events: list[Row]) -> Callable[[str], int]:
    """The number of a run by Spark's id. A progress may come before the driver has noted that it began."""
    runs = {e["run_id"]: e["run"] for e in events if e["event"] == "query"}
    return lambda run_id: runs.get(run_id, max(runs.values(), default=0))


def _from_progress(session: Session, progress: Row, start_row: int) -> Row:
    source, durations = progress["sources"][0], progress["durationMs"]
    state = (progress["stateOperators"] or [{}])[0]
    first, last = offset(source["startOffset"]), offset(source["endOffset"])
    start = session.since(stamp(progress["timestamp"]))
    told = ((PHASES, durations), (STATE, state), (_ROCKSDB, state.get("customMetrics", {})))
    return {
        "start_s": start,
        "first_row": first["row"] if first else start_row,
        "last_row": last["row"],
        "rows": progress["numInputRows"],
        **{name: value for keys, values in told for name, value in from_told(keys, values).items()},
        "end_s": start + durations["triggerExecution"] / 1000,
    }


def _tasks(session: Session) -> list[Row]:
    """The tasks of batches, from Spark's own event log of each life of a driver; those before t0 warm up."""
    rows = []
    for (query, life), told in session.lives.items():
        run_of = _runs(told)
        for path in sorted((session.directory / "spark-events" / f"{query}-{life}").glob("*")):
            batches: dict[int, tuple[str, int]] = {}  # by stage: the run of the query, and the batch
            log = LogFile(path, path.name, Problems())  # its last line may be cut off by a kill
            for line, event in spark_events.events(log, ("SparkListenerJobStart", "SparkListenerTaskEnd")):
                if line.kind == "SparkListenerJobStart":
                    properties = event.get("Properties") or {}
                    if "streaming.sql.batchId" in properties:
                        found = properties["spark.jobGroup.id"], int(properties["streaming.sql.batchId"])
                        batches |= dict.fromkeys(event["Stage IDs"], found)
                else:
                    run_id, batch = batches.get(event["Stage ID"], ("", -1))
                    if batch >= 0 and session.since(event["Task Info"]["Launch Time"] / 1000) >= 0:
                        rows.append(
                            session.identity(query, life, run_of(run_id), batch) | _task(session, event)
                        )
    return rows


def _task(session: Session, event: Row) -> Row:
    """A task that has ended. A batch has two stages: one reads and writes the shuffle, the other counts."""
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    return {
        "stage": "map" if event["Task Type"] == "ShuffleMapTask" else "reduce",
        "stage_attempt": event["Stage Attempt ID"],
        "partition": info["Index"],
        "attempt": info["Attempt"],
        "executor": info["Executor ID"],
        "locality": info["Locality"],
        "result": event["Task End Reason"]["Reason"],
        "launch_s": session.since(info["Launch Time"] / 1000),
        "finish_s": session.since(info["Finish Time"] / 1000),
        "run_ms": metrics.get("Executor Run Time", NAN),
        "cold_ms": metrics.get("Executor Deserialize Time", NAN),
    }


def _windows(session: Session) -> list[Row]:
    plan = session.plan
    if plan.pipeline != "word_count":
        return []
    right = {
        window: words_of_window(plan, session.schedule, window) == found
        for window, found in session.windows.items()
    }
    return [
        {
            "session": plan.name,
            "query": query,
            "life": life,
            **{name: event[name] for name in ("run", "window", "first")},
            "end_s": (event["window"] + 1) * plan.window_s,
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
        at = session.since(event["at"])
        own = batches[batches["query"] == event["query"]]
        batch, start = _running(session, event, own)
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
        spawned = session.first_after(at, session.supervisor, event="spawn", query=query, life=life + 1)
        return spawned, session.first_after(at, session.lives.get((query, life + 1), []), event="query")
    back = "query" if session.plan.strategy == "source_replay" else "executor_added"
    events = session.lives[query, life]
    noticed, ready = (session.first_after(at, events, event=name) for name in ("executor_removed", back))
    return noticed, ready
