"""A query that reads its log batch by batch: what of it can be seen, by supervision, ledger and measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tideover.models.batches.batch import Batch, Record
from tideover.models.batches.cluster import Cluster
from tideover.models.batches.executor import Executor
from tideover.models.batches.log import Content, Log, data
from tideover.models.intake import Mask
from tideover.models.strategies.base import Protocol
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.twin import effects_of
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.machine import Machine
    from tideover.models.outage import Outage
    from tideover.models.stream import Sent
    from tideover.models.topology import Component
    from tideover.models.world import World
    from tideover.sim.link import Channel


class Query(Protocol):
    """The log of a query, its batch, and the processes that run it."""

    cluster: Cluster

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.log = Log()
        self.batch: Batch | None = None
        """The one that is not committed yet."""
        self.history: list[Record] = []
        """Batches that were committed."""

    # -- what comes, and what strikes ------------------------------------------------------------------------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        if not isinstance(channel.up, SpoutTask):
            return train
        self.log.append(task, train)
        return train.pick(slice(0, 0))

    def executor_failed(self, executor: Executor, outage: Outage) -> None:
        """An executor was killed: the scheduler sees to what ran in it."""

    def executor_ready(self, executor: Executor, outage: Outage) -> None:
        """A new process stands in its place."""

    def machines(self) -> list[Machine]:
        return [self.cluster.driver, *self.cluster.executors]

    def paused(self, task: BoltTask, outage: Outage) -> None:
        self.cluster.stopped(task, outage.ready_at)

    # -- what is worked off again ----------------------------------------------------------------------------

    def read_again(self, task: BoltTask, train: Train, outage: int | None = None) -> Mask | None:
        """Which of a task's tuples in this batch are worked off again (because of ``outage``); None: none."""
        again = self.cluster.of[task].again
        return np.ones(train.n, np.bool_) if again >= 0 and outage in (None, again) else None

    def processed(self, task: BoltTask, train: Train, sent: list[Sent]) -> None:
        again = self.read_again(task, train)
        if again is not None:
            self.world.replayed(task, train.pick(again))

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        return self.read_again(task, train, outage)

    def settled(self, outage: Outage) -> bool:
        return all(p.again != outage.number for p in self.cluster.partitions)

    # -- what comes out, and what is kept --------------------------------------------------------------------

    def beat(self) -> int:
        between = np.diff([record.visible for record in self.history])
        return int(np.median(between)) if len(between) else 0

    def moved(self, now: int) -> None:
        self.world.peak_buffered = max(self.world.peak_buffered, self.rows_kept)

    @property
    def rows_kept(self) -> int:
        """Rows that the log keeps for the query."""
        return self.log.size + (0 if self.batch is None else self.batch.size)

    def contents(self) -> list[Content]:
        """The same, by the task that reads them."""
        contents: list[Content] = [{task: train} for task, ts in self.log.waiting.items() for train in ts]
        return contents if self.batch is None else [*contents, self.batch.content]

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        parts: dict[str, list[Ints]] = {}
        for content in self.contents():
            for task, train in content.items():  # what will be filtered out has no effect, but is here
                parts.setdefault(task.component.name, []).append(data(train).uid)
            for name, uid in self._effects(content).items():
                parts.setdefault(name, []).append(uid)
        before = {} if self.batch is None else self.batch.before or {}
        for task, state in before.items():
            if state.counts is not None:  # may come back, though its window is out by now
                parts.setdefault(task.component.name, []).append(state.effects())
        return [(self.world.topology.by_name[name], np.concatenate(uids)) for name, uids in parts.items()]

    def _effects(self, content: Content) -> dict[str, Ints]:
        """Uids of the effects that this content has at the ends of the topology."""
        at: dict[str, list[Train]] = {c.name: [] for c in self.world.topology.components}
        for task, train in content.items():
            if task.component.anchored:
                at[task.component.name].append(data(train))
        return effects_of(self.world.topology, self.world.draws, at)

    def take_back(self, batch: Batch) -> None:
        """What a batch has put out is undone: states and outputs are those of the one before it."""
        world = self.world
        for task, state in (batch.before or {}).items():
            world.roll_back(task, state.counts)
            task.epochs, task.windows = state.epochs, state.windows
        batch.before = None
        for name, uid in self._effects(batch.content).items():
            component = world.topology.by_name[name]
            if not component.window:
                world.ledger.destroy_effects(component, uid, 0)
        for task, train in batch.content.items():
            world.reopen(task, train)
