"""Recoveries, where the compiled data plane looks at every tuple."""

from __future__ import annotations

from typing import Any

import numpy as np

from tideover.models.accounts.backlog import Backlog
from tideover.models.accounts.counted import histogram_of
from tideover.models.accounts.recoveries import Recoveries
from tideover.models.flow.job import FlowJob
from tideover.models.runtime.job import Job
from tideover.models.runtime.keeper import Keeper
from tideover.models.runtime.outage import Outage
from tideover.models.runtime.views import BoltView
from tideover.sim.histogram import Histogram
from tideover.sim.plane.plane import LATENCY, Plane
from tideover.sim.recorder import Recorder, Span
from tideover.sim.train import Ints

FEW = 4_096
"""Latencies of one step of the data plane, at first."""


class Watch:
    """What the data plane sees of one outage."""

    def __init__(self, plane: Plane, outage: Outage, resolution: int | None, tasks: int) -> None:
        self._plane = plane
        self.w: Any = plane.ffi.new("watch *")
        self.w.outage, self.w.end, self.w.last_replay = outage.number, -1, -1
        self.w.resolution = resolution or 0
        self._hit = np.zeros(tasks, np.uint8)
        self.w.hit = plane.ffi.from_buffer("uint8_t[]", self._hit)

    def look(self, outage: Outage) -> None:
        """It has hit these tasks."""
        self._hit[[task.number for task in outage.tasks]] = 1

    def inside(self, which: int) -> Histogram:
        """Latencies that are inside for certain: since creation (0), or the root's first emission (1)."""
        return histogram_of(self._plane, self.w.inside[which])


class WatchedSpan(Span):
    """A span of which the data plane knows what is inside."""

    def __init__(self, watch: Watch, which: int) -> None:
        super().__init__(None)
        self._watch, self._which = watch, which

    @property
    def committed(self) -> Histogram:
        return self._watch.inside(self._which)

    @committed.setter
    def committed(self, _: Histogram) -> None:
        pass

    def goes_on(self, now: int) -> bool:
        return bool(self._watch.w.end > now)

    def settle(self) -> None:
        pass


class CountedRecoveries(Recoveries):
    """Recoveries. Where only the acker says what was sent again, the data plane sees to it; if others do, all
    tuples are shown; if nobody does, none.
    """

    def __init__(self, job: Job, recorder: Recorder, backlog: Backlog) -> None:
        super().__init__(job, recorder, backlog)
        self._watches: dict[int, Watch] = {}
        assert job.plane is not None
        self._structs = [(task, job.plane.tasks[task.number]) for task in job.bolt_tasks]

    @property
    def _keepers(self) -> list[Keeper]:
        return [each for each in self._context.keepers if type(each).replayed is not Keeper.replayed]

    def on_struck(self, outage: Outage) -> None:
        keepers, job = self._keepers, self._job
        assert isinstance(job, FlowJob)
        self.read()
        super().on_struck(outage)
        if not keepers:
            return
        if not keepers[0].knows_the_plane or len(keepers) > 1:
            job.show(self.see)
            return
        self._watch(job.plane, outage, keepers[0])

    def _watch(self, plane: Plane, outage: Outage, keeper: Keeper) -> None:
        """Let the plane watch those outages that still are."""
        watch = Watch(plane, outage, self._job.deployment.run.log_resolution, len(self._job.tasks))
        self._watches[outage.number] = watch
        self.all[-1].span, self.all[-1].from_first = WatchedSpan(watch, 0), WatchedSpan(watch, 1)
        watched = [self._watches[each.outage.number] for each in self._watched]
        pointers = plane.ffi.new("watch *[]", [each.w for each in watched])
        plane.keep_as("watches", pointers)
        plane.p.watches, plane.p.n_watches = pointers, len(watched)
        if not plane.p.spanned_room:
            self._make_room(plane, FEW)
            plane.asked[plane.lib.NEED_SPANNED] = lambda _: self._make_room(
                plane, 2 * int(plane.p.spanned_room)
            )
        keeper.watched()

    def _make_room(self, plane: Plane, room: int) -> None:
        p, wider = plane.p, np.zeros(room, LATENCY)
        size = plane.ffi.sizeof("latency") * p.n_spanned
        plane.ffi.memmove(
            plane.ffi.from_buffer(wider, require_writable=True), plane.ffi.buffer(p.spanned, size), size
        )
        plane.keep_as("spanned", wider)
        p.spanned, p.spanned_room = plane.ffi.cast("latency *", wider.ctypes.data), room

    def read(self) -> None:
        """Take what the plane has seen."""
        for recovery in self.all:
            watch = self._watches.get(recovery.outage.number)
            if watch is not None:
                watch.look(recovery.outage)
                recovery.replayed = int(watch.w.replayed)
                if watch.w.last_replay >= 0:
                    recovery.last_replay = int(watch.w.last_replay)

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        super().on_restored(task, outage, uid)
        for each, c in self._structs:
            if self._context.newest.get(each) == outage:
                c.repeats_until = self._job.kernel.now

    def _read_repeated(self) -> None:
        """What was dropped since replicas send it twice."""
        for task, c in self._structs if self._job.needs.paths else ():
            newest = self._context.newest.get(task, -1)
            if c.repeated and newest >= 0 and task.component.anchored:
                self.all[newest].dropped += c.repeated
            c.repeated = 0

    def on_moved(self, now: int) -> None:
        """What outages hit is known by now."""
        self._read_repeated()
        for recovery in self._watched:
            watch = self._watches.get(recovery.outage.number)
            if watch is not None:
                watch.look(recovery.outage)
            else:
                recovery.settle()
