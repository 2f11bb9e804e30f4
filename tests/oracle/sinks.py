"""What leaves the topology comes to its readers at once, or in transactions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import simpy

from .clock import Clock, Part, Rank, control
from .layout import Datum

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

Place = tuple[str, int, int]
Seen = tuple[int, int, dict[int, int]]  # time, replica, sums


@dataclass(eq=False)
class Transaction:
    """Of one task."""

    opened: int | None = None
    windows: list[tuple[int, int, dict[int, int]]] = field(default_factory=list)  # number, put out at, sums
    tuples: list[tuple[int, Datum]] = field(default_factory=list)  # put out at
    expired: bool = False


@dataclass(eq=False)
class Producer:
    """What a task has written."""

    current: Transaction = field(default_factory=Transaction)
    flushed: dict[int, Transaction] = field(default_factory=dict)
    decided: int = 0  # up to this number they are to be committed
    events: list[simpy.Event] = field(default_factory=list)


class Sinks(Part):
    """Of all tasks that nobody reads."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        sink = getattr(world.scenario.strategy, "sink", None)
        self.terms = None if sink is None else sink.terms
        self.withhold = self.terms is not None
        self.producers: dict[Task, Producer] = defaultdict(Producer)
        self.seen: dict[Place, Seen] = {}  # windows
        self.delays: list[int] = []
        self.lost: list[Place] = []  # windows

    def withholds(self, task: Task) -> bool:
        """Whether readers have to wait for what a task puts out."""
        return self.withhold and not task.readers

    def hidden(self) -> set[Place]:
        """Windows that are in transactions."""
        found = set()
        for task, producer in self.producers.items():
            for transaction in (producer.current, *producer.flushed.values()):
                found |= {(*task.logical, number) for number, _, _ in transaction.windows}
        return found

    def _write(self, task: Task) -> Transaction:
        current = self.producers[task].current
        if current.opened is None:
            current.opened = self.now
        return current

    def window(self, task: Task, number: int, sums: dict[int, int]) -> None:
        """A window is put out."""
        self._write(task).windows.append((number, self.now, sums))

    def tuple(self, task: Task, datum: Datum) -> None:
        """A tuple leaves."""
        self._write(task).tuples.append((self.now, datum))

    def pre_commit(self, task: Task, number: int) -> None:
        """What it has written is a transaction."""
        producer, clock = self.producers[task], self.clock
        written = producer.current
        if not self.withhold or (self.terms is not None and written.opened is None):
            return
        producer.flushed[number], producer.current = written, Transaction()
        if self.terms is None:
            return
        end = max(clock.now, written.opened + self.terms.timeout)
        clock.at(end, control(Rank.ROTATION, task.rank), partial(self._times_out, task, number, written))

    def to_commit(self, task: Task, number: int) -> None:
        producer, clock = self.producers[task], self.clock
        if self.terms is None:
            return
        producer.decided = max(producer.decided, number)
        for n, written in list(producer.flushed.items()):
            if n <= number and written.expired:
                self._lose(task, n)
        when = clock.now + self.terms.commit_time
        commit = partial(self.commit, task, number)
        producer.events.append(clock.at(when, control(Rank.TRIM, task.rank), commit))

    def commit(self, task: Task, number: int) -> None:
        """Readers see it."""
        producer, record, now = self.producers[task], self.world.record, self.now
        for n in sorted(n for n in producer.flushed if n <= number):
            written = producer.flushed.pop(n)
            self.world.trace.committed.append((*task.logical, n, now))
            for window, put_out, sums in written.windows:
                place = (*task.logical, window)
                self.seen.setdefault(place, (now, task.physical[2], sums))
                record.windows_out.setdefault(place, now)
                self.delays.append(now - put_out)
            for put_out, _ in written.tuples:
                record.tuples_out.append(now)
                self.delays.append(now - put_out)

    def roll_back(self, task: Task, number: int) -> None:
        producer = self.producers[task]
        Clock.cancel(*producer.events)
        producer.events.clear()
        for n in [n for n in producer.flushed if n > number]:
            self._undo(task, producer.flushed.pop(n))
        self._undo(task, producer.current)
        producer.current = Transaction()

    def _times_out(self, task: Task, number: int, written: Transaction) -> None:
        producer = self.producers[task]
        if producer.flushed.get(number) is written:
            written.expired = True
            if number <= producer.decided:
                self._lose(task, number)

    def _lose(self, task: Task, number: int) -> None:
        written = self.producers[task].flushed.pop(number)
        self.lost += [(*task.logical, number) for number, _, _ in written.windows]
        self._undo(task, written)

    def _undo(self, task: Task, written: Transaction) -> None:
        for window, _, _ in written.windows:
            self.world.ledger.reopened(task, window)
        for _, datum in written.tuples:
            self.world.ledger.not_left(task, datum)
