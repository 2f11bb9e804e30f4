"""Active replication: k-safety. Every tuple goes to k+1 replicas, which all process it; receivers drop
what they know.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tideover.models.known import Known
from tideover.models.strategies.base import NOTHING, STRATEGIES, Protocol, task_inputs_open
from tideover.models.strategies.settings.active_replication import ReplicationSettings
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.windows import Counts
from tideover.sim.kernel import Rank
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.world import World


@STRATEGIES.register("active_replication")
class ActiveReplication(ReplicationSettings):
    """Exactly once with up to k hosts of a replica set down, without acks, heartbeats or recovery; markers
    must end windows.

    E. Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley
    EECS-2015-134, section 3.
    """

    disturbs: ClassVar[bool] = True
    routed: ClassVar[bool] = True

    def protocol(self, world: World) -> Replication:
        return Replication(world, self)


class Replication(Protocol):
    """The protocol: drop at arrival what is known already; copy when coming back."""

    def __init__(self, world: World, strategy: ActiveReplication) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.known: dict[BoltTask, Known] = {}

    def start(self) -> None:
        for task in self.world.bolt_tasks:
            self.known[task] = Known(task.component.routes)

    def admit(self, task: BoltTask, train: Train) -> Train:
        fresh = self.known[task].fresh(train)
        if fresh.all():
            return train
        self.world.discarded(task, train.pick(~fresh))
        return train.pick(fresh)

    # -- a replica that comes back ---------------------------------------------------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and not task.up:
            task.recovering = False
            if not task.paused:  # who keeps the queue keeps what filtered it
                self.known[task] = Known(task.component.routes)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """Wait until a live replica has been copied, and has all that was sent before this one was back."""
        peer = self._peer(task) if isinstance(task, BoltTask) else None
        if not isinstance(task, BoltTask) or peer is None:
            self._go_on(task, outage)
            return
        task.recovering = True
        task.cancel_markers()  # there is no state that a tick could end
        task.kept += task.clear_queue()  # most of it is in the peer's queue too, and will be dropped
        size = (peer.counts.entries if peer.counts else 0) * self.strategy.entry_size
        copied = self.world.kernel.now + self.strategy.copy_time
        if self.strategy.copy_bandwidth is not None:
            copied += -(-size * 1_000_000_000 // self.strategy.copy_bandwidth)
        reached = [channel.last_arrival or 0 for channel in peer.inputs]
        self.world.control_bytes += size
        copy = partial(self._copy, task, peer, outage)
        self.world.kernel.at(max(copied, *reached), Rank.RESTORE, copy, task.number)

    def _peer(self, task: BoltTask) -> BoltTask | None:
        replicas = self.world.bolts[task.component.name, task.task]
        return next((r for r in replicas if r is not task and r.available), None)

    def _go_on(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """Nobody is there to copy from: with what there is."""
        if isinstance(task, BoltTask):
            task.recovering = False
            if task.counts is not None:
                task.restore(task.counts)
            self.world.restore_effects(task, outage, NOTHING)
        task_inputs_open(task)

    def _copy(self, task: BoltTask, peer: BoltTask, outage: Outage) -> None:
        """State, what is known, epochs and queue of the peer, all at this instant; then what was held."""
        if task.fault != outage.number:
            return  # it has failed again
        if not peer.available:
            self.ready(task, outage)
            return
        self.known[task] = self.known[peer].copy()
        task.kept = [self.admit(task, train) for train in task.kept if train.n]
        task.epochs = peer.epochs
        if peer.counts is not None:
            counts = peer.counts.copy()
            self.world.roll_back(task, Counts(counts.keys))
            task.restore(counts)
            task.windows = peer.windows
            self.world.restore_effects(task, outage, counts.effects().uid)
        for mine, theirs in zip(task.outlets, peer.outlets, strict=True):
            mine.follow(theirs)
        task.recovering = False
        ticks = iter(sorted(peer.ticks_waiting))
        for item in peer.line():
            if isinstance(item, Train):
                self.world.reopen(task, item)
                task.refill([item])
            else:
                task.tick(next(ticks))
        task.release_held()
