"""The task of a spout: what it reads, emits, and emits again.

A job makes one for each task; verbs, acking and offsets act on it. How it emits is in `sim/plane/spouts.h`;
here are what it needs to know ahead, what waits to be emitted again, and the queue that it may read from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tideover.models.job.arrivals import Evenly, Poisson
from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.runtime.channels import describe, is_given
from tideover.models.runtime.context import Context
from tideover.models.runtime.node import Node, Seat
from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws, Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train, join

RETRY = np.dtype(
    [(name, np.int64) for name in ("root", "value", "created")]
    + [(name, np.int32) for name in ("key", "attempt")]
)
"""As ``retry`` in plane.h."""


class Retries:
    """Roots that wait to be emitted again, oldest first, with their attempts; to iterate gives blocks."""

    def __init__(self, plane: Plane, c: Any) -> None:
        self._plane, self._c = plane, c
        self._rows = np.zeros(0, RETRY)

    def _waiting(self) -> Any:
        return self._rows[int(self._c.retried) :]

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        rows = self._waiting()
        if len(rows):
            yield rows["root"].copy(), rows["attempt"].astype(np.int64)

    def append(
        self, now: int, roots: Ints, attempts: Ints, key: Ints, value: Ints | None, created: Ints | None
    ) -> None:
        """``value``: None: 1; ``created``: None: the moments of emission."""
        waiting = self._waiting()
        if not len(waiting):
            self._c.retries_since = now
        self._plane.valued |= value is not None
        new = np.zeros(len(roots), RETRY)
        new["root"], new["attempt"], new["key"] = roots, attempts, key
        new["value"] = 1 if value is None else value
        new["created"] = -1 if created is None else created
        self._hold(np.concatenate([waiting, new]))

    def clear(self) -> None:
        self._hold(self._rows[:0])

    def _hold(self, rows: Any) -> None:
        self._rows, c = rows, self._c
        c.retries = self._plane.ffi.cast("retry *", rows.ctypes.data)
        c.n_retries, c.retried = len(rows), 0


class InFlight:
    """Roots that were emitted and are neither done nor given up: counted where there is a cap."""

    def __init__(self, c: Any, go_on: Callable[[int], None]) -> None:
        self._c, self._go_on = c, go_on
        c.most_in_flight = -1

    @property
    def most(self) -> int | None:
        most = int(self._c.most_in_flight)
        return None if most < 0 else most

    @most.setter
    def most(self, most: int | None) -> None:
        self._c.most_in_flight = -1 if most is None else most

    @property
    def count(self) -> int:
        return int(self._c.in_flight)

    def settle(self, roots: int, moment: int) -> None:
        """So many roots were settled at ``moment`` (ns)."""
        c = self._c
        was, c.in_flight = self.count, c.in_flight - roots
        if 0 <= c.most_in_flight <= was and c.in_flight < c.most_in_flight:
            self._go_on(moment)


CHUNK = 1_024
"""Records of a partition that are worked out at a time, at least."""
NO_RECORDS: Ints = np.zeros(0, np.int64)


class _Partition:
    """How far the records of one partition have been worked out, and those not merged with the others'."""

    def __init__(self, name: str, last: int) -> None:
        self.name, self.last = name, last
        self.count, self.waiting, self.ended = 0, NO_RECORDS, False


class Reading:
    """The records of a task's partitions, in the order in which they were appended.

    A record has the number that it has in this order, from 0; times are in ns.
    """

    def __init__(self, config: SpoutConfig, component: str, task: int, draws: Draws) -> None:
        assert config.source is not None
        self.source, self._arrivals, self._draws = config.source, config.arrivals, draws
        self._limit = config.spout.limit
        numbers = range(task, config.processes, config.parallelism)
        names = [f"{component}.partition.{number}" for number in numbers]
        self._partitions = [_Partition(name, self._arrivals.offset(name, draws)) for name in names]
        self._times = NO_RECORDS
        self._first = 0
        """Number of the first one whose time is kept."""

    def _merge(self, n: int) -> bool:
        """Merge more of the partitions' records; returns whether there were any."""
        n = self._arrivals.at_once(n)
        for p in self._partitions:
            if not p.ended and not len(p.waiting):
                p.waiting = self._arrivals.next_calls(p.name, self._draws, p.last, p.count, n)
                p.count += len(p.waiting)
                p.ended = len(p.waiting) < n
                p.last = int(p.waiting[-1]) if len(p.waiting) else p.last
        upto = min((int(p.waiting[-1]) for p in self._partitions if not p.ended), default=None)
        parts = []
        for p in self._partitions:
            cut = len(p.waiting) if upto is None else int(p.waiting.searchsorted(upto, "right"))
            parts.append(p.waiting[:cut])
            p.waiting = p.waiting[cut:]
        merged = np.sort(np.concatenate(parts))
        self._times = np.concatenate([self._times, merged])
        return len(merged) > 0

    def appended(self, first: int, n: int) -> Ints:
        """When n records from number ``first`` on are appended; fewer if there are no more."""
        if self._limit is not None:
            n = max(0, min(n, self._limit - first))
        while len(self._times) < first - self._first + n and self._merge(max(n, CHUNK)):
            pass
        return self._times[first - self._first : first - self._first + n]

    def appended_at(self, numbers: Ints) -> Ints:
        """When these were appended (none of them is forgotten)."""
        return self._times[numbers - self._first]

    def appended_before(self, moment: int) -> int:
        """How many records have been appended at or before ``moment``."""
        while not (len(self._times) and self._times[-1] > moment) and self._merge(CHUNK):
            pass
        found = self._first + int(self._times.searchsorted(moment, "right"))
        return found if self._limit is None else min(found, self._limit)

    def forget(self, before: int) -> None:
        self._times = self._times[before - self._first :]
        self._first = before

    def oldest(self, first: int, now: int) -> int:
        """The first record from number ``first`` on that is not deleted at ``now``."""
        if self.source.retention is None:
            return first
        while len(appended := self.appended(first, CHUNK)):
            gone = int(appended.searchsorted(now - self.source.retention, "left"))
            first += gone
            if gone < len(appended):
                break
        return first


CALLS, MOST = 256, 65_536
"""Calls, or contents of roots, that are worked out at first; then twice as many each time, up to the most."""


class SpoutTask(Node):
    """A spout task: pulled call by call; a call serves the retry queue first, else makes a new root. Its
    calls, and what its roots contain, are worked out ahead, block by block.

    spout_number   number among all spout tasks: the low bits of its roots
    retries        what is to be emitted again, oldest first
    in_flight      roots that are neither done nor given up
    reading        what it takes from the queue before it (None: there is none)
    epoch          number of the newest end marker that it has sent
    fed            it does not call: it emits what it is given (``feed``)
    silent         as of bolts' tasks: it emits
    """

    silent = False

    def __init__(
        self, context: Context, component: Component, seat: Seat, plane: Plane, number: int, fed: bool
    ) -> None:
        super().__init__(context, component, seat, plane)
        self._config = component.spout_config
        self.arrivals = self._config.arrivals
        self.spout_number, self.fed = number, fed
        self.epoch = self._last_call = 0
        self.reading: Reading | None = None
        if self._config.source is None:
            self._last_call = self.arrivals.offset(self.name, context.draws)
        elif not fed:
            self.reading = Reading(self._config, component.name, self.index, context.draws)
        c, lib, limit = self.c, plane.lib, self._config.spout.limit
        c.spout, c.since, c.limit = number, self._last_call, -1 if limit is None else limit
        by_gap = isinstance(self.arrivals, Poisson | Evenly) and not fed
        c.calls_by = lib.BY_GAP if by_gap else lib.BY_TABLE
        if isinstance(self.arrivals, Poisson):
            describe(plane, Exponential(mean=round(self.arrivals.mean_gap_ns)), c.gap)
            c.gap_key = int(context.draws.key(self.name, Purpose.GAP))
            c.first_gap = -lib.GAPS
            plane.array(c, "gaps", np.zeros(lib.GAPS, np.int64))
        elif isinstance(self.arrivals, Evenly):
            c.gap.low = self.arrivals.gap_ns
        if self.reading is not None:
            source = self.reading.source
            c.calls_by, c.poll_cost = lib.BY_RECORD, source.poll_cost
            c.retention = -1 if source.retention is None else source.retention
        self.retries = Retries(plane, c)
        self.in_flight = InFlight(c, self._go_on_from)
        self._many = {"calls": CALLS, "content": CALLS}
        self._given: list[Train] = []
        if fed:
            c.ended = 1
            plane.array(c, "uids", np.zeros(0, np.int64))
            plane.array(c, "stamps", np.zeros(0, np.int64))

    def _next_many(self, what: str) -> int:
        n = self._many[what]
        self._many[what] = min(2 * n, MOST)
        return self.arrivals.at_once(n)

    def look_ahead(self) -> None:
        """Work out more calls; or when more records are appended."""
        c, plane = self.c, self._plane
        if self.reading is not None:
            n = self._next_many("calls")
            c.first_record = self.reading.oldest(int(c.next_root), int(c.since))
            times = self.reading.appended(int(c.first_record), n)
        else:
            known = c.times[c.n_times - 1] if c.used < c.n_times else c.since
            n = (
                1 if c.charge else self._next_many("calls")
            )  # the one after it is counted from when it is made
            times = self.arrivals.next_calls(self.name, self._context.draws, int(known), int(c.calls), n)
            times, c.used = times + c.charge, 0
        plane.array(c, "times", np.ascontiguousarray(times))
        c.n_times, c.ended = len(times), len(times) < n

    def make_contents(self) -> None:
        c = self.c
        first, n = int(c.next_root), self._next_many("content")
        roots = self._roots(first, first + n)
        self._contain(roots, *self._content(roots))
        c.first_content, c.n_content = first, n

    def _roots(self, first: int, end: int) -> Ints:
        return np.arange(first, end, dtype=np.int64) << self._context.topology.spout_bits | self.spout_number

    def _content(self, roots: Ints) -> tuple[Ints, Ints | None]:
        context = self._context
        number = roots >> context.topology.spout_bits
        return self._config.spout.content(self.component.name, context.draws, roots, number)

    def expire(self) -> None:
        """Records were deleted before it has read them."""
        c = self.c
        gone, c.next_root = self._roots(c.next_root, c.oldest), c.oldest
        self._context.say.expired(self, gone)

    def _contain(self, roots: Ints, key: Ints, value: Ints | None) -> None:
        c, plane = self.c, self._plane
        self._find_targets(roots, key, value)
        plane.array(c, "keys", np.ascontiguousarray(key))
        if value is not None:
            plane.valued = True
            plane.array(c, "values", np.ascontiguousarray(value))

    def _find_targets(self, roots: Ints, key: Ints, value: Ints | None, at: str = "given") -> None:
        """Find out where roots go, over those edges where the data plane cannot."""
        if any(is_given(edge) for edge in self.component.outputs):
            some = np.zeros(len(roots), np.int64)
            train = Train(some, roots, some, key, value=value)
            self._give_targets(train, Children(), at)

    def feed(self, train: Train) -> None:
        c, plane = self.c, self._plane
        self._given = [part.pick(slice(int(c.used), None)) for part in self._given if part.n > c.used]
        whole = join([*self._given, train])
        self._given = [whole]
        for name, column in (("times", whole.time), ("uids", whole.uid), ("stamps", whole.created)):
            plane.array(c, name, np.ascontiguousarray(column))
        self._contain(whole.uid, whole.key, whole.value)
        c.used, c.n_times = 0, whole.n

    @property
    def next_root(self) -> int:
        return int(self.c.next_root)

    @property
    def available(self) -> bool:
        return self.up

    def _go_on_from(self, moment: int) -> None:
        """Calls wait until ``moment``; what was planned before it is planned anew."""
        if moment > self.c.since:
            self.c.since = moment
            self._plan_anew()

    def _plan_anew(self) -> None:
        """Calls that were planned are so no more."""
        c = self.c
        if c.calls_by == self._plane.lib.BY_TABLE and not self.fed:
            c.used = c.n_times = c.ended = 0

    def send_markers(self, up_to: int) -> None:
        """Send end markers up to this number, if not sent yet; tuples count to the next epoch from now."""
        for number in range(self.epoch + 1, up_to + 1):
            self.epoch = number
            self._broadcast(self._kernel.now, number)
        self.c.epoch = self.epoch

    def emit_again(self, roots: Ints, attempts: Ints) -> None:
        """These roots wait to be emitted again, as these attempts, from now on."""
        created = None
        if self.reading is not None:
            created = self.reading.appended_at(roots >> self._context.topology.spout_bits)
        self.retries.append(self._kernel.now, roots, attempts, *self._content(roots), created)
        for waiting, _ in self.retries:
            self._find_targets(waiting, *self._content(waiting), at="given_again")
        self._context.say.retrying(self, roots)

    def emitted(self, rows: Any) -> None:
        """These rows are roots that it has emitted: tell who wants to know."""
        train = self._plane.train(rows)
        if self._context.events is not None and not self.fed:
            self._context.events.emitted(self.spout_number, train)
        shown = self.outlets if self.shows_sent else []
        sent = [each for outlet in shown for each in outlet.sent(train, Children())]
        self._context.say.emitted(self, train, sent)
        if not self.fed:
            self._context.hooks.emitted(self, train, sent)

    def occupy(self, duration: int) -> None:
        super().occupy(duration)
        self._go_on_from(self.busy.free_at)

    def stop_until(self, moment: int) -> int:
        shift = super().stop_until(moment)
        self._go_on_from(self.busy.free_at)
        return shift

    def crash(self) -> None:
        self._stop()
        self._die()
        c = self.c
        # what kept it busy is over; it may be before the first call
        c.since = min(c.since, max(self._kernel.now, self._last_call))
        self._plan_anew()
        self.retries.clear()
        c.in_flight = 0

    def revive(self) -> None:
        self._live()
        self._go_on_from(self._kernel.now)
