"""Recovery using state management: checkpoints of state, and upstream buffers that are replayed.

Buffers, trims and replays follow the rules of `UpstreamBuffers`; a bolt's `state` those of `Backing`.
Buffered is what bolts send to tasks with state of their own, with `spout_buffer` what spouts send them,
too. Besides:

- A checkpoint is due each `checkpoint_interval` (rank CHECKPOINT), as a marker in the task's queue. It is
  skipped while the task recovers (tests/models/test_rsm.py), or while an earlier one is being written.
- Another follows each window's end by a tick (a look for sessions too) at the same instant, or, if one is
  being written, as soon as that is done: otherwise what was put out would come back. Windows by marker, by
  event or by tuple need none, for they come again under their numbers (test_rsm.py).
- It holds the state and the newest number processed of each channel. It keeps the task for
  `serialise_time` + entries * `serialise_cost`; then the store writes it. When it is written it counts, and
  senders trim. A fault of the task before voids it; the store stays busy with it (test_rsm.py).
- At `ready` a task with state gives up all that it does, serves nothing, and reads the last checkpoint that
  counts: the store's time, then `restore_time` + entries * `restore_cost`. Then (rank RESTORE) it has the
  state, takes in what comes, and asks its senders.
- A task without state goes on at once, and loses what it had. A sender that goes down with its receiver
  takes its buffer with it (test_rsm_senders.py).
- A stop of the whole job takes all buffers along. So its `drain` has to last until what was under way is
  done, and for another `checkpoint_interval`, so that a checkpoint has it (test_planned_restart.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models import remarks
from tideover.models.job.topology import Component
from tideover.models.mechanisms.buffers import Shared, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import Checkpoint, Costs, RegularCheckpoints
from tideover.models.remarks import Plan, Work
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, Rate, Size


@STRATEGIES.register("rsm")
class StateManagement(Strategy):
    """Exactly once for state: restore the last checkpoint, then replay what upstream tasks have kept since.

    R. Castro Fernandez et al., SIGMOD 2013, section 4; T. Stableford, City University London, 2015, ch. 5.
    """

    promise = "exactly once"
    not_in_hybrid = None
    typical: ClassVar[dict[str, str]] = {"checkpoint_interval": "5 s"}
    windows = frozenset({"sliding", "event", "session", "arrival session", "join"})
    survives = frozenset({"lose_state", "crash_task"})
    stateless_too = False
    bounded_queues = True
    reads_queues = True
    recurs_every = "checkpoint_interval"
    composed_of = (UpstreamBuffers, RegularCheckpoints)
    per_tuple = frozenset({"replay_cost"})
    omitted = frozenset({"store"})
    after_failures = frozenset({"replay_cost", "replay_rate", "restore_time", "restore_cost"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"checkpoints": ("serialise_time", "serialise_cost")}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "restores": ("restore_time", "restore_cost"),
        "replays": ("replay_cost", "replay_rate"),
    }

    checkpoint_interval: Annotated[Period, Field(description="distance of two checkpoints")]
    spout_buffer: bool = setting("spouts keep an upstream buffer too", False)
    replay_cost: Duration = setting("time to replay one tuple from a buffer", 0)
    replay_rate: Rate | None = setting("most tuples replayed per second")
    serialise_time: Duration = setting("time that a checkpoint keeps the task", 0)
    serialise_cost: Duration = setting("the same, for each entry of the state", 0)
    restore_time: Duration = setting("time to restore a checkpoint that was read", 0)
    restore_cost: Duration = setting("the same, for each entry of the state", 0)
    entry_size: Size = setting("bytes of an entry of the bolt's own in the store", 64)
    store: str | None = setting("the one of `stores` that state is saved in; the key `store` if not given")

    @property
    def checkpoints(self) -> remarks.Saving:
        """How a task saves its state."""
        every, time, cost = self.checkpoint_interval, self.serialise_time, self.serialise_cost
        return remarks.Saving("checkpoint_interval", every, time, cost, self.entry_size)

    def load(self, component: Component) -> Work:
        if not component.window:
            return Work()
        return self.checkpoints.load(component.keys + remarks.always(component))

    def remarks(self, plan: Plan) -> list[str]:
        return [
            *remarks.by_task(plan, self.checkpoints),
            *remarks.reordered(plan),
            *remarks.unbuffered(plan, self.spout_buffer),
            *remarks.lost_together(plan),
        ]

    def prompt(self) -> bool:
        return True

    def member(self, job: Job, tasks: Sequence[BoltView], shared: Shared) -> Protocol:
        return Recovery(job, self, tasks, shared)


class Recovery(Protocol):
    """The protocol: buffers, checkpoints, trims, restores, replays."""

    def __init__(self, job: Job, s: StateManagement, tasks: Sequence[BoltView], shared: Shared) -> None:
        super().__init__(job)
        self.shared, self.buffers = shared, shared.buffers
        stateful = [task for task in tasks if task.state is not None]
        saving = s.serialise_time, s.serialise_cost
        costs = Costs(*saving, s.restore_time, s.restore_cost, s.entry_size, s.store)
        # when the store has a checkpoint, upstream trims its buffers
        self.buffers.keep_for(stateful, s.spout_buffer, s.replay_cost, s.replay_rate)
        self.checkpoints = RegularCheckpoints(job, stateful, costs, s.checkpoint_interval, self.buffers)

    # -- after a failure: read the checkpoint, restore it, ask for the buffers

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if self.view.is_stateful(task):
            self.do.close(task)
            self.buffers.empty_queue(task)
            self.checkpoints.read(task, partial(self._restored, task, outage))
        else:
            self.do.open(task)
            self.shared.back(task)

    def _restored(self, task: BoltView, outage: OutageView, saved: Checkpoint) -> None:
        self.buffers.restored(task, saved.reached)
        self.do.restore(task, saved.state, outage)
        self.do.open(task)
        self.shared.back(task)
        self.buffers.ask(task)
