"""A strategy from outside the package: a standby has each task's state as of a moment ago, and takes over as
soon as the failure is noticed.

What a task has counted since it last sent its state is the price, and so is the network: the state goes over
it each time, whole. When a window was emitted the standby is told so, or its counts would be emitted twice.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.operators.state import Effects
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy
from tideover.sim.kernel import Rank
from tideover.sim.units import Duration, Size


@STRATEGIES.register("warm_standby")
class WarmStandby(Strategy):
    """At most once: a standby that is a moment behind takes over at detection.

    After the passive standby of J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream
    Processing*, ICDE 2005, without its replay.
    """

    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})

    interval: Annotated[Duration, Field(gt=0, description="distance of two sendings of the state")]
    entry_size: Annotated[Size, Field(description="bytes of an entry of the state on the network")] = 64

    def cycle(self) -> tuple[int, int]:
        return self.interval, self.interval

    def protocol(self, job: Job) -> Standbys:
        return Standbys(job, self)


class Standbys(Protocol):
    """The protocol: send, take over, go on."""

    def __init__(self, job: Job, strategy: WarmStandby) -> None:
        super().__init__(job)
        self.strategy = strategy
        self.states: dict[TaskView, SavedState] = {}
        """What the standby of each task with state has."""

    def start(self) -> None:
        for task in self.view.stateful:
            self.states[task] = self.do.first_state(task)
            self.do.every(self.strategy.interval, partial(self.send, task), Rank.CHECKPOINT, task)

    def send(self, task: BoltView, i: int) -> None:
        """The state goes to the standby. ``i``: how often it has before."""
        if task.available:
            self.states[task] = self.do.copy_state(task)
            self.do.transfer(self.states[task].entries * self.strategy.entry_size)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        self.states[task] = self.do.copy_state(task)  # a number: it costs nothing
        return 0

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self.states:
            take_over = partial(self.do.take_over, task, outage)
            self.do.at(outage.detected_at, take_over, Rank.READY, task)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        """Restarted or, if there is a standby, taken over."""
        if self.view.is_stateful(task):
            self.do.restore(task, self.states[task], outage)
        self.do.open(task)
