"""The receiver's side of upstream buffers: each message is let in once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tideover.models.mechanisms.buffers.upstream_buffer import UpstreamBuffer
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.wire import Wire


class Receiver:
    """What one task takes from its buffered channels: the data plane knows how far it is. A replay belongs to
    one recovery of the task.

    step      time that a sender takes for each message that it replays (ns)
    buffers   by the position of the channel among the task's inputs
    recovery  counts recoveries: replays that belong to an earlier one are stale
    """

    def __init__(self, job: Job, task: BoltTask, buffers: Mapping[int, UpstreamBuffer], step: int) -> None:
        self._job = job
        self.task = task
        self.step = step
        self.buffers = buffers
        senders: dict[tuple[str, int], set[int]] = {}
        for position, buffer in buffers.items():
            up = buffer.channel.up
            senders.setdefault((up.component.name, up.index), set()).add(position)
        self._senders = list(senders.values())
        """The channels of each task that sends here: one, or one from each of its replicas."""
        self.recovery = 0
        self._restoring = False

    def _read(self, name: str) -> dict[int, int]:
        return {position: int(getattr(each.c, name)) for position, each in self.buffers.items()}

    def _write(self, name: str, value: Callable[[int], int]) -> None:
        for position, each in self.buffers.items():
            setattr(each.c, name, value(position))

    @property
    def positions(self) -> dict[int, int]:
        """Newest number processed on each channel."""
        return self._read("processed")

    @property
    def recovering(self) -> bool:
        """From a fault until an end-of-replay marker of each sender, of one of its replicas, has been
        processed.
        """
        unfinished = {position for position, each in self._read("unfinished").items() if each}
        return self._restoring or any(channels <= unfinished for channels in self._senders)

    def has_come(self, channel: Wire) -> bool:
        """Whether the replay of a channel has come to its end."""
        return not self.buffers[channel.position].c.waits

    def begin_recovery(self) -> None:
        """A fault: from now on every channel is to be replayed."""
        plane, task = self._job.plane, self.task
        if self.buffers:
            plane.lib.plane_take_in(plane.p, task.number, plane.p.now)
            task.c.bounded |= plane.lib.SCREENS
        self.recovery += 1
        self._restoring = True
        for name, value in (("waits", 1), ("unfinished", 1), ("recovery", self.recovery)):
            self._write(name, lambda _, value=value: value)  # type: ignore[misc]

    def restored(self, positions: Mapping[int, int]) -> None:
        """The state is that of ``positions``: the replay goes on from there."""
        for name in ("processed", "brought"):
            self._write(name, lambda position: positions.get(position, 0))
        self._restoring = False
