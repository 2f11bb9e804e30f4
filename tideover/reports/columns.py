"""The one table of all columns that a result or a calibration has: name, meaning, unit, type, and when a
value is undefined.

It gives the Parquet files their metadata and the HTML report its glossary. A test holds it to what is
written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tideover.reports.column import Column, UnknownColumn
from tideover.reports.column import count as _count
from tideover.reports.column import text as _text
from tideover.reports.column import truth as _truth

if TYPE_CHECKING:
    import pandas as pd

_FAILED_RUN = "the run failed; see `error`"
_NO_TUPLES = "no tuple was processed in that time"

POINT = _count("point", "number of the sweep's point: one combination of the swept values", "index")

_IDENTITY = (
    _text("scenario", "name of the scenario"),
    _text("strategy", "fault-tolerance strategy that the run used"),
)
_SEED = _count("seed", "seed of the run; with the replication it fixes every draw", "number")
_REPLICATION = _count("replication", "number of the replication, from 0; each has its own luck", "index")


def _latencies(where: str, undefined: str = _NO_TUPLES) -> tuple[Column, ...]:
    what = {
        "median": "median",
        "mean": "mean",
        "std": "standard deviation",
        "p95": "95th percentile",
        "p99": "99th percentile",
        "max": "maximum",
    }
    kinds = {
        "latency": "latency, from a tuple's creation stamp (a replay by the source has a new one),",
        "end_to_end": "end-to-end latency, from the first emission of a tuple's root,",
    }
    return tuple(
        Column(f"{kind}_{key}_ms", f"{text} of the {meant} {where}", "ms", undefined=undefined)
        for kind, meant in kinds.items()
        for key, text in what.items()
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
    _count("restored", "tuples whose effect came back from a saved or copied state", "tuples"),
    _count("replayed", "tuples sent again because of this fault", "tuples"),
    _count("dropped", "arrivals dropped: duplicates, or while the task was down", "tuples"),
    _count("missing", "tuples missing from the state at the end of the recovery", "tuples"),
    _count("extra", "tuples counted more than once at the end of the recovery", "tuples"),
)

RECOVERIES = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    _text("kind", "kind of the failure"),
    _text("component", "what failed"),
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
    _count("emitted", "roots emitted; always completed + in flight + lost", "roots", _FAILED_RUN),
    _count(
        "completed", "roots whose every effect is in live state or in an emitted window", "roots", _FAILED_RUN
    ),
    _count("in_flight", "roots still on their way at the end of the run", "roots", _FAILED_RUN),
    _count("lost", "roots with an effect destroyed and no copy left anywhere", "roots", _FAILED_RUN),
    _count("replayed", "distinct roots that were sent again", "roots", _FAILED_RUN),
    _count(
        "duplicated", "distinct roots with an effect applied to state more than once", "roots", _FAILED_RUN
    ),
    _count(
        "false_timeouts", "roots sent again though no failure had destroyed any of it", "roots", _FAILED_RUN
    ),
)

_WINDOWS = (
    _count("windows_emitted", "windows emitted", "windows", _FAILED_RUN),
    _count("windows_correct", "windows equal to those of the failure-free twin", "windows", _FAILED_RUN),
    _count(
        "windows_wrong", "windows that differ from those of the failure-free twin", "windows", _FAILED_RUN
    ),
    _count(
        "windows_missing", "windows of the failure-free twin that were not emitted", "windows", _FAILED_RUN
    ),
)

_COST = (
    Column("cpu_s", "processor time of all tasks together", "s", undefined=_FAILED_RUN),
    _count("network_bytes", "bytes sent between tasks", "B", _FAILED_RUN),
    _count("store_bytes", "bytes written to and read from the store", "B", _FAILED_RUN),
    _count("peak_buffered_tuples", "most tuples kept for a replay at any one time", "tuples", _FAILED_RUN),
    _count("hosts", "hosts that the scenario uses", "hosts", _FAILED_RUN),
)

RUNS = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    _text("error", "why the run failed", undefined="the run did not fail"),
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
    _text("scenario_json", "the whole scenario, as JSON"),
    _text("version", "version of Tideover that ran it"),
)

TIMELINE = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    _count("second", "the second of the run, from 0", "s"),
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
    _count(
        "backlog", "most roots queued, in service, on the wire or waiting for retry in this second", "roots"
    ),
    _count("backlog_without_failures", "the same in the reference run, which has no failures", "roots"),
)

_NEVER_UP = "the task was never up"

TASKS = (
    *_IDENTITY,
    _SEED,
    _REPLICATION,
    _text("task", "a bolt's task, as component.number, with /number of the replica from the second on"),
    Column(
        "utilisation",
        "part of the time in which the task was up that it was busy",
        "ratio",
        undefined=_NEVER_UP,
    ),
    Column("busy_s", "how long it was busy: tuples, acks, checkpoints, replays, batches", "s"),
    Column("up_s", "how long it was up", "s"),
    _count("queued", "tuples in its queue or in service at the end of the run", "tuples"),
    Column("queued_s", "how long it would have been busy with them", "s"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "recoveries": RECOVERIES,
    "runs": RUNS,
    "timeline": TIMELINE,
    "tasks": TASKS,
}

_SESSION = _text("session", "one lifetime of a real query: its driver's restarts included")
_EPISODE = _count(
    "episode", "number of the stretch of a session that has one rate and at most one fault", "index"
)
_FAULT = _text("fault", "what was done to it: none, kill_executor, kill_driver or stop_executor")
_NO_INTERVAL = "the fit gives no interval for it"
_PARAMETER = (
    _text("parameter", "name of the fitted parameter, as a scenario has it"),
    Column("value", "fitted value", "see column unit"),
    Column("low", "lower end of its 90 % interval", "see column unit", undefined=_NO_INTERVAL),
    Column("high", "upper end of its 90 % interval", "see column unit", undefined=_NO_INTERVAL),
    _text("unit", "unit of value, low and high"),
    _truth("identified", "the measurements determine it; if not, its value is an assumption"),
    _text("meaning", "what the parameter stands for"),
)

PAIRS = (
    _SESSION,
    _EPISODE,
    _text("purpose", "steady: nothing fails; recovery: one fault"),
    _truth("held_out", "the fit has not seen this episode"),
    _text("strategy", "fault-tolerance strategy of the real query"),
    _text("pipeline", "word_count or running_count"),
    _text("master", "Spark master that it ran on"),
    _FAULT,
    Column("rate_per_s", "input rate of the episode", "tuples/s"),
    _count("keys", "distinct keys of the input", "keys", "the pipeline counts a fixed set of words"),
    Column(
        "moment_s",
        "from the start of the batch that was running until the fault",
        "s",
        undefined="nothing failed, or no batch was running",
    ),
    _text("measure", "what was measured: the name of the quantity, with its unit"),
    Column("measured", "what the real run showed", "as in measure", undefined="it was not over by the end"),
    Column(
        "predicted",
        "what the simulation predicts",
        "as in measure",
        undefined="it is not predicted, or has no end",
    ),
    Column("low", "lower end of the 90 % interval of prediction", "as in measure", undefined=_NO_INTERVAL),
    Column("high", "upper end of the 90 % interval of prediction", "as in measure", undefined=_NO_INTERVAL),
    Column("error", "predicted / measured − 1", "ratio", undefined="one of the two is undefined"),
)

PARAMETERS = (
    _text("strategy", "fault-tolerance strategy that the parameter belongs to"),
    _text(
        "profile", "profile that holds it: a strategy and a pipeline", "one profile holds all of a strategy"
    ),
    *_PARAMETER,
)

TIMELINES = (
    _SESSION,
    _EPISODE,
    _text("strategy", "fault-tolerance strategy of the real query"),
    _FAULT,
    _text("kind", "measured or simulated"),
    Column("at_s", "time from the fault; negative before it", "s"),
    Column("backlog", "input rows whose results the sink does not have yet", "rows"),
)

RANKING = (
    _FAULT,
    _text("strategy", "fault-tolerance strategy of the real query"),
    Column("measured_gap_s", "median of the output gaps that were measured", "s"),
    Column("simulated_gap_s", "median of the output gaps that were simulated", "s"),
    _count("measured_rank", "place by the measured gap, 1 is the shortest", "rank", "nothing was measured"),
    _count(
        "simulated_rank", "place by the simulated gap, 1 is the shortest", "rank", "nothing was simulated"
    ),
    _count("n", "faults behind the medians", "faults"),
)

CORRECTNESS = (
    _text("strategy", "fault-tolerance strategy of the real query"),
    _FAULT,
    _count("kills", "real faults of this kind", "faults"),
    _count("exact", "faults after which every count was exact", "faults"),
    _count("missing", "rows that the real counts lack", "rows"),
    _count("extra", "rows that the real counts have too many", "rows"),
    _count("simulated_lost", "roots that the simulation lost", "roots", "it was not simulated"),
    _count(
        "simulated_duplicated", "roots that the simulation counted twice", "roots", "it was not simulated"
    ),
    _text("promise", "what the strategy promises: at most once, at least once or exactly once"),
)

CALIBRATION: dict[str, tuple[Column, ...]] = {
    "pairs": PAIRS,
    "parameters": PARAMETERS,
    "timelines": TIMELINES,
    "ranking": RANKING,
    "correctness": CORRECTNESS,
}
"""What a calibration on real runs found, measured beside predicted."""

_WORKLOAD = _text("workload", "name of the workload, as in the file of measurements")
_INTERVAL = Column("checkpoint_interval_s", "time between the starts of two snapshots", "s")
_RATE = Column("rate_per_s", "input rate when the failure struck", "tuples/s")
_NO_RECOVERY = "at this rate the backlog does not drain"

POINTS = (
    _WORKLOAD,
    _INTERVAL,
    _RATE,
    Column("measured_s", "measured time of recovery", "s"),
    Column("fitted_s", "time that the fit to all points gives", "s", undefined=_NO_RECOVERY),
    Column("left_out_s", "prediction of a fit that has not seen this point", "s", undefined=_NO_RECOVERY),
    Column("fluid_s", "the same of the plain fluid law, fitted to all points", "s", undefined=_NO_RECOVERY),
    Column(
        "fluid_left_out_s",
        "prediction of a plain fluid law that has not seen this point",
        "s",
        undefined=_NO_RECOVERY,
    ),
)

FIT_PARAMETERS = (_WORKLOAD, *_PARAMETER)

ERRORS = (
    _WORKLOAD,
    _text("model", "mechanism: the simulated one; fluid: the plain fluid law"),
    _text("kind", "fit: of points that the fit has seen; leave_one_out: of points that it has not"),
    _count("n", "points", "points"),
    Column("mean_error", "mean of |predicted / measured − 1|", "ratio", undefined="no point was predicted"),
    Column("median_error", "median of the same", "ratio", undefined="no point was predicted"),
    Column("worst_error", "greatest of the same", "ratio", undefined="no point was predicted"),
)

CURVES = (
    _WORKLOAD,
    _INTERVAL,
    _RATE,
    Column("predicted_s", "predicted time of recovery", "s", undefined=_NO_RECOVERY),
    Column("low_s", "lower end of the 90 % interval of prediction", "s", undefined=_NO_INTERVAL),
    Column("high_s", "upper end of the 90 % interval of prediction", "s", undefined=_NO_INTERVAL),
)

RECOVERY_FITS: dict[str, tuple[Column, ...]] = {
    "points": POINTS,
    "fit_parameters": FIT_PARAMETERS,
    "errors": ERRORS,
    "curves": CURVES,
}
"""What a fit to somebody else's recoveries found."""

DOCUMENTED = TABLES | CALIBRATION | RECOVERY_FITS
"""Every table that is written."""


def find(table: str, name: str, parameters: Iterable[str] = ()) -> Column:
    """The entry of a column. A sweep's tables have more: ``point``, and swept keys of the scenario.

    A swept key is known by its dot (``failures.0.at``) or by being named in ``parameters``.
    """
    for column in DOCUMENTED[table]:
        if column.name == name:
            return column
    if name == POINT.name:
        return POINT
    if "." in name or name in parameters:
        return Column(name, "swept value of this key of the scenario", "as in the scenario", "string")
    raise UnknownColumn(table, name)


def undefined_reason(name: str, table: str | None = None) -> str:
    """Why a value of this column may be missing; empty if it is always defined.

    ``table``: where it stands; None for the first table that has it.
    """
    tables = DOCUMENTED.values() if table is None else [DOCUMENTED[table]]
    return next((c.undefined for columns in tables for c in columns if c.name == name), "")


def conform(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a fresh index, every documented column there, and undefined numbers as NaN instead of
    None.

    A column of None has no number type in pandas, and a table without rows may have no columns at all.
    """
    import numpy as np

    fixed = frame.reset_index(drop=True)
    for column in DOCUMENTED[table]:
        if column.name not in fixed.columns and not len(fixed):
            fixed[column.name] = np.array([], dtype=object if column.dtype == "string" else column.dtype)
        elif (
            column.dtype in ("int64", "float64")
            and column.name in fixed.columns
            and fixed[column.name].dtype == object
        ):
            fixed[column.name] = fixed[column.name].astype("float64")
    return fixed
