"""The queue outside the topology that a spout reads: it takes what producers send whatever the spout does."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tideover.sim.registry import Part, Registry
from tideover.sim.units import Duration

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
