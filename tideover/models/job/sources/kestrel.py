"""A queue that gives out what was not confirmed in time once more."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.sources.base import SOURCES, Source
from tideover.sim.units import Duration, S


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
