"""Channels: what they carry, and when it arrives."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import simpy

from tideover.sim.draws import Purpose

from .clock import Clock, arrival
from .layout import Datum
from .lines import places_of

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


def transfer(size: int, bandwidth: int) -> int:
    """Nanoseconds for so many bytes, rounded up."""
    return -(-size * 1_000_000_000 // bandwidth)


@dataclass(frozen=True, eq=False)
class Message:
    """What a channel carries: a tuple, a window's marker, or the end of a replay."""

    channel: Channel
    datum: Datum | None = None
    marker: int | None = None
    end: bool = False
    number: int = 0  # of a buffered channel: 1, 2, ...
    recovery: int | None = None  # replayed, for this recovery of the receiver
    barrier: int | None = None  # of the snapshot with this number


class Channel:
    """From one physical task to another: first in, first out, nothing is lost on the wire."""

    def __init__(self, world: World, up: Task, down: Task) -> None:
        self.world, self.up, self.down = world, up, down
        self.latency = world.layout.latency(up.physical, down.physical)
        self.sent = 0
        self.last_arrival = 0
        self.wire: deque[Message] = deque()
        self.due: deque[simpy.Event] = deque()  # their arrivals
        self.buffered = world.protocol.buffers(up, down)
        self.numbered = 0
        self.buffer: list[Message] = []
        self.places = places_of(world, self, down.places)

    def made(self, message: Message) -> Message:
        """Enters its sender's line now: from here on it has a number, and is kept."""
        self.world.record.there(message.datum)
        if self.buffered and message.recovery is None:
            self.numbered += 1
            message = replace(message, number=self.numbered)
            self.buffer.append(message)
        return message

    def send(self, message: Message) -> None:
        """Leaves now."""
        name = f"{self.up.name}->{self.down.name}"
        delay = self.world.layout.sample(self.latency, name, Purpose.LATENCY, self.sent)
        if self.world.layout.needs.batches and self.up.component not in self.world.layout.spouts:
            delay = 0
        self.sent += 1
        self.last_arrival = max(self.world.clock.now + delay, self.last_arrival)
        self.wire.append(message)
        priority = arrival(self.down.rank, self.up.rank)
        self.due.append(self.world.clock.at(self.last_arrival, priority, self._arrive))

    def _arrive(self) -> None:
        self.due.popleft()
        self.down.arrive(self.wire.popleft())

    def cut(self) -> None:
        """The connection breaks: what is on the wire is lost, and a new one begins."""
        for event in self.due:
            Clock.cancel(event)
        for message in self.wire:
            self.world.destroyed(self.down, message, self.down.fault)
        self.due.clear()
        self.wire.clear()
        self.last_arrival = 0
