"""The backlog of a job over time: roots with a tuple in a queue, in service, on the wire, or waiting for a
retry; and how far spouts are behind the queues that they read. Both listen to a run; the world builds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


Change = tuple[Ints, Ints, Ints | int]
"""Roots, when, and how many open tuples more each."""
_COLUMNS = ("_open", "_last", "_inside", "_first")


class Backlog:
    """Counts the open tuples of each root; a root leaves the backlog when the last of them is done. The data
    plane counts here what is emitted and done, the backlog itself what control actions change.

    Roots enter at their emission or at a control action, and leave when data moves: so the result does not
    depend on how far the data plane is moved at a time. A root without open tuples stays so until a control
    action opens it again: so it may be found at any time before that, and changes are gathered until there
    are many.
    """

    def __init__(self, recorder: Recorder, replicas: Mapping[str, int], clock: Callable[[], int]) -> None:
        """``replicas``: copies of each task, by component; ``clock``: the present, ns."""
        self._recorder, self._replicas, self._clock = recorder, replicas, clock
        self._first: Ints = np.zeros(1 << 12, np.int64)
        """First emission of each root; of a record, when it was appended."""
        self._open = np.zeros(1 << 12, np.int32)
        self._last: Ints = np.zeros(1 << 12, np.int64)
        self._inside = np.zeros(1 << 12, np.bool_)
        self._base = 0
        self._used = 0
        """Roots from the base to the newest; the arrays are longer."""
        self._touched: list[slice | Ints] = []
        self._gathered: list[Change] = []
        self._changes = 0
        """Roots in what is gathered."""

    def _place(self, roots: Ints) -> slice | Ints:
        """Where the roots are; roots that follow one another without a gap are a slice, which is ten times
        faster.
        """
        first, last = int(roots[0]) - self._base, int(roots[-1]) - self._base
        place: slice | Ints
        if last - first == len(roots) - 1 and bool((roots[1:] > roots[:-1]).all()):
            place = slice(first, last + 1)
        else:
            place = roots - self._base
            last = int(place.max())
        self._used = max(self._used, last + 1)
        if last >= len(self._open):
            self.have_room(max(last + 1, 2 * len(self._open)))
        return place

    def have_room(self, roots: int) -> None:
        if roots > len(self._open):
            for name in _COLUMNS:
                setattr(self, name, grown(getattr(self, name), roots))

    def _add(self, place: slice | Ints, times: Ints, tuples: Ints | int) -> None:
        if isinstance(place, slice):
            self._open[place] += np.asarray(tuples, np.int32)
            last = self._last[place]
            np.maximum(last, times, out=last)
        else:
            np.add.at(self._open, place, np.asarray(tuples, np.int32))
            np.maximum.at(self._last, place, times)

    def on_destroyed(self, task: TaskView, train: Train, times: Ints, outage: int) -> None:
        if task.component.anchored:
            self._change(train.uid >> task.component.bits, times, -1)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        self.on_destroyed(task, train, train.time, -1)

    def on_discarded(self, task: BoltView, train: Train) -> None:
        self.on_destroyed(task, train, train.time, -1)

    def on_retrying(self, spout: SpoutView, roots: Ints) -> None:
        self._enter(roots, self._now(roots), 1, again=True)

    def on_retries_lost(self, spout: SpoutView, roots: Ints) -> None:
        self._change(roots, self._now(roots), -1)

    def on_reopened(self, task: BoltView, train: Train) -> None:
        if task.component.anchored and train.n:
            roots, tuples = np.unique(train.uid >> task.component.bits, return_counts=True)
            self._enter(roots, self._now(roots), tuples, again=True)

    def on_unsent(self, task: BoltView, train: Train) -> None:
        if task.component.anchored:
            self._change(train.uid >> task.component.bits, self._now(train.uid), -1)

    def on_moved(self, now: int) -> None:
        """After a step of the data plane: settle, if there is much to settle."""
        if self._touched or self._changes > GATHERED:
            self.settle()

    def _now(self, roots: Ints) -> Ints:
        return np.full(len(roots), self._clock(), np.int64)

    def _enter(self, roots: Ints, times: Ints, tuples: Ints | int, again: bool = False) -> None:
        """``tuples`` more of each root (none named twice) are open since ``times``.
        ``again``: they were emitted before.
        """
        if not len(roots):
            return
        place = self._place(roots)
        inside = self._inside[place]
        if inside.any():  # some of them may have been done before
            self.settle()
            inside = self._inside[place]
        if again:  # a job that is taken back destroys all at once, and opens what it saved at that instant
            last = self._last[place][~inside]
            self._recorder.back.add(last[slots_of(last) == slots_of(times[~inside])])
        self._recorder.entered.add(times[~inside] if inside.any() else times)
        self._inside[place] = True
        self._add(place, times, tuples)

    def first(self, roots: Ints) -> Ints:
        return self._first.take(roots - self._base)

    def _change(self, roots: Ints, times: Ints, net: Ints | int) -> None:
        """At ``times`` (rising), ``net`` (mostly negative) is added to the open tuples of each root."""
        if len(roots) > GATHERED // 8:
            self._apply(roots, times, net)
        elif len(roots):
            self._gathered.append((roots, times, net))
            self._changes += len(roots)

    def _apply(self, roots: Ints, times: Ints, net: Ints | int) -> None:
        place = self._place(roots)
        self._add(place, times, net)
        self._touched.append(place)

    def settle(self) -> None:
        """Roots without open tuples leave, each at its last instant."""
        if self._gathered:
            roots, times, net = zip(*self._gathered, strict=True)
            self._gathered, self._changes = [], 0
            each = [np.full(len(r), n) if isinstance(n, int) else n for r, n in zip(roots, net, strict=True)]
            self._apply(np.concatenate(roots), np.concatenate(times), np.concatenate(each))
        spans: list[tuple[int, int]] = []
        for place in self._touched:
            if isinstance(place, slice):
                spans.append((place.start, place.stop))
                continue
            low, high = int(place.min()), int(place.max()) + 1
            if high - low <= 4 * len(place):
                spans.append((low, high))
                continue
            over = self._open.take(place) == 0
            over &= self._inside.take(place)
            self._leave(distinct(place[over]))
        self._touched = []
        for low, high in _united(spans):
            over = self._open[low:high] == 0
            over &= self._inside[low:high]
            if over.all():
                self._leave(slice(low, high))
            else:
                self._leave(np.flatnonzero(over) + low)

    def _leave(self, done: slice | Ints) -> None:
        if isinstance(done, slice) or len(done):
            self._inside[done] = False
            last = self._last[done]
            self._recorder.left.add(last.copy() if isinstance(done, slice) else last)

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

    def tuples(self) -> int:
        self.settle()
        return int(self._open.sum())


def _united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one, so that what the tasks of a component share is looked through once."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return out
