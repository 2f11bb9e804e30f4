"""The first-in first-out server."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from tideover.sim.gate import Gate
from tideover.sim.line import Bound, inputs_of, places, take_places
from tideover.sim.link import Channel
from tideover.sim.node import Action, Marker, Node
from tideover.sim.pace import Pace, SharedOccupancy
from tideover.sim.queue import Queue
from tideover.sim.shared_queue import SharedQueue
from tideover.sim.train import Ints, Train, merge

if TYPE_CHECKING:
    from tideover.sim.kernel import Kernel, Reads

BY_POSITION = attrgetter("position")


class Sieve(Protocol):
    """Turns arrivals away at a server, by what has come there before them.

    active   whether it may do so now: this does not change while data moves, but by a trigger
    """

    @property
    def active(self) -> bool:
        """See above."""

    def let_in(self, channel: Channel, train: Train) -> Train:
        """What of the next arrivals over a channel is let in; the others are told to be turned away."""

    def save(self) -> Action:
        """Remember what arrivals change; returns what brings that back."""


class Server(Node):
    """A task: first in, first out, one tuple at a time.

    Arrivals wait on their channels (``inputs``) until they are due; then they go into the ``queue``, or to
    the ``gate`` if the task does not take them. A subclass says what is done to a tuple, and how long that
    takes.
    """

    def __init__(self, kernel: Kernel, name: str, host: int, shares: bool = False) -> None:
        """``shares``: cores, with other servers of its host."""
        super().__init__(kernel, name, host)
        self.inputs: list[Channel] = []
        self.arriving: list[Channel] = []
        """Those of them with something on the wire, and maybe others."""
        self.bound: Bound | None = None
        """How many messages may wait here; None: any number."""
        self.log: list[Ints] | None = None
        """When arrivals were taken in, while somebody wants to know."""
        self.sieve: Sieve | None = None
        """What turns arrivals away; None: nothing does."""
        self.tied: list[int] = []
        """Over which inputs the last of what waits ahead of control markers came, if more may come at the
        instant when that did.
        """
        self.tied_behind: list[int] = []
        """The same of what has come behind them."""
        self.had_turn = True
        """Whether what it has been busy with up to the instant that is moved is over: what comes begins."""
        self.queue = Queue(Callbacks(self), self.busy, lambda: kernel.now)
        if shares:
            self.busy = SharedOccupancy(Pace())
            self.queue = SharedQueue(Callbacks(self), self.busy, lambda: kernel.now)
        self.queue.serve_markers = lambda: self._serve_marker(self.life)
        self.gate = Gate(self.queue, lambda train: self._admit(train), lambda: kernel.now)

    # -- what subclasses say (see `tideover.sim.queue.Service`) ----------------------------------------------

    def _demand(self, train: Train) -> Ints:
        raise NotImplementedError

    def _serve(self, train: Train) -> Ints:
        return self._demand(train)

    def _take_back(self, train: Train) -> None:
        """Nothing was counted."""

    def _process(self, train: Train, arrival: Ints) -> None:
        raise NotImplementedError

    def _find_trigger(self, train: Train) -> int | None:
        return None

    def _fire(self, now: int) -> int:
        raise NotImplementedError

    def _receive(self, channel: Channel, train: Train) -> Train:
        """One channel's arrivals, as they are inside."""
        return train

    def _admit(self, train: Train) -> Train:
        """What of the merged arrivals is let in."""
        return train

    def _admits(self) -> bool:
        """Whether anybody looks at arrivals that are let in."""
        return False

    def _is_control(self, train: Train) -> npt.NDArray[np.bool_]:
        """Which messages become control markers in the queue."""
        return np.zeros(train.n, np.bool_)

    def _take_in(self, train: Train) -> None:
        """Put admitted arrivals behind what waits."""
        if self.log is not None:
            self.log.append(train.time)
        self.queue.append(train)

    def _drop(self, train: Train) -> None:
        """Arrivals that found the task down and are lost."""
        raise NotImplementedError

    def _overflow(self, train: Train) -> None:
        """Arrivals that found the queue full and are lost."""
        raise NotImplementedError

    def connect(self, channel: Channel) -> None:
        """Another input, behind those that there are."""
        channel.position = len(self.inputs)
        self.inputs.append(channel)
        channel.connect(self.arriving)

    def bind(self, bound: Bound) -> None:
        """From now on only so many may wait."""
        self.bound = bound
        self.queue.bounded = True
        if not bound.holds_back:
            self.gate.take_in = self._with_room

    def _with_room(self, train: Train, ahead: list[Train]) -> list[Train]:
        """What of these arrivals has room behind what waits, and behind others that come ``ahead``."""
        assert self.bound is not None
        waiting = [*self.queue.trains(), *ahead]
        # or the first begins at once; what comes ahead does so when all have come
        data = train.column("mark") == 0
        if self.queue.has_begun:
            in_service = places(self.queue.in_service()[0].pick(slice(0, 1)))
        else:
            in_service = self._idle() and not ahead and bool(data[0])
        room = max(0, self.bound.length + in_service - sum(places(each) for each in waiting))
        lost = data & (data.cumsum() > room)
        if lost.any():
            self._overflow(train.pick(lost))
        return [train.pick(~lost)]

    def _hand_on(self, train: Train) -> object:
        """Send what tuples turn into."""
        return None

    def _until_trigger(self) -> int | None:
        """How many tuples have to be served until one is a trigger; None: none becomes one in this way."""
        return None

    # -- the flow --------------------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        return self.up and not self.gate.closed

    def flow(self, now: int) -> None:
        if self.outbox:
            self.outbox.let_out(now)
        if self.arriving:
            self._collect(now)
        self.queue.move(now, self.outbox.let_out)

    def _collect(self, now: int) -> None:
        """Take what has arrived by ``now`` off the channels, in order of time, then of sender, then of
        sequence.
        """
        trains = []
        for channel, train in self._taken(now):
            train = self._receive(channel, train)
            if self.sieve is not None:
                train = self.sieve.let_in(channel, train)
            if train.n:
                trains.append(train)
        if not trains:
            return
        merged = merge(trains)
        if self.available:
            merged = self._admit(merged)
            if merged.n:
                self._take_in(merged)
        elif self.gate.holds(self.up):
            self.gate.held.append(merged)
        else:
            self._give_back(merged)
            self.tell(self._drop, merged)

    def _give_back(self, train: Train) -> None:
        """Arrivals that do not wait here have their places no more, if they had any before they came."""
        if self.queue.starts is not None and self.bound is not None and self.bound.holds_back:
            taking = take_places(train)
            self.queue.starts.append(train.time if taking is None else train.time[taking])

    def _taken(self, now: int) -> list[tuple[Channel, Train]]:
        """What has arrived by ``now``, taken off the channels, in their order."""
        arriving = sorted(self.arriving, key=BY_POSITION)
        self.arriving.clear()
        taken = []
        for channel in arriving:
            train = channel.take(now)
            channel.unlist()
            if train is not None:
                taken.append((channel, train))
        return taken

    def next_event(self) -> int | None:
        times = [self.outbox.next, self.queue.next_departure, *(c.next_arrival for c in self.arriving)]
        times += self._line_moves()
        if self.queue.lets_in:
            times.append(self._kernel.moved_to)  # a control action has let it in
        if self.bound is not None or self.line is not None:  # what waits may have no departure yet
            told = (when for channel in self.inputs for when in channel.freed)
            later = (self.busy.turn(self._kernel.moved_to), self.busy.stopped_until, *told)
            times += [t for t in later if t > self._kernel.moved_to]
        known = [t for t in times if t is not None]
        return min(known) if known else None

    # -- control markers -------------------------------------------------------------------------------------

    def enqueue(
        self, rank: int, action: Action, reads: Reads = None, first: bool = False, *, last: bool = False
    ) -> None:
        """Put a control marker into the queue now; ``first``: ahead of all that waits, so that its turn comes
        when the tuple in service is done; ``last``: the action under way does nothing after it. ``action``
        runs when its turn comes, unless the task crashes.
        """
        marker = Marker(rank, action, reads)
        if first:
            self.queue.put_first(marker)
            self._markers.insert(0, marker)
            if self._idle():
                self.look_at_markers()
            else:
                self.queue.serve_markers()
        else:
            self.queue.append(marker)
            self._place(marker, last)

    def hurry(self) -> None:
        """Serve control markers as soon as the server is free; those that hurry overtake what waits, now."""
        if self.hurries:
            self.queue.markers_first()
        self.queue.serve_markers()

    def _wait_in_line(self, rank: int, action: Action, reads: Reads = None) -> None:
        """Put a control marker behind what has arrived, and leave it to a control event to serve it."""
        self.queue.append(marker := Marker(rank, action, reads))
        self._markers.append(marker)

    @property
    def _holds_back(self) -> bool:
        return self.queue.holds_back

    def _idle(self) -> bool:
        return super()._idle() and self.queue.clear_ahead

    def _work_ahead(self) -> int:
        if self.line is None and self.bound is None:
            return 0
        return self.queue.demand(*self.queue.undecided())

    def _pass_marker(self) -> None:
        super()._pass_marker()
        self.queue.pass_marker()

    def _cancel_markers(self) -> None:
        super()._cancel_markers()
        self.queue.drop_markers()

    # -- life and death --------------------------------------------------------------------------------------

    def stop_until(self, moment: int) -> int:
        in_service = self.queue.has_begun
        shift = super().stop_until(moment)
        self.queue.postpone(shift, in_service)
        return shift

    def save(self) -> Callable[[], None]:
        """Remember what moving data changes; returns what brings that back."""
        held, markers = self.gate.held.copy(), self._markers.copy()
        parts = [self.queue.save(), self.outbox.save()]
        if self.sieve is not None:
            parts.append(self.sieve.save())

        def restore() -> None:
            self.gate.held, self._markers = held, markers
            for each in parts:
                each()

        return restore

    def crash(self, keep_queue: bool = False) -> list[Train]:
        """Go down; returns the trains that are lost with it. ``keep_queue``: none, the queue is served from
        the moment of readiness.
        """
        queue = self.queue.clear()
        if keep_queue:
            self.gate.keep(self.up, queue)
            lost = []
        else:
            lost = queue + self.gate.crash(self.up)
            if self.bound is not None and self.bound.apart:
                for over in (over for train in lost for over in inputs_of(train)):
                    self.inputs[over - 1].give_back(1, self._kernel.now)
        super().crash()
        return lost

    def revive(self) -> None:
        super().revive()
        self.gate.stopped = False


def collect(server: Server, now: int) -> None:
    """Let ``server`` take in what has arrived by ``now``, and serve none of it."""
    server._collect(now)


def coming(server: Server) -> list[Train]:
    """What is on its way to a server, and has a place there."""
    return [train for channel in server.inputs if not channel.logged for train in channel.on_the_way]


class Callbacks:
    """What a server does, for those who make it do so: its queue, and a contention that it takes part in."""

    def __init__(self, server: Server) -> None:
        self.demand = server._demand
        self.serve = server._serve
        self.take_back = server._take_back
        self.process = server._process
        self.find_trigger = server._find_trigger
        self.fire = server._fire
        self.receive = server._receive
        self.admits = server._admits
        self.admit = server._admit
        self.is_control = server._is_control
        self.take_in = server._take_in
        self.drop = server._drop
        self.overflow = server._overflow
        self.hand_on = server._hand_on
        self.until_trigger = server._until_trigger
