"""SimPy's clock, with an order among the events of one instant."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import simpy

Priority = tuple[int, ...]


LAST = 1 << 30
"""Behind all tasks."""
CONTROL = (1,)
"""At or above it are control actions."""


class Rank(IntEnum):
    """Control actions of one instant, in the order in which they happen."""

    FAULT = 1
    READY = 2
    WINDOW = 3
    RESTORE = 4
    CHECKPOINT = 5
    TRIM = 6
    REQUEST = 7
    MARKER = 8
    ROTATION = 9
    BATCH = 10


def arrival(task: int, upstream: int) -> Priority:
    """Data: tasks in physical order; at a task arrivals first, by upstream task (then as they were sent)."""
    return (0, task, 0, upstream)


def departure(task: int) -> Priority:
    """Data: what leaves a task, after the arrivals of the same instant."""
    return (0, task, 1, 0)


def network(up: int, down: int) -> Priority:
    """Data that comes to a card, when all tasks have sent what they send at this instant."""
    return (0, LAST, up, down)


def control(rank: Rank, task: int = 0) -> Priority:
    """Control: after all data of the instant, by rank, then by physical task."""
    return (1, rank, task, 0)


class Clock:
    """Calls functions at their time: (time, priority, order of scheduling). Times are integer nanoseconds."""

    def __init__(self) -> None:
        self._env = simpy.Environment()
        self.now = 0
        self.actions = 0
        """Control actions until now."""

    def at(self, time: int, priority: Priority, action: Callable[[], None]) -> simpy.Event:
        """Call ``action`` at ``time``."""
        assert time >= self.now, (time, self.now)
        event = simpy.Event(self._env)
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: action())
        event.plan = (time, priority, action)  # type: ignore[attr-defined]
        self._env.schedule(event, priority=priority, delay=time - self.now)  # type: ignore[arg-type]
        return event

    def postpone(self, event: simpy.Event | None, by: int) -> simpy.Event | None:
        """The same, later; what has happened, or was taken back, stays as it is."""
        if event is None or not event.callbacks:
            return event
        time, priority, action = event.plan  # type: ignore[attr-defined]
        self.cancel(event)
        return self.at(time + by, priority, action)

    @staticmethod
    def cancel(event: simpy.Event | None) -> None:
        """Take back what has not happened yet."""
        if event is not None and event.callbacks is not None:
            event.callbacks.clear()

    def run(
        self,
        until: int,
        passes: Callable[[int], None] = lambda then: None,
        decides: Callable[[], None] = lambda: None,
    ) -> None:
        """Everything up to ``until``, included. Whenever an instant is over ``passes`` is told the next;
        ``decides`` is called before each control action.
        """
        queue = self._env._queue
        while queue and queue[0][0] <= until:
            if queue[0][0] > self.now:
                passes(int(queue[0][0]))
            if queue[0][1] >= CONTROL:  # type: ignore[operator]
                decides()
                self.actions += 1
            self.step()
        passes(until)

    def step(self) -> None:
        """The next event."""
        self.now = int(self._env.peek())
        self._env.step()
