"""What a run is watched for in detail: every tuple's times and fate (``Trace``, for ``--trace``, audits and
tests), and who sent what to whom in a stretch of it (``SpaceTime``, for its diagram). The world makes them if
they are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tideover.models.job.topology import Component, Topology
from tideover.models.operators.state import Closed
from tideover.models.runtime.announcements import Step
from tideover.models.runtime.bolt_task import BARRIER
from tideover.models.runtime.channels import LATE, SENDER, Sent, Wire
from tideover.models.runtime.hooks import NOTHING
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, Outage, SpoutView, TaskView
from tideover.sim.faults import FAULTS
from tideover.sim.train import Ints, Train
from tideover.sim.units import S

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


class Trace:
    """Plain lists of what happened, in the order in which each task did it, for tests and small teaching
    runs; times in ns. Of each root ``of`` tells what became of its tuples.

    emitted     (spout, task, root, attempt, time)
    processed   (component, task, replica, uid, attempt, arrival, departure)
    windows     (component, task, replica, number, time, {key: sum})
    completed   (root, attempt, time): trees that the acker saw complete
    failed      (root, attempt, time): roots that timed out
    committed   (component, task, transaction, time): readers see what is in it
    destroyed   (component, task, replica, uid, time): tuples lost in a queue, or at a task that was down
    overflowed  the same for tuples that found a queue full and were dropped
    final_state {(component, task, replica): {key: sum}} at the end of the run
    steps       what the protocol did (`tideover.models.runtime.announcements.Step`)
    """

    def __init__(self, topology: Topology, clock: Callable[[], int]) -> None:
        """``clock``: the present, ns."""
        self._topology, self._clock = topology, clock
        self.emitted: list[tuple[str, int, int, int, int]] = []
        self.processed: list[tuple[str, int, int, int, int, int, int]] = []
        self.windows: list[tuple[str, int, int, int, int, dict[int, int]]] = []
        self.completed: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int, int]] = []
        self.committed: list[tuple[str, int, int, int]] = []
        self.destroyed: list[tuple[str, int, int, int, int]] = []
        self.overflowed: list[tuple[str, int, int, int, int]] = []
        self.final_state: dict[tuple[str, int, int], dict[int, int]] = {}
        self.steps: list[Step] = []
        self._noted: list[tuple[tuple[str, str, str, int], tuple[Ints, Ints | int, Ints | int]]] = []
        """The same of several tuples: what, who, component, replica; uid, number, when."""

    def of(self, root: int) -> list[Event]:
        """What happened to the tuples of a root, in order; ask when the run is over."""
        return self._by_root.get(root, [])

    @cached_property
    def _by_root(self) -> dict[int, list[Event]]:
        found: dict[int, list[Event]] = {}
        for order, (about, columns) in enumerate(self._noted):
            bits = self._topology.by_name[about[2]].bits
            for uid, number, at in _rows(*np.broadcast_arrays(*columns)):
                found.setdefault(uid >> bits, []).append(Event(at, order, *about, uid, number))
        for events in found.values():
            events.sort(key=lambda event: event[:2])
        return found

    def _note(
        self,
        what: str,
        task: TaskView,
        uid: Ints,
        number: Ints | int,
        at: Ints | int | None = None,
        component: Component | None = None,
    ) -> None:
        """``at``: now, if it is not given; ``component``: by default the task's."""
        component = component or task.component
        if len(uid) and component.anchored:
            about = what, task.name, component.name, getattr(task, "replica", 0)
            self._noted.append((about, (uid, number, self._clock() if at is None else at)))

    def _sent(self, task: SpoutView | BoltView, sent: list[Sent]) -> None:
        for edge, _, train in sent:
            self._note(SENT, task, train.uid, train.column("attempt"), train.time, edge.down)

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        columns = train.uid, train.column("attempt"), train.time
        self.emitted += [(spout.component.name, spout.index, *row) for row in _rows(*columns)]
        self._note(EMITTED, spout, *columns)
        self._sent(spout, sent)

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        place = (task.component.name, task.index, task.replica)
        rows = _rows(train.uid, train.column("attempt"), arrival, train.time)
        self.processed += [(*place, *row) for row in rows]
        if train.has(LATE):
            train = train.pick(train.column(LATE) == 0)
        self._note(PROCESSED, task, train.uid, train.column("attempt"), train.time)
        self._sent(task, sent)

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        """A task put out a window; the same once more is void."""
        counts = dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))
        self.windows.append((task.component.name, task.index, task.replica, number, now, counts))
        for part in closed.parts:
            self._note(UNDONE if again else PUT_OUT, task, part.uid, number, now)

    def on_completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None:
        self.completed += _rows(root, attempt, time)

    def on_committed(self, task: BoltView, number: int, now: int) -> None:
        self.committed.append((task.component.name, task.index, number, now))

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        now = self._clock()
        self.on_step(timed_out(now, spout, roots))
        self.failed += [(r, a, now) for r, a in _rows(roots, attempt)]
        self._note(TIMED_OUT, spout, roots, attempt)

    def on_destroyed(self, task: TaskView, train: Train, times: Ints, outage: int) -> None:
        place = task.component.name, task.index, getattr(task, "replica", 0)
        self.destroyed += [(*place, *row) for row in _rows(train.uid, times)]
        self._note(DESTROYED, task, train.uid, train.column("attempt"), times)

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        place = (task.component.name, task.index, task.replica)
        self.overflowed += [(*place, *row) for row in _rows(train.uid, train.time)]
        self._note(DESTROYED, task, train.uid, train.column("attempt"), train.time)

    def on_acked(self, task: BoltView, to: str, train: Train) -> None:
        self._note(ACKED, task, train.uid, train.column("attempt"), train.time)

    def on_replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        at = None if channel is None else train.time
        self._note(AGAIN, task, train.uid, train.column("attempt"), at)

    def on_void(self, component: Component, uid: Ints, replica: int) -> None:
        if len(uid) and component.anchored:
            self._noted.append(((UNDONE, "", component.name, replica), (uid, 0, self._clock())))

    def on_rolled_back(self, task: BoltView, gone: Ints, back: Ints) -> None:
        self._note(UNDONE, task, gone, 0)
        self._note(BACK, task, back, 0)

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        self._note(BACK, task, uid, 0)

    def on_step(self, step: Step) -> None:
        self.steps.append(step)


def timed_out(now: int, spout: SpoutView, roots: Ints) -> Step:
    return Step(now, spout.name, "roots timed out", f"{len(roots)} roots")


def moment_text(moment: int) -> str:
    return f"{moment / S:.6f} s"


def window_text(number: int, counted: int, keys: int) -> str:
    return f"window {number}: {counted} counted under {keys} keys"


def struck_text(component: str, kind: str) -> str:
    return f"{component}: {'fault ' if kind in FAULTS else ''}{kind}"


DETECTED, READY = "failure detected", "ready again"
"""What an outage's other moments are called."""


def _rows(*columns: Ints) -> Any:
    return zip(*(np.asarray(c).tolist() for c in columns), strict=True)


class Stretch(NamedTuple):
    """A part of a run: what happens at or after ``begin`` and at or before ``end`` (ns)."""

    begin: int
    end: int

    def has(self, moment: int) -> bool:
        return self.begin <= moment <= self.end


class Arrival(NamedTuple):
    """A tuple came to a task, at ``time``; ``over``: when it was processed, or lost (None: not yet; ns).

    fate   processed, discarded (known, or to come again), destroyed, overflowed, waiting, under way
    """

    time: int
    over: int | None
    fate: str
    key: int
    created: int


class Control(NamedTuple):
    """A control message among the tuples of a channel, between the tasks of these numbers; times in ns."""

    sender: int
    receiver: int
    what: str
    sent: int
    arrival: int


class SpaceTime:
    """Notes what a diagram of a ``stretch`` of the job's run shows. It hears what is announced; messages say
    who sent them. No mechanism looks at that column, and the run stays what it is. Tasks are numbers, times
    ns; a sender in a column is counted from 1 (0: the tuple was lost before it came).

    begin   from when on departures are noted: some time before the stretch, for what may arrive in it; and as
            long as the run goes on, since what arrives after the stretch may have left after it
    sent    when a tuple has left over an edge for the first time, and its key: by sender, component, uid and
            attempt
    again   when it left a buffer once more, or (True) a log: by sender, receiver, uid, attempt
    came    what became of it: by sender, receiver, uid, attempt
    lost    when it was lost before it came: by receiver, uid, attempt
    back    receiver, uid, attempt of what that will have again, from a buffer, a log, a saved queue, or
            another replica
    acked   who was done with a tuple, whom it has told: task, name, uid, attempt, time
    windows number of a task, when it has put out a window, and that in words
    """

    def __init__(self, job: Job, stretch: Stretch) -> None:
        self.job, self.stretch = job, stretch
        self.begin = stretch.begin - max(1_000_000_000, stretch.end - stretch.begin)
        self.sent: dict[tuple[int, str, int, int], list[tuple[int, int]]] = defaultdict(list)
        self.again: dict[tuple[int, int, int, int], list[tuple[int, bool]]] = defaultdict(list)
        self.came: dict[tuple[int, int, int, int], list[Arrival]] = defaultdict(list)
        self.lost: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.back: set[tuple[int, int, int]] = set()
        self.acked: list[tuple[int, str, int, int, int]] = []
        self.completed: list[tuple[int, int, int]] = []
        self.steps: list[Step] = []
        self.windows: list[tuple[int, int, str]] = []
        self._control: dict[tuple[int, int, int, int, int], int] = {}
        self._done: dict[int, list[Ints]] = {}
        """In batches: what a task (by its number) was done with, and is to read again."""

    def mark(self, task: BoltView, sender: int, marks: Train) -> None:
        for mark, sent, key, arrival in _rows(marks.column("mark"), marks.created, marks.key, marks.time):
            self._control[sender, task.number, mark, sent, key] = arrival

    @property
    def control(self) -> list[Control]:
        found = [
            Control(sender, receiver, self._called(mark, key), sent, arrival)
            for (sender, receiver, mark, sent, key), arrival in self._control.items()
            if sent <= self.stretch.end and arrival >= self.stretch.begin
        ]
        return sorted(found, key=lambda message: (message.arrival, message.sent))

    def _called(self, mark: int, key: int) -> str:
        if mark > 0:
            return f"end marker {mark}"
        return f"barrier {key}" if mark == BARRIER else self.job.context.marks.get(mark, "control message")

    def _sent(self, task: SpoutView | BoltView, sent: list[Sent]) -> None:
        for edge, _, train in sent:
            for uid, attempt, key, time in _rows(train.uid, train.column("attempt"), train.key, train.time):
                if time >= self.begin:
                    self.sent[task.number, edge.down.name, uid, attempt].append((time, key))

    def _came(self, task: SpoutView | BoltView, train: Train, arrival: Ints, over: Ints, fate: str) -> None:
        columns = (train.column(SENDER), train.uid, train.column("attempt"), train.key, train.created)
        for sender, uid, attempt, key, created, time, end in _rows(*columns, arrival, over):
            if end < self.begin:  # as far back as departures are noted
                continue
            if sender:
                found = Arrival(time, end, fate, key, created)
                self.came[sender - 1, task.number, uid, attempt].append(found)
            else:
                self.lost[task.number, uid, attempt].append(end)

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        self._sent(spout, sent)

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        self._sent(task, sent)
        self._came(task, train, arrival, train.time, "processed")

    def on_handed_on(self, task: BoltView, sent: list[Sent]) -> None:
        self._sent(task, sent)

    def on_discarded(self, task: BoltView, train: Train) -> None:
        self._came(task, train, train.time, train.time, "discarded")

    on_repeated = on_discarded

    def on_destroyed(self, task: SpoutView | BoltView, train: Train, times: Ints, outage: int) -> None:
        self._came(task, train, np.minimum(train.time, times), times, "destroyed")

    def on_overflowed(self, task: BoltView, train: Train) -> None:
        self._came(task, train, train.time, train.time, "overflowed")

    def on_replayed(self, task: BoltView, train: Train, channel: Wire | None) -> None:
        if channel is None:  # each has been there before, and has its sender; what a sender keeps has not
            senders, times = train.column(SENDER), np.full(train.n, self.job.kernel.now, np.int64)
        else:
            senders, times = np.full(train.n, channel.up.number + 1, np.int64), train.time
        rows = times >= self.begin
        if self.job.needs.batches:  # one that is run again need not have been read before
            rows &= np.isin(train.uid, np.concatenate([NOTHING, *self._done.get(task.number, ())]))
        columns = (senders[rows], train.uid[rows], train.column("attempt")[rows], times[rows])
        for sender, uid, attempt, time in _rows(*columns):
            self.again[sender - 1, task.number, uid, attempt].append((time, channel is None))

    def on_reopened(self, task: BoltView, train: Train) -> None:
        if self.job.needs.batches:
            self._done.setdefault(task.number, []).append(train.uid)
        if self.job.kernel.now >= self.begin:
            self.back |= {(task.number, *row) for row in _rows(train.uid, train.column("attempt"))}

    def on_acked(self, task: BoltView, to: str, train: Train) -> None:
        rows = _rows(train.uid, train.column("attempt"), train.time)
        self.acked += [(task.number, to, *row) for row in rows if self.stretch.has(row[2])]

    def on_completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None:
        self.completed += [row for row in _rows(root, attempt, time) if self.stretch.has(row[2])]

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        if self.stretch.has(now):
            text = window_text(number, int(closed.values.sum()), len(closed.keys))
            self.windows.append((task.number, now, text))

    def on_step(self, step: Step) -> None:
        if self.stretch.has(step.at):
            self.steps.append(step)

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        self.on_step(timed_out(self.job.kernel.now, spout, roots))

    @property
    def outages(self) -> list[Outage]:
        """The faults that have struck and were not over before the stretch."""
        struck = self.job.supervisor.outages
        return [o for o in struck if o.failed_at <= self.stretch.end and o.ready_at >= self.stretch.begin]
