"""What a run looked like over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tideover.models.accounts.window_log import Place
from tideover.models.evaluation.axis import Axis
from tideover.models.evaluation.costs import cpu_s, network_bytes
from tideover.models.evaluation.normal import reach_of
from tideover.sim.recorder import SLOT, FewCounts, Recorder, Series
from tideover.sim.train import Ints
from tideover.sim.units import S

if TYPE_CHECKING:
    from tideover.models.world import World

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
    cpu_s, network_bytes    what the whole run cost
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
        if axis is self.axis:
            return self
        before = self.axis.at.searchsorted(axis.at, "right") - 1
        known = self.axis.at[before] == axis.at
        backlog = self.backlog[before]
        present, done = np.where(known, self.present[before], backlog), np.where(known, self.done[before], 0)
        return self._replace(backlog=backlog, present=present, done=done, axis=axis)


def curves(world: World) -> Curves:
    """The curves of a run that has ended."""
    end, beat = world.scenario.run.duration, world.job.context.rhythm()
    bad = {} if world.reference is None else world.reference.bad
    axis = _axis(world, beat, [moment for span in bad.values() for moment in span])
    if axis.kept is None:
        (backlog, present), done = world.recorder.backlog(end), world.recorder.done.until(end)
    else:
        backlog, present, done = _few(world.recorder, axis)
    return Curves(
        backlog=backlog,
        present=present,
        done=done,
        outputs=world.recorder.outputs(),
        beat=beat,
        bad=bad,
        lag=np.array(world.lag.records, np.int64),
        hurt=world.ledger.destroyed,
        cpu_s=cpu_s(world),
        network_bytes=network_bytes(world),
        axis=axis,
    )


def together(found: Curves, without: Curves) -> tuple[Curves, Curves]:
    """Both with the same slots."""
    if found.axis.kept is None:
        return found, without
    axis = found.axis.and_those_of(without.axis)
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


def _few(recorder: Recorder, axis: Axis) -> tuple[Ints, Ints, Ints]:
    """Backlog, present and done in these slots."""
    entered, left, back, done = (series.at(axis.at) for series in _series(recorder))
    backlog = np.cumsum(entered - left)
    return backlog, backlog + left - back, done
