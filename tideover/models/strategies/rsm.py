"""Recovery using state management: checkpoints of state, and upstream buffers that are replayed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tideover.models.checkpoints import Checkpoint, Checkpointer
from tideover.models.intake import Intake, Mask
from tideover.models.replays import Replays
from tideover.models.strategies.base import STRATEGIES, Protocol, task_inputs_open
from tideover.models.strategies.settings.rsm import StateManagementSettings
from tideover.models.task import BoltTask, SpoutTask
from tideover.models.upstream_buffer import UpstreamBuffer
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.outage import Outage
    from tideover.models.topology import Component
    from tideover.models.windows import Held
    from tideover.models.world import World
    from tideover.sim.link import Channel


@STRATEGIES.register("rsm")
class StateManagement(StateManagementSettings):
    """Exactly once for state: restore the last checkpoint, then replay what upstream tasks have kept since.

    R. Castro Fernandez et al., SIGMOD 2013, section 4; T. Stableford, City University London, 2015, ch. 5.
    """

    def protocol(self, world: World) -> Recovery:
        return Recovery(world, self)


class Recovery(Protocol):
    """The protocol: buffers, checkpoints, trims, restores, replays."""

    def __init__(self, world: World, strategy: StateManagement) -> None:
        super().__init__(world)
        self.strategy = strategy
        self.replays = Replays(world, strategy.replay_cost, strategy.replay_rate)
        self.buffers: list[tuple[BoltTask, UpstreamBuffer]] = []
        """All of them, with their receivers."""
        self.intakes: dict[BoltTask, Intake] = {}
        self.checkpointers: dict[BoltTask, Checkpointer] = {}

    # -- 1. upstream tasks keep every tuple, numbered by channel ---------------------------------------------

    def start(self) -> None:
        s, every = self.strategy, self.world.kernel.every
        for task in (t for t in self.world.bolt_tasks if t.counts is not None):
            # 4. no buffer at a spout unless it keeps one
            senders = (c for c in task.inputs if isinstance(c.up, BoltTask) or s.spout_buffer)
            buffers = {channel.position: UpstreamBuffer(channel) for channel in senders}
            self.buffers += [(task, buffer) for buffer in buffers.values()]
            self.intakes[task] = Intake(self.world, task, buffers)
            self.checkpointers[task] = Checkpointer(
                self.world, task, s.serialise_time, s.serialise_cost, s.entry_size
            )
            tick = partial(self._checkpoint_tick, task)
            every(s.checkpoint_interval, s.checkpoint_interval, Rank.CHECKPOINT, tick, task.number)

    def passed(self, task: BoltTask, train: Train) -> None:
        self.intakes[task].processed(train)

    # -- 2. every interval a checkpoint; when the store has it, upstream trims its buffers -------------------

    def _checkpoint_tick(self, task: BoltTask, i: int) -> None:
        if task.available:
            task.enqueue(Rank.CHECKPOINT, lambda: self._checkpoint(task))

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        if task.ends_by_tick:
            # else a failure before the next checkpoint would bring back counts that were emitted
            self._checkpoint(task, wanted=True)
        return 0

    def _checkpoint(self, task: BoltTask, wanted: bool = False) -> None:
        intake, checkpointer = self.intakes[task], self.checkpointers[task]
        if checkpointer.writing:
            checkpointer.wanted |= wanted
        elif not intake.recovering:  # it would trim what is still to be replayed
            checkpointer.take(intake.positions, partial(self._safe, task))

    def _safe(self, task: BoltTask, saved: Checkpoint) -> None:
        for position, buffer in self.intakes[task].buffers.items():
            if buffer.channel.up.available:
                buffer.channel.up.enqueue(Rank.TRIM, partial(buffer.trim, saved.positions[position]))
        if self.checkpointers[task].wanted:
            self.checkpointers[task].wanted = False
            task.enqueue(Rank.CHECKPOINT, lambda: self._checkpoint(task))

    # -- 3. after a failure: read the checkpoint, restore it, ask for the buffers ----------------------------

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if not (task.up or task.paused):  # with the sender its buffers are gone
            for receiver, buffer in self.buffers:
                if buffer.channel.up is task:
                    self.world.lost_effects(receiver, buffer.uids())
                    buffer.clear()
        if isinstance(task, BoltTask) and task in self.intakes:
            self.checkpointers[task].void()
            self.intakes[task].begin_recovery()

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and task in self.intakes:
            task.recovering = True
            self.intakes[task].empty_queue()
            restored = partial(self._restored, task, outage)
            self.checkpointers[task].read(self.strategy.restore_time, self.strategy.restore_cost, restored)
        else:
            task_inputs_open(task)
            self.replays.sender_ready(task)

    def _restored(self, task: BoltTask, outage: Outage, saved: Checkpoint) -> None:
        intake = self.intakes[task]
        intake.restored(saved.positions)
        saved.state.restore(task, outage)
        task.release_held()
        self.replays.sender_ready(task)
        self.replays.ask(intake)

    # -- the task drops what its checkpoint holds, and direct tuples until the end-of-replay marker has come -

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        return self.intakes[task].receive(channel, train) if task in self.intakes else train

    def control_mark(self, task: BoltTask, mark: Train, now: int) -> int:
        self.intakes[task].finished(int(mark.key[0]))
        return 0

    # -- what is left to see ---------------------------------------------------------------------------------

    def moved(self, now: int) -> None:
        self.world.peak_buffered = max(self.world.peak_buffered, sum(b.size for _, b in self.buffers))

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        saved = [(task.component, c.saved) for task, c in self.checkpointers.items() if c.saved is not None]
        kept = [(component, checkpoint.state.effects()) for component, checkpoint in saved]
        return kept + [(task.component, buffer.uids()) for task, buffer in self.buffers]

    def replayed(self, task: BoltTask, train: Train, outage: int) -> Mask | None:
        return None if train.seq is None or task.fault != outage else train.seq < 0

    def settled(self, outage: Outage) -> bool:
        return not any(self.intakes[task].recovering for task in outage.tasks if task in self.intakes)
