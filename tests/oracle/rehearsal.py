"""What a batch asks of its tasks: found by walking it through copies of all states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tideover.sim.draws import Purpose

from .channels import Message
from .layout import Datum
from .states import State

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

Place = tuple[str, int]  # component, task


class Rehearsal:
    """Walks a batch through copies of all states, without time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coming: dict[Place, list[tuple[Any, Datum | int]]] = {}

    def play(self, content: dict[Task, list[Message]]) -> dict[Task, tuple[int, int]]:
        """Service and rows of the state afterwards, for each bolt task."""
        shares = {}
        for task in self.world.tasks:
            if task in self.world.spouts:
                continue
            items = [
                (message.channel.up.logical, message.marker if message.datum is None else message.datum)
                for message in content.get(task, [])
            ]
            shares[task] = self._pass(task, items + self.coming.get(task.logical, []))
        return shares

    def _pass(self, task: Any, items: list[tuple[Any, Any]]) -> tuple[int, int]:
        layout, name = self.world.layout, task.component
        state, closed, work = task.state.copy(), task.windows_closed, 0
        for up, item in items:
            if isinstance(item, Datum):
                service = layout.config[name].service
                work += layout.sample(service, name, Purpose.SERVICE, item.uid, item.attempt)
                if not layout.stateful(name):
                    for child in layout.children(name, item) if layout.down[name] else []:
                        self._send(task, child)
                    continue
                cell = item.epoch, item.key
                state.counts[cell] = state.counts.get(cell, 0) + item.value
                state.tuples += 1
                if task.window.tuples == state.tuples:
                    closed += 1
                    self._close(task, state, closed, None)
                continue
            state.markers[up] = max(item, state.markers.get(up, 0))
            least = min(state.markers.get(channel.up.logical, 0) for channel in task.inputs.values())
            if least > state.handed:
                if layout.stateful(name) and task.window.tuples is None:
                    self._close(task, state, least, least)
                state.handed = least
                for down in layout.down[name]:
                    for other in range(layout.config[down].parallelism):
                        self.coming.setdefault((down, other), []).append((task.logical, least))
        return work, state.entries if layout.stateful(name) else 0

    def _close(self, task: Any, state: State, number: int, before: int | None) -> None:
        ended = {c: n for c, n in state.counts.items() if before is None or c[0] < before}
        state.counts = {c: n for c, n in state.counts.items() if c not in ended}
        state.tuples = 0
        for key, value in sorted(State(ended).keys().items()):
            layout = self.world.layout
            self._send(task, layout.aggregate(task.component, task.index, number, key, value, state.handed))

    def _send(self, task: Task, datum: Datum) -> None:
        layout = self.world.layout
        for down in layout.down[task.component]:
            for other, crossed in layout.cross(task.component, down, datum):
                self.coming.setdefault((down, other), []).append((task.logical, crossed))
