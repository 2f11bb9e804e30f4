"""Changelogs (`changelog`): every task writes what changes in its state to a log, commits, and comes back
from it.

That strategy alone makes `Changelogs`, and has the rules in its docstring. What the topic, standbys and disks
have of a task is changed in `Changelog`, what a transaction has put out in `Outputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism, sent_again
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import CopyHolder, Mask, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, TaskLog, read
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, Grouped, OutageView, Saver, Stop, TaskView
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.registry import Part
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS, Duration, S, Size, format_duration

COMMITS = {"at_least_once": 30 * S, "exactly_once": 100 * MS}


class ChangelogSettings(Part):
    """How often tasks commit, who has copies of their state, and what it takes to bring it back."""

    guarantee: Annotated[
        Literal["at_least_once", "exactly_once"],
        Field(description="exactly_once: changes, offsets and outputs are committed in one transaction"),
    ] = "at_least_once"
    commit_interval: Annotated[
        Duration | None,
        Field(ge=MS, description="distance of two commits; 30 s if not given, exactly once 100 ms"),
    ] = None
    commit_time: Annotated[
        Duration,
        Field(description="from when the changes are written until the offsets are committed; it waits"),
    ] = 0
    transaction_timeout: Annotated[
        Duration,
        Field(
            description="exactly once: age at which the broker aborts a transaction that is open; until then "
            "it holds up readers. 0: that of a task that has failed is aborted at once"
        ),
    ] = 10 * S
    abort_interval: Annotated[
        Duration, Field(gt=0, description="distance of two looks of the broker for such transactions")
    ] = 10 * S
    batch_interval: Annotated[
        Duration | None,
        Field(ge=MS, description="distance of batches of changes between commits; none if not given"),
    ] = None
    entry_size: Annotated[Size, Field(description="bytes of an entry of the bolt's own in the changelog")] = (
        64
    )
    restore_time: Annotated[Duration, Field(description="time to restore a changelog that was read")] = 0
    restore_cost: Annotated[Duration, Field(description="the same, for each entry that is read")] = 0
    standby_replicas: Annotated[
        int, Field(ge=0, le=100, description="copies of a task's state that follow its changelog elsewhere")
    ] = 0
    segment_size: Annotated[
        Size, Field(description="bytes of a changelog's newest segment, which nobody compacts (Kafka: 1 GiB)")
    ] = 0
    local_state: Annotated[
        bool,
        Field(
            description="a process that comes back on its host finds there what it had committed; exactly "
            "once only if it was closed, as before a planned stop"
        ),
    ] = False
    store: Annotated[
        str | None,
        Field(description="the one of `stores` that has the changelogs; the key `store` if not given"),
    ] = None

    @model_validator(mode="after")
    def _goes_with_the_guarantee(self) -> Self:
        if self.batch_interval is not None and self.guarantee == "exactly_once":
            raise ValueError("batch_interval has no meaning with exactly_once: changes count when committed")
        timeout = self.transaction_timeout
        if self.guarantee == "exactly_once" and 0 < timeout < self.commits:
            raise ValueError(
                f"transaction_timeout ({format_duration(timeout)}) must not be shorter than the distance of "
                f"two commits ({format_duration(self.commits)}): every transaction would be aborted"
            )
        return self

    @property
    def commits(self) -> int:
        """Distance of two commits (ns)."""
        return COMMITS[self.guarantee] if self.commit_interval is None else self.commit_interval


class Batch(NamedTuple):
    """Changes that go into the changelog together, in their order; ``state``: as of here; ``size``: bytes."""

    number: int
    state: SavedState
    entries: int
    size: int


@dataclass(eq=False)
class _Standby:
    """Follows the changelog, one entry after the other.

    caught_up  when it has all entries that are there by now (ns); None: it reads what was there before it
    behind     entries that have come since it began to read
    host       where it warms the task up; None: it is a standby, which no fault hits
    """

    caught_up: int | None = 0
    behind: int = 0
    host: int | None = None


_SPARED = frozenset(
    {"crash_task", "crash_worker", "false_detection", "reassigned", "planned_restart", "fenced"}
)
"""Failures of processes: their directories are there still."""

_ABORTED = frozenset({"lose_state", "fenced"})
"""Failures after which no transaction is open: who lives aborts it, or the broker has."""


class Changelog:
    """What the topic has of one task, compacted; and copies of that: standbys that follow it elsewhere, and
    what the task had committed on the disk of its host.

    The entries of a bolt's ``state`` are there from the start. What changes of them is what so many tuples
    change in the mean; of the bolt's own entries each tuple changes one. What is in the newest segment is
    there as often as it was written.

    Kafka Streams: KIP-441, `StoreChangelogReader`, `ProcessorStateManager`; `LogCleanerManager`. Samza:
    `StandbyTask`, and host affinity (Noghabi et al., PVLDB 2017, section 4.2).
    """

    def __init__(self, job: Job, task: BoltTask, settings: ChangelogSettings) -> None:
        self._job, self._task, self._settings = job, task, settings
        self.state = SavedState.at_the_beginning(task)
        self._since = 0
        """Tuples that the task had worked on when the newest batch was taken."""
        self._taken = self._newest = 0
        """Numbers of the newest batch that was taken, and of the newest that is there."""
        standbys = settings.standby_replicas if task.component.keeps_state else 0
        self._standbys = [_Standby() for _ in range(standbys)]
        self._host, self._disk = task.host, settings.local_state
        """Whether its directory is there."""
        self._clean, self._open = True, True
        """Whether what is in it may be used, and whether a process works there."""
        self._tail: list[Batch] = []
        """What is in the changelog, and not on the disk."""
        self._entries, self._size = self._compacted()
        """What whoever restores the task reads: so many entries, of so many bytes."""
        self._segment = 0
        """Bytes of the newest segment."""

    @property
    def behind(self) -> bool:
        """Whether the task has worked on anything since the newest batch was taken."""
        return self._task.worked > self._since

    def take(self) -> Batch:
        """The changes up to now, on their way into the topic."""
        worked = self._task.worked - self._since
        self._since = self._task.worked
        self._taken += 1
        state = SavedState.of(self._task)
        own, backend = min(worked, state.entries), self._task.component.backend
        more = 0 if backend is None else backend.changed(worked)
        size = own * self._settings.entry_size + (more * backend.entry_size if backend else 0)
        return Batch(self._taken, state, own + more, size)

    def add(self, batch: Batch) -> None:
        """A batch of changes is in the changelog."""
        now, cost = self._job.kernel.now, self._settings.restore_cost
        if batch.number > self._newest:
            self._newest, self.state = batch.number, batch.state
        self._entries += batch.entries
        self._size += batch.size
        self._segment += batch.size
        if self._segment >= self._settings.segment_size:
            (self._entries, self._size), self._segment = self._compacted(), 0
        self._tail.append(batch)
        for standby in self._standbys:
            self._job.say.transferred(batch.size)
            if standby.caught_up is None:
                standby.behind += batch.entries
            else:
                standby.caught_up = max(now, standby.caught_up) + batch.entries * cost

    def commit(self, number: int) -> None:
        """The task has committed: its disk has what went into the changelog up to this batch."""
        self._tail = [batch for batch in self._tail if batch.number > number]

    def failed(self, outage: OutageView) -> None:
        self._disk &= outage.kind in _SPARED
        self._clean &= self._settings.guarantee == "at_least_once" or not self._open
        self._open = False

    def close(self) -> None:
        """The task has committed, and does nothing until it goes down."""
        self._open = False

    @property
    def is_back(self) -> bool:
        """Whether the task is where it was, and its directory, too."""
        return self._disk and self._task.host == self._host

    @property
    def is_warm(self) -> bool:
        """Whether a copy has all that is there; without state there is nothing to have."""
        now = self._job.kernel.now
        done = [each.caught_up for each in self._standbys if each.caught_up is not None]
        return not self._task.component.keeps_state or min(done, default=now + 1) <= now

    def warm_up(self, host: int | None) -> None:
        """A copy follows the changelog on that host, if there is none at all; None: no more than always."""
        self._standbys = [each for each in self._standbys if each.host in (None, host)]
        if host is not None and self._task.component.keeps_state and not self._standbys:
            self._follow(host, warms_up=True)

    def _follow(self, host: int, warms_up: bool = False) -> None:
        """A new copy reads all that is there, then what has come meanwhile."""
        job, entries, cost = self._job, self._entries, self._settings.restore_cost
        new = _Standby(None, host=host if warms_up else None)
        self._standbys.append(new)

        def has_read() -> None:
            new.caught_up = job.kernel.now + (entries + new.behind) * cost

        store = job.store_named(self._settings.store)
        store.read(host, self._size, Rank.RESTORE, has_read, self._task.number)

    def _compacted(self) -> tuple[int, int]:
        """How many entries there are, and their bytes."""
        own, backend = self.state.entries, self._task.component.backend
        size = own * self._settings.entry_size
        if backend is None:
            return own, size
        return own + backend.entries, size + backend.entries * backend.entry_size

    def restore(self, then: Callable[[], None]) -> None:
        """Bring the state back, and call ``then``."""
        job, task, s, self._open = self._job, self._task, self._settings, True
        store = job.store_named(s.store)
        entries, size = self._entries, self._size
        near = [standby for standby in self._standbys if standby.host in (None, task.host)]
        known = [standby for standby in near if standby.caught_up is not None]
        if self.is_back and self._clean:
            entries = sum(batch.entries for batch in self._tail)
            size = sum(batch.size for batch in self._tail)
        elif known:
            best = min(known, key=lambda standby: standby.caught_up or 0)
            back = max(job.kernel.now, best.caught_up or 0) + s.restore_time
            job.kernel.at(back, Rank.RESTORE, then, task.number)
            self._standbys.remove(best)
            if len(self._standbys) < s.standby_replicas:
                self._follow(task.host)
            return
        read(job, task, size, s.restore_time + entries * s.restore_cost, then, store)

    def restored(self) -> None:
        """The task has the state that is here, where it is now: nothing has changed since."""
        self._since, self._tail = self._task.worked, []
        self._disk, self._clean, self._host = self._settings.local_state, True, self._task.host


class Topic:
    """Where the tasks of a component put out what they do: readers get no further than the first transaction
    that is open (Kafka's last stable offset), so what others commit waits for those that the dead have left.
    """

    def __init__(self) -> None:
        self._left_open = 0
        self._waiting: dict[Outputs, None] = {}

    def committed(self, outputs: Outputs) -> None:
        if self._left_open:
            self._waiting[outputs] = None
        else:
            outputs.tell()

    def left_open(self) -> None:
        """Somebody has died, whose transaction is open."""
        self._left_open += 1

    def aborted(self) -> None:
        """One of these is not any more."""
        self._left_open -= 1
        if not self._left_open:
            for outputs in self._waiting:
                outputs.tell()
            self._waiting.clear()


class Outputs:
    """What a task has put out in the transaction that is open, which a failure undoes: its windows, what has
    left the topology, and its channels. Kafka's transactions: KIP-98, and KIP-447 for tasks that move.

    number   of the newest transaction that is not open any more
    pending  a commit is under way, with its offsets
    """

    def __init__(self, job: Job, task: BoltTask, topic: Topic) -> None:
        self._job, self._task, self._plane = job, task, job.plane
        self._topic = topic
        self._untold: list[int] = []
        """Numbers of transactions that are committed, and not seen."""
        self.windows: list[Effects] = []
        self.left: list[Ints] = []
        self._structs = [wire.c for wire in task.wires.values()]
        for wire in task.wires.values():
            of = job.plane.ffi.new("transactions *")
            job.plane.keep(of)
            wire.c.transactions = of
            wire.down.c.bounded |= job.plane.lib.ISOLATES
        if task.state is None and task.component.ends_roots:
            task.log_all(sent=False)
        self.number, self.pending = 0, False
        if not task.component.outputs:
            job.context.withheld.add(task)

    def now(self) -> tuple[int, int]:
        """What a commit of this instant would commit: how many windows, and how much that left."""
        self._task.catch_up()
        self._plane.lib.plane_prepare(self._plane.p, self._task.number)
        self.number, self.pending = self.number + 1, True
        self._job.say.pre_committed(self._task, self.number)
        return len(self.windows), len(self.left)

    def commit(self, windows: int, left: int) -> None:
        """So much holds."""
        self.pending = False
        del self.windows[:windows]
        del self.left[:left]
        self._plane.lib.plane_commit(self._plane.p, self._task.number)
        self._untold.append(self.number)
        self._topic.committed(self)

    def tell(self) -> None:
        """Readers see all that holds."""
        self._plane.have_messages(len(self._structs))
        self._plane.lib.plane_tell(self._plane.p, self._task.number, self._job.kernel.now)
        for number in self._untold:
            self._job.say.committed(self._task, number, self._job.kernel.now)
        self._untold.clear()

    def abort(self, newest: int, outage: int) -> None:
        """The transaction that is open is aborted; ``newest``: number of the newest window before it."""
        task, say, plane, self.pending = self._task, self._job.say, self._plane, False
        task.catch_up()
        for uid in (*(parts.uid for parts in self.windows), *self.left):
            if task.component.anchored and len(uid):
                say.void(task.component, uid, task.replica)
        for number in {self.number, None}.difference(self._untold):
            say.aborted(task, number, False)
        self.windows, self.left = [], []
        task.windows.reopen(newest)
        plane.have_rows(plane.p.lost, sum(int(c.transactions.withheld.n) for c in self._structs))
        plane.lib.plane_abort(plane.p, task.number, self._job.kernel.now, outage)
        self._job.tell_of_losses()


class _Task:
    """One task, its log, and what it has under way.

    committed   what it knew of windows when it committed last
    known       position up to which it had read when it failed last
    returning   messages at the head of what is held that it will read once more
    rebalances  its member does, and so it does not commit
    stops       it is to do nothing meanwhile, once it has committed
    stopped     it does nothing
    overdue     a commit has had its turn during a rebalance
    restoring   it is up, and has not its state yet
    closing     it is to go down when it has committed; None: it is not
    since       the turn of its last commit, or when it had its state back (ns)
    worked      tuples that it had worked on then
    left_open   transactions of producers that have died: when the broker aborts each (ns), and on which host
    held_up     when the one is aborted for which its return waits (ns)
    outputs     None: what it puts out is there for its readers at once
    """

    def __init__(self, job: Job, task: BoltTask, settings: ChangelogSettings, topic: Topic) -> None:
        self.bolt, self.topic = task, topic
        self.since = self.worked = self.held_up = 0
        self.left_open: list[tuple[int, int]] = []
        self.log = TaskLog(job.plane, task, task.inputs)
        self.committed = SavedState.at_the_beginning(task)
        self.known = self.returning = 0
        self.changelog = Changelog(job, task, settings)
        self.plans = Plans(job.kernel, task.number)
        self.committing = self.writing = self.restoring = False
        self.closing: _Closing | None = None
        self.rebalances = self.stops = self.stopped = self.overdue = False
        self.outputs = Outputs(job, task, topic) if settings.guarantee == "exactly_once" else None

    @property
    def recovering(self) -> bool:
        """From a failure until it has served all that it had read before."""
        return not self.bolt.up or self.restoring or self.log.position < self.known


@dataclass(eq=False)
class _Closing:
    """Tasks that commit, and do nothing after it, before a planned stop; those ``left`` have not yet."""

    stop: Stop
    tasks: list[_Task]
    left: list[_Task]


class Changelogs(Mechanism, CopyHolder, Saver, Grouped):
    """Every task reads a log, writes the changes of its state to another, and commits how far it has read;
    one that has failed reads its changelog, then goes on from there.
    """

    needs = Needs(log=True)
    steady = True

    def __init__(self, job: Job, settings: ChangelogSettings) -> None:
        super().__init__(job)
        self._settings, self._do = settings, Verbs(job)
        topics = {component.name: Topic() for component in job.topology.components}
        self._tasks: dict[TaskView, _Task] = {
            task: _Task(job, task, settings, topics[task.component.name]) for task in job.bolt_tasks
        }
        self._looks = job.draws.moment("transactions", Purpose.PHASE, settings.abort_interval)
        job.context.saver = job.context.grouped = self
        job.settlers.append(self._note_kept)

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        outputs = self._tasks[task].outputs
        if outputs is not None and task.component.ends_roots and task.state is None:
            outputs.left.append(train.uid)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        outputs = self._tasks[task].outputs
        if outputs is not None:
            outputs.windows += parts
        return 0

    def start(self) -> None:
        s = self._settings
        for own in self._tasks.values():
            self._do.every(s.commits, partial(self._commit_due, own), Rank.CHECKPOINT, own.bolt)
            if s.batch_interval is not None and own.bolt.component.keeps_state:
                self._do.every(s.batch_interval, partial(self._batch_due, own), Rank.CHECKPOINT, own.bolt)

    def _batch_due(self, own: _Task, i: int) -> None:
        if self._job.kernel.now % self._settings.commits == 0 or not own.bolt.available:
            return
        if not (own.committing or own.writing) and own.changelog.behind:
            own.writing = True
            batch = own.changelog.take()

            def written() -> None:
                own.writing = False
                self._changed(own, batch)

            self._write(own, batch, written)

    def _commit_due(self, own: _Task, i: int) -> None:
        if own.bolt.available and not own.committing:
            own.committing = True
            # between two tuples: what waits is still in the log
            own.bolt.enqueue(Rank.CHECKPOINT, partial(self._commit, own), first=True)

    def rebalances(self, task: BoltView, begins: bool, stops: bool) -> None:
        own = self._tasks[task]
        own.rebalances, own.stops = begins, stops
        if stops:
            own.stopped = not own.bolt.available
            self._commit_due(own, 0)
            return
        if begins and own.outputs is not None and self._settings.transaction_timeout:
            self._look_again(own)
        self._go_on(own)
        if own.overdue and not begins:
            own.overdue = False
            self._commit_due(own, 0)

    def _go_on(self, own: _Task) -> None:
        """It has to stand still no more."""
        if own.stopped:
            own.stopped = False
            if own.bolt.up and not own.restoring:
                self._do.open(own.bolt)

    def closes(self, task: BoltView) -> bool:
        return self._tasks[task].closing is not None

    def warm_up(self, hosts: Mapping[BoltView, int]) -> None:
        for own in self._tasks.values():
            own.changelog.warm_up(hosts.get(own.bolt))

    def is_warm(self, task: BoltView) -> bool:
        return self._tasks[task].changelog.is_warm

    def save_to_stop(self, stop: Stop) -> bool:
        """All commit, and then do nothing; not during a rebalance, in which they may not."""
        tasks = [self._tasks[victim] for victim in stop.victims]
        if any(own.rebalances or own.closing is not None for own in tasks):
            return False
        closing = _Closing(stop, tasks, list(tasks))
        for own in tasks:
            own.closing = closing
            self._commit_due(own, 0)
        return True

    def _closed(self, own: _Task, closing: _Closing) -> None:
        closing.left.remove(own)
        if not closing.left:
            own.plans.at(self._job.kernel.now, Rank.BATCH, partial(self._end, closing, down=True))

    def _end(self, closing: _Closing, down: bool) -> None:
        """It goes ``down``, or not: something has failed before, if only at this instant."""
        if closing.tasks[0].closing is not closing:
            return
        for own in closing.tasks:
            own.closing = None
            if down:
                own.changelog.close()
            else:
                self._go_on(own)
        if down:
            closing.stop.go_down()
        else:
            closing.stop.give_up()

    def _commit(self, own: _Task) -> None:
        """Its turn has come: the task does nothing else until the commit is made."""
        if own.rebalances and not own.stops:
            own.committing, own.overdue = False, True
            return
        now, task, committing = self._job.kernel.now, own.bolt, self._settings.commit_time
        self._do.step(task, "commit begins")
        position, windows, worked = own.log.position, SavedState.of(task), task.worked
        sent = None if own.outputs is None else own.outputs.now()
        batch = own.changelog.take() if task.component.keeps_state else None

        def committed() -> None:
            self._note_kept()  # it has its peak now
            own.committing, own.since, own.worked = False, now, worked
            if batch is not None and own.outputs is not None:
                self._changed(own, batch)
            own.committed = windows
            own.log.trim(position)
            if batch is not None:
                own.changelog.commit(batch.number)
            if own.outputs is not None and sent is not None:
                own.outputs.commit(*sent)
            self._do.step(task, "offsets committed", f"position {position}")
            if own.stops or own.closing is not None:
                own.stopped = True
                self._do.close(task)
            if own.closing is not None:
                self._closed(own, own.closing)

        def written() -> None:
            if batch is not None and own.outputs is None:
                self._changed(own, batch)
            if committing:
                own.plans.after(committing, Rank.TRIM, committed)
            else:
                committed()

        end = now if batch is None else self._write(own, batch, written)
        task.occupy(end - now + committing)
        if batch is None:
            written()

    def _write(self, own: _Task, batch: Batch, then: Callable[[], None]) -> int:
        store, done = self._job.store_named(self._settings.store), own.plans.unless_void(then)
        return store.write(own.bolt.host, batch.size, Rank.TRIM, done, own.bolt.number)

    def _changed(self, own: _Task, batch: Batch) -> None:
        own.changelog.add(batch)
        self._do.step(own.bolt, "changes written", f"{batch.entries} entries")

    def bolt_failed(self, task: BoltTask, outage: OutageView) -> None:
        """What a task has read since the commit waits in its log again."""
        own = self._tasks[task]
        own.plans.void()
        if own.closing is not None:
            own.stopped = False  # it goes on when it is restored
            self._end(own.closing, down=False)
        own.committing = own.writing = own.restoring = own.overdue = False
        if outage.kind != "lose_state":  # which leaves the member what it is
            own.rebalances = own.stops = own.stopped = False
        own.changelog.failed(outage)
        if own.outputs is not None:
            self._note_kept()
            if outage.kind not in _ABORTED:
                self._leave_open(own, own.outputs.pending)
            own.outputs.abort(own.committed.newest, outage.number)
            own.worked = own.bolt.worked
        # what was in its queue has been on its way all the time
        self._job.say.reopened(own.bolt, without_markers(own.log.done()))
        known = own.log.go_back()
        own.bolt.gate.closed = own.bolt.up
        own.known = max(own.known, known)
        own.returning += known - own.log.start

    def _next_look(self, after: int) -> int:
        """When the broker looks, at ``after`` (ns) or later, for transactions that are too old."""
        every = self._settings.abort_interval
        return self._looks + max(0, -(-(after - self._looks) // every)) * every

    def _leave_open(self, own: _Task, pending: bool) -> None:
        """It has died amid a transaction, whose offsets may be ``pending``: the broker aborts it at its first
        look that finds it too old.
        """
        now, timeout = self._job.kernel.now, self._settings.transaction_timeout
        if timeout and own.bolt.worked > own.worked:
            look = self._next_look(max(now, own.since + timeout))
            own.left_open.append((look, own.bolt.host))
            own.topic.left_open()
            aborted = partial(self._aborted, own, own.left_open[-1])
            self._job.kernel.at(look, Rank.ROTATION, aborted, own.bolt.number)
            if pending or own.bolt.component.keeps_state:
                own.held_up = look

    def _aborted(self, own: _Task, transaction: tuple[int, int]) -> None:
        if transaction in own.left_open:
            own.left_open.remove(transaction)
            own.topic.aborted()

    def _look_again(self, own: _Task) -> None:
        """It may not commit: its transaction may become too old while it lives."""
        own.plans.at(self._next_look(self._job.kernel.now + 1), Rank.ROTATION, partial(self._look, own))

    def _look(self, own: _Task) -> None:
        old = own.since + self._settings.transaction_timeout <= self._job.kernel.now
        if own.rebalances and old and own.bolt.worked > own.worked and not own.committing:
            self._job.supervisor.watch.fenced(own.bolt)
        elif own.rebalances:
            self._look_again(own)

    def bolt_ready(self, task: BoltTask, outage: OutageView) -> None:
        own = self._tasks[task]
        own.bolt.gate.closed = own.restoring = True
        if own.changelog.is_back:  # with the id of its producer, which aborts what the dead one has left open
            own.held_up = 0
            for transaction in [left for left in own.left_open if left[1] == task.host]:
                self._aborted(own, transaction)
        has_read = own.plans.unless_void(partial(self._has_read, own, outage))
        if task.component.keeps_state:
            own.changelog.restore(has_read)
        else:
            has_read()

    def _has_read(self, own: _Task, outage: OutageView) -> None:
        """All that it may: no further than a transaction that is open."""
        restored = partial(self._restored, own, outage)
        if own.held_up > self._job.kernel.now:
            own.plans.at(own.held_up, Rank.RESTORE, restored)
        else:
            restored()

    def _restored(self, own: _Task, outage: OutageView) -> None:
        """It knows what the changelog has, and goes on from the offsets."""
        self._do.restore(own.bolt, replace(own.changelog.state, epochs=own.committed.epochs), outage)
        own.changelog.restored()
        n, own.returning = own.returning, 0
        held = self._job.plane.listed(own.bolt.c.held, own.bolt.number)
        self._job.say.replayed(own.bolt, without_markers(held.pick(slice(n))), None)
        self._do.step(own.bolt, "log read again", f"{n} messages")
        own.restoring, own.since, own.worked = False, self._job.kernel.now, own.bolt.worked
        if own.stopped:
            own.bolt.gate.closed = True
        else:
            self._do.open(own.bolt)

    def _note_kept(self) -> None:
        plane = self._job.plane
        self._job.say.kept(int(plane.lib.plane_logged(plane.p, self._job.kernel.now)))

    def tuples(self) -> list[tuple[Component, Train]]:
        """What belongs to roots of what may be read again."""
        return [
            (own.bolt.component, train)
            for own in self._tasks.values()
            if own.bolt.component.anchored
            for train in (own.log.tuples(), *map(without_markers, own.bolt.queue.trains()))
        ]

    def effects(self) -> list[tuple[Component, Ints]]:
        stateful = [own for own in self._tasks.values() if own.bolt.state is not None]
        return [(own.bolt.component, own.changelog.state.effects()) for own in stateful]

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return sent_again(self._job, task, train, outage)

    def settled(self, outage: OutageView) -> bool:
        hit = self._job.supervisor.outages[outage.number].tasks
        return not any(self._tasks[task].recovering for task in hit if task in self._tasks)
