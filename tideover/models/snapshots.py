"""Snapshots of a whole job: when they are triggered, what each task contributes, where its barriers meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tideover.models.source_log import SourceLog
from tideover.models.task import BARRIER, BoltTask
from tideover.models.windows import Counts, Held
from tideover.sim.kernel import Kernel, Rank
from tideover.sim.train import Train, single

if TYPE_CHECKING:
    from tideover.models.world import World


@dataclass(frozen=True)
class Part:
    """One task in a snapshot: state, markers seen, windows emitted, and how far it had read its log."""

    counts: Counts | None
    epochs: dict[int, int]
    windows: int
    position: int

    @property
    def entries(self) -> int:
        """Entries of the state."""
        return 0 if self.counts is None else self.counts.entries


@dataclass
class Snapshot:
    """One snapshot of the job: complete when nobody is awaited any more."""

    number: int
    awaited: set[BoltTask]
    parts: dict[BoltTask, Part] = field(default_factory=dict)


class Coordinator:
    """Triggers snapshots: one at a time, and at once after the last if that took longer than the interval.

    ``begin`` and ``give_up`` are called when a snapshot begins, or is abandoned after ``timeout``.
    ``min_pause``: time from the end of one (completed or abandoned) to the next trigger. All in ns.
    """

    def __init__(
        self,
        kernel: Kernel,
        interval: int,
        min_pause: int,
        timeout: int,
        begin: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._interval, self._min_pause, self._timeout = interval, min_pause, timeout
        self._begin, self._give_up = begin, give_up
        self._life = 0
        """Counts starts and stops: what was planned before is void."""
        self._number = 0
        """Of the newest snapshot."""
        self._under_way = False
        self._wanted = False
        """A trigger has fallen due that must wait: for the end of the last snapshot, or for the pause."""
        self._earliest = 0
        self._triggered_at = -1

    def start(self, first: int) -> None:
        """The job runs; the first trigger is at ``first``."""
        self._life += 1
        self._under_way = self._wanted = False
        self._earliest = 0
        self._next(first)

    def stop(self) -> None:
        """The job has stopped."""
        self._life += 1

    def _at(self, when: int, rank: Rank, action: Callable[[], None]) -> None:
        life = self._life
        self._kernel.at(when, rank, lambda: action() if life == self._life else None)

    def _next(self, when: int) -> None:
        def due() -> None:
            self._next(when + self._interval)
            if self._triggered_at < when and not self._wanted:
                self._wanted = True
                if not self._under_way:
                    self._plan()

        self._at(when, Rank.CHECKPOINT, due)

    def _plan(self) -> None:
        if self._earliest > self._kernel.now:
            self._at(self._earliest, Rank.CHECKPOINT, self._trigger)
        else:
            self._trigger()

    def _trigger(self) -> None:
        self._under_way, self._wanted = True, False
        self._triggered_at = self._kernel.now
        self._number += 1
        number = self._number

        def expired() -> None:
            if self._under_way and self._number == number:
                self._give_up()
                self.ended()

        self._at(self._kernel.now + self._timeout, Rank.ROTATION, expired)
        self._begin()

    def ended(self) -> None:
        """The snapshot under way is complete, or given up."""
        self._under_way = False
        self._earliest = self._kernel.now + self._min_pause
        if self._wanted:
            self._at(self._earliest, Rank.CHECKPOINT, self._trigger)


class Member:
    """One task of the job: the log that it reads, its inputs and their barriers, its part in snapshots."""

    def __init__(self, world: World, task: BoltTask) -> None:
        self._world = world
        self._task = task
        spouts = {c.position for c in task.inputs if not isinstance(c.up, BoltTask)}
        self._bolts = {c.position for c in task.inputs} - spouts
        self._spouts = np.array(sorted(spouts), np.int64)
        self.log = SourceLog() if spouts else None
        self._told_apart = bool(self._bolts) and len(task.inputs) > 1
        """Whether messages carry (in ``seq``) the position of their channel: they may be set aside by it."""
        self._come: set[int] = set()
        """Channels whose barrier of the snapshot under way has come: what follows on them is set aside."""
        self._number = 0
        """Of the newest snapshot that the task is in."""
        self.emitted: dict[int, list[Held]] = defaultdict(list)
        """Windows emitted since the last complete snapshot, by the newest one that the task was in then."""

    @property
    def reads_log(self) -> bool:
        return self.log is not None

    # -- messages come ---------------------------------------------------------------------------------------

    def receive(self, position: int, train: Train) -> Train:
        """Messages arrive over a channel."""
        return train.replace(seq=np.full(train.n, position, np.int64)) if self._told_apart else train

    def admit(self, train: Train) -> Train:
        """Of messages that have arrived: note those of the log, set aside those that a barrier holds up."""
        if self.log is not None:
            self.log.add(train.pick(self._from_log(train)) if self._told_apart else train)
        if not self._come:
            return train
        aside = self._held_up(train)
        if aside.any():
            self._task.kept.append(train.pick(aside))
        return train.pick(~aside)

    def _from_log(self, train: Train) -> npt.NDArray[np.bool_]:
        return np.isin(train.column("seq"), self._spouts)

    def _held_up(self, train: Train) -> npt.NDArray[np.bool_]:
        return np.isin(train.column("seq"), list(self._come))

    # -- barriers --------------------------------------------------------------------------------------------

    def barrier_from_log(self) -> bool:
        """The barrier of the sources is here; returns whether all barriers are."""
        return self._has_come(set(self._spouts.tolist()))

    def barrier(self, message: Train) -> bool:
        """A barrier has its turn; returns whether it was the last one."""
        return self._has_come({int(message.column("seq")[0])} if self._told_apart else self._bolts)

    def _has_come(self, positions: set[int]) -> bool:
        self._come |= positions
        if len(self._come) == len(self._task.inputs):
            return True
        self._task.kept += self._task.withdraw(self._held_up)
        return False

    def take_part(self, number: int) -> Part:
        """All barriers are here: what the task contributes to the snapshot with this number."""
        task, position = self._task, 0
        if self.log is not None:
            waiting = [*task.queue(), *task.kept]
            own = [t.n if not self._told_apart else int(self._from_log(t).sum()) for t in waiting]
            position = self.log.read - sum(own)
        self._number = number
        counts = None if task.counts is None else task.counts.copy()
        return Part(counts, dict(task.epochs), task.windows, position)

    def hand_on(self) -> None:
        """Send the barrier of the newest snapshot on all channels."""
        kernel = self._world.kernel
        message = single(kernel.now, 0, mark=BARRIER, key=self._number)
        for outlet in self._task.outlets:
            outlet.broadcast(message)
            for channel in (channel for replicas in outlet.channels for channel in replicas):
                assert channel.last_arrival is not None
                turn = channel.down.serve_markers  # type: ignore[attr-defined]
                kernel.at(channel.last_arrival, Rank.CHECKPOINT, turn, channel.down.number)

    def let_go(self) -> None:
        """No barrier holds up anything any more: what was set aside arrives now."""
        self._come = set()
        aside, self._task.kept = self._task.kept, []
        self._task.refill(aside)

    def window_emitted(self, held: list[Held]) -> None:
        """The task has emitted a window of these tuples."""
        self.emitted[self._number] += held

    # -- rollback --------------------------------------------------------------------------------------------

    def completed(self, number: int, part: Part) -> None:
        """Snapshot ``number``, with this part, is what the task will go back to."""
        if self.log is not None:
            self.log.trim(part.position)
        for old in [n for n in self.emitted if n < number]:
            del self.emitted[old]

    def roll_back(self, part: Part) -> list[Train]:
        """The job has stopped: connections are closed, the log and the windows go back to the last complete
        snapshot, where the task had this ``part``; returns what will be read again, in order.
        """
        task, world = self._task, self._world
        self._come = set()
        for channel in task.inputs:
            if isinstance(channel.up, BoltTask):
                world.destroyed(task, channel.cut())
        for windows in self.emitted.values():
            for held in windows:  # their tuples come again, and will be in the same windows
                world.ledger.destroy_effects(task.component, held.uid, task.replica)
        self.emitted.clear()
        closed = part.windows if task.component.trigger == "tuples" else min(part.epochs.values())
        world.windows.reopen(task.component.name, task.task, task.replica, closed)
        again = [] if self.log is None else self.log.rewind()
        for train in again:
            world.reopen(task, train)
        task.held[:0] = again
        return again
