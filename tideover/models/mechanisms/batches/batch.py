"""One batch of a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tideover.models.mechanisms.batches.log import Content
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.saved_state import SavedState


class Share(NamedTuple):
    """One task's part of a batch: service of its tuples (ns), and rows of its state after it (0: none)."""

    demand: int
    entries: int


Shares = dict[tuple[str, int], Share]
"""By component and task."""
States = dict[BoltTask, SavedState]


@dataclass
class Batch:
    """A batch from its trigger to its commit.

    content    what it reads
    saves      whether its tasks save their states
    shares     what its tasks have to do, worked out when its range is logged (before: empty)
    start      finds the states of its tasks before it, known since then
    visible    whether the sink has its results, which are not taken back
    shown_at   when they came out for the first time (ns)
    """

    number: int
    content: Content
    saves: bool = True
    shares: Shares = field(default_factory=dict)
    start: Callable[[], States] = dict
    visible: bool = False
    shown_at: int | None = None

    @property
    def logged(self) -> bool:
        """Whether its range is durable: it will be run, come what may."""
        return bool(self.shares)

    @property
    def before(self) -> States:
        """The states before it, if its results are out."""
        return self.start() if self.visible else {}

    @property
    def tuples(self) -> int:
        """What it reads, without end markers."""
        return sum(records.tuples for records in self.content.values())

    @property
    def size(self) -> int:
        """What it reads, end markers too."""
        return sum(records.n for records in self.content.values())

    def come_out(self, now: int) -> None:
        """All of it takes effect now, through the tasks that read it."""
        self.visible = True
        self.shown_at = now if self.shown_at is None else self.shown_at
        for task, records in self.content.items():
            records.work_off(task)

    def committed(self, triggered: int, now: int) -> Record:
        """What is remembered of it, when it is done for good."""
        assert self.shown_at is not None
        return Record(self.number, triggered, self.shown_at, now, self.tuples)


class Record(NamedTuple):
    """A batch that was committed; instants in ns.

    ``triggered``: its last trigger (it may have been run before); ``visible``: the sink has it for the first
    time; ``tuples``: read from the log.
    """

    number: int
    triggered: int
    visible: int
    committed: int
    tuples: int
