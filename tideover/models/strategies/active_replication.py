"""Active replication: k-safety. Every tuple goes to k+1 replicas, which all process it; receivers drop
what they know.

Each task of every bolt (or of those in `components`) has k + 1 replicas, on different hosts. Every sender
sends to every replica of its receiver, and every replica does everything
(tests/models/test_active_replication.py: messages by edge, CPU, who leads).

- Duplicates are dropped by the rules of `DuplicateFilter`.
- A replica that is back copies a live one by the rules of `StateTransfer` (test_active_replication.py). With
  all replicas of a task, what they had is lost.
- What is measured is the live replica with the lowest number.
- Windows have to be ended by markers: those of a timer differ between replicas where links do, and readers
  get the first (`test_numbers_2_3_3_5`).
- Each replica waits for room by itself, and who sends to several waits for all: the slowest holds all back
  (test_bounded_queues.py). What is turned away as known gives its place back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.models.mechanisms.buffers import Shared
from tideover.models.mechanisms.replicas import DuplicateFilter, StateTransfer
from tideover.models.remarks import Plan, side_by_side
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, KeyPath, Promise, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Bandwidth, Duration, Size


@STRATEGIES.register("active_replication")
class ActiveReplication(Strategy):
    """Exactly once with up to k hosts of a replica set down, without acks, heartbeats or recovery; markers
    must end windows.

    E. Tanuwidjaja, *High Availability on a Distributed Real Time Processing System*, UC Berkeley
    EECS-2015-134, section 3.
    """

    promise = "exactly once"
    not_in_hybrid = None
    windows = frozenset({"sliding", "event", "session", "arrival session", "join"})
    survives = frozenset({"lose_state", "crash_task", "crash_worker", "crash_host"})
    bounded_queues = True
    reads_queues = True
    after_failures = frozenset({"copy_time", "copy_bandwidth"})
    composed_of = (DuplicateFilter, StateTransfer)

    k: int = setting("hosts of a replica set that may be down; k + 1 replicas", 1, ge=0, le=15)
    components: tuple[str, ...] | None = setting("bolts that are replicated; all if not given")
    copy_time: Duration = setting("time for a replica that comes back to begin its copy", 0)
    copy_bandwidth: Bandwidth | None = setting("speed at which state is copied; unlimited if not given")
    entry_size: Size = setting("bytes of an entry of the state that is copied", 64)

    def promises(self) -> Promise:
        """A bolt that is left out goes on with nothing: beside replicas it loses, and may count twice."""
        return self.promise if self.components is None else "none"

    def replicas(self, component: str, keeps_state: bool) -> int:
        return self.k + 1 if self.components is None or component in self.components else 1

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        k = given.get("k")
        return k + 1 if type(k) is int else 1

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("components", i): name for i, name in enumerate(self.components or ())}

    def remarks(self, plan: Plan) -> list[str]:
        return side_by_side(plan, f"k = {self.k}")

    def member(self, job: Job, tasks: Sequence[BoltView], shared: Shared) -> Protocol:
        return Replication(job, self, shared)


class Replication(Protocol):
    """The protocol: drop at arrival what was seen already; copy a live replica when coming back."""

    def __init__(self, job: Job, strategy: ActiveReplication, shared: Shared) -> None:
        super().__init__(job)
        s = strategy
        assert shared.seen is not None
        self.shared = shared
        self.transfer = StateTransfer(
            job, shared.seen, s.copy_time, s.copy_bandwidth, s.entry_size, shared.there
        )

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.do.open(task)
            self.shared.back(task)
        else:
            self.transfer.copy_or_go_on(task, outage)
