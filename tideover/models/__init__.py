"""Stream processing: what runs (job, operators), how it moves (runtime), how it survives (mechanisms and
strategies), what is observed (accounts), what is reported (results).

Importing the room registers its parts, so that scenarios can name them.
"""

from tideover.models import detectors, operators
from tideover.models.job import arrivals, groupings, placements, sinks, sources, spouts, stores
from tideover.models.strategies import (
    active_replication,
    active_standby,
    aligned_snapshots,
    batch_rerun,
    changelog,
    estorm,
    hybrid,
    micro_batch,
    none,
    passive_standby,
    rsm,
    source_replay,
    storm_checkpoint,
    trident,
    upstream_backup,
)
from tideover.sim import distributions, faults

__all__ = [
    "active_replication",
    "active_standby",
    "aligned_snapshots",
    "arrivals",
    "backends",
    "batch_rerun",
    "changelog",
    "detectors",
    "distributions",
    "estorm",
    "faults",
    "groupings",
    "hybrid",
    "micro_batch",
    "none",
    "operators",
    "passive_standby",
    "placements",
    "rsm",
    "sinks",
    "source_replay",
    "sources",
    "spouts",
    "stores",
    "storm_checkpoint",
    "trident",
    "upstream_backup",
]
