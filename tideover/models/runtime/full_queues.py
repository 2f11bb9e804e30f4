"""Queues with bounds: who waits for room in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.models.job.queues import Bounds
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.groups import groups
from tideover.models.runtime.line import Line
from tideover.models.runtime.wire import Wire
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
