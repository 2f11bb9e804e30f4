"""Trident's settings, an attempt of a transaction, the works of a task, and its store.

The strategy `trident` has the settings; `trident.py` has all else at work, and is the only user. What an
attempt knows, and what a store does with a batch, is changed here; who does what when is changed there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import NOTHING
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, go_back
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.registry import Part
from tideover.sim.train import Ints, Train, distinct, join, merge
from tideover.sim.units import MS, Duration, S

Kind = Literal["non_transactional", "transactional", "opaque"]


class TridentSettings(Part):
    """First the two that decide what is exact; then the steps of a batch, in their order."""

    spout: Annotated[
        Kind,
        Field(
            description="what is read again when a batch has failed: transactional: the same; opaque: "
            "what is there, each tuple in one committed batch; non_transactional: what is there, nothing is "
            "written down of what was read"
        ),
    ] = "opaque"
    state: Annotated[
        Kind,
        Field(
            description="what is stored: non_transactional: the value; transactional: the transaction's "
            "number too; opaque: this, and the value before it"
        ),
    ] = "opaque"
    failed_batches: Annotated[
        Literal["emitted_again", "lost"],
        Field(description="what a non_transactional spout does with the tuples of a batch that failed"),
    ] = "emitted_again"
    batch_interval: Annotated[
        Duration,
        Field(ge=MS, description="least distance of two batches (topology.trident.batch.emit.interval)"),
    ] = 500 * MS
    max_spout_pending: Annotated[
        int,
        Field(ge=1, le=10_000, description="batches that are under way at once (topology.max.spout.pending)"),
    ] = 1
    message_timeout: Annotated[
        Duration, Field(ge=MS, description="a batch that is not done fails after one to two of these")
    ] = 30 * S
    metadata_time: Annotated[
        Duration,
        Field(
            description="time to write down what a transaction reads: a transactional spout before it "
            "emits, an opaque one while it commits"
        ),
    ] = 0
    task_time: Annotated[
        Duration, Field(description="time of a task for each batch, besides its tuples' service")
    ] = 0
    state_time: Annotated[Duration, Field(description="time of a task to update its store")] = 0
    state_cost: Annotated[Duration, Field(description="the same, for each key that the batch has")] = 0
    commit_time: Annotated[
        Duration,
        Field(description="from the last update until the coordinator has marked the batch as committed"),
    ] = 0

    def cycle(self) -> tuple[int, int] | None:
        return self.batch_interval, self.batch_interval


Partition = tuple[BoltTask, SpoutTask]
"""By who reads it, and whose tuples are in it; it is away while the spout is down."""
Content = dict[Partition, Train]
"""What is read, by partition, in their physical order."""


@dataclass(eq=False)
class Attempt:
    """What an attempt reads, and how far it has come; instants in ns.

    reads       whether the tasks that read spouts have their parts
    handed_to   what bolts have handed on, by the task that has it
    passed      tasks that have handed on their part, or (ends) stored it
    lost        tasks at which a fault took the part: it will never be done
    broken_by   number of the first outage that did so
    processed   all tasks have worked that do so before the commit
    commits_at  when its commit began
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

    def part(self, task: BoltTask) -> Train | None:
        """All that a task has of it, what it reads in the log first; None: nothing."""
        read = [train for (reader, _), train in self.content.items() if reader is task]
        trains = [*([merge(read)] if read else []), *self.handed_to.get(task, [])]
        return join(trains) if trains else None

    def breaks(self, task: BoltTask, outage: int) -> None:
        self.lost.add(task)
        if self.broken_by is None:
            self.broken_by = outage

    @property
    def timed_since(self) -> int | None:
        """Since when its timeout runs (ns); None: nobody waits for anything that could fail."""
        if self.commits_at is not None:
            return None if self.updated else self.commits_at
        return None if self.processed else self.began_at


def roots_of(content: Content) -> Ints:
    """The roots of what is read in the log, rising."""
    roots = [without_markers(t).uid >> task.component.bits for (task, _), t in content.items()]
    return distinct(np.concatenate([NOTHING, *roots]))


class Work(NamedTuple):
    """What a task has to do for an attempt; ``done`` is called when it has taken ``duration`` (ns)."""

    attempt: Attempt
    duration: int
    done: Callable[[], None]


class Executor:
    """Does the works of a task, in the order in which they come.

    own        number of the outage of the task alone by which it is down; None: none
    worker_up  whether the process lives that it is in
    fault      number of the newest outage that has struck it
    began_at   when the present work, the first of all, began (ns); None: it has none
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._kernel, self._links = job.kernel, job.supervisor.links
        self.task = task
        self._readers = {c.down.host for outlet in task.outlets for to in outlet.channels for c in to}
        self.own: int | None = None
        self.worker_up, self.fault = True, -1
        self.began_at: int | None = None
        self._works: deque[Work] = deque()
        self._ends_at = self._number = self._stopped_until = 0

    @property
    def down(self) -> bool:
        return self.own is not None or not self.worker_up

    def add(self, work: Work) -> None:
        self._works.append(work)
        self._go_on()

    def _go_on(self) -> None:
        if self.began_at is None and self._works:
            self.began_at = self._kernel.now
            self._end_at(max(self._kernel.now, self._stopped_until) + self._works[0].duration)

    def _end_at(self, when: int) -> None:
        self._number += 1
        self._ends_at, number = when, self._number

        def ended() -> None:
            if number != self._number:
                return
            parted = [self._links.parted_until(self.task.host, host) for host in self._readers]
            if max(parted, default=0) > self._kernel.now:  # a partition cuts it off from one that reads it
                self._end_at(max(parted))
                return
            work = self._works.popleft()
            self._stop()
            work.done()
            self._go_on()

        self._kernel.at(when, Rank.BATCH, ended, self.task.number)

    def _stop(self) -> None:
        """What is being done, if anything, is over, or given up."""
        if self.began_at is not None:
            self.task.busy.count(self._kernel.now - self.began_at)
            self.began_at = None
            self._number += 1

    def give_up(self, attempts: Collection[Attempt]) -> None:
        """Nobody wants the works of these attempts any more."""
        if self._works and self._works[0].attempt in attempts:
            self._stop()
        self._works = deque(work for work in self._works if work.attempt not in attempts)
        self._go_on()

    def crash(self) -> None:
        """All works are gone, and what has stopped it is over."""
        self._stop()
        self._works.clear()
        self._stopped_until = 0

    def stop_until(self, until: int) -> None:
        """It does nothing until then."""
        shift = until - max(self._kernel.now, self._stopped_until)
        if self.down or shift <= 0:
            return
        self._stopped_until = until
        if self.began_at is not None:
            self._end_at(self._ends_at + shift)


class Store:
    """The store of a task. It adds what comes (`non_transactional`); or knows the newest transaction, and
    skips it when it comes again (`transactional`); or knows, too, what was before that, and goes back to it
    (`opaque`). Apache Storm, docs/Trident-state.md; ``NonTransactionalMap``, ``TransactionalMap``,
    ``OpaqueMap``. There each key has its transaction; here all keys of a task have the same.

    handed_on   what the newest transaction has put out for other tasks
    before      the state that may come back; None: none will
    """

    def __init__(self, kind: Kind, job: Job, task: BoltTask) -> None:
        self._kind, self._job, self._task = kind, job, task
        self.handed_on: list[tuple[BoltTask, Train]] = []
        self.before: SavedState | None = None
        self._txid = 0
        self._put_out: Ints | None = None
        """Uids of the tuples that the newest transaction had, at an end without state."""

    def takes(self, txid: int, part: Train | None) -> bool:
        """Whether the part of a transaction is to be added now; what has to be undone before it is."""
        job, task = self._job, self._task
        again, self._txid = txid == self._txid, txid
        if again and self._kind == "transactional":
            return False
        if self._kind == "opaque":
            if again:
                assert self.before is not None
                go_back(job, task, self.before)
                if self._put_out is not None:
                    job.say.void(task.component, self._put_out, 0)
            else:
                self.before = SavedState.of(task)
            if task.state is None and task.component.anchored:
                self._put_out = None if part is None else without_markers(part).uid
        self.handed_on = []
        return True
