"""Amnesia: restart with empty state, replay nothing.

A task that is back goes on with an empty state; nothing is sent again (tests/models/test_exactness.py). A
spout that reads from Kafka reads again from the committed offset (tests/models/test_sources.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.mechanisms.buffers import Shared
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import CRASHES, STRATEGIES, Protocol, Strategy


@STRATEGIES.register("none")
class Amnesia(Strategy):
    """No recovery at all: the baseline. What it loses is what the others save."""

    promise = "at most once"
    not_in_hybrid = None
    windows = frozenset({"sliding", "event", "session", "arrival session", "aside", "join"})
    survives = CRASHES

    bounded_queues = True
    reads_queues = True
    loses_messages = True

    def member(self, job: Job, tasks: Sequence[BoltView], shared: Shared) -> Protocol:
        return Restart(job, shared)


class Restart(Protocol):
    """The protocol: whoever is back goes on, with nothing."""

    def __init__(self, job: Job, shared: Shared) -> None:
        super().__init__(job)
        self.shared = shared

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        super().ready(task, outage)
        self.shared.back(task)
