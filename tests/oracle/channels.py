"""Channels: what they carry, when it arrives, and what cuts them; and the lines before them.

Bounded queues are those of `docs/semantics.md`: what a task sends waits in one line until there is room for
it where it goes. A queue that blocks has so many places, for tuples that wait. A tuple takes one when it
leaves its sender, and frees it for good when its service begins, or when it is lost; senders that wait are
let in in the order in which they asked. With credits each channel has places of its own, and its sender
learns one link later that one is free. What takes no service (a marker, a barrier, the end of a replay) takes
no place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .clock import Clock, Part, Priority, Rank, arrival, control, departure, network
from .layout import Datum

if TYPE_CHECKING:
    from .program import World
    from .record import Outage
    from .tasks import Task


class Places(Part):
    """Those of one task's queue, or, with credits, of one channel (``delay``: until its sender knows)."""

    def __init__(self, world: World, number: int, delay: int = 0, owner: Channel | None = None) -> None:
        super().__init__(world)
        self.free, self.delay, self.owner = number, delay, owner
        self.taken: set[Message] = set()
        self.waiting: list[tuple[int, int, Line]] = []  # since when, number of the sender

    def ask(self, line: Line) -> None:
        self.waiting.append((self.now, line.task.rank, line))
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
        clock = self.clock
        known = arrival(self.owner.up.rank, self.owner.down.rank)
        clock.at(clock.now + self.delay, known, self.freed)

    def freed(self) -> None:
        self.free += 1
        self.wake()

    def wake(self) -> None:
        """The first of those who wait go on."""
        for _, _, line in self.waiting[: max(0, self.free)]:
            line.wake()


class Line(Part):
    """What one task has made and not yet sent, in the order in which it was made."""

    def __init__(self, world: World, task: Task) -> None:
        super().__init__(world)
        self.task = task
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
        self.clock.at(self.now, departure(self.task.rank), self.move)

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

    @property
    def anchored(self) -> bool:
        """Whether it is a tuple that belongs to a root."""
        return self.datum is not None and self.datum.anchored


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


class Channel(Part):
    """From one physical task to another: first in, first out, nothing is lost on the wire.

    Between hosts a message goes out through the card of the one and in through that of the other.
    """

    def __init__(self, world: World, up: Task, down: Task) -> None:
        super().__init__(world)
        self.up, self.down = up, down
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
        self.remote = up.host != down.host
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
                    time, clock = max(event.plan[0], self.through), self.clock
                    Clock.cancel(event)
                    coming[place] = clock.at(time, arrival(self.down.rank, self.up.rank), self._arrive)
                    self.through = time
        self.last_arrival = max(self.last_arrival, self.through)
        self.find_way()
        self.due, self.flying = coming, coming[:] if self.into is None else []

    def let_go(self) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        clock, after = self.clock, 0
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
        now = self.now
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
            self.due.append(self.clock.postpone(event, by) if by > 0 else event)
            if event in flying:
                self.flying.append(self.due[-1])

    def _then(self, time: int, priority: Priority, act: Callable[[], None], flies: bool = False) -> None:
        """What happens next to a message, unless the connection breaks."""
        self.due = [event for event in self.due if event.callbacks]
        self.due.append(self.clock.at(time, priority, act))
        self.flying = [event for event in self.flying if event.callbacks] + self.due[-1:] * flies

    def _bytes(self, message: Message) -> int:
        return 0 if message.datum is None else self.size

    def _go_out(self, message: Message) -> None:
        gone = self.out.through(self.now, self._bytes(message), self._factor(1))
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
        delay = self.layout.sample(self.latency, name, Purpose.LATENCY, self.flown)
        if self.layout.needs.batches and self.up.component not in self.layout.spouts:
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
        here = self.into.through(self.now, self._bytes(message), self._factor(1))
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
        Clock.cancel(*self.due)
        for message in self.wire:
            self.world.destroyed(self.down, message, self.down.fault)
        self.due.clear()
        self.wire.clear()
        self.through = 0
        self.last_arrival = self.held


class Cut(Part):
    """One such fault."""

    def __init__(self, world: World, fault: Any, outage: Outage) -> None:
        super().__init__(world)
        self.fault, self.outage = fault, outage
        self.over = world.clock.now + fault.duration
        count = 1 + max(world.layout.every_host)
        others = set(range(count)) - {*fault.hosts} if fault.others is None else {*fault.others}
        self.sides = ({*fault.hosts}, others)
        self.holds = kind_of(fault) == "partition"
        self.loses = self.holds and fault.messages == "lose"
        self.hit: list[Channel] = []
        outage.unfelt = True
        for task in world.tasks:
            for channel in task.outputs.values():
                wire = not world.layout.needs.batches or task in world.spouts
                if wire and self.parts(channel):
                    self.begin(channel)
        if self.loses or not self.holds:
            world.clock.at(self.over, control(Rank.READY, 0), self.ends)

    def parts(self, channel: Channel) -> bool:
        up, down = (end.host for end in (channel.up, channel.down))
        return self.is_between(up, down)

    def is_between(self, up: int, down: int) -> bool:
        return any(up in one and down in other for one, other in (self.sides, self.sides[::-1]))

    def begin(self, channel: Channel) -> None:
        self.hit.append(channel)
        self.outage.unfelt = False
        if self.loses:
            channel.lose(self.outage.number)
        if self.holds:
            channel.hold(self.over)
        else:
            channel.slow[self.outage] = self.fault.latency_factor, self.fault.transfer_factor

    def ends(self) -> None:
        for channel in list(self.hit):
            self.end(channel)

    def end(self, channel: Channel) -> None:
        self.hit.remove(channel)
        if self.loses:
            channel.losing.remove(self.outage.number)
        if not self.holds:
            channel.slow.pop(self.outage)


class Cuts(Part):
    """All of them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.all: list[Cut] = []

    def strike(self, fault: Any, outage: Outage) -> None:
        self.all.append(Cut(self.world, fault, outage))
        layout = self.layout
        there = [task for task in self.world.tasks if task.host in fault.hosts]
        # bolts of batches live in executors, wherever they are placed
        outage.tasks = [t for t in there if not layout.needs.batches or t.component in layout.spouts]

    def parted_until(self, one: int, other: int) -> int:
        """When these two hosts hear of one another again."""
        return max((cut.over for cut in self.all if cut.holds and cut.is_between(one, other)), default=0)

    def moved(self, task: Task) -> None:
        """It lives elsewhere now: what goes on does so for the channels that are between the sides now."""
        going_on = [cut for cut in self.all if cut.over > self.now]
        for channel in [*task.inputs.values(), *task.outputs.values()]:
            left = [cut for cut in going_on if channel in cut.hit and not cut.parts(channel)]
            for cut in left:
                cut.end(channel)
            if any(cut.holds for cut in left):
                channel.let_go()
            for cut in going_on:
                if channel not in cut.hit and cut.parts(channel):
                    cut.begin(channel)
                elif cut.holds and channel in cut.hit and left:
                    channel.hold(cut.over)
