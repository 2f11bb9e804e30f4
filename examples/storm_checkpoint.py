"""A strategy from outside the package: Storm's state checkpointing, which is barriers and acks in one.

A marker goes through the topology with the data: a task *prepares* when it has come on all inputs, by saving
its state. When all have prepared, all *commit*: only now are the tuples acked that the saved states have in
them. After a failure every task goes back to the last commit, and what was not acked by then times out and is
emitted again. So nothing is lost; a root counts twice if not all of it was committed at the failure, and so
does what a window has put out since the commit.

Simplified: all hear of commit and rollback at once, and a marker holds up what is behind it. What bolts with
state put out is not acked: what others count of it goes back to the last commit, and does not come again.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from tideover.models.mechanisms.acking.acks import Acks
from tideover.models.mechanisms.barriers.barriers import Barriers
from tideover.models.mechanisms.barriers.coordinator import Schedule
from tideover.models.mechanisms.barriers.snapshot import Snapshot
from tideover.models.mechanisms.checkpoints import Costs
from tideover.models.operators.state import Effects
from tideover.models.remarks import timeouts
from tideover.models.remarks.plan import Plan
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import read
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.source_replay import Replay, SourceReplay
from tideover.sim.units import MS, Duration, S


class Transactions(Barriers):
    """Prepare, commit, roll back; ``acks`` have to be held ones."""

    def __init__(self, job: Job, acks: Acks, schedule: Schedule) -> None:
        super().__init__(job, schedule, Costs(entry_size=64))
        self.acks, self.do = acks, Verbs(job)
        self.prepared: dict[TaskView, list[Effects]] = defaultdict(list)
        self.down: dict[TaskView, OutageView] = {}
        """Tasks that have failed and are not rolled back yet, and why."""

    def took_part(self, task: TaskView, snapshot: Snapshot) -> None:
        self.prepared[task] += self.acks.mark(task)

    def completed(self, snapshot: Snapshot) -> None:
        for task in list(self.prepared):
            self.acks.release(task, self.prepared.pop(task))

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self.interrupt()
            self.acks.forget(task, outage, self.prepared.pop(task, []))
            self.down[task] = outage

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self.down:
            bolt, size = self._bolt(task), self.coordinator.part(task).state.entries * self._costs.entry_size
            self.do.close(bolt)
            read(self._job, bolt, size, 0, partial(self.roll_back, bolt, outage))

    def roll_back(self, task: BoltView, outage: OutageView) -> None:
        """``task`` has read its state: all tasks go back to the last commit, unless it has failed again."""
        if self.down.get(task) is outage:
            del self.down[task]
            self.do.restore(task, self.coordinator.part(task).state, outage, rewind=False)
            self.do.open(task)
            for other in self._job.bolt_tasks:
                if other.state is not None and other is not task and other not in self.down:
                    self.do.close(other)  # the tuple in service begins again
                    self.do.roll_back(other, self.coordinator.part(other).state)
                    self.acks.forget(other, outage, self.prepared.pop(other, []))
                    self.do.open(other)
            if not self.down:
                self.coordinator.start(self._job.kernel.now + self._schedule.interval)

    def settled(self, outage: OutageView) -> bool:
        return outage not in self.down.values()


@STRATEGIES.register("storm_checkpoint")
class StormCheckpoint(SourceReplay):
    """At least once: acks wait for the commit of the state, and a failure takes all state back to it.

    Apache Storm 1.0, *Storm State Management*, 2016; after P. Carbone et al., 2015.
    """

    composed_of: ClassVar[tuple[type[Hooks], ...]] = (*SourceReplay.composed_of, Transactions)
    checkpoint_interval: Annotated[Duration, Field(ge=MS, description="distance of two prepares")] = S

    def cycle(self) -> tuple[int, int]:
        return self.checkpoint_interval, self.checkpoint_interval

    def remarks(self, plan: Plan) -> list[str]:
        least = self.message_timeout * (self.timeout_buckets - 1)
        remark = f"checkpoint_interval: a tuple waits for a commit, and can time out after {least / S:g} s"
        return [remark] * (self.checkpoint_interval >= least) + timeouts.held(plan, least)

    def protocol(self, job: Job) -> Checkpointing:
        return Checkpointing(job, self)


class Checkpointing(Replay):
    """The protocol: source replay, but with acks that are held until a transaction commits."""

    held = True

    def __init__(self, job: Job, s: StormCheckpoint) -> None:
        super().__init__(job, s)
        Transactions(job, self.acks, Schedule(*s.cycle(), min_pause=0, timeout=s.message_timeout))

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.do.open(task)
