"""What a batch will cost: a rehearsal of it on the same topology, with the same draws, outside time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tideover.models.mechanisms.batches.batch import Share, Shares, States
from tideover.models.mechanisms.batches.log import Content
from tideover.models.operators.event_clock import EventClock
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import Context
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView
from tideover.sim.kernel import Kernel
from tideover.sim.train import Ints, Train


class Rehearsal:
    """A job like the given one, with a data plane of its own, in which each batch is played once, all of it
    at one instant.

    How long a stage takes depends on what the stages before make of the batch, and its results show only when
    all of it is done; so the outcome has to be known before it happens. A batch whose range is durable never
    changes, so one rehearsal serves all its runs.
    """

    def __init__(self, job: Job, counts: bool) -> None:
        """``counts``: whether anybody asks how many rows states have."""
        self._counts = counts
        context = Context(job.topology, job.draws, job.needs, Announcer([]))
        context.events = job.context.events
        self._main, context.kernel = job, Kernel()
        self._job = Job(context, job.deployment.quiet, fed=True)
        self._job.log(emitted=False, processed=False)
        self._job.plane.p.step = 0  # all goes through it at one instant
        self._job.kernel.listeners.clear()  # and nothing is lost there
        self._of_drawn: dict[BoltTask, int] = {}
        """What the services take that are drawn."""
        self._each = {task: task.each for task in self._job.bolt_tasks}
        """What each tuple takes (ns); None: it is drawn."""
        self._drawn = [task for task, takes in self._each.items() if takes is None]
        for task in self._job.bolt_tasks:
            task.before = job.tell_of_emissions  # to whom it may concern when their events took place
        for task in self._drawn:
            task.show(self._see)

    def start_from(self, tasks: list[BoltTask]) -> None:
        """Take the states of these tasks: the next batch is played from there."""
        for task in tasks:
            SavedState.of(task).put_into(self._mirror(task))

    def remember(self, tasks: list[BoltTask]) -> Callable[[], States]:
        """Remember the states that these tasks will have before the next batch; whoever wants them, asks."""
        found: States = {}

        def note(task: BoltTask, mirror: BoltTask, epochs: dict[int, int], ended: int, newest: int) -> None:
            state = mirror._state
            found[task] = SavedState(None if state is None else state.copy(), epochs, ended, newest)

        for task in tasks:
            mirror = self._mirror(task)
            windows = mirror.windows
            mirror.remember(partial(note, task, mirror, dict(windows.epochs), windows.ended, windows.newest))

        def states() -> States:
            self._job.catch_up()
            return found

        return states

    def _mirror(self, task: BoltTask) -> BoltTask:
        return self._job.bolts[task.component.name, task.index][0]

    def play(self, content: Content) -> Shares:
        """Shares of all logical tasks in a batch of this content."""
        demand = self._demand(content)
        return {
            (task.component.name, task.index): Share(
                demand[task], task.state.entries if self._counts and task.state is not None else 0
            )
            for task in self._job.bolt_tasks
        }

    def _see(self, task: BoltView, train: Train, _: Ints) -> None:
        bolt = self._job.bolt(task)
        self._of_drawn[bolt] += int(bolt.demand(train).sum())

    def _demand(self, content: Content) -> dict[BoltTask, int]:
        """Let tasks work off a batch; returns what that takes each of them (ns)."""
        kernel, main, each = self._job.kernel, self._main, self._each
        kernel.now = main.kernel.now
        self._job.plane.valued |= main.plane.valued
        self._of_drawn = dict.fromkeys(each, 0)
        before = {task: task.worked for task in each}
        for task, records in content.items():
            records.work_off(self._mirror(task))
        kernel.advance()
        if end_batch(self._job, kernel.now):
            kernel.advance()
        for task in self._drawn:
            task.catch_up()
        drawn = self._of_drawn
        return {
            task: drawn[task] if takes is None else takes * (task.worked - before[task])
            for task, takes in each.items()
        }


def end_batch(job: Job, now: int) -> bool:
    """All of a batch has passed all tasks of ``job``: those with windows by event put out what has ended, and
    look how far events have come, all tasks of a bolt together. Returns whether there are any.
    """
    by_event = [c for c in job.topology.components if c.trigger == "watermark"]
    for component in by_event:
        tasks = [job.bolts[component.name, index][0] for index in range(component.tasks)]
        for task in tasks:
            task.end_batch(now)
        EventClock.together(
            [t.state.clock for t in tasks if t.state is not None and t.state.clock is not None]
        )
    return bool(by_event)
