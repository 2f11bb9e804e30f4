"""The way into a task: what has arrived, waits, or is held until the task takes things in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .channels import Channel, Message
from .clock import Rank
from .layout import Physical
from .lines import Places

if TYPE_CHECKING:
    from .program import World


@dataclass(frozen=True, eq=False)
class Control:
    """Something that waits its turn in a task's queue, and then acts."""

    rank: Rank
    act: Callable[[], None]
    window: int | None = None
    """The number of the window that it ends, if it is a tick."""
    channel: Channel | None = None
    """By which it has come."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A place in a task's queue."""

    arrived: int
    what: Message | Control
    after: int | None = None
    """So many control actions, if it has come over a wire."""


class Entrance:
    """One queue, in the order of arrival, and the bounds of it."""

    def __init__(self, world: World, physical: Physical) -> None:
        self.world, self.physical = world, physical
        self.component, self.index, self.replica = physical
        self.queue: deque[Entry] = deque()
        self.hurries = False  # markers wait neither for room, nor for what waits, but for what is being done
        self.ahead: set[Control] = set()  # these have overtaken what waited
        self.down = False  # between a fault and readiness
        self.while_down = "drop"
        self.inbox: list[Message] = []  # held while down: these wait with their senders
        self.memory: list[Message] = []  # held while up, but not yet restored
        self.kept: set[Message] = set()  # what of it had been let in before
        self.begun: set[Message] = set()  # has been in service here: takes no place when it waits again
        self.waiting = False  # up, but not yet restored: nothing is served
        self.fault: int | None = None  # number of the newest that struck here
        self.limit = world.layout.limit(self.component)
        blocks = self.limit.length is not None and self.limit.when_full == "block"
        self.places = Places(world, self.limit.length) if blocks else None

    def serve(self) -> None:
        """Begin with what is next, if nothing is in the way."""
        raise NotImplementedError

    def arrive(self, message: Message) -> None:
        """It has come over its wire."""
        if self.world.protocol.comes(self, message):
            self.arrive_readable(message)

    def arrive_readable(self, message: Message) -> None:
        logged = self.world.layout.needs.log
        if not self.down and not (logged and self.waiting):
            self.accept(message, self.world.clock.actions)
        elif logged or self.while_down == "hold":
            self.inbox.append(message)
        else:
            self.world.destroyed(self, message, self.fault)

    def give_back(self, message: Message) -> None:
        """It does not wait any more."""
        if message.channel.places is not None:
            message.channel.places.give_back(message)

    def accept(
        self, message: Message, after: int | None = None, begins: bool = True, again: bool = False
    ) -> None:
        """``begins``: what waits may begin service now; ``again``: it has been in the queue."""
        if not self.world.protocol.admit(self, message):
            return
        if self.waiting:
            self.memory.append(message)
        elif self.needs_place(message) and self.is_full and not again:
            self.world.overflows(self, message)
        else:
            self._join(Entry(self.world.clock.now, message, after))
            if begins:
                self.serve()

    def needs_place(self, message: Message) -> bool:
        """Whether a tuple waits in the queue, and not in a log."""
        layout = self.world.layout
        logged = layout.needs.log and message.channel.up.component in layout.spouts
        return message.datum is not None and not logged

    @property
    def is_full(self) -> bool:
        """Whether a tuple that arrives is lost."""
        if self.limit.length is None or self.limit.when_full != "drop":
            return False
        waiting = [message for message in self.queued() if message not in self.begun]
        return sum(self.needs_place(message) for message in waiting) >= self.limit.length

    def _join(self, entry: Entry) -> None:
        """At the end; of what comes over wires at one instant, the one from the lowest task first."""
        behind = 0
        for other in reversed(self.queue if entry.after is not None else ()):
            if (other.arrived, other.after) != (entry.arrived, entry.after):
                break
            assert other.what.channel is not None
            assert entry.what.channel is not None
            if other.what.channel.up.rank <= entry.what.channel.up.rank:
                break
            behind += 1
        self.queue.insert(len(self.queue) - behind, entry)

    def queued(self) -> list[Message]:
        """The messages in the queue, in order."""
        return [entry.what for entry in self.queue if isinstance(entry.what, Message)]

    def restored(self) -> None:
        """What was in its queue waits again, and what was held meanwhile arrives now."""
        self.waiting = False
        kept = [message for message in self.memory if message in self.kept]
        held = [message for message in self.memory if message not in self.kept]
        self.memory.clear()
        self.kept.clear()
        for message in kept:
            self.accept(message, begins=False, again=True)
        held += self.inbox
        self.inbox.clear()
        self.open(held)
        self.serve()

    def open(self, held: list[Message]) -> None:
        """What was held arrives now; what was kept in the queue begins when all of it has."""
        messages, ahead = list(held), bool(self.queue)
        held.clear()
        for message in messages:
            self.accept(message, begins=not ahead)
        if messages:
            self.serve()

    def requeue(self, messages: list[Message]) -> None:
        """These go to the end of the queue."""
        self.queue.extend(Entry(self.world.clock.now, message) for message in messages)
        self.serve()

    def place(self, rank: Rank, act: Callable[[], None], window: int | None = None) -> None:
        """A marker at the end of the queue, now; no effect on a task that is down."""
        if not self.down:
            self.queue.append(Entry(self.world.clock.now, Control(rank, act, window)))
            self.serve()

    def place_barrier(self, message: Message, act: Callable[[], None]) -> None:
        """A marker that has come over its wire."""
        if not self.down:
            control = Control(Rank.CHECKPOINT, act, channel=message.channel)
            self._join(Entry(self.world.clock.now, control, self.world.clock.actions))
            self.serve()

    def place_first(self, rank: Rank, act: Callable[[], None]) -> None:
        """A marker ahead of all that waits, now; no effect on a task that is down."""
        if not self.down:
            control = Control(rank, act)
            self.ahead.add(control)
            self.queue.appendleft(Entry(self.world.clock.now, control))
            self.serve()

    def hurry(self) -> None:
        """All markers are ahead of what waits, if they hurry."""
        if not self.hurries:
            self.serve()
            return
        controls = [entry for entry in self.queue if isinstance(entry.what, Control)]
        others = [entry for entry in self.queue if not isinstance(entry.what, Control)]
        self.queue = deque([*controls, *others])
        self.ahead = {entry.what for entry in controls if isinstance(entry.what, Control)}
        self.serve()
