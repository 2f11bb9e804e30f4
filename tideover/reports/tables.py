"""The one model of a table, and the key tables of results, as plain text.

The terminal and the HTML page show the same ones. `Table` is what all reports make; `Notes` collects its
footnotes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tideover.models.results import counted
from tideover.models.schema import (
    DELAYS,
    HEADLINE,
    LOSSY,
    OPEN,
    RECORD,
    TIMES,
    Column,
    block,
    measures,
    named,
)
from tideover.reports.formatting import (
    UNDEFINED,
    amount,
    fixed,
    is_undefined,
    number,
    places_for,
    size,
    strategy_name,
    with_ending,
)
from tideover.scenarios.statistics.intervals import Estimate, estimate, of_replications
from tideover.sim.faults import FAULTS
from tideover.sim.units import S, parse_duration

if TYPE_CHECKING:
    import pandas as pd

    from tideover.scenarios.statistics.intervals import Paired


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


def setup(results: Sequence[Record]) -> list[tuple[str, str]]:
    """What was simulated, as pairs of a label and a text; what differs between the results is listed."""
    scenarios = [result["scenario"] for result in results]
    runs = [one["run"] for one in scenarios if isinstance(one.get("run"), Mapping)]
    topologies = [one["topology"] for one in scenarios if isinstance(one.get("topology"), Mapping)]
    said = {
        "Scenario": _each(map(scenario_name, results)),
        "Description": _each(str(one.get("description") or "") for one in scenarios),
        "Components": _each(" → ".join(map(str, topology)) for topology in topologies),
        "Strategies" if len(results) > 1 else "Strategy": _each(
            strategy_name(result["strategy"]) for result in results
        ),
        "Failures": _failures(results),
        "Simulated time": _each(str(run.get("duration") or "") for run in runs),
        "Replications": _each(str(result["replications"]) for result in results),
        "Seed": _each(str(result["seed"]) for result in results),
    }
    return [(label, text) for label, text in said.items() if text]


def _failures(results: Sequence[Record], most: int = 6) -> str:
    every = (recovery for result in results for recovery in result["recoveries"])
    texts = (f"{one['kind']} of {one['component']} at {one['failed_at_s']:,.6g} s" for one in every)
    found = list(dict.fromkeys(texts))
    rest = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + rest if found else "none"


def _each(texts: Any) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def collected_warnings(results: Sequence[Record]) -> list[str]:
    """Every warning once; with the strategies that it holds for, if it does not hold for all."""
    found: dict[str, list[str]] = {}
    for result in results:
        for text in result["warnings"]:
            names = found.setdefault(str(text), [])
            name = strategy_name(result["strategy"])
            if name not in names:
                names.append(name)
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
    rows = tuple(
        (task, *(f"{100 * part:.1f} %" for part in (busy, held_up, max(0.0, 1 - busy - held_up))))
        for task in sorted(blocked, key=lambda task: -blocked[task])[:MOST_BLOCKED]
        for busy, held_up in [(found["tasks"][task], blocked[task])]
    )
    notes = ["Part of the time that each was up; blocked: a full queue further on kept it from doing more."]
    if len(blocked) > MOST_BLOCKED:
        notes.append(
            f"Of {len(blocked)} tasks the {MOST_BLOCKED} that are blocked most; tasks.parquet has all."
        )
    title = f"Busy, blocked, idle: {strategy_name(result['strategy'])}"
    return Table(title, ("task", "busy", "blocked", "idle"), rows, tuple(notes))


def flows_table(result: Record) -> Table:
    """What flows over each edge, per second."""
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
    def unended(self) -> int:
        """How many of its recoveries had not ended by the end of their run."""
        return self.endings.count(OPEN)

    @property
    def cells(self) -> tuple[str, ...]:
        """The values in words."""
        shown = [UNDEFINED if v is None else m.written(v) for m, v in zip(MEASURES, self.values, strict=True)]
        if self.unended:
            total = len(self.endings)
            ended = total - self.unended
            shown[0] = f"{shown[0]} ({ended}/{total})" if ended else "never"
        endings = [LOSSY] if LOSSY in self.endings else self.endings  # there is no room for how many of them
        return (with_ending(shown[0], endings), *shown[1:])


def rows(records: Iterable[Record]) -> list[Row]:
    """A row for each result, by the time to recover: the shortest first, at the end what is undefined."""
    found = [_row(record) for record in records]
    return sorted(found, key=lambda row: (row.unended, math.inf if row.values[0] is None else row.values[0]))


def _row(record: Record) -> Row:
    recoveries = record["recoveries"]
    ledger, windows, cost = record["ledger"], record["windows"], record["cost"]

    def each_second(name: str, times: float = 1) -> float | None:
        total = cost.get(name)
        if total is None:
            return None
        return times * total * S / parse_duration(record["scenario"]["run"]["duration"])

    values = (
        _mean(recoveries, HEADLINE),
        _mean(recoveries, "output_gap_s"),
        ledger.get("lost"),
        ledger.get("duplicated"),
        windows["wrong"] + windows["missing"] if windows else None,
        record["latency_ms"]["mean"],
        each_second("normal_cpu_s", 1000),
        each_second("normal_network_bytes"),
        cost.get("hosts"),
    )
    return Row(record["strategy"], values, tuple(recovery["ended"] for recovery in recoveries))


def _mean(recoveries: Sequence[Record], name: str) -> float | None:
    """Over the replications, of which each counts once."""
    values = [(r["replication"], r[name]) for r in recoveries]
    return estimate(of_replications(values, named("recoveries", name))).mean


def table(records: Sequence[Record]) -> Table:
    """The rows, as text; the first of several is the reference."""
    found = rows(records)
    shown = tuple((strategy_name(row.strategy), *row.cells) for row in found)
    total = records[0]["replications"]
    runs = "" if total == 1 else f" Roots and windows are of all {total} replications, the others are means."
    notes = "Normal: latency, mean, outside of recoveries; CPU and network of the run without failures. "
    notes += f"Windows wrong: or missing.{runs}"
    reference = f" {strategy_name(records[0]['strategy'])} is the reference." if len(records) > 1 else ""
    if any(row.unended for row in found):
        notes += " (n/m): n of m recoveries came to an end within their run; never: none did."
    if any(LOSSY in row.endings for row in found):
        notes += f" {WITH_LOSS}"
    columns = ("", *(measure.what for measure in MEASURES))
    return Table("At a glance", columns, shown, (f"{notes}{reference}",))


# The key tables.

Record = Mapping[str, Any]
"""A result as ``run --json`` prints it."""


@dataclass(frozen=True)
class Table:
    """The first ``text_columns`` are aligned left, others right. A row of one cell is a heading inside.

    A table without rows is not shown.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
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

        def cells(record: Any) -> tuple[str, ...]:
            return tuple(written(record) for written in columns.values())

        rows = tuple(map(cells, records)) if heading is None else grouped(records, heading, cells, key)
        return cls(title, tuple(columns), rows, tuple(notes), text_columns)


def grouped(
    records: Iterable[Any],
    heading: Callable[[Any], str],
    cells: Callable[[Any], tuple[str, ...]],
    key: Callable[[Any], Any] | None = None,
) -> tuple[tuple[str, ...], ...]:
    """Rows of a table: the cells of each record, under a heading wherever that (or ``key``) changes."""
    rows: list[tuple[str, ...]] = []
    for _, group in groupby(records, key or heading):
        part = list(group)
        rows += [(heading(part[0]),), *map(cells, part)]
    return tuple(rows)


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
_LABELS = {entry.name: entry.label for entry in RECORD}
"""How readers' tables call the blocks of the record."""
_LATENCIES = ("end_to_end_ms", "latency_ms")


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
        text = self._mean(found)
        if found.undefined:
            self.partial = True
            self.undefined(label, column)
            text += f" ({found.n} of {found.n + found.undefined})"
        self.lossy |= LOSSY in endings
        return with_ending(text, endings)

    def _mean(self, found: Estimate) -> str:
        if found.half_width is None or found.constant or found.mean is None:
            return number(found.mean)
        places = places_for(found.half_width)
        half_width = fixed(found.half_width, places)
        if not half_width.strip("0."):  # would only show noughts
            return number(found.mean)
        self.interval = True
        return f"{fixed(found.mean, places)} ± {half_width}"

    def lines(self) -> tuple[str, ...]:
        lines = ["±: half the width of the 95 % t-interval of the mean"] if self.interval else []
        if self.partial:
            lines.append("(n of m): mean over the n replications in which the value is defined")
        if self.lossy:
            lines.append(WITH_LOSS)
        told = self._reasons.items()
        return (
            *lines,
            *(f"{UNDEFINED} undefined ({', '.join(labels)}): {reason}" for reason, labels in told),
        )


def overview(results: Sequence[Record], *, brief: bool = False) -> Table:
    """One column a result: recovery, stages, latency, throughput, roots, windows, cost."""
    notes = Notes()
    rows: list[tuple[str, ...]] = []
    for heading, recoveries in _by_failure(results).items():
        rows += _recovery_rows(heading, recoveries, notes, brief)
    rows += _predicted_rows(results)
    rows += _pooled_rows(results, notes, brief)
    names = tuple(strategy_name(result["strategy"]) for result in results)
    meant = (TIMES_MEANT,) if any(result["recoveries"] for result in results) else ()
    return Table("Result", ("", *names), tuple(rows), (*meant, LATENCIES_MEANT, *notes.lines()))


def recovery_table(result: Record) -> Table:
    """Recoveries in short, below the strategy at a glance: stages that take time, latency, predictions; and
    how late readers are, which no latency has.
    """
    rows, notes = list[tuple[str, ...]](), Notes()
    for heading, recoveries in _by_failure([result]).items():
        stages = _means(recoveries, notes, block("recoveries", "stages_s", _present(recoveries)))
        two = [one for one in block("recoveries", "end_to_end_ms") if one.key in ("median", "p99")]
        latencies = [row for row in _means(recoveries, notes, two, "latency") if row[1] != UNDEFINED]
        rows += _first_rows(heading, recoveries, notes)
        rows += [("Its stages, s",), *(row for row in stages if row[1] != "0")]
        rows += [("End-to-end latency meanwhile, ms",), *latencies] if latencies else []
    waits = [(column.label, _value(result, column)) for column in DELAYS]
    if any(value is not None for _, value in waits):
        rows.append(("Until readers see what is put out, s",))
        rows += [(label, number(value)) for label, value in waits if value is not None]
    rows += _predicted_rows([result])
    notes.lossy = False  # the glance explains it
    return Table("", ("", strategy_name(result["strategy"])), tuple(rows), notes.lines())


def _by_failure(results: Sequence[Record]) -> dict[str, list[list[Record]]]:
    """The recoveries of each result, under a heading for each kind of failure and what it hits: a mean over
    different ones would say nothing. In the order in which they strike first.
    """
    every = sorted((r for result in results for r in result["recoveries"]), key=lambda r: r["failed_at_s"])
    kinds = list(dict.fromkeys((recovery["kind"], recovery["component"]) for recovery in every))
    found = {}
    for kind, component in kinds:
        what = "Recovery from" if kind in FAULTS else "Restart by the detector:"
        heading = "Recovery" if len(kinds) == 1 else f"{what} {kind}: {component}"
        found[heading] = [
            [r for r in result["recoveries"] if (r["kind"], r["component"]) == (kind, component)]
            for result in results
        ]
    return found


def _present(recoveries: Sequence[Sequence[Record]]) -> set[str]:
    """The stages that any of the recoveries has."""
    keys = {key for mine in recoveries for recovery in mine for key in recovery["stages_s"]}
    return {f"{key}_s" for key in keys}


def _recovery_rows(
    heading: str, recoveries: Sequence[Sequence[Record]], notes: Notes, brief: bool
) -> list[tuple[str, ...]]:
    """All of the recoveries from one kind of failure."""
    shown = _first_rows(heading, recoveries, notes)
    stages = block("recoveries", "stages_s", _present(recoveries))
    shown += [("Its stages, s",), *_means(recoveries, notes, stages)]
    keys = {key for mine in recoveries for recovery in mine for key in recovery}
    others = [column for column in measures() if column.name in keys][1:]
    shown += [("Other measures of the recovery",), *_means(recoveries, notes, others)]
    if not brief:
        shown += [
            ("Tuples of the state, per recovery",),
            *_means(recoveries, notes, block("recoveries", "state")),
        ]
    for name in _LATENCIES:
        label = f"{_LABELS[name]} in recovery"
        shown += [
            (f"{label}, ms",),
            *_means(recoveries, notes, _chosen("recoveries", name, brief), label.lower()),
        ]
    return shown


def _first_rows(heading: str, recoveries: Sequence[Sequence[Record]], notes: Notes) -> list[tuple[str, ...]]:
    """The time to recover, and what was lost, if anything was."""
    shown = [named("recoveries", HEADLINE)]
    if any(recovery["roots_lost"] for mine in recoveries for recovery in mine):
        shown.append(replace(named("recoveries", "roots_lost"), label="roots lost by it"))
    return [(f"{heading}{_counted(recoveries)}",), *_means(recoveries, notes, shown)]


def _means(
    recoveries: Sequence[Sequence[Record]], notes: Notes, columns: Iterable[Column], noted: str = ""
) -> list[tuple[str, ...]]:
    """Means over the replications of each result; recoveries of one replication are averaged first."""
    ended = [[recovery["ended"] for recovery in mine] for mine in recoveries]
    found = []
    for column in columns:
        label = column.label if len(column.record) > 1 else column.label_with_unit
        values = [[(each["replication"], _value(each, column)) for each in mine] for mine in recoveries]
        means = [estimate(of_replications(mine, column)) for mine in values]
        told = ended if column.name in TIMES else [()] * len(means)
        cells = zip(means, told, strict=True)
        found.append((label, *(notes.mean(mean, noted or label, column, how) for mean, how in cells)))
    return found


def _counted(recoveries: Sequence[Sequence[Record]]) -> str:
    """How many replications the means are of, and how many failures they had, if that is not one each."""
    mine = max(recoveries, key=len)
    count = len({recovery["replication"] for recovery in mine})
    if len(mine) == 1:
        return ""
    if len(mine) == count:
        return f" (mean of {count})"
    one = "replication" if count == 1 else "replications"
    return f" (mean of {count} {one}, {len(mine)} failures)"


def _chosen(table: str, name: str, brief: bool, present: Collection[str] = ()) -> list[Column]:
    return [column for column in block(table, name, present) if column.brief or not brief]


def _value(record: Record, column: Column) -> Any:
    """What a record has in the place of a column; None if it has nothing there."""
    found: Any = record
    for key in column.record:
        found = (found or {}).get(key)
    return found


def _predicted_rows(results: Sequence[Record]) -> list[tuple[str, ...]]:
    """What the profile predicts, with its interval; no rows without a profile."""
    found = [result.get("prediction") or {} for result in results]
    known = [column for column in measures() if any(column.name in prediction for prediction in found)]
    if not known:
        return []
    levels = {one["level"] for prediction in found for one in prediction.values()}
    interval = f" ({100 * levels.pop():g} % interval)" if len(levels) == 1 else ""
    return [
        (f"Predicted from the profile{interval}",),
        *((c.label_with_unit, *(_predicted(prediction.get(c.name)) for prediction in found)) for c in known),
    ]


def _predicted(one: Mapping[str, Any] | None) -> str:
    """``204 (173 to 235)``; a value that is not reached by the end of the run is ``never``."""
    if one is None:
        return UNDEFINED
    estimate, low, high = ("never" if one[k] is None else number(one[k]) for k in ("estimate", "low", "high"))
    return f"{estimate} ({low} to {high})"


def _pooled_rows(results: Sequence[Record], notes: Notes, brief: bool) -> list[tuple[str, ...]]:
    """What the results say outside of recoveries, block by block of the record."""

    def row(column: Column, noted: str) -> tuple[str, ...]:
        values = [_value(result, column) for result in results]
        label = column.label_with_unit if column.record[0] == "cost" else column.label
        dash = notes.undefined(noted or label, column) if any(map(is_undefined, values)) else UNDEFINED
        return (label, *(dash if is_undefined(value) else _written(value, column) for value in values))

    total = results[0]["replications"]
    pooled = "" if total == 1 else f" ({total} replications)"
    latencies = {name: f"{_LABELS[name]} otherwise" for name in _LATENCIES}
    headings = {name: f"{label}, ms" for name, label in latencies.items()} | {
        "throughput_per_s": f"{_LABELS['throughput_per_s']}, tuples/s",
        "dependability": _LABELS["dependability"] + ("" if total == 1 else " (mean per run)"),
        "ledger": f"{_LABELS['ledger']}{pooled}",
        "windows": f"{_LABELS['windows']}{pooled}",
        "cost": _LABELS["cost"] if total == 1 else f"{_LABELS['cost']} (mean per run)",
    }
    rows: list[tuple[str, ...]] = []
    for name, heading in headings.items():
        noted = latencies.get(name, "").lower()
        present = {key for result in results for key in result.get(name) or ()}
        rows += [(heading,), *(row(column, noted) for column in _chosen("runs", name, brief, present))]
    rows.append(("busiest task", *(_busiest(result) for result in results)))
    if any("blocked" in (result.get("utilisation") or {}) for result in results):
        rows.append(("most blocked task", *(_most_blocked(result) for result in results)))
    return rows


def _written(value: Any, column: Column) -> str:
    if column.unit == "B":
        return size(value)
    if column.unit == "ratio":
        return f"{value:.2%}"
    return amount(value) if column.dtype == "int64" else number(value)


def _busiest(result: Record) -> str:
    """``0.97 (count.3)``: the task that was busy for the greatest part of its time."""
    found = result.get("utilisation") or {}
    task = found.get("busiest")
    return UNDEFINED if task is None else f"{number(found['tasks'][task])} ({task})"


def _most_blocked(result: Record) -> str:
    """``0.71 (split.2)``: the task that full queues held up for the greatest part of its time; 0: none."""
    blocked = (result.get("utilisation") or {}).get("blocked") or {}
    task = max(blocked, key=lambda task: blocked[task], default=None)
    if task is None:
        return UNDEFINED
    return f"{number(blocked[task])} ({task})" if blocked[task] else "0"


def pairs_table(pairs: Iterable[Paired], lossy: Collection[str] = ()) -> Table:
    """Paired differences, each strategy against the reference, with both intervals; no rows without
    failures. ``lossy``: strategies that have recovered with loss.
    """

    def told(name: str) -> str:
        return f"{strategy_name(name)} (loss)" if name in lossy else strategy_name(name)

    labels = {column.name: column.label_with_unit for column in measures()}
    for name in _LATENCIES:
        what = _LABELS[name].lower()
        labels |= {one.name: f"{one.key} {what}, ms" for one in block("recoveries", name)}
    rows = grouped(
        (pair for pair in pairs if pair.difference.n),
        lambda pair: f"{told(pair.first)} − {told(pair.second)}",
        lambda pair: _pair_row(labels.get(pair.column, pair.column), pair),
    )
    notes = (
        "A pair is one replication: same seed, same luck, same failure under both strategies.",
        f"{UNDEFINED}: an interval needs two pairs. No row: the quantity is undefined under one of the two.",
    )
    columns = ("", "difference", "95 % t-interval", "95 % bootstrap", "pairs")
    return Table("Paired differences", columns, rows, (*notes, WITH_LOSS) if lossy else notes)


def _pair_row(label: str, pair: Paired) -> tuple[str, ...]:
    found = pair.difference
    places = 2 if found.constant else max(2, places_for(found.half_width))
    spans = [
        UNDEFINED if ends is None else f"{fixed(ends[0], places)} to {fixed(ends[1], places)}"
        for ends in (found.t, found.bootstrap)
    ]
    more = f" (+{found.undefined} undefined)" if found.undefined else ""
    return (label, fixed(found.mean, places), *spans, f"{found.n}{more}")
