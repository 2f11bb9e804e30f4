"""The task of a bolt, where the compiled data plane moves its tuples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tideover.models.flow.entrance import Entrance, Waiting
from tideover.models.flow.node import Busy, FlowNode, SharedBusy
from tideover.models.flow.outside import give_targets
from tideover.models.flow.wire import SENDER, Wire
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.operators.keyed_sums import KeyedSums, RunningSums
from tideover.models.operators.state import Effects, State
from tideover.models.operators.window_ids import STREAM
from tideover.models.runtime.bolt_task import BARRIER, SENT_BY, BoltTask
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import BoltView
from tideover.sim.kernel import Rank
from tideover.sim.plane.plane import CHANNEL, NEVER, NUMBER, RECOVERY, Plane, Rows
from tideover.sim.train import Ints, Train, single

KEYS = 4_096
"""Most keys of which the data plane sums up what states take in."""
FEW, MOST = 256, 32_768
"""Tuples behind these sums that are kept until somebody looks: at first, and at most."""


class FlowBolt(FlowNode, BoltTask):  # type: ignore[misc]
    """A bolt's task or one replica of it. The data plane logs what it has done, which is read (``catch_up``)
    when somebody asks for its state.
    """

    def __init__(
        self,
        context: Context,
        component: Component,
        index: int,
        replica: int,
        host: int,
        plane: Plane,
        number: int,
    ) -> None:
        self.before: Callable[[], object] = int
        """Tells of what was emitted before."""
        self.see: Callable[[BoltView, Train, Ints], None] | None = None
        """Who wants to know what it has done, whoever else is told."""
        self.shows_sent = False
        """Whether somebody wants to know what it has sent."""
        self.passed: Callable[[BoltView, Train], None] | None = None
        """Who wants to know by number what it is done with, end markers too; None: nobody."""
        self.notes: Callable[[BoltView, int, Train], None] | None = None
        """Who wants to know which marks have come, once each, with the sender's number; None: nobody."""
        self._noted: set[tuple[int, int, int]] = set()
        self._logged = False
        """Whether it told all that it did, before it did it again."""
        self._remembers: tuple[int, Callable[[], None] | None] = 0, None
        """Behind so many rows of its log the state is to be remembered; how."""
        self._join(plane, number)
        super().__init__(context, component, index, replica, host)
        self.inputs: list[Wire] = []  # type: ignore[assignment]
        self.outlets = []
        self.busy = Busy(plane, self.c)
        self.queue = Waiting(self, plane)  # type: ignore[assignment]
        self.gate = Entrance(self, plane)  # type: ignore[assignment]
        window = component.window
        if window is not None and window.every is not None:
            self.c.fills = window.every
        self.c.logs = window is not None
        plane.log(self.c.log)

    def share(self) -> None:
        """It shares the cores of its host."""
        self.busy = SharedBusy(self._plane, self.c)

    # -- what it has done ------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take what it has done since somebody looked into its state."""
        (known, remember), self._remembers = self._remembers, (0, None)
        if remember is not None and not known:
            remember()
        if self.c.n_taken:
            self._take_in_sums()
        if not self.c.log.n:
            return
        if self._context.events is not None:
            self.before()
        rows = self._plane.read(self.c.log)
        if remember is not None and known:
            self._take_rows(rows[:known])
            remember()
            rows = rows[known:]
        if len(rows):
            self._take_rows(rows)

    def _take_rows(self, rows: Rows) -> None:
        """These have been done."""
        recovery, arrival = rows["mark"].astype(np.int64), np.ascontiguousarray(rows["arrival"])
        if recovery.any():
            rows = rows.copy()
            rows["mark"] = 0
        train = self._plane.train(rows, self.number)
        if recovery.any():
            train = train.adding(**{RECOVERY: recovery})
        if self.passed is not None:
            numbers = self._plane.kept(self.c, "numbers")[: train.n].copy()
            self.passed(self, train.adding(**{NUMBER: numbers, CHANNEL: rows["source"].astype(np.int64)}))
        if self._state is not None:
            if self._state.ids is not None:
                train = train.adding(**{STREAM: self._logical[rows["source"]]})
            train = self._take_up(train, arrival)
        sent = self._sent(train)
        self._context.say.processed(self, train, arrival, sent)
        if self.component.anchored:
            self._context.hooks.processed(self, train, sent)
        if self.see is not None:
            self.see(self, train, arrival)

    def tell_numbers(self, passed: Callable[[BoltView, Train], None]) -> None:
        """From now on tell by number what it is done with."""
        self.passed = passed
        self._plane.array(self.c, "numbers", np.zeros(self.c.log.room, np.int64))

    def show(self, see: Callable[[BoltView, Train, Ints], None]) -> None:
        """From now on tell ``see`` of all that it has done."""
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
        """Call ``remember`` before anything more is taken into the state, as soon as somebody looks at it: it
        is as it is now then. What was to be remembered before need not be.
        """
        if self.c.sums:
            self.catch_up()
        self._remembers = int(self.c.log.n), remember

    def note_marks(self, train: Train) -> None:
        """The end markers among these have come."""
        if self.notes is None or train.mark is None:
            return
        for row in np.flatnonzero(train.mark > 0).tolist():
            mark, sender = train.pick(slice(row, row + 1)), int(train.column(SENDER)[row]) - 1
            known = sender, int(mark.column("mark")[0]), int(mark.created[0])
            if known not in self._noted:
                self._noted.add(known)
                self.notes(self, sender, mark)

    def sum_up(self) -> None:
        """Let the data plane sum up what the state takes in, if that is all that it does."""
        state, window = self._state, self.component.window
        plain = type(state) in (KeyedSums, RunningSums) and self._extent is None
        told = self.passed is not None
        if told or state is None or window is None or not plain or state.ids is not None or state.keys > KEYS:
            return
        in_one = self._context.topology.marker_length is None  # else they are kept by epoch
        if self.windows.trigger in ("tick", "tuples") and in_one:
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
            return
        if c.logs and c.log.n >= c.log.room:
            if not plane.more_rows(c.log):
                self.catch_up()
            elif self.passed is not None:
                plane.array(c, "numbers", np.resize(plane.kept(c, "numbers"), c.log.room))
            return
        self.catch_up()
        self._make_room(min(4 * int(c.taken_room), MOST))

    def _take_in_sums(self) -> None:
        c, plane = self.c, self._plane
        n, c.n_taken = int(c.n_taken), 0
        uid, attempt, sums = (plane.kept(c, name) for name in ("taken", "attempts", "sums"))
        attempt = attempt[:n]
        assert isinstance(self._state, KeyedSums)
        again = attempt.astype(np.int64) if attempt.any() else None
        self._state.take_in(sums, Effects(uid[:n].copy(), again))
        sums[:] = 0

    @property
    def _logical(self) -> Ints:
        """Numbers of the logical tasks at the other ends of its inputs."""
        return np.array([self._input(wire) for wire in self.inputs], np.int64)  # type: ignore[arg-type]

    def _sent(self, train: Train) -> list[Sent]:
        if self._state is not None or not self.outlets or not self.shows_sent:
            return []
        children = self._bolt.children(self.component.name, self._context.draws, train)
        return [sent for outlet in self.outlets for sent in outlet.sent(train, children)]  # type: ignore[attr-defined]

    @property
    def state(self) -> State | None:
        self.catch_up()
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self.catch_up()
        self._state = state
        window = self.component.window
        if window is not None and window.every is not None:
            self.c.fills = window.every - state.tuples

    def take_in_at_arrival(self) -> None:
        super().take_in_at_arrival()
        c, lib = self._plane.components[self.component.index], self._plane.lib
        c.service.kind, c.service.low, c.charge, c.due = lib.DRAW_CONSTANT, 0, 0, self._plane.ffi.NULL
        c.serves_at_once = 1

    # -- barriers --------------------------------------------------------------------------------------------

    def turn(self, when: int) -> None:
        """The first control marker of the queue has its turn; a barrier that has come is one from now on."""
        head, lib = self._plane.p.messages[self.c.queue.head], self._plane.lib
        if head.mark == lib.BARRIER:
            over = {CHANNEL: head.source, SENT_BY: self.inputs[head.source].up.number}
            message = single(head.time, 0, mark=BARRIER, key=head.key, **over)
            self._placed += 1
            self._turns[self._placed] = Rank.CHECKPOINT, partial(self._context.hooks.barrier, self, message)
            head.mark, head.uid = lib.CONTROL, self._placed
        super().turn(when)

    def send_barrier(self, number: int) -> None:
        """A barrier leaves for all that read."""
        plane, kernel = self._plane, self._kernel
        plane.have_messages(self._copies)
        plane.lib.plane_broadcast(plane.p, self.number, kernel.now, plane.lib.BARRIER, number)

    def send_barrier_ahead(self, number: int) -> None:
        """The same, ahead of what waits in its line, where older ones are forgotten."""
        plane, kernel = self._plane, self._kernel
        plane.have_messages(self._copies)
        plane.lib.plane_send_ahead(plane.p, self.number, kernel.now, number)

    @property
    def wires(self) -> dict[int, Wire]:
        """The channels by which it sends, by number."""
        found = [wire for outlet in self.outlets for row in outlet.channels for wire in row]
        return {wire.number: wire for wire in found}  # type: ignore[attr-defined, misc]

    def ahead(self) -> Any:
        """Rows of what waits in its queue, but what has come behind a barrier, or from a log."""
        plane, room = self._plane, int(self.c.queue.n)
        return plane.filled(lambda rows: plane.lib.plane_ahead(plane.p, self.number, rows, room), room)

    def trained(self, rows: Any) -> Train:
        """Rows of messages that it has, or sends, as a train."""
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

    def barrier_has_come(self, when: int) -> None:
        """A barrier has come that overtakes: a control action of this instant lets it."""
        self._kernel.at_turn(when, Rank.CHECKPOINT, self.hurry, self.number)

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

    # -- windows ---------------------------------------------------------------------------------------------

    def served_mark(self, when: int) -> None:
        """A marker has been served."""
        self.catch_up()
        p = self._plane.p
        wire, marked = self.inputs[p.marked.source], p.marked
        if self.passed is not None:
            columns = {NUMBER: p.marked_number, CHANNEL: marked.source}
            self.passed(self, single(when, 0, mark=marked.mark, **columns))
        if self.notes is not None:
            sender = {SENDER: wire.up.number + 1}
            self.note_marks(single(marked.time, 0, marked.created, mark=marked.mark, **sender))
        source = self._input(wire)
        self._last_mark = single(when, 0, key=source, mark=p.marked.mark)
        self._stall(self._fire(when), when)

    def window_is_full(self, when: int) -> None:
        """A tuple has filled its window."""
        self.catch_up()
        self._last_mark = None
        window = self.component.window
        assert window is not None
        assert window.every is not None
        self.c.fills = window.every
        self._stall(self._fire(when), when)

    def _stall(self, duration: int, when: int) -> None:
        if duration:
            self.busy.add(when, duration)

    def _tick_turn(self, number: int) -> None:
        self.catch_up()
        super()._tick_turn(number)

    def end_batch(self, now: int) -> None:
        self.catch_up()
        super().end_batch(now)

    def _end_windows(self, ends: dict[int, int | None], now: int, epoch: int) -> int:
        self.catch_up()
        return super()._end_windows(ends, now, epoch)

    def _send_window(self, train: Train) -> tuple[list[Sent], int]:
        plane, ffi = self._plane, self._plane.ffi
        plane.valued = True
        plane.have_messages(train.n * self._copies)
        give_targets(self.outlets, plane, self._context.draws, train, Children())  # type: ignore[arg-type]
        epoch = 0 if train.epoch is None else int(train.epoch[0])
        assert train.value is not None
        columns = [ffi.from_buffer("int64_t[]", column) for column in (train.uid, train.key, train.value)]
        plane.lib.plane_send(plane.p, self.number, int(train.time[0]), train.n, *columns, epoch)
        packing = self._serialising(train.n, columns)
        if not self.shows_sent:
            return [], packing
        shown = [outlet.sent(train, Children()) for outlet in self.outlets]  # type: ignore[attr-defined]
        return [sent for each in shown for sent in each], packing

    def _serialising(self, n: int, columns: list[Any]) -> int:
        """How long it takes to serialise what a window has put out (ns)."""
        plane = self._plane
        return int(plane.lib.plane_packing(plane.p, self.number, n, *columns[:2])) if self.c.serialises else 0

    def _pass_on(self, mark: Train) -> None:
        assert mark.mark is not None
        self._plane.have_messages(self._copies)
        self._plane.lib.plane_broadcast(self._plane.p, self.number, int(mark.time[0]), int(mark.mark[0]), 0)

    @property
    def _copies(self) -> int:
        """Messages that a tuple becomes that it sends to all, at most."""
        return sum(len(tasks) * len(tasks[0]) for tasks in (outlet.channels for outlet in self.outlets))

    def _cancel_markers(self) -> None:
        super()._cancel_markers()
        self.windows.waiting.clear()

    # -- life ------------------------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        return self.up and not self.c.closed

    @property
    def silent(self) -> bool:
        return bool(self.c.silent)

    @silent.setter
    def silent(self, silent: bool) -> None:
        self.c.silent = silent

    @property
    def worked(self) -> int:
        """Tuples that it has worked on so far."""
        return int(self.c.worked)

    @worked.setter
    def worked(self, _: int) -> None:
        pass

    def occupy(self, duration: int) -> None:
        self.busy.add(self._kernel.now, duration)

    def stop_until(self, moment: int) -> int:
        now = self._kernel.now
        shift = max(0, moment - max(now, int(self.c.stopped_until)))
        self.put_off += shift
        self._plane.lib.plane_stop(self._plane.p, self.number, now, moment)
        self.c.acks.since += shift
        return shift

    def _emptied(self, messages: Any) -> list[Train]:
        """What is in a list, which is empty then."""
        train = self._plane.listed(messages, self.number)
        self.note_marks(train)
        plane = self._plane
        plane.lib.plane_lose_list(plane.p, self.number, plane.ffi.addressof(messages), self._kernel.now)
        return [train] if train.n else []

    def crash(self, keep_queue: bool = False) -> list[Train]:
        was_up, c = self.up, self.c
        c.repeats_until = NEVER
        lib, p = self._plane.lib, self._plane.p
        self._stop()
        lost: list[Train] = []
        self.gate.stopped = keep_queue
        if keep_queue:
            lib.plane_keep_aside(p, self.number, self._kernel.now)
            c.closed = 0
        else:
            lost = self._emptied(c.queue) + self._emptied(c.aside)
            if was_up and not self.gate.from_log:
                lost += self._emptied(c.held)
            c.closed, self.gate.stopped = 0, False
            self.windows.crash()
        self.up = False
        c.stopped_until, c.free_at = 0, self._kernel.now
        return lost

    def close(self) -> None:
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
        assert isinstance(peer, FlowBolt)
        plane, ticks = self._plane, iter(sorted(peer.windows.waiting))
        for train in peer.queue.trains():
            self._context.say.reopened(self, without_markers(train))
        plane.have_messages(peer.c.queue.n + 1)
        place = -1
        while (
            place := plane.lib.plane_copy(plane.p, peer.number, self.number, place + 1, self._kernel.now)
        ) >= 0:
            rank, _ = peer._turns[plane.p.marked.uid]
            if rank == Rank.WINDOW:
                self.windows.tick(next(ticks))
                plane.have_messages(peer.c.queue.n + 1)
