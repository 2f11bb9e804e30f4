"""What faults can hit besides tasks: the machines that a strategy brings along."""

from __future__ import annotations

from collections.abc import Sequence

from tideover.models.runtime.views import BoltView, OutageView


class Machine:
    """A process that is no task: an acker, a driver, an executor in which tasks run.

    ``name``: as ``component`` of a fault says it; ``host``: None if it has none of its own; ``worker`` of
    that host; ``number``: its place in the order in which machines come back at one instant.
    """

    def __init__(self, name: str, host: int | None, replica: int, number: int, worker: int = 0) -> None:
        self.name = name
        self.host = host
        self.worker = worker
        self.replica = replica
        self.number = number

    def tasks(self) -> Sequence[BoltView]:
        """The tasks that fail with it."""
        return ()

    def failed(self, outage: OutageView) -> None:
        """It is killed now."""
        raise NotImplementedError

    def ready(self, outage: OutageView) -> None:
        """Detection and restart of its newest fault are over; when it is back, it tells the supervisor."""
        raise NotImplementedError
