"""The log that spouts of a Trident topology read: a partition for each sender and reader."""

from __future__ import annotations

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.train import Train, join

Partition = tuple[BoltTask, SpoutTask]
"""By who reads it, and whose tuples are in it."""
Content = dict[Partition, Train]
"""What is read, by partition, in their physical order."""


class Partitions:
    """What has arrived, and no attempt that is under way has read."""

    def __init__(self) -> None:
        self._waiting: dict[Partition, list[Train]] = {}
        self.size = 0
        """Rows that wait."""

    def append(self, partition: Partition, train: Train) -> None:
        """Something arrives."""
        self._waiting.setdefault(partition, []).append(train)
        self.size += train.n

    def content(self) -> Content:
        """All that waits."""
        places = sorted(self._waiting, key=lambda place: (place[0].number, place[1].number))
        return {place: join(self._waiting[place]) for place in places}

    def take(self) -> Content:
        """All that waits in partitions that are not away."""
        taken = {place: train for place, train in self.content().items() if not is_away(place)}
        for place, train in taken.items():
            del self._waiting[place]
            self.size -= train.n
        return taken

    def put_back(self, content: Content) -> None:
        """These wait again, ahead of what has come since."""
        for place, train in content.items():
            self._waiting.setdefault(place, []).insert(0, train)
            self.size += train.n


def is_away(partition: Partition) -> bool:
    """Whether nothing can be read there: what keeps it is down."""
    return not partition[1].up
