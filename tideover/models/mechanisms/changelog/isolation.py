"""Transactions on a channel: its reader sees what was sent when the sender has committed it."""

from __future__ import annotations

import numpy as np

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train, join, single

COMMIT = -3
"""Mark of the message that commits what was sent before; its key says how much."""


class Isolated:
    """One channel whose reader reads committed messages only.

    Messages (end markers too) are numbered by the order in which they were sent, from 0.

    Kafka's transactions: KIP-98, and KIP-447 for those of tasks that move.
    """

    def __init__(self, job: Job, channel: Channel) -> None:
        assert isinstance(channel.down, BoltTask)
        self._job, self._channel, self._down = job, channel, channel.down
        self._commits = 0
        self._covered = 0
        """Messages before this number are committed, or aborted."""
        self._come = 0
        self._waiting: list[tuple[Ints, Train]] = []
        """Messages that have come and are not committed, with their numbers."""
        self._aborted: list[tuple[int, int, int]] = []
        """From which number to which (the latter not included), and by which outage."""

    # -- the sender's side -----------------------------------------------------------------------------------

    @property
    def sent(self) -> int:
        """How many messages were sent up to now."""
        return self._channel.messages - self._commits

    def commit(self, up_to: int) -> None:
        """Messages before this number are committed: say so behind them."""
        self._covered = up_to
        self._commits += 1
        self._channel.send(single(self._job.kernel.now, 0, mark=COMMIT, key=up_to))

    def abort(self, outage: int) -> None:
        """What is not committed will never be: what has come is destroyed, what is on its way when it
        comes.
        """
        if self.sent > self._covered:
            self._aborted.append((self._covered, self.sent, outage))
        keep = [(numbers, numbers < self._covered, train) for numbers, train in self._waiting]
        lost = [train.pick(~mine) for _, mine, train in keep if not mine.all()]
        self._waiting = [(n[mine], train.pick(mine)) for n, mine, train in keep if mine.any()]
        self._covered = self.sent
        self._job.context.destroy(self._down, lost, outage=outage)

    # -- the reader's side -----------------------------------------------------------------------------------

    def receive(self, train: Train) -> Train:
        """Messages come: what of them, and of those that have waited, may be read now."""
        ends = () if train.mark is None else np.flatnonzero(train.mark == COMMIT).tolist()
        seen, begin = [train.pick(slice(0, 0))], 0
        for row in ends:
            self._wait(train.pick(slice(begin, row)))
            seen += self._readable(int(train.key[row]), int(train.time[row]))
            begin = row + 1
        self._wait(train.pick(slice(begin, None)))
        return join(seen)

    def _wait(self, train: Train) -> None:
        numbers = np.arange(self._come, self._come + train.n, dtype=np.int64)
        self._come += train.n
        for first, last, outage in self._aborted:
            void = (numbers >= first) & (numbers < last)
            if void.any():
                lost = train.pick(void)
                self._down.tell(self._job.context.destroy, self._down, [lost], True, outage)
                numbers, train = numbers[~void], train.pick(~void)
        if train.n:
            self._waiting.append((numbers, train))

    def _readable(self, up_to: int, moment: int) -> list[Train]:
        """What has come before this number, all of it at this moment (ns)."""
        found = [train.pick(n < up_to).at(moment) for n, train in self._waiting if n[0] < up_to]
        later = [(n[n >= up_to], train.pick(n >= up_to)) for n, train in self._waiting]
        self._waiting = [(numbers, train) for numbers, train in later if train.n]
        return found

    def waiting(self) -> list[Train]:
        """What has come and may not be read yet."""
        return [train for _, train in self._waiting]
