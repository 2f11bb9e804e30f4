"""Who notices what is down, and restarts it: a watch. A scenario's ``detector`` brings its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tideover.models.runtime.outage import Outage, Return
from tideover.sim.faults.base import Between, Fault


class Watch:
    """By itself, each fault says how long it takes until it is noticed, and how long the restart takes."""

    def start(self) -> None:
        """The job starts."""

    def taken_down(self, struck: list[Any], fault: Fault) -> list[Any]:
        """Those that a fault has struck, and what dies with them."""
        return struck

    def returns(
        self, struck: Sequence[Any], job: Sequence[Any], fault: Fault, outage: Outage
    ) -> dict[Any, Return]:
        """When those that a fault has ``struck`` now, and the tasks of the ``job`` that stop with them, are
        expected to be noticed, and back.
        """
        return dict.fromkeys([*struck, *job], Return(outage.detected_at, outage.ready_at))

    def paused(self, victim: Any, until: int) -> None:
        """A process does nothing until then (ns), and lives."""

    def unheard(self, victim: Any, until: int, between: Between) -> None:
        """A process on one of these sides, which are cut off from each other, lives; what it sends across
        waits until then (ns).
        """

    def back(self, victim: Any) -> None:
        """Something is up again, or something else is in its place."""
