"""A query that stops whenever something fails."""

from __future__ import annotations

from tideover.models.mechanisms.batches.batches import Batches, OutputMode
from tideover.models.mechanisms.batches.executor import Executor
from tideover.models.mechanisms.batches.settings import BatchSettings
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.sim.kernel import Rank


class Stopping(Batches):
    """Any fault stops the whole query at once. When all that has failed is ready again (of an executor it is
    enough that its loss is noticed, if another lives), it starts again; a subclass says with what.
    """

    def __init__(self, job: Job, settings: BatchSettings, output_mode: OutputMode) -> None:
        super().__init__(job, settings, output_mode)
        self._failed: dict[object, int] = {}
        """What keeps the query from starting, and the number of its newest outage."""
        self._stopped = False

    def given_up(self, outage: OutageView) -> None:
        """The query has stopped: what becomes of its batch."""
        raise NotImplementedError

    # -- faults ----------------------------------------------------------------------------------------------

    def executor_failed(self, executor: Executor, outage: OutageView) -> None:
        self._interrupt(executor, outage)

        def noticed() -> None:
            if self._failed.get(executor) == outage.number:
                self._recovered(executor)

        self._job.kernel.at(outage.detected_at, Rank.READY, noticed, executor.number)

    def executor_ready(self, executor: Executor, outage: OutageView) -> None:
        self._recovered(executor)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._interrupt(task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._recovered(task)

    def driver_failed(self, outage: OutageView) -> None:
        self._cluster.stop(outage)
        self._interrupt(self, outage)

    def driver_ready(self, outage: OutageView) -> None:
        """A new driver begins with new executors: it waits for nothing that failed before it was there."""
        self._cluster.renew()
        for what in self._failed:
            if isinstance(what, BoltTask):
                self._job.supervisor.back(what)
        self._failed = {}
        self._recovered(self)

    def _interrupt(self, what: object, outage: OutageView) -> None:
        self._driver.void()
        self._stopped = True
        self._failed[what] = outage.number
        self.given_up(outage)

    def _recovered(self, what: object) -> None:
        """If nothing else keeps it, and an executor lives, the query starts anew."""
        self._failed.pop(what, None)
        if self._stopped and not self._failed and any(e.up for e in self._cluster.executors):
            self._stopped = False
            self._restart()
