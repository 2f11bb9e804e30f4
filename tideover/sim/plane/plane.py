"""The compiled data plane, from Python's side: its arrays, what it asks for, what it hands out.

Python lays out the tasks, channels and tables, moves the data up to the next control action (``advance``),
and reads and changes what it finds. `plane.h` says what there is. All arrays belong to Python; the library
keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.sim.train import Ints, Train

FEW, ROWS = 64, 8_192
"""Rows of a log at first, and at most: then somebody reads it."""
MESSAGES = 1_024
LATENCIES = 65_536
CHUNKS, FEWEST = 16, 16
"""Chunks of rows at first, besides those that one step may take; and how many rows are in one, on average."""
NEVER = 2**63 - 1
BUDGET = 200_000
"""Events until signals are looked for: a fraction of a second, also where each takes microseconds."""

ROW = np.dtype(
    [(name, np.int64) for name in ("time", "uid", "created", "arrival", "value")]
    + [(name, np.int32) for name in ("task", "key", "attempt", "epoch", "source", "mark")]
)
"""As ``row`` in plane.h."""
RECOVERY = "recovery"
"""Column: number of the recovery for which a message is replayed; 0: it is sent for the first time."""
NUMBER = "number"
"""Column: the channel's number of a message; 0: it has none."""
CHANNEL = "channel"
"""Column: position of the channel over which a message comes, among the inputs of its receiver."""
LATENCY = np.dtype([(name, np.int64) for name in ("time", "since_created", "since_first")])

Rows = Any
"""An array of ``ROW``."""


def library() -> tuple[Any, Any]:
    """The ``ffi`` of cffi, and the library, opened when they are first needed."""
    from tideover.sim.plane import library as opened

    return opened.ffi, opened.lib


class Plane:
    """The arrays of one data plane.

    p       the struct ``plane``
    asked   who sees to what it comes back for, by reason: is called with the number in ``who``
    valued  whether tuples carry values that are not 1
    before_more  are called before so many messages are sent at once
    """

    def __init__(self, tasks: int, channels: int, outlets: int, routes: list[int], components: int) -> None:
        ffi, lib = self.ffi, self.lib = library()
        self.p = p = ffi.new("plane *")
        self.tasks = ffi.new("task[]", max(1, tasks))
        self.channels = ffi.new("channel[]", max(1, channels))
        self.outlets = ffi.new("outlet[]", max(1, outlets))
        self.components = ffi.new("component[]", max(1, components))
        self._kept: dict[Any, Any] = {}
        for name in ("tasks", "channels", "outlets", "components"):
            setattr(p, name, getattr(self, name))
        arriving = ffi.new("arrival[]", max(1, channels))
        routed = ffi.new("int32_t[]", routes or [0])
        self._give(p, messages=ffi.new("message[]", MESSAGES), arriving=arriving, routes=routed)
        p.n_tasks, p.n_channels, p.n_components = tasks, channels, components
        p.now, p.instant, p.in_order_until = -1, -1, -1
        p.room, p.freed, p.most_made, p.budget = MESSAGES, -1, 64, BUDGET
        for log in (p.lost, p.overflowed, p.discarded, p.resent, p.emitted):
            self._widen(log, FEW)
        for task in self.tasks:
            task.line.asked = task.places.first = task.places.last = -1
            task.line.moves = NEVER
        self.array(p, "work", np.full(MESSAGES, -1, np.int64))
        self.cards: Any = None
        self.group([[number] for number in range(tasks)])
        self.valued = False
        self.senders: tuple[str, Ints] | None = None
        """A column that says of each tuple where it came from, by number of the channel; None: none."""
        self.before_more: list[Callable[[int], None]] = []
        self.asked: dict[int, Callable[[int], None]] = {}
        self.asked[lib.NEED_MESSAGES] = lambda _: self.have_messages(p.room)
        self.asked[lib.NEED_CHUNKS] = lambda _: self.have_chunks(0)
        self._chunks: list[Any] = []

    def group(self, groups: list[list[int]]) -> None:
        """Let these tasks and cards move together, in this order: by number, cards behind all tasks."""
        new, p = self.ffi.new, self.p
        # the arrays of the groups before go with them
        gone = {self._place(p.groups[place]) for place in range(p.n_groups + 1)} if p.groups else set()
        mine = {key for key in self._kept if isinstance(key, tuple) and key[0] in gone}
        self._kept = {key: array for key, array in self._kept.items() if key not in mine}
        self._give(p, groups=new("group[]", len(groups) + 1))
        p.n_groups = len(groups)
        everything = [*range(p.n_tasks), *range(p.n_tasks, p.n_tasks + p.n_cards)]
        for place, members in enumerate([*groups, everything]):
            tasks = [number for number in members if number < p.n_tasks]
            cards = [number - p.n_tasks for number in members if number >= p.n_tasks]
            n, n_cards = (1 << max(0, len(each) - 1).bit_length() for each in (tasks, cards))
            group = p.groups[place]
            group.n, group.leaves, group.n_cards, group.card_leaves = len(tasks), n, len(cards), n_cards
            self._give(group, members=new("int32_t[]", tasks), cards=new("int32_t[]", cards))
            self._give(group, next=new("int64_t[]", 2 * n), winner=new("int32_t[]", 2 * n))
            moments, ranks = new("int64_t[]", 2 * n_cards), new("int64_t[]", 2 * n_cards)
            self._give(group, card_next=moments, card_rank=ranks, card_winner=new("int32_t[]", 2 * n_cards))
            if place < len(groups):
                for structs, numbers in ((p.tasks, tasks), (p.cards, cards)):
                    for at, number in enumerate(numbers):
                        structs[number].group, structs[number].place = place, at

    def have_cards(self, number: int) -> None:
        """Let there be so many network cards, and a passage for each channel."""
        self.cards = self.ffi.new("card[]", number)
        self.passages = self.ffi.new("passage[]", max(1, self.p.n_channels))
        self.p.cards, self.p.passages, self.p.n_cards = self.cards, self.passages, number

    def lay_card(self, number: int, channels: list[int]) -> None:
        """Through a card go these channels from now on, by sender, then receiver."""
        new, card = self.ffi.new, self.cards[number]
        self._give(card, channels=new("int32_t[]", channels), coming=new("arrival[]", max(1, len(channels))))
        card.n = len(channels)
        self.lib.plane_lay_card(self.p, number)

    def share(self, cores: Sequence[float], tasks: int) -> None:
        """Let hosts have so many cores (infinite: one for each task), which at most so many tasks share."""
        new, p = self.ffi.new, self.p
        self._give(p, cores=new("cores[]", max(1, len(cores))))
        for place, number in enumerate(cores):
            each = p.cores[place]
            self._give(each, who=new("int32_t[]", tasks), left=new("double[]", tasks + 1))
            each.number, each.factor, each.share, each.speed, each.first = number, 1.0, 1.0, 1.0, -1

    def _give(self, of: Any, **arrays: Any) -> None:
        """Let the struct ``of`` have arrays, which are kept as long as it has them."""
        for name, array in arrays.items():
            self._kept[self._place(of), name] = array
            setattr(of, name, array)

    def array(self, of: Any, name: str, values: npt.NDArray[Any]) -> None:
        """The same of an array of numbers."""
        assert values.flags.c_contiguous
        kind = {"f": "double *", "i": f"int{8 * values.itemsize}_t *", "u": f"uint{8 * values.itemsize}_t *"}
        self._kept[self._place(of), name] = values
        setattr(of, name, self.ffi.cast(kind[values.dtype.kind], values.ctypes.data))

    def kept(self, of: Any, name: str) -> Any:
        """The array that a struct was given."""
        return self._kept[self._place(of), name]

    def keep(self, what: object) -> None:
        """Something that structs point into."""
        self._kept[id(what)] = what

    def keep_as(self, name: str, what: object) -> None:
        """The same, in the place of what had this name before."""
        self._kept[name] = what

    def _place(self, of: Any) -> int:
        """Address of a struct."""
        ffi = self.ffi
        return int(ffi.cast("intptr_t", ffi.addressof(of) if ffi.typeof(of).kind == "struct" else of))

    def have_messages(self, more: int) -> None:
        """Make room for so many more messages than are in use."""
        p, ffi = self.p, self.ffi
        if self._chunks:
            self.have_chunks(more)  # each may be kept
        for look in self.before_more:
            look(more)
        if p.losing and p.lost.room - p.lost.n - p.most_made < more:
            self._widen(p.lost, p.lost.n + p.most_made + more)
        if p.room - p.in_use - p.most_made >= more:
            return
        room = max(2 * p.room, p.in_use + p.most_made + more)
        wider = ffi.new("message[]", room)
        ffi.memmove(wider, p.messages, ffi.sizeof("message") * p.room)
        for name, nothing in (("work", -1), ("made", -1), ("paths", 0)):
            if getattr(p, name):
                old = self.kept(p, name)
                self.array(p, name, np.append(old, np.full(room - p.room, nothing, old.dtype)))
        if p.numbers:
            self._number(room)
        self._give(p, messages=wider)
        p.room = room

    def number(self) -> None:
        """Let messages be numbered, and kept by who sends them."""
        if not self.p.numbers:
            self._number(self.p.room)
            self.have_chunks(0)

    def have_chunks(self, more: int) -> None:
        """Make room for so many more rows that are kept, wherever."""
        p, ffi = self.p, self.ffi
        wanted = p.most_made + CHUNKS + more // FEWEST + min(more, p.n_channels + p.n_tasks)
        if p.n_spare >= wanted:
            return
        new = max(wanted - p.n_spare, sum(map(len, self._chunks)) // 2)
        self._chunks.append(np.empty((new, self.lib.CHUNK_SIZE), np.uint8))
        self.lib.plane_add_chunks(p, ffi.cast("chunk *", self._chunks[-1].ctypes.data), new)

    def _number(self, room: int) -> None:
        ffi, p = self.ffi, self.p
        numbers = ffi.new("numbered[]", room)
        if p.numbers:
            ffi.memmove(numbers, p.numbers, ffi.sizeof("numbered") * p.room)
        self._give(p, numbers=numbers)

    def make_elsewhere(self) -> None:
        """Python makes the children of some tuples."""
        if not self.p.made:
            self.array(self.p, "made", np.full(self.p.room, -1, np.int32))

    def have_paths(self) -> None:
        """Tuples are to carry the path by which they come."""
        if not self.p.paths:
            self.array(self.p, "paths", np.zeros(self.p.room, np.int32))

    def waiting(self, task: int) -> tuple[Train, Ints]:
        """Tuples in service at a task, that wait there, or come to it; and which messages they are."""
        ffi, room = self.ffi, self.p.in_use
        rows, which = ffi.new("row[]", room), ffi.new("int32_t[]", room)
        n = self.lib.plane_waiting(self.p, task, rows, which, room)
        return self.train(self._rows(rows, n)), np.frombuffer(ffi.buffer(which, 4 * n), np.int32)

    def _widen(self, log: Any, room: int) -> None:
        ffi = self.ffi
        wider = ffi.new("row[]", room)
        if log.n:
            ffi.memmove(wider, log.rows, ffi.sizeof("row") * log.n)
        self._give(log, rows=wider)
        log.room = room

    def log(self, log: Any) -> None:
        """A log is to be kept."""
        self._widen(log, FEW)

    def have_rows(self, log: Any, more: int) -> None:
        """Make room for so many more rows in a log."""
        if log.room - log.n < more:
            self._widen(log, log.n + more)

    def more_rows(self, log: Any) -> bool:
        """Make a log that is full longer; False: it is long enough, and has to be read."""
        if log.room >= ROWS:
            return False
        self._widen(log, 4 * log.room)
        return True

    @property
    def work(self) -> Ints:
        """Of each message, what was drawn for its service; -1: not yet."""
        return self.kept(self.p, "work")

    def advance(self, until: int) -> int:
        """Move all data up to ``until`` (ns), or to what somebody else has to see to; returns the reason."""
        p, move, asked = self.p, self.lib.plane_advance, self.asked
        while True:
            reason: int = move(p, until)
            if reason in asked:
                asked[reason](p.who)
            elif reason == self.lib.LONG:
                p.events = 0
            else:
                return reason

    def read(self, log: Any) -> Rows:
        """The rows of a log, which is empty then."""
        n, log.n = log.n, 0
        return np.frombuffer(bytes(self.ffi.buffer(log.rows, self.ffi.sizeof("row") * n)), ROW)

    def listed(self, messages: Any, at: int | None = None) -> Train:
        """What is in a list, without control markers; ``at``: the task that it has come to."""
        return self.train(self.rows(messages), at)

    def rows(self, messages: Any) -> Rows:
        """The same as rows."""
        rows = np.empty(messages.n, ROW)
        if messages.n:
            out = self.ffi.from_buffer("row[]", rows, require_writable=True)
            self.lib.plane_listed(self.p, self.ffi.addressof(messages), out, messages.n)
        return self._without_control(rows)

    def stored(self, store: Any) -> Rows:
        """The rows that are kept in a store."""
        rows = np.empty(store.n, ROW)
        if store.n:
            out = self.ffi.from_buffer("row[]", rows, require_writable=True)
            self.lib.plane_stored(self.ffi.addressof(store), out)
        return rows

    def tuples(self, store: Any) -> Train:
        """The tuples that are kept in a store, without times."""
        columns = [np.empty(store.n, np.int64) for _ in ("uid", "key")]
        into = [self.ffi.from_buffer("int64_t[]", each, require_writable=True) for each in columns]
        n = self.lib.plane_tuples(self.ffi.addressof(store), *into)
        uid, key = (each[:n] for each in columns)
        return Train(uid, uid, uid, key)

    def filled(self, fill: Callable[[Any], int], room: int) -> Rows:
        """Rows that ``fill`` fills in, of which there are so many at most."""
        rows = self.ffi.new("row[]", max(1, room))
        return self._rows(rows, fill(rows))

    def coming(self, task: int) -> Train:
        """What is on the way to a task."""
        n = self.lib.plane_coming(self.p, task, self.ffi.NULL, 0)
        return self.train(self.filled(lambda rows: self.lib.plane_coming(self.p, task, rows, n), n))

    def _rows(self, rows: Any, n: int) -> Rows:
        return self._without_control(np.frombuffer(self.ffi.buffer(rows, self.ffi.sizeof("row") * n), ROW))

    def _without_control(self, rows: Rows) -> Rows:
        control = rows["mark"] == self.lib.CONTROL
        return rows[~control] if control.any() else rows

    def train(self, rows: Rows, at: int | None = None) -> Train:
        """Rows as a train; ``at``: the task that they have come to."""
        attempt, epoch, mark = (rows[name] for name in ("attempt", "epoch", "mark"))
        more = None
        if self.senders is not None and at is not None:
            name, numbers = self.senders
            source = rows["source"]  # of what was lost on its way nobody asks
            more = {
                name: np.where(source < 0, 0, numbers[self.tasks[at].first_input + np.maximum(source, 0)])
            }
        return Train(
            np.ascontiguousarray(rows["time"]),
            np.ascontiguousarray(rows["uid"]),
            np.ascontiguousarray(rows["created"]),
            rows["key"].astype(np.int64),
            value=np.ascontiguousarray(rows["value"]) if self.valued else None,
            attempt=attempt.astype(np.int64) if attempt.any() else None,
            epoch=epoch.astype(np.int64) if epoch.any() else None,
            mark=mark.astype(np.int64) if mark.any() else None,
            more=more,
        )
