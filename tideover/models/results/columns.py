"""The one table of the columns that results have: name, meaning, unit, type, and when a value is undefined.

Every table of a result is made by ``frame``, so it has these columns in this order and in these types, with
rows or without. Parquet files take their metadata from here, and the HTML report its glossary; what a
calibration has besides stands in `tideover.reports.columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Dtype = Literal["string", "int64", "float64", "bool"]


@dataclass(frozen=True)
class Column:
    """One column. ``unit`` is ``""`` for texts and truths; ``undefined`` says when a value is missing."""

    name: str
    meaning: str
    unit: str = ""
    dtype: Dtype = "float64"
    undefined: str = ""


def text(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "string", undefined)


def count(name: str, meaning: str, unit: str, undefined: str = "") -> Column:
    return Column(name, meaning, unit, "int64", undefined)


def truth(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "bool", undefined)


_FAILED_RUN = "the run failed; see `error`"
_NO_TUPLES = "no tuple was processed in that time"

POINT = count("point", "number of the sweep's point: one combination of the swept values", "index")

_IDENTITY = (
    text("scenario", "name of the scenario"),
    text("strategy", "fault-tolerance strategy that the run used"),
)
_SEED = count("seed", "seed of the run; with the replication it fixes every draw", "number")
_REPLICATION = count("replication", "number of the replication, from 0; each has its own luck", "index")


LATENCY_FIGURES = {
    "median": "median",
    "mean": "mean",
    "std": "standard deviation",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "max": "maximum",
}
"""What is told of latencies, in words."""


def _latencies(where: str, undefined: str = _NO_TUPLES) -> tuple[Column, ...]:
    kinds = {
        "latency": "latency, from a tuple's creation stamp (a replay by the source has a new one),",
        "end_to_end": "end-to-end latency, from the first emission of a tuple's root,",
    }
    return tuple(
        Column(f"{kind}_{key}_ms", f"{text} of the {meant} {where}", "ms", undefined=undefined)
        for kind, meant in kinds.items()
        for key, text in LATENCY_FIGURES.items()
    )


_CUT_OFF = "the run ended before"


def _stage(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, f"stage of time_to_recover_s: {meaning}", "s", undefined=undefined)


_STAGES = (
    _stage("detect_s", "from the failure until it is detected; 0 in all stages if replicas masked it"),
    _stage("restart_s", "then, until what failed is ready again"),
    _stage("restore_s", "then, until a saved or copied state is back"),
    _stage(
        "wait_s", "then, until the source gives up the first root of which something was lost (a timeout)"
    ),
    _stage("replay_s", "then, until the last tuple replayed because of the failure has arrived"),
    _stage(
        "catch_up_stage_s", "then, until the backlog is what it would have been without failures", _CUT_OFF
    ),
    _stage(
        "windows_stage_s",
        "then, until the last window that is wrong or missing because of the failure was put out, or was due",
        f"{_CUT_OFF}, or no window ends any more",
    ),
)

_CONTENT = (
    count("restored", "tuples whose effect came back from a saved or copied state", "tuples"),
    count("replayed", "tuples sent again because of this fault", "tuples"),
    count("dropped", "arrivals dropped: duplicates, or while the task was down", "tuples"),
    count("missing", "tuples missing from the state at the end of the recovery", "tuples"),
    count("extra", "tuples counted more than once at the end of the recovery", "tuples"),
)

RECOVERIES = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    text("kind", "kind of the failure"),
    text("component", "what failed"),
    Column("failed_at_s", "time of the failure, from the start of the run", "s"),
    Column("detected_at_s", "time at which the failure was detected", "s", undefined="it was never detected"),
    Column(
        "ready_at_s", "time at which the task was ready again", "s", undefined="the task did not come back"
    ),
    Column(
        "time_to_recover_s",
        "headline: from the failure until output, state and backlog are as they would have been without "
        "failures, within the tolerance of docs/semantics.md; the stages add up to it",
        "s",
        undefined="they were not by the end of the run",
    ),
    Column(
        "state_recovery_s",
        "state recovery, as Stableford (2015) defines it: from the task being ready until the last tuple "
        "replayed because of this failure has arrived at it",
        "s",
        undefined="nothing was replayed, or the replay had not ended by the end of the run",
    ),
    Column(
        "catch_up_s",
        "from the failure until the backlog is what it would have been without failures (a quarter more at "
        "most), and stays so for 4 s",
        "s",
        undefined="it was not by the end of the run",
    ),
    Column(
        "throughput_90_s",
        "from the failure until the throughput over 10 s is back at 90 % of what it would have been",
        "s",
        undefined="the throughput was not back by the end of the run",
    ),
    Column(
        "output_gap_s",
        "longest silence of the sink that contains or follows the failure and begins before recovery is over",
        "s",
        undefined="the silence was cut off by the end of the run",
    ),
    Column(
        "sink_spacing_s",
        "what output_gap_s would have been without failures: the longest silence in the same stretch",
        "s",
        undefined="no output would have ended it",
    ),
    *_STAGES,
    *_CONTENT,
    *_latencies(
        "of tuples processed from the failure until the last replayed tuple has been processed",
        f"nothing was replayed, or {_NO_TUPLES}",
    ),
)

_LEDGER = (
    count("emitted", "roots emitted; always completed + in flight + lost", "roots", _FAILED_RUN),
    count(
        "completed", "roots whose every effect is in live state or in an emitted window", "roots", _FAILED_RUN
    ),
    count("in_flight", "roots still on their way at the end of the run", "roots", _FAILED_RUN),
    count("lost", "roots with an effect destroyed and no copy left anywhere", "roots", _FAILED_RUN),
    count("replayed", "distinct roots that were sent again", "roots", _FAILED_RUN),
    count(
        "duplicated", "distinct roots with an effect applied to state more than once", "roots", _FAILED_RUN
    ),
    count(
        "false_timeouts", "roots sent again though no failure had destroyed any of it", "roots", _FAILED_RUN
    ),
)

_WINDOWS = (
    count("windows_emitted", "windows emitted", "windows", _FAILED_RUN),
    count("windows_correct", "windows equal to those of the failure-free twin", "windows", _FAILED_RUN),
    count("windows_wrong", "windows that differ from those of the failure-free twin", "windows", _FAILED_RUN),
    count(
        "windows_missing", "windows of the failure-free twin that were not emitted", "windows", _FAILED_RUN
    ),
)

_COST = (
    Column("cpu_s", "processor time of all tasks together", "s", undefined=_FAILED_RUN),
    count("network_bytes", "bytes sent between tasks", "B", _FAILED_RUN),
    count("store_bytes", "bytes written to and read from the store", "B", _FAILED_RUN),
    count("peak_buffered_tuples", "most tuples kept for a replay at any one time", "tuples", _FAILED_RUN),
    count("hosts", "hosts that the scenario uses", "hosts", _FAILED_RUN),
)

RUNS = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    text("error", "why the run failed", undefined="the run did not fail"),
    *_LEDGER,
    *_WINDOWS,
    *_COST,
    *_latencies("over the measured time outside every failure's recovery and catch-up"),
    Column(
        "throughput_mean_per_s",
        "mean throughput of the last stateful bolt",
        "tuples/s",
        undefined=_FAILED_RUN,
    ),
    Column("throughput_min_per_s", "least throughput in any second", "tuples/s", undefined=_FAILED_RUN),
    Column("throughput_max_per_s", "greatest throughput in any second", "tuples/s", undefined=_FAILED_RUN),
    text("scenario_json", "the whole scenario, as JSON"),
    text("version", "version of Tideover that ran it"),
)

TIMELINE = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    count("second", "the second of the run, from 0", "s"),
    Column("throughput_per_s", "tuples that the last stateful bolt processed in this second", "tuples/s"),
    Column(
        "latency_mean_ms", "mean latency of the tuples processed in this second", "ms", undefined=_NO_TUPLES
    ),
    Column(
        "latency_max_ms",
        "greatest latency of the tuples processed in this second",
        "ms",
        undefined=_NO_TUPLES,
    ),
    Column(
        "end_to_end_mean_ms",
        "mean end-to-end latency of the tuples processed in this second",
        "ms",
        undefined=_NO_TUPLES,
    ),
    Column(
        "end_to_end_max_ms",
        "greatest end-to-end latency of the tuples processed in this second",
        "ms",
        undefined=_NO_TUPLES,
    ),
    count(
        "backlog", "most roots queued, in service, on the wire or waiting for retry in this second", "roots"
    ),
    count("backlog_without_failures", "the same in the reference run, which has no failures", "roots"),
)

_NEVER_UP = "the task was never up"

TASKS = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    text("task", "a bolt's task, as component.number, with /number of the replica from the second on"),
    Column(
        "utilisation",
        "part of the time in which the task was up that it was busy",
        "ratio",
        undefined=_NEVER_UP,
    ),
    Column("busy_s", "how long it was busy: tuples, acks, checkpoints, replays, batches", "s"),
    Column("up_s", "how long it was up", "s"),
    count("queued", "tuples in its queue or in service at the end of the run", "tuples"),
    Column("queued_s", "how long it would have been busy with them", "s"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "recoveries": RECOVERIES,
    "runs": RUNS,
    "timeline": TIMELINE,
    "tasks": TASKS,
}


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of these rows, as ``conform`` has it."""
    import pandas as pd  # most of a second: not for a run that prints JSON

    return conform(pd.DataFrame(list(rows)), TABLES[table])


def conform(frame: pd.DataFrame, documented: Iterable[Column]) -> pd.DataFrame:
    """The frame with a fresh index, the documented columns first, each in its type, undefined where it was
    missing.

    An undefined number is NaN, so a column of whole numbers that has one holds floats. Texts are objects.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for column in documented:
        values = frame[column.name] if column.name in frame.columns else pd.Series(None, frame.index, object)
        found[column.name] = values.astype(_dtype(column, values))
    others = {name: frame[name] for name in frame.columns if name not in found}
    return pd.DataFrame(found | others, index=frame.index).reset_index(drop=True)


def _dtype(column: Column, values: pd.Series[Any]) -> Any:
    if column.dtype in ("int64", "bool") and values.isna().any():
        return "float64" if column.dtype == "int64" else object
    return object if column.dtype == "string" else column.dtype
