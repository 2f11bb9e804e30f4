"""Secondaries that go on from checkpoints which their primaries send them; all that is sent is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from .bolts import Bolt
from .buffers import Checkpoint, CopyHolder, UpstreamBuffer, replays
from .channels import Channel, Message
from .clock import Rank, control
from .layout import Datum
from .making import TICK, Maker
from .stores import Shelf
from .tasks import State

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


@dataclass
class Whole(Checkpoint):
    """A state, how far it is, and what the task had sent and still kept."""

    outputs: dict[Channel, list[Message]] = field(default_factory=dict)
    made: dict[Channel, int] = field(default_factory=dict)


class Standbys(UpstreamBuffer):
    """What both kinds of standby have in common: buffers everywhere, numbers on paths, somebody to take
    over.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.greatest: dict[Task, dict[Any, int]] = {}  # let in, by route
        self.bare: set[Task] = set()  # their buffers are gone

    def start(self) -> None:
        for task in self.world.bolts:
            self.holders[task] = CopyHolder(Shelf.of(self.world, task), valid=Whole())
            self.greatest[task] = {}
            self._tick(task)

    def buffers(self, up: Task, down: Task) -> bool:
        return True

    def admit(self, task: Task, message: Message) -> bool:
        if not super().admit(task, message):
            return False
        datum, greatest = message.datum, self.greatest[task]
        if datum is not None:
            if datum.uid <= greatest.get(datum.route, -1) or self.is_over(task, datum):
                self._drop(task, message)
                return False
            greatest[datum.route] = datum.uid
        return True

    def is_over(self, task: Task, datum: Datum) -> bool:
        """Whether it belongs to a window of which all is done."""
        return False

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if crash:
            self.bare.add(task)
        if task in self.holders:
            task.is_back_when_noticed()

    def ready(self, task: Task, was_down: bool) -> None:
        if task in self.holders:
            self._go_on(task)
        elif was_down:
            self._ask_again(task)

    def standby(self, task: Task) -> Whole:
        """What whoever goes on now has."""
        raise NotImplementedError

    def _go_on(self, task: Task) -> None:
        holder, standby = self.holders[task], self.standby(task)
        if task in self.bare:
            self.bare.remove(task)
            for channel, messages in standby.outputs.items():
                channel.buffer = list(messages)
        queued = task.interrupt()
        holder.life += 1
        holder.replaying = set(self._buffered(task))
        holder.unfinished = set(holder.replaying)
        for message in queued:
            self._drop(task, message)
        holder.processed, holder.accepted = dict(standby.numbers), dict(standby.numbers)
        self.greatest[task], holder.had = dict(standby.had), dict(standby.had)
        task.has_back(standby.state, standby.windows_closed)
        self._ask_for_the_rest(task)

    def bytes_stored(self) -> int:
        return 0


class PassiveStandby(Standbys, kind="passive_standby"):
    """Checkpoints of state and output queues."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return replays(make) | {
            "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
            "delta": make.some(True, False),
            "checkpoint_time": make.ns(0, 0, 1),
            "checkpoint_cost": make.ns(0, 0, 0.5),
        }

    def content(self, task: Task) -> Whole:
        outputs = {channel: list(channel.buffer) for channel in task.outputs.values()}
        made = {channel: channel.numbered for channel in task.outputs.values()}
        return Whole(**vars(super().content(task)), outputs=outputs, made=made)

    def save(self, task: Bolt, content: Any) -> None:
        shelf, before, params = self.holders[task].shelf, self.holders[task].valid, self.params
        entries = self._entries(content, before) if params.delta else content.state.entries
        size = shelf.size(entries, params.entry_size, content.shelved)
        size += self._bytes(content, before if params.delta else None)
        work = params.checkpoint_time + (entries + content.shelved) * params.checkpoint_cost
        task.occupy_longer(work)
        sent = partial(self._sent, task, content, size)
        self._at(self.now + work, control(Rank.TRIM, task.rank), task, sent)

    @staticmethod
    def _entries(new: Checkpoint, old: Checkpoint) -> int:
        """Sums that are there, and were not so before."""
        before = old.state.counts
        return sum(n != 0 and n != before.get(cell, 0) for cell, n in new.state.counts.items())

    @staticmethod
    def _bytes(new: Whole, old: Any = None) -> int:
        """Of the messages in output queues (that were not there before)."""
        since = {} if old is None else old.made
        return sum(
            channel.size
            for channel, messages in new.outputs.items()
            for message in messages
            if message.number > since.get(channel, 0)
        )

    def _sent(self, task: Bolt, content: Whole, size: int) -> None:
        self.world.record.control_bytes += size
        self._written(task, content)

    def standby(self, task: Task) -> Whole:
        holder = self.holders[task]
        valid: Any = holder.valid
        size = holder.shelf.size(valid.state.entries, self.params.entry_size, holder.shelf.stored())
        self.world.record.control_bytes += size + self._bytes(valid)
        holder.shelf.restored()
        return valid

    def elsewhere(self) -> list[Message]:
        valid: Any = [holder.valid for holder in self.holders.values()]
        return [m for each in valid for messages in each.outputs.values() for m in messages]


@dataclass
class Mark:
    """How far a task was: nothing up to these numbers open; the markers handed on; what it had sent."""

    numbers: dict[Channel, int]
    handed: int
    made: dict[Channel, int]


@dataclass
class Known:
    """What others know of a task."""

    told: Mark = field(default_factory=lambda: Mark({}, 0, {}))
    windows_closed: int = 0  # at the end of the last window that no marker has ended
    had: dict[Any, int] = field(default_factory=dict)  # by then


class UpstreamBackup(Standbys, kind="upstream_backup"):
    """No checkpoints: what is done is told, hop by hop."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return replays(make) | {"ack_interval": make.some(3, 10, 20) * TICK}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.open: dict[Task, list[Message]] = {}
        self.marks: dict[Task, list[Mark]] = {}
        self.known: dict[Task, Known] = {}
        self.safe: dict[Channel, int] = {}
        self.over: dict[Task, int] = {}

    def start(self) -> None:
        super().start()
        for task in self.holders:
            self.open[task], self.marks[task], self.known[task] = [], [], Known()

    def interval(self, task: Task) -> int:
        return self.params.ack_interval

    def served(self, task: Bolt, message: Message) -> None:
        super().served(task, message)
        counted = message.datum is not None and task.stateful
        if counted or message.marker is not None:
            self.open[task].append(message)

    def window_ended(self, task: Bolt, number: int) -> None:
        layout = self.layout
        if layout.by_marker(task.component) or layout.by_event(task.component):
            stay = {datum.uid for datum in task.state.held}
            kept = [m for m in self.open[task] if m.datum is None or m.datum.uid in stay]
        else:
            kept = [m for m in self.open[task] if m.datum is None]
            known = self.known[task]
            known.windows_closed, known.had = task.windows_closed, dict(self.holders[task].had)
            self.world.record.control_bytes += self.params.ack_size
        self.open[task] = kept

    def done_late(self, task: Bolt, datum: Datum) -> None:
        self.open[task] = [m for m in self.open[task] if m.datum is None or m.datum.uid != datum.uid]

    def ticked(self, task: Bolt) -> None:
        """No checkpoint."""

    def _checkpoint(self, task: Bolt, wanted: bool = False) -> None:
        """Look how far the task is, and tell."""
        handed, numbers = task.state.handed, dict(self.holders[task].processed)
        self.open[task] = [m for m in self.open[task] if m.marker is None or m.marker > handed]
        for message in self.open[task]:
            numbers[message.channel] = min(numbers[message.channel], message.number - 1)
        made = {channel: channel.numbered for channel in task.outputs.values()}
        self.marks[task].append(Mark(numbers, handed, made))
        done = [
            mark
            for mark in self.marks[task]
            if all(self.safe.get(channel, 0) >= number for channel, number in mark.made.items())
        ]
        if not done:
            return
        self.known[task].told = done[-1]
        while self.marks[task].pop(0) is not done[-1]:  # others may be equal to it
            pass
        self.world.record.control_bytes += (len(task.inputs) + 1) * self.params.ack_size
        for channel in task.inputs.values():
            if not channel.up.waiting:
                channel.up.place(Rank.TRIM, partial(self._trim, channel, done[-1].numbers.get(channel, 0)))

    def _trim(self, channel: Channel, number: int) -> None:
        super()._trim(channel, number)
        self.safe[channel] = max(number, self.safe.get(channel, 0))

    def standby(self, task: Task) -> Whole:
        known = self.known[task]
        self.open[task], self.marks[task] = [], []
        if task.stateful and self.layout.by_marker(task.component):
            panes, handed = task.panes, known.told.handed
            self.over[task] = handed
            if panes is not None:  # those that the newest window has are the last that have not left
                self.over[task] = handed - handed % panes.slide - panes.per_window
        markers = {channel.up.logical: known.told.handed for channel in task.inputs.values()}
        state = State(markers=markers, handed=known.told.handed)
        return Whole(state, dict(known.told.numbers), dict(known.had), known.windows_closed)

    def is_over(self, task: Task, datum: Datum) -> bool:
        return datum.epoch < self.over.get(task, 0)
