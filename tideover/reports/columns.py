"""Every column of every table that is written: those of results (`tideover.models.schema`), and those of
calibrations, which stand here. Parquet files and the glossaries of pages are made from it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from tideover.models import schema
from tideover.models.schema import POINT, TABLES, Column, count, text, truth

if TYPE_CHECKING:
    import pandas as pd


class UnknownColumn(ValueError):
    """A column that the table of columns does not document."""

    def __init__(self, table: str, name: str) -> None:
        super().__init__(f"table {table!r}: column {name!r} is not documented in tideover.reports.columns")


_SESSION = text("session", "one lifetime of a real query: its driver's restarts included")
_EPISODE = count(
    "episode", "number of the stretch of a session that has one rate and at most one fault", "index"
)
_FAULT = text("fault", "what was done to it: none, kill_executor, kill_driver or stop_executor")
_STRATEGY = text("strategy", "fault-tolerance strategy of the real query")
_NO_INTERVAL = "the fit gives no interval for it"
_PARAMETER = (
    text("parameter", "name of the fitted parameter, as a scenario has it"),
    Column("value", "fitted value", "see column unit"),
    Column("low", "lower end of its 90 % interval", "see column unit", undefined=_NO_INTERVAL),
    Column("high", "upper end of its 90 % interval", "see column unit", undefined=_NO_INTERVAL),
    text("unit", "unit of value, low and high"),
    truth("identified", "the measurements determine it; if not, its value is an assumption"),
    text("meaning", "what the parameter stands for"),
)


CALIBRATION: dict[str, tuple[Column, ...]] = {
    "pairs": (
        _SESSION,
        _EPISODE,
        text("purpose", "steady: nothing fails; recovery: one fault"),
        truth("held_out", "the fit has not seen this episode"),
        _STRATEGY,
        text("pipeline", "word_count or running_count"),
        text("master", "Spark master that it ran on"),
        _FAULT,
        Column("rate_per_s", "input rate of the episode", "tuples/s"),
        count("keys", "distinct keys of the input", "keys", "the pipeline counts a fixed set of words"),
        Column(
            "moment_s",
            "from the start of the batch that was running until the fault",
            "s",
            undefined="nothing failed, or no batch was running",
        ),
        text("measure", "what was measured: the name of the quantity, with its unit"),
        Column(
            "measured", "what the real run showed", "as in measure", undefined="it was not over by the end"
        ),
        Column(
            "predicted",
            "what the simulation predicts",
            "as in measure",
            undefined="it is not predicted, or has no end",
        ),
        Column(
            "low", "lower end of the 90 % interval of prediction", "as in measure", undefined=_NO_INTERVAL
        ),
        Column(
            "high", "upper end of the 90 % interval of prediction", "as in measure", undefined=_NO_INTERVAL
        ),
        Column("error", "predicted / measured − 1", "ratio", undefined="one of the two is undefined"),
    ),
    "parameters": (
        text("strategy", "fault-tolerance strategy that the parameter belongs to"),
        text(
            "profile",
            "profile that holds it: a strategy and a pipeline",
            "one profile holds all of a strategy",
        ),
        *_PARAMETER,
    ),
    "timelines": (
        _SESSION,
        _EPISODE,
        _STRATEGY,
        _FAULT,
        text("kind", "measured or simulated"),
        Column("at_s", "time from the fault; negative before it", "s"),
        Column("backlog", "input rows whose results the sink does not have yet", "rows"),
    ),
    "ranking": (
        _FAULT,
        _STRATEGY,
        Column("measured_gap_s", "median of the output gaps that were measured", "s"),
        Column("simulated_gap_s", "median of the output gaps that were simulated", "s"),
        count(
            "measured_rank", "place by the measured gap, 1 is the shortest", "rank", "nothing was measured"
        ),
        count(
            "simulated_rank", "place by the simulated gap, 1 is the shortest", "rank", "nothing was simulated"
        ),
        count("n", "faults behind the medians", "faults"),
    ),
    "correctness": (
        _STRATEGY,
        _FAULT,
        count("kills", "real faults of this kind", "faults"),
        count("exact", "faults after which every count was exact", "faults"),
        count("missing", "rows that the real counts lack", "rows"),
        count("extra", "rows that the real counts have too many", "rows"),
        count("simulated_lost", "roots that the simulation lost", "roots", "it was not simulated"),
        count(
            "simulated_duplicated", "roots that the simulation counted twice", "roots", "it was not simulated"
        ),
        text("promise", "what the strategy promises: at most once, at least once or exactly once"),
    ),
}
"""What a calibration on real runs found: measured and predicted figures."""

_WORKLOAD = text("workload", "name of the workload, as in the file of measurements")
_INTERVAL = Column("checkpoint_interval_s", "time between the starts of two snapshots", "s")
_RATE = Column("rate_per_s", "input rate when the failure struck", "tuples/s")
_NO_RECOVERY = "at this rate the backlog does not drain"
_NOT_GIVEN = "the file does not say"

_no_recovery = partial(Column, unit="s", undefined=_NO_RECOVERY)
_not_given = partial(Column, undefined=_NOT_GIVEN, optional=True)
_NO_INTERVALS = "of points that the fit has seen, and of the plain fluid law"

FIT_PARAMETERS = (_WORKLOAD, *_PARAMETER)

ERRORS = (
    _WORKLOAD,
    text("model", "mechanism: the simulated one; fluid: the plain fluid law"),
    text(
        "kind",
        "fit: of points that the fit has seen; outage_end: of ends of outages; others: of unseen points",
    ),
    count("n", "points", "points"),
    Column("mean_error", "mean of |predicted / measured − 1|", "ratio", undefined="no point was predicted"),
    Column("median_error", "median of the same", "ratio", undefined="no point was predicted"),
    Column("worst_error", "greatest of the same", "ratio", undefined="no point was predicted"),
    _no_recovery("mean_error_s", "mean of |predicted − measured|"),
    Column(
        "coverage",
        "part of the points that lie in their 90 % intervals of prediction",
        "ratio",
        undefined=_NO_INTERVALS,
    ),
    Column("mean_width", "mean width of these, in predictions", "ratio", undefined=_NO_INTERVALS),
    Column(
        "better",
        "whether it errs less than the other model, by more than the standard error of the difference",
        dtype="bool",
        undefined="no other model has predicted these",
        optional=True,
    ),
)

RECOVERY_FITS: dict[str, tuple[Column, ...]] = {
    "points": (
        _WORKLOAD,
        _INTERVAL,
        _RATE,
        Column("measured_s", "measured time of recovery", "s"),
        _no_recovery("fitted_s", "time that the fit to all points gives"),
        _no_recovery("left_out_s", "prediction of a fit that has not seen this point"),
        _no_recovery("fluid_s", "the same of the plain fluid law, fitted to all points"),
        _no_recovery("fluid_left_out_s", "prediction of a plain fluid law that has not seen this point"),
        _not_given("heartbeat_interval_s", "distance of two heartbeats", "s"),
        _not_given("heartbeat_timeout_s", "silence after which a process counts as lost", "s"),
        _not_given("parallelism", "tasks that share the rate", "tasks"),
        _not_given(
            "usual_rate_per_s",
            "the rate, for as many tasks as most recoveries of the workload have",
            "tuples/s",
        ),
    ),
    "fit_parameters": FIT_PARAMETERS,
    "errors": ERRORS,
    "curves": (
        _WORKLOAD,
        _INTERVAL,
        _RATE,
        _no_recovery("predicted_s", "predicted time of recovery"),
        Column("low_s", "lower end of the 90 % interval of prediction", "s", undefined=_NO_INTERVAL),
        Column("high_s", "upper end of the 90 % interval of prediction", "s", undefined=_NO_INTERVAL),
    ),
}
"""What a fit to somebody else's recoveries found."""

_NOT_SATURATED = "the run was not saturated"

CAPACITY_FITS: dict[str, tuple[Column, ...]] = {
    "capacities": (
        _WORKLOAD,
        Column("cores", "cores of all TaskManagers together", "cores"),
        Column("slots_per_core", "slots of a TaskManager, by its cores", "slots"),
        Column("memory_per_slot_mb", "memory of a TaskManager, by its slots", "MB"),
        Column("rate_per_s", "what the run processed; its capacity, if it was saturated", "tuples/s"),
        truth("saturated", "whether it could process no more"),
        Column("fitted_per_s", "capacity by the fit to all saturated runs", "tuples/s"),
        Column(
            "left_out_per_s", "the same by a fit that has not seen it", "tuples/s", undefined=_NOT_SATURATED
        ),
        Column("low_per_s", "lower end of its 90 % interval", "tuples/s", undefined=_NOT_SATURATED),
        Column("high_per_s", "upper end of its 90 % interval", "tuples/s", undefined=_NOT_SATURATED),
    ),
    "fit_parameters": FIT_PARAMETERS,
    "errors": ERRORS,
}
"""What a fit to somebody else's capacities found."""

DOCUMENTED: Mapping[str, tuple[Column, ...]] = ChainMap(TABLES, CALIBRATION, CAPACITY_FITS, RECOVERY_FITS)
"""Every table that is written."""


def find(table: str, name: str, swept: Mapping[str, str] | None = None) -> Column:
    """The entry of a column. A sweep's tables have more: ``point``, and swept keys of the scenario.

    ``swept``: the swept keys, and the unit of each; a key with a dot (``failures.0.at``) is known as one.
    """
    for column in DOCUMENTED[table]:
        if column.name == name:
            return column
    if name == POINT.name:
        return POINT
    units = swept or {}
    if "." in name or name in units:
        unit = units.get(name, "")
        meaning = "swept value of this key of the scenario"
        return Column(name, meaning, unit or "as in the scenario", "float64" if unit else "string")
    raise UnknownColumn(table, name)


def conform(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as the table is documented; see `tideover.models.schema`."""
    return schema.conform(frame, DOCUMENTED[table])
