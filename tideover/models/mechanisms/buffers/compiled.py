"""Upstream buffers in the compiled data plane: it numbers, keeps, sends again and lets in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.replays import Replays, Request
from tideover.models.mechanisms.buffers.upstream_buffer import Kept, UpstreamBuffer
from tideover.models.mechanisms.duplicate_filter import Seen
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.node import Node
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.train import Ints, Train


class CompiledKept:
    """A copy of a buffer, as `Kept`: rows of the data plane, with their numbers in the place of arrivals."""

    def __init__(self, plane: Plane, rows: Rows, sent: int, gone_to: int) -> None:
        self.plane, self.rows, self.sent, self.gone_to = plane, rows, sent, gone_to

    def above(self, number: int) -> int:
        """How many of its messages have a greater number."""
        return int(np.count_nonzero(self.rows["arrival"] > number))

    def tuples(self) -> list[Train]:
        """Its messages without the markers."""
        return [without_markers(self.plane.train(self.rows))] if len(self.rows) else []


class CompiledBuffer(UpstreamBuffer):
    """The buffer of one channel; ``c`` is its struct."""

    def __init__(self, channel: Any, plane: Plane) -> None:
        plane.number()
        self.channel, self.plane = channel, plane
        self.safe = 0
        self._bare = False
        self.c: Any = plane.ffi.new("buffer *")
        plane.keep(self.c)
        channel.c.buffer = self.c

    @property
    def _number(self) -> int:
        return cast(Any, self.channel).number

    @property
    def sent(self) -> int:  # type: ignore[override]
        return int(self.c.sent)

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.c.kept.n)

    @property
    def gone_to(self) -> int:
        return int(self.c.gone_to)

    @gone_to.setter
    def gone_to(self, number: int) -> None:
        self.c.gone_to = number

    def trim(self, safe: int) -> None:
        self.safe = max(self.safe, safe)
        self.plane.lib.plane_trim(self.plane.p, self._number, safe)

    def drop_known(self, seen: Seen, newest_mark: int = 0) -> None:
        """The same, and marks up to this one."""
        plane, greatest = self.plane, self.plane.ffi.from_buffer("int64_t[]", seen.greatest)
        plane.lib.plane_trim_known(plane.p, self._number, greatest, newest_mark)

    def clear(self) -> None:
        self._bare = True
        self.plane.lib.plane_lose_copies(self.plane.p, self._number)

    def copy(self) -> Kept:
        return cast(Kept, CompiledKept(self.plane, self._all(), self.sent, self.gone_to))

    def become(self, kept: Kept) -> None:
        plane, rows = self.plane, cast(CompiledKept, kept).rows
        plane.lib.plane_trim(plane.p, self._number, self.sent)
        self._keep(rows)

    def follow(self, other: UpstreamBuffer) -> None:
        plane, rows = self.plane, cast(CompiledBuffer, other)._all()
        plane.lib.plane_trim(plane.p, self._number, self.sent)
        rows["arrival"] = np.arange(self.sent + 1, self.sent + len(rows) + 1)
        self.c.sent += len(rows)
        self._keep(rows)

    def _keep(self, rows: Rows) -> None:
        plane = self.plane
        plane.have_chunks(len(rows))
        plane.lib.plane_keep(plane.p, self._number, plane.ffi.from_buffer("row[]", rows), len(rows))

    def after(self, number: int) -> Train | None:
        rows = self._all()
        rows = rows[rows["arrival"] > number]
        return self.plane.train(rows) if len(rows) else None

    def uids(self) -> Ints:
        return self.tuples()[0].uid

    def tuples(self) -> list[Train]:
        return [self.plane.tuples(self.c.kept)]

    def _all(self) -> Rows:
        """The copies, with their numbers in the place of arrivals."""
        return self.plane.stored(self.c.kept)


class CompiledReceiver(Receiver):
    """What one task takes from its buffered channels: the data plane knows how far it is."""

    def _read(self, name: str) -> dict[int, int]:
        return {position: int(getattr(each.c, name)) for position, each in self._each()}

    def _each(self) -> list[tuple[int, Any]]:
        return list(self.buffers.items())

    def _write(self, name: str, value: Callable[[int], int]) -> None:
        for position, each in self._each():
            setattr(each.c, name, value(position))

    @property
    def positions(self) -> dict[int, int]:
        return self._read("processed")

    @positions.setter
    def positions(self, positions: dict[int, int]) -> None:
        self._write("processed", positions.__getitem__)

    @property
    def _brought(self) -> dict[int, int]:
        return self._read("brought")

    @_brought.setter
    def _brought(self, brought: dict[int, int]) -> None:
        self._write("brought", brought.__getitem__)

    @property
    def _waiting(self) -> set[int]:
        return {position for position, waits in self._read("waits").items() if waits}

    @_waiting.setter
    def _waiting(self, waiting: set[int]) -> None:
        self._write("waits", lambda position: position in waiting)

    @property
    def _unfinished(self) -> set[int]:
        return {position for position, each in self._read("unfinished").items() if each}

    @_unfinished.setter
    def _unfinished(self, unfinished: set[int]) -> None:
        self._write("unfinished", lambda position: position in unfinished)

    def begin_recovery(self) -> None:
        task = cast(Any, self.task)
        for _, each in self._each()[:1]:
            plane = each.plane
            plane.lib.plane_take_in(plane.p, task.number, plane.p.now)
            task.c.bounded |= plane.lib.SCREENS
        super().begin_recovery()
        self._write("recovery", lambda _: self.recovery)

    def empty_queue(self) -> None:
        cast(Any, self.task).empty()


@dataclass(eq=False)
class CompiledRequest(Request):
    """A request; the data plane knows how far its sender is."""

    @property
    def done(self) -> bool:
        channel, plane = cast(Any, self.buffer.channel), cast(CompiledBuffer, self.buffer).plane
        comes = plane.lib.plane_end_comes(plane.p, channel.number, self.recovery)
        return self.served and (bool(comes) or self.receiver.has_come(channel))


def send_kept(
    job: Job, up: Any, asked: Sequence[tuple[UpstreamBuffer, int]], recovery: int, step: int
) -> int:
    """What a sender keeps in these buffers, each above a number, leaves again from now on, one message every
    ``step`` (ns), which keeps it occupied; returns how many there are.

    recovery   of the receiver, which is told of the end; 0: nobody is
    """
    plane, now = cast(Plane, job.plane), job.kernel.now
    lined_up = sum(buffer.size + 1 for buffer, _ in asked)
    plane.have_chunks(lined_up)
    plane.have_messages(len(asked) if step else lined_up)  # those that leave at once
    numbers = [(cast(Any, buffer.channel).number, after) for buffer, after in asked]
    n = sum(plane.lib.plane_line_up_kept(plane.p, each, after, recovery) for each, after in numbers)
    for receiver, train in _lined_up(job, up):
        job.say.reopened(receiver, train)
    plane.have_rows(plane.p.resent, n)
    up.gave_up = partial(_give_up, job, up)
    plane.lib.plane_replay(plane.p, up.number, now, step)
    if n:
        up.occupy(n * step)
    return n


def _lined_up(job: Job, up: Any) -> Iterator[tuple[BoltTask, Train]]:
    """What a sender is to send again, by receiver."""
    plane = cast(Plane, job.plane)
    rows = plane.stored(up.c.replay.rows)
    rows = rows[rows["mark"] == 0]
    for number in dict.fromkeys(rows["source"].tolist()):
        receiver = job.tasks[plane.channels[number].down]
        yield cast(BoltTask, receiver), plane.train(rows[rows["source"] == number])


def _give_up(job: Job, up: Any) -> None:
    """A sender forgets what it was to send again."""
    for receiver, train in _lined_up(job, up):
        job.say.unsent(receiver, train)
    plane = cast(Plane, job.plane)
    plane.lib.plane_give_up(plane.p, up.number)


class CompiledReplays(Replays):
    """The data plane replays."""

    def _new(self, receiver: Receiver, buffer: UpstreamBuffer, after: int) -> Request:
        return CompiledRequest(receiver, buffer, after, receiver.recovery)

    def _serve(self, up: Node, request: Request) -> None:
        if not request.valid:
            return
        asked = [(request.buffer, request.after)]
        n = send_kept(self._job, up, asked, request.recovery, request.receiver.step)
        self._job.step(up.name, "buffer replayed", f"{n} tuples", request.receiver.task.name)
        request.served = True
