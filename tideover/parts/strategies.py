"""Strategies, as typed objects: how a pipeline survives failure."""

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
from tideover.parts.typed import typed

ActiveReplication = typed(active_replication.ActiveReplication)
ActiveStandby = typed(active_standby.ActiveStandby)
AlignedSnapshots = typed(aligned_snapshots.AlignedSnapshots)
BatchRerun = typed(batch_rerun.BatchRerun)
ChangelogTopics = typed(changelog.ChangelogTopics)
EStorm = typed(estorm.EStorm)
Hybrid = typed(hybrid.Hybrid)
MicroBatch = typed(micro_batch.MicroBatch)
Amnesia = typed(none.Amnesia)
PassiveStandby = typed(passive_standby.PassiveStandby)
StateManagement = typed(rsm.StateManagement)
SourceReplay = typed(source_replay.SourceReplay)
StormCheckpoint = typed(storm_checkpoint.StormCheckpoint)
Trident = typed(trident.Trident)
UpstreamBackup = typed(upstream_backup.UpstreamBackup)
