"""What a Trident topology reads, keeps and reads again, for the accounts too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.batches.log import effects_of_read
from tideover.models.mechanisms.trident.attempt import Attempt, roots_of
from tideover.models.mechanisms.trident.partitions import Content
from tideover.models.mechanisms.trident.passing import held, take
from tideover.models.mechanisms.trident.settings import TridentSettings
from tideover.models.mechanisms.trident.spouts import SOURCES
from tideover.models.mechanisms.trident.stores import STORES
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.context import without_markers
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import NOTHING, Keeper, Mask
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import BoltView, OutageView
from tideover.sim.train import Ints, Train


class Reading(Mechanism, Keeper):
    """The log, the attempts that have read in it, and what of it is read again."""

    needs = Needs(log=True, batches=True, readers_go_back=True, comparison=True)

    def __init__(self, job: Job, settings: TridentSettings) -> None:
        super().__init__(job)
        self._settings = settings
        self._source = SOURCES[settings.spout](settings)
        self._under_way: dict[int, Attempt] = {}
        """By number of the transaction."""
        self._stores = {t: STORES[settings.state](job, t) for t in job.bolt_tasks if is_end(t)}
        self._readers = [t for t in job.bolt_tasks if any(isinstance(c.up, SpoutTask) for c in t.inputs)]
        """Tasks that read spouts."""
        self._passing: tuple[Attempt, BoltTask] | None = None
        """Whose part passes now, and where."""
        self._again: dict[int, Ints] = {}
        """Roots that are read again, by the number of the outage that is why (-1: none is)."""
        job.context.keepers.append(self)
        for task in job.bolt_tasks:
            task.gate.closed = True

    # -- what comes ------------------------------------------------------------------------------------------

    def _gather(self, tasks: Iterable[BoltTask]) -> None:
        """Take what has come to these."""
        for task in tasks:
            for channel, train in take(self._job.plane, task):
                self._has_come(task, channel.up, train)

    def _has_come(self, task: BoltTask, up: SpoutTask | BoltTask, train: Train) -> None:
        if isinstance(up, SpoutTask):
            self._source.waiting.append((task, up), train)
            return
        assert self._passing is not None
        attempt, sender = self._passing
        attempt.handed_to.setdefault(task, []).append(train)
        if sender in self._stores:
            self._stores[sender].handed_on.append((task, train))

    # -- what is given up ------------------------------------------------------------------------------------

    def _put_back(self, attempt: Attempt, cause: int) -> None:
        """What an attempt has read comes again, or is lost; what it had made of it is gone."""
        if not self._source.comes_again(attempt):
            return
        for (task, _), train in attempt.content.items():
            if task in attempt.passed:
                self._job.say.reopened(task, without_markers(train))
        for task, trains in attempt.handed_to.items():
            for train in trains if task not in attempt.passed else ():
                self._job.say.unsent(task, without_markers(train))
        lost = self._source.give_up(attempt)
        for (task, _), train in lost.items():
            gone = without_markers(train).at(self._job.kernel.now)
            self._job.say.destroyed(task, gone, gone.time, cause)
        if not lost:
            self._mark_again(attempt.roots, cause)

    def _mark_again(self, roots: Ints, cause: int) -> None:
        """These are read again because of an outage."""
        self._forget(roots)
        if len(roots):  # else it had read nothing but end markers
            self._again[cause] = np.union1d(self._again.get(cause, NOTHING), roots)

    def _forget(self, roots: Ints) -> None:
        """These are read again no more."""
        kept = {cause: np.setdiff1d(again, roots) for cause, again in self._again.items()}
        self._again = {cause: again for cause, again in kept.items() if len(again)}

    def _done_with(self, attempt: Attempt) -> None:
        """Its transaction is committed."""
        self._source.committed(attempt.txid)
        self._forget(attempt.roots)

    def _tell_of_timeouts(self, attempts: list[tuple[Attempt, int]]) -> None:
        """What these attempts have read has timed out, each because of an outage (-1: none)."""
        for attempt, cause in attempts:
            for spout in self._job.spouts:
                roots = roots_of({place: t for place, t in attempt.content.items() if place[1] is spout})
                if len(roots):
                    because = np.full(len(roots), cause, np.int64)
                    self._job.say.timed_out(spout, roots, np.zeros_like(roots), because)

    # -- what is worked off again ----------------------------------------------------------------------------

    def _comes_again(self, task: BoltView, train: Train, again: list[Ints]) -> Mask | None:
        if not again:
            return None
        mask: Mask = np.isin(train.uid >> task.component.bits, np.concatenate(again))
        return mask if mask.any() else None

    def _tell_again(self, task: BoltTask, train: Train) -> None:
        """A task has worked off these."""
        train = without_markers(train)
        again = self._comes_again(task, train, list(self._again.values()))
        if again is not None and task.component.anchored:
            self._job.say.replayed(task, train.pick(again), None)

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return self._comes_again(task, train, [self._again[outage]] if outage in self._again else [])

    def settled(self, outage: OutageView) -> bool:
        number = outage.number
        broken = any(attempt.broken_by == number for attempt in self._under_way.values())
        return number not in self._again and not broken

    # -- what is kept ----------------------------------------------------------------------------------------

    def _kept(self) -> Iterator[Content]:
        """What may be read again, or for the first time."""
        yield self._source.waiting.content()
        yield from self._source.logged
        for attempt in self._under_way.values():
            if self._source.comes_again(attempt):
                yield attempt.content

    def moved(self, now: int) -> None:
        if self._passing is not None:
            return  # what is held may be no part of the log
        waits = sum(map(held, self._readers))
        read = sum(train.n for a in self._under_way.values() for train in a.content.values())
        self._job.say.kept(self._source.size + read + waits)

    def effects(self) -> list[tuple[Component, Ints]]:
        read = [(task, train) for content in self._kept() for (task, _), train in content.items()]
        found = [(task.component, without_markers(train).uid) for task, train in read]
        by_name = self._job.topology.by_name
        found += [(by_name[name], uid) for name, uid in effects_of_read(self._job, read).items()]
        for task, store in self._stores.items():
            if store.before is not None:  # may come back, though its window is out by now
                found.append((task.component, store.before.effects()))
        return found


def is_end(task: BoltTask) -> bool:
    """Whether a part is stored there: it has a state, or nobody reads it."""
    return task.state is not None or not task.component.outputs
