"""Cores that tasks share: n busy tasks on c cores, each at min(1, c / n) of a core's speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import simpy

from .clock import Clock, departure

if TYPE_CHECKING:
    from .tasks import Task


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
