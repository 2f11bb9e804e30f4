"""What a run looked like over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tideover.models.accounts.window_log import Place
from tideover.models.evaluation.costs import cpu_s, network_bytes
from tideover.sim.recorder import SLOT
from tideover.sim.train import Ints
from tideover.sim.units import S

if TYPE_CHECKING:
    from tideover.models.world import World

SECOND = S // SLOT
"""Slots in a second."""


class Curves(NamedTuple):
    """One value per slot of 10 ms, and what was put out.

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


def curves(world: World) -> Curves:
    """The curves of a run that has ended."""
    end = world.scenario.run.duration
    backlog, present = world.recorder.backlog(end)
    return Curves(
        backlog=backlog,
        present=present,
        done=world.recorder.done.until(end),
        outputs=world.recorder.outputs(),
        beat=world.job.context.rhythm(),
        bad={} if world.reference is None else world.reference.bad,
        lag=np.array(world.lag.records, np.int64),
        hurt=world.ledger.destroyed,
        cpu_s=cpu_s(world),
        network_bytes=network_bytes(world),
    )
