"""The reference run: what the windows would hold without failures, against what was emitted. The world makes
one where the windows can differ.

Under another strategy, or without its failures, a run often emits what the last one did; then what its
windows should hold is known already (``Truth``): it is kept for the next runs in this process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from tideover.models.operators.state import Closed
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, SpoutView
from tideover.models.runtime.windowing import REMEMBERED
from tideover.sim.train import Ints, Train, join

Place = tuple[str, int, int]
"""Component, task, number of the window."""
Sums = tuple[Ints, Ints]
"""Keys with a sum, and the sums."""


class WindowLog:
    """First emission of each window: of replicas' windows the earliest counts, as at a deduplicating reader.

    Windows that were compared with the truth are forgotten. What tasks put out that are ``withheld`` readers
    see later.

    hidden   windows that are put out, and not seen
    lost     windows that were put out, and will never be seen
    """

    def __init__(self, withheld: Container[object] = ()) -> None:
        self._withheld = withheld
        self.count = 0
        self.open: dict[Place, Sums] = {}
        self.hidden: set[Place] = set()
        self.lost: set[Place] = set()
        self._first: dict[Place, tuple[int, int]] = {}
        """(time, replica) of the earliest emission."""
        self._known: dict[Place, None] = {}
        """Those that were ever put out."""
        self.moments: dict[tuple[str, int], list[int]] = {}
        """Of each task whose windows go by event, when it has put some out (ns), rising."""
        self._last: dict[tuple[str, int], int] = {}

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        place = task.component.name, task.index, number
        if task.component.trigger == "watermark":
            moments = self.moments.setdefault(place[:2], [])
            if not moments or moments[-1] != now:
                moments.append(now)
        if place not in self._known:
            self._known[place] = None
            self._last[place[:2]] = now
            _trim(self._known)
        if task in self._withheld:
            self.hidden.add(place)
        else:
            self.see(place, task.replica, now, closed)

    def forget(self, places: Iterable[Place], lost: bool) -> None:
        """These were put out, and will not be seen as they are; ``lost``: nor will they come again."""
        gone = set(places)
        self.hidden -= gone
        if lost:
            self.lost |= gone

    def see(self, place: Place, replica: int, now: int, closed: Closed) -> None:
        self.hidden.discard(place)
        _trim(self._first)
        if place not in self._first:
            self.count += 1
        elif (now, replica) >= self._first[place]:
            return
        # within a step of the data plane a later replica's window can come to be known before an earlier
        # one's
        self._first[place] = (now, replica)
        self.open[place] = (closed.keys, closed.values)

    def copy(self, windows: dict[Place, Sums]) -> WindowLog:
        """What is known now of the moments, with these windows to be compared."""
        new = WindowLog()
        new.open, new._first = dict(windows), dict(self._first)
        new.moments = {task: list(moments) for task, moments in self.moments.items()}
        return new

    def first_at(self, place: Place) -> int | None:
        """When a window was first seen (ns); None: it was not, or that was long ago."""
        first = self._first.get(place)
        return None if first is None else first[0]

    def last_of(self, component: str, task: int) -> int:
        """When the newest window of a task was first emitted (ns); -1: it has emitted none."""
        return self._last.get((component, task), -1)


def _trim(known: dict[Place, Any]) -> None:
    """Forget the oldest, if there are many."""
    if len(known) > 2 * REMEMBERED:
        for old in list(known)[:REMEMBERED]:
            del known[old]


KEPT_BYTES = 1 << 26
"""Most memory for one truth, and for all that are kept."""

_COLUMNS = ("time", "uid", "created", "key")
_kept: OrderedDict[str, Truth] = OrderedDict()


class Truth:
    """What was emitted, and the windows of a job under which nothing fails, to the end of a run."""

    def __init__(self, spouts: int) -> None:
        self._parts: list[list[Train]] = [[] for _ in range(spouts)]
        self.open: dict[Place, Sums] = {}
        """The windows, as they are put out."""
        self._windows = WindowLog()
        self.size = 0
        """Bytes."""

    def emitted(self, spout: int, train: Train) -> bool:
        """Note what a spout task has emitted; returns whether the truth can be kept still."""
        self._parts[spout].append(train)
        self.size += train.n * 8 * len(_COLUMNS)
        return train.plain and self.size <= KEPT_BYTES

    def keep(self, key: str, windows: WindowLog) -> None:
        """The run is over: keep it as the newest; the oldest go if there are too many."""
        self.open |= windows.open
        self.size += sum(keys.nbytes + sums.nbytes for keys, sums in self.open.values())
        if self.size > KEPT_BYTES or len(self.open) > REMEMBERED:
            return
        self._parts = [[join(parts)] if parts else [] for parts in self._parts]
        self._windows = windows.copy(self.open)
        _kept[key] = self
        while sum(truth.size for truth in _kept.values()) > KEPT_BYTES:
            _kept.popitem(last=False)

    def of_spout(self, spout: int, begin: int, end: int | None = None) -> list[Train]:
        """The roots from ``begin`` to ``end`` that a spout task has emitted, as one train; none if it has
        not emitted so many.
        """
        return [part for whole in self._parts[spout] if (part := whole.pick(slice(begin, end))).n]

    def windows(self) -> WindowLog:
        return self._windows.copy(self.open)


def forget() -> None:
    """Keep none for the next runs."""
    _kept.clear()


STEP = 20_000
"""Roots that are gathered before the reference run is moved."""


class ReferenceRun:
    """The same topology without failures, fed with the run's own first emissions, in lockstep.

    A tick waits in the queue behind all that has arrived before it, so what is in its window depends on
    arrivals only. Windows that end by tick and that nothing reads are therefore made at arrival, without
    service.

    It pays the strategy's costs in normal operation (acks), so that a failure-free run equals it. A replay
    that delays later roots is not an error of the windows: the reference run gets those roots late too.

    If an earlier run has emitted the same roots, what its reference run put out is taken instead, as long as
    nothing else is emitted.

    counts   emitted, correct, wrong, missing windows, at the end; one that the truth does not have is wrong
             unless it is empty
    bad      windows that are wrong or missing, each with the time (ns) from the end of the window before it
             until it was put out, or was due
    """

    def __init__(self, found: WindowLog, spouts: int, make: Callable[[WindowLog], Job], key: str) -> None:
        """``found``: windows of the run itself; ``make``: builds the job that is fed, which tells the log
        what it puts out; ``key``: everything that this job depends on.
        """
        self._found, self._make, self._key = found, make, key
        self._known = _kept.get(key)
        if self._known is not None:
            _kept.move_to_end(key)
        self._new: Truth | None = Truth(spouts)
        """What this one finds; None: it is not to be kept."""
        self._followed = [0] * spouts
        """Roots of each spout task that are those that are known."""
        self._truth = WindowLog()
        self._job: Job | None = None
        self._correct = self._wrong = 0
        self.bad: dict[Place, tuple[int, int]] = {}
        self.counts: dict[str, int] = {}
        self._gathered: list[list[Train]] = [[] for _ in range(spouts)]
        """What each of its spouts is to emit."""
        self._fed = 0
        if self._known is None:
            self._begin()

    def _begin(self) -> Job:
        """Build the job; roots that are known are fed anew."""
        job = self._job = self._make(self._truth)
        for component in job.topology.components:
            bounded = job.deployment.bounds[component.name].length is not None
            shares = any(each.c.cores >= 0 for each in job.bolt_tasks if each.component is component)
            if component.trigger == "tick" and not component.outputs and not bounded and not shares:
                for task in range(component.tasks):
                    job.bolts[component.name, task][0].take_in_at_arrival()
        job.start()
        if self._known is not None:
            for number, count in enumerate(self._followed):
                self._gathered[number][:0] = self._known.of_spout(number, 0, count)
            self._known = None
        return job

    def _follows(self) -> bool:
        """Whether all that was gathered is what is known; it is forgotten then."""
        if self._known is None:
            return False
        joined = [join(trains) if trains else None for trains in self._gathered]
        for number, train in enumerate(joined):
            if train is not None:
                begin = self._followed[number]
                expected = self._known.of_spout(number, begin, begin + train.n)
                if not expected or not train.plain:
                    return False
                if any(
                    not np.array_equal(getattr(expected[0], name), getattr(train, name)) for name in _COLUMNS
                ):
                    return False
        for number, train in enumerate(joined):
            self._followed[number] += 0 if train is None else train.n
            self._gathered[number].clear()
        self._fed = 0
        return True

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Roots that the run has emitted; those emitted for the first time go to the reference run."""
        if train.attempt is not None:
            train = train.pick(train.attempt == 0).replace(attempt=None)
        if train.n:
            if train.epoch is not None:  # it has its own
                train = train.replace(epoch=None)
            self._gathered[spout.spout_number].append(train)
            self._fed += train.n

    def _hand_over(self, job: Job) -> None:
        """Feed what was gathered, in trains as long as can be."""
        for number, trains in enumerate(self._gathered):
            if trains:
                train = join(trains)
                job.spouts[number].feed(train)
                trains.clear()
                if self._new is not None and not self._new.emitted(number, train):
                    self._new = None
        self._fed = 0

    def on_moved(self, now: int) -> None:
        """Move the reference run to just before ``now``, if there is enough to move."""
        if self._fed < STEP or self._follows():
            return
        job = self._job or self._begin()
        if now > job.kernel.now + 1:
            self._hand_over(job)
            job.kernel.run(now - 1)
            if self._new is not None:
                self._new.open |= self._truth.open
            self._match()

    def _ends_as_known(self) -> bool:
        """Whether all that the run has emitted, and nothing else, is known, and its windows, too."""
        if self._known is None or not self._follows():
            return False
        if any(self._known.of_spout(number, count) for number, count in enumerate(self._followed)):
            return False
        windows = self._known.windows()
        if self._found.open.keys() - windows.open.keys():
            return False
        self._truth = windows
        return True

    def finish(self, job: Job) -> None:
        """Move the reference run to the end of ``job``, and on to the windows that a faster replica has
        emitted by then.
        """
        kernel = None
        if not self._ends_as_known():
            mine = self._job or self._begin()
            kernel = mine.kernel
            self._hand_over(mine)
            kernel.run(job.deployment.run.duration)
            if self._new is not None:
                self._new.keep(self._key, self._truth)
        self._match()
        waiting = {
            (task.component.name, task.index, number)
            for task in job.bolt_tasks
            for number in (*task.windows.awaited, *_held_windows(job, task))
        }
        # windows that the truth has and the run has not, and that are not to come: they are missing
        due, marked = set(self._truth.open) - waiting - self._found.hidden, job.end_markers()
        lost = self._found.lost
        due = {place for place in due if place in lost or not _still_to_come(job, *place, marked)}
        while kernel is not None and self._found.open.keys() - self._truth.open.keys():
            event = kernel.next_data_event()
            if event is None or event <= kernel.now:
                break
            kernel.run(event)
        self._judge(due)

    def _match(self) -> None:
        """Compare and forget the windows that are in both."""
        for place in self._found.open.keys() & self._truth.open.keys():
            keys, sums = self._found.open.pop(place)
            true_keys, true_sums = self._truth.open.pop(place)
            if np.array_equal(keys, true_keys) and np.array_equal(sums, true_sums):
                self._correct += 1
            else:
                self._wrong += 1
                self._note(place, self._found)

    def _judge(self, due: set[Place]) -> None:
        """Count all windows, at the end of the run."""
        self._match()
        for place, (keys, _) in self._found.open.items():
            if len(keys):
                self._wrong += 1
                self._note(place, self._found)
            else:
                self._correct += 1
        missing = [place for place in due & self._truth.open.keys() if len(self._truth.open[place][0])]
        for place in missing:
            self._note(place, self._truth)
        self.counts = {
            "emitted": self._found.count,
            "correct": self._correct,
            "wrong": self._wrong,
            "missing": len(missing),
        }

    def _note(self, place: Place, out: WindowLog) -> None:
        component, task, number = place
        end = out.first_at(place)
        assert end is not None
        if place[:2] in out.moments:  # not all numbers are there, and several come at once
            moments = self._truth.moments.get(place[:2], [])
            before = bisect_left(moments, end)
            begin: int | None = moments[before - 1] if before else 0
        else:
            begin = self._truth.first_at((component, task, number - 1))
        self.bad[place] = begin or 0, end


def _held_windows(job: Job, task: BoltTask) -> list[int]:
    """Numbers of the windows that a silent replica has put out, and that no other has."""
    newest = max(each.said for each in job.bolts[task.component.name, task.index])
    return [number for number in task.held_windows or () if number > newest]


def _still_to_come(job: Job, component: str, task: int, number: int, marked: set[int]) -> bool:
    """Whether a window is not put out yet, and all that it needs is safe in a log; or a marker that ends it
    is on its way (``marked``), or events have not come so far: the run may be later than its reference, which
    waits for no store.
    """
    replicas = job.bolts[component, task]
    windows = replicas[0].windows
    if windows.trigger == "watermark":
        window = replicas[0].component.window
        clocks = [replica.state.clock for replica in replicas if replica.state is not None]
        assert window is not None
        return any(clock is not None and clock.ended < number * window.step for clock in clocks)
    if number * windows.beats in marked and windows.trigger == "marker":
        return True
    return job.needs.log and any(number > replica.windows.newest for replica in replicas)
