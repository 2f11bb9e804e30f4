"""Acks: bolts tell the acker what they are done with, which costs them time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms.acking.acker import Acker
from tideover.models.mechanisms.base import Mechanism
from tideover.models.operators.state import Effects, joined
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train


class AckCosts(Mechanism):
    """Acks take ``ack_cost`` ns each at the bolt: each tuple's at once, a window's in one burst at its
    end; where they are ``held``, those of bolts with state when they are released.
    """

    occupies = False

    def __init__(self, job: Job, ack_cost: int, held: bool = False) -> None:
        super().__init__(job)
        self.ack_cost = ack_cost
        for c in job.topology.components:
            at_once = not (c.keeps_state if held else c.window)
            if not c.is_spout and c.anchored and at_once:
                Verbs(job).charge(c.name, ack_cost)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return self.ack_cost * sum(len(p.uid) for p in parts) if task.component.anchored else 0


class Acks(AckCosts):
    """Every root and every tuple anchored to it is acked; the acker knows which roots are pending.

    A tuple is acked when its effect is safe: of a bolt with state when it leaves with a window's end (a late
    one at once), or, with ``held``, when ``release`` says so. What was not acked when a task fails never is.

    ack_size         bytes of an ack message
    period, buckets  of the acker's own rotating map
    host             of the acker; None: it has none
    """

    needs = Needs(comparison=True)

    def __init__(
        self,
        job: Job,
        ack_cost: int,
        ack_size: int,
        period: int,
        buckets: int,
        host: int | None = None,
        held: bool = False,
    ) -> None:
        super().__init__(job, ack_cost, held)
        self._ack_size = ack_size
        self._held: dict[TaskView, list[Effects]] | None = {} if held else None
        self.acker = Acker(job.context, job.supervisor, job.plane, period, buckets, host)
        job.context.machines.append(self.acker)
        job.context.keepers.append(self.acker)
        self._plane = job.plane
        self._acked = 0
        self._describe(job, job.plane)
        job.plane.asked[job.plane.lib.NEED_PENDING] = self._make_room
        job.plane.asked[job.plane.lib.HAS_COMPLETED] = lambda _: self.tell()
        job.settlers.append(self.tell)

    def _describe(self, job: Job, plane: Plane) -> None:
        for map_ in self.acker.maps if job.topology.by_event else ():
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
                task.c.logs, task.taken = 1, partial(self._take, task)

    def _take(self, task: BoltView, effects: Effects) -> None:
        """A task has summed these up."""
        assert self._held is not None
        self._held.setdefault(task, []).append(effects)

    def _make_room(self, task: int) -> None:
        self.acker.maps[int(self._plane.tasks[task].spout)].make_room()

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
                self._tell_acked(self._job.bolt(self._job.tasks[number]), *columns)
        if p.completed.n:
            self._job.tell_of_emissions()
            rows = self._plane.read(p.completed)
            names = ("uid", "attempt", "created", "time")
            self._job.say.completed(*(np.ascontiguousarray(rows[name], np.int64) for name in names))

    # -- what bolts are done with ----------------------------------------------------------------------------

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self._held is not None and task.component.keeps_state:
            self._hold(task, train)
        elif self._plane.components[task.component.index].acks:
            self._job.say.acked(task, self.acker.name, train)
        elif train.has(LATE):
            late = train.pick(train.column(LATE) > 0)
            if late.n:
                self._send(task, late.uid, late.column("attempt"), late.time)

    def _hold(self, task: BoltView, train: Train) -> None:
        """Hold the acks of what was processed; where only ids are saved, of what is known by its id."""
        assert self._held is not None
        if task.component.saves_ids:
            train = train.pick(train.column(LATE) > 0)
        self._held.setdefault(task, []).append(Effects(train.uid, train.attempt))

    def _send(self, task: BoltView, uid: Ints, attempt: Ints, times: Ints) -> None:
        completed = self._plane.p.completed
        if completed.room - completed.n < len(uid):
            self.tell()
            self._plane.have_rows(completed, len(uid))
        columns = [self._plane.ffi.from_buffer("int64_t[]", each) for each in (uid, attempt, times)]
        self._plane.lib.plane_ack(self._plane.p, task.number, len(uid), *columns)
        self._tell_acked(task, uid, attempt, times)

    def _tell_acked(self, task: BoltView, uid: Ints, attempt: Ints, times: Ints) -> None:
        self._job.say.acked(task, self.acker.name, Train(times, uid, times, uid, attempt=attempt))

    def _post(self, task: BoltView, parts: list[Effects], now: int) -> int:
        """Ack these tuples one after the other; returns how long that takes (ns)."""
        uid, attempt = joined(parts)
        attempt = np.zeros(len(uid), np.int64) if attempt is None else attempt
        if not self.ack_cost:
            self._send(task, uid, attempt, np.full(len(uid), now, np.int64))
            return 0
        c, plane = self._plane.tasks[task.number].acks, self._plane
        columns = [uid, attempt, self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)]
        if c.sent < c.n:  # it has gone back since it began to send these, and need not wait for them
            before = self._waiting(c)
            before[-1] += c.since - now
            columns = [np.concatenate(parts) for parts in zip(before, columns, strict=True)]
            order = columns[-1].argsort(kind="stable")
            columns = [column[order] for column in columns]
        for name, column in zip(("uid", "attempt", "after"), columns, strict=True):
            plane.array(c, name, column)
        c.n, c.sent, c.since = len(columns[0]), 0, now
        return self.ack_cost * len(uid)

    def _waiting(self, c: Any) -> list[Ints]:
        """Acks of a task that were not sent yet, and how long after ``since`` each is."""
        return [self._plane.kept(c, name)[c.sent :] for name in ("uid", "attempt", "after")]

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if not parts or not task.component.anchored:
            return 0
        if self._held is not None:
            if task.component.saves_ids:
                self._held.setdefault(task, []).extend(parts)
            return 0
        return self._post(task, parts, now)

    # -- acks that are held until an effect is safe elsewhere ------------------------------------------------

    def mark(self, task: TaskView) -> list[Effects]:
        """Tuples that ``task`` holds acks of, taken out: for ``release`` when they are safe."""
        assert self._held is not None
        self._bolt(task).catch_up()
        return self._held.pop(task, [])

    def takes(self, parts: list[Effects]) -> int:
        """How long it takes to ack these tuples (ns)."""
        return self.ack_cost * sum(len(p.uid) for p in parts)

    def release(self, task: TaskView, parts: list[Effects]) -> None:
        """The effects of these tuples are safe: they are acked from now on, one after the other, while
        ``task`` is kept by whoever says so.
        """
        if parts:
            self._post(self._bolt(task), parts, self._job.kernel.now)

    def forget(self, task: TaskView, outage: OutageView, marked: Sequence[Effects] = ()) -> None:
        """Because of an outage the acks that ``task`` holds are never sent, nor those of ``marked``, which
        were not released: it has gone back to a state without these tuples, or has lost it.
        """
        held = [] if self._held is None or task.component.is_spout else self.mark(task)
        uid, attempt = joined([*marked, *held])
        self.destroyed(outage.number, uid >> task.component.bits, attempt)

    # -- lost state means lost ids: those roots are never acked; a spout that crashes loses its map ----------

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        self.acker.destroyed(outage, roots, attempt)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        c = self._plane.tasks[task.number].acks
        if c.sent < c.n:
            uid, attempt, _ = self._waiting(c)
            c.sent = c.n = 0
            roots = uid >> task.component.bits
            self.destroyed(self._job.context.newest.get(task, -1), roots, attempt)
        self.forget(task, outage)
        failed = self._job.tasks[task.number]
        if isinstance(failed, SpoutTask) and not failed.up:
            self.acker.maps[failed.spout_number].clear()
