"""How far spouts are behind the queues that they read."""

from __future__ import annotations

from tideover.models.runtime.job import Job
from tideover.models.runtime.reading import Reading
from tideover.models.runtime.spout_task import SpoutTask
from tideover.sim.kernel import Rank
from tideover.sim.units import S


class Lag:
    """Looks each second how many records have been appended and not been read yet (what is read again was
    read before); nothing changes by that.

    records   at the beginning of each second, of all queues together
    """

    def __init__(self, job: Job, duration: int) -> None:
        self._job, self._duration = job, duration
        self._readings = [(spout, spout.reading) for spout in job.spouts if spout.reading is not None]
        self.records: list[int] = []

    def start(self) -> None:
        """Plan the looks, if anything is read."""
        for second in range(-(-self._duration // S)) if self._readings else ():
            self._job.kernel.at(second * S, Rank.SAMPLE, self._look)

    def _look(self) -> None:
        now = self._job.kernel.now
        self.records.append(sum(_unread(spout, reading, now) for spout, reading in self._readings))


def _unread(spout: SpoutTask, reading: Reading, now: int) -> int:
    return reading.appended_before(now) - spout.next_root
