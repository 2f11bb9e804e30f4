"""Snapshots: barriers, one snapshot of all tasks at a time, and all of them back to the last one; where
barriers overtake what waits, that is part of the snapshot.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from .bolts import Bolt
from .channels import Channel, Message
from .clock import Clock, Priority, Rank, control
from .layout import Datum
from .making import TICK, Maker
from .protocol import Protocol
from .spouts import SpoutTask
from .stores import Shelf, Store
from .tasks import State

if TYPE_CHECKING:
    from .planned import PlannedStop
    from .program import World
    from .record import Outage
    from .tasks import Control, Task


@dataclass
class Picture:
    """A task at the moment at which it took part."""

    state: State = field(default_factory=State)
    windows_closed: int = 0
    served: int = 0  # messages of its log
    queue: list[Message] = field(default_factory=list)  # that a barrier has overtaken
    line: list[Message] = field(default_factory=list)
    shelved: int = 0  # entries of the bolt's `state` that are written
    tuples: int = 0  # that the task had served


@dataclass
class Seat:
    """What the protocol knows of one bolt task."""

    shelf: Shelf
    log: list[Message] = field(default_factory=list)  # all messages of spouts that were let in
    served: int = 0  # how many of them were served
    blocked: set[Channel] = field(default_factory=set)
    aside: list[Message] = field(default_factory=list)  # came over a blocked channel
    out: list[tuple[int, int]] = field(default_factory=list)  # windows: (number of the last picture, window)
    last_picture: int = 0
    again: list[Message] = field(default_factory=list)  # to be read once more
    stops: bool = False  # it has read nothing since the savepoint
    copies: dict[int, int] = field(default_factory=dict)  # by number of the snapshot: host of the disk


class Snapshots(Protocol, kind="aligned_snapshots"):
    """aligned_snapshots."""

    @classmethod
    def of(cls, strategy: Any) -> type[Protocol]:
        return Overtaking if strategy.unaligned else cls

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return {
            "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
            "checkpoint_phase": make.some(None, None, 0, 7 * TICK),
            "min_pause": make.ns(0, 0, 0, 4, 25),
            "checkpoint_timeout": make.some(None, None, None, 3 * TICK, 12 * TICK) or 1000 * TICK,
            "snapshot_time": make.ns(0, 0, 1, 3),
            "snapshot_cost": make.ns(0, 0, 0.5),
            "upload_time": make.ns(0, 0, 2, 8),
            "restore_time": make.ns(0, 0, 3),
            "restore_cost": make.ns(0, 0, 1),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.disk = Store(world, self.params.local_recovery) if self.params.local_recovery else None
        self.seats: dict[Task, Seat] = {}
        self.count = 0
        self.current: int | None = None  # number of the snapshot under way
        self.pictures: dict[Task, Picture] = {}  # of it
        self.missing: list[Task] = []  # whose acknowledgements have not come
        self.valid: dict[Task, Picture] = {}
        self.valid_number = 0  # 0: there is none
        self.last_end = 0
        self.last_trigger = -1
        self.wanted = False
        self.is_last = False  # the snapshot under way is that
        self.events: list[simpy.Event] = []  # what a failure of the job, or its planned end, prevents
        self.copying: list[simpy.Event] = []  # what only a failure does
        self.stopped_by: Outage | None = None  # the newest fault of the job
        self.overtaken: set[int] = set()  # faults whose replay a newer one has cut short

    def bolts(self) -> list[Task]:
        return [task for task in self.world.tasks if isinstance(task, Bolt)]

    def start(self) -> None:
        self.seats = {task: Seat(Shelf.of(self.world, task)) for task in self.world.bolts}
        for task in self.world.bolts:
            if task.idle:
                self.seats[task].shelf.entries = 0
        phase = self.params.checkpoint_phase
        self._expect(self.params.checkpoint_interval if phase is None else phase)

    def _at(self, time: int, priority: Priority, act: Callable[[], None]) -> None:
        self.events.append(self.clock.at(time, priority, act))

    def _expect(self, time: int) -> None:
        self._at(time, control(Rank.CHECKPOINT), self._due)

    def _due(self) -> None:
        now = self.now
        self._expect(now + self.params.checkpoint_interval)
        if self.wanted or self.last_trigger == now:
            return
        self.wanted = True
        if self.current is None:
            self._trigger_after_pause()

    def _trigger_after_pause(self) -> None:
        """At once if there is nothing to wait for."""
        now = self.now
        if self.last_end + self.params.min_pause > now and self.count:
            self._trigger_later(self.last_end + self.params.min_pause)
        else:
            self._trigger()

    def _trigger_later(self, time: int) -> None:
        """Unless a savepoint comes first."""

        def due() -> None:
            if self.wanted and self.current is None:
                self._trigger()

        self._at(time, control(Rank.CHECKPOINT), due)

    def saves_to_stop(self, stop: PlannedStop) -> bool:
        """By a savepoint."""
        self.stops.append(stop)
        if self.current is None and self.stops == [stop]:
            self._trigger()
        return True

    def _trigger(self) -> None:
        now = self.now
        self.count += 1
        self.current, self.wanted, self.last_trigger = self.count, False, now
        self.pictures, self.missing = {}, list(self.world.bolts)
        number, self.is_last = self.count, bool(self.stops)
        if not self.is_last:
            expire = partial(self._expire, number)
            self._at(now + self.params.checkpoint_timeout, control(Rank.ROTATION), expire)
        for task in self.world.bolts:
            from_spouts = [c for c in task.inputs.values() if isinstance(c.up, SpoutTask)]
            if from_spouts:
                # the barrier of the sources, before all that waits in the log
                task.place_first(Rank.CHECKPOINT, partial(self._reached, task, from_spouts, number))

    def _expire(self, number: int) -> None:
        if self.current == number:
            self.current = None
            for task in self.world.bolts:
                self._unblock(task)
            self._ended()

    def _ended(self) -> None:
        now = self.now
        self.last_end = now
        if self.stops and not self.is_last:
            self._at(now, control(Rank.CHECKPOINT), self._trigger)
        elif self.wanted:
            self._trigger_later(now + self.params.min_pause)

    def admit(self, task: Task, message: Message) -> bool:
        seat = self.seats[task]
        if message.barrier is not None:
            act = partial(self._reached, task, [message.channel], message.barrier)
            task.place_barrier(message, act)
            return False
        if isinstance(message.channel.up, SpoutTask):
            seat.log.append(message)
        if message.channel in seat.blocked:
            seat.aside.append(message)
            return False
        return True

    def came_first(self, task: Task, what: Message | Control, others: list[Message | Control]) -> None:
        """The log is in the order in which it is read."""
        log = self.seats[task].log
        places = [log.index(other) for other in others if other in log]
        if places and log[-1] is what:
            log.insert(min(places), log.pop())

    def served(self, task: Bolt, message: Message) -> None:
        self.seats[task].shelf.tuples += message.datum is not None
        if isinstance(message.channel.up, SpoutTask):
            self.seats[task].served += 1

    def _reached(self, task: Task, channels: list[Channel], number: int) -> None:
        """The barrier has its turn: block its channels, or take the picture if it was the last."""
        if self.current != number:
            return
        seat = self.seats[task]
        seat.blocked |= set(channels)
        if seat.blocked == set(task.inputs.values()):
            self._picture(task)
        else:
            self._set_aside(task, channels)

    def _set_aside(self, task: Task, channels: Iterable[Channel]) -> None:
        """What waits in the queue, and has come over these."""
        for entry in list(task.queue):
            if isinstance(entry.what, Message) and entry.what.channel in channels:
                task.queue.remove(entry)
                self.seats[task].aside.append(entry.what)

    def _unblock(self, task: Task) -> None:
        """What was set aside goes to the end of the queue."""
        seat = self.seats[task]
        seat.blocked = set()
        messages, seat.aside = seat.aside, []
        task.requeue(messages)

    def _picture(self, task: Task) -> None:
        number = self.current
        self.take_picture(task)
        for channel in task.outputs.values():
            task.put(Message(channel, barrier=number))
        self.copy_state(task, number)
        if self.is_last:  # it reads no more
            self._set_aside(task, self.seats[task].blocked)
        else:
            self._unblock(task)

    def take_picture(self, task: Task, queue: Iterable[Message] = (), line: Iterable[Message] = ()) -> None:
        """As it is now."""
        seat = self.seats[task]
        shelved = seat.shelf.changed(), seat.shelf.tuples
        known = task.state.copy(), task.windows_closed, seat.served
        self.pictures[task] = Picture(*known, list(queue), list(line), *shelved)
        seat.last_picture = self.current
        self.world.sinks.pre_commit(task, self.current)

    def copy_state(self, task: Task, number: int) -> None:
        """Which keeps the task for a while."""
        entries, params, takes = task.state.entries + self.pictures[task].shelved, self.params, 0
        if self.keeps(task):
            takes = params.snapshot_time + entries * params.snapshot_cost
        task.occupy(self.now + takes)
        if takes:
            copied = partial(self.copied, task, number)
            self._at(self.now + takes, control(Rank.CHECKPOINT, task.rank), copied)
        else:
            self.copied(task, number)

    def copied(self, task: Task, number: int) -> None:
        if self.current == number:
            self.write(task, number)

    def keeps(self, task: Task) -> bool:
        """Whether it has state, of a count or a `state`."""
        return not task.idle and (task.stateful or self.seats[task].shelf.entries > 0)

    def rescale(self, component: str, working: int) -> None:
        """Each goes on from what the pictures of all have of its keys; each has its share of a `state`."""
        layout = self.layout
        tasks = [task for task in self.world.bolts if task.component == component]
        whole = [self.valid[task].state.copy() for task in tasks]
        layout.working[component] = working
        config = layout.config[component]
        for task in tasks:
            state, seat = self.valid[task].state, self.seats[task]

            def is_mine(key: Any, task: Task = task) -> bool:
                key = key[0] if isinstance(key, tuple) else key
                return layout.owner_of(component, key, working) == task.index

            state.counts = {c: n for other in whole for c, n in other.counts.items() if is_mine(c[1])}
            state.held = [datum for other in whole for datum in other.held if is_mine(datum.key)]
            if config.state is not None:
                share = Fraction(config.state.entries * config.parallelism, working)
                seat.shelf.entries = 0 if task.idle else math.ceil(share)
            seat.copies = {}

    def write(self, task: Task, number: int) -> None:
        """What the task has in the snapshot, if that is anything."""
        picture = self.pictures[task]
        size = self.seats[task].shelf.size(picture.state.entries, self.params.entry_size, picture.shelved)
        messages = self.messages_size(picture)
        if messages or self.keeps(task):
            self.upload(task, number, size + messages)
            self.copy(task, number, size)
        else:
            self._acknowledge(task, number)

    def upload(self, task: Task, number: int, size: int) -> None:
        end = self.store.request(size, task.host, True) + self.params.upload_time
        self._at(end, control(Rank.TRIM, task.rank), partial(self._acknowledge, task, number))

    def copy(self, task: Task, number: int, size: int) -> None:
        """So many bytes of state go to the disk of the task's host, too."""
        if self.disk is not None and self.keeps(task):
            host = task.host
            end = self.disk.request(size, host, True)
            copies = self.seats[task].copies
            trim = control(Rank.TRIM, task.rank)
            self.copying.append(self.clock.at(end, trim, lambda: copies.update({number: host})))

    def machines_failed(self, fault: Any, down_for: int | None) -> None:
        """What has to be repaired has lost what was on its disk."""
        if fault.out_of_order:
            for seat in self.seats.values():
                gone = [n for n, host in seat.copies.items() if self.layout.breaks(fault, host)]
                for number in gone:
                    del seat.copies[number]

    def _acknowledge(self, task: Task, number: int) -> None:
        if self.current != number:
            return
        self.missing.remove(task)
        if not self.missing:
            self.valid, self.valid_number, self.current = self.pictures, number, None
            for each, seat in self.seats.items():
                seat.shelf.base = self.valid[each].tuples
                seat.out = [(picture, window) for picture, window in seat.out if picture >= number]
                self.world.sinks.to_commit(each, number)
            self._ended()
            if self.is_last:
                for seat in self.seats.values():
                    seat.stops = True
                Clock.cancel(*self.events)
                self._at(self.now, control(Rank.BATCH), self.all_stop)

    def window_ended(self, task: Bolt, number: int) -> None:
        seat = self.seats[task]
        if not self.world.sinks.withholds(task):
            seat.out.append((seat.last_picture, number))

    def failed(self, task: Task, crash: bool) -> None:
        """Each bolt task comes here, for they all fail."""
        if not isinstance(task, Bolt):
            return
        if task is self.world.bolts[0]:
            if self.stopped_by is not None and not self.settled(self.stopped_by):
                self.overtaken.add(self.stopped_by.number)
            self.stopped_by = self.world.outages.all[-1]
        Clock.cancel(*self.events, *self.copying)
        self.events.clear()
        self.copying.clear()
        self.current, self.wanted = None, False
        self.none_stops()
        seat = self.seats[task]
        seat.blocked = set()
        position = self.position(task)
        self.world.record.all_there(seat.log[position:])
        for message in seat.aside:
            self.world.destroyed(task, message, task.fault)
        seat.aside = []
        for channel in task.inputs.values():
            if isinstance(channel.up, Bolt):
                channel.cut()
        for _, window in seat.out:
            self.world.ledger.reopened(task, window)
        seat.out = []
        self.world.sinks.roll_back(task, self.valid_number)
        task.inbox = seat.log[position:] + task.inbox
        seat.again = ([] if seat.stops else seat.log[position:]) + seat.again
        seat.stops = False
        seat.log = seat.log[:position]

    def position(self, task: Task) -> int:
        """From where on a task reads its log again."""
        return self.valid[task].served if task in self.valid else 0

    def ready(self, task: Task, was_down: bool) -> None:
        if not isinstance(task, Bolt):
            return
        task.waiting = True
        if task is not self.world.bolts[-1]:
            return
        last = self.now, -1
        for each in self.world.bolts:
            picture = self.valid.get(each, Picture())
            shelf = self.seats[each].shelf
            messages = self.messages_size(picture)
            size = shelf.size(picture.state.entries, self.params.entry_size, shelf.stored())
            entries = picture.state.entries + shelf.stored()
            if not (messages or self.keeps(each)):
                continue
            host = each.host
            if self.disk is not None and self.seats[each].copies.get(self.valid_number) == host:
                end = self.disk.request(size, host, False)
                if messages:
                    end = max(end, self.store.request(messages, host, False))
            else:
                end = self.store.request(size + messages, host, False)
            last = max(last, (end + self.params.restore_time + entries * self.params.restore_cost, each.rank))
        number = self.world.bolts[-1].rank if last[1] < 0 else last[1]
        self._at(last[0], control(Rank.RESTORE, number), self._go_on)

    def messages_size(self, picture: Picture) -> int:
        """Bytes of the messages in the store."""
        return 0

    def give_queues_back(self) -> None:
        """For snapshots that have queues."""

    def _go_on(self) -> None:
        for task in self.world.bolts:
            picture, seat = self.valid.get(task, Picture()), self.seats[task]
            task.has_back(picture.state, picture.windows_closed)
            seat.served = picture.served
            seat.shelf.restored()
            self.world.ledger.read_again(seat.again)
            seat.again = []
        self.give_queues_back()
        for task in self.world.bolts:
            self.world.sinks.to_commit(task, self.valid_number)
            task.restored()
        self.last_end = self.now - self.params.min_pause
        self._expect(self.now + self.params.checkpoint_interval)

    def because(self, task: Task, message: Message) -> int | None:
        datum = message.datum
        ends = task.stateful or not task.readers
        if task.fault is None or not message.anchored or not ends:
            return None
        return task.fault if datum.born <= self.world.outages.all[task.fault].at else None

    def settled(self, outage: Outage) -> bool:
        """Everything that was created at or before it has been worked off, by a job that runs, and before
        another fault made it begin anew.
        """
        if outage is not self.stopped_by:
            return outage.number not in self.overtaken
        if not all(task.live for task in self.world.bolts):
            return False
        aside = [message for seat in self.seats.values() for message in seat.aside if message.anchored]
        return not any(m.datum.born <= outage.at for m in (*self.world.ledger.moving(), *aside))

    def kept_for_replay(self) -> int:
        """Of the logs: what was read and may be read again, and what waits there for the job."""
        kept = 0
        for task, seat in self.seats.items():
            if any(isinstance(channel.up, SpoutTask) for channel in task.inputs.values()):
                position = self.position(task)
                kept += len(seat.log) - position + len(task.inbox)
        return kept

    def bytes_stored(self) -> int:
        return self.store.bytes + (0 if self.disk is None else self.disk.bytes)

    def beat(self) -> int:
        stalls = self.params.snapshot_time or self.params.snapshot_cost
        return self.params.checkpoint_interval if stalls else 0

    def elsewhere(self) -> list[Message]:
        found = []
        for task, seat in self.seats.items():
            found += seat.log[self.position(task) :] + seat.aside
        return found

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [(task, datum) for task, picture in self.valid.items() for datum in picture.state.effects]


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
        self.ways = {task: Way() for task in self.world.bolts}
        super().start()

    def _way(self, task: Task, number: int) -> Way:
        if number > self.ways[task].number:
            self.ways[task] = Way(number)
        return self.ways[task]

    def _trigger(self) -> None:
        for task in self.world.bolts:
            task.hurries = not (self.params.aligned_timeout or self.stops)
        super()._trigger()
        if self.params.aligned_timeout and not self.stops:
            when = self.now + self.params.aligned_timeout
            self._at(when, control(Rank.ROTATION), partial(self._timeout, self.count))

    def _timeout(self, number: int) -> None:
        """From now on barriers overtake."""
        if self.current != number:
            return
        for task in self.world.bolts:
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
                self.upload(task, number, size)  # of its state there is a copy already

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
            self.clock.at(self.now, control(Rank.CHECKPOINT, task.rank), task.hurry)
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
        if way.taken:
            self.write(task, number)
        else:
            self._picture_ahead(task)

    def _picture_ahead(self, task: Task) -> None:
        way = self._way(task, self.current)
        way.taken = True
        queue = [m for m in task.queued() if isinstance(m.channel.up, Bolt) and m not in way.after]
        self.take_picture(task, queue, [m for m in task.line.messages if m.barrier is None])
        self._send_ahead(task, self.current)
        self.copy_state(task, self.current)

    def copied(self, task: Task, number: int) -> None:
        self.ways[task].copied = self.ways[task].copied or self.current == number
        super().copied(task, number)

    def write(self, task: Task, number: int) -> None:
        """When it is copied, and no more belongs to it."""
        way = self.ways[task]
        ahead = way.taken and way.number == number
        if not ahead or (way.copied and way.turned == set(task.inputs.values())):
            super().write(task, number)

    def messages_size(self, picture: Picture) -> int:
        waits = [m for m in (*picture.queue, *picture.line) if m.datum is not None]
        return sum(m.channel.size for m in waits)

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if isinstance(task, Bolt):
            self.ways[task] = Way(self.count)
            picture = self.valid.get(task, Picture())
            self.world.record.all_there((*picture.queue, *picture.line))

    def give_queues_back(self) -> None:
        for task in self.world.bolts:
            picture = self.valid.get(task, Picture())
            task.requeue(picture.queue)
            for message in picture.line:
                task.line.messages.append(message)
                task.line.tuples += message.datum is not None
            task.line.stuck = task.line.full
            task.line.wake()

    def elsewhere(self) -> list[Message]:
        kept = [m for picture in self.valid.values() for m in (*picture.queue, *picture.line)]
        return super().elsewhere() + kept
