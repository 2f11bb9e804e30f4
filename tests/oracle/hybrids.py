"""A strategy for each bolt: replicas, checkpoints, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tideover.sim.registry import kind_of

from .bolts import Bolt
from .buffers import Checkpoint, Keeper, UpstreamBuffer
from .channels import Channel, Message
from .replicas import Replication
from .shelves import Shelf

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


@dataclass
class Filtered(Checkpoint):
    """A checkpoint, and the greatest number served on each route."""

    had: dict[Any, int] = field(default_factory=dict)


class Hybrid(UpstreamBuffer, Replication):
    """Each task goes by its member's rules; all drop what they have had, if there are replicas."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        params: Any = self.params
        members = [params.rest, *params.bolts.values(), *([params.stateless] * bool(params.stateless))]
        self.filters = any(kind_of(member) == "active_replication" for member in members)
        self.had: dict[Task, dict[Any, int]] = {}

    def settings(self, task: Task) -> Any:
        return self.world.layout.member(task.component)

    def is_under(self, kind: str, task: Task) -> bool:
        """Whether that is its member."""
        return task.component not in self.world.layout.spouts and kind_of(self.settings(task)) == kind

    def start(self) -> None:
        Replication.start(self)
        for task in self.world.tasks:
            saved = isinstance(task, Bolt) and self.is_under("rsm", task)
            if saved and self.world.layout.stateful(task.component):
                self.keepers[task] = Keeper(Shelf.of(self.world, task), valid=Filtered())
                self.had[task] = {}
                self._tick(task)

    def buffers(self, up: Task, down: Task) -> bool:
        return self.is_under("rsm", down) and super().buffers(up, down)

    # -- what has come -------------------------------------------------------------------------------------

    def admit(self, task: Task, message: Message) -> bool:
        if not UpstreamBuffer.admit(self, task, message):
            return False
        if not self.filters or message.datum is None or task.waiting:
            return True
        datum, greatest = message.datum, self.greatest[task]
        if datum.uid <= greatest.get(datum.route, -1):
            task.give_back(message)
            if datum.anchored:
                self.world.record.gone(datum)
                self.world.outages.repeated(task)
            return False
        greatest[datum.route] = datum.uid
        return True

    def served(self, task: Bolt, message: Message) -> None:
        super().served(task, message)
        if task in self.keepers and message.datum is not None:
            self.had[task][message.datum.route] = message.datum.uid

    # -- checkpoints ---------------------------------------------------------------------------------------

    def ticked(self, task: Bolt) -> None:
        if task in self.keepers:
            super().ticked(task)

    def content(self, task: Task) -> Filtered:
        return Filtered(**vars(super().content(task)), had=dict(self.had[task]))

    def _safe(self, channel: Channel, content: Checkpoint) -> None:
        super()._safe(channel, content)
        if self.filters:
            assert isinstance(content, Filtered)
            had = content.had
            channel.buffer = [
                message
                for message in channel.buffer
                if message.datum is None or message.datum.uid > had.get(message.datum.route, -1)
            ]

    def goes_back(self, task: Task) -> None:
        valid = self.keepers[task].valid
        assert isinstance(valid, Filtered)
        self.greatest[task], self.had[task] = dict(valid.had), dict(valid.had)

    # -- faults --------------------------------------------------------------------------------------------

    def failed(self, task: Task, crash: bool) -> None:
        UpstreamBuffer.failed(self, task, crash)
        Replication.failed(self, task, crash)

    def ready(self, task: Task, was_down: bool) -> None:
        if self.is_under("active_replication", task):
            Replication.ready(self, task, was_down)
        else:
            UpstreamBuffer.ready(self, task, was_down)

    def goes_on(self, task: Task, peer: Task | None) -> None:
        """It keeps what its peer keeps."""
        for down, channel in () if peer is None else peer.outputs.items():
            mine = task.outputs[down]
            mine.buffer = []
            for message in channel.buffer:
                mine.numbered += 1
                copy = Message(mine, message.datum, message.marker, number=mine.numbered)
                mine.buffer.append(copy)

    def there(self, task: Task) -> None:
        self._ask_again(task)
