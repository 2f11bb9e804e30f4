"""What a space-time diagram shows of a stretch of a run, in the words of the trace; when, not where on paper
(`reports.figures.space_time` draws it). After L. Lamport, *Time, clocks, and the ordering of events in a
distributed system*, CACM 1978.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tideover.models.accounts.trace import (
    DETECTED,
    READY,
    SENDER,
    Arrival,
    SpaceTime,
    Stretch,
    moment_text,
    struck_text,
)
from tideover.models.job.topology import Component, TupleNames
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.views import NEVER, Outage
from tideover.models.world import World
from tideover.sim.train import Train, single

Key = tuple[int, int, int, int]
"""Numbers of sender and receiver, uid, attempt."""


@dataclass(frozen=True)
class Message:
    """A tuple on its way from one task to another (their numbers among all tasks); times in ns.

    sent   when it left; None: before departures were noted, or (``copied``) it did not come over a channel
    came   when it arrived; None: it did not, as far as the run was followed
    over   when it was processed, or lost; None: neither, as far as the run was followed
    fate   processed, discarded (known, or to come again), destroyed, overflowed, waiting, under way
    again  it left a buffer, a log or a spout once more
    log    it was read again from a log, where it had come before
    copied it came out of a queue that was saved, or is another replica's
    """

    sender: int
    receiver: int
    uid: int
    attempt: int
    key: int
    sent: int | None
    came: int | None
    over: int | None
    fate: str
    again: bool = False
    log: bool = False
    copied: bool = False


def messages(noted: SpaceTime) -> list[Message]:
    """The messages of which something happens in the stretch, by departure, then by arrival.

    A channel is first in, first out. So of a tuple's departures over one channel the newest at or before
    its last arrival is that one's, and so on; those that are left over were lost, or are under way. Of
    arrivals at one instant those that were known came last.
    """
    begin, end = noted.stretch
    found = []
    for message in _Matching(noted).all():
        known = [time for time in (message.sent, message.came, message.over) if time is not None]
        if min(known) <= end and (message.over is None or max(known) >= begin):
            left = -1 if message.sent is None else message.sent
            came = 1 << 62 if message.came is None else message.came
            found.append(((left, came, message.sender, message.receiver, message.uid), message))
    return [message for _, message in sorted(found, key=lambda each: each[0])]


class _Matching:
    def __init__(self, noted: SpaceTime) -> None:
        self._noted, self._job = noted, noted.job
        self._used: set[tuple[Key, int]] = set()
        self._arrived: Counter[tuple[int, str, int, int, int]] = Counter()
        """At how many replicas a departure has arrived."""
        self._came = defaultdict(list, {key: list(arrivals) for key, arrivals in noted.came.items()})
        for task in self._job.bolt_tasks:  # at the end of the run that was followed
            for train in (*task.queue.trains(), *task.gate.aside, *task.gate.held):
                self._waits(task, None, train, "waiting")
            for channel in task.inputs:
                for train in channel.on_the_way:
                    self._waits(task, channel.up.number, train, "under way")

    def _waits(self, task: BoltTask, sender: int | None, train: Train, fate: str) -> None:
        data = train.pick(train.column("mark") == 0)
        froms = data.column(SENDER) - 1 if sender is None else np.full(data.n, sender, np.int64)
        columns = (froms, data.uid, data.column("attempt"), data.key, data.created, data.time)
        for one, uid, attempt, key, created, time in zip(*(c.tolist() for c in columns), strict=True):
            self._came[one, task.number, uid, attempt].append(Arrival(time, None, fate, key, created))

    def all(self) -> Iterator[Message]:
        for key, arrivals in self._came.items():
            yield from self._matched(key, arrivals)
        for departure in self._noted.sent:
            yield from self._left(*departure)

    def _matched(self, key: Key, arrivals: list[Arrival]) -> Iterator[Message]:
        sender, receiver, uid, attempt = key
        up, down = self._job.tasks[sender].component, self._job.tasks[receiver].component
        first = [time for time, _ in self._noted.sent.get((sender, down.name, uid, attempt), ())]
        if up.window is not None:  # what a window puts out is stamped when it leaves
            first = list({arrival.created for arrival in arrivals})
        left = [(time, False, False) for time in first]
        left += [(time, True, log) for time, log in self._noted.again.get(key, ())]
        left.sort()
        at = len(left) - 1
        for arrival in sorted(arrivals, key=lambda each: (each.time, each.fate == "discarded"), reverse=True):
            while at >= 0 and left[at][0] > arrival.time:
                at -= 1
            sent, again, log = left[at] if at >= 0 else (None, False, False)
            if sent is not None and not again:
                self._used.add((key, sent))
                self._arrived[sender, down.name, uid, attempt, sent] += 1
            at -= 1
            came, fate, over = arrival.time, arrival.fate, arrival.over
            copied = sent is None and (receiver, uid, attempt) in self._noted.back
            if not copied or over is not None:  # else it only waits to come again
                flags = again or copied or attempt > 0, log, copied
                yield Message(*key, arrival.key, sent, came, over, fate, *flags)

    def _left(self, sender: int, name: str, uid: int, attempt: int) -> Iterator[Message]:
        """Departures of which no arrival is known."""
        for time, tuple_key in self._noted.sent[sender, name, uid, attempt]:
            if self._arrived[sender, name, uid, attempt, time] == self._job.deployment.replicas[name]:
                continue
            for task in self._job.bolts[name, self._target(sender, name, uid, tuple_key)]:
                key = sender, task.number, uid, attempt
                if (key, time) in self._used:
                    continue
                lost = [over for over in self._noted.lost.get(key[1:], ()) if over >= time]
                over, fate = (lost[0], "destroyed") if lost else (None, "under way")
                yield Message(*key, tuple_key, time, None, over, fate, attempt > 0)

    def _target(self, sender: int, name: str, uid: int, key: int) -> int:
        (edge,) = (e for e in self._job.tasks[sender].component.outputs if e.down.name == name)
        if edge.grouping.copies:
            return uid & ((1 << edge.task_bits) - 1)
        row, working = single(0, uid, key=key), self._job.bolts[name, 0][0].working
        groups = edge.down.groups
        if groups is not None and (owners := edge.owners(groups, working)) is not None:
            return int(owners[key % groups])
        return int(edge.grouping.targets(edge.name, self._job.draws, row, working)[0])


ACKER = "acker"
"""Who sees that a tree is complete."""
TOLD = {
    "processed": "processed",
    "discarded": "discarded: known already, or to come again",
    "destroyed": "destroyed",
    "overflowed": "destroyed: the queue was full",
    "waiting": "waits still",
    "under way": "not processed",
}
Whole = tuple[str, int]
"""A root, or a window: all that is of it is drawn together."""


@dataclass(frozen=True)
class Lane:
    """A task, or a role, over time. ``host``: None if it has none of its own; ``component``: of a role its
    name.
    """

    name: str
    component: str
    host: int | None
    is_task: bool


@dataclass(frozen=True)
class Arrow:
    """A message from lane to lane; times in ns.

    kind     tuple, control (among the tuples of a channel), ack, complete, step
    sent     None: before what was noted
    came     None: it did not arrive
    over     when it was processed, or lost; None: neither, as far as is known
    fate     of a tuple (see ``TOLD``)
    again    it is sent again: by its spout, from a buffer or a log
    whole    of a tuple: what it is part of
    effect   of a tuple: component and uid
    copied   it came over no channel, but out of a queue that was saved, or is another replica's
    """

    kind: str
    source: str
    target: str
    sent: int | None
    came: int | None
    text: tuple[str, ...]
    over: int | None = None
    fate: str = ""
    again: bool = False
    whole: Whole | None = None
    effect: tuple[str, int] | None = None
    copied: bool = False

    @property
    def lost(self) -> bool:
        return self.fate in ("destroyed", "overflowed")


@dataclass(frozen=True)
class Event:
    """Something that happens at one instant (``at``, ns) on a lane (None: on none).

    kind   step, window, fault, detected, ready
    what   of a step: its words, the same each time
    """

    kind: str
    lane: str | None
    at: int
    what: str
    text: str


@dataclass(frozen=True)
class Down:
    """A lane is down, or (``passes``) hit by something that passes by itself, for a while (ns)."""

    lane: str
    since: int
    until: int
    passes: bool
    text: str


@dataclass(frozen=True)
class Diagram:
    """A stretch of a run. ``followed``: up to where the run was looked at (ns); ``lump``: how many tuples
    each one stands for.
    """

    stretch: Stretch
    followed: int
    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...]
    events: tuple[Event, ...]
    downs: tuple[Down, ...]
    lump: int = 1


def diagram(world: World, lump: int = 1) -> Diagram:
    """What was watched in a world that has run."""
    drawing = _Drawing(world)
    noted, lanes = drawing.noted, drawing.lanes
    arrows = (*drawing.tuples(), *drawing.others())
    events = (*drawing.events(), *drawing.struck())
    downs = tuple(down for outage in noted.outages for down in drawing.downs(outage))
    followed = world.job.kernel.now
    return Diagram(noted.stretch, followed, tuple(lanes.values()), arrows, events, downs, lump)


class _Drawing:
    def __init__(self, world: World) -> None:
        assert world.space_time is not None
        self.noted, self.job = world.space_time, world.job
        self.names = TupleNames(self.job.topology)
        self.lanes = {
            task.name: Lane(task.name, task.component.name, task.host, True) for task in self.job.tasks
        }

    def _lane(self, name: str) -> str:
        """A lane of that name, if need be a new one."""
        if name not in self.lanes:
            hosts = [machine.host for machine in self.job.context.machines if machine.name == name]
            self.lanes[name] = Lane(name, name, hosts[0] if len(hosts) == 1 else None, False)
        return name

    def tuples(self) -> Iterator[Arrow]:
        for message in messages(self.noted):
            up, down = self.job.tasks[message.sender], self.job.tasks[message.receiver]
            yield Arrow(
                "tuple",
                up.name,
                down.name,
                message.sent,
                message.came,
                self._text(message, up.component),
                message.over,
                message.fate,
                message.again,
                self.names.origin(down.component, message.uid).whole,
                (down.component.name, message.uid),
                message.copied,
            )

    def _text(self, message: Message, sender: Component) -> tuple[str, ...]:
        up, down = self.job.tasks[message.sender].name, self.job.tasks[message.receiver]
        what = f"{self._place(down.component, message.uid, message.attempt)}, "
        what += f"key {self.names.key(sender, message.key)}"
        if message.copied:
            sent = f"once sent by {up}; now out of what was kept of it, or from another replica"
        elif message.sent is None:
            sent = f"sent by {up}, before the stretch"
        else:
            by = f"again, from the log of {up}" if message.log else f"by {up}{', again' * message.again}"
            sent = f"sent {moment_text(message.sent)} {by}"
        fate = TOLD[message.fate] + ("" if message.over is None else f" {moment_text(message.over)}")
        came = f"{down.name}: {fate}"
        if message.came is not None:
            came = f"arrived {moment_text(message.came)} at {down.name}, {fate}"
        return what, sent, came

    def _place(self, component: Component, uid: int, attempt: int) -> str:
        return f"{self.names.place(component, uid)}, attempt {attempt}"

    def others(self) -> Iterator[Arrow]:
        """All arrows but those of tuples."""
        noted, tasks = self.noted, self.job.tasks
        for sender, receiver, what, left, came in noted.control:
            up, down = tasks[sender].name, tasks[receiver].name
            text = what, f"sent {moment_text(left)} by {up}", f"arrived {moment_text(came)} at {down}"
            yield Arrow("control", up, down, left, came, text)
        for number, name, uid, attempt, time in noted.acked:
            task, to = tasks[number], self._lane(name)
            whole = self.names.origin(task.component, uid).whole
            lines = (
                f"ack of {self._place(task.component, uid, attempt)}",
                f"{task.name} tells {to} {moment_text(time)}",
            )
            yield Arrow("ack", task.name, to, time, time, lines, whole=whole)
        bits = self.job.topology.spout_bits
        for root, attempt, time in noted.completed:
            acker = self._lane(noted.acked[0][1] if noted.acked else ACKER)
            spout = self.job.spouts[root & ((1 << bits) - 1)].name
            what = f"root {root >> bits} of {spout}, attempt {attempt}: root complete"
            lines = what, f"{acker} tells {spout} {moment_text(time)}"
            yield Arrow("complete", acker, spout, time, time, lines, whole=("", root))
        for step in noted.steps:
            if step.to:
                lanes = self._lane(step.who), self._lane(step.to)
                yield Arrow("step", *lanes, step.at, step.at, (step.text, moment_text(step.at)))

    def events(self) -> Iterator[Event]:
        for step in self.noted.steps:
            yield Event("step", self._lane(step.who), step.at, step.what, step.text)
        for task, at, text in self.noted.windows:
            name = self.job.tasks[task].name
            yield Event("window", name, at, "window", f"{name}: {text}")

    def struck(self) -> Iterator[Event]:
        has = self.noted.stretch.has
        for outage in self.noted.outages:
            failed = outage.failed_at
            if has(failed):
                hit: list[Any] = list(outage.returns) or outage.tasks or [None]
                for victim in hit:
                    lane = None if victim is None else self._lane(victim.name)
                    text = struck_text(outage.component, outage.kind)
                    yield Event("fault", lane, failed, outage.kind, text)
            for victim, back in outage.returns.items():
                lane = self._lane(victim.name)
                for kind, at, what in (("detected", back.detected, DETECTED), ("ready", back.ready, READY)):
                    if at > failed and has(at):
                        yield Event(kind, lane, at, what, f"{lane}: {what}")

    def downs(self, outage: Outage) -> Iterator[Down]:
        what = struck_text(outage.component, outage.kind)
        for victim, back in (outage.returns or dict.fromkeys(outage.tasks)).items():
            ready = outage.ready_at if back is None else back.ready
            if ready > outage.failed_at:
                until = "not back" if ready >= NEVER else f"to {moment_text(ready)}"
                text = f"{victim.name}: down from {moment_text(outage.failed_at)} {until} ({what})"
                if back is None:
                    text = f"{victim.name}: {what}, from {moment_text(outage.failed_at)} {until}"
                yield Down(self._lane(victim.name), outage.failed_at, ready, back is None, text)
