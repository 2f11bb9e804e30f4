"""The log before a spout: producers append to its partitions, and the spout remembers how far it has read."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from .clock import Rank, control
from .layout import Datum

if TYPE_CHECKING:
    from .spouts import SpoutTask


class Log:
    """Of one spout task: its partitions' records, one after the other as they were appended."""

    def __init__(self, spout: SpoutTask) -> None:
        self.spout = spout
        config = spout.world.layout.config[spout.component]
        self.source, self.arrivals = config.source, config.arrivals
        count = self.source.partitions or config.parallelism
        self.heap: list[tuple[int, int, int]] = []  # time of the next record, partition, its number there
        for partition in range(spout.index, count, config.parallelism):
            start = self.arrivals.offset(self._name(partition), spout.world.layout.draws)
            self._produce(partition, start, 0)
        self.times: list[int] = []  # when each record was appended
        self.position = 0  # the next new one
        self.found: int | None = None  # the one that is read next, if some before it were deleted
        self.committed = 0
        self.again: deque[Datum] = deque()  # read before, and to be read once more
        self.since = 0  # when what is to be emitted again was put there
        self.attempts: dict[int, int] = {}  # by root, the last one

    def _name(self, partition: int) -> str:
        return f"{self.spout.component}.partition.{partition}"

    def _produce(self, partition: int, last: int, number: int) -> None:
        draws = self.spout.world.layout.draws
        times = self.arrivals.next_calls(self._name(partition), draws, last, number, 1)
        if len(times):
            heapq.heappush(self.heap, (int(times[0]), partition, number))

    def appended(self, number: int) -> int | None:
        """When the record of that number is appended; None: never."""
        if self.root(number) is None:
            return None
        while len(self.times) <= number and self.heap:
            time, partition, count = heapq.heappop(self.heap)
            self.times.append(time)
            self._produce(partition, time, count + 1)
        return self.times[number] if number < len(self.times) else None

    def root(self, number: int) -> Datum | None:
        """What the record of that number holds."""
        return self.spout.world.layout.root(self.spout.component, self.spout.index, number)

    def deleted(self, number: int, now: int) -> bool:
        """Whether a record is too old."""
        time, most = self.appended(number), self.source.retention
        return time is not None and most is not None and now - time > most

    # -- reading -------------------------------------------------------------------------------------------

    def next_read(self, since: int, retries: bool) -> int | None:
        """When the spout, which is free since then, has read something more; None: there is nothing more."""
        begins = [max(since, self.since)] if retries or self.again else []
        number = self.position
        while self.deleted(number, since):
            number += 1
        self.found = number
        appended = self.appended(number)
        if appended is not None:
            begins.append(max(since, appended))
        return min(begins) + self.source.poll_cost if begins else None

    def read(self) -> Datum | None:
        """The next new record; those that were deleted before it are lost."""
        assert self.found is not None
        for number in range(self.position, self.found):
            gone = self.root(number)
            assert gone is not None
            self.spout.world.ledger.emitted(gone)
        self.position = self.found + 1
        return self.root(self.found)

    def read_again(self) -> Datum | None:
        """The next record that was read before."""
        if not self.again:
            return None
        datum = self.again.popleft()
        self.spout.world.ledger.replayed.add(datum.root)
        return datum

    # -- offsets -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Commit from time to time."""
        self._commit_at(self.source.commit_interval)

    def _commit_at(self, time: int) -> None:
        def commit() -> None:
            if not self.spout.down:
                needed = self.spout.world.protocol.unconfirmed(self.spout)
                needed |= {datum.root for datum in self.again}
                bits = self.spout.world.layout.spout_bits
                self.committed = min((root >> bits for root in needed), default=self.position)
            self._commit_at(time + self.source.commit_interval)

        self.spout.world.clock.at(time, control(Rank.TRIM, self.spout.rank), commit)

    def kept(self) -> set[int]:
        """Roots that can be read again."""
        roots = [self.root(number) for number in range(self.committed, self.position)]
        return {datum.root for datum in roots if datum is not None}

    def emitted(self, datum: Datum) -> None:
        """The spout has emitted a root of it."""
        self.attempts[datum.root] = datum.attempt

    def crashed(self, unconfirmed: set[int], waiting: set[int]) -> None:
        """The spout has, with what it had not confirmed, some of which was waiting to be emitted again: what
        was to be read once more is forgotten.
        """
        for datum in self.again:
            self.spout.world.record.gone(datum)
        self.again.clear()

    def go_back(self) -> None:
        """Read on from the committed offset."""
        now = self.since = self.spout.world.clock.now
        for number in range(self.committed, self.position):
            if not self.deleted(number, now):
                datum = self._next_attempt(number)
                self.again.append(datum)
                self.spout.world.record.there(datum)

    def _next_attempt(self, number: int) -> Datum:
        """A record that is to be emitted once more."""
        datum = self.root(number)
        assert datum is not None
        return datum._replace(attempt=self.attempts.get(datum.root, 0) + 1)
