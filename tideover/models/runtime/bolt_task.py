"""The task of a bolt, and what it has done as the data plane logs it.

A job makes one for each replica; mechanisms act on it, and are told by it. What waits before it is in
`node.py`, its windows are in `windowing.py`; here are its log, its crashes, and barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.operators.keyed_state import KeyedSums, RunningSums
from tideover.models.operators.state import Effects
from tideover.models.operators.window import STREAM
from tideover.models.runtime.channels import SENDER, Sent, Wire
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.node import Entrance, Seat, Waiting, all_below
from tideover.models.runtime.views import BoltView
from tideover.models.runtime.windowing import WindowedTask
from tideover.sim.distributions import Constant
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, NEVER, NUMBER, RECOVERY, Plane, Rows
from tideover.sim.train import Ints, Train, single

KEYS = 4_096
"""Most keys of which the data plane sums up what states take in."""
FEW, MOST = 256, 32_768
"""Tuples behind these sums that are kept until somebody looks: at first, and at most."""


class LoggedBolt(WindowedTask):
    """A bolt's task as far as it tells what it has done, when somebody catches up.

    before   tells of what was emitted before
    see      who wants to know what it has done, whoever else is told
    passed   who wants to know by number what it is done with, end markers too
    notes    who wants to know which marks have come, once each, with the sender's number
    taken    who wants to know what was summed up of tuples that are not logged
    inputs   the channels over which it reads
    (None: nobody)
    """

    def __init__(self, context: Context, component: Component, seat: Seat, plane: Plane) -> None:
        super().__init__(context, component, seat, plane)
        self.before: Callable[[], object] = int
        self.see: Callable[[BoltView, Train, Ints], None] | None = None
        self.passed: Callable[[BoltView, Train], None] | None = None
        self.notes: Callable[[BoltView, int, Train], None] | None = None
        self.taken: Callable[[Effects], None] | None = None
        self._noted: set[tuple[int, int, int, int]] = set()
        self._logged = False
        """Whether it told all that it did, before it did it again."""
        self._remembers: tuple[int, Callable[[], None] | None] = 0, None
        """Behind so many rows of its log the state is to be remembered; how."""
        self.inputs: list[Wire] = []
        self._inputs: dict[tuple[str, int], int] = {}
        """Numbers of the logical tasks that send here."""
        self.c.logs = component.window is not None
        plane.log(self.c.log)

    def input_of(self, wire: Wire) -> int:
        """Number of the logical task at the other end of a channel."""
        up = wire.up
        return self._inputs.setdefault((up.component.name, up.index), len(self._inputs))

    def catch_up(self) -> None:
        (known, remember), self._remembers = self._remembers, (0, None)
        if remember is not None and not known:
            remember()
        c, plane = self.c, self._plane
        if c.n_taken:
            assert isinstance(self._state, KeyedSums)
            n, c.n_taken = int(c.n_taken), 0
            uid, attempt, sums = (plane.kept(c, name) for name in ("taken", "attempts", "sums"))
            again = attempt[:n].astype(np.int64) if attempt[:n].any() else None
            effects = Effects(uid[:n].copy(), again)
            self._state.take_in(sums, effects)
            sums[:] = 0
            if self.taken is not None:
                self.taken(effects)
        if not c.log.n:
            return
        if self._context.events is not None:
            self.before()
        rows = plane.read(c.log)
        if remember is not None and known:
            self._take_rows(rows[:known])
            remember()
            rows = rows[known:]
        if len(rows):
            self._take_rows(rows)

    def _take_rows(self, rows: Rows) -> None:
        recovery, arrival = rows["mark"].astype(np.int64), np.ascontiguousarray(rows["arrival"])
        again, state, component = recovery.any(), self._state, self.component
        if again:
            rows = rows.copy()
            rows["mark"] = 0
        train = self._plane.train(rows, self.number)
        if again:
            train = train.adding(**{RECOVERY: recovery})
        if self.passed is not None:
            numbers = self._plane.kept(self.c, "numbers")[: train.n].copy()
            self.passed(self, train.adding(**{NUMBER: numbers, CHANNEL: rows["source"].astype(np.int64)}))
        sent: list[Sent] = []
        if state is not None:
            if state.ids is not None:
                logical = np.array([self.input_of(wire) for wire in self.inputs], np.int64)
                train = train.adding(**{STREAM: logical[rows["source"]]})
            train = self._take_up(state, train, arrival)
        elif self.outlets and self.shows_sent and not self.silent:
            sent = self._shown(train, self._bolt.children(component.name, self._context.draws, train))
        self._context.say.processed(self, train, arrival, sent)
        if component.anchored:
            self._context.hooks.processed(self, train, sent)
        if self.see is not None:
            self.see(self, train, arrival)

    def make_children(self) -> None:
        """Make the children of all tuples that wait here, or come."""
        component, plane = self.component, self._plane
        train, which = plane.waiting(self.number)
        children = self._bolt.children(component.name, self._context.draws, train)
        rows = np.arange(train.n, dtype=np.int64) if children.rows is None else children.rows
        copies = np.bincount(rows, minlength=train.n)
        position = np.zeros(len(rows), np.int64) if children.position is None else children.position
        key = train.key[rows] if children.key is None else children.key
        most = component.fan_out
        for holds, otherwise in (
            (len(copies) == train.n, "has children of tuples that it did not get"),
            ((rows[1:] >= rows[:-1]).all(), "has children that are not in order of their parents"),
            (copies.max(initial=0) <= most, "makes more of a tuple than its fan_out"),
            (all_below(position, most), "has positions that its fan_out does not allow"),
            (all_below(key, 1 << 31), "has keys that are not in [0, 2**31)"),
        ):
            if not holds:
                raise ValueError(f"{component.name}: {otherwise}")
        starts = np.concatenate([[0], copies.cumsum()])
        for name, column in (("child_starts", starts), ("child_keys", key), ("child_positions", position)):
            plane.array(self.c, name, column.astype(np.int32))
        plane.kept(plane.p, "made")[which] = np.arange(train.n)
        self._give_targets(train, Children(rows, position, key))

    def tell_numbers(self, passed: Callable[[BoltView, Train], None]) -> None:
        """From now on tell by number what it is done with."""
        self.passed = passed
        self._plane.array(self.c, "numbers", np.zeros(self.c.log.room, np.int64))

    def show(self, see: Callable[[BoltView, Train, Ints], None]) -> None:
        self.log_all(self.shows_sent)
        self.see = see

    def log_all(self, sent: bool) -> None:
        """From now on log all that it does; ``sent``: and tell what it sends."""
        self.catch_up()
        self.shows_sent = sent
        self.c.sums, self.c.logs = self._plane.ffi.NULL, 1

    def does_again(self, outage: int | None) -> None:
        """From now on it does all that it does again, because of this outage, and tells; None: no more."""
        self.catch_up()
        c = self.c
        if outage is None:
            c.logs, c.again = self._logged or self._state is not None, 0
            return
        self._logged = bool(c.logs)
        self.log_all(self.shows_sent)
        c.again = outage + 1

    def remember(self, remember: Callable[[], None]) -> None:
        """Call ``remember``, and no earlier one, before anything more is taken into the state."""
        if self.c.sums:
            self.catch_up()
        self._remembers = int(self.c.log.n), remember

    def note_marks(self, train: Train) -> None:
        if self.notes is None or train.mark is None:
            return
        for row in np.flatnonzero(train.mark).tolist():
            mark, sender = train.pick(slice(row, row + 1)), int(train.column(SENDER)[row]) - 1
            known = sender, int(mark.column("mark")[0]), int(mark.created[0]), int(mark.key[0])
            if known not in self._noted:
                self._noted.add(known)
                self.notes(self, sender, mark)

    def sum_up(self) -> None:
        """Let the data plane sum up what the state takes in, if that is all that it does."""
        state, by = self._state, self.windows.trigger
        if type(state) not in (KeyedSums, RunningSums) or self._extent is not None or self.passed is not None:
            return
        assert state is not None
        in_one = self._context.topology.marker_length is None  # else they are kept by epoch
        if by in ("tick", "tuples") and in_one and state.ids is None and state.keys <= KEYS:
            self.c.logs = 0
            self._plane.array(self.c, "sums", np.zeros(state.keys, np.int64))
            self._make_room(FEW)

    def _make_room(self, n: int) -> None:
        for name, kind in (("taken", np.int64), ("attempts", np.int32)):
            self._plane.array(self.c, name, np.zeros(n, kind))
        self.c.taken_room = n

    def log_is_full(self) -> None:
        """There is no more room for what it has done."""
        c, plane = self.c, self._plane
        if c.recorded.n and c.recorded.n >= c.recorded.room:
            plane.have_rows(c.recorded, 3 * int(c.recorded.n))
        elif not c.logs or c.log.n < c.log.room:
            self.catch_up()
            self._make_room(min(4 * int(c.taken_room), MOST))
        elif not plane.more_rows(c.log):
            self.catch_up()
        elif self.passed is not None:
            plane.array(c, "numbers", np.resize(plane.kept(c, "numbers"), c.log.room))

    def _note_marker(self, marker: Any) -> None:
        if self.notes is not None:
            sender = {SENDER: self.inputs[marker.source].up.number + 1}
            self.note_marks(single(marker.time, 0, marker.created, marker.key, mark=marker.mark, **sender))

    def served_mark(self, when: int) -> None:
        self.catch_up()
        p, marked = self._plane.p, self._plane.p.marked
        source, number = self.input_of(self.inputs[marked.source]), int(marked.mark)
        if self.passed is not None:
            columns = {NUMBER: p.marked_number, CHANNEL: marked.source}
            self.passed(self, single(when, 0, mark=number, **columns))
        self._note_marker(marked)
        self._keep_busy(self._marker_came(source, number, when), when)


BARRIER = -2
"""Mark of a message that becomes a control marker in the queue of the task where it arrives."""
SENT_BY = "sent_by"
"""Column of barriers: number of the task that they come from."""


class BoltTask(LoggedBolt):
    """A bolt's task or one replica of it. The data plane logs what it has done, which ``catch_up`` reads.

    queue          what waits before it
    gate           what has come to it and is not in its queue
    markers_once   whether an end marker that has come from another replica is turned away
    """

    def __init__(self, context: Context, component: Component, seat: Seat, plane: Plane) -> None:
        super().__init__(context, component, seat, plane)
        self.c.spout = -1
        assert isinstance(component.config, BoltConfig)
        self._service = component.config.service
        self._admits: list[Callable[[Train], bool]] = []
        """Who has to agree to each tuple that is let in."""
        self.markers_once = False
        self.queue = Waiting(self, plane)
        self.gate = Entrance(self, plane, context.needs.log)

    def ask(self, admits: Callable[[Train], bool]) -> None:
        """From now on a tuple that arrives is let in only if ``admits`` says so of it."""
        self._admits.append(admits)
        self.c.bounded |= self._plane.lib.ASKS

    def judge(self) -> None:
        p, lib = self._plane.p, self._plane.lib
        each = p.marked
        columns = {"value": each.value, "attempt": each.attempt, "epoch": each.epoch}
        train = single(p.when, each.uid, each.created, each.key, **columns)
        self.c.verdict = lib.LET_IN if all(agrees(train) for agrees in self._admits) else lib.TURNED_AWAY

    @property
    def each(self) -> int | None:
        """What every tuple takes (ns); None: that is drawn."""
        overhead = self._context.overhead[self.component.name]
        return self._service.value + overhead if isinstance(self._service, Constant) else None

    def _served(self, train: Train) -> Ints:
        """What was drawn for the service of these (ns)."""
        bits = self._context.draws.bits(self.component.name, Purpose.SERVICE, train.uid, train.attempt)
        return self._service.sample(bits)

    def demand(self, train: Train) -> Ints:
        """How much service these messages ask for (ns), but what serialising takes."""
        if isinstance(self._service, Constant):
            demand = np.full(train.n, self._service.value, np.int64)
        else:
            demand = self._served(train)
        demand += self._context.overhead[self.component.name]
        if train.mark is not None:
            demand[train.mark != 0] = 0
        return demand

    def draw_services(self) -> None:
        train, which = self._plane.waiting(self.number)
        self._plane.work[which] = self._served(train)

    def turn(self, when: int) -> None:
        """The first control marker of the queue has its turn; a barrier that has come is one from now on."""
        head, lib = self._plane.p.messages[self.c.queue.head], self._plane.lib
        if head.mark == lib.BARRIER:
            self._note_marker(head)
            over = {CHANNEL: head.source, SENT_BY: self.inputs[head.source].up.number}
            message = single(head.time, 0, mark=BARRIER, key=head.key, **over)
            self._placed += 1
            self._turns[self._placed] = Rank.CHECKPOINT, partial(self._context.hooks.barrier, self, message)
            head.mark, head.uid = lib.CONTROL, self._placed
        super().turn(when)

    def send_barrier(self, number: int) -> None:
        self._broadcast(self._kernel.now, self._plane.lib.BARRIER, number)

    def send_barrier_ahead(self, number: int) -> None:
        """The same, ahead of what waits in its line, where older ones are forgotten."""
        self._plane.have_messages(self._copies)
        self._plane.lib.plane_send_ahead(self._plane.p, self.number, self._kernel.now, number)

    def ahead(self) -> Any:
        """Rows of what waits in its queue, but what has come behind a barrier, or from a log."""
        plane, room = self._plane, int(self.c.queue.n)
        return plane.filled(lambda rows: plane.lib.plane_ahead(plane.p, self.number, rows, room), room)

    def trained(self, rows: Any) -> Train:
        return self._plane.train(rows)

    def put_back(self, rows: Any, in_line: bool) -> None:
        """These messages wait here again, before it is open, in its queue or ``in_line``."""
        plane, n = self._plane, len(rows)
        plane.have_messages(n)
        where = plane.ffi.from_buffer("row[]", rows)
        plane.lib.plane_put_back(plane.p, self.number, self._kernel.now, in_line, n, where)

    @property
    def hurries(self) -> bool:
        """Whether barriers overtake now what waits here."""
        return bool(self.c.hurries)

    @hurries.setter
    def hurries(self, hurries: bool) -> None:
        self.c.hurries = hurries

    def hurry(self) -> None:
        """Control markers overtake what waits; the first has its turn, if the task does nothing."""
        c, lib, now = self.c, self._plane.lib, self._kernel.now
        if not self.hurries:
            return
        self.queue.markers_first()
        if c.state != lib.IDLE or c.free_at > now or not self.available or not c.queue.n:
            return
        if self._plane.p.messages[c.queue.head].mark in (lib.CONTROL, lib.BARRIER):
            c.state = lib.AT_TURN
            self.turn(now)

    def _stop(self) -> None:
        super()._stop()
        self.windows.waiting.clear()

    @property
    def worked(self) -> int:
        return int(self.c.worked)

    def newest_marker(self, wire: Wire) -> int:
        """Number of the newest end marker that has come from the task at the other end of a channel."""
        return self.windows.epochs[self.input_of(wire)]

    def stop_until(self, moment: int) -> int:
        shift = super().stop_until(moment)
        self.c.acks.since += shift
        return shift

    def _emptied(self, messages: Any) -> list[Train]:
        plane, train = self._plane, self._plane.listed(messages, self.number)
        self.note_marks(train)
        if self.c.bounded & plane.lib.READS_LOG:
            plane.have_chunks(messages.n)
        plane.lib.plane_lose_list(plane.p, self.number, plane.ffi.addressof(messages), self._kernel.now)
        return [train] if train.n else []

    def crash(self, keep_queue: bool = False) -> list[Train]:
        """Go down; returns what is lost: nothing with ``keep_queue``, which is served when it is ready."""
        was_up, c, plane = self.up, self.c, self._plane
        c.repeats_until = NEVER
        self._stop()
        lost: list[Train] = []
        self.gate.stopped = keep_queue
        if keep_queue:
            plane.have_rows(plane.p.discarded, c.held.n)
            plane.lib.plane_keep_aside(plane.p, self.number, self._kernel.now)
        else:
            lost = self._emptied(c.queue) + self._emptied(c.aside)
            if was_up and not self.gate.from_log:
                lost += self._emptied(c.held)
            self.windows.epochs = dict.fromkeys(self.windows.epochs, 0)
        c.closed = 0
        self._die()
        return lost

    def close(self) -> None:
        """Do nothing until it is opened: what waits is set aside, arrivals are held."""
        self._plane.lib.plane_suspend(self._plane.p, self.number, self._kernel.now)
        self.c.closed = 1
        self._plane.lib.plane_set_aside(self._plane.p, self.number)

    def empty(self) -> None:
        """Forget what was planned, and throw away what waits and will be replayed."""
        plane, c = self._plane, self.c
        self._stop()
        plane.have_rows(plane.p.discarded, c.queue.n + c.aside.n + c.held.n)
        plane.lib.plane_empty(plane.p, self.number, self._kernel.now)

    def revive(self) -> None:
        self._live()
        self.c.closed, self.gate.stopped = 1, False  # until it is opened

    def set_aside(self) -> None:
        self._stop()
        self._plane.lib.plane_set_aside(self._plane.p, self.number)

    def copy_queue(self, peer: BoltTask) -> None:
        """What waits at another replica arrives here, too; a tick ends the same window as there."""
        plane, ticks, place = self._plane, iter(sorted(peer.windows.waiting)), 0
        for train in peer.queue.trains():
            self._context.say.reopened(self, without_markers(train))
        plane.have_messages(peer.c.queue.n + 1)
        copy = partial(plane.lib.plane_copy, plane.p, peer.number, self.number)
        while (place := copy(place, self._kernel.now) + 1) > 0:
            rank, _ = peer._turns[plane.p.marked.uid]
            if rank == Rank.WINDOW:
                self.windows.tick(next(ticks))
                plane.have_messages(peer.c.queue.n + 1)
