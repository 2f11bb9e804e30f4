"""Requests for upstream buffers, and their service by the senders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tideover.models.intake import Intake
from tideover.models.task import BoltTask
from tideover.models.upstream_buffer import END_OF_REPLAY
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
from tideover.sim.server import Node
from tideover.sim.train import Train, single

if TYPE_CHECKING:
    from tideover.models.world import World


class Replays:
    """Every request of a recovering task until its end-of-replay marker has left. ``step``: ns that one
    tuple takes.
    """

    def __init__(self, world: World, step: int) -> None:
        self._world = world
        self._step = step
        self._open: dict[Channel, tuple[BoltTask, Intake, int]] = {}
        """By channel: who asked, and in which of its recoveries."""

    def ask(self, task: BoltTask, intake: Intake, channel: Channel) -> None:
        """Ask the sender for its buffer; if it is down it is asked when it is ready."""
        up, kernel = channel.up, self._world.kernel
        request = self._open[channel] = (task, intake, intake.recovery)

        def come() -> None:
            if up.up and self._open.get(channel) == request:
                up.enqueue(Rank.REQUEST, partial(self._serve, channel, request))

        kernel.at(kernel.now, Rank.REQUEST, come, up.number)

    def sender_ready(self, up: Node) -> None:
        """A sender is up again: what it still owes is asked for anew (its buffer is empty, but the marker
        must come).
        """
        for channel, (task, intake, recovery) in list(self._open.items()):
            if channel.up is up and intake.recovery == recovery:
                self.ask(task, intake, channel)

    def _serve(self, channel: Channel, request: tuple[BoltTask, Intake, int]) -> None:
        """The sender's turn: it replays its buffer in order, then an end marker; new tuples follow behind."""
        task, intake, recovery = request
        up, now = channel.up, self._world.kernel.now
        if intake.recovery != recovery:
            return
        kept = intake.buffers[channel.position].after(intake.positions[channel.position])
        end = now
        if kept is not None and kept.seq is not None:
            times = now + self._step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            replay = kept.replace(time=times, seq=-kept.seq, route=np.full(kept.n, recovery, np.int64))
            self._world.reopen(task, kept)
            up.post(replay, partial(self._send, task, channel), partial(self._world.closed_unsent, task))
            up.occupy(end - now)
        self._world.note(f"{up.name}: replays {kept.n if kept else 0} tuples to {task.name}")

        def finish(mark: Train) -> None:
            channel.put(mark)
            if self._open.get(channel) == request:
                del self._open[channel]

        mark = single(end, 0, mark=END_OF_REPLAY, route=recovery, key=channel.position, seq=0)
        up.post(mark, finish, lambda lost: None)
        up.post_out(now)

    def _send(self, task: BoltTask, channel: Channel, replay: Train) -> None:
        self._world.replayed(task, replay)
        channel.put(replay)
