"""What is measured while a run goes on: latencies, outputs, each failure's recovery, what readers see. The
world builds these accounts, and `evaluation.measures` reads them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.accounts.backlog import Backlog
from tideover.models.accounts.counted import histogram_of
from tideover.models.accounts.reference_run import WindowLog, places
from tideover.models.job.topology import Component
from tideover.models.operators.state import Closed
from tideover.models.runtime.channels import Sent
from tideover.models.runtime.hooks import CopyHolder
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, Outage, SpoutView
from tideover.sim.histogram import Histogram
from tideover.sim.plane.plane import LATENCY, Plane
from tideover.sim.recorder import Recorder, Span
from tideover.sim.train import Ints, Train

FEW = 4_096
"""Latencies of one step of the data plane, at first."""


Held = tuple[int, Ints, Closed | None]
"""A window: its number, when it was put out, its content; or, without content, when tuples left."""


class Readers:
    """Holds back what tasks put out (those of ``withheld``) until it is committed, and hands it on then.

    delays    from when a window or a tuple was put out until it was seen (ns)
    expired   windows that were to be committed, but the broker has aborted their transaction
    """

    def __init__(self, withheld: Container[object], windows: WindowLog, recorder: Recorder) -> None:
        self._withheld, self._windows, self._recorder = withheld, windows, recorder
        self._held: dict[tuple[BoltView, int | None], list[tuple[int, Ints, Closed | None]]] = defaultdict(
            list
        )
        """By task and number of the transaction (None: the open one) its windows: number, when each was put
        out, content; and, without content, when tuples left.
        """
        self.delays = Histogram()
        self.expired = 0

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        if task in self._withheld:
            self._held[task, None].append((number, np.array([now], np.int64), closed))

    def on_processed(self, task: BoltView, train: Train, arrival: Ints, sent: list[Sent]) -> None:
        if task in self._withheld and task.component.ends_roots and not task.component.window:
            self._held[task, None].append((-1, train.time, None))

    def on_pre_committed(self, task: BoltView, number: int) -> None:
        """What it has put out is a transaction."""
        # one that only windows by event without content have opened: of these nobody hears
        self._held[task, number] = self._held.pop((task, None), [])

    def on_committed(self, task: BoltView, number: int, now: int) -> None:
        name, index = task.component.name, task.index
        for window, put_out, closed in self._held.pop((task, number)):
            self.delays.add(now - put_out)
            if closed is None:
                self._recorder.output.add(np.full(len(put_out), now, np.int64))
            else:
                self._windows.see(task, window, now, closed)
                self._recorder.note_output((name, index, window), now)

    def on_aborted(self, task: BoltView, number: int | None, lost: bool) -> None:
        held = self._held.pop((task, number), [])
        found = [places(task, window, closed) for window, _, closed in held if closed is not None]
        self._windows.forget([place for each in found for place in each], lost)
        self.expired += len(found) * lost


Mask = npt.NDArray[np.bool_]

MANY = 1 << 16
"""Latencies that recoveries are told of before it is known for certain which are inside."""


@dataclass
class Recovery:
    """What came of one outage (moments in ns; None: not reached, or there is no such stage).

    span             latencies of what was done until all was replayed, from creation stamps
    from_first       the same from each root's first emission; None: no difference, none was emitted again
    restored_at      state is back (read from a store, or copied from a replica)
    timed_out_at     the first root of which it destroyed something was given up, to be emitted again
    last_replay      arrival of the last tuple replayed because of it, at a task that it hit
    restored         effects that came back with a state
    replayed         tuples that were sent again because of it
    dropped          tuples that were discarded since they will come again, or have come twice
    lost_effects     tasks, and uids of the effects that they lost with their state
    missing_closed   how many of those were missing when their roots were settled for good
    watch            what the data plane sees of it; None: it does not look
    hit              by number of the task, whether it has hit it, for the plane
    """

    outage: Outage
    span: Span
    from_first: Span | None = None
    restored_at: int | None = None
    timed_out_at: int | None = None
    last_replay: int | None = None
    restored: int = 0
    replayed: int = 0
    dropped: int = 0
    missing_closed: int = 0
    lost_effects: list[tuple[Component, Ints]] = field(default_factory=list)
    watch: Any = None
    hit: Any = None

    @property
    def done_at(self) -> int:
        """When all that the outage hit was up again, and everything was restored and replayed (ns). If
        replicas masked the fault, or nothing felt it: at once.
        """
        outage = self.outage
        if outage.masked or outage.unfelt:
            return outage.failed_at
        reached = (outage.ready_at, outage.written_at, self.restored_at, self.timed_out_at, self.last_replay)
        return max(outage.failed_at, *(moment for moment in reached if moment is not None))

    def add(self, times: Ints, latency: Ints, from_first: Ints, replayed: Mask | None) -> None:
        """Tuples were measured at ``times`` (rising) after it struck; ``replayed``: because of it."""
        if self.from_first is None and from_first is not latency:
            self.from_first = deepcopy(self.span)
        self.span.add(times, latency, replayed)
        if self.from_first is not None:
            self.from_first.add(times, from_first, replayed)

    def settle(self) -> None:
        """A step of the data plane is over, and all tasks have reported."""
        if self.watch is not None:
            self.hit[[task.number for task in self.outage.tasks]] = 1
        for span in (self.span, self.from_first):
            if span is not None:
                span.settle()


class Recoveries:
    """Measures latencies, outputs and costs of a run, and what came of its outages.

    Where one holder alone says what was sent again, and the data plane knows how, that looks at every tuple
    itself; else all are shown to the holders.

    recorder         latencies, throughput, outputs over time
    peak_buffered    most tuples that were kept in buffers, logs and maps at a time
    control_bytes    what goes over the network besides the streams: acks, copies between replicas
    complete         complete latency (ns): from a root's last emission until all of its tree was acked, of
                     those that were completed after the warm-up
    snapshots        of each complete snapshot, from its trigger to its end, and how long a task waited for
                     its barriers, the longest of any, from its first to its last (ns)
    """

    def __init__(self, job: Job, recorder: Recorder, backlog: Backlog) -> None:
        self._job, self._context = job, job.context
        self._backlog = backlog
        self._measured = job.topology.measured
        self.recorder = recorder
        self.all: list[Recovery] = []
        self._watched: list[Recovery] = []
        """Those that may still go on."""
        self.peak_buffered = 0
        self.control_bytes = 0
        self.complete = Histogram()
        self.snapshots: list[tuple[int, int]] = []
        self._seen: int | None = None
        """Latencies that recoveries were told of since all tasks told all; None: they do at each step."""
        self._structs = [(task, job.plane.tasks[task.number]) for task in job.bolt_tasks]

    def on_struck(self, outage: Outage) -> None:
        """A recovery begins; older ones go on if not everything was sent again for them, or may be yet, or as
        long as the logs go on in which they are read.
        """
        self.read()
        recovery = Recovery(outage, Span(self._job.deployment.run.log_resolution))
        now = outage.failed_at
        older = [old for old in self._watched if old.outage in outage.watched or old.span.goes_on(now)]
        self._watched = [*older, recovery]
        self.all.append(recovery)
        holders = [each for each in self._context.holders if type(each).replayed is not CopyHolder.replayed]
        if len(holders) == 1 and holders[0].knows_the_plane:
            self._watch(self._job.plane, recovery)
            holders[0].watched()
        elif holders:
            steady = all(each.steady for each in holders)
            at_once = not steady or any(len(replicas) > 1 for replicas in self._job.bolts.values())
            self._seen = None if at_once else 0
            self._job.show(self.see, at_once)

    def _watch(self, plane: Plane, recovery: Recovery) -> None:
        """Let the plane watch this outage, and those that still are."""
        recovery.watch = watch = plane.ffi.new("watch *")
        watch.outage, watch.end, watch.last_replay = recovery.outage.number, -1, -1
        watch.resolution = self._job.deployment.run.log_resolution or 0
        recovery.hit = np.zeros(len(self._job.tasks), np.uint8)
        watch.hit = plane.ffi.from_buffer("uint8_t[]", recovery.hit)
        recovery.from_first = Span(None)
        pointers = plane.ffi.new("watch *[]", [each.watch for each in self._watched])
        plane.keep_as("watches", pointers)
        plane.p.watches, plane.p.n_watches = pointers, len(self._watched)
        if not plane.p.spanned_room:
            self._make_room(plane, FEW)
            plane.asked[plane.lib.NEED_SPANNED] = lambda _: self._make_room(plane, 2 * plane.p.spanned_room)

    def _make_room(self, plane: Plane, room: int) -> None:
        p, wider = plane.p, np.zeros(room, LATENCY)
        size = plane.ffi.sizeof("latency") * p.n_spanned
        plane.ffi.memmove(
            plane.ffi.from_buffer(wider, require_writable=True), plane.ffi.buffer(p.spanned, size), size
        )
        plane.keep_as("spanned", wider)
        p.spanned, p.spanned_room = plane.ffi.cast("latency *", wider.ctypes.data), room

    def read(self) -> None:
        """All that the data plane has seen is to be known."""
        if self._seen is not None:
            self._see_all()
        for recovery in self.all:
            if (watch := recovery.watch) is not None:
                recovery.settle()
                recovery.replayed = int(watch.replayed)
                if watch.last_replay >= 0:
                    recovery.last_replay = int(watch.last_replay)
                for number, span in enumerate((recovery.span, recovery.from_first)):
                    assert span is not None
                    span.committed = histogram_of(self._job.plane, watch.inside[number])
                    span.end = int(watch.end)

    def see(self, task: BoltView, train: Train, arrival: Ints) -> None:
        """Tuples are done whose latencies the recorder knows already: whether they are replays."""
        component, latencies = task.component, None
        if not component.anchored:
            return
        if component is self._measured and self._job.is_lead(task):
            first, latency = self._first(component, train), train.time - train.created
            latencies = latency, latency if first is train.created else train.time - first
            self._seen = None if self._seen is None else self._seen + train.n
        for recovery in self._watched:
            outage, mask = recovery.outage, None
            for holder in self._context.holders:  # which were sent again because of it, by any of them
                more: Any = holder.replayed(task, train, outage.number)
                mask = more if mask is None else mask if more is None else mask | more
            if mask is not None and task in outage.tasks and mask.any():
                # who reads a log takes from it what it can work off: it is there when it is done
                there = train.time if self._context.needs.log else arrival
                recovery.last_replay = max(int(there[np.flatnonzero(mask)[-1]]), recovery.last_replay or 0)
                recovery.replayed += int(np.count_nonzero(mask))
            if latencies is not None:
                recovery.add(train.time, *latencies, mask)

    def _first(self, component: Component, train: Train) -> Ints:
        """When the tuples' roots were emitted first."""
        if train.attempt is None or not (again := np.flatnonzero(train.attempt > 0)).size:
            return train.created
        first = train.created.copy()
        first[again] = self._backlog.first(train.uid[again] >> component.bits)
        return first

    def on_window(self, task: BoltView, number: int, now: int, closed: Closed, again: bool) -> None:
        if not task.component.outputs and task not in self._context.withheld:
            self.recorder.note_output((task.component.name, task.index, number), now)

    def on_put_out(self, what: object, now: int) -> None:
        self.recorder.note_output(what, now)

    def on_discarded(self, task: BoltView, train: Train) -> None:
        """Nothing comes twice, or while it is restored, but for an outage: the newest one."""
        if self.all and task.component.anchored:
            self.all[-1].dropped += train.n

    def on_timed_out(self, spout: SpoutView, roots: Ints, attempt: Ints, outage: Ints) -> None:
        for number in np.unique(outage[outage >= 0]).tolist():
            if self.all[number].timed_out_at is None:
                self.all[number].timed_out_at = self._job.kernel.now

    def on_forgotten(self, task: BoltView, outage: int, uid: Ints) -> None:
        self.all[outage].lost_effects.append((task.component, uid))

    def on_restored(self, task: BoltView, outage: int, uid: Ints) -> None:
        self.all[outage].restored += len(uid)
        self.all[outage].restored_at = self._job.kernel.now
        for each, c in self._structs:
            if self._context.newest.get(each) == outage:
                c.repeats_until = self._job.kernel.now

    def on_reloaded(self, task: BoltView, outage: int, since: int) -> None:
        assert task.state is not None
        recovery = self.all[outage]
        recovery.restored += task.state.size
        recovery.restored_at = max(since, recovery.restored_at or 0)

    def on_completed(self, root: Ints, attempt: Ints, emitted: Ints, time: Ints) -> None:
        late = time > self._job.deployment.run.warmup
        self.complete.add(time[late] - emitted[late])

    def on_snapshot(self, begun: int, ended: int, aligning: int) -> None:
        self.snapshots.append((ended - begun, aligning))

    def on_kept(self, tuples: int) -> None:
        self.peak_buffered = max(self.peak_buffered, tuples)

    def on_transferred(self, bytes_: int) -> None:
        self.control_bytes += bytes_

    def settle_roots(self, before: int, missing: Callable[[Component, Ints], int]) -> None:
        """Count what is ``missing`` of the roots < ``before`` for good, and keep the rest."""
        for recovery in self.all:
            kept = []
            for component, uid in recovery.lost_effects:
                old = uid >> component.bits < before
                recovery.missing_closed += missing(component, uid[old])
                if not old.all():
                    kept.append((component, uid[~old]))
            recovery.lost_effects = kept

    def on_moved(self, now: int) -> None:
        """What outages hit is known by now; and what was dropped since replicas send it twice."""
        for task, c in self._structs if self._job.needs.paths else ():
            newest = self._context.newest.get(task, -1)
            if c.repeated and newest >= 0 and task.component.anchored:
                self.all[newest].dropped += c.repeated
            c.repeated = 0
        if self._seen is None or self._seen > MANY:
            self._see_all()

    def _see_all(self) -> None:
        """All that was done is known by now, or told."""
        if self._seen is not None:
            self._job.catch_up()
            self._seen = 0
        for recovery in self._watched:
            recovery.settle()
