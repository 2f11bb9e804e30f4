"""Strategies, as typed objects: how a pipeline survives failure."""

from tideover.models.strategies import (
    active_replication,
    aligned_snapshots,
    batch_rerun,
    estorm,
    micro_batch,
    none,
    rsm,
    source_replay,
    storm_checkpoint,
    trident,
)
from tideover.parts.typed import typed

ActiveReplication = typed(active_replication.ActiveReplication)
AlignedSnapshots = typed(aligned_snapshots.AlignedSnapshots)
BatchRerun = typed(batch_rerun.BatchRerun)
EStorm = typed(estorm.EStorm)
MicroBatch = typed(micro_batch.MicroBatch)
Amnesia = typed(none.Amnesia)
StateManagement = typed(rsm.StateManagement)
SourceReplay = typed(source_replay.SourceReplay)
StormCheckpoint = typed(storm_checkpoint.StormCheckpoint)
Trident = typed(trident.Trident)
