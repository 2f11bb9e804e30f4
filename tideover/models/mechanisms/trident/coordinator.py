"""Transactions: who begins their attempts, lets them commit one after the other, and gives them up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tideover.models.mechanisms.batches.cluster import LATE
from tideover.models.mechanisms.trident.attempt import Attempt
from tideover.models.mechanisms.trident.settings import TridentSettings
from tideover.models.mechanisms.trident.tasks import COORDINATOR, Tasks
from tideover.models.runtime.job import Job
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.views import OutageView
from tideover.sim.kernel import Rank


class Coordinator(Tasks):
    """Numbers batches, and lets them commit in this order (Storm's ``MasterBatchCoordinator``).

    What it has marked as committed outlives it; which attempts are under way does not.
    """

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job, settings)
        self._plans = Plans(job.kernel, LATE + 1)
        """What it is about to do, unless it dies before."""
        self._lives = True
        self._current = 1
        """The first transaction that is not committed."""
        self._updates: list[int] = []
        """When all stores had what transactions had brought, in their order."""
        job.context.rhythm = self._rhythm

    def start(self) -> None:
        s, kernel = self._settings, self._job.kernel
        kernel.every(s.message_timeout, s.message_timeout, Rank.ROTATION, self._look_for_late, LATE + 1)
        kernel.every(s.batch_interval, s.batch_interval, Rank.BATCH, self._tick, LATE + 1)

    def _say(self, what: str, attempt: Attempt) -> None:
        self._job.step(COORDINATOR, what, f"transaction {attempt.txid}")

    def _rhythm(self) -> int:
        """The median distance of two batches' results (ns)."""
        between = np.diff(self._updates)
        return int(np.median(between)) if len(between) else 0

    # -- 1. each interval: an attempt of the next transaction ------------------------------------------------

    def _tick(self, _: int) -> None:
        if not self._lives or len(self._under_way) >= self._settings.max_spout_pending:
            return
        txid = max(self._under_way, default=self._current - 1) + 1
        self._gather(self._readers)
        content = self._source.read(txid)
        if not content:
            return
        attempt = self._under_way[txid] = Attempt(txid, content, self._job.kernel.now)
        self._say("batch begun", attempt)
        if self._source.writes_first(txid):
            self._later(self._settings.metadata_time, attempt, self._write_content)
        else:
            self._begin(attempt)

    def _later(self, delay: int, attempt: Attempt, act: Callable[[Attempt], None]) -> None:
        """For an attempt, unless it is given up before."""

        def do() -> None:
            if self._under_way.get(attempt.txid) is attempt:
                act(attempt)

        self._plans.after(delay, Rank.BATCH, do)

    def _write_content(self, attempt: Attempt) -> None:
        self._source.written(attempt)
        self._say("metadata written", attempt)
        self._begin(attempt)

    # -- 2. tasks work; 3. when all have, and it is its turn, the stores are updated -------------------------

    def processed_all(self, attempt: Attempt) -> None:
        self._later(0, attempt, lambda _: self._commit_current())

    def _commit_current(self) -> None:
        attempt = self._under_way.get(self._current)
        if attempt is None or not attempt.processed or attempt.commits_at is not None:
            return
        attempt.commits_at = self._job.kernel.now
        self._say("commit begun", attempt)
        self._update_all(attempt)
        if self._source.writes_last:
            self._later(self._settings.metadata_time, attempt, self._write_position)
        else:
            attempt.logged = True

    def _write_position(self, attempt: Attempt) -> None:
        attempt.logged = True
        self._say("metadata written", attempt)
        self._look_whether_stored(attempt)

    # -- 4. all is stored: spouts are told; 5. the mark ------------------------------------------------------

    def stored_all(self, attempt: Attempt) -> None:
        self._later(0, attempt, self._succeed)

    def _succeed(self, attempt: Attempt) -> None:
        attempt.updated = True
        self._updates.append(self._job.kernel.now)
        self._say("spouts told", attempt)
        self._later(self._settings.commit_time, attempt, self._mark)

    def _mark(self, attempt: Attempt) -> None:
        self._say("batch committed", attempt)
        del self._under_way[attempt.txid]
        self._current += 1
        self._done_with(attempt)
        self._commit_current()

    # -- failures --------------------------------------------------------------------------------------------

    def _look_for_late(self, _: int) -> None:
        """Fail the first attempt that takes too long, and with it those that follow."""
        if not self._lives:
            return
        limit = self._job.kernel.now - self._settings.message_timeout
        for txid in sorted(self._under_way):
            since = self._under_way[txid].timed_since
            if since is not None and since <= limit:
                failed = [self._under_way[other] for other in sorted(self._under_way) if other >= txid]
                self._say("batch failed", failed[0])
                causes = [self._cause(attempt, failed[0]) for attempt in failed]
                self._tell_of_timeouts(list(zip(failed, causes, strict=True)))
                self._give_up(failed, causes)
                return

    @staticmethod
    def _cause(attempt: Attempt, first: Attempt) -> int:
        """Number of the outage because of which an attempt fails with the ``first`` one (-1: none)."""
        known = [each.broken_by for each in (attempt, first) if each.broken_by is not None]
        return known[0] if known else -1

    def coordinator_failed(self, outage: OutageView) -> None:
        self._lives = False
        self._plans.void()
        attempts = [self._under_way[txid] for txid in sorted(self._under_way)]
        self._give_up(attempts, [outage.number] * len(attempts))

    def coordinator_ready(self) -> None:
        self._lives = True
        self._job.supervisor.back(self._machine)

    def _give_up(self, attempts: list[Attempt], causes: list[int]) -> None:
        """None of these attempts (the last ones that are under way) goes on, because of these outages."""
        self._drop(attempts)
        for attempt, cause in reversed(list(zip(attempts, causes, strict=True))):
            del self._under_way[attempt.txid]
            self._put_back(attempt, cause)
