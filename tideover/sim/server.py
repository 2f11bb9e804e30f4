"""The first-in first-out server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tideover.sim.fifo import departures
from tideover.sim.link import Channel
from tideover.sim.node import Action, Marker, Node
from tideover.sim.train import Ints, Train, join, merge

if TYPE_CHECKING:
    from tideover.sim.kernel import Kernel


class Server(Node):
    """A task: first in, first out, one tuple at a time.

    Arrivals wait on their channels until they are due, then get their departure at once (the future of a FIFO
    is known), and leave when it comes. A *trigger* is a tuple after whose departure something happens that
    may occupy the server (the end of a window carried by data): tuples behind it get no departure before it
    has happened.
    """

    def __init__(self, kernel: Kernel, name: str, host: int) -> None:
        super().__init__(kernel, name, host)
        self.inputs: list[Channel] = []
        self.hold = False
        """While down: keep what arrives (True), or lose it."""
        self.held: list[Train] = []
        self.from_log = False
        """What waits for the task waits in a log: held whenever the task is down, and no crash takes it."""
        self.kept: list[Train] = []
        """Admitted tuples that are out of the queue for a while; a crash takes them all the same."""
        self._arrived: deque[Train | Marker] = deque()
        """What came last: arrivals, and the control markers that those behind them have to wait for."""
        self._inbox: deque[Train] = deque()
        self._served: deque[tuple[Train, Ints]] = deque()
        self._trigger_at: int | None = None
        self._resumes: int | None = None
        """Departure of the tuple that was in service when the process was stopped."""

    def stop_until(self, moment: int) -> int:
        in_service = bool(self._served) and self._has_begun(*self._served[0])
        shift = super().stop_until(moment)
        self._served = deque((train, done + shift) for train, done in self._served)
        self._resumes = int(self._served[0][1][0]) if in_service else None
        if self._trigger_at is not None:
            self._trigger_at += shift
        return shift

    def enqueue(self, rank: int, action: Action) -> None:
        self._arrived.append(marker := Marker(rank, action))
        self._place(marker)

    def enqueue_first(self, rank: int, action: Action) -> None:
        """Put a control marker ahead of all that waits: its turn comes when the tuple in service is done."""
        self._take_back()
        marker = Marker(rank, action)
        self._arrived.appendleft(marker)
        self.markers.insert(0, marker)
        self.serve_markers()

    def wait_in_line(self, rank: int, action: Action) -> None:
        """Put a control marker behind what has arrived, and leave it to a control event to serve it."""
        self._arrived.append(marker := Marker(rank, action))
        self.markers.append(marker)

    def serve_markers(self) -> None:
        """Let the first control marker act, now or when its turn comes."""
        self._serve_marker(self.life)

    def _take_back(self) -> None:
        """Take back the departures of all tuples but the one in service: they wait again."""
        served, waiting = list(self._served), list(self._inbox)
        self._served.clear()
        self._inbox.clear()
        if served:
            (train, done), behind = served[0], [train for train, _ in served[1:]]
            first = train.pick(slice(0, 1))
            if self._has_begun(train, done):
                self.free_at = int(done[0])
                self._served.append((first, done[:1]))
                train = train.pick(slice(1, None))
            else:
                self.free_at = int(done[0]) - int(self.demand(first)[0])
            back = [train, *behind] if train.n else behind
            for train in back:
                self.taken_back(train)
            if back:
                self._trigger_at = None  # it was the last of them
            waiting = back + waiting
        self._arrived.extendleft(reversed(waiting))

    def _has_begun(self, train: Train, done: Ints) -> bool:
        """Whether the first of these tuples, which are given departures, is in service."""
        begun = int(done[0]) - int(self.demand(train.pick(slice(0, 1)))[0])
        return begun <= self.kernel.now or int(done[0]) == self._resumes

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

    def pass_marker(self) -> None:
        super().pass_marker()
        self._arrived.popleft()

    def cancel_markers(self) -> None:
        super().cancel_markers()
        self._arrived = deque(item for item in self._arrived if isinstance(item, Train))

    def connect(self, channel: Channel) -> None:
        """Make ``channel`` an input; inputs are connected in the physical order of their senders."""
        channel.position = len(self.inputs)
        self.inputs.append(channel)

    # -- what subclasses say ---------------------------------------------------------------------------------

    def service(self, train: Train) -> Ints:
        """Service demand of each tuple (ns), which is now given to it; a fresh array."""
        raise NotImplementedError

    def demand(self, train: Train) -> Ints:
        """The same, for who only wants to know."""
        raise NotImplementedError

    def taken_back(self, train: Train) -> None:
        """Tuples that were given service wait again: undo what was counted of it."""
        raise NotImplementedError

    def process(self, train: Train, arrival: Ints) -> None:
        """The tuples of ``train`` are done; ``train.time`` is when."""
        raise NotImplementedError

    def receive(self, channel: Channel, train: Train) -> Train:
        """What of one channel's arrivals is let in."""
        return train

    def admit(self, train: Train) -> Train:
        """What of the merged arrivals is let in."""
        return train

    def take_in(self, train: Train) -> None:
        """Put admitted arrivals behind what waits."""
        self._arrived.append(train)

    def drop(self, train: Train) -> None:
        """Arrivals that found the task down and are lost."""
        raise NotImplementedError

    def find_trigger(self, train: Train) -> int | None:
        """Row of the first tuple in ``train`` that is a trigger; None: there is none."""
        return None

    def fire(self, now: int) -> int:
        """The trigger has departed at ``now``; returns for how long it keeps the server busy (ns)."""
        raise NotImplementedError

    # -- the flow --------------------------------------------------------------------------------------------

    def flow(self, now: int) -> None:
        self.post_out(now)
        self._collect(now)
        self._let_in()
        while True:
            self._schedule()
            self._release(now)
            if self._trigger_at is None or self._trigger_at > now:
                break
            at, self._trigger_at = self._trigger_at, None
            stall = self.fire(at)
            self.free_at = at + stall
            self.busy_ns += stall
            self.post_out(now)

    def _collect(self, now: int) -> None:
        """Take what has arrived off the channels, in order of time, then of sender, then of sequence."""
        trains = []
        for channel in self.inputs:
            train = channel.take(now)
            if train is not None:
                train = self.receive(channel, train)
                if train.n:
                    trains.append(train)
        if not trains:
            return
        merged = merge(trains)
        if self.available:
            merged = self.admit(merged)
            if merged.n:
                self.take_in(merged)
        elif self.hold or self.up or self.from_log:
            self.held.append(merged)
        else:
            self.drop(merged)

    def _let_in(self) -> None:
        """Move arrivals to the inbox, up to the first control marker."""
        while self._arrived and isinstance(self._arrived[0], Train):
            train = self._arrived.popleft()
            assert isinstance(train, Train)
            self._inbox.append(train)

    def release_held(self) -> None:
        """Let in now what was kept and held: it arrives at this instant, before anything later."""
        now = self.kernel.now
        trains = [train for train in self.kept if train.n]  # admitted before
        if self.held:
            held = join(self.held)
            trains.append(self.admit(held.replace(time=np.full(held.n, now, np.int64))))
        self.kept, self.held = [], []
        self.refill([train for train in trains if train.n])

    def _schedule(self) -> None:
        """Give departures to the inbox, up to the first trigger."""
        while self._inbox and self._trigger_at is None:
            train = self._inbox.popleft()
            row = self.find_trigger(train)
            if row is not None and row + 1 < train.n:
                train, rest = train.split(row + 1)
                self._inbox.appendleft(rest)
            service = self.service(train)
            self.busy_ns += int(service.sum())
            done = departures(train.time, service, self.free_at)
            self.free_at = int(done[-1])
            self._served.append((train, done))
            if row is not None:
                self._trigger_at = self.free_at

    def _release(self, now: int) -> None:
        """Hand on what departs at or before ``now``."""
        served = self._served
        trains: list[Train] = []
        times: list[Ints] = []
        while served and served[0][1][0] <= now:
            train, done = served.popleft()
            if done[-1] > now:
                due = int(np.searchsorted(done, now, "right"))
                train, later = train.split(due)
                served.appendleft((later, done[due:]))
                done = done[:due]
            trains.append(train)
            times.append(done)
        if trains:
            train = join(trains)
            self.process(
                train.replace(time=times[0] if len(times) == 1 else np.concatenate(times)), train.time
            )

    @property
    def idle(self) -> bool:
        ahead = self._arrived and isinstance(self._arrived[0], Train)
        return self.free_at <= self.kernel.now and not (self._inbox or self._served or ahead)

    def next_event(self) -> int | None:
        times = [self.next_post, *(c.next_arrival for c in self.inputs)]
        if self._served:
            times.append(int(self._served[0][1][0]))
        if self._arrived and isinstance(self._arrived[0], Train):
            times.append(self.kernel.moved_to)  # a control action has let it in
        known = [t for t in times if t is not None]
        return min(known) if known else None

    def queue(self) -> list[Train]:
        """Everything that has arrived and not departed; ``time`` is the arrival."""
        return [item for item in self.line() if isinstance(item, Train)]

    def line(self) -> list[Train | Marker]:
        """The same, with the control markers that wait in it."""
        return [*(train for train, _ in self._served), *self._inbox, *self._arrived]

    def clear_queue(self) -> list[Train]:
        """Destroy queue and service; returns what was there."""
        lost = self.queue()
        self._arrived = deque(item for item in self._arrived if isinstance(item, Marker))
        self._inbox.clear()
        self._served.clear()
        self._trigger_at = None
        self.drop_work()
        return lost

    def crash(self) -> list[Train]:
        lost = self.clear_queue() + self.kept
        self.kept = []
        if self.up and not self.from_log:  # else what is held waits with its sender
            lost += self.held
            self.held = []
        self.paused = False
        super().crash()
        return lost

    def pause(self) -> None:
        """Go down, but keep the queue: it is served from the moment of readiness."""
        self.kept = self.clear_queue() + self.kept
        if self.up and not self.from_log and self.held:  # in its memory, not with the senders
            self.kept.append(self.admit(join(self.held).at(self.kernel.now)))
            self.held = []
        self.paused = True
        super().crash()

    def revive(self) -> None:
        super().revive()
        self.paused = False

    def refill(self, trains: list[Train]) -> None:
        """Put a copy of another task's queue into this one; it is served from now."""
        now = self.kernel.now
        for train in trains:
            self._arrived.append(train.replace(time=np.full(train.n, now, np.int64)))
