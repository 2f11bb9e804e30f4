"""Output queues of two tasks that do the same, of which one speaks and the other would."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.replays import send_kept
from tideover.models.mechanisms.buffers.upstream_buffer import UpstreamBuffer
from tideover.models.mechanisms.duplicate_filter import DuplicateFilter
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.runtime.wire import Wire
from tideover.sim.kernel import Rank
from tideover.sim.train import Train


class OutputQueues(Mechanism, Keeper):
    """Of the replicas of each bolt task one *speaks*, the first to begin with; all keep what they send, or
    would, until who gets it has had it. When another speaks it sends what it has kept.

    J.-H. Hwang et al., ICDE 2005, section 4.3; M. A. Shah et al., SIGMOD 2004, section 3.

    cost_ns   time to send a message that was kept
    """

    def __init__(self, job: Job, duplicates: DuplicateFilter, cost_ns: int) -> None:
        super().__init__(job)
        self._duplicates, self._cost = duplicates, cost_ns
        self._of: dict[Wire, UpstreamBuffer] = {}
        self._speaker = {place: replicas[0] for place, replicas in job.bolts.items()}
        """Of each pair: who speaks, or will when it has its turn."""
        for task in job.bolt_tasks:
            task.silent, task.unsaid = task.replica > 0, {}
            for channel in _outputs(task):
                self._of[channel] = UpstreamBuffer(channel, job.plane)
            self._withhold(task)
        job.context.keepers.append(self)

    def _withhold(self, task: BoltTask) -> None:
        for channel in _outputs(task):
            channel.withheld = task.silent

    def _replicas(self, task: BoltTask) -> list[BoltTask]:
        return self._job.bolts[task.component.name, task.index]

    # -- what need not be kept -------------------------------------------------------------------------------

    def trim(self, view: BoltView) -> int:
        """A task tells those bolts' tasks that send to it, each replica of them, what it has had; returns how
        many are told.
        """
        task, told = self._bolt(view), 0
        self.moved(self._job.kernel.now)  # what they keep has its peak now
        for channel in task.inputs:
            if channel in self._of and channel.up.available:
                told += 1
                self._drop_known(task, channel)
        newest = max(each.said for each in self._replicas(task))
        task.unsaid = {number: closed for number, closed in (task.unsaid or {}).items() if number > newest}
        return told

    def _drop_known(self, task: BoltTask, channel: Wire) -> None:
        """Keep only what a task has not had."""
        self._of[channel].drop_known(self._duplicates.seen(task), task.newest_marker(channel))

    # -- who speaks ------------------------------------------------------------------------------------------

    def gone(self, view: TaskView) -> None:
        """A task has failed, and this is known, or it is back, empty: if it spoke, and another one is there,
        that one does.
        """
        task = self._bolt(view)
        other = next((each for each in self._replicas(task) if each is not task and each.available), None)
        if self._speaker[_place(task)] is task and other is not None:
            self._speak(other)

    def there(self, task: BoltTask, peer: BoltTask | None) -> None:
        """A task goes on, with what it has copied of its ``peer`` (None: of nobody): if who speaks is not
        there, it does.
        """
        if peer is not None:
            for mine, theirs in zip(_outputs(task), _outputs(peer), strict=True):
                self._lose(mine)
                self._of[mine].become(self._of[theirs].copy())
            task.unsaid = dict(peer.unsaid or {})
        speaker = self._speaker[_place(task)]
        if speaker is task or not speaker.available:
            self._speak(task)

    def _speak(self, task: BoltTask) -> None:
        """From now on; what it has kept leaves when it has served what is in its queue."""
        kernel = self._job.kernel
        self._speaker[_place(task)] = task
        self._job.step(task.name, "is to speak")
        for each in self._replicas(task):
            if each is not task:
                each.silent = True
                self._withhold(each)

        def place() -> None:
            if task.available and task.silent:
                task.enqueue(Rank.REQUEST, partial(self._send, task))

        kernel.at(kernel.now, Rank.REQUEST, place, task.number)

    def _send(self, task: BoltTask) -> None:
        """Its turn: what it has kept leaves, channel by channel; what it makes from now on comes behind."""
        if not task.silent or self._speaker[_place(task)] is not task:
            return
        task.say_unsaid(max(each.said for each in self._replicas(task)))
        task.silent = False
        self._withhold(task)
        self._job.step(task.name, "queue sent", f"{self._send_kept(task)} messages")

    def _send_kept(self, task: BoltTask) -> int:
        """What a task has kept leaves from now on, channel by channel; returns how many messages that are."""
        asked = [(self._of[channel], 0) for channel in _outputs(task)]
        return send_kept(self._job, task, asked, 0, self._cost)

    # -- failures, and the accounts --------------------------------------------------------------------------

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            return
        bolt = self._bolt(task)
        if not (bolt.up or bolt.gate.stopped):
            bolt.unsaid = {}
            for channel in _outputs(bolt):
                self._lose(channel)

    def _lose(self, channel: Wire) -> None:
        buffer = self._of[channel]
        self._job.say.copies_lost(channel.down, buffer.uids())
        buffer.clear()

    def moved(self, now: int) -> None:
        self._job.say.kept(sum(buffer.size for buffer in self._of.values()))

    def tuples(self) -> list[tuple[Component, Train]]:
        return [
            (channel.down.component, train)
            for channel, buffer in self._of.items()
            for train in buffer.tuples()
        ]


def _place(task: BoltTask) -> tuple[str, int]:
    return task.component.name, task.index


def _outputs(task: BoltTask) -> Iterator[Wire]:
    """All channels of a task, in the physical order of their receivers."""
    for outlet in task.outlets:
        for replicas in outlet.channels:
            yield from replicas
