"""What tasks of spouts and of bolts have in common, where the compiled data plane moves their tuples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tideover.sim.occupancy import Occupancy
from tideover.sim.plane.plane import NEVER, Plane

if TYPE_CHECKING:
    from tideover.models.flow.clock import Clock
    from tideover.sim.kernel import Reads

Action = Callable[[], None]


class Busy(Occupancy):
    """How long a task is busy, and from when on it is free, as the data plane has it (ns)."""

    __slots__ = ("_c", "_serving")

    def __init__(self, plane: Plane, c: Any) -> None:
        self._c, self._serving = c, plane.lib.SERVING

    @property
    def free_at(self) -> int:  # type: ignore[override]
        c = self._c
        return int(max(c.free_at, c.ends) if c.state == self._serving else c.free_at)

    @property
    def stopped_until(self) -> int:  # type: ignore[override]
        return int(self._c.stopped_until)

    @property
    def total(self) -> int:
        return int(self._c.busy)

    @total.setter
    def total(self, total: int) -> None:
        self._c.busy = total

    def add(self, now: int, duration: int) -> None:
        self._c.free_at = max(self.free_at, now) + duration
        self._c.busy += duration


class SharedBusy(Busy):
    """The same of a task that shares cores: it is busy for as long as it has one. When it will be free only
    the data plane knows: nobody may reckon with ``free_at``.
    """

    __slots__ = ("_plane",)

    def __init__(self, plane: Plane, c: Any) -> None:
        super().__init__(plane, c)
        self._plane = plane

    def until(self, now: int) -> float:  # type: ignore[override]
        c = self._c
        had: float = c.had
        if c.works:
            cores = self._plane.p.cores[c.cores]
            had += cores.shared + (now - cores.since) * cores.share
        return had

    def add(self, now: int, duration: int) -> None:
        self._plane.lib.plane_occupy(self._plane.p, self._c.number, now, duration)


class FlowNode:
    """A task of which the struct ``c`` is in the data plane's ``task`` array.

    _turns   actions of the control markers in its queue, by number, each with its rank
    """

    c: Any
    life: int
    number: int
    _kernel: Clock

    def _join(self, plane: Plane, number: int) -> None:
        """It is the task of this number in the data plane."""
        self._plane = plane
        self.c = plane.tasks[number]
        self.c.number, self.c.up, self.c.serving, self.c.fills = number, 1, -1, -1
        self.c.cores = -1
        self._turns: dict[int, tuple[int, Action]] = {}
        self._placed = 0
        self.gave_up: Action = int  # type: ignore[assignment]
        """Called when what it was to send later is forgotten."""
        self.number = number

    @property
    def up(self) -> bool:
        """Its process lives."""
        return bool(self.c.up)

    @up.setter
    def up(self, up: bool) -> None:
        self.c.up = up
        if not up:
            self.c.line.moves = NEVER

    # -- control markers -------------------------------------------------------------------------------------

    def enqueue(
        self, rank: int, action: Action, reads: Reads = None, first: bool = False, *, last: bool = False
    ) -> None:
        """Put a control marker at the end of the queue now, or ``first`` ahead of all that waits; ``action``
        runs when all that is ahead of it has been served, unless the task crashes. ``last``: the action under
        way does nothing after it.
        """
        self._plane.have_messages(1)
        self._placed += 1
        self._turns[self._placed] = rank, action
        kernel = self._kernel
        if not self._plane.lib.plane_place(self._plane.p, self.number, kernel.now, self._placed, first):
            return
        if last and kernel.goes_on(rank, self.number):
            self._act(self._placed, self.life)
        else:
            self._has_turn(self._placed, kernel.now)

    def turn(self, when: int) -> None:
        """The first control marker of the queue has its turn, which comes by the data."""
        p = self._plane.p
        self._has_turn(p.messages[self.c.queue.head].uid, when)

    def _has_turn(self, name: int, when: int) -> None:
        rank, _ = self._turns[name]
        self._kernel.at_turn(when, rank, partial(self._act, name, self.life), self.number)

    def _act(self, name: int, life: int) -> None:
        if life != self.life or name not in self._turns:
            return
        stopped = int(self.c.stopped_until)
        if stopped > self._kernel.now:  # a fault of this instant came before its turn
            self._kernel.at_turn(stopped, self._turns[name][0], partial(self._act, name, life), self.number)
            return
        _, action = self._turns.pop(name)
        self._plane.lib.plane_turn_over(self._plane.p, self.number)
        action()

    def look_at_markers(self) -> None:
        """What is ahead of the first marker may have gone: the data plane sees to it."""

    def _cancel_markers(self) -> None:
        self._turns.clear()

    # -- life ------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Forget what was planned: markers, and the service under way, which begins anew."""
        self.life += 1
        self._plane.lib.plane_interrupt(self._plane.p, self.number, self._kernel.now)
        self.gave_up()
        self._cancel_markers()

    def _die(self) -> None:
        """It is down: it does nothing more, and nothing leaves."""
        c, self.up = self.c, False
        c.stopped_until, c.free_at = 0, self._kernel.now

    def _live(self) -> None:
        """It is up again, and what waits in its line may leave."""
        self.up = True
        self.life += 1
        c, now = self.c, self._kernel.now
        c.free_at = max(c.free_at, now)
        if c.line.messages.n:
            c.line.moves = now
