"""What a batch will cost: a rehearsal of it on the same topology, with the same draws, outside time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tideover.models.batches.batch import Share, Shares
from tideover.models.batches.log import Content
from tideover.models.strategies.base import Protocol
from tideover.models.task import BoltTask
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.world import World


class Rehearsing(Protocol):
    """The protocol of the rehearsal's world: adds up what tuples ask of each task."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.demand: dict[BoltTask, int] = defaultdict(int)

    def admit(self, task: BoltTask, train: Train) -> Train:
        self.demand[task] += int(task.demand(train).sum())
        return train


class Rehearsal:
    """A world like the given one in which each batch is played once, all of it at one instant.

    How long a stage takes depends on what the stages before make of the batch, and its results show only when
    all of it is done; so the outcome has to be known before it happens. A batch whose range is durable never
    changes, so one rehearsal serves all its runs.
    """

    def __init__(self, world: World) -> None:
        quiet = world.scenario.model_copy(update={"failures": ()})
        self._world = type(world)(quiet, world.draws.replication, feed=True, strategy=world.strategy)

    def start_from(self, tasks: list[BoltTask]) -> None:
        """Take the states of these tasks: the next batch is played from there."""
        for task in tasks:
            mine = self._world.bolts[task.component.name, task.task][0]
            if task.counts is not None:
                mine.restore(task.counts.copy())
            mine.epochs, mine.windows = task.epochs, task.windows

    def play(self, content: Content) -> Shares:
        """Shares of all logical tasks in a batch of this content."""
        world, protocol = self._world, self._world.protocol
        assert isinstance(protocol, Rehearsing)
        protocol.demand.clear()
        for task, train in content.items():
            mine = world.bolts[task.component.name, task.task][0]
            mine.refill([protocol.admit(mine, train)])
        for node in world.kernel.nodes:
            node.flow(0)
        world.windows.open.clear()
        return {
            (task.component.name, task.task): Share(
                protocol.demand[task], task.counts.entries if task.counts is not None else 0
            )
            for task in world.bolt_tasks
        }
