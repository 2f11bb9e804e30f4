"""Where a task that comes back finds its state: on its disk, with a standby, or in the changelog alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tideover.models.mechanisms.changelog.topic import Batch, Changelog
from tideover.models.mechanisms.checkpoints import Costs
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import read
from tideover.models.runtime.views import OutageView
from tideover.sim.kernel import Rank

_SPARED = frozenset({"crash_task", "crash_worker", "false_detection", "reassigned"})
"""Failures of processes: what they had written to disk is there still."""


@dataclass(eq=False)
class _Standby:
    """Follows the changelog, one entry after the other.

    caught_up  when it has, or will have, all entries that are in the changelog by now (ns); None: it is new,
               and reads what was there before it
    behind     entries that have come since it began to read
    """

    caught_up: int | None = 0
    behind: int = 0


class Copies:
    """The copies of one task's state.

    standbys   how many follow its changelog elsewhere; one that is used is replaced by a new one
    on_disk    whether what the task had committed is still on the disk of its host when it comes back there

    Kafka Streams: KIP-441, `StoreChangelogReader`, `ProcessorStateManager`. Samza: `StandbyTask`, and host
    affinity (Noghabi et al., PVLDB 2017, section 4.2).
    """

    def __init__(
        self, job: Job, task: BoltTask, changelog: Changelog, costs: Costs, standbys: int, on_disk: bool
    ) -> None:
        self._job, self._task, self._changelog, self._costs = job, task, changelog, costs
        self._standbys = [_Standby() for _ in range(standbys)]
        self._on_disk, self._host = on_disk, task.host
        self._disk = on_disk
        """Whether its disk is as it was."""
        self._tail: list[Batch] = []
        """What is in the changelog, and not on the disk."""

    # -- what is written -------------------------------------------------------------------------------------

    def add(self, batch: Batch) -> None:
        """A batch of changes is in the changelog."""
        now, cost = self._job.kernel.now, self._costs.restoring_entry
        self._tail.append(batch)
        for standby in self._standbys:
            self._job.say.transferred(batch.size)
            if standby.caught_up is None:
                standby.behind += batch.entries
            else:
                standby.caught_up = max(now, standby.caught_up) + batch.entries * cost

    def commit(self, number: int) -> None:
        """The task has committed: its disk has what went into the changelog up to this batch."""
        self._tail = [batch for batch in self._tail if batch.number > number]

    # -- a failure -------------------------------------------------------------------------------------------

    def failed(self, outage: OutageView) -> None:
        """The task has failed."""
        self._disk &= outage.kind in _SPARED

    def restore(self, then: Callable[[], None]) -> None:
        """Bring the state back, and call ``then``."""
        job, task, costs = self._job, self._task, self._costs
        store, now = job.store_named(costs.store), job.kernel.now
        entries, size = self._changelog.to_read()
        known = [standby for standby in self._standbys if standby.caught_up is not None]
        if self._disk and task.host == self._host:
            entries = sum(batch.entries for batch in self._tail)
            size = sum(batch.size for batch in self._tail)
        elif known:
            best = min(known, key=lambda standby: standby.caught_up or 0)
            back = max(now, best.caught_up or 0) + costs.restoring
            job.kernel.at(back, Rank.RESTORE, then, task.number)
            self._replace(best)
            return
        read(job, task, size, costs.restoring + entries * costs.restoring_entry, then, store)

    def restored(self) -> None:
        """It has all that is in the changelog, where it is now."""
        self._disk, self._host = self._on_disk, self._task.host
        self._tail = []

    def _replace(self, used: _Standby) -> None:
        """Another standby begins, with all that the changelog has."""
        new = _Standby(None)
        self._standbys[self._standbys.index(used)] = new
        entries, size = self._changelog.to_read()

        def has_read() -> None:
            takes = (entries + new.behind) * self._costs.restoring_entry
            new.caught_up = self._job.kernel.now + takes

        store = self._job.store_named(self._costs.store)
        store.read(self._task.host, size, Rank.RESTORE, has_read, self._task.number)
