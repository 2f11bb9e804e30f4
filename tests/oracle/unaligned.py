"""Unaligned snapshots: barriers overtake what waits, which is then part of the snapshot."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from .bolts import Bolt
from .channels import Channel, Message
from .clock import Rank, control
from .layout import Datum
from .snapshots import Picture, Snapshots
from .spouts import SpoutTask

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


@dataclass
class Way:
    """What a task knows of the newest snapshot of which it has seen a barrier."""

    number: int = 0
    passed: set[Channel] = field(default_factory=set)  # their barriers have come
    after: set[Message] = field(default_factory=set)  # came behind one
    turned: set[Channel] = field(default_factory=set)  # the barriers had their turns
    taken: bool = False
    copied: bool = False


class Overtaking(Snapshots):
    """aligned_snapshots with ``unaligned``."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.ways: dict[Task, Way] = {}

    def start(self) -> None:
        self.ways = {task: Way() for task in self.bolts}
        super().start()

    def _way(self, task: Task, number: int) -> Way:
        if number > self.ways[task].number:
            self.ways[task] = Way(number)
        return self.ways[task]

    def _trigger(self) -> None:
        for task in self.bolts:
            task.hurries = not self.params.aligned_timeout
        super()._trigger()
        if self.params.aligned_timeout:
            when = self.world.clock.now + self.params.aligned_timeout
            self._at(when, control(Rank.ROTATION), partial(self._timeout, self.count))

    def _timeout(self, number: int) -> None:
        """From now on barriers overtake."""
        if self.current != number:
            return
        for task in self.bolts:
            task.hurries = True
            task.place_first(Rank.CHECKPOINT, partial(self._switch, task, number))
            task.hurry()

    def _switch(self, task: Task, number: int) -> None:
        """The task is free for the first time since then."""
        seat, line = self.seats[task], task.line
        if self.current != number:
            return
        if task not in self.pictures:
            if seat.blocked:
                self._way(task, number).turned |= seat.blocked
                self._picture_ahead(task)
                self._unblock(task)
        elif any(message.barrier == number for message in line.messages):
            before = list(line.messages)
            while before.pop().barrier != number:
                pass
            picture = self.pictures[task]
            picture.line = [message for message in before if message.barrier is None]
            size = sum(message.channel.size for message in picture.line if message.datum is not None)
            self._send_ahead(task, number)
            if size:
                self.missing.append(task)
                self._store(task, number, size)  # of its state there is a copy already

    def _send_ahead(self, task: Task, number: int) -> None:
        """The barrier is sent ahead of the line, from which those that are in it disappear."""
        line = task.line
        line.messages = deque(message for message in line.messages if message.barrier is None)
        for channel in task.outputs.values():
            channel.send(channel.made(Message(channel, barrier=number)))

    def admit(self, task: Task, message: Message) -> bool:
        if message.barrier is not None:
            way = self._way(task, message.barrier)
            if way.number == message.barrier:
                way.passed.add(message.channel)
            act = partial(self._reached, task, [message.channel], message.barrier)
            task.place_barrier(message, act)
            self.world.clock.at(self.world.clock.now, control(Rank.CHECKPOINT, task.rank), task.hurry)
            return False
        way = self.ways[task]
        if isinstance(message.channel.up, SpoutTask):
            return super().admit(task, message)
        if message.channel in way.passed:
            way.after.add(message)
            if message.channel in self.seats[task].blocked:
                self.seats[task].aside.append(message)
                return False
        elif way.taken and task in self.pictures:
            self.pictures[task].queue.append(message)
        return True

    def _reached(self, task: Task, channels: list[Channel], number: int) -> None:
        """The barrier has its turn."""
        if not task.hurries:
            super()._reached(task, channels, number)
            return
        if self.current != number:
            return
        way = self._way(task, number)
        way.turned |= set(channels)
        if not way.taken:
            self._picture_ahead(task)
        self._write(task, number)

    def _picture_ahead(self, task: Task) -> None:
        now, seat, number = self.world.clock.now, self.seats[task], self.current
        assert number is not None
        way = self.ways[task]
        way.taken = True
        seat.last_picture = number
        queue = [m for m in task.queued() if isinstance(m.channel.up, Bolt) and m not in way.after]
        self.pictures[task] = Picture(
            task.state.copy(),
            task.windows_closed,
            seat.served,
            queue,
            [m for m in task.line.messages if m.barrier is None],
            seat.shelf.changed(),
            seat.shelf.tuples,
        )
        self.world.sinks.pre_commit(task, number)
        self._send_ahead(task, number)
        end = now
        if self.keeps(task):
            entries = task.state.entries + self.pictures[task].shelved
            end += self.params.snapshot_time + entries * self.params.snapshot_cost
        task.occupy(end)
        if end == now:
            way.copied = True
        else:
            self._at(end, control(Rank.CHECKPOINT, task.rank), partial(self._copied, task, number))

    def _copied(self, task: Task, number: int) -> None:
        if self.current == number:
            self.ways[task].copied = True
            self._write(task, number)

    def _write(self, task: Task, number: int) -> None:
        """When it is copied, and no more belongs to it."""
        way = self.ways[task]
        if not way.copied or way.turned != set(task.inputs.values()):
            return
        picture = self.pictures[task]
        size = picture.state.entries * self.params.entry_size
        size += picture.shelved * self.seats[task].shelf.entry_size
        messages = self.messages_size(picture)
        if messages or self.keeps(task):
            self._store(task, number, size + messages)
            self.copy(task, number, size)
        else:
            self._acknowledge(task, number)

    def _store(self, task: Task, number: int, size: int) -> None:
        host = self.world.layout.host[task.physical]
        end = self.store.request(size, host, True) + self.params.upload_time
        self._at(end, control(Rank.TRIM, task.rank), partial(self._acknowledge, task, number))

    # -- back to the last one ------------------------------------------------------------------------------

    def messages_size(self, picture: Picture) -> int:
        waits = [m for m in (*picture.queue, *picture.line) if m.datum is not None]
        return sum(m.channel.size for m in waits)

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if isinstance(task, Bolt):
            self.ways[task] = Way(self.count)
            picture = self.valid.get(task, Picture())
            for message in (*picture.queue, *picture.line):
                self.world.record.there(message.datum)

    def give_queues_back(self) -> None:
        for task in self.bolts:
            picture = self.valid.get(task, Picture())
            task.requeue(picture.queue)
            for message in picture.line:
                task.line.messages.append(message)
                task.line.tuples += message.datum is not None
            task.line.stuck = task.line.full
            task.line.wake()

    def elsewhere(self) -> list[tuple[str, Datum]]:
        found = super().elsewhere()
        for picture in self.valid.values():
            waits = [m for m in (*picture.queue, *picture.line) if m.datum is not None and m.datum.anchored]
            found += [(m.channel.down.component, m.datum) for m in waits]
        return found
