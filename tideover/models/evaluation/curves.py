"""What a run looked like over time, what is normal, and what it has cost; `measures` makes figures of it.

What is normal: a scenario with failures is held against the same scenario, seed and luck without them
(`undisturbed`). What recurs in normal operation (a snapshot, a batch) may come a little earlier or later
after a failure, and queues are then filled a little differently; so normal is a band, and its width is stated
here once, for ``run``, ``sweep``, ``calibrate`` and all reports.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.accounts.reference_run import Place
from tideover.models.accounts.usage import busy_ns
from tideover.models.world import World
from tideover.sim.recorder import SLOT, FewCounts, Recorder, Series
from tideover.sim.train import Ints
from tideover.sim.units import S

SECOND = S // SLOT
"""Slots in a second."""


class Axis:
    """The slots that are looked at, rising: all of them, or, in a long run, those near to what happens (the
    first, all of the kept seconds, and what follows the last whole second). In between all is as it was
    before, so a figure is the same with either. Places are counted among the kept ones.

    whole   slots of the run
    kept    numbers of the whole seconds that are kept, rising
    at      the number of the slot at each place
    """

    def __init__(self, whole: int, kept: Ints | None = None) -> None:
        """``kept``: by default all seconds."""
        seconds = (whole - 1) // SECOND
        self.whole = whole
        self.kept = np.arange(seconds, dtype=np.int64) if kept is None else kept
        inside = self.kept[:, None] * SECOND + np.arange(1, SECOND + 1, dtype=np.int64)
        rest = np.arange(seconds * SECOND + 1, whole, dtype=np.int64)
        self.at = np.concatenate([np.zeros(1, np.int64), inside.ravel(), rest])

    @classmethod
    def near(cls, whole: int, slots: Ints, margin: int) -> Axis:
        """Seconds that are at most ``margin`` seconds from one of the ``slots`` (rising)."""
        seconds = np.unique(np.maximum(slots - 1, 0) // SECOND)
        last = (whole - 1) // SECOND
        begins, ends = np.maximum(seconds - margin, 0), np.minimum(seconds + margin + 1, last)
        apart = np.flatnonzero(begins[1:] > ends[:-1])
        first, stop = begins[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]
        parts = [np.arange(a, b, dtype=np.int64) for a, b in zip(first.tolist(), stop.tolist(), strict=True)]
        return cls(whole, np.concatenate(parts))

    def place(self, slot: int) -> int:
        """Where a slot is, or the next that is kept."""
        return int(self.at.searchsorted(slot))

    def slot(self, place: int) -> int:
        return int(self.at[place])

    def seconds(self, first: int, last: int) -> Ints:
        """The whole seconds from ``first`` to before ``last`` that are kept."""
        begin, end = self.kept.searchsorted((first, last)).tolist()
        return self.kept[begin:end]

    def slots_of(self, first: int, last: int) -> slice:
        """The places of all slots of these seconds."""
        begin, end = self.kept.searchsorted((first, last)).tolist()
        return slice(begin * SECOND + 1, end * SECOND + 1)


Bools = npt.NDArray[np.bool_]

SLACK = 1.25
"""A backlog is normal up to this multiple of what it would have been: real batches vary, and an executor that
has two partitions to serve instead of one is a little slower for good.
"""
CALM = 4 * S
"""How near in time (ns) what would have been is looked for, before and after; and for how long a backlog has
to stay normal until it counts as such: a new executor that is cold may stop the results for a second time.
"""


def reach_of(beat: int) -> int:
    """How near in time (ns) what would have been is looked for.

    ``beat``: the period (ns) of what interrupts the flow in normal operation, and may come at another moment
    after a failure; 0: nothing does. Two of them are looked at, so that a whole one is always among them.
    """
    return max(CALM, 2 * beat)


def greatest_near(values: Ints, reach: int) -> Ints:
    """For each element the greatest of those at most ``reach`` places away."""
    # windows of 1, 2, 4, … are put together from two of half the length, and the last from two that overlap
    length = 2 * reach + 1
    padded = np.concatenate((np.repeat(values[:1], reach), values, np.repeat(values[-1:], reach)))
    span = 1
    while 2 * span <= length:
        padded = np.maximum(padded[:-span], padded[span:])
        span *= 2
    rest = length - span
    return np.maximum(padded[: len(padded) - rest], padded[rest:])


def least_near(values: Ints, reach: int) -> Ints:
    """For each element the least of those at most ``reach`` places away."""
    return -greatest_near(-values, reach)


def too_high(backlog: Ints, without: Ints, beat: int, spouts: int) -> Bools:
    """In which slots the backlog is more than normal.

    ``without``: what it would have been, by slot. Normal is up to a quarter more than the greatest of it
    within 4 s (or two beats), and at least a root for each of the ``spouts`` more: spouts that were restarted
    may from then on call together.
    """
    near = greatest_near(without, reach_of(beat) // SLOT)
    return backlog > np.maximum(SLACK * near, near + spouts)


def first_calm(abnormal: Bools, begin: int, beat: int) -> int | None:
    """The first slot from ``begin`` on with which 4 s (or a longer ``beat``, ns) without anything abnormal
    begin; of the last stretch, which the end of the run cuts off, 1 s (or a beat) is enough. None: there is
    none.
    """
    high = np.flatnonzero(abnormal[begin:])
    quiet_from = np.concatenate(([0], high + 1))
    quiet_to = np.concatenate((high, [len(abnormal) - begin]))
    need = np.full(len(quiet_from), max(CALM, beat) // SLOT)
    need[-1] = max(S, beat) // SLOT
    long_enough = np.flatnonzero(quiet_to - quiet_from > need)
    return begin + int(quiet_from[long_enough[0]]) if len(long_enough) else None


_TRAILING = 10 * S
"""Throughput is looked at over so long (ns)."""


class Curves(NamedTuple):
    """One value per slot of 10 ms (of those on the ``axis``), and what was put out.

    backlog   roots in the system at the slot's boundary
    present   roots in the system at any time in the slot: does not depend on where calls fall in a slot
    done      tuples that the measured component was done with in the slot
    outputs   moments of output (ns, rising)
    beat      period (ns) of what interrupts the flow in normal operation; 0: nothing does
    bad       windows that are wrong or missing, and from when to when (ns) their content is not what it would
              have been: from the window before until they are put out, or were due
    lag       records before spouts that are not read, by second (none: spouts read from no queue)
    hurt      roots of which something was destroyed (rising)
    cpu_s, network_bytes    processor time of all tasks together, and bytes between hosts: the streams', and
              what the protocol sends besides; of the whole run
    """

    backlog: Ints
    present: Ints
    done: Ints
    outputs: Ints
    beat: int
    bad: dict[Place, tuple[int, int]]
    lag: Ints
    hurt: Ints
    cpu_s: float
    network_bytes: int
    axis: Axis

    def on(self, axis: Axis) -> Curves:
        """The same with the slots of an axis that has more: in others nothing happens."""
        before = self.axis.at.searchsorted(axis.at, "right") - 1
        known = self.axis.at[before] == axis.at
        backlog = self.backlog[before]
        present, done = np.where(known, self.present[before], backlog), np.where(known, self.done[before], 0)
        return self._replace(backlog=backlog, present=present, done=done, axis=axis)


def curves(world: World) -> Curves:
    job, end, beat = world.job, world.scenario.run.duration, world.job.context.rhythm()
    remote = sum(channel.remote_bytes for task in job.bolt_tasks for channel in task.inputs)
    bad = {} if world.reference is None else world.reference.bad
    axis = _axis(world, beat, [moment for span in bad.values() for moment in span])
    if not world.recorder.is_long:
        (backlog, present), done = world.recorder.backlog(end), world.recorder.done.until(end)
    else:
        entered, left, back, done = (series.at(axis.at) for series in _series(world.recorder))
        backlog = np.cumsum(entered - left)
        present = backlog + left - back
    return Curves(
        backlog=backlog,
        present=present,
        done=done,
        outputs=world.recorder.outputs(),
        beat=beat,
        bad=bad,
        lag=np.array(world.lag.records, np.int64),
        hurt=world.losses.destroyed,
        cpu_s=sum(busy_ns(job.context, task, job.kernel.now) for task in job.tasks) / S,
        network_bytes=remote + world.recoveries.control_bytes,
        axis=axis,
    )


def on_common_axis(found: Curves, without: Curves) -> tuple[Curves, Curves]:
    kept, other = found.axis.kept, without.axis.kept
    if np.array_equal(kept, other):
        return found, without
    axis = Axis(found.axis.whole, np.union1d(kept, other))
    return found.on(axis), without.on(axis)


def _axis(world: World, beat: int, moments: list[int]) -> Axis:
    """Of a long run only what is near to what happens: as far as `measures` look from anywhere."""
    run, recorder = world.scenario.run, world.recorder
    whole = run.duration // SLOT + 1
    if not recorder.is_long:
        return Axis(whole)
    for recovery in world.recoveries.all:
        moments += [recovery.outage.failed_at, recovery.outage.ready_at, recovery.done_at]
    moments = [min(moment, run.duration) // SLOT for moment in (0, run.warmup, run.duration, *moments)]
    happens = [series.events()[0] for series in _series(recorder)]
    margin = -(-(2 * reach_of(beat) + _TRAILING) // S) + 1
    return Axis.near(whole, np.unique(np.concatenate([np.array(moments, np.int64), *happens])), margin)


def _series(recorder: Recorder) -> list[FewCounts]:
    every: list[Series] = [recorder.entered, recorder.left, recorder.back, recorder.done]
    return [series for series in every if isinstance(series, FewCounts)]
