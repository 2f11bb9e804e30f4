"""Changelogs: tasks that read logs, write what changes in their state to another, and commit offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import simpy

from .bolts import Bolt
from .buffers import Store
from .channels import Channel, Message
from .clock import Clock, Rank, control
from .copies import Batch, Copies
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
class Offsets:
    """As they were when a commit had its turn."""

    served: int = 0
    state: State = field(default_factory=State)
    windows_closed: int = 0


@dataclass
class Desk:
    """What the protocol knows of one bolt task."""

    shelf: Shelf
    copies: Copies
    log: list[Message] = field(default_factory=list)  # all that was let in
    served: int = 0  # how many of them were served
    known: int = 0  # how many of them had been let in when it failed last
    again: set[Message] = field(default_factory=set)  # read before a failure
    offsets: Offsets = field(default_factory=Offsets)
    changelog: Offsets = field(default_factory=Offsets)
    written: int = 0  # tuples that it had worked on when the newest batch was taken
    batches: int = 0
    committing: bool = False
    writing: bool = False
    events: list[simpy.Event] = field(default_factory=list)  # what a failure prevents
    # exactly once: what is not committed, of what it has sent, emitted and put out
    sent: list[Message] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    left: list[Datum] = field(default_factory=list)


class Changelogs(Protocol):
    """changelog."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.desks: dict[Task, Desk] = {}
        self.once = self.params.guarantee == "exactly_once"
        self.withheld: dict[Channel, list[Message]] = {}
        self.aborted: dict[Message, int] = {}  # on the way: because of which fault
        self.covers: dict[Message, list[Message]] = {}  # of a commit message

    def start(self) -> None:
        bolts = [task for task in self.world.tasks if isinstance(task, Bolt)]
        self.desks = {task: Desk(Shelf.of(self.world, task), Copies(self, task)) for task in bolts}
        for task in bolts:
            self._each(self.params.commits, task, self._commit_due)
            if self.params.batch_interval is not None and self.keeps(task):
                self._each(self.params.batch_interval, task, self._batch_due)

    def _each(self, interval: int, task: Task, act: Callable[[Task], None]) -> None:
        def due() -> None:
            self._each(interval, task, act)
            act(task)

        self.world.clock.at(self.world.clock.now + interval, control(Rank.CHECKPOINT, task.rank), due)

    def _at(self, time: int, task: Task, rank: Rank, act: Callable[[], None]) -> None:
        """Unless the task fails before."""
        self.desks[task].events.append(self.world.clock.at(time, control(rank, task.rank), act))

    def keeps(self, task: Task) -> bool:
        """Whether it has state, of a count or a `state`."""
        return self.world.layout.stateful(task.component) or self.desks[task].shelf.entries > 0

    # -- what is read --------------------------------------------------------------------------------------

    def comes(self, task: Task, message: Message) -> bool:
        channel = message.channel
        if message in self.covers:
            covered = self.covers.pop(message)
            for one in covered:
                self.withheld[channel].remove(one)
            for one in covered:
                task.arrive_readable(one)
            return False
        if message in self.aborted:
            self.world.destroyed(task, message, self.aborted.pop(message))
            return False
        if not self.once or isinstance(channel.up, SpoutTask):
            return True
        self.withheld.setdefault(channel, []).append(message)
        return False

    def unreadable(self, task: Task) -> list[Message]:
        return [message for channel in task.inputs.values() for message in self.withheld.get(channel, [])]

    def admit(self, task: Task, message: Message) -> bool:
        self.desks[task].log.append(message)
        return True

    def served(self, task: Bolt, message: Message) -> None:
        desk = self.desks[task]
        desk.served += 1
        desk.shelf.tuples += message.datum is not None

    # -- what is put out -----------------------------------------------------------------------------------

    def sends(self, message: Message) -> None:
        if self.once and message.channel.up in self.desks:
            self.desks[message.channel.up].sent.append(message)

    def window_ended(self, task: Bolt, number: int) -> None:
        if self.once:
            self.desks[task].windows.append(number)

    def leaves(self, task: Task, datum: Datum) -> None:
        if self.once:
            self.desks[task].left.append(datum)

    # -- batches and commits -------------------------------------------------------------------------------

    def _write(self, task: Task) -> tuple[int, Batch]:
        """All that has changed up to now; when it is written, and its number, entries, bytes."""
        desk = self.desks[task]
        tuples = desk.shelf.tuples - desk.written
        desk.written = desk.shelf.tuples
        own, shelved = min(tuples, task.state.entries), desk.shelf.changed_by(tuples)
        size = own * self.params.entry_size + shelved * desk.shelf.entry_size
        desk.batches += 1
        batch = Batch(desk.batches, own + shelved, size)
        return self.store.request(size, self.world.layout.host[task.physical], True), batch

    def _there(self, task: Task, content: Offsets, batch: Batch) -> None:
        """A batch is in the changelog."""
        self.desks[task].changelog = content
        self.desks[task].copies.add(batch)

    def _now(self, task: Task) -> Offsets:
        return Offsets(self.desks[task].served, task.state.copy(), task.windows_closed)

    def _batch_due(self, task: Task) -> None:
        desk = self.desks[task]
        if self.world.clock.now % self.params.commits == 0 or not task.live:
            return
        if desk.committing or desk.writing or desk.shelf.tuples == desk.written:
            return
        desk.writing = True
        content = self._now(task)
        end, batch = self._write(task)

        def written() -> None:
            desk.writing = False
            self._there(task, content, batch)

        self._at(end, task, Rank.TRIM, written)

    def _commit_due(self, task: Task) -> None:
        desk = self.desks[task]
        if task.live and not desk.committing:
            desk.committing = True
            task.place_first(Rank.CHECKPOINT, partial(self._commit, task))

    def _commit(self, task: Task) -> None:
        desk, clock, wait = self.desks[task], self.world.clock, self.params.commit_time
        content, sent, windows, left = self._now(task), list(desk.sent), len(desk.windows), len(desk.left)
        end, batch = self._write(task) if self.keeps(task) else (clock.now, None)

        def committed() -> None:
            self.world.record.looks()  # what has come at this instant was kept, too
            desk.committing = False
            desk.offsets = content
            if self.once and batch is not None:
                self._there(task, content, batch)
            if batch is not None:
                desk.copies.committed(batch)
            del desk.sent[: len(sent)], desk.windows[:windows], desk.left[:left]
            for channel in task.outputs.values() if self.once else ():
                message = Message(channel, commit=True)
                self.covers[message] = [one for one in sent if one.channel is channel]
                channel.send(message)

        def written() -> None:
            if not self.once and batch is not None:
                self._there(task, content, batch)
            if wait:
                self._at(clock.now + wait, task, Rank.TRIM, committed)
            else:
                committed()

        task.occupy_longer(end - clock.now + wait)
        if batch is None:
            written()
        else:
            self._at(end, task, Rank.TRIM, written)

    # -- faults --------------------------------------------------------------------------------------------

    def failed(self, task: Task, crash: bool) -> None:
        if task not in self.desks:
            return
        desk = self.desks[task]
        for event in desk.events:
            Clock.cancel(event)
        desk.events.clear()
        desk.committing = desk.writing = False
        if self.once:
            self._abort(task)
        queued = [] if crash else task.interrupt()
        desk.copies.failed(self.world.outages.all[-1].fault.kind)
        position = desk.offsets.served
        again = desk.log[position:]
        for message in again[: len(again) - len(queued)]:
            self.world.record.there(message.datum)
        desk.known = max(desk.known, len(desk.log))
        desk.again |= set(again)
        desk.log, desk.served = desk.log[:position], position
        task.inbox = again + task.inbox
        task.kept.clear()
        task.waiting = task.waiting or not crash

    def _abort(self, task: Task) -> None:
        """What it has sent, emitted and put out since the last commit."""
        desk = self.desks[task]
        for message in desk.sent:
            waiting = self.withheld.get(message.channel, [])
            if message in waiting:
                waiting.remove(message)
                self.world.destroyed(message.channel.down, message, task.fault)
            else:
                self.aborted[message] = task.fault
        for number in desk.windows:
            self.world.ledger.reopened(task, number)
        for datum in desk.left:
            self.world.ledger.has_not_left(task, datum)
        desk.sent, desk.windows, desk.left = [], [], []

    def ready(self, task: Task, was_down: bool) -> None:
        if task not in self.desks:
            return
        desk = self.desks[task]
        task.waiting = True
        if not self.keeps(task):
            self._restored(task)
            return
        own, shelved = desk.changelog.state.entries, desk.shelf.entries
        size = own * self.params.entry_size + shelved * desk.shelf.entry_size
        end = desk.copies.read(own + shelved, size)
        self._at(end, task, Rank.RESTORE, partial(self._restored, task))

    def _restored(self, task: Task) -> None:
        desk = self.desks[task]
        task.state, task.windows_closed = desk.changelog.state.copy(), desk.changelog.windows_closed
        task.state.markers = dict(desk.offsets.state.markers)
        task.state.handed = desk.offsets.state.handed
        desk.written = desk.shelf.tuples
        desk.copies.restored()
        if self.world.layout.stateful(task.component):
            self.world.outages.restored(task.fault, len(task.state.held))
        data = [message.datum for message in task.inbox if message in desk.again]
        self.world.ledger.replayed |= {datum.root for datum in data if datum is not None and datum.anchored}
        task.restored()

    # -- figures -------------------------------------------------------------------------------------------

    def because(self, task: Task, message: Message) -> int | None:
        return task.fault if message in self.desks[task].again else None

    def settled(self, outage: Outage) -> bool:
        """Each task that it has hit has served all that it had read before."""
        hit = [(task, self.desks[task]) for task in outage.tasks if task in self.desks]
        return all(task.live and desk.served >= desk.known for task, desk in hit)

    def kept_for_replay(self) -> int:
        """What was read and may be read again, and what waits in logs."""
        kept = sum(len(self.unreadable(task)) for task in self.desks)
        return kept + sum(
            len(desk.log) - desk.offsets.served + len(task.inbox) for task, desk in self.desks.items()
        )

    def bytes_stored(self) -> int:
        return self.store.bytes

    # -- the end -------------------------------------------------------------------------------------------

    def elsewhere(self) -> list[tuple[str, Datum]]:
        found = [
            (task.component, message.datum)
            for task, desk in self.desks.items()
            for message in desk.log[desk.offsets.served :]
        ]
        return [(name, datum) for name, datum in found if datum is not None and datum.anchored]

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [(task, datum) for task, desk in self.desks.items() for datum in desk.changelog.state.effects]
