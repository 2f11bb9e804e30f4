"""Requests for upstream buffers, and their service by the senders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tideover.models.mechanisms.buffers.receiver import Receiver
from tideover.models.mechanisms.buffers.upstream_buffer import UpstreamBuffer
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.train import Train

END_OF_REPLAY = -1
"""Mark of the message that ends a replay."""
Task = SpoutTask | BoltTask
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
        channel, plane = self.buffer.channel, self.buffer.plane
        comes = plane.lib.plane_end_comes(plane.p, channel.number, self.recovery)
        return self.served and (bool(comes) or self.receiver.has_come(channel))


class Replays:
    """Requests, until who asked fails again: a sender may crash with the end of the replay in its line."""

    def __init__(self, job: Job) -> None:
        self._job = job
        job.context.marks[END_OF_REPLAY] = "end of replay"
        self._open: list[Request] = []

    def ask(self, receiver: Receiver) -> None:
        """A task is restored: each of its senders is asked, now or as soon as it is ready."""
        self._open = [request for request in self._open if request.valid]
        for position, buffer in receiver.buffers.items():
            asked = Request(receiver, buffer, receiver.positions[position], receiver.recovery)
            self._open.append(asked)
            self.sender_ready(buffer.channel.up)

    def sender_ready(self, up: Task) -> None:
        """What a sender owes is asked for, if it was not in this life of it: what was under way when it
        failed has been given up.
        """
        for request in self._open:
            if up.available and request.buffer.channel.up is up and request.asked != up.life:
                if request.done:
                    continue
                request.asked, request.served = up.life, False
                self._send(up, request)

    def _send(self, up: Task, request: Request) -> None:
        kernel, serve = self._job.kernel, partial(self._serve, up, request)
        self._job.step(request.receiver.task.name, "replay asked for", to=up.name)
        kernel.at(kernel.now, Rank.REQUEST, lambda: up.enqueue(Rank.REQUEST, serve), up.number)

    def _serve(self, up: Task, request: Request) -> None:
        """The sender's turn: it replays its buffer in order, then an end marker; new tuples follow behind."""
        if not request.valid:
            return
        asked = [(request.buffer, request.after)]
        n = send_kept(self._job, up, asked, request.recovery, request.receiver.step)
        self._job.step(up.name, "buffer replayed", f"{n} tuples", request.receiver.task.name)
        request.served = True


def send_kept(
    job: Job, up: Task, asked: Sequence[tuple[UpstreamBuffer, int]], recovery: int, step: int
) -> int:
    """What a sender keeps in these buffers, each above a number, leaves again from now on, one message every
    ``step`` (ns), which keeps it occupied; returns how many there are.

    recovery   of the receiver, which is told of the end; 0: nobody is
    """
    plane, now = job.plane, job.kernel.now
    lined_up = sum(buffer.size + 1 for buffer, _ in asked)
    plane.have_chunks(lined_up)
    plane.have_messages(len(asked) if step else lined_up)  # those that leave at once
    numbers = [(buffer.channel.number, after) for buffer, after in asked]
    n = sum(plane.lib.plane_line_up_kept(plane.p, each, after, recovery) for each, after in numbers)
    for receiver, train in _lined_up(job, up):
        job.say.reopened(receiver, train)
    plane.have_rows(plane.p.resent, n)
    up.gave_up = partial(_give_up, job, up)
    plane.lib.plane_replay(plane.p, up.number, now, step)
    if n:
        up.occupy(n * step)
    return n


def _lined_up(job: Job, up: Task) -> Iterator[tuple[BoltTask, Train]]:
    """What a sender is to send again, by receiver."""
    plane = job.plane
    rows = plane.stored(up.c.replay.rows)
    rows = rows[rows["mark"] == 0]
    for number in dict.fromkeys(rows["source"].tolist()):
        yield job.wires[number].down, plane.train(rows[rows["source"] == number])


def _give_up(job: Job, up: Task) -> None:
    """A sender forgets what it was to send again."""
    for receiver, train in _lined_up(job, up):
        job.say.unsent(receiver, train)
    job.plane.lib.plane_give_up(job.plane.p, up.number)
