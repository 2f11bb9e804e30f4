"""What faults can hit besides tasks: the machines that a strategy brings along."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.task import BoltTask


class Machine:
    """A process that is no task: a driver, or an executor, in which tasks run.

    ``name``: as ``component`` of a fault says it; ``host``: None if it has none of its own; ``number``: its
    place in the order in which machines come back at one instant.
    """

    def __init__(self, name: str, host: int | None, replica: int, number: int) -> None:
        self.name = name
        self.host = host
        self.replica = replica
        self.number = number

    def tasks(self) -> list[BoltTask]:
        """The tasks that fail with it."""
        raise NotImplementedError

    def failed(self, outage: Outage) -> None:
        """It is killed now."""
        raise NotImplementedError

    def ready(self, outage: Outage) -> None:
        """Detection and restart of its newest fault are over; when it is back, it tells the supervisor."""
        raise NotImplementedError
