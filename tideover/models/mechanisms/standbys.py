"""Secondaries that stand by to go on in the place of a task that fails, and checkpoints sent to them.

The rules of `passive_standby` and `upstream_backup` (tests/models/test_secondaries.py,
test_plane_worlds.py):

- Every channel has an upstream buffer, from spouts too (see `UpstreamBuffers`). Each bolt task has a
  secondary; it goes by the task's name, host and links, no fault takes it, and what is sent to it is there
  at once. Spouts have none: what they kept goes down with them.
- Every task drops at arrival what it has had on its path (see `ReplayFilter`). Readers of what leaves the
  topology do so too. End markers always come in.
- At detection (rank READY), if the task is not back by then, the secondary is in its place: the restart is
  off. A restart that comes first does the same.
- Whoever goes on discards what is in the queue, or was held for it, and has at this instant what the
  secondary has: state, epochs, window numbers, positions, paths, and the output buffers if its own are
  gone. Then it asks all its senders for what is above these positions.
- What it sends from then on has new numbers, above all that its channels had. What it does once more it
  sends once more, in any order, and receivers know it by its path. A window that comes again is void by its
  number, but its tuples are sent, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers import Kept, Reached, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import Backing, Costs, Share
from tideover.models.mechanisms.replicas import ReplayFilter, Seen
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.supervision import Plans
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Ints, Train


class Standby(NamedTuple):
    """What a secondary goes on from.

    state       of the task
    positions   newest number of each input channel that need not come again
    seen        what the task had processed by then
    outputs     what it kept of what it had sent
    epoch       windows of older epochs are over
    """

    state: SavedState
    positions: dict[int, int]
    seen: Seen
    outputs: dict[Wire, Kept]
    epoch: int = 0


class Standbys(Mechanism):
    """Every bolt task has a secondary, which goes on as soon as a failure is noticed, or the task itself when
    it is restarted, if that is sooner: from what the secondary has, with what the senders have kept since.
    """

    def __init__(self, job: Job, buffers: UpstreamBuffers, seen: ReplayFilter) -> None:
        super().__init__(job)
        self._buffers, self._filter, self._do = buffers, seen, Verbs(job)

    def first(self, task: BoltView) -> Standby:
        """A task as it is before the first tuple."""
        outputs = self._buffers.outputs(task)
        return Standby(self._do.first_state(task), {}, Seen(task.component.paths), outputs)

    def now(self, task: BoltView) -> Standby:
        """A copy of a task as it is now."""
        positions, outputs = self._buffers.positions(task), self._buffers.outputs(task)
        return Standby(self._do.copy_state(task), positions, self._filter.done(task), outputs)

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._do.at(outage.detected_at, partial(self._do.take_over, task, outage), Rank.READY, task)

    def go_on(self, task: TaskView, outage: OutageView, standby: Standby) -> None:
        """A bolt's task is up again, and empty: it goes on from ``standby``, and asks for what has come
        since.
        """
        bolt, buffers = self._bolt(task), self._buffers
        buffers.put_back(bolt, standby.outputs)
        buffers.empty_queue(bolt)
        buffers.restored(bolt, Reached(standby.positions))
        self._filter.go_back(bolt, standby.seen)
        self._filter.begin_after(bolt, standby.epoch)
        self._do.restore(bolt, standby.state, outage)
        self._do.step(bolt, "goes on", f"with {standby.state.tuples} tuples")
        self._do.open(bolt)
        buffers.sender_ready(bolt)
        buffers.ask(bolt)

    def restarted(self, spout: TaskView) -> None:
        """A spout's task is up again, with empty buffers."""
        self._do.open(spout)
        self._buffers.sender_ready(spout)


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


class CheckpointMessages(Mechanism, CopyHolder):
    """Every task sends its state and its output queues to its secondary, one checkpoint after the other, and
    then tells its senders what they need not keep any more.

    J.-H. Hwang et al., ICDE 2005, section 4.1. ``delta``: of the bolt's own entries only those that have
    changed since the last one, and of the output queues only what has come since.
    """

    def __init__(
        self, job: Job, standbys: Standbys, buffers: UpstreamBuffers, costs: Costs, delta: bool
    ) -> None:
        super().__init__(job)
        self._standbys, self._buffers, self._do = standbys, buffers, Verbs(job)
        self._costs, self._delta = costs, delta
        self._of: dict[TaskView, _Primary] = {}

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
        takes = self._costs.saving + entries * self._costs.saving_entry
        self._do.occupy(task, takes)
        own.plans.after(takes, Rank.TRIM, partial(self._there, task, taken, share, size))

    def _content(self, old: Standby, new: Standby, share: Share) -> tuple[int, int]:
        own = new.state.entries
        if self._delta and new.state.state is not None and old.state.state is not None:
            own = new.state.state.changed_since(old.state.state)
        since = {channel: kept.sent if self._delta else 0 for channel, kept in old.outputs.items()}
        size = own * self._costs.entry_size + share.size + _bytes(new.outputs, since)
        return own + share.entries, size

    def _there(self, task: BoltView, taken: Standby, share: Share, size: int) -> None:
        """The secondary has it."""
        own = self._of[task]
        own.sending, own.sent = False, taken
        own.backing.counts(share)
        self._do.transfer(size)
        self._do.step(task, "checkpoint sent", f"{size} bytes")
        self._buffers.trim(task, Reached(taken.positions))
        if own.wanted:
            own.wanted = False
            self._do.enqueue(task, partial(self.take, task), Rank.CHECKPOINT)

    def handed_on(self, task: TaskView) -> Standby:
        """What the secondary of a task that goes on now has; all of it goes over the network once more."""
        own = self._of[task]
        share = own.backing.to_read()
        own.backing.restored()
        size = own.sent.state.entries * self._costs.entry_size + share.size
        self._do.transfer(size + _bytes(own.sent.outputs, {}))
        return own.sent

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if task in self._of:
            own = self._of[task]
            own.plans.void()
            own.sending = own.wanted = False

    def effects(self) -> list[tuple[Component, Ints]]:
        return [(task.component, own.sent.state.effects()) for task, own in self._of.items()]

    def tuples(self) -> list[tuple[Component, Train]]:
        every = [pair for own in self._of.values() for pair in own.sent.outputs.items()]
        return [(channel.down.component, train) for channel, kept in every for train in kept.tuples()]


def _bytes(outputs: Mapping[Wire, Kept], since: Mapping[Wire, int]) -> int:
    """Of the messages that are kept, above these numbers."""
    return sum(kept.above(since.get(c, 0)) * c.message_bytes for c, kept in outputs.items())
