"""A strategy from outside the package: a standby has each task's state as of a moment ago, and takes over as
soon as the failure is noticed.

What a task has counted since it last sent its state is the price, and so is the network: the state goes over
it each time, whole. When a window was emitted the standby is told so, or its counts would be emitted twice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tideover.models.saved_state import SavedState
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.units import Duration, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.windows import Held
    from tideover.models.world import World


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

    def protocol(self, world: World) -> Standbys:
        return Standbys(world, self)


class Standbys(Protocol):
    """The protocol: send, take over, go on."""

    def __init__(self, world: World, strategy: WarmStandby) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.states: dict[BoltTask, SavedState] = {}
        """What the standby of each task with state has."""

    def start(self) -> None:
        for task in (t for t in self.world.bolt_tasks if t.counts is not None):
            self.states[task] = SavedState.at_the_beginning(task)
            send, every = partial(self.send, task), self.strategy.interval
            self.world.kernel.every(every, every, Rank.CHECKPOINT, send, task.number)

    def send(self, task: BoltTask, i: int) -> None:
        """The state goes to the standby. ``i``: how often it has before."""
        if task.available:
            self.states[task] = SavedState.of(task)
            self.world.control_bytes += self.states[task].entries * self.strategy.entry_size

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        self.states[task] = SavedState.of(task)  # a number: it costs nothing
        return 0

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.states:
            take_over = partial(self.world.supervisor.take_over, task, outage)
            self.world.kernel.at(outage.detected_at, Rank.READY, take_over, task.number)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """Restarted or, if there is a standby, taken over."""
        if isinstance(task, BoltTask) and task in self.states:
            self.states[task].restore(task, outage)
        task_inputs_open(task)
