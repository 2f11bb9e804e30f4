"""Recovery using state management: checkpoints of state, and upstream buffers that are replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.upstream_buffer import END_OF_REPLAY, UpstreamBuffer
from tideover.models.windows import Counts, Held
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel
from tideover.sim.train import Ints, Train, single
from tideover.sim.units import Duration, Rate, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.topology import Component
    from tideover.models.world import World


@STRATEGIES.register("rsm")
class StateManagement(Strategy):
    """Exactly once for state: restore the last checkpoint, then replay what upstream tasks have kept since.

    R. Castro Fernandez et al., SIGMOD 2013, section 4; T. Stableford, City University London, 2015, chapter 5.
    """

    promise: ClassVar[Promise] = "exactly once"
    survives: ClassVar[frozenset[str]] = frozenset({"lose_state", "crash_task"})

    checkpoint_interval: Annotated[
        Duration, Field(gt=0, description="time between two checkpoints of a task")
    ]
    spout_buffer: Annotated[bool, Field(description="spouts keep an upstream buffer too")] = False
    replay_cost: Annotated[Duration, Field(description="time to replay one tuple from a buffer")] = 0
    replay_rate: Annotated[Rate | None, Field(description="most tuples replayed per second")] = None
    serialise_time: Annotated[Duration, Field(description="time that a checkpoint keeps the task")] = 0
    serialise_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    restore_time: Annotated[Duration, Field(description="time to restore a checkpoint that was read")] = 0
    restore_cost: Annotated[Duration, Field(description="the same, for each entry of the state")] = 0
    entry_size: Annotated[Size, Field(description="bytes of an entry in the store")] = 64

    def protocol(self, world: World) -> Recovery:
        return Recovery(world, self)


@dataclass
class Checkpoint:
    """State, and the newest number processed on each input channel; ``valid`` once the store has it."""

    counts: Counts
    positions: dict[int, int]
    epochs: dict[int, int]
    windows: int


class Guard:
    """What the protocol knows of one stateful task."""

    def __init__(self, task: BoltTask, buffers: dict[int, UpstreamBuffer]) -> None:
        self.task = task
        self.buffers = buffers
        """By the position of the input channel that they feed."""
        self.positions: dict[int, int] = dict.fromkeys(buffers, 0)
        self.saved: Checkpoint | None = None
        self.writing = 0
        """Number of the write under way; 0: none."""
        self.recovery = 0
        """Counts recoveries: what belongs to an earlier one is stale."""
        self.waiting: set[int] = set()
        """Channels whose end-of-replay marker has not come."""
        self.unfinished: set[int] = set()
        """Channels whose end-of-replay marker has not been processed."""
        self.reading = False

    @property
    def recovering(self) -> bool:
        return self.reading or bool(self.unfinished)


class Recovery(Protocol):
    """The protocol: buffers, checkpoints, trims, restores, replays."""

    def __init__(self, world: World, strategy: StateManagement) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.guards: dict[BoltTask, Guard] = {}
        self.requests: dict[Channel, tuple[Guard, int]] = {}
        """Channels whose sender still owes an end-of-replay marker, and to which recovery."""
        self._writes = 0

    # -- 1. upstream tasks keep every tuple, numbered by channel ---------------------------------------------------

    def start(self) -> None:
        for tasks in self.world.bolts.values():
            for task in tasks:
                if task.counts is not None:
                    self._guard(task)

    def _guard(self, task: BoltTask) -> None:
        buffers = {}
        for channel in task.inputs:
            if isinstance(channel.up, BoltTask) or self.strategy.spout_buffer:
                buffers[channel.position] = UpstreamBuffer(channel)
                channel.tap = buffers[channel.position].number
        guard = self.guards[task] = Guard(task, buffers)
        interval = self.strategy.checkpoint_interval
        self.world.kernel.every(interval, interval, Rank.CHECKPOINT, lambda i: self._checkpoint_tick(guard), task.number)

    def moved(self, now: int) -> None:
        buffered = sum(b.size for guard in self.guards.values() for b in guard.buffers.values())
        self.world.peak_buffered = max(self.world.peak_buffered, buffered)

    def passed(self, task: BoltTask, train: Train) -> None:
        positions = self.guards[task].positions
        assert train.seq is not None
        number, channel = np.abs(train.seq) >> 16, np.abs(train.seq) & 0xFFFF
        for position in positions if len(positions) > 1 else [next(iter(positions))]:
            mine = number[channel == position] if len(task.inputs) > 1 else number
            if len(mine):
                positions[position] = max(positions[position], int(mine.max()))

    # -- 2. checkpoints, then trims --------------------------------------------------------------------------------

    def _checkpoint_tick(self, guard: Guard) -> None:
        if guard.task.available:
            guard.task.enqueue(Rank.CHECKPOINT, lambda: self._checkpoint(guard))

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        window = task.component.window
        if window is not None and window.window.length is not None and window.window.trigger == "tick":
            # without it a failure before the next checkpoint would bring back counts that were emitted
            self._checkpoint(self.guards[task])
        return 0

    def _checkpoint(self, guard: Guard) -> None:
        if guard.recovering or guard.writing or not guard.task.available:
            return  # none during a recovery: it would trim what is still to be replayed
        task = guard.task
        assert task.counts is not None
        self._writes += 1
        number = guard.writing = self._writes
        taken = Checkpoint(task.counts.copy(), dict(guard.positions), dict(task.epochs), task.windows)
        entries = task.counts.entries
        stall = self.strategy.serialise_time + entries * self.strategy.serialise_cost
        task.occupy(stall)
        size = entries * self.strategy.entry_size

        def write() -> None:
            if guard.writing == number:
                self.world.store.request(size, Rank.TRIM, lambda: self._written(guard, number, taken), task.number)

        if stall:
            self.world.kernel.at(self.world.kernel.now + stall, Rank.CHECKPOINT, write, task.number)
        else:
            write()

    def _written(self, guard: Guard, number: int, taken: Checkpoint) -> None:
        if guard.writing != number:
            return  # the task failed while it was writing
        guard.writing = 0
        guard.saved = taken
        self.world.note(f"checkpoint of {guard.task.name} saved")
        for position, buffer in guard.buffers.items():
            self._trim(buffer, taken.positions[position])

    def _trim(self, buffer: UpstreamBuffer, safe: int) -> None:
        if buffer.channel.up.up:
            buffer.channel.up.enqueue(Rank.TRIM, lambda: buffer.trim(safe))

    # -- 3. after a failure: read, restore, ask for the buffers ----------------------------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if not task.up and not getattr(task, "paused", False):
            for guard in self.guards.values():
                for buffer in guard.buffers.values():
                    if buffer.channel.up is task:
                        self.world.lost_effects(guard.task, buffer.uids())
                        buffer.clear()
        if isinstance(task, BoltTask) and task in self.guards:
            guard = self.guards[task]
            guard.writing = 0
            guard.recovery += 1
            guard.reading = True
            guard.waiting = set(guard.buffers)
            guard.unfinished = set(guard.buffers)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.guards:
            self._read(self.guards[task], outage)
        else:
            task_inputs_open(task)
        for channel, (guard, recovery) in list(self.requests.items()):
            if channel.up is task and guard.recovery == recovery:
                self._ask(guard, channel, recovery)

    def _read(self, guard: Guard, outage: Outage) -> None:
        task, saved, recovery = guard.task, guard.saved, guard.recovery
        task.recovering = True
        kept = task.clear_queue()  # of a task that lost only its state; buffered input in it will come again
        task.kept += kept
        entries = saved.counts.entries if saved else 0
        work = self.strategy.restore_time + entries * self.strategy.restore_cost

        def restore() -> None:
            if guard.recovery == recovery:
                self._restore(guard, saved, outage)

        def read() -> None:
            self.world.kernel.at(self.world.kernel.now + work, Rank.RESTORE, restore, task.number)

        self.world.store.request(entries * self.strategy.entry_size, Rank.RESTORE, read, task.number)

    def _restore(self, guard: Guard, saved: Checkpoint | None, outage: Outage) -> None:
        task = guard.task
        assert task.counts is not None
        guard.reading = False
        if saved is None:  # nothing was saved yet: as at the beginning
            zeros = dict.fromkeys(guard.buffers, 0)
            saved = Checkpoint(Counts(task.counts.keys), zeros, dict.fromkeys(task.epochs, 0), 0)
        guard.positions = dict(saved.positions)
        task.restore(saved.counts.copy())
        task.epochs = saved.epochs
        task.windows = saved.windows
        self.world.restore_effects(task, outage, saved.counts.effects().uid)
        self.world.restored(task, outage)
        task.recovering = False
        task.release_held()
        for buffer in guard.buffers.values():
            self._ask(guard, buffer.channel, guard.recovery)

    def _ask(self, guard: Guard, channel: Channel, recovery: int) -> None:
        """Ask the sender of ``channel`` for its buffer; if it is down it is asked when it is ready."""
        self.requests[channel] = (guard, recovery)
        up, kernel = channel.up, self.world.kernel

        def come() -> None:
            if up.up and self.requests.get(channel) == (guard, recovery):
                up.enqueue(Rank.REQUEST, lambda: self._serve(guard, channel, recovery))

        kernel.at(kernel.now, Rank.REQUEST, come, up.number)

    def _serve(self, guard: Guard, channel: Channel, recovery: int) -> None:
        """The sender's turn has come: replay the buffer in order, then an end marker; new tuples follow behind."""
        if guard.recovery != recovery:
            return
        buffer = guard.buffers[channel.position]
        kept = buffer.after(guard.positions[channel.position])
        step = self.strategy.replay_cost
        if self.strategy.replay_rate is not None:
            step = max(step, round(1e9 / self.strategy.replay_rate))
        end = self.world.kernel.now
        if kept is not None:
            times = end + step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            assert kept.seq is not None
            replay = kept.replace(time=times, seq=-kept.seq, route=np.full(kept.n, recovery, np.int64))
            self.world.replay(guard.task, kept)
            channel.up.post(replay, channel.put, lambda lost: self.world.closed_unsent(guard.task, lost))
            channel.up.occupy(end - self.world.kernel.now)

        def finish(mark: Train) -> None:
            channel.put(mark)
            if self.requests.get(channel) == (guard, recovery):
                del self.requests[channel]

        channel.up.post(
            single(end, 0, mark=END_OF_REPLAY, route=recovery, key=channel.position, seq=0),
            finish,
            lambda lost: None,
        )
        channel.up.post_out(self.world.kernel.now)

    # -- the recovering task drops what its checkpoint holds, and direct tuples until the marker has come -------------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        guard = self.guards.get(task)
        if guard is None or channel.position not in guard.buffers or train.seq is None:
            return train
        if not guard.recovering and train.route is None:
            return train.replace(seq=train.seq << 16 | channel.position)
        keep = np.ones(train.n, np.bool_)
        sign, route, mark = np.sign(train.seq), train.column("route"), train.column("mark")
        ends = np.flatnonzero((mark == END_OF_REPLAY) & (route == guard.recovery))
        special = (train.seq < 0) | (mark == END_OF_REPLAY)
        keep[special] = route[special] == guard.recovery
        keep[special & (train.seq < 0)] &= (
            -train.seq[special & (train.seq < 0)] > guard.positions[channel.position]
        )
        if channel.position in guard.waiting and task.up:
            last = int(ends[0]) if len(ends) else train.n
            keep[:last] &= special[:last]
            if len(ends):
                guard.waiting.discard(channel.position)
        numbered = train.replace(seq=sign * (np.abs(train.seq) << 16 | channel.position), route=None)
        self._discard(guard, numbered, ~keep)
        return numbered.pick(keep)

    def admit(self, task: BoltTask, train: Train) -> Train:
        guard = self.guards.get(task)
        if guard is None or train.seq is None or not guard.waiting:
            return train
        # what was held while the task was down, or was in its queue when it lost its state
        direct = (train.seq > 0) & np.isin(train.seq & 0xFFFF, list(guard.waiting))
        self._discard(guard, train, direct)
        return train.pick(~direct)

    def _discard(self, guard: Guard, train: Train, mask: np.ndarray) -> None:
        mask = mask if train.mark is None else mask & (train.mark == 0)
        if not mask.any():
            return
        out = train.pick(mask)
        self.world.discarded(guard.task, out)
        assert out.seq is not None
        for position, buffer in guard.buffers.items():
            # thrown away because it will be replayed, but its sender's buffer is gone: a loss
            mine = (out.seq > 0) & (out.seq & 0xFFFF == position)
            gone = mine & (out.seq >> 16 <= buffer.gone_to) & (out.seq >> 16 > guard.positions[position])
            self.world.lost_effects(guard.task, out.uid[gone])

    def control_mark(self, task: BoltTask, mark: Train, now: int) -> int:
        self.guards[task].unfinished.discard(int(mark.key[0]))
        return 0

    # -- what is left to see ---------------------------------------------------------------------------------------

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        kept = []
        for task, guard in self.guards.items():
            kept += [(task.component, buffer.uids()) for buffer in guard.buffers.values()]
            if guard.saved is not None and guard.reading:
                kept.append((task.component, guard.saved.counts.effects().uid))
        return kept

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        return None if train.seq is None or task.fault != outage else train.seq < 0

    def settled(self, outage: Outage) -> bool:
        return not any(guard.recovering for task, guard in self.guards.items() if task in outage.tasks)
