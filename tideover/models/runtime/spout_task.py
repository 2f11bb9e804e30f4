"""The task of a spout."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from tideover.models.job.arrivals.poisson import Poisson
from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.runtime.context import Context
from tideover.models.runtime.laws import describe
from tideover.models.runtime.node import Node
from tideover.models.runtime.outside import give_targets
from tideover.models.runtime.reading import Reading
from tideover.models.runtime.retries import InFlight, Retries
from tideover.models.runtime.stream import Sent, is_given
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train, join

CALLS, MOST = 256, 65_536
"""Calls, or contents of roots, that are worked out at first; then twice as many each time, up to the most."""


class Feed(deque[Train]):
    """What a spout emits instead of calling: the data plane has it as soon as it is there."""

    def __init__(self, spout: SpoutTask) -> None:
        super().__init__()
        self._spout = spout

    def append(self, train: Train) -> None:
        self._spout.feed_on(train)


class SpoutTask(Node):
    """A spout task: pulled call by call; a call serves the retry queue first, else makes a new root. Its
    calls, and what its roots contain, are worked out ahead, block by block.

    spout_number   number among all spout tasks: the low bits of its roots
    retries        what is to be emitted again, oldest first
    in_flight      roots that are neither done nor given up
    reading        what it takes from the queue before it (None: there is none)
    feed           what it emits instead of calling, at the times of these trains (None: it calls)
    """

    silent = False
    """As of bolts' tasks: it emits."""

    def __init__(
        self,
        context: Context,
        component: Component,
        index: int,
        number: int,
        host: int,
        fed: bool,
        plane: Plane,
        task: int,
    ) -> None:
        super().__init__(context.kernel, f"{component.name}.{index}", host, component, plane, task)
        assert isinstance(component.config, SpoutConfig)
        self._context = context
        self._config = component.config
        self.arrivals = component.config.arrivals
        """When it is called."""
        self.index = index
        self.spout_number = number
        self.feed: Feed | None = None
        self._epoch = 0
        self.reading: Reading | None = None
        self._last_call = 0
        if self._config.source is None:
            self._last_call = self.arrivals.offset(self.name, context.draws)
        elif not fed:
            self.reading = Reading(self._config, component.name, index, context.draws)
        self.shows_sent = False
        """Whether somebody wants to know what it has sent."""
        c, lib = self.c, plane.lib
        c.spout = number
        c.since = self._last_call
        c.limit = -1
        limit = self._config.spout.limit
        if limit is not None:
            c.limit = limit
        gaps = self.arrivals.gaps(self.name, context.draws, 0, 1)
        c.calls_by = lib.BY_TABLE if gaps is None or fed else lib.BY_GAP
        if isinstance(self.arrivals, Poisson):
            describe(plane, Exponential(mean=round(self.arrivals.mean_gap_ns)), c.gap)
            c.gap_key = int(context.draws.key(self.name, Purpose.GAP))
            c.first_gap = -lib.GAPS
            plane.array(c, "gaps", np.zeros(lib.GAPS, np.int64))
        elif gaps is not None:
            c.gap.low = int(gaps[0])
        if self.reading is not None:
            self._read(self.reading)
        self.retries = Retries(plane, c, self._content_again)
        self.in_flight = InFlight(c, self._go_on_from)
        self._many = {"calls": CALLS, "content": CALLS}
        self._feed: list[Train] = []
        if fed:
            self.feed = Feed(self)
            c.ended = 1
            plane.array(c, "uids", np.zeros(0, np.int64))
            plane.array(c, "stamps", np.zeros(0, np.int64))

    # -- what the data plane asks for ------------------------------------------------------------------------

    def _next_many(self, what: str) -> int:
        n = self._many[what]
        self._many[what] = min(2 * n, MOST)
        return self.arrivals.at_once(n)

    def _read(self, reading: Reading) -> None:
        """It reads records, as they are there."""
        c, source = self.c, reading.source
        c.calls_by, c.poll_cost = self._plane.lib.BY_RECORD, source.poll_cost
        c.retention = -1 if source.retention is None else source.retention

    def look_ahead(self) -> None:
        """Work out more calls; or when more records are appended."""
        c, plane = self.c, self._plane
        if self.reading is not None:
            n = self._next_many("calls")
            c.first_record = self.reading.oldest(int(c.next_root), int(c.since))
            times = self.reading.appended(int(c.first_record), n)
            plane.array(c, "times", np.ascontiguousarray(times))
            c.n_times, c.ended = len(times), len(times) < n
            return
        known = c.times[c.n_times - 1] if c.used < c.n_times else c.since
        n = 1 if c.charge else self._next_many("calls")  # the one after it is counted from when it is made
        times = self.arrivals.next_calls(self.name, self._context.draws, int(known), int(c.calls), n)
        plane.array(c, "times", np.ascontiguousarray(times + c.charge))
        c.used, c.n_times, c.ended = 0, len(times), len(times) < n

    def make_contents(self) -> None:
        """Work out what the next roots contain."""
        c, context = self.c, self._context
        first, n = int(c.next_root), self._next_many("content")
        number = np.arange(first, first + n, dtype=np.int64)
        roots = number << context.topology.spout_bits | self.spout_number
        self._contain(roots, *self._content(roots))
        c.first_content, c.n_content = first, n

    def _content(self, roots: Ints) -> tuple[Ints, Ints | None]:
        context = self._context
        number = roots >> context.topology.spout_bits
        return self._config.spout.content(self.component.name, context.draws, roots, number)

    def _content_again(self, roots: Ints) -> tuple[Ints, Ints | None, Ints | None]:
        created = None
        if self.reading is not None:
            created = self.reading.appended_at(roots >> self._context.topology.spout_bits)
        return *self._content(roots), created

    def expire(self) -> None:
        """Records were deleted before they were read."""
        c = self.c
        gone = np.arange(c.next_root, c.oldest, dtype=np.int64)
        c.next_root = c.oldest
        self._context.say.expired(self, gone << self._context.topology.spout_bits | self.spout_number)

    def _contain(self, roots: Ints, key: Ints, value: Ints | None) -> None:
        c, plane = self.c, self._plane
        self._give_targets(roots, key, value)
        plane.array(c, "keys", np.ascontiguousarray(key))
        if value is not None:
            plane.valued = True
            plane.array(c, "values", np.ascontiguousarray(value))

    def _give_targets(self, roots: Ints, key: Ints, value: Ints | None, again: bool = False) -> None:
        """Find out where roots go, over those edges where the data plane cannot."""
        if any(is_given(edge) for edge in self.component.outputs):
            some = np.zeros(len(roots), np.int64)
            train = Train(some, roots, some, key, value=value)
            give_targets(self.outlets, self._plane, self._context.draws, train, Children(), again)

    def feed_on(self, train: Train) -> None:
        """Emit these roots, each at its time."""
        c, plane = self.c, self._plane
        self._feed = [part.pick(slice(int(c.used), None)) for part in self._feed if part.n > c.used]
        whole = join([*self._feed, train])
        self._feed = [whole]
        for name, column in (("times", whole.time), ("uids", whole.uid), ("stamps", whole.created)):
            plane.array(c, name, np.ascontiguousarray(column))
        self._contain(whole.uid, whole.key, whole.value)
        c.used, c.n_times = 0, whole.n

    # -- what it does ----------------------------------------------------------------------------------------

    @property
    def next_root(self) -> int:
        """How many roots it has made."""
        return int(self.c.next_root)

    @property
    def available(self) -> bool:
        """It emits."""
        return self.up

    def _go_on_from(self, moment: int) -> None:
        """Calls wait until ``moment``; what was planned before it is planned anew."""
        c = self.c
        if moment > c.since:
            c.since = moment
            self._plan_anew()

    def _plan_anew(self) -> None:
        """Calls that were planned are so no more."""
        c = self.c
        if c.calls_by == self._plane.lib.BY_TABLE and self.feed is None:
            c.used = c.n_times = c.ended = 0

    def send_markers(self, up_to: int) -> None:
        """Send all end markers up to number ``up_to`` that were not sent yet (because the task was down), on
        all channels; tuples count to the next epoch from now.
        """
        plane = self._plane
        for number in range(self._epoch + 1, up_to + 1):
            self._epoch = number
            plane.have_messages(sum(len(o.channels) * len(o.channels[0]) for o in self.outlets))
            plane.lib.plane_broadcast(plane.p, self.number, self._kernel.now, number, 0, 0)
        self.c.epoch = self._epoch

    def emit_again(self, roots: Ints, attempts: Ints) -> None:
        """These roots wait to be emitted again, as these attempts, from now on."""
        self.retries.append(roots, attempts, self._kernel.now)
        for waiting, _ in self.retries:
            self._give_targets(waiting, *self._content(waiting), again=True)
        self._context.say.retrying(self, roots)

    def emitted(self, rows: Any) -> None:
        """These rows are roots that it has emitted: tell who wants to know."""
        train = self._plane.train(rows)
        if self._context.events is not None and self.feed is None:
            self._context.events.emitted(self.spout_number, train)
        sent: list[Sent] = []
        for outlet in self.outlets if self.shows_sent else ():
            sent += outlet.sent(train, Children())
        self._context.say.emitted(self, train, sent)
        if self.feed is None:
            self._context.hooks.emitted(self, train, sent)

    # -- life ------------------------------------------------------------------------------------------------

    def occupy(self, duration: int) -> None:
        super().occupy(duration)
        self._go_on_from(self.busy.free_at)

    def stop_until(self, moment: int) -> int:
        shift = super().stop_until(moment)
        self._go_on_from(self.busy.free_at)
        return shift

    def crash(self) -> list[Train]:
        """Go down, and forget what waits to be emitted again."""
        self._stop()
        self._die()
        c = self.c
        # what kept it busy is over; it may be before the first call
        c.since = min(c.since, max(self._kernel.now, self._last_call))
        self._plan_anew()
        self.retries.clear()
        self.in_flight.clear()
        return []

    def revive(self) -> None:
        """Be up again."""
        self._live()
        self._go_on_from(self._kernel.now)
