"""Requests for upstream buffers, and their service by the senders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.intake import Intake
from tideover.models.upstream_buffer import END_OF_REPLAY, UpstreamBuffer
from tideover.sim.kernel import Rank
from tideover.sim.node import Node
from tideover.sim.train import Train, single

if TYPE_CHECKING:
    from tideover.models.world import World

NEVER = -1


@dataclass(eq=False)
class Request:
    """Send again what is in ``buffer`` above number ``after``."""

    intake: Intake
    buffer: UpstreamBuffer
    after: int
    recovery: int
    asked: int = NEVER
    """The sender's life in which it was asked."""

    @property
    def valid(self) -> bool:
        """Whether who asked has not failed since."""
        return self.intake.recovery == self.recovery


class Replays:
    """Every request until its end-of-replay marker has left.

    cost_ns, per_second   time that one tuple takes; most tuples a second (None: no limit)
    """

    def __init__(self, world: World, cost_ns: int, per_second: float | None) -> None:
        self._world = world
        self._step = cost_ns if per_second is None else max(cost_ns, round(1e9 / per_second))
        self._open: list[Request] = []

    def ask(self, intake: Intake) -> None:
        """A task is restored: each of its senders is asked, now or as soon as it is ready."""
        self._open = [request for request in self._open if request.valid]
        for position, buffer in intake.buffers.items():
            self._open.append(Request(intake, buffer, intake.positions[position], intake.recovery))
            self.sender_ready(buffer.channel.up)

    def sender_ready(self, up: Node) -> None:
        """What a sender owes is asked for, if it was not in this life of it: what was under way when it
        failed has been given up.
        """
        for request in self._open:
            if up.available and request.buffer.channel.up is up and request.asked != up.life:
                request.asked = up.life
                self._send(up, request)

    def _send(self, up: Node, request: Request) -> None:
        kernel, serve = self._world.kernel, partial(self._serve, up, request)
        kernel.at(kernel.now, Rank.REQUEST, lambda: up.enqueue(Rank.REQUEST, serve), up.number)

    def _serve(self, up: Node, request: Request) -> None:
        """The sender's turn: it replays its buffer in order, then an end marker; new tuples follow behind."""
        if not request.valid:
            return
        now, world, buffer = self._world.kernel.now, self._world, request.buffer
        task, recovery = request.intake.task, request.recovery
        kept = buffer.after(request.after)
        end = now
        if kept is not None and kept.seq is not None:
            times = now + self._step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            replay = kept.replace(time=times, seq=-kept.seq, route=np.full(kept.n, recovery, np.int64))
            world.reopen(task, kept)
            up.post(replay, partial(self._leave, request), partial(world.closed_unsent, task))
            up.occupy(end - now)
        world.note(f"{up.name}: replays {kept.n if kept else 0} tuples to {task.name}")

        def finish(mark: Train) -> None:
            buffer.channel.put(mark)
            self._open = [other for other in self._open if other is not request]

        mark = single(end, 0, mark=END_OF_REPLAY, route=recovery, key=buffer.channel.position, seq=0)
        up.post(mark, finish, lambda lost: None)
        up.post_out(now)

    def _leave(self, request: Request, replay: Train) -> None:
        self._world.replayed(request.intake.task, replay)
        request.buffer.channel.put(replay)
