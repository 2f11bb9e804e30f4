"""Trident: transactions, attempts of them, and stores that know which they have had."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .channels import Message
from .clock import Rank, control
from .layout import MACHINES, Datum
from .protocol import Protocol
from .transaction import Bench, Content, Shelf, Try

if TYPE_CHECKING:
    from .outages import Outage
    from .program import World
    from .tasks import Task

LAST = 10**7  # behind the tasks' events of the same instant
BOSS = "coordinator"


class Trident(Protocol):
    """trident."""

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
        self.bolts = [task for task in world.tasks if task not in world.spouts]
        self.benches = {task: Bench(self, task) for task in self.bolts}
        self.ups = {
            task: [channel.up for channel in task.inputs.values() if channel.up not in world.spouts]
            for task in self.bolts
        }
        layout = world.layout
        self.ends = [
            task for task in self.bolts if layout.stateful(task.component) or not layout.down[task.component]
        ]
        self.shelves = {task: Shelf(self, task) for task in self.ends}
        self.early = [task for task in self.bolts if not self._behind_state(task)]
        homes = {(layout.host[task.physical], layout.worker[task.physical]) for task in self.bolts}
        self.workers = sorted(homes)
        self.dead: dict[Hashable, int] = {}  # by which fault
        world.clock.at(self.params.message_timeout, control(Rank.ROTATION, LAST), self._rotate)
        world.clock.at(self.params.batch_interval, control(Rank.BATCH, LAST), self._tick)

    def _behind_state(self, task: Task) -> bool:
        layout = self.world.layout
        return any(layout.stateful(up.component) or self._behind_state(up) for up in self.ups[task])

    # -- what comes ----------------------------------------------------------------------------------------

    def admit(self, task: Task, message: Message) -> bool:
        up = message.channel.up
        if up in self.world.spouts:
            self.log.setdefault((task, up), []).append((self.world.clock.now, message))
            return False
        assert self.passing is not None
        attempt, sender = self.passing
        attempt.handed.setdefault(task, []).append(message)
        if sender in self.shelves:
            self.shelves[sender].handed.append((task, message))
        return False

    # -- attempts ------------------------------------------------------------------------------------------

    def later(self, delay: int, attempt: Try, act: Callable[[Try], None]) -> None:
        """The coordinator does it then, if the attempt is still under way."""
        life = self.life

        def do() -> None:
            if life == self.life and self.tries.get(attempt.txid) is attempt:
                act(attempt)

        self.world.clock.at(self.world.clock.now + delay, control(Rank.BATCH, LAST), do)

    def _tick(self) -> None:
        if self.lives and len(self.tries) < self.params.max_spout_pending:
            self._begin(max([*self.tries, self.current - 1]) + 1)
        next_one = self.world.clock.now + self.params.batch_interval
        self.world.clock.at(next_one, control(Rank.BATCH, LAST), self._tick)

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
        attempt = self.tries[txid] = Try(txid, self.world.clock.now, content)
        if self.params.spout == "transactional" and txid not in self.logged:
            self.later(self.params.metadata_time, attempt, self._write_down)
        else:
            self._read(attempt)

    def _write_down(self, attempt: Try) -> None:
        self.logged[attempt.txid] = attempt.content
        self._read(attempt)

    def _read(self, attempt: Try) -> None:
        attempt.read = True
        for task in self.bolts:
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
        layout, work = self.world.layout, self.params.task_time
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
        self.world.clock.at(self.world.clock.now, rank, lambda: self.passed(attempt, task))

    def passed(self, attempt: Try, task: Task) -> None:
        """Those that read it have what it has made."""
        attempt.passed.add(task)
        for down in self.bolts:
            if task in self.ups[down]:
                self.part_comes(attempt, down)
        self._look(attempt)

    def _look(self, attempt: Try) -> None:
        if attempt.position and len(attempt.passed) == len(self.bolts):
            self.later(0, attempt, self._stored)

    # -- the commit ----------------------------------------------------------------------------------------

    def _commit(self) -> None:
        attempt = self.tries.get(self.current)
        if attempt is None or not attempt.processed or attempt.commit is not None:
            return
        attempt.commit = self.world.clock.now
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
        rows = len(keys) if self.world.layout.stateful(task.component) else len(data)
        work = self.params.state_time + rows * self.params.state_cost
        self.benches[task].add(attempt, work, lambda: self.shelves[task].update(attempt))

    def _stored(self, attempt: Try) -> None:
        attempt.stored = True
        self.stored_at.append(self.world.clock.now)
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

    # -- failures ------------------------------------------------------------------------------------------

    def _rotate(self) -> None:
        timeout, now = self.params.message_timeout, self.world.clock.now
        self.world.clock.at(now + timeout, control(Rank.ROTATION, LAST), self._rotate)
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
            for _, message in entries if task in attempt.passed else ():
                record.there(message.datum)
        for task, messages in attempt.handed.items():
            for message in messages if task not in attempt.passed else ():
                record.gone(message.datum)
        if spout == "non_transactional" and self.params.failed_batches == "lost":
            for (task, _), entries in attempt.content.items():
                for _, message in entries:
                    record.gone(message.datum)
                    if message.datum is not None:
                        row = (*task.physical, message.datum.uid, self.world.clock.now)
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
            return [home for home in self.workers if self.world.layout.fails(fault, *home)]
        if fault.component == BOSS:
            return [BOSS]
        return [
            task
            for task in self.bolts
            if task.physical == (fault.component, fault.task, getattr(fault, "replica", 0))
        ]

    def tasks_of(self, thing: Any) -> list[Task]:
        if thing == BOSS:
            return self.bolts
        return [thing] if thing in self.bolts else self._inside(thing)

    def _inside(self, home: Any) -> list[Task]:
        layout = self.world.layout
        return [t for t in self.bolts if (layout.host[t.physical], layout.worker[t.physical]) == home]

    def is_down(self, task: Task) -> bool:
        """Alone, or with its worker."""
        layout = self.world.layout
        home = layout.host[task.physical], layout.worker[task.physical]
        return task in self.dead or home in self.dead

    def struck(self, fault: Any) -> None:
        clock = self.world.clock
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

        self.world.clock.at(ready, control(Rank.READY, order), back)

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

    # -- figures -------------------------------------------------------------------------------------------

    def served(self, task: Any, message: Message) -> None:
        datum = message.datum
        if datum is not None and datum.anchored and datum.root in self.causes:
            self.world.ledger.replayed.add(datum.root)

    def because(self, task: Task, message: Message) -> int | None:
        datum = message.datum
        return None if datum is None or not datum.anchored else self.causes.get(datum.root)

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
        gaps = sorted(after - before for before, after in pairwise(self.stored_at))
        if not gaps:
            return 0
        middle = len(gaps) // 2
        return gaps[middle] if len(gaps) % 2 else (gaps[middle - 1] + gaps[middle]) // 2

    def elsewhere(self) -> list[tuple[str, Datum]]:
        return [
            (task.component, message.datum)
            for content in self._contents(False)
            for (task, _), entries in content.items()
            for _, message in entries
            if message.datum is not None and message.datum.anchored
        ]
