"""State in a store, one operation after the other: each look-up goes there, waits, is served, and comes back.

From docs/semantics.md, as a plain SimPy program of a chain of bolts, without failures: one process a task, an
event for each part of a look-up. Shared with the engine are the configuration, which task a tuple goes to,
and which entries it accesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import simpy


@dataclass
class Marker:
    """Of a transaction: the task that comes to it writes to the store, and then says so."""

    committing: bool
    written: simpy.Event


@dataclass
class Chain:
    """What is simulated; all times in ns.

    tasks      of each level
    service    of a tuple, besides its accesses
    entry      (level, root, i) -> the entry that its i-th access goes to
    target     (level, root) -> the task that it goes to
    interval   of the transactions; None: there are none
    per_entry  time that a write keeps the store for each entry
    """

    levels: int
    tasks: int
    service: int
    accesses: int
    access_cost: int
    round_trip: int
    work: int
    entry: Any
    target: Any
    until: int
    interval: int | None = None
    per_entry: int = 0
    env: simpy.Environment = field(default_factory=simpy.Environment)
    done: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(level, root, arrival, departure)."""
    asked: int = 0
    """Operations of look-ups."""

    def play(self, emitted: list[tuple[int, int]]) -> None:
        """``emitted``: (time, root), in order of time."""
        self.redis = simpy.Resource(self.env)
        self.queues = [[simpy.Store(self.env) for _ in range(self.tasks)] for _ in range(self.levels)]
        for level in range(self.levels):
            for task in range(self.tasks):
                self.env.process(self._task(level, task))
        self.env.process(self._spout(emitted))
        if self.interval is not None:
            self.env.process(self._transactions(self.interval))
        self.env.run(self.until + 1)

    def _spout(self, emitted: list[tuple[int, int]]) -> Iterator[simpy.Event]:
        for time, root in emitted:
            yield self.env.timeout(time - self.env.now)
            self._send(0, root)

    def _send(self, level: int, root: int) -> None:
        if level < self.levels:
            self.queues[level][self.target(level, root)].put((root, int(self.env.now)))

    def _keeps_store(self, time: int) -> Iterator[simpy.Event]:
        with self.redis.request() as turn:
            yield turn
            yield self.env.timeout(time)

    def _task(self, level: int, task: int) -> Iterator[simpy.Event]:
        fresh: set[int] = set()  # changed since the last prepare
        prepared: set[int] = set()  # in the transaction that is not committed yet
        while True:
            item = yield self.queues[level][task].get()
            if isinstance(item, Marker):
                if item.committing:
                    entries, prepared = len(prepared), set()
                else:
                    entries, prepared, fresh = len(fresh), fresh, set()
                yield from self._keeps_store(max(1, entries) * self.per_entry)
                item.written.succeed()
                continue
            root, came = item
            missing = []
            for i in range(self.accesses):
                entry = self.entry(level, root, i)
                missing.append(entry not in fresh and entry not in prepared)
                fresh.add(entry)
            yield self.env.timeout(self.service)
            yield from self._accesses(missing)
            self.done.append((level, root, came, int(self.env.now)))
            self._send(level + 1, root)

    def _accesses(self, missing: list[bool]) -> Iterator[simpy.Event]:
        there = (self.round_trip - self.work) // 2
        for missed in missing:
            yield self.env.timeout(self.access_cost)
            if missed:
                self.asked += 1
                yield self.env.timeout(there)
                yield from self._keeps_store(self.work)
                yield self.env.timeout(self.round_trip - self.work - there)

    def _transactions(self, interval: int) -> Iterator[simpy.Event]:
        """A marker goes into all queues of a level; when all have written, into those of the next one."""
        begin = 0
        while True:
            yield self.env.timeout(max(0, begin + interval - self.env.now))
            begin = int(self.env.now)
            for committing in (False, True):
                for queues in self.queues:
                    markers = [Marker(committing, self.env.event()) for _ in queues]
                    for queue, marker in zip(queues, markers, strict=True):
                        queue.put(marker)
                    yield self.env.all_of([marker.written for marker in markers])
