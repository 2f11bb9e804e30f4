"""A spout among those that are coupled, call by call: it is called as long as its line is short enough."""

from __future__ import annotations

import numpy as np

from tideover.sim.agenda import WORK, Agenda
from tideover.sim.site import AHEAD, Member, Message, Site
from tideover.sim.train import Ints, Train


class SpoutSite(Site):
    """A spout among those that are coupled."""

    def __init__(self, agenda: Agenda, member: Member) -> None:
        super().__init__(agenda, member)
        self._does = member.does
        self._calls = self._does.calls()
        self._times: list[int] = []
        self._emitted = 0
        self._most = self._does.room()
        self._expects = False
        self._unblocked = 0
        self._origin: list[int] = []

    def start(self) -> None:
        """Its next call."""
        if self._does.feed is not None:
            for train in self._does.feed:
                self._feed(train)
        else:
            self._expect(self._calls.since)

    def _feed(self, train: Train) -> None:
        """Tuples that it emits whatever else happens."""
        if train.time[0] <= self.agenda.until:
            times = train.time[: int(train.time.searchsorted(self.agenda.until, "right"))].tolist()
            self._plan_roots(self._does.as_emitted(train.pick(slice(0, len(times)))))
            for when in times:
                self.agenda.at(when, self.number, WORK, self._fed)

    def _plan_roots(self, train: Train) -> None:
        if self._does.stamped:
            self.pool.add(train)
            return
        emitted = self.agenda.emitted
        origin = np.arange(len(emitted), len(emitted) + train.n, dtype=np.int64)
        emitted += [0] * train.n
        self._origin += origin.tolist()
        self.pool.add(train, origin)

    def _fed(self, _: None) -> None:
        self._emit()
        self.pump()

    def _emit(self) -> None:
        row = self._emitted
        self._emitted += 1
        if not self._does.stamped:
            self.agenda.emitted[self._origin[row]] = self.agenda.now
        self.make(self.of(row))

    def _expect(self, since: int) -> None:
        """Its next call, unless it sends what it has sent before, or its line is too long."""
        if self._expects or self._posted < self._posts or not (self.may_go_on and self.node.up):
            return
        if self._emitted < self._most and (when := self._calls.next(since)) is not None:
            self._expects = True
            self.agenda.at(when, self.number, WORK, self._call)

    def _post(self, message: Message) -> None:
        super()._post(message)
        if self._does.feed is None:
            self._expect(max(self._unblocked, self._calls.since))

    def _call(self, _: None) -> None:
        self._expects = False
        now = self.agenda.now
        self._times.append(now)
        if self._emitted == self.pool.n and (train := self._does.peek(self._emitted, AHEAD)).n:
            self._plan_roots(train)
        if self._emitted < self.pool.n:
            self._emit()
            self.pump()
        self._expect(now)

    def go_on(self) -> None:
        self._unblocked = max(self.agenda.now, self.node.busy.free_at)
        if self._does.feed is None:
            self._expect(self._unblocked)

    def _settle(self, reached: int, emitted: Ints) -> None:
        self.node.outbox.let_out(reached, self._posted)
        if self._does.feed is not None:
            self.node.flow(reached)
        else:
            self._does.called(np.array(self._times, np.int64), self._unblocked)
