"""Source replay: Storm's acker, a rotating map of pending roots, and retries by the spout."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tideover.models.acker import Acker
from tideover.models.acking import Acking, AwaitsAcks
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.models.strategies.settings.source_replay import SourceReplaySettings
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.windows import Held, joined
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Rank
from tideover.sim.train import Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.stream import Sent
    from tideover.models.world import World


@STRATEGIES.register("source_replay")
class SourceReplay(SourceReplaySettings):
    """At least once: the spout emits a root again if its tree is not acked within one to two timeouts.

    A. Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3; T. Stableford, City University London,
    2015, chapter 3.
    """

    disturbs: ClassVar[bool] = True

    def undisturbed(self) -> Strategy:
        return Acking(ack_cost=self.ack_cost)

    def protocol(self, world: World) -> Replay:
        return Replay(world, self)


class Replay(AwaitsAcks):
    """The protocol: acker, pending map, rotation, retries."""

    def __init__(self, world: World, strategy: SourceReplay) -> None:
        super().__init__(world, strategy)
        self.strategy = strategy
        self.acker = Acker(world, strategy.message_timeout, strategy.acker_buckets)

    # -- 1. a root and every tuple anchored to it get an id; the acker keeps their XOR -----------------------

    def emitted(self, spout: SpoutTask, train: Train, sent: list[Sent]) -> None:
        self.acker.begin(spout, train, sent)
        spout.pending += train.n

    def _ack(self, task: BoltTask, sent: list[Sent], train: Train) -> None:
        """At zero the tree is done, and the spout forgets the root."""
        self.world.control_bytes += train.n * self.strategy.ack_size
        for number, done in self.acker.ack(task, train, sent):
            spout = self.world.spouts[number]
            if self.world.trace is not None:
                self.world.trace.complete(done.root, done.attempt, done.time)
            spout.pending -= len(done.root)
            spout.unblock(int(done.time.min()))  # 6. the cap on pending roots

    # -- 2. the spout keeps unfinished roots in a rotating map, whose phase starts with it -------------------

    def start(self) -> None:
        for spout in self.world.spouts:
            spout.pending_cap = self.strategy.max_spout_pending
            self._start_rotation(spout)

    def _start_rotation(self, spout: SpoutTask) -> None:
        period, phase, life = self.strategy.message_timeout, self.strategy.timeout_phase, spout.life
        if phase is None:
            bits = self.world.draws.bits(spout.name, Purpose.PHASE, np.zeros(1, np.int64))
            phase = int(bits[0] >> np.uint64(11)) * period >> 53
        first = self.world.kernel.now + phase

        def rotate(r: int) -> None:
            if spout.life == life and spout.up:
                self._rotate(spout, first + (r - self.strategy.timeout_buckets + 1) * period)

        self.world.kernel.every(first, period, Rank.ROTATION, rotate, spout.number)

    # -- 3. a root that was last emitted too long ago has failed: it goes to the spout's retry queue ---------

    def _rotate(self, spout: SpoutTask, before: int) -> None:
        pending = sum(s.pending for s in self.world.spouts)
        self.world.peak_buffered = max(self.world.peak_buffered, pending)
        roots, attempt, outage = self.acker.maps[spout.spout_number].expire(before)
        if len(roots):
            self.world.timed_out(spout, roots, attempt, outage)
            self.world.retry(spout, roots, attempt + 1)
            spout.pending -= len(roots)
            spout.unblock(self.world.kernel.now)

    # -- 4. a bolt acks a tuple when its effect is safe: a windowed count, at the end of the window ----------

    def processed(self, task: BoltTask, train: Train, sent: list[Sent]) -> None:
        if task.counts is None and task.component.anchored:
            self._ack(task, sent, train)

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        if not held or not task.component.anchored:
            return 0
        uid, attempt = joined(held)
        times = np.full(len(uid), now, np.int64)
        if self.ack_cost:
            times += self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        acks = Train(times, uid, times, uid, attempt=attempt)
        task.post(acks, partial(self._ack, task, []), partial(self._unsent, task))
        return self.ack_cost * len(uid)

    # -- 5. lost state means lost ids: those roots are never acked; a spout that crashes loses its map -------

    def _unsent(self, task: BoltTask, acks: Train) -> None:
        self.destroyed(task.fault, acks.uid >> task.component.bits, acks.attempt)

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        task.clear_outbox()
        if isinstance(task, SpoutTask) and not task.up:
            self.acker.maps[task.spout_number].clear()

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        super().ready(task, outage)
        if isinstance(task, SpoutTask):
            self._start_rotation(task)
