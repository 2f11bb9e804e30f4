"""The queue of a server that shares cores with others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tideover.sim.fifo import departures
from tideover.sim.node import Marker
from tideover.sim.pace import Pace, SharedOccupancy
from tideover.sim.queue import Queue, Service
from tideover.sim.train import Ints, Train


class SharedQueue(Queue):
    """The same queue in the server's own time (see `tideover.sim.pace`): departures are given, kept and
    compared in it, and are turned into instants when the tuples leave.
    """

    def __init__(self, service: Service, busy: SharedOccupancy, clock: Callable[[], int]) -> None:
        super().__init__(_InOwnTime(service, busy.pace), busy, clock)
        self._pace = busy.pace
        self._departures = self._depart
        self.given: Callable[[Ints, Ints], None] | None = None
        """Is told of departures that are given, and of the service of each, in own time."""

    def _depart(self, arrival: Ints, service: Ints, free_at: int) -> Ints:
        if self.given is None:
            return departures(self._pace.work(arrival), service, free_at)
        takes = service.copy()
        done = departures(self._pace.work(arrival), service, free_at)
        self.given(done, takes)
        return done

    @property
    def next_departure(self) -> int | None:
        """Not before (ns): the pace may be slower than a core of its own."""
        return self.not_before(int(self._served[0][1][0])) if self._served else None

    def not_before(self, work: int) -> int:
        """An instant (ns) before which the server's own time can't come to ``work``."""
        return self._pace.end + max(0, work - self._pace.reached)

    @property
    def empty(self) -> bool:
        """Whether nothing waits or is served."""
        return not (self._served or self._inbox or self._arrived)

    @property
    def serves(self) -> bool:
        """Whether anything has its departure."""
        return bool(self._served)

    @property
    def decided(self) -> bool:
        """Whether all that waits has its departure."""
        return not (self._inbox or self._arrived or self._trigger_at is not None)

    def coming(self) -> list[tuple[Ints, Ints]]:
        """Of what waits without a departure, ahead of all control markers: arrivals (ns) and demand (ns)."""
        found = list(self._inbox)
        for item in self._arrived:
            if isinstance(item, Marker):
                break
            found.append(item)
        return [(train.time, self._service.demand(train)) for train in found]

    def demands(self, train: Train) -> Ints:
        """What each tuple asks for (ns)."""
        return self._service.demand(train)

    def move(self, now: int, let_out: Callable[[int], None]) -> None:
        super().move(self._pace.reached, lambda _: let_out(now))

    def postpone(self, shift: int, in_service: bool) -> None:
        """Own time stands still while the process is stopped: nothing is later in it."""

    def _begun(self, train: Train, done: Ints, now: int | None = None) -> bool:
        begun = int(done[0]) - int(self._service.demand(train.pick(slice(0, 1)))[0])
        return begun <= self._pace.reached


class _InOwnTime:
    """A server's service, told of departures as instants."""

    def __init__(self, service: Service, pace: Pace) -> None:
        self._service, self._pace = service, pace
        self.demand, self.serve = service.demand, service.serve
        self.take_back, self.find_trigger = service.take_back, service.find_trigger

    def process(self, train: Train, arrival: Ints) -> None:
        self._service.process(train.replace(time=self._pace.moments(train.time)), arrival)

    def fire(self, now: int) -> int:
        return self._service.fire(int(self._pace.moments(np.array([now], np.int64))[0]))
