"""In which order tasks and cards move in the data plane, and who waits for room in whose queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tideover.models.job.components import Bounds
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Line, Network, Wire, least
from tideover.models.runtime.wiring import Wired
from tideover.sim.plane.plane import Plane

# Queues with bounds: who waits for room in them.


def bind(
    plane: Plane, tasks: Sequence[Any], bounds: Mapping[str, Bounds], notices: Mapping[Wire, int]
) -> None:
    """Give queues their bounds, and tasks that may have to wait for room their lines.

    ``notices``: after how long the sender by a channel learns that there is room (ns).
    """
    lib, waiting = plane.lib, set()
    for task in tasks:
        bound = bounds[task.component.name]
        if task.component.is_spout or bound.length is None:
            continue
        if bound.when_full == "drop":
            task.c.length = bound.length
            task.c.bounded |= lib.DROPS
            continue
        task.c.places.free = bound.length
        for wire in (wire for wire in task.inputs if not wire.logged):
            wire.c.placing = lib.OF_CHANNEL if bound.when_full == "credits" else lib.OF_QUEUE
            wire.c.credit, wire.c.notice = bound.length, notices[wire]
            waiting.add(wire.up)
    for task in tasks:
        if task in waiting:
            task.line = Line(plane, task, bounds[task.component.name].send)


def who_waits(
    bolts: Sequence[BoltTask], bounds: Mapping[str, Bounds], feel: Sequence[Sequence[int]], tasks: int
) -> list[list[int]]:
    """Which tasks, by number, feel one another, group by group.

    These are who ``feel`` one another already; who sends to a queue that holds senders back, with its server;
    and who has to see in what order it gets, at one instant, what leaves lines at any turn of that.
    """
    ways = [(wire.up.number, task.number) for task in bolts for wire in task.inputs]
    full = [task for task in bolts if bounds[task.component.name].holds_back]
    wait = [[task.number, *(wire.up.number for wire in task.inputs)] for task in full]
    if not full:
        return [list(group) for group in feel]
    found = groups(tasks, ways, [*feel, *wait])
    group_of = {number: group for group in found for number in group}
    waiting = {number for task in full for number in group_of[task.number]}
    origins: dict[int, set[int]] = {}
    for task in bolts:
        ups = [wire.up.number for wire in task.inputs if not wire.delay]
        of = {up for up in ups if up in waiting}.union(*(origins.get(up, ()) for up in ups))
        of.difference_update(group_of[task.number])
        if of:
            origins[task.number] = of
            if len(task.inputs) > 1 or bounds[task.component.name].length is not None:
                wait.append([task.number, *of])
    return [*map(list, feel), *wait]


def groups(tasks: int, ways: Iterable[tuple[int, int]], feel: Iterable[Sequence[int]]) -> list[list[int]]:
    """Tasks, by number, in groups: those that ``feel`` one another at any instant, and all that are on a way
    from one of a group to another; a group comes before those that it sends to (``ways``: from, to).
    """
    below: list[set[int]] = [set() for _ in range(tasks)]
    above: list[set[int]] = [set() for _ in range(tasks)]
    circles = (pair for together in feel for pair in pairwise((*together, together[0])))
    for up, down in (*ways, *circles):
        below[up].add(down)
        above[down].add(up)
    found: list[list[int]] = []
    seen: set[int] = set()
    for task in reversed(_finished(range(tasks), below, set())):
        if task not in seen:
            found.append(sorted(_finished([task], above, seen)))
    return found


def _finished(starts: Iterable[int], to: Sequence[set[int]], seen: set[int]) -> list[int]:
    """All that can be reached and was not ``seen``, each when all that it leads to is finished."""
    finished: list[int] = []
    for start in starts:
        ahead = [] if start in seen else [(start, iter(sorted(to[start])))]
        seen.add(start)
        while ahead:
            task, others = ahead[-1]
            other = next((other for other in others if other not in seen), None)
            if other is None:
                finished.append(task)
                ahead.pop()
            else:
                seen.add(other)
                ahead.append((other, iter(sorted(to[other]))))
    return finished


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
        flights = (least(wire.c.latency, plane.lib) for wire in wires if wire.remote)
        short = min(flights, default=0) - 1
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
    asks: dict[object, list[int]] = {}  # by the store where states lie; tasks that move may ask at any
    for task in bolts:
        looks = plane.tasks[task.number].look_ups
        if looks and looks.store:
            asks.setdefault(None if job.deployment.moves else looks.store, []).append(task.number)
    return who_waits(bolts, job.deployment.bounds, [*feel, *asks.values()], len(job.tasks))


def _ways(wires: Sequence[Wire], network: Network, plane: Plane, over_wires: bool) -> list[tuple[int, int]]:
    """Who hands messages on to whom; ``over_wires``: also between hosts, as always with bounded queues."""
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
