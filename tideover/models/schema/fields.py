"""The one place of a result's fields: name, meaning, unit and type of each, when it is undefined, where the
record of ``run --json`` has it, how one figure is made of several replications', and what readers' tables
call it.

What shows a result derives from here: the record (`tideover.models.results.result`), the data frames
(``frame``), Parquet files, tables, the page's glossary, docs/reference.md. A new field is one entry here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tideover.models.schema.columns import Column, Dtype, Pool, at_top, conform, count, text
from tideover.models.schema.dependability import dependability
from tideover.models.schema.endings import ENDED
from tideover.models.schema.lag import DRAINED, LAG
from tideover.models.schema.lumps import at_most
from tideover.models.schema.sinks import DELAYS, expired
from tideover.models.schema.snapshots import snapshots
from tideover.models.schema.tasks import RESOURCE, TASK

if TYPE_CHECKING:
    import pandas as pd

HEADLINE = "time_to_recover_s"
"""The column of recoveries by which strategies are compared first."""

_FAILED_RUN = "the run failed; see `error`"
_NO_TUPLES = "no tuple was processed in that time, or run.lump is too coarse to tell"
_CUT_OFF = "the run ended before"
_KIND = "kind of the failure, or why a detector restarts what did not fail: false_detection, reassigned"

POINT = count("point", "number of the sweep's point: one combination of the swept values", "index")

_IDENTITY = (
    text("scenario", "name of the scenario"),
    text("strategy", "fault-tolerance strategy that the run used"),
    count("seed", "seed of the run; with the replication it fixes every draw", "number"),
)
_REPLICATION = count("replication", "number of the replication, from 0; each has its own luck", "index")

_LATENCY_FIGURES = {
    "median": "median",
    "mean": "mean",
    "std": "standard deviation",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "max": "maximum",
}
LATENCIES = {
    "latency": "latency, from a tuple's creation stamp (a replay by the source has a new one),",
    "end_to_end": "end-to-end latency, from the first emission of a tuple's root,",
}


def _latencies(where: str, undefined: str = _NO_TUPLES, pool: Pool = "") -> tuple[Column, ...]:
    return tuple(
        Column(
            f"{kind}_{key}_ms",
            f"{label} of the {meant} {where}",
            "ms",
            undefined=undefined,
            record=(f"{kind}_ms", key),
            label=label,
            brief=key != "max",
            pool=pool,
        )
        for kind, meant in LATENCIES.items()
        for key, label in _LATENCY_FIGURES.items()
    )


def _seconds(name: str, meaning: str, undefined: str = "", label: str = "", optional: bool = False) -> Column:
    return Column(name, meaning, "s", undefined=undefined, record=(name,), label=label, optional=optional)


def _stage(key: str, label: str, meaning: str, undefined: str = "", name: str = "") -> Column:
    meaning = f"stage of {HEADLINE}: {meaning}"
    place = ("stages_s", key)
    return Column(name or f"{key}_s", meaning, "s", undefined=undefined, record=place, label=label)


def _other_stage(key: str, label: str, meaning: str) -> Column:
    return replace(_stage(key, label, f"then, {meaning}; not all have it", _CUT_OFF), optional=True)


def _content(name: str, meaning: str) -> Column:
    return count(name, meaning, "tuples", record=("state", name), label=name, brief=False)


RECOVERIES = (
    *_IDENTITY,
    *at_top(_REPLICATION, text("kind", _KIND), text("component", "what failed")),
    _seconds("failed_at_s", "time of the failure, from the start of the run"),
    Column(
        "hour_of_day",
        "the time of day then, in hours since midnight; where load follows the time of day",
        "h",
        record=("hour_of_day",),
        optional=True,
    ),
    _seconds("detected_at_s", "time at which the failure was detected", "it was never detected"),
    _seconds("ready_at_s", "time at which the task was ready again", "the task did not come back"),
    _seconds(
        HEADLINE,
        "headline: from the failure until output, state and backlog are as they would have been without "
        "failures, within the tolerance of docs/semantics.md; the stages add up to it",
        "they were not by the end of the run",
        "time to recover",
    ),
    *ENDED,
    _seconds(
        "state_recovery_s",
        "state recovery, as Stableford (2015) defines it: from the task being ready until the last tuple "
        "replayed because of this failure has arrived at it",
        "nothing was replayed, or the replay had not ended by the end of the run",
        "state recovery",
    ),
    _seconds(
        "catch_up_s",
        "from the failure until the backlog is what it would have been without failures (a quarter more at "
        "most), and stays so for 4 s",
        "it was not by the end of the run",
        "catch-up of the backlog",
    ),
    _seconds(
        "throughput_90_s",
        "from the failure until the throughput over 10 s is back at 90 % of what it would have been",
        "it was not back by the end of the run, or without failures, too, nothing is done for 10 s at a time",
        "throughput back at 90 %",
    ),
    _seconds(
        "output_gap_s",
        "longest silence of the sink that contains or follows the failure and begins before recovery is over",
        "the silence was cut off by the end of the run",
        "longest output gap",
    ),
    _seconds(
        "sink_spacing_s",
        "what output_gap_s would have been without failures: the longest silence in the same stretch",
        "no output would have ended it",
        "gap without failures",
    ),
    _seconds(
        "outage_end_s",
        "from the failure until all that it hit was started again; only with `run.calm`",
        "it did not come back",
        "end of the outage",
        optional=True,
    ),
    _seconds(
        "latency_recovered_s",
        "from the failure until the latency is normal for `run.calm`, second by second; only with it",
        "it was not by the end of the run",
        "latency normal again",
        optional=True,
    ),
    *DRAINED,
    _stage(
        "detect", "detect", "from the failure until it is detected; 0 in all stages if replicas masked it"
    ),
    _other_stage("passing", "until it passes", "until what nobody notices has passed by itself"),
    _other_stage("delay", "wait to restart", "until a new process is ordered: a delay, or no room for it"),
    _other_stage("launch", "launch", "until the new process runs"),
    _other_stage("prepare", "prepare", "until its tasks are ready"),
    _other_stage("write", "write", "until replicas have written the state"),
    _stage("restart", "restart", "then, until what failed is ready again"),
    _stage("restore", "restore", "then, until a saved or copied state is back"),
    _stage(
        "wait",
        "wait for timeout",
        "then, until the source gives up the first root of which something was lost (a timeout)",
    ),
    _stage("replay", "replay", "then, until the last tuple replayed because of the failure has arrived"),
    _stage(
        "catch_up",
        "catch-up",
        "then, until the backlog is what it would have been without failures",
        _CUT_OFF,
        "catch_up_stage_s",
    ),
    _stage(
        "windows",
        "until windows are right",
        "then, until the last window that is wrong or missing because of the failure was put out, or was due",
        f"{_CUT_OFF}, or no window ends any more",
        "windows_stage_s",
    ),
    _content("restored", "tuples whose effect came back from a saved or copied state"),
    _content("replayed", "tuples sent again because of this fault"),
    _content("dropped", "arrivals dropped since, as they will come again or have come twice"),
    _content("missing", "tuples missing from the state at the end of the recovery"),
    _content("extra", "tuples counted more than once at the end of the recovery"),
    *_latencies(
        "of tuples processed from the failure until the last replayed tuple has been processed",
        f"nothing was replayed, or {_NO_TUPLES}",
    ),
)


def _roots(name: str, label: str, meaning: str) -> Column:
    return count(name, meaning, "roots", _FAILED_RUN, record=("ledger", name), label=label, pool="sum")


def _windows(key: str, meaning: str) -> Column:
    place = ("windows", key)
    return count(f"windows_{key}", meaning, "windows", _FAILED_RUN, record=place, label=key, pool="sum")


def _cost(name: str, label: str, meaning: str, unit: str, dtype: Dtype = "int64") -> Column:
    place = ("cost", name)
    return Column(name, meaning, unit, dtype, _FAILED_RUN, record=place, label=label, pool="mean")


def _throughput(key: Pool, meaning: str) -> Column:
    return Column(
        f"throughput_{key}_per_s",
        meaning,
        "tuples/s",
        undefined=_FAILED_RUN,
        record=("throughput_per_s", key),
        label=key,
        brief=key == "mean",
        pool=key,
    )


RUNS = (
    *_IDENTITY,
    _REPLICATION,
    text("error", "why the run failed", undefined="the run did not fail"),
    _roots("emitted", "emitted", "roots emitted; always completed + in flight + lost"),
    _roots("completed", "completed", "roots whose every effect is in live state or in an emitted window"),
    _roots("in_flight", "in flight at the end", "roots still on their way at the end of the run"),
    _roots("lost", "lost", "roots with an effect destroyed and no copy left anywhere"),
    _roots("replayed", "replayed", "distinct roots that were sent again"),
    _roots("duplicated", "counted twice", "distinct roots with an effect applied to state more than once"),
    _roots(
        "false_timeouts",
        "timed out falsely",
        "distinct roots that timed out though no failure had destroyed anything of them",
    ),
    _roots("late", "late", "distinct roots of which a tuple came too late for a window by event"),
    _windows("emitted", "windows emitted"),
    _windows("correct", "windows equal to those of the failure-free twin"),
    _windows("wrong", "windows that differ from those of the failure-free twin"),
    _windows(
        "missing", "windows of the failure-free twin that were not emitted, and whose end is not on its way"
    ),
    expired(_FAILED_RUN),
    _cost("cpu_s", "CPU time", "processor time of all tasks together", "s", "float64"),
    _cost("network_bytes", "network", "bytes sent between tasks", "B"),
    _cost(
        "normal_cpu_s",
        "normal CPU time",
        "processor time of all tasks in the run without failures",
        "s",
        "float64",
    ),
    _cost(
        "normal_network_bytes",
        "normal network",
        "bytes sent between tasks in the run without failures",
        "B",
    ),
    _cost("store_bytes", "store", "bytes written to and read from the store", "B"),
    _cost(
        "peak_buffered_tuples",
        "peak of buffered tuples",
        "most tuples kept for a replay at any one time",
        "tuples",
    ),
    _cost("hosts", "hosts", "hosts that the scenario uses", "hosts"),
    replace(
        _cost(
            "price_per_h",
            "price per hour",
            "price of an hour of the machines that have tasks or stand by, in the currency of `price`; where "
            "`hosts` names prices",
            "1/h",
            "float64",
        ),
        optional=True,
    ),
    *snapshots(_FAILED_RUN),
    *DELAYS,
    *_latencies("over the measured time outside every failure's recovery and catch-up", pool="histogram"),
    *at_most(LATENCIES, _LATENCY_FIGURES, _NO_TUPLES),
    _throughput("mean", "mean throughput of the last stateful bolt"),
    _throughput("min", "least throughput in any second"),
    _throughput("max", "greatest throughput in any second"),
    *dependability(_FAILED_RUN),
    text("scenario_json", "the whole scenario, as JSON"),
    text("version", "version of Tideover that ran it"),
)


def _in_second(name: str, meaning: str) -> Column:
    return Column(name, f"{meaning} of the tuples processed in this second", "ms", undefined=_NO_TUPLES)


TIMELINE = (
    *_IDENTITY,
    _REPLICATION,
    count("second", "the second of the run, from 0", "s"),
    Column("throughput_per_s", "tuples that the last stateful bolt processed in this second", "tuples/s"),
    _in_second("latency_mean_ms", "mean latency"),
    _in_second("latency_max_ms", "greatest latency"),
    _in_second("end_to_end_mean_ms", "mean end-to-end latency"),
    _in_second("end_to_end_max_ms", "greatest end-to-end latency"),
    count(
        "backlog", "most roots queued, in service, on the wire or waiting for retry in this second", "roots"
    ),
    count("backlog_without_failures", "the same in the reference run, which has no failures", "roots"),
    LAG,
)

TASKS = (*_IDENTITY, _REPLICATION, *TASK)
USAGE = (*_IDENTITY, _REPLICATION, *RESOURCE)

TABLES: dict[str, tuple[Column, ...]] = {
    "recoveries": RECOVERIES,
    "runs": RUNS,
    "timeline": TIMELINE,
    "tasks": TASKS,
    "usage": USAGE,
}
ROWS = {
    "recoveries": "One row for each failure and replication.",
    "runs": "One row for each replication: what was counted until its end.",
    "timeline": "One row for each second and replication.",
    "tasks": "One row for each task of a bolt and replication: what was measured until its end.",
    "usage": "One row for each stretch of a run (about 100), replication and resource: tasks, and the cores, "
    "cards and stores that they share. Empty if they share none.",
}
"""What a row of each table speaks of."""

RECORD = at_top(
    count("schema", "version of this layout", "number"),
    text("scenario", "the whole scenario, as a file would say it"),
    text("strategy", "fault-tolerance strategy that the run used"),
    count("seed", "seed of the run", "number"),
    count("replications", "number of replications", "number"),
    text("warnings", "what an expert would remark before running, and then of the run"),
    text("recoveries", "one object for each failure and replication"),
    Column("latency_ms", "latencies outside every recovery, of all replications", "ms", label="Latency"),
    Column("end_to_end_ms", "the same, end-to-end", "ms", label="End-to-end latency"),
    Column("throughput_per_s", "throughput over all replications", "tuples/s", label="Throughput"),
    Column("dependability", "means of the replications", "that of each", label="Dependability"),
    count("ledger", "what became of the roots, of all replications", "roots", label="Roots"),
    count("windows", "what became of the windows, of all replications", "windows", label="Windows"),
    Column("cost", "mean cost of a replication", "that of each", label="Cost"),
    Column(
        "utilisation",
        "tasks: part of its time up in which each task was busy, mean over replications; busiest: the task "
        "with the greatest of them; peak: the greatest of any task in any replication; blocked, where queues "
        "have an end: part of its time up in which full queues kept each task from doing more",
        "ratio",
        undefined="no task was ever up (busiest, peak)",
    ),
    Column(
        "prediction",
        "for each measure of a recovery that the profile knows the scatter of: estimate, low and high (at "
        "level), and undefined, the share of the profile's draws under which it has no end",
        "s",
        undefined="the scenario has no profile, or nothing fails",
    ),
    text("version", "version of Tideover that ran it"),
)
"""The keys of the record, in their order; what is in a block stands in ``RECOVERIES`` and ``RUNS``."""


def block(table: str, name: str, present: Collection[str] = ()) -> tuple[Column, ...]:
    """The columns of a table that one block of the record has, such as the stages of a recovery; optional
    ones if they are ``present``, by their name or their key.
    """
    mine = (column for column in TABLES[table] if len(column.record) == 2 and column.record[0] == name)
    return tuple(one for one in mine if not one.optional or one.name in present or one.key in present)


def measures() -> tuple[Column, ...]:
    """The times of a recovery that readers' tables show, the headline first."""
    return tuple(column for column in TABLES["recoveries"] if column.label and len(column.record) == 1)


def named(table: str, name: str) -> Column:
    """The column of this name; KeyError if there is none."""
    return {column.name: column for column in TABLES[table]}[name]


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of these rows, as ``conform`` has it."""
    import pandas as pd  # most of a second: not for a run that prints JSON

    return conform(pd.DataFrame(list(rows)), TABLES[table])
