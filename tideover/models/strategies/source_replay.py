"""Source replay: Storm's acker, a rotating map of pending roots, and retries by the spout.

Acks (tests/models/test_acking.py, test_plane_laws.py):

- A bolt acks a tuple when it has processed it; `ack_cost` is part of its service. A windowed bolt holds the
  ids: at its window's end the i-th of them, as they were processed, is acked `ack_time` + i * `ack_cost`
  later, and the task is busy until the last. A late tuple is acked at once.
- An ack is at the acker when it is sent. A tree is complete when the XOR of all ids that were created and
  acked in it is zero, at its latest ack. Markers and aggregates belong to no tree.
- The acker has a rotating map of its own, with the same timeout, `acker_buckets` and phase 0. Acks of what
  rotates out are ignored; an ack does not refresh an entry. With a crash of the acker all entries are lost;
  while it is down acks are, and trees that begin then are never known.

Timeouts and retries (tests/models/test_source_replay.py):

- Rotation r = 0, 1, ... is at the spout's start + phase + r * `message_timeout`; a phase that is not given
  is drawn within one timeout. With B buckets it fails every pending root that was last emitted at or before
  rotation r - B + 1, in order of that emission. They go to the end of the retry queue.
- A call of the spout serves one retry if there is any, else makes a new root. A retry has the next attempt
  and a new creation stamp; acks of earlier attempts are ignored.
- `max_spout_pending` caps, for each spout task, roots that are neither completed nor failed.
- A spout that crashes forgets its pending roots and retries.
- A timeout is false if no fault had destroyed anything of that attempt. What is emitted again is replayed
  because of the newest fault that had.
"""

from __future__ import annotations

from typing import ClassVar

from tideover.models import remarks
from tideover.models.job.topology import Component
from tideover.models.mechanisms import offsets
from tideover.models.mechanisms.acking import AckCosts, Acks
from tideover.models.remarks import Plan, Work
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import STRATEGIES, KeyPath, Protocol, Strategy
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Period, Size


class Acking(Strategy):
    """A strategy whose bolts ack; by itself what the reference run of such a strategy is under."""

    ack_cost: Duration = setting("time that one ack takes at the bolt", 0)
    ack_time: Duration = setting("time that a burst of acks takes at the bolt besides, before the first", 0)

    def load(self, component: Component) -> Work:
        return Work(self.ack_cost) if component.anchored else Work()

    def protocol(self, job: Job) -> Protocol:
        AckCosts(job, self.ack_cost, self.ack_time)
        return Protocol(job)


@STRATEGIES.register("source_replay")
class SourceReplay(Acking):
    """At least once: the spout emits a root again if its tree is not acked within one to two timeouts.

    A. Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3; T. Stableford, City University London,
    2015, chapter 3.
    """

    promise = "at least once"
    not_in_hybrid = "what is lost anywhere is replayed by the source, through all tasks"
    windows = frozenset({"sliding", "event", "session", "arrival session", "aside", "join"})
    survives = frozenset({"lose_state", "crash_task"})
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (Acks,)
    roles = frozenset({"acker"})
    bounded_queues = True
    reads_queues = True
    loses_messages = True
    counts_tuples = ("max_spout_pending",)
    caps = frozenset({"max_spout_pending"})
    spouts_wait = ("max_spout_pending",)
    gives_up = ("message_timeout",)
    per_tuple = frozenset({"ack_cost"})

    message_timeout: Period = setting("distance of two rotations", 30 * 10**9)
    timeout_buckets: int = setting("buckets of the spout's rotating map", 2, ge=2, le=64)
    timeout_phase: Duration | None = setting("first rotation after the spout's start; random if not given")
    acker_buckets: int = setting("buckets of the acker's rotating map", 3, ge=2, le=64)
    acker_host: int | None = setting("host of the acker; none: it fails only if it is named", ge=0)
    ack_size: Size = setting("bytes of an ack message", 20)
    max_spout_pending: int | None = setting("most roots pending per spout task", ge=1, le=10**12)

    def cycle(self) -> tuple[int, int] | None:
        return None if self.timeout_phase is None else (self.timeout_phase, self.message_timeout)

    def named_hosts(self) -> dict[KeyPath, int]:
        return {} if self.acker_host is None else {("acker_host",): self.acker_host}

    def remarks(self, plan: Plan) -> list[str]:
        timeout, least = self.message_timeout, self.message_timeout * (self.timeout_buckets - 1)
        return [
            *remarks.windows(plan, "message_timeout", timeout, least, self.ack_cost, self.ack_time),
            *remarks.held(plan, least),
        ]

    def undisturbed(self) -> Strategy:
        return Acking(ack_cost=self.ack_cost, ack_time=self.ack_time)

    def prompt(self) -> bool:
        return self.composed_of == SourceReplay.composed_of and self.max_spout_pending is None

    def protocol(self, job: Job) -> Replay:
        return Replay(job, self)


class Replay(Protocol):
    """The protocol: acks, a rotating map of pending roots, retries by the spout.

    ``held``: bolts with state hold their acks until somebody releases them.
    """

    held: ClassVar[bool] = False

    def __init__(self, job: Job, strategy: SourceReplay) -> None:
        super().__init__(job)
        s = self.strategy = strategy
        costs, spout = (s.ack_cost, s.ack_time, s.ack_size), (s.message_timeout, s.timeout_buckets)
        self.acks = Acks(job, *costs, *spout, s.timeout_phase, s.acker_buckets, s.acker_host, self.held)
        offsets.follow(job, self.acks.maps)

    def start(self) -> None:
        for spout in self.view.spouts:
            self.do.cap_pending(spout, self.strategy.max_spout_pending)
