"""State transfer between replicas: one that comes back copies a live one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.duplicate_filter import DuplicateFilter
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import NOTHING
from tideover.models.runtime.saved_state import restored, roll_back
from tideover.models.runtime.views import OutageView, TaskView
from tideover.models.runtime.wire import when_arrived
from tideover.sim.kernel import Rank


class StateTransfer(Mechanism):
    """A replica that comes back waits until a live one has been copied, and has all that was sent before it
    was back; then it has the other's state, queue and position in the stream at one instant.

    copy_time    until the copy begins (ns)
    bandwidth    at which state is copied (bytes/s); None: at once
    entry_size   bytes of an entry of the state
    then         called when a replica is there again, with the one that it has copied (None: it is alone)
    """

    def __init__(
        self,
        job: Job,
        duplicates: DuplicateFilter,
        copy_time: int,
        bandwidth: int | None,
        entry_size: int,
        then: Callable[[BoltTask, BoltTask | None], None] = lambda task, peer: None,
    ) -> None:
        super().__init__(job)
        self._then = then
        self._duplicates = duplicates
        self._copy_time, self._bandwidth, self._entry_size = copy_time, bandwidth, entry_size

    def _peer(self, task: BoltTask) -> BoltTask | None:
        replicas = self._job.bolts[task.component.name, task.index]
        return next((r for r in replicas if r is not task and r.available), None)

    def begin(self, view: TaskView, outage: OutageView) -> bool:
        """``view`` is up again, and copies a live replica; returns False if there is none."""
        task, now = self._bolt(view), self._job.kernel.now
        peer = self._peer(task)
        if peer is None:
            return False
        task.gate.closed = True
        # no tick can end anything now; most of the queue is in the peer's too, and will be dropped
        task.set_aside()
        size = (0 if peer.state is None else peer.state.entries) * self._entry_size
        copied = now + self._copy_time
        if self._bandwidth is not None:
            copied += -(-size * 1_000_000_000 // self._bandwidth)
        sent = [(channel, channel.messages) for channel in peer.inputs]
        self._job.say.transferred(size)
        self._job.step(task.name, "copy asked for", f"{size} B", peer.name)
        copy = partial(self._copy, task, peer, outage)
        when_arrived(self._job.kernel, sent, copied, Rank.RESTORE, copy, task.number)
        return True

    def go_on_alone(self, view: TaskView, outage: OutageView) -> None:
        """Nobody is there to copy from: the task goes on with what it has."""
        task = self._bolt(view)
        task.gate.closed = False
        if task.state is not None:
            task.state = task.state  # what is in service may fill a window no more
        restored(self._job, task, outage, NOTHING)
        self._then(task, None)
        task.gate.open()

    def _copy(self, task: BoltTask, peer: BoltTask, outage: OutageView) -> None:
        """State, what was seen, epochs and queue of the peer, all at this instant; then what was held."""
        if self._job.context.newest[task] != outage.number:
            return  # it has failed again
        if not peer.available:
            if not self.begin(task, outage):
                self.go_on_alone(task, outage)
            return
        gate = task.gate
        self._job.step(peer.name, "state copied", to=task.name)
        self._duplicates.copy(task, peer)
        self._duplicates.admit_again(task)
        task.windows.epochs = dict(peer.windows.epochs)
        if peer.state is not None:
            copy = peer.state.copy()
            roll_back(self._job, task, copy.fresh())
            task.state = copy
            task.windows.ended = peer.windows.ended
            restored(self._job, task, outage, copy.effects().uid)
        for mine, theirs in zip(task.outlets, peer.outlets, strict=True):
            mine.follow(theirs)
        gate.closed = False
        task.copy_queue(peer)
        self._then(task, peer)
        gate.open()
