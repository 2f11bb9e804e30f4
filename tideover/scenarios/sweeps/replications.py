"""How many replications each point has: a number, or as many as make an interval narrow enough.

```yaml
replications: {until: time_to_recover_s, half_width: 5 %, least: 5, most: 200, level: 95 %}
```
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tideover.models.schema.columns import Column
from tideover.models.schema.fields import TABLES
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.nodes import Node
from tideover.scenarios.statistics import student
from tideover.sim.units import MS, S, parse_duration, parse_size

_KEYS = ("until", "half_width", "least", "most", "level")
_PARSERS: dict[str, Callable[[str], float]] = {
    "s": lambda text: parse_duration(text) / S,
    "ms": lambda text: parse_duration(text) / MS,
    "B": parse_size,
}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%")
_LEAST, _MOST, _LEVEL = 5, 200, 0.95
_MOST_ALLOWED = 100_000


@dataclass(frozen=True)
class Fixed:
    """So many replications of every point."""

    count: int

    @property
    def least(self) -> int:
        """Replications that every point has."""
        return self.count

    @property
    def most(self) -> int:
        """More than these no point has."""
        return self.count


@dataclass(frozen=True)
class Until:
    """Replications until the confidence interval of the mean of ``metric``, a column of runs or recoveries,
    is at most ``half_width`` wide on each side: in the column's unit, or a part of the mean if ``relative``.
    """

    metric: str
    half_width: float
    relative: bool
    least: int = _LEAST
    most: int = _MOST
    level: float = _LEVEL

    def further(self, done: int, n: int, mean: float, std: float) -> int:
        """How many replications a point should have next; ``done`` if these are enough, or ``most`` allowed.

        ``done``: replications that there are, of which ``n`` have a value, with this mean and standard
        deviation (of n - 1 degrees of freedom; NaN where undefined). It is the least number at which
        Student's interval is narrow enough, should the deviation stay what it is (Law, Simulation Modeling
        and Analysis, section 9.4.1), at most twice ``done``: the deviation of few values may be far off.
        """
        if done < self.least:
            return self.least
        limit = min(2 * done, self.most)
        if n < 2 or done >= self.most:
            return max(done, limit)
        if self.narrow(n, mean, std):
            return done
        target = self._target(mean)
        low, high = n, max(n + 1, n * limit // done)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._half(middle, std) <= target else (middle, high)
        return min(limit, max(done + 1, math.ceil(high * done / n)))

    def narrow(self, n: int, mean: float, std: float) -> bool:
        """Whether the interval of ``n`` values is as narrow as was asked."""
        return n > 1 and self._half(n, std) <= self._target(mean)

    def _target(self, mean: float) -> float:
        return self.half_width * abs(mean) if self.relative else self.half_width

    def _half(self, n: int, std: float) -> float:
        """Half the width of Student's interval of n values."""
        return student.half_width(n, std, self.level)


def metrics() -> dict[str, Column]:
    """The columns of runs and recoveries that have a mean, by what a summary calls them."""
    from tideover.scenarios.sweeps.summary import metric_names

    return {
        names[column.name]: column
        for table in ("runs", "recoveries")
        for names in (metric_names(table),)
        for column in TABLES[table]
        if column.name in names
    }


def read(node: Node, problems: list[Problem]) -> Until | None:
    """What a mapping under ``replications`` says; None if something is wrong with it."""
    before = len(problems)
    for key, child in node.items():
        if key not in _KEYS:
            problems.append(child.problem(f"replications.{key}", f"unknown key; {suggest(key, _KEYS)}"))
    metric = _metric(node, problems)
    width = _width(node, metric and metric[1], problems)
    least = _whole(node, "least", 2, _LEAST, problems)
    most = _whole(node, "most", max(2, least), max(_MOST, least), problems)
    level = node.get("level")
    confidence = _LEVEL if level is None else _percent(level.value)
    if confidence is None or not 0.5 <= confidence < 1:
        message = "must be a confidence of at least 50 % and less than 100 %, as in 95 %"
        problems.append((level or node).problem("replications.level", message))
    if len(problems) > before or metric is None or width is None or confidence is None:
        return None
    return Until(metric[0], width[0], width[1], least, most, confidence)


def _metric(node: Node, problems: list[Problem]) -> tuple[str, Column] | None:
    until = node.get("until")
    if until is None:
        problems.append(node.problem("replications.until", "is missing; give a column, as time_to_recover_s"))
        return None
    known = metrics()
    if not isinstance(until.value, str) or until.value not in known:
        hint = suggest(str(until.plain()), known)
        problems.append(until.problem("replications.until", f"{until.shown()} is no number of a run; {hint}"))
        return None
    return until.value, known[until.value]


def _width(node: Node, column: Column | None, problems: list[Problem]) -> tuple[float, bool] | None:
    """Half the width, and whether it is a part of the mean."""
    given, key = node.get("half_width"), "replications.half_width"
    if given is None:
        message = "is missing; give a part of the mean, as 5 %, or a width in the unit of the column"
        problems.append(node.problem(key, message))
        return None
    part = _percent(given.value)
    if part is not None and part > 0:
        return part, True
    if column is None:
        return None
    try:
        value = _amount(given.value, column.unit)
    except ValueError as error:
        problems.append(given.problem(key, f"{error}; or give a part of the mean, as 5 %"))
        return None
    if not (math.isfinite(value) and value > 0):
        problems.append(given.problem(key, f"must be more than 0, not {given.shown()}"))
        return None
    return value, False


def _amount(value: Any, unit: str) -> float:
    """A width in the unit of a column; raises ValueError."""
    if unit in _PARSERS:
        return float(_PARSERS[unit](str(value)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number ({unit})")
    return float(value)


def _percent(value: Any) -> float | None:
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None else float(match[1]) / 100


def _whole(node: Node, key: str, least: int, default: int, problems: list[Problem]) -> int:
    given = node.get(key)
    if given is None:
        return default
    if type(given.value) is not int or not least <= given.value <= _MOST_ALLOWED:
        message = f"must be a whole number from {least:,} to {_MOST_ALLOWED:,}, not {given.shown()}"
        problems.append(given.problem(f"replications.{key}", message))
        return default
    return int(given.value)
