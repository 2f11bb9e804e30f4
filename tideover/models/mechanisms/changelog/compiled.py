"""Logs and transactions in the compiled data plane: it keeps what was read, and withholds what is not
committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tideover.models.flow.bolt import FlowBolt
from tideover.models.flow.log import TaskLog
from tideover.models.mechanisms.changelog.changelogs import Changelogs
from tideover.models.mechanisms.changelog.outputs import Outputs, Sent
from tideover.models.mechanisms.changelog.reader import Offsets, Reader
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Mask
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView
from tideover.sim.plane.plane import RECOVERY, Plane
from tideover.sim.train import Train


class CompiledReader(Reader):
    """One task and its log, which the data plane has."""

    def __init__(self, job: Job, task: BoltTask, plane: Plane) -> None:
        assert isinstance(task, FlowBolt)
        self._job, self._plane, self.task = job, plane, task
        self._bolt = task
        self._log: TaskLog = TaskLog(plane, task, task.inputs)  # type: ignore[assignment]
        self.offsets = Offsets(0, SavedState.at_the_beginning(task))
        self._known = 0
        self._returning = 0
        """Messages at the head of what is held that it will read once more."""

    @property
    def _position(self) -> int:
        return self._log.position

    def go_back(self) -> None:
        log, task = self._log, self._bolt
        self._job.say.reopened(task, without_markers(log.done()))
        known = log.go_back()
        task.gate.closed = task.up
        self._known = max(self._known, known)
        self._returning += known - log.start

    def read_again(self) -> int:
        n, self._returning = self._returning, 0
        held = self._plane.listed(self._bolt.c.held, self._bolt.number)
        self._job.say.replayed(self._bolt, without_markers(held.pick(slice(n))), None)
        return n

    def tuples(self) -> Iterator[Train]:
        if self._bolt.component.anchored:
            yield self._log.tuples()
            yield from map(without_markers, self._bolt.queue.trains())


class CompiledOutputs(Outputs):
    """What a task has put out in the transaction that is open; the data plane knows what it has sent."""

    def __init__(self, job: Job, task: BoltTask, plane: Plane) -> None:
        super().__init__(job, task, [])
        assert isinstance(task, FlowBolt)
        self._plane, self._bolt = plane, task
        wires: list[Any] = [wire for outlet in task.outlets for row in outlet.channels for wire in row]
        self._structs = [wire.c for wire in wires]
        for wire in wires:
            of = plane.ffi.new("transactions *")
            plane.keep(of)
            wire.c.transactions = of
            wire.down.c.bounded |= plane.lib.ISOLATES
        if task.state is None and task.component.ends_roots:
            task.log_all(sent=False)

    def now(self) -> Sent:
        self._bolt.catch_up()
        self._plane.lib.plane_prepare(self._plane.p, self._bolt.number)
        return super().now()

    def commit(self, sent: Sent) -> None:
        super().commit(sent)
        self._plane.have_messages(len(self._structs))
        self._plane.lib.plane_commit(self._plane.p, self._bolt.number, self._job.kernel.now)

    def abort(self, newest: int, outage: int) -> None:
        self._bolt.catch_up()
        super().abort(newest, outage)
        plane = self._plane
        plane.have_rows(plane.p.lost, sum(int(c.transactions.withheld.n) for c in self._structs))
        plane.lib.plane_abort(plane.p, self._bolt.number, self._job.kernel.now, outage)
        self._job.tell_of_losses()


class CompiledChangelogs(Changelogs):
    """The data plane lets in what may be read, and counts what logs keep."""

    receive = Hooks.receive
    admit = Hooks.admit
    moved = Hooks.moved

    def __init__(self, job: Job, *how: Any, **more: Any) -> None:
        super().__init__(job, *how, **more)
        job.settlers.append(self._note_kept)

    @property
    def _plane(self) -> Plane:
        assert self._job.plane is not None
        return self._job.plane

    def _reader(self, task: BoltTask) -> Reader:
        return CompiledReader(self._job, task, self._plane)

    def _isolate(self) -> None:
        for own in self._tasks.values():
            own.outputs = CompiledOutputs(self._job, own.bolt, self._plane)

    def _note_kept(self) -> None:
        self._job.say.kept(int(self._plane.lib.plane_logged(self._plane.p, self._job.kernel.now)))

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        if not train.has(RECOVERY) or self._job.context.newest.get(task, -1) != outage:
            return None
        return train.column(RECOVERY) > 0


def changelogs_of(job: Job) -> type[Changelogs]:
    """Who keeps the changelogs of a job, by what moves its data."""
    return Changelogs if job.plane is None else CompiledChangelogs
