"""The two kinds of Storm that save state: storm_checkpoint, and estorm.

From docs/semantics.md. storm_checkpoint: prepare, commit, then the acks; after a failure everything goes back
to the last transaction (storm-client, ``CheckpointSpout`` and ``StatefulBoltExecutor``: a task keeps what it
has executed since the last prepare apart from what that prepare has in it, and acks the latter when the
commit comes). estorm: fleets of a task and its shadows (Liu et al., 2017, section V): a recovery transaction
reaches the live members, one of each fleet that was hit writes its state, and when all have those that are
back read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from .acks import SourceReplay
from .bolts import Bolt
from .channels import Message
from .clock import Clock, Priority, Rank, control
from .layout import Datum
from .making import TICK, Maker
from .spouts import SpoutTask
from .stores import AtHand, Store
from .tasks import Control, Entry, State

if TYPE_CHECKING:
    from .program import World
    from .record import Outage
    from .tasks import Task


@dataclass
class Saved:
    """What one task has in a transaction."""

    state: State = field(default_factory=State)
    windows_closed: int = 0


@dataclass
class Desk:
    """What the protocol knows of one bolt task."""

    executed: list[Datum] = field(default_factory=list)  # since the last prepare, not acked
    prepared: list[Datum] = field(default_factory=list)  # in the transaction that is being prepared
    safe: list[Datum] = field(default_factory=list)  # in the one that holds, not acked
    held: Saved = field(default_factory=Saved)
    part: Saved | None = None  # of the transaction that is being prepared
    come: int = 0  # markers of the wave under way
    entries: int = 0  # that the transaction under way writes
    fault: int | None = None  # it has failed, and is not back yet
    at_hand: AtHand = field(default_factory=AtHand)


class StormCheckpoint(SourceReplay, kind="storm_checkpoint"):
    """storm_checkpoint."""

    fault_kinds = (*SourceReplay.fault_kinds, *["pause"] * 3)
    # a write keeps a task, and the job waits for it

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return SourceReplay.drawn(make) | {
            "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
            "write_time": make.ns(0, 0, 1, 3),
            "write_cost": make.ns(0, 0, 0.5),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.desks: dict[Task, Desk] = {}
        self.wave = 0  # number of the one under way
        self.waves = 0
        self.committing = False
        self.began = 0
        self.left: set[Task] = set()  # who has not handed the wave on
        self.events: list[simpy.Event] = []  # what a failure prevents
        self.holds: Datum | None = None  # a tuple that has been served, and is handed on

    def bolts(self) -> list[Task]:
        return [task for task in self.world.tasks if isinstance(task, Bolt)]

    def start(self) -> None:
        super().start()
        self.desks = {task: Desk() for task in self.world.bolts}
        self._expect(self.params.checkpoint_interval)

    def _keeps(self, task: Task) -> bool:
        """Whether it has state, of its own or in a `state`."""
        return self.layout.keeps_state(task.component)

    def _state(self, task: Task):
        return self.layout.config[task.component].state

    def _at(self, time: int, priority: Priority, act: Callable[[], None]) -> None:
        self.events = [event for event in self.events if event.callbacks]
        self.events.append(self.clock.at(time, priority, act))

    def done_late(self, task: Bolt, datum: Datum) -> None:
        """The commit acks it, as all that the task has processed."""

    def _has_ids(self, task: Task) -> bool:
        """Whether only ids of its windows are saved."""
        layout = self.layout
        return task.stateful and layout.config[task.component].bolt.window.saved == "ids"

    def known(self, task: Bolt, datum: Datum) -> None:
        if datum.anchored:
            self.desks[task].executed.append(datum)

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """The end of a window acks nothing; where only ids are saved, the next commit acks what leaves."""
        if self._has_ids(task):
            self.desks[task].executed += data

    def served(self, task: Bolt, message: Message) -> None:
        datum = message.datum
        if datum is not None and datum.anchored and self._keeps(task) and not self._has_ids(task):
            self.desks[task].executed.append(datum)
            if not task.stateful:
                self.holds = datum

    def done(self, datum: Datum, sent: list[Datum]) -> None:
        if datum is not self.holds:
            super().done(datum, sent)
            return
        self.holds = None
        tree = self.trees.get((datum.root, datum.attempt))
        if tree is not None:
            tree ^= {child.ident for child in sent}  # the datum's own is acked with the commit

    def extra_service(self, task: Task, datum: Datum) -> int:
        takes = 0 if self._keeps(task) else super().extra_service(task, datum)
        if self._state(task) is None:
            return takes
        at_hand = self.desks[task].at_hand
        at_hand.begin(self.layout, task.component, datum)
        return takes + self._up_to_the_store(at_hand)

    def _up_to_the_store(self, at_hand: AtHand) -> int:
        """Time for the next accesses, until one has to wait for its turn at the store, or all are done."""
        takes, params = 0, self.params
        for missing in at_hand.accesses:
            takes += params.access_cost
            if missing and params.look_up_work:
                at_hand.asks = True
                return takes + (params.round_trip - params.look_up_work) // 2
            takes += missing * params.round_trip
        at_hand.asks = False
        return takes

    def more_service(self, task: Task) -> int | None:
        """It is at the store, waits for its turn there, and goes back."""
        what, desk = task.serving.what, self.desks.get(task)
        if desk is None or not isinstance(what, Message) or what.datum is None or not desk.at_hand.asks:
            return None
        work, now = self.params.look_up_work, self.now
        answer = self.store.keep(work, task.host)
        back = self.params.round_trip - work - (self.params.round_trip - work) // 2
        return answer - now + back + self._up_to_the_store(desk.at_hand)

    def _expect(self, time: int) -> None:
        self._at(time, control(Rank.CHECKPOINT), self._prepare)

    def _prepare(self) -> None:
        self.began = self.now
        self._send(committing=False)

    def _send(self, committing: bool) -> None:
        self.committing, self.left = committing, set(self.world.bolts)
        self.waves += 1
        self.wave = self.waves
        for desk in self.desks.values():
            desk.come = 0
        for task in self.world.bolts:
            if any(isinstance(channel.up, SpoutTask) for channel in task.inputs.values()):
                task.place(Rank.CHECKPOINT, partial(self._turn, task, self.wave))

    def admit(self, task: Task, message: Message) -> bool:
        if message.barrier is None:
            return True
        task.place_barrier(message, partial(self._turn, task, message.barrier))
        return False

    def _turn(self, task: Task, number: int) -> None:
        """One from the spouts, and one from each other task that sends here."""
        if number != self.wave:
            return
        desk = self.desks[task]
        desk.come += 1
        spouts = [isinstance(channel.up, SpoutTask) for channel in task.inputs.values()]
        if desk.come == spouts.count(False) + any(spouts):
            self._takes_part(task, number)

    def _takes_part(self, task: Task, number: int) -> None:
        desk = self.desks[task]
        if not self._keeps(task):
            self._hand_on(task, number)
            return
        if not self.committing:
            saved = task.state.ids() if self._has_ids(task) else task.state.copy()
            desk.part = Saved(saved, task.windows_closed)
            desk.prepared, desk.executed = desk.executed, []
            desk.entries = self._entries(desk.part) + desk.at_hand.prepare()
        else:
            desk.at_hand.commit()
        entries, host, now = desk.entries, task.host, self.now
        end = self.store.request(entries * self.params.entry_size, host, True, max(1, entries))
        end += self.params.write_time + entries * self.params.write_cost
        acks = self.burst(len(desk.safe)) if self.committing else 0
        task.occupy_longer(end - now + acks)
        # a pause makes it later, as what keeps the task
        task.pending.append(
            self.clock.at(end, control(Rank.TRIM, task.rank), partial(self._written, task, number))
        )

    @staticmethod
    def _entries(part: Saved) -> int:
        """Of counts, or of upstream tasks with ids."""
        return part.state.entries + len(part.state.put_out)

    def _written(self, task: Task, number: int) -> None:
        if number != self.wave:
            return
        desk = self.desks[task]
        if self.committing:
            acks, desk.safe = desk.safe, []
            self.ack_all(task, acks)
        self._hand_on(task, number)

    def _hand_on(self, task: Task, number: int) -> None:
        for channel in task.outputs.values():
            task.put(Message(channel, barrier=number))
        self.left.discard(task)
        if self.left:
            return
        if self.committing:
            self._expect(max(self.now, self.began + self.params.checkpoint_interval))
            return
        for desk in self.desks.values():
            desk.held, desk.part = desk.part or Saved(), None
            desk.safe, desk.prepared = desk.prepared, []
        self._send(committing=True)

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if isinstance(task, SpoutTask):
            return
        Clock.cancel(*self.events)
        self.events.clear()
        self.wave = 0
        desk = self.desks[task]
        self.world.ledger.hurt([*desk.prepared, *desk.safe, *desk.executed], task.fault)
        desk.prepared, desk.safe, desk.executed = [], [], []
        desk.fault = task.fault
        desk.at_hand.forget()

    def ready(self, task: Task, was_down: bool) -> None:
        super().ready(task, was_down)
        if isinstance(task, SpoutTask):
            return
        desk, clock = self.desks[task], self.clock
        task.queue.extend(Entry(clock.now, message) for message in task.interrupt())
        task.waiting = True
        state = self._state(task)
        size = (self._entries(desk.held) + (state.entries if state else 0)) * self.params.entry_size
        end = self.store.request(size, task.host, False)
        fault = desk.fault
        clock.at(end, control(Rank.RESTORE, task.rank), lambda: self._back(task, fault))

    @staticmethod
    def _set_aside(task: Task) -> None:
        """What it does is given up; tuples go behind the markers that wait, and arrive now."""
        now = task.world.clock.now
        task.suspend()
        task.occupied, task.occupied_until = False, now
        markers = [entry for entry in task.queue if isinstance(entry.what, Control)]
        task.queue = deque([*markers, *(Entry(now, message) for message in task.queued())])

    def _back(self, task: Task, fault: int | None) -> None:
        """It has read its state: all go back, unless it has failed again."""
        desk = self.desks[task]
        if fault is None or desk.fault != fault:
            return
        desk.fault = None
        task.take_on(desk.held.state)
        if task.stateful:
            self.world.outages.restored(fault, len(task.state.held))
        task.windows_closed = max(task.windows_closed, desk.held.windows_closed)
        self._set_aside(task)
        task.restored()
        hit = self.world.outages.all[fault].tasks
        together = all(each in hit for each in self.desks if self._keeps(each))
        for other, its in self.desks.items() if not together else ():
            if other is not task and its.fault is None and self._keeps(other):
                self._set_aside(other)
                if self._has_ids(other):
                    self.world.ledger.hurt(other.state.effects, fault)
                other.take_on(its.held.state)
                acks, its.safe = its.safe, []
                other.occupy_longer(self.burst(len(acks)))
                self.ack_all(other, acks)
                self.world.ledger.hurt([*its.prepared, *its.executed], fault)
                its.prepared, its.executed = [], []
                its.at_hand.forget()
                other.restored()
        if all(its.fault is None for its in self.desks.values()):
            self._expect(self.now + self.params.checkpoint_interval)

    def settled(self, outage: Outage) -> bool:
        waits = any(desk.fault == outage.number for desk in self.desks.values())
        return super().settled(outage) and not waits

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [(task, datum) for task, desk in self.desks.items() for datum in desk.held.state.effects]


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


class Fleets(SourceReplay, kind="estorm"):
    """estorm."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return SourceReplay.drawn(make) | {
            "members": make.some(1, 2, 2, 3),
            "copy_cost": make.ns(0, 0, 0, 1, 3),
            "transaction_time": make.ns(0, 0, 2),
            "load_time": make.ns(0, 0, 3),
            "load_cost": make.ns(0, 0, 1),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store = Store(world)
        self.transactions: dict[int, Transaction] = {}
        self.turns: dict[Task, Turn] = {}
        self.lives: dict[Task, int] = {}

    def call_cost(self, spout: SpoutTask) -> int:
        layout = self.layout
        return self.params.copy_cost * sum(layout.replicas(down) - 1 for down in spout.readers)

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        self.lives[task] = self.lives.get(task, 0) + 1
        self.turns.pop(task, None)
        now = self.now
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
        if not self.layout.keeps_state(task.component):
            return
        fault = task.fault
        task.memory = task.interrupt() + task.memory
        task.waiting = True
        self.transactions.setdefault(fault, Transaction()).unwritten.append(task)
        later = self.now + self.params.transaction_time
        self._at(later, task, partial(self._ask, task, self.lives[task], fault))

    def _entries(self, task: Task, state: State) -> int:
        """Those of a bolt's own, and of a `state`."""
        backend = self.layout.config[task.component].state
        return state.entries + (0 if backend is None else backend.entries)

    def _at(self, time: int, task: Task, act: Callable[[], None]) -> None:
        self.clock.at(time, control(Rank.RESTORE, task.rank), act)

    def _done(self, task: Task, fault: int) -> None:
        """Nobody is to write for it any more."""
        transaction = self.transactions[fault]
        transaction.unwritten.remove(task)
        self._read(transaction, fault)

    def _ask(self, task: Task, life: int, fault: int) -> None:
        if self.lives[task] != life:
            return
        fleet = self.world.replicas[task.logical]
        live = [other for other in fleet if other is not task and other.live]
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
        host = member.host
        entries = self._entries(task, state)
        end = self.store.request(entries * self.params.entry_size, host, True, max(1, entries))
        member.occupy_longer(end - self.now)
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
            self.world.outages.all[fault].written = self.now
        for task, state, windows in written:
            host = task.host
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
