"""Who triggers the snapshots of a job, waits for all its tasks, and knows what the job can go back to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tideover.models.job.topology import Component
from tideover.models.mechanisms.barriers.member import Member
from tideover.models.mechanisms.barriers.snapshot import Part, Snapshot
from tideover.models.runtime.job import Job
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints


@dataclass(frozen=True)
class Schedule:
    """When snapshots are taken (ns).

    interval    distance of two triggers; the first comes after ``first``
    min_pause   least time from the end of a snapshot to the next trigger
    timeout     a snapshot that takes longer is abandoned
    """

    interval: int
    first: int
    min_pause: int
    timeout: int


class Coordinator:
    """Triggers snapshots: one at a time, and at once after the last if that took longer than the interval.

    ``insert`` puts a new snapshot's barriers into the sources; ``completed`` is told of each that is
    complete.
    """

    def __init__(
        self,
        job: Job,
        members: dict[TaskView, Member],
        schedule: Schedule,
        insert: Callable[[Snapshot], None],
        completed: Callable[[Snapshot], None],
    ) -> None:
        self._job, self._kernel = job, job.kernel
        self._members, self._schedule = members, schedule
        self._insert, self._completed = insert, completed
        self.under_way: Snapshot | None = None
        self.complete: Snapshot | None = None
        """The newest; None: there is none yet."""
        self._plans = Plans(job.kernel)
        self._triggered = 0
        self._triggered_at = -1
        self._wanted = False
        """A trigger has fallen due that must wait: for the end of the last snapshot, or for the pause."""
        self._earliest = 0

    # -- triggers --------------------------------------------------------------------------------------------

    def start(self, first: int) -> None:
        """The job runs; the first trigger is at ``first``."""
        self._plans.void()
        self._wanted = False
        self._earliest = 0
        self._next(first)

    def stop(self) -> None:
        """Nothing is triggered until ``start``; a snapshot under way is interrupted, and does not count."""
        self._plans.void()
        self.under_way = None

    def _next(self, when: int) -> None:
        def due() -> None:
            self._next(when + self._schedule.interval)
            if self._triggered_at < when and not self._wanted:
                self._wanted = True
                if self.under_way is None:
                    self._plan()

        self._plans.at(when, Rank.CHECKPOINT, due)

    def _plan(self) -> None:
        if self._earliest > self._kernel.now:
            self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger)
        else:
            self._trigger()

    def _trigger(self) -> None:
        self._wanted = False
        self._triggered += 1
        self._triggered_at = self._kernel.now
        snapshot = self.under_way = Snapshot(self._triggered, self._kernel.now, Counter(list(self._members)))
        timeout = self._schedule.timeout
        self._plans.after(timeout, Rank.ROTATION, lambda: self._expired(snapshot))
        self._step("snapshot triggered")
        self._insert(snapshot)

    def after(self, delay: int, snapshot: Snapshot, action: Callable[[Snapshot], None]) -> None:
        """So long after now call ``action``, when everything has been moved, if the snapshot is under way."""

        def due() -> None:
            if self.waits_for(snapshot):
                self._kernel.advance()
                action(snapshot)

        self._plans.after(delay, Rank.ROTATION, due)

    # -- how a snapshot ends ---------------------------------------------------------------------------------

    def waits_for(self, snapshot: Snapshot) -> bool:
        """Whether it is under way: neither complete, nor abandoned, nor interrupted."""
        return self.under_way is snapshot

    def acknowledge(self, task: TaskView, snapshot: Snapshot) -> None:
        """A task's part is safe; when all are, the snapshot is what the job goes back to."""
        self._job.step(task.name, "part acknowledged", f"snapshot {snapshot.number}", "coordinator")
        snapshot.awaited[task] -= 1
        if not snapshot.awaited[task]:
            del snapshot.awaited[task]
        if self.waits_for(snapshot) and not snapshot.awaited:
            self.complete = snapshot
            self._job.hooks.moved(self._kernel.now)  # what the logs keep has its peak now
            for each, member in self._members.items():
                member.completed(snapshot.number, snapshot.parts[each])
            self._job.say.snapshot(snapshot.begun, self._kernel.now, snapshot.aligning)
            self._ended("snapshot complete")
            self._completed(snapshot)

    def _expired(self, snapshot: Snapshot) -> None:
        """It takes too long: its barriers, where they still are, mean nothing."""
        if self.waits_for(snapshot):
            self._kernel.advance()
            for member in self._members.values():
                member.let_go()
            self._ended("snapshot abandoned")

    def _ended(self, how: str) -> None:
        assert self.under_way is not None
        self._step(how)
        self.under_way = None
        self._earliest = self._kernel.now + self._schedule.min_pause
        if self._wanted:
            self._plans.at(self._earliest, Rank.CHECKPOINT, self._trigger)

    # -- what the job goes back to ---------------------------------------------------------------------------

    def part(self, task: TaskView) -> Part:
        """A task's part of the complete snapshot; where there is none yet, the beginning."""
        if self.complete is None:
            return Part(SavedState.at_the_beginning(self._members[task].task), 0)
        return self.complete.parts[task]

    def store_lost(self) -> None:
        """The store has nothing any more: a snapshot under way is abandoned; of the complete one is left how
        far tasks had read.
        """
        if self.under_way is not None:
            self._expired(self.under_way)
        if self.complete is not None:
            parts = self.complete.parts
            for task, member in self._members.items():
                parts[task] = Part(parts[task].state.emptied(), parts[task].position)
                member.store_lost()

    def effects(self) -> list[tuple[Component, Ints]]:
        """Uids of the tuples whose effects live in the complete snapshot, with their components."""
        parts = {} if self.complete is None else self.complete.parts
        return [(t.component, p.state.effects()) for t, p in parts.items() if p.state.state is not None]

    def _step(self, what: str) -> None:
        assert self.under_way is not None
        self._job.step("coordinator", what, f"snapshot {self.under_way.number}")
