"""What a Trident topology reads, keeps and reads again; what its spouts and stores make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.batch_log import effects_of_read
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import NOTHING, CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, go_back
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.plane.plane import CHANNEL, ROW
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
        Duration,
        Field(ge=MS, description="a batch that is not done fails after one to two of these"),
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
"""By who reads it, and whose tuples are in it."""
Content = dict[Partition, Train]
"""What is read, by partition, in their physical order."""


class Partitions:
    """What has arrived, and no attempt that is under way has read."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, list[Train]] = {}
        self.size = 0
        """Rows that wait."""

    def append(self, partition: Partition, train: Train) -> None:
        self._waiting.setdefault(partition, []).append(train)
        self.size += train.n

    def content(self) -> Content:
        places = sorted(self._waiting, key=lambda place: (place[0].number, place[1].number))
        return {place: join(self._waiting[place]) for place in places}

    def take(self) -> Content:
        taken = {place: train for place, train in self.content().items() if not is_away(place)}
        for place, train in taken.items():
            del self._waiting[place]
            self.size -= train.n
        return taken

    def put_back(self, content: Content) -> None:
        """These wait again, ahead of what has come since."""
        for place, train in content.items():
            self._waiting.setdefault(place, []).insert(0, train)
            self.size += train.n


def is_away(partition: Partition) -> bool:
    """Whether nothing can be read there: what keeps it is down."""
    return not partition[1].up


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


COLUMNS = ("uid", "created", "value", "key", "attempt", "epoch", "mark")


def work_off(job: Job, task: BoltTask, part: Train) -> None:
    """Let a task work off a part now: what it makes of it is held where it is read."""
    rows = np.zeros(part.n, ROW)
    for name in COLUMNS:
        rows[name] = part.column(name)
    rows["source"] = part.column(CHANNEL)
    task.gate.closed = False
    task.gate.work_off(rows)
    job.kernel.advance()
    task.gate.closed = True


class Reading(Mechanism, CopyHolder):
    """The log, the attempts that have read in it, and what of it is read again. All bolt tasks are closed:
    what comes is held, until it is taken. A task is open while a part passes it.
    """

    needs = Needs(log=True, batches=True, readers_go_back=True, comparison=True)

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job)
        self._settings = settings
        self._source = SOURCES[settings.spout](settings)
        self._under_way: dict[int, Attempt] = {}
        """By number of the transaction."""
        ends = [t for t in job.bolt_tasks if t.state is not None or not t.component.outputs]
        self._stores = {task: STORES[settings.state](job, task) for task in ends}
        self._readers = [t for t in job.bolt_tasks if any(isinstance(c.up, SpoutTask) for c in t.inputs)]
        """Tasks that read spouts."""
        self._passing: tuple[Attempt, BoltTask] | None = None
        """Whose part passes now, and where."""
        self._again: dict[int, Ints] = {}
        """Roots that are read again, by the number of the outage that is why (-1: none is)."""
        for task in job.bolt_tasks:
            task.gate.closed = True

    # -- what comes ------------------------------------------------------------------------------------------

    def _gather(self, tasks: Iterable[BoltTask]) -> None:
        """Take what has come to these, by channel, in order of arrival."""
        for task in tasks:
            rows = task.gate.take_away() if task.c.held.n else np.zeros(0, ROW)
            for source in np.unique(rows["source"]).tolist():
                part = rows[rows["source"] == source]
                train = self._job.plane.train(part, task.number)
                train = train.adding(**{CHANNEL: part["source"].astype(np.int64)})
                self._has_come(task, task.inputs[source].up, train)

    def _has_come(self, task: BoltTask, up: SpoutTask | BoltTask, train: Train) -> None:
        if isinstance(up, SpoutTask):
            self._source.waiting.append((task, up), train)
            return
        assert self._passing is not None
        attempt, sender = self._passing
        attempt.handed_to.setdefault(task, []).append(train)
        if sender in self._stores:
            self._stores[sender].handed_on.append((task, train))

    # -- what is given up ------------------------------------------------------------------------------------

    def _put_back(self, attempt: Attempt, cause: int) -> None:
        """What an attempt has read comes again, or is lost; what it had made of it is gone."""
        if not self._source.comes_again(attempt):
            return
        for (task, _), train in attempt.content.items():
            if task in attempt.passed:
                self._job.say.reopened(task, without_markers(train))
        for task, trains in attempt.handed_to.items():
            for train in trains if task not in attempt.passed else ():
                self._job.say.unsent(task, without_markers(train))
        lost = self._source.give_up(attempt)
        for (task, _), train in lost.items():
            gone = without_markers(train).at(self._job.kernel.now)
            self._job.say.destroyed(task, gone, gone.time, cause)
        if not lost:
            roots = roots_of(attempt.content)
            self._forget(roots)
            if len(roots):  # else it had read nothing but end markers
                self._again[cause] = np.union1d(self._again.get(cause, NOTHING), roots)

    def _forget(self, roots: Ints) -> None:
        """These are read again no more."""
        kept = {cause: np.setdiff1d(again, roots) for cause, again in self._again.items()}
        self._again = {cause: again for cause, again in kept.items() if len(again)}

    def _done_with(self, attempt: Attempt) -> None:
        """Its transaction is committed."""
        self._source.committed(attempt.txid)
        self._forget(roots_of(attempt.content))

    def _tell_of_timeouts(self, attempts: Iterable[tuple[Attempt, int]]) -> None:
        """What these attempts have read has timed out, each because of an outage (-1: none)."""
        for attempt, cause in attempts:
            for spout in self._job.spouts:
                roots = roots_of({place: t for place, t in attempt.content.items() if place[1] is spout})
                if len(roots):
                    because = np.full(len(roots), cause, np.int64)
                    self._job.say.timed_out(spout, roots, np.zeros_like(roots), because)

    # -- what is worked off again ----------------------------------------------------------------------------

    def _comes_again(self, task: BoltView, train: Train, again: list[Ints]) -> Mask | None:
        if not again:
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, np.concatenate(again))
        return mask if mask.any() else None

    def _tell_again(self, task: BoltTask, train: Train) -> None:
        train = without_markers(train)
        again = self._comes_again(task, train, list(self._again.values()))
        if again is not None and task.component.anchored:
            self._job.say.replayed(task, train.pick(again), None)

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return self._comes_again(task, train, [self._again[outage]] if outage in self._again else [])

    def settled(self, outage: OutageView) -> bool:
        number = outage.number
        broken = any(attempt.broken_by == number for attempt in self._under_way.values())
        return number not in self._again and not broken

    # -- what is kept ----------------------------------------------------------------------------------------

    def _kept(self) -> Iterator[Content]:
        """What may be read again, or for the first time."""
        yield self._source.waiting.content()
        yield from self._source.logged
        for attempt in self._under_way.values():
            if self._source.comes_again(attempt):
                yield attempt.content

    def moved(self, now: int) -> None:
        if self._passing is not None:
            return  # what is held may be no part of the log
        waits = sum(int(task.c.held.n) for task in self._readers)
        read = sum(train.n for a in self._under_way.values() for train in a.content.values())
        self._job.say.kept(self._source.size + read + waits)

    def effects(self) -> list[tuple[Component, Ints]]:
        read = [(task, train) for content in self._kept() for (task, _), train in content.items()]
        found = [(task.component, without_markers(train).uid) for task, train in read]
        by_name = self._job.topology.by_name
        found += [(by_name[name], uid) for name, uid in effects_of_read(self._job, read).items()]
        for task, store in self._stores.items():
            if store.before is not None:  # may come back, though its window is out by now
                found.append((task.component, store.before.effects()))
        return found


class Source:
    """What each attempt of a transaction reads: a spout without promises (``RichSpoutBatchExecutor``:
    nothing is written down; tuples are acknowledged, or failed, batch by batch). Apache Storm,
    docs/Trident-spouts.md.

    writes_last  whether it writes down how far it has read when a transaction commits
    """

    writes_last = False

    def __init__(self, settings: TridentSettings) -> None:
        self.waiting = Partitions()
        self._loses = settings.failed_batches == "lost"

    def read(self, txid: int) -> Content:
        """What an attempt of this transaction reads; nothing: it does not begin."""
        return self.waiting.take()

    def writes_first(self, txid: int) -> bool:
        """Whether a transaction's content is to be written down before it is emitted."""
        return False

    def written(self, attempt: Attempt) -> None:
        """What a transaction reads is written down."""

    def comes_again(self, attempt: Attempt) -> bool:
        """Whether what an attempt has read does, if it is given up."""
        return not attempt.updated

    def give_up(self, attempt: Attempt) -> Content:
        """An attempt, of which all comes again, is given up; returns what is lost all the same."""
        if self._loses:
            return attempt.content
        self.waiting.put_back(attempt.content)
        return {}

    def committed(self, txid: int) -> None:
        """A transaction will not be read again."""

    @property
    def logged(self) -> list[Content]:
        """Contents of transactions that are not under way."""
        return []

    @property
    def size(self) -> int:
        """Rows that are kept, and are in no attempt that is under way."""
        return self.waiting.size + sum(t.n for content in self.logged for t in content.values())


class OpaqueSource(Source):
    """Each tuple is in one committed batch, not always the one in which it was first
    (``OpaquePartitionedTridentSpoutExecutor``: how far it has read is written down when it commits).
    """

    writes_last = True

    def comes_again(self, attempt: Attempt) -> bool:
        return True

    def give_up(self, attempt: Attempt) -> Content:
        self.waiting.put_back(attempt.content)
        return {}


class TransactionalSource(OpaqueSource):
    """A transaction always has the same content (``PartitionedTridentSpoutExecutor``: it is written down
    before it is emitted).
    """

    writes_last = False

    def __init__(self, settings: TridentSettings) -> None:
        super().__init__(settings)
        self._contents: dict[int, Content] = {}
        self._under_way: set[int] = set()

    def read(self, txid: int) -> Content:
        if txid not in self._contents:
            return super().read(txid)
        content = self._contents[txid]
        if any(is_away(partition) for partition in content):
            return {}
        self._under_way.add(txid)
        return content

    def writes_first(self, txid: int) -> bool:
        return txid not in self._contents

    def written(self, attempt: Attempt) -> None:
        self._contents[attempt.txid] = attempt.content
        self._under_way.add(attempt.txid)

    def give_up(self, attempt: Attempt) -> Content:
        if attempt.txid not in self._contents:
            return super().give_up(attempt)
        self._under_way.discard(attempt.txid)
        return {}

    def committed(self, txid: int) -> None:
        del self._contents[txid]
        self._under_way.discard(txid)

    @property
    def logged(self) -> list[Content]:
        return [content for txid, content in self._contents.items() if txid not in self._under_way]


SOURCES: dict[str, type[Source]] = {
    "non_transactional": Source,
    "transactional": TransactionalSource,
    "opaque": OpaqueSource,
}


class Stored:
    """The store of a task: it adds what comes. Apache Storm, docs/Trident-state.md;
    ``NonTransactionalMap``, ``TransactionalMap``, ``OpaqueMap``. There each key has its transaction; here all
    keys of a task have the same.

    handed_on   what the newest transaction has put out for other tasks
    before      the state that may come back; None: none will
    """

    before: SavedState | None = None

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._job, self._task = job, task
        self.handed_on: list[tuple[BoltTask, Train]] = []

    def takes(self, txid: int, part: Train | None) -> bool:
        """Whether the part of a transaction is to be added now; what has to be undone before it is."""
        self.handed_on = []
        return True


class TransactionalStore(Stored):
    """It knows the newest transaction, and skips it when it comes again."""

    txid = 0

    def takes(self, txid: int, part: Train | None) -> bool:
        if txid == self.txid:
            return False
        self.txid = txid
        return super().takes(txid, part)


class OpaqueStore(Stored):
    """It knows the newest transaction, and what was before it, to which it goes back if that comes again."""

    txid = 0

    _put_out: Ints | None = None
    """Uids of the tuples that the newest transaction had, at an end without state."""

    def takes(self, txid: int, part: Train | None) -> bool:
        task, job = self._task, self._job
        if txid != self.txid:
            self.txid, self.before = txid, SavedState.of(task)
        else:
            assert self.before is not None
            go_back(job, task, self.before)
            if self._put_out is not None:
                job.say.void(task.component, self._put_out, 0)
        if task.state is None and task.component.anchored:
            self._put_out = None if part is None else without_markers(part).uid
        return super().takes(txid, part)


STORES: dict[str, type[Stored]] = {
    "non_transactional": Stored,
    "transactional": TransactionalStore,
    "opaque": OpaqueStore,
}
