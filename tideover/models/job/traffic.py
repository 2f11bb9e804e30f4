"""How much flows over each edge if nothing fails: by the keys, and where the groupings send them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import Edge, Topology
from tideover.sim.units import S

Floats = npt.NDArray[np.float64]


class _Same:
    """A topology, equal to those that are made of the very same configurations under the same names: nobody
    changes these, and a scenario has the same in all its runs.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.parts = tuple((c.name, id(c.config)) for c in topology.components)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.parts == other.parts


def traffic(topology: Topology, over: int | None = None) -> dict[str, Floats]:
    """Tuples/s that reach each task of an edge's receiver, by name of the edge. A window puts out nothing
    here: how often, and how much, is its own affair.

    Of rates that change the greatest counts; with ``over`` their mean over the first so many ns.
    """
    return dict(_traffic(_Same(topology), over))


# A run asks a dozen times, and a million keys take 20 ms.
@lru_cache(maxsize=8)
def _traffic(same: _Same, over: int | None) -> dict[str, Floats]:
    out = leaving(same.topology, over)
    found = {e.name: spread(e, out[e.up.name]) for c in same.topology.components for e in c.inputs}
    for rates in found.values():
        rates.flags.writeable = False
    return found


def leaving(topology: Topology, over: int | None = None) -> dict[str, Floats]:
    """Tuples/s that leave a component, by key; the rest as in ``traffic``."""
    out: dict[str, Floats] = {}
    for c in topology.components:
        if isinstance(c.config, SpoutConfig):
            arrivals = c.config.arrivals
            rate = S / arrivals.mean_gap_ns if over is None else arrivals.expected(over) / over * S
            out[c.name] = c.config.processes * rate * c.config.spout.shares()
            continue
        inputs = np.zeros(c.input_keys)
        for e in c.inputs:
            inputs[: e.up.keys] += out[e.up.name] * (c.tasks if e.grouping.copies else 1)
        out[c.name] = np.zeros(c.keys) if c.window else c.bolt.rates(inputs)
    return out


def spread(edge: Edge, rates: Floats) -> Floats:
    """Tuples/s that come over an edge to each task, from those that leave its sender by key."""
    tasks = edge.down.tasks
    if edge.grouping.copies:
        return np.full(tasks, rates.sum())
    owners = edge.grouping.owners(len(rates), tasks)
    if owners is None:
        return np.full(tasks, rates.sum() / tasks)
    return np.asarray(np.bincount(owners, weights=rates, minlength=tasks), np.float64)
