"""One replication: a job under a strategy, and the accounts that listen to it. `simulation`, audits and fits
build and read it; here it is decided which accounts a run needs.
"""

from __future__ import annotations

import numpy as np

from tideover.models.accounts.backlog import Backlog, Lag
from tideover.models.accounts.counted import Counted
from tideover.models.accounts.ledger import Ledger, Losses
from tideover.models.accounts.recoveries import Readers, Recoveries
from tideover.models.accounts.reference_run import ReferenceRun, WindowLog
from tideover.models.accounts.trace import SpaceTime, Stretch, Trace
from tideover.models.accounts.usage import SAMPLES, Usage
from tideover.models.config import Scenario, deployment_of, timed
from tideover.models.job.cluster import Deployment
from tideover.models.job.topology import Component, effects_of
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.context import Context, EventTimes
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import Outage
from tideover.sim.draws import Draws
from tideover.sim.kernel import Kernel, Rank
from tideover.sim.recorder import Recorder
from tideover.sim.train import Ints, Train

CLOSE_AT = 1 << 18
"""Slots in the ledger at which old roots are settled."""


class World:
    """Everything that one replication consists of. Build it, ``run`` it, read it.

    job          what runs, under the scenario's strategy
    ledger, losses, backlog, windows, recoveries
    reference    None: nothing can disturb the windows, or nobody wants them judged
    trace        None: not asked for
    space_time   None: nothing is watched
    readers      None: they see at once what is put out
    usage        None: the tasks share nothing, or nobody wants it measured
    """

    def __init__(
        self,
        scenario: Scenario,
        replication: int = 0,
        *,
        trace: bool = False,
        judge_windows: bool = True,
        looks: int | None = None,
        watched: Stretch | None = None,
        curves_only: bool = False,
        in_time: bool = False,
    ) -> None:
        """``looks``: how often it is looked how busy everything is, besides the end of the warm-up; None:
        often if the tasks share something, else never.
        ``watched``: the stretch in which it is noted who sends what to whom. ``curves_only``: nobody will ask
        for its latencies or its balance. ``in_time``: nothing will be sent again because it is overdue.
        """
        self._draws = draws = Draws(scenario.run.seed, replication)
        self.scenario = scenario = timed(scenario, draws)
        run, strategy, deployment = scenario.run, scenario.strategy, deployment_of(scenario)
        topology, self.kernel = deployment.topology, Kernel()
        recorder = Recorder(run.duration, latencies=not curves_only)
        self.trace = Trace(topology, self._now) if trace else None
        self.backlog = Backlog(recorder, self._now)
        self.losses = Losses()
        books = topology, deployment.replicas, draws, self.losses
        self.ledger = Ledger(*books, filtered=strategy.needs.paths, effects=not curves_only)
        context = Context(topology, draws, strategy.needs, Announcer([]), self.kernel)
        self.windows = WindowLog(context.withheld)
        if topology.by_event:
            context.events = EventTimes(topology, draws)
        self.job = Job(context, deployment)
        if scenario.detector is not None:
            self.job.supervisor.watch = scenario.detector.watch(self.job)
        self.recoveries = Recoveries(self.job, recorder, self.backlog)
        self.space_time = None if watched is None else SpaceTime(self.job, watched)
        self.job.plug(strategy.protocol(self.job))
        self.readers = Readers(context.withheld, self.windows, recorder) if context.withheld else None
        self.lag = Lag(self.job, run.duration)
        looks = SAMPLES * bool(context.resources) if looks is None else looks
        self.usage = Usage(self.job, run.duration, run.warmup, looks) if looks else None
        self.reference: ReferenceRun | None = None
        if judge_windows and self._needs_reference(deployment, in_time):
            truth = WindowLog()
            self.reference = ReferenceRun(self.windows, truth, self._fed(truth))
        listeners = (  # they hear what happens in this order
            self.trace,
            self.backlog,
            self.ledger,
            self.losses,
            self.windows,
            self.readers,
            self.recoveries,
            self.reference,
            self.space_time,
            self,
        )
        context.say = Announcer([each for each in listeners if each is not None])
        self._close_at = CLOSE_AT
        self._counted = Counted(self.job, self.backlog, self.ledger, recorder)
        traced, shown = self.trace is not None, self.space_time is not None
        emitted = traced or self.reference is not None or context.events is not None
        completed = traced or self.usage is not None or shown
        self.job.log(emitted=emitted, processed=traced, completed=completed)
        if self.space_time is not None:
            self.job.note_senders(self.space_time.mark)
            if self.space_time.begin > 0:
                self.kernel.at(self.space_time.begin - 1, Rank.SAMPLE, self.job.log_all)
            else:
                self.job.log_all()

    def _now(self) -> int:
        return self.kernel.now

    def _needs_reference(self, deployment: Deployment, in_time: bool) -> bool:
        """Whether the windows can differ from those of a run without failures, and without the strategy:
        where it keeps a task for a while what this sends comes later (all may, behind it in a card), and what
        several send in another order, or it finds no place; where they are committed, that may come too late.
        """
        windows = [c for c in deployment.topology.components if c.window]
        again = self.job.needs.comparison and not in_time
        if not windows or deployment.failures or again or self.readers is not None:
            return bool(windows)
        ended_by = {c.trigger for c in windows}
        bounds = [bound for bound in deployment.bounds.values() if bound.length is not None]
        read = [edge.up for c in windows for edge in c.inputs]
        late = bool(bounds) or bool(self.job.network.cards) or not all(c.is_spout for c in read)
        lossy = not all(bound.holds_back for bound in bounds)
        gaps = any(c.window.gap is not None for c in windows if c.window)
        by_order = lossy or gaps or ended_by & {"tuples", "watermark"} or ("tick" in ended_by and late)
        return bool(by_order) and any(each.occupies for each in self.scenario.strategy.composed_of)

    def _fed(self, truth: WindowLog) -> Job:
        """The job without failures, and as its strategy wants it then, that emits what this one does;
        ``truth`` hears of its windows.
        """
        strategy, job = self.scenario.strategy.undisturbed(), self.job
        deployment = deployment_of(self.scenario, strategy).quiet
        needs = strategy.needs._replace(log=job.needs.log)
        context = Context(deployment.topology, self._draws, needs, Announcer([truth]), Kernel())
        context.events = job.context.events
        fed = Job(context, deployment, fed=True)
        fed.plug(strategy.protocol(fed))
        fed.log(emitted=False, processed=False)
        return fed

    @property
    def outages(self) -> list[Outage]:
        return self.job.supervisor.outages

    @property
    def recorder(self) -> Recorder:
        return self.recoveries.recorder

    def run(self) -> None:
        self.start()
        self.kernel.run(self.scenario.run.duration)
        self.settle()
        self.backlog.settle()
        if self.reference is not None:
            self.reference.finish(self.job)
        if self.trace is not None:
            self.trace.final_state = {
                (task.component.name, task.index, task.replica): task.state.content()
                for task in self.job.bolt_tasks
                if task.state is not None
            }

    def settle(self) -> None:
        """Tell the accounts all that the data plane has counted and logged."""
        self.job.catch_up()
        self._counted.settle()
        self.recoveries.read()

    def start(self) -> None:
        self.job.start()
        self.lag.start()
        if self.usage is not None:
            self.usage.start()

    def on_moved(self, now: int) -> None:
        """Settle and forget the oldest roots, when there are many."""
        self._counted.note_used()
        if max(self.ledger.size, self.backlog.size) > self._close_at:
            self._close()

    def _close(self) -> None:
        self.settle()
        bits = self.job.topology.spout_bits
        made = [s.next_root << bits for s in self.job.spouts]
        roots = np.concatenate([self.unfinished(), made])
        before = int(roots.min()) >> bits
        self.recoveries.settle_roots(before << bits, self.ledger.missing)
        self.ledger.close(before)
        self.backlog.prune(before << bits)
        self._counted.pruned()
        self._close_at = max(CLOSE_AT, 2 * max(self.ledger.size, self.backlog.size))

    def unfinished(self) -> Ints:
        """Roots that are on their way, or of which somebody keeps a copy, or in the state of a task (with
        repetitions).
        """
        job, parts = self.job, [self.job.can_be_emitted()]
        for name, trains in self._to_be_served().items():
            parts += [train.uid >> job.topology.by_name[name].bits for train in trains]
        parts += [uid >> component.bits for component, uid in self._kept_effects()]
        for task in job.bolt_tasks:
            if task.state is not None and task.component.anchored:
                parts.append(task.state.effects().uid >> task.component.bits)
        return np.concatenate(parts)

    def _to_be_served(self) -> dict[str, list[Train]]:
        """Tuples on their way, and copies of such that can come again, by component."""
        at = self.job.on_the_way()
        for holder in self.job.context.holders:
            for component, train in holder.tuples():
                if component.anchored:
                    at[component.name].append(Train(train.time, train.uid, train.created, train.key))
        return at

    def balance(self) -> dict[str, int]:
        """The ledger at this moment: emitted = completed + in flight + lost."""
        job = self.job
        bits = job.topology.spout_bits
        first = self.ledger.base >> bits
        emitted = [
            (np.arange(first, s.next_root, dtype=np.int64) << bits) | s.spout_number for s in job.spouts
        ]
        to_be_served = effects_of(job.topology, self._draws, self._to_be_served())
        coming = {name: [uid] for name, uid in to_be_served.items()}
        for component, uid in self._kept_effects():
            coming.setdefault(component.name, []).append(uid)
        return self.ledger.balance(np.concatenate(emitted), coming, job.can_be_emitted())

    def _kept_effects(self) -> list[tuple[Component, Ints]]:
        """Effects of which somebody keeps a copy."""
        found = [each for holder in self.job.context.holders for each in holder.effects()]
        return [(component, uid) for component, uid in found if component.anchored]
