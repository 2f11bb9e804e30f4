"""What a task has made and not sent yet."""

from __future__ import annotations

from typing import Any

from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Train


class Line:
    """What one task has made and not sent yet.

    c   the struct ``line``
    """

    def __init__(self, plane: Plane, task: Any, send: int) -> None:
        self._plane, self._number = plane, task.number
        self._wires: dict[int, Wire] = {
            wire.number: wire for outlet in task.outlets for row in outlet.channels for wire in row
        }
        self.c: Any = task.c.line
        self.c.send = send
        task.c.bounded |= plane.lib.HAS_LINE

    def trains(self) -> list[tuple[Wire, Train]]:
        """What is in it, by the channel by which it will leave."""
        rows = self._plane.rows(self.c.messages)
        routes = dict.fromkeys(rows["source"].tolist())
        return [(self._wires[route], self._plane.train(rows[rows["source"] == route])) for route in routes]

    def clear(self, now: int) -> list[tuple[Wire, Train]]:
        """Destroy it; returns what was in it."""
        lost = self.trains()
        self._plane.lib.plane_lose_line(self._plane.p, self._number, now)
        return lost

    def blocked_until(self, now: int) -> int:
        """For how long it has held the task up until now (ns)."""
        return int(self.c.blocked + (now - self.c.blocked_since if self.c.full else 0))
