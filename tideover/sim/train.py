"""Tuples travel in trains: columns of tuples, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

COLUMNS = ("time", "uid", "born", "key", "value", "attempt", "epoch", "mark", "seq", "route")
_DEFAULT = {"value": 1, "attempt": 0, "epoch": 0, "mark": 0, "seq": 0, "route": 0}
_OPTIONAL = tuple(_DEFAULT)


class Train:
    """A run of tuples as columns of equal length (all int64).

    time      ns; departure where a task hands it on, arrival on a link and in a queue
    uid       place in the tuple tree (see docs/semantics.md); of a marker: 0
    born      ns; creation stamp
    key       number of the key; what a fields grouping and a count look at; of a marker in a queue: over
              which input it came; of a barrier: which snapshot's it is
    value     what a count adds up; None: 1 each
    attempt   how often the root was emitted before; None: 0
    epoch     number of the last end marker before the tuple; None: 0
    mark      number of the end marker (> 0), or sort of the control marker (< 0), that the row is; None: data
              only
    seq       what the strategy numbers messages by: on a wire the channel's number of the message, in a queue
              also (or only) the position of its channel; negative: a replay. None: not numbered
    route     logical path from the spout; of a replay on the wire, the recovery that asked for it; None:
              there is but one

    Columns are never written to once they are in a train, so trains share them.
    """

    __slots__ = (*COLUMNS, "n")

    def __init__(self, time: Ints, uid: Ints, born: Ints, key: Ints, **optional: Ints | None) -> None:
        self.n = len(time)
        self.time = time
        self.uid = uid
        self.born = born
        self.key = key
        self.value: Ints | None = optional.get("value")
        self.attempt: Ints | None = optional.get("attempt")
        self.epoch: Ints | None = optional.get("epoch")
        self.mark: Ints | None = optional.get("mark")
        self.seq: Ints | None = optional.get("seq")
        self.route: Ints | None = optional.get("route")

    def __len__(self) -> int:
        return self.n

    @property
    def plain(self) -> bool:
        """Whether all optional columns have their default."""
        return self.value is self.attempt is self.epoch is self.mark is self.seq is self.route is None

    def column(self, name: str) -> Ints:
        """The column, with its default written out if it is None."""
        values = getattr(self, name)
        return np.full(self.n, _DEFAULT[name], np.int64) if values is None else values

    def pick(self, rows: Any, key: Ints | None = None) -> Train:
        """The rows of a slice, a mask or an index array; ``key``: their keys, if they get new ones."""
        if isinstance(rows, np.ndarray) and rows.dtype == np.int64:
            return self._rows(rows, np.ndarray.take, key)
        return self._rows(rows, getitem, key)

    def _rows(self, rows: Any, of: Callable[[Ints, Any], Ints], key: Ints | None) -> Train:
        new = Train.__new__(Train)
        new.time = time = of(self.time, rows)
        new.n = len(time)
        new.uid = of(self.uid, rows)
        new.born = of(self.born, rows)
        new.key = of(self.key, rows) if key is None else key
        if self.plain:
            new.value = new.attempt = new.epoch = new.mark = new.seq = new.route = None
            return new
        new.value = None if self.value is None else of(self.value, rows)
        new.attempt = None if self.attempt is None else of(self.attempt, rows)
        new.epoch = None if self.epoch is None else of(self.epoch, rows)
        new.mark = None if self.mark is None else of(self.mark, rows)
        new.seq = None if self.seq is None else of(self.seq, rows)
        new.route = None if self.route is None else of(self.route, rows)
        return new

    def replace(self, **columns: Ints | None) -> Train:
        """The same train with some columns exchanged."""
        new = Train.__new__(Train)
        new.n = self.n
        new.time, new.uid, new.born, new.key = self.time, self.uid, self.born, self.key
        new.value, new.attempt, new.epoch = self.value, self.attempt, self.epoch
        new.mark, new.seq, new.route = self.mark, self.seq, self.route
        for name, values in columns.items():
            setattr(new, name, values)
        return new

    def at(self, moment: int) -> Train:
        """The same train, all of it at one moment (ns)."""
        return self.replace(time=np.full(self.n, moment, np.int64))

    def split(self, at: int) -> tuple[Train, Train]:
        """The first ``at`` tuples, and the rest."""
        return self.pick(slice(0, at)), self.pick(slice(at, None))


def join(trains: Sequence[Train]) -> Train:
    """One train after the other."""
    if len(trains) == 1:
        return trains[0]
    whole = Train.__new__(Train)
    whole.time = np.concatenate([t.time for t in trains])
    whole.uid = np.concatenate([t.uid for t in trains])
    whole.born = np.concatenate([t.born for t in trains])
    whole.key = np.concatenate([t.key for t in trains])
    whole.n = len(whole.time)
    if all(t.plain for t in trains):
        whole.value = whole.attempt = whole.epoch = whole.mark = whole.seq = whole.route = None
        return whole
    for name in _OPTIONAL:
        some = any(getattr(t, name) is not None for t in trains)
        setattr(whole, name, np.concatenate([t.column(name) for t in trains]) if some else None)
    return whole


def distinct(values: Ints) -> Ints:
    """The different values, rising: np.unique, whose sort is ten times slower on some processors."""
    ordered = np.sort(values, kind="stable")
    if len(ordered) < 2:
        return ordered
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    return ordered[first]


def merge(trains: Sequence[Train]) -> Train:
    """Ordered trains into one, by time; ties go to the earlier train, then keep their order."""
    if len(trains) == 1:
        return trains[0]
    whole = join(trains)
    return whole.pick(np.argsort(whole.time, kind="stable"))


def single(time: int, uid: int, **optional: int) -> Train:
    """A train of one tuple, for markers and hand-made worlds."""
    born = optional.pop("born", time)
    key = optional.pop("key", 0)
    one = {
        name: np.array([v], np.int64)
        for name, v in {"time": time, "uid": uid, "born": born, "key": key}.items()
    }
    return Train(**one, **{name: np.array([v], np.int64) for name, v in optional.items()})
