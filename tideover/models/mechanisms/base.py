"""What all mechanisms have in common, and what several of them need.

Every module of this package builds on it, and strategies take `when_due` from here. What only one mechanism
needs belongs into that one's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.hooks import CopyHolder, Hooks, Mask
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView, Machine, OutageView, SpoutView, TaskView
from tideover.sim.kernel import ORDER, Rank
from tideover.sim.plane.plane import RECOVERY
from tideover.sim.train import Train

AFTER_TASKS = ORDER // 2
"""Order of what comes after the events of single tasks, at one instant and rank."""


class Mechanism(Hooks):
    """A part of a protocol. To make one is to plug it in: from then on its hooks are called, before those of
    mechanisms that are made later, and before the protocol's own; the accounts ask it if it is a holder.

    ``bolt_failed`` and ``bolt_ready`` are called where a spout's task does not matter.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        job.plug(self)
        if isinstance(self, CopyHolder):
            job.context.holders.append(self)

    def _bolt(self, task: TaskView) -> BoltTask:
        return self._job.bolt(task)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self.bolt_failed(self._bolt(task), outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self.bolt_ready(self._bolt(task), outage)

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None: ...
    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None: ...


@dataclass(frozen=True)
class Costs:
    """What it takes to save a state and to bring it back (ns; bytes).

    saving, saving_entry         time that it keeps the task, and more for each entry
    restoring, restoring_entry   time from when it was read, and more for each entry
    entry_size                   bytes of an entry of the bolt's own in the store
    store                        the name of the store; None: that of the job
    """

    saving: int = 0
    saving_entry: int = 0
    restoring: int = 0
    restoring_entry: int = 0
    entry_size: int = 0
    store: str | None = None


class Process(Machine):
    """A process of a strategy, which tells others what happens to it.

    tasks_in              the tasks that fail with it
    on_failed, on_ready   it was killed; detection and restart are over
    """

    def __init__(
        self,
        name: str,
        host: int | None,
        worker: int,
        number: int,
        tasks_in: Callable[[Any], Sequence[BoltView]],
        on_failed: Callable[[Any, OutageView], None],
        on_ready: Callable[[Any, OutageView], None],
    ) -> None:
        super().__init__(name, host, 0, number, worker)
        self._tasks_in, self._on_failed, self._on_ready = tasks_in, on_failed, on_ready

    def tasks(self) -> Sequence[BoltView]:
        return self._tasks_in(self)

    def failed(self, outage: OutageView) -> None:
        self._on_failed(self, outage)

    def ready(self, outage: OutageView) -> None:
        self._on_ready(self, outage)


def workers_of(job: Job) -> dict[BoltTask, tuple[int, int]]:
    """Host and number of the worker of each bolt task."""
    of = job.deployment.cluster.worker_of
    homes = {t: of[t.component.name, t.index, t.replica] for t in job.bolt_tasks}
    return {task: (home.host, home.number) for task, home in homes.items()}


def when_due(job: Job, tasks: Iterable[TaskView], interval: int, act: Callable[[BoltTask], None]) -> None:
    """Each ``interval`` (ns) a marker goes into the queue of each of these bolts' tasks that is there; at its
    turn ``act`` is called.
    """

    def tick(task: BoltTask, i: int) -> None:
        if task.available:
            task.enqueue(Rank.CHECKPOINT, partial(act, task), last=True)

    for task in map(job.bolt, tasks):
        job.kernel.every(interval, interval, Rank.CHECKPOINT, partial(tick, task), task.number)


def stored_entries(task: BoltTask, saved: SavedState) -> int:
    """Entries that a store has of a task: of what is saved, and of the `state` of its bolt."""
    backend = task.component.backend
    return saved.entries + (backend.entries if backend else 0)


def sent_again(job: Job, task: BoltView, train: Train, outage: int) -> Mask | None:
    """Which tuples the data plane has marked as sent again, if the task's newest outage is this one."""
    if not train.has(RECOVERY) or job.context.newest.get(task, -1) != outage:
        return None
    return train.column(RECOVERY) > 0
