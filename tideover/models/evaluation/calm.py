"""When the latency is normal again, as somebody reads it off a chart: second by second.

M. Geldenhuys et al., *Demeter*, 2024 (arXiv 2403.02129), published latencies of this kind; a second is normal
there if it lies below both bounds that ``normal_latency`` knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.runtime.outage import Outage
from tideover.models.world import World
from tideover.sim.units import MS, S

_ABOVE_P95, _ABOVE_MEDIAN = 1.25, 300 * MS


def figures(world: World, outage: Outage) -> dict[str, Any]:
    """``outage_end_s`` and ``latency_recovered_s`` of a failure, if the scenario asks for them."""
    calm, end = world.scenario.run.calm, world.scenario.run.duration
    if calm is None:
        return {}
    back = outage.failed_at if outage.masked or outage.unfelt else outage.ready_at
    first = _first_calm(world, back, -(-calm // S)) if back <= end else None
    return {
        "outage_end_s": (back - outage.failed_at) / S if back <= end else None,
        "latency_recovered_s": None if first is None else max(0, first * S - outage.failed_at) / S,
    }


def _first_calm(world: World, since: int, seconds: int) -> int | None:
    """The first of so many seconds in a row, from that of ``since`` on, that are normal; None: there are none
    before the run ends. A second without a tuple is not.
    """
    latency = _by_second(world)
    failed = min(outage.failed_at for outage in world.outages) // S
    most = normal_latency(latency[-(-world.scenario.run.warmup // S) : failed])
    run = 0
    for second in range(since // S, len(latency)):
        run = run + 1 if latency[second] <= most else 0
        if run == seconds:
            return second - seconds + 1
    return None


def normal_latency(before: npt.NDArray[np.float64]) -> float:
    """The highest that is normal (ns): 1.25 times the 95th percentile of the seconds before the first
    failure, or 300 ms above their median, whichever is more.

    >>> import numpy as np
    >>> normal_latency(np.full(20, 2.0e9)) / 1e9
    2.5
    >>> normal_latency(np.array([])) / 1e9
    0.3
    """
    known = before[np.isfinite(before)]
    if not len(known):
        return float(_ABOVE_MEDIAN)
    return max(_ABOVE_P95 * float(np.quantile(known, 0.95)), float(np.median(known)) + _ABOVE_MEDIAN)


def _by_second(world: World) -> npt.NDArray[np.float64]:
    """Mean latency of the tuples that were done in each second of the run (ns); infinite: there were none."""
    seconds = np.arange(world.scenario.run.duration // S, dtype=np.int64)
    means, _ = world.recorder.latency.by_second(seconds)
    return np.array([np.inf if mean is None else mean for mean in means])
