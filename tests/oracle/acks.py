"""Source replay: an acker, rotating timeouts, retries.

Timeouts are derived from Apache Storm (storm-client), not from the engine. A spout executor keeps its pending
tuples in a rotating map; a tick each message timeout rotates it, counted from the executor's start, and what
comes out is failed (``SpoutExecutor.tupleActionFn``). The acker keeps a value for each root in a rotating
map of its own, with ticks of its own (``Acker.execute``): it is looked up and XORed in place, so acks do not
renew it. There, an ack of a root that was forgotten makes an entry without a spout, which is never complete:
here it is ignored. Ours are the number of buckets and the phase as parameters, and that data come first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .clock import Clock, Rank, control, departure
from .layout import MACHINES, Datum
from .making import TICK, Maker
from .protocol import Protocol

if TYPE_CHECKING:
    from .bolts import Bolt
    from .channels import Message
    from .program import World
    from .record import Outage
    from .spouts import SpoutTask
    from .tasks import Task

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RotatingMap(Generic[Key, Value]):
    """``buckets``: how many, at least 2; each in the order in which entries came."""

    def __init__(self, buckets: int) -> None:
        assert buckets >= 2
        self._buckets: list[dict[Key, Value]] = [{} for _ in range(buckets)]  # the newest first

    def put(self, key: Key, value: Value) -> None:
        """A new entry; one of that key, in whatever bucket, is gone."""
        self.remove(key)
        self._buckets[0][key] = value

    def get(self, key: Key) -> Value | None:
        return next((bucket[key] for bucket in self._buckets if key in bucket), None)

    def remove(self, key: Key) -> None:
        for bucket in self._buckets:
            bucket.pop(key, None)

    def rotate(self) -> dict[Key, Value]:
        """What has expired: it was in the oldest bucket."""
        self._buckets.insert(0, {})
        return self._buckets.pop()

    def keep(self, dead: dict[Key, Value]) -> None:
        """Nobody was there to be told what has expired: it will at the next rotation."""
        self._buckets[-1] = dead | self._buckets[-1]

    def clear(self) -> None:
        for bucket in self._buckets:
            bucket.clear()

    def items(self) -> Iterator[tuple[Key, Value]]:
        """All entries, those that were put first coming first."""
        for bucket in reversed(self._buckets):
            yield from bucket.items()

    def __len__(self) -> int:
        return sum(map(len, self._buckets))


class Memory:
    """What one spout task remembers of its roots."""

    def __init__(self, buckets: int) -> None:
        self.pending: RotatingMap[int, Datum] = RotatingMap(buckets)  # by root
        self.retries: deque[Datum] = deque()
        self.rotation: simpy.Event | None = None


class AckCosts(Protocol):
    """Acks that nobody waits for: they take time at the bolt, each tuple's at once, a window's at its end."""

    @classmethod
    def undisturbed(cls) -> type[Protocol]:
        return AckCosts

    def extra_service(self, task: Task, datum: Datum) -> int:
        held = task.stateful or not datum.anchored
        return 0 if held else self.params.ack_cost

    def burst(self, acks: int) -> int:
        """How long it takes to ack so many one after the other."""
        return self.params.ack_time + acks * self.params.ack_cost if acks else 0

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """The task is busy until the last."""
        if task.component not in self.world.at_once:
            task.occupy(self.now + self.burst(len(data)))


class SourceReplay(AckCosts, kind="source_replay"):
    """Per root and attempt the acker holds the ids created and not acked: the XOR, kept as its terms."""

    @staticmethod
    def also_crash(tasks: int) -> list[str]:
        return ["acker"]

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        timeout = make.some(10, 20, 30, 60) * TICK
        return {
            "message_timeout": timeout,
            "timeout_buckets": make.some(2, 2, 3),
            "timeout_phase": make.some(0, None, timeout // 2),
            "acker_buckets": make.some(2, 3),
            "acker_host": make.some(None, 0, 1) if (make.hosts or 0) > 1 else make.some(None, 0),
            "ack_cost": make.ns(0, 0, 0.5, 1),
            "ack_time": make.ns(0, 0, 0, 2, 6),
            "max_spout_pending": make.some(None, None, 1, 2, 5),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.trees: RotatingMap[tuple[int, int], set[int]] = RotatingMap(self.params.acker_buckets)
        self.acker_down = False
        self.acker_ready: simpy.Event | None = None
        self.memory: dict[SpoutTask, Memory] = {}
        self.acker_fault: int | None = None
        self.causes: dict[tuple[int, int], int | None] = {}  # of attempts after the first: the fault

    def start(self) -> None:
        for spout in self.world.spouts:
            self.memory[spout] = Memory(self.params.timeout_buckets)
            self._begin(spout)
        timeout = self.params.message_timeout
        self.clock.each(timeout, control(Rank.ROTATION), self.trees.rotate, first=0)

    def emitted(self, spout: SpoutTask, datum: Datum, sent: list[Datum]) -> None:
        self.memory[spout].pending.put(datum.root, datum)
        if not self.acker_down:
            self.trees.put((datum.root, datum.attempt), {child.ident for child in sent})
        else:
            self.world.ledger.hurt([datum], self.acker_fault)  # the acker will never know of this tree

    def done(self, datum: Datum, sent: list[Datum]) -> None:
        """One ack: the tuple's own id, and those of the tuples it has become."""
        self.world.record.control_bytes += self.params.ack_size
        tree = self.trees.get((datum.root, datum.attempt))
        if tree is not None:
            tree ^= {datum.ident} | {child.ident for child in sent}
            if not tree:
                self.trees.remove((datum.root, datum.attempt))
                self._completed(datum)

    def _completed(self, datum: Datum) -> None:
        for spout in self.world.spouts:
            pending = self.memory[spout].pending.get(datum.root)
            if pending is not None and pending.attempt == datum.attempt:
                self.world.trace.completed.append((datum.root, datum.attempt, self.now))
                self._remove(spout, datum.root)

    def machines_failed(self, fault: Any, down_for: int | None) -> None:
        if self.hit(fault):
            self.acker_failed(down_for)

    def hit(self, fault: Any) -> list[Hashable]:
        """The acker lives in the first worker of its host, if it has one."""
        home = self.params.acker_host
        if kind_of(fault) in MACHINES:
            return ["acker"] if home is not None and self.layout.fails(fault, home, 0) else []
        return ["acker"] if fault.component == "acker" else []

    def acker_failed(self, down_for: int | None) -> None:
        self.acker_fault = len(self.world.outages.all) - 1
        self.world.ledger.hurt_trees({tree for tree, _ in self.trees.items()}, self.acker_fault)
        self.trees.clear()
        self.acker_down = True
        if down_for is not None:
            Clock.cancel(self.acker_ready)
            when = self.now + down_for
            self.acker_ready = self.clock.at(when, control(Rank.READY), self.acker_ready_again)

    def acker_ready_again(self) -> None:
        self.acker_down = False
        self.world.outages.back("acker")

    def done_late(self, task: Bolt, datum: Datum) -> None:
        self.done(datum, [])

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """One after the other; the task is busy until the last."""
        self.ack_all(task, data)
        super().ack_window(task, data)

    def ack_all(self, task: Task, data: list[Datum]) -> None:
        """One after the other; the task is kept for that already."""
        for i, datum in enumerate(data, 1):
            after = self.burst(i)
            if after == 0:
                self.done(datum, [])
            else:
                act, priority = partial(self.done, datum, []), departure(task.rank)
                task.unsent.append((self.clock.at(self.now + after, priority, act), datum))

    def _begin(self, spout: SpoutTask) -> None:
        """The rotation starts with the spout."""
        phase, timeout = self.params.timeout_phase, self.params.message_timeout
        if phase is None:
            phase = self.layout.phase(spout.name, Purpose.PHASE, timeout)
        self._next_rotation(spout, self.now + phase)

    def _next_rotation(self, spout: SpoutTask, time: int) -> None:
        rotate = partial(self._rotate, spout)
        self.memory[spout].rotation = self.clock.at(time, control(Rank.ROTATION, spout.rank), rotate)

    def _rotate(self, spout: SpoutTask) -> None:
        """Fail every root that expires, in order of its last emission; a spout that is down does so later."""
        memory, now = self.memory[spout], self.now
        full, dead = not self.may_emit(spout), memory.pending.rotate()
        if spout.down:
            memory.pending.keep(dead)
            dead = {}
        self._fail(spout, dead, full)
        self._next_rotation(spout, now + self.params.message_timeout)

    def _fail(self, spout: SpoutTask, dead: dict[int, Datum], full: bool) -> None:
        """These, which are not pending any more, are to be emitted again; ``full``: the spout waited."""
        for root, datum in dead.items():
            self.world.trace.failed.append((root, datum.attempt, self.now))
            self.causes[root, datum.attempt + 1] = self.world.ledger.timed_out(datum)
        if dead and full:
            spout.freed()
        self.emit_again(spout, [datum._replace(attempt=datum.attempt + 1) for datum in dead.values()])

    def give_up(self, spout: SpoutTask, roots: set[int]) -> None:
        memory, full = self.memory[spout], not self.may_emit(spout)
        dead = {root: datum for root, datum in memory.pending.items() if root in roots}
        for root in dead:
            memory.pending.remove(root)
        self._fail(spout, dead, full)

    def emit_again(self, spout: SpoutTask, data: list[Datum]) -> None:
        more = self.has_retries(spout)
        for datum in data:
            self.memory[spout].retries.append(datum)
            self.world.record.there(datum)
        if data:
            spout.retries_wait(more)

    def _remove(self, spout: SpoutTask, root: int) -> None:
        capped = not self.may_emit(spout)
        self.memory[spout].pending.remove(root)
        if capped:
            spout.freed()

    def may_emit(self, spout: SpoutTask) -> bool:
        cap = self.params.max_spout_pending
        return cap is None or len(self.memory[spout].pending) < cap

    def retry(self, spout: SpoutTask) -> Datum | None:
        retries = self.memory[spout].retries
        if not retries:
            return None
        datum = retries.popleft()
        self.world.ledger.replayed.add(datum.root)
        return datum

    def has_retries(self, spout: SpoutTask) -> bool:
        return bool(self.memory[spout].retries)

    def unconfirmed(self, spout: SpoutTask) -> set[int]:
        memory = self.memory[spout]
        return {root for root, _ in memory.pending.items()} | {datum.root for datum in memory.retries}

    def failed(self, task: Task, crash: bool) -> None:
        if crash and task in self.memory:
            Clock.cancel(self.memory[task].rotation)
            for datum in self.memory[task].retries:
                self.world.record.gone(datum)
                # a queue may give it out again, as the same attempt: as all that was forgotten, for no fault
                self.causes.pop((datum.root, datum.attempt), None)
            self.memory[task] = Memory(self.params.timeout_buckets)

    def ready(self, task: Task, was_down: bool) -> None:
        if task in self.memory and self.memory[task].rotation is None:
            self._begin(task)

    def because(self, task: Task, message: Message) -> int | None:
        datum = message.datum
        return None if datum is None else self.causes.get((datum.root, datum.attempt))

    def settled(self, outage: Outage) -> bool:
        """No root that it has hit waits to be given up, or to be emitted again."""
        damaged = self.world.ledger.damaged
        pending = [(root, datum.attempt) for m in self.memory.values() for root, datum in m.pending.items()]
        waiting = [datum for m in self.memory.values() for datum in m.retries]
        return not (
            any(damaged.get(tree) == outage.number for tree in pending)
            or any(self.causes.get((datum.root, datum.attempt)) == outage.number for datum in waiting)
        )

    def kept_for_replay(self) -> int:
        return sum(len(memory.pending) for memory in self.memory.values())

    def kept_roots(self) -> set[int]:
        return {
            root for memory in self.memory.values() for root, _ in memory.pending.items()
        } | self.waiting_roots()

    def waiting_roots(self) -> set[int]:
        return {datum.root for memory in self.memory.values() for datum in memory.retries}
