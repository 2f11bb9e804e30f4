"""Stream processing: topology, operators, groupings, windows, acker, buffers, replicas, checkpoints.

Importing the room registers its parts, so that scenarios can name them.
"""

from tideover.models import arrivals, bolts, groupings, spouts
from tideover.models.strategies import (
    active_replication,
    aligned_snapshots,
    micro_batch,
    none,
    rsm,
    source_replay,
)
from tideover.sim import distributions, faults

__all__ = [
    "active_replication",
    "aligned_snapshots",
    "arrivals",
    "bolts",
    "distributions",
    "faults",
    "groupings",
    "micro_batch",
    "none",
    "rsm",
    "source_replay",
    "spouts",
]
