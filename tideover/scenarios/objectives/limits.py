"""The limit of an objective: a text with a unit, as a number in the unit of its column."""

from __future__ import annotations

import re
from fractions import Fraction

from tideover.models.schema.columns import Column
from tideover.scenarios.objectives.metrics import COUNTED
from tideover.sim.units import DAY, HOUR, MS, S, parse_duration, parse_rate, parse_size

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_PER_HOUR = re.compile(rf"({_NUMBER})\s*/\s*(h|d)")
_COUNT = re.compile(rf"({_NUMBER})(?:\s*([a-z]+))?")
_BARE = re.compile(_NUMBER)


def parse_limit(text: str, column: Column) -> float:
    """The limit in the unit of the column; raises ValueError, which says what is allowed.

    >>> from tideover.models.schema.fields import named
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
