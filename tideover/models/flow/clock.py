"""The clock of a job whose data plane is compiled: control actions, and the data up to each of them."""

from __future__ import annotations

from collections.abc import Callable

import simpy

from tideover.sim.kernel import ORDER, Kernel, Reads
from tideover.sim.memory import standing
from tideover.sim.plane.plane import Plane

FAR = 1 << 62


class Clock(Kernel):
    """Moves the data up to each control action before that acts.

    plane     the data plane, as soon as there is one
    handlers  who sees to what the data plane comes back for, by reason: with the number of a task, and when
    before    called before data moves
    reach     asked before data moves up to a moment: how far it may move now
    """

    plane: Plane

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[int, Callable[[int, int], None]] = {}
        self.reach: Callable[[int], int] = int
        self._resting: set[simpy.Event] = set()
        """Events before which data need not move."""
        self.before: Callable[[], None] = int  # type: ignore[assignment]

    def move(self, reads: Reads) -> None:
        """All data has been moved."""

    def _move(self, reads: Reads, turn: float, _: simpy.Event) -> None:
        self.now, self.acting = int(self.env._now), turn
        p = self.plane.p
        p.turn = p.turn + 1 if p.instant == self.now else 1
        p.instant = self.now

    def advance(self) -> None:
        while not self._flow(self.now):
            pass

    def _flow(self, until: int) -> bool:
        """Move the data up to ``until``; False: a control marker has its turn before that, or then."""
        plane, handlers = self.plane, self.handlers
        self.before()
        while True:
            to = self.reach(until)
            reason = plane.advance(to)
            if reason == 0:
                if to < until:
                    continue
                break
            now, self.now = self.now, plane.p.when
            handlers[reason](plane.p.who, self.now)
            self.now = now
            if reason in (plane.lib.TURN, plane.lib.HURRY):
                return False
        self.moved_to = until
        for listen in self.listeners:
            listen(until)
        return True

    def at_rest(self, when: int, rank: int, action: Callable[[], None], order: int) -> None:
        event = simpy.Event(self.env)
        event._ok, event._value = True, None

        def act(_: simpy.Event) -> None:
            self._resting.discard(event)
            self.now, self.acting = when, rank * ORDER + order
            action()
            if self._looks:
                self.acted()

        assert event.callbacks is not None
        event.callbacks.append(act)
        self._resting.add(event)
        self.env.schedule(event, priority=rank * ORDER + order, delay=when - self.now)

    def at_turn(self, when: int, rank: int, action: Callable[[], None], order: int) -> None:
        """Call ``action`` at ``when``, which data has come to while it was moved to a later moment."""
        now, self.now = self.now, int(self.env._now)
        assert when >= self.now, (when, self.now)
        self.at(when, rank, action, order)
        self.now = now

    def next_data_event(self) -> int | None:
        plane = self.plane
        nodes = range(plane.p.n_tasks + plane.p.n_cards)
        found = min((plane.lib.plane_next_event(plane.p, each) for each in nodes), default=FAR)
        return None if found >= FAR else int(found)

    def run(self, until: int) -> None:
        queue = self.env._queue
        with standing():
            while True:
                head = int(queue[0][0]) if queue else FAR
                # a control marker may have its turn before
                if head <= until and queue[0][3] in self._resting and not self.plane.p.waiting:
                    self.env.step()
                elif self._flow(min(head, until)):
                    if head > until:
                        break
                    self.env.step()
            self.now = until
            self.env._now = until
