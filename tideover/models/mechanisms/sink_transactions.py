"""A sink that writes in transactions: readers see what is in one when it is committed.

`aligned_snapshots` makes it, and `barriers.py` decides what is pre-committed, committed and rolled back; what
becomes of a transaction then is changed here.

The rules (tests/models/test_transactional_sinks.py):

- What leaves the topology is the windows of components that nobody reads, and the tuples of other last
  bolts. With `direct` readers see it as it is put out. With `transactional` it goes into the task's open
  transaction, which opens with the first that is put into it.
- *Pre-committed* under a number, the transaction is flushed, and what comes later goes into another one;
  one that was never opened is none. *To be committed*: `commit_time` later (rank TRIM, by task) readers see
  it, in the order of numbers, unless the task is rolled back before.
- *Rolled back* to a number, a task aborts what is open, and what is pre-committed under higher numbers.
  What was to be committed is not, until that is said again.
- The broker aborts what is not committed `transaction_timeout` after it was opened (rank ROTATION; not
  before it is pre-committed). If it was to be committed, or when it is to be, it is *lost*.
- What is aborted or lost has never left. What is in a transaction otherwise counts as having left, so a
  root can be complete before readers see it; windows, the silence of the sink and the delay of visibility
  go by what readers see. A window that is in a transaction when the run ends is not missing; a lost one is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tideover.models.job.sinks import Terms
from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.operators.state import Effects
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


@dataclass(eq=False)
class Transaction:
    """What one task has put out since ``opened`` (ns), and its readers have not seen: uids of tuples whose
    effects are in it. ``dead``: the broker has aborted it.
    """

    opened: int | None = None
    effects: list[Ints] = field(default_factory=list)
    dead: bool = False

    def put(self, now: int, effects: list[Ints]) -> None:
        """Something is put out at ``now``, with these effects."""
        self.opened = now if self.opened is None else self.opened
        self.effects += effects


@dataclass(eq=False)
class Producer:
    """The transactions of one task: the one into which it puts out, and those that are pre-committed, by
    their numbers, of which those up to ``decided`` are to be committed, whatever fails.
    """

    task: BoltTask
    plans: Plans
    open: Transaction = field(default_factory=Transaction)
    flushed: dict[int, Transaction] = field(default_factory=dict)
    decided: int = 0


class SinkTransactions(Mechanism, CopyHolder):
    """The first half of a two-phase commit at each task whose output leaves the topology, and the second half
    at the broker. Who decides calls, task by task, ``pre_commit`` when a task's part of what is decided on is
    taken, ``commit`` when that is decided (and again when the task is back from a failure: the decision may
    not have reached it), ``roll_back`` when the task fails.

    Flink's TwoPhaseCommitSinkFunction, KafkaWriter and KafkaCommitter; a Kafka broker aborts a transaction
    that is open for too long, be it pre-committed or not, for to the broker that is all the same.
    """

    def __init__(self, job: Job, terms: Terms) -> None:
        super().__init__(job)
        self._terms = terms
        self._of: dict[TaskView, Producer] = {
            t: Producer(t, Plans(job.kernel, t.number)) for t in job.bolt_tasks if not t.component.outputs
        }
        job.context.withheld.update(self._of)

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if task in self._of and not task.component.window:
            self._of[task].open.put(int(train.time[0]), [train.uid])

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task in self._of:
            self._of[task].open.put(now, [part.uid for part in parts] if task.component.anchored else [])
        return 0

    def pre_commit(self, task: TaskView, number: int) -> None:
        """What the task has put out is flushed, as its transaction ``number`` (they rise)."""
        producer = self._of.get(task)
        if producer is None:
            return
        producer.task.catch_up()
        transaction = producer.open
        if transaction.opened is None:
            return
        producer.flushed[number], producer.open = transaction, Transaction()
        self._job.say.pre_committed(producer.task, number)
        self._step(task, "transaction pre-committed", number)
        aborted = max(self._job.kernel.now, transaction.opened + self._terms.timeout)
        expire = partial(self._expire, producer, number, transaction)
        self._job.kernel.at(aborted, Rank.ROTATION, expire, task.number)

    def commit(self, task: TaskView, number: int) -> None:
        """Transactions up to ``number`` are to be committed, whatever fails."""
        producer = self._of.get(task)
        if producer is None:
            return
        producer.decided = max(number, producer.decided)
        mine = [n for n in producer.flushed if n <= number]
        for n in mine:
            if producer.flushed[n].dead:
                self._abort(producer, n, lost=True)

        def commit() -> None:
            for n in [n for n in producer.flushed if n <= number]:
                del producer.flushed[n]
                self._job.say.committed(producer.task, n, self._job.kernel.now)
                self._step(task, "transaction committed", n)

        if mine:
            producer.plans.after(self._terms.commit_time, Rank.TRIM, commit)

    def roll_back(self, task: TaskView, number: int) -> None:
        """The task has failed: back to where it had pre-committed ``number`` (0: to the beginning)."""
        producer = self._of.get(task)
        if producer is None:
            return
        producer.task.catch_up()
        producer.plans.void()
        for n in [n for n in producer.flushed if n > number]:
            self._abort(producer, n, lost=False)
        self._undo(producer, producer.open)
        self._job.say.aborted(producer.task, None, False)
        producer.open = Transaction()

    def _expire(self, producer: Producer, number: int, transaction: Transaction) -> None:
        """The broker has waited long enough."""
        if producer.flushed.get(number) is transaction:
            transaction.dead = True
            self._step(producer.task, "transaction timed out", number)
            if number <= producer.decided:
                self._abort(producer, number, lost=True)

    def _abort(self, producer: Producer, number: int, lost: bool) -> None:
        """What is in a transaction will not be there (``lost``: though it is decided that it is)."""
        self._undo(producer, producer.flushed.pop(number))
        self._job.say.aborted(producer.task, number, lost)
        self._step(producer.task, "output lost" if lost else "transaction aborted", number)

    def _undo(self, producer: Producer, transaction: Transaction) -> None:
        if transaction.effects:
            task, uid = producer.task, np.concatenate(transaction.effects)
            self._job.say.void(task.component, uid, task.replica)

    def _step(self, task: TaskView, what: str, number: int) -> None:
        self._job.step(task.name, what, f"transaction {number}")

    def effects(self) -> list[tuple[Component, Ints]]:
        return [
            (task.component, uid)
            for task, producer in self._of.items()
            for transaction in (producer.open, *producer.flushed.values())
            for uid in transaction.effects
            if len(uid)
        ]
