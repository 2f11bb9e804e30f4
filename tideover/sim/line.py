"""The sending line: what a node has made and not sent yet, because there was no room for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from tideover.sim.train import Ints, Train

NONE: Ints = np.zeros(0, np.int64)
PLACELESS = "placeless"
"""Column: not 0 if the tuple takes no place: it has been in service before, or waits in a log."""

OVER = "over"
"""Column: over which input a tuple came, counted from 1, where each input has its own places."""


class Channel(Protocol):
    """By which messages leave."""

    @property
    def down(self) -> object:
        """Who gets them."""

    def made(self, train: Train) -> Train:
        """They are made now."""

    def put(self, train: Train) -> None:
        """They leave."""


@dataclass(frozen=True)
class Bound:
    """How many messages may wait before a server, and what happens to one more.

    block    it waits with its sender until there is a place
    drop     it is lost
    credits  as block, but ``length`` places for each channel, and the sender learns of a free one after the
             latency of the link
    """

    length: int
    when_full: Literal["block", "drop", "credits"]

    @property
    def apart(self) -> bool:
        """Whether each channel has its own places."""
        return self.when_full == "credits"

    @property
    def holds_back(self) -> bool:
        """Whether senders wait."""
        return self.when_full != "drop"


class Batch:
    """Messages that were made together.

    entries  a train for each channel
    order    for each message, in the order in which they leave, whose turn it is: the place of its entry
    parent   for each of them, the row of the tuple that it was made of
    """

    def __init__(self, entries: Sequence[tuple[Channel, Train]], order: Ints, parent: Ints) -> None:
        self.entries = entries
        self.order = order
        self.parent = parent

    @classmethod
    def of(cls, parts: list[tuple[Channel, Train, Ints | None]], parents: Ints | None) -> Batch:
        """Messages in the order of the tuples sent: child by child, then in the order of ``parts``.

        ``parts``: channel, train, and for each of its rows the number of the child; ``parents``: for each
        child the row of its parent. None: each its own.
        """
        if len(parts) == 1:
            ((channel, train, rows),) = parts
            alone = np.arange(train.n, dtype=np.int64) if rows is None else rows
            parent = alone if parents is None else parents[alone]
            return cls([(channel, train)], np.zeros(train.n, np.int64), parent)
        child = [np.arange(t.n, dtype=np.int64) if rows is None else rows for _, t, rows in parts]
        whole = np.concatenate([NONE, *child])
        turn = np.argsort(whole, kind="stable")
        entry = np.repeat(np.arange(len(parts), dtype=np.int64), [t.n for _, t, _ in parts])
        whole = whole[turn]
        parent = whole if parents is None else parents[whole]
        return cls([(channel, train) for channel, train, _ in parts], entry[turn], parent)

    def column(self, name: str) -> Ints:
        """Of the messages, in the order in which they leave."""
        values = np.zeros(len(self.order), np.int64)
        for place, (_, train) in enumerate(self.entries):
            values[self.order == place] = train.column(name)
        return values

    def pick(self, kept: npt.NDArray[np.bool_]) -> Batch:
        """Those of the messages, in the order in which they leave, that are ``kept`` (at least one)."""
        parts = [(way, train.pick(kept[self.order == i])) for i, (way, train) in enumerate(self.entries)]
        number = np.cumsum([train.n > 0 for _, train in parts]) - 1
        entries = [(way, train) for way, train in parts if train.n]
        return Batch(entries, number[self.order[kept]], self.parent[kept])


class Line:
    """Messages of one node that have not left it, in the order in which they were made.

    send          how many of them there may be while the node goes on
    asked         since when the first of them has waited for room (ns); None: it does not
    blocked_since since when there are more than ``send``; None: there are not
    blocked       for how long there were before that (ns)
    log           of what passes straight through: to whom, and when

    What is put in passes straight through if the line is ``open``, is kept until somebody lets it leave, or
    (``muted``) has left already. What is worked out ``ahead`` is not made yet.
    """

    def __init__(self, send: int) -> None:
        self.send = send
        self.asked: int | None = None
        self.blocked_since: int | None = None
        self.blocked = 0
        self.open = False
        self.muted = False
        self.ahead = False
        self.log: list[tuple[object, Train]] = []
        self.batches: deque[Batch] = deque()
        self._parts: list[tuple[Channel, Train, Ints | None]] = []

    def put(self, channel: Channel, train: Train, rows: Ints | None = None) -> None:
        """Messages for ``channel``; ``rows``: for each of them the number of the child that it is."""
        if not train.n:
            return
        if not self.ahead:
            train = channel.made(train)
        if self.open:
            self._send(channel, train)
        elif not self.muted:
            self._parts.append((channel, train, rows))

    def put_again(self, channel: Channel, train: Train) -> None:
        """Messages (not none) that were made before: a replay."""
        if self.open:
            self._send(channel, train)
        elif not self.muted:
            self.batches.append(Batch.of([(channel, train, None)], None))

    def _send(self, channel: Channel, train: Train) -> None:
        channel.put(train)
        self.log.append((channel.down, train))

    def close(self, parents: Ints | None = None) -> None:
        """All that was put in since the last time was made together."""
        if self._parts:
            self.batches.append(Batch.of(self._parts, parents))
            self._parts = []

    def let_out(self) -> None:
        """All leaves at the time when it was made."""
        self.open = True
        while self.batches:
            for channel, train in self.batches.popleft().entries:
                self._send(channel, train)

    def count(self, channel: Channel) -> int:
        """Messages in it that will leave by ``channel``."""
        return sum(train.n for way, train in self.trains() if way is channel)

    def shut(self) -> list[tuple[object, Train]]:
        """From now on nothing passes straight through; returns what did."""
        log, self.log = self.log, []
        self.open = False
        return log

    def save(self) -> Callable[[], None]:
        """Remember what is in it; returns what brings that back."""
        batches = self.batches.copy()

        def restore() -> None:
            self.batches = batches

        return restore

    def put_back(self, batches: Sequence[Batch], now: int) -> None:
        """Batches that were in it wait in it again, from ``now`` on."""
        for batch in batches:
            entries = [(channel, train.at(now)) for channel, train in batch.entries]
            self.batches.append(Batch(entries, batch.order, batch.parent))
        if self.holds_up:
            self.blocked_since = now

    def take(self) -> Batch | None:
        """The newest batch, taken out."""
        return self.batches.pop() if self.batches else None

    def clear(self, now: int) -> list[tuple[Channel, Train]]:
        """Destroy it; returns what was in it."""
        lost = [entry for batch in self.batches for entry in batch.entries]
        self.batches.clear()
        self.blocked = self.blocked_until(now)
        self.asked = self.blocked_since = None
        return lost

    def trains(self) -> list[tuple[Channel, Train]]:
        """What is in it."""
        return [entry for batch in self.batches for entry in batch.entries]

    @property
    def tuples(self) -> int:
        """Messages in it that need a place."""
        return sum(places(train) for _, train in self.trains())

    @property
    def holds_up(self) -> bool:
        """Whether the node does nothing else until messages have left."""
        return bool(self.batches) and self.tuples > self.send

    def blocked_until(self, now: int) -> int:
        """For how long it has held the node up until now (ns)."""
        return self.blocked + (0 if self.blocked_since is None else now - self.blocked_since)


def places(train: Train) -> int:
    """How many messages of a train take a place in a queue."""
    taking = take_places(train)
    return train.n if taking is None else int(np.count_nonzero(taking))


def inputs_of(train: Train) -> list[int]:
    """Of messages that take a place of their input's own: over which input they came, counted from 1."""
    taking = take_places(train)
    over = train.column(OVER) if taking is None else train.column(OVER)[taking]
    found: list[int] = over[over > 0].tolist()
    return found


def take_places(train: Train) -> npt.NDArray[np.bool_] | None:
    """Which messages take a place in a queue (None: all): not control messages, nor what is placeless."""
    if train.mark is None and not train.has(PLACELESS):
        return None
    return (train.column("mark") == 0) & (train.column(PLACELESS) == 0)
