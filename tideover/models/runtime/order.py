"""In which order tasks and cards move in the data plane, and who waits for room in whose queue.

A job asks for both when it is wired, for the order again when tasks have moved. What decides is which tasks
can feel one another at one instant: say so in ``_who_feels`` if a new kind of thing lets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tideover.models.job.cluster import Deployment
from tideover.models.job.components import Bounds
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Line, Network, Wire
from tideover.sim.plane.plane import Plane


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
        if not bound.holds_back:
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


def steps_of(
    plane: Plane,
    network: Network,
    wires: Sequence[Wire],
    bolts: Sequence[BoltTask],
    deployment: Deployment,
    rate: float,
    at_once: bool,
) -> tuple[list[list[int]], int]:
    """In which groups tasks and cards move, and how far (ns) in a step: 0, as far as may be.

    ``rate``: roots per ns; ``at_once``: all of them feel one another at any instant.
    """
    step, p = round(ROOTS / rate) if rate else 0, plane.p
    nodes = p.n_tasks + p.n_cards
    feel = [list(range(nodes))] if at_once else _who_feels(plane, bolts, deployment)
    found = groups(nodes, _ways(wires, network, plane, True), feel)
    if p.n_cards and max(map(len, found)) > 1:
        known = (plane.lib.DRAW_CONSTANT, plane.lib.DRAW_UNIFORM)  # of others the least is not known
        laws = [wire.c.latency for wire in wires if wire.remote]
        short = min((int(law.low) if law.kind in known else 0 for law in laws), default=0) - 1
        in_steps = groups(nodes, _ways(wires, network, plane, False), feel)
        if short > 0 and short * rate * PAYS > nodes and len(in_steps) > len(found):
            found, step = in_steps, min(step, short)
    return found, step if len(found) > 1 else 0


def _who_feels(plane: Plane, bolts: Sequence[BoltTask], deployment: Deployment) -> list[list[int]]:
    """Which tasks, by number, feel one another at any instant, group by group.

    These are who share cores, or ask at one store; who sends to a queue that holds senders back, with its
    server; and who has to see in what order it gets, at one instant, what leaves lines at any turn of that.
    """
    together: dict[object, list[int]] = {}  # tasks that move may ask at any store
    for task in bolts:
        looks = task.c.look_ups
        if task.c.cores >= 0:
            together.setdefault(("cores", task.c.cores), []).append(task.number)
        if looks and looks.store:
            together.setdefault(None if deployment.moves else looks.store, []).append(task.number)
    feel, bounds = list(together.values()), deployment.bounds
    full = [task for task in bolts if bounds[task.component.name].holds_back]
    if not full:
        return feel
    feel += [[task.number, *(wire.up.number for wire in task.inputs)] for task in full]
    ways = [(wire.up.number, task.number) for task in bolts for wire in task.inputs]
    group_of = {number: group for group in groups(plane.p.n_tasks, ways, feel) for number in group}
    waiting = {number for task in full for number in group_of[task.number]}
    origins: dict[int, set[int]] = {}
    for task in bolts:
        ups = [wire.up.number for wire in task.inputs if not wire.delay]
        of = {up for up in ups if up in waiting}.union(*(origins.get(up, ()) for up in ups))
        of.difference_update(group_of[task.number])
        if of:
            origins[task.number] = of
            if len(task.inputs) > 1 or bounds[task.component.name].length is not None:
                feel.append([task.number, *of])
    return feel


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
