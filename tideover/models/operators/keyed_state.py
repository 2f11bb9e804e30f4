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

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from tideover.models.operators.state import Closed, Effects, EpochState, State, joined
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS


class KeyedSums(EpochState):
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


class KeyedPairs(EpochState):
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


@dataclass
class _Session:
    """``first``, ``last``: its oldest and its newest event (ns)."""

    first: int
    last: int
    total: int
    behind: list[tuple[int, int, int]] = field(default_factory=list)
    """Its tuples: (number that rises in the order of processing, uid, attempt)."""

    def copy(self) -> _Session:
        return _Session(self.first, self.last, self.total, list(self.behind))


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
        self._ends: dict[int, dict[int, _Session]] = {}
        """By number, then by key: two of one key are more than a gap apart."""
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
            new = _Session(event, event, value)
            touched = [
                other
                for other in self._open.get(key, [])
                if other.first <= event + self._gap and event <= other.last + self._gap
            ]
            for other in touched:
                new.first, new.last = min(new.first, other.first), max(new.last, other.last)
                new.total += other.total
            late[row] = self._number(new) * MS <= watermark
            if late[row]:
                continue
            for other in touched:
                self._remove(key, other)
                new.behind += other.behind
            self.taken += 1
            self.tuples += 1
            new.behind.append((self.taken, uid, attempt))
            self._put(key, new)
        return late

    def _put(self, key: int, session: _Session) -> None:
        self._open.setdefault(key, []).append(session)
        self._ends.setdefault(self._number(session), {})[key] = session

    def _remove(self, key: int, session: _Session) -> None:
        number = self._number(session)
        self._open[key] = [other for other in self._open[key] if other is not session]
        if not self._open[key]:
            del self._open[key]
        del self._ends[number][key]
        if not self._ends[number]:
            del self._ends[number]

    def _number(self, session: _Session) -> int:
        return -(-(session.last + self._gap) // MS)

    def due(self, since: int, watermark: int) -> list[int]:
        return sorted(number for number in self._ends if number * MS <= watermark)

    def end_window(self, before: int | None = None) -> Closed:
        sums: dict[int, int] = {}
        behind: list[tuple[int, int, int]] = []
        for number in [number for number in sorted(self._ends) if before is None or number < before]:
            for key, session in list(self._ends[number].items()):
                sums[key] = sums.get(key, 0) + self._value(session)
                behind += session.behind
                self._remove(key, session)
        self.tuples = 0
        counted = {key: sums[key] for key in sorted(sums) if sums[key]}
        parts = [self._effects(behind)] if behind else []
        return Closed(np.array([*counted], np.int64), np.array([*counted.values()], np.int64), parts)

    def _value(self, session: _Session) -> int:
        return 1 if self._once else session.total

    def _effects(self, behind: list[tuple[int, int, int]]) -> Effects:
        rows = np.array(sorted(behind), np.int64).reshape(-1, 3)
        return Effects(rows[:, 1].copy(), rows[:, 2].copy() if self._retried else None)

    def fresh(self) -> Self:
        new = type(self)(self.keys, self._gap, self._once)
        new.extent = self.extent
        new.clock = None if self.clock is None else self.clock.fresh()
        return new

    def copy(self) -> Self:
        new = self.fresh()
        for key, sessions in self._open.items():
            for session in sessions:
                new._put(key, session.copy())
        new.tuples, new.taken, new._retried = self.tuples, self.taken, self._retried
        new.clock = None if self.clock is None else self.clock.copy()
        return new

    @property
    def entries(self) -> int:
        return sum(self._value(s) != 0 for sessions in self._open.values() for s in sessions)

    def changed_since(self, old: Self) -> int:
        mine, before = self._sums(), old._sums()
        return sum(value != 0 and value != before.get(place, 0) for place, value in mine.items())

    def _sums(self) -> dict[tuple[int, int], int]:
        """Of the sessions, by number and key."""
        ends = self._ends.items()
        return {(number, key): self._value(s) for number, by_key in ends for key, s in by_key.items()}

    def effects(self) -> Effects:
        parts = [self._effects(s.behind) for sessions in self._open.values() for s in sessions]
        return joined(parts)

    @property
    def size(self) -> int:
        return sum(len(s.behind) for sessions in self._open.values() for s in sessions)

    def content(self) -> dict[int, int]:
        closed = self.copy().end_window()
        return dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))
