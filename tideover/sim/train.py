"""Tuples travel in trains: columns of tuples, in order. Who reads tuples of the data plane has them so.

Tasks, mechanisms and accounts are handed them. A new column begins in the rows of `plane.h`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_DEFAULT = {"value": 1, "attempt": 0, "epoch": 0, "mark": 0}
Columns = dict[str, Ints]


class Train:
    """A run of tuples as columns of equal length (all int64).

    time      ns; departure where a task hands it on, arrival on a link and in a queue
    uid       place in the tuple tree (see docs/semantics.md); of a marker: 0
    created   ns; creation stamp
    key       number of the key; what a fields grouping and a state look at; of a marker in a queue: over
              which input it came; of a barrier: which snapshot's it is
    value     what a count adds up; None: 1 each
    attempt   how often the root was emitted before; None: 0
    epoch     number of the last end marker before the tuple; None: 0
    mark      number of the end marker (> 0), or sort of the control marker (< 0), that the row is; None: data
              only
    more      columns of single mechanisms, by name (a channel's number of the message, say); None: none

    Rows that a mechanism knows nothing of have a 0 in its column. Columns are never written to once they are
    in a train, so trains share them.
    """

    __slots__ = ("attempt", "created", "epoch", "key", "mark", "more", "n", "time", "uid", "value")

    def __init__(
        self,
        time: Ints,
        uid: Ints,
        created: Ints,
        key: Ints,
        *,
        value: Ints | None = None,
        attempt: Ints | None = None,
        epoch: Ints | None = None,
        mark: Ints | None = None,
        more: Columns | None = None,
    ) -> None:
        self.n = len(time)
        self.time = time
        self.uid = uid
        self.created = created
        self.key = key
        self.value = value
        self.attempt = attempt
        self.epoch = epoch
        self.mark = mark
        self.more = more

    def __len__(self) -> int:
        return self.n

    @property
    def plain(self) -> bool:
        """Whether all optional columns have their default."""
        return self.value is self.attempt is self.epoch is self.mark is self.more is None

    def column(self, name: str) -> Ints:
        """A column, with its default written out where it is None; of a mechanism's own column it is 0."""
        if name in Train.__slots__:
            values = getattr(self, name)
        else:
            values = None if self.more is None else self.more.get(name)
        if values is not None:
            return values
        return np.ones(self.n, np.int64) if _DEFAULT.get(name) else np.zeros(self.n, np.int64)

    def has(self, name: str) -> bool:
        """Whether a mechanism has given the train its column ``name``."""
        return self.more is not None and name in self.more

    def pick(self, rows: Any, key: Ints | None = None) -> Train:
        """The rows of a slice, a mask or an index array; ``key``: their keys, if they get new ones."""
        taken = isinstance(rows, np.ndarray) and rows.dtype == np.int64
        of: Callable[[Ints, Any], Ints] = np.ndarray.take if taken else getitem
        new = Train.__new__(Train)
        new.time = time = of(self.time, rows)
        new.n = len(time)
        new.uid = of(self.uid, rows)
        new.created = of(self.created, rows)
        new.key = of(self.key, rows) if key is None else key
        new.value = new.attempt = new.epoch = new.mark = new.more = None
        if not self.plain:
            for name in _DEFAULT:
                if (column := getattr(self, name)) is not None:
                    setattr(new, name, of(column, rows))
            if self.more is not None:
                new.more = {name: of(column, rows) for name, column in self.more.items()}
        return new

    def replace(self, **columns: Any) -> Train:
        """The same train with some of its own columns exchanged (``more``: all those of mechanisms)."""
        new = Train.__new__(Train)
        for name in Train.__slots__:
            setattr(new, name, columns[name] if name in columns else getattr(self, name))
        return new

    def adding(self, **columns: Ints) -> Train:
        """The same train with a mechanism's columns added, or exchanged."""
        return self.replace(more=columns if self.more is None else self.more | columns)

    def at(self, moment: int) -> Train:
        """The same train, all of it at one moment (ns)."""
        return self.replace(time=np.full(self.n, moment, np.int64))


def join(trains: Sequence[Train]) -> Train:
    """One train after the other."""
    if len(trains) == 1:
        return trains[0]
    time, uid, created, key = (
        np.concatenate([getattr(t, name) for t in trains]) for name in ("time", "uid", "created", "key")
    )
    whole = Train(time, uid, created, key)
    special = [t for t in trains if not t.plain]
    for name in _DEFAULT:
        if any(getattr(t, name) is not None for t in special):
            setattr(whole, name, np.concatenate([t.column(name) for t in trains]))
    names = {name for t in special for name in t.more or ()}
    if names:
        whole.more = {name: np.concatenate([t.column(name) for t in trains]) for name in sorted(names)}
    return whole


def grown(column: Any, rows: int) -> Any:
    """A column with so many rows; the new ones are 0."""
    longer = np.zeros(rows, column.dtype)
    longer[: len(column)] = column
    return longer


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


def single(time: int, uid: int, created: int | None = None, key: int = 0, **columns: int) -> Train:
    """A train of one tuple, for markers and hand-made worlds; unknown columns are mechanisms'."""
    values = {"time": time, "uid": uid, "created": time if created is None else created, "key": key} | columns
    cells = dict(zip(values, np.array(list(values.values()), np.int64)[:, None], strict=True))
    more = {name: cells.pop(name) for name in columns if name not in _DEFAULT}
    return Train(**cells, more=more or None)
