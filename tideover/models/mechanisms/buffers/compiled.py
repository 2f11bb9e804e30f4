"""Upstream buffers in the compiled data plane: it numbers, keeps, sends again and lets in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.replays import Replays, Request
from tideover.models.mechanisms.buffers.upstream_buffer import Kept, UpstreamBuffer
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

    def clear(self) -> None:
        self._bare = True
        self.plane.lib.plane_lose_copies(self.plane.p, self._number)

    def copy(self) -> Kept:
        return cast(Kept, CompiledKept(self.plane, self._all(), self.sent, self.gone_to))

    def become(self, kept: Kept) -> None:
        plane, rows = self.plane, cast(CompiledKept, kept).rows
        plane.lib.plane_trim(plane.p, self._number, self.sent)
        plane.have_messages(len(rows))
        plane.lib.plane_keep(plane.p, self._number, plane.ffi.from_buffer("row[]", rows), len(rows))

    def after(self, number: int) -> Train | None:
        rows = self._all()
        rows = rows[rows["arrival"] > number]
        return self.plane.train(rows) if len(rows) else None

    def uids(self) -> Ints:
        rows = self._all()
        return rows["uid"][rows["mark"] == 0]

    def _all(self) -> Rows:
        """The copies, with their numbers in the place of arrivals."""
        return self.plane.copies(self._number, self.size)


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
    """A request; ``settle`` sees how far its sender is."""

    settle: Callable[[], None] = int  # type: ignore[assignment]

    @property
    def done(self) -> bool:
        self.settle()
        if not self.served:
            return False
        channel, plane = cast(Any, self.buffer.channel), cast(CompiledBuffer, self.buffer).plane
        comes = plane.lib.plane_end_comes(plane.p, channel.number, self.recovery)
        return bool(comes) or self.receiver.has_come(channel)


@dataclass(eq=False)
class Running:
    """A replay: what is sent again, and how much of it is told."""

    request: CompiledRequest
    train: Train
    told: int = 0


class CompiledReplays(Replays):
    """The data plane replays; what has left is told when somebody asks."""

    def __init__(self, job: Job, plane: Plane) -> None:
        super().__init__(job)
        self._plane = plane
        self._running: dict[int, Running] = {}
        job.settlers.append(self._settle_all)

    def _new(self, receiver: Receiver, buffer: UpstreamBuffer, after: int) -> Request:
        up = buffer.channel.up
        up.gave_up = partial(self._gave_up, up.number)  # type: ignore[attr-defined]
        settle = partial(self._settle, up.number)
        return CompiledRequest(receiver, buffer, after, receiver.recovery, settle=settle)

    def _serve(self, up: Node, request: Request) -> None:
        if not request.valid:
            return
        self._settle(up.number)
        assert isinstance(request, CompiledRequest)
        plane, buffer, task = self._plane, request.buffer, request.receiver.task
        now, kept = self._job.kernel.now, buffer.after(request.after)
        n = 0 if kept is None else kept.n
        plane.have_messages(n + 1)
        step, channel = request.receiver.step, cast(Any, buffer.channel)
        if kept is not None:
            self._job.say.reopened(task, without_markers(kept))
            self._running[up.number] = Running(request, kept)
        sent = plane.lib.plane_replay(plane.p, channel.number, now, request.after, request.recovery, step)
        assert sent == n
        if kept is not None:
            up.occupy(n * step)
        self._job.step(up.name, "buffer replayed", f"{n} tuples", task.name)
        if kept is None:
            request.served = True
        self._settle(up.number)

    def _settle(self, number: int) -> None:
        """Tell what a sender has sent again."""
        running = self._running.get(number)
        if running is None:
            return
        replay = self._plane.tasks[number].replay
        train, left = running.train, int(replay.left)
        part = without_markers(train.pick(slice(running.told, train.n - left)))
        running.told = train.n - left
        if part.n:
            request = running.request
            self._job.say.replayed(request.receiver.task, part, request.buffer.channel)
        if not replay.goes_on:
            running.request.served = True
            del self._running[number]

    def _settle_all(self) -> None:
        for number in list(self._running):
            self._settle(number)

    def _gave_up(self, number: int) -> None:
        """A sender forgets what it was to send again."""
        self._settle(number)
        running = self._running.pop(number, None)
        if running is not None:
            self._plane.lib.plane_give_up(self._plane.p, number)
            rest = without_markers(running.train.pick(slice(running.told, None)))
            self._job.say.unsent(running.request.receiver.task, rest)
