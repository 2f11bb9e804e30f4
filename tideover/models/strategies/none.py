"""Amnesia: restart with empty state, replay nothing."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.mechanisms import offsets
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, Promise, Protocol, Strategy


@STRATEGIES.register("none")
class Amnesia(Strategy):
    """No recovery at all: the baseline. What it loses is what the others save.

    >>> Amnesia().promise
    'at most once'
    """

    promise: ClassVar[Promise] = "at most once"
    windows: ClassVar[frozenset[str]] = frozenset(
        {"sliding", "event", "session", "arrival session", "aside", "join"}
    )
    survives: ClassVar[frozenset[str]] = CRASHES

    bounded_queues: ClassVar[bool] = True
    reads_queues: ClassVar[bool] = True
    loses_messages: ClassVar[bool] = True

    def protocol(self, job: Job) -> Protocol:
        offsets.follow(job)
        return Protocol(job)
