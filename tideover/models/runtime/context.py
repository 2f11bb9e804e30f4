"""What all tasks of a job have around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.job.topology import Topology
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.event_times import EventTimes
from tideover.models.runtime.hooks import Dispatcher, Needs
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.machine import Machine
from tideover.models.runtime.resource import Resource
from tideover.models.runtime.runner import Runner
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.draws import Draws
from tideover.sim.kernel import Kernel
from tideover.sim.store import StoreServer
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.runtime.cores import Cores

OVERFLOW = -2
"""Because of what a tuple is lost that finds a queue full: no outage, but a reason all the same."""


@dataclass(eq=False)
class Context:
    """What tasks use, and who has plugged in.

    needs        what the mechanisms need, together
    say          tells the accounts what happens
    hooks        calls the protocol and its mechanisms
    overhead     time (ns) that each tuple of a component takes on top of its service
    newest       number of the newest outage that has hit each task
    overflowed   tuples that each task has lost because they found its queue full
    machines     what can fail besides tasks
    keepers      who has copies of tuples or effects
    withheld     tasks whose output readers see when it is committed, and not as it is put out
    cores        of each host on which their number or their speed matters
    servers      of each store, by its name; None: of the one that has none
    resources    what several tasks use, and can only do so much of: cores, cards, stores
    events       when the events took place that tuples tell of; None: nobody asks
    runner       who runs the bolts, if they do not run by themselves
    marks        what control messages of mechanisms are called, by the mark that they have on channels
    rhythm       asks for the period (ns) of what interrupts the flow in normal operation, and may come at
                 another moment after a failure (a batch, a snapshot that stalls its task); 0: nothing does
    """

    topology: Topology
    draws: Draws
    needs: Needs
    say: Announcer
    kernel: Kernel = field(default_factory=Kernel)
    hooks: Dispatcher = field(default_factory=Dispatcher)
    overhead: dict[str, int] = field(default_factory=dict)
    newest: dict[object, int] = field(default_factory=dict)
    overflowed: dict[object, int] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)
    keepers: list[Keeper] = field(default_factory=list)
    withheld: set[object] = field(default_factory=set)
    cores: dict[int, Cores] = field(default_factory=dict)
    resources: list[Resource] = field(default_factory=list)
    servers: dict[str | None, list[StoreServer]] = field(default_factory=dict)
    events: EventTimes | None = None
    runner: Runner | None = None
    marks: dict[int, str] = field(default_factory=dict)
    rhythm: Callable[[], int] = int

    def overflow(self, task: BoltView, train: Train) -> None:
        """Say that tuples were lost because they found a task's queue full."""
        train = without_markers(train)
        self.say.overflowed(task, train)
        self.overflowed[task] = self.overflowed.get(task, 0) + train.n
        if task.component.anchored:
            self.hooks.destroyed(OVERFLOW, train.uid >> task.component.bits, train.attempt)

    def settled(self, outage: OutageView) -> bool:
        """Whether everything that was to be sent again because of an outage was."""
        return all(keeper.settled(outage) for keeper in self.keepers)

    def goes_on(self, outage: OutageView) -> bool:
        """Whether something may still be sent again because of an outage, or arrive."""
        return any(not keeper.settled(outage) or keeper.on_the_way(outage) for keeper in self.keepers)

    def destroy(
        self, task: BoltView, trains: list[Train], arrived: bool = False, outage: int | None = None
    ) -> None:
        """Say that tuples were destroyed in a task's queue, or (``arrived``) because they found it down, or
        (``outage``: by which) on their way to it.
        """
        for train in trains:
            train = without_markers(train)
            if not train.n:
                continue
            times = train.time if arrived else np.full(train.n, self.kernel.now, np.int64)
            by = self.newest.get(task, -1) if outage is None else outage
            self.say.destroyed(task, train, times, by)
            if task.component.anchored:
                roots = train.uid >> task.component.bits
                self.hooks.destroyed(by, roots, train.attempt)


def without_markers(train: Train) -> Train:
    """The tuples of a train."""
    return train if train.mark is None else train.pick(train.mark == 0)
