"""Active replication: every replica does everything; numbers tell what is new."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .bolts import Bolt
from .channels import Message, transfer
from .clock import Rank, control
from .entrances import Control, Entry
from .protocol import Protocol

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
            return True  # the filter comes with the copy
        if message.datum is not None:
            route, number = ("tuple", message.datum.route), message.datum.uid
        else:
            assert message.marker is not None
            route, number = ("marker", (message.channel.up.logical,)), message.marker
        greatest = self.greatest[task]
        if number <= greatest.get(route, -1):
            task.give_back(message)
            if message.datum is not None and message.datum.anchored:
                self.world.record.gone(message.datum)
                self.world.outages.repeated(task)
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
        """Wait until the peer has all that was sent while this replica was not there."""
        peer = self._peer(task)
        if peer is None:
            if isinstance(task, Bolt):
                self.world.outages.restored(task.fault, 0)  # with what there is
                self.goes_on(task, None)
            waited = task.waiting
            if waited:
                task.queue = deque(Entry(self.world.clock.now, entry.what) for entry in task.queue)
                task.restored()
            if was_down or waited:
                self.there(task)
            return
        task.queue.extend(Entry(self.world.clock.now, message) for message in task.interrupt())
        task.waiting = True
        settings = self.settings(task)
        bandwidth, copied = settings.copy_bandwidth, self.world.clock.now + settings.copy_time
        size = peer.state.entries * settings.entry_size
        self.world.record.control_bytes += size
        if bandwidth is not None:
            copied += transfer(size, bandwidth)
        copy = partial(self._copy, task, peer, self.life[task])
        wire = {message for channel in peer.inputs.values() for message in channel.wire}
        self.world.arrivals.wait(wire, copied, control(Rank.RESTORE, task.rank), copy)

    def _copy(self, task: Task, peer: Task, life: int) -> None:
        """At one instant: state, numbers and queue of a live replica; then what was held, if it is new."""
        if life != self.life[task]:
            return
        if peer.down or peer.waiting:
            self.ready(task, False)
            return
        task.state, task.windows_closed = peer.state.copy(), peer.windows_closed
        self.greatest[task] = dict(self.greatest[peer])
        if self.world.layout.stateful(task.component):
            self.world.outages.restored(task.fault, len(task.state.held))
        task.memory = task.queued() + task.memory  # its own queue, if it kept one
        task.queue.clear()
        for down, channel in peer.outputs.items():
            if channel.wire:  # a connection opened anew stays behind what its peer has on the wire
                mine = task.outputs[down]
                mine.last_arrival = max(mine.last_arrival, channel.last_arrival + 1)
        for entry in [*([peer.serving] if peer.serving else []), *peer.queue]:
            what = entry.what
            if isinstance(what, Message):
                self.world.record.there(what.datum)
                copy = replace(what)  # takes no place of its peer's
                what.channel.unpacks[copy] = what.channel.unpacks.get(what, 0)
                what = copy
            if isinstance(what, Control) and what.window is None:
                continue
            if isinstance(what, Control):  # a tick: of the same window, in the same place
                assert isinstance(task, Bolt)
                what = Control(what.rank, partial(task.ticked, what.window), what.window)
            task.queue.append(Entry(self.world.clock.now, what))
        self.goes_on(task, peer)
        task.restored()
        self.there(task)

    def settings(self, task: Task) -> Any:
        """Parameters of the strategy that the task is under."""
        return self.params

    def there(self, task: Task) -> None:
        """A task that was not serves again."""

    def goes_on(self, task: Task, peer: Task | None) -> None:
        """A task is there again, with what it has copied of its peer (None: of nobody)."""
