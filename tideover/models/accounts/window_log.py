"""Windows as they were emitted, to be held against the truth."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from tideover.models.operators.state import Closed
from tideover.models.runtime.views import BoltView
from tideover.models.runtime.windows import REMEMBERED
from tideover.sim.train import Ints

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
        """A task has put out a window."""
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
        """Readers see a window."""
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


class WindowAudit:
    """Compares windows with those of a reference run.

    bad   windows that are wrong or missing, each with the time (ns) from the end of the window before it
          until it was put out, or was due
    """

    def __init__(self) -> None:
        self.correct = 0
        self.wrong = 0
        self.bad: dict[Place, tuple[int, int]] = {}
        self.due: set[Place] = set()
        """Windows that the truth has at the run's end and the run has not: they are missing."""

    def match(self, found: WindowLog, truth: WindowLog) -> None:
        """Compare and forget the windows that are in both."""
        for place in found.open.keys() & truth.open.keys():
            keys, sums = found.open.pop(place)
            true_keys, true_sums = truth.open.pop(place)
            same = np.array_equal(keys, true_keys) and np.array_equal(sums, true_sums)
            self.correct += same
            if not same:
                self.wrong += 1
                self._note(place, found, truth)

    def finish(self, found: WindowLog, truth: WindowLog) -> dict[str, int]:
        """emitted, correct, wrong, missing, at the end of the run; a window that the truth does not have is
        wrong unless it is empty.
        """
        self.match(found, truth)
        for place, (keys, _) in found.open.items():
            self.wrong += len(keys) > 0
            self.correct += len(keys) == 0
            if len(keys):
                self._note(place, found, truth)
        missing = [place for place in self.due & truth.open.keys() if len(truth.open[place][0])]
        for place in missing:
            self._note(place, truth, truth)
        return {"emitted": found.count, "correct": self.correct, "wrong": self.wrong, "missing": len(missing)}

    def _note(self, place: Place, out: WindowLog, truth: WindowLog) -> None:
        component, task, number = place
        end = out.first_at(place)
        assert end is not None
        if place[:2] in out.moments:  # not all numbers are there, and several come at once
            moments = truth.moments.get(place[:2], [])
            before = bisect_left(moments, end)
            begin: int | None = moments[before - 1] if before else 0
        else:
            begin = truth.first_at((component, task, number - 1))
        self.bad[place] = begin or 0, end
