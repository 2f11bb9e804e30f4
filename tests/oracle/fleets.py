"""estorm: fleets of a task and its shadows; who comes back reads what a live member has written.

From the rules of `estorm`; the steps are those of Liu et al. (2017), section V: a recovery transaction
reaches the live members, one of each fleet that was hit writes its state, and when all have those that are
back read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from .acks import SourceReplay
from .buffers import Store
from .clock import Rank, control
from .states import State

if TYPE_CHECKING:
    from .program import World
    from .spouts import SpoutTask
    from .tasks import Task


@dataclass
class Transaction:
    """Of one fault: who waits to be written for, and who for its turn to read."""

    unwritten: list[Task] = field(default_factory=list)
    written: list[tuple[Task, State, int]] = field(default_factory=list)  # and how many windows it has ended


@dataclass(eq=False)
class Turn:
    """A member is to write for a task, or writes."""

    member: Task
    again: Callable[[], None]
    """Asks another one."""


class Fleets(SourceReplay):
    """estorm."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.transactions: dict[int, Transaction] = {}
        self.turns: dict[Task, Turn] = {}
        self.lives: dict[Task, int] = {}

    def call_cost(self, spout: SpoutTask) -> int:
        layout = self.world.layout
        return self.params.copy_cost * sum(layout.replicas(down) - 1 for down in layout.down[spout.component])

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        self.lives[task] = self.lives.get(task, 0) + 1
        self.turns.pop(task, None)
        now = self.world.clock.now
        for fault, transaction in self.transactions.items():
            waiting = [*transaction.unwritten, *(row[0] for row in transaction.written)]
            if task in waiting:
                transaction.unwritten = [each for each in transaction.unwritten if each is not task]
                transaction.written = [row for row in transaction.written if row[0] is not task]
                self._at(now, task, partial(self._read, transaction, fault))
        for each, turn in list(self.turns.items()):
            if turn.member is task:
                del self.turns[each]
                self._at(now, each, turn.again)

    def ready(self, task: Task, was_down: bool) -> None:
        super().ready(task, was_down)
        if not self.world.layout.keeps_state(task.component):
            return
        fault = task.fault
        assert fault is not None
        task.memory = task.interrupt() + task.memory
        task.waiting = True
        self.transactions.setdefault(fault, Transaction()).unwritten.append(task)
        later = self.world.clock.now + self.params.transaction_time
        self._at(later, task, partial(self._ask, task, self.lives[task], fault))

    def _entries(self, task: Task, state: State) -> int:
        """Those of a bolt's own, and of a `state`."""
        backend = self.world.layout.config[task.component].state
        return state.entries + (0 if backend is None else backend.entries)

    def _at(self, time: int, task: Task, act: Callable[[], None]) -> None:
        self.world.clock.at(time, control(Rank.RESTORE, task.rank), act)

    def _done(self, task: Task, fault: int) -> None:
        """Nobody is to write for it any more."""
        transaction = self.transactions[fault]
        transaction.unwritten.remove(task)
        self._read(transaction, fault)

    def _ask(self, task: Task, life: int, fault: int) -> None:
        if self.lives[task] != life:
            return
        fleet = [other for other in self.world.tasks if other.logical == task.logical and other is not task]
        live = [other for other in fleet if other.live]
        if not live:
            self._restored(task, life, fault, State(), 0)
            self._done(task, fault)
            return
        turn = self.turns[task] = Turn(live[0], partial(self._ask, task, life, fault))
        live[0].place(Rank.RESTORE, partial(self._write, task, fault, turn))

    def _write(self, task: Task, fault: int, turn: Turn) -> None:
        if self.turns.get(task) is not turn:
            return
        member = turn.member
        state, windows = member.state.copy(), member.windows_closed
        further = task.replica - member.replica  # the copies of a tuple have ids one after the other
        state.held = [datum._replace(ident=datum.ident + further) for datum in state.held]
        host = self.world.layout.host[member.physical]
        entries = self._entries(task, state)
        end = self.store.request(entries * self.params.entry_size, host, True, max(1, entries))
        member.occupy_longer(end - self.world.clock.now)
        self._at(end, task, partial(self._written, task, fault, turn, state, windows))

    def _written(self, task: Task, fault: int, turn: Turn, state: State, windows: int) -> None:
        if self.turns.get(task) is not turn:
            return
        del self.turns[task]
        self.transactions[fault].written.append((task, state, windows))
        self._done(task, fault)

    def _read(self, transaction: Transaction, fault: int) -> None:
        if transaction.unwritten:
            return
        written, transaction.written = transaction.written, []
        if written:
            self.world.outages.all[fault].written = self.world.clock.now
        for task, state, windows in written:
            host = self.world.layout.host[task.physical]
            entries = self._entries(task, state)
            end = self.store.request(entries * self.params.entry_size, host, False, max(1, entries))
            end += self.params.load_time + entries * self.params.load_cost
            self._at(end, task, partial(self._restored, task, self.lives[task], fault, state, windows))

    def _restored(self, task: Task, life: int, fault: int, state: State, windows: int) -> None:
        if self.lives[task] != life:
            return
        task.take_on(state)
        task.windows_closed = max(task.windows_closed, windows)
        self.world.outages.restored(fault, len(task.state.held))
        task.restored()

    def bytes_stored(self) -> int:
        return self.store.bytes
