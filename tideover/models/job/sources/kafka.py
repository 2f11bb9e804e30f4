"""A partitioned log whose readers commit how far they have come."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.sources.base import SOURCES, Source
from tideover.sim.units import Duration


@SOURCES.register("kafka")
class Kafka(Source):
    """Records stay in the log when they are read; a spout that comes back goes on from its committed offset.

    J. Kreps, N. Narkhede, J. Rao, *Kafka: a Distributed Messaging System for Log Processing*, NetDB 2011.
    """

    commit_interval: Annotated[
        Duration, Field(gt=0, description="distance of the moments at which a spout commits its offset")
    ] = 5_000_000_000
