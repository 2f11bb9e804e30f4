"""Where state is saved: stores, what a `state` adds to what they get of a task, and what is at hand of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.sim.draws import Purpose, below
from tideover.sim.registry import kind_of

from .channels import transfer
from .clock import Part

if TYPE_CHECKING:
    from .layout import Datum, Layout
    from .program import World
    from .tasks import Task


SECOND = 1_000_000_000


class Store(Part):
    """One request after the other. ``name``: None: that of the scenario, or that its strategy names."""

    def __init__(self, world: World, name: str | None = None) -> None:
        super().__init__(world)
        self.name = name or getattr(world.layout.scenario.strategy, "store", None)
        self.free: dict[int, int] = {}  # by host
        self.bytes = 0

    def request(self, size: int, host: int, write: bool, operations: int = 1) -> int:
        """Queue a request of a task on ``host`` now; when it ends."""
        scenario = self.layout.scenario
        if self.name is None:
            return self._queue(size, 0, scenario.store.latency + transfer(size, scenario.store.bandwidth))
        config: Any = scenario.stores[self.name]
        work = transfer(size, config.bandwidth)
        if kind_of(config) == "redis":
            return (
                self._queue(size, 0, work + round(operations * SECOND / config.operations)) + config.latency
            )
        hosts = 1 + max(self.layout.host.values())
        copies = config.replication if kind_of(config) == "dfs" and write else 1
        places = {(host + i) % hosts for i in range(copies)}
        return max(self._queue(size, place, config.latency + work) for place in places)

    def keep(self, work: int, host: int) -> int:
        """A task on ``host`` keeps it for so long; until when."""
        config = self.layout.scenario.stores.get(self.name)
        one = config is None or kind_of(config) == "redis"
        return self._queue(0, 0 if one else host % (1 + max(self.layout.host.values())), work)

    def _queue(self, size: int, host: int, work: int) -> int:
        self.bytes += size
        self.free[host] = max(self.now, self.free.get(host, 0)) + work
        return self.free[host]


@dataclass
class Shelf:
    """Of one task."""

    entries: int = 0
    entry_size: int = 0
    incremental: bool = False
    accesses: int = 0
    tuples: int = 0  # that the task has served
    base: int | None = None  # of them when it was as it is in the store; None: nothing is there

    @classmethod
    def of(cls, world: World, task: Task) -> Shelf:
        """As the scenario says."""
        state = world.layout.config[task.component].state
        if state is None:
            return cls()
        return cls(state.entries, state.entry_size, getattr(state, "incremental", False), state.accesses)

    def changed(self) -> int:
        """Entries that go into a snapshot taken now."""
        if self.base is None or not self.incremental:
            return self.entries
        return self.changed_by(self.tuples - self.base)

    def changed_by(self, tuples: int) -> int:
        """Entries that so many tuples change."""
        if not self.entries:
            return 0
        untouched = Fraction(self.entries - 1, self.entries) ** (tuples * self.accesses)
        return round(self.entries * (1 - untouched))

    def size(self, own: int, entry_size: int, shelved: int) -> int:
        """Bytes of so many entries of the task's own, and of these."""
        return own * entry_size + shelved * self.entry_size

    def stored(self) -> int:
        """Entries that are there to be read."""
        return 0 if self.base is None else self.entries

    def restored(self) -> None:
        """As in the store again."""
        if self.base is not None:
            self.base = self.tuples


@dataclass
class AtHand:
    """The entries of one task's state that need not be looked up."""

    fresh: set[int] = field(default_factory=set)  # changed since the last prepare
    prepared: set[int] = field(default_factory=set)  # in the transaction that is not committed yet
    accesses: Iterator[bool] = field(
        default_factory=lambda: iter(())
    )  # of the tuple in service, those to come: not at hand?

    asks: bool = False  # when it has done what it does now it is at the store

    def begin(self, layout: Layout, component: str, datum: Datum) -> None:
        """A tuple is given service."""
        state = layout.config[component].state
        index = datum.uid * state.accesses + np.arange(state.accesses, dtype=np.int64)
        bits = layout.draws.bits(component, Purpose.ACCESS, index)
        missing = []
        for entry in below(bits, state.entries).tolist():
            missing.append(entry not in self.fresh and entry not in self.prepared)
            self.fresh.add(entry)
        self.accesses = iter(missing)

    def prepare(self) -> int:
        """Returns how many entries are in the transaction that begins."""
        self.prepared, self.fresh = self.fresh, set()
        return len(self.prepared)

    def commit(self) -> None:
        """What is in it is at hand no more."""
        self.prepared = set()

    def forget(self) -> None:
        """Nothing is at hand."""
        self.fresh, self.prepared = set(), set()
