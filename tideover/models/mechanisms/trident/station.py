"""A task of a Trident topology at work: one piece of work after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import NamedTuple

from tideover.models.mechanisms.trident.attempt import Attempt
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.kernel import Rank


class Work(NamedTuple):
    """What a task has to do for an attempt; ``done`` is called when it has taken ``duration`` (ns)."""

    attempt: Attempt
    duration: int
    done: Callable[[], None]


class Station:
    """Does the works of a task, in the order in which they come.

    own        number of the outage of the task alone by which it is down; None: none
    worker_up  whether the process lives that it is in
    fault      number of the newest outage that has struck it
    began_at   when the present work began (ns); None: it has none
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._kernel, self._links = job.kernel, job.supervisor.links
        self.task = task
        self._readers = {c.down.host for outlet in task.outlets for to in outlet.channels for c in to}
        self.own: int | None = None
        self.worker_up = True
        self.fault = -1
        self.began_at: int | None = None
        self._works: deque[Work] = deque()
        """The first of them is the present one."""
        self._ends_at = self._number = self._stopped_until = 0

    @property
    def down(self) -> bool:
        """Whether there is nobody to do anything."""
        return self.own is not None or not self.worker_up

    def add(self, work: Work) -> None:
        """A piece of work comes."""
        self._works.append(work)
        self._go_on()

    def _go_on(self) -> None:
        """Begin with the next work, if nothing is being done."""
        if self.began_at is None and self._works:
            self.began_at = self._kernel.now
            self._end_at(max(self._kernel.now, self._stopped_until) + self._works[0].duration)

    def _end_at(self, when: int) -> None:
        self._number += 1
        self._ends_at, number = when, self._number

        def ended() -> None:
            if number != self._number:
                return
            if (parted := self._parted_until()) > self._kernel.now:
                self._end_at(parted)
                return
            work = self._works.popleft()
            self._stop()
            work.done()
            self._go_on()

        self._kernel.at(when, Rank.BATCH, ended, self.task.number)

    def _parted_until(self) -> int:
        """Until when a partition cuts the task off from one that reads it (ns)."""
        return max((self._links.parted_until(self.task.host, host) for host in self._readers), default=0)

    def _stop(self) -> None:
        """What is being done is over, or given up."""
        assert self.began_at is not None
        self.task.busy.count(self._kernel.now - self.began_at)
        self.began_at = None
        self._number += 1

    def give_up(self, attempts: Collection[Attempt]) -> None:
        """Nobody wants the works of these attempts any more."""
        if self.began_at is not None and self._works[0].attempt in attempts:
            self._stop()
        self._works = deque(work for work in self._works if work.attempt not in attempts)
        self._go_on()

    def crash(self) -> None:
        """All works are gone, and what has stopped it is over."""
        if self.began_at is not None:
            self._stop()
        self._works.clear()
        self._stopped_until = 0

    def stop_until(self, until: int) -> None:
        """It does nothing until then."""
        shift = until - max(self._kernel.now, self._stopped_until)
        if self.down or shift <= 0:
            return
        self._stopped_until = until
        if self.began_at is not None:
            self._end_at(self._ends_at + shift)
