"""Active standby: a secondary does all that its primary does, and keeps what it would send.

Each bolt task has two replicas; duplicates follow the rules of `DuplicateFilter`, copies those of
`StateTransfer`. Besides (tests/models/test_active_standby.py, test_hwang.py):

- Of the two one *speaks*, at first replica 0. Both do everything, and keep in output queues, one for each
  receiving replica, what they make for other bolts; what the silent one makes does not leave. A window that
  it ends counts as its own, and is put out by nobody yet. What is measured is that of who speaks.
- Each `ack_interval` (rank TRIM, waiting for no turn) a live task tells all live replicas that send to it
  what it has let in on each path, and the newest end marker that it has processed from them. These leave
  the queues. It costs `ack_size` bytes for each that is told.
- At detection (rank READY), or when it is back if that is sooner, a replica in the place of the failed one
  copies the live one, its output queues and the windows that nobody has put out included.
- If the failed one was to speak, and the other is live, that one is to speak from this instant; also one
  that goes on, copied or alone, when who is to speak is not live. A marker (rank REQUEST) comes into its
  queue. At its turn it puts out the windows above all that either has put out, then sends its queues,
  receiver by receiver in physical order, one message every `replay_cost`, and speaks from then on. Until
  then nobody does. If it fails before, nothing of this is kept.
- So only a replica that speaks masks a failure. A window that was put out in silence when the run ends is
  not missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tideover.models.mechanisms.buffers import OutputQueues
from tideover.models.mechanisms.replicas import DuplicateFilter, StateTransfer
from tideover.models.remarks import Plan, side_by_side
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, Protocol, Strategy
from tideover.sim.kernel import Rank
from tideover.sim.registry import setting
from tideover.sim.units import Bandwidth, Duration, Period, S, Size


@STRATEGIES.register("active_standby")
class ActiveStandby(Strategy):
    """Exactly once: a secondary processes everything, too, and keeps its output in queues that acks from
    downstream trim. As soon as the failure of the primary is noticed it sends what is in them, receivers drop
    what they have had, and another secondary copies its state. Markers must end windows.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.3; M. A. Shah et al., *Highly Available, Fault-Tolerant, Parallel Dataflows*, SIGMOD 2004 (Flux).
    """

    promise = "exactly once"
    not_in_hybrid = "who speaks is agreed with all tasks that read it, and these trim its queue"
    survives = frozenset({"lose_state", "crash_task", "crash_worker", "crash_host"})
    windows = frozenset({"sliding", "event", "session", "arrival session", "join"})
    bounded_queues = True
    recurs_every = "ack_interval"
    composed_of = (DuplicateFilter, OutputQueues, StateTransfer)
    after_failures = frozenset({"replay_cost", "copy_time", "copy_bandwidth"})
    per_tuple = frozenset({"replay_cost"})

    ack_interval: Period = setting("time after which a task tells its senders what it has had", S)
    ack_size: Size = setting("bytes of such a message on the network", 64)
    replay_cost: Duration = setting("time to send a tuple from the queue of a secondary that takes over", 0)
    copy_time: Duration = setting("time for a new secondary to begin its copy", 0)
    copy_bandwidth: Bandwidth | None = setting("speed at which state is copied; unlimited if not given")
    entry_size: Size = setting("bytes of an entry of the state that is copied", 64)

    def replicas(self, component: str, keeps_state: bool) -> int:
        return 2

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        return 2

    def remarks(self, plan: Plan) -> list[str]:
        return side_by_side(plan, "the secondaries")

    def protocol(self, job: Job) -> Pairs:
        return Pairs(job, self)


class Pairs(Protocol):
    """The protocol: both work, one speaks, both trim; the other takes over, and is copied."""

    def __init__(self, job: Job, strategy: ActiveStandby) -> None:
        super().__init__(job)
        s = self.strategy = strategy
        duplicates = DuplicateFilter(job)
        self.queues = OutputQueues(job, duplicates, s.replay_cost)
        self.transfer = StateTransfer(
            job, duplicates, s.copy_time, s.copy_bandwidth, s.entry_size, self.queues.there
        )

    def start(self) -> None:
        for task in self.view.bolts:
            self.do.every(self.strategy.ack_interval, partial(self.ack, task), Rank.TRIM, task)

    def ack(self, task: BoltView, i: int) -> None:
        """Those who send to the task are told what it has had."""
        if task.available and (told := self.queues.trim(task)):
            self.do.transfer(told * self.strategy.ack_size)
            self.do.step(task, "acks sent")

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self.do.at(outage.detected_at, partial(self.do.take_over, task, outage), Rank.READY, task)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        """A new secondary is there, or the primary is back."""
        if task.component.is_spout:
            self.do.open(task)
            return
        self.queues.gone(task)
        self.transfer.copy_or_go_on(task, outage)
