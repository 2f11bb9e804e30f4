"""What a bolt's task has done, as the data plane logs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.operators.keyed_sums import KeyedSums, RunningSums
from tideover.models.operators.state import Effects
from tideover.models.operators.window_ids import STREAM
from tideover.models.runtime.context import Context
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import BoltView
from tideover.models.runtime.windowing import WindowedTask
from tideover.models.runtime.wire import SENDER, Wire
from tideover.sim.plane.plane import CHANNEL, NUMBER, RECOVERY, Plane, Rows
from tideover.sim.train import Ints, Train

KEYS = 4_096
"""Most keys of which the data plane sums up what states take in."""
FEW, MOST = 256, 32_768
"""Tuples behind these sums that are kept until somebody looks: at first, and at most."""


class LoggedBolt(WindowedTask):
    """A bolt's task as far as it tells what it has done: its state takes that in, and others hear of it, when
    somebody catches up.
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
        super().__init__(context, component, index, replica, host, plane, number)
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
        self.taken: Callable[[Effects], None] | None = None
        """Who wants to know what was summed up of tuples that are not logged; None: nobody."""
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
        """The marks among these have come."""
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
        effects = Effects(uid[:n].copy(), again)
        self._state.take_in(sums, effects)
        sums[:] = 0
        if self.taken is not None:
            self.taken(effects)

    @property
    def _logical(self) -> Ints:
        """Numbers of the logical tasks at the other ends of its inputs."""
        return np.array([self.input_of(wire) for wire in self.inputs], np.int64)

    def _sent(self, train: Train) -> list[Sent]:
        if self._state is not None or not self.outlets or not self.shows_sent or self.silent:
            return []
        children = self._bolt.children(self.component.name, self._context.draws, train)
        return [sent for outlet in self.outlets for sent in outlet.sent(train, children)]
