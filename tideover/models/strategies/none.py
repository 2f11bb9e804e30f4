"""Amnesia: restart with empty state, replay nothing.

A task that is back goes on with an empty state; nothing is sent again (tests/models/test_exactness.py). A
spout that reads from Kafka reads again from the committed offset (tests/models/test_sources.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tideover.models.mechanisms.shared import Shared
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import CRASHES, STRATEGIES, Promise, Protocol, Strategy


@STRATEGIES.register("none")
class Amnesia(Strategy):
    """No recovery at all: the baseline. What it loses is what the others save.

    >>> Amnesia().promise
    'at most once'
    """

    promise: ClassVar[Promise] = "at most once"
    alone: ClassVar[str | None] = None
    windows: ClassVar[frozenset[str]] = frozenset(
        {"sliding", "event", "session", "arrival session", "aside", "join"}
    )
    survives: ClassVar[frozenset[str]] = CRASHES

    bounded_queues: ClassVar[bool] = True
    reads_queues: ClassVar[bool] = True
    loses_messages: ClassVar[bool] = True

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
