"""Waiting for messages that are on the wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tideover.sim.kernel import Kernel, Reads
from tideover.sim.link import Channel


def when_arrived(
    kernel: Kernel,
    sent: Sequence[tuple[Channel, int]],
    earliest: int,
    rank: int,
    action: Callable[[], None],
    order: int = 0,
    reads: Reads = None,
) -> None:
    """Call ``action`` when on each channel message number so-and-so (from 1) has arrived, at ``earliest``.

    When a message comes through a card is certain only when it has come to it; until then, and as long as one
    waits in its sender's line, this looks again. One that is lost there never arrives.
    ``rank``, ``order``, ``reads``: see the kernel.
    """
    look = partial(when_arrived, kernel, sent, earliest, rank, action, order, reads)
    waits = [(channel, count) for channel, count in sent if count > channel.messages]
    if waits:
        if all(count <= channel.messages + waiting(channel) for channel, count in waits):
            kernel.look_again(max(kernel.now + 1, kernel.next_event()), rank, look, order, reads)
        return
    found = [channel.arrival(count) for channel, count in sent]
    when = max([kernel.now, earliest, *(time for time, _ in found)])
    if not all(certain for _, certain in found):
        action = look
    kernel.at(when, rank, action, order, reads)


def waiting(channel: Channel) -> int:
    """Messages that wait in their sender's line to leave by a channel."""
    return 0 if channel.up.line is None else channel.up.line.count(channel)
