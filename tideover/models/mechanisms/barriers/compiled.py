"""One task of a job with barriers, where the compiled data plane keeps its log, and sets aside what is behind
a barrier.
"""

from __future__ import annotations

from typing import Any

from tideover.models.flow.bolt import FlowBolt
from tideover.models.flow.log import TaskLog
from tideover.models.mechanisms.barriers.member import Member
from tideover.models.mechanisms.barriers.snapshot import Part
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.train import Train


class CompiledMember(Member):
    """Inputs that are blocked are so in the data plane."""

    def __init__(self, job: Job, task: BoltTask, overtakes: bool = False) -> None:
        super().__init__(job, task, overtakes)
        assert job.plane is not None
        assert isinstance(task, FlowBolt)
        self._plane, self._bolt = job.plane, task
        self._read: TaskLog | None = None
        if job.needs.log and self.reads_log:
            self._read = TaskLog(job.plane, task, [wire for wire in task.inputs if wire.logged])

    def _act(self, what: Any) -> None:
        what(self._plane.p, self._bolt.number, self._job.kernel.now)

    def _set_aside(self) -> None:
        for position in self._come:
            self._bolt.inputs[position].c.blocked = 1
        self._act(self._plane.lib.plane_block)

    def unblock(self) -> None:
        self._come.clear()
        self._act(self._plane.lib.plane_unblock)

    def _position(self) -> int:
        return 0 if self._read is None else self._read.position

    def _trim(self, position: int) -> None:
        if self._read is not None:
            self._read.trim(position)

    def _go_back(self) -> list[Train]:
        if self._read is None:
            return []
        again = self._read.done()
        self._read.go_back()
        return [again] if again.n else []

    def _give_back(self, part: Part) -> None:
        assert not part.size

    @property
    def kept(self) -> int:
        if self._read is None:
            return 0
        come = self._plane.lib.plane_come(self._plane.p, self._bolt.number, self._plane.p.now)
        return int(come) - self._read.start

    def _log_read(self) -> list[Train]:
        return [] if self._read is None else [self._read.done()]


def member_of(job: Job, task: BoltTask, overtakes: bool = False) -> Member:
    """A task, as its job's data plane is."""
    return (Member if job.plane is None else CompiledMember)(job, task, overtakes)
