"""Pairs of tasks that do the same; one of them speaks, and both keep what they send, or would."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .bolts import Bolt
from .channels import Channel, Message
from .clock import Clock, Rank, control
from .replicas import Replication

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


class ActiveStandby(Replication):
    """Output queues, trimmed by acks; who takes over sends what is in them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.unsaid: dict[Task, dict[int, dict[int, int]]] = {}
        self.said: dict[Task, int] = {}
        self.leaving: dict[Task, list[Message]] = {}
        self.speaker: dict[Any, Task] = {}

    def buffers(self, up: Task, down: Task) -> bool:
        return up.component not in self.world.layout.spouts

    def start(self) -> None:
        super().start()
        for task in self.world.tasks:
            if isinstance(task, Bolt):
                task.keeps, task.silent = True, task.replica > 0
                self.speaker.setdefault(task.logical, task)
                self.unsaid[task], self.said[task] = {}, 0
                for channel in task.outputs.values():
                    channel.withheld = task.silent
                self._ack(task)

    # -- acks ------------------------------------------------------------------------------------------------

    def _ack(self, task: Bolt) -> None:
        def ack() -> None:
            if task.live:
                self._tell(task)
            self._ack(task)

        time = self.world.clock.now + self.params.ack_interval
        self.world.clock.at(time, control(Rank.TRIM, task.rank), ack)

    def _tell(self, task: Bolt) -> None:
        for channel in task.inputs.values():
            if channel.buffered and channel.up.live:
                self.world.record.control_bytes += self.params.ack_size
                channel.buffer = [message for message in channel.buffer if not self._had(task, message)]

    def _had(self, task: Bolt, message: Message) -> bool:
        if message.datum is None:
            assert message.marker is not None
            return message.marker <= task.state.markers.get(message.channel.up.logical, 0)
        return message.datum.uid <= self.greatest[task].get(("tuple", message.datum.route), -1)

    def unsaid_window(self, task: Bolt, number: int, sums: dict[int, int], again: bool) -> None:
        if not again:
            self.unsaid[task][number] = sums

    def to_be_said(self, task: Task) -> list[int]:
        newest = max((self.said.get(each, 0) for each in self.world.replicas[task.logical]), default=0)
        return [number for number in self.unsaid.get(task, ()) if number > newest]

    def said_window(self, task: Bolt, number: int) -> None:
        self.said[task] = max(number, self.said[task])

    # -- who speaks ------------------------------------------------------------------------------------------

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if not isinstance(task, Bolt):
            return
        if crash:
            self.unsaid[task] = {}
        assert task.fault is not None
        number = task.fault
        fault = self.world.outages.all[number].fault
        if fault.detection < max(fault.detection + fault.restart, fault.out_of_order):
            when = self.world.clock.now + fault.detection
            self.world.clock.at(when, control(Rank.READY, task.rank), partial(self._another, task, number))

    def _another(self, task: Task, number: int) -> None:
        if task.fault == number and task.down:
            Clock.cancel(task.ready_event)
            task.ready()

    def ready(self, task: Task, was_down: bool) -> None:
        if isinstance(task, Bolt) and self.speaker[task.logical] is task:
            other = self._peer(task)
            if other is not None:
                self._speaks(other)
        super().ready(task, was_down)

    def goes_on(self, task: Task, peer: Task | None) -> None:
        if peer is not None:
            for down, channel in task.outputs.items():
                channel.buffer = list(peer.outputs[down].buffer)
            self.unsaid[task] = dict(self.unsaid[peer])
        speaker = self.speaker[task.logical]
        if speaker is task or not speaker.live:
            self._speaks(task)

    def _speaks(self, task: Task) -> None:
        self.speaker[task.logical] = task
        for each in self.world.replicas[task.logical]:
            if each is not task:
                each.silent = True
                for channel in each.outputs.values():
                    channel.withheld = True

        def place() -> None:
            if task.live and task.silent:
                task.place(Rank.REQUEST, partial(self._send_kept, task))

        self.world.clock.at(self.world.clock.now, control(Rank.REQUEST, task.rank), place)

    def _send_kept(self, task: Task) -> None:
        assert isinstance(task, Bolt)
        if not task.silent or self.speaker[task.logical] is not task:
            return
        newest = max(self.said[each] for each in self.world.replicas[task.logical])
        unsaid, self.unsaid[task] = self.unsaid[task], {}
        for number, sums in sorted(unsaid.items()):
            if number > newest:
                task.say_window(number, sums)
        task.silent = False
        withheld = [channel for channel in task.outputs.values() if channel.withheld]
        now, end = self.world.clock.now, self.world.clock.now
        for channel in withheld:
            channel.withheld = False
            for message in channel.buffer:
                end += self.params.replay_cost
                self.world.record.there(message.datum)
                self.leaving.setdefault(task, []).append(message)
                leaves = partial(self._leaves, task, channel, message)
                if end == now:
                    leaves()
                else:
                    task.later(end, leaves)
        task.occupy(end)

    def _leaves(self, task: Task, channel: Channel, kept: Message) -> None:
        if kept.datum is not None and kept.datum.anchored:
            self.world.ledger.replayed.add(kept.datum.root)
        task.put(Message(channel, kept.datum, kept.marker, recovery=0))
        self.leaving[task].remove(kept)
        self.world.record.gone(kept.datum)

    def gave_up(self, task: Task) -> None:
        for message in self.leaving.pop(task, []):
            self.world.record.gone(message.datum)

    def kept_for_replay(self) -> int:
        return sum(len(c.buffer) for task in self.world.tasks for c in task.inputs.values() if c.buffered)
