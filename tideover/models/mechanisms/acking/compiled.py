"""Acks that the compiled data plane counts: who is pending, and when trees are done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tideover.models.flow.bolt import FlowBolt
from tideover.models.job.topology import Component
from tideover.models.mechanisms.acking.acker import NEVER, Acker
from tideover.models.mechanisms.acking.acks import Acks
from tideover.models.mechanisms.acking.pending import PendingRoots
from tideover.models.operators.state import Effects, joined
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train


class CompiledPending(PendingRoots):
    """The map of one spout task, whose columns the data plane writes into; ``c`` is its struct ``pending``.

    ``up_to_date`` is called before somebody asks which roots are pending.
    """

    def __init__(self, spout_bits: int, number: int, plane: Plane, c: Any) -> None:
        self._plane, self._c = plane, c
        self.remembered: Callable[[], None] = int  # type: ignore[assignment]
        self.up_to_date: Callable[[], None] = int  # type: ignore[assignment]
        super().__init__(spout_bits, number)
        self._connect()

    @property
    def _base(self) -> int:
        return int(self._c.base)

    @_base.setter
    def _base(self, base: int) -> None:
        self._c.base = base

    @property
    def _size(self) -> int:
        return int(self._c.size)

    @_size.setter
    def _size(self, size: int) -> None:
        self._c.size = size

    def _connect(self) -> None:
        for name in ("value", "emitted", "last_ack", "attempt", "outage", "cause", "live"):
            self._plane.array(self._c, name, getattr(self, f"_{name}"))
        self._plane.array(self._c, "retrying", self._retrying.view(np.uint8))
        self._c.room = len(self._value)

    def make_room(self) -> None:
        """Make room for the next roots; forget the oldest that are not needed any more."""
        next_root, size = self._base + self._size, self._size
        self._reserve(self._root(np.array([size], np.int64)))
        self._size = next_root - self._base
        assert self._size <= size
        self._connect()

    def _remember(self, index: Ints) -> None:
        """These attempts are over: the outages because of which they were made may still be asked for."""
        for at in index[(self._attempt[index] > 0) & (self._cause[index] >= 0)].tolist():
            root = ((at + self._base) << self._bits) | self._number
            self._causes[root, int(self._attempt[at])] = int(self._cause[at])
            self._earlier.add(int(self._cause[at]))
        self.remembered()

    def expire(self, before: int) -> tuple[Ints, Ints, Ints]:
        self.up_to_date()
        roots, attempt, outage = super().expire(before)
        self._remember(self._at(roots))
        return roots, attempt, outage

    def clear(self) -> None:
        self.up_to_date()
        self._remember(np.flatnonzero((self._live > 0) | self._retrying))
        super().clear()


class CompiledAcker(Acker):
    """The acker; the data plane asks when it came up, and which roots it has forgotten since."""

    plane: Plane
    knows_the_plane = True

    def connect(self, plane: Plane) -> None:
        """Keep the maps where the data plane finds them."""
        self.plane, p = plane, plane.p
        self._maps = plane.ffi.new("pending[]", len(self.maps))
        bits = self._context.topology.spout_bits
        self.compiled = [
            CompiledPending(bits, number, plane, self._maps[number]) for number in range(len(self.maps))
        ]
        self.maps = list(self.compiled)
        plane.keep(self._maps)
        p.pending, p.rotation, p.buckets = self._maps, self._period, self._buckets
        p.alive_since, p.acker_outage = -1, -1

    def watched(self) -> None:
        """Outages are watched: the data plane is to know because of which older attempts were made."""
        for map_ in self.compiled:
            map_.remembered = self._tell_causes
        self._tell_causes()

    def _tell_causes(self) -> None:
        known = [(*key, outage) for map_ in self.maps for key, outage in map_._causes.items()]
        self._causes = np.array(known, np.int64).reshape(-1, 3)
        p = self.plane.p
        p.causes, p.n_causes = self.plane.ffi.cast("cause *", self._causes.ctypes.data), len(known)

    def may_repeat(self) -> None:
        """From now on an ack may come twice, until all that was emitted by now is forgotten: it matters which
        others come before, in between and after.
        """
        self.plane.p.in_order_until = self._context.kernel.now + self._buckets * self._period

    def failed(self, outage: OutageView) -> None:
        super().failed(outage)
        self.plane.p.alive_since, self.plane.p.acker_outage = NEVER, outage.number

    def ready(self, outage: OutageView) -> None:
        super().ready(outage)
        self.plane.p.alive_since, self.plane.p.acker_outage = self._alive_since, -1


class CompiledAcks(Acks):
    """Acks in the data plane, which keeps the XOR of each tree, and sends the acks of a window one by one."""

    emitted = Hooks.emitted

    def __init__(self, job: Job, plane: Plane, *acker: Any) -> None:
        super().__init__(job, *acker)
        self._plane = plane
        self._acked = 0
        assert isinstance(self.acker, CompiledAcker)
        self._compiled = self.acker
        self._compiled.connect(plane)
        self._describe(job, plane)
        plane.asked[plane.lib.NEED_PENDING] = lambda task: self._make_room(task)
        plane.asked[plane.lib.HAS_COMPLETED] = lambda _: self.tell()
        job.settlers.append(self.tell)

    def _new_acker(self, *how: Any) -> Acker:
        return CompiledAcker(*how)

    def _describe(self, job: Job, plane: Plane) -> None:
        for map_ in self._compiled.compiled if job.topology.by_event else ():
            map_.up_to_date = job.catch_up
        numbers = np.array([spout.number for spout in job.spouts], np.int32)
        plane.array(plane.p, "spouts", numbers)
        for component in job.topology.components:
            c, edges = plane.components[component.index], component.inputs
            if not edges or not component.anchored:
                continue
            keys = [int(job.draws.key(edge.name, Purpose.IDENTITY)) for edge in edges]
            plane.array(c, "identities", np.array(keys, np.uint64))
            c.input_shift, c.input_mask = edges[0].task_bits, (1 << edges[0].edge_bits) - 1
            c.acks = component.window is None
            c.holds_acks = self._held is not None and component.keeps_state
            if c.holds_acks:
                self._follow(component)
        for sender in job.tasks:
            for place, outlet in enumerate(sender.outlets):
                key = job.draws.key(outlet.edge.name, Purpose.IDENTITY)
                plane.outlets[plane.tasks[sender.number].first_outlet + place].identity = int(key)

    def _follow(self, component: Component) -> None:
        """Tasks of a component tell what they have done, since they hold acks of that."""
        for task in self._job.bolt_tasks:
            if task.component is component:
                assert isinstance(task, FlowBolt)
                task.c.logs, task.taken = 1, partial(self._take, task)

    def _take(self, task: BoltView, effects: Effects) -> None:
        """A task has summed these up."""
        assert self._held is not None
        self._held.setdefault(task, []).append(effects)

    def may_repeat(self) -> None:
        self._compiled.may_repeat()

    def _make_room(self, task: int) -> None:
        self._compiled.compiled[int(self._plane.tasks[task].spout)].make_room()

    def tell(self) -> None:
        """Tell of the acks that were sent, and of the trees that are done."""
        p = self._plane.p
        if p.acked > self._acked:
            self._job.say.transferred((int(p.acked) - self._acked) * self._ack_size)
            self._acked = int(p.acked)
        if p.acks.n:
            rows = self._plane.read(p.acks)
            for number in dict.fromkeys(rows["task"].tolist()):
                mine = rows[rows["task"] == number]
                columns = (np.ascontiguousarray(mine[name], np.int64) for name in ("uid", "attempt", "time"))
                self._tell_acked(self._job.tasks[number], *columns)
        if p.completed.n:
            self._job.tell_of_emissions()
            rows = self._plane.read(p.completed)
            columns = (np.ascontiguousarray(rows[name], np.int64) for name in ("uid", "attempt", "time"))
            self._job.say.completed(*columns)

    # -- what bolts are done with ----------------------------------------------------------------------------

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self._held is not None and task.component.keeps_state:
            self._hold(task, train)
        elif not task.component.window:
            self._job.say.acked(task, self.acker.name, train)
        elif train.has(LATE):
            late = train.pick(train.column(LATE) > 0)
            if late.n:
                self._send(task, late.uid, late.column("attempt"), late.time)

    def _send(self, task: BoltView, uid: Ints, attempt: Ints, times: Ints) -> None:
        completed = self._plane.p.completed
        if completed.room - completed.n < len(uid):
            self.tell()
            self._plane.have_rows(completed, len(uid))
        columns = [self._plane.ffi.from_buffer("int64_t[]", each) for each in (uid, attempt, times)]
        self._plane.lib.plane_ack(self._plane.p, task.number, len(uid), *columns)
        self._tell_acked(task, uid, attempt, times)

    def _tell_acked(self, task: Any, uid: Ints, attempt: Ints, times: Ints) -> None:
        self._job.say.acked(task, self.acker.name, Train(times, uid, times, uid, attempt=attempt))

    def _post(self, task: BoltView, parts: list[Effects], now: int) -> int:
        uid, attempt = joined(parts)
        attempt = np.zeros(len(uid), np.int64) if attempt is None else attempt
        if not self.ack_cost:
            self._send(task, uid, attempt, np.full(len(uid), now, np.int64))
            return 0
        c, plane = self._plane.tasks[task.number].acks, self._plane
        columns = uid, attempt, self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        if c.sent < c.n:  # it has gone back since it began to send these, and need not wait for them
            before = self._waiting(c)
            before[-1] += c.since - now
            columns = tuple(map(np.concatenate, zip(before, columns, strict=True)))  # type: ignore[assignment]
            order = columns[-1].argsort(kind="stable")
            columns = tuple(column[order] for column in columns)  # type: ignore[assignment]
        for name, column in zip(("uid", "attempt", "after"), columns, strict=True):
            plane.array(c, name, column)
        c.n, c.sent, c.since = len(columns[0]), 0, now
        return self.ack_cost * len(uid)

    def _waiting(self, c: Any) -> list[Ints]:
        """Acks of a task that were not sent yet, and how long after ``since`` each is."""
        return [self._plane.kept(c, name)[c.sent :] for name in ("uid", "attempt", "after")]

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        c = self._plane.tasks[task.number].acks
        if c.sent < c.n:
            uid, attempt, _ = self._waiting(c)
            c.sent = c.n = 0
            self._unsent(task, Train(uid, uid, uid, uid, attempt=attempt))  # type: ignore[arg-type]
        super().failed(task, outage)


def acks_of(job: Job, *acker: Any) -> Acks:
    """The acks of a job, counted by its data plane if that is compiled."""
    return Acks(job, *acker) if job.plane is None else CompiledAcks(job, job.plane, *acker)
