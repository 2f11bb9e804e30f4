"""A strategy from outside the package: passive standby. A secondary has each task's last checkpoint and takes
over as soon as the failure is noticed; upstream replays what has come since.

It survives a fault of one task with state. It does not survive the crash of a task without state, which has
no secondary (what that has in memory is lost), nor that of such a sender, or a spout, together with its
receiver: the buffer goes down with it. What is sent to a secondary is there at once.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.job.topology import Component
from tideover.models.mechanisms.buffers.recovery import UpstreamBuffers
from tideover.models.mechanisms.buffers.upstream_buffer import Kept
from tideover.models.mechanisms.checkpoints import Checkpoint
from tideover.models.operators.state import Effects
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
from tideover.sim.train import Ints
from tideover.sim.units import Duration, Size


@STRATEGIES.register("passive_standby")
class PassiveStandby(Strategy):
    """Exactly once for state: a secondary goes on from the last checkpoint, and upstream replays the rest.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005.
    """

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task"})
    stateless_too: ClassVar[bool] = False
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (UpstreamBuffers,)
    after_failures: ClassVar[frozenset[str]] = frozenset({"replay_cost"})
    per_tuple: ClassVar[frozenset[str]] = frozenset({"replay_cost"})

    interval: Annotated[Duration, Field(gt=0, description="distance of two checkpoints to the secondary")]
    entry_size: Annotated[Size, Field(description="bytes of an entry of the state on the network")] = 64
    replay_cost: Annotated[Duration, Field(description="time to replay one tuple from a buffer")] = 0

    def cycle(self) -> tuple[int, int]:
        return self.interval, self.interval

    def protocol(self, job: Job) -> Secondaries:
        return Secondaries(job, self)


class Secondaries(Protocol, Keeper):
    """The protocol: buffer, checkpoint, take over, replay."""

    def __init__(self, job: Job, strategy: PassiveStandby) -> None:
        super().__init__(job)
        self.strategy = strategy
        self.buffers = UpstreamBuffers(
            job, at_spouts=True, replay_cost=strategy.replay_cost, replay_rate=None
        )
        self.saved: dict[TaskView, Checkpoint] = {}
        self.outputs: dict[TaskView, dict[Channel, Kept]] = {}
        """What the secondary of each task with state has: its state, its output queues."""
        job.context.keepers.append(self)

    def start(self) -> None:
        for task in self.view.stateful:
            self.saved[task] = Checkpoint(self.do.first_state(task), {})
            self.outputs[task] = self.buffers.outputs(task)
            self.do.every(self.strategy.interval, partial(self.tick, task), Rank.CHECKPOINT, task)

    def tick(self, task: BoltView, i: int) -> None:
        """A checkpoint is due, when all that waits in the queue has been served."""
        if task.available:
            self.do.enqueue(task, partial(self.checkpoint, task), Rank.CHECKPOINT)

    def checkpoint(self, task: BoltView) -> None:
        """The state goes to the secondary, which tells upstream what it need not keep any more."""
        if not self.buffers.recovering(task):  # else it would trim what is still to be replayed
            saved = Checkpoint(self.do.copy_state(task), dict(self.buffers.positions(task)))
            self.saved[task] = saved
            self.do.transfer(saved.state.entries * self.strategy.entry_size)
            self.send_outputs(task)
            self.buffers.trim(task, saved.positions)

    def send_outputs(self, task: BoltView) -> None:
        """What the task has put into its output queues since the last time goes to the secondary."""
        old, new = self.outputs[task], self.buffers.outputs(task)
        self.do.transfer(sum((new[c].sent - old[c].sent) * c.message_bytes for c in new))
        self.outputs[task] = new

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task.component.trigger == "tick":  # a tick does not come again in the replay, as a marker does
            self.checkpoint(task)
        self.send_outputs(task)  # a window that was put out is not put out again
        return 0

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self.saved:
            self.do.at(outage.detected_at, partial(self.do.take_over, task, outage), Rank.READY, task)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if self.view.is_stateful(task):
            saved = self.saved[task]
            self.buffers.put_back(task, self.outputs[task])
            self.buffers.empty_queue(task)
            self.buffers.restored(task, saved.positions)
            self.do.restore(task, saved.state, outage)
        self.do.open(task)
        self.buffers.sender_ready(task)
        if self.view.is_stateful(task):
            self.buffers.ask(task)

    def effects(self) -> list[tuple[Component, Ints]]:
        return [(task.component, saved.state.effects()) for task, saved in self.saved.items()]
