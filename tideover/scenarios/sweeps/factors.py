"""Factors: keys of a scenario that take several values, and which of their combinations count.

`sweep_file` reads with a `FactorReader` what a sweep's file says of factors (blocks ``grid``, ``zip``,
``sample`` and ``where``), plans their choices. Whoever adds a unit, a design or a kind of axis does it here.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tideover.scenarios.errors import suggest
from tideover.scenarios.part_builder import PartBuilder
from tideover.scenarios.precedence import Setting
from tideover.scenarios.yaml_source import Giver, Node, scalar
from tideover.sim import units

# Swept values in tables.
#
# A swept key whose values are all durations, rates, sizes, bandwidths, percentages or times of day has a
# column of numbers in one of these units. Any other has its values as they were written (unit ``""``).

_UNITS: dict[str, tuple[Callable[[str], float], Callable[[float], str]]] = {
    "s": (
        lambda text: units.parse_duration(text) / units.S,
        lambda value: units.format_duration(round(value * units.S)),
    ),
    "1/s": (units.parse_rate, units.format_rate),
    "B": (units.parse_size, lambda value: units.format_size(round(value))),
    "B/s": (units.parse_bandwidth, lambda value: units.format_bandwidth(round(value))),
    "%": (lambda text: 100 * units.parse_percent(text), lambda value: units.format_percent(value / 100)),
    "h": (
        lambda text: units.parse_time_of_day(text) / units.HOUR,
        lambda value: units.format_time_of_day(round(value * units.HOUR)),
    ),
}
"""How a value is read, and how it is written."""


def unit_of(values: Iterable[Any]) -> str:
    """The unit in which all of these values are quantities; ``""`` if there is none.

    >>> unit_of(["30 s", "1m30s", None]), unit_of(["10/s"]), unit_of(["rsm", "30 s"]), unit_of([1, 2])
    ('s', '1/s', '', '')
    """

    def is_quantity(value: Any, unit: str) -> bool:
        try:
            _UNITS[unit][0](value)
        except (AttributeError, ValueError):
            return False
        return True

    given = [value for value in values if value is not None]
    units = (unit for unit in _UNITS if given and all(is_quantity(value, unit) for value in given))
    return next(units, "")


def as_number(value: Any, unit: str) -> Any:
    """A swept value as a table holds it: in its unit (None: NaN); without one as it is, but a list or a
    mapping as text.

    >>> as_number("1m30s", "s"), as_number("rsm", ""), as_number([1, 2], "")
    (90.0, 'rsm', '[1, 2]')
    """
    if unit:
        return float("nan") if value is None else float(_UNITS[unit][0](value))
    return as_text(value) if isinstance(value, list | dict) else value


def as_text(value: Any) -> str:
    """A swept value that was not turned into a number, as a table or a message shows it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def written(value: float, unit: str) -> str:
    """A number of a swept column with its unit, as a file writes it.

    >>> written(90.0, "s"), written(10.0, "1/s")
    ('90 s', '10/s')
    """
    return _UNITS[unit][1](value)


# Axes of a sweep: every combination of a position on each is a point.


@dataclass(frozen=True)
class Factor:
    """A swept key, and what the sweep's file calls it: ``grid.run.seed``."""

    key: str
    shown: str

    def set_to(self, node: Node) -> Setting:
        """The setting of the key to a value, which knows where it was written."""
        return Setting(self.key, node.given(giver=Giver.POINT, key=self.key, shown=self.shown))


@dataclass(frozen=True)
class Listed:
    """Values as a file lists them: ``rows`` has a value for each factor; one factor, or several in step."""

    factors: tuple[Factor, ...]
    rows: tuple[tuple[Node, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, position: int) -> tuple[Node, ...]:
        return self.rows[position]

    def units(self) -> list[str]:
        """For each factor, the unit in which tables hold its values."""
        return [unit_of(node.plain() for node in column) for column in zip(*self.rows, strict=True)]


@dataclass(frozen=True)
class Sampled:
    """The points of a design, ``draws`` one number after the other, a number from 0 to 1 a factor. Of each
    factor ``spreads`` has what it may be, anything in a range or one of several values, and where that is
    written.
    """

    design: str
    factors: tuple[Factor, ...]
    spreads: tuple[tuple[Node, Range | tuple[Node, ...]], ...]
    draws: array[float]

    def __len__(self) -> int:
        return len(self.draws) // len(self.factors)

    def at(self, position: int) -> tuple[Node, ...]:
        first, found = position * len(self.factors), []
        for (node, values), part in zip(
            self.spreads, self.draws[first : first + len(self.factors)], strict=True
        ):
            if isinstance(values, Range):
                found.append(node.like(values.drawn(part)))
            else:
                found.append(values[min(len(values) - 1, int(part * len(values)))])
        return tuple(found)

    def units(self) -> list[str]:
        """For each factor, the unit in which tables hold its values."""
        every = (values for _, values in self.spreads)
        return [v.unit if isinstance(v, Range) else unit_of(node.plain() for node in v) for v in every]


Axis = Listed | Sampled
"""Factors that go together, and the values that they take at each position."""


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
        return self._written(self._between(self.high, part))

    def drawn(self, part: float) -> Any:
        """The value of a draw from [0, 1]: uniform, or uniform by logarithm; of whole numbers, ``high`` is as
        likely as ``low``.
        """
        if not self.whole:
            return self._written(self._between(self.high, part))
        return min(int(self.high), math.floor(self._between(self.high + 1, part)))

    def _between(self, high: float, part: float) -> float:
        return self.low * (high / self.low) ** part if self.log else self.low + part * (high - self.low)

    def _written(self, value: float) -> Any:
        if self.whole:
            return math.floor(value + 0.5)
        size = value if self.log else self.high - self.low
        value = round(value, _DIGITS - 1 - math.floor(math.log10(abs(size))))
        return written(value, self.unit) if self.unit else value


# Designs: where in the unit cube the points of a sample lie, a row each, of so many factors, of a size, by a
# seed.


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
        warnings.simplefilter("ignore")  # of sizes that are no power of two; `sampled` has a remark on them
        return sobol.sample(problem(factors), size, calc_second_order=False, seed=seed)


def _morris(factors: int, size: int, seed: int) -> np.ndarray:
    """For elementary effects (Morris 1991): ``size`` trajectories of (number of factors + 1) points."""
    from SALib.sample import morris

    return morris.sample(problem(factors), size, num_levels=MORRIS_LEVELS, seed=seed)


DESIGNS: dict[str, Callable[[int, int, int], np.ndarray]] = {
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


def problem(factors: int) -> dict[str, Any]:
    """What SALib is told of the factors: as many numbers from 0 to 1."""
    names = [str(number) for number in range(factors)]
    return {"num_vars": factors, "names": names, "bounds": [[0.0, 1.0]] * factors}


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
_TEXT = "text"
"""What texts have for a unit."""


class Term(NamedTuple):
    """Numbers or texts by the position on each axis (an axis that they do not depend on has length 1), and
    their unit; ``swept``: whether a swept key is meant.
    """

    amounts: np.ndarray
    unit: str
    swept: bool = False


def _holds(node: Node, axes: Sequence[Axis], base: Node) -> np.ndarray:
    """Whether a constraint holds, by the position on each axis; raises ValueError: what is wrong."""
    match = _COMPARISON.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        raise ValueError(
            "is no comparison; write two sides with one of < <= > >= = != between, "
            "as in 'strategy.checkpoint_interval < 30 s'"
        )
    sign = match[2]
    sides = []
    for text in (match[1], match[3]):
        first, *others = re.split(r"\s([+-])\s", text.strip())
        products = [("+", first), *zip(others[::2], others[1::2], strict=True)]
        sides.append([(s, [_term(w.strip(), axes, base) for w in p.split("*")]) for s, p in products])
    if not any(term.swept for side in sides for _, terms in side for term in terms):
        raise ValueError(f"names no swept key ({', '.join(_swept(axes))})")
    (left, unit), (right, other) = (_total(side) for side in sides)
    if unit != other:
        raise ValueError(f"compares {_what(unit)} with {_what(other)}")
    if unit == _TEXT and sign not in _EQUAL:
        raise ValueError(f"compares texts by {sign}; they can only be equal or not")
    texts = unit == _TEXT
    equal = np.asarray(left == right, bool) if texts else np.isclose(left, right, rtol=_CLOSE, atol=0)
    if sign in _EQUAL:
        return ~equal if sign == "!=" else equal
    less = left < right if sign.startswith("<") else left > right
    return (less | equal) if sign.endswith("=") else (less & ~equal)


def _total(side: Sequence[tuple[str, Sequence[Term]]]) -> tuple[np.ndarray, str]:
    """A sum of products, each with its sign, and its unit."""
    products = []
    for sign, ((product, unit, _), *others) in side:
        for amounts, other, _ in others:
            if (unit and other) or _TEXT in (unit, other):
                raise ValueError(f"multiplies {_what(unit)} by {_what(other)}; one must be a number")
            product, unit = product * amounts, unit + other
        products.append((product, unit, sign))
    (total, unit, _), *more = products
    for product, other, sign in more:
        if unit != other or other == _TEXT:
            raise ValueError(f"adds {_what(other)} to {_what(unit)}")
        total = total + product if sign == "+" else total - product
    return total, unit


def _term(word: str, axes: Sequence[Axis], base: Node) -> Term:
    """What a word of a constraint stands for: a swept key, or a value."""
    if not word:
        raise ValueError("has nothing on one side of a sign")
    value = scalar(word)
    if not isinstance(value, str) or unit_of([value]):
        return _amounts([value])
    swept = _swept(axes)
    if not _KEY.fullmatch(word):
        raise ValueError(f"{word!r} is neither a key nor a value; known keys: {', '.join(swept)}")
    ends = [key for key in swept if f".{key}".endswith(f".{word}")]
    if word in ends or len(ends) == 1:
        place, i = swept[word if word in ends else ends[0]]
        values = _column(axes[place], i)
        shape = [1] * len(axes)
        shape[place] = len(values)
        amounts, unit, _ = _amounts(values)
        return Term(amounts.reshape(shape), unit, swept=True)
    if ends:
        raise ValueError(f"{word} may be {' or '.join(ends)}; write more of it")
    there = base.get(*word.split("."))
    if there is not None and not isinstance(there.value, dict | list):
        return _amounts([there.value])
    every = (value for place, i in swept.values() for value in _column(axes[place], i))
    texts = list(dict.fromkeys(v for v in every if isinstance(v, str) and _KEY.fullmatch(v)))
    if word not in texts:
        raise ValueError(f"{word!r} is neither a key nor a value of one; {suggest(word, [*swept, *texts])}")
    return _amounts([word])


def _swept(axes: Sequence[Axis]) -> dict[str, tuple[int, int]]:
    """Of each swept key its axis, and its place there."""
    return {f.key: (place, i) for place, axis in enumerate(axes) for i, f in enumerate(axis.factors)}


def _column(axis: Axis, i: int) -> list[Any]:
    return [axis.at(position)[i].plain() for position in range(len(axis))]


def _amounts(values: Sequence[Any]) -> Term:
    """Nothing (null) is neither equal to, nor less, nor more than anything."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return Term(np.array([np.nan if value is None else value for value in values], float), "")
    if unit := unit_of(values):
        return Term(np.array([as_number(value, unit) for value in values], float), unit)
    return Term(np.array([None if value is None else as_text(value) for value in values], object), _TEXT)


def _what(unit: str) -> str:
    return {_TEXT: "a text", "": "a number"}.get(unit, f"a quantity in {unit}")


Given = Sequence[tuple[Factor, Node]]
"""Factors, each with what the file or ``--set`` gives it."""


class FactorReader(PartBuilder):
    """Reads what a file says of factors, and collects what is wrong in ``problems``."""

    def texts(self, root: Node) -> None:
        """Refuse a name and a description that are no texts."""
        for key in ("name", "description"):
            node = root.get(key)
            if node is not None and not isinstance(node.value, str):
                self.refuse(node, key, f"must be a text, not {node.shown()}")

    @staticmethod
    def name(root: Node, scenario: Node, default: str) -> str:
        """What a file is called: as it says, or as its scenario does."""
        title = root.get("name") or scenario.get("name")
        return default if title is None or title.value is None else str(title.plain())

    @staticmethod
    def given(key: str, node: Node, shown: str) -> Setting:
        """A value of a file for a key of its scenario; ``shown``: what the file calls the key."""
        return Setting(key, node.given(giver=Giver.SWEEP, key=key, shown=shown))

    def whole_number(
        self, block: Node, shown: str, key: str, bounds: tuple[int, int], default: int | None
    ) -> int | None:
        """A whole number of a block, which is called ``shown``; None if there is none within the bounds."""
        node = block.get(key)
        if node is None and default is not None:
            return default
        if node is None or type(node.value) is not int or not bounds[0] <= node.value <= bounds[1]:
            allowed = f"must be a whole number from {bounds[0]:,} to {bounds[1]:,}"
            message = f"is missing; it {allowed}" if node is None else f"{allowed}, not {node.shown()}"
            self.refuse(node or block, f"{shown}.{key}", message)
            return None
        return int(node.value)

    def range(self, node: Node, key: str, steps: bool) -> Range | None:
        """The range of a mapping, None if something is wrong with it; ``steps``: if it may say how many."""
        before = len(self.problems)
        self.unknown_keys(node, key, (*ENDS, *(["steps"] if steps else []), "scale"))
        for end in ENDS:
            if node.get(end) is None:
                message = "is missing; give both ends of a range, as in {from: 1 s, to: 9 s}"
                self.refuse(node, f"{key}.{end}", message)
        scale = node.get("scale")
        if scale is not None and scale.value not in SCALES:
            message = f"{scale.shown()} is no scale; allowed are {' and '.join(SCALES)}"
            self.refuse(scale, f"{key}.scale", message)
        if len(self.problems) > before:
            return None
        low, high = (node.value[end] for end in ENDS)
        log = scale is not None and scale.value == "log"
        plain = (low.plain(), high.plain())
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in plain)
        whole = numbers and all(isinstance(value, int) for value in plain)
        unit = "" if numbers else unit_of(plain)
        if not (numbers or unit) or None in plain:
            message = f"{low.shown()} and {high.shown()} are not two numbers, or two quantities of one kind"
            self.refuse(high, f"{key}.to", message)
            return None
        first, last = (float(as_number(value, unit)) for value in plain)
        if not (math.isfinite(first) and math.isfinite(last) and first < last):
            self.refuse(high, f"{key}.to", f"{high.shown()} is not more than {low.shown()}; a range goes up")
        elif log and first <= 0:
            message = f"{low.shown()} has no logarithm; a range by logarithm begins above 0"
            self.refuse(low, f"{key}.from", message)
        else:
            return Range(first, last, plain, unit, whole, log)
        return None

    def values(self, node: Node, key: str) -> list[Node]:
        """The values of a range with ``steps``, both ends among them, each once."""
        found = self.range(node, key, True)
        steps = node.get("steps")
        if steps is None or type(steps.value) is not int or not 2 <= steps.value <= MOST_STEPS:
            shown = "is missing" if steps is None else steps.shown()
            message = f"{shown}; it must be a number of values from 2 to {MOST_STEPS:,}"
            self.refuse(steps or node, f"{key}.steps", message)
            return []
        if found is None:
            return []
        count = steps.value
        every = list(dict.fromkeys(found.at(step / (count - 1)) for step in range(count)))
        if len(every) < count and not found.log:
            what = "whole numbers (0.0 to 1.0 has fractions, 0 to 1 none)" if found.whole else "such values"
            message = f"is {count}, and there are only {len(every)} {what}; give at most so many steps"
            self.refuse(steps, f"{key}.steps", message)
        return [node.like(value) for value in every]

    def listed(self, factor: Factor, node: Node) -> list[Node]:
        """The values of a list or a range; a value that ``--set`` gives is a list of one."""
        # a mapping may be a value, too, with a ``from`` of its own (a bolt's)
        if node.is_mapping and (node.get("to") is not None or node.get("steps") is not None):
            return self.values(node, factor.shown)
        if node.is_set and not isinstance(node.value, list):
            return [node]
        if not isinstance(node.value, list) or not node.value:
            form = "must be a list of values, as in [10/s, 20/s], or a range, "
            form += "as in {from: 10/s, to: 100/s, steps: 10}"
            what = "an empty list" if node.value == [] else node.shown()
            self.refuse(node, factor.shown, f"{form}, not {what}")
            return []
        return list(node.value)

    def in_step(self, given: Given) -> Listed:
        """One axis for all these factors: the first values of all, the second ones, and so on. Of a factor
        that ``--set`` gives one value, all are the same.
        """
        columns = [self.listed(factor, node) for factor, node in given]
        longest = max(map(len, columns), default=0)
        for i, (factor, node) in enumerate(given):
            if node.is_set and len(columns[i]) == 1:
                columns[i] *= longest
            elif 0 < len(columns[i]) < longest:
                other = next(factor for j, (factor, _) in enumerate(given) if len(columns[j]) == longest)
                message = f"has {len(columns[i])} values, and {other.key} has {longest}; give each as many"
                self.refuse(node, factor.shown, message)
        rows = tuple(zip(*columns, strict=False))
        self._once(given[0][0].shown if given else "", rows)
        return Listed(tuple(factor for factor, _ in given), rows)

    def _once(self, key: str, rows: Sequence[Sequence[Node]]) -> None:
        """Refuse each row that was there before."""
        seen = set()
        for row in rows:
            text = json.dumps([node.plain() for node in row])
            if text in seen:
                shown = ", ".join(as_text(node.plain()) for node in row)
                self.refuse(row[0], key, f"lists {shown} twice; give each value once")
            seen.add(text)

    def sampled(self, block: Node, given: Given) -> tuple[Sampled | None, str | None]:
        """The axis of a block ``sample``, whose ``factors`` are ``given``, and a remark on it; no axis if
        something is wrong with it.

        ``sample: {design: latin_hypercube, size: 64, factors: {KEY: {from: 10/s, to: 100/s}, …}}``
        """
        before = len(self.problems)
        self.unknown_keys(block, "sample", ("design", "size", "seed", "factors"))
        design = block.get("design")
        if design is None or design.value not in DESIGNS:
            known = f"must be one of {', '.join(DESIGNS)}"
            message = f"is missing; it {known}" if design is None else f"{known}, not {design.shown()}"
            self.refuse(design or block, "sample.design", message)
        elif design.value in FOR_INDICES and importlib.util.find_spec("SALib") is None:
            message = f"{design.value} needs SALib, which is missing; install tideover[sensitivity]"
            self.refuse(design, "sample.design", message)
        size = self.whole_number(block, "sample", "size", (1, MOST_SIZE), None)
        seed = self.whole_number(block, "sample", "seed", (0, 2**63 - 1), 1)
        if not 0 < len(given) <= MOST_FACTORS:
            hint = "give ranges or lists by dotted key, as in {run.seed: {from: 1, to: 100}}"
            self.refuse(block.get("factors") or block, "sample.factors", f"is missing; {hint}")
        spreads: list[tuple[Node, Range | tuple[Node, ...]]] = []
        for factor, node in given:
            if node.is_mapping and node.get("to") is not None:
                found = self.range(node, factor.shown, False)
                spreads += [] if found is None else [(node, found)]
            else:
                values = self.listed(factor, node)
                self._once(factor.shown, [(value,) for value in values])
                spreads.append((node, tuple(values)))
        if len(self.problems) > before or design is None or size is None or seed is None:
            return None, None
        draws = array("d", DESIGNS[design.value](len(given), size, seed).ravel().tolist())
        axis = Sampled(design.value, tuple(factor for factor, _ in given), tuple(spreads), draws)
        if design.value not in ("sobol", "saltelli") or size & (size - 1) == 0:
            return axis, None
        below = 1 << (size.bit_length() - 1)
        return axis, (
            f"sample.size is {size:,}: Sobol's points are evenly spread if there are a power of two of them, "
            f"as {below:,} or {2 * below:,}"
        )

    def kept(self, block: Node | None, axes: Sequence[Axis], base: Node) -> array[int] | None:
        """The numbers of the combinations that break no constraint of a block ``where``; None: of all.
        ``base``: the scenario, whose keys they may name.
        """
        if block is None or block.value is None or block.value == []:
            return None
        if not isinstance(block.value, list):
            shape = "a list of comparisons, as in [checkpoint_interval < 30 s]"
            self.refuse(block, "where", f"must be {shape}, not {block.shown()}")
            return None
        for axis in axes:
            if isinstance(axis, Sampled) and axis.design in FOR_INDICES:
                message = f"does not go with design: {axis.design}, of whose points none may be left out"
                self.refuse(block, "where", message)
        try:
            kept = np.ones([len(axis) for axis in axes], bool)
        except ValueError as error:  # numpy has a limit of dimensions
            self.refuse(block, "where", str(error))
            return None
        for number, node in enumerate(block.value):
            try:
                kept &= _holds(node, axes, base)
            except ValueError as error:
                shown = f"{node.value}: {error}" if isinstance(node.value, str) else str(error)
                self.refuse(node, f"where.{number}", shown)
        return array("q", np.flatnonzero(kept).tolist())
