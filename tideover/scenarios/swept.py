"""Swept values in tables.

A swept key whose values are all durations, rates, sizes, bandwidths, percentages or times of day has a
column of numbers: in ``s``, ``1/s``, ``B``, ``B/s``, ``%`` or ``h``. Any other has its values as they were
written (unit ``""``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tideover.sim.time_of_day import format_time_of_day, parse_time_of_day
from tideover.sim.units import (
    HOUR,
    S,
    format_bandwidth,
    format_duration,
    format_percent,
    format_rate,
    format_size,
    parse_bandwidth,
    parse_duration,
    parse_percent,
    parse_rate,
    parse_size,
)

_READ: dict[str, Callable[[str], float]] = {
    "s": lambda text: parse_duration(text) / S,
    "1/s": parse_rate,
    "B": parse_size,
    "B/s": parse_bandwidth,
    "%": lambda text: 100 * parse_percent(text),
    "h": lambda text: parse_time_of_day(text) / HOUR,
}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "s": lambda value: format_duration(round(value * S)),
    "1/s": format_rate,
    "B": lambda value: format_size(round(value)),
    "B/s": lambda value: format_bandwidth(round(value)),
    "%": lambda value: format_percent(value / 100),
    "h": lambda value: format_time_of_day(round(value * HOUR)),
}


def unit_of(values: Iterable[Any]) -> str:
    """The unit in which all of these values are quantities; ``""`` if there is none.

    >>> unit_of(["30 s", "1m30s", None]), unit_of(["10/s"]), unit_of(["rsm", "30 s"]), unit_of([1, 2])
    ('s', '1/s', '', '')
    """
    given = [value for value in values if value is not None]
    units = (unit for unit in _READ if given and all(_is(value, unit) for value in given))
    return next(units, "")


def number(value: Any, unit: str) -> Any:
    """A swept value as a table holds it: in its unit (None: NaN); without one as it is, but a list or a
    mapping as text.

    >>> number("1m30s", "s"), number("rsm", ""), number([1, 2], "")
    (90.0, 'rsm', '[1, 2]')
    """
    if unit:
        return float("nan") if value is None else float(_READ[unit](value))
    return text(value) if isinstance(value, list | dict) else value


def text(value: Any) -> str:
    """A swept value that was not turned into a number, as a table or a message shows it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def written(value: float, unit: str) -> str:
    """A number of a swept column with its unit, as a file writes it.

    >>> written(90.0, "s"), written(10.0, "1/s")
    ('90 s', '10/s')
    """
    return _WRITTEN[unit](value)


def _is(value: Any, unit: str) -> bool:
    try:
        _READ[unit](value)
    except (AttributeError, ValueError):
        return False
    return True
