"""A task of a stage, as the scheduler sees it."""

from __future__ import annotations

from tideover.models.mechanisms.batches.batch import Share
from tideover.models.mechanisms.batches.executor import Executor, Life, lives
from tideover.models.runtime.bolt_task import BoltTask


class Partition:
    """A bolt task as Spark runs it: one partition of a stage (a component), over and over.

    own          the executor of its worker, where it runs at first
    home         where its state was loaded last; None: nowhere, there is nothing to load
    stale        that copy is spoilt; ``spoilt`` counts how often it was, by a fault of the state alone
    lost_by      number of the outage that took the copy
    blocked      number of the outage because of which it may not run; None: it may
    saved_rows   rows of its state when it was saved last, if that is not in every batch
    since_saved  what it has worked on in the batches that were committed since then (ns)
    In the batch that runs:
    attempt      number of the attempt that runs; 0: none does
    loaded       since when it has its state, with ``spoilt`` and ``lost_by`` at its start; None: it had it
                 before
    ran          where the attempt runs, or has ended
    not_before   ns; None: its executor is dead, and the scheduler does not know yet
    again        number of the outage because of which it runs again; -1: none
    """

    def __init__(self, task: BoltTask, own: Executor) -> None:
        self.task = task
        self.own = own
        self.stateful = task.state is not None
        self.home: Life | None = (own, 0)
        self.stale = False
        self.spoilt = 0
        self.lost_by = -1
        self.blocked: int | None = None
        self.saved_rows = self.since_saved = 0
        self.share = Share(0, 0)
        self.done = True
        self.attempt = 0
        self.began_at = self.ends_at = 0
        self.loaded: tuple[int, int, int] | None = None
        self.ran: Life | None = None
        self.not_before: int | None = 0
        self.again = -1

    @property
    def gone(self) -> bool:
        """Whether what it has put out for others in this batch died with its executor."""
        return self.done and not lives(self.ran)

    def is_at(self, executor: Executor) -> bool:
        """Whether its state is there, or, if it has none, it has run there last."""
        return (self.home if self.stateful else self.ran) == (executor, executor.life)

    def begin(self, share: Share) -> None:
        """A batch begins, or begins anew."""
        self.share = share
        self.done = False
        self.attempt = 0
        self.ran = None
        self.not_before = 0
