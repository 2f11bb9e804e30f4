"""Upstream backup: who sends keeps it until all that depends on it is done; state is rebuilt from that.

Takeover and duplicates follow the rules of `Standbys`, buffers those of `UpstreamBuffers`. Besides
(tests/models/test_secondaries.py, test_hwang.py):

- A message that a task has processed is *open*: a tuple at a task with state until it has left with a
  window (a late one is not), an end marker until it is handed on.
- Each `ack_interval` (rank CHECKPOINT, a marker in the queue) a bolt task notes a mark: of each channel in
  the greatest number up to which nothing is open, the newest marker handed on, and of each channel out the
  newest number sent. A mark is *done* when each receiver has said so of that number. The newest that is
  done is told at this instant: to the secondary, and by trim markers to the senders (`ack_size` bytes
  each).
- The end of a window by a tick, or by tuples, is told to the secondary at once: its number, and what was
  processed on each path by then. Such a window is not rebuilt; what it put out may go down with the task. A
  window by event is rebuilt from what is open, and is void if it comes again.
- The secondary has no state and no buffers. It has the positions of the mark that was told last, its
  markers, and the paths and the number of the last window told. Where markers end windows it drops tuples
  of epochs that were over by then. Marks that were not told are forgotten.
- It knows nothing of events: there is no watermark until something has come over each input again, and what
  was late may be in time now.
- Refused are state that goes on from window to window, a `state`, windows that slide by tick or tuples, and
  sessions: upstream would have to keep everything, or they would come again as others.
"""

from __future__ import annotations

from typing import ClassVar

from tideover.models import remarks
from tideover.models.job.components import BoltConfig
from tideover.models.mechanisms.base import when_due
from tideover.models.mechanisms.buffers import Reached, UpstreamBuffers
from tideover.models.mechanisms.replicas import ReplayFilter
from tideover.models.mechanisms.standbys import Progress, Standbys
from tideover.models.operators.base import Stateful
from tideover.models.operators.state import Effects
from tideover.models.remarks import Plan
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView
from tideover.models.strategies.base import STRATEGIES, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, Rate, S, Size


@STRATEGIES.register("upstream_backup")
class UpstreamBackup(Strategy):
    """Exactly once without checkpoints: an empty secondary goes on as soon as the failure is noticed, and
    rebuilds the state from what the tasks upstream have kept; downstream drops what it has had.

    J.-H. Hwang et al., *High-Availability Algorithms for Distributed Stream Processing*, ICDE 2005, section
    4.2. Duplicates are known by their path and number as in E. Tanuwidjaja, UC Berkeley EECS-2015-134,
    section 3, so that what several senders replay may be processed in another order than before.
    """

    promise = "exactly once"
    not_in_hybrid = "all tasks downstream have to say what they are done with"
    survives = frozenset({"lose_state", "crash_task", "crash_worker", "crash_host"})
    windows = frozenset({"sliding", "event", "join"})
    bounded_queues = True
    recurs_every = "ack_interval"
    composed_of = (UpstreamBuffers, ReplayFilter, Standbys, Progress)
    after_failures = frozenset({"replay_cost", "replay_rate"})
    per_tuple = frozenset({"replay_cost"})
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {"replays": ("replay_cost", "replay_rate")}

    ack_interval: Period = setting("time after which a task tells its senders what is done", S)
    ack_size: Size = setting("bytes of such a message on the network", 64)
    replay_cost: Duration = setting("time to replay one tuple from a buffer", 0)
    replay_rate: Rate | None = setting("most tuples replayed per second")

    def refusal(self, bolt: BoltConfig) -> str | None:
        if bolt.state is not None:
            return "its `state` is never done with, and cannot be rebuilt from what upstream keeps"
        if isinstance(bolt.bolt, Stateful) and not bolt.bolt.forgets:
            return (
                "its state goes on from window to window, so upstream would have to keep everything since "
                "the beginning to rebuild it"
            )
        window = bolt.bolt.ends
        slides = window is not None and (window.slide or window.slide_tuples)
        if window is not None and slides and window.by == "arrival" and window.trigger == "tick":
            return (
                "its windows slide, and what is sent again would fall into other panes than before; use "
                "trigger: marker, or by: event"
            )
        return None

    def remarks(self, plan: Plan) -> list[str]:
        return [*remarks.reordered(plan), *remarks.lost_with_spouts(plan)]

    def protocol(self, job: Job) -> Backups:
        return Backups(job, self)


class Backups(Protocol):
    """The protocol: keep, tell what is done, trim; take over with nothing, replay."""

    def __init__(self, job: Job, strategy: UpstreamBackup) -> None:
        super().__init__(job)
        s = self.strategy = strategy
        self.job = job
        # 1. every task keeps what it has sent, and drops what it has had
        self.buffers = UpstreamBuffers(job)
        self.buffers.keep_for(self.view.bolts, True, s.replay_cost, s.replay_rate)
        seen = ReplayFilter(job)
        self.standbys = Standbys(job, self.buffers, seen)
        # 2. what is done is told upstream, hop by hop
        self.progress = Progress(job, self.buffers, seen)

    def start(self) -> None:
        when_due(self.job, self.view.bolts, self.strategy.ack_interval, self.ack)

    def ack(self, task: BoltView) -> None:
        """Senders, and the secondary, are told what is done."""
        if self.progress.look(task):
            told = self.progress.told(task)
            self.do.transfer((len(told) + 1) * self.strategy.ack_size)
            self.do.step(task, "acks sent")
            self.buffers.trim(task, Reached(told))

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        if self.progress.tells(task):
            self.do.transfer(self.strategy.ack_size)
            self.do.step(task, "window's end told")
        return 0

    # 3. the secondary takes over

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task.component.is_spout:
            self.standbys.restarted(task)
        else:
            self.standbys.go_on(task, outage, self.progress.standby(task))
