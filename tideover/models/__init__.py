"""Stream processing: what runs (job, operators), how it moves (runtime), how it survives (mechanisms and
strategies), what is observed (accounts), what is reported (results).

Importing the room registers its parts, so that scenarios can name them.
"""

from tideover.models import detectors, operators  # noqa: F401
from tideover.models.job import arrivals, groupings, placements, sinks, sources, spouts, stores  # noqa: F401
from tideover.models.strategies import (  # noqa: F401
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
from tideover.sim import distributions, faults  # noqa: F401
