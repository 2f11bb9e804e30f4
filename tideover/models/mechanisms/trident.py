"""Trident: batches with transaction ids; the coordinator, the log that it reads, and the tasks at work.

The strategy `trident` has the settings, and the rules in its docstring, and makes a `Coordinator`, which does
all; what a store does with a batch is changed in `Store`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import AFTER_TASKS, Mechanism, Process, workers_of
from tideover.models.mechanisms.batch_log import Log, effects_of_read, median_distance
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import NOTHING, CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, go_back
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, OutageView, Runner
from tideover.sim.kernel import Rank
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
    lost        tasks at which a fault took the part, the first of all ``broken_by``
    processed   all tasks have worked that do so before the commit
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


Work = tuple[Attempt, int, Callable[[], None]]
"""What a task has to do for an attempt, how long that takes (ns), and what is called then."""


class Executor:
    """Does the works of a task, in the order in which they come.

    own        the outage of the task alone by which it is down
    worker_up  whether the process lives that it is in
    fault      the newest outage that has struck it
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

    def add(self, attempt: Attempt, duration: int, done: Callable[[], None]) -> None:
        self._works.append((attempt, duration, done))
        self._go_on()

    def _go_on(self) -> None:
        if self.began_at is None and self._works:
            self.began_at = self._kernel.now
            self._end_at(max(self._kernel.now, self._stopped_until) + self._works[0][1])

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
            _, _, done = self._works.popleft()
            self._stop()
            done()
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
        if self._works and self._works[0][0] in attempts:
            self._stop()
        self._works = deque(work for work in self._works if work[0] not in attempts)
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


COORDINATOR = "coordinator"
COLUMNS = ("uid", "created", "value", "key", "attempt", "epoch", "mark")


class Coordinator(Mechanism, CopyHolder, Runner):
    """Numbers batches, and lets them commit in this order (Storm's ``MasterBatchCoordinator``). What it has
    marked as committed outlives it; which attempts are under way does not.

    All bolt tasks are closed: what comes to them is held until it is taken, for the log or for an attempt. A
    task is open while a part passes it.

    What an attempt reads is that of Apache Storm, docs/Trident-spouts.md: transactional:
    ``PartitionedTridentSpoutExecutor``, opaque: ``OpaquePartitionedTridentSpoutExecutor``, without promises:
    ``RichSpoutBatchExecutor``, where nothing is written down.
    """

    needs = Needs(log=True, batches=True, readers_go_back=True, comparison=True)

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job)
        self._settings = settings
        self._promises = settings.spout != "non_transactional"
        """Whether what an attempt has read comes again, if it is given up when spouts have been told."""
        self._plans = Plans(job.kernel, AFTER_TASKS + 1)
        """What the coordinator is about to do, unless it dies before."""
        self._lives = True
        self._current = 1
        """The first transaction that is not committed."""
        self._under_way: dict[int, Attempt] = {}
        self._updates: list[int] = []
        """When all stores had what transactions had brought, in their order."""
        self._log: Log[Partition, Train] = Log(lambda at: (at[0].number, at[1].number), join)
        self._contents: dict[int, Content] = {}
        """What a transactional spout has written down, by number of the transaction."""
        self._again: dict[int, Ints] = {}
        """Roots that are read again, by the number of the outage that is why (-1: none is)."""
        self._passing: tuple[Attempt, BoltTask] | None = None
        """Whose part passes now, and where."""

        tasks = job.bolt_tasks
        ends = [t for t in tasks if t.state is not None or not t.component.outputs]
        self._stores = {task: Store(settings.state, job, task) for task in ends}
        self._readers = [t for t in tasks if any(isinstance(c.up, SpoutTask) for c in t.inputs)]
        self._executors = {task: Executor(job, task) for task in tasks}
        self._reads = {
            task: list(dict.fromkeys(c.up for c in task.inputs if isinstance(c.up, BoltTask)))
            for task in tasks
        }
        """The bolt tasks that each one reads."""
        self._read_by = {task: [down for down in tasks if task in self._reads[down]] for task in tasks}
        self._early: set[BoltTask] = set()
        """Tasks that work before the commit: no state is upstream of them."""
        for task in tasks:
            task.gate.closed = True
            if all(up in self._early and up.state is None for up in self._reads[task]):
                self._early.add(task)
        self._epochs: dict[BoltTask, list[tuple[Attempt, dict[int, int]]]] = {t: [] for t in tasks}
        """Which end markers had come at a task without state before attempts that are under way passed it."""

        places = workers_of(job)
        inside = {place: [t for t in places if places[t] == place] for place in sorted(set(places.values()))}
        self._machine = Process(COORDINATOR, None, 0, 0, lambda _: tasks, self._killed, self._restarted)
        machines = [
            Process("worker", *place, number, lambda p: inside[p.host, p.worker], self._dies, self._is_back)
            for number, place in enumerate(inside, 1)
        ]
        job.context.machines[:] = [self._machine, *job.context.machines, *machines]
        job.context.runner = self
        job.context.rhythm = lambda: median_distance(self._updates)

    def start(self) -> None:
        s, kernel, order = self._settings, self._job.kernel, AFTER_TASKS + 1
        kernel.every(s.message_timeout, s.message_timeout, Rank.ROTATION, self._look_for_late, order)
        kernel.every(s.batch_interval, s.batch_interval, Rank.BATCH, self._tick, order)

    def _step(self, what: str, attempt: Attempt, who: str = COORDINATOR) -> None:
        self._job.step(who, what, f"transaction {attempt.txid}")

    def _later(self, delay: int, attempt: Attempt, act: Callable[[Attempt], None]) -> None:
        """For an attempt, unless it is given up before."""

        def do() -> None:
            if self._under_way.get(attempt.txid) is attempt:
                act(attempt)

        self._plans.after(delay, Rank.BATCH, do)

    def _tick(self, _: int) -> None:
        """1. Each interval: an attempt of the next transaction."""
        if not self._lives or len(self._under_way) >= self._settings.max_spout_pending:
            return
        txid = max(self._under_way, default=self._current - 1) + 1
        self._gather(self._readers)
        if (known := self._contents.get(txid)) is None:
            content = self._log.take(lambda at: at[1].up)
        else:
            content = known if all(spout.up for _, spout in known) else {}
        if not content:
            return
        attempt = self._under_way[txid] = Attempt(txid, content, self._job.kernel.now)
        self._step("batch begun", attempt)
        if self._settings.spout == "transactional" and known is None:
            self._later(self._settings.metadata_time, attempt, self._begin)
        else:
            self._begin(attempt)

    def _gather(self, tasks: Iterable[BoltTask]) -> None:
        """Take what has come to these, by channel, in order of arrival."""
        for task in (t for t in tasks if t.c.held.n):
            rows = task.gate.take_away()
            for source in np.unique(rows["source"]).tolist():
                part, up = rows[rows["source"] == source], task.inputs[source].up
                train = self._job.plane.train(part, task.number)
                train = train.adding(**{CHANNEL: part["source"].astype(np.int64)})
                if isinstance(up, SpoutTask):
                    self._log.append((task, up), train)
                    continue
                assert self._passing is not None
                attempt, sender = self._passing
                attempt.handed_to.setdefault(task, []).append(train)
                if sender in self._stores:
                    self._stores[sender].handed_on.append((task, train))

    def _begin(self, attempt: Attempt) -> None:
        """2. Tasks that read spouts have their parts, written down if they always are the same; all work."""
        if self._settings.spout == "transactional" and attempt.txid not in self._contents:
            self._contents[attempt.txid] = attempt.content
            self._step("metadata written", attempt)
        attempt.reads = True
        for task in self._readers:
            self._comes_to(attempt, task)

    def _comes_to(self, attempt: Attempt, task: BoltTask) -> None:
        """Something of a task's part has come; perhaps all of it."""
        executor = self._executors[task]
        if executor.down:
            attempt.breaks(task, executor.fault)
        if task in attempt.lost or not all(up in attempt.passed for up in self._reads[task]):
            return
        part = attempt.part(task)
        service = 0 if part is None else task.queue.demand(part)
        executor.add(attempt, self._settings.task_time + service, partial(self._worked, attempt, task))

    def _worked(self, attempt: Attempt, task: BoltTask) -> None:
        attempt.worked.add(task)
        self._step("part worked off", attempt, task.name)
        if task not in self._stores:
            self._pass(attempt, task, attempt.part(task))
        elif attempt.commits_at is not None:
            self._update(attempt, task)
        if not attempt.processed and attempt.worked >= self._early:
            attempt.processed = True
            self._later(0, attempt, lambda _: self._commit_current())

    def _pass(self, attempt: Attempt, task: BoltTask, part: Train | None) -> None:
        """The part passes the task, which hands on what it makes of it."""
        if part is not None:
            if task not in self._stores:
                self._epochs[task].append((attempt, dict(task.windows.epochs)))
            self._passing = attempt, task
            rows = np.zeros(part.n, ROW)
            for name in COLUMNS:
                rows[name] = part.column(name)
            rows["source"] = part.column(CHANNEL)
            task.gate.closed = False
            task.gate.work_off(rows)
            self._job.kernel.advance()
            task.gate.closed = True
            self._gather(self._read_by[task])
            self._passing = None
            part = without_markers(part)
            again = self._comes_again(task, part, list(self._again.values()))
            if again is not None and task.component.anchored:
                self._job.say.replayed(task, part.pick(again), None)
        self._has_passed(attempt, task)

    def _has_passed(self, attempt: Attempt, task: BoltTask) -> None:
        attempt.passed.add(task)
        for down in self._read_by[task]:
            self._comes_to(attempt, down)
        self._look_whether_stored(attempt)

    def _look_whether_stored(self, attempt: Attempt) -> None:
        if attempt.logged and len(attempt.passed) == len(self._executors):
            self._later(0, attempt, self._succeed)

    def _commit_current(self) -> None:
        """3. When all have worked, and it is its turn, the stores are updated."""
        attempt = self._under_way.get(self._current)
        if attempt is None or not attempt.processed or attempt.commits_at is not None:
            return
        attempt.commits_at = self._job.kernel.now
        self._step("commit begun", attempt)
        for task in self._stores:
            if task in attempt.worked and task not in attempt.lost:
                self._update(attempt, task)
        if self._settings.spout == "opaque":
            self._later(self._settings.metadata_time, attempt, self._write_position)
        else:
            attempt.logged = True

    def _write_position(self, attempt: Attempt) -> None:
        attempt.logged = True
        self._step("metadata written", attempt)
        self._look_whether_stored(attempt)

    def _update(self, attempt: Attempt, task: BoltTask) -> None:
        s, part = self._settings, attempt.part(task)
        rows = 0
        if part is not None:  # what the store has to write: keys, or all that a task without state puts out
            data = without_markers(part)
            rows = data.n if task.state is None else len(np.unique(data.key))
        took = s.state_time + rows * s.state_cost
        self._executors[task].add(attempt, took, partial(self._updated, attempt, task))

    def _updated(self, attempt: Attempt, task: BoltTask) -> None:
        """The store has the part, or had it."""
        part, store = attempt.part(task), self._stores[task]
        if store.takes(attempt.txid, part):
            self._step("state updated", attempt, task.name)
            self._pass(attempt, task, part)
            return
        self._step("update skipped", attempt, task.name)
        if part is not None:
            self._job.say.unsent(task, without_markers(part))
            self._job.say.copies_lost(task, without_markers(part).uid)
        for down, train in store.handed_on:
            attempt.handed_to.setdefault(down, []).append(train)
        self._has_passed(attempt, task)

    def _succeed(self, attempt: Attempt) -> None:
        """4. All is stored: spouts are told; 5. the mark."""
        attempt.updated = True
        self._updates.append(self._job.kernel.now)
        self._step("spouts told", attempt)
        self._later(self._settings.commit_time, attempt, self._mark)

    def _mark(self, attempt: Attempt) -> None:
        self._step("batch committed", attempt)
        del self._under_way[attempt.txid]
        self._current += 1
        self._contents.pop(attempt.txid, None)
        self._forget(roots_of(attempt.content))
        for task, passed in self._epochs.items():
            self._epochs[task] = [entry for entry in passed if entry[0] is not attempt]
        self._commit_current()

    def _look_for_late(self, _: int) -> None:
        """Fail the first attempt that takes too long, and with it those that follow."""
        limit = self._job.kernel.now - self._settings.message_timeout
        for txid in sorted(self._under_way) if self._lives else ():
            since = self._under_way[txid].timed_since
            if since is not None and since <= limit:
                failed = [self._under_way[other] for other in sorted(self._under_way) if other >= txid]
                self._step("batch failed", failed[0])
                first = failed[0].broken_by
                broken = (first if attempt.broken_by is None else attempt.broken_by for attempt in failed)
                causes = [-1 if outage is None else outage for outage in broken]
                for attempt, cause in zip(failed, causes, strict=True):
                    for spout in self._job.spouts:
                        mine = {place: t for place, t in attempt.content.items() if place[1] is spout}
                        roots = roots_of(mine)
                        if len(roots):
                            because = np.full(len(roots), cause, np.int64)
                            self._job.say.timed_out(spout, roots, np.zeros_like(roots), because)
                self._give_up(failed, causes)
                return

    def _give_up(self, attempts: list[Attempt], causes: list[int]) -> None:
        """None of these attempts (the last ones that are under way) goes on, because of these outages."""
        for executor in self._executors.values():
            executor.give_up(attempts)
        for task, passed in self._epochs.items():
            first = next((i for i, (attempt, _) in enumerate(passed) if attempt in attempts), None)
            if first is not None:
                task.windows.epochs = dict(passed[first][1])
                self._epochs[task] = [entry for entry in passed if entry[0] not in attempts]
        for attempt, cause in reversed(list(zip(attempts, causes, strict=True))):
            del self._under_way[attempt.txid]
            if self._promises or not attempt.updated:
                self._put_back(attempt, cause)

    def _put_back(self, attempt: Attempt, cause: int) -> None:
        """What an attempt has read comes again, or is lost; what it had made of it is gone."""
        say = self._job.say
        for (task, _), train in attempt.content.items():
            if task in attempt.passed:
                say.reopened(task, without_markers(train))
        for task, trains in attempt.handed_to.items():
            for train in trains if task not in attempt.passed else ():
                say.unsent(task, without_markers(train))
        if not self._promises and self._settings.failed_batches == "lost":
            for (task, _), train in attempt.content.items():
                gone = without_markers(train).at(self._job.kernel.now)
                say.destroyed(task, gone, gone.time, cause)
            return
        if attempt.txid not in self._contents:  # else it is written down that it is read again
            self._log.put_back(attempt.content)
        roots = roots_of(attempt.content)
        self._forget(roots)
        if len(roots):  # else it had read nothing but end markers
            self._again[cause] = np.union1d(self._again.get(cause, NOTHING), roots)

    def _forget(self, roots: Ints) -> None:
        """These are read again no more."""
        kept = {cause: np.setdiff1d(again, roots) for cause, again in self._again.items()}
        self._again = {cause: again for cause, again in kept.items() if len(again)}

    def _killed(self, _: Process, outage: OutageView) -> None:
        self._lives = False
        self._plans.void()
        attempts = [attempt for _, attempt in sorted(self._under_way.items())]
        self._give_up(attempts, [outage.number] * len(attempts))

    def _restarted(self, _: Process, outage: OutageView) -> None:
        self._lives = True
        self._job.supervisor.back(self._machine)

    def _crash(self, task: BoltTask, outage: OutageView) -> None:
        executor = self._executors[task]
        executor.fault = outage.number
        executor.crash()
        for attempt in self._under_way.values():
            reads = attempt.reads and task in self._readers
            if task not in attempt.passed and (reads or not attempt.passed.isdisjoint(self._reads[task])):
                attempt.breaks(task, outage.number)

    def _dies(self, worker: Process, outage: OutageView) -> None:
        for task in map(self._bolt, worker.tasks()):
            self._executors[task].worker_up = False
            self._crash(task, outage)

    def _is_back(self, worker: Process, outage: OutageView) -> None:
        for task in map(self._bolt, worker.tasks()):
            self._executors[task].worker_up = True
        self._job.supervisor.back(worker)

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        executor = self._executors[task]
        at_once = outage.kind == "lose_state" and outage.ready_at == outage.failed_at
        if not at_once or executor.own is not None:
            executor.own = outage.number
            self._crash(task, outage)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        if self._executors[task].own == outage.number:
            self._executors[task].own = None

    def paused(self, task: BoltView, outage: OutageView) -> None:
        self._executors[self._bolt(task)].stop_until(outage.ready_at)

    def busy_since(self, task: BoltView) -> int | None:
        return self._executors[self._bolt(task)].began_at

    def _comes_again(self, task: BoltView, train: Train, again: list[Ints]) -> Mask | None:
        if not again:
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, np.concatenate(again))
        return mask if mask.any() else None

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return self._comes_again(task, train, [self._again[outage]] if outage in self._again else [])

    def settled(self, outage: OutageView) -> bool:
        number = outage.number
        broken = any(attempt.broken_by == number for attempt in self._under_way.values())
        return number not in self._again and not broken

    def _logged(self) -> list[Content]:
        """What is written down of transactions that are not under way."""
        return [content for txid, content in self._contents.items() if txid not in self._under_way]

    def moved(self, now: int) -> None:
        if self._passing is not None:
            return  # what is held may be no part of the log
        waits = sum(int(task.c.held.n) for task in self._readers)
        read = [*self._logged(), *(attempt.content for attempt in self._under_way.values())]
        self._job.say.kept(self._log.size + waits + sum(t.n for content in read for t in content.values()))

    def effects(self) -> list[tuple[Component, Ints]]:
        under_way = [a.content for a in self._under_way.values() if self._promises or not a.updated]
        kept = [self._log.content(), *self._logged(), *under_way]
        read = [(task, train) for content in kept for (task, _), train in content.items()]
        found = [(task.component, without_markers(train).uid) for task, train in read]
        by_name = self._job.topology.by_name
        found += [(by_name[name], uid) for name, uid in effects_of_read(self._job, read).items()]
        for task, store in self._stores.items():
            if store.before is not None:  # may come back, though its window is out by now
                found.append((task.component, store.before.effects()))
        return found
