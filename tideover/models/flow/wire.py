"""A channel of the compiled data plane, as the rest of a job sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tideover.sim.link import Carried
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.runtime.bolt_task import BoltTask
    from tideover.models.runtime.spout_task import SpoutTask
    from tideover.sim.plane.plane import Plane


SENDER = "sender"
"""Column: number of the task that a message came from, counted from 1; 0: it has not arrived anywhere."""


class Wire:
    """From one task to another: what it has carried, and what befalls it.

    number     its place among all channels of the data plane
    position   which of the receiver's inputs it is
    remote     whether its ends are on different hosts
    """

    __slots__ = ("_plane", "_slow", "c", "down", "message_bytes", "number", "position", "remote", "up")

    def __init__(
        self,
        plane: Plane,
        number: int,
        up: SpoutTask | BoltTask,
        down: BoltTask,
        position: int,
        message_bytes: int,
        remote: bool,
    ) -> None:
        self._plane, self.number, self.up, self.down = plane, number, up, down
        self.position, self.message_bytes, self.remote = position, message_bytes, remote
        self._slow: dict[int, float] = {}
        self.c: Any = plane.channels[number]
        """The struct ``channel``."""

    # -- what it has carried ---------------------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """Messages that were sent."""
        return int(self.c.sent)

    @property
    def bytes(self) -> int:
        """Bytes carried so far."""
        return self.messages * self.message_bytes

    @property
    def remote_bytes(self) -> int:
        """Those of them that went from one host to another."""
        return self.bytes if self.remote else 0

    @property
    def by_way(self) -> list[Carried]:
        """What it has carried, by where its ends were."""
        return [Carried(self.up.host, self.down.host, self.messages, self.bytes, self.remote)]

    @property
    def on_the_way(self) -> Sequence[Train]:
        """All that was sent and has not arrived."""
        train = self._plane.listed(self.c.wire)
        return [train] if train.n else []

    @property
    def delay(self) -> int | None:
        """Latency of every message, ns; None: it varies."""
        constant = self.c.latency.kind == self._plane.lib.DRAW_CONSTANT
        return int(self.c.latency.low) if constant else None

    # -- what befalls it -------------------------------------------------------------------------------------

    def hold(self, until: int) -> None:
        """Nothing gets through before ``until`` (ns)."""
        self._plane.lib.plane_hold(self._plane.p, self.number, self._plane.p.now, until)

    def let_go(self, now: int) -> None:
        """What is sent from now on is not held up any more, and what was held up arrives now."""
        self._plane.lib.plane_let_go(self._plane.p, self.number, now)

    def slow_down(self, reason: int, latency: float, transfer: float) -> None:
        """Messages that come to the wire from now on are on it for ``latency`` times as long; of several
        reasons the greatest factor holds.
        """
        self._slow[reason] = latency
        self.c.stretch = max(self._slow.values())

    def recover(self, reason: int) -> None:
        """What made it slow does so no more."""
        del self._slow[reason]
        self.c.stretch = max([1.0, *self._slow.values()])
