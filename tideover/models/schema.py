"""The one place of a result's fields: name, meaning, unit and type of each, when it is undefined, where the
record of ``run --json`` has it, how one figure is made of several replications', and what readers' tables
call it.

What shows a result derives from here: the record (`tideover.models.results`), data frames, Parquet files,
tables, the report's glossary, docs/reference.md. A new field is one entry here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Dtype = Literal["string", "int64", "float64", "bool"]
Pool = Literal["", "sum", "mean", "min", "max", "histogram"]


@dataclass(frozen=True)
class Column:
    """A field of a result: a column of a table, and its place in the record.

    unit        ``""`` for texts and truths
    undefined   when a value is missing; ``""``: never
    record      where the record has it: a key, or a block and the key in it (``("ledger", "lost")``); nowhere
                if it is empty
    label       what readers' tables call it; they leave it out if it is empty
    brief       the short form of these tables has it, too
    pool        how the record makes one figure of all replications'
    optional    only results that have it show it
    """

    name: str
    meaning: str
    unit: str = ""
    dtype: Dtype = "float64"
    undefined: str = ""
    record: tuple[str, ...] = ()
    label: str = ""
    brief: bool = True
    pool: Pool = ""
    optional: bool = False

    @property
    def label_with_unit(self) -> str:
        """``time to recover, s``; units other than seconds go with the figures."""
        return f"{self.label}, s" if self.unit == "s" else self.label

    @property
    def key(self) -> str:
        return self.record[-1]


def text(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "string", undefined)


def count(name: str, meaning: str, unit: str, undefined: str = "", **more: Any) -> Column:
    return Column(name, meaning, unit, "int64", undefined, **more)


def truth(name: str, meaning: str, undefined: str = "") -> Column:
    return Column(name, meaning, "", "bool", undefined)


_COUNTED = ("roots", "windows", "tuples", "hosts", "snapshots", "processes", "number", "index", "B")
"""Units of whole numbers."""


def _field(
    name: str, meaning: str, unit: str, undefined: str = "", label: str = "", at: str = "", **more: Any
) -> Column:
    """``at``: block and key in the record."""
    dtype: Dtype = "int64" if unit in _COUNTED else "float64"
    record = tuple(at.split(".")) if at else ()
    return Column(name, meaning, unit, dtype, undefined, record, label, **more)


def _at_top(*columns: Column) -> tuple[Column, ...]:
    """The columns, each a key of the record by its own name, unless it has a place there."""
    return tuple(each if each.record else replace(each, record=(each.name,)) for each in columns)


# How recoveries end. A time to recover means little without that: whatever shows the one says the other.

RECOVERED = "recovered"
UNAFFECTED = "not affected"
LOSSY = "recovered with loss"
OPEN = "not recovered"
HEADLINE = "time_to_recover_s"
"""The column of recoveries by which strategies are compared first."""
TIMES = (HEADLINE, "catch_up_s")
"""Columns that say when all was over: never told without how it ended."""


def ending(time: float | None, roots_lost: int) -> str:
    """How a recovery ended that took this time (s; None: it was not over when the run was)."""
    if time is None:
        return OPEN
    if roots_lost:
        return LOSSY
    return RECOVERED if time else UNAFFECTED


def remark(endings: Collection[str]) -> str:
    """What stands beside a mean time of recoveries that ended so, those without an end aside; empty: nothing.

    >>> remark([RECOVERED, LOSSY]), remark([LOSSY]), remark([UNAFFECTED]), remark([RECOVERED, UNAFFECTED])
    ('loss in 1 of 2', 'loss', 'not affected', '')
    """
    ended = [each for each in endings if each != OPEN]
    lossy = ended.count(LOSSY)
    if lossy:
        return "loss" if lossy == len(ended) else f"loss in {lossy} of {len(ended)}"
    return UNAFFECTED if ended and ended.count(UNAFFECTED) == len(ended) else ""


def counted(endings: Iterable[str]) -> str:
    """How so many recoveries ended, in words.

    >>> counted([RECOVERED, RECOVERED, LOSSY]), counted([OPEN]), counted([])
    ('2 recovered, 1 recovered with loss', 'not recovered', '')
    """
    found = Counter(endings)
    return ", ".join(how if len(found) == 1 else f"{n} {how}" for how, n in found.items())


# The fields of all tables.

_FAILED_RUN = "the run failed; see `error`"
_NO_TUPLES = "no tuple was processed in that time, or run.lump is too coarse to tell"
_CUT_OFF = "the run ended before"
_NOT_BY_END = "it was not by the end of the run"
_IF_SNAPSHOTS = "; under `aligned_snapshots` with bounded queues"
_IF_TRANSACTIONS = "; with a transactional sink"

POINT = count("point", "number of the sweep's point: one combination of the swept values", "index")

_RUN = (
    text("scenario", "name of the scenario"),
    text("strategy", "fault-tolerance strategy that the run used"),
    count("seed", "seed of the run; with the replication it fixes every draw", "number"),
)
_REPLICATION = count("replication", "number of the replication, from 0; each has its own luck", "index")
_IDENTITY = (*_RUN, _REPLICATION)

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
        _field(
            f"{kind}_{key}_ms",
            f"{label} of the {meant} {where}",
            "ms",
            undefined,
            label,
            f"{kind}_ms.{key}",
            brief=key != "max",
            pool=pool,
        )
        for kind, meant in LATENCIES.items()
        for key, label in _LATENCY_FIGURES.items()
    )


_AT_MOST = tuple(
    _field(
        f"{kind}_{key}_at_most_ms",
        f"what `{kind}_{key}_ms` is at most, about: as `run.lump` has it, whose tuples wait and are served "
        "together; only with it",
        "ms",
        _NO_TUPLES,
        optional=True,
    )
    for kind in LATENCIES
    for key in _LATENCY_FIGURES
    if key != "std"  # a spread has no such limit
)


def _stage(key: str, label: str, meaning: str, undefined: str = "", name: str = "", **more: Any) -> Column:
    meaning = f"stage of {HEADLINE}: {meaning}"
    return _field(name or f"{key}_s", meaning, "s", undefined, label, f"stages_s.{key}", **more)


def _rare_stage(key: str, label: str, meaning: str) -> Column:
    return _stage(key, label, f"then, {meaning}; not all have it", _CUT_OFF, optional=True)


def _state(name: str, meaning: str) -> Column:
    return _field(name, meaning, "tuples", label=name, at=f"state.{name}", brief=False)


_RECOVERIES = _at_top(
    _REPLICATION,
    text(
        "kind",
        "kind of the failure, or why a detector restarts what did not fail: false_detection, reassigned",
    ),
    text("component", "what failed"),
    _field("failed_at_s", "time of the failure, from the start of the run", "s"),
    _field(
        "hour_of_day",
        "the time of day then, in hours since midnight; where load follows the time of day",
        "h",
        optional=True,
    ),
    _field("detected_at_s", "time at which the failure was detected", "s", "it was never detected"),
    _field("ready_at_s", "time at which the task was ready again", "s", "the task did not come back"),
    _field(
        HEADLINE,
        "headline: from the failure until output, state and backlog are as they would have been without "
        "failures, within the tolerance of docs/semantics.md; the stages add up to it",
        "s",
        "they were not by the end of the run",
        "time to recover",
    ),
    text(
        "ended",
        f"how the recovery ended. {RECOVERED}: all is as it would have been; {UNAFFECTED}: it never was "
        f"otherwise, and the time to recover is 0; {LOSSY}: it is so again, but roots were lost for good; "
        f"{OPEN}: it was not so by the end of the run, and the time to recover is undefined",
    ),
    _field(
        "roots_lost",
        "roots that were lost for good because of this failure, and would not have been without failures",
        "roots",
    ),
    _field(
        "state_recovery_s",
        "state recovery, as Stableford (2015) defines it: from the task being ready until the last tuple "
        "replayed because of this failure has arrived at it",
        "s",
        "nothing was replayed, or the replay had not ended by the end of the run",
        "state recovery",
    ),
    _field(
        "catch_up_s",
        "from the failure until the backlog is what it would have been without failures (a quarter more at "
        "most), and stays so for 4 s",
        "s",
        _NOT_BY_END,
        "catch-up of the backlog",
    ),
    _field(
        "throughput_90_s",
        "from the failure until the throughput over 10 s is back at 90 % of what it would have been",
        "s",
        "it was not back by the end of the run, or without failures, too, nothing is done for 10 s at a time",
        "throughput back at 90 %",
    ),
    _field(
        "output_gap_s",
        "longest silence of the sink that contains or follows the failure and begins before recovery is over",
        "s",
        "the silence was cut off by the end of the run",
        "longest output gap",
    ),
    _field(
        "sink_spacing_s",
        "what output_gap_s would have been without failures: the longest silence in the same stretch",
        "s",
        "no output would have ended it",
        "gap without failures",
    ),
    _field(
        "outage_end_s",
        "from the failure until all that it hit was started again; only with `run.calm`",
        "s",
        "it did not come back",
        "end of the outage",
        optional=True,
    ),
    _field(
        "latency_recovered_s",
        "from the failure until the latency is normal for `run.calm`, second by second; only with it",
        "s",
        _NOT_BY_END,
        "latency normal again",
        optional=True,
    ),
    _field(
        "max_lag",
        "most records before spouts that were not read as a second began, from the failure until the queues "
        "were drained, or the end; where spouts read from queues",
        "roots",
        label="greatest lag",
        optional=True,
    ),
    _field(
        "drain_s",
        "from the failure until the first second with which the lag is what it would have been without "
        "failures (a quarter more at most), and stays so for 4 s; where spouts read from queues",
        "s",
        _NOT_BY_END,
        "time to drain the queues",
        optional=True,
    ),
    _stage(
        "detect", "detect", "from the failure until it is detected; 0 in all stages if replicas masked it"
    ),
    _rare_stage("passing", "until it passes", "until what nobody notices has passed by itself"),
    _rare_stage("delay", "wait to restart", "until a new process is ordered: a delay, or no room for it"),
    _rare_stage("launch", "launch", "until the new process runs"),
    _rare_stage("prepare", "prepare", "until its tasks are ready"),
    _rare_stage("write", "write", "until replicas have written the state"),
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
    _state("restored", "tuples whose effect came back from a saved or copied state"),
    _state("replayed", "tuples sent again because of this fault"),
    _state("dropped", "arrivals dropped since, as they will come again or have come twice"),
    _state("missing", "tuples missing from the state at the end of the recovery"),
    _state("extra", "tuples counted more than once at the end of the recovery"),
    *_latencies(
        "of tuples processed from the failure until the last replayed tuple has been processed",
        f"nothing was replayed, or {_NO_TUPLES}",
    ),
)


def _roots(name: str, label: str, meaning: str) -> Column:
    return _field(name, meaning, "roots", _FAILED_RUN, label, f"ledger.{name}", pool="sum")


def _windows(key: str, meaning: str, **more: Any) -> Column:
    name, place = f"windows_{key}", f"windows.{key}"
    return _field(name, meaning, "windows", _FAILED_RUN, key, place, pool="sum", **more)


def _cost(
    name: str,
    label: str,
    meaning: str,
    unit: str,
    undefined: str = _FAILED_RUN,
    pool: Pool = "mean",
    **m: Any,
) -> Column:
    return _field(name, meaning, unit, undefined, label, f"cost.{name}", pool=pool, **m)


def _snapshot(name: str, label: str, meaning: str, pool: Pool = "mean") -> Column:
    undefined = "no snapshot was complete"
    return _cost(name, label, meaning + _IF_SNAPSHOTS, "s", undefined, pool, optional=True)


def _delay(name: str, label: str, meaning: str, pool: Pool) -> Column:
    return _cost(name, label, meaning + _IF_TRANSACTIONS, "s", "nothing was seen", pool, optional=True)


def _throughput(key: Pool, meaning: str) -> Column:
    name, place, brief = f"throughput_{key}_per_s", f"throughput_per_s.{key}", key == "mean"
    return _field(name, meaning, "tuples/s", _FAILED_RUN, key, place, brief=brief, pool=key)


DELAYS = (
    _delay(
        "visible_s",
        "delay of visibility",
        "mean time from when a window (or a tuple that leaves) is put out until its readers see it",
        "mean",
    ),
    _delay("visible_max_s", "longest delay of visibility", "the longest of them", "max"),
)

_RUNS = (
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
    _windows(
        "expired",
        "windows that were to be committed, but the broker had aborted their transaction by then (they are "
        f"missing){_IF_TRANSACTIONS}",
        optional=True,
    ),
    _cost("cpu_s", "CPU time", "processor time of all tasks together", "s"),
    _cost("network_bytes", "network", "bytes sent between tasks", "B"),
    _cost("normal_cpu_s", "normal CPU time", "processor time of all tasks in the run without failures", "s"),
    _cost(
        "normal_network_bytes", "normal network", "bytes sent between tasks in the run without failures", "B"
    ),
    _cost("store_bytes", "store", "bytes written to and read from the store", "B"),
    _cost(
        "peak_buffered_tuples",
        "peak of buffered tuples",
        "most tuples kept for a replay at any one time",
        "tuples",
    ),
    _cost("hosts", "hosts", "hosts that the scenario uses", "hosts"),
    _cost(
        "price_per_h",
        "price per hour",
        "price of an hour of the machines that have tasks or stand by, in the currency of `price`; where "
        "`hosts` names prices",
        "1/h",
        optional=True,
    ),
    _cost(
        "snapshots",
        "snapshots",
        f"complete snapshots of the job{_IF_SNAPSHOTS}",
        "snapshots",
        optional=True,
    ),
    _snapshot("snapshot_s", "time of a snapshot", "mean time from a snapshot's trigger to its end"),
    _snapshot("snapshot_max_s", "longest snapshot", "the longest of them", "max"),
    _snapshot(
        "alignment_s",
        "alignment",
        "how long a task waited for a snapshot's barriers, from its first to its last; the longest of all "
        "tasks, mean over snapshots",
    ),
    *DELAYS,
    *_latencies("over the measured time outside every failure's recovery and catch-up", pool="histogram"),
    *_AT_MOST,
    _throughput("mean", "mean throughput of the last stateful bolt"),
    _throughput("min", "least throughput in any second"),
    _throughput("max", "greatest throughput in any second"),
    _field(
        "availability",
        "part of the measured time outside of every time to recover",
        "ratio",
        f"nothing is measured after the warm-up, or {_FAILED_RUN}",
        "availability",
        "dependability.availability",
        pool="mean",
    ),
    _field(
        "false_detections",
        "processes that lived, but that the detector took for dead and launched anew; with heartbeats",
        "processes",
        _FAILED_RUN,
        "false detections",
        "dependability.false_detections",
        pool="mean",
        optional=True,
    ),
    text("scenario_json", "the whole scenario, as JSON"),
    text("version", "version of Tideover that ran it"),
)


def _in_second(name: str, meaning: str) -> Column:
    return _field(name, f"{meaning} of the tuples processed in this second", "ms", _NO_TUPLES)


_TIMELINE = (
    count("second", "the second of the run, from 0", "s"),
    _field("throughput_per_s", "tuples that the last stateful bolt processed in this second", "tuples/s"),
    _in_second("latency_mean_ms", "mean latency"),
    _in_second("latency_max_ms", "greatest latency"),
    _in_second("end_to_end_mean_ms", "mean end-to-end latency"),
    _in_second("end_to_end_max_ms", "greatest end-to-end latency"),
    _field(
        "backlog", "most roots queued, in service, on the wire or waiting for retry in this second", "roots"
    ),
    _field("backlog_without_failures", "the same in the reference run, which has no failures", "roots"),
    _field("lag", "records before spouts that are not read as the second begins", "roots", optional=True),
)

_TASKS = (
    text("task", "a bolt's task, as component.number, with /number of the replica from the second on"),
    _field(
        "utilisation",
        "part of the time in which the task was up that it was busy",
        "ratio",
        "the task was never up",
    ),
    _field("busy_s", "how long it was busy: tuples, acks, checkpoints, replays, batches", "s"),
    _field(
        "blocked_s",
        "how long full queues kept it from doing more, where they have an end",
        "s",
        optional=True,
    ),
    _field("up_s", "how long it was up", "s"),
    _field("queued", "tuples in its queue or in service at the end of the run", "tuples"),
    _field("queued_s", "how long it would have been busy with them", "s"),
)

_USAGE = (
    _field("begin_s", "begin of a stretch of the run", "s"),
    _field("end_s", "its end", "s"),
    text("resource", "name of a task, or of what tasks share"),
    text("kind", "what it is: task, cores, card in, card out, store, link"),
    _field("host", "number of its host", "index", "it is on none"),
    _field("busy", "part of the stretch in which it was busy; of cores the mean", "ratio"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "recoveries": (*_RUN, *_RECOVERIES),
    "runs": (*_IDENTITY, *_RUNS),
    "timeline": (*_IDENTITY, *_TIMELINE),
    "tasks": (*_IDENTITY, *_TASKS),
    "usage": (*_IDENTITY, *_USAGE),
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

RECORD = _at_top(
    _field("schema", "version of this layout", "number"),
    text("scenario", "the whole scenario, as a file would say it"),
    text("strategy", "fault-tolerance strategy that the run used"),
    _field("seed", "seed of the run", "number"),
    _field("replications", "number of replications", "number"),
    text("warnings", "what an expert would remark before running, and then of the run"),
    text("recoveries", "one object for each failure and replication"),
    _field("latency_ms", "latencies outside every recovery, of all replications", "ms", label="Latency"),
    _field("end_to_end_ms", "the same, end-to-end", "ms", label="End-to-end latency"),
    _field("throughput_per_s", "throughput over all replications", "tuples/s", label="Throughput"),
    _field("dependability", "means of the replications", "that of each", label="Dependability"),
    _field("ledger", "what became of the roots, of all replications", "roots", label="Roots"),
    _field("windows", "what became of the windows, of all replications", "windows", label="Windows"),
    _field("cost", "mean cost of a replication", "that of each", label="Cost"),
    _field(
        "utilisation",
        "tasks: part of its time up in which each task was busy, mean over replications; busiest: the task "
        "with the greatest of them; peak: the greatest of any task in any replication; blocked, where queues "
        "have an end: part of its time up in which full queues kept each task from doing more",
        "ratio",
        "no task was ever up (busiest, peak)",
    ),
    _field(
        "prediction",
        "for each measure of a recovery that the profile knows the scatter of: estimate, low and high (at "
        "level), and undefined, the share of the profile's draws under which it has no end",
        "s",
        "the scenario has no profile, or nothing fails",
    ),
    text("version", "version of Tideover that ran it"),
)
"""The keys of the record, in their order; what is in a block stands in the tables of recoveries and runs."""

SHARED_RECORD = _at_top(
    _field(
        "complete_latency_ms",
        "from the emission of a root until all of its tree is acked, or, if nothing acks, until the measured "
        "component is done with it; of all replications, after the warm-up",
        "ms",
        label="Complete latency",
    ),
    _field(
        "resources",
        "which part of the time after the warm-up each task, and each of what tasks share, was busy, mean "
        "over replications, the busiest first",
        "ratio",
    ),
    _field(
        "flows",
        "what flows over each edge, mean over the replications and all of their time: messages and bytes per "
        "second, and bytes per second between hosts",
        "1/s",
    ),
    _field(
        "between_hosts",
        "what tasks of one host send to those of another, mean over the replications and all of their time: "
        "messages and bytes per second; pairs of hosts with nothing between them are left out",
        "1/s",
    ),
    text("bottleneck", "the busiest of them and the next, in a sentence"),
)
"""More of its keys, where tasks share something: cores, cards, stores."""


# What is made of the fields.


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


def nested(row: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    """A row as the record has it: the columns that stand there, each in its block."""
    found: dict[str, Any] = {}
    for column in columns:
        if column.record and not (column.optional and column.name not in row):
            *blocks, key = column.record
            place = found
            for name in blocks:
                place = place.setdefault(name, {})
            place[key] = row[column.name]
    return found


def frame(table: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of these rows, as ``conform`` has it."""
    import pandas as pd  # most of a second: not for a run that prints JSON

    return conform(pd.DataFrame(list(rows)), TABLES[table])


def conform(frame: pd.DataFrame, documented: Iterable[Column]) -> pd.DataFrame:
    """The frame with a fresh index, the documented columns first, each in its type, undefined where it was
    missing; optional ones only if there are any.

    An undefined number is NaN, so a column of whole numbers that has one holds floats. Texts are objects.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for column in documented:
        if column.optional and column.name not in frame.columns:
            continue
        values = frame[column.name] if column.name in frame.columns else pd.Series(None, frame.index, object)
        dtype: Any = object if column.dtype == "string" else column.dtype
        if column.dtype in ("int64", "bool") and values.isna().any():
            dtype = "float64" if column.dtype == "int64" else object
        found[column.name] = values.astype(dtype)
    others = {name: frame[name] for name in frame.columns if name not in found}
    return pd.DataFrame(found | others, index=frame.index).reset_index(drop=True)
