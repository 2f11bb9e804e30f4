"""What spouts have taken from queues that wait for a confirmation, and give out again what gets none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tideover.models.job.sources.kestrel import Kestrel
from tideover.models.mechanisms.acking.pending import PendingRoots
from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import NOTHING, Keeper
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints


class Items(NamedTuple):
    """Of one spout task: items that it took and has forgotten in a crash, by their number; the attempt that
    was emitted last, and when (ns).
    """

    root: Ints = NOTHING
    attempt: Ints = NOTHING
    emitted: Ints = NOTHING

    def pick(self, rows: Ints) -> Items:
        return Items(*(column[rows] for column in self))


class OpenItems(Mechanism, Keeper):
    """Each ``sweep_interval`` a queue gives out again what was taken ``timeout`` ago, and is not done.

    ``pending``: by spout task, the roots that it has emitted and still waits for; none: nobody acks, and an
    item that was taken is done.
    """

    def __init__(self, job: Job, spouts: Sequence[SpoutTask], pending: Sequence[PendingRoots]) -> None:
        super().__init__(job)
        self._spouts, self._pending, self._verbs = spouts, pending, Verbs(job)
        self._orphans = {spout.spout_number: Items() for spout in spouts}
        job.context.keepers.append(self)
        for spout in spouts if pending else ():
            pending[spout.spout_number].needed_from = 0

    def start(self) -> None:
        for spout in self._spouts:
            assert spout.reading is not None
            source = spout.reading.source
            assert isinstance(source, Kestrel)
            sweep = partial(self._sweep, spout, source.timeout)
            self._verbs.every(source.sweep_interval, sweep, Rank.TRIM, spout)

    def _sweep(self, spout: SpoutTask, timeout: int, i: int) -> None:
        """Look through what is open; a spout that is down takes nothing."""
        self._job.step(spout.name, "open items swept")
        assert spout.reading is not None
        needed = np.array([spout.next_root], np.int64)
        if self._pending and spout.up:
            overdue, pending = self._job.kernel.now - timeout, self._pending[spout.spout_number]
            self._verbs.emit_again(spout, *pending.expire(overdue))
            self._give_out(spout, overdue)
            waiting = [roots for roots, _ in spout.retries]
            roots = np.concatenate([pending.roots(), *waiting, self._orphans[spout.spout_number].root])
            needed = np.append(needed, roots >> self._job.topology.spout_bits)
            pending.needed_from = int(needed.min())
        if spout.up:
            spout.reading.forget(int(needed.min()))

    def _give_out(self, spout: SpoutTask, before: int) -> None:
        """What a crash has made the spout forget, and was emitted at or before this."""
        items = self._orphans[spout.spout_number]
        due = items.emitted <= before
        found, rest = (items.pick(np.flatnonzero(mask)) for mask in (due, ~due))
        self._orphans[spout.spout_number] = rest
        if len(found.root):
            self._pending[spout.spout_number].retrying(found.root)
            spout.emit_again(found.root, found.attempt + 1)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if not self._pending or spout not in self._spouts or spout.up:
            return
        assert isinstance(spout, SpoutTask)
        found = Items(*self._pending[spout.spout_number].take_forgotten())
        both = zip(self._orphans[spout.spout_number], found, strict=True)
        items = Items(*(np.concatenate(columns) for columns in both))
        order = np.lexsort((items.root, items.emitted))
        self._orphans[spout.spout_number] = items.pick(order)

    def roots(self) -> Ints:
        return np.concatenate([NOTHING, *(items.root for items in self._orphans.values())])
