"""What a query in batches reads, its settings, and how long a batch will take.

`batches.py` runs the query with it; `micro_batch` and `batch_rerun` have the settings; Trident shares `Log`.
What a batch is, and what its dry run tells of it, is changed here; what is done with it when, there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, model_validator

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import effects_of
from tideover.models.operators.window import EventClock
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.views import BoltView
from tideover.sim.kernel import Kernel
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.registry import Part
from tideover.sim.train import Ints, Train
from tideover.sim.units import MS, Duration, S, format_duration


class BatchSettings(Part):
    """When a query triggers and what its steps take, in their order: settings of Structured Streaming, and
    measured costs; then what is special after a failure.
    """

    trigger_interval: Annotated[
        Duration,
        Field(description="distance of two triggers; 0 s: a batch follows at once on the one before"),
    ] = 0
    poll_interval: Annotated[
        Duration, Field(ge=MS, description="with a trigger_interval of 0 s: how long an idle driver waits")
    ] = 10 * MS
    plan_time: Annotated[
        Duration, Field(description="from the trigger until the batch's range is in the offset log")
    ] = 0
    task_time: Annotated[Duration, Field(description="time of a task besides its tuples' service")] = 0
    cores: Annotated[
        int, Field(ge=1, le=1024, description="tasks that an executor (a host) runs at once")
    ] = 1
    state_time: Annotated[Duration, Field(description="time of a stateful task to commit its state")] = 0
    state_cost: Annotated[Duration, Field(description="the same, for each row of the state")] = 0
    output_time: Annotated[
        Duration, Field(description="from the last task's end until the sink has the results")
    ] = 0
    commit_time: Annotated[Duration, Field(description="from then until the batch is in the commit log")] = 0
    reload_time: Annotated[
        Duration, Field(description="time to load a partition's state where it is not, or no more")
    ] = 0
    reload_cost: Annotated[Duration, Field(description="the same, for each row of the state")] = 0
    executor_cold: Annotated[
        Duration, Field(description="extra time of a new executor's tasks without state, until one has ended")
    ] = 0
    state_cold: Annotated[
        Duration,
        Field(
            description="the same for tasks with state; if they come first, at least executor_cold, or, with "
            "worker_cold, added to executor_cold - worker_cold"
        ),
    ] = 0
    worker_cold: Annotated[
        Duration | None,
        Field(
            description="the part of executor_cold that is a process beside it, which tasks without state "
            "need, and which ends with one that is stopped (PySpark's worker); default: there is none"
        ),
    ] = None
    locality_wait: Annotated[
        Duration,
        Field(
            description="how long a stateful task whose executor is dead waits, from its stage's begin or "
            "last launch, if others of the stage have theirs (spark.locality.wait)"
        ),
    ] = 3 * S
    resubmit_time: Annotated[
        Duration,
        Field(description="from a failed fetch until the tasks that have to run again are submitted"),
    ] = 200 * MS
    recovery_time: Annotated[
        Duration, Field(description="time of a restarted driver to read its logs and start the query")
    ] = 0
    cold_time: Annotated[
        Duration, Field(description="extra time of the first batch after a driver's restart")
    ] = 0

    @model_validator(mode="after")
    def _is_part(self) -> BatchSettings:
        if self.worker_cold is not None and self.worker_cold > self.executor_cold:
            raise ValueError(
                f"worker_cold ({format_duration(self.worker_cold)}) is a part of executor_cold "
                f"({format_duration(self.executor_cold)}), and must not be longer"
            )
        return self

    def refusal(self, bolt: BoltConfig) -> str | None:
        window = bolt.bolt.ends
        if window is None or window.idle_after is None:
            return None
        return "in batches its windows by event wait for all that it reads: leave idle_after out"

    def cycle(self) -> tuple[int, int] | None:
        interval = self.trigger_interval
        return (interval, interval) if interval else None

    def next_trigger(self, last: int) -> int:
        """After that of ``last``: at the first multiple of the interval (Spark: ProcessingTimeExecutor)."""
        interval = self.trigger_interval
        return (last // interval + 1) * interval if interval else last


class Records:
    """What one task reads, in order of arrival, ``n`` records with end markers; ``train``: the tuples."""

    def __init__(self, plane: Plane, rows: Rows) -> None:
        self._plane, self.rows = plane, rows
        self.n = len(rows)

    @cached_property
    def train(self) -> Train:
        return self._plane.train(self.rows[self.rows["mark"] == 0])

    @cached_property
    def tuples(self) -> int:
        return self.n - int(np.count_nonzero(self.rows["mark"]))

    @staticmethod
    def join(parts: Sequence[Records]) -> Records:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        return Records(parts[0]._plane, np.concatenate([part.rows for part in parts]))

    def split(self, tuples: int) -> tuple[Records, Records]:
        """So many tuples and the end markers behind them; and the rest."""
        place = np.flatnonzero(self.rows["mark"] == 0)
        cut = int(place[tuples]) if tuples < len(place) else self.n
        return Records(self._plane, self.rows[:cut]), Records(self._plane, self.rows[cut:])

    def since(self, epoch: int) -> Records:
        """The tuples of this epoch and later ones, and the markers that end them."""
        mark = self.rows["mark"]
        return Records(self._plane, self.rows[np.where(mark == 0, self.rows["epoch"] >= epoch, mark > epoch)])


Place = TypeVar("Place")
Read = TypeVar("Read", Records, Train)
Content = dict[BoltTask, Records]


class Log(Generic[Place, Read]):
    """What spouts have sent and no batch has taken, by the place where it is read, in order of arrival: so
    many rows (``size``). ``order`` sorts places, ``join`` puts together what has arrived at one.
    """

    def __init__(self, order: Callable[[Place], Any], join: Callable[[Sequence[Read]], Read]) -> None:
        self._order = order
        self._join: Callable[[Sequence[Read]], Read] = join
        self.waiting: dict[Place, list[Read]] = {}
        self.size = 0

    def append(self, place: Place, read: Read) -> None:
        """What has arrived; what comes over one channel at one instant is before what another brings then."""
        self.waiting.setdefault(place, []).append(read)
        self.size += read.n

    def content(self) -> dict[Place, Read]:
        return {place: self._join(self.waiting[place]) for place in sorted(self.waiting, key=self._order)}

    def take(self, there: Callable[[Place], bool] = lambda _: True) -> dict[Place, Read]:
        """Take all that waits at places that are ``there``."""
        taken = {place: read for place, read in self.content().items() if there(place)}
        for place, read in taken.items():
            del self.waiting[place]
            self.size -= read.n
        return taken

    def put_back(self, content: dict[Place, Read]) -> None:
        """What a batch had taken, ahead of what has come since."""
        for place, read in content.items():
            self.waiting.setdefault(place, []).insert(0, read)
            self.size += read.n


def capped(content: Content, most: int) -> tuple[Content, Content]:
    """Of what waits at each place its share of ``most`` tuples, at least one where there are any; and the
    rest (Apache Spark: ``KafkaMicroBatchStream.rateLimit``).
    """
    total = sum(records.tuples for records in content.values())
    if total <= most:
        return content, {}
    taken: Content = {}
    left: Content = {}
    for task, records in content.items():
        first, later = records.split(max(1, most * records.tuples // total))
        for part, found in ((first, taken), (later, left)):
            if part.n:
                found[task] = part
    return taken, left


def effects_of_read(job: Job, read: Iterable[tuple[BoltTask, Train]]) -> dict[str, Ints]:
    """Uids of the effects that what tasks read in a log has at the ends of the topology, by component."""
    at: dict[str, list[Train]] = {c.name: [] for c in job.topology.components}
    for task, train in read:
        if task.component.anchored:
            at[task.component.name].append(without_markers(train))
    return effects_of(job.topology, job.draws, at)


def median_distance(moments: Sequence[int]) -> int:
    """Of moments that follow on one another (ns); 0: there are not two."""
    between = np.diff(moments)
    return int(np.median(between)) if len(between) else 0


class Share(NamedTuple):
    """One task's part of a batch: service of its tuples (ns), and rows of its state after it (0: none)."""

    demand: int
    entries: int


Shares = dict[tuple[str, int], Share]
States = dict[BoltTask, SavedState]


@dataclass
class Batch:
    """A batch from its trigger to its commit.

    shares     what its tasks have to do, worked out when its range is logged (before: empty)
    start      finds the states of its tasks before it, known since then
    visible    whether the sink has its results, first at ``shown_at`` (ns)
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
        return bool(self.shares)

    @property
    def before(self) -> States:
        """The states before it, if its results are out."""
        return self.start() if self.visible else {}

    @property
    def tuples(self) -> int:
        """What it reads, without end markers."""
        return sum(records.tuples for records in self.content.values())


class Record(NamedTuple):
    """A batch that was committed; instants in ns. ``triggered``: last; ``visible``: in the sink, first."""

    number: int
    triggered: int
    visible: int
    committed: int
    tuples: int


class DryRun:
    """A job like the given one, with a data plane of its own, in which each batch is played once, in no time.

    How long a stage takes depends on what the stages before make of the batch, and its results show only when
    all of it is done; so the outcome has to be known before it happens. A batch whose range is durable never
    changes, so one dry run serves all its runs.
    """

    def __init__(self, job: Job, counts: bool) -> None:
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
        for task, takes in self._each.items():
            task.before = job.tell_of_emissions  # to whom it may concern when their events took place
            if takes is None:
                task.show(self._see)

    def _mirror(self, task: BoltTask) -> BoltTask:
        return self._job.bolts[task.component.name, task.index][0]

    def _see(self, task: BoltView, train: Train, _: Ints) -> None:
        bolt = self._job.bolt(task)
        self._of_drawn[bolt] += int(bolt.demand(train).sum())

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

    def play(self, content: Content) -> Shares:
        """Let tasks work off a batch of this content: shares of all logical tasks."""
        kernel, each = self._job.kernel, self._each
        kernel.now = self._main.kernel.now
        self._job.plane.valued |= self._main.plane.valued
        self._of_drawn = dict.fromkeys(each, 0)
        before = {task: task.worked for task in each}
        for task, records in content.items():
            self._mirror(task).gate.work_off(records.rows)
        kernel.advance()
        if end_batch(self._job, kernel.now):
            kernel.advance()
        shares = {}
        for task, takes in each.items():
            if takes is None:
                task.catch_up()
            demand = self._of_drawn[task] if takes is None else takes * (task.worked - before[task])
            entries = task.state.entries if self._counts and task.state is not None else 0
            shares[task.component.name, task.index] = Share(demand, entries)
        return shares


def end_batch(job: Job, now: int) -> bool:
    """All of a batch has passed all tasks of ``job``: those with windows by event put out what has ended, and
    look how far events have come, all tasks of a bolt together. Returns whether there are any.
    """
    by_event = [c for c in job.topology.components if c.trigger == "watermark"]
    for component in by_event:
        tasks = [job.bolts[component.name, index][0] for index in range(component.tasks)]
        for task in tasks:
            task.end_batch(now)
        EventClock.level([t.state.clock for t in tasks if t.state is not None and t.state.clock is not None])
    return bool(by_event)
