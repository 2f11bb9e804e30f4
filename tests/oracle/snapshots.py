"""Aligned snapshots: barriers, one snapshot of all tasks at a time, and all of them back to the last one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.registry import kind_of

from .bolts import Bolt
from .buffers import Store
from .channels import Channel, Message
from .clock import Clock, Priority, Rank, control
from .layout import Datum
from .protocol import Protocol
from .shelves import Shelf
from .spouts import SpoutTask
from .states import State

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task


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
    copies: dict[int, int] = field(default_factory=dict)  # by number of the snapshot: host of the disk


class Snapshots(Protocol):
    """aligned_snapshots."""

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
        self.events: list[simpy.Event] = []  # what a failure of the job prevents
        self.stopped_by: Outage | None = None  # the newest fault of the job
        self.overtaken: set[int] = set()  # faults whose replay a newer one has cut short

    @property
    def bolts(self) -> list[Task]:
        return [task for task in self.world.tasks if isinstance(task, Bolt)]

    def start(self) -> None:
        self.seats = {task: Seat(Shelf.of(self.world, task)) for task in self.bolts}
        phase = self.params.checkpoint_phase
        self._expect(self.params.checkpoint_interval if phase is None else phase)

    def _at(self, time: int, priority: Priority, act: Callable[[], None]) -> None:
        self.events.append(self.world.clock.at(time, priority, act))

    # -- the coordinator -----------------------------------------------------------------------------------

    def _expect(self, time: int) -> None:
        self._at(time, control(Rank.CHECKPOINT), self._due)

    def _due(self) -> None:
        now = self.world.clock.now
        self._expect(now + self.params.checkpoint_interval)
        if self.wanted or self.last_trigger == now:
            return
        self.wanted = True
        if self.current is None:
            self._trigger_after_pause()

    def _trigger_after_pause(self) -> None:
        """At once if there is nothing to wait for."""
        now = self.world.clock.now
        if self.last_end + self.params.min_pause > now and self.count:
            self._at(self.last_end + self.params.min_pause, control(Rank.CHECKPOINT), self._trigger)
        else:
            self._trigger()

    def _trigger(self) -> None:
        now = self.world.clock.now
        self.count += 1
        self.current, self.wanted, self.last_trigger = self.count, False, now
        self.pictures, self.missing = {}, list(self.bolts)
        number = self.count
        self._at(now + self.params.checkpoint_timeout, control(Rank.ROTATION), lambda: self._expire(number))
        for task in self.bolts:
            from_spouts = [c for c in task.inputs.values() if isinstance(c.up, SpoutTask)]
            if from_spouts:
                self.place_source(task, from_spouts, number)

    def place_source(self, task: Task, channels: list[Channel], number: int) -> None:
        """The barrier of the sources, before all that waits in the log."""
        task.place_first(Rank.CHECKPOINT, partial(self._reached, task, channels, number))

    def _expire(self, number: int) -> None:
        if self.current == number:
            self.current = None
            for task in self.bolts:
                self._unblock(task)
            self._ended()

    def _ended(self) -> None:
        now = self.world.clock.now
        self.last_end = now
        if self.wanted:
            self._at(now + self.params.min_pause, control(Rank.CHECKPOINT), self._trigger)

    # -- barriers ------------------------------------------------------------------------------------------

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
            return
        for entry in list(task.queue):
            if isinstance(entry.what, Message) and entry.what.channel in channels:
                task.queue.remove(entry)
                seat.aside.append(entry.what)

    def _unblock(self, task: Task) -> None:
        """What was set aside goes to the end of the queue."""
        seat = self.seats[task]
        seat.blocked = set()
        messages, seat.aside = seat.aside, []
        task.requeue(messages)

    def _picture(self, task: Task) -> None:
        now, seat, number = self.world.clock.now, self.seats[task], self.current
        assert number is not None
        seat.last_picture = number
        picture = self.pictures[task] = Picture(task.state.copy(), task.windows_closed, seat.served)
        picture.shelved, picture.tuples = seat.shelf.changed(), seat.shelf.tuples
        self.world.sinks.pre_commit(task, number)
        for channel in task.outputs.values():
            task.put(Message(channel, barrier=number))
        if not self.keeps(task):
            self._acknowledge(task, number)
        else:
            entries = task.state.entries + picture.shelved
            end = now + self.params.snapshot_time + entries * self.params.snapshot_cost
            task.occupy(end)
            upload = partial(self._upload, task, number, picture)
            if end == now:
                upload()
            else:
                self._at(end, control(Rank.CHECKPOINT, task.rank), upload)
        self._unblock(task)

    def keeps(self, task: Task) -> bool:
        """Whether it has state, of a count or a `state`."""
        return self.world.layout.stateful(task.component) or self.seats[task].shelf.entries > 0

    def _upload(self, task: Task, number: int, picture: Picture) -> None:
        if self.current == number:
            host = self.world.layout.host[task.physical]
            size = picture.state.entries * self.params.entry_size
            size += picture.shelved * self.seats[task].shelf.entry_size
            end = self.store.request(size, host, True) + self.params.upload_time
            self._at(end, control(Rank.TRIM, task.rank), partial(self._acknowledge, task, number))
            self.copy(task, number, size)

    def copy(self, task: Task, number: int, size: int) -> None:
        """So many bytes of state go to the disk of the task's host, too."""
        if self.disk is not None and self.keeps(task):
            host = self.world.layout.host[task.physical]
            end = self.disk.request(size, host, True)
            copies = self.seats[task].copies
            self._at(end, control(Rank.TRIM, task.rank), lambda: copies.update({number: host}))

    def machines_failed(self, fault: Any, down_for: int | None) -> None:
        """What has to be repaired has lost what was on its disk."""
        if fault.out_of_order:
            for seat in self.seats.values():
                gone = [n for n, host in seat.copies.items() if self._breaks(fault, host)]
                for number in gone:
                    del seat.copies[number]

    def _breaks(self, fault: Any, host: int) -> bool:
        if kind_of(fault) == "crash_rack":
            return bool(host % getattr(self.world.scenario.hosts, "racks", 1) == fault.rack)
        return kind_of(fault) == "crash_host" and host == fault.host

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

    def window_ended(self, task: Bolt, number: int) -> None:
        seat = self.seats[task]
        if not self.world.sinks.withholds(task):
            seat.out.append((seat.last_picture, number))

    # -- back to the last one ------------------------------------------------------------------------------

    def failed(self, task: Task, crash: bool) -> None:
        """Each bolt task comes here, for they all fail."""
        if not isinstance(task, Bolt):
            return
        if task is self.bolts[0]:
            if self.stopped_by is not None and not self.settled(self.stopped_by):
                self.overtaken.add(self.stopped_by.number)
            self.stopped_by = self.world.outages.all[-1]
        for event in self.events:
            Clock.cancel(event)
        self.events.clear()
        self.current, self.wanted = None, False
        seat = self.seats[task]
        seat.blocked = set()
        position = self.valid[task].served if task in self.valid else 0
        for message in seat.log[position:]:
            self.world.record.there(message.datum)
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
        seat.again = seat.log[position:] + seat.again
        seat.log = seat.log[:position]

    def ready(self, task: Task, was_down: bool) -> None:
        if not isinstance(task, Bolt):
            return
        task.waiting = True
        if task is not self.bolts[-1]:
            return
        last = self.world.clock.now, -1
        for each in self.bolts:
            picture = self.valid.get(each, Picture())
            shelf = self.seats[each].shelf
            messages = self.messages_size(picture)
            size = picture.state.entries * self.params.entry_size + shelf.stored() * shelf.entry_size
            entries = picture.state.entries + shelf.stored()
            if not (messages or self.keeps(each)):
                continue
            host = self.world.layout.host[each.physical]
            if self.disk is not None and self.seats[each].copies.get(self.valid_number) == host:
                end = self.disk.request(size, host, False)
                if messages:
                    end = max(end, self.store.request(messages, host, False))
            else:
                end = self.store.request(size + messages, host, False)
            last = max(last, (end + self.params.restore_time + entries * self.params.restore_cost, each.rank))
        number = self.bolts[-1].rank if last[1] < 0 else last[1]
        self._at(last[0], control(Rank.RESTORE, number), self._go_on)

    def messages_size(self, picture: Picture) -> int:
        """Bytes of the messages in the store."""
        return 0

    def give_queues_back(self) -> None:
        """For snapshots that have queues."""

    def _go_on(self) -> None:
        for task in self.bolts:
            picture, seat = self.valid.get(task, Picture()), self.seats[task]
            task.state, task.windows_closed = picture.state.copy(), picture.windows_closed
            seat.served = picture.served
            seat.shelf.restored()
            if self.world.layout.stateful(task.component):
                self.world.outages.restored(task.fault, len(task.state.held))
            roots = {message.datum.root for message in seat.again if message.datum is not None}
            self.world.ledger.replayed |= roots
            seat.again = []
        self.give_queues_back()
        for task in self.bolts:
            self.world.sinks.to_commit(task, self.valid_number)
            task.restored()
        self.last_end = self.world.clock.now - self.params.min_pause
        self._expect(self.world.clock.now + self.params.checkpoint_interval)

    # -- figures -------------------------------------------------------------------------------------------

    def because(self, task: Task, message: Message) -> int | None:
        layout, datum = self.world.layout, message.datum
        ends = layout.stateful(task.component) or not layout.down[task.component]
        if task.fault is None or datum is None or not datum.anchored or not ends:
            return None
        return task.fault if datum.born <= self.world.outages.all[task.fault].at else None

    def settled(self, outage: Outage) -> bool:
        """Everything that was created at or before it has been worked off, by a job that runs, and before
        another fault made it begin anew.
        """
        if outage is not self.stopped_by:
            return outage.number not in self.overtaken
        if not all(task.live for task in self.bolts):
            return False
        aside = [message.datum for seat in self.seats.values() for message in seat.aside]
        waiting = [*(datum for _, datum in self.world.ledger.moving()), *aside]
        return not any(datum.born <= outage.at for datum in waiting if datum is not None and datum.anchored)

    def kept_for_replay(self) -> int:
        """Of the logs: what was read and may be read again, and what waits there for the job."""
        kept = 0
        for task, seat in self.seats.items():
            if any(isinstance(channel.up, SpoutTask) for channel in task.inputs.values()):
                position = self.valid[task].served if task in self.valid else 0
                kept += len(seat.log) - position + len(task.inbox)
        return kept

    def bytes_stored(self) -> int:
        return self.store.bytes + (0 if self.disk is None else self.disk.bytes)

    def beat(self) -> int:
        stalls = self.params.snapshot_time or self.params.snapshot_cost
        return self.params.checkpoint_interval if stalls else 0

    # -- the end -------------------------------------------------------------------------------------------

    def elsewhere(self) -> list[tuple[str, Datum]]:
        found = []
        for task, seat in self.seats.items():
            position = self.valid[task].served if task in self.valid else 0
            messages = seat.log[position:] + seat.aside
            found += [(task.component, m.datum) for m in messages if m.datum is not None and m.datum.anchored]
        return found

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [(task, datum) for task, picture in self.valid.items() for datum in picture.state.effects]
