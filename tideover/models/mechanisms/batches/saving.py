"""When the states of a query are saved, and what it takes to have one again that is lost."""

from __future__ import annotations

from tideover.models.mechanisms.batches.partition import Partition
from tideover.models.mechanisms.batches.settings import BatchSettings


class EveryBatch:
    """Every batch commits the states of its tasks, and a lost copy is loaded."""

    waits_for_locality = True
    """Whether a task that has lost its executor waits a while, as others of its stage have theirs."""

    def __init__(self, settings: BatchSettings) -> None:
        self._settings = settings

    def saves(self, trigger: int) -> bool:
        """Whether a batch that is triggered then (ns) saves its states."""
        return True

    def loading(self, partition: Partition) -> int:
        """What a task with state takes to have it again, before its next batch (ns)."""
        state = partition.task.state
        assert state is not None
        return self._settings.reload_time + state.entries * self._settings.reload_cost

    def committed(self, partitions: list[Partition], saved: bool, now: int) -> None:
        """A batch of these tasks is committed, and may have saved their states."""


class Lineage(EveryBatch):
    """States are saved now and then. One that is lost is computed again, from the newest that was saved, and
    from the batches since: by its lineage. Each task computes its own, so that all executors take part.

    M. Zaharia et al., *Discretized Streams*, SOSP 2013, sections 3.3 (parallel recovery) and 4.
    """

    waits_for_locality = False

    def __init__(self, settings: BatchSettings, interval: int) -> None:
        super().__init__(settings)
        self._interval = interval
        self._due = interval

    def saves(self, trigger: int) -> bool:
        return trigger >= self._due

    def loading(self, partition: Partition) -> int:
        s = self._settings
        return s.reload_time + partition.saved_rows * s.reload_cost + partition.since_saved

    def committed(self, partitions: list[Partition], saved: bool, now: int) -> None:
        for p in partitions:
            if saved:
                p.saved_rows, p.since_saved = p.share.entries, 0
            else:
                p.since_saved += self._settings.task_time + p.share.demand
        if saved:
            self._due = (now // self._interval + 1) * self._interval
