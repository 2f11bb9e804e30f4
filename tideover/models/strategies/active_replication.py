"""Active replication: k-safety. Every tuple goes to k+1 replicas, which all process it; receivers drop
what they know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.strategies.base import NOTHING, STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train
from tideover.sim.units import Bandwidth, Duration, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.world import World


@STRATEGIES.register("active_replication")
class ActiveReplication(Strategy):
    """Exactly once with up to k hosts of a replica set down, without acks, heartbeats or recovery; markers
    must end windows.

    E. Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley
    EECS-2015-134, section 3.
    """

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task", "crash_host"})
    disturbs: ClassVar[bool] = True
    routed: ClassVar[bool] = True

    k: Annotated[
        int, Field(ge=0, le=15, description="hosts of a replica set that may be down; k + 1 replicas")
    ] = 1
    components: Annotated[
        tuple[str, ...] | None, Field(description="bolts that are replicated; all if not given")
    ] = None
    copy_time: Annotated[
        Duration, Field(description="time for a replica that comes back to begin its copy")
    ] = 0
    copy_bandwidth: Annotated[
        Bandwidth | None, Field(description="speed at which state is copied; unlimited if not given")
    ] = None
    entry_size: Annotated[Size, Field(description="bytes of an entry of the state that is copied")] = 64

    def replicas(self, component: str) -> int:
        return self.k + 1 if self.components is None or component in self.components else 1

    def protocol(self, world: World) -> Replication:
        return Replication(world, self)


class Replication(Protocol):
    """The protocol: drop at arrival what is not greater than the greatest uid seen on its route; copy when
    coming back.
    """

    def __init__(self, world: World, strategy: ActiveReplication) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.greatest: dict[BoltTask, Ints] = {}
        """By route (the logical path from the spout): the (source, primary) of the paper."""

    def start(self) -> None:
        for replicas in self.world.bolts.values():
            for task in replicas:
                self._forget(task)

    def _forget(self, task: BoltTask) -> None:
        self.greatest[task] = np.full(task.component.routes, -1, np.int64)

    # -- deduplication ---------------------------------------------------------------------------------------

    def admit(self, task: BoltTask, train: Train) -> Train:
        keep = np.ones(train.n, np.bool_)
        data = (
            slice(None) if train.mark is None else np.flatnonzero(train.mark == 0)
        )  # markers: the window's alignment
        greatest = self.greatest[task]
        if train.route is None:
            keep[data] = self._fresh(train.uid[data], greatest, 0)
        else:
            for route in np.unique(train.route[data]).tolist():
                rows = np.flatnonzero(
                    (train.route == route) & (True if train.mark is None else train.mark == 0)
                )
                keep[rows] = self._fresh(train.uid[rows], greatest, route)
        if keep.all():
            return train
        self.world.discarded(task, train.pick(~keep))
        return train.pick(keep)

    def _fresh(self, uid: Ints, greatest: Ints, route: int) -> np.ndarray:
        """Which uids are greater than all before them on the route."""
        if not len(uid):
            return np.ones(0, np.bool_)
        before = np.maximum.accumulate(np.concatenate(([greatest[route]], uid)))
        greatest[route] = before[-1]
        fresh: np.ndarray = uid > before[:-1]
        return fresh

    # -- a replica that comes back ---------------------------------------------------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            task.recovering = False
            if not task.up and not task.paused:  # who keeps the queue keeps what filtered it
                self._forget(task)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        peer = self._peer(task) if isinstance(task, BoltTask) else None
        if not isinstance(task, BoltTask) or peer is None:
            task_inputs_open(task)
            if isinstance(task, BoltTask):
                self.world.restore_effects(task, outage, NOTHING)
            return
        task.recovering = True
        task.kept += task.clear_queue()  # most of it is in the peer's queue too, and will be dropped
        now = self.world.kernel.now
        size = (peer.counts.entries if peer.counts else 0) * self.strategy.entry_size
        copied = now + self.strategy.copy_time
        if self.strategy.copy_bandwidth is not None:
            copied += -(-size * 1_000_000_000 // self.strategy.copy_bandwidth)
        # what was sent before this task was back reaches the peer only: wait until it has
        reached = [channel.last_arrival or 0 for channel in peer.inputs]
        self.world.control_bytes += size
        self.world.kernel.at(
            max(copied, *reached), Rank.RESTORE, lambda: self._copy(task, peer, outage), task.number
        )

    def _peer(self, task: BoltTask) -> BoltTask | None:
        replicas = self.world.bolts[task.component.name, task.task]
        return next((r for r in replicas if r is not task and r.available), None)

    def _copy(self, task: BoltTask, peer: BoltTask, outage: Outage) -> None:
        """State, greatest uids, epochs and queue of the peer, all at this instant; then what was held
        since.
        """
        if task.fault != outage.number or not task.recovering:
            return  # it has failed again
        if not peer.available:
            task.recovering = False
            self.ready(task, outage)
            return
        self.greatest[task] = self.greatest[peer].copy()
        task.kept = [self.admit(task, train) for train in task.kept if train.n]
        task.epochs = peer.epochs
        if peer.counts is not None:
            task.restore(peer.counts.copy())
            task.windows = peer.windows
            self.world.restore_effects(task, outage, task.counts.effects().uid)  # type: ignore[union-attr]
        for mine, theirs in zip(task.outlets, peer.outlets, strict=True):
            mine.follow(theirs)
        queue = peer.queue()
        for train in queue:
            self.world.reopen(task, train)
        task.recovering = False
        task.refill(queue)
        task.release_held()
