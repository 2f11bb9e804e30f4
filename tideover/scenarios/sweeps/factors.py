"""Factors: keys of a scenario that take several values, and which of their combinations count."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.precedence import Setting
from tideover.scenarios.yaml_source import Giver, Node, scalar
from tideover.sim.units import (
    HOUR,
    S,
    format_bandwidth,
    format_duration,
    format_percent,
    format_rate,
    format_size,
    format_time_of_day,
    parse_bandwidth,
    parse_duration,
    parse_percent,
    parse_rate,
    parse_size,
    parse_time_of_day,
)

# Swept values in tables.
#
# A swept key whose values are all durations, rates, sizes, bandwidths, percentages or times of day has a
# column of numbers: in ``s``, ``1/s``, ``B``, ``B/s``, ``%`` or ``h``. Any other has its values as they were
# written (unit ``""``).

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


def as_number(value: Any, unit: str) -> Any:
    """A swept value as a table holds it: in its unit (None: NaN); without one as it is, but a list or a
    mapping as text.

    >>> as_number("1m30s", "s"), as_number("rsm", ""), as_number([1, 2], "")
    (90.0, 'rsm', '[1, 2]')
    """
    if unit:
        return float("nan") if value is None else float(_READ[unit](value))
    return as_text(value) if isinstance(value, list | dict) else value


def as_text(value: Any) -> str:
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


# Axes of a sweep: every combination of a position on each is a point.


@dataclass(frozen=True)
class Factor:
    """A swept key, and what the sweep's file calls it: ``grid.run.seed``."""

    key: str
    shown: str

    def set_to(self, node: Node) -> Setting:
        """The setting of the key to a value, which knows where it was written."""
        return Setting(self.key, node.given(giver=Giver.POINT, key=self.key, shown=self.shown))


class Axis(Protocol):
    """Factors that go together, and the values that they take at each position."""

    @property
    def factors(self) -> tuple[Factor, ...]:
        """In the order of the file."""

    def __len__(self) -> int:
        """Number of positions."""

    def at(self, position: int) -> tuple[Node, ...]:
        """A value for each factor."""

    def units(self) -> Iterator[str]:
        """For each factor, the unit in which tables hold its values (`tideover.scenarios.sweeps.factors`)."""


@dataclass(frozen=True)
class Listed:
    """Values as a file lists them: ``rows`` has a value for each factor; one factor, or several in step."""

    factors: tuple[Factor, ...]
    rows: tuple[tuple[Node, ...], ...]

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.rows)

    def at(self, position: int) -> tuple[Node, ...]:
        """A value for each factor."""
        return self.rows[position]

    def units(self) -> Iterator[str]:
        """The unit of each factor's values."""
        for column in zip(*self.rows, strict=True):
            yield unit_of(node.plain() for node in column)


# Ranges: ``{from: 10/s, to: 100/s, steps: 10, scale: log}`` instead of a list of values.

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
        return written(value, self.unit) if self.unit else value


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
    unit = "" if numbers else unit_of(plain)
    if not (numbers or unit) or any(value is None for value in plain):
        message = (
            f"{ends[0].shown()} and {ends[1].shown()} are not two numbers, or two quantities of one kind"
        )
        problems.append(ends[1].problem(f"{key}.to", message))
        return None
    low, high = (float(as_number(value, unit)) for value in plain)
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


# Factors as files list them: ``grid``, a product, and ``zip``, groups of factors that go in step.


def grid(given: Sequence[tuple[Factor, Node]], problems: list[Problem]) -> Iterator[Listed]:
    """An axis for each factor."""
    for factor, node in given:
        values = listed(factor, node, problems)
        problems += again(factor.shown, [(value,) for value in values])
        yield Listed((factor,), tuple((value,) for value in values))


def in_step(given: Sequence[tuple[Factor, Node]], problems: list[Problem]) -> Listed:
    """One axis for all these factors: the first values of all, the second ones, and so on.

    Of a factor that ``--set`` gives one value, all are the same.
    """
    columns = [listed(factor, node, problems) for factor, node in given]
    longest = max(map(len, columns), default=0)
    for i, (factor, node) in enumerate(given):
        if node.is_set and len(columns[i]) == 1:
            columns[i] *= longest
        elif 0 < len(columns[i]) < longest:
            other = next(factor for j, (factor, _) in enumerate(given) if len(columns[j]) == longest)
            message = f"has {len(columns[i])} values, and {other.key} has {longest}; give each as many"
            problems.append(node.problem(factor.shown, message))
    rows = list(zip(*columns, strict=False))
    problems += again(given[0][0].shown if given else "", rows)
    return Listed(tuple(factor for factor, _ in given), tuple(rows))


def listed(factor: Factor, node: Node, problems: list[Problem]) -> list[Node]:
    """The values of a list or a range, each once in a list; a value that ``--set`` gives is a list of one."""
    if node.is_mapping and is_range(node):
        return values(node, factor.shown, problems)
    if node.is_set and not isinstance(node.value, list):
        return [node]
    if not isinstance(node.value, list) or not node.value:
        what = "an empty list" if node.value == [] else node.shown()
        message = f"must be a list of values, as in [10/s, 20/s], or a range, {_RANGE}, not {what}"
        problems.append(node.problem(factor.shown, message))
        return []
    return list(node.value)


def again(key: str, rows: Sequence[Sequence[Node]]) -> Iterator[Problem]:
    """A problem for each row that was there before."""
    seen = set()
    for row in rows:
        shown = ", ".join(as_text(node.plain()) for node in row)
        text = json.dumps([node.plain() for node in row])
        if text in seen:
            yield row[0].problem(key, f"lists {shown} twice; give each value once")
        seen.add(text)


_RANGE = "as in {from: 10/s, to: 100/s, steps: 10}"


# Designs: where in the unit cube the points of a sample lie.

Design = Callable[[int, int, int], np.ndarray]
"""Points, a row each with a number from 0 to 1 a factor, of so many factors, of a size, by a seed."""


def _latin_hypercube(factors: int, size: int, seed: int) -> np.ndarray:
    """McKay, Beckman and Conover (1979): each factor's range in ``size`` equal parts, a point in each."""
    from scipy.stats import qmc  # takes half a second to import

    return qmc.LatinHypercube(factors, seed=np.random.default_rng(seed)).random(size)


def _sobol(factors: int, size: int, seed: int) -> np.ndarray:
    """Sobol' (1967), scrambled (Owen 1998): evenly spread also in any two factors."""
    from scipy.stats import qmc

    draws = qmc.Sobol(factors, seed=np.random.default_rng(seed)).random(1 << (size - 1).bit_length())
    return draws[:size]


def _saltelli(factors: int, size: int, seed: int) -> np.ndarray:
    """For Sobol' indices (Saltelli 2002): ``size`` times (number of factors + 2) points."""
    import warnings

    from SALib.sample import sobol

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that are no power of two; see ``remark``
        return sobol.sample(problem(factors), size, calc_second_order=False, seed=seed)


def _morris(factors: int, size: int, seed: int) -> np.ndarray:
    """For elementary effects (Morris 1991): ``size`` trajectories of (number of factors + 1) points."""
    from SALib.sample import morris

    return morris.sample(problem(factors), size, num_levels=MORRIS_LEVELS, seed=seed)


DESIGNS: dict[str, Design] = {
    "latin_hypercube": _latin_hypercube,
    "sobol": _sobol,
    "saltelli": _saltelli,
    "morris": _morris,
}
"""By the name that a sweep file uses."""

FOR_INDICES = ("saltelli", "morris")
"""Designs whose points belong together: sensitivity indices are made of all of them. They need SALib."""

MORRIS_LEVELS = 4
"""Values of each factor in Morris's design, as is usual."""

MOST_FACTORS = 1_000
MOST_SIZE = 100_000


def remark(design: str, size: int) -> str | None:
    """What an expert would say of a size, if anything."""
    if design not in ("sobol", "saltelli") or size & (size - 1) == 0:
        return None
    below = 1 << (size.bit_length() - 1)
    return (
        f"sample.size is {size:,}: Sobol's points are evenly spread if there are a power of two of them, "
        f"as {below:,} or {2 * below:,}"
    )


def problem(factors: int) -> dict[str, Any]:
    """What SALib is told of the factors: as many numbers from 0 to 1."""
    names = [str(number) for number in range(factors)]
    return {"num_vars": factors, "names": names, "bounds": [[0.0, 1.0]] * factors}


def is_missing(design: str) -> bool:
    """Whether a design needs a package that is not installed."""
    return design in FOR_INDICES and importlib.util.find_spec("SALib") is None


def drawn(design: str, factors: int, size: int, seed: int) -> array[float]:
    """The points of a design, one number after the other; the same for the same seed."""
    return array("d", DESIGNS[design](factors, size, seed).ravel().tolist())


# Samples: ``sample: {design: latin_hypercube, size: 64, factors: {KEY: {from: 10/s, to: 100/s}, …}}``.

KEYS = ("design", "size", "seed", "factors")


@dataclass(frozen=True)
class Spread:
    """What a sampled factor may be: anything in a range, or one of several values."""

    node: Node
    values: Range | tuple[Node, ...]

    def at(self, part: float) -> Node:
        """The value of a draw from [0, 1]."""
        if isinstance(self.values, Range):
            return self.node.like(self.values.drawn(part))
        return self.values[min(len(self.values) - 1, int(part * len(self.values)))]

    @property
    def unit(self) -> str:
        """The unit in which tables hold the values."""
        if isinstance(self.values, Range):
            return self.values.unit
        return unit_of(node.plain() for node in self.values)


@dataclass(frozen=True)
class Sampled:
    """The points of a design, ``draws`` one number after the other, a number from 0 to 1 a factor."""

    design: str
    factors: tuple[Factor, ...]
    spreads: tuple[Spread, ...]
    draws: array[float]

    def __len__(self) -> int:
        """Number of points."""
        return len(self.draws) // len(self.factors)

    def at(self, position: int) -> tuple[Node, ...]:
        """A value for each factor."""
        first = position * len(self.factors)
        return tuple(spread.at(self.draws[first + i]) for i, spread in enumerate(self.spreads))

    def units(self) -> Iterator[str]:
        """The unit of each factor's values."""
        return (spread.unit for spread in self.spreads)


def sampled(
    block: Node, given: Sequence[tuple[Factor, Node]], problems: list[Problem]
) -> tuple[Sampled | None, str | None]:
    """The axis of a block ``sample``, whose ``factors`` are ``given``, and a remark on it; no axis if
    something is wrong with it.
    """
    before = len(problems)
    for key, node in block.items():
        if key not in KEYS:
            problems.append(node.problem(f"sample.{key}", f"unknown key; {suggest(key, KEYS)}"))
    design = block.get("design")
    if design is None or design.value not in DESIGNS:
        known = f"must be one of {', '.join(DESIGNS)}"
        message = f"is missing; it {known}" if design is None else f"{known}, not {design.shown()}"
        problems.append((design or block).problem("sample.design", message))
    elif is_missing(design.value):
        message = f"{design.value} needs SALib, which is missing; install tideover[sensitivity]"
        problems.append(design.problem("sample.design", message))
    size = _whole(block, "size", 1, MOST_SIZE, None, problems)
    seed = _whole(block, "seed", 0, 2**63 - 1, 1, problems)
    if not 0 < len(given) <= MOST_FACTORS:
        hint = "give ranges or lists by dotted key, as in {run.seed: {from: 1, to: 100}}"
        problems.append((block.get("factors") or block).problem("sample.factors", f"is missing; {hint}"))
    spreads = [_spread(factor, node, problems) for factor, node in given]
    if len(problems) > before or design is None or size is None or seed is None:
        return None, None
    draws = drawn(design.value, len(given), size, seed)
    factors = tuple(factor for factor, _ in given)
    found = Sampled(design.value, factors, tuple(filter(None, spreads)), draws)
    return found, remark(design.value, size)


def _spread(factor: Factor, node: Node, problems: list[Problem]) -> Spread | None:
    if node.is_mapping and node.get("to") is not None:
        found = read_range(node, factor.shown, False, problems)
        return None if found is None else Spread(node, found)
    values = listed(factor, node, problems)
    problems += again(factor.shown, [(value,) for value in values])
    return Spread(node, tuple(values))


def _whole(
    block: Node, key: str, least: int, most: int, default: int | None, problems: list[Problem]
) -> int | None:
    """A whole number of the block."""
    node = block.get(key)
    if node is None and default is not None:
        return default
    if node is None or type(node.value) is not int or not least <= node.value <= most:
        allowed = f"must be a whole number from {least:,} to {most:,}"
        message = f"is missing; it {allowed}" if node is None else f"{allowed}, not {node.shown()}"
        problems.append((node or block).problem(f"sample.{key}", message))
        return None
    return int(node.value)


# Constraints between factors: ``where: [checkpoint_interval < count.window, hosts >= strategy.k + 1]``.
#
# A constraint compares two sums of products of keys and values; points that break one are left out. A key
# may be shortened to an end that no other swept key has, and need not be swept if the scenario gives it. It
# is read by this grammar, and never evaluated as a program:
#
#     constraint = side ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") side
#     side       = product {(" + " | " - ") product}
#     product    = term {" * " term}
#     term       = key | number | quantity | text

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
    elif unit := unit_of(values):
        found = np.array([as_number(value, unit) for value in values], float)
    else:
        unit = _TEXT
        found = np.array([None if value is None else as_text(value) for value in values], object)
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
        if not isinstance(value, str) or unit_of([value]):
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
