"""A durable log (Kafka) between the producers and one task that reads from it."""

from __future__ import annotations

from collections import deque

from tideover.sim.train import Train


class SourceLog:
    """What one task has read of its log and may have to read again, in the order in which it was read.

    A position is a number of messages, counted from the beginning. What has not been read yet waits with the
    task (``held``), and is not in here.
    """

    def __init__(self) -> None:
        self.read = 0
        """Position up to which the log has been read."""
        self.start = 0
        """Position from which it is kept."""
        self._trains: deque[Train] = deque()

    @property
    def size(self) -> int:
        """Messages that are kept and have been read."""
        return self.read - self.start

    @property
    def trains(self) -> list[Train]:
        """The messages that are kept and have been read, in order."""
        return list(self._trains)

    def add(self, train: Train) -> None:
        """These messages have been read."""
        if train.n:
            self._trains.append(train)
            self.read += train.n

    def trim(self, position: int) -> None:
        """Messages before ``position`` will not be read again."""
        while self._trains and self.start + self._trains[0].n <= position:
            self.start += self._trains.popleft().n
        if self.start < position:
            self._trains[0] = self._trains[0].pick(slice(position - self.start, None))
            self.start = position

    def rewind(self) -> list[Train]:
        """Go back to the start: returns what will be read once more, in order."""
        again, self._trains = self._trains, deque()
        self.read = self.start
        return list(again)
