"""SimPy's clock, with an order among the events of one instant; and the cores that tasks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

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

    def each(
        self, period: int, priority: Priority, act: Callable[[], None], first: int | None = None
    ) -> None:
        """Call ``act`` every ``period``; ``first``: at what time first (None: a period from now)."""

        def due() -> None:
            act()
            self.each(period, priority, act)

        self.at(self.now + period if first is None else first, priority, due)

    @staticmethod
    def cancel(*events: simpy.Event | None) -> None:
        """Take back what has not happened yet."""
        for event in events:
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


class Part:
    """Whatever lives in a world: it looks at its clock and at its layout."""

    def __init__(self, world: World) -> None:
        self.world, self.clock, self.layout = world, world.clock, world.layout

    @property
    def now(self) -> int:
        return self.clock.now


@dataclass
class Job:
    """What a busy task is at: ``left`` ns of a core's work, then ``done``."""

    left: float
    done: Callable[[], None]
    event: simpy.Event | None = None


class Cores:
    """The cores of one host. Whenever a task becomes busy or idle all that are busy change their speed."""

    def __init__(self, clock: Clock, number: float) -> None:
        self.clock, self.number = clock, number
        self.factor = 1.0
        self.slow: dict[object, float] = {}
        self.jobs: dict[Task, Job] = {}
        self.since = 0

    @property
    def share(self) -> float:
        """Of a core, that each busy task has."""
        return min(1.0, self.number / max(1, len(self.jobs)))

    @property
    def speed(self) -> float:
        return self.factor * self.share

    def _work(self) -> None:
        """What has been done since it was looked at last."""
        for job in self.jobs.values():
            job.left -= (self.clock.now - self.since) * self.speed
        self.since = self.clock.now

    def _plan(self) -> None:
        for task, job in self.jobs.items():
            Clock.cancel(job.event)
            end = self.clock.now + max(0, math.ceil(job.left / self.speed - 1e-6))
            job.event = self.clock.at(end, departure(task.rank), lambda task=task: self._end(task))

    def _end(self, task: Task) -> None:
        self._work()
        job = self.jobs.pop(task)
        self._plan()
        job.done()

    def begin(self, task: Task, work: float, done: Callable[[], None]) -> None:
        """A task is busy with so much work."""
        self._work()
        self.jobs[task] = Job(work, done)
        self._plan()

    def add(self, task: Task, work: float) -> None:
        """It has so much more to do."""
        self._work()
        self.jobs[task].left += work
        self._plan()

    def give_up(self, task: Task) -> Job | None:
        """It is not any more; returns what is left. Nothing changes if it was not."""
        if task not in self.jobs:
            return None
        self._work()
        job = self.jobs.pop(task)
        Clock.cancel(job.event)
        self._plan()
        return job

    def slow_down(self, reason: object, factor: float) -> None:
        """From now on a core works at this part of its speed, if nothing else makes it slower."""
        self._work()
        self.slow[reason] = factor
        self.factor = min(self.slow.values())
        self._plan()
