"""Recovery using state management: checkpoints in a store, buffers upstream, replay from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .channels import Channel, Message
from .clock import Priority, Rank, control
from .layout import Datum
from .making import TICK, Maker
from .protocol import Protocol
from .stores import Shelf, Store
from .tasks import State

if TYPE_CHECKING:
    from .bolts import Bolt
    from .program import World
    from .record import Outage
    from .tasks import Task


@dataclass
class Checkpoint:
    """A state, and the newest number processed of each buffered channel."""

    state: State = field(default_factory=State)
    numbers: dict[Channel, int] = field(default_factory=dict)
    had: dict[Any, int] = field(default_factory=dict)
    """The greatest number of a tuple served, on each route."""
    windows_closed: int = 0
    shelved: int = 0  # entries of the bolt's `state` that are written
    tuples: int = 0  # that the task had served


@dataclass
class CopyHolder:
    """What the protocol knows of one stateful task."""

    shelf: Shelf
    valid: Checkpoint = field(default_factory=Checkpoint)
    processed: dict[Channel, int] = field(default_factory=dict)
    had: dict[Any, int] = field(default_factory=dict)  # by route, as in checkpoints
    accepted: dict[Channel, int] = field(default_factory=dict)
    life: int = 0  # counts faults: what an earlier life began is void
    writing: bool = False
    wanted: bool = False  # another, for a window has ended during the write
    replaying: set[Channel] = field(default_factory=set)  # end marker not arrived yet
    unfinished: set[Channel] = field(default_factory=set)  # end marker not processed yet
    restoring: bool = False


@dataclass(eq=False)
class Request:
    """Send again what is in the buffer above ``after``."""

    channel: Channel
    after: int
    recovery: int


def replays(make: Maker) -> dict[str, Any]:
    """Settings of strategies that replay from buffers."""
    return {"replay_cost": make.ns(0, 0, 1, 2), "replay_rate": make.some(None, None, 10.0, 3.0)}


class UpstreamBuffer(Protocol, kind="rsm"):
    """rsm."""

    @staticmethod
    def drawn(make: Maker) -> dict[str, Any]:
        return replays(make) | {
            "checkpoint_interval": make.some(5, 10, 20, 35) * TICK,
            "spout_buffer": make.some(True, False),
            "serialise_time": make.ns(0, 0, 1),
            "serialise_cost": make.ns(0, 0, 0.5),
            "restore_time": make.ns(0, 0, 3),
            "restore_cost": make.ns(0, 0, 1),
        }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.stores: dict[str | None, Store] = {}
        self.holders: dict[Task, CopyHolder] = {}
        self.requests: list[Request] = []  # those whose end marker has not left
        self.ends: dict[Message, Request] = {}  # end markers, which a crash may find in their sender's line

    def start(self) -> None:
        for task in self.world.tasks:
            if task.stateful:
                self.holders[task] = CopyHolder(Shelf.of(self.world, task))
                self._tick(task)

    def settings(self, task: Task) -> Any:
        """Parameters of the strategy that the task is under."""
        return self.params

    def store_of(self, task: Task) -> Store:
        """Where its state is saved."""
        name = getattr(self.settings(task), "store", None)
        return self.stores.setdefault(name, Store(self.world, name))

    def recovering(self, task: Task) -> bool:
        """Until of each task that sends to it the end marker of one replica was processed."""
        holder, waited_for = self.holders[task], {c.up.logical for c in self._buffered(task)}
        over = {c.up.logical for c in self._buffered(task) if c not in holder.unfinished}
        return holder.restoring or bool(waited_for - over)

    def _at(self, time: int, priority: Priority, task: Task, act: Callable[[], None]) -> None:
        """At that time, unless a fault strikes the task before."""
        holder, life = self.holders[task], self.holders[task].life
        self.clock.at(time, priority, lambda: act() if holder.life == life else None)

    def buffers(self, up: Task, down: Task) -> bool:
        spouts = self.layout.spouts
        return down.stateful and (up.component not in spouts or self.settings(down).spout_buffer)

    def _tick(self, task: Bolt) -> None:
        def tick() -> None:
            if not task.waiting:
                task.place(Rank.CHECKPOINT, partial(self._checkpoint, task))

        self.clock.each(self.interval(task), control(Rank.CHECKPOINT, task.rank), tick)

    def interval(self, task: Task) -> int:
        """Between two checkpoints."""
        return self.settings(task).checkpoint_interval

    def content(self, task: Task) -> Checkpoint:
        """Of a checkpoint that is taken now."""
        holder = self.holders[task]
        known = dict(holder.processed), dict(holder.had)
        shelved = holder.shelf.changed(), holder.shelf.tuples
        return Checkpoint(task.state.copy(), *known, task.windows_closed, *shelved)

    def _checkpoint(self, task: Bolt, wanted: bool = False) -> None:
        holder = self.holders[task]
        if holder.writing:
            holder.wanted |= wanted
        if not (self.recovering(task) or holder.writing):
            holder.writing = True
            self.save(task, self.content(task))

    def save(self, task: Bolt, content: Checkpoint) -> None:
        """Serialise, which occupies the task; then write, which does not."""
        settings = self.settings(task)
        entries = content.state.entries + content.shelved
        work = settings.serialise_time + entries * settings.serialise_cost
        task.occupy_longer(work)
        if work:
            priority = control(Rank.CHECKPOINT, task.rank)
            self._at(self.now + work, priority, task, partial(self._write, task, content))
        else:
            self._write(task, content)

    def _write(self, task: Bolt, content: Checkpoint) -> None:
        entry_size, shelf = self.settings(task).entry_size, self.holders[task].shelf
        size = shelf.size(content.state.entries, entry_size, content.shelved)
        end = self.store_of(task).request(size, task.host, True)
        self._at(end, control(Rank.TRIM, task.rank), task, partial(self._written, task, content))

    def _written(self, task: Bolt, content: Checkpoint) -> None:
        holder = self.holders[task]
        holder.writing, holder.valid = False, content
        holder.shelf.base = content.tuples
        for channel in self._buffered(task):
            if not channel.up.waiting:
                channel.up.place(Rank.TRIM, partial(self._safe, channel, content))
        if holder.wanted:
            holder.wanted = False
            task.place(Rank.CHECKPOINT, partial(self._checkpoint, task))

    def _safe(self, channel: Channel, content: Checkpoint) -> None:
        """The turn of a trim marker."""
        self._trim(channel, content.numbers.get(channel, 0))

    def _trim(self, channel: Channel, number: int) -> None:
        channel.buffer = [message for message in channel.buffer if message.number > number]

    @staticmethod
    def _buffered(task: Task) -> list[Channel]:
        return [channel for channel in task.inputs.values() if channel.buffered]

    def ticked(self, task: Bolt) -> None:
        """A checkpoint at the window's end, too."""
        self._checkpoint(task, wanted=True)

    def failed(self, task: Task, crash: bool) -> None:
        if crash:
            self.requests += [self.ends[message] for message in task.line.messages if message in self.ends]
        if task in self.holders:
            holder = self.holders[task]
            holder.life += 1
            holder.writing = holder.wanted = False
            holder.restoring = True
            holder.replaying, holder.unfinished = set(), set()

    def ready(self, task: Task, was_down: bool) -> None:
        if task in self.holders:
            self._recover(task)
        elif was_down:
            self._ask_again(task)

    def _recover(self, task: Task) -> None:
        """Read the last valid checkpoint; what the replay will bring again is discarded from now on."""
        holder = self.holders[task]
        queued = task.interrupt()
        task.memory = [message for message in queued if not message.channel.buffered] + task.memory
        for message in queued:
            if message.channel.buffered:
                self._drop(task, message)
        task.waiting = holder.restoring = True
        holder.replaying = set(self._buffered(task))
        holder.unfinished = set(holder.replaying)
        holder.life += 1
        own, shelved = holder.valid.state.entries, holder.shelf.stored()
        settings = self.settings(task)
        size = holder.shelf.size(own, settings.entry_size, shelved)
        end = self.store_of(task).request(size, task.host, False)
        end += settings.restore_time + (own + shelved) * settings.restore_cost
        self._at(end, control(Rank.RESTORE, task.rank), task, partial(self._restore, task))

    def _restore(self, task: Task) -> None:
        holder = self.holders[task]
        holder.shelf.restored()
        task.has_back(holder.valid.state, holder.valid.windows_closed)
        self.goes_back(task)
        self._ask_for_the_rest(task)

    def goes_back(self, task: Task) -> None:
        """It has the state of its checkpoint; what was held has not arrived yet."""
        holder = self.holders[task]
        holder.processed, holder.accepted = dict(holder.valid.numbers), dict(holder.valid.numbers)
        holder.had = dict(holder.valid.had)

    def _ask_for_the_rest(self, task: Task) -> None:
        """What was held arrives now, and what its checkpoint lacks is sent once more."""
        holder = self.holders[task]
        holder.restoring = False
        task.restored()
        self._ask_again(task)
        for channel in self._buffered(task):
            request = Request(channel, holder.processed.get(channel, 0), holder.life)
            self.requests = [old for old in self.requests if old.channel is not channel] + [request]
            self._ask(request)

    def _ask(self, request: Request) -> None:
        """If the sender is not ready it is asked when it is."""
        up = request.channel.up
        if not (up.down or up.waiting):
            place = partial(up.place, Rank.REQUEST, partial(self._serve, request))
            self.clock.at(self.now, control(Rank.REQUEST, up.rank), place)

    def _ask_again(self, up: Task) -> None:
        """The sender has begun anew: it has forgotten what it was asked for."""
        for request in self.requests:
            if request.channel.up is up:
                self._ask(request)

    def _serve(self, request: Request) -> None:
        """The buffer in order, one message every ``step``; the end marker leaves with the last."""
        channel, up, now = request.channel, request.channel.up, self.now
        if request.recovery != self.holders[channel.down].life:
            return  # who asked has failed since
        settings = self.settings(channel.down)
        rate = settings.replay_rate
        step = max(settings.replay_cost, 0 if rate is None else round(1e9 / rate))
        messages = [message for message in channel.buffer if message.number > request.after]
        for i, old in enumerate(messages, 1):
            again = replace(old, recovery=request.recovery)
            up.send_again(old, again, now + i * step)
        end = now + len(messages) * step
        up.later(end, partial(self._send_end, request))
        up.occupy(end)
        if messages and step == 0:
            up.freed()  # a spout's calls start from here all the same

    def _drop(self, task: Task, message: Message) -> None:
        """It comes again, or has been here."""
        if task.filter_out(message):
            self.world.outages.dropped()

    def _send_end(self, request: Request) -> None:
        if request in self.requests:
            self.requests.remove(request)
        message = Message(request.channel, end=True, recovery=request.recovery)
        self.ends[message] = request
        request.channel.up.put(message)

    def admit(self, task: Task, message: Message) -> bool:
        admitted = self._admits(task, message)
        if not admitted:
            self._drop(task, message)
        return admitted

    def _admits(self, task: Task, message: Message) -> bool:
        channel = message.channel
        if not channel.buffered:
            return True
        holder = self.holders[task]
        replaying = channel in holder.replaying
        if replaying != (message.recovery is not None) or message.recovery not in (None, holder.life):
            return False  # a direct message during the replay, or what an earlier recovery asked for
        if message.end:
            holder.replaying.discard(channel)
            return True
        if message.number <= holder.accepted.get(channel, 0):
            return False
        holder.accepted[channel] = message.number
        return True

    def served(self, task: Bolt, message: Message) -> None:
        holder = self.holders.get(task)
        if holder is None:
            return
        if message.datum is not None:
            holder.shelf.tuples += 1
            holder.had[message.datum.route] = message.datum.uid
        if message.end:
            holder.unfinished.discard(message.channel)
        elif message.channel.buffered:
            holder.processed[message.channel] = message.number

    def because(self, task: Task, message: Message) -> int | None:
        return None if message.recovery is None else task.fault

    def settled(self, outage: Outage) -> bool:
        """Each task that it has hit has processed the last end marker."""
        return not any(self.recovering(task) for task in outage.tasks if task in self.holders)

    def kept_for_replay(self) -> int:
        return sum(len(c.buffer) for task in self.holders for c in self._buffered(task))

    def bytes_stored(self) -> int:
        return sum(store.bytes for store in self.stores.values())

    def kept_data(self) -> list[tuple[Task, Datum]]:
        return [
            (task, datum) for task, holder in self.holders.items() for datum in holder.valid.state.effects
        ]
