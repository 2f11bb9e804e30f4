"""What an objective may speak of: the numeric columns of results, and everyday names for some of them.

This is the one place of these names; docs/checks.md and the reference list them from here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import HEADLINE, TABLES, named

EVERYDAY = {
    "recovery": ("recoveries", HEADLINE),
    "median_latency": ("runs", "end_to_end_median_ms"),
    "mean_latency": ("runs", "end_to_end_mean_ms"),
    "p95_latency": ("runs", "end_to_end_p95_ms"),
    "p99_latency": ("runs", "end_to_end_p99_ms"),
    "max_latency": ("runs", "end_to_end_max_ms"),
    "throughput": ("runs", "throughput_mean_per_s"),
    "wrong_windows": ("runs", "windows_wrong"),
    "missing_windows": ("runs", "windows_missing"),
    "cost": ("runs", "price_per_h"),
    "utilisation": ("tasks", "utilisation"),
}
"""Everyday names, and the table and column that each stands for. Latencies are those that somebody waits:
from a root's first emission, however often it is sent again. ``utilisation``: of the busiest task.
"""

EVERYDAY_IN_TIME = {
    "mean_latency": ("timeline", "end_to_end_mean_ms"),
    "max_latency": ("timeline", "end_to_end_max_ms"),
}
"""The same where an objective is to hold for a part of the time."""

COUNTED = ("roots", "windows", "tuples", "hosts", "snapshots")
"""Units of which a whole number is counted; a limit may name them, or be the number alone."""

_ENDINGS = {"s": "_s", "ms": "_ms", "tuples/s": "_per_s", "B": "_bytes", "1/h": "_per_h"}
_MOST_NAMED = 6
_SURELY = 0.85
_NO_MEASURE = ("number", "index")
_STATISTIC = re.compile(r"mean|median|max|min|p[0-9]{1,2}(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Metric:
    """A numeric column of a table of results."""

    table: str
    column: Column

    @property
    def is_count(self) -> bool:
        """Whether it counts something."""
        return self.column.unit in COUNTED

    @property
    def is_extreme(self) -> bool:
        """Whether a run's value is a maximum or a minimum already."""
        return bool(re.search(r"(^|_)(max|min)(_|$)", self.column.name))


def find(name: str, in_time: bool = False) -> tuple[Metric, str]:
    """Metric and statistic of a name such as ``recovery_p95``; the statistic is empty if none is named.

    ``in_time``: among the columns of the timeline. A column's own name goes before a shorter one's with a
    statistic: ``throughput_min`` is the least of a run's seconds. Raises ValueError, with the nearest name.

    >>> metric, statistic = find("recovery_p95")
    >>> metric.table, metric.column.name, statistic
    ('recoveries', 'time_to_recover_s', 'p95')
    >>> find("throughput_min")[0].column.name
    'throughput_min_per_s'
    """
    known = names(in_time)
    if name in known:
        return known[name], ""
    base, _, statistic = name.rpartition("_")
    if base in known and _STATISTIC.fullmatch(statistic):
        return known[base], statistic
    raise ValueError(f"unknown metric {name!r}; {_hint(name, known)}")


@cache
def names(in_time: bool = False) -> Mapping[str, Metric]:
    """Every name of a metric, and what it means: ``table.column``, the column's name, the same without its
    unit, and the everyday names. Of two columns of one name that of ``runs`` is meant.
    """
    tables = ("timeline",) if in_time else ("runs", "recoveries")
    metrics = [Metric(table, column) for table in tables for column in _measured(table)]
    found: dict[str, Metric] = {}
    for form in ("{0}.{1}", "{0}.{2}", "{1}", "{2}"):
        for metric in metrics:
            column = metric.column
            short = column.name.removesuffix(_ENDINGS.get(column.unit, ""))
            found.setdefault(form.format(metric.table, column.name, short), metric)
    for everyday, (table, name) in (EVERYDAY_IN_TIME if in_time else EVERYDAY).items():
        found[everyday] = Metric(table, named(table, name))
    return found


def _measured(table: str) -> Iterable[Column]:
    """The numeric columns of a table that measure something."""
    for column in TABLES[table]:
        if column.dtype in ("int64", "float64") and column.unit not in _NO_MEASURE:
            yield column


def _hint(name: str, known: Mapping[str, Metric]) -> str:
    """The nearest names, with the statistic that was asked for, wherever it stands."""
    short = [one for one in known if "." not in one]
    first, last = name.split("_")[0], name.split("_")[-1]
    asked = next((step for step in (last, first) if _STATISTIC.fullmatch(step) and step != name), "")
    base = name.removesuffix(f"_{asked}").removeprefix(f"{asked}_") if asked else name
    near = [f"{base}_{asked}"] if asked and base in known else _close(name, short, _SURELY)
    if not near:
        family = {known[one]: one for one in short if base in one.split("_")}
        near = [*family.values()][:_MOST_NAMED]
    if not near:
        near = [f"{one}_{asked}" if asked else one for one in _close(base, short)]
    in_time = "timeline.backlog" in known
    everyday = ", ".join(EVERYDAY_IN_TIME if in_time else EVERYDAY)
    where = "table timeline" if in_time else "tables runs and recoveries"
    listed = f"known: {everyday}, and the numeric columns of the {where}"
    return f"did you mean {' or '.join(near)}? ({listed})" if near else listed


def _close(name: str, known: Sequence[str], cutoff: float = 0.6) -> list[str]:
    return difflib.get_close_matches(name[:100], known, 1, cutoff)
