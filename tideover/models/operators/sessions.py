"""Sessions by key: the state of counts whose windows have a gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from tideover.models.operators.state import Closed, Effects, State, joined
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS


@dataclass
class _Session:
    """``first``, ``last``: its oldest and its newest event (ns); ``behind``: its tuples, each with a number
    that rises in the order of processing.
    """

    first: int
    last: int
    total: int
    behind: list[tuple[int, int, int]] = field(default_factory=list)
    """(number, uid, attempt)."""

    def copy(self) -> _Session:
        return _Session(self.first, self.last, self.total, list(self.behind))


class Sessions(State):
    """The sum of the tuples' values for each session of a key, that ends ``gap`` (ns) after its newest event
    (on the next whole ms, which is its number). A tuple within the gap of two sessions makes them one
    (Flink's ``EventTimeSessionWindows`` and ``TimeWindow.mergeWindows``).

    ``once``: a session has value 1, whatever is in it.
    """

    def __init__(self, keys: int, gap: int, once: bool = False) -> None:
        self.keys = keys
        self.tuples = 0
        self._gap = gap
        self._once = once
        self._open: dict[int, list[_Session]] = {}
        self._retried = False

    def add(self, train: Train) -> None:
        raise NotImplementedError  # tuples come with their events

    def add_events(self, train: Train, events: Ints, watermark: int) -> npt.NDArray[np.bool_]:
        """Take in tuples with these events; returns which are late: their session ends at or before the
        watermark.
        """
        late = np.zeros(train.n, np.bool_)
        self._retried |= train.attempt is not None
        columns = (train.key, events, train.column("value"), train.uid, train.column("attempt"))
        for row, (key, event, value, uid, attempt) in enumerate(
            zip(*(c.tolist() for c in columns), strict=True)
        ):
            new = _Session(event, event, value)
            apart: list[_Session] = []
            touched: list[_Session] = []
            for other in self._open.get(key, []):
                near = other.first <= event + self._gap and event <= other.last + self._gap
                (touched if near else apart).append(other)
            for other in touched:
                new.first, new.last = min(new.first, other.first), max(new.last, other.last)
                new.total += other.total
                new.behind += other.behind
            late[row] = self._number(new) * MS <= watermark
            if not late[row]:
                self.taken += 1
                self.tuples += 1
                new.behind.append((self.taken, uid, attempt))
                self._open[key] = [*apart, new]
        return late

    def _number(self, session: _Session) -> int:
        return -(-(session.last + self._gap) // MS)

    def due(self, since: int, watermark: int) -> list[int]:
        numbers = {self._number(s) for sessions in self._open.values() for s in sessions}
        return sorted(number for number in numbers if number * MS <= watermark)

    def end_window(self, before: int | None = None) -> Closed:
        sums, behind = {}, []
        for key in sorted(self._open):
            sessions = self._open[key]
            over = [s for s in sessions if before is None or self._number(s) < before]
            if not over:
                continue
            sums[key] = self._value(over)
            behind += [row for s in over for row in s.behind]
            if len(over) == len(sessions):
                del self._open[key]
            else:
                self._open[key] = [s for s in sessions if before is not None and self._number(s) >= before]
        self.tuples = 0
        counted = {key: total for key, total in sums.items() if total}
        parts = [self._effects(behind)] if behind else []
        return Closed(np.array([*counted], np.int64), np.array([*counted.values()], np.int64), parts)

    def _value(self, sessions: list[_Session]) -> int:
        return int(bool(sessions)) if self._once else sum(s.total for s in sessions)

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
        new._open = {key: [s.copy() for s in sessions] for key, sessions in self._open.items()}
        new.tuples, new.taken, new._retried = self.tuples, self.taken, self._retried
        new.clock = None if self.clock is None else self.clock.copy()
        return new

    @property
    def entries(self) -> int:
        return sum(self._value([s]) != 0 for sessions in self._open.values() for s in sessions)

    def effects(self) -> Effects:
        parts = [self._effects(s.behind) for sessions in self._open.values() for s in sessions]
        return joined(parts)

    @property
    def size(self) -> int:
        return sum(len(s.behind) for sessions in self._open.values() for s in sessions)

    def content(self) -> dict[int, int]:
        closed = self.copy().end_window()
        return dict(zip(closed.keys.tolist(), closed.values.tolist(), strict=True))
