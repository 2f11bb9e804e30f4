"""Nodes of the data plane: what tasks have in common, be they spouts or servers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.sim.kernel import Kernel

Action = Callable[[], None]
Deliver = Callable[[Train], None]


class Marker(NamedTuple):
    """A control item in a task's queue: acts when everything ahead of it has been served."""

    rank: int
    action: Action


class Node:
    """Something in the data plane that can fail: has a host, an outbox, control markers, and is up or
    down.
    """

    def __init__(self, kernel: Kernel, name: str, host: int) -> None:
        self.kernel = kernel
        self.name = name
        self.host = host
        self.up = True
        self.paused = False
        """Down with its queue kept."""
        self.life = 0
        """Counts interruptions: what was planned in an earlier life is void."""
        self.free_at = 0
        self.stopped_until = 0
        """Its process is stopped until then."""
        self.busy_ns = 0
        """How long it has been busy, and will be with what it has been given already."""
        self.fault = -1
        """Number of the newest fault that struck here; -1: none yet."""
        self.markers: list[Marker] = []
        self._outbox: deque[tuple[Train, Deliver, Deliver]] = deque()
        self.number = len(kernel.nodes)
        """Place in the physical order."""
        kernel.nodes.append(self)

    def flow(self, now: int) -> None:
        """Move everything at or before ``now``."""
        raise NotImplementedError

    @property
    def drained_at(self) -> int:
        """The first instant at which all that arrived before the first marker may have been served."""
        return max(self.free_at, self.kernel.now)

    @property
    def idle(self) -> bool:
        """Whether everything that was admitted has left."""
        return self.free_at <= self.kernel.now

    @property
    def available(self) -> bool:
        """Whether arrivals are taken into the queue; if not they are dropped or held."""
        return self.up

    # -- control markers -------------------------------------------------------------------------------------

    def enqueue(self, rank: int, action: Action) -> None:
        """Put a control marker into the queue now; ``action`` runs when its turn comes, unless the node
        crashes.
        """
        self._place(Marker(rank, action))

    def _place(self, marker: Marker) -> None:
        self.markers.append(marker)
        if len(self.markers) == 1:
            self._serve_marker(self.life)

    def _serve_marker(self, life: int) -> None:
        """Run the first marker's action if its turn has come, else look again when it may have."""
        if life != self.life or not self.markers:
            return
        marker = self.markers[0]
        if not self.idle:
            self.kernel.at(self.drained_at, marker.rank, lambda: self._serve_marker(life), self.number)
            return
        self.pass_marker()
        marker.action()
        if self.markers and life == self.life:
            self.kernel.at(
                self.kernel.now, self.markers[0].rank, lambda: self._serve_marker(life), self.number
            )

    def pass_marker(self) -> None:
        """The first marker's turn has come."""
        self.markers.pop(0)

    def cancel_markers(self) -> None:
        """Forget all markers."""
        self.markers.clear()

    def occupy(self, duration: int) -> None:
        """Keep the server busy for ``duration`` ns from now, or from when it is free."""
        self.free_at = max(self.free_at, self.kernel.now) + duration
        self.busy_ns += duration

    @property
    def busy_so_far(self) -> int:
        """How long it has been busy up to now (ns)."""
        return self.busy_ns - max(0, self.free_at - max(self.kernel.now, self.stopped_until))

    def drop_work(self) -> None:
        """What was to keep it busy from now on does so no more."""
        self.busy_ns = self.busy_so_far
        self.free_at = max(self.kernel.now, self.stopped_until)

    def stop_until(self, moment: int) -> int:
        """Do nothing until ``moment``, and then go on: all that was to come is later by this; returns by how
        much (ns).
        """
        now = self.kernel.now
        shift = max(0, moment - max(now, self.stopped_until))
        self.stopped_until = max(self.stopped_until, moment)
        self.free_at = max(self.free_at, now) + shift
        self._outbox = deque((t.replace(time=t.time + shift), out, lost) for t, out, lost in self._outbox)
        return shift

    # -- what leaves later -----------------------------------------------------------------------------------

    def post(self, train: Train, deliver: Deliver, lost: Deliver) -> None:
        """Hand ``train`` to ``deliver``, each tuple at its time (now or later).

        What has not left when the outbox is cleared (a crash) is handed to ``lost``.
        """
        if train.n:
            self._outbox.append((train, deliver, lost))

    def post_out(self, now: int) -> None:
        """Let out what is due in the outbox."""
        while self._outbox and self._outbox[0][0].time[0] <= now:
            train, deliver, lost = self._outbox.popleft()
            due = int(np.searchsorted(train.time, now, "right"))
            if due < train.n:
                train, later = train.split(due)
                self._outbox.appendleft((later, deliver, lost))
            deliver(train)

    def clear_outbox(self) -> None:
        """Destroy what has not left yet."""
        outbox, self._outbox = self._outbox, deque()
        for train, _, lost in outbox:
            lost(train)

    @property
    def next_post(self) -> int | None:
        """When the next tuple leaves the outbox."""
        return int(self._outbox[0][0].time[0]) if self._outbox else None

    def next_event(self) -> int | None:
        """The next instant at which data moves here by itself; None: never."""
        return self.next_post

    # -- life and death --------------------------------------------------------------------------------------

    def crash(self) -> list[Train]:
        """Lose queue, service, markers and outbox; returns the trains of tuples that were queued or in
        service.
        """
        self.up = False
        self.interrupt()
        self.drop_work()
        self.stopped_until = 0
        self.free_at = self.kernel.now
        return []

    def interrupt(self) -> None:
        """Forget what was planned: markers, and what was to leave later."""
        self.life += 1
        self.cancel_markers()
        self.clear_outbox()

    def revive(self) -> None:
        """Be up again, with an empty queue."""
        self.up = True
        self.life += 1
        self.free_at = max(self.free_at, self.kernel.now)
