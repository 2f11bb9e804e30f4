"""What a batch asks of its tasks: found by walking it through copies of all states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.sim.draws import Purpose

from .bolts import Bolt
from .channels import Message
from .layout import Datum, Logical

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


def end_batch(tasks: list[Any]) -> None:
    """All of a batch has passed: windows by event that have ended by its watermark are put out; then the
    watermark follows the newest events that any task of a bolt has had.
    """
    for name in dict.fromkeys(task.component for task in tasks):
        mine = [task for task in tasks if task.component == name]
        layout = mine[0].world.layout
        if not (layout.stateful(name) and layout.by_event(name)):
            continue
        for task in mine:
            before, task.state.ended = task.state.ended, task.state.watermark
            task.close_due(layout.panes(name), before)
        newest: dict[str, int] = {}
        for task in mine:
            for up, event in task.state.newest.items():
                newest[up] = max(event, newest.get(up, event))
        for task in mine:
            task.state.newest = dict(newest)
            if all(up in newest for up in layout.inputs(name)):
                moved = min(newest.values()) - task.window.lag
                task.state.watermark = max(moved, task.state.watermark)


class Double(Bolt):
    """A bolt's task as the batch leaves it; what it sends goes to the doubles of others."""

    def __init__(self, task: Any, rehearsal: Rehearsal) -> None:
        self.world, self.component, self.index, self.inputs = (
            task.world,
            task.component,
            task.index,
            task.inputs,
        )
        self.logical, self.rehearsal, self.work = task.logical, rehearsal, 0
        self.state, self.windows_closed = task.state.copy(), task.windows_closed

    def passes(self, up: Logical, item: Datum | int) -> None:
        """A tuple, or the marker of this number, that has come from there."""
        layout, name = self.world.layout, self.component
        if not isinstance(item, Datum):
            self.marker(up, item)
            return
        service = layout.config[name].service
        self.work += layout.sample(service, name, Purpose.SERVICE, item.uid, item.attempt)
        if layout.stateful(name):
            if not self.is_late(item, up[0]):
                self.count(item)
                self.fill()
        elif layout.down[name]:
            for child in layout.children(name, item):
                self.rehearsal.send(self, child)

    def close_windows(self, ends: list[tuple[int, int | None]]) -> None:
        for number, newest in ends:
            old, _ = self.take_out(newest)
            for key, value in sorted(old.keys().items()):
                layout = self.world.layout
                handed = self.state.handed
                aggregate = layout.aggregate(self.component, self.index, number, key, value, handed)
                self.rehearsal.send(self, aggregate)

    def send_marker(self, number: int) -> None:
        layout = self.world.layout
        self.state.handed = number
        for down in layout.down[self.component]:
            for other in range(layout.config[down].parallelism):
                self.rehearsal.coming.setdefault((down, other), []).append((self.logical, number))


class Rehearsal:
    """Walks a batch through copies of all states, without time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coming: dict[Logical, list[tuple[Logical, Datum | int]]] = {}
        self.doubles = {task: Double(task, self) for task in world.tasks if isinstance(task, Bolt)}

    def play(self, content: dict[Task, list[Message]]) -> dict[Task, tuple[int, int]]:
        """Service and rows of the state afterwards, for each bolt task."""
        for task, messages in content.items():
            self.coming[task.logical] = [
                (message.channel.up.logical, message.marker if message.datum is None else message.datum)
                for message in messages
            ]
        self._pass()
        end_batch(list(self.doubles.values()))
        self._pass()
        return {
            task: (double.work, double.state.entries if self.world.layout.stateful(task.component) else 0)
            for task, double in self.doubles.items()
        }

    def _pass(self) -> None:
        for double in self.doubles.values():
            for up, item in self.coming.pop(double.logical, []):
                double.passes(up, item)

    def send(self, double: Double, datum: Datum) -> None:
        """To the tasks that read it."""
        layout = self.world.layout
        datum = datum._replace(route=(*datum.route, double.logical))
        for down in layout.down[double.component]:
            for other, crossed in layout.cross(double.component, down, datum):
                self.coming.setdefault((down, other), []).append((double.logical, crossed))
