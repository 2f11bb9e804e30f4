"""Changelogs: tasks that read logs, write what changes in their state to another, and commit offsets."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import simpy

from tideover.sim.draws import Purpose

from .bolts import Bolt
from .channels import Channel, Message
from .clock import Clock, Part, Rank, arrival, control
from .layout import Datum
from .making import TICK, Maker
from .protocol import Protocol
from .spouts import SpoutTask
from .stores import Shelf, Store
from .tasks import Control, Entry, State

if TYPE_CHECKING:
    from .coordinators import Move
    from .planned import PlannedStop
    from .program import World
    from .record import Outage
    from .tasks import Task

SPARED = ("crash_task", "crash_worker", "false_detection", "reassigned", "planned_restart", "fenced")
"""What leaves disks as they are."""


class Batch(NamedTuple):
    """Changes that go into a changelog together."""

    number: int
    entries: int
    size: int


@dataclass
class Standby:
    """One that follows a changelog."""

    done: int | None = 0  # when it has worked on all that is there; None: it has not read it yet
    waiting: int = 0  # entries that have come since it began to read
    host: int | None = None  # of one that warms up


class Copies(Part):
    """Of one task."""

    def __init__(self, protocol: Changelogs, task: Task) -> None:
        super().__init__(protocol.world)
        self.protocol, self.params, self.task = protocol, protocol.params, task
        self.tail: list[Batch] = []  # not on disk
        self.standbys = [Standby() for _ in range(self.params.standby_replicas)]
        self.disk: int | None = None  # of which host is as it was
        self.usable = True  # and what is on it
        self.open = True  # a process writes there
        self.segment: list[Batch] = []  # the newest one of the changelog
        self.compacted = 0  # own entries in those before
        self.restored()

    @property
    def host(self) -> int:
        return self.task.host

    def add(self, batch: Batch) -> None:
        """It is in the changelog."""
        self.tail.append(batch)
        self.segment.append(batch)
        if sum(each.size for each in self.segment) >= self.params.segment_size:
            self.segment, self.compacted = [], self.protocol.desks[self.task].changelog.state.entries
        for standby in self.standbys:
            self.world.record.control_bytes += batch.size
            if standby.done is None:
                standby.waiting += batch.entries
            else:
                begin = max(self.now, standby.done)
                standby.done = begin + batch.entries * self.params.restore_cost

    def committed(self, batch: Batch) -> None:
        self.tail = [each for each in self.tail if each.number > batch.number]

    def failed(self, kind: str) -> None:
        if kind not in SPARED:
            self.disk = None
        if self.protocol.once and self.open:
            self.usable = False
        self.open = False

    def restored(self) -> None:
        self.tail = []
        self.disk, self.usable = self.host if self.params.local_state else None, True

    def _whole(self) -> tuple[int, int]:
        """What is in the changelog: entries, and bytes."""
        shelf, parts = self.protocol.desks[self.task].shelf, self.segment
        size = self.compacted * self.params.entry_size + shelf.entries * shelf.entry_size
        size += sum(each.size for each in parts)
        return self.compacted + shelf.entries + sum(each.entries for each in parts), size

    def _follow(self, host: int) -> Standby:
        """A new copy reads all of it."""
        new, (entries, size) = Standby(None), self._whole()
        self.standbys.append(new)

        def has_read() -> None:
            new.done = self.now + (entries + new.waiting) * self.params.restore_cost

        end = self.protocol.store.request(size, host, False)
        self.clock.at(end, control(Rank.RESTORE, self.task.rank), has_read)
        return new

    def warm_up(self, host: int | None) -> None:
        for standby in [each for each in self.standbys if each.host is not None and each.host != host]:
            self.standbys.remove(standby)
        if host is not None and self.protocol.keeps(self.task) and not self.standbys:
            self._follow(host).host = host

    def are_warm(self) -> bool:
        there = any(standby.done is not None and standby.done <= self.now for standby in self.standbys)
        return there or not self.protocol.keeps(self.task)

    def read(self) -> int:
        """The task asks for its state; when it has it."""
        self.open = True
        entries, size = self._whole()
        now, cost, store = self.now, self.params.restore_cost, self.protocol.store
        usable = [each for each in self.standbys if each.host is None or each.host == self.host]
        known = [standby.done for standby in usable if standby.done is not None]
        if self.disk == self.host and self.usable:
            entries, size = sum(each.entries for each in self.tail), sum(each.size for each in self.tail)
        elif known:
            used = next(standby for standby in usable if standby.done == min(known))
            self.standbys = [each for each in self.standbys if each is not used]
            if len(self.standbys) < self.params.standby_replicas:
                self._follow(self.host)
            return max(now, min(known)) + self.params.restore_time
        return store.request(size, self.host, False) + self.params.restore_time + entries * cost


@dataclass
class Offsets:
    """As they were when a commit had its turn."""

    served: int = 0
    state: State = field(default_factory=State)
    windows_closed: int = 0


@dataclass(eq=False)
class Closing:
    """These commit before a planned stop."""

    stop: PlannedStop | Move
    tasks: list[Task]
    left: list[Task]


@dataclass(eq=False)
class Left:
    """A transaction whose producer has died."""

    host: int
    look: simpy.Event  # of the broker, which aborts it


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
    commits: int = 0  # that have had their turn
    committed: int = 0  # the newest that is made
    since: int = 0  # when its turn was, or the task was restored
    worked: int = 0  # tuples that it had worked on then
    left: list[Left] = field(default_factory=list)  # by it, as long as they are open
    not_before: int = 0  # may it have its state again
    pending: bool = False  # a transaction that commits offsets
    committing: bool = False
    writing: bool = False
    rebalances: bool = False  # its member does
    stops: bool = False  # it is to do nothing meanwhile
    stopped: bool = False
    restores: bool = False
    closing: Closing | None = None  # it goes down when it has committed
    overdue: bool = False  # a commit that had its turn meanwhile
    events: list[simpy.Event] = field(default_factory=list)  # what a failure prevents
    # exactly once: what is not committed, of what it has sent, and of windows that others read
    sent: list[Message] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    untold: list[Message] = field(default_factory=list)  # committed, and readers do not know


class Changelogs(Protocol, kind="changelog"):
    """changelog."""

    can_move = True

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        once, commits = make.some(False, True), make.some(3, 5, 10, 20, 35)
        return {
            "guarantee": "exactly_once" if once else "at_least_once",
            "commit_interval": commits * TICK,
            "commit_time": make.ns(0, 0, 1, 3),
            "transaction_timeout": make.some(0, commits, commits + 7, 60) * TICK,
            "abort_interval": make.some(1, 3, 30) * TICK,
            "batch_interval": None if once else make.some(None, TICK, 4 * TICK),
            "restore_time": make.ns(0, 0, 3),
            "restore_cost": make.ns(0, 0, 1),
            "standby_replicas": make.some(0, 0, 1, 2),
            "segment_size": make.some(0, 0, 300, 10**6),
            "local_state": make.some(False, True),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.desks: dict[Task, Desk] = {}
        self.once = self.world.sinks.withhold = self.params.guarantee == "exactly_once"
        self.withheld: dict[Channel, list[Message]] = {}
        self.aborted: dict[Message, int] = {}  # on the way: because of which fault
        self.covers: dict[Message, list[Message]] = {}  # of a commit message
        self.left_open: Counter[str] = Counter()  # transactions of the dead, by component
        self.late: dict[str, dict[Task, None]] = {}  # who has committed meanwhile

    def start(self) -> None:
        bolts = self.world.bolts
        self.desks = {task: Desk(Shelf.of(self.world, task), Copies(self, task)) for task in bolts}
        for task in bolts:
            priority = control(Rank.CHECKPOINT, task.rank)
            self.clock.each(self.params.commits, priority, partial(self._commit_due, task))
            if self.params.batch_interval is not None and self.keeps(task):
                self.clock.each(self.params.batch_interval, priority, partial(self._batch_due, task))

    def _at(self, time: int, task: Task, rank: Rank, act: Callable[[], None]) -> None:
        """Unless the task fails before."""
        self.desks[task].events.append(self.clock.at(time, control(rank, task.rank), act))

    def keeps(self, task: Task) -> bool:
        """Whether it has state, of a count or a `state`."""
        return task.stateful or self.desks[task].shelf.entries > 0

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

    def sends(self, message: Message) -> None:
        if self.once and message.channel.up in self.desks:
            self.desks[message.channel.up].sent.append(message)

    def window_ended(self, task: Bolt, number: int) -> None:
        if self.once and task.readers:
            self.desks[task].windows.append(number)

    def _write(self, task: Task) -> tuple[int, Batch]:
        """All that has changed up to now; when it is written, and its number, entries, bytes."""
        desk = self.desks[task]
        tuples = desk.shelf.tuples - desk.written
        desk.written = desk.shelf.tuples
        own, shelved = min(tuples, task.state.entries), desk.shelf.changed_by(tuples)
        size = own * self.params.entry_size + shelved * desk.shelf.entry_size
        desk.batches += 1
        batch = Batch(desk.batches, own + shelved, size)
        return self.store.request(size, task.host, True), batch

    def _there(self, task: Task, content: Offsets, batch: Batch) -> None:
        """A batch is in the changelog."""
        self.desks[task].changelog = content
        self.desks[task].copies.add(batch)

    def _now(self, task: Task) -> Offsets:
        return Offsets(self.desks[task].served, task.state.copy(), task.windows_closed)

    def _batch_due(self, task: Task) -> None:
        desk = self.desks[task]
        if self.now % self.params.commits == 0 or not task.live:
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

    def rebalances(self, task: Task, begins: bool, eager: bool) -> None:
        desk = self.desks[task]
        desk.rebalances, desk.stops = begins, begins and eager
        if desk.stops:
            if task.live:
                self._commit_due(task)
            else:
                desk.stopped = True
        elif begins and self.once and self.params.transaction_timeout:
            self._look_again(task)
        elif desk.stopped:
            self._go_on(task)
        if desk.overdue and not begins:
            desk.overdue = False
            self._commit_due(task)

    def _go_on(self, task: Task) -> None:
        desk = self.desks[task]
        desk.stopped = False
        if not (task.down or desk.restores):
            task.waiting = False
            self.clock.at(self.now, arrival(task.rank, 0), partial(self._waits_no_more, task))

    def _waits_no_more(self, task: Task) -> None:
        """What does comes behind commits that are due at this instant."""
        task.queue.extend(Entry(self.now, message) for message in task.memory)
        task.memory.clear()
        task.open(task.inbox)
        task.serve()

    def closes(self, task: Task) -> bool:
        return self.desks[task].closing is not None

    def warm_up(self, task: Task, host: int | None) -> None:
        self.desks[task].copies.warm_up(host)

    def is_warm(self, task: Task) -> bool:
        return self.desks[task].copies.are_warm()

    def saves_to_stop(self, stop: PlannedStop | Move) -> bool:
        desks = [self.desks[task] for task in stop.things]
        if any(desk.rebalances or desk.closing for desk in desks):
            return False
        closing = Closing(stop, list(stop.things), list(stop.things))
        for task, desk in zip(stop.things, desks, strict=True):
            desk.closing = closing
            self._commit_due(task)
        return True

    def _closed(self, task: Task, closing: Closing) -> None:
        closing.left.remove(task)

        def go_down() -> None:
            if any(self.desks[each].closing is not closing for each in closing.tasks):
                return  # one has failed at this instant
            for each in closing.tasks:
                self.desks[each].closing = None
                self.desks[each].copies.open = False
            closing.stop.go_down()

        if not closing.left:
            self._at(self.now, task, Rank.BATCH, go_down)

    def _not_closed(self, closing: Closing) -> None:
        """One has failed before all had committed."""
        for each in closing.tasks:
            desk = self.desks[each]
            desk.closing = None
            if desk.stopped:
                self._go_on(each)
        closing.stop.again()

    def _stop(self, task: Task) -> None:
        """Until tasks are assigned; what waits does so as if it had come then."""
        self.desks[task].stopped = task.waiting = True
        task.suspend()
        messages = task.queued()
        task.queue = deque(entry for entry in task.queue if isinstance(entry.what, Control))
        task.memory = messages

    def _commit(self, task: Task) -> None:
        if self.desks[task].rebalances and not self.desks[task].stops:
            self.desks[task].committing, self.desks[task].overdue = False, True
            return
        desk, clock, wait = self.desks[task], self.clock, self.params.commit_time
        begun, worked = clock.now, desk.shelf.tuples
        content, sent, windows = self._now(task), list(desk.sent), len(desk.windows)
        desk.commits += 1
        desk.pending = self.once
        self.world.sinks.pre_commit(task, desk.commits)
        end, batch = self._write(task) if self.keeps(task) else (clock.now, None)

        def committed() -> None:
            self.world.record.looks()  # what has come at this instant was kept, too
            desk.committing = desk.pending = False
            desk.offsets = content
            if self.once and batch is not None:
                self._there(task, content, batch)
            if batch is not None:
                desk.copies.committed(batch)
            desk.committed, desk.since, desk.worked = desk.commits, begun, worked
            del desk.sent[: len(sent)], desk.windows[:windows]
            desk.untold += sent
            if self.once and self.left_open[task.component]:
                self.late.setdefault(task.component, {})[task] = None
            elif self.once:
                self._tell(task)
            if desk.stops or desk.closing:
                self._stop(task)
            if desk.closing:
                self._closed(task, desk.closing)

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

    def _tell(self, task: Task) -> None:
        """Its readers see what is committed."""
        desk = self.desks[task]
        self.world.sinks.commit(task, desk.committed)
        for channel in task.outputs.values():
            message = Message(channel, commit=True)
            self.covers[message] = [one for one in desk.untold if one.channel is channel]
            channel.send(message)
        desk.untold.clear()

    def _look_from(self, when: int) -> int:
        """The broker's first look at that time or later."""
        look = self.layout.phase("transactions", Purpose.PHASE, self.params.abort_interval)
        while look < when:
            look += self.params.abort_interval
        return look

    def _look_again(self, task: Task) -> None:
        self._at(self._look_from(self.now + 1), task, Rank.ROTATION, partial(self._look, task))

    def _look(self, task: Task) -> None:
        """For a transaction that is too old; its task lives, and waits for others."""
        desk = self.desks[task]
        if not desk.rebalances:
            return
        begun = desk.shelf.tuples > desk.worked and not desk.committing
        if begun and desk.since + self.params.transaction_timeout <= self.now:
            self.world.listener.fenced(task)
        else:
            self._look_again(task)

    def _leave_open(self, task: Task) -> None:
        """It dies amid a transaction, which the broker has to abort."""
        desk = self.desks[task]
        if not self.params.transaction_timeout or desk.shelf.tuples == desk.worked:
            return
        look = self._look_from(max(self.now, desk.since + self.params.transaction_timeout))
        self.left_open[task.component] += 1
        ends = self.clock.at(look, control(Rank.ROTATION, task.rank), lambda: self._aborted(task, left))
        left = Left(task.host, ends)
        desk.left.append(left)
        if desk.pending or self.keeps(task):
            desk.not_before = look

    def _aborted(self, task: Task, left: Left) -> None:
        self.desks[task].left.remove(left)
        self.left_open[task.component] -= 1
        if not self.left_open[task.component]:
            for each in self.late.pop(task.component, {}):
                self._tell(each)

    def failed(self, task: Task, crash: bool) -> None:
        if task not in self.desks:
            return
        desk, newest = self.desks[task], self.world.outages.all[-1]
        kind = newest.fault.kind if newest.told is None else newest.told[0]
        Clock.cancel(*desk.events)
        desk.events.clear()
        if desk.closing:
            desk.stopped = False  # it goes on when it is restored
            self._not_closed(desk.closing)
        desk.committing = desk.writing = desk.restores = desk.overdue = False
        if crash:
            desk.rebalances = desk.stops = desk.stopped = False
        if self.once:
            if crash and kind != "fenced":
                self._leave_open(task)
            self._abort(task)
            desk.worked, desk.pending = desk.shelf.tuples, False
        queued = [] if crash else task.interrupt() + task.memory
        if not crash:
            task.memory.clear()
        desk.copies.failed(kind)
        position = desk.offsets.served
        again = desk.log[position:]
        self.world.record.all_there(again[: len(again) - len(queued)])
        desk.known = max(desk.known, len(desk.log))
        desk.again |= set(again)
        desk.log, desk.served = desk.log[:position], position
        task.inbox = again + task.inbox
        task.kept.clear()
        task.waiting = task.waiting or not crash

    def _abort(self, task: Task) -> None:
        """What it has sent and put out since the last commit."""
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
        self.world.sinks.roll_back(task, self.desks[task].committed)
        desk.sent, desk.windows = [], []

    def ready(self, task: Task, was_down: bool) -> None:
        if task not in self.desks:
            return
        desk = self.desks[task]
        task.waiting = desk.restores = True
        if desk.copies.disk == task.host:  # so it is the same producer
            desk.not_before = 0
            for left in [left for left in desk.left if left.host == task.host]:
                Clock.cancel(left.look)
                self._aborted(task, left)
        end = self.now
        if self.keeps(task):
            end = desk.copies.read()
        elif desk.not_before <= end:
            self._restored(task)
            return
        self._at(max(end, desk.not_before), task, Rank.RESTORE, partial(self._restored, task))

    def _restored(self, task: Task) -> None:
        desk = self.desks[task]
        task.state, task.windows_closed = desk.changelog.state.copy(), desk.changelog.windows_closed
        task.state.markers = dict(desk.offsets.state.markers)
        task.state.handed = desk.offsets.state.handed
        desk.written = desk.shelf.tuples
        desk.copies.restored()
        if task.stateful:
            self.world.outages.restored(task.fault, len(task.state.held))
        self.world.ledger.read_again(message for message in task.inbox if message in desk.again)
        desk.restores, desk.since, desk.worked = False, self.now, desk.shelf.tuples
        if not desk.stopped:
            task.restored()

    def because(self, task: Task, message: Message) -> int | None:
        return task.fault if message in self.desks[task].again else None

    def settled(self, outage: Outage) -> bool:
        """Each task that it has hit has served all that it had read before."""
        hit = [(task, self.desks[task]) for task in outage.tasks if task in self.desks]
        return all(not (task.down or desk.restores) and desk.served >= desk.known for task, desk in hit)

    def kept_for_replay(self) -> int:
        """What was read and may be read again, and what waits in logs."""
        kept = sum(len(self.unreadable(task)) for task in self.desks)
        return kept + sum(
            len(desk.log) - desk.offsets.served + len(task.inbox) for task, desk in self.desks.items()
        )

    def elsewhere(self) -> list[Message]:
        return [message for desk in self.desks.values() for message in desk.log[desk.offsets.served :]]

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [(task, datum) for task, desk in self.desks.items() for datum in desk.changelog.state.effects]
