# Made by `python tests/parts_stubs.py`; change the classes instead.

from collections.abc import Mapping, Sequence
from typing import Literal

from tideover.models.job.sinks import Sink
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
from tideover.models.strategies.base import Strategy
from tideover.parts.typed import Bandwidth, Duration, Rate, Size

class ActiveReplication(active_replication.ActiveReplication):
    """Exactly once with up to k hosts of a replica set down, without acks, heartbeats or recovery; markers
    must end windows.

    E. Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley
    EECS-2015-134, section 3.

    k: hosts of a replica set that may be down; k + 1 replicas
    components: bolts that are replicated; all if not given
    copy_time: time for a replica that comes back to begin its copy
    copy_bandwidth: speed at which state is copied; unlimited if not given
    entry_size: bytes of an entry of the state that is copied
    """

    def __init__(
        self,
        *,
        k: int = 1,
        components: Sequence[str] | None = None,
        copy_time: Duration = "0 s",
        copy_bandwidth: Bandwidth | None = None,
        entry_size: Size = "64 B",
    ) -> None: ...

class ActiveStandby(active_standby.ActiveStandby):
    """Exactly once: a secondary processes everything, too, and keeps its output in queues that acks from
    downstream trim. As soon as the failure of the primary is noticed it sends what is in them, receivers drop
    what they have had, and another secondary copies its state. Markers must end windows.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.3; M. A. Shah et al., *Highly Available, Fault-Tolerant, Parallel Dataflows*, SIGMOD 2004 (Flux).

    ack_interval: time after which a task tells its senders what it has had
    ack_size: bytes of such a message on the network
    replay_cost: time to send a tuple from the queue of a secondary that takes over
    copy_time: time for a new secondary to begin its copy
    copy_bandwidth: speed at which state is copied; unlimited if not given
    entry_size: bytes of an entry of the state that is copied
    """

    def __init__(
        self,
        *,
        ack_interval: Duration = "1 s",
        ack_size: Size = "64 B",
        replay_cost: Duration = "0 s",
        copy_time: Duration = "0 s",
        copy_bandwidth: Bandwidth | None = None,
        entry_size: Size = "64 B",
    ) -> None: ...

class AlignedSnapshots(aligned_snapshots.AlignedSnapshots):
    """Exactly once: the whole job goes back to its last complete snapshot, and reads its log from there.

    P. Carbone et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015; P. Carbone et
    al., *State Management in Apache Flink*, PVLDB 10(12), 2017, sections 3 and 4.

    checkpoint_interval: distance of two triggers
    checkpoint_phase: first trigger after the start; one interval if not given
    min_pause: least time from the end of a snapshot to the next trigger
    checkpoint_timeout: a snapshot that takes longer is abandoned
    snapshot_time: time that a snapshot keeps a task that has state
    snapshot_cost: the same, for each entry of the state
    upload_time: time until a task's snapshot is durable, after the store has it; it works on
    entry_size: bytes of an entry of the bolt's own in the store
    restore_time: time to restore a task's state that was read
    restore_cost: the same, for each entry of the state
    unaligned: barriers overtake what waits, which is stored with the snapshot
    aligned_timeout: with `unaligned`: so long after its trigger a snapshot stays aligned
    store: the one of `stores` that state is saved in; the key `store` if not given
    sink: how what is put out comes to its readers
    local_recovery: the one of `stores`, on hosts, with a second copy of state for who restarts there
    """

    def __init__(
        self,
        *,
        checkpoint_interval: Duration,
        checkpoint_phase: Duration | None = None,
        min_pause: Duration = "0 s",
        checkpoint_timeout: Duration = "600 s",
        snapshot_time: Duration = "0 s",
        snapshot_cost: Duration = "0 s",
        upload_time: Duration = "0 s",
        entry_size: Size = "64 B",
        restore_time: Duration = "0 s",
        restore_cost: Duration = "0 s",
        unaligned: bool = False,
        aligned_timeout: Duration = "0 s",
        store: str | None = None,
        sink: Sink | str = "direct",
        local_recovery: str | None = None,
    ) -> None: ...

class BatchRerun(batch_rerun.BatchRerun):
    """Exactly once: a job now and then, on all that has come since the one before; if it fails, it is run
    again.

    Its results are there when all of it is done (``output_time``: the committer moves them to where they are
    read). The driver is the application master (before: the job tracker); executors are slots for tasks.

    J. Dean and S. Ghemawat, *MapReduce: Simplified Data Processing on Large Clusters*, OSDI 2004, section
    3.3; Apache Hadoop 3, ``FileOutputCommitter``.

    trigger_interval: distance of two jobs; one that is late is begun at once
    poll_interval: with a trigger_interval of 0 s: how long an idle driver waits
    plan_time: from the trigger until the batch's range is in the offset log
    task_time: time of a task besides its tuples' service
    cores: tasks that an executor (a host) runs at once
    state_time: time of a stateful task to commit its state
    state_cost: the same, for each row of the state
    output_time: from the last task's end until the sink has the results
    commit_time: from then until the batch is in the commit log
    reload_time: time to load a partition's state where it is not, or no more
    reload_cost: the same, for each row of the state
    executor_cold: extra time of a new executor's tasks without state, until one has ended
    state_cold: the same for tasks with state; if they come first, at least executor_cold
    locality_wait: how long a stateful task whose executor is dead waits, from its stage's begin or last
        launch, if others of the stage have theirs (spark.locality.wait)
    resubmit_time: from a failed fetch until the tasks that have to run again are submitted
    recovery_time: time of a restarted driver to read its logs and start the query
    cold_time: extra time of the first batch after a driver's restart
    retry: what is run again after a failure: the whole job; or the tasks that it has hit, and those of which
        others read what is lost (the whole job if it is the driver)
    """

    def __init__(
        self,
        *,
        trigger_interval: Duration = "1 h",
        poll_interval: Duration = "10 ms",
        plan_time: Duration = "0 s",
        task_time: Duration = "0 s",
        cores: int = 1,
        state_time: Duration = "0 s",
        state_cost: Duration = "0 s",
        output_time: Duration = "0 s",
        commit_time: Duration = "0 s",
        reload_time: Duration = "0 s",
        reload_cost: Duration = "0 s",
        executor_cold: Duration = "0 s",
        state_cold: Duration = "0 s",
        locality_wait: Duration = "3 s",
        resubmit_time: Duration = "0.2 s",
        recovery_time: Duration = "0 s",
        cold_time: Duration = "0 s",
        retry: Literal["job", "task"] = "job",
    ) -> None: ...

class ChangelogTopics(changelog.ChangelogTopics):
    """At least once, or exactly once by transactions: a task reads its changelog, then goes on by itself.

    S. A. Noghabi et al., *Samza: Stateful Scalable Stream Processing at LinkedIn*, PVLDB 10(12), 2017,
    sections 4.1 and 4.2; G. Wang et al., *Consistency and Completeness: Rethinking Distributed Stream
    Processing in Apache Kafka*, SIGMOD 2021, sections 3 and 4; KIP-129 and KIP-447 for the transactions.

    guarantee: exactly_once: changes, offsets and outputs are committed in one transaction
    commit_interval: distance of two commits; 30 s if not given, exactly once 100 ms
    commit_time: from when the changes are written until the offsets are committed; it waits
    batch_interval: distance of batches of changes between commits; none if not given
    entry_size: bytes of an entry of the bolt's own in the changelog
    restore_time: time to restore a changelog that was read
    restore_cost: the same, for each entry that is read
    standby_replicas: copies of a task's state that follow its changelog elsewhere
    local_state: a process that comes back on its host finds there what it had committed
    store: the one of `stores` that has the changelogs; the key `store` if not given
    """

    def __init__(
        self,
        *,
        guarantee: Literal["at_least_once", "exactly_once"] = "at_least_once",
        commit_interval: Duration | None = None,
        commit_time: Duration = "0 s",
        batch_interval: Duration | None = None,
        entry_size: Size = "64 B",
        restore_time: Duration = "0 s",
        restore_cost: Duration = "0 s",
        standby_replicas: int = 0,
        local_state: bool = False,
        store: str | None = None,
    ) -> None: ...

class EStorm(estorm.EStorm):
    """At least once: a fleet of shadows keeps the state of each task that has any, and the source replays
    what was in flight.

    X. Liu et al., *E-Storm: Replication-based State Management in Distributed Stream Processing Systems*,
    ICPP 2017, sections III to V.

    ack_cost: time that one ack takes at the bolt
    message_timeout: distance of two rotations
    timeout_buckets: buckets of the spout's rotating map
    timeout_phase: first rotation after the spout's start; random if not given
    acker_buckets: buckets of the acker's rotating map
    acker_host: host of the acker; none: it fails only if it is named
    ack_size: bytes of an ack message
    max_spout_pending: most roots pending per spout task
    members: tasks of a fleet: the one that emits, and its shadows
    store: the station, of `stores`; if not given: the scenario's `store`
    entry_size: bytes of an entry that is written and read
    copy_cost: time that each further copy of a tuple takes a spout, in its calls
    transaction_time: time until a recovery transaction has reached the live members
    load_time: time to take over a state that was read
    load_cost: the same, for each entry
    """

    def __init__(
        self,
        *,
        ack_cost: Duration = "0 s",
        message_timeout: Duration = "30 s",
        timeout_buckets: int = 2,
        timeout_phase: Duration | None = None,
        acker_buckets: int = 3,
        acker_host: int | None = None,
        ack_size: Size = "20 B",
        max_spout_pending: int | None = None,
        members: int = 2,
        store: str | None = None,
        entry_size: Size = "64 B",
        copy_cost: Duration = "0 s",
        transaction_time: Duration = "0 s",
        load_time: Duration = "0 s",
        load_cost: Duration = "0 s",
    ) -> None: ...

class Hybrid(hybrid.Hybrid):
    """As strong as the weakest of its members: some bolts are replicated, say, and the rest goes back to
    checkpoints, each at the price of its own strategy.

    P. Upadhyaya, Y. Kwon, M. Balazinska, *A Latency and Fault-Tolerance Optimizer for Online Parallel Query
    Plans*, SIGMOD 2011: another fault-tolerance technique for each operator. L. Su, Y. Zhou, *Tolerating
    Correlated Failures in Massively Parallel Stream Processing Engines*, ICDE 2016, have replicas of some
    tasks and checkpoints of all, so that the last replica that fails is restored; here it is lost.

    bolts: strategies of single bolts, by the bolt's name
    stateless: that of all other bolts that keep no state; that of the rest if not given
    rest: the strategy of all other bolts
    """

    def __init__(
        self,
        *,
        bolts: Mapping[str, Strategy] = {},
        stateless: Strategy | None = None,
        rest: Strategy,
    ) -> None: ...

class MicroBatch(micro_batch.MicroBatch):
    """Exactly once: batch after batch from a durable log, its range logged first and its commit last.

    When it triggers, and what each step takes, is in its settings
    (`tideover.models.mechanisms.batch_log`).

    M. Zaharia et al., *Discretized Streams: Fault-Tolerant Streaming Computation at Scale*, SOSP 2013;
    M. Armbrust et al., *Structured Streaming*, SIGMOD 2018, sections 6.1 and 6.2. Scheduling, and the
    defaults of what is a setting there, are those of Apache Spark 4.

    trigger_interval: distance of two triggers; 0 s: a batch follows at once on the one before
    poll_interval: with a trigger_interval of 0 s: how long an idle driver waits
    plan_time: from the trigger until the batch's range is in the offset log
    task_time: time of a task besides its tuples' service
    cores: tasks that an executor (a host) runs at once
    state_time: time of a stateful task to commit its state
    state_cost: the same, for each row of the state
    output_time: from the last task's end until the sink has the results
    commit_time: from then until the batch is in the commit log
    reload_time: time to load a partition's state where it is not, or no more
    reload_cost: the same, for each row of the state
    executor_cold: extra time of a new executor's tasks without state, until one has ended
    state_cold: the same for tasks with state; if they come first, at least executor_cold
    locality_wait: how long a stateful task whose executor is dead waits, from its stage's begin or last
        launch, if others of the stage have theirs (spark.locality.wait)
    resubmit_time: from a failed fetch until the tasks that have to run again are submitted
    recovery_time: time of a restarted driver to read its logs and start the query
    cold_time: extra time of the first batch after a driver's restart
    recovery: checkpoint: every batch saves states and offsets; lineage: now and then one does, and what is
        lost is computed again from there; replay: none does: after a failure the query starts anew, without
        state, from the first window that the sink does not have, or from the log's beginning
    checkpoint_interval: with lineage: least time between two batches that save states
    output_mode: what the sink gets: finished windows, or from every batch what it has changed
    """

    def __init__(
        self,
        *,
        trigger_interval: Duration = "0 s",
        poll_interval: Duration = "10 ms",
        plan_time: Duration = "0 s",
        task_time: Duration = "0 s",
        cores: int = 1,
        state_time: Duration = "0 s",
        state_cost: Duration = "0 s",
        output_time: Duration = "0 s",
        commit_time: Duration = "0 s",
        reload_time: Duration = "0 s",
        reload_cost: Duration = "0 s",
        executor_cold: Duration = "0 s",
        state_cold: Duration = "0 s",
        locality_wait: Duration = "3 s",
        resubmit_time: Duration = "0.2 s",
        recovery_time: Duration = "0 s",
        cold_time: Duration = "0 s",
        recovery: Literal["checkpoint", "lineage", "replay"] = "checkpoint",
        checkpoint_interval: Duration = "10 s",
        output_mode: Literal["append", "update"] = "append",
    ) -> None: ...

class Amnesia(none.Amnesia):
    """No recovery at all: the baseline. What it loses is what the others save."""

    def __init__(self) -> None: ...

class PassiveStandby(passive_standby.PassiveStandby):
    """Exactly once: a secondary goes on from the last checkpoint of state and output queues as soon as the
    failure is noticed; upstream replays what came after it, and downstream drops what it has had.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.1. Duplicates are known by their path and number as in E. Tanuwidjaja, UC Berkeley EECS-2015-134,
    section 3, so that what several senders replay may be processed in another order than before.

    checkpoint_interval: distance of two checkpoints to the secondary
    delta: a checkpoint has only what has changed since the last one
    checkpoint_time: time that a checkpoint keeps the task
    checkpoint_cost: the same, for each entry that it has
    entry_size: bytes of an entry of the bolt's own on the network
    replay_cost: time to replay one tuple from a buffer
    replay_rate: most tuples replayed per second
    """

    def __init__(
        self,
        *,
        checkpoint_interval: Duration,
        delta: bool = False,
        checkpoint_time: Duration = "0 s",
        checkpoint_cost: Duration = "0 s",
        entry_size: Size = "64 B",
        replay_cost: Duration = "0 s",
        replay_rate: Rate | None = None,
    ) -> None: ...

class StateManagement(rsm.StateManagement):
    """Exactly once for state: restore the last checkpoint, then replay what upstream tasks have kept since.

    R. Castro Fernandez et al., SIGMOD 2013, section 4; T. Stableford, City University London, 2015, ch. 5.

    checkpoint_interval: distance of two checkpoints
    spout_buffer: spouts keep an upstream buffer too
    replay_cost: time to replay one tuple from a buffer
    replay_rate: most tuples replayed per second
    serialise_time: time that a checkpoint keeps the task
    serialise_cost: the same, for each entry of the state
    restore_time: time to restore a checkpoint that was read
    restore_cost: the same, for each entry of the state
    entry_size: bytes of an entry of the bolt's own in the store
    store: the one of `stores` that state is saved in; the key `store` if not given
    """

    def __init__(
        self,
        *,
        checkpoint_interval: Duration,
        spout_buffer: bool = False,
        replay_cost: Duration = "0 s",
        replay_rate: Rate | None = None,
        serialise_time: Duration = "0 s",
        serialise_cost: Duration = "0 s",
        restore_time: Duration = "0 s",
        restore_cost: Duration = "0 s",
        entry_size: Size = "64 B",
        store: str | None = None,
    ) -> None: ...

class SourceReplay(source_replay.SourceReplay):
    """At least once: the spout emits a root again if its tree is not acked within one to two timeouts.

    A. Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3; T. Stableford, City University London,
    2015, chapter 3.

    ack_cost: time that one ack takes at the bolt
    message_timeout: distance of two rotations
    timeout_buckets: buckets of the spout's rotating map
    timeout_phase: first rotation after the spout's start; random if not given
    acker_buckets: buckets of the acker's rotating map
    acker_host: host of the acker; none: it fails only if it is named
    ack_size: bytes of an ack message
    max_spout_pending: most roots pending per spout task
    """

    def __init__(
        self,
        *,
        ack_cost: Duration = "0 s",
        message_timeout: Duration = "30 s",
        timeout_buckets: int = 2,
        timeout_phase: Duration | None = None,
        acker_buckets: int = 3,
        acker_host: int | None = None,
        ack_size: Size = "20 B",
        max_spout_pending: int | None = None,
    ) -> None: ...

class StormCheckpoint(storm_checkpoint.StormCheckpoint):
    """At least once: state lies in a store between commits, acks wait for the commit, and a failure takes all
    state back to the last transaction.

    Apache Storm 1.0, *Storm State Management* (``RedisKeyValueState``, ``CheckpointSpout``), 2016; P. Carbone
    et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015, for the markers.

    ack_cost: time that one ack takes at the bolt
    message_timeout: distance of two rotations
    timeout_buckets: buckets of the spout's rotating map
    timeout_phase: first rotation after the spout's start; random if not given
    acker_buckets: buckets of the acker's rotating map
    acker_host: host of the acker; none: it fails only if it is named
    ack_size: bytes of an ack message
    max_spout_pending: most roots pending per spout task
    checkpoint_interval: distance of two prepares
    store: where state lies, of `stores`; if not given: the scenario's `store`
    entry_size: bytes of an entry in the store
    write_time: time that preparing or committing keeps a task, besides the store's
    write_cost: the same, for each entry that has changed
    round_trip: time to look up an entry of a `state` that is not at hand in the store
    access_cost: the same, for each access to a `state`, whether at hand or not
    look_up_work: part of `round_trip` for which it keeps the store, and others wait; 0: nobody does
    """

    def __init__(
        self,
        *,
        ack_cost: Duration = "0 s",
        message_timeout: Duration = "30 s",
        timeout_buckets: int = 2,
        timeout_phase: Duration | None = None,
        acker_buckets: int = 3,
        acker_host: int | None = None,
        ack_size: Size = "20 B",
        max_spout_pending: int | None = None,
        checkpoint_interval: Duration = "1 s",
        store: str | None = None,
        entry_size: Size = "64 B",
        write_time: Duration = "0 s",
        write_cost: Duration = "0 s",
        round_trip: Duration = "0 s",
        access_cost: Duration = "0 s",
        look_up_work: Duration = "0 s",
    ) -> None: ...

class Trident(trident.Trident):
    """Exactly once, if its spouts and its states go together: batches that fail are emitted again, and
    stores tell them by their number.

    Exact are a transactional spout with a transactional or an opaque state, and an opaque spout with an
    opaque state. What else ``spout`` and ``state`` can be has gaps, which failures find.

    N. Marz, *Trident*, Apache Storm 0.8, 2012: docs/Trident-spouts.md and docs/Trident-state.md, and the
    classes ``MasterBatchCoordinator``, ``TransactionalMap`` and ``OpaqueMap``.

    spout: what is read again when a batch has failed: transactional: the same; opaque: what is there, each
        tuple in one committed batch; non_transactional: what is there, nothing is written down of what was
        read
    state: what is stored: non_transactional: the value; transactional: the transaction's number too; opaque:
        this, and the value before it
    failed_batches: what a non_transactional spout does with the tuples of a batch that failed
    batch_interval: least distance of two batches (topology.trident.batch.emit.interval)
    max_spout_pending: batches that are under way at once (topology.max.spout.pending)
    message_timeout: a batch that is not done fails after one to two of these
    metadata_time: time to write down what a transaction reads: a transactional spout before it emits, an
        opaque one while it commits
    task_time: time of a task for each batch, besides its tuples' service
    state_time: time of a task to update its store
    state_cost: the same, for each key that the batch has
    commit_time: from the last update until the coordinator has marked the batch as committed
    """

    def __init__(
        self,
        *,
        spout: Literal["non_transactional", "transactional", "opaque"] = "opaque",
        state: Literal["non_transactional", "transactional", "opaque"] = "opaque",
        failed_batches: Literal["emitted_again", "lost"] = "emitted_again",
        batch_interval: Duration = "0.5 s",
        max_spout_pending: int = 1,
        message_timeout: Duration = "30 s",
        metadata_time: Duration = "0 s",
        task_time: Duration = "0 s",
        state_time: Duration = "0 s",
        state_cost: Duration = "0 s",
        commit_time: Duration = "0 s",
    ) -> None: ...

class UpstreamBackup(upstream_backup.UpstreamBackup):
    """Exactly once without checkpoints: an empty secondary goes on as soon as the failure is noticed, and
    rebuilds the state from what the tasks upstream have kept; downstream drops what it has had.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.2. Duplicates are known by their path and number as in E. Tanuwidjaja, UC Berkeley EECS-2015-134,
    section 3, so that what several senders replay may be processed in another order than before.

    ack_interval: time after which a task tells its senders what is done
    ack_size: bytes of such a message on the network
    replay_cost: time to replay one tuple from a buffer
    replay_rate: most tuples replayed per second
    """

    def __init__(
        self,
        *,
        ack_interval: Duration = "1 s",
        ack_size: Size = "64 B",
        replay_cost: Duration = "0 s",
        replay_rate: Rate | None = None,
    ) -> None: ...
