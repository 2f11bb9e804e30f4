"""Channels: what they carry, and when it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import simpy

from tideover.sim.draws import Purpose

from .clock import Clock, Priority, arrival, network
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
    commit: bool = False  # of what was sent before


class Card:
    """One direction of a host's network card: one message after the other, as they come."""

    def __init__(self, bandwidth: int) -> None:
        self.bandwidth = bandwidth
        self.free = 0

    def through(self, now: int, size: int, slower: float) -> int:
        """A message comes now, and takes so many times as long; when it has gone through."""
        self.free = max(self.free, now) + round(transfer(size, self.bandwidth) * slower)
        return self.free


@dataclass
class Wait:
    """Something that happens when messages have arrived, at ``earliest``."""

    messages: set[Message]
    earliest: int
    priority: Priority
    act: Callable[[], None]


class Arrivals:
    """Who waits for messages that are on their way."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.waiting: list[Wait] = []

    def wait(
        self, messages: set[Message], earliest: int, priority: Priority, act: Callable[[], None]
    ) -> None:
        """Call ``act`` when all of them have arrived."""
        self.waiting.append(Wait(messages, earliest, priority, act))
        self._look()

    def note(self, message: Message) -> None:
        """It has arrived."""
        for each in self.waiting:
            each.messages.discard(message)
        self._look()

    def _look(self) -> None:
        for each in [each for each in self.waiting if not each.messages]:
            self.waiting.remove(each)
            self.clock.at(max(self.clock.now, each.earliest), each.priority, each.act)


class Channel:
    """From one physical task to another: first in, first out, nothing is lost on the wire.

    Between hosts a message goes out through the card of the one and in through that of the other.
    """

    def __init__(self, world: World, up: Task, down: Task) -> None:
        self.world, self.up, self.down = world, up, down
        self.sent = 0
        self.bytes_to_others = 0
        self.last_arrival = 0
        self.held = 0
        self.slow: dict[object, tuple[float, float]] = {}  # factors of the latency, and of the time at a card
        self.losing: list[int] = []  # outages because of which messages are lost
        self.wire: deque[Message] = deque()
        self.due: list[simpy.Event] = []  # what happens next to them
        self.flying: list[simpy.Event] = []  # of these, what is on the wire between the hosts
        self.flown = 0
        self.through = 0  # when the last message came through it, or will
        self.unpacks: dict[Message, int] = {}  # of what has arrived: ns
        self.find_way()
        self.buffered = world.protocol.buffers(up, down)
        self.numbered = 0
        self.buffer: list[Message] = []
        self.withheld = False  # its sender keeps what it makes, and sends nothing
        self.places = places_of(world, self, down.places)

    def find_way(self) -> None:
        """By where both ends are."""
        world, up, down = self.world, self.up, self.down
        self.latency = world.layout.latency(up.physical, down.physical)
        self.remote = world.layout.host[up.physical] != world.layout.host[down.physical]
        self.size = world.layout.size(up.component, self.remote)
        sent = self.remote and not world.layout.needs.batches
        self.out = world.card("out", up) if sent else None
        self.into = world.card("in", down) if sent else None

    def lead(self) -> None:
        """An end has moved. What is on its way arrives when it would have, or would have come to the card of
        the receiver's host; nothing overtakes it.
        """
        coming = [event for event in self.due if event.callbacks]
        if self.into is not None:
            for place, event in enumerate(coming):
                if event in self.flying:  # to that card
                    time, clock = max(event.plan[0], self.through), self.world.clock
                    Clock.cancel(event)
                    coming[place] = clock.at(time, arrival(self.down.rank, self.up.rank), self._arrive)
                    self.through = time
        self.last_arrival = max(self.last_arrival, self.through)
        self.find_way()
        self.due, self.flying = coming, coming[:] if self.into is None else []

    def let_go(self) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        clock, after = self.world.clock, 0
        due = [event for event in self.due if event.callbacks]
        flying, self.due, self.flying = self.flying, [], []
        for event in due:
            time, priority, act = event.plan
            after = max(after, clock.now if time >= self.held else time)
            Clock.cancel(event)
            self.due.append(clock.at(after, priority, act))
            if event in flying:
                self.flying.append(self.due[-1])
        self.held, self.last_arrival = 0, after

    def made(self, message: Message) -> Message:
        """Enters its sender's line now: from here on it has a number, and is kept."""
        if not self.withheld:
            self.world.record.there(message.datum)
        if self.buffered and message.recovery is None:
            self.numbered += 1
            message = replace(message, number=self.numbered)
            self.buffer.append(message)
        return message

    def lose(self, outage: int) -> None:
        """Tuples on the wire are lost, and those that come to it before this is over."""
        self.losing.append(outage)
        flying = [event for event in self.flying if event.callbacks]
        there = list(self.wire)
        for message, event in zip(there[len(there) - len(flying) :], flying, strict=True):
            if message.datum is not None:
                Clock.cancel(event)
                self.wire.remove(message)
                self._is_lost(message)

    def _is_lost(self, message: Message) -> bool:
        """A message comes to the wire: whether it is lost there."""
        if not self.losing or message.datum is None:
            return False
        self.world.destroyed(self.down, message, self.losing[-1])
        return True

    def send(self, message: Message) -> None:
        """Leaves now."""
        if self.out is None and self._is_lost(message):
            return
        self.sent += 1
        self.bytes_to_others += self.remote * self.size
        self.wire.append(message)
        now = self.world.clock.now
        if self.out is None:
            self._fly(now, message)
        else:
            self._then(now, network(self.up.rank, self.down.rank), partial(self._go_out, message))

    def hold(self, until: int) -> None:
        """Nothing gets through before then."""
        self.held = self.last_arrival = max(self.last_arrival, until)
        events = [event for event in self.due if event.callbacks]
        flying, self.due, self.flying = self.flying, [], []
        for event in events:
            by = until - event.plan[0] if event in flying else 0
            self.due.append(self.world.clock.postpone(event, by) if by > 0 else event)
            if event in flying:
                self.flying.append(self.due[-1])

    def _then(self, time: int, priority: Priority, act: Callable[[], None], flies: bool = False) -> None:
        """What happens next to a message, unless the connection breaks."""
        self.due = [event for event in self.due if event.callbacks]
        self.due.append(self.world.clock.at(time, priority, act))
        self.flying = [event for event in self.flying if event.callbacks] + self.due[-1:] * flies

    def _bytes(self, message: Message) -> int:
        return 0 if message.datum is None else self.size

    def _go_out(self, message: Message) -> None:
        assert self.out is not None
        gone = self.out.through(self.world.clock.now, self._bytes(message), self._factor(1))
        if self._is_lost(message):
            self.wire.remove(message)
            self.sent -= 1
            self.bytes_to_others -= self.size
        else:
            self._fly(gone, message)

    def _factor(self, which: int) -> float:
        return max([1.0, *(factors[which] for factors in self.slow.values())])

    def _fly(self, leaves: int, message: Message) -> None:
        """Leaves the sender's host, now or later."""
        name = f"{self.up.name}->{self.down.name}"
        delay = self.world.layout.sample(self.latency, name, Purpose.LATENCY, self.flown)
        if self.world.layout.needs.batches and self.up.component not in self.world.layout.spouts:
            delay = 0
        delay = round(delay * self._factor(0))
        self.flown += 1
        self.last_arrival = max(leaves + delay, self.last_arrival)
        if self.into is None:
            self._then(self.last_arrival, arrival(self.down.rank, self.up.rank), self._arrive, flies=True)
        else:
            priority = network(self.up.rank, self.down.rank)
            self._then(self.last_arrival, priority, partial(self._come_in, message), flies=True)

    def _come_in(self, message: Message) -> None:
        assert self.into is not None
        here = self.into.through(self.world.clock.now, self._bytes(message), self._factor(1))
        self.through = here = max(here, self.through)
        self._then(here, arrival(self.down.rank, self.up.rank), self._arrive)

    def _arrive(self) -> None:
        message = self.wire.popleft()
        if self.remote and message.datum is not None:
            links = self.world.scenario.links
            self.unpacks[message] = links.deserialise + self.size * links.deserialise_cost
        self.down.arrive(message)
        self.world.arrivals.note(message)

    def cut(self) -> None:
        """The connection breaks: what is on the wire is lost, and a new one begins."""
        for event in self.due:
            Clock.cancel(event)
        for message in self.wire:
            self.world.destroyed(self.down, message, self.down.fault)
        self.due.clear()
        self.wire.clear()
        self.through = 0
        self.last_arrival = self.held
