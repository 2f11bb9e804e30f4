"""The one table of all columns that a result or a calibration has: name, meaning, unit, type, and when a
value is undefined.

It gives the Parquet files their metadata and the HTML report its glossary. A test holds it to what is
written. The tables of results stand here, those of calibrations in `calibration_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tideover.reports.calibration_columns import CALIBRATION, RECOVERY_FITS
from tideover.reports.column import Column
from tideover.reports.column import count as _count
from tideover.reports.column import text as _text

if TYPE_CHECKING:
    import pandas as pd


class UnknownColumn(ValueError):
    """A column that the table of columns does not document."""

    def __init__(self, table: str, name: str) -> None:
        super().__init__(f"table {table!r}: column {name!r} is not documented in tideover.reports.columns")


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

TABLES: dict[str, tuple[Column, ...]] = {"recoveries": RECOVERIES, "runs": RUNS, "timeline": TIMELINE}

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
