"""Spouts, what is emitted, and sources, the queues outside the topology that they read: a source takes what
producers send, whatever the spout does.

Spouts' tasks ask for content; a kind of one's own is a class here, or in a plug-in. The rules of sources
(tests/models/test_sources.py, test_exact_mechanisms.py; in full queues test_bounded_queues.py):

- Producers append records to partitions whatever the topology does; `arrivals` are those of each partition,
  drawn by its name (`COMPONENT.partition.P`). Task p mod `parallelism` reads partition p. The records of a
  task have one order, that of their append times; the n-th is its root number n.
- A spout reads one record at a time: read = max(appended, free) + `poll_cost`, where it is free from the
  last read, the end of a crash, or when a cap or a full line lets it. What is to be emitted again goes
  first.
- The creation stamp, of a retry too, is the append time; so is what end-to-end latency begins with.
- `kafka`: each `commit_interval` (rank TRIM) a spout that is up commits the first record that it still
  needs: the oldest pending or in its retry queue; without acks the first that it has not emitted. When it
  is ready after a crash, all that it has emitted from there on is in its retry queue, each as the next
  attempt.
- `kestrel`: an item is open from its emission until its root is completed. Each `sweep_interval` (rank
  TRIM) a spout that is up gives up what it emitted last `timeout` ago or longer, in order of that emission;
  behind that what a crash has made it forget. Acks of what was emitted before the crash are ignored.
- What can be read again is not lost. What a queue gives out again after a crash of its spout is emitted
  again because of no fault. Where nobody acks it is a tuple like any other: only a filter drops duplicates.
- `retention`: what is older when it would be read is deleted. So what is older at the end of a run cannot be
  read again, committed or not. What was never read counts as emitted, and lost.
- The lag is what was appended and not read, at the beginning of each second, after all else of that
  instant.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.models.operators.kinds import SENTENCES
from tideover.sim.distributions import Zipf
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints
from tideover.sim.units import Duration, S

SOURCES: Registry[Source] = Registry("source")


class Source(Part):
    """A queue of records before a spout. The spout's ``arrivals`` are those of each partition."""

    kind: ClassVar[str]
    per_tuple: ClassVar[frozenset[str]] = frozenset({"poll_cost"})

    partitions: Annotated[
        int | None,
        Field(ge=1, le=1024, description="how many; task p mod parallelism reads p; default: one a task"),
    ] = None
    poll_cost: Annotated[Duration, Field(gt=0, description="time that the spout takes to read a record")] = (
        10_000
    )
    retention: Annotated[
        Duration | None, Field(gt=0, description="age from which records are deleted; default: they are kept")
    ] = None


@SOURCES.register("kafka")
class Kafka(Source):
    """Records stay in the log when they are read; a spout that comes back goes on from its committed offset.

    J. Kreps, N. Narkhede, J. Rao, *Kafka: a Distributed Messaging System for Log Processing*, NetDB 2011.
    """

    commit_interval: Annotated[
        Duration, Field(gt=0, description="distance of the moments at which a spout commits its offset")
    ] = 5_000_000_000


@SOURCES.register("kestrel")
class Kestrel(Source):
    """An item that was read is gone when its root is done (without acks: when it is emitted); if that takes
    longer than ``timeout``, it is given out again, be the spout alive or not.

    Twitter's Kestrel with its reliable reads (open, confirm, abort), and Storm's spout for it
    (``KestrelThriftSpout``: ``auto_abort_msec``); E-Storm's study has it before its topologies, with 30 s (X.
    Liu et al., *E-Storm: Replication-based State Management in Distributed Stream Processing Systems*, ICPP
    2017).
    """

    timeout: Annotated[
        Duration, Field(gt=0, description="time from which on an item that is not done is given out again")
    ] = 30 * S
    sweep_interval: Annotated[
        Duration, Field(gt=0, description="distance of the moments at which such items are looked for")
    ] = S


SPOUTS: Registry[Spout] = Registry("spout")


class Spout(Part):
    """The content of a spout's tuples: a pure function of the root, so a retry carries what the first attempt
    carried.

    Subclasses give ``content`` and ``key_count``, name their fields in ``emits``, and may end the stream by
    ``limit``.
    """

    kind: ClassVar[str]
    emits: ClassVar[tuple[str, ...]] = ()

    @property
    def key_count(self) -> int:
        raise NotImplementedError

    @property
    def key_names(self) -> tuple[str, ...] | None:
        return None

    def shares(self) -> npt.NDArray[np.float64]:
        """Part of the roots that each key has, in the long run; they add up to 1."""
        return np.full(self.key_count, 1 / self.key_count)

    @property
    def limit(self) -> int | None:
        """How many roots a task emits in all; None: no end."""
        return None

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints | None]:
        """Key and value (None: 1) of each root; ``number`` is the root's number within its task."""
        raise NotImplementedError

    def stamps_of(self, number: Ints) -> Ints | None:
        """When the events of a task's roots with these numbers took place (ns); None: by ``event_delay``."""
        return None


@SPOUTS.register("keys")
class Keys(Spout):
    """One of ``keys`` keys; the i-th most frequent has a weight of i ** -``exponent`` (0: all alike).

    >>> Keys(keys=100).key_count
    100
    """

    emits: ClassVar[tuple[str, ...]] = ("key",)
    keys: Annotated[int, Field(ge=1, le=1 << 22, description="number of different keys")] = 1
    exponent: Annotated[float, Field(ge=0, le=10, description="exponent of Zipf's law; 0: uniform")] = 0.0
    order: Annotated[
        Literal["random", "in_turn"],
        Field(description="drawn, or one key after the other: then tasks are loaded alike"),
    ] = "random"

    @model_validator(mode="after")
    def _one_order(self) -> Keys:
        if self.order == "in_turn" and self.exponent:
            raise ValueError("keys that come in turn come equally often: exponent does not go with order")
        return self

    @property
    def key_count(self) -> int:
        return self.keys

    def shares(self) -> npt.NDArray[np.float64]:
        return Zipf(keys=self.keys, exponent=self.exponent).probabilities

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, None]:
        if self.keys == 1:
            return np.zeros(len(root), np.int64), None
        if self.order == "in_turn":
            return number % self.keys, None
        bits = draws.bits(component, Purpose.CONTENT, root)
        if self.exponent > 0:
            return Zipf(keys=self.keys, exponent=self.exponent).index(bits), None
        return below(bits, self.keys), None


@SPOUTS.register("sentences")
class Sentences(Spout):
    """One of Stableford's five sentences, drawn uniformly (`tideover.models.operators.kinds`).

    >>> Sentences().key_count
    5
    """

    emits: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def key_count(self) -> int:
        return len(SENTENCES)

    @property
    def key_names(self) -> tuple[str, ...]:
        return SENTENCES

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, None]:
        return below(draws.bits(component, Purpose.CONTENT, root), len(SENTENCES)), None


MOST = 2**63 - 1
"""Greatest sum that int64 holds."""
MOST_REPEATED = 10**12
"""Greatest number of those that come again and again: millions of such have a sum that int64 holds."""


@SPOUTS.register("values")
class Values(Spout):
    """The numbers of ``values`` in order, all under one key; ``repeat`` starts again at the end.

    >>> Values(values=(2, 3, 3, 5)).limit
    4
    """

    emits: ClassVar[tuple[str, ...]] = ("key",)
    values: Annotated[
        tuple[int, ...], Field(min_length=1, description="the numbers, in the order of emission")
    ]
    repeat: Annotated[bool, Field(description="start again at the end of the list")] = False
    stamps: Annotated[
        tuple[Duration, ...] | None,
        Field(
            description="when the event of each took place, for windows by event, as in [3 s, 5 s]; "
            "default: by event_delay"
        ),
    ] = None

    @model_validator(mode="after")
    def _as_many(self) -> Values:
        if self.stamps is not None and len(self.stamps) != len(self.values):
            raise ValueError(
                f"there are {len(self.values)} values and {len(self.stamps)} stamps: give as many"
            )
        if self.stamps is not None and self.repeat:
            raise ValueError("stamps are of a list that ends: repeat does not go with them")
        sizes = [abs(value) for value in self.values]
        if sum(sizes) > MOST or (self.repeat and max(sizes) > MOST_REPEATED):
            raise ValueError(
                f"values add up to more than int64 holds: their sum may be {MOST:,}, each "
                f"{MOST_REPEATED:,} with repeat"
            )
        return self

    @property
    def key_count(self) -> int:
        return 1

    @property
    def limit(self) -> int | None:
        return None if self.repeat else len(self.values)

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints]:
        table = np.array(self.values, np.int64)
        return np.zeros(len(root), np.int64), table[number % len(table)]

    def stamps_of(self, number: Ints) -> Ints | None:
        return None if self.stamps is None else np.array(self.stamps, np.int64)[number]
