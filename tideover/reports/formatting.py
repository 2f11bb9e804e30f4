"""Names and numbers as reports write them; called by all of them.

Undefined is an en dash everywhere. How a number is written is changed here, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tideover.models.schema import UNAFFECTED, remark

UNDEFINED = "–"

_STRATEGIES = {
    "none": "none (amnesia)",
    "source_replay": "source replay",
    "rsm": "R+SM",
    "active_replication": "active replication",
    "micro_batch": "micro-batches",
}


def strategy_name(kind: Any) -> str:
    """How a strategy is called in a sentence; what follows its kind stays (``active_replication k=2``).

    >>> strategy_name("rsm"), strategy_name("active_replication k=2"), strategy_name("my_own")
    ('R+SM', 'active replication k=2', 'my own')
    """
    head, space, rest = str(kind).partition(" ")
    return _STRATEGIES.get(head, head.replace("_", " ")) + space + rest


def is_undefined(value: Any) -> bool:
    """True for None, NaN and pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def number(value: Any, digits: int = 3) -> str:
    """At least ``digits`` significant digits, whole numbers in full, thousands grouped.

    >>> number(60.0), number(0.21349), number(1234567), number(57.84), number(None), number(0.0)
    ('60.0', '0.213', '1,234,567', '57.8', '–', '0')
    """
    if is_undefined(value):
        return UNDEFINED
    if isinstance(value, int) or value == 0:
        return f"{int(value):,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if places > 6:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    return f"{value:,.{places}f}".replace("-", "−")


def with_ending(time: str, endings: Collection[str]) -> str:
    """A time of recoveries, with what it is worth: it never stands alone where something was lost.

    >>> with_ending("17.5 s", ["recovered with loss"]), with_ending("0", ["not affected"])
    ('17.5 s (loss)', 'not affected')
    >>> with_ending("17.5 s", ["recovered", "recovered with loss"]), with_ending("17.5 s", ["recovered"])
    ('17.5 s (loss in 1 of 2)', '17.5 s')
    """
    said = remark(endings)
    if said in ("", UNAFFECTED):
        return said or time
    return f"{time} ({said})"


def amount(value: Any) -> str:
    """A count, or a mean of counts: at most one decimal.

    >>> amount(600), amount(600.0), amount(612.25)
    ('600', '600', '612.2')
    """
    if is_undefined(value):
        return UNDEFINED
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def fixed(value: Any, places: int) -> str:
    """A number with so many decimals, and a true minus sign; never a negative zero.

    >>> fixed(-0.04, 1), fixed(-57.83, 1)
    ('0.0', '−57.8')
    """
    if is_undefined(value):
        return UNDEFINED
    text = f"{value:,.{places}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def places_for(half_width: float | None) -> int:
    """Decimals that the half-width of an interval warrants: between 1 and 4.

    >>> places_for(0.6), places_for(0.02), places_for(12.0), places_for(None)
    (1, 2, 1, 1)
    """
    if not half_width:
        return 1
    return min(4, max(1, -math.floor(math.log10(half_width))))


def size(value: Any) -> str:
    """Bytes, with a decimal prefix.

    >>> size(4_213_000), size(999), size(0), size(None)
    ('4.21 MB', '999 B', '0 B', '–')
    """
    if is_undefined(value):
        return UNDEFINED
    for name, unit in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if abs(value) >= unit:
            return f"{number(float(value) / unit)} {name}"
    return f"{number(value if value == 0 else int(value))} B"


def plain(value: float) -> str:
    """A tick of an axis, thousands as k, millions as M.

    >>> plain(500.0), plain(20000.0), plain(2.5e6)
    ('500', '20k', '2.5M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def in_words(seconds: float) -> str:
    """A time as it is spoken.

    >>> in_words(0.234), in_words(66.0), in_words(120.0), in_words(7200.0)
    ('0.23 seconds', '66 seconds', '2 minutes', '2.0 hours')
    """
    if seconds < 9.5:
        return f"{seconds:.2g} seconds"
    if seconds < 119.5:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def capitalised(sentence: str) -> str:
    """The sentence with a capital letter; unlike ``str.capitalize`` it leaves the rest as it is."""
    return sentence[:1].upper() + sentence[1:]


def filled(parts: Iterable[str], width: int, between: str = " ", length: Callable[[str], int] = len) -> str:
    """The parts in lines of at most ``width``, as many in each as fit; a part is not broken.

    >>> filled(["detect 4 s", "restart 3 s", "replay 9 s"], 25, " · ").splitlines()
    ['detect 4 s · restart 3 s', 'replay 9 s']
    """
    lines: list[str] = []
    for part in parts:
        longer = f"{lines[-1]}{between}{part}" if lines else part
        if lines and length(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(lines)
