"""The key tables, as plain text: the terminal and the HTML page show the same ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tideover.models.schema.columns import Column
from tideover.models.schema.endings import LOSSY, TIMES
from tideover.models.schema.fields import HEADLINE, RECORD, block, measures, named
from tideover.models.schema.sinks import DELAYS
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
from tideover.scenarios.statistics.estimates import Estimate, estimate
from tideover.scenarios.statistics.replications import of_replications
from tideover.sim.faults.base import FAULTS

if TYPE_CHECKING:
    from tideover.scenarios.statistics.paired import Paired

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
    rows += _readers_rows(result)
    rows += _predicted_rows([result])
    notes.lossy = False  # the glance explains it
    return Table("", ("", strategy_name(result["strategy"])), tuple(rows), notes.lines())


def _readers_rows(result: Record) -> list[tuple[str, ...]]:
    """With a sink that commits what it puts out: how long readers wait for it; otherwise no rows."""
    waits = [(c.label, _value(result, c)) for c in DELAYS]
    rows = [(label, number(value)) for label, value in waits if value is not None]
    return [("Until readers see what is put out, s",), *rows] if rows else []


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


def _measured(recoveries: Sequence[Sequence[Record]]) -> list[Column]:
    """The measures that any of the recoveries has."""
    keys = {key for mine in recoveries for recovery in mine for key in recovery}
    return [column for column in measures() if column.name in keys]


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
    shown += [("Other measures of the recovery",), *_means(recoveries, notes, _measured(recoveries)[1:])]
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
    together = "" if total == 1 else f" ({total} replications)"
    latencies = {name: f"{_LABELS[name]} otherwise" for name in _LATENCIES}
    headings = {name: f"{label}, ms" for name, label in latencies.items()} | {
        "throughput_per_s": f"{_LABELS['throughput_per_s']}, tuples/s",
        "dependability": _LABELS["dependability"] + ("" if total == 1 else " (mean per run)"),
        "ledger": f"{_LABELS['ledger']}{together}",
        "windows": f"{_LABELS['windows']}{together}",
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
