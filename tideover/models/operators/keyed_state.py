"""State by key: sums, pairs of sums for joins, and sessions (of windows with a gap).

The rules of sessions (tests/models/test_event_windows.py):

- By event a session of a key is all events of it with at most `gap` from each to the next. It ends `gap`
  after its last event, on the next whole ms, which is its number; it is put out when the watermark is
  there. A tuple is late if its session, with what is there of it, ends at or before the watermark.
- By arrival it is all tuples of the key that came into the task's queue so, however long they wait there;
  what is held, set aside or sent again arrives when it comes then. The task looks each
  `watermark_interval`, or each `gap` if that is shorter: a WINDOW marker, at whose turn the sessions that
  have ended are window number k of look k. If a look had no effect the next one puts both out.
- A checkpoint has an entry for each session. Sessions by arrival are to a failure what windows by tick are:
  what comes again is in the session that is open then. Replicas may disagree on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from tideover.models.operators.state import Closed, Effects, EpochState, State, joined
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS

Owns = npt.NDArray[np.bool_]
"""Of each key, whether a task has it."""


class KeyedArrays(EpochState):
    """Contents are arrays whose last axis is the key: they can go to other tasks, key by key."""

    def take_over(self, other: Self, mine: Owns, are_mine: Callable[[Ints], Owns]) -> None:
        """Take in what another state has of the keys that are ``mine``, with the tuples behind it."""
        for epoch, content in other._contents.items():
            uid, attempt = joined([part for _, part in other._behind[epoch]])
            come = are_mine(uid)
            self._contents[epoch] = self._contents.get(epoch, self._nothing()) + content * mine
            self._trains += 1
            part = Effects(uid[come], None if attempt is None else attempt[come])
            self._behind.setdefault(epoch, []).append((self._trains, part))


class KeyedSums(KeyedArrays):
    """The sum of values for each key, shape (keys,); a window puts out those that are not 0, and clears."""

    def _nothing(self) -> Ints:
        return np.zeros(self.keys, np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        if train.value is None:
            content += np.bincount(train.key, minlength=self.keys)
        else:
            np.add.at(content, train.key, train.value)
        return content

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        sums = np.sum(contents, axis=0) if contents else self._nothing()
        keys = np.flatnonzero(sums)
        return keys, sums[keys]

    def _changed(self, content: Ints, old: Ints) -> int:
        return int(np.count_nonzero(content[content != old]))

    def take_in(self, sums: Ints, effects: Effects) -> None:
        """Take in tuples of the open window whose sums by key are known."""
        n = len(effects.uid)
        self.tuples += n
        self.taken += n
        if 0 not in self._contents:
            self._contents[0], self._behind[0] = self._nothing(), []
        self._contents[0] += sums
        self._trains += 1
        self._behind[0].append((self._trains, effects))


class RunningSums(KeyedSums):
    def __init__(self, keys: int) -> None:
        super().__init__(keys)
        self._so_far = self._nothing()

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        self._so_far = self._so_far + np.sum(contents, axis=0) if contents else self._so_far
        keys = np.flatnonzero(self._so_far)
        return keys, self._so_far[keys]

    def take_over(self, other: Self, mine: Owns, are_mine: Callable[[Ints], Owns]) -> None:
        super().take_over(other, mine, are_mine)
        self._so_far = self._so_far + other._so_far * mine

    def _whole(self) -> Self:
        new = super()._whole()
        new._so_far = self._so_far.copy()
        return new

    @property
    def entries(self) -> int:
        return super().entries + int(np.count_nonzero(self._so_far))

    def changed_since(self, old: Self) -> int:
        return super().changed_since(old) + self._changed(self._so_far, old._so_far)


class KeySet(KeyedSums):
    """The different keys that have come; a window puts out each of them once, with value 1."""

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        keys, _ = super()._put_out(contents)
        return keys, np.ones(len(keys), np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        content[train.key] = 1
        return content


SIDE = "side"
"""Column of what a state takes in: over which of the component's inputs a tuple has come."""


class KeyedPairs(KeyedArrays):
    """Sums by side and key, shape (2, keys); a window puts out the products of both sides but 0."""

    def _nothing(self) -> Ints:
        return np.zeros((2, self.keys), np.int64)

    def _taken_in(self, content: Ints, train: Train) -> Ints:
        np.add.at(content, (train.column(SIDE), train.key), train.column("value"))
        return content

    def _put_out(self, contents: list[Ints]) -> tuple[Ints, Ints]:
        left, right = np.sum(contents, axis=0) if contents else self._nothing()
        pairs = left * right
        keys = np.flatnonzero(pairs)
        return keys, pairs[keys]

    def _changed(self, content: Ints, old: Ints) -> int:
        return int(np.count_nonzero((content != 0) & (content != old)))


@dataclass(eq=False)
class _Session:
    """``first``, ``last``: its oldest and its newest event (ns); ``behind``: its tuples: (number that rises
    in the order of processing, uid, attempt).
    """

    first: int
    last: int
    total: int
    behind: list[tuple[int, int, int]] = field(default_factory=list)


class Sessions(State):
    """The sum of the tuples' values for each session of a key, that ends ``gap`` (ns) after its newest event
    (on the next whole ms, which is its number). A tuple within the gap of two sessions makes them one
    (Flink's ``EventTimeSessionWindows`` and ``TimeWindow.mergeWindows``). Of sessions by arrival the event of
    a tuple is that it has come.

    ``once``: a session has value 1, whatever is in it.
    """

    def __init__(self, keys: int, gap: int, once: bool = False) -> None:
        self.keys = keys
        self.tuples = 0
        self._gap = gap
        self._once = once
        self._open: dict[int, list[_Session]] = {}
        """By key: they are more than a gap apart."""
        self._retried = False

    def add(self, train: Train) -> None:
        raise NotImplementedError  # tuples come with their events

    def add_events(self, train: Train, events: Ints, watermark: int) -> npt.NDArray[np.bool_]:
        """Take in tuples with these events; returns which are late: their session ends by the watermark."""
        late = np.zeros(train.n, np.bool_)
        self._retried |= train.attempt is not None
        columns = (train.key, events, train.column("value"), train.uid, train.column("attempt"))
        for row, (key, event, value, uid, attempt) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            begin, end = event - self._gap, event + self._gap
            there = self._open.get(key, [])
            touched = [other for other in there if other.first <= end and begin <= other.last]
            first = min([event, *(other.first for other in touched)])
            last = max([event, *(other.last for other in touched)])
            new = _Session(first, last, value + sum(other.total for other in touched))
            late[row] = self._number(new) * MS <= watermark
            if late[row]:
                continue
            self.taken += 1
            self.tuples += 1
            new.behind = [one for other in touched for one in other.behind]
            new.behind.append((self.taken, uid, attempt))
            self._open[key] = [*(other for other in there if other not in touched), new]
        return late

    def _number(self, session: _Session) -> int:
        return -(-(session.last + self._gap) // MS)

    def _sessions(self) -> list[tuple[int, _Session]]:
        """With their keys."""
        return [(key, session) for key, sessions in self._open.items() for session in sessions]

    def due(self, since: int, watermark: int) -> list[int]:
        numbers = {self._number(session) for _, session in self._sessions()}
        return sorted(number for number in numbers if number * MS <= watermark)

    def end_window(self, before: int | None = None) -> Closed:
        ended = [(k, s) for k, s in self._sessions() if before is None or self._number(s) < before]
        sums: dict[int, int] = {}
        for key, session in ended:
            sums[key] = sums.get(key, 0) + self._value(session)
            self._open[key].remove(session)
            if not self._open[key]:
                del self._open[key]
        self.tuples = 0
        counted = {key: sums[key] for key in sorted(sums) if sums[key]}
        parts = [self._effects([session for _, session in ended])] if ended else []
        return Closed(np.array([*counted], np.int64), np.array([*counted.values()], np.int64), parts)

    def _value(self, session: _Session) -> int:
        return 1 if self._once else session.total

    def _effects(self, sessions: list[_Session]) -> Effects:
        rows = np.array(sorted(one for s in sessions for one in s.behind), np.int64).reshape(-1, 3)
        return Effects(rows[:, 1].copy(), rows[:, 2].copy() if self._retried else None)

    def fresh(self) -> Self:
        new = type(self)(self.keys, self._gap, self._once)
        new.extent = self.extent
        new.clock = None if self.clock is None else self.clock.fresh()
        return new

    def copy(self) -> Self:
        new = self.fresh()
        for key, sessions in self._open.items():
            new._open[key] = [replace(session, behind=list(session.behind)) for session in sessions]
        new.tuples, new.taken, new._retried = self.tuples, self.taken, self._retried
        new.clock = None if self.clock is None else self.clock.copy()
        return new

    @property
    def entries(self) -> int:
        return sum(self._value(session) != 0 for _, session in self._sessions())

    def changed_since(self, old: Self) -> int:
        """By number and key: an entry is a session with its end and its sum."""
        before = {(old._number(s), key): old._value(s) for key, s in old._sessions()}
        mine = ((self._number(s), key, self._value(s)) for key, s in self._sessions())
        return sum(value != 0 and value != before.get((number, key), 0) for number, key, value in mine)

    def effects(self) -> Effects:
        return joined([self._effects([session]) for _, session in self._sessions()])

    def content(self) -> dict[int, int]:
        closed = self.copy().end_window()
        return dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))
