"""Aligned snapshots: barriers flow with the data; after a failure the whole job goes back to the last one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tideover.models.saved_state import read, save
from tideover.models.snapshots.coordinator import Coordinator, Snapshot
from tideover.models.snapshots.job import Job
from tideover.models.snapshots.member import Member
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.settings.aligned_snapshots import SnapshotSettings
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.world import World
    from tideover.sim.link import Channel


@STRATEGIES.register("aligned_snapshots")
class AlignedSnapshots(SnapshotSettings):
    """Exactly once: the whole job goes back to its last complete snapshot, and reads its log from there.

    P. Carbone et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015; P. Carbone et
    al., *State Management in Apache Flink*, PVLDB 10(12), 2017, sections 3 and 4.
    """

    event_time: ClassVar[bool] = True
    log_source: ClassVar[bool] = True
    fails_together: ClassVar[bool] = True

    def protocol(self, world: World) -> Snapshots:
        return Snapshots(world, self)


class Snapshots(Job):
    """The protocol: barriers flow with the data, tasks align them and snapshot; a failure takes all back."""

    def __init__(self, world: World, strategy: AlignedSnapshots) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.members = {}
        self.coordinator = Coordinator(world, self.members, strategy, self._insert_barriers)

    def start(self) -> None:
        self.members.update({task: Member(task) for task in self.world.bolt_tasks})
        self.coordinator.start(self.strategy.cycle()[0])

    def beat(self) -> int:
        s = self.strategy
        return s.checkpoint_interval if s.snapshot_time or s.snapshot_cost else 0

    # -- 1. at each trigger, barriers go in where the sources are read, ahead of what waits there ------------

    def _insert_barriers(self, snapshot: Snapshot) -> None:
        for task, member in self.members.items():
            if member.reads_log:
                task.enqueue_first(Rank.CHECKPOINT, partial(self._align, task, snapshot.number, None))

    # -- 2. barriers flow with the data; a task aligns them: what is behind one waits for the others ---------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        return self.members[task].receive(channel.position, train)

    def admit(self, task: BoltTask, train: Train) -> Train:
        return self.members[task].admit(train)

    def barrier(self, task: BoltTask, message: Train) -> None:
        self._align(task, int(message.key[0]), message)

    def _align(self, task: BoltTask, number: int, message: Train | None) -> None:
        snapshot = self.coordinator.under_way
        if snapshot is not None and snapshot.number == number and self.members[task].aligned(message):
            self._take_part(task, snapshot)

    # -- 3. with the last barrier it passes them on (as in Flink, first) and snapshots its state -------------

    def _take_part(self, task: BoltTask, snapshot: Snapshot) -> None:
        s, member = self.strategy, self.members[task]
        state = member.take_part(snapshot).state
        member.hand_on(snapshot)
        safe = partial(self.coordinator.acknowledge, task, snapshot)
        if state.counts is None:
            safe()
        else:
            copying = s.snapshot_time + state.entries * s.snapshot_cost
            wanted = partial(self.coordinator.waits_for, snapshot)
            save(task, copying, state.entries * s.entry_size, wanted, safe, s.upload_time)
        member.let_go()

    # -- 4. a failure stops the whole job: a snapshot under way does not count, sources rewind ---------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):  # else producers fall silent; the log has what they have sent
            if self.outage is not outage:
                self.stopped_by(outage)
            self.members[task].roll_back(self.coordinator.part(task))

    # -- 5. every task restores the last complete snapshot; when the last has it, the job runs ---------------

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            task.recovering = True
            if task is self.world.bolt_tasks[-1]:
                self._restore(outage)

    def _restore(self, outage: Outage) -> None:
        s, kernel = self.strategy, self.world.kernel
        stateful = [task for task in self.members if task.counts is not None]
        left = set(stateful)

        def restored(task: BoltTask | None) -> None:
            left.discard(task)
            if not left and self.outage is outage:
                self._run(outage)

        for task in stateful:
            entries = self.coordinator.part(task).state.entries
            restoring = s.restore_time + entries * s.restore_cost
            read(task, entries * s.entry_size, restoring, partial(restored, task))
        if not stateful:
            kernel.at(kernel.now, Rank.RESTORE, partial(restored, None))

    def _run(self, outage: Outage) -> None:
        """What the log has above the snapshot is there at once, in order; behind it, what came meanwhile."""
        for task in self.members:
            self.coordinator.part(task).state.restore(task, outage)
        again = sum(member.read_again() for member in self.members.values())
        self.world.note(f"the job runs again, and reads {again} messages once more")
        self.coordinator.start(self.world.kernel.now + self.strategy.checkpoint_interval)
