"""The words of objectives: what they may speak of, how large it has to be, and how sure a part is.

`objective` reads them, the reference lists them; another everyday name, or unit of a limit, is added here.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tideover.models.schema import HEADLINE, TABLES, Column, named
from tideover.scenarios.statistics.intervals import Interval
from tideover.sim.units import DAY, HOUR, MS, S, parse_duration, parse_rate, parse_size

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_PER_HOUR = re.compile(rf"({_NUMBER})\s*/\s*(h|d)")
_COUNT = re.compile(rf"({_NUMBER})(?:\s*([a-z]+))?")
_BARE = re.compile(_NUMBER)


def parse_limit(text: str, column: Column) -> float:
    """The limit in the unit of the column; raises ValueError, which says what is allowed.

    >>> from tideover.models.schema import named
    >>> parse_limit("500 ms", named("recoveries", "catch_up_s"))
    0.5
    >>> parse_limit("99.5 %", named("runs", "availability"))
    0.995
    """
    unit = column.unit
    if unit in ("s", "ms"):
        return parse_duration(text) / (S if unit == "s" else MS)
    if unit == "ratio":
        return parse_share(text)
    if unit == "tuples/s":
        return parse_rate(text)
    if unit == "B":
        return float(parse_size(text))
    if unit == "1/h":
        match = _PER_HOUR.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a price per time; write 4.5/h or 108/d")
        return float(match[1]) * (1 if match[2] == "h" else HOUR / DAY)
    match = _COUNT.fullmatch(text) if unit in COUNTED else _BARE.fullmatch(text)
    if match is None or (match.lastindex == 2 and match[2] not in (unit, unit.removesuffix("s"))):
        raise ValueError(f"{text!r} is not a number of {unit}; write a number, as 0 or 5")
    return float(match[1] if unit in COUNTED else match[0])


def parse_share(text: str) -> float:
    """A percentage as a part of one.

    >>> parse_share("95 %")
    0.95
    """
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a percentage; write a number and %, such as 99.9 %")
    share = Fraction(match[1]) / 100
    if share > 1:
        raise ValueError(f"{text!r} is more than the whole; at most 100 %")
    return float(share)


def of_fraction(hits: int, n: int, level: float) -> Interval:
    """The interval of a probability of which ``hits`` of ``n`` tries were seen: Clopper and Pearson (1934),
    "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 26:404-413.
    It covers with at least ``level``.

    >>> [round(end, 4) for end in of_fraction(0, 20, 0.95)]
    [0.0, 0.1684]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def bound_of_fraction(hits: int, n: int, level: float) -> float:
    """The one-sided upper bound of the same, at a level above a half. For no hit it is
    1 - (1 - level)^(1/n), about 3/n at 95 %: the rule of three (Hanley and Lippman-Hand (1983), "If nothing
    goes wrong, is everything all right?", JAMA 249:1743-1745).

    >>> round(bound_of_fraction(0, 100, 0.95), 4)
    0.0295
    """
    return of_fraction(hits, n, 2 * level - 1)[1]


def least_tries(share: float, level: float) -> int:
    """So many tries at least, all of them hits, put the whole interval of ``of_fraction`` at or above
    ``share``, which is less than 1.

    >>> least_tries(0.95, 0.95), least_tries(0.99, 0.95)
    (72, 368)
    """
    return max(1, math.ceil(math.log((1 - level) / 2) / math.log(share) - 1e-9)) if share > 0 else 1


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
from a root's first emission, however often it is sent again. ``utilisation``: of the busiest task. This is
the one place of these names; docs/checks.md and the reference list them from here.
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
    def is_asked_of_every_run(self) -> bool:
        """Whether, where no statistic is named, every run is meant: of a count, a maximum or a minimum."""
        return self.column.unit in COUNTED or bool(re.search(r"(^|_)(max|min)(_|$)", self.column.name))


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
    metrics = [
        Metric(table, column)
        for table in tables
        for column in TABLES[table]
        if column.dtype in ("int64", "float64") and column.unit not in _NO_MEASURE
    ]
    found: dict[str, Metric] = {}
    for form in ("{0}.{1}", "{0}.{2}", "{1}", "{2}"):
        for metric in metrics:
            column = metric.column
            short = column.name.removesuffix(_ENDINGS.get(column.unit, ""))
            found.setdefault(form.format(metric.table, column.name, short), metric)
    for everyday, (table, name) in (EVERYDAY_IN_TIME if in_time else EVERYDAY).items():
        found[everyday] = Metric(table, named(table, name))
    return found


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
