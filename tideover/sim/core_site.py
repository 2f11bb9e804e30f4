"""Servers that share the cores of a host among coupled nodes, tuple by tuple.

Whenever one becomes busy or idle, all that are busy change their speed: min(1, cores / busy) of a core's.
All are equally fast, so one broken line (`tideover.sim.pace`) has the work that each of them does, and of
those that are busy the one is done first whose work ends first on the line. Exact, up to the rounding of
instants. Who is blocked is not busy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from math import ceil

import numpy as np

from tideover.sim.agenda import FOREVER, WORK, Agenda
from tideover.sim.backpressure import ServerSite
from tideover.sim.cores import Cores
from tideover.sim.pace import SharedOccupancy
from tideover.sim.server import Server
from tideover.sim.sharing import LEAST, Corner
from tideover.sim.site import Member


class CoreSite:
    """The cores of a host."""

    def __init__(self, agenda: Agenda, cores: Cores) -> None:
        self._agenda, self._cores = agenda, cores
        self._corner = cores.line.last
        self._corners: list[Corner] = []
        self._jobs: list[tuple[float, int, SharedSite]] = []
        """Of all that are busy: the work on the line at which they are done."""
        self._speed, self._since = self._corner.speed, agenda.now
        self._looks = 0

    def work(self) -> float:
        """What a server that was always busy has done up to now (ns)."""
        return self._work(self._agenda.now)

    def _work(self, now: int) -> float:
        if now > self._since and self._speed != self._corner.speed:
            self._corner = self._turn()
            self._corners.append(self._corner)
        return self._corner.at(now)

    def _turn(self) -> Corner:
        """Where the speed changed last."""
        if self._speed == self._corner.speed:
            return self._corner
        return Corner(float(self._since), self._corner.at(self._since), self._speed)

    def begin(self, site: SharedSite, done: float) -> None:
        """A server is busy up to this work on the line."""
        heappush(self._jobs, (done, site.number, site))
        self._change()

    def _change(self) -> None:
        self.work()
        self._speed, self._since = self._cores.speed(len(self._jobs)), self._agenda.now
        self._looks += 1
        if self._jobs:
            done, number, _ = self._jobs[0]
            when = max(self._agenda.now, ceil(self._turn().when(done) - LEAST))
            self._agenda.at(when, number, WORK, self._end, self._looks)

    def _end(self, look: int) -> None:
        if look == self._looks:
            _, _, site = heappop(self._jobs)
            self._change()
            site.finished()

    def close(self, now: int) -> None:
        """All is done up to this instant."""
        self._work(now)
        self._cores.passed(now, self._corners)


class SharedSite(ServerSite):
    """A server that shares cores. Its own time (see `tideover.sim.pace`) is the work on the line, less what
    that was ahead of it when it went on last.
    """

    cores: CoreSite

    def __init__(self, agenda: Agenda, member: Member) -> None:
        super().__init__(agenda, member)
        assert isinstance(self.node.busy, SharedOccupancy)
        self._busy = self.node.busy
        self._own_free = self._busy.free_at
        self._stands = self._busy.stopped_until > agenda.now

    def take_over(self) -> None:
        pace = self._busy.pace
        self._ahead = pace.ahead if pace.held is None else self.cores.work() - pace.held
        self._stood = self._own()
        super().take_over()
        if self._stands:
            self.agenda.at(self._busy.stopped_until, self.number, WORK, self._resume)
        elif self._current is None and self._free_at == FOREVER:
            self._work_up_to(self._own_free)

    def _own(self) -> float:
        return self.cores.work() - self._ahead

    def _free_from(self) -> int:
        self._own_free = self._busy.free_at
        if self._own_free > self._stood + LEAST:
            return FOREVER
        if self._stands:
            return self._busy.stopped_until
        return int(self._busy.pace.moments(np.array([self._own_free], np.int64))[0])

    def _resume(self, _: None) -> None:
        """Its process, which was stopped, goes on."""
        self._stands = False
        self._ahead = self.cores.work() - self._stood
        if self._current is not None or self._free_at == FOREVER:
            self._work_up_to(self._own_free)
        else:
            self.go_on()

    def _start(self, row: int) -> None:
        begin = max(self._own_free, round(self._own()))
        self._serve(row, begin + self._service[row])

    def _serve(self, row: int, done: int) -> None:
        self._current = row, done
        self._free_at = FOREVER
        if not self._stands:
            self._work_up_to(done)

    def _work_up_to(self, done: int) -> None:
        self._own_free = done
        self.cores.begin(self, done + self._ahead)

    def finished(self) -> None:
        """What it was busy with is done."""
        self._free_at = self.agenda.now
        self._has_turn()
        if self._current is None:
            self.go_on()
        else:
            self._current = self._current[0], self.agenda.now
            self._end(None)

    def _busy_until(self) -> int:
        return self._own_free

    def _fires_at(self, reached: int) -> int:
        return self._own_free


def server_site(agenda: Agenda, member: Member) -> ServerSite:
    """The site of a server, which has a core of its own or shares those of its host."""
    return ServerSite(agenda, member) if member.cores is None else SharedSite(agenda, member)


def share(
    agenda: Agenda, members: Sequence[Member], sites: Mapping[Server, ServerSite]
) -> Collection[CoreSite]:
    """Let servers use the cores of their hosts, which are returned."""
    found: dict[Cores, CoreSite] = {}
    for member in members:
        if member.cores is not None:
            assert isinstance(member.node, Server)
            site = sites[member.node]
            assert isinstance(site, SharedSite)
            site.cores = found.setdefault(member.cores, CoreSite(agenda, member.cores))
    return found.values()
