"""Trident: transactions, attempts of them, and stores that know which they have had."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .channels import Message
from .clock import Clock, Part, Rank, control
from .layout import MACHINES, Datum
from .making import TICK, Maker
from .protocol import Protocol, median_gap

if TYPE_CHECKING:
    from .program import World
    from .record import Outage
    from .tasks import State, Task

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


class Bench(Part):
    """One thing after the other."""

    def __init__(self, protocol: Trident, task: Task) -> None:
        super().__init__(protocol.world)
        self.task = task
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
            end = max(self.now, self.stopped) + work

            def act() -> None:
                cuts = self.world.cuts
                ends = (channel.down.host for channel in self.task.outputs.values())
                cut = [cuts.parted_until(self.task.host, end) for end in ends]
                if max([0, *cut]) > self.now:
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
        shift = until - max(self.now, self.stopped)
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
            state, task.windows_closed = self.before
            task.state = state.copy()
            out = world.ledger.out.get(task.physical, {}).get(None, [])
            for effect in self.left:
                out.remove(effect)
        else:
            self.before = task.state.copy(), task.windows_closed
        self.txid, self.handed = attempt.txid, []
        stateful = task.stateful
        data = [] if stateful else attempt.data(task)
        self.left = [(task.component, datum.uid) for datum in data if datum.anchored]
        self.protocol.passes(attempt, task)


LAST = 10**7  # behind the tasks' events of the same instant
BOSS = "coordinator"


class Trident(Protocol, kind="trident"):
    """trident."""

    boss = "coordinator"

    @staticmethod
    def also_crash(tasks: int) -> list[str]:
        return ["coordinator"] * tasks

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        kinds = ("non_transactional", "transactional", "opaque")
        return {
            "spout": make.some(*kinds),
            "state": make.some(*kinds),
            "failed_batches": make.some("emitted_again", "lost"),
            "batch_interval": make.some(1, 5, 10, 20) * TICK,
            "max_spout_pending": make.some(1, 1, 2, 3),
            "message_timeout": make.some(5, 10, 20, 30) * TICK,
            "metadata_time": make.ns(0, 0, 1, 3),
            "task_time": make.ns(0, 0, 1, 3),
            "state_time": make.ns(0, 0, 2, 4),
            "state_cost": make.ns(0, 0, 0.5),
            "commit_time": make.ns(0, 1, 4, 8),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log: Content = {}  # what waits, by reader and sender: (arrival, message)
        self.logged: dict[int, Content] = {}  # what transactions read, where that is written down
        self.tries: dict[int, Try] = {}
        self.current = 1
        self.life, self.lives = 0, True
        self.passing: tuple[Try, Task] | None = None
        self.causes: dict[int, int | None] = {}  # of roots that are read again: number of the fault
        self.stored_at: list[int] = []
        self.markers: dict[Task, list[tuple[Try, dict, int]]] = {}

    def start(self) -> None:
        world = self.world
        self.benches = {task: Bench(self, task) for task in self.world.bolts}
        self.ups = {
            task: [channel.up for channel in task.inputs.values() if channel.up not in world.spouts]
            for task in self.world.bolts
        }
        self.ends = [task for task in self.world.bolts if task.stateful or not task.readers]
        self.shelves = {task: Shelf(self, task) for task in self.ends}
        self.early = [task for task in self.world.bolts if not self._behind_state(task)]
        homes = {task.home for task in self.world.bolts}
        self.workers = sorted(homes)
        self.dead: dict[Hashable, int] = {}  # by which fault
        self.clock.each(self.params.message_timeout, control(Rank.ROTATION, LAST), self._rotate)
        self.clock.each(self.params.batch_interval, control(Rank.BATCH, LAST), self._tick)

    def _behind_state(self, task: Task) -> bool:
        return any(up.stateful or self._behind_state(up) for up in self.ups[task])

    def admit(self, task: Task, message: Message) -> bool:
        up = message.channel.up
        if up in self.world.spouts:
            self.log.setdefault((task, up), []).append((self.now, message))
            return False
        attempt, sender = self.passing
        attempt.handed.setdefault(task, []).append(message)
        if sender in self.shelves:
            self.shelves[sender].handed.append((task, message))
        return False

    def later(self, delay: int, attempt: Try, act: Callable[[Try], None]) -> None:
        """The coordinator does it then, if the attempt is still under way."""
        life = self.life

        def do() -> None:
            if life == self.life and self.tries.get(attempt.txid) is attempt:
                act(attempt)

        self.clock.at(self.now + delay, control(Rank.BATCH, LAST), do)

    def _tick(self) -> None:
        if self.lives and len(self.tries) < self.params.max_spout_pending:
            self._begin(max([*self.tries, self.current - 1]) + 1)

    def _begin(self, txid: int) -> None:
        if txid in self.logged:
            content = self.logged[txid]
            if any(sender.down for _, sender in content):
                return
        else:
            content = {place: waits for place, waits in self.log.items() if not place[1].down}
            self.log = {place: waits for place, waits in self.log.items() if place not in content}
        if not content:
            return
        attempt = self.tries[txid] = Try(txid, self.now, content)
        if self.params.spout == "transactional" and txid not in self.logged:
            self.later(self.params.metadata_time, attempt, self._write_down)
        else:
            self._read(attempt)

    def _write_down(self, attempt: Try) -> None:
        self.logged[attempt.txid] = attempt.content
        self._read(attempt)

    def _read(self, attempt: Try) -> None:
        attempt.read = True
        for task in self.world.bolts:
            if self._reads_log(task):
                self.part_comes(attempt, task)

    @staticmethod
    def _reads_log(task: Task) -> bool:
        spouts = task.world.spouts
        return any(channel.up in spouts for channel in task.inputs.values())

    def part_comes(self, attempt: Try, task: Task) -> None:
        """Some of a task's part comes to it."""
        if self.is_down(task):
            attempt.break_at(task, self.benches[task].fault)
        if task in attempt.broken or any(up not in attempt.passed for up in self.ups[task]):
            return
        layout, work = self.layout, self.params.task_time
        service = layout.config[task.component].service
        for datum in attempt.data(task):
            work += layout.sample(service, task.component, Purpose.SERVICE, datum.uid, datum.attempt)
        self.benches[task].add(attempt, work, lambda: self._worked(attempt, task))

    def _worked(self, attempt: Try, task: Task) -> None:
        attempt.worked.add(task)
        if task not in self.ends:
            self.passes(attempt, task)
        elif attempt.commit is not None:
            self._update(attempt, task)
        if not attempt.processed and all(one in attempt.worked for one in self.early):
            attempt.processed = True
            self.later(0, attempt, lambda _: self._commit())

    def passes(self, attempt: Try, task: Task) -> None:
        """Its part goes through the task, and then it is done with it."""
        messages, state = attempt.part(task), task.state
        if messages and task not in self.ends:
            entry = (attempt, dict(state.markers), state.handed)
            self.markers.setdefault(task, []).append(entry)
        self.passing = attempt, task
        task.requeue(messages)
        rank = control(Rank.BATCH, task.rank)
        self.clock.at(self.now, rank, lambda: self.passed(attempt, task))

    def passed(self, attempt: Try, task: Task) -> None:
        """Those that read it have what it has made."""
        attempt.passed.add(task)
        for down in self.world.bolts:
            if task in self.ups[down]:
                self.part_comes(attempt, down)
        self._look(attempt)

    def _look(self, attempt: Try) -> None:
        if attempt.position and len(attempt.passed) == len(self.world.bolts):
            self.later(0, attempt, self._stored)

    def _commit(self) -> None:
        attempt = self.tries.get(self.current)
        if attempt is None or not attempt.processed or attempt.commit is not None:
            return
        attempt.commit = self.now
        for task in self.ends:
            if task in attempt.worked and task not in attempt.broken:
                self._update(attempt, task)
        if self.params.spout == "opaque":
            self.later(self.params.metadata_time, attempt, self._position)
        else:
            attempt.position = True

    def _position(self, attempt: Try) -> None:
        attempt.position = True
        self._look(attempt)

    def _update(self, attempt: Try, task: Task) -> None:
        data = attempt.data(task)
        keys = {datum.key for datum in data}
        rows = len(keys) if task.stateful else len(data)
        work = self.params.state_time + rows * self.params.state_cost
        self.benches[task].add(attempt, work, lambda: self.shelves[task].update(attempt))

    def _stored(self, attempt: Try) -> None:
        attempt.stored = True
        self.stored_at.append(self.now)
        self.later(self.params.commit_time, attempt, self._mark)

    def _mark(self, attempt: Try) -> None:
        del self.tries[attempt.txid]
        self.logged.pop(attempt.txid, None)
        self.current += 1
        for root in attempt.roots:
            self.causes.pop(root, None)
        for task, entries in self.markers.items():
            self.markers[task] = [entry for entry in entries if entry[0] is not attempt]
        self._commit()

    def _rotate(self) -> None:
        timeout, now = self.params.message_timeout, self.now
        late = [txid for txid, attempt in self.tries.items() if attempt.waits_since <= now - timeout]
        if self.lives and late:
            gone = [attempt for txid, attempt in sorted(self.tries.items()) if txid >= min(late)]
            first = gone[0].cause
            why = {attempt: first if attempt.cause is None else attempt.cause for attempt in gone}
            for attempt, cause in why.items():
                for root in attempt.roots:
                    self.world.trace.failed.append((root, 0, now))
                    if cause is None:
                        self.world.ledger.false_timeouts.add(root)
                    self.world.outages.timed_out(cause)
            self._give_up(why)

    def _give_up(self, why: dict[Try, int | None]) -> None:
        """These attempts, because of these faults."""
        for bench in self.benches.values():
            bench.give_up(why)
        for task, entries in self.markers.items():
            for number, (attempt, markers, handed) in enumerate(entries):
                if attempt in why:
                    task.state.markers, task.state.handed = dict(markers), handed
                    rest = entries[number:]
                    self.markers[task] = entries[:number] + [e for e in rest if e[0] not in why]
                    break
        for attempt in sorted(why, key=lambda attempt: -attempt.txid):
            del self.tries[attempt.txid]
            self._read_again(attempt, why[attempt])

    def _read_again(self, attempt: Try, cause: int | None) -> None:
        spout = self.params.spout
        if spout == "non_transactional" and attempt.stored:
            return
        record = self.world.record
        for (task, _), entries in attempt.content.items():
            record.all_there(m for _, m in (entries if task in attempt.passed else ()))
        for task, messages in attempt.handed.items():
            record.all_gone(messages if task not in attempt.passed else ())
        if spout == "non_transactional" and self.params.failed_batches == "lost":
            for (task, _), entries in attempt.content.items():
                for _, message in entries:
                    record.gone(message.datum)
                    if message.datum is not None:
                        row = (*task.physical, message.datum.uid, self.now)
                        self.world.trace.destroyed.append(row)
            return
        if attempt.txid not in self.logged:
            for place, entries in attempt.content.items():
                self.log[place] = entries + self.log.get(place, [])
        for root in attempt.roots:
            self.causes[root] = cause

    def spares(self, task: Task) -> bool:
        return task not in self.world.spouts

    def hit(self, fault: Any) -> list[Hashable]:
        if kind_of(fault) in MACHINES:
            return [home for home in self.workers if self.layout.fails(fault, *home)]
        if fault.component == BOSS:
            return [BOSS]
        return [
            task
            for task in self.world.bolts
            if task.physical == (fault.component, fault.task, getattr(fault, "replica", 0))
        ]

    def tasks_of(self, thing: Any) -> list[Task]:
        if thing == BOSS:
            return self.world.bolts
        return [t for t in self.world.bolts if t is thing or t.home == thing]

    def is_down(self, task: Task) -> bool:
        """Alone, or with its worker."""
        return task in self.dead or task.home in self.dead

    def struck(self, fault: Any) -> None:
        clock = self.clock
        if kind_of(fault) == "pause":
            for task in self.hit(fault):
                if task != BOSS and not self.is_down(task):
                    self.benches[task].stop(clock.now + fault.duration)
        if not fault.kills:
            return
        number = len(self.world.outages.all) - 1
        ready = clock.now + max(fault.detection + fault.restart, fault.out_of_order)
        for thing in self.hit(fault):
            nothing = kind_of(fault) == "lose_state" and ready == clock.now and thing not in self.dead
            self._dies(thing, number, ready, nothing)

    def _dies(self, thing: Any, number: int, ready: int, nothing: bool) -> None:
        if thing == BOSS:
            order, self.life, self.lives = 0, self.life + 1, False
            self._give_up(dict.fromkeys(self.tries.values(), number))
        elif thing in self.workers:
            order = 1 + self.workers.index(thing)
        else:
            order = thing.rank
        if not nothing:
            self.dead[thing] = number
        for task in () if nothing or thing == BOSS else self.tasks_of(thing):
            self._crashes(task, number)

        def back() -> None:
            if self.dead.get(thing, number) != number:
                return
            self.dead.pop(thing, None)
            self.lives = self.lives or thing == BOSS
            self.world.outages.back(thing)

        self.clock.at(ready, control(Rank.READY, order), back)

    def _crashes(self, task: Task, number: int) -> None:
        bench = self.benches[task]
        bench.fault = number
        bench.crash()
        for attempt in self.tries.values():
            has_some = (attempt.read and self._reads_log(task)) or any(
                up in attempt.passed for up in self.ups[task]
            )
            if has_some and task not in attempt.passed:
                attempt.break_at(task, number)

    def served(self, task: Any, message: Message) -> None:
        if message.anchored and message.datum.root in self.causes:
            self.world.ledger.read_again([message])

    def because(self, task: Task, message: Message) -> int | None:
        return self.causes.get(message.datum.root) if message.anchored else None

    def settled(self, outage: Outage) -> bool:
        number = outage.number
        broken = any(attempt.cause == number for attempt in self.tries.values())
        return not broken and number not in self.causes.values()

    def is_busy(self, task: Task) -> bool:
        return self.benches[task].doing is not None if task in self.benches else task.busy

    def _contents(self, all_of_them: bool) -> list[Content]:
        attempts = self.tries.values()
        forgets = self.params.spout == "non_transactional" and not all_of_them
        contents = [attempt.content for attempt in attempts if not (forgets and attempt.stored)]
        waiting = [content for txid, content in self.logged.items() if txid not in self.tries]
        return [self.log, *waiting, *contents]

    def kept_for_replay(self) -> int:
        return sum(len(entries) for content in self._contents(True) for entries in content.values())

    def beat(self) -> int:
        return median_gap(self.stored_at)

    def elsewhere(self) -> list[Message]:
        return [m for content in self._contents(False) for entries in content.values() for _, m in entries]
