"""Requests for upstream buffers, and their service by the senders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.upstream_buffer import END_OF_REPLAY, RECOVERY, UpstreamBuffer
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.kernel import Rank
from tideover.sim.node import Node
from tideover.sim.train import Train, single

NEVER = -1


@dataclass(eq=False)
class Request:
    """Send again what is in ``buffer`` above number ``after``."""

    receiver: Receiver
    buffer: UpstreamBuffer
    after: int
    recovery: int
    asked: int = NEVER
    """The sender's life in which it was asked."""

    @property
    def valid(self) -> bool:
        """Whether who asked has not failed since."""
        return self.receiver.recovery == self.recovery


class Replays:
    """Every request until its end-of-replay marker has left.

    cost_ns, per_second   time that one tuple takes; most tuples a second (None: no limit)
    """

    def __init__(self, job: Job, cost_ns: int, per_second: float | None) -> None:
        self._job = job
        self._step = cost_ns if per_second is None else max(cost_ns, round(1e9 / per_second))
        self._open: list[Request] = []

    def ask(self, receiver: Receiver) -> None:
        """A task is restored: each of its senders is asked, now or as soon as it is ready."""
        self._open = [request for request in self._open if request.valid]
        for position, buffer in receiver.buffers.items():
            self._open.append(Request(receiver, buffer, receiver.positions[position], receiver.recovery))
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
        kernel, serve = self._job.kernel, partial(self._serve, up, request)
        kernel.at(kernel.now, Rank.REQUEST, lambda: up.enqueue(Rank.REQUEST, serve), up.number)

    def _serve(self, up: Node, request: Request) -> None:
        """The sender's turn: it replays its buffer in order, then an end marker; new tuples follow behind."""
        if not request.valid:
            return
        now, say, buffer = self._job.kernel.now, self._job.say, request.buffer
        task, recovery = request.receiver.task, request.recovery
        kept = buffer.after(request.after)
        end = now
        if kept is not None:
            times = now + self._step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            replay = kept.replace(time=times).adding(**{RECOVERY: np.full(kept.n, recovery, np.int64)})
            say.reopened(task, without_markers(kept))
            lost = partial(self._unsent, request)
            up.outbox.post(replay, partial(self._leave, request), lost)
            up.occupy(end - now)
        say.note(now, f"{up.name}: replays {kept.n if kept else 0} tuples to {task.name}")

        def finish(mark: Train) -> None:
            buffer.channel.put(mark)
            self._open = [other for other in self._open if other is not request]

        mark = single(end, 0, mark=END_OF_REPLAY, number=0, recovery=recovery)
        up.outbox.post(mark, finish, lambda lost: None)
        up.outbox.let_out(now)

    def _leave(self, request: Request, replay: Train) -> None:
        self._job.say.replayed(request.receiver.task, without_markers(replay))
        request.buffer.channel.put(replay)

    def _unsent(self, request: Request, replay: Train) -> None:
        self._job.say.unsent(request.receiver.task, without_markers(replay))
