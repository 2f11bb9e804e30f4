"""Queues with bounds, where the compiled data plane moves what waits for room in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tideover.models.flow.bolt import FlowBolt
from tideover.models.flow.groups import groups
from tideover.models.flow.wire import Wire
from tideover.models.job.queues import Bounds
from tideover.sim.line import Bound
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Train


class FlowLine:
    """What one task has made and not sent yet.

    c   the struct ``line``
    """

    def __init__(self, plane: Plane, task: Any, send: int) -> None:
        self._plane, self._number = plane, task.number
        self._wires: dict[int, Wire] = {
            wire.number: wire for outlet in task.outlets for row in outlet.channels for wire in row
        }
        self.c: Any = task.c.line
        self.c.send = send
        task.c.bounded |= plane.lib.HAS_LINE

    def trains(self) -> list[tuple[Wire, Train]]:
        """What is in it, by the channel by which it will leave."""
        rows = self._plane.rows(self.c.messages)
        routes = dict.fromkeys(rows["source"].tolist())
        return [(self._wires[route], self._plane.train(rows[rows["source"] == route])) for route in routes]

    def clear(self, now: int) -> list[tuple[Wire, Train]]:
        """Destroy it; returns what was in it."""
        lost = self.trains()
        self._plane.lib.plane_lose_line(self._plane.p, self._number, now)
        return lost

    def blocked_until(self, now: int) -> int:
        """For how long it has held the task up until now (ns)."""
        return int(self.c.blocked + (now - self.c.blocked_since if self.c.full else 0))


def bind(
    plane: Plane, tasks: Sequence[Any], bounds: Mapping[str, Bounds], notices: Mapping[Wire, int]
) -> None:
    """Give queues their bounds, and tasks that may have to wait for room their lines.

    ``notices``: after how long the sender by a channel learns that there is room (ns).
    """
    lib, waiting = plane.lib, set()
    for task in tasks:
        bound = bounds[task.component.name]
        if not isinstance(task, FlowBolt) or bound.length is None:
            continue
        task.bound = Bound(bound.length, bound.when_full)
        if bound.when_full == "drop":
            task.c.length = bound.length
            task.c.bounded |= lib.DROPS
            continue
        task.c.places.free = bound.length
        for wire in (wire for wire in task.inputs if not wire.logged):
            wire.c.placing = lib.OF_CHANNEL if task.bound.apart else lib.OF_QUEUE
            wire.c.credit, wire.c.notice = bound.length, notices[wire]
            waiting.add(wire.up)
    for task in tasks:
        if task in waiting:
            task.line = FlowLine(plane, task, bounds[task.component.name].send)


def who_waits(
    bolts: Sequence[FlowBolt], bounds: Mapping[str, Bounds], feel: Sequence[Sequence[int]], tasks: int
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
            if len(task.inputs) > 1 or task.bound is not None:
                wait.append([task.number, *of])
    return [*map(list, feel), *wait]
