"""All columns of the measurements: what they mean, their unit, their type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

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
"""Table, column, what it is."""


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
            name: pd.Series([row.get(name, _missing(column)) for row in rows], dtype=column.dtype)
            for name, column in columns.items()
        }
    )


def _missing(column: Column) -> Any:
    return "" if column.dtype == "string" else float("nan")
