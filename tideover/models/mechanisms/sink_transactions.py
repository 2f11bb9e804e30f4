"""A sink that writes in transactions: readers see what is in one when it is committed.

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
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


@dataclass(eq=False)
class Transaction:
    """What one task has put out, and its readers have not seen.

    opened   when the first of it was put out (ns); None: nothing was
    effects  uids of the tuples whose effects are in it
    dead     the broker has aborted it
    """

    opened: int | None = None
    effects: list[Ints] = field(default_factory=list)
    dead: bool = False

    def put(self, now: int, uid: Ints | None) -> None:
        """Something is put out at ``now``, with these effects (None: they are no roots')."""
        if self.opened is None:
            self.opened = now
        if uid is not None:
            self.effects.append(uid)


@dataclass(eq=False)
class Producer:
    """The transactions of one task.

    open       what is put out goes into this one
    flushed    those that are pre-committed and not committed, by their numbers
    decided    those up to this number are to be committed, whatever fails
    """

    plans: Plans
    open: Transaction = field(default_factory=Transaction)
    flushed: dict[int, Transaction] = field(default_factory=dict)
    decided: int = 0


class SinkTransactions(Mechanism, CopyHolder):
    """The first half of a two-phase commit at each task whose output leaves the topology, and the second half
    at the broker. The other participants, and who decides, are the protocol's: it calls, task by task,
    ``pre_commit`` when a task's part of what is decided on is taken, ``commit`` when that is decided (and
    again when the task is back from a failure: the decision may not have reached it), ``roll_back`` when the
    task fails.

    Flink's TwoPhaseCommitSinkFunction, KafkaWriter and KafkaCommitter; a Kafka broker aborts a transaction
    that is open for too long, be it pre-committed or not, for to the broker that is all the same.
    """

    def __init__(self, job: Job, terms: Terms) -> None:
        super().__init__(job)
        self._terms = terms
        self._of: dict[TaskView, Producer] = {
            t: Producer(Plans(job.kernel, t.number)) for t in job.bolt_tasks if not t.component.outputs
        }
        job.context.withheld.update(self._of)

    def processed(self, task: BoltView, train: Train, sent: list[Sent]) -> None:
        if task in self._of and not task.component.window:
            self._of[task].open.put(int(train.time[0]), train.uid)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if task in self._of:
            transaction = self._of[task].open
            transaction.put(now, None)
            if task.component.anchored:
                transaction.effects += [part.uid for part in parts]
        return 0

    def _looked_at(self, task: TaskView) -> Producer | None:
        """The producer of a task, if it has one, with all that the task has put out."""
        if task in self._of:
            self._bolt(task).catch_up()
        return self._of.get(task)

    def pre_commit(self, task: TaskView, number: int) -> None:
        """What the task has put out is flushed, as its transaction ``number`` (they rise)."""
        producer = self._looked_at(task)
        if producer is None or producer.open.opened is None:
            return
        transaction = producer.flushed[number] = producer.open
        producer.open = Transaction()
        self._job.say.pre_committed(self._bolt(task), number)
        self._step(task, "transaction pre-committed", number)
        aborted = max(self._job.kernel.now, (transaction.opened or 0) + self._terms.timeout)
        expire = partial(self._expire, task, number, transaction)
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
                self._lose(task, n)

        def commit() -> None:
            for n in [n for n in producer.flushed if n <= number]:
                del producer.flushed[n]
                self._job.say.committed(self._bolt(task), n, self._job.kernel.now)
                self._step(task, "transaction committed", n)

        if mine:
            producer.plans.after(self._terms.commit_time, Rank.TRIM, commit)

    def roll_back(self, task: TaskView, number: int) -> None:
        """The task has failed: back to where it had pre-committed ``number`` (0: to the beginning)."""
        producer = self._looked_at(task)
        if producer is None:
            return
        producer.plans.void()
        for n in [n for n in producer.flushed if n > number]:
            self._undo(task, producer.flushed.pop(n))
            self._job.say.aborted(self._bolt(task), n, False)
            self._step(task, "transaction aborted", n)
        self._undo(task, producer.open)
        self._job.say.aborted(self._bolt(task), None, False)
        producer.open = Transaction()

    def _expire(self, task: TaskView, number: int, transaction: Transaction) -> None:
        """The broker has waited long enough."""
        producer = self._of[task]
        if producer.flushed.get(number) is transaction:
            transaction.dead = True
            self._step(task, "transaction timed out", number)
            if number <= producer.decided:
                self._lose(task, number)

    def _lose(self, task: TaskView, number: int) -> None:
        """What is in a transaction will not be there, though it is decided that it is."""
        self._undo(task, self._of[task].flushed.pop(number))
        self._job.say.aborted(self._bolt(task), number, True)
        self._step(task, "output lost", number)

    def _undo(self, task: TaskView, transaction: Transaction) -> None:
        if transaction.effects:
            uid = np.concatenate(transaction.effects)
            self._job.say.void(task.component, uid, self._bolt(task).replica)

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
