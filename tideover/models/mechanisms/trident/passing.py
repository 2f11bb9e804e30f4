"""How parts of transactions come out of the data plane, and into it again.

All bolt tasks are closed: what comes is held, until it is taken. A task is open while a part passes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.wire import Wire
from tideover.sim.plane.plane import CHANNEL, ROW, Plane
from tideover.sim.train import Train

COLUMNS = ("uid", "created", "value", "key", "attempt", "epoch", "mark")


def held(task: BoltTask) -> int:
    """How much of what has come to a task nobody has taken."""
    return int(task.c.held.n)


def take(plane: Plane, task: BoltTask) -> Iterator[tuple[Wire, Train]]:
    """That, by channel, in order of arrival."""
    rows = task.gate.take_away() if held(task) else np.zeros(0, ROW)
    for source in np.unique(rows["source"]).tolist():
        part = rows[rows["source"] == source]
        train = plane.train(part, task.number).adding(**{CHANNEL: part["source"].astype(np.int64)})
        yield task.inputs[source], train


def work_off(job: Job, task: BoltTask, part: Train) -> None:
    """Let a task work off a part now: what it makes of it is held where it is read."""
    rows = np.zeros(part.n, ROW)
    for name in COLUMNS:
        rows[name] = part.column(name)
    rows["source"] = part.column(CHANNEL)
    task.gate.closed = False
    task.gate.work_off(rows)
    job.kernel.advance()
    task.gate.closed = True
