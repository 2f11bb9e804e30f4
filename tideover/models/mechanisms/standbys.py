"""Secondaries that stand by to go on in the place of a task that fails, and checkpoints sent to them.

`passive_standby` makes both mechanisms, `upstream_backup` the first; who goes on with what is changed here.

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

from tideover.models.job.topology import Component
from tideover.models.mechanisms.base import Costs, Mechanism
from tideover.models.mechanisms.buffers import Kept, Reached, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import Checkpoint, OwnCheckpoints, RegularCheckpoints
from tideover.models.mechanisms.replicas import ReplayFilter
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.sim.kernel import Rank
from tideover.sim.train import Train


class Standbys(Mechanism):
    """Every bolt task has a secondary, which goes on as soon as a failure is noticed, or the task itself when
    it is restarted, if that is sooner: from what the secondary has, with what the senders have kept since.
    """

    def __init__(self, job: Job, buffers: UpstreamBuffers, seen: ReplayFilter) -> None:
        super().__init__(job)
        self._buffers, self._filter, self._do = buffers, seen, Verbs(job)

    def copy(self, task: BoltTask, state: SavedState) -> Checkpoint:
        """A task as it is now, with this state."""
        reached = Reached(self._buffers.positions(task), self._filter.done(task))
        return Checkpoint(state, reached, self._buffers.outputs(task))

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        if not task.component.is_spout:
            self._do.at(outage.detected_at, partial(self._do.take_over, task, outage), Rank.READY, task)

    def go_on(self, task: TaskView, outage: OutageView, standby: Checkpoint) -> None:
        """A bolt's task is up again, and empty: it goes on from ``standby``, and asks for what came since."""
        bolt, buffers = self._bolt(task), self._buffers
        buffers.put_back(bolt, standby.outputs)
        buffers.empty_queue(bolt)
        buffers.restored(bolt, standby.reached)
        self._filter.go_back(bolt, standby.reached.seen)
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


class CheckpointMessages(RegularCheckpoints):
    """Every task sends its state and its output queues to its secondary; then its senders trim.

    J.-H. Hwang et al., ICDE 2005, section 4.1. ``delta``: of the bolt's own entries only those that have
    changed since the last one, and of the output queues only what has come since.
    """

    def __init__(
        self,
        job: Job,
        standbys: Standbys,
        buffers: UpstreamBuffers,
        costs: Costs,
        interval: int,
        delta: bool,
    ) -> None:
        super().__init__(job, job.bolt_tasks, costs, interval, buffers)
        self._standbys, self._keeps, self._delta = standbys, buffers, delta

    def start(self) -> None:
        for task in self._job.bolt_tasks:
            self._of[task].saved = self._standbys.copy(task, SavedState.at_the_beginning(task))
        super().start()

    def _save(self, task: BoltTask, own: OwnCheckpoints) -> None:
        """Send it; it counts when the secondary has it."""
        costs, old = self._costs, self.there(task)
        taken, share = self._standbys.copy(task, SavedState.of(task)), own.backing.to_write()
        entries = taken.state.entries
        if self._delta and taken.state.state is not None and old.state.state is not None:
            entries = taken.state.state.changed_since(old.state.state)
        since = {channel: kept.sent if self._delta else 0 for channel, kept in old.outputs.items()}
        size = entries * costs.entry_size + share.size + _bytes(taken.outputs, since)
        takes = costs.saving + (entries + share.entries) * costs.saving_entry

        def there() -> None:
            own.backing.counts(share)
            self._job.say.transferred(size)
            self._job.step(task.name, "checkpoint sent", f"{size} bytes")
            self._counts(task, own, taken)

        task.occupy(takes)
        own.plans.after(takes, Rank.TRIM, there)

    def there(self, task: TaskView) -> Checkpoint:
        """What the secondary of a task has."""
        saved = self._of[task].saved
        assert saved is not None
        return saved

    def handed_on(self, task: TaskView) -> Checkpoint:
        """The same, of one that goes on now: all of it goes over the network once more."""
        own, saved = self._of[task], self.there(task)
        share = own.backing.to_read()
        own.backing.restored()
        size = saved.state.entries * self._costs.entry_size + share.size
        self._job.say.transferred(size + _bytes(saved.outputs, {}))
        return saved

    def store_lost(self, store: str | None) -> None:
        """Nothing of it is in a store."""

    def tuples(self) -> list[tuple[Component, Train]]:
        every = [pair for task in self._of for pair in self.there(task).outputs.items()]
        return [(channel.down.component, train) for channel, kept in every for train in kept.tuples()]


def _bytes(outputs: Mapping[Wire, Kept], since: Mapping[Wire, int]) -> int:
    """Of the messages that are kept, above these numbers."""
    return sum(kept.above(since.get(c, 0)) * c.message_bytes for c, kept in outputs.items())
