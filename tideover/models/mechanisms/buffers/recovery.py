"""Upstream buffers of a whole job, and what its receivers have to do with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.replays import Replays
from tideover.models.mechanisms.buffers.upstream_buffer import Kept, UpstreamBuffer
from tideover.models.mechanisms.duplicate_filter import CheckpointFilter, Seen
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.runtime.wire import Wire
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import RECOVERY
from tideover.sim.train import Train


class Reached(NamedTuple):
    """How far a task is with what is sent to it.

    positions   newest number that it has processed, by input channel
    seen        greatest uid that it has processed, by path; None: numbers are enough
    """

    positions: Mapping[int, int] = MappingProxyType({})
    seen: Seen | None = None


class UpstreamBuffers(Mechanism):
    """Senders keep what they have sent to those tasks of which they are told (``keep_for``), numbered by
    channel, and replay it on request.

    A protocol has to do this with them, for each task that is replayed to:

    a checkpoint   not while ``recovering``; its content is the state and what it has ``reached``; when it is
                   safe, ``trim`` to that
    ready          ``empty_queue``; with the checkpoint at hand ``restored``, and the verbs ``restore`` and
                   ``open``; then ``sender_ready``, and ``ask``. If the checkpoint takes time to come,
                   ``close`` the task first
                   of any other task: ``open`` it, then ``sender_ready``
    windows        those that a tick ends do not come again in a replay, so a checkpoint has to follow each;
                   those that a marker or a count ends do, and are known by their number

    seen   what drops duplicates at the tasks that are replayed to, if it has to go back with them; None: what
           they have by number is enough, since each of their senders is one task, not several replicas
    """

    def __init__(self, job: Job, seen: CheckpointFilter | None = None) -> None:
        super().__init__(job)
        self._seen = seen
        self._replays = Replays(job)
        self._buffers: list[tuple[BoltTask, UpstreamBuffer]] = []
        """All of them, with their receivers."""
        self._receivers: dict[TaskView, Receiver] = {}
        self._sent: dict[int, list[UpstreamBuffer]] = {}
        """By the sender's number."""
        job.context.keepers.append(_Copies(job, self._buffers, self._receivers))

    def keep_for(
        self, tasks: Iterable[BoltView], at_spouts: bool, replay_cost: int, replay_rate: float | None
    ) -> None:
        """From the start, keep what is sent to these tasks. What one without state sends after a replay, it
        may send in another order, and under new numbers: who reads it needs a `ReplayFilter`.

        at_spouts       whether spouts keep a buffer too; without it a task that reads a spout loses what has
                        come since its last checkpoint
        replay_cost     time to replay one tuple (ns)
        replay_rate     most tuples replayed per second; None: no limit
        """
        step = replay_cost if replay_rate is None else max(replay_cost, round(1e9 / replay_rate))
        for task in map(self._bolt, tasks):
            senders = (c for c in task.inputs if isinstance(c.up, BoltTask) or at_spouts)
            buffers = {channel.position: UpstreamBuffer(channel, self._job.plane) for channel in senders}
            self._receivers[task] = Receiver(self._job, task, buffers, step)
            for buffer in buffers.values():
                self._buffers.append((task, buffer))
                self._sent.setdefault(buffer.channel.up.number, []).append(buffer)

    # -- messages --------------------------------------------------------------------------------------------

    def positions(self, task: BoltView) -> dict[int, int]:
        """Newest number that a task has processed on each of its buffered channels."""
        return self._receivers[task].positions

    def reached(self, task: BoltView) -> Reached:
        """How far a task is now with what is sent to it."""
        return Reached(self.positions(task), None if self._seen is None else self._seen.done(task))

    def trim(self, task: BoltView, reached: Reached) -> None:
        """A task has everything safe up to what it has ``reached``: its senders are told."""
        for position, buffer in self._receivers[task].buffers.items():
            up = buffer.channel.up
            if up.available:
                turn = partial(self._trim, buffer, reached.positions.get(position, 0), reached.seen)
                up.enqueue(Rank.TRIM, turn)

    def _trim(self, buffer: UpstreamBuffer, safe: int, seen: Seen | None) -> None:
        self.moved(self._job.kernel.now)  # what the buffers keep has its peak now
        buffer.trim(safe)
        if seen is not None:  # of replicas it is mostly one that was first
            buffer.drop_known(seen)
        self._job.step(buffer.channel.up.name, "buffer trimmed", f"up to number {safe}")

    # -- a sender's buffers, copied --------------------------------------------------------------------------

    def outputs(self, task: TaskView) -> dict[Wire, Kept]:
        """A copy of what a task keeps now of what it has sent: its output queues."""
        return {buffer.channel: buffer.copy() for buffer in self.sent_by(task)}

    def put_back(self, task: TaskView, outputs: dict[Wire, Kept]) -> None:
        """A task that is up again, and not open yet, keeps what it had when its output queues were copied, if
        they went down with it. What it sent after that stays lost.
        """
        for buffer in self.sent_by(task):
            if buffer.channel in outputs:
                buffer.put_back(outputs[buffer.channel])

    def sent_by(self, task: TaskView) -> list[UpstreamBuffer]:
        """The buffers that a task keeps."""
        return self._sent.get(task.number, [])

    def copy(self, task: TaskView, peer: TaskView) -> None:
        """A replica that has copied its ``peer`` keeps what that one keeps, and nothing else."""
        for mine, theirs in zip(self.sent_by(task), self.sent_by(peer), strict=True):
            mine.follow(theirs)

    # -- failures --------------------------------------------------------------------------------------------

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        sender = self._job.tasks[task.number]
        stopped = isinstance(sender, BoltTask) and sender.gate.stopped
        if not (task.up or stopped):  # with the sender its buffers are gone
            for receiver, buffer in self._buffers:
                if buffer.channel.up is sender:
                    self._job.say.copies_lost(receiver, buffer.uids())
                    buffer.clear()
        if task in self._receivers:
            self._receivers[task].begin_recovery()

    def recovering(self, task: BoltView) -> bool:
        """Whether not everything has been replayed to a task since its last failure."""
        return self._receivers[task].recovering

    def empty_queue(self, task: BoltView) -> None:
        """A task is up again: what is in its queue, or was held for it, and will be replayed is thrown
        away.
        """
        self._bolt(task).empty()

    def restored(self, task: BoltView, reached: Reached) -> None:
        """A task has the state of when it had ``reached`` this: replays go on from there (``ask`` for them).
        What waits in its queue comes behind that.
        """
        self._receivers[task].restored(reached.positions)
        if self._seen is not None:
            self._seen.go_back(task, reached.seen or Seen(task.component.paths))
            self._seen.admit_again(task)

    def ask(self, task: BoltView) -> None:
        """Ask all senders of a task for what they keep, now or as soon as they are ready."""
        self._replays.ask(self._receivers[task])

    def sender_ready(self, task: TaskView) -> None:
        """A task that keeps buffers is up and open: it replays what it was asked for and still owes."""
        self._replays.sender_ready(self._job.tasks[task.number])

    def moved(self, now: int) -> None:
        self._job.say.kept(sum(buffer.size for _, buffer in self._buffers))


class _Copies(Keeper):
    """What the accounts ask of all buffers, and of their receivers."""

    steady = True

    def __init__(
        self, job: Job, buffers: list[tuple[BoltTask, UpstreamBuffer]], receivers: dict[TaskView, Receiver]
    ) -> None:
        self._job, self._buffers, self._receivers = job, buffers, receivers

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(task.component, train) for task, buffer in self._buffers for train in buffer.tuples()]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        if not train.has(RECOVERY) or self._job.context.newest.get(task, -1) != outage:
            return None
        return train.column(RECOVERY) > 0

    def settled(self, outage: OutageView) -> bool:
        hit = self._job.supervisor.outages[outage.number].tasks
        return not any(self._receivers[task].recovering for task in hit if task in self._receivers)
