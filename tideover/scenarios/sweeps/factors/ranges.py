"""Ranges: ``{from: 10/s, to: 100/s, steps: 10, scale: log}`` instead of a list of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tideover.scenarios import swept
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.nodes import Node

ENDS = ("from", "to")
SCALES = ("linear", "log")
MOST_STEPS = 10_000
_DIGITS = 6
"""Significant digits of what lies between the ends, so that tables can be read."""


@dataclass(frozen=True)
class Range:
    """Everything from ``low`` to ``high``, both in ``unit`` (``""``: plain numbers).

    ``ends``: both as they were written. ``whole``: whole numbers only. ``log``: evenly spread by logarithm.
    """

    low: float
    high: float
    ends: tuple[Any, Any]
    unit: str = ""
    whole: bool = False
    log: bool = False

    def at(self, part: float) -> Any:
        """The value at a part of the way, from 0 (``low``) to 1 (``high``), as a file would write it.

        >>> Range(1.0, 100.0, ("1 s", "100 s"), "s", log=True).at(0.5)
        '10 s'
        """
        if part in (0, 1):
            return self.ends[int(part)]
        return self._written(self._between(self.low, self.high, part))

    def drawn(self, part: float) -> Any:
        """The value of a draw from [0, 1]: uniform, or uniform by logarithm; of whole numbers, ``high`` is as
        likely as ``low``.
        """
        if not self.whole:
            return self._written(self._between(self.low, self.high, part))
        return min(int(self.high), math.floor(self._between(self.low, self.high + 1, part)))

    def _between(self, low: float, high: float, part: float) -> float:
        return low * (high / low) ** part if self.log else low + part * (high - low)

    def _written(self, value: float) -> Any:
        if self.whole:
            return math.floor(value + 0.5)
        size = value if self.log else self.high - self.low
        value = round(value, _DIGITS - 1 - math.floor(math.log10(abs(size))))
        return swept.written(value, self.unit) if self.unit else value


def is_range(node: Node) -> bool:
    """Whether a mapping stands for a range, and not for a value, which may have a ``from`` too (a bolt's)."""
    return node.get("to") is not None or node.get("steps") is not None


def read_range(node: Node, key: str, steps: bool, problems: list[Problem]) -> Range | None:
    """The range of a mapping, None if something is wrong with it; ``steps``: whether it may say how many."""
    before = len(problems)
    known = (*ENDS, *(["steps"] if steps else []), "scale")
    for name, child in node.items():
        if name not in known:
            problems.append(child.problem(f"{key}.{name}", f"unknown key; {suggest(name, known)}"))
    problems += [
        node.problem(f"{key}.{end}", "is missing; give both ends of a range, as in {from: 1 s, to: 9 s}")
        for end in ENDS
        if node.get(end) is None
    ]
    scale = node.get("scale")
    if scale is not None and scale.value not in SCALES:
        message = f"{scale.shown()} is no scale; allowed are {' and '.join(SCALES)}"
        problems.append(scale.problem(f"{key}.scale", message))
    if len(problems) > before:
        return None
    return _range(node, key, scale is not None and scale.value == "log", problems)


def values(node: Node, key: str, problems: list[Problem]) -> list[Node]:
    """The values of a range with ``steps``, both ends among them, each once."""
    found = read_range(node, key, True, problems)
    steps = node.get("steps")
    if steps is None or type(steps.value) is not int or not 2 <= steps.value <= MOST_STEPS:
        message = f"must be a number of values from 2 to {MOST_STEPS:,}"
        shown = "is missing" if steps is None else steps.shown()
        problems.append((steps or node).problem(f"{key}.steps", f"{shown}; it {message}"))
        return []
    if found is None:
        return []
    count = steps.value
    every = list(dict.fromkeys(found.at(step / (count - 1)) for step in range(count)))
    if len(every) < count and not found.log:
        what = "whole numbers (0.0 to 1.0 has fractions, 0 to 1 has not)" if found.whole else "such values"
        message = f"is {count}, and there are only {len(every)} {what}; give at most so many steps"
        problems.append(steps.problem(f"{key}.steps", message))
    return [node.like(value) for value in every]


def _range(node: Node, key: str, log: bool, problems: list[Problem]) -> Range | None:
    """The range of a mapping whose keys are there."""
    ends = [node.value[end] for end in ENDS]
    plain = [end.plain() for end in ends]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in plain)
    unit = "" if numbers else swept.unit_of(plain)
    if not (numbers or unit) or any(value is None for value in plain):
        message = (
            f"{ends[0].shown()} and {ends[1].shown()} are not two numbers, or two quantities of one kind"
        )
        problems.append(ends[1].problem(f"{key}.to", message))
        return None
    low, high = (float(swept.number(value, unit)) for value in plain)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        message = f"{ends[1].shown()} is not more than {ends[0].shown()}; a range goes up"
        problems.append(ends[1].problem(f"{key}.to", message))
        return None
    if log and low <= 0:
        message = f"{ends[0].shown()} has no logarithm; a range by logarithm begins above 0"
        problems.append(ends[0].problem(f"{key}.from", message))
        return None
    whole = numbers and all(isinstance(value, int) for value in plain)
    return Range(low, high, (plain[0], plain[1]), unit, whole, log)
