"""A server of a series of bounded queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tideover.sim.column import Column
from tideover.sim.fifo import departures
from tideover.sim.line import NONE, places, take_places
from tideover.sim.link import Channel
from tideover.sim.queue import InService
from tideover.sim.server import Server
from tideover.sim.site import Member
from tideover.sim.stage import ENOUGH, FOREVER, NEVER, PLAN, Stage, Stamps
from tideover.sim.train import Ints, Train, join, merge

MANY = 8 * PLAN
"""The same where tuples are turned into nothing."""


class ServerStage(Stage):
    """A server in series."""

    def __init__(self, member: Member, now: int, until: int) -> None:
        super().__init__(member, now, until)
        assert isinstance(member.node, Server)
        self.node: Server = member.node
        self._does = member.does
        self.arrivals = Column()
        self.freed = Column()
        self._coming: deque[Train] = deque()
        """What comes over its channels, and is not planned yet."""
        self._trains: list[Train] = []
        self._takes = Column()
        self._placeless = False
        """Whether some of what is planned takes no place."""

    def take_over(self) -> None:
        """What waits in the queue and is in service."""
        node = self.node
        node.queue.take_back(self._now)
        waiting, self._in_service = node.queue.unload()
        self._marker_ahead = bool(node.queue.line())
        self._countdown = self._does.until_trigger()
        self._free_at = max(node.busy.free_at, self._now)
        self._waiting = deque(waiting)
        for train in waiting:
            self.arrivals.add(train.time)
        self._waited = self.arrivals.n
        self._fixed = 1 if self._in_service is None else 2
        there = [*waiting, *node.queue.trains(), *(t for channel in node.inputs for t in channel.wire)]
        self.taken = sum(map(places, there))
        """Places."""

    def comes(self, channel: Channel, train: Train) -> None:
        self._coming.append(self._does.receive(channel, train))

    def come(self) -> None:
        """What is on the wires, and will arrive by ``until``."""
        known = []
        for channel in self.node.inputs:
            for train in channel.wire:
                if train.time[0] <= self.until:
                    due = slice(0, int(train.time.searchsorted(self.until, "right")))
                    known.append(self._does.receive(channel, train.pick(due)))
        if known:
            self._coming.append(merge(known))
            self.arrivals.add(self._coming[0].time)

    def begin(self) -> None:
        """What is in service goes on."""
        if self._in_service is not None:
            train, at, triggers = self._in_service
            self._plan(train, 1, np.zeros(1, np.int64))
            self._begin.add(np.array([NEVER]))
            self.done.add(np.array([at]))
            self._free_at = at
            if triggers:
                self.last = 1

    @property
    def trigger_at(self) -> int:
        """When a trigger departs."""
        if self.last is None or self.last >= self.done.n:
            return FOREVER
        return int(self.done.values[self.last])

    def save(self) -> Callable[[], None]:
        restore, freed = super().save(), self.freed.n

        def also() -> None:
            restore()
            self.freed.n = freed

        return also

    def if_in_time(self, most: int) -> Ints:
        """When those begin their service of which it is not known yet when they come, if each comes before
        its turn; at most so many, as far as they can be planned.
        """
        self._plan_up_to(self.done.n + min(most, MANY))
        last = min(self._work.n, self.done.n + max(0, most))
        if self.last is not None:
            last = min(last, self.last + 1)
        if self._placeless or last <= self.done.n:
            return NONE
        work = self._work.values[self.done.n : last]
        begins: Ints = self._free_at + work.cumsum() - work
        return begins

    def in_time(self, begins: Ints) -> int:
        """How many of them are known to come in time."""
        comes = self.arrivals.values[self.done.n - self._fixed :][: len(begins)]
        late = comes > begins[: len(comes)]
        return int(late.argmax()) if late.any() else len(comes)

    def look_ahead(self) -> bool:
        known = self._fixed + self._known
        return self._plan_up_to(max(self.done.n + ENOUGH, known) if self.ways else known)

    def _plan_up_to(self, wanted: int) -> bool:
        """Plan so many items, if there are so many."""
        most = PLAN if self.ways else MANY
        planned = False
        while self._work.n < wanted and self.done.values[-1] <= self.until and self.last is None:
            trains: list[Train] = []
            n = 0
            while n < most and (train := self._next(most - n)) is not None:
                trains.append(train)
                n += train.n
            if not n:
                break
            planned = True
            self._plan_tuples(join(trains))
        return planned

    def _plan_tuples(self, train: Train) -> None:
        self._trains.append(train)
        self._find_trigger(train)
        taking = take_places(train)
        if taking is None:
            self._takes.fill(1, train.n)
        else:
            self._takes.add(taking.astype(np.int64))
            self._placeless = True
        self._plan(train, train.n, self._does.demand(train))

    @property
    def _known(self) -> int:
        """So many wait, or have arrived by ``until``, as far as that is known."""
        arrivals = self.arrivals.values
        if not len(arrivals) or arrivals[-1] <= self.until:
            return len(arrivals)
        return max(self._waited, int(arrivals.searchsorted(self.until, "right")))

    def _next(self, most: int) -> Train | None:
        """The next tuples, at most so many."""
        if self._waiting:
            return _first(self._waiting, most)
        if self._marker_ahead or not self._coming:
            return None
        return _first(self._coming, most)

    def _find_trigger(self, train: Train) -> None:
        rows = NONE
        data = np.ones(train.n, np.bool_)
        if train.mark is not None:
            rows, data = np.flatnonzero(train.mark != 0), train.mark == 0
        found = [int(rows[0])] if len(rows) else []
        if self._countdown is not None:
            counted = np.flatnonzero(data)
            if len(counted) >= self._countdown:
                found.append(int(counted[self._countdown - 1]))
            self._countdown -= len(counted)
        if found:
            self.last = self._work.n + min(found)

    def _ready(self) -> int:
        if self.done.values[-1] > self.until:
            return 0
        return min(self._work.n, self._fixed + self._known)

    def _serve(self, first: int, last: int, room: Ints) -> None:
        np.maximum(room, self.arrivals.values[first - self._fixed : last - self._fixed], out=room)
        free_at = self._free_at
        done = departures(room, self._work.values[first:last].copy(), free_at)
        begin = room
        begin[0] = max(int(room[0]), free_at)
        np.maximum(begin[1:], done[:-1], out=begin[1:])
        self._begin.add(begin)
        self.done.add(done)
        self._free_at = int(done[-1])
        if self._placeless:
            begin = begin[self._takes.values[first - self._fixed : last - self._fixed] > 0]
        self.freed.add(begin)

    def _settle(self, reached: int, done: int, stamps: Stamps, unblocked: int = 0) -> None:
        node, fixed, does = self.node, self._fixed, self._does
        node.outbox.let_out(reached)
        whole = join(self._trains) if self._trains else None
        begun = self._begin.until(reached) - fixed
        if begun > 0:
            assert whole is not None
            node.busy.total += int(does.serve(whole.pick(slice(0, begun))).sum())
        in_service = self._process(whole, done + 1 - fixed, begun, stamps)
        waiting = self._put_back_queue(whole, begun, reached, stamps)
        node.queue.load(waiting, in_service)
        if begun > 0:
            node.busy.free_at = int(self.done.values[begun + fixed - 1])
        node.busy.free_at = max(node.busy.free_at, unblocked)  # for what waits behind a marker

    def _process(self, whole: Train | None, done: int, begun: int, stamps: Stamps) -> InService | None:
        """So many items (with the one that was in service: one more) are done; returns what is in service."""
        fixed, now, came = self._fixed, [], []
        if self._in_service is not None:
            if done < 0:
                return self._in_service
            train, at, _ = self._in_service
            now.append(train.at(at))
            came.append(train.time)
        if done > 0:
            assert whole is not None
            now.append(whole.pick(slice(0, done)).replace(time=self.done.values[fixed : fixed + done]))
            came.append(self.arrivals.values[:done])
        if now:
            self._does.process(stamps(join(now)), np.concatenate(came))
        if begun <= done:
            return None
        assert whole is not None
        at, triggers = int(self.done.values[fixed + done]), self.last == fixed + done
        train = whole.pick(slice(done, done + 1)).replace(time=self.arrivals.values[done : done + 1].copy())
        return InService(stamps(train), at, triggers)

    def _put_back_queue(self, whole: Train | None, begun: int, reached: int, stamps: Stamps) -> Train | None:
        """Keep what has come by now, and has not begun; returns what of it is ahead of all markers."""
        came = self._waited + int(self.arrivals.values[self._waited :].searchsorted(reached, "right"))
        trains = [] if whole is None else [whole.pick(slice(begun, min(came, whole.n)))]
        trains += self._waiting
        n = begun + sum(train.n for train in trains)
        while n < came:
            trains.append(_first(self._coming, came - n))
            n += trains[-1].n
        if n == begun:
            return None
        train = stamps(join(trains)).replace(time=self.arrivals.values[begun:came].copy())
        if not self._marker_ahead:
            return train
        waiting, behind = train.split(max(0, self._waited - begun))
        if behind.n:
            self.node.queue.append(behind)
        return waiting if waiting.n else None


def _first(trains: deque[Train], most: int) -> Train:
    """The first of these trains, or its first tuples, taken off."""
    train = trains.popleft()
    if train.n > most:
        train, rest = train.split(most)
        trains.appendleft(rest)
    return train
