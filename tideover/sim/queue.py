"""The first-in first-out queue of a server: what has arrived there and has not departed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tideover.sim.fifo import departures
from tideover.sim.line import NONE, PLACELESS, take_places
from tideover.sim.node import Marker
from tideover.sim.occupancy import Occupancy
from tideover.sim.train import Ints, Train, join


class Service(Protocol):
    """What a queue asks its server."""

    def demand(self, train: Train) -> Ints:
        """Service that each tuple asks for (ns), a fresh array."""

    def serve(self, train: Train) -> Ints:
        """The same, now that it is given to them."""

    def take_back(self, train: Train) -> None:
        """Tuples that were given service wait again: undo what was counted of it."""

    def process(self, train: Train, arrival: Ints) -> None:
        """The tuples of ``train`` are done; ``train.time`` is when."""

    def find_trigger(self, train: Train) -> int | None:
        """Row of the first tuple that is a trigger; None: there is none."""

    def fire(self, now: int) -> int:
        """The trigger has departed at ``now``; returns for how long it keeps the server busy (ns)."""


class InService(NamedTuple):
    """The tuple in service, when it is done (ns), and whether it is a trigger."""

    train: Train
    done: int
    triggers: bool


class Queue:
    """One tuple at a time, in the order of arrival.

    What has arrived waits behind the control markers that came before it; without markers ahead it gets its
    departure at once (the future of a FIFO is known), and leaves when it comes. A *trigger* is a tuple after
    whose departure something happens that may occupy the server (the end of a window carried by data):
    tuples behind it get no departure before it has happened.

    ``serve_markers`` lets the first control marker act, now or when its turn comes.
    """

    serve_markers: Callable[[], None]

    def __init__(self, service: Service, busy: Occupancy, clock: Callable[[], int]) -> None:
        self._service = service
        self._busy = busy
        self._clock = clock
        self._departures = departures
        self._arrived: deque[Train | Marker] = deque()
        """What came last: arrivals, and the control markers that those behind them have to wait for."""
        self._inbox: deque[Train] = deque()
        self._served: deque[tuple[Train, Ints]] = deque()
        self._trigger_at: int | None = None
        self.starts: list[Ints] | None = None
        """When tuples begin service, noted while somebody wants to know."""
        self.bounded = False
        """It has a bound: what waits takes a place, what has been in service once does not."""
        self.waits_to_fire = False
        """Triggers that have departed do nothing until they are told to (``fire``)."""
        self._resumes: int | None = None
        """Departure of the tuple that was in service when the process was stopped."""

    # -- what is in it ---------------------------------------------------------------------------------------

    def line(self) -> list[Train | Marker]:
        """Everything that has arrived and not departed, control markers too, in order; ``time`` is the
        arrival.
        """
        return [*(train for train, _ in self._served), *self._inbox, *self._arrived]

    def trains(self) -> list[Train]:
        """The same without the control markers."""
        return [item for item in self.line() if isinstance(item, Train)]

    def undecided(self) -> list[Train]:
        """What has arrived ahead of the first control marker, and has no departure yet."""
        ahead = takewhile(lambda item: isinstance(item, Train), self._arrived)
        return [*self._inbox, *(item for item in ahead if isinstance(item, Train))]

    def in_service(self) -> list[Train]:
        """What has got its departure."""
        return [train for train, _ in self._served]

    def demand(self, *trains: Train) -> int:
        """How much service tuples ask for (ns)."""
        return sum(int(self._service.demand(train).sum()) for train in trains)

    @property
    def clear_ahead(self) -> bool:
        """Whether nothing is ahead of the first control marker."""
        return not (self._inbox or self._served or self.lets_in)

    @property
    def lets_in(self) -> bool:
        """Whether something has arrived that no control marker holds back."""
        return bool(self._arrived) and isinstance(self._arrived[0], Train)

    @property
    def holds_back(self) -> bool:
        """Whether what comes behind the control marker at the head is data."""
        return len(self._arrived) > 1 and isinstance(self._arrived[1], Train)

    @property
    def next_departure(self) -> int | None:
        """When the next tuple leaves (ns); None: none is known to leave."""
        return int(self._served[0][1][0]) if self._served else None

    # -- what comes in ---------------------------------------------------------------------------------------

    def append(self, item: Train | Marker) -> None:
        """Put arrivals, or a control marker, at the end."""
        self._arrived.append(item)

    def refill(self, trains: list[Train]) -> None:
        """Put tuples at the end as if they arrived now: a copy of another task's queue, say."""
        now = self._clock()
        for train in trains:
            self._arrived.append(train.at(now))

    def put_first(self, marker: Marker) -> None:
        """Put a control marker ahead of all that waits, behind the tuple in service."""
        self.take_back()
        self._arrived.appendleft(marker)

    def markers_first(self) -> None:
        """Put all control markers ahead of what waits, behind the tuple in service."""
        self.take_back()
        self._arrived = deque(sorted(self._arrived, key=lambda item: not isinstance(item, Marker)))

    def pass_marker(self) -> None:
        """The first control marker's turn has come."""
        self._arrived.popleft()

    def take_last(self, n: int) -> list[Train]:
        """Take out the last n tuples, or as many of them as have come since the last control marker."""
        out: list[Train] = []
        while n and self._arrived and isinstance(train := self._arrived[-1], Train):
            self._arrived.pop()
            if train.n > n:
                rest, train = train.split(train.n - n)
                self._arrived.append(rest)
            out.insert(0, train)
            n -= train.n
        return out

    def drop_markers(self) -> None:
        """Take all control markers out."""
        self._arrived = deque(item for item in self._arrived if isinstance(item, Train))

    # -- what goes out ---------------------------------------------------------------------------------------

    def move(self, now: int, let_out: Callable[[int], None]) -> None:
        """Serve up to ``now``; ``let_out(now)`` is called after each trigger, which may have posted
        something.
        """
        while self._arrived and isinstance(self._arrived[0], Train):
            train = self._arrived.popleft()
            assert isinstance(train, Train)
            self._inbox.append(train)
        while True:
            if self._inbox:
                self._schedule()
            if self._served:
                self._release(now)
            if self._trigger_at is None or self._trigger_at > now:
                return
            if self.waits_to_fire:
                return
            self.fire(now, let_out)

    @property
    def trigger_at(self) -> int | None:
        """When the trigger that got its departure last departs, or has departed; None: there is none."""
        return self._trigger_at

    def fire(self, now: int, let_out: Callable[[int], None]) -> None:
        """The trigger has departed: do what follows."""
        assert self._trigger_at is not None
        at, self._trigger_at = self._trigger_at, None
        stall = self._service.fire(at)
        self._busy.free_at = at + stall
        self._busy.total += stall
        let_out(now)

    def _schedule(self) -> None:
        """Give departures to the inbox, up to the first trigger."""
        busy = self._busy
        while self._inbox and self._trigger_at is None:
            train = self._inbox.popleft()
            row = self._service.find_trigger(train)
            if row is not None and row + 1 < train.n:
                train, rest = train.split(row + 1)
                self._inbox.appendleft(rest)
            service = self._service.serve(train)
            busy.total += int(service.sum())
            free_at = busy.free_at
            done = self._departures(train.time, service, free_at)
            if self.starts is not None:
                start = np.empty(train.n, np.int64)
                start[0], start[1:] = free_at, done[:-1]
                np.maximum(start, train.time, out=start)
                taking = take_places(train)
                self.starts.append(start if taking is None else start[taking])
            busy.free_at = int(done[-1])
            self._served.append((train, done))
            if row is not None:
                self._trigger_at = busy.free_at

    def _release(self, now: int) -> None:
        """Hand on what departs at or before ``now``."""
        served = self._served
        trains: list[Train] = []
        times: list[Ints] = []
        while served and served[0][1][0] <= now:
            train, done = served.popleft()
            if done[-1] > now:
                due = int(done.searchsorted(now, "right"))
                train, later = train.split(due)
                served.appendleft((later, done[due:]))
                done = done[:due]
            trains.append(train)
            times.append(done)
        if trains:
            train = join(trains)
            departed = times[0] if len(times) == 1 else np.concatenate(times)
            self._service.process(train.replace(time=departed), train.time)

    def save(self) -> Callable[[], None]:
        """Remember how it is; returns what brings that back."""
        kept = self._arrived.copy(), self._inbox.copy(), self._served.copy(), self._trigger_at, self._resumes
        free_at, total = self._busy.free_at, self._busy.total

        def restore() -> None:
            self._arrived, self._inbox, self._served, self._trigger_at, self._resumes = kept
            self._busy.free_at, self._busy.total = free_at, total

        return restore

    def unload(self) -> tuple[list[Train], InService | None]:
        """Take out what waits ahead of the first control marker, and what is in service, with when it is
        done. Nothing else has its departure (``take_back``).
        """
        waiting: list[Train] = []
        while self._arrived and isinstance(train := self._arrived[0], Train):
            waiting.append(train)
            self._arrived.popleft()
        if not self._served:
            return waiting, None
        ((train, done),) = self._served
        self._served.clear()
        at = int(done[0])
        triggers, self._trigger_at = self._trigger_at == at, None
        return waiting, InService(train, at, triggers)

    def load(self, waiting: Train | None, in_service: InService | None) -> None:
        """Put back what waits ahead of the first control marker, and what is in service."""
        if waiting is not None:
            self._inbox.append(waiting)
        if in_service is not None:
            self._served.append((in_service.train, np.array([in_service.done])))
            if in_service.triggers:
                self._trigger_at = in_service.done

    def fire_at(self, moment: int) -> None:
        """A trigger departs at this moment."""
        self._trigger_at = moment

    def withdraw(self, chosen: Callable[[Train], npt.NDArray[np.bool_]]) -> list[Train]:
        """Take the chosen tuples out of what waits behind the control marker that acts now; returns them in
        order.
        """
        out: list[Train] = []
        left: deque[Train | Marker] = deque()
        for item in self._arrived:
            if isinstance(item, Train):
                mask = chosen(item)
                out.append(item.pick(mask))
                item = item.pick(~mask)
            if isinstance(item, Marker) or item.n:
                left.append(item)
        self._arrived = left
        return [train for train in out if train.n]

    def clear(self) -> list[Train]:
        """Destroy queue and service, but for control markers; returns what was there."""
        if self.bounded and self.has_begun:
            first = self._served[0][0]
            begun = first.column(PLACELESS).copy()
            begun[0] = 1
            self._served[0] = first.adding(**{PLACELESS: begun}), self._served[0][1]
        lost = self.trains()
        self._arrived = deque(item for item in self._arrived if isinstance(item, Marker))
        self._inbox.clear()
        self._served.clear()
        self._trigger_at = None
        self._busy.drop(self._clock())
        return lost

    # -- departures that change ------------------------------------------------------------------------------

    def postpone(self, shift: int, in_service: bool) -> None:
        """All departures are ``shift`` ns later; ``in_service``: the first of them is of a tuple in
        service.
        """
        self._served = deque((train, done + shift) for train, done in self._served)
        self._resumes = int(self._served[0][1][0]) if in_service else None
        if self._trigger_at is not None:
            self._trigger_at += shift

    @property
    def has_begun(self) -> bool:
        """Whether a tuple is in service now."""
        return bool(self._served) and self._begun(*self._served[0])

    def cancel_trigger(self) -> None:
        """The last tuple with a departure triggers nothing after all."""
        self._trigger_at = None

    def _begun(self, train: Train, done: Ints, now: int | None = None) -> bool:
        """Whether the first of these tuples, which are given departures, is in service."""
        begun = int(done[0]) - int(self._service.demand(train.pick(slice(0, 1)))[0])
        return begun <= (self._clock() if now is None else now) or int(done[0]) == self._resumes

    def begins(self, now: int) -> Ints:
        """When those tuples begin service that have got their departures and are not in service at
        ``now``.
        """
        found = [NONE]
        for train, done in self._served:
            start = done - self._service.demand(train)
            taking = take_places(train)
            waits = np.ones(train.n, np.bool_) if taking is None else taking
            if len(found) == 1 and self._begun(train, done, now):
                waits[0] = False
            found.append(start[waits])
        return np.concatenate(found)

    def take_back(self, now: int | None = None) -> None:
        """Take back the departures of all tuples but the one in service: they wait again."""
        served, waiting = list(self._served), list(self._inbox)
        self._served.clear()
        self._inbox.clear()
        if served:
            (train, done), behind = served[0], [train for train, _ in served[1:]]
            first = train.pick(slice(0, 1))
            if self._begun(train, done, now):
                self._busy.free_at = int(done[0])
                self._served.append((first, done[:1]))
                train = train.pick(slice(1, None))
            else:
                self._busy.free_at = int(done[0]) - int(self._service.demand(first)[0])
            back = [train, *behind] if train.n else behind
            for train in back:
                self._busy.total -= int(self._service.demand(train).sum())
                self._service.take_back(train)
            if back:
                self._trigger_at = None  # it was the last of them
            waiting = back + waiting
        self._arrived.extendleft(reversed(waiting))
