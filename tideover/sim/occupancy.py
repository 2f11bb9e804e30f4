"""How long a node is busy, and from when on it is free."""

from __future__ import annotations


class Occupancy:
    """The time of a node that does one thing at a time (all in ns).

    free_at         it is free from then on
    stopped_until   its process is stopped until then
    total           how long it has been busy, and will be with what it has been given already
    """

    __slots__ = ("free_at", "stopped_until", "total")

    def __init__(self) -> None:
        self.free_at = 0
        self.stopped_until = 0
        self.total = 0

    def add(self, now: int, duration: int) -> None:
        """Busy for ``duration`` from now, or from when it is free."""
        self.free_at = max(self.free_at, now) + duration
        self.total += duration

    def until(self, now: int) -> int:
        """How long it has been busy up to now."""
        return self.total - max(0, self.free_at - max(now, self.stopped_until))

    def drop(self, now: int) -> None:
        """What was to keep it busy from now on does so no more."""
        self.total = self.until(now)
        self.free_at = max(now, self.stopped_until)

    def stop(self, now: int, until: int) -> int:
        """It does nothing before ``until``, then goes on; returns by how much all that it has to do is
        later.
        """
        shift = max(0, until - max(now, self.stopped_until))
        self.stopped_until = max(self.stopped_until, until)
        self.free_at = max(self.free_at, now) + shift
        return shift

    def resume(self, now: int) -> None:
        """It can begin with something from now on."""
        self.free_at = max(self.free_at, now)

    def turn(self, now: int) -> int:
        """The first instant, from now on, at which it may be free."""
        return max(self.free_at, now)

    def begin_anew(self, now: int) -> None:
        """A crash: nothing keeps it busy or stops it."""
        self.drop(now)
        self.stopped_until = 0
        self.free_at = now
