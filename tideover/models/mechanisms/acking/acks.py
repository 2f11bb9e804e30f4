"""Acks: bolts tell the acker what they are done with, which costs them time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tideover.models.mechanisms.acking.acker import Acker
from tideover.models.mechanisms.acking.pending import Completed
from tideover.models.mechanisms.base import Mechanism
from tideover.models.operators.state import Effects, joined
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.train import Ints, Train


class AckCosts(Mechanism):
    """Acks take ``ack_cost`` ns each at the bolt: each tuple's at once, a window's in one burst at its
    end; where they are ``held``, those of bolts with state when they are released.
    """

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
        self.acker = self._new_acker(
            job.context, job.supervisor, job.deployment.replicas, period, buckets, host
        )
        job.context.machines.append(self.acker)
        job.context.keepers.append(self.acker)

    def _new_acker(self, *how: Any) -> Acker:
        return Acker(*how)

    # -- a root and every tuple anchored to it get an id; the acker keeps their XOR --------------------------

    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        self.acker.begin(spout, train, sent)
        self._job.spouts[spout.spout_number].in_flight.count += train.n

    def _ack(self, task: BoltView, sent: list[Sent], train: Train) -> None:
        """At zero the tree is done, and the spout forgets the root."""
        self._job.say.transferred(train.n * self._ack_size)
        self._job.say.acked(task, self.acker.name, train)
        self._complete(self.acker.ack(task, train, sent))

    def may_repeat(self) -> None:
        """From now on a member of a fleet may ack again what it has acked."""

    def settle(self) -> None:
        """For fleets, when the data plane was moved: their acks are taken in the order of their moments."""
        self._complete(self.acker.settle())

    def _complete(self, finished: list[tuple[int, Completed]]) -> None:
        for number, done in finished:
            self._job.say.completed(done.root, done.attempt, done.time)
            self._job.spouts[number].in_flight.settle(len(done.root), int(done.time.min()))

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if self._held is not None and task.component.keeps_state:
            self._hold(task, train)
            if sent:
                self.acker.add(task, train, sent)
        elif not task.component.window:
            self._ack(task, sent, train)
        elif train.has(LATE):
            self._ack(task, [], train.pick(train.column(LATE) > 0))

    def _hold(self, task: BoltView, train: Train) -> None:
        """Hold the acks of what was processed; where only ids are saved, of what is known by its id."""
        assert self._held is not None
        if task.component.saves_ids:
            train = train.pick(train.column(LATE) > 0)
        self._held.setdefault(task, []).append(Effects(train.uid, train.attempt))

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if not parts or not task.component.anchored:
            return 0
        if self._held is not None:
            if task.component.saves_ids:
                self._held.setdefault(task, []).extend(parts)
            return 0
        return self._post(task, parts, now)

    def _post(self, task: BoltView, parts: list[Effects], now: int) -> int:
        """Ack these tuples one after the other; returns how long that takes (ns)."""
        uid, attempt = joined(parts)
        times = np.full(len(uid), now, np.int64)
        if self.ack_cost:
            times += self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        acks = Train(times, uid, times, uid, attempt=attempt)
        self._bolt(task).outbox.post(acks, partial(self._ack, task, []), partial(self._unsent, task))
        return self.ack_cost * len(uid)

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
            bolt = self._bolt(task)
            self._post(bolt, parts, self._job.kernel.now)
            bolt.outbox.let_out(self._job.kernel.now)

    def forget(self, task: TaskView, outage: OutageView, marked: Sequence[Effects] = ()) -> None:
        """Because of an outage the acks that ``task`` holds are never sent, nor those of ``marked``, which
        were not released: it has gone back to a state without these tuples, or has lost it.
        """
        held = [] if self._held is None or task.component.is_spout else self.mark(task)
        uid, attempt = joined([*marked, *held])
        self.destroyed(outage.number, uid >> task.component.bits, attempt)

    # -- lost state means lost ids: those roots are never acked; a spout that crashes loses its map ----------

    def _unsent(self, task: BoltView, acks: Train) -> None:
        roots = acks.uid >> task.component.bits
        self.destroyed(self._job.context.newest.get(task, -1), roots, acks.attempt)

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        self.acker.destroyed(outage, roots, attempt)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._job.tasks[task.number].outbox.clear()
        self.forget(task, outage)
        failed = self._job.tasks[task.number]
        if isinstance(failed, SpoutTask) and not failed.up:
            self.acker.maps[failed.spout_number].clear()
