"""What a spout task reads from the queue before it: which record when."""

from __future__ import annotations

import numpy as np

from tideover.models.job.components import SpoutConfig
from tideover.sim.draws import Draws
from tideover.sim.train import Ints

CHUNK = 1_024
"""Records of a partition that are worked out at a time, at least."""
NO_RECORDS: Ints = np.zeros(0, np.int64)


class _Partition:
    """Records of one partition that have been worked out and not been merged with the others'."""

    def __init__(self, config: SpoutConfig, name: str, draws: Draws) -> None:
        self._arrivals, self._name, self._draws = config.arrivals, name, draws
        self._last = config.arrivals.offset(name, draws)
        self._count = 0
        self.waiting = NO_RECORDS
        self.ended = False

    def look_ahead(self, n: int) -> None:
        """Work out the next ones, if none is known."""
        if self.ended or len(self.waiting):
            return
        n = self._arrivals.at_once(n)
        self.waiting = self._arrivals.next_calls(self._name, self._draws, self._last, self._count, n)
        self._count += len(self.waiting)
        self.ended = len(self.waiting) < n
        if len(self.waiting):
            self._last = int(self.waiting[-1])


class Reading:
    """The records of a task's partitions, in the order in which they were appended, and when it takes them.

    A record has the number that it has in this order, from 0; times are in ns.
    """

    def __init__(self, config: SpoutConfig, component: str, task: int, draws: Draws) -> None:
        source = config.source
        assert source is not None
        self.source = source
        self._limit = config.spout.limit
        numbers = range(task, config.processes, config.parallelism)
        self._partitions = [_Partition(config, f"{component}.partition.{p}", draws) for p in numbers]
        self._times = NO_RECORDS
        self._first = 0
        """Number of the first one whose time is kept."""

    def _merge(self, n: int) -> bool:
        """Merge more of the partitions' records; returns whether there were any."""
        for each in self._partitions:
            each.look_ahead(n)
        known = [each.waiting for each in self._partitions]
        open_ends = [int(each.waiting[-1]) for each in self._partitions if not each.ended]
        upto = min(open_ends, default=None)
        cuts = [len(times) if upto is None else int(times.searchsorted(upto, "right")) for times in known]
        merged = np.sort(np.concatenate([times[:cut] for times, cut in zip(known, cuts, strict=True)]))
        for each, cut in zip(self._partitions, cuts, strict=True):
            each.waiting = each.waiting[cut:]
        self._times = np.concatenate([self._times, merged])
        return len(merged) > 0

    def appended(self, first: int, n: int) -> Ints:
        """When n records from number ``first`` on are appended; fewer if there are no more."""
        if self._limit is not None:
            n = max(0, min(n, self._limit - first))
        while len(self._times) < first - self._first + n and self._merge(max(n, CHUNK)):
            pass
        return self._times[first - self._first : first - self._first + n]

    def appended_at(self, numbers: Ints) -> Ints:
        """When these were appended (none of them is forgotten)."""
        return self._times[numbers - self._first]

    def appended_before(self, moment: int) -> int:
        """How many records have been appended at or before ``moment``."""
        while True:
            if (len(self._times) and self._times[-1] > moment) or not self._merge(CHUNK):
                break
        found = self._first + int(self._times.searchsorted(moment, "right"))
        return found if self._limit is None else min(found, self._limit)

    def forget(self, before: int) -> None:
        """Records with a number < ``before`` will not be taken again."""
        self._times = self._times[before - self._first :]
        self._first = before

    def takes(self, since: int, first: int, n: int, again: int) -> tuple[Ints, Ints]:
        """When the task has read the next n records, and their numbers, if it goes on at ``since``; the first
        ``again`` are read once more (number -1), then new ones from number ``first`` on.
        """
        cost = self.source.poll_cost
        repeats = since + cost * np.arange(1, min(n, again) + 1, dtype=np.int64)
        times, numbers = [repeats], [np.full(len(repeats), -1, np.int64)]
        since, n = since + cost * len(repeats), n - len(repeats)
        while n > 0 and len(appended := self.appended(first, n)):
            spacing = cost * np.arange(len(appended), dtype=np.int64)
            begins = np.maximum.accumulate(np.maximum(appended, since) - spacing) + spacing
            there = self._kept(appended, begins)
            times.append(begins[:there] + cost)
            numbers.append(np.arange(first, first + there, dtype=np.int64))
            n -= there
            first += there
            if there < len(appended):
                since = int(begins[there])
                first = self.oldest(first, since)
            elif there:
                since = int(begins[-1]) + cost
        return np.concatenate(times), np.concatenate(numbers)

    def _kept(self, appended: Ints, begins: Ints) -> int:
        """How many of these records, from the first on, are still there when the task begins to read them."""
        retention = self.source.retention
        gone = NO_RECORDS if retention is None else np.flatnonzero(begins - appended > retention)
        return int(gone[0]) if len(gone) else len(appended)

    def oldest(self, first: int, now: int) -> int:
        """The first record from number ``first`` on that is not deleted at ``now``."""
        if self.source.retention is None:
            return first
        while len(appended := self.appended(first, CHUNK)):
            gone = int(appended.searchsorted(now - self.source.retention, "left"))
            first += gone
            if gone < len(appended):
                break
        return first
