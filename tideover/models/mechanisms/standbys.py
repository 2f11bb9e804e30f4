"""Secondaries: processes that stand by to go on in the place of tasks that fail."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from tideover.models.mechanisms.base import Mechanism
from tideover.models.mechanisms.buffers.recovery import Reached, UpstreamBuffers
from tideover.models.mechanisms.buffers.upstream_buffer import Kept
from tideover.models.mechanisms.duplicate_filter import ReplayFilter, Seen
from tideover.models.runtime.job import Job
from tideover.models.runtime.saved_state import SavedState
from tideover.models.runtime.verbs import Verbs
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.runtime.wire import Wire
from tideover.sim.kernel import Rank


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
        self._buffers, self._filter = buffers, seen
        self._do = Verbs(job)

    def first(self, task: BoltView) -> Standby:
        """A task as it is before the first tuple."""
        nothing = Seen(task.component.paths)
        return Standby(self._do.first_state(task), {}, nothing, self._buffers.outputs(task))

    def now(self, task: BoltView) -> Standby:
        """A copy of a task as it is now."""
        positions = dict(self._buffers.positions(task))
        return Standby(
            self._do.copy_state(task), positions, self._filter.done(task), self._buffers.outputs(task)
        )

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
