# Made by `python tests/parts_stubs.py`; change the classes instead.
# fmt: off
# ruff: noqa: F401, I001
from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from tideover.parts.typed import Bandwidth, Duration, Percent, Rate, Size
from tideover.models import config
from tideover.models.detectors import base as detectors_base, consumer_group, heartbeats, storm
from tideover.models.job import (
    arrivals as job_arrivals, cluster, components as job_components, groupings, placements, sinks, spouts,
    stores
)
from tideover.models.operators import base as operators_base, kinds, window as operators_window
from tideover.models.strategies import (
    active_replication, active_standby, aligned_snapshots, base as strategies_base, batch_rerun, changelog,
    estorm, hybrid, micro_batch, none, passive_standby, rsm, source_replay, storm_checkpoint, trident,
    upstream_backup
)
from tideover.sim import distributions, fault_kinds, faults

class _Fault(TypedDict, total=False):
    at: Duration | None
    within: Duration | None
    in_interval: float | None
    every: distributions.Distribution | Duration | None
    times: int | None
    period: Duration | None
    turn: str | None
    detection: Duration
    restart: Duration
    while_down: Literal["drop", "hold"]

class ActiveReplication(active_replication.ActiveReplication):
    def __init__(self, *, k: int = 1, components: Sequence[str] | None = None,
        copy_time: Duration = "0 s", copy_bandwidth: Bandwidth | None = None,
        entry_size: Size = "64 B") -> None: ...

class ActiveStandby(active_standby.ActiveStandby):
    def __init__(self, *, ack_interval: Duration = "1 s", ack_size: Size = "64 B",
        replay_cost: Duration = "0 s", copy_time: Duration = "0 s",
        copy_bandwidth: Bandwidth | None = None, entry_size: Size = "64 B") -> None: ...

class AlignedSnapshots(aligned_snapshots.AlignedSnapshots):
    def __init__(self, *, checkpoint_interval: Duration, checkpoint_phase: Duration | None = None,
        min_pause: Duration = "0 s", checkpoint_timeout: Duration = "600 s",
        snapshot_time: Duration = "0 s", snapshot_cost: Duration = "0 s", upload_time: Duration = "0 s",
        entry_size: Size = "64 B", restore_time: Duration = "0 s", restore_cost: Duration = "0 s",
        unaligned: bool = False, aligned_timeout: Duration = "0 s", store: str | None = None,
        sink: sinks.Sink | str = "direct", local_recovery: str | None = None) -> None: ...

class All(groupings.All):
    def __init__(self) -> None: ...

class Amnesia(none.Amnesia):
    def __init__(self) -> None: ...

class BatchRerun(batch_rerun.BatchRerun):
    def __init__(self, *, trigger_interval: Duration = "1 h", poll_interval: Duration = "10 ms",
        plan_time: Duration = "0 s", task_time: Duration = "0 s", cores: int = 1,
        state_time: Duration = "0 s", state_cost: Duration = "0 s", output_time: Duration = "0 s",
        commit_time: Duration = "0 s", reload_time: Duration = "0 s", reload_cost: Duration = "0 s",
        executor_cold: Duration = "0 s", state_cold: Duration = "0 s",
        worker_cold: Duration | None = None, locality_wait: Duration = "3 s",
        resubmit_time: Duration = "0.2 s", recovery_time: Duration = "0 s", cold_time: Duration = "0 s",
        retry: Literal["job", "task"] = "job") -> None: ...

class BoltConfig(job_components.BoltConfig):
    def __init__(self, *, bolt: operators_base.Bolt, from_: Mapping[str, groupings.Grouping | str],
        service: distributions.Distribution | Duration, state: stores.Backend | None = None,
        parallelism: int = 1, max_parallelism: int | None = None, tuple_size: Size = "256 B",
        hosts: Sequence[int] | None = None,
        queue: job_components.QueueSettings | Duration | None = None) -> None: ...

class Burst(job_arrivals.Burst):
    def __init__(self, *, rate: Rate, peak: Rate, length: Duration, every: Duration = "60 s") -> None: ...

class ByHand(placements.ByHand):
    def __init__(self, *, tasks: Mapping[str, Sequence[Sequence[int]]]) -> None: ...

class Cascade(fault_kinds.Cascade):
    def __init__(self, *, repair: Duration | None = None, host: int, others: Sequence[int] | None = None,
        probability: float = 0.5, span: Duration = "0 s", **common: Unpack[_Fault]) -> None: ...

class ChangelogTopics(changelog.ChangelogTopics):
    def __init__(self, *, guarantee: Literal["at_least_once", "exactly_once"] = "at_least_once",
        commit_interval: Duration | None = None, commit_time: Duration = "0 s",
        transaction_timeout: Duration = "10 s", abort_interval: Duration = "10 s",
        batch_interval: Duration | None = None, entry_size: Size = "64 B", restore_time: Duration = "0 s",
        restore_cost: Duration = "0 s", standby_replicas: int = 0, segment_size: Size = "0 B",
        local_state: bool = False, store: str | None = None) -> None: ...

class Constant(distributions.Constant):
    def __init__(self, *, value: Duration) -> None: ...

class ConsumerGroup(consumer_group.ConsumerGroup):
    def __init__(self, *, heartbeat_interval: Duration = "3 s", session_timeout: Duration = "45 s",
        rebalance: distributions.Distribution | Duration = "constant",
        restart: distributions.Distribution | Duration | None = None, static: bool = False,
        leaves: bool = False, protocol: Literal["cooperative", "eager"] = "cooperative",
        warmup_replicas: int = 0, probing_interval: Duration | None = None) -> None: ...

class CrashHost(fault_kinds.CrashHost):
    def __init__(self, *, repair: Duration | None = None, host: int,
        **common: Unpack[_Fault]) -> None: ...

class CrashRack(fault_kinds.CrashRack):
    def __init__(self, *, repair: Duration | None = None, rack: int,
        **common: Unpack[_Fault]) -> None: ...

class CrashTask(fault_kinds.CrashTask):
    def __init__(self, *, component: str, task: int = 0, replica: int = 0, together: int = 1,
        **common: Unpack[_Fault]) -> None: ...

class CrashWorker(fault_kinds.CrashWorker):
    def __init__(self, *, host: int, worker: int = 0, **common: Unpack[_Fault]) -> None: ...

class Day(job_arrivals.Day):
    def __init__(self, *, by_hour: Sequence[float] | None = None, file: str | None = None,
        peak: Rate | None = None, interpolation: Literal["linear", "steps"] = "linear",
        growth: Percent = "0 %", months: float = 0.0, scale: float = 1.0) -> None: ...

class Dfs(stores.Dfs):
    def __init__(self, *, latency: Duration = "10 ms", bandwidth: Bandwidth = "100 MiB/s",
        replication: int = 3) -> None: ...

class Direct(groupings.Direct):
    def __init__(self) -> None: ...

class DirectSink(sinks.DirectSink):
    def __init__(self) -> None: ...

class Disk(stores.Disk):
    def __init__(self, *, latency: Duration = "5 ms", bandwidth: Bandwidth = "200 MiB/s") -> None: ...

class Distinct(kinds.Distinct):
    def __init__(self, *, window: operators_window.Window | Duration) -> None: ...

class EStorm(estorm.EStorm):
    def __init__(self, *, ack_cost: Duration = "0 s", ack_time: Duration = "0 s",
        message_timeout: Duration = "30 s", timeout_buckets: int = 2,
        timeout_phase: Duration | None = None, acker_buckets: int = 3, acker_host: int | None = None,
        ack_size: Size = "20 B", max_spout_pending: int | None = None, members: int = 2,
        store: str | None = None, entry_size: Size = "64 B", copy_cost: Duration = "0 s",
        transaction_time: Duration = "0 s", load_time: Duration = "0 s",
        load_cost: Duration = "0 s") -> None: ...

class Empirical(distributions.Empirical):
    def __init__(self, *, values: Sequence[Duration], weights: Sequence[float] | None = None) -> None: ...

class Events(fault_kinds.Events):
    def __init__(self, *, file: str, **common: Unpack[_Fault]) -> None: ...

class Exponential(distributions.Exponential):
    def __init__(self, *, mean: Duration) -> None: ...

class ExponentialDelay(detectors_base.ExponentialDelay):
    def __init__(self, *, initial: Duration = "1 s", factor: float = 1.5, most: Duration = "60 s",
        reset_after: Duration = "1 h") -> None: ...

class FailureRate(detectors_base.FailureRate):
    def __init__(self, *, delay: Duration = "1 s", most_failures: int = 1,
        within: Duration = "60 s") -> None: ...

class Fields(groupings.Fields):
    def __init__(self, *, fields: Sequence[str]) -> None: ...

class Filter(kinds.Filter):
    def __init__(self, *, keep: float) -> None: ...

class FixedDelay(detectors_base.FixedDelay):
    def __init__(self, *, delay: Duration = "1 s", attempts: int | None = None) -> None: ...

class FleetPlacement(placements.FleetPlacement):
    def __init__(self) -> None: ...

class Forward(kinds.Forward):
    def __init__(self) -> None: ...

class Gamma(distributions.Gamma):
    def __init__(self, *, mean: Duration, shape: float | None = None,
        cv: float | None = None) -> None: ...

class Generic(kinds.Generic):
    def __init__(self, *, selectivity: float = 1.0) -> None: ...

class Given(detectors_base.Given):
    def __init__(self) -> None: ...

class Global(groupings.Global):
    def __init__(self) -> None: ...

class Heartbeats(heartbeats.Heartbeats):
    def __init__(self, *, interval: Duration = "10 s", timeout: Duration = "50 s",
        launch: distributions.Distribution | Duration = "constant",
        prepare: distributions.Distribution | Duration = "constant", listener: int | None = None,
        restart_on: Literal["same_host", "free_slot"] = "same_host",
        restarts: detectors_base.RestartStrategy | None = None,
        connection: distributions.Distribution | Duration | None = None,
        rpc_failure_threshold: int | None = None,
        failed_deployment: distributions.Distribution | Duration = "constant",
        replacement: distributions.Distribution | Duration | None = None) -> None: ...

class Hosts(cluster.Hosts):
    def __init__(self, *, machines: Mapping[str, job_components.MachineType], racks: int = 1,
        workers: int = 1, reserve: int = 0,
        placement: placements.Placement | str = "round_robin") -> None: ...

class Hybrid(hybrid.Hybrid):
    def __init__(self, *, bolts: Mapping[str, strategies_base.Strategy] = {},
        stateless: strategies_base.Strategy | None = None, rest: strategies_base.Strategy) -> None: ...

class KSafe(placements.KSafe):
    def __init__(self) -> None: ...

class Kafka(spouts.Kafka):
    def __init__(self, *, partitions: int | None = None, poll_cost: Duration = "10 us",
        retention: Duration | None = None, commit_interval: Duration = "5 s") -> None: ...

class Kestrel(spouts.Kestrel):
    def __init__(self, *, partitions: int | None = None, poll_cost: Duration = "10 us",
        retention: Duration | None = None, timeout: Duration = "30 s",
        sweep_interval: Duration = "1 s") -> None: ...

class Keys(spouts.Keys):
    def __init__(self, *, keys: int = 1, exponent: float = 0.0,
        order: Literal["random", "in_turn"] = "random") -> None: ...

class Links(job_components.Links):
    def __init__(self, *, latency: distributions.Distribution | Duration = "0 s",
        local: distributions.Distribution | Duration = "0 s",
        pairs: Mapping[str, distributions.Distribution | Duration] = {}, header: Size = "0 B",
        serialise: Duration = "0 s", serialise_cost: Duration = "0 s", deserialise: Duration = "0 s",
        deserialise_cost: Duration = "0 s") -> None: ...

class Lognormal(distributions.Lognormal):
    def __init__(self, *, mean: Duration | None = None, cv: float | None = None,
        median: Duration | None = None, sigma: float | None = None) -> None: ...

class LoseState(fault_kinds.LoseState):
    def __init__(self, *, component: str, task: int = 0, replica: int = 0,
        **common: Unpack[_Fault]) -> None: ...

class LoseStore(fault_kinds.LoseStore):
    def __init__(self, *, store: str | None = None, **common: Unpack[_Fault]) -> None: ...

class MachineType(job_components.MachineType):
    def __init__(self, *, count: int, cores: int | None = None, nic: Bandwidth | None = None,
        slots: int | None = None, price: float | None = None) -> None: ...

class MachinesFail(fault_kinds.MachinesFail):
    def __init__(self, *, lifetime: distributions.Distribution | Duration = "exponential",
        repair: distributions.Distribution | Duration = "constant", crews: int | None = None,
        **common: Unpack[_Fault]) -> None: ...

class Memory(stores.Memory):
    def __init__(self, *, entries: int = 1024, entry_size: Size = "64 B", accesses: int = 1,
        access_cost: Duration = "0 s") -> None: ...

class MicroBatch(micro_batch.MicroBatch):
    def __init__(self, *, trigger_interval: Duration = "0 s", poll_interval: Duration = "10 ms",
        plan_time: Duration = "0 s", task_time: Duration = "0 s", cores: int = 1,
        state_time: Duration = "0 s", state_cost: Duration = "0 s", output_time: Duration = "0 s",
        commit_time: Duration = "0 s", reload_time: Duration = "0 s", reload_cost: Duration = "0 s",
        executor_cold: Duration = "0 s", state_cold: Duration = "0 s",
        worker_cold: Duration | None = None, locality_wait: Duration = "3 s",
        resubmit_time: Duration = "0.2 s", recovery_time: Duration = "0 s", cold_time: Duration = "0 s",
        recovery: Literal["checkpoint", "lineage", "replay"] = "checkpoint",
        checkpoint_interval: Duration = "10 s", max_offsets_per_trigger: int | None = None,
        retention: Duration | None = None,
        output_mode: Literal["append", "update"] = "append") -> None: ...

class Partition(fault_kinds.Partition):
    def __init__(self, *, duration: Duration, hosts: Sequence[int], others: Sequence[int] | None = None,
        messages: Literal["hold", "lose"] = "hold", **common: Unpack[_Fault]) -> None: ...

class PassiveStandby(passive_standby.PassiveStandby):
    def __init__(self, *, checkpoint_interval: Duration, delta: bool = False,
        checkpoint_time: Duration = "0 s", checkpoint_cost: Duration = "0 s", entry_size: Size = "64 B",
        replay_cost: Duration = "0 s", replay_rate: Rate | None = None) -> None: ...

class Pause(fault_kinds.Pause):
    def __init__(self, *, component: str, task: int = 0, replica: int = 0, duration: Duration,
        **common: Unpack[_Fault]) -> None: ...

class Periodic(job_arrivals.Periodic):
    def __init__(self, *, rate: Rate | None = None, pause: Duration | None = None,
        emit_cost: Duration = "0 s", fixed_offset: Duration | None = None) -> None: ...

class PlannedRestart(fault_kinds.PlannedRestart):
    def __init__(self, *, down: distributions.Distribution | Duration = "constant",
        hosts: Sequence[int] | None = None, pause: Duration = "60 s", drain: Duration = "0 s",
        parallelism: Mapping[str, int] = {}, **common: Unpack[_Fault]) -> None: ...

class Poisson(job_arrivals.Poisson):
    def __init__(self, *, rate: Rate) -> None: ...

class Ramp(job_arrivals.Ramp):
    def __init__(self, *, start: Rate, end: Rate, begin: Duration = "0 s",
        over: Duration = "60 s") -> None: ...

class Redis(stores.Redis):
    def __init__(self, *, latency: Duration = "0.5 ms", bandwidth: Bandwidth = "100 MiB/s",
        operations: Rate = "80000/s") -> None: ...

class Request(distributions.Request):
    def __init__(self, *, answer: distributions.Distribution | Duration, timeout: Duration | None = None,
        retries: int = 0, backoff: Duration = "0 s", limit: Rate | None = None) -> None: ...

class RocksDB(stores.RocksDB):
    def __init__(self, *, entries: int = 1024, entry_size: Size = "64 B", accesses: int = 1,
        access_cost: Duration = "5 us", incremental: bool = False) -> None: ...

class RoundRobin(placements.RoundRobin):
    def __init__(self) -> None: ...

class Run(job_components.Run):
    def __init__(self, *, duration: Duration, warmup: Duration = "0 s", seed: int = 1,
        replications: int = 1, log_resolution: Duration | None = None, lag_window: Duration | None = None,
        calm: Duration | None = None, starts_at: str | None = None, fails_at: str | None = None,
        lump: int = 1, lump_rate: Rate | None = None) -> None: ...

class RunningCount(kinds.RunningCount):
    def __init__(self, *, window: operators_window.Window | Duration) -> None: ...

class Saturating(job_arrivals.Saturating):
    def __init__(self, *, emit_cost: Duration) -> None: ...

class Sentences(spouts.Sentences):
    def __init__(self) -> None: ...

class Shuffle(groupings.Shuffle):
    def __init__(self) -> None: ...

class Slo(config.Slo):
    def __init__(self, *, objective: str, level: float = 0.95) -> None: ...

class SlowHost(fault_kinds.SlowHost):
    def __init__(self, *, duration: Duration, host: int, factor: float,
        **common: Unpack[_Fault]) -> None: ...

class SlowLink(fault_kinds.SlowLink):
    def __init__(self, *, duration: Duration, hosts: Sequence[int], others: Sequence[int] | None = None,
        latency_factor: float = 1.0, transfer_factor: float = 1.0, **common: Unpack[_Fault]) -> None: ...

class SlowStore(fault_kinds.SlowStore):
    def __init__(self, *, duration: Duration, store: str | None = None, factor: float = 10.0,
        **common: Unpack[_Fault]) -> None: ...

class SourceReplay(source_replay.SourceReplay):
    def __init__(self, *, ack_cost: Duration = "0 s", ack_time: Duration = "0 s",
        message_timeout: Duration = "30 s", timeout_buckets: int = 2,
        timeout_phase: Duration | None = None, acker_buckets: int = 3, acker_host: int | None = None,
        ack_size: Size = "20 B", max_spout_pending: int | None = None) -> None: ...

class SplitWords(kinds.SplitWords):
    def __init__(self) -> None: ...

class SpoutConfig(job_components.SpoutConfig):
    def __init__(self, *, spout: spouts.Spout, arrivals: job_arrivals.Arrivals, parallelism: int = 1,
        tuple_size: Size = "256 B", hosts: Sequence[int] | None = None,
        queue: job_components.QueueSettings | Duration | None = None, source: spouts.Source | None = None,
        event_delay: distributions.Distribution | Duration = "constant") -> None: ...

class StateManagement(rsm.StateManagement):
    def __init__(self, *, checkpoint_interval: Duration, spout_buffer: bool = False,
        replay_cost: Duration = "0 s", replay_rate: Rate | None = None, serialise_time: Duration = "0 s",
        serialise_cost: Duration = "0 s", restore_time: Duration = "0 s", restore_cost: Duration = "0 s",
        entry_size: Size = "64 B", store: str | None = None) -> None: ...

class Store(job_components.Store):
    def __init__(self, *, latency: Duration = "1 ms", bandwidth: Bandwidth = "100 MiB/s") -> None: ...

class StoreDown(fault_kinds.StoreDown):
    def __init__(self, *, duration: Duration, store: str | None = None,
        **common: Unpack[_Fault]) -> None: ...

class Storm(storm.Storm):
    def __init__(self, *, supervisor_worker_timeout: Duration = "30 s",
        nimbus_task_timeout: Duration = "30 s", worker_heartbeat: Duration = "1 s",
        task_heartbeat: Duration = "3 s", supervisor_round: Duration = "3 s",
        nimbus_round: Duration = "10 s", worker_start_timeout: Duration = "120 s",
        task_launch: Duration = "120 s", launch: distributions.Distribution | Duration = "constant",
        prepare: distributions.Distribution | Duration = "constant") -> None: ...

class StormCheckpoint(storm_checkpoint.StormCheckpoint):
    def __init__(self, *, ack_cost: Duration = "0 s", ack_time: Duration = "0 s",
        message_timeout: Duration = "30 s", timeout_buckets: int = 2,
        timeout_phase: Duration | None = None, acker_buckets: int = 3, acker_host: int | None = None,
        ack_size: Size = "20 B", max_spout_pending: int | None = None,
        checkpoint_interval: Duration = "1 s", store: str | None = None, entry_size: Size = "64 B",
        write_time: Duration = "0 s", write_cost: Duration = "0 s", round_trip: Duration = "0 s",
        access_cost: Duration = "0 s", look_up_work: Duration = "0 s") -> None: ...

class TraceOfRates(job_arrivals.TraceOfRates):
    def __init__(self, *, file: str, repeat: float | None = None, scale: float = 1.0) -> None: ...

class TransactionalSink(sinks.TransactionalSink):
    def __init__(self, *, transaction_timeout: Duration = "900 s",
        commit_time: Duration = "0.1 s") -> None: ...

class Trident(trident.Trident):
    def __init__(self, *, spout: Literal["non_transactional", "transactional", "opaque"] = "opaque",
        state: Literal["non_transactional", "transactional", "opaque"] = "opaque",
        failed_batches: Literal["emitted_again", "lost"] = "emitted_again",
        batch_interval: Duration = "0.5 s", max_spout_pending: int = 1,
        message_timeout: Duration = "30 s", metadata_time: Duration = "0 s", task_time: Duration = "0 s",
        state_time: Duration = "0 s", state_cost: Duration = "0 s",
        commit_time: Duration = "0 s") -> None: ...

class Uniform(distributions.Uniform):
    def __init__(self, *, low: Duration, high: Duration) -> None: ...

class UpstreamBackup(upstream_backup.UpstreamBackup):
    def __init__(self, *, ack_interval: Duration = "1 s", ack_size: Size = "64 B",
        replay_cost: Duration = "0 s", replay_rate: Rate | None = None) -> None: ...

class Values(spouts.Values):
    def __init__(self, *, values: Sequence[int], repeat: bool = False,
        stamps: Sequence[Duration] | None = None) -> None: ...

class Weibull(distributions.Weibull):
    def __init__(self, *, mean: Duration, shape: float) -> None: ...

class Window(operators_window.Window):
    def __init__(self, *, length: Duration | None = None, tuples: int | None = None,
        gap: Duration | None = None, slide: Duration | None = None, slide_tuples: int | None = None,
        trigger: Literal["tick", "marker"] = "tick", by: Literal["arrival", "event"] = "arrival",
        lag: Duration = "0 s", watermark_interval: Duration = "1 s",
        late: Literal["drop", "aside"] = "drop", idle_after: Duration | None = None,
        saved: Literal["contents", "ids"] = "contents") -> None: ...

class WindowedCount(kinds.WindowedCount):
    def __init__(self, *, window: operators_window.Window | Duration) -> None: ...

class WindowedJoin(kinds.WindowedJoin):
    def __init__(self, *, window: operators_window.Window | Duration) -> None: ...
