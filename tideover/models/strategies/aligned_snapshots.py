"""Aligned snapshots: barriers flow with the data; after a failure the whole job goes back to the last one.

Spouts stand for producers: what has arrived from them waits in the log of the task that reads it; its
*position* is the number of messages that it has served. Snapshots (tests/models/test_aligned_snapshots.py,
test_plane_worlds.py):

- Triggers are due at `checkpoint_phase` (one interval if not given) + k * `checkpoint_interval` (rank
  CHECKPOINT), one snapshot at a time: what falls due while one is under way, or within `min_pause` after
  it, is triggered once, as soon as both allow. One that is not complete after `checkpoint_timeout` is
  abandoned (rank ROTATION).
- At the trigger the sources' barrier comes into each task that reads a log, ahead of all that waits there,
  behind the tuple in service. From other tasks barriers come in the order of their channel.
- When a barrier has its turn its channel is blocked: what comes behind it is set aside. With the last one
  the task takes part: state, epochs, window numbers and position. It hands the barrier on, then is kept for
  `snapshot_time` + entries * `snapshot_cost`; then the store writes the part, and `upload_time` later it is
  acknowledged. A task without state acknowledges at once. What was set aside arrives now.
- With the last acknowledgement the snapshot is complete, and logs are trimmed.

With `unaligned` barriers overtake what waits, by the rules of `InFlight`.

A failure (test_aligned_snapshots.py):

- A fault of a bolt task stops all bolt tasks at its instant: the snapshot under way is void, what is in
  queues and on wires between bolts is destroyed, and windows that were put out since the complete snapshot
  are open again. A spout that fails only falls silent.
- When all are ready each reads its part, then takes `restore_time` + entries * `restore_cost`. When the
  last has (rank RESTORE) the job runs: messages of the parts are back, what was read since is read again,
  in its old order with its old stamps, then what has come meanwhile. The next trigger is due one interval
  later.
- With `sink: transactional` a task pre-commits when it takes part; a complete snapshot commits, and again
  when the job runs again (test_transactional_sinks.py).
- A planned stop has a savepoint: the next snapshot, with aligned barriers, begins now, or when the one under
  way is over; it waits for no pause. A task that has taken part reads nothing any more. When it is complete
  the job goes down (rank BATCH), and nothing is read again (test_planned_restart.py).
- With `parallelism` each task then goes on from its part of all parts: the sums of its keys, and its share of
  the entries of `state`, rounded up. It restores just that. What local copies have is of no use any more.
- With `local_recovery` tasks look first for `LocalCopies` (test_local_recovery.py).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from tideover.models import remarks
from tideover.models.job.sinks import DirectSink, Sink
from tideover.models.job.topology import Component, Topology
from tideover.models.mechanisms.barriers import GlobalRollback, Schedule
from tideover.models.mechanisms.checkpoints import Costs, LocalCopies
from tideover.models.mechanisms.sink_transactions import SinkTransactions
from tideover.models.remarks import Plan, Work, entries_of
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, OpensSpouts, Promise, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, Positive, S, Size


@STRATEGIES.register("aligned_snapshots")
class AlignedSnapshots(Strategy):
    """Exactly once: the whole job goes back to its last complete snapshot, and reads its log from there.

    P. Carbone et al., *Lightweight Asynchronous Snapshots for Distributed Dataflows*, 2015; P. Carbone et
    al., *State Management in Apache Flink*, PVLDB 10(12), 2017, sections 3 and 4.
    """

    promise = "exactly once"
    not_in_hybrid = "all tasks go back to one snapshot together"
    typical: ClassVar[dict[str, str]] = {"checkpoint_interval": "5 s"}
    windows = frozenset({"sliding", "event", "session", "join"})
    survives = CRASHES
    composed_of = (GlobalRollback, SinkTransactions)
    bounded_queues = True
    after_failures = frozenset({"restore_time", "restore_cost"})
    local_stores = frozenset({"local_recovery"})
    rescales = True
    omitted = frozenset({"store", "sink", "local_recovery"})
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"snapshots": ("snapshot_time", "snapshot_cost")}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {"restores": ("restore_time", "restore_cost")}

    checkpoint_interval: Annotated[Period, Field(description="distance of two triggers")]
    checkpoint_phase: Duration | None = setting("first trigger after the start; one interval if not given")
    min_pause: Duration = setting("least time from the end of a snapshot to the next trigger", 0)
    checkpoint_timeout: Positive = setting("a snapshot that takes longer is abandoned", 600 * S)
    snapshot_time: Duration = setting("time that a snapshot keeps a task that has state", 0)
    snapshot_cost: Duration = setting("the same, for each entry of the state", 0)
    upload_time: Duration = setting(
        "time until a task's snapshot is durable, after the store has it; it works on", 0
    )
    entry_size: Size = setting("bytes of an entry of the bolt's own in the store", 64)
    restore_time: Duration = setting("time to restore a task's state that was read", 0)
    restore_cost: Duration = setting("the same, for each entry of the state", 0)
    unaligned: bool = setting("barriers overtake what waits, which is stored with the snapshot", False)
    aligned_timeout: Duration = setting(
        "with `unaligned`: so long after its trigger a snapshot stays aligned", 0
    )
    store: str | None = setting("the one of `stores` that state is saved in; the key `store` if not given")
    sink: Sink = setting("how what is put out comes to its readers", DirectSink())
    local_recovery: str | None = setting(
        "the one of `stores`, on hosts, with a second copy of state for who restarts there"
    )

    @model_validator(mode="after")
    def _keys_go_together(self) -> AlignedSnapshots:
        if self.aligned_timeout and not self.unaligned:
            raise ValueError("aligned_timeout needs `unaligned: true`: else snapshots always stay aligned")
        if self.local_recovery is not None and self.local_recovery == self.store:
            raise ValueError(f"local_recovery: {self.store!r} is the store itself; name another one")
        return self

    def cycle(self) -> tuple[int, int]:
        first = self.checkpoint_interval if self.checkpoint_phase is None else self.checkpoint_phase
        return first, self.checkpoint_interval

    def promises_in(self, topology: Topology) -> Promise:
        again = self.sink.terms is None and any(not c.window for c in topology.ends)
        return "at least once" if again else super().promises_in(topology)

    @property
    def checkpoints(self) -> remarks.Saving:
        """How a task saves its state."""
        every, time, cost = self.checkpoint_interval, self.snapshot_time, self.snapshot_cost
        return remarks.Saving("checkpoint_interval", every, time, cost, self.entry_size)

    def load(self, component: Component) -> Work:
        if not component.keeps_state:
            return Work()
        own = entries_of(component) if component.window else 0
        return self.checkpoints.load(own + remarks.always(component))

    def remarks(self, plan: Plan) -> list[str]:
        return [
            # said of any strategy, but here before what is said of snapshots
            *remarks.without_effect(plan, self.kind, self.roles),
            *remarks.of_the_job(plan, self.checkpoints, self.upload_time, self.checkpoint_timeout),
            *remarks.too_short(plan, self.sink.terms, self.checkpoints, self.upload_time),
        ]

    def protocol(self, job: Job) -> Protocol:
        schedule = Schedule(
            self.checkpoint_interval,
            self.cycle()[0],
            self.min_pause,
            self.checkpoint_timeout,
            self.aligned_timeout if self.unaligned else None,
            self.upload_time,
        )
        taking, restoring = (self.snapshot_time, self.snapshot_cost), (self.restore_time, self.restore_cost)
        costs = Costs(*taking, *restoring, self.entry_size, self.store)
        terms, disk = self.sink.terms, self.local_recovery
        sink = None if terms is None else SinkTransactions(job, terms)
        copies = None if disk is None else LocalCopies(job, disk)
        GlobalRollback(job, schedule, costs, sink, copies)
        return OpensSpouts(job)
