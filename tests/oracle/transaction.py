"""An attempt of a transaction; the bench at which a task works; the shelf on which it stores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import simpy

from .channels import Message
from .clock import Clock, Rank, control
from .layout import Datum

if TYPE_CHECKING:
    from .states import State
    from .tasks import Task
    from .trident import Trident

Content = dict[tuple[Any, Any], list[tuple[int, Message]]]
"""By reader and sender: arrival, message."""
NEVER = 1 << 62


@dataclass(eq=False)
class Try:
    """An attempt of a transaction."""

    txid: int
    begun: int
    content: Content
    read: bool = False  # the tasks have what they read in the log
    handed: dict[Task, list[Message]] = field(default_factory=dict)
    worked: set[Task] = field(default_factory=set)
    passed: set[Task] = field(default_factory=set)
    broken: set[Task] = field(default_factory=set)
    cause: int | None = None  # the first fault that took something of it
    processed: bool = False
    commit: int | None = None  # when it began
    position: bool = False  # how far the spouts have read is written down, or need not be
    stored: bool = False

    def part(self, task: Task) -> list[Message]:
        """In order: of the log by arrival, then by sender; then what was handed on."""
        read = [
            (arrived, sender.rank, number, message)
            for (reader, sender), entries in self.content.items()
            for number, (arrived, message) in enumerate(entries)
            if reader is task
        ]
        return [entry[-1] for entry in sorted(read, key=lambda e: e[:3])] + self.handed.get(task, [])

    def data(self, task: Task) -> list[Datum]:
        """The tuples in it."""
        return [message.datum for message in self.part(task) if message.datum is not None]

    @property
    def roots(self) -> set[int]:
        data = [message.datum for entries in self.content.values() for _, message in entries]
        return {datum.root for datum in data if datum is not None}

    def break_at(self, task: Task, fault: int) -> None:
        """A fault has taken a task's part."""
        self.broken.add(task)
        self.cause = fault if self.cause is None else self.cause

    @property
    def waits_since(self) -> int:
        """For what has a timeout."""
        if self.stored or (self.processed and self.commit is None):
            return NEVER
        return self.begun if self.commit is None else self.commit


class Bench:
    """One thing after the other."""

    def __init__(self, protocol: Trident, task: Task) -> None:
        self.protocol, self.task, self.clock = protocol, task, protocol.world.clock
        self.works: deque[tuple[Try, int, Callable[[], None]]] = deque()
        self.doing: Try | None = None
        self.event: simpy.Event | None = None
        self.stopped = 0  # until then
        self.fault = -1  # number of the newest that has struck

    def add(self, attempt: Try, work: int, done: Callable[[], None]) -> None:
        self.works.append((attempt, work, done))
        self._next()

    def _next(self) -> None:
        if self.doing is None and self.works:
            self.doing, work, done = self.works.popleft()
            end = max(self.clock.now, self.stopped) + work

            def act() -> None:
                world = self.protocol.world
                host, cuts = world.layout.host, world.cuts
                ends = (host[channel.down.physical] for channel in self.task.outputs.values())
                cut = [cuts.parted_until(host[self.task.physical], end) for end in ends]
                if max([0, *cut]) > self.clock.now:
                    self.event = self.clock.at(max(cut), control(Rank.BATCH, self.task.rank), act)
                    return
                self.doing = None
                done()
                self._next()

            self.event = self.clock.at(end, control(Rank.BATCH, self.task.rank), act)

    def give_up(self, attempts: Container[Try]) -> None:
        self.works = deque(work for work in self.works if work[0] not in attempts)
        if self.doing is not None and self.doing in attempts:
            self._abort()
        self._next()

    def _abort(self) -> None:
        Clock.cancel(self.event)
        self.doing = None

    def crash(self) -> None:
        self.works.clear()
        self._abort()
        self.stopped = 0

    def stop(self, until: int) -> None:
        shift = until - max(self.clock.now, self.stopped)
        if shift > 0:
            self.stopped = until
            if self.doing is not None:
                self.event = self.clock.postpone(self.event, shift)


class Shelf:
    """Where an end's parts are stored."""

    def __init__(self, protocol: Trident, task: Task) -> None:
        self.protocol, self.task = protocol, task
        self.kind = protocol.params.state
        self.txid = 0
        self.handed: list[tuple[Task, Message]] = []  # what the newest transaction has put out
        self.before: tuple[State, int] | None = None
        self.left: list[tuple[str, int]] = []  # outputs of the newest transaction

    def update(self, attempt: Try) -> None:
        """Its turn has come."""
        again, task, world = attempt.txid == self.txid, self.task, self.protocol.world
        if again and self.kind == "transactional":
            for datum in attempt.data(task):
                world.record.gone(datum)
            for down, message in self.handed:
                attempt.handed.setdefault(down, []).append(message)
            self.protocol.passed(attempt, task)
            return
        if again and self.kind == "opaque":
            assert self.before is not None
            state, task.windows_closed = self.before
            task.state = state.copy()
            out = world.ledger.out.get(task.physical, {}).get(None, [])
            for effect in self.left:
                out.remove(effect)
        else:
            self.before = task.state.copy(), task.windows_closed
        self.txid, self.handed = attempt.txid, []
        stateful = world.layout.stateful(task.component)
        data = [] if stateful else attempt.data(task)
        self.left = [(task.component, datum.uid) for datum in data if datum.anchored]
        self.protocol.passes(attempt, task)
