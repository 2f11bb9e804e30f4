"""The driver of one query: trigger, offset log, stages, output, commit; and what its death undoes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tideover.models.batches.cluster import LATE, Cluster, Executor
from tideover.models.batches.log import Batch, Content, Log, data
from tideover.models.batches.rehearsal import Rehearsal
from tideover.models.intake import Mask
from tideover.models.machine import Machine
from tideover.models.supervision import DRIVER
from tideover.models.task import BoltTask
from tideover.models.twin import effects_of
from tideover.models.windows import Counts
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.strategies.micro_batch import MicroBatch
    from tideover.models.world import World


class Version(NamedTuple):
    """A task's state as the last committed batch left it."""

    task: BoltTask
    counts: Counts | None
    epochs: dict[int, int]
    windows: int


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


class Query(Machine):
    """One query with its driver, its log position and its executors."""

    def __init__(self, world: World, strategy: MicroBatch, replica: int) -> None:
        super().__init__(DRIVER, None, replica, 0)
        self._world, self._strategy = world, strategy
        self.cluster = Cluster(world, strategy, replica, self)
        self.number += self.cluster.executors[0].number - 1
        self.log = Log()
        self.batch: Batch | None = None
        self._rehearsal = Rehearsal(world)
        self._shares = self._rehearsal.play({})
        self._batches = 0
        self.history: list[Record] = []
        """Batches that were committed."""
        self._versions: list[Version] = []
        self._life = 0
        self._cold = False
        self._triggered = 0

    def start(self) -> None:
        """The first trigger comes with the query's start."""
        self._at(0, self._trigger)

    def _at(self, when: int, action: Callable[[], None]) -> None:
        """Do it then, unless the driver dies before."""
        life = self._life
        order = LATE + 1 + self.number
        self._world.kernel.at(when, Rank.BATCH, lambda: action() if self._life == life else None, order)

    def _after(self, delay: int, action: Callable[[], None]) -> None:
        self._at(self._world.kernel.now + delay, action)

    # -- a batch ---------------------------------------------------------------------------------------------

    def _trigger(self) -> None:
        """Take all that waits in the log; if there is nothing, look again later."""
        now = self._triggered = self._world.kernel.now
        if not self.log.waiting:
            s = self._strategy
            self._at(self._next_trigger() if s.trigger_interval else now + s.poll_interval, self._trigger)
            return
        self.batch = Batch(self._batches, self.log.take())
        self._after(self._strategy.plan_time, self._logged)

    def _next_trigger(self) -> int:
        """The first multiple of the interval after the last trigger (Spark: ProcessingTimeExecutor)."""
        interval = self._strategy.trigger_interval
        if not interval:
            return self._triggered
        return (self._triggered // interval + 1) * interval

    def _logged(self) -> None:
        """The batch's range is durable: whatever happens now, this batch will be run."""
        assert self.batch is not None
        self.batch.logged = True
        self._batches += 1
        self._shares = self._rehearsal.play(self.batch.content)
        self._run()

    def _run(self) -> None:
        self._after(self._strategy.cold_time if self._cold else 0, lambda: self.cluster.start(self._shares))

    def stages_done(self) -> None:
        self._after(self._strategy.output_time, self._output)

    def _output(self) -> None:
        """The sink has the results: all tuples of the batch take effect at this instant."""
        assert self.batch is not None
        self._versions = [
            Version(
                task, None if task.counts is None else task.counts.copy(), dict(task.epochs), task.windows
            )
            for task in self.tasks()
        ]
        self.batch.visible = True
        if self.batch.shown_at is None:
            self.batch.shown_at = self._world.kernel.now
        for task, train in self.batch.content.items():
            task.refill([train])
        if self._strategy.output_mode == "update" and self.batch.tuples:
            self._world.recorder.note_output(
                (DRIVER, self.replica, self.batch.number), self._world.kernel.now
            )
        self._world.note(f"{self._name}: batch {self.batch.number} is in the sink")
        self._after(self._strategy.commit_time, self._commit)

    def _commit(self) -> None:
        """The batch is done for good; the next follows."""
        batch, now = self.batch, self._world.kernel.now
        assert batch is not None
        assert batch.shown_at is not None
        self.history.append(Record(batch.number, self._triggered, batch.shown_at, now, batch.tuples))
        self.batch = None
        self._versions = []
        self._cold = False
        self.cluster.forget()
        self._at(max(self._world.kernel.now, self._next_trigger()), self._trigger)

    # -- faults ----------------------------------------------------------------------------------------------

    def tasks(self) -> list[BoltTask]:
        return [p.task for p in self.cluster.partitions]

    def executor_failed(self, executor: Executor, outage: Outage) -> None:
        self.cluster.executor_failed(executor, outage)

    def executor_ready(self, executor: Executor, outage: Outage) -> None:
        self.cluster.executor_ready(executor)

    def task_failed(self, task: BoltTask, outage: Outage) -> None:
        """A bolt's task alone is hit."""
        self.cluster.task_failed(task, outage)

    def task_ready(self, task: BoltTask, outage: Outage) -> None:
        """It may go on."""
        self.cluster.task_ready(task, outage)

    def failed(self, outage: Outage) -> None:
        """The driver dies, and all executors with it. What the offset log has will be run again."""
        self._life += 1
        self.cluster.stop(outage)
        if self.batch is None:
            return
        if not self.batch.logged:
            self.log.put_back(self.batch.content)
            self.batch = None
        elif self.batch.visible:
            self.batch.visible = False
            self._roll_back(self.batch.content)

    def _roll_back(self, content: Content) -> None:
        """Back to the state of the last batch that was committed."""
        world = self._world
        for version in self._versions:
            world.roll_back(version.task, version.counts)
            version.task.epochs, version.task.windows = version.epochs, version.windows
        for name, uid in self._effects(content).items():
            component = world.topology.by_name[name]
            if not component.window:
                world.ledger.destroy_effects(component, uid, self.replica)
        for task, train in content.items():
            world.reopen(task, train)

    def ready(self, outage: Outage) -> None:
        """The driver is up again: it reads its logs, then runs what was logged and not committed."""
        self.cluster.renew()
        self._cold = True
        self._after(self._strategy.recovery_time, self._resume)

    def _resume(self) -> None:
        if self.batch is None:
            self._trigger()
            return
        self._triggered = self._world.kernel.now
        self._run()

    # -- what is left to see ---------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return DRIVER if self.replica == 0 else f"{DRIVER}/{self.replica}"

    def read_again(self, task: BoltTask, train: Train, outage: int | None = None) -> Mask | None:
        """Which of a task's tuples in this batch are worked off again (because of ``outage``); None: none."""
        again = self.cluster.of[task].again
        return np.ones(train.n, np.bool_) if again >= 0 and outage in (None, again) else None

    def settled(self, outage: int) -> bool:
        """Whether nothing has to be worked off again because of the outage, or no more."""
        return all(p.again != outage for p in self.cluster.partitions)

    def _effects(self, content: Content) -> dict[str, Ints]:
        """Uids of the effects that this content has at the ends of the topology."""
        at: dict[str, list[Train]] = {c.name: [] for c in self._world.topology.components}
        for task, train in content.items():
            if task.component.anchored:
                at[task.component.name].append(data(train))
        return effects_of(self._world.topology, self._world.draws, at)

    def kept_effects(self) -> dict[str, Ints]:
        """The same of all that the log keeps."""
        parts: dict[str, list[Ints]] = {}
        for content in self._contents():
            for name, uid in self._effects(content).items():
                parts.setdefault(name, []).append(uid)
        return {name: np.concatenate(uids) for name, uids in parts.items()}

    def _contents(self) -> list[Content]:
        contents: list[Content] = [{task: train} for task, ts in self.log.waiting.items() for train in ts]
        return contents if self.batch is None else [*contents, self.batch.content]

    @property
    def size(self) -> int:
        """Rows that the log keeps for the query."""
        return self.log.size + (0 if self.batch is None else sum(t.n for t in self.batch.content.values()))
