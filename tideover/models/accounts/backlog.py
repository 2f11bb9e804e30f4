"""The backlog of a job over time: roots with a tuple in a queue, in service, on the wire, or waiting for a
retry; and how far spouts are behind the queues that they read. Both listen to a run; the world builds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.recorder import GATHERED, Recorder, slots_of
from tideover.sim.train import Ints, Train, distinct, grown
from tideover.sim.units import S


class Lag:
    """Looks each second how many records have been appended and not been read yet (what is read again was
    read before); nothing changes by that.

    records   at the beginning of each second, of all queues together
    """

    def __init__(self, job: Job, duration: int) -> None:
        self._job, self._duration = job, duration
        self._readings = [(spout, spout.reading) for spout in job.spouts if spout.reading is not None]
        self.records: list[int] = []

    def start(self) -> None:
        for second in range(-(-self._duration // S)) if self._readings else ():
            self._job.kernel.at(second * S, Rank.SAMPLE, self._look)

    def _look(self) -> None:
        now = self._job.kernel.now
        self.records.append(
            sum(reading.appended_before(now) - spout.next_root for spout, reading in self._readings)
        )


_COLUMNS = ("_open", "_last", "_inside", "_first")


class Backlog:
    """Counts the open tuples of each root; a root leaves the backlog when the last of them is done. The data
    plane counts here what is emitted and done (`counted` connects the two), the backlog itself what control
    actions change.

    Roots enter at their emission or at a control action, and leave when data moves: so the result does not
    depend on how far the data plane is moved at a time. A root without open tuples stays so until a control
    action opens it again: so it may be found at any time before that, and changes are gathered until there
    are many.
    """

    def __init__(self, recorder: Recorder, clock: Callable[[], int]) -> None:
        """``clock``: the present, ns."""
        self._recorder, self._clock = recorder, clock
        self._first: Ints = np.zeros(1 << 12, np.int64)
        """First emission of each root; of a record, when it was appended."""
        self._open = np.zeros(1 << 12, np.int32)
        self._last: Ints = np.zeros(1 << 12, np.int64)
        self._inside = np.zeros(1 << 12, np.bool_)
        self._base = 0
        self._used = 0
        """Roots from the base to the newest; the arrays are longer."""
        self._gathered: list[tuple[Ints, Ints]] = []
        """Roots of which a tuple is done or gone, and when."""
        self._changes = 0
        """Roots in what is gathered."""

    def have_room(self, roots: int) -> None:
        """Have room for so many roots from the base on."""
        if roots > len(self._open):
            for name in _COLUMNS:
                setattr(self, name, grown(getattr(self, name), roots))

    def _place(self, roots: Ints) -> Ints:
        place = roots - self._base
        self._used = max(self._used, int(place.max()) + 1)
        if self._used > len(self._open):
            self.have_room(max(self._used, 2 * len(self._open)))
        return place

    def _add(self, place: Ints, times: Ints, tuples: Any) -> None:
        np.add.at(self._open, place, np.asarray(tuples, np.int32))
        np.maximum.at(self._last, place, times)

    def on_destroyed(self, task: TaskView, train: Train, times: Ints, outage: int) -> None:
        if task.component.anchored:
            self._close(train.uid >> task.component.bits, times)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        self.on_destroyed(task, train, train.time, -1)

    on_discarded = on_overflowed

    def on_unsent(self, task: BoltView, train: Train) -> None:
        self.on_destroyed(task, train, self._now(train.uid), -1)

    def on_retries_lost(self, spout: SpoutView, roots: Ints) -> None:
        self._close(roots, self._now(roots))

    def on_retrying(self, spout: SpoutView, roots: Ints) -> None:
        self._enter(roots, 1)

    def on_reopened(self, task: BoltView, train: Train) -> None:
        if task.component.anchored and train.n:
            roots, tuples = np.unique(train.uid >> task.component.bits, return_counts=True)
            self._enter(roots, tuples)

    def on_moved(self, now: int) -> None:
        """After a step of the data plane: settle, if there is much to settle."""
        if self._changes > GATHERED:
            self.settle()

    def _now(self, roots: Ints) -> Ints:
        return np.full(len(roots), self._clock(), np.int64)

    def _enter(self, roots: Ints, tuples: Ints | int) -> None:
        """``tuples`` more of each root (none named twice), which were emitted before, are open from now
        on.
        """
        if not len(roots):
            return
        times, place = self._now(roots), self._place(roots)
        if self._inside[place].any():  # some of them may have been done before
            self.settle()
        new = ~self._inside[place]
        # a job that is taken back destroys all at once, and opens what it saved at that instant
        last = self._last[place][new]
        self._recorder.back.add(last[slots_of(last) == slots_of(times[new])])
        self._recorder.entered.add(times[new])
        self._inside[place] = True
        self._add(place, times, tuples)

    def first(self, roots: Ints) -> Ints:
        """When the roots were emitted first (ns)."""
        return self._first.take(roots - self._base)

    def _close(self, roots: Ints, times: Ints) -> None:
        """At ``times`` (rising) a tuple of each root is done or gone."""
        if len(roots):
            self._gathered.append((roots, times))
            self._changes += len(roots)

    def settle(self) -> None:
        """Roots without open tuples leave, each at its last instant."""
        if self._gathered:
            roots, times = (np.concatenate(column) for column in zip(*self._gathered, strict=True))
            self._gathered, self._changes = [], 0
            place = distinct(self._place(roots))
            self._add(roots - self._base, times, -1)
            over = place[(self._open[place] == 0) & self._inside[place]]
            self._inside[over] = False
            self._recorder.left.add(self._last[over])

    def prune(self, before: int) -> None:
        """Forget the roots < ``before``: none of them is open or can be emitted again."""
        cut = before - self._base
        if cut <= 0:
            return
        self.settle()
        used, kept = self._used, max(0, self._used - cut)
        self._base, self._used = before, kept
        room = max(1 << 12, 2 * used)
        for name in _COLUMNS:
            rows = getattr(self, name)
            if len(rows) > 2 * room:  # of a backlog that is long gone
                rows = rows[: max(room, cut + kept)].copy()
                setattr(self, name, rows)
            rows[:kept] = rows[cut : cut + kept]
            rows[kept:used] = 0

    @property
    def size(self) -> int:
        return self._used
