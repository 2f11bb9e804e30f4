"""Headroom: how much more load a configuration takes before an objective breaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tideover.scenarios.planning.candidate import Candidate

CLOSE = 1.05
"""The two factors are so close together at the end."""
TRIES = 5
"""So many loads are tried if something breaks at twice the load."""
MOST = 64.0
"""Not more than so many times the load is tried."""


@dataclass(frozen=True)
class Headroom:
    """Factors of the planned load.

    holds     the greatest that was tried at which all objectives hold
    breaks    the least that was tried at which one does not; None: none was found
    first     the objectives that break there, the worst first
    loads     all factors that were tried, in order, and whether all held
    """

    holds: float
    breaks: float | None
    first: tuple[str, ...]
    loads: tuple[tuple[float, bool], ...]

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        tried = [{"load": load, "holds": held} for load, held in self.loads]
        return {"holds": self.holds, "breaks": self.breaks, "first": list(self.first), "tried": tried}


def headroom(best: Candidate, at_load: Callable[[float], Candidate]) -> Headroom:
    """Bisect between a load at which all objectives hold and one at which one breaks, by the replications of
    the optimum, so with its luck. ``at_load``: the same candidate at so many times its load.

    It is assumed that what breaks at one load breaks at greater ones.
    """
    held, broken, tried = 1.0, math.inf, {1.0: True}
    last: Candidate | None = None
    while held < MOST and broken / held > CLOSE:
        load = 2 * held if math.isinf(broken) else math.sqrt(held * broken)
        found = at_load(load)
        tried[load] = found.holds
        if found.holds:
            held = load
        else:
            broken, last = load, found
    loads = tuple(sorted(tried.items()))
    if last is None:
        return Headroom(held, None, (), loads)
    return Headroom(held, broken, tuple(last.missed), loads)
