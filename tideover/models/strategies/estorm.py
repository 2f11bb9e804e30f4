"""E-Storm: shadows process what a task with state does; one that comes back reads the state of another.

Acks, timeouts and retries are those of `source_replay`. Besides (tests/models/test_estorm.py,
test_exact_mechanisms.py; where shadows are placed: test_estorm.py):

- Every bolt with state has `members` replicas. All process what is sent to them and ack it, each copy under
  an id of its own; only the first emits, puts out windows and hands markers on, and is measured. At a
  window's end a member acks all in its state, also what it has from another. A window that a shadow ends
  counts for the ledger, unless it has ended one of this number before.
- Each call of a spout takes `copy_cost` for each further copy, after its gap, the moment of its schedule,
  or `poll_cost`; the next call counts from when it is made.
- A member that is ready again gives up what it does, and holds what arrives. `transaction_time` later (rank
  RESTORE) a marker comes into the queue of the live member with the lowest number. At its turn that one
  writes its state to the station (an operation for each entry), which keeps it. If it fails before that is
  done another is asked at that instant.
- When all that one fault has hit are written, they read; `load_time` + entries * `load_cost` later they
  have the state, and take in what was held. A task that fails again before it reads is waited for no more,
  and does not read what was written for it.
- Without a live member the state is lost. Markers of windows that were seen meanwhile count all the same.
- A member that is behind holds back in its full queue who sends to the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tideover.models.mechanisms.base import Costs
from tideover.models.mechanisms.replicas import Fleets
from tideover.models.remarks import Plan, side_by_side
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES
from tideover.models.strategies.source_replay import Replay, SourceReplay
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Size


@STRATEGIES.register("estorm")
class EStorm(SourceReplay):
    """At least once: a fleet of shadows keeps the state of each task that has any, and the source replays
    what was in flight.

    X. Liu et al., *E-Storm: Replication-based State Management in Distributed Stream Processing Systems*,
    ICPP 2017, sections III to V.
    """

    bounded_queues = True
    reads_queues = True
    loses_messages = False
    windows = frozenset({"sliding", "event", "session", "arrival session", "join"})
    composed_of = (*SourceReplay.composed_of, Fleets)
    per_tuple = SourceReplay.per_tuple | {"copy_cost"}
    after_failures = frozenset({"transaction_time", "load_time", "load_cost"})

    members: int = setting("tasks of a fleet: the one that emits, and its shadows", 2, ge=1, le=16)
    store: str | None = setting("the station, of `stores`; if not given: the scenario's `store`")
    entry_size: Size = setting("bytes of an entry that is written and read", 64)
    copy_cost: Duration = setting("time that each further copy of a tuple takes a spout, in its calls", 0)
    transaction_time: Duration = setting("time until a recovery transaction has reached the live members", 0)
    load_time: Duration = setting("time to take over a state that was read", 0)
    load_cost: Duration = setting("the same, for each entry", 0)

    def replicas(self, component: str, keeps_state: bool) -> int:
        return self.members if keeps_state else 1

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        members = given.get("members")
        return members if type(members) is int else 1

    def remarks(self, plan: Plan) -> list[str]:
        return [*super().remarks(plan), *side_by_side(plan, f"members: {self.members}")]

    def protocol(self, job: Job) -> Recovering:
        return Recovering(job, self)


class Recovering(Replay):
    """The protocol: source replay, and fleets that hand state over."""

    def __init__(self, job: Job, s: EStorm) -> None:
        super().__init__(job, s)
        costs = Costs(
            restoring=s.load_time, restoring_entry=s.load_cost, entry_size=s.entry_size, store=s.store
        )
        self.fleets = Fleets(job, costs, s.transaction_time, s.copy_cost, self.acks.may_repeat)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.do.open(task)
        else:
            self.fleets.begin(task, outage)
