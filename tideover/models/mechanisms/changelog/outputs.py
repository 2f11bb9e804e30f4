"""What a task has put out in the transaction that is open: a failure undoes it."""

from __future__ import annotations

from typing import NamedTuple

from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.train import Ints


class Sent(NamedTuple):
    """How much a task has put out, up to some instant: windows; what left the topology."""

    windows: int
    left: int


class Outputs:
    """Of one task: its windows, what leaves the topology with it, and its channels, where readers see what is
    committed: the data plane withholds the rest.

    Kafka's transactions: KIP-98, and KIP-447 for those of tasks that move.
    """

    def __init__(self, job: Job, task: BoltTask) -> None:
        self._job, self._task, self._plane = job, task, job.plane
        self._windows: list[Effects] = []
        self._left: list[Ints] = []
        self._structs = [wire.c for wire in task.wires.values()]
        for wire in task.wires.values():
            of = job.plane.ffi.new("transactions *")
            job.plane.keep(of)
            wire.c.transactions = of
            wire.down.c.bounded |= job.plane.lib.ISOLATES
        if task.state is None and task.component.ends_roots:
            task.log_all(sent=False)

    def window(self, parts: list[Effects]) -> None:
        """A window of these tuples was put out."""
        self._windows += parts

    def leave(self, uid: Ints) -> None:
        """Tuples have left the topology."""
        self._left.append(uid)

    def now(self) -> Sent:
        """What a commit of this instant would commit."""
        self._task.catch_up()
        self._plane.lib.plane_prepare(self._plane.p, self._task.number)
        return Sent(len(self._windows), len(self._left))

    def commit(self, sent: Sent) -> None:
        """So much is there for its readers."""
        del self._windows[: sent.windows]
        del self._left[: sent.left]
        self._plane.have_messages(len(self._structs))
        self._plane.lib.plane_commit(self._plane.p, self._task.number, self._job.kernel.now)

    def abort(self, newest: int, outage: int) -> None:
        """The transaction that is open is aborted; ``newest``: number of the newest window before it."""
        task, say, plane = self._task, self._job.say, self._plane
        task.catch_up()
        for uid in (*(parts.uid for parts in self._windows), *self._left):
            if task.component.anchored and len(uid):
                say.void(task.component, uid, task.replica)
        self._windows, self._left = [], []
        task.windows.reopen(newest)
        plane.have_rows(plane.p.lost, sum(int(c.transactions.withheld.n) for c in self._structs))
        plane.lib.plane_abort(plane.p, task.number, self._job.kernel.now, outage)
        self._job.tell_of_losses()
