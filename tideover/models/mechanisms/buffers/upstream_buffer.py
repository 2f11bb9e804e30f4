"""Upstream buffers: what a sender keeps of a channel until its receiver has it safe.

R. Castro Fernandez et al., *Integrating Scale Out and Fault Tolerance in Stream Processing using Operator
State Management*, SIGMOD 2013, section 3.2. The data plane numbers and keeps, sends again and lets in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tideover.models.mechanisms.duplicate_filter import Seen
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.train import Ints, Train


class Kept(NamedTuple):
    """A copy of an upstream buffer: its messages, the newest number sent, and the newest that was lost.

    rows   of the data plane, with their numbers in the place of arrivals
    """

    plane: Plane
    rows: Rows
    sent: int
    gone_to: int

    def above(self, number: int) -> int:
        """How many of its messages have a greater number."""
        return int(np.count_nonzero(self.rows["arrival"] > number))

    def tuples(self) -> list[Train]:
        """Its messages without the markers."""
        return [without_markers(self.plane.train(self.rows))] if len(self.rows) else []


class UpstreamBuffer:
    """The sender's side of one channel: what is made for it from now on is numbered and kept.

    safe   the receiver has everything up to this number safe, and has said so
    c      the struct ``buffer``
    """

    def __init__(self, channel: Wire, plane: Plane) -> None:
        plane.number()
        self.channel, self.plane = channel, plane
        self.safe = 0
        self._bare = False
        self.c: Any = plane.ffi.new("buffer *")
        plane.keep(self.c)
        channel.c.buffer = self.c

    @property
    def sent(self) -> int:
        """Newest number."""
        return int(self.c.sent)

    @property
    def size(self) -> int:
        """How many messages are kept."""
        return int(self.c.kept.n)

    @property
    def gone_to(self) -> int:
        """Messages up to this number went down with the sender, if they were not trimmed before."""
        return int(self.c.gone_to)

    def trim(self, safe: int) -> None:
        """Drop the messages up to number ``safe``."""
        self.safe = max(self.safe, safe)
        self.plane.lib.plane_trim(self.plane.p, self.channel.number, safe)

    def drop_known(self, seen: Seen, newest_mark: int = 0) -> None:
        """Drop the tuples that were seen, and marks up to this one."""
        plane, greatest = self.plane, self.plane.ffi.from_buffer("int64_t[]", seen.greatest)
        plane.lib.plane_trim_known(plane.p, self.channel.number, greatest, newest_mark)

    def clear(self) -> None:
        """Lose everything: the sender has crashed."""
        self._bare = True
        self.plane.lib.plane_lose_copies(self.plane.p, self.channel.number)

    def copy(self) -> Kept:
        """What is in it now."""
        return Kept(self.plane, self._all(), self.sent, self.gone_to)

    def become(self, kept: Kept) -> None:
        """Have what a copy has, and nothing else."""
        self.plane.lib.plane_trim(self.plane.p, self.channel.number, self.sent)
        self._keep(kept.rows)

    def follow(self, other: UpstreamBuffer) -> None:
        """Keep what another buffer keeps, and nothing else, as if it had been sent here now."""
        rows = other._all()
        self.plane.lib.plane_trim(self.plane.p, self.channel.number, self.sent)
        rows["arrival"] = np.arange(self.sent + 1, self.sent + len(rows) + 1)
        self.c.sent += len(rows)
        self._keep(rows)

    def put_back(self, kept: Kept) -> None:
        """Have again what went down with the sender, as far as the copy has it."""
        if self._bare:
            self._bare = False
            self.become(kept)
            self.c.gone_to = kept.gone_to if kept.sent == self.sent else self.sent

    def _keep(self, rows: Rows) -> None:
        plane = self.plane
        plane.have_chunks(len(rows))
        plane.lib.plane_keep(plane.p, self.channel.number, plane.ffi.from_buffer("row[]", rows), len(rows))

    def uids(self) -> Ints:
        """Uids of the tuples (not the markers) in the buffer."""
        return self.tuples()[0].uid

    def tuples(self) -> list[Train]:
        """The tuples (not the markers) in the buffer."""
        return [self.plane.tuples(self.c.kept)]

    def _all(self) -> Rows:
        """The copies, with their numbers in the place of arrivals."""
        return self.plane.stored(self.c.kept)
