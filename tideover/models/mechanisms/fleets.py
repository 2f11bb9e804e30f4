"""Fleets of a task and its shadows: who comes back reads what a live member writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tideover.models.mechanisms.base import Mechanism
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.saved_state import SavedState, restore, restored, roll_back
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import OutageView, TaskView
from tideover.sim.kernel import Rank


@dataclass(frozen=True)
class Station:
    """Where state is handed over.

    store            its name; None: the store of the job
    entry_size       bytes of an entry
    transaction      time until a recovery transaction has reached the live members (ns)
    loading          time to take over a state that was read (ns), and more for each entry
    """

    store: str | None
    entry_size: int
    transaction: int
    loading: int
    loading_entry: int


@dataclass(eq=False)
class _Transaction:
    """One recovery: tasks whose state is not written yet, and states that were, and nobody reads yet."""

    unwritten: set[BoltTask] = field(default_factory=set)
    written: dict[BoltTask, SavedState] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Turn:
    """A member that is to write, or writes; and what happens if it fails before it has written."""

    member: BoltTask
    ask_another: Callable[[], None]


class Fleets(Mechanism, Keeper):
    """All replicas of a task but the first are its shadows: they process what it does, ack it, and emit
    nothing. After a failure a recovery transaction lets one live member of each fleet that was hit write its
    state to the station, when its turn comes in the member's queue, and keeps the member until that is done;
    when all have, those that are back read it, holding what arrives.

    ``copy_cost``: time that each copy for a shadow takes a spout (ns). ``then``: called when a member has
    the state of another, and may ack once more what it has acked.
    """

    def __init__(
        self,
        job: Job,
        station: Station,
        copy_cost: int = 0,
        then: Callable[[], None] = int,  # type: ignore[assignment]
    ) -> None:
        super().__init__(job)
        for c in job.topology.components:
            copies = sum(job.deployment.replicas[edge.down.name] - 1 for edge in c.outputs)
            if c.is_spout and copy_cost * copies:
                Verbs(job).charge(c.name, copy_cost * copies)
        self._station, self._then = station, then
        self._open: dict[OutageView, _Transaction] = {}
        self._asked: dict[BoltTask, _Turn] = {}
        job.context.keepers.append(self)
        for task in job.bolt_tasks:
            task.silent = task.replica > 0

    def _entries(self, task: BoltTask, saved: SavedState) -> int:
        backend = task.component.backend
        return saved.entries + (backend.entries if backend else 0)

    def begin(self, view: TaskView, outage: OutageView) -> None:
        """A member is up again, and empty; a task without state just goes on."""
        task, kernel = self._bolt(view), self._job.kernel
        if not task.component.keeps_state:
            task.gate.closed = False
            task.gate.open()
            return
        task.gate.closed = True
        task.set_aside()
        transaction = self._open.setdefault(outage, _Transaction())
        transaction.unwritten.add(task)
        ask = partial(self._ask, task, task.life, outage)
        kernel.at(kernel.now + self._station.transaction, Rank.RESTORE, ask, task.number)

    def _lives(self, task: BoltTask, life: int, outage: OutageView) -> bool:
        """Whether a task still waits: it has not failed again."""
        return task.life == life and self._job.context.newest[task] == outage.number

    def _ask(self, task: BoltTask, life: int, outage: OutageView) -> None:
        """The transaction has reached the fleet: a live member takes its turn at it."""
        if not self._lives(task, life, outage):
            return
        fleet = self._job.bolts[task.component.name, task.index]
        member = next((each for each in fleet if each is not task and each.available), None)
        if member is None:  # nobody has the state: it is lost
            self._open[outage].unwritten.discard(task)
            self._restored(task, life, outage, SavedState.of(task))
            self._read_all(outage)
            return
        self._job.step(task.name, "state asked for", to=member.name)
        turn = self._asked[task] = _Turn(member, partial(self._ask, task, life, outage))
        member.enqueue(Rank.RESTORE, partial(self._write, task, outage, turn))

    def _write(self, task: BoltTask, outage: OutageView, turn: _Turn) -> None:
        """It has processed what came before: it writes, and does nothing else."""
        if self._asked.get(task) is not turn:
            return
        member, station = turn.member, self._station
        saved = SavedState.of(member)
        entries = self._entries(task, saved)
        store, size = self._job.store_named(station.store), entries * station.entry_size
        done = partial(self._written, task, outage, turn, saved)
        end = store.write(member.host, size, Rank.RESTORE, done, task.number, max(1, entries))
        member.occupy(end - self._job.kernel.now)

    def _written(self, task: BoltTask, outage: OutageView, turn: _Turn, saved: SavedState) -> None:
        if self._asked.get(task) is not turn:
            return
        del self._asked[task]
        self._job.step(turn.member.name, "state written", to=task.name)
        transaction = self._open[outage]
        transaction.unwritten.discard(task)
        transaction.written[task] = saved
        self._read_all(outage)

    def failed(self, view: TaskView, outage: OutageView) -> None:
        """Nobody waits for a member that fails again, and what it has not written is asked of another: when
        all has struck that strikes now.
        """
        failed, kernel = self._job.tasks[view.number], self._job.kernel
        if not isinstance(failed, BoltTask):
            return
        self._asked.pop(failed, None)
        for older, transaction in self._open.items():
            if failed in transaction.unwritten or failed in transaction.written:
                transaction.unwritten.discard(failed)
                transaction.written.pop(failed, None)
                kernel.at(kernel.now, Rank.RESTORE, partial(self._read_all, older), failed.number)
        for task, turn in list(self._asked.items()):
            if turn.member is failed:
                del self._asked[task]
                kernel.at(kernel.now, Rank.RESTORE, turn.ask_another, task.number)

    def store_lost(self, store: str | None) -> None:
        if store == self._station.store:
            for transaction in self._open.values():
                written = transaction.written
                transaction.written = {task: saved.emptied() for task, saved in written.items()}

    def _read_all(self, outage: OutageView) -> None:
        """When all has been written it is read."""
        transaction, station = self._open[outage], self._station
        if transaction.unwritten:
            return
        written, transaction.written = transaction.written, {}
        if written:
            self._job.supervisor.outages[outage.number].written_at = self._job.kernel.now
        store = self._job.store_named(station.store)
        for task, saved in written.items():
            entries = self._entries(task, saved)
            load = partial(self._load, task, task.life, outage, saved)
            size = entries * station.entry_size
            store.read(task.host, size, Rank.RESTORE, load, task.number, max(1, entries))

    def _load(self, task: BoltTask, life: int, outage: OutageView, saved: SavedState) -> None:
        station, kernel = self._station, self._job.kernel
        self._job.step(task.name, "state read")
        takes = station.loading + self._entries(task, saved) * station.loading_entry
        restored = partial(self._restored, task, life, outage, saved)
        kernel.at(kernel.now + takes, Rank.RESTORE, restored, task.number)

    def _restored(self, task: BoltTask, life: int, outage: OutageView, saved: SavedState) -> None:
        if not self._lives(task, life, outage):
            return
        if task.state is not None:
            roll_back(self._job, task, task.state.fresh())
        restore(self._job, task, saved, outage, rewind=False)
        if task.state is None:
            restored(self._job, task, outage, saved.effects())
        self._then()
        task.gate.open()
