"""Passive standby: a secondary has each task's last checkpoint, and goes on from it.

Takeover and duplicates follow the rules of `Standbys`, buffers those of `UpstreamBuffers`, a `state` those
of `Backing`. Besides (tests/models/test_secondaries.py, test_hwang.py):

- Each `checkpoint_interval` (rank CHECKPOINT, a marker in the queue) each bolt task, with state or without,
  sends a checkpoint; it is skipped while the task recovers or an earlier one is on its way. Another follows
  each window's end by a tick, if need be as soon as the one on its way is there.
- It has the state, epochs, window numbers, the newest number processed of each channel, the greatest uid
  processed on each path, and the task's output buffers.
- It keeps the task for `checkpoint_time` + entries * `checkpoint_cost`. So long after it was taken (rank
  TRIM) the secondary has it, unless a fault of the task comes before; then senders trim.
- With `delta` it has, of the bolt's own entries, those that are not as in the one before (a session by its
  end and its sum; what is gone costs nothing), and of the output buffers what is above the numbers of that
  one. A `delta` brings back what a full checkpoint does.
- Its bytes count on the network when it is there. When somebody goes on, all that the secondary has goes
  over the network once more, to the next secondary or to the task.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models import remarks
from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Costs
from tideover.models.mechanisms.buffers import UpstreamBuffers
from tideover.models.mechanisms.replicas import ReplayFilter
from tideover.models.mechanisms.standbys import CheckpointMessages, Standbys
from tideover.models.remarks import Plan, Work
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, Rate, Size


@STRATEGIES.register("passive_standby")
class PassiveStandby(Strategy):
    """Exactly once: a secondary goes on from the last checkpoint of state and output queues as soon as the
    failure is noticed; upstream replays what came after it, and downstream drops what it has had.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.1. Duplicates are known by their path and number as in E. Tanuwidjaja, UC Berkeley EECS-2015-134,
    section 3, so that what several senders replay may be processed in another order than before.
    """

    promise = "exactly once"
    not_in_hybrid = "its tasks send again what they sent, windows too: all readers have to drop it"
    typical: ClassVar[dict[str, str]] = {"checkpoint_interval": "5 s"}
    survives = frozenset({"lose_state", "crash_task", "crash_worker", "crash_host"})
    bounded_queues = True
    recurs_every = "checkpoint_interval"
    windows = frozenset({"sliding", "event", "session", "arrival session", "join"})
    composed_of = (UpstreamBuffers, ReplayFilter, Standbys, CheckpointMessages)
    after_failures = frozenset({"replay_cost", "replay_rate"})
    per_tuple = frozenset({"replay_cost"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"checkpoints": ("checkpoint_time", "checkpoint_cost")}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {"replays": ("replay_cost", "replay_rate")}

    checkpoint_interval: Annotated[Period, Field(description="distance of two checkpoints to the secondary")]
    delta: bool = setting("a checkpoint has only what has changed since the last one", False)
    checkpoint_time: Duration = setting("time that a checkpoint keeps the task", 0)
    checkpoint_cost: Duration = setting("the same, for each entry that it has", 0)
    entry_size: Size = setting("bytes of an entry of the bolt's own on the network", 64)
    replay_cost: Duration = setting("time to replay one tuple from a buffer", 0)
    replay_rate: Rate | None = setting("most tuples replayed per second")

    def load(self, component: Component) -> Work:
        every, time, cost = self.checkpoint_interval, self.checkpoint_time, self.checkpoint_cost
        entries = component.keys if component.window else 0
        saved = remarks.Saving("checkpoint_interval", every, time, cost, self.entry_size)
        return saved.load(entries + remarks.always(component))

    def remarks(self, plan: Plan) -> list[str]:
        return [*remarks.reordered(plan), *remarks.lost_with_spouts(plan)]

    def protocol(self, job: Job) -> Secondaries:
        return Secondaries(job, self)


class Secondaries(Protocol):
    """The protocol: keep, send checkpoints, trim; take over, replay."""

    def __init__(self, job: Job, strategy: PassiveStandby) -> None:
        super().__init__(job)
        s = strategy
        # 1. every task keeps what it has sent, and drops what it has had
        self.buffers = UpstreamBuffers(job)
        self.buffers.keep_for(self.view.bolts, True, s.replay_cost, s.replay_rate)
        self.standbys = Standbys(job, self.buffers, ReplayFilter(job))
        # 2. every interval its state and output queues go to its secondary, and upstream trims
        costs = Costs(s.checkpoint_time, s.checkpoint_cost, entry_size=s.entry_size)
        self.checkpoints = CheckpointMessages(
            job, self.standbys, self.buffers, costs, s.checkpoint_interval, s.delta
        )

    # 3. the secondary takes over

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.standbys.restarted(task)
        else:
            self.standbys.go_on(task, outage, self.checkpoints.handed_on(task))
