"""The contract between SimPy, which decides, and numpy, which flows.

Control actions are SimPy events with a rank. Each of them first moves the data plane up to now: tasks in
topological order hand on only what departs at or before now, the rest stays inside them. So a crash at now
loses exactly what was queued or in service, and nothing is ever taken back.

An action that says what it reads moves only that and what is upstream of it. The rest catches up later, in
longer trains; what anybody sees of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

import simpy

from tideover.sim.memory import standing

Process = Generator[simpy.Event, Any, None]


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
BEHIND = 1 << 16
"""Most roots that a part of the data plane may be behind."""


class Mover(Protocol):
    """A node of the data plane."""

    def flow(self, now: int) -> None:
        """Move everything at or before ``now``."""

    def next_event(self) -> int | None:
        """The next instant at which data moves here by itself; None: never."""


Reads = tuple[Mover, ...] | None
"""Where in the data plane the things are that a control action looks at or changes: in these nodes or
upstream of them. What it sends must not arrive now anywhere else: there it has to come behind all data of
this instant. None: they may be anywhere, or in an account of the whole.
"""


class Source(Protocol):
    """A node that makes tuples: says how far the data plane may be moved in one step."""

    def horizon(self, now: int) -> int:
        """An instant after the last step, at most ``now``, before which the source needs no feedback."""


class Look(NamedTuple):
    """What is to be called when something may have happened, at ``when`` (ns) at the latest."""

    when: int
    rank: int
    action: Callable[[], None]
    order: int
    reads: Reads


def _horizon(sources: list[Source], now: int) -> int:
    """How far all of these let the data plane go in one step."""
    step = now
    for source in sources:
        step = min(step, source.horizon(now))
    return step


class Kernel:
    """Clock, control events, and the nodes of the data plane in topological order.

    nodes        register themselves, in topological order
    movers       what moves the data plane, in this order: the nodes, and what has to happen between them
    listeners    are called with the instant after every step that all of the data plane has taken
    made         roots that sources have made since then
    feedback     whether all is moved, whatever an action reads: what happens anywhere may reach a source at
                 once, or the order in which messages come to a card depends on it
    """

    def __init__(self) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.now = 0
        """The present, ns."""
        self.nodes: list[Mover] = []
        self.movers: Sequence[Mover] = self.nodes
        self.sources: list[Source] = []
        self.listeners: list[Callable[[int], None]] = []
        self.moved_to = -1
        self.made = 0
        self.feedback = False
        self.acting: float = 0
        """The turn at its instant of the action that acts now: ``rank * ORDER + order``."""
        self._looks: dict[simpy.Event, Look] = {}
        self._upstream: dict[tuple[Mover, ...], tuple[list[Source], list[Mover]]] = {}

    # -- control plane ---------------------------------------------------------------------------------------

    def until(self, when: int, rank: int, order: float = 0, reads: Reads = None) -> simpy.Event:
        """An event at ``when`` (ns, not in the past) for a process to yield; the data plane is moved before
        it resumes.

        ``rank`` decides among the control actions of one instant, then ``order`` (the number of the task that
        acts). ``reads``: what of the data plane is moved.
        """
        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        assert event.callbacks is not None
        event.callbacks.append(partial(self._move, reads, rank * ORDER + order))
        self.env.schedule(event, priority=rank * ORDER + order, delay=when - self.now)
        return event

    def at(
        self,
        when: int,
        rank: int,
        action: Callable[[], None],
        order: int = 0,
        reads: Reads = None,
    ) -> simpy.Event:
        """Call ``action`` at ``when``, after what it ``reads`` has been moved there (None: the whole data
        plane).
        """
        event = simpy.Event(self.env)
        event._ok, event._value = True, None

        def act(_: simpy.Event) -> None:
            self._move(reads, rank * ORDER + order, event)
            action()
            if self._looks:
                self.acted()

        assert event.callbacks is not None
        event.callbacks.append(act)
        self.env.schedule(event, priority=rank * ORDER + order, delay=when - self.now)
        return event

    def at_rest(self, when: int, rank: int, action: Callable[[], None], order: int) -> None:
        """The same for an action that neither looks at data nor touches any, or advances it itself before."""
        self.at(when, rank, action, order, ())

    def in_turn(
        self, when: int, rank: int, action: Callable[[], None], order: int, reads: Reads = None
    ) -> None:
        """The same as ``at``, for a turn that comes by the data: behind what was to act at that instant, with
        this rank and order, before it began.
        """
        begins = simpy.Event(self.env)
        begins._ok, begins._value = True, None

        def begin(_: simpy.Event) -> None:
            self.now = when
            self.at(when, rank, action, order, reads)

        assert begins.callbacks is not None
        begins.callbacks.append(begin)
        self.env.schedule(begins, priority=0, delay=when - self.now)

    def process(self, process: Process) -> None:
        """Start a control process: a generator that yields ``until(...)``."""
        self.env.process(process)

    def every(
        self,
        first: int,
        interval: int,
        rank: int,
        action: Callable[[int], None],
        order: int = 0,
        reads: Reads = None,
    ) -> None:
        """Call ``action(i)`` at ``first`` + i * ``interval``, i = 0, 1, …"""

        def ticking() -> Process:
            i = 0
            while True:
                yield self.until(first + i * interval, rank, order, reads)
                action(i)
                self.acted()
                i += 1

        self.process(ticking())

    def is_later(self, rank: int, order: int) -> bool:
        """Whether the turn of this rank and order comes after that of the action which acts now."""
        return rank * ORDER + order > self.acting

    def goes_on(self, rank: int, order: int) -> bool:
        """Whether what is put into this turn now would act next, if the action under way did nothing more,
        and would find nothing moved by it.
        """
        turn = rank * ORDER + order
        if turn != self.acting or self._looks or self.feedback:
            return False
        queue = self.env._queue
        return not queue or queue[0][:2] > (self.now, turn)

    # -- data plane ------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Move all data at or before now, in steps that no feedback can reach into."""
        now = self.now
        while True:
            step = _horizon(self.sources, now)
            for mover in self.movers:
                mover.flow(step)
            self.moved_to = step
            self.made = 0
            for listen in self.listeners:
                listen(step)
            if step >= now:
                return

    def _move(self, reads: Reads, turn: float, _: simpy.Event) -> None:
        """An action's time has come."""
        self.now, self.acting = int(self.env._now), turn
        self.move(reads)

    def move(self, reads: Reads) -> None:
        """Move to now what an action reads that is a part of the one that acts."""
        if reads is None or self.feedback or self.made > BEHIND:
            self.advance()
            return
        if not reads:
            return
        now = self.now
        sources, nodes = self._up_to(reads)
        while True:
            step = _horizon(sources, now)
            for node in nodes:
                node.flow(step)
            if step >= now:
                return

    def _up_to(self, reads: tuple[Mover, ...]) -> tuple[list[Source], list[Mover]]:
        """These nodes and all that is upstream of them: the sources among them, and the nodes in topological
        order.
        """
        if reads not in self._upstream:
            found: set[object] = set(reads)
            movers: set[object] = set(self.nodes)
            for each in reversed(self.nodes):
                if each in found:
                    found.update(channel.up for channel in getattr(each, "inputs", ()))
            nodes = [each for each in self.nodes if each in found]
            sources = [each for each in self.sources if each in found or each not in movers]
            self._upstream[reads] = sources, nodes
        return self._upstream[reads]

    def next_data_event(self) -> int | None:
        """The next instant at which data moves by itself somewhere; None: never."""
        times = (node.next_event() for node in self.nodes)
        return min((t for t in times if t is not None and t >= self.moved_to), default=None)

    def next_event(self) -> int:
        """The next instant at which data moves by itself, or something acts."""
        data = self.next_data_event()
        actions = [when for when, _, _, event in self.env._queue if event not in self._looks]
        return min(actions if data is None else [data, *actions], default=self.now + 1)

    def look_again(
        self, when: int, rank: int, action: Callable[[], None], order: int, reads: Reads = None
    ) -> None:
        """The same as ``at``, for who waits for others to do something: nobody has to wait for that. If
        something acts before, it is called then.
        """
        event = simpy.Event(self.env)
        event._ok, event._value = True, None

        def look(_: simpy.Event) -> None:
            waits = len(self._looks)
            del self._looks[event]
            self._move(reads, rank * ORDER + order, event)
            action()
            if len(self._looks) < waits:  # it waits no more
                self.acted()

        assert event.callbacks is not None
        event.callbacks.append(look)
        self._looks[event] = Look(when, rank, action, order, reads)
        self.env.schedule(event, priority=rank * ORDER + order, delay=when - self.now)

    def acted(self) -> None:
        """Something has acted: who waits for that looks at this instant."""
        if not self._looks:
            return
        later = [(event, each) for event, each in self._looks.items() if each.when > self.now]
        for event, look in later:
            assert event.callbacks is not None
            event.callbacks.clear()
            del self._looks[event]
            self.look_again(self.now, look.rank, look.action, look.order, look.reads)

    def run(self, until: int) -> None:
        """Run to ``until``, control actions at that instant included."""
        stop = simpy.Event(self.env)
        stop._ok, stop._value = True, None
        self.env.schedule(stop, priority=1000 * ORDER, delay=until - self.now)
        with standing():
            self.env.run(stop)
            self.now = until
            self.advance()
