"""Requests for upstream buffers, and their service by the senders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.upstream_buffer import (
    CHANNEL,
    END_OF_REPLAY,
    RECOVERY,
    UpstreamBuffer,
)
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.job import Job
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
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
    served: bool = False
    """Whether the sender has come to the end of the replay, and of what it has put in its line."""

    @property
    def valid(self) -> bool:
        """Whether who asked has not failed since."""
        return self.receiver.recovery == self.recovery

    @property
    def done(self) -> bool:
        """Whether the end of the replay has left its sender, or still waits in its line: a crash there
        destroys what does.
        """
        if not self.served:
            return False
        channel = self.buffer.channel
        waiting = [] if channel.up.line is None else channel.up.line.trains()
        under_way = [*channel.on_the_way, *(train for way, train in waiting if way is channel)]
        return self.receiver.has_come(channel) or any(self._ends(train) for train in under_way)

    def _ends(self, train: Train) -> bool:
        ours = train.column(RECOVERY) == self.recovery
        return bool((ours & (train.column("mark") == END_OF_REPLAY)).any())


class Replays:
    """Every request until its end-of-replay marker has left."""

    def __init__(self, job: Job) -> None:
        self._job = job
        job.context.marks[END_OF_REPLAY] = "end of replay"
        self._open: list[Request] = []

    def ask(self, receiver: Receiver) -> None:
        """A task is restored: each of its senders is asked, now or as soon as it is ready."""
        self._open = [request for request in self._open if request.valid and not request.done]
        for position, buffer in receiver.buffers.items():
            self._open.append(self._new(receiver, buffer, receiver.positions[position]))
            self.sender_ready(buffer.channel.up)

    def _new(self, receiver: Receiver, buffer: UpstreamBuffer, after: int) -> Request:
        return Request(receiver, buffer, after, receiver.recovery)

    def sender_ready(self, up: Node) -> None:
        """What a sender owes is asked for, if it was not in this life of it: what was under way when it
        failed has been given up.
        """
        for request in self._open:
            if up.available and request.buffer.channel.up is up and request.asked != up.life:
                if request.done:
                    continue
                request.asked, request.served = up.life, False
                self._send(up, request)

    def _send(self, up: Node, request: Request) -> None:
        kernel, serve = self._job.kernel, partial(self._serve, up, request)
        self._job.step(request.receiver.task.name, "replay asked for", to=up.name)
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
            times = now + request.receiver.step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            replay = kept.replace(time=times).adding(**{RECOVERY: np.full(kept.n, recovery, np.int64)})
            say.reopened(task, without_markers(kept))
            lost = partial(self._unsent, request)
            up.outbox.post(replay, partial(self._leave, task, buffer.channel), lost, buffer.channel)
            up.occupy(end - now)
        self._job.step(up.name, "buffer replayed", f"{kept.n if kept else 0} tuples", task.name)

        def finish(mark: Train) -> None:
            request.served = True

        columns = {"number": 0, RECOVERY: recovery, CHANNEL: buffer.channel.position}
        mark = single(end, 0, mark=END_OF_REPLAY, **columns)
        up.outbox.post(mark, finish, lambda lost: None, buffer.channel)
        up.outbox.let_out(now)

    def _leave(self, task: BoltTask, channel: Channel, replay: Train) -> None:
        self._job.say.replayed(task, without_markers(replay), channel)

    def _unsent(self, request: Request, replay: Train) -> None:
        self._job.say.unsent(request.receiver.task, without_markers(replay))
