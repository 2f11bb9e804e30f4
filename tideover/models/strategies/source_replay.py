"""Source replay: Storm's acker, a rotating map of pending roots, and retries by the spout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.acker import NEVER, Completed, PendingRoots, group_xor
from tideover.models.strategies.base import NOTHING, STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.sim.draws import Bits, Purpose
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train
from tideover.sim.units import Duration, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.stream import Sent
    from tideover.models.task import BoltTask, SpoutTask
    from tideover.models.topology import Component, Edge
    from tideover.models.windows import Held
    from tideover.models.world import World


class Acking(Strategy):
    """What acking costs in normal operation."""

    ack_cost: Annotated[Duration, Field(description="time that one ack takes at the bolt")] = 0

    def protocol(self, world: World) -> AckCosts:
        return AckCosts(world, self)


@STRATEGIES.register("source_replay")
class SourceReplay(Acking):
    """At least once: roots whose tuples are not all acked within one to two timeouts are emitted again by the spout.

    A. Toshniwal et al., *Storm @Twitter*, SIGMOD 2014, section 3.3; T. Stableford, City University London, 2015, chapter 3.
    """

    promise: ClassVar[Promise] = "at least once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task"})
    disturbs: ClassVar[bool] = True

    message_timeout: Annotated[
        Duration, Field(gt=0, description="time between two rotations of the spout's map")
    ] = 30 * 10**9
    timeout_buckets: Annotated[int, Field(ge=2, le=64, description="buckets of the spout's rotating map")] = 2
    timeout_phase: Annotated[
        Duration | None,
        Field(description="first rotation after the spout's start; random per replication if not given"),
    ] = None
    acker_buckets: Annotated[int, Field(ge=2, le=64, description="buckets of the acker's rotating map")] = 3
    acker_host: Annotated[
        int | None, Field(ge=0, description="host of the acker; none: it fails only if it is named")
    ] = None
    ack_size: Annotated[Size, Field(description="bytes of an ack message")] = 20
    max_spout_pending: Annotated[
        int | None, Field(ge=1, description="most roots in flight per spout task")
    ] = None

    @property
    def acker_at(self) -> int | None:  # type: ignore[override]
        return self.acker_host

    def undisturbed(self) -> Strategy:
        return Acking(ack_cost=self.ack_cost)

    def protocol(self, world: World) -> Replay:
        return Replay(world, self)


class AckCosts(Protocol):
    """Acks take time at the bolt: each tuple's at once, a window's in one burst at its end."""

    def __init__(self, world: World, strategy: Acking) -> None:
        super().__init__(world)
        self.ack_cost = strategy.ack_cost

    def overhead_ns(self, component: Component) -> int:
        return self.ack_cost if component.anchored and not component.window else 0

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        return self.ack_cost * sum(len(h.uid) for h in held) if task.component.anchored else 0


class Replay(AckCosts):
    """The protocol: pending map, acker, rotation, retries."""

    def __init__(self, world: World, strategy: SourceReplay) -> None:
        super().__init__(world, strategy)
        self.strategy = strategy
        self.maps: list[PendingRoots] = []
        self.rotations: dict[int, list[int]] = {}
        self.alive_since = -1
        """The acker knows only roots emitted after this instant."""
        self.acker_outage = -1
        self._mask = (1 << world.topology.spout_bits) - 1

    # -- 1. a root and every tuple anchored to it get an id; the acker keeps their XOR ----------------------------

    def _ids(self, edge: Edge, train: Train) -> Bits:
        return self.world.draws.bits(edge.name, Purpose.IDENTITY, train.uid, train.attempt)

    def _children(self, sent: list[Sent], parents: int) -> Bits:
        value = np.zeros(parents, np.uint64)
        for s in sent:
            value ^= group_xor(self._ids(s.edge, s.train), s.rows, parents)
        return value

    def emitted(self, spout: SpoutTask, train: Train, sent: list[Sent]) -> None:
        self.maps[spout.spout_number].emit(train.uid, train.attempt, train.time, self._children(sent, train.n))
        spout.pending += train.n
        if self.alive_since == NEVER:
            self.maps[spout.spout_number].mark(train.uid, train.attempt, self.acker_outage)

    # -- 4. a bolt acks a tuple when its effect is safe ------------------------------------------------------------

    def processed(self, task: BoltTask, train: Train, sent: list[Sent]) -> None:
        if task.counts is None and task.component.anchored:
            self._ack(task, train, self._acked(task, train) ^ self._children(sent, train.n))

    def _acked(self, task: BoltTask, train: Train) -> Bits:
        """Ids of tuples, by the edge that they came over."""
        edges = task.component.inputs
        if len(edges) == 1:
            return self._ids(edges[0], train)
        digit = (train.uid >> edges[0].task_bits) & ((1 << edges[0].edge_bits) - 1)
        ids = np.zeros(train.n, np.uint64)
        for edge in edges:
            rows = np.flatnonzero(digit == edge.input_index)
            ids[rows] = self._ids(edge, train.pick(rows))
        return ids

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        if not held or not task.component.anchored:
            return 0
        uid = np.concatenate([h.uid for h in held])
        attempt = None
        if any(h.attempt is not None for h in held):
            attempt = np.concatenate(
                [np.zeros(len(h.uid), np.int64) if h.attempt is None else h.attempt for h in held]
            )
        times = now + self.ack_cost * np.arange(1, len(uid) + 1, dtype=np.int64)
        acks = Train(times, uid, times, uid, attempt=attempt)
        task.post(
            acks,
            lambda due: self._ack(task, due, self._acked(task, due)),
            lambda lost: self._unsent(task, lost),
        )
        return self.ack_cost * len(uid)

    def _ack(self, task: BoltTask, train: Train, value: Bits) -> None:
        """Acks leave ``task`` and reach the acker."""
        self.world.control_bytes += train.n * self.strategy.ack_size
        roots = train.uid >> task.component.bits
        for number, pending in enumerate(self.maps):
            rows = slice(None) if not self._mask else np.flatnonzero(roots & self._mask == number)
            mine = roots[rows]
            if not len(mine):
                continue
            attempt = None if train.attempt is None else train.attempt[rows]
            times = train.time[rows]
            rotated = self._rotated_out(pending, mine, times)
            value_here = value[rows]
            if rotated is not None:
                mine, times, value_here = mine[~rotated], times[~rotated], value_here[~rotated]
                attempt = None if attempt is None else attempt[~rotated]
            if len(mine):
                self._complete(number, pending.ack(mine, attempt, times, value_here, self.alive_since))

    def _rotated_out(self, pending: PendingRoots, roots: Ints, times: Ints) -> np.ndarray | None:
        """Roots that the acker's own map has forgotten at the time of the ack."""
        if times[-1] <= (self.strategy.acker_buckets - 1) * self.strategy.message_timeout:
            return None
        emitted = pending.emitted_at(roots)
        if emitted.min() > int(self._forgotten(times[-1:])[0]):
            return None
        return emitted <= self._forgotten(times)

    def _forgotten(self, times: Ints) -> Ints:
        """Roots emitted at or before this have rotated out of the acker's map, seen at ``times``."""
        period = self.strategy.message_timeout
        return (-(-times // period) - self.strategy.acker_buckets) * period

    def _complete(self, number: int, done: Completed | None) -> None:
        if done is None:
            return
        spout = self.world.spouts[number]
        if self.world.trace is not None:
            self.world.trace.complete(done.root, done.attempt, done.time)
        spout.pending -= len(done.root)
        spout.unblock(int(done.time.min()))

    # -- 2. unfinished roots wait in a rotating map ------------------------------------------------------------------

    def start(self) -> None:
        for spout in self.world.spouts:
            self.maps.append(PendingRoots(self.world.topology.spout_bits, spout.spout_number))
            spout.pending_cap = self.strategy.max_spout_pending
            self._start_rotation(spout)

    def _start_rotation(self, spout: SpoutTask) -> None:
        period = self.strategy.message_timeout
        phase = self.strategy.timeout_phase
        if phase is None:
            bits = self.world.draws.bits(spout.name, Purpose.PHASE, np.zeros(1, np.int64))
            phase = int(bits[0] >> np.uint64(11)) * period >> 53
        first = self.world.kernel.now + phase
        life = spout.life

        def rotate(r: int) -> None:
            if spout.life == life and spout.up:
                self._rotate(spout, first + (r - self.strategy.timeout_buckets + 1) * period)

        self.world.kernel.every(first, period, Rank.ROTATION, rotate, spout.number)

    def _rotate(self, spout: SpoutTask, before: int) -> None:
        """Roots last emitted at or before ``before`` have timed out (3.: they go to the retry queue)."""
        self.world.peak_buffered = max(self.world.peak_buffered, sum(s.pending for s in self.world.spouts))
        roots, attempt, outage = self.maps[spout.spout_number].expire(before)
        if len(roots):
            now = self.world.kernel.now
            self.world.timed_out(spout, roots, attempt, outage)
            self.world.retry(spout, roots, attempt + 1)
            spout.pending -= len(roots)
            spout.unblock(now)

    # -- 5. lost state means lost ids --------------------------------------------------------------------------------

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        for number, pending in enumerate(self.maps):
            mine = np.flatnonzero(roots & self._mask == number)
            pending.mark(roots[mine], None if attempt is None else attempt[mine], outage)

    def _unsent(self, task: BoltTask, train: Train) -> None:
        self.destroyed(task.fault, train.uid >> task.component.bits, train.attempt)

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        task.clear_outbox()
        if task in self.world.spouts and not task.up:
            self.maps[task.spout_number].clear()

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        task_inputs_open(task)
        if task in self.world.spouts:
            self._start_rotation(task)

    def acker_failed(self) -> None:
        self.alive_since = NEVER
        self.acker_outage = self.world.outages[-1].number
        forgotten = int(self._forgotten(np.array([self.world.kernel.now], np.int64))[0])
        for pending in self.maps:
            pending.mark_all(forgotten, self.acker_outage)

    def acker_ready(self) -> None:
        self.alive_since = self.world.kernel.now

    # -- what is left to see -------------------------------------------------------------------------------------------

    def copies(self) -> Ints:
        return np.concatenate([NOTHING, *(pending.roots() for pending in self.maps)])

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        if train.attempt is None or not task.component.anchored:
            return None
        roots = train.uid >> task.component.bits
        mask = train.attempt > 0
        for number, pending in enumerate(self.maps):
            rows = np.flatnonzero(mask & (roots & self._mask == number))
            mask[rows] = pending.replayed_for(roots[rows], outage)
        return mask

    def settled(self, outage: Outage) -> bool:
        return not any(pending.waiting_for(outage.number) for pending in self.maps)
