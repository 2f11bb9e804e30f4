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

    When a message comes through a card is certain only when it has come to it; until then this looks again.
    ``rank``, ``order``, ``reads``: see the kernel.
    """
    found = [channel.arrival(count) for channel, count in sent]
    when = max([kernel.now, earliest, *(time for time, _ in found)])
    if not all(certain for _, certain in found):
        action = partial(when_arrived, kernel, sent, earliest, rank, action, order, reads)
    kernel.at(when, rank, action, order, reads)
