"""Unaligned snapshots: barriers overtake what waits, which is then part of the snapshot."""

from __future__ import annotations

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

    def place_source(self, task: Task, channels: list[Channel], number: int) -> None:
        task.place_first(Rank.CHECKPOINT, partial(self._reached, task, channels, number), hurries=True)

    def admit(self, task: Task, message: Message) -> bool:
        if message.barrier is not None:
            way = self._way(task, message.barrier)
            if way.number == message.barrier:
                way.passed.add(message.channel)
            act = partial(self._reached, task, [message.channel], message.barrier)
            task.place(Rank.CHECKPOINT, act, hurries=True)
            self.world.clock.at(self.world.clock.now, control(Rank.CHECKPOINT, task.rank), task.hurry)
            return False
        way = self.ways[task]
        if isinstance(message.channel.up, SpoutTask):
            self.seats[task].log.append(message)
        elif message.channel in way.passed:
            way.after.add(message)
        elif way.taken and task in self.pictures:
            self.pictures[task].queue.append(message)
        return True

    def _reached(self, task: Task, channels: list[Channel], number: int) -> None:
        """The barrier has its turn."""
        if self.current != number:
            return
        way = self._way(task, number)
        way.turned |= set(channels)
        if not way.taken:
            self._picture(task)
        self._write(task, number)

    def _picture(self, task: Task) -> None:
        now, seat, number = self.world.clock.now, self.seats[task], self.current
        assert number is not None
        way = self.ways[task]
        way.taken = True
        seat.last_picture = number
        queue = [m for m in task.queued() if isinstance(m.channel.up, Bolt) and m not in way.after]
        self.pictures[task] = Picture(
            task.state.copy(), task.windows_closed, seat.served, queue, list(task.line.messages)
        )
        for channel in task.outputs.values():
            channel.send(channel.made(Message(channel, barrier=number)))
        end = now
        if self.world.layout.stateful(task.component):
            end += self.params.snapshot_time + task.state.entries * self.params.snapshot_cost
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
        size = self.size(task, self.pictures[task])
        if size or self.world.layout.stateful(task.component):
            host = self.world.layout.host[task.physical]
            end = self.store.request(size, host, True) + self.params.upload_time
            self._at(end, control(Rank.TRIM, task.rank), partial(self._acknowledge, task, number))
        else:
            self._acknowledge(task, number)

    # -- back to the last one ------------------------------------------------------------------------------

    def size(self, task: Task, picture: Picture) -> int:
        waits = [m for m in (*picture.queue, *picture.line) if m.datum is not None]
        return picture.state.entries * self.params.entry_size + sum(m.channel.size for m in waits)

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
