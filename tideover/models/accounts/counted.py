"""What happens to every tuple, counted by the data plane in the arrays of backlog, ledger and recorder; what
control actions change these count there themselves. The world connects them (``Counted``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.models.accounts.backlog import Backlog
from tideover.models.accounts.ledger import Ledger, counts_itself
from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Topology
from tideover.models.runtime.job import Job
from tideover.sim.draws import Draws
from tideover.sim.histogram import Histogram
from tideover.sim.plane.plane import LATENCY, Plane
from tideover.sim.recorder import NONE, SLOT, Recorder
from tideover.sim.train import Ints, grown
from tideover.sim.units import S

FEW, MOST = 4_096, 65_536
"""Latencies that are kept before they are sorted into histograms: at first, and at most."""
WINDOW = 1 << 15
"""Slots that a long run counts in at a time."""
SPARSE = 512
"""With fewer to a second it is not worth to have all bins of each second at hand."""
SLOTS = 1 << 17
"""Of a run with no more of them all are made at once."""
SERIES = ("entered", "left", "done", "output")


class Counted:
    """Connects accounts and plane.

    A log of latencies is read when it is full, or asked for.
    """

    def __init__(self, job: Job, backlog: Backlog, ledger: Ledger, recorder: Recorder) -> None:
        self.catch_up = job.catch_up
        """Tells the accounts what the plane has logged."""
        self._plane, self._backlog, self._ledger, self._recorder = job.plane, backlog, ledger, recorder
        p, plane, lib = job.plane.p, job.plane, job.plane.lib
        p.accounts = 1
        ledger.counted = self
        self._books = ledger.books
        components = (plane.components[number] for number in range(p.n_components))
        self.knows_children = all(c.operator != lib.MADE_ELSEWHERE for c in components)
        """Whether the plane can tell what children tuples have."""
        self._slots = -1
        """Slots up to this one have a place."""
        self._window = {name: np.zeros(WINDOW, np.int64) for name in SERIES if recorder.is_long}
        self._whole = job.deployment.run.duration // SLOT + 2
        self._latencies = np.zeros(0, LATENCY)
        if recorder._latencies:
            self._keep_latencies(FEW)
        plane.asked[lib.NEED_LATENCIES] = lambda _: self._read_or_widen()
        plane.asked[lib.NEED_ROOTS] = lambda _: self.more_roots()
        for book in self._books.values():
            c = plane.components[book.component.index]
            c.applies = (2 if book.once else 1) * counts_itself(book.component)
        self.connect()
        job.count(self.reach)

    def connect(self) -> None:
        """Let the plane count in the arrays of backlog and books as they are now."""
        plane, backlog = self._plane, self._backlog
        roots = plane.p.roots
        rooms = [len(backlog._open)]
        for name in ("open", "last", "first"):
            plane.array(roots, name, getattr(backlog, f"_{name}"))
        plane.array(roots, "inside", backlog._inside.view(np.uint8))
        roots.base = backlog._base
        for name, book in self._books.items():
            bits = book.component.bits
            plane.array(plane.components[book.component.index], "book", book.slots)
            rooms.append(len(book.slots) // book.replicas >> bits)
            assert book.base == backlog._base, name
        roots.room = min(rooms)

    def more_roots(self) -> None:
        roots = self._plane.p.roots
        room = 2 * max(1, int(roots.room), int(roots.used))
        self.note_used()
        self._backlog.have_room(room)
        for book in self._books.values():
            book.have_room(room)
        self.connect()

    def note_used(self) -> None:
        used = int(self._plane.p.roots.used)
        self._backlog._used = max(self._backlog._used, used)
        for book in self._books.values():
            if counts_itself(book.component):
                book.used = max(book.used, used * book.replicas << book.component.bits)

    def pruned(self) -> None:
        self._plane.p.roots.used = self._backlog._used
        self.connect()

    def reach(self, until: int) -> int:
        """How far data may move, on its way to ``until`` (ns): there is room for what happens up to there."""
        slots = until // SLOT + 2
        if slots <= self._slots:
            return until
        if self._window:
            return self._move_window(until)
        self._slots = self._whole if self._whole <= SLOTS else max(slots, min(2 * slots, self._whole))
        for name in SERIES:
            series: Any = getattr(self._recorder, name)
            series._reserve(self._slots)
            self._plane.array(self._plane.p.counts, name, series._counts)
        return until

    def _move_window(self, until: int) -> int:
        """A long run has places for some slots only: let them be those in which something happens next."""
        p, lib = self._plane.p, self._plane.lib
        following = max(int(p.now), min(lib.plane_next_event(p, task) for task in range(p.n_tasks)))
        if following > until:
            return until
        self._empty_window()
        counts = p.counts
        for name, places in self._window.items():
            self._plane.array(counts, name, places)
        counts.first = max(0, following // SLOT)
        self._slots = counts.first + WINDOW
        return min(until, (self._slots - 2) * SLOT)

    def _empty_window(self) -> None:
        """Tell the recorder what was counted in a window."""
        first = int(self._plane.p.counts.first)
        for name, places in self._window.items():
            filled = np.flatnonzero(places)
            getattr(self._recorder, name).put(filled + first, places[filled])
            places[filled] = 0

    def missing(self, topology: Topology, draws: Draws, roots: Ints) -> dict[str, Ints]:
        """Uids of the effects of these roots that are not applied, by component."""
        plane, ffi = self._plane, self._plane.ffi
        found: dict[str, list[Ints]] = {c.name: [NONE] for c in topology.ends}
        spouts = roots & ((1 << topology.spout_bits) - 1)
        for number, (spout, _) in enumerate(topology.spout_tasks):
            mine = roots[spouts == number] if len(topology.spout_tasks) > 1 else roots
            if not len(mine):
                continue
            assert isinstance(spout.config, SpoutConfig)
            key, _ = spout.config.spout.content(spout.name, draws, mine, mine >> topology.spout_bits)
            columns = [ffi.from_buffer("int64_t[]", np.ascontiguousarray(each)) for each in (mine, key)]
            room, n = 0, 1
            uid, component = NONE, NONE.astype(np.int32)
            while n > room:  # at first they are only counted
                room, uid, component = n, np.zeros(n, np.int64), np.zeros(n, np.int32)
                into = ffi.from_buffer("int64_t[]", uid), ffi.from_buffer("int32_t[]", component)
                n = plane.lib.plane_missing(plane.p, spout.index, len(mine), *columns, *into, room)
            for end in topology.ends:
                found[end.name].append(uid[:n][component[:n] == end.index])
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def settle(self) -> None:
        """Tell the accounts all that the plane has counted, and they do not know yet."""
        counts = self._plane.p.counts
        self._ledger.twice(int(counts.twice))
        counts.twice = 0
        self._empty_window()
        self.note_used()
        self._read_latencies()

    def _keep_latencies(self, room: int) -> None:
        p = self._plane.p
        self._latencies = kept = grown(self._latencies, room)
        p.latencies = self._plane.ffi.cast("latency *", kept.ctypes.data)
        p.latencies_room = room

    def _read_or_widen(self) -> None:
        if len(self._latencies) < MOST:
            self._keep_latencies(4 * len(self._latencies))
        else:
            self._read_latencies()

    def _read_latencies(self) -> None:
        plane, recorder = self._plane, self._recorder
        n, plane.p.n_latencies = int(plane.p.n_latencies), 0
        if not n:
            return
        rows = self._latencies[:n]
        if recorder.from_first is None and (rows["since_first"] != rows["since_created"]).any():
            recorder.from_first = recorder.latency.copy()
        first, last = int(rows["time"].min()) // S, int(rows["time"].max()) // S
        logs = {"since_created": recorder.latency}
        if recorder.from_first is not None:
            logs["since_first"] = recorder.from_first
        if n < SPARSE * (last - first + 1):
            times = rows["time"].copy()
            for column, log in logs.items():
                log.add(times, rows[column].copy())
            return
        for since_first, log in enumerate(logs.values()):
            tallies = plane.ffi.new("tally[]", last - first + 1)
            plane.lib.plane_tally(plane.p.latencies, n, since_first, first, last - first + 1, tallies)
            for place in range(last - first + 1):
                if tallies[place].count:
                    log.merge(first + place, histogram_of(plane, tallies[place]))


def histogram_of(plane: Plane, tally: Any) -> Histogram:
    bins = np.frombuffer(plane.ffi.buffer(tally.bins), np.uint32)
    squares = (int(tally.squares_high) << 64) + int(tally.squares_low)
    return Histogram.of_counts(int(tally.count), int(tally.sum), squares, int(tally.greatest), bins)
