"""The contract between SimPy, which decides, and the compiled data plane, which moves all tuples; and the
order of what happens at one instant. All that acts in a simulation goes through it.

Control actions are SimPy events with a rank. Each of them first moves all data up to now: what departs at
or before now is handed on, the rest stays where it is. So a crash at now loses exactly what was queued or
in service, and nothing is ever taken back.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import simpy
from pydantic import AfterValidator

from tideover.sim.plane.plane import Plane

Process = Generator[simpy.Event, Any, None]
Action = Callable[[], None]
FAR = 1 << 62


class Rank(IntEnum):
    """Order of control actions at one instant (SimPy's own priorities are 0 and 1)."""

    FAULT = 10
    READY = 11
    WINDOW = 12
    RESTORE = 13
    CHECKPOINT = 14
    TRIM = 15
    REQUEST = 16
    MARKER = 17
    ROTATION = 18
    BATCH = 19
    SAMPLE = 20
    """Who only looks."""


ORDER = 1 << 20
"""Room for an order among control actions of one rank."""


class Kernel:
    """Clock and control events, and the data up to each of them.

    plane      the data plane; None: there is none (yet)
    handlers   who sees to what the data plane comes back for, by reason: with the number of a task, and when
    before     called before data moves
    reach      asked before data moves up to a moment: how far it may move now
    listeners  called with the instant when all data has been moved up to one
    """

    def __init__(self) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.plane: Plane | None = None
        self.now = 0
        """The present, ns."""
        self.handlers: dict[int, Callable[[int, int], None]] = {}
        self.before: Action = int  # type: ignore[assignment]
        self.reach: Callable[[int], int] = int
        self.listeners: list[Callable[[int], None]] = []
        self.acting: float = 0
        """The turn at its instant of the action that acts now: ``rank * ORDER + order``."""
        self._resting: set[simpy.Event] = set()
        """Events before which data need not move."""

    def until(self, when: int, rank: int, order: float = 0) -> simpy.Event:
        """An event at ``when`` (ns, not in the past) for a process to yield; data is moved before it resumes.
        At one instant ``rank`` decides, then ``order`` (the number of the task that acts).
        """
        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        turn = rank * ORDER + order
        event.callbacks.append(partial(self._begin, turn))
        self.env.schedule(event, priority=turn, delay=when - self.now)
        return event

    def at(self, when: int, rank: int, action: Action, order: int = 0) -> simpy.Event:
        """Call ``action`` at ``when``, after all data has been moved there."""
        event = self.until(when, rank, order)
        event.callbacks.append(lambda _: action())
        return event

    def at_rest(self, when: int, rank: int, action: Action, order: int) -> None:
        """The same for an action that neither looks at data nor touches any, or advances it itself before."""
        event = self.until(when, rank, order)
        self._resting.add(event)
        event.callbacks.append(lambda _: self._resting.discard(event))
        event.callbacks.append(lambda _: action())

    def at_turn(self, when: int, rank: int, action: Action, order: int) -> None:
        """Call ``action`` at ``when``, which data has come to while it was moved to a later moment."""
        now, self.now = self.now, int(self.env._now)
        assert when >= self.now, (when, self.now)
        self.at(when, rank, action, order)
        self.now = now

    def process(self, process: Process) -> None:
        """Start a control process, which yields ``until(...)``."""
        self.env.process(process)

    def every(
        self, first: int, interval: int, rank: int, action: Callable[[int], None], order: int = 0
    ) -> None:
        """Call ``action(i)`` at ``first`` + i * ``interval``, i = 0, 1, …"""

        def ticking() -> Process:
            for i in itertools.count():
                yield self.until(first + i * interval, rank, order)
                action(i)

        self.process(ticking())

    def is_later(self, rank: int, order: int) -> bool:
        """Whether the turn of this rank and order comes after that of the action which acts now."""
        return rank * ORDER + order > self.acting

    def goes_on(self, rank: int, order: int) -> bool:
        """Whether what is put into this turn now would act next, if the action under way did nothing more."""
        turn = rank * ORDER + order
        if turn != self.acting:
            return False
        queue = self.env._queue
        return not queue or queue[0][:2] > (self.now, turn)

    def _begin(self, turn: float, event: simpy.Event) -> None:
        """An action's time has come. Data is there already, but for what rests."""
        self.now, self.acting = int(self.env._now), turn
        if event in self._resting or self.plane is None:
            return
        p = self.plane.p
        p.turn = p.turn + 1 if p.instant == self.now else 1
        p.instant = self.now

    def advance(self) -> None:
        """Move all data at or before now."""
        while not self._flow(self.now):
            pass

    def _flow(self, until: int) -> bool:
        """Move the data up to ``until``; False: a control marker has its turn before that, or then."""
        plane, handlers = self.plane, self.handlers
        self.before()
        while plane is not None:
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
        for listen in self.listeners:
            listen(until)
        return True

    def next_data_event(self) -> int | None:
        """The next instant at which data moves by itself somewhere; None: never."""
        plane = self.plane
        assert plane is not None
        nodes = range(plane.p.n_tasks + plane.p.n_cards)
        found = min((plane.lib.plane_next_event(plane.p, each) for each in nodes), default=FAR)
        return None if found >= FAR else int(found)

    def run(self, until: int) -> None:
        """Run to ``until``, control actions at that instant included."""
        queue = self.env._queue
        with standing():
            while True:
                head = int(queue[0][0]) if queue else FAR
                # a control marker may wait for its turn, and have it before
                waits = self.plane is not None and bool(self.plane.p.waiting)
                if head <= until and queue[0][3] in self._resting and not waits:
                    self.env.step()
                elif self._flow(min(head, until)):
                    if head > until:
                        break
                    self.env.step()
            self.now = until
            self.env._now = until


RANKS = {rank.name.lower(): rank for rank in Rank if rank is not Rank.SAMPLE}
_TEXT = re.compile(r"(before|after) ([a-z]+)(?: of (\S+))?")


class Turn(NamedTuple):
    """Just before, or just after, what acts at an instant with a rank.

    side  -1: before, 1: after
    rank  of those actions
    of    name of the task that acts, or the number by which it has its turn; None: all of this rank
    """

    side: int
    rank: Rank
    of: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads ``after checkpoint of count.1``; raises ValueError.

        >>> Turn.parse("before trim of split.0")
        Turn(side=-1, rank=<Rank.TRIM: 15>, of='split.0')
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no turn; write before or after, a rank, a task: after trim of a.0")
        side, rank, of = found.groups()
        if rank not in RANKS:
            raise ValueError(f"unknown rank {rank!r}; the ranks of an instant are {', '.join(RANKS)}")
        return cls(1 if side == "after" else -1, RANKS[rank], of)

    def order(self, tasks: Mapping[str, int]) -> float:
        """Where that is among the orders of its rank, by the tasks' numbers; ValueError: no such task."""
        if self.of is None:
            return ORDER - 2 if self.side > 0 else -1  # ahead of what strikes before the next rank
        if self.of in tasks:
            return tasks[self.of] + self.side / 3
        if self.of.isdecimal():
            return int(self.of) + self.side / 3
        raise ValueError(f"there is no task {self.of!r}; tasks are {', '.join(tasks)}")


def _checked(text: str) -> str:
    Turn.parse(text)
    return text


TurnText = Annotated[str, AfterValidator(_checked)]
"""A turn as a scenario writes it."""


MORE = 200_000
"""So many objects more than at the last search, and garbage that refers to itself is searched for again."""
_stands = False


@contextmanager
def standing() -> Iterator[None]:
    """Python does not look for garbage that refers to itself in what stands already, and seldom in what is
    new. At the end it is looked for in what is new, and all is as before, but that what somebody else has
    frozen is looked through again. Another such stretch within it changes nothing.

    Trains that are read live for a moment, and nothing that they refer to refers to them: to look through
    them, and through all tasks and channels, is for nothing. But a world refers to itself: what is built in
    such a stretch, and is not kept, gives its memory back at the end.
    """
    global _stands
    if _stands:
        yield
        return
    first, second, third = gc.get_threshold()
    wanted = first > 0 and gc.isenabled()  # else somebody wants no search
    gc.freeze()
    if wanted:
        gc.set_threshold(max(first, MORE), second, third)
    _stands = True
    try:
        yield
    finally:
        _stands = False
        gc.set_threshold(first, second, third)
        if wanted:
            gc.collect()
        gc.unfreeze()
