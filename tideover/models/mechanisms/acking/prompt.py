"""Acks that all come in time: nobody need follow then which roots are pending."""

from __future__ import annotations

import numpy as np

from tideover.models.mechanisms.acking.acks import AckCosts
from tideover.models.mechanisms.acking.rotation import first_rotation
from tideover.models.operators.state import Effects, joined
from tideover.models.runtime.job import Job
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.views import BoltView, SpoutView
from tideover.sim.train import Ints, Train


class PromptAcks(AckCosts):
    """Acks of a run in which nothing is destroyed and no root times out: they take their time at the bolts,
    and their bytes.

    ``late``: a root may have timed out after all, so the run is not what it would be.
    """

    def __init__(
        self, job: Job, ack_cost: int, ack_size: int, period: int, buckets: int, kept: int, phase: int | None
    ) -> None:
        """``period``, ``buckets``, ``phase``: as of ``Rotation``; ``kept``: buckets of the acker's map."""
        super().__init__(job, ack_cost)
        self._ack_size = ack_size
        self._period, self._least, self._kept = period, (buckets - 1) * period, (kept - 1) * period
        self._first = [first_rotation(job, spout, period, phase) for spout in job.spouts]
        self._emitted: list[Ints] = [np.zeros(1024, np.int64) for _ in job.spouts]
        """Of each spout task when it has emitted its roots, from the base on."""
        self._base = [0 for _ in job.spouts]
        self.late = False
        job.context.overdue = self._overdue

    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        number, bits = spout.spout_number, self._job.topology.spout_bits
        known, first = self._emitted[number], (int(train.uid[0]) >> bits) - self._base[number]
        if first + train.n > len(known):
            # what is older has been acked, or is late
            cut = int(known[:first].searchsorted(int(train.time[0]) - 2 * self._kept - self._period))
            grown = np.zeros(max(1024, 2 * (first - cut + train.n)), np.int64)
            grown[: first - cut] = known[cut:first]
            self._emitted[number] = known = grown
            self._base[number] += cut
            first -= cut
        known[first : first + train.n] = train.time

    def _overdue(self, pending: Ints) -> bool:
        self.acked_by(pending, self._job.kernel.now)
        return self.late

    def acked_by(self, roots: Ints, moment: int) -> None:
        """Tuples of these roots are acked at ``moment`` (ns) or before."""
        bits = self._job.topology.spout_bits
        mask = (1 << bits) - 1
        for number, first in enumerate(self._first):
            mine = roots[roots & mask == number] if mask else roots
            if not len(mine):
                continue
            index = (int(mine.min()) >> bits) - self._base[number]
            oldest = int(self._emitted[number][index])
            rotated = first + (moment - first) // self._period * self._period if moment >= first else -1
            self.late |= index < 0 or moment - oldest >= self._kept or oldest <= rotated - self._least

    def _ack(self, train: Train) -> None:
        self._job.say.transferred(train.n * self._ack_size)

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if task.component.window:
            if not train.has(LATE):
                return
            train = train.pick(train.column(LATE) > 0)
        if train.n:
            self.acked_by(train.uid >> task.component.bits, int(train.time[-1]))
            self._ack(train)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        uid, _ = joined(parts)
        if not len(uid) or not task.component.anchored:
            return 0
        times = now + self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        self.acked_by(uid >> task.component.bits, int(times[-1]))
        self._bolt(task).outbox.post(Train(times, uid, times, uid), self._ack, self._unsent)
        return self.ack_cost * len(uid)

    def _unsent(self, acks: Train) -> None:
        self.late = True

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        self.late |= len(roots) > 0
