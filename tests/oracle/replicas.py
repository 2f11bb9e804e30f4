"""Replicas of tasks: all that do everything, pairs of which one speaks, and bolts with a strategy each."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tideover.models.strategies.base import STRATEGIES
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .buffers import Checkpoint, CopyHolder, UpstreamBuffer
from .channels import Channel, Message, transfer
from .clock import Rank, control
from .making import TICK, Maker
from .protocol import PROTOCOLS, Protocol
from .stores import Shelf
from .tasks import Control, Entry

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task


def copies(make: Maker) -> dict[str, Any]:
    """Settings of strategies whose replicas copy a state."""
    return {"copy_time": make.ns(0, 0, 2, 10), "copy_bandwidth": make.some(None, None, 200)}


class Replication(Protocol, kind="active_replication"):
    """A task keeps, per route, the greatest number it has accepted."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        chosen = tuple(name for name in make.bolts if make.maybe())
        return {"k": make.some(0, 1, 1, 2), "components": make.some(None, None, chosen)} | copies(make)

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
            route, number = ("marker", (message.channel.up.logical,)), message.marker
        greatest = self.greatest[task]
        if number <= greatest.get(route, -1):
            if task.filter_out(message):
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
        fleet = self.world.replicas[task.logical]
        return next((peer for peer in fleet if peer is not task and peer.live), None)

    def ready(self, task: Task, was_down: bool) -> None:
        """Wait until the peer has all that was sent while this replica was not there."""
        peer = self._peer(task)
        if peer is None:
            if isinstance(task, Bolt):
                self.world.outages.restored(task.fault, 0)  # with what there is
                self.goes_on(task, None)
            waited = task.waiting
            if waited:
                task.queue = deque(Entry(self.now, entry.what) for entry in task.queue)
                task.restored()
            if was_down or waited:
                self.there(task)
            return
        task.queue.extend(Entry(self.now, message) for message in task.interrupt())
        task.waiting = True
        settings = self.settings(task)
        bandwidth, copied = settings.copy_bandwidth, self.now + settings.copy_time
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
        task.has_back(peer.state, peer.windows_closed)
        self.greatest[task] = dict(self.greatest[peer])
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
                what = Control(what.rank, partial(task.ticked, what.window), what.window)
            task.queue.append(Entry(self.now, what))
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


class ActiveStandby(Replication, kind="active_standby"):
    """Output queues, trimmed by acks; who takes over sends what is in them."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        acks = {"ack_interval": make.some(3, 10, 20) * TICK, "replay_cost": make.ns(0, 0, 1, 2)}
        return acks | copies(make)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.held: dict[Task, dict[int, dict[int, int]]] = {}
        self.said: dict[Task, int] = {}
        self.speaker: dict[Any, Task] = {}

    def buffers(self, up: Task, down: Task) -> bool:
        return up.component not in self.layout.spouts

    def start(self) -> None:
        super().start()
        for task in self.world.bolts:
            task.keeps, task.silent = True, task.replica > 0
            self.speaker.setdefault(task.logical, task)
            self.held[task], self.said[task] = {}, 0
            for channel in task.outputs.values():
                channel.withheld = task.silent
            self._ack(task)

    def _ack(self, task: Bolt) -> None:
        def ack() -> None:
            if task.live:
                self._tell(task)

        self.clock.each(self.params.ack_interval, control(Rank.TRIM, task.rank), ack)

    def _tell(self, task: Bolt) -> None:
        for channel in task.inputs.values():
            if channel.buffered and channel.up.live:
                self.world.record.control_bytes += self.params.ack_size
                channel.buffer = [message for message in channel.buffer if not self._had(task, message)]

    def _had(self, task: Bolt, message: Message) -> bool:
        if message.datum is None:
            return message.marker <= task.state.markers.get(message.channel.up.logical, 0)
        return message.datum.uid <= self.greatest[task].get(("tuple", message.datum.route), -1)

    def held_window(self, task: Bolt, number: int, sums: dict[int, int], again: bool) -> None:
        if not again:
            self.held[task][number] = sums

    def to_be_said(self, task: Task) -> list[int]:
        newest = max((self.said.get(each, 0) for each in self.world.replicas[task.logical]), default=0)
        return [number for number in self.held.get(task, ()) if number > newest]

    def said_window(self, task: Bolt, number: int) -> None:
        self.said[task] = max(number, self.said[task])

    def failed(self, task: Task, crash: bool) -> None:
        super().failed(task, crash)
        if not isinstance(task, Bolt):
            return
        if crash:
            self.held[task] = {}
        task.is_back_when_noticed()

    def ready(self, task: Task, was_down: bool) -> None:
        if isinstance(task, Bolt) and self.speaker[task.logical] is task:
            other = self._peer(task)
            if other is not None:
                self._speaks(other)
        super().ready(task, was_down)

    def goes_on(self, task: Task, peer: Task | None) -> None:
        if peer is not None:
            for down, channel in task.outputs.items():
                channel.buffer = list(peer.outputs[down].buffer)
            self.held[task] = dict(self.held[peer])
        speaker = self.speaker[task.logical]
        if speaker is task or not speaker.live:
            self._speaks(task)

    def _speaks(self, task: Task) -> None:
        self.speaker[task.logical] = task
        for each in self.world.replicas[task.logical]:
            if each is not task:
                each.silent = True
                for channel in each.outputs.values():
                    channel.withheld = True

        def place() -> None:
            if task.live and task.silent:
                task.place(Rank.REQUEST, partial(self._send_kept, task))

        self.clock.at(self.now, control(Rank.REQUEST, task.rank), place)

    def _send_kept(self, task: Task) -> None:
        if not task.silent or self.speaker[task.logical] is not task:
            return
        newest = max(self.said[each] for each in self.world.replicas[task.logical])
        held, self.held[task] = self.held[task], {}
        for number, sums in sorted(held.items()):
            if number > newest:
                task.say_window(number, sums)
        task.silent = False
        end = self.now
        for channel in [channel for channel in task.outputs.values() if channel.withheld]:
            channel.withheld = False
            for kept in channel.buffer:
                end += self.params.replay_cost
                task.send_again(kept, Message(channel, kept.datum, kept.marker, recovery=0), end)
        task.occupy(end)

    def kept_for_replay(self) -> int:
        return sum(len(c.buffer) for task in self.world.tasks for c in task.inputs.values() if c.buffered)


class Hybrid(UpstreamBuffer, Replication, kind="hybrid"):
    """Each task goes by its member's rules; all drop what they have had, if there are replicas."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        """A member for each bolt, for those without state, and for the rest."""

        def member() -> Any:
            kind = make.some("rsm", "rsm", "active_replication", "active_replication", "none")
            given = PROTOCOLS[kind].drawn(make)
            return STRATEGIES[kind](**{key: value for key, value in given.items() if key != "components"})

        named = {name: member() for name in make.bolts if make.maybe()}
        return {"bolts": named, "stateless": member() if make.some(True, False) else None, "rest": member()}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        params: Any = self.params
        members = [params.rest, *params.bolts.values(), *([params.stateless] * bool(params.stateless))]
        self.filters = any(kind_of(member) == "active_replication" for member in members)

    def settings(self, task: Task) -> Any:
        return self.layout.member(task.component)

    def is_under(self, kind: str, task: Task) -> bool:
        """Whether that is its member."""
        return task.component not in self.layout.spouts and kind_of(self.settings(task)) == kind

    def start(self) -> None:
        Replication.start(self)
        for task in self.world.bolts:
            if task.stateful and self.is_under("rsm", task):
                self.holders[task] = CopyHolder(Shelf.of(self.world, task))
                self._tick(task)

    def buffers(self, up: Task, down: Task) -> bool:
        return self.is_under("rsm", down) and super().buffers(up, down)

    def admit(self, task: Task, message: Message) -> bool:
        if not UpstreamBuffer.admit(self, task, message):
            return False
        if not self.filters or message.datum is None or task.waiting:
            return True
        datum, greatest = message.datum, self.greatest[task]
        if datum.uid <= greatest.get(datum.route, -1):
            if task.filter_out(message):
                self.world.outages.repeated(task)
            return False
        greatest[datum.route] = datum.uid
        return True

    def ticked(self, task: Bolt) -> None:
        if task in self.holders:
            super().ticked(task)

    def _safe(self, channel: Channel, content: Checkpoint) -> None:
        super()._safe(channel, content)
        if self.filters:
            channel.buffer = [
                message
                for message in channel.buffer
                if message.datum is None or message.datum.uid > content.had.get(message.datum.route, -1)
            ]

    def goes_back(self, task: Task) -> None:
        super().goes_back(task)
        self.greatest[task] = dict(self.holders[task].had)

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
