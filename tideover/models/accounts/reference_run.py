"""The reference run: what the windows would hold without failures, against what was emitted. The world makes
one where the windows can differ, and feeds it: it emits what the run itself did, when that did.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable
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
"""Component, task (or group of keys, where the number of tasks may change), number of the window."""
Sums = tuple[Ints, Ints]
"""Keys with a sum, and the sums."""


def places(task: BoltView, number: int, closed: Closed) -> list[Place]:
    """Where a window that a task has put out is found."""
    first, last = closed.groups or (task.index, task.index)
    return [(task.component.name, each, number) for each in range(first, last + 1)]


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
        name, index = task.component.name, task.index
        if task.component.trigger == "watermark":
            moments = self.moments.setdefault((name, index), [])
            if not moments or moments[-1] != now:
                moments.append(now)
        found = places(task, number, closed)
        if found[0] not in self._known:
            self._known[found[0]] = None
            self._last[name, index] = now
            _trim(self._known)
        if task in self._withheld:
            self.hidden.update(found)
        else:
            self.see(task, number, now, closed)

    def forget(self, places: Iterable[Place], lost: bool) -> None:
        """These were put out, and will not be seen as they are; ``lost``: nor will they come again."""
        gone = set(places)
        self.hidden -= gone
        if lost:
            self.lost |= gone

    def see(self, task: BoltView, number: int, now: int, closed: Closed) -> None:
        _trim(self._first)
        groups = task.component.groups
        for place in places(task, number, closed):
            self.hidden.discard(place)
            if place not in self._first:
                self.count += 1
            elif (now, task.replica) >= self._first[place]:
                continue
            # within a step of the data plane a later replica's window can come to be known before an earlier
            # one's
            self._first[place] = (now, task.replica)
            mine = slice(None) if groups is None else closed.keys % groups == place[1]
            self.open[place] = (closed.keys[mine], closed.values[mine])

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


STEP = 20_000
"""Roots that are gathered before the reference run is moved."""


class ReferenceRun:
    """The same topology without failures, fed with the run's own first emissions, in lockstep.

    A tick waits in the queue behind all that has arrived before it, so what is in its window depends on
    arrivals only. Windows that end by tick and that nothing reads are therefore made at arrival, without
    service.

    It pays the strategy's costs in normal operation (acks), so that a failure-free run equals it. A replay
    that delays later roots is not an error of the windows: the reference run gets those roots late too. That
    is why the run without failures that curves are held against (`evaluation.undisturbed`), which emits at
    moments of its own, cannot serve here.

    counts   emitted, correct, wrong, missing windows, at the end; one that the truth does not have is wrong
             unless it is empty
    bad      windows that are wrong or missing, each with the time (ns) from the end of the window before it
             until it was put out, or was due
    """

    def __init__(self, found: WindowLog, truth: WindowLog, fed: Job) -> None:
        """``found``: windows of the run itself; ``truth``: hears what is put out by the job that is
        ``fed``.
        """
        self._found, self._truth, self._job = found, truth, fed
        self._correct = self._wrong = 0
        self.bad: dict[Place, tuple[int, int]] = {}
        self.counts: dict[str, int] = {}
        self._gathered: list[list[Train]] = [[] for _ in fed.spouts]
        """What each of its spouts is to emit."""
        self._fed = 0
        for component in fed.topology.components:
            bounded = fed.deployment.bounds[component.name].length is not None
            shares = any(each.c.cores >= 0 for each in fed.bolt_tasks if each.component is component)
            if component.trigger == "tick" and not component.outputs and not bounded and not shares:
                for task in range(component.tasks):
                    fed.bolts[component.name, task][0].take_in_at_arrival()
        fed.start()

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Roots that the run has emitted; those emitted for the first time go to the reference run."""
        if train.attempt is not None:
            train = train.pick(train.attempt == 0).replace(attempt=None)
        if train.n:
            if train.epoch is not None:  # it has its own
                train = train.replace(epoch=None)
            self._gathered[spout.spout_number].append(train)
            self._fed += train.n

    def _hand_over(self) -> None:
        """Feed what was gathered, in trains as long as can be."""
        for spout, trains in zip(self._job.spouts, self._gathered, strict=True):
            if trains:
                spout.feed(join(trains))
                trains.clear()
        self._fed = 0

    def on_moved(self, now: int) -> None:
        """Move the reference run to just before ``now``, if there is enough to move."""
        if self._fed >= STEP and now > self._job.kernel.now + 1:
            self._hand_over()
            self._job.kernel.run(now - 1)
            self._match()

    def finish(self, job: Job) -> None:
        """Move the reference run to the end of ``job``, and on to the windows that a faster replica has
        emitted by then; count all windows.
        """
        kernel, found, truth = self._job.kernel, self._found, self._truth
        self._hand_over()
        kernel.run(job.deployment.run.duration)
        self._match()
        waiting = {
            (task.component.name, task.index, number)
            for task in job.bolt_tasks
            for number in (*task.windows.awaited, *_held_windows(job, task))
        }
        # windows that the truth has and the run has not, and that are not to come: they are missing
        due, marked = set(truth.open) - waiting - found.hidden, job.end_markers()
        due = {place for place in due if place in found.lost or not _still_to_come(job, *place, marked)}
        while found.open.keys() - truth.open.keys():
            event = kernel.next_data_event()
            if event is None or event <= kernel.now:
                break
            kernel.run(event)
        self._match()
        for place, (keys, _) in found.open.items():
            self._judge(place, right=not len(keys))
        missing = [place for place in due & truth.open.keys() if len(truth.open[place][0])]
        for place in missing:
            self._note(place, truth)
        counts = {"emitted": found.count, "correct": self._correct, "wrong": self._wrong}
        self.counts = counts | {"missing": len(missing)}

    def _match(self) -> None:
        """Compare and forget the windows that are in both."""
        for place in self._found.open.keys() & self._truth.open.keys():
            keys, sums = self._found.open.pop(place)
            true_keys, true_sums = self._truth.open.pop(place)
            self._judge(place, np.array_equal(keys, true_keys) and np.array_equal(sums, true_sums))

    def _judge(self, place: Place, right: bool) -> None:
        self._correct += right
        self._wrong += not right
        if not right:
            self._note(place, self._found)

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
    is on its way (``marked``), or is sent when a spout is no longer held up or down; or events have not come
    so far: the run may be later than its reference, which waits for nobody.
    """
    replicas = job.bolts[component, task]
    if (groups := replicas[0].component.groups) is not None:
        replicas = job.bolts[component, task * replicas[0].working // groups]
    windows = replicas[0].windows
    if windows.trigger == "watermark":
        window = replicas[0].component.window
        clocks = [replica.state.clock for replica in replicas if replica.state is not None]
        assert window is not None
        return any(clock is not None and clock.ended < number * window.step for clock in clocks)
    if windows.trigger == "marker":
        beat, above = number * windows.beats, job.topology.spouts_above(replicas[0].component)
        if beat in marked or any(spout.epoch < beat for spout in job.spouts if spout.component in above):
            return True
    return job.needs.log and any(number > replica.windows.newest for replica in replicas)
