"""Active replication: every replica does everything; numbers tell what is new."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .clock import Rank, control
from .protocol import Protocol
from .tasks import Entry, Message

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


class Replication(Protocol):
    """A task keeps, per route, the greatest number it has accepted."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.greatest: dict[Task, dict[Any, int]] = {}
        self.life: dict[Task, int] = {}

    def start(self) -> None:
        self.greatest = {task: {} for task in self.world.tasks}
        self.life = dict.fromkeys(self.world.tasks, 0)

    def admit(self, task: Task, message: Message) -> bool:
        if task.waiting:
            task.memory.append(message)
            return False
        if message.datum is not None:
            route, number = ("tuple", message.datum.route), message.datum.uid
        else:
            assert message.marker is not None
            route, number = ("marker", (message.channel.up.logical,)), message.marker
        greatest = self.greatest[task]
        if number <= greatest.get(route, -1):
            return False
        greatest[route] = number
        return True

    def failed(self, task: Task, crash: bool) -> None:
        self.life[task] += 1
        if crash:
            self.greatest[task] = {}

    def _peer(self, task: Task) -> Task | None:
        """The live one with the lowest index."""
        for peer in self.world.tasks:
            if peer.logical == task.logical and peer is not task and not peer.down and not peer.waiting:
                return peer
        return None

    def ready(self, task: Task, was_down: bool) -> None:
        peer = self._peer(task)
        if peer is None:
            return
        size = peer.state.entries * self.world.entry_size
        bandwidth = self.params.copy_bandwidth
        copied = self.world.clock.now + self.params.copy_time
        copied += 0 if bandwidth is None else round(size * 1e9 / bandwidth)
        wire = [channel.last_arrival for channel in peer.inputs.values() if channel.wire]
        task.suspend()
        task.waiting = True
        own = [entry.what for entry in task.queue if isinstance(entry.what, Message)]
        task.queue.clear()  # not after a crash: then it is empty
        task.memory = own + task.memory
        copy = partial(self._copy, task, self.life[task])
        self.world.clock.at(max([copied, *wire]), control(Rank.RESTORE, task.rank), copy)

    def _copy(self, task: Task, life: int) -> None:
        """At one instant: state, numbers and queue of a live replica; then what was held, if it is new."""
        if life != self.life[task]:
            return
        now, peer = self.world.clock.now, self._peer(task)
        task.waiting = False
        self.greatest[task] = {}
        if peer is not None:
            task.state = peer.state.copy()
            task.windows_closed = peer.windows_closed
            self.greatest[task] = dict(self.greatest[peer])
            entries = ([peer.serving] if peer.serving else []) + list(peer.queue)
            task.queue.extend(Entry(now, entry.what) for entry in entries if isinstance(entry.what, Message))
        held, task.memory = task.memory, []
        for message in held:
            task.accept(message)
        task.serve()
