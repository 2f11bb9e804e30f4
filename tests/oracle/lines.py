"""Bounded queues: what a task sends waits in one line until there is room for it where it goes.

The rules are those of `tideover.models.job.components`. A queue that blocks has so many places, for tuples
that wait. A tuple takes one when it leaves its sender, and frees it for good when its service begins, or
when it is lost; senders that wait are let in in the order in which they asked. With credits each channel has
places of its own, and its sender learns one link later that one is free. What takes no service (a marker, a
barrier, the end of a replay) takes no place.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from .clock import arrival, departure

if TYPE_CHECKING:
    from .channels import Channel, Message
    from .program import World
    from .tasks import Task


class Limit(NamedTuple):
    """Of a component: places of each task's queue (None: no end), what happens when they are taken, and how
    many tuples may be left in a task's line when it begins with the next.
    """

    length: int | None = None
    when_full: str = "block"
    send: int = 0


class Places:
    """Those of one task's queue, or, with credits, of one channel (``delay``: until its sender knows)."""

    def __init__(self, world: World, number: int, delay: int = 0, owner: Channel | None = None) -> None:
        self.world, self.free, self.delay, self.owner = world, number, delay, owner
        self.taken: set[Message] = set()
        self.waiting: list[tuple[int, int, Line]] = []  # since when, number of the sender

    def ask(self, line: Line) -> None:
        self.waiting.append((self.world.clock.now, line.task.rank, line))
        self.waiting.sort(key=lambda asked: asked[:2])

    def room(self, line: Line) -> bool:
        """Whether it is among the first, for whom there is a place each."""
        return any(waits is line for _, _, waits in self.waiting[: max(0, self.free)])

    def take(self, line: Line, message: Message) -> None:
        self.forget(line)
        self.free -= 1
        self.taken.add(message)

    def forget(self, line: Line) -> None:
        """It does not wait any more; who comes next may have room."""
        self.waiting = [asked for asked in self.waiting if asked[2] is not line]

    def give_back(self, message: Message) -> None:
        """Once only."""
        if message not in self.taken:
            return
        self.taken.remove(message)
        if self.owner is None:
            self.freed()
            return
        clock = self.world.clock
        known = arrival(self.owner.up.rank, self.owner.down.rank)
        clock.at(clock.now + self.delay, known, self.freed)

    def freed(self) -> None:
        self.free += 1
        self.wake()

    def wake(self) -> None:
        """The first of those who wait go on."""
        for _, _, line in self.waiting[: max(0, self.free)]:
            line.wake()


class Line:
    """What one task has made and not yet sent, in the order in which it was made."""

    def __init__(self, world: World, task: Task) -> None:
        self.world, self.task = world, task
        self.limit = world.layout.limit(task.component)
        self.messages: deque[Message] = deque()
        self.tuples = 0  # of the messages
        self.asked: Places | None = None  # by the first one
        self.stuck = False

    @property
    def full(self) -> bool:
        """Whether the task has to wait with what it does next."""
        return self.tuples > self.limit.send

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.tuples += message.datum is not None
        self.move()

    def wake(self) -> None:
        """Move, when whatever goes on now is over."""
        self.world.clock.at(self.world.clock.now, departure(self.task.rank), self.move)

    def move(self) -> None:
        """Send what there is room for."""
        while self.messages and self.task.runs and self._has_room(self.messages[0]):
            message = self.messages.popleft()
            self.tuples -= message.datum is not None
            if self.asked is not None:
                self.asked.take(self, message)
                self.asked = None
            message.channel.send(message)
        if self.full:
            self.stuck = True
        elif self.stuck:
            self.stuck = False
            self.task.line_is_shorter()

    def _has_room(self, message: Message) -> bool:
        places = message.channel.places if message.datum is not None else None
        if places is None:
            return True
        if self.asked is None:
            self.asked = places
            places.ask(self)
        return places.room(self)

    def lost(self) -> list[Message]:
        """Its task has crashed."""
        if self.asked is not None:
            self.asked.forget(self)
            self.asked.wake()
        messages = list(self.messages)
        self.messages.clear()
        self.asked, self.stuck, self.tuples = None, False, 0
        return messages


def places_of(world: World, channel: Channel, queue: Places | None) -> Places | None:
    """Those that a tuple on this channel needs; ``queue``: those of the receiver's queue."""
    layout, limit = world.layout, world.layout.limit(channel.down.component)
    logged = layout.needs.log and channel.up.component in layout.spouts
    if limit.length is None or limit.when_full == "drop" or logged:
        return None
    if limit.when_full == "block":
        return queue
    return Places(world, limit.length, round(channel.latency.mean_ns), channel)
