"""What becomes of each tuple: who sent it, what it did, whether that was undone, or is there again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tideover.models.job.topology import Component, Topology
from tideover.models.operators.state import Closed
from tideover.models.runtime.stream import LATE, Sent
from tideover.models.runtime.views import BoltView, SpoutView
from tideover.models.runtime.wire import Wire
from tideover.sim.train import Ints, Train

EMITTED, SENT, PROCESSED, ACKED, DESTROYED = "emitted", "sent", "processed", "acked", "destroyed"
AGAIN, UNDONE, BACK, PUT_OUT, TIMED_OUT = "sent again", "undone", "there again", "put out", "timed out"


class Event(NamedTuple):
    """Something that happens to a tuple.

    at         when (ns); order: its place among those of the same instant
    what       one of ``EMITTED``, …
    who        name of the task: that sends, processes, has had, or is to have it; empty: not said
    component  at which the tuple is, or which it goes to; replica: of the task there
    uid        at this component
    number     the window that is put out; else the attempt of its root
    """

    at: int
    order: int
    what: str
    who: str
    component: str
    replica: int
    uid: int
    number: int


class _Rows(NamedTuple):
    """The same of several tuples."""

    what: str
    who: str
    component: str
    replica: int
    uid: Ints
    number: Ints | int
    at: Ints | int


class Fates:
    """Keeps all of it, for small runs. It listens, and asks nobody."""

    def __init__(self, topology: Topology, clock: Callable[[], int]) -> None:
        """``clock``: the present, ns."""
        self._topology, self._clock = topology, clock
        self._rows: list[_Rows] = []
        self._of: dict[int, list[Event]] = {}

    def of(self, root: int) -> list[Event]:
        """What happened to the tuples of a root, in order; ask when the run is over."""
        if not self._of:
            self._sort()
        return self._of.get(root, [])

    def _sort(self) -> None:
        for order, rows in enumerate(self._rows):
            bits = self._topology.by_name[rows.component].bits
            columns = (np.broadcast_to(each, rows.uid.shape).tolist() for each in rows[4:])
            for uid, number, at in zip(*columns, strict=True):
                event = Event(at, order, *rows[:4], uid, number)
                self._of.setdefault(uid >> bits, []).append(event)
        for events in self._of.values():
            events.sort(key=lambda event: event[:2])

    def _note(
        self,
        what: str,
        task: SpoutView | BoltView,
        component: Component,
        uid: Ints,
        number: Ints | int,
        at: Ints | int | None = None,
    ) -> None:
        if len(uid) and component.anchored:
            replica = getattr(task, "replica", 0)
            when = self._clock() if at is None else at
            self._rows.append(_Rows(what, task.name, component.name, replica, uid, number, when))

    def _sent(self, task: SpoutView | BoltView, sent: list[Sent]) -> None:
        for edge, _, train in sent:
            self._note(SENT, task, edge.down, train.uid, train.column("attempt"), train.time)

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Roots left a spout task."""
        self._note(EMITTED, spout, spout.component, train.uid, train.column("attempt"), train.time)
        self._sent(spout, sent)

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """Roots timed out."""
        self._note(TIMED_OUT, spout, spout.component, roots, attempt)

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        """A task is done with tuples; late ones do nothing."""
        if train.has(LATE):
            train = train.pick(train.column(LATE) == 0)
        self._note(PROCESSED, task, task.component, train.uid, train.column("attempt"), train.time)
        self._sent(task, sent)

    def on_acked(self, task: BoltView, to: str, train: Train) -> None:
        """A task tells that it is done with tuples."""
        self._note(ACKED, task, task.component, train.uid, train.column("attempt"), train.time)

    def on_destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None:
        """Tuples were destroyed."""
        self._note(DESTROYED, task, task.component, train.uid, train.column("attempt"), times)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        """Tuples found a queue full."""
        self._note(DESTROYED, task, task.component, train.uid, train.column("attempt"), train.time)

    def on_replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        """Tuples leave a buffer, or a log, for a task again."""
        at = None if channel is None else train.time
        self._note(AGAIN, task, task.component, train.uid, train.column("attempt"), at)

    def on_void(self, component: Component, uid: Ints, replica: int) -> None:
        """Effects are undone."""
        if len(uid) and component.anchored:
            self._rows.append(_Rows(UNDONE, "", component.name, replica, uid, 0, self._clock()))

    def on_rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None:
        """Some effects are undone, others are there again."""
        self._note(UNDONE, task, task.component, gone, 0)
        self._note(BACK, task, task.component, back, 0)

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        """Effects are there again."""
        self._note(BACK, task, task.component, uid, 0)

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """A task put out a window; the same once more is void."""
        for part in closed.parts:
            self._note(UNDONE if again else PUT_OUT, task, task.component, part.uid, number, now)
