"""What is normal for a run: the same scenario, seed and luck without failures; `simulation` asks for it.

It costs a run of its own, about as long as the run that is held against it. Runs that differ only in what
matters after a failure (when and how it strikes, how state is restored) have it in common, so it is kept for
the next of them in this process.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from tideover.models.config import Scenario, identity
from tideover.models.evaluation.curves import Curves, curves
from tideover.models.world import World

KEPT_BYTES = 1 << 27
"""Most memory for references that are kept."""

_kept: OrderedDict[str, tuple[Curves, int]] = OrderedDict()
"""With their bytes, the newest last."""


def reference(scenario: Scenario, replication: int) -> Curves:
    """What a run of ``scenario`` (as it is simulated) would have been without its failures."""
    quiet = without_failures(scenario)
    key = identity(quiet, replication)
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key][0]
    found = _narrow(curves(_promptly(quiet, replication) or _run(quiet, replication)))
    arrays = [*(row for row in found if isinstance(row, np.ndarray)), found.axis.at, found.axis.kept]
    _kept[key] = found, sum(row.nbytes for row in arrays)
    while sum(size for _, size in _kept.values()) > KEPT_BYTES and len(_kept) > 1:
        _kept.popitem(last=False)
    return found


def forget() -> None:
    """Keep nothing for the next runs, as in a process that has run nothing yet."""
    _kept.clear()


def _run(quiet: Scenario, replication: int, in_time: bool = False) -> World:
    world = World(quiet, replication, looks=0, curves_only=True, in_time=in_time)
    world.run()
    return world


def _promptly(quiet: Scenario, replication: int) -> World | None:
    """The run as it is if everything comes in time, which is less to simulate; None: it may not have."""
    if not quiet.strategy.prompt():
        return None
    world = _run(quiet, replication, in_time=True)
    return None if world.job.plane.p.again else world


def without_failures(scenario: Scenario) -> Scenario:
    """The scenario that all have in common which differ only in what matters after a failure."""
    return scenario.model_copy(update={"failures": (), "strategy": scenario.strategy.without_failures()})


def _narrow(found: Curves) -> Curves:
    """The same in half the memory, where counts are small enough."""
    small = {name: getattr(found, name) for name in ("backlog", "present", "done")}
    if any(len(row) and row.max() > np.iinfo(np.int32).max for row in small.values()):
        return found
    return found._replace(**{name: row.astype(np.int32) for name, row in small.items()})
