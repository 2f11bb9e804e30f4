"""Changelogs: tasks keep their state beside them, write what changes to a topic, and come back by it.

All that a task reads waits in its log, from spouts and from bolts, in the order in which it came; no crash
takes it. Its position counts the messages that it has served. Commits (tests/models/test_changelog.py):

- At each multiple of `commit_interval` (rank CHECKPOINT) a task that is up, restored, and done with its
  last commit gets a marker ahead of all that waits. At its turn, between two tuples, the store writes what
  has changed in its state since the last batch; then (rank TRIM) the changelog has it. `commit_time` later
  the offsets as of that turn are committed: position, and newest markers. Until then the task is kept.
- With `batch_interval` changes are written in between, too, and nothing waits for them.
- Of the bolt's own entries one has changed for each tuple worked on, at most all; of a `state` what
  `Backing` says, whatever its backend.

A failure takes no other task with it (test_changelog.py, test_plane_worlds.py):

- It voids the task's commit and batch under way. What was read since the committed position waits in the
  log again, with its old stamps, ahead of all else. `lose_state` is no different.
- At `ready` a task with state reads all of its changelog: the newest value of each entry, and of what has
  been written since `segment_size` bytes were last full everything. Then it takes `restore_time` + entries *
  `restore_cost`, has (rank RESTORE) this state and the committed markers, and its log arrives.
- With `local_state` a task that is back on its host, after crashes of processes, false detections or moves
  only, reads just what was written since its last commit; exactly once only if it was closed.
- With `standby_replicas` that many copies follow the changelog, `restore_cost` for each entry, and no fault
  takes them. A task that does not come back to its own disk takes the one that is done first, waits for it,
  and for `restore_time`. A new standby reads everything before anybody can take it.

- Before a planned stop all that it takes commit, and do nothing more until they go down (rank BATCH); not
  during a rebalance, and its members join no rebalance before that. If one fails before it the stop is given
  up.

`guarantee: exactly_once` (test_changelog.py):

- Changes, offsets, and what was sent up to the commit's turn hold together from the commit on; a commit
  message then follows on each channel. Until it comes, what a bolt has sent is withheld from its readers.
  Readers of what leaves the topology see it when it is committed.
- A crash leaves a transaction open if the task has worked on anything since the turn of its last commit, or
  since it was restored. The broker looks each `abort_interval` (rank ROTATION, phase drawn), and aborts what
  was begun then and is `transaction_timeout` old. Until then readers of all tasks of the component are
  told of no commit, and then of all at once; and the task is not restored (rank RESTORE) if it has state, or
  has died amid its commit. With `local_state` a task that is `ready` on its host, after failures as above,
  has aborted what it had left open there.
- In a rebalance the broker aborts the transactions of those that live, too, if they are as old: their member
  is fenced (tests/models/test_consumer_group.py).
- A fault aborts what is not committed: it is destroyed where it has come, or when it comes. Windows put out
  since are open again.
"""

from __future__ import annotations

from typing import ClassVar

from tideover.models.job.topology import Component
from tideover.models.mechanisms.changelog import Changelogs, ChangelogSettings
from tideover.models.remarks import Plan, Work
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import CRASHES, STRATEGIES, OpensSpouts, Promise, Protocol, Strategy
from tideover.sim.units import S


@STRATEGIES.register("changelog")
class ChangelogTopics(ChangelogSettings, Strategy):
    """At least once, or exactly once by transactions: a task reads its changelog, then goes on by itself.

    S. A. Noghabi et al., *Samza: Stateful Scalable Stream Processing at LinkedIn*, PVLDB 10(12), 2017,
    sections 4.1 and 4.2; G. Wang et al., *Consistency and Completeness: Rethinking Distributed Stream
    Processing in Apache Kafka*, SIGMOD 2021, sections 3 and 4; KIP-129 and KIP-447 for the transactions,
    `TransactionStateManager.timedOutTransactions` for those that are aborted. Of Kafka Streams
    `TaskManager.handleLostAll`, `StateManagerUtil.closeStateManager` for what a member loses that is fenced;
    `ProcessorStateManager.initializeStoreOffsetsFromCheckpoint` for directories; for restores that wait
    `StoreChangelogReader.endOffsetForChangelogs` (KAFKA-10167: to the end of the log, not to the last stable
    offset), and KIP-447 (offsets that are pending); `StateDirectory.initializeProcessId` and
    `ActiveTaskCreator.producer` for ids of producers.
    """

    promise = "at least once"
    not_in_hybrid = "all that its tasks read waits in logs, and what others read does not"
    survives = CRASHES
    windows = frozenset({"sliding", "event", "session", "join"})
    composed_of = (Changelogs,)
    after_failures = frozenset({"restore_time", "restore_cost", "segment_size", "local_state"})
    omitted = frozenset({"store"})
    store_may_lose = False
    saves_every = "commit_interval"
    recurs_every = "commits"
    costs: ClassVar[dict[str, tuple[str, ...]]] = {"commits": ("commit_time",)}
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {"restores": ("restore_time", "restore_cost")}

    def promises(self) -> Promise:
        return "exactly once" if self.guarantee == "exactly_once" else "at least once"

    def recovers_within(self, down: int, window: int) -> int:
        once = self.guarantee == "exactly_once"
        return super().recovers_within(down, window) + once * (self.transaction_timeout + self.abort_interval)

    def load(self, component: Component) -> Work:
        return Work(saving=self.commit_time / self.commits)

    def remarks(self, plan: Plan) -> list[str]:
        if self.commit_time < self.commits:
            return []
        return [
            f"commit_time {self.commit_time / S:g} s: a commit takes as long as the distance of two "
            f"(commit_interval {self.commits / S:g} s), so tasks do nothing else"
        ]

    def protocol(self, job: Job) -> Protocol:
        Changelogs(job, self)
        return OpensSpouts(job)
