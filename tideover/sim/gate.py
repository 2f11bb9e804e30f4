"""Where arrivals wait that a server does not take into its queue."""

from __future__ import annotations

from collections.abc import Callable

from tideover.sim.queue import Queue
from tideover.sim.train import Train, join


class Gate:
    """Tuples at a server that are not in its queue.

    closed     the server is up, but takes nothing in yet: arrivals are held
    hold       while it is down: hold what arrives (True), or lose it
    from_log   what waits here waits in a log: held whenever the server is down, and no crash takes it
    stopped    the server is down with its queue kept
    held       arrivals that were not admitted yet
    set_aside  positions of the inputs over which what comes is set aside
    aside      admitted tuples that are out of the queue for a while; a crash takes them all the same
    unreadable asks for what has come and may not be read yet: it is neither admitted nor held
    """

    def __init__(self, queue: Queue, admit: Callable[[Train], Train], clock: Callable[[], int]) -> None:
        self._queue, self._admit, self._clock = queue, admit, clock
        self.closed = False
        self.hold = False
        self.from_log = False
        self.stopped = False
        self.set_aside: set[int] = set()
        self.held: list[Train] = []
        self.aside: list[Train] = []
        self.unreadable: Callable[[], list[Train]] = list
        self.take_in: Callable[[Train, list[Train]], list[Train]] | None = None
        """What of held tuples, that come behind others, finds room; None: all of it."""

    def holds(self, up: bool) -> bool:
        """Whether what arrives at a server that takes nothing in is held, and not lost."""
        return self.hold or up or self.from_log

    def open(self) -> None:
        """Let in now what was set aside and held: it arrives at this instant, before anything later."""
        now = self._clock()
        trains = [train for train in self.aside if train.n]  # admitted before
        if self.held:
            held = self._admit(join(self.held).at(now))
            trains += [held] if self.take_in is None else self.take_in(held, trains)
        self.aside, self.held = [], []
        self._queue.refill([train for train in trains if train.n])

    def crash(self, up: bool) -> list[Train]:
        """The server crashes (``up``: it was not down already): what it had in memory is lost; returns
        it.
        """
        lost, self.aside = self.aside, []
        self.closed = self.stopped = False
        if up and not self.from_log:  # else what is held waits with its sender
            lost = lost + self.held
            self.held = []
        return lost

    def keep(self, up: bool, queue: list[Train]) -> None:
        """The server goes down, but what is in its memory is kept, with its ``queue``."""
        self.aside = queue + self.aside
        self.closed, self.stopped = False, True
        if up and not self.from_log and self.held:  # in its memory, not with the senders
            self.aside.append(self._admit(join(self.held).at(self._clock())))
            self.held = []
