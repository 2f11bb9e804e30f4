"""Aligned snapshots: barriers flow with the data; after a failure the whole job goes back to the last one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.snapshots import Coordinator, Member, Part, Snapshot
from tideover.models.strategies.base import NOTHING, STRATEGIES, Promise, Protocol, Strategy
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.windows import Counts, Held
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS, Duration, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.topology import Component
    from tideover.models.world import World
    from tideover.sim.link import Channel

TEN_MINUTES = 600 * 10**9


@STRATEGIES.register("aligned_snapshots")
class AlignedSnapshots(Strategy):
    """Exactly once: the whole job goes back to its last complete snapshot, and reads its log from there.

    P. Carbone et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015; P. Carbone et
    al., *State Management in Apache Flink*, PVLDB 10(12), 2017, sections 3 and 4.
    """

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})
    event_time: ClassVar[bool] = True
    log_source: ClassVar[bool] = True
    fails_together: ClassVar[bool] = True

    checkpoint_interval: Annotated[Duration, Field(ge=MS, description="distance of two triggers")]
    checkpoint_phase: Annotated[
        Duration | None, Field(description="first trigger after the start; one interval if not given")
    ] = None
    min_pause: Annotated[
        Duration, Field(description="least time from the end of a snapshot to the next trigger")
    ] = 0
    checkpoint_timeout: Annotated[
        Duration, Field(gt=0, description="a snapshot that takes longer is abandoned")
    ] = TEN_MINUTES
    snapshot_time: Annotated[
        Duration, Field(description="time that a snapshot keeps a task that has state")
    ] = 0
    snapshot_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    upload_time: Annotated[
        Duration,
        Field(description="time until a task's snapshot is durable, after the store has it; it works on"),
    ] = 0
    entry_size: Annotated[Size, Field(description="bytes of an entry in the store")] = 64
    restore_time: Annotated[Duration, Field(description="time to restore a task's state that was read")] = 0
    restore_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0

    def cycle(self) -> tuple[int, int]:
        first = self.checkpoint_interval if self.checkpoint_phase is None else self.checkpoint_phase
        return first, self.checkpoint_interval

    def protocol(self, world: World) -> Snapshots:
        return Snapshots(world, self)


class Snapshots(Protocol):
    """The protocol: triggers, barriers, snapshots, and the way back."""

    def __init__(self, world: World, strategy: AlignedSnapshots) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.coordinator = Coordinator(
            world.kernel,
            strategy.checkpoint_interval,
            strategy.min_pause,
            strategy.checkpoint_timeout,
            self._trigger,
            self._give_up,
        )
        self.members: dict[BoltTask, Member] = {}
        self.triggered = 0
        self.under_way: Snapshot | None = None
        self.complete: Snapshot | None = None
        """What the job goes back to; None: the beginning."""
        self.outage: Outage | None = None
        """The newest that has stopped the job."""
        self.cut_short: set[int] = set()
        """Numbers of the outages that a newer one has overtaken before all was replayed."""
        self.again: list[tuple[BoltTask, Train]] = []
        """What is to be read again when the job runs."""

    def start(self) -> None:
        self.members = {task: Member(self.world, task) for task in self.world.bolt_tasks}
        self.coordinator.start(self.strategy.cycle()[0])

    # -- 1. the coordinator lets barriers go in where the sources are read, ahead of what waits there --------

    def _trigger(self) -> None:
        self.triggered += 1
        self.world.note(f"snapshot {self.triggered} begins")
        snapshot = self.under_way = Snapshot(self.triggered, set(self.members))
        for task, member in self.members.items():
            if member.reads_log:
                task.enqueue_first(Rank.CHECKPOINT, partial(self._source_barrier, task, snapshot.number))

    def _source_barrier(self, task: BoltTask, number: int) -> None:
        if self._is_under_way(number) and self.members[task].barrier_from_log():
            self._take(task)

    # -- 2. barriers flow with the data; who has one from each input takes part, and hands it on -------------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        return self.members[task].receive(channel.position, train)

    def admit(self, task: BoltTask, train: Train) -> Train:
        return self.members[task].admit(train)

    def barrier(self, task: BoltTask, message: Train) -> None:
        if self._is_under_way(int(message.key[0])) and self.members[task].barrier(message):
            self._take(task)

    def _is_under_way(self, number: int) -> bool:
        return self.under_way is not None and self.under_way.number == number

    def _take(self, task: BoltTask) -> None:
        """Take part: the barrier goes on first (as in Flink), then the state is copied, which keeps the task,
        then it is uploaded, which does not.
        """
        snapshot, member = self.under_way, self.members[task]
        assert snapshot is not None
        part = snapshot.parts[task] = member.take_part(snapshot.number)
        member.hand_on()
        if part.counts is None:
            self._acknowledge(task, snapshot)
        else:
            stall = self.strategy.snapshot_time + part.entries * self.strategy.snapshot_cost
            task.occupy(stall)
            upload = partial(self._upload, task, snapshot, part.entries * self.strategy.entry_size)
            self._after(stall, Rank.CHECKPOINT, task, upload)
        member.let_go()

    def _upload(self, task: BoltTask, snapshot: Snapshot, size: int) -> None:
        if self.under_way is snapshot:
            durable = partial(self._acknowledge, task, snapshot)
            stored = partial(self._after, self.strategy.upload_time, Rank.TRIM, task, durable)
            self.world.store.request(size, Rank.TRIM, stored, task.number)

    def _after(self, delay: int, rank: Rank, task: BoltTask, action: partial[None]) -> None:
        if delay:
            self.world.kernel.at(self.world.kernel.now + delay, rank, action, task.number)
        else:
            action()

    # -- 3. when all have acknowledged it, the snapshot is what the job goes back to -------------------------

    def _acknowledge(self, task: BoltTask, snapshot: Snapshot) -> None:
        snapshot.awaited.discard(task)
        if self.under_way is snapshot and not snapshot.awaited:
            self.complete, self.under_way = snapshot, None
            for each, member in self.members.items():
                member.completed(snapshot.number, snapshot.parts[each])
            self.world.note(f"snapshot {snapshot.number} is complete")
            self.coordinator.ended()

    def _give_up(self) -> None:
        """It takes too long: its barriers, where they still are, mean nothing."""
        assert self.under_way is not None
        self.world.note(f"snapshot {self.under_way.number} is abandoned")
        self.under_way = None
        for member in self.members.values():
            member.let_go()

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        if task.component.anchored:
            self.members[task].window_emitted(held)
        return 0

    # -- 4. a failure stops the whole job, and voids the snapshot under way ----------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, SpoutTask):
            return  # producers fall silent; the log has what they have sent
        if self.outage is not outage:
            self.cut_short |= {old.number for old in self.world.watched if old is not outage}
            self.outage, self.under_way = outage, None
            self.coordinator.stop()
        self.again += [(task, train) for train in self.members[task].roll_back(self._part(task))]

    # -- 5. all tasks read their part of the last complete one; when the last has it, the job runs -----------

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, SpoutTask):
            return
        task.recovering = True
        if task is self.world.bolt_tasks[-1]:
            self._restore(outage)

    def _restore(self, outage: Outage) -> None:
        strategy, kernel = self.strategy, self.world.kernel
        left = [task for task in self.members if task.counts is not None]

        def restored(task: BoltTask) -> None:
            left.remove(task)
            if not left and self.outage is outage:
                self._run(outage)

        def read(task: BoltTask, work: int) -> None:
            kernel.at(kernel.now + work, Rank.RESTORE, partial(restored, task), task.number)

        for task in list(left):
            entries = self._part(task).entries
            done = partial(read, task, strategy.restore_time + entries * strategy.restore_cost)
            self.world.store.request(entries * strategy.entry_size, Rank.RESTORE, done, task.number)
        if not left:
            kernel.at(kernel.now, Rank.RESTORE, lambda: self._run(outage) if self.outage is outage else None)

    def _part(self, task: BoltTask) -> Part:
        if self.complete is not None:
            return self.complete.parts[task]
        counts = None if task.counts is None else Counts(task.counts.keys)
        return Part(counts, dict.fromkeys(task.epochs, 0), 0, 0)

    def _run(self, outage: Outage) -> None:
        """The job runs again; what is in the log above the snapshot is there at once, in order."""
        for task in self.members:
            part = self._part(task)
            task.epochs, task.windows = part.epochs, part.windows
            if part.counts is not None:
                task.restore(part.counts.copy())
                self.world.restore_effects(task, outage, part.counts.effects().uid)
            task.recovering = False
        for task, train in self.again:
            self.world.replayed(task, train)
        self.world.note(f"the job runs again, and reads {sum(t.n for _, t in self.again)} messages once more")
        self.again.clear()
        for task in self.members:
            task.release_held()
        self.coordinator.start(self.world.kernel.now + self.strategy.checkpoint_interval)

    # -- what is left to see ---------------------------------------------------------------------------------

    def _logs(self) -> list[tuple[BoltTask, Member]]:
        return [(task, member) for task, member in self.members.items() if member.log is not None]

    def moved(self, now: int) -> None:
        kept = sum(
            member.log.size + sum(t.n for t in task.held) for task, member in self._logs() if member.log
        )
        self.world.peak_buffered = max(self.world.peak_buffered, kept)

    def awaited(self, task: BoltTask, number: int) -> bool:
        ended = task.windows if task.component.trigger == "tuples" else min(task.epochs.values())
        return number > ended

    def copies(self) -> Ints:
        parts = [
            train.uid[train.column("mark") == 0] >> task.component.bits
            for task, member in self._logs()
            for train in (member.log.trains if member.log else [])
        ]
        return np.concatenate([NOTHING, *parts])

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        if self.complete is None:
            return []
        parts = self.complete.parts.items()
        return [(task.component, p.counts.effects().uid) for task, p in parts if p.counts is not None]

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        if task.fault != outage or not task.component.ends_roots:
            return None
        again: np.ndarray = train.born <= self.world.outages[outage].failed_at
        return again

    def settled(self, outage: Outage) -> bool:
        if outage is not self.outage:
            return outage.number not in self.cut_short
        if not all(task.available for task in self.members):
            return False
        waiting = (train for trains in self.world.on_the_way().values() for train in trains)
        return not any((train.born <= outage.failed_at).any() for train in waiting)
