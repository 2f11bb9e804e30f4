"""What a task's store makes of a part of a transaction, by the kind of state.

Apache Storm, docs/Trident-state.md; ``NonTransactionalMap``, ``TransactionalMap``, ``OpaqueMap`` with
``TransactionalValue`` and ``OpaqueValue``. There each key has its transaction; here all keys of a task have
the same.
"""

from __future__ import annotations

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, go_back
from tideover.sim.train import Ints, Train


class Stored:
    """The store of a task: it adds what comes.

    handed_on   what the newest transaction has put out for other tasks
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._job, self._task = job, task
        self.handed_on: list[tuple[BoltTask, Train]] = []

    def takes(self, txid: int, part: Train | None) -> bool:
        """Whether the part of a transaction is to be added now; what has to be undone before it is."""
        self.handed_on = []
        return True

    @property
    def before(self) -> SavedState | None:
        """The state that may come back; None: none will."""
        return None


class TransactionalStore(Stored):
    """It knows the newest transaction, and skips it when it comes again."""

    txid = 0

    def takes(self, txid: int, part: Train | None) -> bool:
        if txid == self.txid:
            return False
        self.txid = txid
        return super().takes(txid, part)


class OpaqueStore(Stored):
    """It knows the newest transaction, and what was before it, to which it goes back if that comes again."""

    txid = 0
    _before: SavedState | None = None
    _put_out: Ints | None = None
    """Uids of the tuples that the newest transaction had, at an end without state."""

    def takes(self, txid: int, part: Train | None) -> bool:
        task, job = self._task, self._job
        if txid != self.txid:
            self.txid, self._before = txid, SavedState.of(task)
        else:
            assert self._before is not None
            go_back(job, task, self._before)
            if self._put_out is not None:
                job.say.void(task.component, self._put_out, 0)
        if task.state is None and task.component.anchored:
            self._put_out = None if part is None else without_markers(part).uid
        return super().takes(txid, part)

    @property
    def before(self) -> SavedState | None:
        return self._before


STORES: dict[str, type[Stored]] = {
    "non_transactional": Stored,
    "transactional": TransactionalStore,
    "opaque": OpaqueStore,
}
