"""Source replay: an acker, rotating timeouts, retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from tideover.sim.draws import Purpose
from tideover.sim.registry import kind_of

from .clock import Clock, Rank, control, departure
from .layout import Datum
from .protocol import Protocol

if TYPE_CHECKING:
    from .bolts import Bolt
    from .channels import Message
    from .outages import Outage
    from .program import World
    from .spouts import SpoutTask
    from .tasks import Task


class Memory:
    """What one spout task remembers of its roots."""

    def __init__(self) -> None:
        self.pending: dict[
            int, tuple[int, Datum]
        ] = {}  # root: (last emission, tuple), in order of that emission
        self.retries: deque[Datum] = deque()
        self.rotation: simpy.Event | None = None


class AckCosts(Protocol):
    """Acks that nobody waits for: they take time at the bolt, each tuple's at once, a window's at its end."""

    def extra_service(self, task: Task, datum: Datum) -> int:
        held = self.world.layout.stateful(task.component) or not datum.anchored
        return 0 if held else self.params.ack_cost

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """The task is busy until the last."""
        if task.component not in self.world.at_once:
            task.occupy(self.world.clock.now + len(data) * self.params.ack_cost)


class SourceReplay(AckCosts):
    """Per root and attempt the acker holds the ids created and not acked: the XOR, kept as its terms."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.trees: dict[tuple[int, int], set[int]] = {}
        self.created: dict[tuple[int, int], int] = {}
        self.acker_down = False
        self.acker_ready: simpy.Event | None = None
        self.memory: dict[SpoutTask, Memory] = {}
        self.acker_fault: int | None = None
        self.causes: dict[tuple[int, int], int | None] = {}  # of attempts after the first: the fault

    def start(self) -> None:
        for spout in self.world.spouts:
            self.memory[spout] = Memory()
            self._begin(spout)
        self.world.clock.at(0, control(Rank.ROTATION), self._rotate_acker)

    # -- the acker -----------------------------------------------------------------------------------------

    def _rotate_acker(self) -> None:
        """Forget the entries that have seen ``acker_buckets`` rotations."""
        timeout, now = self.params.message_timeout, self.world.clock.now
        for tree, created in list(self.created.items()):
            if created <= now - (self.params.acker_buckets - 1) * timeout:
                self._forget(tree)
        self.world.clock.at(now + timeout, control(Rank.ROTATION), self._rotate_acker)

    def _forget(self, tree: tuple[int, int]) -> None:
        self.trees.pop(tree, None)
        self.created.pop(tree, None)

    def emitted(self, spout: SpoutTask, datum: Datum, sent: list[Datum]) -> None:
        self.memory[spout].pending[datum.root] = (self.world.clock.now, datum)
        if not self.acker_down:
            tree = datum.root, datum.attempt
            self.trees[tree] = {child.ident for child in sent}
            self.created[tree] = self.world.clock.now
        else:
            self.world.ledger.hurt([datum], self.acker_fault)  # the acker will never know of this tree

    def done(self, datum: Datum, sent: list[Datum]) -> None:
        """One ack: the tuple's own id, and those of the tuples it has become."""
        self.world.record.control_bytes += self.params.ack_size
        tree = datum.root, datum.attempt
        if tree in self.trees:
            self.trees[tree] ^= {datum.ident} | {child.ident for child in sent}
            if not self.trees[tree]:
                self._forget(tree)
                self._completed(datum)

    def _completed(self, datum: Datum) -> None:
        for spout in self.world.spouts:
            memory = self.memory[spout]
            if datum.root in memory.pending and memory.pending[datum.root][1].attempt == datum.attempt:
                self.world.trace.completed.append((datum.root, datum.attempt, self.world.clock.now))
                self._remove(spout, datum.root)

    def host_failed(self, host: int, down_for: int) -> None:
        if host == self.params.acker_host:
            self.acker_failed(down_for)

    def hit(self, fault: Any) -> list[Hashable]:
        on_host = kind_of(fault) == "crash_host"
        acker = fault.host == self.params.acker_host if on_host else fault.component == "acker"
        return ["acker"] if acker else []

    def acker_failed(self, down_for: int) -> None:
        self.acker_fault = len(self.world.outages.all) - 1
        self.world.ledger.hurt_trees(set(self.trees), self.acker_fault)
        self.trees.clear()
        self.created.clear()
        self.acker_down = True
        Clock.cancel(self.acker_ready)
        when = self.world.clock.now + down_for
        self.acker_ready = self.world.clock.at(when, control(Rank.READY), self._acker_up)

    def _acker_up(self) -> None:
        self.acker_down = False
        self.world.outages.back("acker")

    # -- bolts ---------------------------------------------------------------------------------------------

    def ack_window(self, task: Bolt, data: list[Datum]) -> None:
        """One after the other; the task is busy until the last."""
        cost, now = self.params.ack_cost, self.world.clock.now
        for i, datum in enumerate(data, 1):
            if cost == 0:
                self.done(datum, [])
            else:
                event = self.world.clock.at(
                    now + i * cost, departure(task.rank), partial(self.done, datum, [])
                )
                task.unsent.append((event, datum))
        super().ack_window(task, data)

    # -- spouts --------------------------------------------------------------------------------------------

    def _begin(self, spout: SpoutTask) -> None:
        """The rotation starts with the spout."""
        phase, timeout = self.params.timeout_phase, self.params.message_timeout
        if phase is None:
            bits = self.world.layout.draws.bits(spout.name, Purpose.PHASE, np.zeros(1, np.int64))
            phase = int(bits[0] >> np.uint64(11)) * timeout >> 53
        self._next_rotation(spout, self.world.clock.now + phase)

    def _next_rotation(self, spout: SpoutTask, time: int) -> None:
        rotate = partial(self._rotate, spout)
        self.memory[spout].rotation = self.world.clock.at(time, control(Rank.ROTATION, spout.rank), rotate)

    def _rotate(self, spout: SpoutTask) -> None:
        """Fail every root whose last emission has seen ``timeout_buckets`` rotations, this one included."""
        memory, timeout, now = self.memory[spout], self.params.message_timeout, self.world.clock.now
        for root, (emission, datum) in list(memory.pending.items()):
            if not spout.down and emission <= now - (self.params.timeout_buckets - 1) * timeout:
                self.world.trace.failed.append((root, datum.attempt, now))
                self.causes[root, datum.attempt + 1] = self.world.ledger.timed_out(datum)
                memory.retries.append(datum._replace(attempt=datum.attempt + 1))
                self.world.record.there(datum)
                self._remove(spout, root)
        self._next_rotation(spout, now + timeout)

    def _remove(self, spout: SpoutTask, root: int) -> None:
        capped = not self.may_emit(spout)
        del self.memory[spout].pending[root]
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

    def failed(self, task: Task, crash: bool) -> None:
        if crash and task in self.memory:
            Clock.cancel(self.memory[task].rotation)
            for datum in self.memory[task].retries:
                self.world.record.gone(datum)
            self.memory[task] = Memory()

    def ready(self, task: Task, was_down: bool) -> None:
        if task in self.memory and self.memory[task].rotation is None:
            self._begin(task)

    # -- figures -------------------------------------------------------------------------------------------

    def because(self, task: Task, message: Message) -> int | None:
        datum = message.datum
        return None if datum is None else self.causes.get((datum.root, datum.attempt))

    def settled(self, outage: Outage) -> bool:
        """No root that it has hit waits to be given up, or to be emitted again."""
        damaged = self.world.ledger.damaged
        pending = [
            (root, datum.attempt) for m in self.memory.values() for root, (_, datum) in m.pending.items()
        ]
        waiting = [datum for m in self.memory.values() for datum in m.retries]
        return not (
            any(damaged.get(tree) == outage.number for tree in pending)
            or any(self.causes[datum.root, datum.attempt] == outage.number for datum in waiting)
        )

    def kept_for_replay(self) -> int:
        return sum(len(memory.pending) for memory in self.memory.values())

    # -- the end -------------------------------------------------------------------------------------------

    def kept_roots(self) -> set[int]:
        return {root for memory in self.memory.values() for root in memory.pending} | self.waiting_roots()

    def waiting_roots(self) -> set[int]:
        return {datum.root for memory in self.memory.values() for datum in memory.retries}
