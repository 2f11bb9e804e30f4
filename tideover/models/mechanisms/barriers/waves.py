"""Waves: markers that go through the topology with the data, and hold nothing up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.bolt_task import SENT_BY, BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Train


class Waves(Mechanism):
    """One wave at a time: a marker is put into the queue of each task that reads a spout, and when a task has
    had one from there and over each channel from other bolts, ``reached`` is told, which has to ``hand_on``
    the wave. Tuples that come behind a marker do not wait for the others.
    """

    def __init__(self, job: Job, reached: Callable[[BoltTask, int], None]) -> None:
        super().__init__(job)
        self._reached = reached
        self._number = 0
        """Of the wave that is under way; 0: none is."""
        self._newest = 0
        self._come: Counter[TaskView] = Counter()
        self._awaited: dict[TaskView, int] = {}
        for task in job.bolt_tasks:
            bolts = sum(isinstance(channel.up, BoltTask) for channel in task.inputs)
            self._awaited[task] = bolts + (len(task.inputs) > bolts)

    def send(self) -> int:
        """A wave begins; returns its number."""
        self._newest += 1
        number = self._number = self._newest
        self._come.clear()
        for task in self._job.bolt_tasks:
            if any(isinstance(channel.up, SpoutTask) for channel in task.inputs):
                task.enqueue(Rank.CHECKPOINT, partial(self._turn, task, number, "the spouts"))
        return number

    def stop(self) -> None:
        """The wave that is under way means nothing any more."""
        self._number = 0

    def barrier(self, task: BoltView, message: Train) -> None:
        sender = self._job.tasks[int(message.column(SENT_BY)[0])].name
        self._turn(self._bolt(task), int(message.key[0]), sender)

    def _turn(self, task: BoltTask, number: int, sender: str) -> None:
        if number == self._number:
            self._come[task] += 1
            many = f"{self._come[task]} of {self._awaited[task]}, from {sender}"
            self._job.step(task.name, "marker come", many)
            if self._come[task] == self._awaited[task]:
                self._reached(task, number)

    def hand_on(self, task: BoltTask, number: int) -> None:
        """The wave goes on from a task."""
        if number == self._number:
            task.send_barrier(number)
