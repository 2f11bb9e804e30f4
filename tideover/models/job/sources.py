"""The queue outside the topology that a spout reads. One class a kind."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.sim.registry import Part, Registry
from tideover.sim.units import Duration, S

# The queue outside the topology that a spout reads: it takes what producers send whatever the spout does.

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
        Duration | None,
        Field(gt=0, description="age from which records are deleted; default: they are kept"),
    ] = None


# A partitioned log whose readers commit how far they have come.


@SOURCES.register("kafka")
class Kafka(Source):
    """Records stay in the log when they are read; a spout that comes back goes on from its committed offset.

    J. Kreps, N. Narkhede, J. Rao, *Kafka: a Distributed Messaging System for Log Processing*, NetDB 2011.
    """

    commit_interval: Annotated[
        Duration, Field(gt=0, description="distance of the moments at which a spout commits its offset")
    ] = 5_000_000_000


# A queue that gives out what was not confirmed in time once more.


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
