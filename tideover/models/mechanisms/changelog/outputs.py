"""What a task has put out in the transaction that is open: a failure undoes it."""

from __future__ import annotations

from typing import NamedTuple

from tideover.models.mechanisms.changelog.isolation import Isolated
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.train import Ints


class Sent(NamedTuple):
    """How much a task has sent and put out, up to some instant: by channel; windows; what left the
    topology.
    """

    messages: list[int]
    windows: int
    left: int


class Outputs:
    """Of one task: its channels, its windows, and what leaves the topology with it."""

    def __init__(self, job: Job, task: BoltTask, channels: list[Isolated]) -> None:
        self._job, self._task, self._channels = job, task, channels
        self._windows: list[Effects] = []
        self._left: list[Ints] = []

    def window(self, parts: list[Effects]) -> None:
        """A window of these tuples was put out."""
        self._windows += parts

    def leave(self, uid: Ints) -> None:
        """Tuples have left the topology."""
        self._left.append(uid)

    def now(self) -> Sent:
        """What a commit of this instant would commit."""
        return Sent([channel.sent for channel in self._channels], len(self._windows), len(self._left))

    def commit(self, sent: Sent) -> None:
        """So much is there for its readers."""
        del self._windows[: sent.windows]
        del self._left[: sent.left]
        for channel, up_to in zip(self._channels, sent.messages, strict=True):
            channel.commit(up_to)

    def abort(self, newest: int, outage: int) -> None:
        """The transaction that is open is aborted; ``newest``: number of the newest window before it."""
        task, say = self._task, self._job.say
        for uid in (*(parts.uid for parts in self._windows), *self._left):
            if task.component.anchored and len(uid):
                say.void(task.component, uid, task.replica)
        self._windows, self._left = [], []
        task.windows.reopen(newest)
        for channel in self._channels:
            channel.abort(outage)
