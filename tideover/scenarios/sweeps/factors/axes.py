"""Axes of a sweep: every combination of a position on each is a point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tideover.scenarios.nodes import Giver, Node
from tideover.scenarios.settings import Setting
from tideover.scenarios.swept import unit_of


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
        """For each factor, the unit in which tables hold its values (`tideover.scenarios.swept`)."""


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
