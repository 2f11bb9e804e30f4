"""The reference run: what the windows would hold without failures."""

from __future__ import annotations

from collections.abc import Callable

from tideover.models.accounts import truths
from tideover.models.accounts.truths import Truth
from tideover.models.accounts.window_log import Place, WindowAudit, WindowLog
from tideover.models.job.topology import Component
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.stream import Sent
from tideover.models.runtime.views import SpoutView
from tideover.sim.train import Train, join

STEP = 20_000
"""Roots that are gathered before the reference run is moved."""


class ReferenceRun:
    """The same topology without failures, fed with the run's own first emissions, in lockstep.

    A tick waits in the queue behind all that has arrived before it, so what is in its window depends on
    arrivals only. Windows that end by tick and that nothing reads are therefore made at arrival, without
    service.

    It pays the strategy's costs in normal operation (acks), so that a failure-free run equals it. A replay
    that delays later roots is not an error of the windows: the reference run gets those roots late too.

    If an earlier run has emitted the same roots, what its reference run put out is taken instead, as long as
    nothing else is emitted.
    """

    def __init__(self, found: WindowLog, spouts: int, make: Callable[[WindowLog], Job], key: str) -> None:
        """``found``: windows of the run itself; ``make``: builds the job that is fed, which tells the log
        what it puts out; ``key``: everything that this job depends on.
        """
        self._found, self._make, self._key = found, make, key
        self._known = truths.known(key)
        self._new: Truth | None = Truth(spouts)
        """What this one finds; None: it is not to be kept."""
        self._followed = [0] * spouts
        """Roots of each spout task that are those that are known."""
        self._truth = WindowLog()
        self._job: Job | None = None
        self.audit = WindowAudit()
        self.counts: dict[str, int] = {}
        """emitted, correct, wrong, missing windows, at the end."""
        self._gathered: list[list[Train]] = [[] for _ in range(spouts)]
        """What each of its spouts is to emit."""
        self._fed = 0
        if self._known is None:
            self._begin()

    def _begin(self) -> Job:
        """Build the job; roots that are known are fed anew."""
        job = self._job = self._make(self._truth)
        for component in job.topology.components:
            bounded = job.deployment.bounds[component.name].length is not None
            shares = any(task.c.cores >= 0 for task in job.bolt_tasks if task.component is component)
            if component.trigger == "tick" and not component.outputs and not bounded and not shares:
                self._count_at_arrival(job, component)
        job.start()
        if self._known is not None:
            for number, count in enumerate(self._followed):
                self._gathered[number][:0] = self._known.of_spout(number, 0, count)
            self._known = None
        return job

    def _follows(self) -> bool:
        """Whether all that was gathered is what is known; it is forgotten then."""
        if self._known is None:
            return False
        joined = [join(trains) if trains else None for trains in self._gathered]
        for number, train in enumerate(joined):
            if train is not None:
                begin = self._followed[number]
                expected = self._known.of_spout(number, begin, begin + train.n)
                if not expected or not truths.same(expected[0], train):
                    return False
        for number, train in enumerate(joined):
            self._followed[number] += 0 if train is None else train.n
            self._gathered[number].clear()
        self._fed = 0
        return True

    def _count_at_arrival(self, job: Job, component: Component) -> None:
        """Let the tasks of a component count at arrival."""
        for task in range(component.tasks):
            job.bolts[component.name, task][0].take_in_at_arrival()

    def on_emitted(self, spout: SpoutView, train: Train, sent: list[Sent]) -> None:
        """Roots that the run has emitted; those emitted for the first time go to the reference run."""
        if train.attempt is not None:
            train = train.pick(train.attempt == 0).replace(attempt=None)
        if train.n:
            if train.epoch is not None:  # it has its own
                train = train.replace(epoch=None)
            self._gathered[spout.spout_number].append(train)
            self._fed += train.n

    def _hand_over(self, job: Job) -> None:
        """Feed what was gathered, in trains as long as can be."""
        for number, trains in enumerate(self._gathered):
            if trains:
                feed, train = job.spouts[number].feed, join(trains)
                assert feed is not None
                feed.append(train)
                trains.clear()
                if self._new is not None and not self._new.emitted(number, train):
                    self._new = None
        self._fed = 0

    def _compare(self) -> None:
        if self._new is not None:
            self._new.put_out(self._truth)
        self.audit.match(self._found, self._truth)

    def on_moved(self, now: int) -> None:
        """Move the reference run to just before ``now``, if there is enough to move."""
        if self._fed < STEP or self._follows():
            return
        job = self._job or self._begin()
        if now > job.kernel.now + 1:
            self._hand_over(job)
            job.kernel.run(now - 1)
            self._compare()

    def _ends_as_known(self) -> bool:
        """Whether all that the run has emitted, and nothing else, is known, and its windows, too."""
        if self._known is None or not self._follows():
            return False
        if any(self._known.of_spout(number, count) for number, count in enumerate(self._followed)):
            return False
        windows = self._known.windows()
        if self._found.open.keys() - windows.open.keys():
            return False
        self._truth = windows
        return True

    def finish(self, job: Job) -> None:
        """Move the reference run to the end of ``job``, and on to the windows that a faster replica has
        emitted by then.
        """
        kernel = None
        if not self._ends_as_known():
            mine = self._job or self._begin()
            kernel = mine.kernel
            self._hand_over(mine)
            kernel.run(job.deployment.run.duration)
            if self._new is not None:
                self._new.keep(self._key, self._truth)
        self.audit.match(self._found, self._truth)
        waiting = {
            (task.component.name, task.index, number)
            for task in job.bolt_tasks
            for number in (*task.windows.awaited, *_unsaid(job, task))
        }
        due, marked = set(self._truth.open) - waiting - self._found.hidden, job.end_markers()
        lost = self._found.lost
        self.audit.due = {p for p in due if p in lost or not _still_to_come(job, *p, marked)}
        while kernel is not None and self._found.open.keys() - self._truth.open.keys():
            event = kernel.next_data_event()
            if event is None or event <= kernel.now:
                break
            kernel.run(event)
        self.counts = self.audit.finish(self._found, self._truth)

    @property
    def bad(self) -> dict[Place, tuple[int, int]]:
        """Windows that are wrong or missing, and from when to when (ns) their content was."""
        return self.audit.bad


def _unsaid(job: Job, task: BoltTask) -> list[int]:
    """Numbers of the windows that a silent replica has put out, and that no other has."""
    newest = max(each.said for each in job.bolts[task.component.name, task.index])
    return [number for number in task.unsaid or () if number > newest]


def _still_to_come(job: Job, component: str, task: int, number: int, marked: set[int]) -> bool:
    """Whether a window is not put out yet, and all that it needs is safe in a log; or a marker that ends it
    is on its way (``marked``), or events have not come so far: the run may be later than its reference, which
    waits for no store.
    """
    replicas = job.bolts[component, task]
    windows = replicas[0].windows
    if windows.trigger == "watermark":
        window, clocks = (
            replicas[0].component.window,
            [r.state.clock for r in replicas if r.state is not None],
        )
        assert window is not None
        return any(clock is not None and clock.ended < number * window.step for clock in clocks)
    if number * windows.beats in marked and windows.trigger == "marker":
        return True
    return job.needs.log and any(number > replica.windows.newest for replica in replicas)
