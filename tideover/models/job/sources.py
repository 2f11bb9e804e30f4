"""The queue outside the topology that a spout reads: it takes what producers send, whatever the spout does.

The rules (tests/models/test_sources.py, test_exact_mechanisms.py; in full queues test_bounded_queues.py):

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
- `retention`: what is older when it would be read is deleted. What was never read counts as emitted, and
  lost.
- The lag is what was appended and not read, at the beginning of each second, after all else of that
  instant.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.sim.registry import Part, Registry
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
