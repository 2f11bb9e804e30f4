"""Constraints between factors: ``where: [checkpoint_interval < count.window, hosts >= strategy.k + 1]``.

A constraint compares two sums of products of keys and values; points that break one are left out. A key may
be shortened to an end that no other swept key has, and need not be swept if the scenario gives it. It is read
by this grammar, and never evaluated as a program:

    constraint = side ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") side
    side       = product {(" + " | " - ") product}
    product    = term {" * " term}
    term       = key | number | quantity | text
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tideover.scenarios import swept
from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.nodes import Node
from tideover.scenarios.sweeps.factors.axes import Axis
from tideover.scenarios.sweeps.factors.designs import FOR_INDICES
from tideover.scenarios.sweeps.factors.samples import Sampled
from tideover.scenarios.yaml_source import scalar

_COMPARISON = re.compile(r"([^<>=!]+)(<=|>=|==|!=|=|<|>)([^<>=!]+)")
_KEY = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
_EQUAL = ("=", "==", "!=")
_CLOSE = 1e-9
"""Relative difference up to which two numbers count as equal: 3 * 0.1 s is 0.3 s."""


@dataclass(frozen=True)
class Term:
    """A swept key, or a value."""

    key: str | None
    value: Any = None


Sum = tuple[tuple[int, tuple[Term, ...]], ...]
"""Products, each with its sign."""


@dataclass(frozen=True)
class Constraint:
    """A comparison of two sums."""

    left: Sum
    sign: str
    right: Sum

    def holds(self, axes: Sequence[Axis]) -> np.ndarray:
        """Whether it holds, by the position on each axis (an axis that it says nothing of has length 1).

        Raises ValueError for values that cannot be compared.
        """
        columns = _Columns(axes)
        left, right = columns.total(self.left), columns.total(self.right)
        if left.unit != right.unit:
            raise ValueError(f"compares {_what(left.unit)} with {_what(right.unit)}")
        if left.unit == _TEXT and self.sign not in _EQUAL:
            raise ValueError(f"compares texts by {self.sign}; they can only be equal or not")
        return _compared(left.numbers, self.sign, right.numbers, left.unit == _TEXT)


_TEXT = "text"


@dataclass(frozen=True)
class _Amounts:
    """Numbers in a unit, or texts, by the position on each axis."""

    numbers: np.ndarray
    unit: str


class _Columns:
    """The values of swept keys, each along its axis."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = axes
        self.places = {f.key: (a, i) for a, axis in enumerate(axes) for i, f in enumerate(axis.factors)}

    def total(self, side: Sum) -> _Amounts:
        """A sum of products."""
        products = [self._product(terms) for _, terms in side]
        found = products[0]
        for (sign, _), product in zip(side[1:], products[1:], strict=True):
            if found.unit != product.unit or product.unit == _TEXT:
                raise ValueError(f"adds {_what(product.unit)} to {_what(found.unit)}")
            found = _Amounts(found.numbers + sign * product.numbers, found.unit)
        return found

    def _product(self, terms: Sequence[Term]) -> _Amounts:
        first, *others = map(self._term, terms)
        for other in others:
            units = [unit for unit in (first.unit, other.unit) if unit]
            if len(units) > 1 or _TEXT in units:
                raise ValueError(
                    f"multiplies {_what(first.unit)} by {_what(other.unit)}; one must be a number"
                )
            first = _Amounts(first.numbers * other.numbers, "".join(units))
        return first

    def _term(self, term: Term) -> _Amounts:
        if term.key is None:
            return _amounts([term.value], len(self.axes), 0)
        place, column = self.places[term.key]
        return _amounts(_column(self.axes[place], column), len(self.axes), place)


def _column(axis: Axis, column: int) -> list[Any]:
    return [axis.at(position)[column].plain() for position in range(len(axis))]


def _amounts(values: Sequence[Any], axes: int, place: int) -> _Amounts:
    """Values along an axis. Nothing (null) is neither equal to, nor less, nor more than anything."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        unit = ""
        found = np.array([np.nan if value is None else value for value in values], float)
    elif unit := swept.unit_of(values):
        found = np.array([swept.number(value, unit) for value in values], float)
    else:
        unit = _TEXT
        found = np.array([None if value is None else swept.text(value) for value in values], object)
    shape = [1] * axes
    shape[place] = len(values)
    return _Amounts(found.reshape(shape), unit)


def _compared(left: np.ndarray, sign: str, right: np.ndarray, texts: bool) -> np.ndarray:
    equal = np.asarray(left == right, bool) if texts else np.isclose(left, right, rtol=_CLOSE, atol=0)
    if sign in _EQUAL:
        return ~equal if sign == "!=" else equal
    less = left < right if sign.startswith("<") else left > right
    found: np.ndarray = (less | equal) if sign.endswith("=") else (less & ~equal)
    return found


def _what(unit: str) -> str:
    return {_TEXT: "a text", "": "a number"}.get(unit, f"a quantity in {unit}")


def read(
    block: Node | None, axes: Sequence[Axis], base: Node, problems: list[Problem]
) -> Iterator[Constraint]:
    """The constraints of a block ``where``; ``base``: the scenario, whose keys they may name."""
    if block is None or block.value is None:
        return
    if not isinstance(block.value, list):
        message = f"must be a list of comparisons, as in [checkpoint_interval < 30 s], not {block.shown()}"
        problems.append(block.problem("where", message))
        return
    for axis in axes:
        if isinstance(axis, Sampled) and axis.design in FOR_INDICES and block.value:
            message = f"does not go with design: {axis.design}, of whose points none may be left out"
            problems.append(block.problem("where", message))
    for number, node in enumerate(block.value):
        try:
            found = _parsed(node, axes, base)
            found.holds(axes)
            yield found
        except ValueError as error:
            shown = f"{node.value}: {error}" if isinstance(node.value, str) else str(error)
            problems.append(node.problem(f"where.{number}", shown))


def _parsed(node: Node, axes: Sequence[Axis], base: Node) -> Constraint:
    """The constraint of a text; raises ValueError that says what is wrong, and what is allowed."""
    match = _COMPARISON.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        raise ValueError(
            "is no comparison; write two sides with one of < <= > >= = != between, "
            "as in 'strategy.checkpoint_interval < 30 s'"
        )
    names = _Names(axes, base)
    left, sign, right = match[1].strip(), match[2], match[3].strip()
    found = Constraint(names.side(left), sign, names.side(right))
    if not any(term.key for side in (found.left, found.right) for _, terms in side for term in terms):
        raise ValueError(f"names no swept key ({', '.join(names.swept)})")
    return found


class _Names:
    """What the words of a constraint stand for."""

    def __init__(self, axes: Sequence[Axis], base: Node) -> None:
        self.axes = axes
        self.swept = [factor.key for axis in axes for factor in axis.factors]
        self.base = base

    def side(self, text: str) -> Sum:
        """The sum that a side is."""
        first, *others = re.split(r"\s([+-])\s", text)
        signed = [("+", first), *zip(others[::2], others[1::2], strict=True)]
        return tuple(
            (1 if sign == "+" else -1, tuple(self._term(word.strip()) for word in product.split("*")))
            for sign, product in signed
        )

    def _term(self, word: str) -> Term:
        if not word:
            raise ValueError("has nothing on one side of a sign")
        value = scalar(word)
        if not isinstance(value, str) or swept.unit_of([value]):
            return Term(None, value)
        if not _KEY.fullmatch(word):
            raise ValueError(f"{word!r} is neither a key nor a value; known keys: {', '.join(self.swept)}")
        ends = [key for key in self.swept if f".{key}".endswith(f".{word}")]
        if word in ends or len(ends) == 1:
            return Term(word if word in ends else ends[0])
        if ends:
            raise ValueError(f"{word} may be {' or '.join(ends)}; write more of it")
        there = self.base.get(*word.split("."))
        if there is not None and not isinstance(there.value, dict | list):
            return Term(None, there.value)
        if word not in self._texts():
            known = [*self.swept, *self._texts()]
            raise ValueError(f"{word!r} is neither a key nor a value of one; {suggest(word, known)}")
        return Term(None, word)

    def _texts(self) -> list[str]:
        """The values of swept keys that are words."""
        columns = ((axis, i) for axis in self.axes for i, _ in enumerate(axis.factors))
        values = (value for axis, i in columns for value in _column(axis, i))
        return list(dict.fromkeys(v for v in values if isinstance(v, str) and _KEY.fullmatch(v)))
