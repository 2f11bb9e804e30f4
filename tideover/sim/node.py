"""Nodes of the data plane: what tasks have in common, be they spouts or servers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tideover.sim.line import Channel, Line
from tideover.sim.occupancy import Occupancy
from tideover.sim.outbox import Outbox
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.sim.kernel import Kernel, Reads

Action = Callable[[], None]


class Marker(NamedTuple):
    """A control item in a task's queue: acts when everything ahead of it has been served; ``reads``: see the
    kernel.
    """

    rank: int
    action: Action
    reads: Reads = None


class Node:
    """Something in the data plane that can fail: it is up or down, does one thing at a time, and lets control
    actions queue with its tuples.

    number   place in the physical order
    life     counts interruptions: what was planned in an earlier life is void
    put_off  by how much being stopped has made later what it was to do (ns), all in all
    """

    def __init__(self, kernel: Kernel, name: str, host: int) -> None:
        self._kernel = kernel
        self.name = name
        self.host = host
        self.up = True
        self.life = 0
        self.put_off = 0
        self.busy = Occupancy()
        self.outbox = Outbox(self._send_again)
        self.line: Line | None = None
        """Where what it sends waits for room; None: there always is."""
        self.journal: list[Action] | None = None
        """Where it notes what is to be told of its tuples, if that may turn out not to have happened."""
        self._markers: list[Marker] = []
        self.hurries = False
        """Its control markers overtake what waits when told to, and wait for no room in the line."""
        self.number = len(kernel.nodes)
        kernel.nodes.append(self)

    def flow(self, now: int) -> None:
        """Move everything at or before ``now``."""
        raise NotImplementedError

    def next_event(self) -> int | None:
        """The next instant at which data moves here by itself; None: never."""
        return self.outbox.next

    def _line_moves(self) -> list[int]:
        """When something leaves the line that was put there at this instant and has not asked for room."""
        line, now = self.line, self._kernel.moved_to
        moves = line is not None and line.batches and line.asked is None and self.busy.stopped_until <= now
        return [now] if moves else []

    @property
    def available(self) -> bool:
        """Whether arrivals are taken into the queue; if not they are dropped or held."""
        return self.up

    def tell(self, action: Callable[..., None], *what: object) -> None:
        """Do what tells others of its tuples, with these arguments, now or when it is certain."""
        if self.journal is None:
            action(*what)
        else:
            self.journal.append(partial(action, *what))

    def _send_again(self, channel: Channel, train: Train) -> None:
        """Messages that it has sent before leave once more."""
        if self.line is None:
            channel.put(train)
        else:
            self.line.put_again(channel, train)

    # -- control markers -------------------------------------------------------------------------------------

    def enqueue(self, rank: int, action: Action, reads: Reads = None, *, last: bool = False) -> None:
        """Put a control marker into the queue now; ``action`` runs when its turn comes, unless the node
        crashes. What it ``reads`` (the node among it, if not nothing) has been moved now, and will be then.
        ``last``: the action under way does nothing after it.
        """
        self._place(Marker(rank, action, reads), last)

    def _place(self, marker: Marker, last: bool = False) -> None:
        self._markers.append(marker)
        if len(self._markers) > 1:
            return
        if last and self._kernel.goes_on(marker.rank, self.number) and self._idle() and not self._holds_back:
            self._serve_marker(self.life)
            return
        # what the action under way sets free moves before this one acts, and others have their turn before
        if self._kernel.feedback or self._idle():
            self.look_at_markers()
        else:
            self._serve_marker(self.life)

    def _serve_marker(self, life: int, waited_for: Marker | None = None) -> None:
        """Run the first marker's action if its turn has come, else look again when it may have.
        ``waited_for``: if another one is the first by now, nothing: others look when that has its turn.
        """
        if life != self.life or not self._markers:
            return
        marker, now = self._markers[0], self._kernel.now
        if waited_for is not None and waited_for is not marker:
            return
        if not self._idle():
            # the first instant at which all that arrived before the marker may have been served
            turn = self._next_turn()
            look = partial(self._serve_marker, life, marker)
            if turn is None:
                turn = max(now + 1, self._kernel.next_event())
                self._kernel.look_again(turn, marker.rank, look, self.number, marker.reads)
            else:
                self._kernel.in_turn(turn, marker.rank, look, self.number, marker.reads)
            return
        if marker.reads is not None and self._holds_back:
            # what it sets free comes behind all that moves before it at this instant, wherever that goes
            self._kernel.move(None)
        self._pass_marker()
        marker.action()
        if life == self.life:
            self.look_at_markers()

    def look_at_markers(self) -> None:
        """See, at this instant, whether it is the first marker's turn: what was ahead of it has gone."""
        if self._markers:
            first, life = self._markers[0], self.life
            look = partial(self._serve_marker, life, first)
            self._kernel.at(self._kernel.now, first.rank, look, self.number, first.reads)

    def _next_turn(self) -> int | None:
        """A moment before which no marker can have its turn, as things are; None: others have to make
        room.
        """
        now = self._kernel.now
        turn = self.busy.turn(now) + self._work_ahead()
        return turn if self.line is None or turn > now else None

    def _work_ahead(self) -> int:
        """Service that waits ahead of the first marker, and is not planned yet (ns)."""
        return 0

    @property
    def _holds_back(self) -> bool:
        """Whether something has arrived that waits for the first control marker alone."""
        return False

    def _idle(self) -> bool:
        """Whether everything that was admitted has left."""
        now = self._kernel.now
        waits = self.line is not None and self.line.holds_up and not self.hurries
        return self.busy.turn(now) <= now and not waits

    def _pass_marker(self) -> None:
        """The first marker's turn has come."""
        self._markers.pop(0)

    def _cancel_markers(self) -> None:
        """Forget all markers."""
        self._markers.clear()

    # -- what keeps it busy ----------------------------------------------------------------------------------

    def occupy(self, duration: int) -> None:
        """Keep it busy for ``duration`` ns from now, or from when it is free."""
        self.busy.add(self._kernel.now, duration)

    def stop_until(self, moment: int) -> int:
        """Do nothing until ``moment``, and then go on: all that was to come is later by this; returns by how
        much (ns).
        """
        shift = self.busy.stop(self._kernel.now, moment)
        self.put_off += shift
        self.outbox.postpone(shift)
        return shift

    def save(self) -> Action:
        """Remember what moving data changes; returns what brings that back."""
        raise NotImplementedError

    # -- life and death --------------------------------------------------------------------------------------

    def crash(self) -> list[Train]:
        """Lose queue, service, markers and outbox; returns the trains of tuples that were queued or in
        service.
        """
        self.up = False
        self._interrupt()
        self.busy.begin_anew(self._kernel.now)
        return []

    def _interrupt(self) -> None:
        """Forget what was planned: markers, and what was to leave later."""
        self.life += 1
        self._cancel_markers()
        self.outbox.clear()

    def revive(self) -> None:
        """Be up again, with an empty queue."""
        self.up = True
        self.life += 1
        self.busy.resume(self._kernel.now)
