"""One attempt of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tideover.models.mechanisms.trident.partitions import Content
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.sim.train import Ints, Train, distinct, join, merge


@dataclass(eq=False)
class Attempt:
    """What an attempt reads, and how far it has come.

    content     what it reads in the log
    began_at    ns
    reads       whether the tasks that read spouts have their parts
    handed_to   what bolts have handed on, by the task that has it
    worked      tasks that have done their work
    passed      tasks that have handed on their part, or (ends) stored it
    lost        tasks at which a fault took the part: it will never be done
    broken_by   number of the first outage that did so; None: none
    processed   all tasks have worked that do so before the commit
    commits_at  when its commit began (ns); None: it has not
    logged      with an opaque spout: how far it has read is written down
    updated     all is stored: the spouts are told
    """

    txid: int
    content: Content
    began_at: int
    reads: bool = False
    handed_to: dict[BoltTask, list[Train]] = field(default_factory=dict)
    worked: set[BoltTask] = field(default_factory=set)
    passed: set[BoltTask] = field(default_factory=set)
    lost: set[BoltTask] = field(default_factory=set)
    broken_by: int | None = None
    processed: bool = False
    commits_at: int | None = None
    logged: bool = False
    updated: bool = False

    def read_by(self, task: BoltTask) -> list[Train]:
        """What a task reads in the log, in order of arrival."""
        trains = [train for (reader, _), train in self.content.items() if reader is task]
        return [merge(trains)] if trains else []

    def part(self, task: BoltTask) -> Train | None:
        """All that a task has of it; None: nothing."""
        trains = [*self.read_by(task), *self.handed_to.get(task, [])]
        return join(trains) if trains else None

    def breaks(self, task: BoltTask, outage: int) -> None:
        """A fault has taken the part of a task."""
        self.lost.add(task)
        if self.broken_by is None:
            self.broken_by = outage

    @property
    def timed_since(self) -> int | None:
        """Since when its timeout runs (ns); None: nobody waits for anything that could fail."""
        if self.commits_at is not None:
            return None if self.updated else self.commits_at
        return None if self.processed else self.began_at

    @property
    def roots(self) -> Ints:
        """All that it has tuples of (it reads them in the log)."""
        return roots_of(self.content)


def roots_of(content: Content) -> Ints:
    """The roots of what is read in the log, rising."""
    return distinct(np.concatenate([np.zeros(0, np.int64), *_roots(content)]))


def _roots(content: Content) -> Sequence[Ints]:
    return [without_markers(t).uid >> task.component.bits for (task, _), t in content.items()]
