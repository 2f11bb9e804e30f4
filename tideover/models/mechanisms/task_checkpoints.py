"""Checkpoints of every task by itself, each at its own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.recovery import Reached, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import Checkpoint, Checkpoints, Costs
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints


class TaskCheckpoints(Mechanism, Keeper):
    """Each of some ``tasks`` with state saves it, one checkpoint after the other.

    buffers   what senders keep for them: a checkpoint has how far its task is with that, and when the store
              has it, it is trimmed. None: nothing is
    """

    def __init__(
        self, job: Job, tasks: Iterable[BoltView], costs: Costs, buffers: UpstreamBuffers | None = None
    ) -> None:
        super().__init__(job)
        self._buffers = buffers
        self._of: dict[TaskView, Checkpoints] = {
            task: Checkpoints(job, task, costs) for task in map(self._bolt, tasks)
        }
        job.context.keepers.append(self)

    def take(self, task: BoltView, needed: bool = False) -> None:
        """Save the state now. If a checkpoint is on its way into the store this one is left out, or, if it is
        ``needed``, taken as soon as that one is there.
        """
        own = self._of[task]
        if own.writing:
            own.wanted |= needed
        else:
            buffers = self._buffers
            reached = Reached() if buffers is None else buffers.reached(task)
            own.take(reached, lambda saved: self._saved(task, saved))

    def _saved(self, task: BoltView, saved: Checkpoint) -> None:
        if self._buffers is not None:
            self._buffers.trim(task, saved.reached)
        own = self._of[task]
        if own.wanted:
            own.wanted = False
            bolt = self._bolt(task)
            bolt.enqueue(Rank.CHECKPOINT, lambda: self.take(task))

    def newest(self, task: BoltView) -> Checkpoint | None:
        """The newest checkpoint that is in the store; None: there is none."""
        return self._of[task].saved

    def writing(self, task: BoltView) -> bool:
        """Whether one is on its way into the store."""
        return self._of[task].writing

    def discard(self, task: BoltView) -> None:
        """Forget the checkpoint in the store, and the one on its way."""
        self._of[task].discard()

    def read(self, task: BoltView, then: Callable[[Checkpoint], None]) -> None:
        """Read the newest valid checkpoint (nothing was saved yet: the beginning), which takes its time, and
        call ``then``, unless the task fails before.
        """
        self._of[task].read(then)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self._of:
            self._of[task].void()

    def store_lost(self, store: str | None) -> None:
        for own in self._of.values():
            own.store_lost(store)

    def effects(self) -> list[tuple[Component, Ints]]:
        saved = [(task.component, own.saved) for task, own in self._of.items() if own.saved is not None]
        return [(component, checkpoint.state.effects()) for component, checkpoint in saved]


class RegularCheckpoints(TaskCheckpoints):
    """The same every ``interval`` (ns), and at the end of a window that a tick ends: else a failure before
    the next checkpoint would bring back counts that were put out.
    """

    def __init__(
        self,
        job: Job,
        tasks: Iterable[BoltView],
        costs: Costs,
        interval: int,
        buffers: UpstreamBuffers | None = None,
    ) -> None:
        super().__init__(job, tasks, costs, buffers)
        self._interval = interval

    def start(self) -> None:
        for task in map(self._bolt, self._of):
            tick = partial(self._tick, task)
            self._job.kernel.every(self._interval, self._interval, Rank.CHECKPOINT, tick, task.number)

    def _tick(self, task: BoltTask, i: int) -> None:
        if task.available:
            task.enqueue(Rank.CHECKPOINT, partial(self._due, task), last=True)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task in self._of and task.component.trigger == "tick":
            self._due(task, needed=True)
        return 0

    def _due(self, task: BoltView, needed: bool = False) -> None:
        # while it recovers, a checkpoint would trim what is still to be replayed
        if self._buffers is None or not self._buffers.recovering(task):
            self.take(task, needed)
