"""The state of a task, behind one interface: whatever saves, copies or restores it knows no operator. A new
operator with state brings a subclass of `EpochState` (`tideover.models.operators.keyed_state`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from tideover.models.operators.window import EventClock, Extent, WindowIds
from tideover.sim.train import Ints, Train


class Effects(NamedTuple):
    """Tuples that a state has taken in: 8 bytes each, 16 if there are retries among them."""

    uid: Ints
    attempt: Ints | None


class Closed(NamedTuple):
    """What a window's end puts out: keys (rising), values, and the tuples that leave, in their order.

    ``groups``: first and last group of keys that the task has, if the number of tasks may change.
    """

    keys: Ints
    values: Ints
    parts: list[Effects]
    groups: tuple[int, int] | None = None


class State(ABC):
    """What a stateful task knows. An operator brings its own (``Bolt.new_state``).

    Tuples belong to the epoch in which they were emitted (one epoch only, 0, unless markers end the windows).
    An *effect* is a tuple that was taken in and has not left: losing the state loses it. It leaves with the
    window that puts it out; if windows slide, with the first that ends after all that it is in.

    ``keys``: number of different keys that can come; ``tuples``: how many were taken in since the last
    window; ``taken``: how many in all; ``extent``: the panes of its windows, if they have some: an epoch is a
    pane then; ``clock``: how far events have come, if they go by event; ``ids``: what a copy of the state has
    in the place of its contents, if only ids are saved.
    """

    keys: int
    tuples: int
    taken: int = 0
    extent: Extent | None = None
    clock: EventClock | None = None
    ids: WindowIds | None = None

    @abstractmethod
    def add(self, train: Train) -> None: ...

    @abstractmethod
    def end_window(self, before: int | None = None) -> Closed:
        """What the window of all epochs < ``before`` (None: all; sliding: its last panes) puts out."""

    @abstractmethod
    def fresh(self) -> Self: ...

    @abstractmethod
    def copy(self) -> Self: ...

    @property
    @abstractmethod
    def entries(self) -> int:
        """Entries that a store has to hold."""

    def changed_since(self, old: Self) -> int:
        """How many entries are new or different since ``old``; who cannot tell says all."""
        return self.entries

    @abstractmethod
    def effects(self) -> Effects:
        """The tuples whose effects live here."""

    @property
    def size(self) -> int:
        """How many effects live here."""
        return len(self.effects().uid)

    @abstractmethod
    def content(self) -> dict[int, int]:
        """What it knows of each key, for people to read."""

    def due(self, since: int, watermark: int) -> list[int]:
        """Numbers of the windows by event that end in (``since``, ``watermark``] (ns), but empty ones."""
        raise NotImplementedError

    def end_pane(self, number: int) -> None:
        """What was taken in since the last pane ended, as epoch 0, is pane ``number`` (> 0)."""
        raise NotImplementedError


class EpochState(State):
    """A state that keeps what it knows for each epoch by itself, with the tuples behind it.

    Subclasses say what they know of one epoch (a content: an array, if they do not say how to copy one and
    how many entries it has), and what a window puts out of it.
    """

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.tuples = 0
        self._contents: dict[int, Any] = {}
        self._behind: dict[int, list[tuple[int, Effects]]] = {}
        """By epoch, with a number that rises in the order of processing."""
        self._trains = 0

    @abstractmethod
    def _nothing(self) -> Any: ...

    @abstractmethod
    def _taken_in(self, content: Any, train: Train) -> Any:
        """The content with a train of tuples in it; the given one may be changed."""

    @abstractmethod
    def _put_out(self, contents: list[Any]) -> tuple[Ints, Ints]:
        """Keys (rising) and values that a window of these contents, in the order of epochs, puts out."""

    def _copied(self, content: Any) -> Any:
        return content.copy()

    def _entries(self, content: Any) -> int:
        """Entries of a content that a store has to hold."""
        return int(np.count_nonzero(content))

    def add(self, train: Train) -> None:
        self.tuples += train.n
        self.taken += train.n
        epoch = train.epoch
        if epoch is None or not train.n:
            self._add(0, train)
            return
        cuts = [0, *((epoch[1:] != epoch[:-1]).nonzero()[0] + 1).tolist(), train.n]
        for begin, end in pairwise(cuts):
            self._add(int(epoch[begin]), train if len(cuts) == 2 else train.pick(slice(begin, end)))

    def _add(self, epoch: int, train: Train) -> None:
        if epoch not in self._contents:
            self._contents[epoch] = self._nothing()
            self._behind[epoch] = []
        self._contents[epoch] = self._taken_in(self._contents[epoch], train)
        self._trains += 1
        self._behind[epoch].append((self._trains, Effects(train.uid, train.attempt)))

    def end_window(self, before: int | None = None) -> Closed:
        held = closed = [epoch for epoch in sorted(self._contents) if before is None or epoch < before]
        if self.extent is not None and self.extent.stays and before is not None:
            begin = before - self.extent.panes
            held = [epoch for epoch in closed if epoch >= begin]
            closed = [epoch for epoch in closed if epoch < begin]
        inside = [part for epoch in held for _, part in self._behind[epoch]]
        keys, values = self._put_out([self._contents[epoch] for epoch in held])
        for epoch in closed:
            del self._contents[epoch]
        behind = [run for epoch in closed for run in self._behind.pop(epoch)]
        self.tuples = 0
        parts = [part for _, part in sorted(behind, key=lambda run: run[0])]
        if self.ids is not None:
            self.ids.put_out(joined(inside).uid, joined(parts).uid)
        return Closed(keys, values, parts)

    def end_pane(self, number: int) -> None:
        if 0 in self._contents:
            self._contents[number] = self._contents.pop(0)
            self._behind[number] = self._behind.pop(0)

    def due(self, since: int, watermark: int) -> list[int]:
        assert self.extent is not None
        pane, panes, slide, stays = self.extent
        first, last = since // (pane * slide) + 1, watermark // (pane * slide)
        found: set[int] = set()
        for number in self._contents:
            begin, end = -(-number // slide), (number + panes - 1) // slide + stays
            found.update(range(max(first, begin), min(last, end) + 1))
        return sorted(found)

    def fresh(self) -> Self:
        new = type(self)(self.keys)
        new.extent = self.extent
        new.clock = None if self.clock is None else self.clock.fresh()
        new.ids = None if self.ids is None else WindowIds()
        return new

    def copy(self) -> Self:
        if self.ids is None:
            return self._whole()
        new = self.fresh()
        new.ids = self.ids.saved()
        return new

    def _whole(self) -> Self:
        new = self.fresh()
        new._contents = {epoch: self._copied(content) for epoch, content in self._contents.items()}
        new._behind = {epoch: list(behind) for epoch, behind in self._behind.items()}
        new._trains = self._trains
        new.tuples, new.taken = self.tuples, self.taken
        new.clock = None if self.clock is None else self.clock.copy()
        return new

    @property
    def entries(self) -> int:
        if self.ids is not None:
            return self.ids.entries
        return sum(self._entries(content) for content in self._contents.values())

    def _changed(self, content: Any, old: Any) -> int:
        return self._entries(content)

    def changed_since(self, old: Self) -> int:
        before, nothing = old._contents, self._nothing()
        return sum(self._changed(now, before.get(epoch, nothing)) for epoch, now in self._contents.items())

    def effects(self) -> Effects:
        parts = [part for behind in self._behind.values() for _, part in behind]
        if self.ids is not None:
            parts += [Effects(train.uid, train.attempt) for train in self.ids.waiting]
        return joined(parts)

    def content(self) -> dict[int, int]:
        open_ = self._whole()
        open_.extent = None
        closed = open_.end_window()
        return dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))


def joined(parts: list[Effects]) -> Effects:
    uid = np.concatenate([np.zeros(0, np.int64), *(part.uid for part in parts)])
    if all(part.attempt is None for part in parts):
        return Effects(uid, None)
    attempts = [np.zeros(len(p.uid), np.int64) if p.attempt is None else p.attempt for p in parts]
    return Effects(uid, np.concatenate(attempts))
