"""Strategies, as typed objects: how a pipeline survives failure."""

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
from tideover.parts.typed import typed

ActiveReplication = typed(active_replication.ActiveReplication)
AlignedSnapshots = typed(aligned_snapshots.AlignedSnapshots)
ChangelogTopics = typed(changelog.ChangelogTopics)
EStorm = typed(estorm.EStorm)
MicroBatch = typed(micro_batch.MicroBatch)
Amnesia = typed(none.Amnesia)
StateManagement = typed(rsm.StateManagement)
SourceReplay = typed(source_replay.SourceReplay)
StormCheckpoint = typed(storm_checkpoint.StormCheckpoint)
