"""One task of a job with barriers, where the compiled data plane keeps its log, and sets aside what is behind
a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tideover.models.flow.bolt import FlowBolt
from tideover.models.flow.log import TaskLog
from tideover.models.mechanisms.barriers.in_flight import InFlight, Waits
from tideover.models.mechanisms.barriers.member import Member
from tideover.models.mechanisms.barriers.snapshot import Part
from tideover.models.runtime.bolt_task import BARRIER, BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Train


@dataclass
class CompiledWaits(Waits):
    """Messages of a task that a snapshot has: rows of the data plane, by their channels in ``source``."""

    queue: list[Any] = field(default_factory=list)
    line: list[Any] = field(default_factory=list)

    def at(self, task: BoltTask) -> Iterator[tuple[BoltTask, Train]]:
        assert isinstance(task, FlowBolt)
        for rows in self.queue:
            yield task, without_markers(task.trained(rows))
        for rows in self.line:
            for route in dict.fromkeys(rows["source"].tolist()):
                down = task.wires[route].down
                yield down, without_markers(task.trained(rows[rows["source"] == route]))

    def give_back(self, task: BoltTask, now: int) -> None:
        assert isinstance(task, FlowBolt)
        for in_line, found in enumerate((self.queue, self.line)):
            for rows in found:
                task.put_back(rows, bool(in_line))


class CompiledInFlight(InFlight):
    """The data plane notes what comes, and records what belongs to the snapshot."""

    def __init__(self, task: FlowBolt, spouts: list[int], plane: Plane, overtakes: bool) -> None:
        self._bolt, self._plane = task, plane
        super().__init__(task, spouts)
        if overtakes:
            task.c.bounded |= plane.lib.OVERTAKES
            plane.log(task.c.recorded)

    def reaches(self, number: int) -> None:
        self._plane.lib.plane_notice(self._plane.p, self._bolt.number, number)
        super().reaches(number)

    def stop(self) -> None:
        self._plane.lib.plane_forget_barriers(self._plane.p, self._bolt.number)
        super().stop()

    def overtake(self) -> Waits:
        self.copied = False
        self._bolt.c.records = 1
        line = self._in_line()
        return CompiledWaits(self._some(self._bolt.ahead()), self._some(line[line["mark"] != BARRIER]))

    def overtake_line(self) -> Waits | None:
        line = self._in_line()
        mine = (line["mark"] == BARRIER) & (line["key"] == self.number)
        if not mine.any():
            return None
        before = line[: mine.argmax()]
        return CompiledWaits(line=self._some(before[before["mark"] != BARRIER]))

    def _in_line(self) -> Any:
        return self._plane.rows(self._bolt.c.line.messages)

    @staticmethod
    def _some(rows: Any) -> list[Any]:
        return [rows] if len(rows) else []

    def recorded(self) -> list[Any]:
        return self._some(self._plane.read(self._bolt.c.recorded))

    def size(self, waits: Waits) -> int:
        if not isinstance(waits, CompiledWaits):
            return 0
        wires = self._bolt.wires
        queue = [self._bolt.inputs[way] for way in _ways(waits.queue)]
        return sum(wire.message_bytes for wire in (*queue, *(wires[way] for way in _ways(waits.line))))


def _ways(found: list[Any]) -> Iterator[int]:
    """The ``source`` of each tuple in these rows."""
    for rows in found:
        yield from rows["source"][rows["mark"] == 0].tolist()


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

    def _in_flight(self, spouts: list[int]) -> InFlight:
        assert isinstance(self.task, FlowBolt)
        assert self._job.plane is not None
        return CompiledInFlight(self.task, spouts, self._job.plane, self._overtakes)

    def _give_back(self, part: Part) -> None:
        if isinstance(part.waits, CompiledWaits):
            part.waits.give_back(self.task, self._job.kernel.now)

    @property
    def kept(self) -> int:
        if self._read is None:
            return 0
        come = self._plane.lib.plane_come(self._plane.p, self._bolt.number, self._plane.p.now)
        return int(come) - self._read.start

    def _log_read(self) -> list[Train]:
        return [] if self._read is None else [self._read.tuples()]


def member_of(job: Job, task: BoltTask, overtakes: bool = False) -> Member:
    """A task, as its job's data plane is."""
    return (Member if job.plane is None else CompiledMember)(job, task, overtakes)
