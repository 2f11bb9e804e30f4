"""What can be simulated point by point: a sweep's recipe, the requests of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tideover.scenarios.sweeps.recipe import Point


class Points(Protocol):
    """Points by their number. It can be pickled, and whoever has it makes the same."""

    @property
    def name(self) -> str:
        """What they are."""

    @property
    def total(self) -> int:
        """How many there are."""

    @property
    def remarks(self) -> Sequence[str]:
        """What an expert would say of them together."""

    def values(self, number: int) -> Mapping[str, Any]:
        """The swept values of a point, as they were written."""

    def point(self, number: int) -> Point:
        """A point, built and checked; raises ScenarioError."""
