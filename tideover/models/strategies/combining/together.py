"""The protocols of members, side by side."""

from __future__ import annotations

from tideover.models.mechanisms.shared import Shared
from tideover.models.operators.state import Effects
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import KeyPath, Protocol
from tideover.models.strategies.combining.members import Members


class Together(Protocol):
    """Each task, at its fault, when it is back, and at the end of its windows, does what its member says; the
    member of the rest has the spouts. What they share, buffers and a filter, knows of all tasks.
    """

    def __init__(self, job: Job, strategy: Members) -> None:
        super().__init__(job)
        tasks: dict[KeyPath, list[BoltView]] = {("rest",): []}
        for task in self.view.bolts:
            place = strategy.place(task.component.name, task.component.keeps_state)
            tasks.setdefault(place, []).append(task)
        shared = Shared(job, replicated=strategy.needs.paths, saved=True)
        self.members = {at: strategy.all_members[at].member(job, own, shared) for at, own in tasks.items()}
        self.by_task: dict[TaskView, Protocol] = {
            task: self.members[at] for at, own in tasks.items() for task in own
        }

    def of(self, task: TaskView) -> Protocol:
        """The protocol that acts for a task."""
        return self.by_task.get(task, self.members["rest",])

    def start(self) -> None:
        for member in self.members.values():
            member.start()

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self.of(task).failed(task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self.of(task).ready(task, outage)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return self.of(task).window_ended(task, parts, now)
