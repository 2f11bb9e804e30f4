"""The one place of a result's fields: name, meaning, unit and type of each, when it is undefined, where the
record of ``run --json`` has it, how one figure is made of several replications', and what readers' tables
call it.

What shows a result derives from here: the record (`tideover.models.results`), data frames, Parquet files,
tables, the report's glossary, docs/reference.md. A new field is one entry here; its value comes from
`evaluation.measures`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Literal, cast

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
    passable    of recoveries: undefined though recovery is over, it is left out of objectives; others count
                as never reached
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
    passable: bool = False

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


def _columns(
    entries: str, at: str = "", undefined: str = "", called: str = "{}", **more: Any
) -> tuple[Column, ...]:
    """Columns as a text has them, one from each line that is not indented::

        key [unit, pool] label | meaning | undefined

    ``key?``: it is optional; ``key~``: passable. A unit ``text``: it is none. What is left out (pool, label,
    undefined) is as in all of them. ``at``: block and key in the record, ``called``: the name, each with
    ``{}`` for the key.
    """
    found = []
    for entry in re.split(r"\n(?! )", dedent(entries).strip()):
        about, meaning, *own = (part.strip() for part in " ".join(entry.split()).split(" | "))
        match = re.fullmatch(r"(\w+)([?~]?) \[(.+?)(?:, (\w+))?\] ?(.*)", about)
        assert match is not None, about
        key, mark, unit, pool, label = match.groups()
        dtype: Dtype = "int64" if unit in _COUNTED else "string" if unit == "text" else "float64"
        unit = unit if dtype != "string" else ""
        record = tuple(at.format(key).split(".")) if at else ()
        why = own[0] if own else undefined
        column = Column(called.format(key), meaning, unit, dtype, why, record, label, **more)
        pool = cast(Pool, pool or column.pool)
        found.append(replace(column, pool=pool, optional=mark == "?", passable=mark == "~"))
    return tuple(found)


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
_IF_TRANSACTIONS = "; with a transactional sink, or changelogs exactly once"

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
        Column(
            f"{kind}_{key}_ms",
            f"{label} of the {meant} {where}",
            "ms",
            undefined=undefined,
            record=(f"{kind}_ms", key),
            label=label,
            brief=key != "max",
            pool=pool,
            passable=True,
        )
        for kind, meant in LATENCIES.items()
        for key, label in _LATENCY_FIGURES.items()
    )


_AT_MOST = tuple(
    Column(
        f"{kind}_{key}_at_most_ms",
        f"what `{kind}_{key}_ms` is at most, about: as `run.lump` has it, whose tuples wait and are served "
        "together; only with it",
        "ms",
        undefined=_NO_TUPLES,
        optional=True,
    )
    for kind in LATENCIES
    for key in _LATENCY_FIGURES
    if key != "std"  # a spread has no such limit
)

_STAGE = f"stage of {HEADLINE}:"

_RECOVERIES = (
    replace(_REPLICATION, record=("replication",)),
    *_columns(
        f"""
        kind [text] | kind of the failure, or why a detector restarts what did not fail: false_detection,
            reassigned, fenced
        component [text] | what failed
        failed_at_s [s] | time of the failure, from the start of the run
        hour_of_day? [h] | the time of day then, in hours since midnight; where load follows the time of day
        detected_at_s [s] | time at which the failure was detected | it was never detected
        ready_at_s [s] | time at which the task was ready again; without a detector as planned, even if the
            run has ended before | the task did not come back
        {HEADLINE} [s] time to recover | headline: from the failure until output, state and backlog are as
            they would have been without failures, within the tolerance of docs/semantics.md; the stages add
            up to it | they were not by the end of the run
        failed_restarts? [restarts] failed restarts | restarts that were tried since, and failed, as they were
            deployed on slots of a process that was dead; only with `detector.connection`
        ended [text] | how the recovery ended. {RECOVERED}: all is as it would have been; {UNAFFECTED}: it
            never was otherwise, and the time to recover is 0; {LOSSY}: it is so again, but roots were lost
            for good; {OPEN}: it was not so by the end of the run, and the time to recover is undefined
        roots_lost [roots] | roots that were lost for good because of this failure, and would not have been
            without failures
        state_recovery_s~ [s] state recovery | state recovery, as Stableford (2015) defines it: from the task
            being ready until the last tuple replayed because of this failure has arrived at it | nothing was
            replayed, or the replay had not ended by the end of the run
        catch_up_s [s] catch-up of the backlog | from the failure until the backlog is what it would have been
            without failures (a quarter more at most), and stays so for 4 s | {_NOT_BY_END}
        throughput_90_s [s] throughput back at 90 % | from the failure until the throughput over 10 s is back
            at 90 % of what it would have been | it was not back by the end of the run, or without failures,
            too, nothing is done for 10 s at a time
        output_gap_s [s] longest output gap | longest silence of the sink that contains or follows the failure
            and begins before recovery is over | the silence was cut off by the end of the run
        sink_spacing_s~ [s] gap without failures | what output_gap_s would have been without failures: the
            longest silence in the same stretch | no output would have ended it
        outage_end_s? [s] end of the outage | from the failure until all that it hit was started again (0 if
            nobody felt it); only with `run.calm` | it did not come back
        latency_recovered_s? [s] latency normal again | from the failure until the latency is normal for
            `run.calm`, second by second; only with it | {_NOT_BY_END}
        max_lag? [roots] greatest lag | most records before spouts that were not read as a second began, from
            the failure until the queues were drained, or the end; where spouts read from queues
        drain_s? [s] time to drain the queues | from the failure until the first second with which the lag is
            what it would have been without failures (a quarter more at most), and stays so for 4 s; where
            spouts read from queues | {_NOT_BY_END}
        """,
        at="{}",
    ),
    *_columns(
        f"""
        detect [s] detect | {_STAGE} from the failure until it is detected; 0 in all stages if replicas masked
            it
        passing? [s] until it passes | {_STAGE} then, until what nobody notices has passed by itself; not all
            have it | {_CUT_OFF}
        delay? [s] wait to restart | {_STAGE} then, until a new process is ordered: a delay, restarts that
            fail, or no room for it; not all have it | {_CUT_OFF}
        launch? [s] launch | {_STAGE} then, until the new process runs; not all have it | {_CUT_OFF}
        prepare? [s] prepare | {_STAGE} then, until its tasks are ready; not all have it | {_CUT_OFF}
        restart [s] restart | {_STAGE} then, until what failed is ready again
        write? [s] write | {_STAGE} then, until replicas have written the state; not all have it | {_CUT_OFF}
        restore [s] restore | {_STAGE} then, until a saved or copied state is back
        wait [s] wait for timeout | {_STAGE} then, until the source gives up the first root of which something
            was lost (a timeout)
        replay [s] replay | {_STAGE} then, until the last tuple replayed because of the failure has arrived
        """,
        at="stages_s.{}",
        called="{}_s",
    ),
    *_columns(
        f"""
        catch_up [s] catch-up | {_STAGE} then, until the backlog is what it would have been without failures |
            {_CUT_OFF}
        windows [s] until windows are right | {_STAGE} then, until the last window that is wrong or missing
            because of the failure was put out, or was due | {_CUT_OFF}, or no window ends any more
        """,
        at="stages_s.{}",
        called="{}_stage_s",
    ),
    *_columns(
        """
        restored [tuples] restored | tuples whose effect came back from a saved or copied state
        replayed [tuples] replayed | tuples sent again because of this fault
        dropped [tuples] dropped | arrivals dropped since, as they will come again or have come twice
        missing [tuples] missing | tuples missing from the state at the end of the recovery
        extra [tuples] extra | tuples counted more than once at the end of the recovery
        """,
        at="state.{}",
        brief=False,
    ),
    *_latencies(
        "of tuples processed from the failure until the last replayed tuple has been processed",
        f"nothing was replayed, or {_NO_TUPLES}",
    ),
)

_RUNS = (
    text("error", "why the run failed", undefined="the run did not fail"),
    *_columns(
        """
        emitted [roots] emitted | roots emitted; always completed + in flight + lost
        completed [roots] completed | roots whose every effect is in live state or in an emitted window
        in_flight [roots] in flight at the end | roots still on their way at the end of the run
        lost [roots] lost | roots with an effect destroyed and no copy left anywhere
        replayed [roots] replayed | distinct roots that were sent again
        duplicated [roots] counted twice | distinct roots with an effect applied to state more than once
        false_timeouts [roots] timed out falsely | distinct roots that timed out though no failure had
            destroyed anything of them
        late [roots] late | distinct roots of which a tuple came too late for a window by event
        """,
        at="ledger.{}",
        undefined=_FAILED_RUN,
        pool="sum",
    ),
    *_columns(
        f"""
        emitted [windows] emitted | windows emitted
        correct [windows] correct | windows equal to those of the run without failures
        wrong [windows] wrong | windows that differ from those of the run without failures
        missing [windows] missing | windows of the run without failures that were not emitted, and whose end
            is not on its way, nor still to come from a spout that is held up or down
        expired? [windows] expired | windows that were to be committed, but the broker had aborted their
            transaction by then (they are missing){_IF_TRANSACTIONS}
        """,
        at="windows.{}",
        undefined=_FAILED_RUN,
        called="windows_{}",
        pool="sum",
    ),
    *_columns(
        f"""
        cpu_s [s] CPU time | processor time of all tasks together
        network_bytes [B] network | bytes sent between tasks
        normal_cpu_s [s] normal CPU time | processor time of all tasks in the run without failures
        normal_network_bytes [B] normal network | bytes sent between tasks in the run without failures
        store_bytes [B] store | bytes written to and read from the store
        peak_buffered_tuples [tuples] peak of buffered tuples | most tuples kept for a replay at any one time
        hosts [hosts] hosts | hosts that the scenario uses
        price_per_h? [1/h] price per hour | price of an hour of the machines that have tasks or stand by, in
            the currency of `price`; where `hosts` names prices
        snapshots? [snapshots] snapshots | complete snapshots of the job{_IF_SNAPSHOTS}
        snapshot_s? [s] time of a snapshot | mean time from a snapshot's trigger to its end{_IF_SNAPSHOTS} |
            no snapshot was complete
        snapshot_max_s? [s, max] longest snapshot | the longest of them{_IF_SNAPSHOTS} | no snapshot was
            complete
        alignment_s? [s] alignment | how long a task waited for a snapshot's barriers, from its first to its
            last; the longest of all tasks, mean over snapshots{_IF_SNAPSHOTS} | no snapshot was complete
        visible_s? [s] delay of visibility | mean time from when a window (or a tuple that leaves) is put out
            until its readers see it{_IF_TRANSACTIONS} | nothing was seen
        visible_max_s? [s, max] longest delay of visibility | the longest of them{_IF_TRANSACTIONS} | nothing
            was seen
        """,
        at="cost.{}",
        undefined=_FAILED_RUN,
        pool="mean",
    ),
    *_latencies("over the measured time outside every failure's recovery and catch-up", pool="histogram"),
    *_AT_MOST,
    *_columns(
        "mean [tuples/s, mean] mean | mean throughput of the last stateful bolt",
        at="throughput_per_s.{}",
        undefined=_FAILED_RUN,
        called="throughput_{}_per_s",
    ),
    *_columns(
        """
        min [tuples/s, min] min | least throughput in any second
        max [tuples/s, max] max | greatest throughput in any second
        """,
        at="throughput_per_s.{}",
        undefined=_FAILED_RUN,
        called="throughput_{}_per_s",
        brief=False,
    ),
    *_columns(
        f"""
        availability [ratio] availability | part of the measured time outside of every time to recover |
            nothing is measured after the warm-up, or {_FAILED_RUN}
        false_detections? [processes] false detections | processes that lived, but that the detector took for
            dead; with heartbeats and consumer groups | {_FAILED_RUN}
        """,
        at="dependability.{}",
        pool="mean",
    ),
    text("scenario_json", "the whole scenario, as JSON"),
    text("version", "version of Tideover that ran it"),
)

_IN_SECOND = "of the tuples processed in this second"

_TIMELINE = (
    count("second", "the second of the run, from 0", "s"),
    *_columns(
        f"""
        throughput_per_s [tuples/s] | tuples that the last stateful bolt processed in this second
        latency_mean_ms [ms] | mean latency {_IN_SECOND} | {_NO_TUPLES}
        latency_max_ms [ms] | greatest latency {_IN_SECOND} | {_NO_TUPLES}
        end_to_end_mean_ms [ms] | mean end-to-end latency {_IN_SECOND} | {_NO_TUPLES}
        end_to_end_max_ms [ms] | greatest end-to-end latency {_IN_SECOND} | {_NO_TUPLES}
        backlog [roots] | most roots queued, in service, on the wire or waiting for retry in this second
        backlog_without_failures [roots] | the same in the reference run, which has no failures
        lag? [roots] | records before spouts that are not read as the second begins
        """
    ),
)

_TASKS = _columns(
    """
    task [text] | a bolt's task, as component.number, with /number of the replica from the second on
    utilisation [ratio] | part of the time in which the task was up that it was busy | the task was never up
    busy_s [s] | how long it was busy: tuples, acks, checkpoints, replays, batches
    blocked_s? [s] | how long full queues kept it from doing more, where they have an end
    up_s [s] | how long it was up
    queued [tuples] | tuples in its queue or in service at the end of the run
    queued_s [s] | how long it would have been busy with them
    """
)

_USAGE = _columns(
    """
    begin_s [s] | begin of a stretch of the run
    end_s [s] | its end
    resource [text] | name of a task, or of what tasks share
    kind [text] | what it is: task, cores, card in, card out, store, link
    host [index] | number of its host | it is on none
    busy [ratio] | part of the stretch in which it was busy; of cores the mean
    """
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

RECORD = _columns(
    """
    schema [number] | version of this layout
    scenario [text] | the whole scenario, as a file would say it
    strategy [text] | fault-tolerance strategy that the run used
    seed [number] | seed of the run
    replications [number] | number of replications
    warnings [text] | what an expert would remark before running, and then of the run
    recoveries [text] | one object for each failure and replication
    latency_ms [ms] Latency | latencies outside every recovery, of all replications
    end_to_end_ms [ms] End-to-end latency | the same, end-to-end
    throughput_per_s [tuples/s] Throughput | throughput over all replications
    dependability [that of each] Dependability | means of the replications
    ledger [roots] Roots | what became of the roots, of all replications
    windows [windows] Windows | what became of the windows, of all replications
    cost [that of each] Cost | mean cost of a replication
    utilisation [ratio] | tasks: part of its time up in which each task was busy, mean over replications;
        busiest: the task with the greatest of them; peak: the greatest of any task in any replication;
        blocked, where queues have an end: part of its time up in which full queues kept each task from doing
        more | no task was ever up (busiest, peak)
    prediction [s] | for each measure of a recovery that the profile knows the scatter of: estimate, low and
        high (at level), and undefined, the share of the profile's draws under which it has no end | the
        scenario has no profile, or nothing fails
    version [text] | version of Tideover that ran it
    """,
    at="{}",
)
"""The keys of the record, in their order; what is in a block stands in the tables of recoveries and runs."""

SHARED_RECORD = _columns(
    """
    complete_latency_ms [ms] Complete latency | from the emission of a root until all of its tree is acked,
        or, if nothing acks, until the measured component is done with it; of all replications, after the
        warm-up
    resources [ratio] | which part of the time after the warm-up each task, and each of what tasks share, was
        busy, mean over replications, the busiest first
    flows [1/s] | what flows over each edge, mean over the replications and all of their time: messages and
        bytes per second, and bytes per second between hosts
    between_hosts [1/s] | what tasks of one host send to those of another, mean over the replications and all
        of their time: messages and bytes per second; pairs of hosts with nothing between them are left out
    bottleneck [text] | the busiest of them and the next, in a sentence
    """,
    at="{}",
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


DELAYS = named("runs", "visible_s"), named("runs", "visible_max_s")
"""Until readers see what is put out."""
