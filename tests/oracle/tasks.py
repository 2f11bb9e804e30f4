"""Tasks: one queue and one server each, one tuple at a time; what they know, and what faults do to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import simpy

from tideover.sim.draws import Purpose

from .channels import Channel, Line, Message, Places
from .clock import Clock, Part, Rank, control, departure
from .layout import Datum, Logical, Panes, Physical

if TYPE_CHECKING:
    from .clock import Cores
    from .program import World


@dataclass
class State:
    """What a fault makes a task forget."""

    counts: dict[tuple[int, Any], int] = field(default_factory=dict)  # {(epoch or pane, key): sum}
    """Of a join the key is one of a side: (key, upstream component)."""
    held: list[Datum] = field(default_factory=list)  # the tuples in the counts, as processed, with that epoch
    tuples: int = 0  # since the last window
    taken: int = 0  # since the state was empty
    markers: dict[Logical, int] = field(default_factory=dict)  # newest processed, by upstream task
    handed: int = 0  # the newest marker handed on
    newest: dict[str, int] = field(default_factory=dict)  # event, by upstream component
    heard: dict[str, int] = field(
        default_factory=dict
    )  # when something came from it; or was first looked for
    watermark: int = -1  # -1: there is none
    ended: int = -1  # in batches: the watermark up to which windows were put out
    left: dict[Logical, int] = field(default_factory=dict)  # greatest id, by upstream task
    put_out: dict[Logical, int] = field(default_factory=dict)
    compares: dict[Logical, tuple[int, int]] = field(default_factory=dict)  # what comes, with these ids
    waits: list[Datum] = field(default_factory=list)  # until all are compared

    def copy(self) -> State:
        new = State(dict(self.counts), list(self.held), self.tuples, self.taken)
        new.markers, new.handed = dict(self.markers), self.handed
        new.newest, new.heard, new.watermark = dict(self.newest), dict(self.heard), self.watermark
        new.ended = self.ended
        new.left, new.put_out, new.compares = dict(self.left), dict(self.put_out), dict(self.compares)
        new.waits = list(self.waits)
        return new

    def keys(self) -> dict[int, int]:
        sums: dict[int, int] = {}
        for (_, key), value in sorted(self.counts.items()):
            sums[key] = sums.get(key, 0) + value
        if any(isinstance(key, tuple) for key in sums):
            sums = self._pairs(sums)
        return {key: total for key, total in sums.items() if total}

    def _pairs(self, sums: dict[Any, int]) -> dict[int, int]:
        """How many pairs there are of each key, one of each side."""
        pairs: dict[int, int] = {}
        for (key, side), left in sums.items():
            for (other, other_side), right in sums.items():
                if key == other and side < other_side:
                    pairs[key] = left * right
        return pairs

    @property
    def effects(self) -> list[Datum]:
        """Those of the tuples that belong to roots."""
        return [datum for datum in [*self.held, *self.waits] if datum.anchored]

    def ids(self) -> State:
        """What a checkpoint has of it, if it has ids only; who has it back compares."""
        return State(
            left=dict(self.left),
            put_out=dict(self.put_out),
            compares={up: (self.left.get(up, -1), most) for up, most in self.put_out.items()},
            markers=dict(self.markers),
            handed=self.handed,
        )

    @property
    def entries(self) -> int:
        """What a checkpoint has to write: sums by epoch and key."""
        return sum(total != 0 for total in self.counts.values())


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


class Entrance(Part):
    """One queue, in the order of arrival, and the bounds of it."""

    def __init__(self, world: World, physical: Physical) -> None:
        super().__init__(world)
        self.physical = physical
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

    @property
    def host(self) -> int:
        return self.layout.host[self.physical]

    @property
    def home(self) -> tuple[int, int]:
        """Host and worker."""
        return self.host, self.layout.worker[self.physical]

    @property
    def idle(self) -> bool:
        """Whether it is one of those that no tuple goes to."""
        return self.index >= self.layout.working[self.component]

    @property
    def stateful(self) -> bool:
        return self.layout.stateful(self.component)

    @property
    def panes(self) -> Panes | None:
        """Of its windows."""
        return self.layout.panes(self.component)

    @property
    def readers(self) -> list[str]:
        """Components that read what it sends."""
        return self.layout.down[self.component]

    def serve(self) -> None:
        """Begin with what is next, if nothing is in the way."""
        raise NotImplementedError

    def arrive(self, message: Message) -> None:
        """It has come over its wire."""
        if self.world.protocol.comes(self, message):
            self.arrive_readable(message)

    def arrive_readable(self, message: Message) -> None:
        logged = self.layout.needs.log
        if not self.down and not (logged and self.waiting):
            self.accept(message, self.clock.actions)
        elif logged or self.while_down == "hold":
            self.inbox.append(message)
        else:
            self.world.destroyed(self, message, self.fault)

    def give_back(self, message: Message) -> None:
        """It does not wait any more."""
        if message.channel.places is not None:
            message.channel.places.give_back(message)

    def filter_out(self, message: Message) -> bool:
        """It is known here, or comes again; whether it is a tuple that belongs to a root."""
        self.give_back(message)
        self.world.record.gone(message.datum)
        return message.anchored

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
            self._join(Entry(self.now, message, after))
            if begins:
                self.serve()

    def needs_place(self, message: Message) -> bool:
        """Whether a tuple waits in the queue, and not in a log."""
        layout = self.layout
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
            if other.what.channel.up.rank <= entry.what.channel.up.rank:
                break
            behind += 1
        place = len(self.queue) - behind
        self.queue.insert(place, entry)
        if behind:
            others = [other.what for other in list(self.queue)[place + 1 :]]
            self.world.protocol.came_first(self, entry.what, others)

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
        self.queue.extend(Entry(self.now, message) for message in messages)
        self.serve()

    def place(self, rank: Rank, act: Callable[[], None], window: int | None = None) -> None:
        """A marker at the end of the queue, now; no effect on a task that is down."""
        if not self.down:
            self.queue.append(Entry(self.now, Control(rank, act, window)))
            self.serve()

    def place_barrier(self, message: Message, act: Callable[[], None]) -> None:
        """A marker that has come over its wire."""
        if not self.down:
            control = Control(Rank.CHECKPOINT, act, channel=message.channel)
            self._join(Entry(self.now, control, self.clock.actions))
            self.serve()

    def place_first(self, rank: Rank, act: Callable[[], None]) -> None:
        """A marker ahead of all that waits, now; no effect on a task that is down."""
        if not self.down:
            control = Control(rank, act)
            self.ahead.add(control)
            self.queue.appendleft(Entry(self.now, control))
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


class Task(Entrance):
    """A queue, a server, and what they do when a fault strikes."""

    def __init__(self, world: World, physical: Physical, rank: int) -> None:
        super().__init__(world, physical)
        self.rank = rank
        self.logical: Logical = (self.component, self.index)
        self.silent = self.replica > 0 and world.layout.has_shadows
        self.keeps = False  # what it would send, if it were not silent
        self.name = f"{self.component}.{self.index}" + (f"/{self.replica}" if self.replica else "")
        self.outputs: dict[Physical, Channel] = {}
        self.inputs: dict[Physical, Channel] = {}
        self.state = State()
        self.windows_closed = 0  # by number of tuples
        self.serving: Entry | None = None
        self.event: simpy.Event | None = None
        self.occupied = False  # an action takes its time
        self.occupied_until = 0
        self.unsent: list[tuple[simpy.Event, Datum]] = []  # acks that a fault can still prevent
        self.pending: list[simpy.Event] = []  # whatever else a crash prevents
        self.leaving: list[Message] = []  # was kept, and is to be sent again
        self.ready_event: simpy.Event | None = None
        self.stopped_until = 0  # its process is stopped
        self.cores = world.cores_of(physical)  # None: one of its own
        self.line = Line(world, self)

    def serve(self) -> None:
        """Begin with what is next, if nothing is in the way."""
        if self.down or self.waiting or self.occupied or self.serving or not self.queue:
            return
        first = self.queue[0].what
        hurries = isinstance(first, Control) and self.hurries
        if self.blocked and not hurries:
            return
        if hurries and first not in self.ahead:
            return
        if self.stopped_until > self.now:
            return
        self.serving = self.queue.popleft()
        what, now = self.serving.what, self.now
        if isinstance(what, Control):
            self.event = self.clock.at(now, control(what.rank, self.rank), self._finish)
            return
        self.give_back(what)
        self.begun.add(what)
        self._work(self.service(what))

    def _work(self, time: int) -> None:
        """On what is in service."""
        if self.cores is not None:
            self.cores.begin(self, time, self._finish)
        else:
            clock = self.clock
            self.event = clock.at(clock.now + time, departure(self.rank), self._finish)

    def service(self, message: Message) -> int:
        """How long a message takes, alone."""
        datum = message.datum
        if datum is None or self.layout.needs.batches or self.component in self.world.at_once:
            return 0
        config, layout = self.layout.config[self.component], self.layout
        time = layout.sample(config.service, self.component, Purpose.SERVICE, datum.uid, datum.attempt)
        if config.state is not None:
            time += config.state.accesses * config.state.access_cost
        time += message.channel.unpacks.get(message, 0)
        if not self.stateful:
            time += sum(self.serialising(child) for child in layout.children(self.component, datum))
        return time + self.world.protocol.extra_service(self, datum)

    def serialising(self, datum: Datum) -> int:
        """How long it takes to serialise a tuple for all that are to get it on other hosts; in batches there
        is no such cost.
        """
        layout, time = self.layout, 0
        if layout.needs.batches:
            return 0
        links = layout.scenario.links
        for down in self.readers:
            for task, _ in layout.cross(self.component, down, datum):
                for replica in range(layout.replicas(down)):
                    channel = self.outputs[down, task, replica]
                    time += channel.remote * (links.serialise + channel.size * links.serialise_cost)
        return time

    def _finish(self) -> None:
        more = self.world.protocol.more_service(self)
        if more is not None:
            self._work(more)
            return
        entry, self.serving = self.serving, None
        if isinstance(entry.what, Control):
            entry.what.act()
        else:
            self.take(entry.what, entry.arrived)
        self.serve()

    def take(self, message: Message, arrived: int) -> None:
        """A message has been served."""
        raise NotImplementedError

    def suspend(self) -> None:
        """Whatever is in service goes back to the head of the queue, and will begin anew."""
        if self.cores is not None:
            self.cores.give_up(self)
        Clock.cancel(self.event)
        if self.serving is not None:
            self.queue.appendleft(self.serving)
            self.serving = None

    def occupy(self, until: int) -> None:
        """An action keeps the server until then."""

        def over() -> None:
            if self.occupied_until <= self.now:
                self.release()

        if until <= self.now:
            return
        self.occupied = True
        if self.cores is not None:
            self.cores.begin(self, until - self.now, self.release)
        else:
            self.occupied_until = until
            self.later(until, over)

    def occupy_longer(self, duration: int) -> None:
        """The same, for so much longer than anything that keeps it already."""
        if self.cores is not None:
            self._work_longer(self.cores, duration)
            return
        begin = self.occupied_until if self.occupied else max(self.now, self.stopped_until)
        self.occupy(begin + duration)

    def _work_longer(self, cores: Cores, duration: int) -> None:
        """The same where cores are shared, as soon as it is not stopped any more."""
        if self.occupied:
            cores.add(self, duration)
        elif duration:
            self.occupied, now = True, self.now
            begin = partial(cores.begin, self, duration, self.release)
            if self.stopped_until > now:
                self.event = self.clock.at(self.stopped_until, departure(self.rank), begin)
            else:
                begin()

    def is_back_when_noticed(self) -> None:
        """Somebody takes its place then, if nothing else strikes before."""
        number = self.fault
        fault = self.world.outages.all[number].fault

        def take_over() -> None:
            if self.fault == number and self.down:
                Clock.cancel(self.ready_event)
                self.ready()

        if fault.detection < max(fault.detection + fault.restart, fault.out_of_order):
            self.clock.at(self.now + fault.detection, control(Rank.READY, self.rank), take_over)

    def has_back(self, state: State, windows_closed: int) -> None:
        """What a fault had taken."""
        self.state, self.windows_closed = state.copy(), windows_closed
        if self.stateful:
            self.world.outages.restored(self.fault, len(state.held))

    def take_on(self, state: State) -> None:
        """Its counts; what the task has seen of markers since is not forgotten."""
        old, self.state = self.state, state.copy()
        for up, number in old.markers.items():
            self.state.markers[up] = max(number, self.state.markers.get(up, 0))
        self.state.handed = min(self.state.markers.get(c.up.logical, 0) for c in self.inputs.values())

    def release(self) -> None:
        self.occupied = False
        self.freed()
        self.serve()

    @property
    def blocked(self) -> bool:
        """Whether it begins nothing before there is room for what it has made."""
        return self.line.full

    @property
    def runs(self) -> bool:
        """Whether there is a process, and it goes on."""
        return not self.down and self.stopped_until <= self.now

    @property
    def live(self) -> bool:
        """Up, and restored."""
        return not (self.down or self.waiting)

    @property
    def busy(self) -> bool:
        """Whether it serves, or does something else that takes time."""
        stopped = self.stopped_until > self.now
        at_work = self.occupied or (self.serving is not None and isinstance(self.serving.what, Message))
        return at_work and not (self.down or stopped)

    def freed(self) -> None:
        """For spouts: calls may go on."""

    def later(self, time: int, act: Callable[[], None]) -> None:
        """Something that this task does at that time (at once, if that is now), unless it crashes before."""
        if time == self.now:
            act()
        else:
            self.pending.append(self.clock.at(time, departure(self.rank), act))

    def send_again(self, kept: Message, again: Message, time: int) -> None:
        """What was kept is sent, as another message, at that time."""
        self.world.record.there(kept.datum)
        self.leaving.append(kept)

        def leaves() -> None:
            self.world.ledger.read_again([kept])
            self.put(again)
            self.leaving.remove(kept)
            self.world.record.gone(kept.datum)

        self.later(time, leaves)

    def put(self, message: Message) -> None:
        """Into the line of what is to be sent."""
        made = message.channel.made(message)
        self.world.protocol.sends(made)
        if not message.channel.withheld:
            self.line.add(made)

    def line_is_shorter(self) -> None:
        """Short enough to go on."""
        self.freed()
        self.serve()

    def send(self, datum: Datum) -> list[Datum]:
        """To all replicas of each target, each copy with an id of its own; returns what was sent."""
        layout, sent = self.layout, []
        datum = datum._replace(route=(*datum.route, self.logical))
        for down in self.readers:
            for task, crossed in layout.cross(self.component, down, datum):
                for replica in range(layout.replicas(down)):
                    copy = crossed._replace(ident=self.world.new_ident())
                    self.put(Message(self.outputs[down, task, replica], copy))
                    sent.append(copy)
        return sent

    def send_missed_markers(self) -> None:
        """A spout that was down when markers were due sends them as soon as it is back."""
        length = self.world.marker_length
        if length is not None:
            for number in range(self.state.handed + 1, (self.now - 1) // length + 1):
                self.send_marker(number)

    def send_marker(self, number: int) -> None:
        self.state.handed = number
        for channel in () if self.silent and not self.keeps else self.outputs.values():
            self.put(Message(channel, marker=number))

    def fail(self, kind: str, down_for: int | None, while_down: str) -> None:
        """`lose_state`, or else a crash; ``down_for`` None: others know when it is ready."""
        crash = kind != "lose_state"
        self.lose_state(crash)
        self.world.protocol.failed(self, crash)
        if crash or self.down or down_for:
            self.down, self.while_down, self.stopped_until = True, while_down, 0
            unseen, self.waiting = self.waiting and not crash, False
            held = [
                message
                for message in self.memory
                if not unseen or message in self.kept or self.world.protocol.admit(self, message)
            ]
            self.memory = self.interrupt() + held
            self.kept = set(self.memory)
        if crash:
            for message in self.memory:
                self.world.destroyed(self, message, self.fault)
            self.memory.clear()
            for message in self.line.lost():
                self.world.destroyed(message.channel.down, message, self.fault)
            for channel in self.outputs.values():
                channel.buffer.clear()
        if down_for is None:
            return
        Clock.cancel(self.ready_event)
        when = self.now + down_for
        self.ready_event = self.clock.at(when, control(Rank.READY, self.rank), self.ready)

    def interrupt(self) -> list[Message]:
        """Drop all that it does or has planned; returns the messages that were queued or in service."""
        self.suspend()
        self.world.record.all_gone(self.leaving)
        self.leaving.clear()
        Clock.cancel(*self.pending)
        self.pending.clear()
        self.occupied = False
        messages = self.queued()
        self.queue.clear()
        self.kept |= set(messages)
        return messages

    def stop(self, until: int) -> None:
        """The process does nothing until then: whatever it was about to do is later."""
        clock = self.clock
        shift = until - max(clock.now, self.stopped_until)
        if self.down or shift <= 0:
            return
        self.stopped_until = until
        self.event = clock.postpone(self.event, shift)
        self.occupied_until += shift
        self.pending = [event for e in self.pending if (event := clock.postpone(e, shift)) is not None]
        if self.cores is not None and (job := self.cores.give_up(self)) is not None:
            cores, rest = self.cores, (job.left, job.done)
            self.event = clock.at(until, departure(self.rank), lambda: cores.begin(self, *rest))
        self.unsent = [(e, datum) for old, datum in self.unsent if (e := clock.postpone(old, shift))]
        clock.at(until, departure(self.rank), self._resume)
        self.freed()

    def _resume(self) -> None:
        if self.stopped_until == self.now and not self.down:
            self.line.move()
            self.freed()
            self.serve()

    def lose_state(self, crash: bool) -> None:
        """Counts, held ids and unsent acks; a crash of a bolt also takes the numbers of the markers."""
        self.world.ledger.hurt([*self.state.held, *self.state.waits], self.fault)
        self.world.outages.state_lost(self)
        old, self.state = self.state, State()
        if not crash or self.component in self.layout.spouts:
            self.state.markers, self.state.handed = old.markers, old.handed
        for event, datum in self.unsent:
            if event.callbacks:
                self.world.ledger.hurt([datum], self.fault)
            Clock.cancel(event)
        self.unsent.clear()

    def go_back(self) -> None:
        """What is to be read again after a crash is known."""

    def ready(self) -> None:
        """Detected and restarted. What was queued (unless it crashed) and what was held arrive now."""
        was_down, self.down = self.down, False
        queued, self.memory = (self.memory, []) if was_down else ([], self.memory)
        self.queue.extend(Entry(self.now, message) for message in queued)
        self.world.outages.back(self)
        self.world.protocol.ready(self, was_down)
        if was_down:
            self.go_back()
        if was_down and self.component in self.layout.spouts:
            self.send_missed_markers()
        if not (self.waiting and self.layout.needs.log):
            self.open(self.inbox)
        if was_down:
            self.line.wake()
            self.freed()
        self.serve()
