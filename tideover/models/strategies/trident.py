"""Trident: batches with transaction ids, on Storm."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.job.topology import Topology
from tideover.models.mechanisms.trident import Coordinator
from tideover.models.mechanisms.trident_log import TridentSettings
from tideover.models.remarks import Plan, mixed
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import STRATEGIES, BatchProtocol, Promise, Protocol, Strategy


@STRATEGIES.register("trident")
class Trident(TridentSettings, Strategy):
    """Exactly once, if its spouts and its states go together: batches that fail are emitted again, and
    stores tell them by their number.

    Exact are a transactional spout with a transactional or an opaque state, and an opaque spout with an
    opaque state. What else ``spout`` and ``state`` can be has gaps, which failures find.

    N. Marz, *Trident*, Apache Storm 0.8, 2012: docs/Trident-spouts.md and docs/Trident-state.md, and the
    classes ``MasterBatchCoordinator``, ``TransactionalMap`` and ``OpaqueMap``.
    """

    promise: ClassVar[Promise] = "exactly once"
    alone: ClassVar[str | None] = "its batches are committed by all tasks together"
    survives: ClassVar[frozenset[str]] = frozenset(
        {"lose_state", "crash_task", "crash_host", "pause", "crash_worker", "crash_rack"}
    )
    roles: ClassVar[frozenset[str]] = frozenset({"coordinator"})
    windows: ClassVar[frozenset[str]] = frozenset({"sliding", "join"})
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (Coordinator,)
    gives_up: ClassVar[tuple[str, ...]] = ("message_timeout",)
    costs: ClassVar[dict[str, tuple[str, ...]]] = {
        "batches": ("metadata_time", "task_time", "state_time", "state_cost", "commit_time")
    }

    def promises(self) -> Promise:
        if self.spout == "non_transactional":
            if self.failed_batches == "lost":
                return "none" if self.state == "opaque" else "at most once"
            return "at least once" if self.state == "non_transactional" else "none"
        if self.state == "opaque" or self.spout == self.state:
            return "exactly once"
        return "at least once" if self.state == "non_transactional" else "none"

    def promises_in(self, topology: Topology) -> Promise:
        promise = self.promises()
        weaker = promise == "exactly once" and mixed(topology, one_log=False)
        return "at least once" if weaker else promise

    def remarks(self, plan: Plan) -> list[str]:
        return mixed(plan.topology, one_log=False)

    def protocol(self, job: Job) -> Protocol:
        Coordinator(job, self)
        return BatchProtocol(job)
