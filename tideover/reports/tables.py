"""The one model of a table, and the key tables of results, as plain text.

The terminal and the HTML page show the same ones. `Table` is what all reports make; `Notes` collects its
footnotes. A column at a glance is a row of ``MEASURES``; what else a result has comes from `models.schema`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tideover.models import schema
from tideover.models.results import counted
from tideover.models.schema import HEADLINE, LOSSY, OPEN, RECORD, TIMES, Column, block, measures, named
from tideover.reports import formatting, wording
from tideover.reports.formatting import UNDEFINED, amount, fixed, is_undefined, number, size, strategy_name
from tideover.scenarios.statistics.intervals import Estimate, Paired, estimate, of_replications
from tideover.sim.faults import FAULTS
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

Record = Mapping[str, Any]
"""A result as ``run --json`` prints it."""
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The first ``text_columns`` are aligned left, others right. A row of one cell is a heading inside.

    A table without rows is not shown.
    """

    title: str
    columns: Cells
    rows: tuple[Cells, ...]
    notes: tuple[str, ...] = ()
    text_columns: int = 1

    @classmethod
    def of(
        cls,
        title: str,
        records: Iterable[Any],
        columns: Mapping[str, Callable[[Any], str]],
        notes: Iterable[str] = (),
        text_columns: int = 1,
        heading: Callable[[Any], str] | None = None,
        key: Callable[[Any], Any] | None = None,
    ) -> Table:
        """A row for each record: ``columns`` gives each heading and how its cell is written. ``heading``: of
        rows that follow one another and have the same ``key``, or the same heading.
        """
        rows: list[Cells] = []
        for _, group in groupby(records, key or heading or (lambda _: "")):
            part = list(group)
            rows += [(heading(part[0]),)] if heading is not None else []
            rows += [tuple(written(record) for written in columns.values()) for record in part]
        return cls(title, tuple(columns), tuple(rows), tuple(notes), text_columns)


TIMES_MEANT = (
    "Time to recover: from the failure until output, state and backlog are as they would have been without "
    "failures; its stages add up to it. State recovery: from the task being ready until the last replayed "
    "tuple has arrived. Catch-up, and throughput (of the last 10 s) back at 90 %: from the failure."
)
WITH_LOSS = (
    "(loss): roots were lost for good because of the failure; the time says when all the rest was as it "
    "would have been."
)
LATENCIES_MEANT = (
    "End-to-end latency: from the first emission of a tuple's root; latency: from the tuple's creation "
    "stamp, which is a new one if the source sends it again."
)


class Notes:
    """Footnotes of a table: why values are undefined, each reason once, and what its intervals are."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[str, None]] = {}
        self.interval = False
        self.partial = False
        self.lossy = False

    def undefined(self, label: str, column: Column) -> str:
        """A dash, and a footnote with the column's reason for it."""
        if column.undefined:
            self._reasons.setdefault(column.undefined, {})[label] = None
        return UNDEFINED

    def mean(self, found: Estimate, label: str, column: Column, endings: Collection[str] = ()) -> str:
        """``57.8 ± 0.6``; with the count if some values are undefined, and what ``endings`` say of a time of
        recoveries that ended so.
        """
        if found.mean is None:
            return self.undefined(label, column)
        text = number(found.mean)
        if found.half_width is not None and not found.constant:
            places = formatting.places_for(found.half_width)
            half_width = fixed(found.half_width, places)
            if half_width.strip("0."):  # else it would only show noughts
                self.interval = True
                text = f"{fixed(found.mean, places)} ± {half_width}"
        if found.undefined:
            self.partial = True
            self.undefined(label, column)
            text += f" ({found.n} of {found.n + found.undefined})"
        self.lossy |= LOSSY in endings
        return formatting.with_ending(text, endings)

    def lines(self) -> tuple[str, ...]:
        known = {
            "±: half the width of the 95 % t-interval of the mean": self.interval,
            "(n of m): mean over the n replications in which the value is defined": self.partial,
            WITH_LOSS: self.lossy,
        }
        told = self._reasons.items()
        return (
            *(line for line, true in known.items() if true),
            *(f"{UNDEFINED} undefined ({', '.join(labels)}): {reason}" for reason, labels in told),
        )


# What was simulated, in a few words.


def scenario_name(result: Record) -> str:
    """The scenario's name; empty if it has none."""
    return str(result["scenario"].get("name", ""))


def point_record(point: int, recoveries: pd.DataFrame, runs: pd.DataFrame) -> dict[str, Any]:
    """Of a point of a sweep what a page needs of a result's record, from the sweep's tables."""
    mine, failures = runs[runs["point"] == point], recoveries[recoveries["point"] == point]
    first = mine.iloc[0]
    return {
        "point": point,
        "scenario": json.loads(first["scenario_json"]),
        "strategy": str(first["strategy"]),
        "seed": int(first["seed"]),
        "replications": len(mine),
        "warnings": [],
        "recoveries": failures[["kind", "component", "failed_at_s"]].to_dict("records"),
    }


def headline(result: Record) -> str:
    """Name, seed and replications in one line."""
    return f"{scenario_name(result)}: seed {result['seed']}, {counted(result['replications'], 'replication')}"


MOST_NAMED = 6
"""Failures that are told one by one."""


def setup(results: Sequence[Record]) -> list[tuple[str, str]]:
    """What was simulated, as pairs of a label and a text; what differs between the results is listed."""
    scenarios = [result["scenario"] for result in results]
    runs = [one["run"] for one in scenarios if isinstance(one.get("run"), Mapping)]
    topologies = [one["topology"] for one in scenarios if isinstance(one.get("topology"), Mapping)]
    every = (recovery for result in results for recovery in result["recoveries"])
    failures = list(
        dict.fromkeys(f"{one['kind']} of {one['component']} at {one['failed_at_s']:,.6g} s" for one in every)
    )
    rest = f"; and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""

    def each(texts: Iterable[Any]) -> str:
        return ", ".join(dict.fromkeys(str(text) for text in texts if text))

    said = {
        "Scenario": each(map(scenario_name, results)),
        "Description": each(one.get("description") for one in scenarios),
        "Components": each(" → ".join(map(str, topology)) for topology in topologies),
        "Strategies" if len(results) > 1 else "Strategy": each(strategy_name(r["strategy"]) for r in results),
        "Failures": "; ".join(failures[:MOST_NAMED]) + rest if failures else "none",
        "Simulated time": each(run.get("duration") for run in runs),
        "Replications": each(str(result["replications"]) for result in results),
        "Seed": each(str(result["seed"]) for result in results),
    }
    return [(label, text) for label, text in said.items() if text]


def collected_warnings(results: Sequence[Record]) -> list[str]:
    """Every warning once; with the strategies that it holds for, if it does not hold for all."""
    found: dict[str, dict[str, None]] = {}
    for result in results:
        for text in result["warnings"]:
            found.setdefault(str(text), {})[strategy_name(result["strategy"])] = None
    everyone = {strategy_name(result["strategy"]) for result in results}
    return [t if len(names) == len(everyone) else f"{', '.join(names)}: {t}" for t, names in found.items()]


# Tables of what runs on a cluster.

MOST_BLOCKED = 20
"""Tasks of which a table says how long full queues held them up."""


def blocked_table(result: Record) -> Table:
    """Of each task which part of its time it was busy, blocked by full queues, and neither; no rows where
    queues have no end. Who is blocked most comes first.
    """
    found = result.get("utilisation") or {}
    blocked = found.get("blocked") or {}
    rows = []
    for task in sorted(blocked, key=lambda task: -blocked[task])[:MOST_BLOCKED]:
        busy, held_up = found["tasks"][task], blocked[task]
        parts = (busy, held_up, max(0.0, 1 - busy - held_up))
        rows.append((task, *(f"{100 * part:.1f} %" for part in parts)))
    notes = ["Part of the time that each was up; blocked: a full queue further on kept it from doing more."]
    if len(blocked) > MOST_BLOCKED:
        notes.append(
            f"Of {len(blocked)} tasks the {MOST_BLOCKED} blocked most are shown; tasks.parquet has all."
        )
    title = f"Busy, blocked, idle: {strategy_name(result['strategy'])}"
    return Table(title, ("task", "busy", "blocked", "idle"), tuple(rows), tuple(notes))


def flows_table(result: Record) -> Table:
    columns: dict[str, Callable[[Any], str]] = {
        "edge": lambda each: each["edge"],
        "messages/s": lambda each: number(each["messages_per_s"]),
        "bytes/s": lambda each: size(each["bytes_per_s"]),
        "between hosts, bytes/s": lambda each: size(each["between_hosts_per_s"]),
    }
    notes = ("Mean over the whole run; without acks, checkpoints and copies.",)
    return Table.of(f"What flows: {strategy_name(result['strategy'])}", result["flows"], columns, notes)


# Strategies at a glance: a row for each.

MANY = 5
"""More strategies than these a page shows at a glance, too."""


@dataclass(frozen=True)
class Measure:
    """A column. ``what``: its heading; ``bad``: anything above 0 breaks a guarantee; ``written``: a value."""

    what: str
    bad: bool = False
    written: Callable[[float], str] = number


MEASURES = (
    Measure("time to recover, s"),
    Measure("output gap, s"),
    Measure("roots lost", True, amount),
    Measure("counted twice", True, amount),
    Measure("windows wrong", True, amount),
    Measure("normal latency, ms"),
    Measure("normal CPU, ms/s"),
    Measure("normal network, per s", written=size),
    Measure("hosts", written=amount),
)
"""Latency is the mean outside of recoveries; CPU and network are those of the runs without failures."""


@dataclass(frozen=True)
class Row:
    """A strategy: values in the order of ``MEASURES`` (None: undefined), and how its recoveries ended."""

    strategy: str
    values: tuple[float | None, ...]
    endings: tuple[str, ...]

    @property
    def cells(self) -> Cells:
        shown = [UNDEFINED if v is None else m.written(v) for m, v in zip(MEASURES, self.values, strict=True)]
        total = len(self.endings)
        ended = total - self.endings.count(OPEN)
        if ended < total:
            shown[0] = f"{shown[0]} ({ended}/{total})" if ended else "never"
        endings = [LOSSY] if LOSSY in self.endings else self.endings  # there is no room for how many of them
        return (formatting.with_ending(shown[0], endings), *shown[1:])


def rows(records: Iterable[Record]) -> list[Row]:
    """A row for each result, by the time to recover: the shortest first, at the end what is undefined."""
    found = []
    for record in records:
        recoveries, windows, cost = record["recoveries"], record["windows"], record["cost"]
        length, means = parse_duration(record["scenario"]["run"]["duration"]), []
        for name in (HEADLINE, "output_gap_s"):  # of replications, each of which counts once
            each = [(recovery["replication"], recovery[name]) for recovery in recoveries]
            means.append(estimate(of_replications(each, named("recoveries", name))).mean)
        cpu_s, sent = cost.get("normal_cpu_s"), cost.get("normal_network_bytes")
        values = (
            *means,
            record["ledger"].get("lost"),
            record["ledger"].get("duplicated"),
            windows["wrong"] + windows["missing"] if windows else None,
            record["latency_ms"]["mean"],
            None if cpu_s is None else 1000 * cpu_s * S / length,
            None if sent is None else sent * S / length,
            cost.get("hosts"),
        )
        found.append(Row(record["strategy"], values, tuple(recovery["ended"] for recovery in recoveries)))
    return sorted(
        found,
        key=lambda row: (row.endings.count(OPEN), math.inf if row.values[0] is None else row.values[0]),
    )


def table(records: Sequence[Record]) -> Table:
    """The rows, as text; the first of several is the reference."""
    found = rows(records)
    endings = {ending for row in found for ending in row.endings}
    total, first = records[0]["replications"], strategy_name(records[0]["strategy"])
    note = wording.text("glance", total, first if len(records) > 1 else "", endings, WITH_LOSS)
    return Table(
        "At a glance",
        ("", *(measure.what for measure in MEASURES)),
        tuple((strategy_name(row.strategy), *row.cells) for row in found),
        (note,),
    )


# The key tables: recoveries, and what results say besides, a column for each result.

_LABELS = {entry.name: entry.label for entry in RECORD}
"""How readers' tables call the blocks of the record."""
_LATENCIES = ("end_to_end_ms", "latency_ms")
Recoveries = Sequence[Sequence[Record]]
"""The recoveries from one kind of failure, of each result."""


def overview(results: Sequence[Record], *, brief: bool = False) -> Table:
    """One column a result: recovery, stages, latency, throughput, roots, windows, cost."""
    notes = Notes()
    shown: list[Cells] = []
    for heading, recoveries in _by_failure(results).items():
        keys = {key for mine in recoveries for recovery in mine for key in recovery}
        shown += _first_rows(heading, recoveries, notes)
        shown += [("Its stages, s",), *_means(recoveries, notes, _stages(recoveries))]
        others = [column for column in measures() if column.name in keys][1:]
        shown += [("Other measures of the recovery",), *_means(recoveries, notes, others)]
        if not brief:
            shown += [("Tuples of the state, per recovery",)]
            shown += _means(recoveries, notes, block("recoveries", "state"))
        for name in _LATENCIES:
            label = f"{_LABELS[name]} in recovery"
            chosen = [column for column in block("recoveries", name) if column.brief or not brief]
            shown += [(f"{label}, ms",), *_means(recoveries, notes, chosen, label.lower())]
    shown += [*_predicted_rows(results), *_pooled_rows(results, notes, brief)]
    names = tuple(strategy_name(result["strategy"]) for result in results)
    meant = (TIMES_MEANT,) if any(result["recoveries"] for result in results) else ()
    return Table("Result", ("", *names), tuple(shown), (*meant, LATENCIES_MEANT, *notes.lines()))


def recovery_table(result: Record) -> Table:
    """Recoveries in short, below the strategy at a glance: stages that take time, latency, predictions; and
    how late readers are, which no latency has.
    """
    shown, notes = list[Cells](), Notes()
    for heading, recoveries in _by_failure([result]).items():
        stages = _means(recoveries, notes, _stages(recoveries))
        two = [one for one in block("recoveries", "end_to_end_ms") if one.key in ("median", "p99")]
        latencies = [row for row in _means(recoveries, notes, two, "latency") if row[1] != UNDEFINED]
        shown += _first_rows(heading, recoveries, notes)
        shown += [("Its stages, s",), *(row for row in stages if row[1] != "0")]
        shown += [("End-to-end latency meanwhile, ms",), *latencies] if latencies else []
    waits = {column.label: _value(result, column) for column in schema.DELAYS}
    known = [(label, number(value)) for label, value in waits.items() if value is not None]
    shown += [("Until readers see what is put out, s",), *known] if known else []
    shown += _predicted_rows([result])
    notes.lossy = False  # the glance explains it
    return Table("", ("", strategy_name(result["strategy"])), tuple(shown), notes.lines())


def _by_failure(results: Sequence[Record]) -> dict[str, Recoveries]:
    """The recoveries of each result, under a heading for each kind of failure and what it hits: a mean over
    different ones would say nothing. In the order in which they strike first.
    """
    every = sorted((r for result in results for r in result["recoveries"]), key=lambda r: r["failed_at_s"])
    kinds = list(dict.fromkeys((recovery["kind"], recovery["component"]) for recovery in every))
    found: dict[str, Recoveries] = {}
    for kind, component in kinds:
        what = "Recovery from" if kind in FAULTS else "Restart by the detector:"
        found["Recovery" if len(kinds) == 1 else f"{what} {kind}: {component}"] = [
            [r for r in result["recoveries"] if (r["kind"], r["component"]) == (kind, component)]
            for result in results
        ]
    return found


def _stages(recoveries: Recoveries) -> tuple[Column, ...]:
    keys = {key for mine in recoveries for recovery in mine for key in recovery["stages_s"]}
    return block("recoveries", "stages_s", {f"{key}_s" for key in keys})


def _first_rows(heading: str, recoveries: Recoveries, notes: Notes) -> list[Cells]:
    """The time to recover, and what was lost, if anything was; the heading says how many replications the
    means are of, and how many failures they had, if that is not one each.
    """
    shown = [named("recoveries", HEADLINE)]
    if any(recovery["roots_lost"] for mine in recoveries for recovery in mine):
        shown.append(replace(named("recoveries", "roots_lost"), label="roots lost by it"))
    mine = max(recoveries, key=len)
    count, of = len({recovery["replication"] for recovery in mine}), ""
    if len(mine) > 1:
        of = f" (mean of {count})"
        if len(mine) > count:
            of = f" (mean of {counted(count, 'replication')}, {len(mine)} failures)"
    return [(f"{heading}{of}",), *_means(recoveries, notes, shown)]


def _means(recoveries: Recoveries, notes: Notes, columns: Iterable[Column], noted: str = "") -> list[Cells]:
    """Means over the replications of each result; recoveries of one replication are averaged first."""
    shown: list[Cells] = []
    for column in columns:
        label, cells = column.label if len(column.record) > 1 else column.label_with_unit, []
        for mine in recoveries:
            mean = estimate(of_replications([(r["replication"], _value(r, column)) for r in mine], column))
            ended = [recovery["ended"] for recovery in mine] if column.name in TIMES else ()
            cells.append(notes.mean(mean, noted or label, column, ended))
        shown.append((label, *cells))
    return shown


def _value(record: Record, column: Column) -> Any:
    """What a record has in the place of a column; None if it has nothing there."""
    found: Any = record
    for key in column.record:
        found = (found or {}).get(key)
    return found


def _predicted_rows(results: Sequence[Record]) -> list[Cells]:
    """What the profile predicts, as ``204 (173 to 235)``; a value that is not reached by the end of the run
    is ``never``. No rows without a profile.
    """
    found = [result.get("prediction") or {} for result in results]
    known = [column for column in measures() if any(column.name in prediction for prediction in found)]
    levels = {one["level"] for prediction in found for one in prediction.values()}
    interval = f" ({100 * levels.pop():g} % interval)" if len(levels) == 1 else ""
    shown: list[Cells] = [(f"Predicted from the profile{interval}",)] if known else []
    for column in known:
        cells = []
        for one in (prediction.get(column.name) for prediction in found):
            values = [one[key] for key in ("estimate", "low", "high")] if one else []
            ends = ["never" if value is None else number(value) for value in values]
            cells.append("{} ({} to {})".format(*ends) if ends else UNDEFINED)
        shown.append((column.label_with_unit, *cells))
    return shown


def _pooled_rows(results: Sequence[Record], notes: Notes, brief: bool) -> list[Cells]:
    """What the results say outside of recoveries, block by block of the record."""
    several = results[0]["replications"] > 1
    pooled = f" ({results[0]['replications']} replications)" if several else ""
    of_each = " (mean per run)" if several else ""
    more = {
        "end_to_end_ms": " otherwise, ms",
        "latency_ms": " otherwise, ms",
        "throughput_per_s": ", tuples/s",
        "dependability": of_each,
        "ledger": pooled,
        "windows": pooled,
        "cost": of_each,
    }
    shown: list[Cells] = []
    for name, ending in more.items():
        shown.append((f"{_LABELS[name]}{ending}",))
        present = {key for result in results for key in result.get(name) or ()}
        for column in block("runs", name, present):
            if brief and not column.brief:
                continue
            values = [_value(result, column) for result in results]
            label = column.label_with_unit if name == "cost" else column.label
            if any(map(is_undefined, values)):
                noted = f"{_LABELS[name]} otherwise".lower() if name in _LATENCIES else label
                notes.undefined(noted, column)
            shown.append((label, *(_written(value, column) for value in values)))
    used = [result.get("utilisation") or {} for result in results]
    busiest = [(one, one.get("busiest")) for one in used]
    cells = [UNDEFINED if t is None else f"{number(one['tasks'][t])} ({t})" for one, t in busiest]
    shown.append(("busiest task", *cells))
    if any("blocked" in one for one in used):
        # the task that full queues held up for the greatest part of its time; 0: none
        cells = []
        for one in used:
            task, part = max((one.get("blocked") or {}).items(), key=lambda of: of[1], default=("", None))
            cells.append(UNDEFINED if part is None else f"{number(part)} ({task})" if part else "0")
        shown.append(("most blocked task", *cells))
    return shown


def _written(value: Any, column: Column) -> str:
    if is_undefined(value):
        return UNDEFINED
    if column.unit == "B":
        return size(value)
    if column.unit == "ratio":
        return f"{value:.2%}"
    return amount(value) if column.dtype == "int64" else number(value)


def pairs_table(pairs: Iterable[Paired], lossy: Collection[str] = ()) -> Table:
    """Paired differences, each strategy against the reference, with both intervals; no rows without
    failures. ``lossy``: strategies that have recovered with loss.
    """
    labels = {column.name: column.label_with_unit for column in measures()}
    for name in _LATENCIES:
        labels |= {one.name: f"{one.key} {_LABELS[name].lower()}, ms" for one in block("recoveries", name)}

    def told(name: str) -> str:
        return strategy_name(name) + (" (loss)" if name in lossy else "")

    def places(pair: Paired) -> int:
        return 2 if pair.difference.constant else max(2, formatting.places_for(pair.difference.half_width))

    def span(ends: tuple[float, float] | None, pair: Paired) -> str:
        return UNDEFINED if ends is None else " to ".join(fixed(end, places(pair)) for end in ends)

    def count(pair: Paired) -> str:
        undefined = pair.difference.undefined
        return f"{pair.difference.n}" + (f" (+{undefined} undefined)" if undefined else "")

    columns: dict[str, Callable[[Paired], str]] = {
        "": lambda pair: labels.get(pair.column, pair.column),
        "difference": lambda pair: fixed(pair.difference.mean, places(pair)),
        "95 % t-interval": lambda pair: span(pair.difference.t, pair),
        "95 % bootstrap": lambda pair: span(pair.difference.bootstrap, pair),
        "pairs": count,
    }
    notes = (
        "A pair is one replication: same seed, same luck, same failure under both strategies.",
        f"{UNDEFINED}: an interval needs two pairs. No row: the quantity is undefined under one of the two.",
        *([WITH_LOSS] if lossy else []),
    )
    known = (pair for pair in pairs if pair.difference.n)
    heading = lambda pair: f"{told(pair.first)} − {told(pair.second)}"  # noqa: E731
    return Table.of("Paired differences", known, columns, notes, heading=heading)
