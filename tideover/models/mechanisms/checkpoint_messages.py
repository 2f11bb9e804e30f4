"""Checkpoints that a task sends to its secondary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from tideover.models.job.topology import Component
from tideover.models.mechanisms.backing import Backing, Share
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.recovery import Reached, UpstreamBuffers
from tideover.models.mechanisms.buffers.upstream_buffer import Kept
from tideover.models.mechanisms.standbys import Standby, Standbys
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.plans import Plans
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.runtime.wire import Wire
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


class Costs(NamedTuple):
    """What a checkpoint takes: time that it keeps the task, more for each entry (ns); bytes of an entry."""

    time: int
    entry: int
    size: int


class _Primary:
    """The checkpoints of one task.

    sent      what its secondary has
    sending   one is on its way
    wanted    another is to be taken as soon as it is there
    """

    def __init__(self, job: Job, task: BoltView, first: Standby) -> None:
        self.plans = Plans(job.kernel, task.number)
        self.backing = Backing(job.bolt(task))
        self.sent = first
        self.sending = False
        self.wanted = False


class CheckpointMessages(Mechanism, Keeper):
    """Every task sends its state and its output queues to its secondary, one checkpoint after the other, and
    then tells its senders what they need not keep any more.

    J.-H. Hwang et al., ICDE 2005, section 4.1. ``delta``: of the bolt's own entries only those that have
    changed since the last one, and of the output queues only what has come since.
    """

    def __init__(
        self, job: Job, standbys: Standbys, buffers: UpstreamBuffers, costs: tuple[int, int, int], delta: bool
    ) -> None:
        super().__init__(job)
        self._standbys, self._buffers = standbys, buffers
        self._costs, self._delta = Costs(*costs), delta
        self._do = Verbs(job)
        self._of: dict[TaskView, _Primary] = {}
        job.context.keepers.append(self)

    def start(self) -> None:
        self._of = {
            task: _Primary(self._job, task, self._standbys.first(task)) for task in self._job.bolt_tasks
        }

    def take(self, task: BoltView, needed: bool = False) -> None:
        """Send a checkpoint of the task as it is now, unless it is recovering. If one is on its way this one
        is left out, or, if it is ``needed``, taken as soon as that one is there.
        """
        own = self._of[task]
        if own.sending:
            own.wanted |= needed
        if own.sending or self._buffers.recovering(task):  # else upstream would trim what is to be replayed
            return
        own.sending = True
        taken, share = self._standbys.now(task), own.backing.to_write()
        entries, size = self._content(own.sent, taken, share)
        takes = self._costs.time + entries * self._costs.entry
        self._do.occupy(task, takes)
        own.plans.after(takes, Rank.TRIM, partial(self._there, task, taken, share, size))

    def _content(self, old: Standby, new: Standby, share: Share) -> tuple[int, int]:
        """Entries and bytes of a checkpoint."""
        own = new.state.entries
        if self._delta and new.state.state is not None and old.state.state is not None:
            own = new.state.state.changed_since(old.state.state)
        since = {channel: kept.sent if self._delta else 0 for channel, kept in old.outputs.items()}
        size = own * self._costs.size + share.size + _bytes(new.outputs, since)
        return own + share.entries, size

    def _there(self, task: BoltView, taken: Standby, share: Share, size: int) -> None:
        """The secondary has it."""
        own = self._of[task]
        own.sending = False
        own.sent = taken
        own.backing.counts(share)
        self._do.transfer(size)
        self._do.step(task, "checkpoint sent", f"{size} bytes")
        self._buffers.trim(task, Reached(taken.positions))
        if own.wanted:
            own.wanted = False
            self._do.enqueue(task, partial(self.take, task), Rank.CHECKPOINT)

    def handed_on(self, task: TaskView) -> Standby:
        """What the secondary of a task that goes on now has; all of it goes over the network, to a new
        secondary, or to the task.
        """
        own = self._of[task]
        share = own.backing.to_read()
        own.backing.restored()
        size = own.sent.state.entries * self._costs.size + share.size
        self._do.transfer(size + _bytes(own.sent.outputs, {}))
        return own.sent

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self._of:
            own = self._of[task]
            own.plans.void()
            own.sending = own.wanted = False

    # -- what the accounts ask -------------------------------------------------------------------------------

    def effects(self) -> list[tuple[Component, Ints]]:
        return [(task.component, own.sent.state.effects()) for task, own in self._of.items()]

    def tuples(self) -> list[tuple[Component, Train]]:
        every = [pair for own in self._of.values() for pair in own.sent.outputs.items()]
        return [(self._down(channel), train) for channel, kept in every for train in kept.tuples()]

    def _down(self, channel: Wire) -> Component:
        return self._job.tasks[channel.down.number].component


def _bytes(outputs: Mapping[Wire, Kept], since: Mapping[Wire, int]) -> int:
    """Of the messages that are kept, above these numbers."""
    return sum(kept.above(since.get(c, 0)) * c.message_bytes for c, kept in outputs.items())
