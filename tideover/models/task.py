"""Tasks: a spout's, and a bolt's."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.bolts.base import Children
from tideover.models.config import BoltConfig, SpoutConfig
from tideover.models.stream import Outlet, Sent
from tideover.models.topology import Component
from tideover.models.windows import Counts, Held
from tideover.sim.distributions.constant import Constant
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
from tideover.sim.node import Node
from tideover.sim.server import Server
from tideover.sim.train import Ints, Train, single

if TYPE_CHECKING:
    from tideover.models.world import World

TRAIN = 65_536
"""Most roots that travel in one train, if nobody asks for fewer."""
AHEAD = 1_024
"""Calls of a spout that are worked out at first; then twice as many each time, up to a train."""
BARRIER = -2
"""Mark of a message that becomes a control marker in the queue of the task where it arrives."""


class SpoutTask(Node):
    """A spout task: pulled call by call; a call serves the retry queue first, else makes a new root."""

    def __init__(
        self, world: World, component: Component, task: int, number: int, host: int, *, fed: bool = False
    ) -> None:
        super().__init__(world.kernel, f"{component.name}.{task}", host)
        assert isinstance(component.config, SpoutConfig)
        self.world = world
        self.component = component
        self.config = component.config
        self.task = task
        self.spout_number = number
        """Number among all spout tasks: the low bits of its roots."""
        self.outlets: list[Outlet] = []
        self.next_root = 0
        self.calls = 0
        self.retries: list[tuple[Ints, Ints]] = []
        """Roots to emit again and their attempt, oldest first."""
        self.pending_cap: int | None = None
        self.pending = 0
        self.epoch = 0
        self._last_call = self.config.arrivals.offset(self.name, world.draws)
        self._from = self._last_call
        """Calls are counted on from here: the last call, or the moment at which the spout could go on."""
        self._ahead: Ints = np.zeros(0, np.int64)
        self._used = 0
        self._reach = AHEAD
        self._capped = False
        self._fed: deque[Train] | None = deque() if fed else None
        """What a twin's spout emits instead of calling."""
        world.kernel.sources.append(self)

    # -- when ------------------------------------------------------------------------------------------------

    def _look_ahead(self) -> None:
        """Make sure that the next calls are known."""
        if self._used >= len(self._ahead):
            n = min(self._reach, self.world.train_cap)
            self._reach = 2 * n
            self._ahead = self.config.arrivals.next_calls(
                self.name, self.world.draws, self._from, self.calls, n
            )
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
        if self._fed is not None:
            return int(min(now, self._fed[0].time[-1])) if self._fed else now
        if not self.up:
            return now
        if self._capped:
            event = self.kernel.next_data_event()
            return now if event is None else min(now, event)
        self._look_ahead()
        free = self.world.train_cap
        if self.pending_cap is not None:
            free = min(free, self.pending_cap - self.pending)
        last = self._used + free - 1
        return min(now, int(self._ahead[min(last, len(self._ahead) - 1)])) if len(self._ahead) else now

    def next_event(self) -> int | None:
        if not self.up or self._capped or self._fed is not None:
            return self.next_post
        self._look_ahead()
        known = (self.next_post, *self._ahead[self._used : self._used + 1].tolist())
        return min((t for t in known if t is not None), default=None)

    def unblock(self, moment: int) -> None:
        """A root left the pending map at ``moment``: if the cap was reached, calls go on."""
        if self._capped and self.pending_cap is not None and self.pending < self.pending_cap:
            self._capped = False
            self._go_on_from(moment)

    def occupy(self, duration: int) -> None:
        super().occupy(duration)
        self._go_on_from(self.free_at)

    def stop_until(self, moment: int) -> int:
        shift = super().stop_until(moment)
        self._go_on_from(self.free_at)
        return shift

    # -- what ------------------------------------------------------------------------------------------------

    def feed(self, train: Train) -> None:
        """Emit this train, at its times, instead of calling (in a twin)."""
        assert self._fed is not None
        self._fed.append(train)

    def _flow_fed(self, now: int) -> None:
        assert self._fed is not None
        while self._fed and self._fed[0].time[0] <= now:
            train = self._fed.popleft()
            if train.time[-1] > now:
                train, later = train.split(int(np.searchsorted(train.time, now, "right")))
                self._fed.appendleft(later)
            self._send(train.replace(epoch=self._epoch_of(train.n)))
            self.next_root += train.n

    def flow(self, now: int) -> None:
        self.post_out(now)
        if self._fed is not None:
            self._flow_fed(now)
            return
        while self.up and not self._capped:
            self._look_ahead()
            due = int(np.searchsorted(self._ahead[self._used :], now, "right"))
            if self.pending_cap is not None:
                due = min(due, self.pending_cap - self.pending)
            if due == 0:
                return
            times = self._ahead[self._used : self._used + due]
            self._used += due
            self._call(times)

    def _call(self, times: Ints) -> None:
        """One root for each call, as long as there are any."""
        self._from = self._last_call = int(times[-1])
        self.calls += len(times)
        limit = self.config.spout.limit
        if limit is not None:  # calls go on when there is nothing more to emit, but are empty
            times = times[: limit - self.next_root + sum(len(roots) for roots, _ in self.retries)]
        if len(times):
            self._emit(times)
        self._capped = self.pending_cap is not None and self.pending >= self.pending_cap

    def _emit(self, times: Ints) -> None:
        roots, attempt = self._roots(len(times))
        number = roots >> self.world.topology.spout_bits
        key, value = self.config.spout.content(self.component.name, self.world.draws, roots, number)
        self._send(
            Train(times, roots, times, key, value=value, attempt=attempt, epoch=self._epoch_of(len(times)))
        )

    def _epoch_of(self, n: int) -> Ints | None:
        """Epoch column of n tuples that are emitted now."""
        return None if self.world.topology.marker_length is None else np.full(n, self.epoch, np.int64)

    def _send(self, train: Train) -> None:
        sent: list[Sent] = []
        for outlet in self.outlets:
            sent += outlet.send(train, Children())
        self.world.emitted(self, train, sent)

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
        new = np.arange(self.next_root, self.next_root + need, dtype=np.int64)
        self.next_root += need
        new = (
            (new << self.world.topology.spout_bits) | self.spout_number
            if self.world.topology.spout_bits
            else new
        )
        if not parts:
            return new, None
        return np.concatenate([*parts, new]), np.concatenate([*attempts, np.zeros(need, np.int64)])

    def send_missed_markers(self) -> None:
        """Back after a crash: send the end markers that were due meanwhile, so that their windows end."""
        length = self.world.topology.marker_length
        if length is not None:
            for number in range(self.epoch + 1, (self.kernel.now - 1) // length + 1):
                self.send_marker(number)

    def send_marker(self, number: int) -> None:
        """Send end marker ``number`` on all channels, and count tuples to the next epoch from now."""
        self.epoch = number
        train = single(self.kernel.now, 0, mark=number)
        for outlet in self.outlets:
            outlet.broadcast(train)

    # -- life ------------------------------------------------------------------------------------------------

    def crash(self) -> list[Train]:
        self._from = self._last_call  # what kept it busy is over
        self._ahead = self._ahead[:0]
        self._used = 0
        self.retries.clear()
        self.pending = 0
        self._capped = False
        return super().crash()

    def revive(self) -> None:
        super().revive()
        self._go_on_from(self.kernel.now)


class BoltTask(Server):
    """A bolt task or one replica of it: a first-in first-out queue, and counts if the bolt is stateful."""

    def __init__(self, world: World, component: Component, task: int, replica: int, host: int) -> None:
        name = f"{component.name}.{task}" + (f"/{replica}" if replica else "")
        super().__init__(world.kernel, name, host)
        assert isinstance(component.config, BoltConfig)
        self.world = world
        self.component = component
        self.config = component.config
        self.task = task
        self.replica = replica
        self.outlets: list[Outlet] = []
        self.counts = Counts(component.input_keys) if component.window else None
        self.recovering = False
        """Up, but not yet fed from its inputs: what arrives is held (see the strategies)."""
        self.windows = 0
        self.ticks_waiting: set[int] = set()
        """Windows whose tick waits in the queue."""
        self.count_at_arrival = False
        """In a twin: count what arrives at once."""
        self._upstreams: dict[tuple[str, int], int] = {}
        self._epochs: dict[int, int] = {}
        self._scheduled = 0
        self._service, self._bolt = self.config.service, self.config.bolt
        self._window = None if component.window is None else component.window.window
        self._constant = self.config.service.value if isinstance(self.config.service, Constant) else None
        self._overhead = world.protocol.overhead_ns(component)
        self._in_batches = world.strategy.batched

    def connect(self, channel: Channel) -> None:
        super().connect(channel)
        up = channel.up
        assert isinstance(up, SpoutTask | BoltTask)
        logical = self._upstreams.setdefault((up.component.name, up.task), len(self._upstreams))
        self._epochs[logical] = 0

    def upstream(self, channel: Channel) -> int:
        """Number of the logical task at the other end of ``channel``."""
        up = channel.up
        assert isinstance(up, SpoutTask | BoltTask)
        return self._upstreams[up.component.name, up.task]

    @property
    def ends_by_tick(self) -> bool:
        """Whether the task counts over windows that its own clock ends."""
        return self.component.trigger == "tick"

    @property
    def available(self) -> bool:
        return self.up and not self.recovering

    # -- arrivals --------------------------------------------------------------------------------------------

    def flow(self, now: int) -> None:
        if not self.count_at_arrival:
            super().flow(now)
            return
        assert self.counts is not None
        for channel in self.inputs:
            train = channel.take(now)
            if train is not None:
                self.counts.add(train if train.mark is None else train.pick(train.mark == 0))

    def receive(self, channel: Channel, train: Train) -> Train:
        if train.mark is not None:
            # a marker's key says over which logical input it came
            train = train.replace(key=np.where(train.mark > 0, self.upstream(channel), train.key))
        return self.world.protocol.receive(self, channel, train)

    def admit(self, train: Train) -> Train:
        return self.world.protocol.admit(self, train)

    def take_in(self, train: Train) -> None:
        rows = () if train.mark is None else np.flatnonzero(train.mark == BARRIER).tolist()
        begin = 0
        for row in rows:
            if row > begin:
                super().take_in(train.pick(slice(begin, row)))
            message = train.pick(slice(row, row + 1))
            self.wait_in_line(Rank.CHECKPOINT, partial(self.world.protocol.barrier, self, message))
            begin = row + 1
        if begin < train.n:
            super().take_in(train.pick(slice(begin, None)) if begin else train)

    def drop(self, train: Train) -> None:
        self.world.destroyed(self, [train], arrived=True)

    # -- service ---------------------------------------------------------------------------------------------

    def demand(self, train: Train) -> Ints:
        """Service that each tuple asks for (ns), a fresh array; markers ask for none."""
        if self._constant is not None:
            demand = np.full(train.n, self._constant, np.int64)
        else:
            bits = self.world.draws.bits(self.component.name, Purpose.SERVICE, train.uid, train.attempt)
            demand = self._service.sample(bits)
        if self._overhead:
            demand += self._overhead
        if train.mark is not None:
            demand[train.mark != 0] = 0
        return demand

    def service(self, train: Train) -> Ints:
        self._scheduled += _data_count(train)
        return np.zeros(train.n, np.int64) if self._in_batches else self.demand(train)

    def taken_back(self, train: Train) -> None:
        self._scheduled -= _data_count(train)
        self.busy_ns -= int(self.demand(train).sum())

    def find_trigger(self, train: Train) -> int | None:
        row = None
        if train.mark is not None:
            marks = np.flatnonzero(train.mark)
            row = int(marks[0]) if len(marks) else None
        window = self._window
        if window is not None and window.tuples is not None:
            last = window.tuples - self._scheduled - 1
            if last < (train.n if row is None else row):
                return last
        return row

    def process(self, train: Train, arrival: Ints) -> None:
        if train.seq is not None:
            self.world.protocol.passed(self, train)
        if train.mark is not None:
            data = np.flatnonzero(train.mark == 0)
            self._last_mark = train.pick(slice(train.n - 1, None)) if train.mark[-1] else None
            if len(data) < train.n:
                train, arrival = train.pick(data), arrival[data]
            train = train.replace(mark=None)
            if not train.n:
                return
        else:
            self._last_mark = None
        sent: list[Sent] = []
        if self.counts is not None:
            self.counts.add(train)
        elif self.outlets:
            children = self._bolt.children(self.component.name, self.world.draws, train)
            for outlet in self.outlets:
                sent += outlet.send(train, children)
        self.world.processed(self, train, arrival, sent)

    _last_mark: Train | None = None

    # -- windows ---------------------------------------------------------------------------------------------

    def fire(self, now: int) -> int:
        mark = self._last_mark
        if mark is None:
            self.windows += 1
            self._scheduled = 0
            return self.end_window(self.windows, now, min(self._epochs.values()))
        assert mark.mark is not None
        number = int(mark.mark[0])
        if number < 0:
            return self.world.protocol.control_mark(self, mark, now)
        before = min(self._epochs.values())
        source = int(mark.key[0])
        self._epochs[source] = max(self._epochs[source], number)
        aligned = min(self._epochs.values())
        if aligned == before:
            return 0
        stall = 0
        if self.component.trigger == "marker":
            stall = self.end_window(aligned, now, before, up_to=aligned)
        train = single(now, 0, mark=aligned)
        for outlet in self.outlets:
            outlet.broadcast(train)
        return stall

    def end_window(self, number: int, now: int, epoch: int, up_to: int | None = None) -> int:
        """Emit the sums (of epochs < ``up_to``) as window ``number`` and clear; returns how long that keeps
        the task (ns).

        ``epoch`` is that of the aggregates: the newest marker that was handed on before them.
        """
        assert self.counts is not None
        sums, held = self.counts.take(up_to)
        keys = np.flatnonzero(sums)
        again = self.world.window(self, number, now, keys, sums[keys], held)
        if len(keys) and self.outlets and (self.world.strategy.sends_again or not again):
            first = (number * self.component.tasks + self.task) << self.component.key_bits
            moment = np.full(len(keys), now, np.int64)
            epochs = (
                None if self.world.topology.marker_length is None else np.full(len(keys), epoch, np.int64)
            )
            train = Train(moment, first | keys, moment, keys, value=sums[keys], epoch=epochs)
            for outlet in self.outlets:
                outlet.send(train, Children())
        return self.world.protocol.window_ended(self, held, now)

    def tick(self, number: int) -> None:
        """A tick that ends window ``number`` has come into the queue."""
        if self.available:
            self.ticks_waiting.add(number)
            self.enqueue(Rank.WINDOW, lambda: self._tick_turn(number))

    def cancel_markers(self) -> None:
        super().cancel_markers()
        self.ticks_waiting.clear()

    def _tick_turn(self, number: int) -> None:
        self.ticks_waiting.discard(number)
        if not self.available:
            return
        stall = self.end_window(number, self.kernel.now, min(self._epochs.values()))
        if not self.count_at_arrival:  # else nothing waits, and the next tick must not
            self.occupy(stall)
        self.post_out(self.kernel.now)

    # -- life ------------------------------------------------------------------------------------------------

    def forget(self) -> Held | None:
        """Lose the counts; returns the tuples whose effects are gone (None: there is no state)."""
        if self.counts is None:
            return None
        gone = self.counts.effects()
        self.restore(Counts(self.counts.keys))
        return gone

    def restore(self, counts: Counts) -> None:
        """Take ``counts`` as the state."""
        self.counts = counts
        window = self.component.window
        if window is not None and window.window.tuples is not None:
            # tuples in service count towards the next window, and may no longer fill the one that they were
            # going to end
            served = [train for train, _ in self._served]
            in_service = sum(_data_count(train) for train in served)
            self._scheduled = counts.tuples + in_service
            by_marker = bool(served) and served[-1].mark is not None and bool(served[-1].mark[-1])
            if not by_marker and self._scheduled < window.window.tuples:
                self._trigger_at = None

    def crash(self) -> list[Train]:
        lost = super().crash()
        self.recovering = False
        self._scheduled = 0
        self._epochs = dict.fromkeys(self._epochs, 0)
        return lost

    @property
    def epochs(self) -> dict[int, int]:
        """Newest marker of each logical input."""
        return self._epochs

    @epochs.setter
    def epochs(self, value: dict[int, int]) -> None:
        self._epochs = dict(value)


def _data_count(train: Train) -> int:
    """Tuples that are not markers."""
    return train.n if train.mark is None else int(np.count_nonzero(train.mark == 0))
