"""What a sweep keeps of a run."""

from __future__ import annotations

import pyarrow as pa

from tideover.models.simulation import Replication
from tideover.scenarios.sweeps import rows


def as_kept(one: Replication) -> Replication:
    """The replication that comes back from the columns that a dataset has of it."""
    row = rows.lists_of(one, timeline=True) | {"detail": rows.detail(one)}
    kinds = rows.schema({})
    table = pa.Table.from_pylist([row], pa.schema([kinds.field(name) for name in row]))
    return rows.replication_of(table.to_pylist()[0])
