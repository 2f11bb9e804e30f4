"""What a strategy may do, and what it may know of the job around it.

Protocols and mechanisms call it, those from outside too: what is here stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState, restore, roll_back
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.draws import Draws
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


class View:
    """The job that a strategy works in: read only."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def now(self) -> int:
        return self._job.kernel.now

    @property
    def draws(self) -> Draws:
        return self._job.draws

    @property
    def spouts(self) -> Sequence[SpoutView]:
        return self._job.spouts

    @property
    def bolts(self) -> Sequence[BoltView]:
        return self._job.bolt_tasks

    @property
    def stateful(self) -> Sequence[BoltView]:
        return [task for task in self._job.bolt_tasks if task.state is not None]

    def replicas(self, task: BoltView) -> Sequence[BoltView]:
        return self._job.bolts[task.component.name, task.index]

    def is_stateful(self, task: TaskView) -> TypeGuard[BoltView]:
        return task.component.window is not None


class Verbs:
    """Acts on a job. Instants and durations are in ns; ``rank`` orders the actions of one instant
    (`tideover.sim.kernel.Rank`), then the number of the task that acts.
    """

    def __init__(self, job: Job) -> None:
        self._job = job

    # -- when ------------------------------------------------------------------------------------------------

    def at(self, when: int, action: Callable[[], None], rank: Rank, task: TaskView | None = None) -> None:
        """Call ``action`` at ``when``, after all tuples have been moved there."""
        self._job.kernel.at(when, rank, action, 0 if task is None else task.number)

    def every(
        self, period: int, action: Callable[[int], None], rank: Rank, task: TaskView, first: int | None = None
    ) -> None:
        """Call ``action(i)`` at ``first`` (one period, if not given) + i * ``period``, i = 0, 1, …"""
        self._job.kernel.every(period if first is None else first, period, rank, action, task.number)

    def enqueue(self, task: TaskView, action: Callable[[], None], rank: Rank, last: bool = False) -> None:
        """Call ``action`` when all that waits in the queue now is served; ``last``: as the turn's last."""
        self._job.tasks[task.number].enqueue(rank, action, last=last)

    def occupy(self, task: TaskView, duration: int) -> None:
        """Keep a task busy from now, or from when it is free."""
        self._job.tasks[task.number].occupy(duration)

    def charge(self, component: str, duration: int) -> None:
        """Let each tuple of a bolt, or call of a spout, take longer; said when the protocol is made."""
        self._job.context.overhead[component] += duration

    # -- spouts ----------------------------------------------------------------------------------------------

    def cap_pending(self, spout: SpoutView, most: int | None) -> None:
        """Let a spout have at most so many roots in flight."""
        self._job.spouts[spout.spout_number].in_flight.most = most

    def emit_again(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        """Put these roots at the end of the retry queue; ``outage``: why they failed (-1: none)."""
        if len(roots):
            task, say = self._job.spouts[spout.spout_number], self._job.say
            say.timed_out(task, roots, attempt, outage)
            task.emit_again(roots, attempt + 1)
            task.in_flight.settle(len(roots), self._job.kernel.now)

    def admit(self, task: BoltView, admits: Callable[[Train], bool]) -> None:
        """From now on a tuple that arrives at a task is let in only if ``admits`` says so of it, a train of
        one, at that instant; it may look at records of its own alone. What is turned away is lost, like what
        finds a queue full. It is asked tuple by tuple: docs/strategies.md says what that costs.
        """
        self._job.bolt(task).ask(admits)

    # -- state -----------------------------------------------------------------------------------------------

    def copy_state(self, task: BoltView) -> SavedState:
        """The state of a task as it is now."""
        return SavedState.of(self._job.bolt(task))

    def first_state(self, task: BoltView) -> SavedState:
        """The state of a task before the first tuple."""
        return SavedState.at_the_beginning(self._job.bolt(task))

    def restore(self, task: BoltView, state: SavedState, outage: OutageView, rewind: bool = True) -> None:
        """A task that an outage had hit has this state, and can go on; then ``open`` it. ``rewind``: its
        inputs come again from where the state was taken (a replay); else the end markers that it has seen
        and the windows that it has ended since still count.
        """
        restore(self._job, self._job.bolt(task), state, outage, rewind)

    def roll_back(self, task: BoltView, state: SavedState) -> None:
        """A task goes back to an earlier state: effects since then are undone, unless put out."""
        roll_back(self._job, self._job.bolt(task), None if state.state is None else state.state.copy())

    # -- life ------------------------------------------------------------------------------------------------

    def open(self, task: TaskView) -> None:
        """A task that is up again, and has what it needs, takes in what was held for it."""
        bolt = self._job.tasks[task.number]
        if isinstance(bolt, BoltTask):
            bolt.gate.closed = False
            bolt.gate.open()

    def close(self, task: BoltView) -> None:
        """A task that is up does nothing until it is opened: what waits is set aside, arrivals are held."""
        self._job.bolt(task).close()

    def take_over(self, task: TaskView, outage: OutageView) -> None:
        """A standby takes a task's place, ready and empty; not if it is ready, or has failed again."""
        self._job.supervisor.take_over(task, outage)

    # -- what is kept and sent -------------------------------------------------------------------------------

    def keep(self, tuples: int) -> None:
        """So many tuples are kept besides those in queues, now."""
        self._job.say.kept(tuples)

    def transfer(self, bytes_: int) -> None:
        """Bytes go over the network besides the streams."""
        self._job.say.transferred(bytes_)

    def step(
        self, who: TaskView | str, what: str, detail: str = "", to: TaskView | str | None = None
    ) -> None:
        """Say what a task or a role does now, and ``to`` whom, if it is a message (`announcements.Step`)."""
        names = [each if isinstance(each, str) else each.name for each in (who, to or "")]
        self._job.step(names[0], what, detail, names[1])
