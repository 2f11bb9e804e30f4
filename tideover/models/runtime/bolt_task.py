"""The task of a bolt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component
from tideover.models.operators.window_ids import STREAM
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.stream import Outlet, Sent
from tideover.models.runtime.views import BoltView
from tideover.models.runtime.windowing import WindowedTask, tuples_in
from tideover.sim.card import UNPACKING
from tideover.sim.distributions.constant import Constant
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.line import PLACELESS
from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train

BARRIER = -2
"""Mark of a message that becomes a control marker in the queue of the task where it arrives."""
SENT_BY = "sent_by"
"""Column of barriers: number of the task that they come from."""


class BoltTask(WindowedTask):
    """A bolt task or one replica of it: a first-in first-out queue, and a state if the bolt has one.

    index    number of the task in its component
    shares   whether it shares the cores of its host
    """

    def __init__(
        self,
        context: Context,
        component: Component,
        index: int,
        replica: int,
        host: int,
        shares: bool = False,
    ) -> None:
        super().__init__(context, component, index, replica, host, shares)
        self.shares = shares
        assert isinstance(component.config, BoltConfig)
        self._inputs: dict[tuple[str, int], int] = {}
        """Numbers of the logical tasks that send here."""
        service = component.config.service
        self._service = service
        self._constant = service.value if isinstance(service, Constant) else None
        self._in_batches = context.needs.batches
        self.worked = 0
        """Tuples that it has worked on so far."""
        self.besides: Callable[[Train], Ints] | None = None
        """Time that tuples take besides, asked when they are given service, in their order; None: none."""

    def _input(self, channel: Channel) -> int:
        """Number of the logical task at the other end of ``channel``."""
        up = channel.up
        assert isinstance(up, SpoutTask | BoltTask)
        return self._inputs.setdefault((up.component.name, up.index), len(self._inputs))

    def save(self) -> Callable[[], None]:
        restore, scheduled, mark = super().save(), self._scheduled, self._last_mark

        def also() -> None:
            restore()
            self._scheduled, self._last_mark = scheduled, mark

        return also

    def _until_trigger(self) -> int | None:
        window = self.component.window
        return None if window is None or window.every is None else window.every - self._scheduled

    # -- arrivals --------------------------------------------------------------------------------------------

    def flow(self, now: int) -> None:
        if not self.windows.count_at_arrival:
            super().flow(now)
            return
        assert self._state is not None
        for _, train in self._taken(now):
            tuples = train if train.mark is None else train.pick(train.mark == 0)
            self._take_up(tuples, tuples.time)

    def _receive(self, channel: Channel, train: Train) -> Train:
        if train.mark is not None:
            # a marker's key says over which logical input it came
            train = train.replace(key=np.where(train.mark > 0, self._input(channel), train.key))
        if self._state is not None and self._state.ids is not None:
            train = train.adding(**{STREAM: np.full(train.n, self._input(channel), np.int64)})
        if channel.logged and self.bound is not None:
            train = train.adding(**{PLACELESS: np.ones(train.n, np.int64)})
        return self._context.hooks.receive(self, channel, train)

    def _admit(self, train: Train) -> Train:
        return self._context.hooks.admit(self, train)

    def _admits(self) -> bool:
        return self._context.hooks.has("admit")

    def _is_control(self, train: Train) -> npt.NDArray[np.bool_]:
        return train.column("mark") == BARRIER

    def _take_in(self, train: Train) -> None:
        rows = () if train.mark is None else self._is_control(train).nonzero()[0].tolist()
        begin = 0
        for row in rows:
            if row > begin:
                super()._take_in(train.pick(slice(begin, row)))
            message = train.pick(slice(row, row + 1))
            turn = partial(self._context.hooks.barrier, self, message)
            self._wait_in_line(Rank.CHECKPOINT, turn, self._context.reads.get(self))
            begin = row + 1
        if begin < train.n:
            super()._take_in(train.pick(slice(begin, None)) if begin else train)

    def _drop(self, train: Train) -> None:
        self._context.destroy(self, [train], arrived=True)

    def turn_away(self, train: Train) -> None:
        """Arrivals are not let in: what they carry is known, or will come again."""
        self._give_back(train)
        self.tell(self._context.say.discarded, self, train)

    def _overflow(self, train: Train) -> None:
        self._context.overflow(self, train)

    # -- service ---------------------------------------------------------------------------------------------

    def _demand(self, train: Train) -> Ints:
        if self._constant is not None:
            demand = np.full(train.n, self._constant, np.int64)
        else:
            draws = self._context.draws
            bits = draws.bits(self.component.name, Purpose.SERVICE, train.uid, train.attempt)
            demand = self._service.sample(bits)
        overhead = self._context.overhead.get(self.component.name, 0)
        if overhead:
            demand += overhead
        if train.has(UNPACKING):
            demand += train.column(UNPACKING)
        if self._state is None:
            for outlet in self.outlets:
                if outlet.packing is not None:
                    demand += self._packing(outlet, train)
        if train.mark is not None:
            demand[train.mark != 0] = 0
        return demand

    def _packing(self, outlet: Outlet, train: Train) -> Ints:
        """What serialising the tuples' children costs (ns)."""
        data = slice(None) if train.mark is None else np.flatnonzero(train.mark == 0)
        parents = train.pick(data)
        cost = np.zeros(train.n, np.int64)
        children = self._bolt.children(self.component.name, self._context.draws, parents)
        cost[data] = outlet.packed(parents, children)
        return cost

    def _serve(self, train: Train) -> Ints:
        self._scheduled += tuples_in(train)
        if self._in_batches:
            return np.zeros(train.n, np.int64)
        demand = self._demand(train)
        return demand if self.besides is None else demand + self.besides(train)

    def _take_back(self, train: Train) -> None:
        self._scheduled -= tuples_in(train)

    def _find_trigger(self, train: Train) -> int | None:
        row = None
        if train.mark is not None:
            marks = train.mark.nonzero()[0]
            row = int(marks[0]) if len(marks) else None
        window = self.component.window
        if window is not None and window.every is not None:
            last = window.every - self._scheduled - 1
            if last < (train.n if row is None else row):
                return last
        return row

    def _process(self, train: Train, arrival: Ints) -> None:
        if train.more is not None or self._context.needs.paths:
            self._context.hooks.passed(self, train)
        if train.mark is not None:
            data = (train.mark == 0).nonzero()[0]
            self._last_mark = train.pick(slice(train.n - 1, None)) if train.mark[-1] else None
            if len(data) < train.n:
                train, arrival = train.pick(data), arrival[data]
            train = train.replace(mark=None)
            if not train.n:
                return
        else:
            self._last_mark = None
        sent = self._hand_on(train)
        self.tell(self._has_processed, train, arrival, sent)

    def _hand_on(self, train: Train) -> list[Sent]:
        sent: list[Sent] = []
        if self._state is None and self.outlets and not self._mute:
            children = self._bolt.children(self.component.name, self._context.draws, train)
            for outlet in self.outlets:
                sent += outlet.send(train, children)
            if self.line is not None:
                self.line.close(children.rows)
        return [] if self.silent else sent

    @property
    def _mute(self) -> bool:
        """Whether nothing of what it does is for others."""
        return self.silent and self.unsaid is None

    def _has_processed(self, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        self.worked += train.n
        if self._state is not None:
            train = self._take_up(train, arrival)
        self._context.say.processed(self, train, arrival, sent)
        if self.component.anchored:
            self._context.hooks.processed(self, train, sent)

    def catch_up(self) -> None:
        """Tell accounts and mechanisms all that it has done."""

    def tell_numbers(self, passed: Callable[[BoltView, Train], None]) -> None:
        """Tell by number what it is done with, which the hook ``passed`` does."""

    # -- windows ---------------------------------------------------------------------------------------------

    def newest_marker(self, channel: Channel) -> int:
        """Number of the newest end marker that has come from the task at the other end of ``channel``."""
        return self.windows.epochs[self._input(channel)]

    def _cancel_markers(self) -> None:
        super()._cancel_markers()
        self.windows.waiting.clear()

    # -- life ------------------------------------------------------------------------------------------------

    @property
    def mean_service(self) -> float:
        """What a tuple takes on average (ns)."""
        return self._service.mean_ns

    def close(self) -> None:
        """Do nothing until it is opened: what waits is set aside, arrivals are held."""
        self.gate.closed = True
        self.gate.aside += self.queue.clear()

    def start_over(self) -> list[Train]:
        """Forget what was planned; returns what was admitted and waits, in order."""
        self._interrupt()
        waiting, self.gate.aside = self.gate.aside + self.queue.clear(), []
        return waiting

    def set_aside(self) -> None:
        """The same; what waits is out of the queue until the task opens."""
        self.gate.aside = self.start_over()

    def copy_queue(self, peer: BoltTask) -> None:
        """What waits at another replica arrives here, too; a tick ends the same window as there."""
        ticks = iter(sorted(peer.windows.waiting))
        for item in peer.queue.line():
            if isinstance(item, Train):
                self._context.say.reopened(self, without_markers(item))
                self.queue.refill([item])
            elif item.rank == Rank.WINDOW:
                self.windows.tick(next(ticks))

    def crash(self, keep_queue: bool = False) -> list[Train]:
        lost = super().crash(keep_queue)
        if not keep_queue:
            self._scheduled = 0
            self.windows.crash()
        return lost


def connect(task: BoltTask, channel: Channel) -> None:
    """Make ``channel`` an input of ``task``; inputs come in the physical order of their senders."""
    task.connect(channel)
    task.windows.epochs[task._input(channel)] = 0
