"""Samples: ``sample: {design: latin_hypercube, size: 64, factors: {KEY: {from: 10/s, to: 100/s}, …}}``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tideover.scenarios.errors import Problem, suggest
from tideover.scenarios.nodes import Node
from tideover.scenarios.sweeps.factors import designs, lists, ranges
from tideover.scenarios.sweeps.factors.axes import Factor
from tideover.scenarios.sweeps.factors.ranges import Range
from tideover.scenarios.swept import unit_of

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
    if design is None or design.value not in designs.DESIGNS:
        known = f"must be one of {', '.join(designs.DESIGNS)}"
        message = f"is missing; it {known}" if design is None else f"{known}, not {design.shown()}"
        problems.append((design or block).problem("sample.design", message))
    elif designs.is_missing(design.value):
        message = f"{design.value} needs SALib, which is missing; install tideover[sensitivity]"
        problems.append(design.problem("sample.design", message))
    size = _whole(block, "size", 1, designs.MOST_SIZE, None, problems)
    seed = _whole(block, "seed", 0, 2**63 - 1, 1, problems)
    if not 0 < len(given) <= designs.MOST_FACTORS:
        hint = "give ranges or lists by dotted key, as in {run.seed: {from: 1, to: 100}}"
        problems.append((block.get("factors") or block).problem("sample.factors", f"is missing; {hint}"))
    spreads = [_spread(factor, node, problems) for factor, node in given]
    if len(problems) > before or design is None or size is None or seed is None:
        return None, None
    draws = designs.drawn(design.value, len(given), size, seed)
    factors = tuple(factor for factor, _ in given)
    found = Sampled(design.value, factors, tuple(filter(None, spreads)), draws)
    return found, designs.remark(design.value, size)


def _spread(factor: Factor, node: Node, problems: list[Problem]) -> Spread | None:
    if node.is_mapping and node.get("to") is not None:
        found = ranges.read_range(node, factor.shown, False, problems)
        return None if found is None else Spread(node, found)
    values = lists.listed(factor, node, problems)
    problems += lists.again(factor.shown, [(value,) for value in values])
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
