"""Strategies at a glance: a row for each, with what it does to a failure, and what it costs without one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tideover.models.schema.endings import LOSSY, OPEN
from tideover.models.schema.fields import HEADLINE, named
from tideover.reports.formatting import UNDEFINED, amount, number, size, strategy_name, with_ending
from tideover.reports.tables import WITH_LOSS, Record, Table
from tideover.scenarios.statistics.estimates import estimate
from tideover.scenarios.statistics.replications import of_replications
from tideover.sim.units import S, parse_duration

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
    values = (
        _mean(recoveries, HEADLINE),
        _mean(recoveries, "output_gap_s"),
        ledger.get("lost"),
        ledger.get("duplicated"),
        windows["wrong"] + windows["missing"] if windows else None,
        record["latency_ms"]["mean"],
        _each_second(record, "normal_cpu_s", 1000),
        _each_second(record, "normal_network_bytes"),
        cost.get("hosts"),
    )
    return Row(record["strategy"], values, tuple(recovery["ended"] for recovery in recoveries))


def _each_second(record: Record, name: str, times: float = 1) -> float | None:
    """A cost of the run without failures, in each of its seconds."""
    total = record["cost"].get(name)
    return (
        None if total is None else times * total * S / parse_duration(record["scenario"]["run"]["duration"])
    )


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
