"""State in a log-structured merge tree beside the task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tideover.models.job.backends.base import BACKENDS, Backend
from tideover.sim.units import Duration


@BACKENDS.register("rocksdb")
class RocksDB(Backend):
    """An embedded store on the task's host, as Flink's: each access serialises the entry, and may read a
    file.
    """

    access_cost: Annotated[Duration, Field(description="time that one access takes the task")] = 5_000
    incremental: Annotated[
        bool, Field(description="a snapshot writes only the entries that have changed since the last one")
    ] = False

    def to_write(self, tuples: int) -> int:
        """All entries; or, of incremental snapshots, those that the tuples have changed."""
        return self.changed(tuples) if self.incremental else self.entries
