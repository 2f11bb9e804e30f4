"""Tasks: one queue (their entrance) and one server each, one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import simpy

from tideover.sim.draws import Purpose

from .channels import Channel, Message
from .clock import Clock, Rank, control, departure
from .entrances import Control, Entrance, Entry
from .layout import Datum, Logical, Physical
from .lines import Line
from .states import State

if TYPE_CHECKING:
    from .cores import Cores
    from .program import World


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
        self.ready_event: simpy.Event | None = None
        self.stopped_until = 0  # its process is stopped
        self.cores = world.cores_of(physical)  # None: one of its own
        self.line = Line(world, self)

    # -- the server ----------------------------------------------------------------------------------------

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
        if self.stopped_until > self.world.clock.now:
            return
        self.serving = self.queue.popleft()
        what, now = self.serving.what, self.world.clock.now
        if isinstance(what, Control):
            self.event = self.world.clock.at(now, control(what.rank, self.rank), self._finish)
            return
        self.give_back(what)
        self.begun.add(what)
        self._work(self.service(what))

    def _work(self, time: int) -> None:
        """On what is in service."""
        if self.cores is not None:
            self.cores.begin(self, time, self._finish)
        else:
            clock = self.world.clock
            self.event = clock.at(clock.now + time, departure(self.rank), self._finish)

    def service(self, message: Message) -> int:
        """How long a message takes, alone."""
        datum = message.datum
        if datum is None or self.world.layout.needs.batches or self.component in self.world.at_once:
            return 0
        config, layout = self.world.layout.config[self.component], self.world.layout
        time = layout.sample(config.service, self.component, Purpose.SERVICE, datum.uid, datum.attempt)
        if config.state is not None:
            time += config.state.accesses * config.state.access_cost
        time += message.channel.unpacks.get(message, 0)
        if not layout.stateful(self.component):
            time += sum(self.serialising(child) for child in layout.children(self.component, datum))
        return time + self.world.protocol.extra_service(self, datum)

    def serialising(self, datum: Datum) -> int:
        """How long it takes to serialise a tuple for all that are to get it on other hosts; in batches there
        is no such cost.
        """
        layout, time = self.world.layout, 0
        if layout.needs.batches:
            return 0
        links = layout.scenario.links
        for down in layout.down[self.component]:
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
        assert entry is not None
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
        if until > self.world.clock.now:
            self.occupied = True
            if self.cores is not None:
                self.cores.begin(self, until - self.world.clock.now, self.release)
                return
            self.occupied_until = until
            self.pending.append(self.world.clock.at(until, departure(self.rank), self._until_now))

    def _until_now(self) -> None:
        if self.occupied_until <= self.world.clock.now:
            self.release()

    def occupy_longer(self, duration: int) -> None:
        """The same, for so much longer than anything that keeps it already."""
        if self.cores is not None:
            self._work_longer(self.cores, duration)
            return
        begin = self.occupied_until if self.occupied else max(self.world.clock.now, self.stopped_until)
        self.occupy(begin + duration)

    def _work_longer(self, cores: Cores, duration: int) -> None:
        """The same where cores are shared, as soon as it is not stopped any more."""
        if self.occupied:
            cores.add(self, duration)
        elif duration:
            self.occupied, now = True, self.world.clock.now
            begin = partial(cores.begin, self, duration, self.release)
            if self.stopped_until > now:
                self.event = self.world.clock.at(self.stopped_until, departure(self.rank), begin)
            else:
                begin()

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
        return not self.down and self.stopped_until <= self.world.clock.now

    @property
    def live(self) -> bool:
        """Up, and restored."""
        return not (self.down or self.waiting)

    @property
    def busy(self) -> bool:
        """Whether it serves, or does something else that takes time."""
        stopped = self.stopped_until > self.world.clock.now
        at_work = self.occupied or (self.serving is not None and isinstance(self.serving.what, Message))
        return at_work and not (self.down or stopped)

    def freed(self) -> None:
        """For spouts: calls may go on."""

    def later(self, time: int, act: Callable[[], None]) -> None:
        """Something that this task does at that time, unless it crashes before."""
        self.pending.append(self.world.clock.at(time, departure(self.rank), act))

    # -- sending -------------------------------------------------------------------------------------------

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
        layout, sent = self.world.layout, []
        datum = datum._replace(route=(*datum.route, self.logical))
        for down in layout.down[self.component]:
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
            for number in range(self.state.handed + 1, (self.world.clock.now - 1) // length + 1):
                self.send_marker(number)

    def send_marker(self, number: int) -> None:
        self.state.handed = number
        for channel in () if self.silent and not self.keeps else self.outputs.values():
            self.put(Message(channel, marker=number))

    # -- faults --------------------------------------------------------------------------------------------

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
        when = self.world.clock.now + down_for
        self.ready_event = self.world.clock.at(when, control(Rank.READY, self.rank), self.ready)

    def interrupt(self) -> list[Message]:
        """Drop all that it does or has planned; returns the messages that were queued or in service."""
        self.suspend()
        self.world.protocol.gave_up(self)
        for event in self.pending:
            Clock.cancel(event)
        self.pending.clear()
        self.occupied = False
        messages = self.queued()
        self.queue.clear()
        self.kept |= set(messages)
        return messages

    def stop(self, until: int) -> None:
        """The process does nothing until then: whatever it was about to do is later."""
        clock = self.world.clock
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
        if self.stopped_until == self.world.clock.now and not self.down:
            self.line.move()
            self.freed()
            self.serve()

    def lose_state(self, crash: bool) -> None:
        """Counts, held ids and unsent acks; a crash of a bolt also takes the numbers of the markers."""
        self.world.ledger.hurt([*self.state.held, *self.state.waits], self.fault)
        self.world.outages.state_lost(self)
        old, self.state = self.state, State()
        if not crash or self.component in self.world.layout.spouts:
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
        self.queue.extend(Entry(self.world.clock.now, message) for message in queued)
        self.world.outages.back(self)
        self.world.protocol.ready(self, was_down)
        if was_down:
            self.go_back()
        if was_down and self.component in self.world.layout.spouts:
            self.send_missed_markers()
        if not (self.waiting and self.world.layout.needs.log):
            self.open(self.inbox)
        if was_down:
            self.line.wake()
            self.freed()
        self.serve()
