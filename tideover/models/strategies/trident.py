"""Trident: batches with transaction ids, on Storm.

A spout's tuples wait in *partitions*, one for each bolt task that reads it; while the spout is down its
partitions are away. Bolt tasks do one piece of work after the other. The coordinator acts at rank BATCH,
behind all tasks.

A transaction (tests/models/test_trident.py):

- Each `batch_interval` the coordinator begins an attempt of the next transaction, unless
  `max_spout_pending` are under way or there is nothing to read. It reads all that waits in partitions that
  are not away. A `transactional` spout logs this first (`metadata_time`), and any later attempt reads the
  same; none begins while a partition with some of it is away.
- A task's *part* is what it reads and what bolts hand on to it. When all of it has come the task works on
  it: `task_time` + the service of its tuples. A bolt without state that others read then hands on what it
  makes; the others are *ends*, and keep their part. A work does not end while a partition cuts off a
  reader.
- When all tasks before a state have worked the attempt is *processed*. The current transaction, the first
  that is not committed, then begins its commit: each end updates its store, `state_time` + rows *
  `state_cost`. `non_transactional` adds the part; `transactional` does unless it has this number already;
  `opaque` goes back to what was before, if it has this number, and adds it.
- An `opaque` spout logs how far it has read `metadata_time` after the commit's begin. When that and all
  updates are done the spouts are told; `commit_time` later the transaction is committed, and the next is
  current.

Failures (test_trident.py; which pairs are exact: `test_the_table_of_nine`):

- Each `message_timeout` (rank ROTATION) the first attempt fails that began, or if it commits began to
  commit, one timeout ago or longer; with it all later ones are given up. A processed one that waits for its
  turn has no timeout, nor one of which all updates are done.
- What an attempt that is given up has read waits again, ahead of what has come since; what was logged stays
  that. With `failed_batches: lost` a `non_transactional` spout loses it.
- A crash takes the parts that a task has and has not handed on (an end: not stored), and so does a part
  that comes to a task that is down: such an attempt times out. Stores outlive all; a `lose_state` without
  downtime does nothing.
- With the coordinator all attempts are given up; a new one knows what is committed and logged.
"""

from __future__ import annotations

from typing import ClassVar

from tideover.models.job.topology import Topology
from tideover.models.mechanisms.trident import Coordinator, TridentSettings
from tideover.models.remarks import Plan, mixed
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, BatchProtocol, Promise, Protocol, Strategy


@STRATEGIES.register("trident")
class Trident(TridentSettings, Strategy):
    """Exactly once, if its spouts and its states go together: batches that fail are emitted again, and
    stores tell them by their number.

    Exact are a transactional spout with a transactional or an opaque state, and an opaque spout with an
    opaque state. What else ``spout`` and ``state`` can be has gaps, which failures find.

    N. Marz, *Trident*, Apache Storm 0.8, 2012: docs/Trident-spouts.md and docs/Trident-state.md, and the
    classes ``MasterBatchCoordinator``, ``TransactionalMap`` and ``OpaqueMap``.
    """

    promise = "exactly once"
    not_in_hybrid = "its batches are committed by all tasks together"
    survives = CRASHES | {"pause"}
    roles = frozenset({"coordinator"})
    windows = frozenset({"sliding", "join"})
    composed_of = (Coordinator,)
    gives_up = ("message_timeout",)
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
