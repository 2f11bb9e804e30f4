"""What tasks of spouts and of bolts have in common in the data plane, and what waits before a bolt's.

`bolt_task.py` and `spout_task.py` build on it. What the data plane does by itself is in `sim/plane`; here it
is told of control actions, which take turns with tuples.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.runtime.channels import Line, Outlet, Wire, is_given
from tideover.models.runtime.context import Context
from tideover.sim.kernel import Action
from tideover.sim.plane.plane import NEVER, ROW, Plane, Rows
from tideover.sim.train import Ints, Train


class Busy:
    """How long a task is busy (ns), and from when on it is free.

    On shared cores only the data plane knows when it will be free, and ``free_at`` does not.
    """

    __slots__ = ("_c", "_plane")

    def __init__(self, plane: Plane, c: Any) -> None:
        self._plane, self._c = plane, c

    @property
    def free_at(self) -> int:
        c = self._c
        return int(max(c.free_at, c.ends) if c.state == self._plane.lib.SERVING else c.free_at)

    def until(self, now: int) -> float:
        c = self._c
        if c.cores < 0:
            return int(c.busy) - max(0, self.free_at - max(now, int(c.stopped_until)))
        had: float = c.had
        if c.works:
            cores = self._plane.p.cores[c.cores]
            had += cores.shared + (now - cores.since) * cores.share
        return had

    def add(self, now: int, duration: int) -> None:
        if self._c.cores < 0:
            self._c.free_at = max(self.free_at, now) + duration
            self._c.busy += duration
        else:
            self._plane.lib.plane_occupy(self._plane.p, self._c.number, now, duration)

    def count(self, duration: int) -> None:
        """It has been busy for ``duration`` besides, with what the data plane knows nothing of."""
        self._c.busy += duration


Seat = tuple[int, int, int, int]
"""A task's place: among all physical tasks, its first host, among those of its component, replica."""


class Node:
    """A task in the data plane: it is up or down, does one thing at a time, and lets control actions queue
    with its tuples.

    number     place in the physical order, and in the data plane's ``task`` array, which has its struct ``c``
    life       counts interruptions: what was planned in an earlier life is void
    put_off    by how much being stopped has made later what it was to do (ns), all in all
    shows_sent  whether somebody wants to know what it has sent by its ``outlets``
    line       where what it sends waits for room; None: there always is
    gave_up    called when what it was to send later is forgotten
    working    how many tasks of its component tuples go to: the first ones
    """

    def __init__(self, context: Context, component: Component, seat: Seat, plane: Plane) -> None:
        self._context, self._kernel, self._plane = context, context.kernel, plane
        self.component = component
        self.number, self.host, self.index, self.replica = seat
        self.name = f"{component.name}.{self.index}" + (f"/{self.replica}" if self.replica else "")
        self.life = self.put_off = 0
        self.working = component.config.parallelism
        self.shows_sent = False
        self.outlets: list[Outlet] = []
        self.line: Line | None = None
        self.c: Any = plane.tasks[self.number]
        self.c.number, self.c.up, self.c.serving, self.c.fills = self.number, 1, -1, -1
        self.c.component, self.c.replica, self.c.cores = component.index, self.replica, -1
        self.busy = Busy(plane, self.c)
        self._turns: dict[int, tuple[int, Action]] = {}
        """Actions of the control markers in its queue, by number, each with its rank."""
        self._placed = 0
        self._next: int | None = None
        """The control marker whose turn has come, if it has not acted."""
        self.gave_up: Action = int  # type: ignore[assignment]

    @property
    def up(self) -> bool:
        return bool(self.c.up)

    @property
    def idle(self) -> bool:
        """Whether it does nothing as yet, or no more, but hand markers on."""
        return self.index >= self.working

    def enqueue(self, rank: int, action: Action, first: bool = False, *, last: bool = False) -> None:
        """Put a control marker at the end of the queue now, or ``first`` ahead of all that waits; ``action``
        runs when all that is ahead of it has been served, unless the task crashes. ``last``: the action under
        way does nothing after it.
        """
        self._plane.have_messages(1)
        self._placed += 1
        self._turns[self._placed] = rank, action
        kernel = self._kernel
        if not self._plane.lib.plane_place(self._plane.p, self.number, kernel.now, self._placed, first):
            return
        if last and kernel.goes_on(rank, self.number):
            self._act(self._placed, self.life)
        else:
            self._has_turn(self._placed, kernel.now)

    def turn(self, when: int) -> None:
        p = self._plane.p
        self._has_turn(p.messages[self.c.queue.head].uid, when)

    def _has_turn(self, name: int, when: int) -> None:
        self._next = name
        self._kernel.at_turn(when, self._turns[name][0], partial(self._act, name, self.life), self.number)

    def _act(self, name: int, life: int) -> None:
        """What was planned in an earlier life is void."""
        if life != self.life or name not in self._turns or self.c.stopped_until > self._kernel.now:
            return
        self._next = None
        _, action = self._turns.pop(name)
        self._plane.lib.plane_turn_over(self._plane.p, self.number)
        action()

    @property
    def wires(self) -> dict[int, Wire]:
        found = [wire for outlet in self.outlets for row in outlet.channels for wire in row]
        return {wire.number: wire for wire in found}

    @property
    def _copies(self) -> int:
        """Messages that a tuple becomes that it sends to all, at most."""
        return sum(len(outlet.channels) * len(outlet.channels[0]) for outlet in self.outlets)

    def _broadcast(self, when: int, mark: int, key: int = 0) -> None:
        self._plane.have_messages(self._copies)
        self._plane.lib.plane_broadcast(self._plane.p, self.number, when, mark, key, 0)

    def _give_targets(self, train: Train, children: Children, at: str = "given") -> None:
        """Find out where these children go, where Python has to; ``at``: in which array of outlets."""
        for outlet in self.outlets:
            if is_given(outlet.edge):
                (sent,), edge, tasks = outlet.sent(train, children), outlet.edge, len(outlet.channels)
                found: Ints = edge.grouping.targets(edge.name, self._context.draws, sent.train, tasks)
                if len(found) != sent.train.n or not all_below(found, tasks):
                    raise ValueError(f"{edge.down.name}: would get tuples in no task of it")
                self._plane.array(outlet.c, at, found.astype(np.int32))

    def occupy(self, duration: int) -> None:
        self.busy.add(self._kernel.now, duration)

    def stop_until(self, moment: int) -> int:
        """Do nothing until ``moment``, and then go on; returns by how much all is later (ns)."""
        now = self._kernel.now
        shift = max(0, moment - max(now, int(self.c.stopped_until)))
        self.put_off += shift
        self._plane.lib.plane_stop(self._plane.p, self.number, now, moment)
        if shift and self._next is not None:  # a fault of this instant came before its turn
            self._has_turn(self._next, moment)
        return shift

    def _stop(self) -> None:
        self.life += 1
        self._plane.lib.plane_interrupt(self._plane.p, self.number, self._kernel.now)
        self.gave_up()
        self._next = None
        self._turns.clear()

    def _die(self) -> None:
        c = self.c
        c.up, c.line.moves, c.stopped_until, c.free_at = 0, NEVER, 0, self._kernel.now

    def _live(self) -> None:
        """It is up again, and what waits in its line may leave."""
        self.life += 1
        c, now = self.c, self._kernel.now
        c.up, c.free_at = 1, max(c.free_at, now)
        if c.line.messages.n:
            c.line.moves = now


def all_below(values: Ints, limit: int) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


class Waiting:
    """What waits in a task's queue, and what is in service there."""

    def __init__(self, task: Any, plane: Plane) -> None:
        self._task, self._plane = task, plane

    def trains(self, every_marker: bool = False) -> list[Train]:
        """All of it, in order; ``time`` is the arrival. ``every_marker``: those of other replicas, too."""
        task, plane, c = self._task, self._plane, self._task.c
        plane.lib.plane_take_in(plane.p, task.number, plane.p.now)
        rows = plane.rows(c.queue)
        if (
            task.markers_once and not every_marker
        ):  # windows count them once: the others might as well not be here
            newest = np.array([task.newest_marker(wire) for wire in task.inputs], np.int64)
            rows = rows[(rows["mark"] == 0) | (rows["mark"] > newest[rows["source"]])]
        found = [plane.train(rows, task.number)] if len(rows) else []
        if c.state != plane.lib.SERVING:
            return found
        one = plane.ffi.new("list *", {"head": c.serving, "tail": c.serving, "n": 1})
        return [plane.listed(one[0], task.number), *found]

    def markers_first(self) -> None:
        plane, task = self._plane, self._task
        plane.lib.plane_markers_first(plane.p, task.number, task._kernel.now)

    def demand(self, *trains: Train) -> int:
        """How much service tuples ask for (ns): all that are there."""
        task, plane = self._task, self._plane
        served = sum(int(task.demand(train).sum()) for train in trains)
        return served + int(plane.lib.plane_serialisation(plane.p, task.number))


class Entrance:
    """What has come to a task and is not in its queue.

    from_log   what waits here waits in a log: it is always held, and no crash takes it
    stopped    it is down, and has kept its queue
    """

    def __init__(self, task: Any, plane: Plane, from_log: bool) -> None:
        self._task, self._plane, self.from_log = task, plane, from_log
        self.hold(False)
        self.stopped = False

    @property
    def closed(self) -> bool:
        """The task is up, but takes nothing in yet."""
        return bool(self._task.c.closed)

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._task.c.closed = closed

    def hold(self, hold: bool) -> None:
        """While it is down: hold what arrives, or lose it."""
        self._task.c.holds = hold or self.from_log

    def _listed(self, messages: Any) -> list[Train]:
        train = self._plane.listed(messages, self._task.number)
        return [train] if train.n else []

    @property
    def held(self) -> list[Train]:
        """Arrivals that were not let in yet."""
        return self._listed(self._task.c.held)

    @property
    def aside(self) -> list[Train]:
        """What was let in, and is out of the queue for a while."""
        return self._listed(self._task.c.aside)

    def unreadable(self) -> list[Train]:
        """What has come and is not committed."""
        channels = [wire.c.transactions for wire in self._task.inputs if wire.c.transactions]
        return [train for channel in channels for train in self._listed(channel.withheld)]

    def take_away(self) -> Rows:
        """Arrivals that were not let in, as rows; they are not here any more."""
        plane = self._plane
        rows = np.empty(self._task.c.held.n, ROW)
        out = plane.ffi.from_buffer("row[]", rows, require_writable=True)
        plane.lib.plane_take_away(plane.p, self._task.number, out)
        if self._task.notes is not None:
            self._task.note_marks(plane.train(rows, self._task.number))
        return rows

    def work_off(self, rows: Rows) -> None:
        plane, now, n = self._plane, self._task._kernel.now, len(rows)
        plane.have_messages(n)
        plane.lib.plane_work_off(plane.p, self._task.number, now, n, plane.ffi.from_buffer("row[]", rows))

    def open(self) -> None:
        """What was set aside and held arrives now."""
        for train in (*self.aside, *self.held) if self._task.notes is not None else ():
            self._task.note_marks(train)
        for log in (self._plane.p.overflowed, self._plane.p.discarded):
            self._plane.have_rows(log, self._task.c.held.n)
        self._plane.lib.plane_open(self._plane.p, self._task.number, self._task._kernel.now)
