"""Batch jobs of which the whole is run again."""

from __future__ import annotations

from tideover.models.mechanisms.batches.executor import DRIVER
from tideover.models.mechanisms.batches.stopping import Stopping
from tideover.models.runtime.views import OutageView
from tideover.sim.kernel import Rank


class JobAgain(Stopping):
    """A job that fails is run again from its beginning, with the same input; the results of those before it
    are there. If none is running, the next one begins when it is due.
    """

    def given_up(self, outage: OutageView) -> None:
        self._cluster.abort(outage)
        batch = self._batch
        if batch is None:
            return
        self._job.step(DRIVER, "job failed", f"batch {batch.number}")
        if not batch.logged:
            self._log.put_back(batch.content)
            self._batch = None
        elif batch.visible:
            self._take_back(batch)

    def _resume(self) -> None:
        if self._batch is not None:
            super()._resume()
            return
        now = self._job.kernel.now
        self._driver.at(self._settings.next_trigger(now), Rank.BATCH, self._trigger)
