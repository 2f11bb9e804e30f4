"""Message timeouts by Storm's rotating map."""

from __future__ import annotations

import numpy as np

from tideover.models.mechanisms.acking.acks import Acks
from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank


class Rotation(Mechanism):
    """Each spout keeps its unfinished roots in a map of ``buckets`` buckets that rotates every ``period`` ns;
    what is in the oldest bucket at a rotation has timed out, and is emitted again.

    ``phase``: first rotation after the spout's start (ns); None: drawn, uniform within a period.
    """

    occupies = False

    def __init__(self, job: Job, acks: Acks, period: int, buckets: int, phase: int | None) -> None:
        super().__init__(job)
        self._acks, self._verbs = acks, Verbs(job)
        self._period, self._buckets, self._phase = period, buckets, phase

    def start(self) -> None:
        for spout in self._job.spouts:
            self._begin(spout)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if isinstance(spout, SpoutTask):
            self._begin(spout)

    def _begin(self, spout: SpoutTask) -> None:
        period, life = self._period, spout.life
        first = first_rotation(self._job, spout, period, self._phase)

        def rotate(r: int) -> None:
            if spout.life == life and spout.up:
                self._rotate(spout, first + (r - self._buckets + 1) * period)

        self._job.kernel.every(first, period, Rank.ROTATION, rotate, spout.number)

    def _rotate(self, spout: SpoutTask, before: int) -> None:
        pending = self._acks.acker.maps[spout.spout_number]
        pending.up_to_date()
        self._verbs.keep(sum(s.in_flight.count for s in self._job.spouts))
        self._job.step(spout.name, "buckets rotated")
        roots, attempt, outage = pending.expire(before)
        self._verbs.emit_again(spout, roots, attempt, outage)


def first_rotation(job: Job, spout: SpoutTask, period: int, phase: int | None) -> int:
    """When the map of a spout that starts now is rotated for the first time (ns); arguments as of
    ``Rotation``.
    """
    if phase is None:
        bits = job.draws.bits(spout.name, Purpose.PHASE, np.zeros(1, np.int64))
        phase = int(bits[0] >> np.uint64(11)) * period >> 53
    return job.kernel.now + phase
