"""In which order tasks and cards move in the data plane, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tideover.models.runtime.full_queues import who_waits
from tideover.models.runtime.groups import groups
from tideover.models.runtime.laws import least
from tideover.models.runtime.network import Network
from tideover.models.runtime.wire import Wire
from tideover.models.runtime.wiring import Wired
from tideover.sim.plane.plane import Plane

ROOTS = 512
"""Roots that are made in one step of the data plane, about: what is under way stays in the caches then."""
PAYS = 16
"""Where short steps are as good as one order of events: nodes for each root of a step, at most."""


def lay(job: Wired) -> None:
    """Say in which groups tasks and cards move, and in which steps, by where tasks are now."""
    plane, wires, network = job.plane, job.wires, job.network
    rate = sum(1 / spout.arrivals.mean_gap_ns for spout in job.spouts)
    step, p = round(ROOTS / rate) if rate else 0, plane.p
    nodes = p.n_tasks + p.n_cards
    found = groups(nodes, _ways(wires, network, plane, True), _who_feels(job, plane))
    if p.n_cards and max(map(len, found)) > 1:
        short = _shortest_flight(wires, plane) - 1
        in_steps = groups(nodes, _ways(wires, network, plane, False), _who_feels(job, plane))
        if short > 0 and short * rate * PAYS > nodes and len(in_steps) > len(found):
            found, step = in_steps, min(step, short)
    plane.group(found)
    p.step = step if len(found) > 1 else 0


def _who_feels(job: Wired, plane: Plane) -> list[list[int]]:
    """Who feels one another at any instant."""
    p, bolts = plane.p, job.bolt_tasks
    marks = p.n_cards and job.topology.marker_length is not None
    if marks or any(spout.in_flight.most is not None for spout in job.spouts):
        # a marker passes a card in no time, and an ack the hosts
        return [list(range(p.n_tasks + p.n_cards))]
    cores = [plane.tasks[task.number].cores for task in bolts]
    feel = [
        [task.number for task, at in zip(bolts, cores, strict=True) if at == place]
        for place in set(cores) - {-1}
    ]
    feel += _who_asks(job, plane)
    return who_waits(bolts, job.deployment.bounds, feel, len(job.tasks))


def _who_asks(job: Wired, plane: Plane) -> list[list[int]]:
    """Who waits for whom where states lie: at one store, or maybe, where tasks go to other hosts."""
    found: dict[object, list[int]] = {}
    for task in job.bolt_tasks:
        looks = plane.tasks[task.number].look_ups
        if looks and looks.store:
            found.setdefault(None if job.deployment.moves else looks.store, []).append(task.number)
    return list(found.values())


def _shortest_flight(wires: Sequence[Wire], plane: Plane) -> int:
    """No message between hosts is on the wire for less (ns)."""
    return min((least(wire.c.latency, plane.lib) for wire in wires if wire.remote), default=0)


def _ways(wires: Sequence[Wire], network: Network, plane: Plane, over_wires: bool) -> list[tuple[int, int]]:
    """Who hands messages on to whom; ``over_wires``: also from one host to another, as always where there may
    be no room: what is lost behind a card makes some at once.
    """
    cards, first, found = plane.cards, plane.p.n_tasks, []
    for wire in wires:
        path = [wire.up.number, *network.passed(wire), wire.down.number]
        for node, behind in pairwise(path):
            leaves = node < first or not cards[node - first].into
            arrives = behind < first or cards[behind - first].into
            cut = not over_wires and wire.remote and wire.c.placing <= plane.lib.OF_LOG
            if not (cut and leaves and arrives):
                found.append((node, behind))
    return found
