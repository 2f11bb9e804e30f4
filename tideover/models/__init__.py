"""Stream processing: what runs (job, operators), how it moves (runtime), how it survives (mechanisms and
strategies), what is observed (accounts), what is reported (results).

Importing the room registers its parts, so that scenarios can name them.
"""

from tideover.models import detectors, operators
from tideover.models.job import arrivals, backends, groupings, placements, sources, spouts, stores
from tideover.models.strategies import (
    active_replication,
    aligned_snapshots,
    changelog,
    estorm,
    micro_batch,
    none,
    rsm,
    source_replay,
    storm_checkpoint,
)
from tideover.sim import distributions, faults

__all__ = [
    "active_replication",
    "aligned_snapshots",
    "arrivals",
    "backends",
    "changelog",
    "detectors",
    "distributions",
    "estorm",
    "faults",
    "groupings",
    "micro_batch",
    "none",
    "operators",
    "placements",
    "rsm",
    "source_replay",
    "sources",
    "spouts",
    "stores",
    "storm_checkpoint",
]
