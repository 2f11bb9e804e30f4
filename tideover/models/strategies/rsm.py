"""Recovery using state management: checkpoints of state, and upstream buffers that are replayed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.checkpoints import Checkpoint, Checkpointer
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy, task_inputs_open
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.upstream_buffer import END_OF_REPLAY, Intake, Mask, UpstreamBuffer
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train, single
from tideover.sim.units import Duration, Rate, Size

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.topology import Component
    from tideover.models.windows import Held
    from tideover.models.world import World
    from tideover.sim.link import Channel


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


class Recovery(Protocol):
    """The protocol: buffers, checkpoints, trims, restores, replays."""

    def __init__(self, world: World, strategy: StateManagement) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.intakes: dict[BoltTask, Intake] = {}
        self.checkpointers: dict[BoltTask, Checkpointer] = {}
        self.reading: set[BoltTask] = set()
        self.requests: dict[Channel, tuple[BoltTask, int]] = {}
        """Channels whose sender still owes an end-of-replay marker: to whom, and to which of its recoveries."""

    # -- 1. upstream tasks keep every tuple, numbered by channel ---------------------------------------------

    def start(self) -> None:
        s = self.strategy
        for task in (
            task for tasks in self.world.bolts.values() for task in tasks if task.counts is not None
        ):
            buffers = {}
            for channel in task.inputs:
                if (
                    isinstance(channel.up, BoltTask) or s.spout_buffer
                ):  # 4. no buffer at a spout unless it keeps one
                    buffers[channel.position] = UpstreamBuffer(channel)
                    channel.tap = buffers[channel.position].number
            self.intakes[task] = Intake(buffers)
            self.checkpointers[task] = Checkpointer(
                self.world, task, s.serialise_time, s.serialise_cost, s.entry_size
            )
            tick = partial(self._checkpoint_tick, task)
            self.world.kernel.every(
                s.checkpoint_interval, s.checkpoint_interval, Rank.CHECKPOINT, tick, task.number
            )

    def passed(self, task: BoltTask, train: Train) -> None:
        self.intakes[task].processed(train)

    # -- 2. every interval a checkpoint; when the store has it, upstream trims its buffers ---------------------

    def _checkpoint_tick(self, task: BoltTask, i: int) -> None:
        if task.available:
            task.enqueue(Rank.CHECKPOINT, lambda: self._checkpoint(task))

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        window = task.component.window
        if window is not None and window.window.length is not None and window.window.trigger == "tick":
            # else a failure before the next checkpoint would bring back counts that were emitted
            self._checkpoint(task)
        return 0

    def _checkpoint(self, task: BoltTask) -> None:
        if self._recovering(task) or self.checkpointers[task].writing or not task.available:
            return  # none during a recovery: it would trim what is still to be replayed
        self.checkpointers[task].take(self.intakes[task].positions, partial(self._trim, task))

    def _trim(self, task: BoltTask, saved: Checkpoint) -> None:
        for position, buffer in self.intakes[task].buffers.items():
            if buffer.channel.up.up:
                buffer.channel.up.enqueue(Rank.TRIM, partial(buffer.trim, saved.positions[position]))

    # -- 3. after a failure: read and restore the checkpoint, ask for the buffers --------------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if not task.up and not getattr(task, "paused", False):
            for receiver, intake in self.intakes.items():
                for buffer in (b for b in intake.buffers.values() if b.channel.up is task):
                    self.world.lost_effects(receiver, buffer.uids())
                    buffer.clear()
        if isinstance(task, BoltTask) and task in self.intakes:
            self.checkpointers[task].void()
            self.intakes[task].begin_recovery()
            self.reading.add(task)

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.intakes:
            self._read(task, outage)
        else:
            task_inputs_open(task)
        for channel, (receiver, recovery) in list(self.requests.items()):
            if channel.up is task and self.intakes[receiver].recovery == recovery:
                self._ask(receiver, channel)  # its buffer is empty now, but the end marker must come

    def _read(self, task: BoltTask, outage: Outage) -> None:
        task.recovering = True
        recovery = self.intakes[task].recovery
        task.kept = [self._throw_away(task, train) for train in task.kept + task.clear_queue()]

        def restored(saved: Checkpoint) -> None:
            if self.intakes[task].recovery == recovery:
                self._restore(task, saved, outage)

        self.checkpointers[task].read(self.strategy.restore_time, self.strategy.restore_cost, restored)

    def _restore(self, task: BoltTask, saved: Checkpoint, outage: Outage) -> None:
        intake = self.intakes[task]
        intake.positions = dict.fromkeys(intake.buffers, 0) | saved.positions
        self.reading.discard(task)
        task.restore(saved.counts.copy())
        task.epochs, task.windows = saved.epochs, saved.windows
        self.world.restore_effects(task, outage, saved.counts.effects().uid)
        task.recovering = False
        task.release_held()
        for buffer in intake.buffers.values():
            self._ask(task, buffer.channel)

    def _ask(self, task: BoltTask, channel: Channel) -> None:
        """Ask the sender for its buffer; if it is down it is asked when it is ready."""
        up, kernel = channel.up, self.world.kernel
        request = self.requests[channel] = (task, self.intakes[task].recovery)

        def come() -> None:
            if up.up and self.requests.get(channel) == request:
                up.enqueue(Rank.REQUEST, lambda: self._serve(task, channel, request))

        kernel.at(kernel.now, Rank.REQUEST, come, up.number)

    def _serve(self, task: BoltTask, channel: Channel, request: tuple[BoltTask, int]) -> None:
        """The sender's turn: it replays its buffer in order, then an end marker; new tuples follow behind."""
        intake, up, now = self.intakes[task], channel.up, self.world.kernel.now
        if intake.recovery != request[1]:
            return
        kept = intake.buffers[channel.position].after(intake.positions[channel.position])
        step, rate, end = self.strategy.replay_cost, self.strategy.replay_rate, now
        if rate is not None:
            step = max(step, round(1e9 / rate))
        if kept is not None and kept.seq is not None:
            times = now + step * np.arange(1, kept.n + 1, dtype=np.int64)
            end = int(times[-1])
            replay = kept.replace(time=times, seq=-kept.seq, route=np.full(kept.n, intake.recovery, np.int64))
            self.world.replay(task, kept)
            up.post(replay, channel.put, partial(self.world.closed_unsent, task))
            up.occupy(end - now)
        self.world.note(f"{up.name}: replays {kept.n if kept else 0} tuples to {task.name}")

        def finish(mark: Train) -> None:
            channel.put(mark)
            if self.requests.get(channel) == request:
                del self.requests[channel]

        mark = single(end, 0, mark=END_OF_REPLAY, route=intake.recovery, key=channel.position, seq=0)
        up.post(mark, finish, lambda lost: None)
        up.post_out(now)

    # -- the recovering task drops what its checkpoint holds, and direct tuples until the marker has come ----------

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        intake = self.intakes.get(task)
        if intake is None or train.seq is None:
            return train
        inside, keep = intake.arriving(channel, train, task.up)
        return inside if keep is None else self._filter(task, inside, keep)

    def admit(self, task: BoltTask, train: Train) -> Train:
        if train.seq is None or not self.intakes[task].waiting:
            return train
        replay = train.seq <= 0
        return self._filter(task, train, replay | ~self.intakes[task].will_come_again(train))

    def _throw_away(self, task: BoltTask, train: Train) -> Train:
        return (
            train
            if train.seq is None
            else self._filter(task, train, ~self.intakes[task].will_come_again(train))
        )

    def _filter(self, task: BoltTask, train: Train, keep: Mask) -> Train:
        out = train.pick(~keep & (train.column("mark") == 0))
        if out.n:
            self.world.discarded(task, out)
            self.world.lost_effects(task, self.intakes[task].without_copy(out))
        return train.pick(keep)

    def control_mark(self, task: BoltTask, mark: Train, now: int) -> int:
        self.intakes[task].unfinished.discard(int(mark.key[0]))
        return 0

    # -- what is left to see -----------------------------------------------------------------------------------

    def _recovering(self, task: BoltTask) -> bool:
        return task in self.reading or bool(self.intakes[task].unfinished)

    def moved(self, now: int) -> None:
        buffered = sum(b.size for intake in self.intakes.values() for b in intake.buffers.values())
        self.world.peak_buffered = max(self.world.peak_buffered, buffered)

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        kept = [
            (t.component, b.uids()) for t, intake in self.intakes.items() for b in intake.buffers.values()
        ]
        saved = [(task.component, self.checkpointers[task].saved) for task in self.reading]
        return kept + [(component, s.counts.effects().uid) for component, s in saved if s is not None]

    def replayed(self, task: BoltTask, train: Train, outage: int) -> Mask | None:
        return None if train.seq is None or task.fault != outage else train.seq < 0

    def settled(self, outage: Outage) -> bool:
        return not any(self._recovering(task) for task in self.intakes if task in outage.tasks)
