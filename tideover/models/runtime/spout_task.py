"""The task of a spout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Component
from tideover.models.operators.base import Children
from tideover.models.runtime.calls import Calls, Reads
from tideover.models.runtime.context import Context
from tideover.models.runtime.in_flight import InFlight
from tideover.models.runtime.reading import Reading
from tideover.models.runtime.stream import Outlet, Sent
from tideover.sim.line import NONE
from tideover.sim.node import Node
from tideover.sim.train import Ints, Train, single

AHEAD = 1_024
"""Calls of a spout that are worked out at first; then twice as many each time, up to a train."""
ROOTS = 1 << 21
"""Most roots that all spouts together make in one step of the data plane, about."""
Retries = tuple[Ints, Ints]
"""Roots to emit again, and their attempts."""


class SpoutTask(Node):
    """A spout task: pulled call by call; a call serves the retry queue first, else makes a new root.

    spout_number   number among all spout tasks: the low bits of its roots
    next_root      how many roots it has made
    retries        what is to be emitted again, oldest first
    in_flight      roots that are neither done nor given up
    reading        what it takes from the queue before it (None: there is none)
    feed           what it emits instead of calling, at the times of these trains (None: it calls)
    """

    silent = False
    """As of bolts' tasks: it emits."""

    def __init__(
        self, context: Context, component: Component, index: int, number: int, host: int, fed: bool
    ) -> None:
        super().__init__(context.kernel, f"{component.name}.{index}", host)
        assert isinstance(component.config, SpoutConfig)
        self._context = context
        self._config = component.config
        self.component = component
        self.index = index
        self.spout_number = number
        self.outlets: list[Outlet] = []
        self.next_root = 0
        self.retries: list[Retries] = []
        self.in_flight = InFlight(self._go_on_from)
        self.feed: deque[Train] | None = deque() if fed else None
        self._epoch = 0
        self._calls = 0
        self.reading: Reading | None = None
        self._last_call = 0
        if self._config.source is None:
            self._last_call = self._config.arrivals.offset(self.name, context.draws)
        elif not fed:
            self.reading = Reading(self._config, component.name, index, context.draws)
        self._from = self._last_call
        """Calls are counted on from here: the last call, or the moment at which the spout could go on."""
        self._ahead: Ints = np.zeros(0, np.int64)
        self._numbers: Ints = np.zeros(0, np.int64)
        """Of the records that these calls take, if there is a queue before it."""
        self._used = 0
        self._reach = AHEAD
        context.kernel.sources.append(self)

    # -- when ------------------------------------------------------------------------------------------------

    def _look_ahead(self) -> None:
        """Make sure that the next calls are known: half as many as were worked out last, so that of many
        spouts all work out new ones at once.
        """
        left = len(self._ahead) - self._used
        if left <= (self._reach // 4 if self.reading is None else 0):
            together = ROOTS // len(self._context.kernel.sources)
            n = min(self._reach, self._context.train_cap, max(AHEAD, together))
            n = self._config.arrivals.at_once(n)
            self._reach = 2 * n
            if self.reading is not None:
                again = sum(len(roots) for roots, _ in self.retries)
                self._ahead, self._numbers = self.reading.takes(self._from, self.next_root, n, again)
                self._used = 0
                return
            arrivals, known = self._config.arrivals, self._ahead[self._used :]
            last = int(known[-1]) if left else self._from
            new = arrivals.next_calls(self.name, self._context.draws, last, self._calls + left, n)
            longer = self._context.overhead.get(self.component.name)
            if longer:
                new = new + longer * np.arange(1, len(new) + 1, dtype=np.int64)
            self._ahead = np.concatenate([known, new]) if left else new
            self._used = 0

    def _go_on_from(self, moment: int) -> None:
        """Calls wait until ``moment``; what was planned before it is planned anew."""
        if moment > self._from:
            self._from = moment
            self._ahead = self._ahead[:0]
            self._used = 0

    def horizon(self, now: int) -> int:
        """How far the data plane may go in one step: to the last of the calls that need no news, or to the
        next news.
        """
        if self.feed is not None:
            return int(min(now, self.feed[0].time[-1])) if self.feed else now
        if not self.up:
            return now
        waits = self.line is not None and self.line.holds_up
        if waits and self.in_flight.most is None:
            return now
        if self.in_flight.capped or waits:
            event = self._kernel.next_data_event()
            return now if event is None else min(now, event)
        self._look_ahead()
        free = self.in_flight.room(self._context.train_cap)
        last = self._used + free - 1
        return min(now, int(self._ahead[min(last, len(self._ahead) - 1)])) if len(self._ahead) else now

    def next_event(self) -> int | None:
        known = [self.outbox.next, *self._line_moves()]
        waits = self.line is not None and self.line.holds_up
        if self.up and not waits and not self.in_flight.capped and self.feed is None:
            self._look_ahead()
            known += self._ahead[self._used : self._used + 1].tolist()
        return min((t for t in known if t is not None), default=None)

    def occupy(self, duration: int) -> None:
        super().occupy(duration)
        self._go_on_from(self.busy.free_at)

    def stop_until(self, moment: int) -> int:
        shift = super().stop_until(moment)
        self._go_on_from(self.busy.free_at)
        return shift

    # -- what ------------------------------------------------------------------------------------------------

    def _flow_fed(self, feed: deque[Train], now: int) -> None:
        while feed and feed[0].time[0] <= now:
            train = feed.popleft()
            if train.time[-1] > now:
                train, later = train.split(int(train.time.searchsorted(now, "right")))
                feed.appendleft(later)
            self._send(train.replace(epoch=self._epoch_of(train.n)))
            self.next_root += train.n

    def flow(self, now: int) -> None:
        self.outbox.let_out(now)
        if self.feed is not None:
            self._flow_fed(self.feed, now)
            return
        while self.up and not self.in_flight.capped:
            self._look_ahead()
            ahead = self._ahead
            due = int(ahead[self._used :].searchsorted(now, "right"))
            room = self.in_flight.room(due)
            if room == 0:
                return
            times = ahead[self._used : self._used + room]
            self._used += room
            self._call(times)
            if room == due and ahead is self._ahead and self._used < len(ahead):
                return  # the next one is known, and later

    def _call(self, times: Ints) -> None:
        """One root for each call, as long as there are any."""
        self._from = self._last_call = int(times[-1])
        self._calls += len(times)
        limit = self._config.spout.limit
        if limit is not None:  # calls go on when there is nothing more to emit, but are empty
            times = times[: limit - self.next_root + sum(len(roots) for roots, _ in self.retries)]
        if len(times):
            self._emit(times)
        self.tell(self.in_flight.look)

    def _emit(self, times: Ints) -> None:
        self._send(self._tuples(times, *self._roots(len(times))))

    def _tuples(self, times: Ints, roots: Ints, attempt: Ints | None) -> Train:
        number = roots >> self._context.topology.spout_bits
        key, value = self._config.spout.content(self.component.name, self._context.draws, roots, number)
        epoch = self._epoch_of(len(times))
        created = times if self.reading is None else self.reading.appended_at(number)
        return Train(times, roots, created, key, value=value, attempt=attempt, epoch=epoch)

    def _epoch_of(self, n: int) -> Ints | None:
        """Epoch column of n tuples that are emitted now."""
        return None if self._context.topology.marker_length is None else np.full(n, self._epoch, np.int64)

    def _send(self, train: Train) -> None:
        if self._context.events is not None and self.feed is None:
            self._context.events.emitted(self.spout_number, train)
        sent = self._hand_on(train)
        self._kernel.made += train.n
        self.tell(self._has_emitted, train, sent)

    def _hand_on(self, train: Train) -> list[Sent]:
        sent: list[Sent] = []
        for outlet in self.outlets:
            sent += outlet.send(train, Children())
        if self.line is not None:
            self.line.close()
        return sent

    def _has_emitted(self, train: Train, sent: list[Sent]) -> None:
        self._context.say.emitted(self, train, sent)
        if self.feed is None:
            self._context.hooks.emitted(self, train, sent)

    def _roots(self, n: int) -> tuple[Ints, Ints | None]:
        """The next n roots: retries first; their attempts (None: all 0)."""
        parts: list[Ints] = []
        attempts: list[Ints] = []
        need = n
        while need and self.retries:
            roots, attempt = self.retries.pop(0)
            if len(roots) > need:
                self.retries.insert(0, (roots[need:], attempt[need:]))
                roots, attempt = roots[:need], attempt[:need]
            parts.append(roots)
            attempts.append(attempt)
            need -= len(roots)
        new = self._new(need)
        bits = self._context.topology.spout_bits
        new = (new << bits) | self.spout_number if bits else new
        if not parts:
            return new, None
        return np.concatenate([*parts, new]), np.concatenate([*attempts, np.zeros(need, np.int64)])

    def _new(self, n: int) -> Ints:
        """Numbers of the next n new roots."""
        first = self.next_root
        if self.reading is None or not n:
            self.next_root += n
            return np.arange(first, self.next_root, dtype=np.int64)
        new = self._numbers[self._used - n : self._used]
        self.next_root = int(new[-1]) + 1
        if self.next_root - first > n:
            gone = np.setdiff1d(np.arange(first, self.next_root, dtype=np.int64), new)
            roots = gone << self._context.topology.spout_bits | self.spout_number
            self._context.say.expired(self, roots)
        return new

    def emit_again(self, roots: Ints, attempts: Ints) -> None:
        """These roots wait to be emitted again, as these attempts, from now on."""
        if self.reading is not None:
            self._look_ahead()
        self.retries.append((roots, attempts))
        self._context.say.retrying(self, roots)
        if self.reading is None:
            return
        now, reads = self._kernel.now, self._used
        waits = self.line is not None and self.line.holds_up
        if (
            not waits
            and len(self._ahead) > reads
            and self._ahead[reads] <= now + self.reading.source.poll_cost
        ):
            self._ahead = self._ahead[reads : reads + 1]  # it is about to read something
            self._numbers = self._numbers[reads : reads + 1]
        else:
            self._from = max(self._from, now)
            self._ahead = self._ahead[:0]
        self._used = 0

    def send_markers(self, up_to: int) -> None:
        """Send all end markers up to number ``up_to`` that were not sent yet (because the task was down), on
        all channels; tuples count to the next epoch from now.
        """
        for number in range(self._epoch + 1, up_to + 1):
            self._epoch = number
            train = single(self._kernel.now, 0, mark=number)
            for outlet in self.outlets:
                outlet.broadcast(train)
            if self.line is not None:
                self.line.close()

    def save(self) -> Callable[[], None]:
        """Remember what moving data changes; returns what brings that back."""
        names = ("next_root", "_calls", "_last_call", "_from", "_ahead", "_numbers", "_used", "_reach")
        kept = {name: getattr(self, name) for name in names}
        retries, outbox = self.retries.copy(), self.outbox.save()
        feed = None if self.feed is None else self.feed.copy()

        def restore() -> None:
            for name, value in kept.items():
                setattr(self, name, value)
            self.retries, self.feed = retries, feed
            outbox()

        return restore

    # -- life ------------------------------------------------------------------------------------------------

    def crash(self) -> list[Train]:
        self._from = self._last_call  # what kept it busy is over
        self._ahead = self._ahead[:0]
        self._used = 0
        self.retries.clear()
        self.in_flight.clear()
        return super().crash()

    def revive(self) -> None:
        super().revive()
        self._go_on_from(self._kernel.now)


class Calling:
    """A spout task's calls, for a contention that it takes part in: what it sends may have to wait there, and
    then it is called later.
    """

    def __init__(self, spout: SpoutTask) -> None:
        self._spout = spout
        self.hand_on = spout._hand_on

    @property
    def feed(self) -> deque[Train] | None:
        """What it emits instead of being called."""
        return self._spout.feed

    def as_emitted(self, train: Train) -> Train:
        """Tuples of the feed, as they leave."""
        return train.replace(epoch=self._spout._epoch_of(train.n))

    @property
    def stamped(self) -> bool:
        """Whether tuples have their creation stamps before they leave: those of records."""
        return self._spout.reading is not None

    def calls(self) -> Calls | Reads:
        """When it is called next."""
        spout = self._spout
        if spout.reading is not None:
            again = sum(len(roots) for roots, _ in spout.retries)
            planned = next(iter(spout._ahead[spout._used :].tolist()), None)
            return Reads(spout.reading, spout.next_root, again, spout._from, planned)
        return Calls(spout._config.arrivals, spout.name, spout._context.draws, spout._calls, spout._from)

    def room(self) -> int:
        """How many roots it may emit before one of them is settled."""
        in_flight = self._spout.in_flight
        return 0 if in_flight.capped else in_flight.room(1 << 62)

    def peek(self, skip: int, n: int) -> Train:
        """What the next calls emit but the first ``skip``: n tuples, or fewer; as they will be, but for their
        times.
        """
        spout = self._spout
        again, attempts = (
            np.concatenate(column) for column in zip((NONE, NONE), *spout.retries, strict=True)
        )
        new = max(0, n - max(0, len(again) - skip))
        first = spout.next_root + max(0, skip - len(again))
        limit = spout._config.spout.limit
        if limit is not None:
            new = max(0, min(new, limit - first))
        if spout.reading is not None:
            new = len(spout.reading.appended(first, new))
        fresh = np.arange(first, first + new, dtype=np.int64) << spout._context.topology.spout_bits
        roots = np.concatenate([again[skip : skip + n], fresh | spout.spout_number])
        attempt = np.concatenate([attempts[skip : skip + n], np.zeros(new, np.int64)])
        return spout._tuples(np.zeros(len(roots), np.int64), roots, attempt if len(again) else None)

    def called(self, times: Ints, unblocked: int) -> None:
        """It was called at these times, and has been free to go on since ``unblocked`` (ns)."""
        spout = self._spout
        if len(times):
            if spout.reading is not None:
                new = max(0, len(times) - sum(len(roots) for roots, _ in spout.retries))
                spout._numbers = np.arange(spout.next_root, spout.next_root + new, dtype=np.int64)
                spout._used = new
            spout._call(times)
        if len(times) or unblocked > spout._from:
            spout._from = max(spout._from, unblocked)
            spout._ahead = spout._ahead[:0]
            spout._used = 0
