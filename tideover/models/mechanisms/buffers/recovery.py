"""Upstream buffers of a whole job, and what its receivers have to do with them."""

from __future__ import annotations

from functools import partial

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.replays import Replays
from tideover.models.mechanisms.buffers.upstream_buffer import RECOVERY, Kept, UpstreamBuffer
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
from tideover.sim.train import Train


class UpstreamBuffers(Mechanism):
    """Senders keep what they have sent to tasks with state, or to all bolts, numbered by channel, and replay
    it on request.

    A protocol has to do this with them (what is said of tasks with state goes for all that are replayed to):

    a checkpoint   not while ``recovering``; its content is the state and a copy of ``positions``; when it is
                   safe, ``trim`` to these
    ready          of a task with state: ``empty_queue``; with the checkpoint at hand ``restored``, and the
                   verbs ``restore`` and ``open``; then ``sender_ready``, and ``ask``. If the checkpoint takes
                   time to come, ``close`` the task first
                   of any other: ``open`` it, then ``sender_ready``
    windows        those that a tick ends do not come again in a replay, so a checkpoint has to follow each;
                   those that a marker or a count ends do, and are known by their number

    at_spouts       whether spouts keep a buffer too; without it a task that reads a spout loses what has come
                    since its last checkpoint
    replay_cost     time to replay one tuple (ns)
    replay_rate     most tuples replayed per second; None: no limit
    everywhere      whether tasks without state are replayed to as well. What such a task sends after it, it
                    may send in another order, and under new numbers: receivers need a `ReplayFilter`
    """

    def __init__(
        self,
        job: Job,
        at_spouts: bool,
        replay_cost: int,
        replay_rate: float | None,
        everywhere: bool = False,
    ) -> None:
        super().__init__(job)
        self._replays = Replays(job, replay_cost, replay_rate)
        self._buffers: list[tuple[BoltTask, UpstreamBuffer]] = []
        """All of them, with their receivers."""
        self._receivers: dict[TaskView, Receiver] = {}
        for task in job.bolt_tasks:
            if everywhere or task.state is not None:
                senders = (c for c in task.inputs if isinstance(c.up, BoltTask) or at_spouts)
                buffers = {channel.position: UpstreamBuffer(channel) for channel in senders}
                self._buffers += [(task, buffer) for buffer in buffers.values()]
                self._receivers[task] = Receiver(job, task, buffers)
        self._sent: dict[int, list[UpstreamBuffer]] = {}
        """By the sender's number."""
        for _, buffer in self._buffers:
            self._sent.setdefault(buffer.channel.up.number, []).append(buffer)
        self.senders = tuple({buffer.channel.up: None for _, buffer in self._buffers})
        """Who keeps a buffer: what ``trim`` reads."""
        job.context.keepers.append(_Copies(job, self._buffers, self._receivers))

    # -- messages --------------------------------------------------------------------------------------------

    def passed(self, task: BoltView, train: Train) -> None:
        if task in self._receivers:
            self._receivers[task].passed(train)

    def positions(self, task: BoltView) -> dict[int, int]:
        """Newest number that a task has processed on each of its buffered channels, as it is from now on: who
        wants it as it is now takes a copy.
        """
        return self._receivers[task].positions

    def trim(self, task: BoltView, positions: dict[int, int]) -> None:
        """A task has everything up to these numbers safe: its senders are told."""
        for position, buffer in self._receivers[task].buffers.items():
            up = buffer.channel.up
            if up.available:
                turn = partial(self._trim, buffer, positions.get(position, 0))
                up.enqueue(Rank.TRIM, turn, self.senders)

    def _trim(self, buffer: UpstreamBuffer, safe: int) -> None:
        self.moved(self._job.kernel.now)  # what the buffers keep has its peak now
        buffer.trim(safe)
        self._job.step(buffer.channel.up.name, "buffer trimmed", f"up to number {safe}")

    # -- a sender's buffers, copied --------------------------------------------------------------------------

    def outputs(self, task: TaskView) -> dict[Channel, Kept]:
        """A copy of what a task keeps now of what it has sent: its output queues."""
        return {buffer.channel: buffer.copy() for buffer in self.sent_by(task)}

    def put_back(self, task: TaskView, outputs: dict[Channel, Kept]) -> None:
        """A task that is up again, and not open yet, keeps what it had when its output queues were copied, if
        they went down with it. What it sent after that stays lost.
        """
        for buffer in self.sent_by(task):
            if buffer.channel in outputs:
                buffer.put_back(outputs[buffer.channel])

    def sent_by(self, task: TaskView) -> list[UpstreamBuffer]:
        """The buffers that a task keeps."""
        return self._sent.get(task.number, [])

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
        self._receivers[task].empty_queue()

    def restored(self, task: BoltView, positions: dict[int, int]) -> None:
        """A task has the state of these numbers: replays go on from there (``ask`` for them)."""
        self._receivers[task].restored(positions)

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

    def __init__(
        self, job: Job, buffers: list[tuple[BoltTask, UpstreamBuffer]], receivers: dict[TaskView, Receiver]
    ) -> None:
        self._job, self._buffers, self._receivers = job, buffers, receivers

    def tuples(self) -> list[tuple[Component, Train]]:
        return [(task.component, train) for task, buffer in self._buffers for train in buffer.copy().tuples()]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        if not train.has(RECOVERY) or self._job.context.newest.get(task, -1) != outage:
            return None
        return train.column(RECOVERY) > 0

    def settled(self, outage: OutageView) -> bool:
        hit = self._job.supervisor.outages[outage.number].tasks
        return not any(self._receivers[task].recovering for task in hit if task in self._receivers)
