"""How busy everything is over time: tasks, and what they share (``kind`` and ``name`` of what that is come
from the runtime). The world asks for it; `evaluation.bottleneck` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import Context
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.kernel import Rank

SAMPLES = 100
"""Looks at a run, if nobody says how many."""


def busy_ns(context: Context, task: SpoutTask | BoltTask, now: int) -> float:
    """How long a task has been busy: it does one thing at a time, with tuples, acks, checkpoints, replays; in
    batches, its part.
    """
    runner = context.runner
    since = runner.busy_since(task) if runner is not None and isinstance(task, BoltTask) else None
    return task.busy.until(now) + (0 if since is None else now - since)


class Usage:
    """Reads at regular moments of a run how long each resource has been busy; nothing else changes by that.

    resources   name, kind and host: all tasks in physical order, then what they share
    times       moments (ns), rising; the first is 0
    busy        for each of them, how long each resource has been busy (ns)
    """

    def __init__(self, job: Job, duration: int, warmup: int, looks: int) -> None:
        shared, context = job.context.resources, job.context
        own: list[tuple[str, str, int | None]] = [(task.name, "task", task.host) for task in job.tasks]
        self.resources = own + [(each.name, each.kind, each.host) for each in shared]
        busy: list[Callable[[int], float]] = [partial(busy_ns, context, task) for task in job.tasks]
        self._readers = busy + [each.busy_ns for each in shared]
        self._kernel = job.kernel
        self.times = [0]
        self.busy: list[list[float]] = [[0] * len(self.resources)]
        moments = {duration * i // looks for i in range(1, looks + 1)} | {warmup}
        self._moments = sorted(moment for moment in moments if 0 < moment <= duration)

    def start(self) -> None:
        for moment in self._moments:
            self._kernel.at(moment, Rank.SAMPLE, partial(self._look, moment))

    def _look(self, now: int) -> None:
        self.times.append(now)
        self.busy.append([busy(now) for busy in self._readers])
