"""How far spouts have read the queues before them, and what they have taken and not confirmed.

Strategies call `follow`, directly or by `Shared` buffers, if they go with sources. ``pending`` are, by spout
task, the roots that it has emitted and still waits for; none: nobody acks, and a record that was read, or an
item that was taken, is done. What is read again after a crash is changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tideover.models.job.spouts import Kafka, Kestrel
from tideover.models.mechanisms.acking import NO_ROOTS, PendingRoots
from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.hooks import NOTHING, CopyHolder, Mask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import Reading, SpoutTask
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


class OpenItems(Mechanism, CopyHolder):
    """Each ``sweep_interval`` a queue gives out again what was taken ``timeout`` ago, and is not done."""

    def __init__(self, job: Job, spouts: Sequence[SpoutTask], pending: Sequence[PendingRoots]) -> None:
        super().__init__(job)
        self._spouts, self._pending, self._verbs = spouts, pending, Verbs(job)
        self._orphans: dict[int, Ints] = {spout.spout_number: NO_ROOTS for spout in spouts}
        """What each took and has forgotten in a crash, in order of emission: see `take_forgotten`."""
        for spout in spouts if pending else ():
            pending[spout.spout_number].needed_from = 0

    def start(self) -> None:
        for spout in self._spouts:
            source = _reading(spout).source
            assert isinstance(source, Kestrel)
            sweep = partial(self._sweep, spout, source.timeout)
            self._verbs.every(source.sweep_interval, sweep, Rank.TRIM, spout)

    def _sweep(self, spout: SpoutTask, timeout: int, i: int) -> None:
        """Look through what is open; a spout that is down takes nothing."""
        self._job.step(spout.name, "open items swept")
        if not spout.up:
            return
        needed = np.array([spout.next_root], np.int64)
        if self._pending:
            overdue, pending = self._job.kernel.now - timeout, self._pending[spout.spout_number]
            self._verbs.emit_again(spout, *pending.expire(overdue))
            orphans = self._orphans[spout.spout_number]
            due = orphans[2] <= overdue
            if due.any():
                root, attempt, _ = orphans[:, due]
                pending.retrying(root)
                spout.emit_again(root, attempt + 1)
            orphans = self._orphans[spout.spout_number] = orphans[:, ~due]
            waiting = [roots for roots, _ in spout.retries]
            roots = np.concatenate([pending.roots(), *waiting, orphans[0]])
            needed = np.append(needed, roots >> self._job.topology.spout_bits)
            pending.needed_from = int(needed.min())
        _reading(spout).forget(int(needed.min()))

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if isinstance(spout, SpoutTask) and self._pending and spout in self._spouts and not spout.up:
            forgotten = self._pending[spout.spout_number].take_forgotten()
            items = np.hstack([self._orphans[spout.spout_number], forgotten])
            self._orphans[spout.spout_number] = items[:, np.lexsort((items[0], items[2]))]

    def roots(self) -> Ints:
        return np.concatenate([NOTHING, *(items[0] for items in self._orphans.values())])


@dataclass
class Position:
    """Of one spout task: the first record that is read again; attempts of roots emitted more than once."""

    committed: int = 0
    attempts: dict[int, int] = field(default_factory=dict)
    crashed: bool = False


class Offsets(Mechanism, CopyHolder):
    """Spouts commit the first record that is still needed; one that has crashed reads on from there."""

    def __init__(self, job: Job, spouts: Sequence[SpoutTask], pending: Sequence[PendingRoots]) -> None:
        super().__init__(job)
        self._pending, self._verbs = pending, Verbs(job)
        self._positions = {spout.spout_number: Position() for spout in spouts}
        for spout in spouts if pending else ():
            pending[spout.spout_number].needed_from = 0

    def _root(self, spout: SpoutTask, numbers: Ints) -> Ints:
        return (numbers << self._job.topology.spout_bits) | spout.spout_number

    def start(self) -> None:
        for number in self._positions:
            spout = self._job.spouts[number]
            source = _reading(spout).source
            assert isinstance(source, Kafka)
            self._verbs.every(source.commit_interval, partial(self._commit, spout), Rank.TRIM, spout)

    def emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        position = self._positions.get(spout.spout_number)
        if position is not None and train.attempt is not None:
            again = train.attempt > 0
            position.attempts |= zip(train.uid[again].tolist(), train.attempt[again].tolist(), strict=True)

    def _commit(self, spout: SpoutTask, i: int) -> None:
        if not spout.up:
            return
        position = self._positions[spout.spout_number]
        waiting = [roots for roots, _ in spout.retries]
        pending = self._pending[spout.spout_number : spout.spout_number + 1]
        needed = np.concatenate([NOTHING, *(one.roots() for one in pending), *waiting])
        bits = self._job.topology.spout_bits
        position.committed = int(needed.min()) >> bits if len(needed) else spout.next_root
        self._job.step(spout.name, "offset committed", f"record {position.committed}")
        first = position.committed << bits
        position.attempts = {root: n for root, n in position.attempts.items() if root >= first}
        _reading(spout).forget(position.committed)
        for one in pending:
            one.needed_from = position.committed

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if isinstance(spout, SpoutTask) and spout.spout_number in self._positions and not spout.up:
            self._positions[spout.spout_number].crashed = True

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        spout = self._job.tasks[task.number]
        if not isinstance(spout, SpoutTask) or spout.spout_number not in self._positions:
            return
        position = self._positions[spout.spout_number]
        if not position.crashed:
            return
        position.crashed = False
        numbers, gone = self._read(spout)
        self._job.say.expired(spout, self._root(spout, numbers[gone]))
        roots = self._root(spout, numbers[~gone])
        attempt = np.array([position.attempts.get(root, 0) for root in roots.tolist()], np.int64)
        spout.emit_again(roots, attempt + 1)

    def roots(self) -> Ints:
        """What can be read again."""
        parts = []
        for spout in (self._job.spouts[number] for number in self._positions):
            numbers, gone = self._read(spout)
            parts.append(self._root(spout, numbers[~gone]))
        return np.concatenate(parts)

    def _read(self, spout: SpoutTask) -> tuple[Ints, Mask]:
        """What a spout has come past and not committed, and what of it is deleted by now."""
        reading, first = _reading(spout), self._positions[spout.spout_number].committed
        numbers = np.arange(first, spout.next_root, dtype=np.int64)
        if reading.source.retention is None:
            return numbers, np.zeros(len(numbers), np.bool_)
        return numbers, reading.appended_at(numbers) < self._job.kernel.now - reading.source.retention


def follow(job: Job, pending: Sequence[PendingRoots] = ()) -> None:
    """Have it followed how far those spouts have come that read from a queue, if any does."""
    for mechanism, kind in ((Offsets, Kafka), (OpenItems, Kestrel)):
        spouts = [spout for spout in job.spouts if spout.reading and isinstance(spout.reading.source, kind)]
        if spouts:
            mechanism(job, spouts, pending)


def _reading(spout: SpoutTask) -> Reading:
    assert spout.reading is not None
    return spout.reading
