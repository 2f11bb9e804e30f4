"""What is noted while a world runs, tuple by tuple: what happened, what came of faults and of each root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from .channels import Message
from .clock import Part, Rank, control
from .layout import Datum

if TYPE_CHECKING:
    from tideover.sim.faults import Fault

    from .program import World
    from .tasks import Task


@dataclass
class Trace:
    """Everything that happened in one replication, in plain lists; times in nanoseconds."""

    processed: list[tuple[str, int, int, int, int, int, int]] = field(default_factory=list)
    """(component, task, replica, uid, attempt, arrival, departure), in order of departure within a task."""
    windows: list[tuple[str, int, int, int, int, dict[int, int]]] = field(default_factory=list)
    """(component, task, replica, window number, time, {key: count})."""
    emitted: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """(spout, task, root, attempt, time)."""
    completed: list[tuple[int, int, int]] = field(default_factory=list)
    """(root, attempt, time) of the trees that the acker found complete and the spout was waiting for."""
    failed: list[tuple[int, int, int]] = field(default_factory=list)
    """(root, attempt, time) of the timeouts."""
    committed: list[tuple[str, int, int, int]] = field(default_factory=list)
    """(component, task, number, time) of the transactions whose content readers see."""
    destroyed: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """(component, task, replica, uid, time): destroyed in a queue, in service or on arrival at a down task"""
    overflowed: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    """The same: found its queue full."""
    final_state: dict[tuple[str, int, int], dict[int, int]] = field(default_factory=dict)
    """{(component, task, replica): {key: count}} of the stateful tasks."""
    in_flight: int = 0
    """Distinct roots in queues, in service, on the wire or waiting for a retry."""
    ledger: dict[str, int] = field(default_factory=dict)
    """emitted, completed, in_flight, lost, replayed, duplicated, false_timeouts: see `Ledger`."""
    outages: list[tuple[int, int | None, int | None]] = field(default_factory=list)
    """(number of the fault, when it was noticed, when all that it had hit was back), without pauses; None:
    not before the end.
    """

    def normal(self) -> Trace:
        """The same with every list in one fixed order, to be compared."""
        lists = ("windows", "emitted", "completed", "failed", "committed", "destroyed", "overflowed")
        for name in lists:
            setattr(self, name, sorted(getattr(self, name), key=repr))
        self.processed.sort(key=lambda row: row[:3])  # stable: the order within a task stays
        return self


Moments = tuple[int, int | None, int | None]  # number of the fault; noticed, back (None: not before the end)
STEPS = ("noticed", "ordered", "launched", "back")
"""What happens to all that a fault has hit; with heartbeats another process is ordered, and launched."""


@dataclass(eq=False)
class Outage:
    """A fault; of what it hit, what has not come to each step; and what was done about it."""

    number: int
    fault: Fault
    at: int
    told: tuple[str, str] | None  # of which kind it is, and what it has hit; None: as its fault says
    done_before: int  # tuples that were measured before it struck
    tasks: list[Task] = field(default_factory=list)
    left: dict[str, set[Hashable]] = field(default_factory=lambda: {step: set() for step in STEPS})
    noticed: int | None = None
    ordered: int | None = None
    launched: int | None = None
    back: int | None = None
    hit: bool = False
    masked: bool = False
    unfelt: bool = False  # nothing that runs has to do with what it hit
    passes: bool = False
    failed_restarts: int = 0
    written: int | None = None  # by others, what it had taken
    restored_at: int | None = None
    timed_out_at: int | None = None
    last_replay: int | None = None
    restored: int = 0
    replayed: int = 0
    dropped: int = 0
    extra: int = 0
    lost: list[Effect] = field(default_factory=list)
    found_open: list[Outage] = field(default_factory=list)  # older ones, when it struck


class Outages(Part):
    """What is hit again is noticed, and back, when it is so from the newest fault."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.all: list[Outage] = []
        self.newest: dict[Hashable, Outage] = {}

    def strikes(self, fault: Fault, told: tuple[str, str] | None = None) -> Outage:
        """A fault strikes now; ``told``: as what."""
        outage = Outage(len(self.all), fault, self.now, told, len(self.world.record.done))
        settled = self.world.protocol.settled
        outage.found_open = [old for old in self.all if old.back is None or not settled(old)]
        self.all.append(outage)
        return outage

    def struck(self, outage: Outage, things: list[Hashable], listener: Any) -> None:
        """It has hit these: they are down, which a listener has to find out, if there is one."""
        seen, outage.hit = self.now + outage.fault.detection, bool(things)
        if not things:
            self._note_at(seen, outage, "noticed")
            self._note_at(self.now + outage.fault.lasts, outage, "back")
        self.newest |= dict.fromkeys(things, outage)
        outage.left = {step: set(things) for step in STEPS}
        if listener is None:
            self.clock.at(seen, control(Rank.READY, -1), partial(self._seen, things, outage))

    def stops(self, outage: Outage) -> None:
        """It stops its task for a while: nobody notices, and it ends by itself."""
        outage.noticed, outage.passes = outage.at, True
        self._note_at(self.now + outage.fault.lasts, outage, "back")

    def _note_at(self, time: int, outage: Outage, step: str) -> None:
        self.clock.at(time, control(Rank.READY, -1), partial(setattr, outage, step, time))

    def _seen(self, things: list[Hashable], by: Outage) -> None:
        for thing in things:
            if self.newest[thing] is by:
                self.comes_to("noticed", thing)

    def again(self, thing: Hashable) -> None:
        """Its process dies; what was done to bring it back was in vain."""
        for outage in self.all:
            if thing in outage.left["back"]:
                outage.left["ordered"].add(thing)
                outage.left["launched"].add(thing)

    def comes_to(self, step: str, thing: Hashable) -> None:
        """What was hit is noticed; a process in its place is ordered, or runs; or it is back."""
        for outage in self.all:
            if thing in outage.left[step]:
                outage.left[step].remove(thing)
                setattr(outage, step, None if outage.left[step] else self.now)

    def back(self, thing: Hashable) -> None:
        """It is back, and whoever had not noticed that it was gone will not wait for it any more."""
        for step in STEPS:
            self.comes_to(step, thing)

    def restart_fails(self, things: Iterable[Hashable]) -> None:
        """One of these."""
        for outage in self.all:
            outage.failed_restarts += not outage.left["back"].isdisjoint(things)

    def state_lost(self, task: Task) -> None:
        """The newest fault of a task takes its state."""
        if task.fault is not None:
            self.all[task.fault].lost += [(task.component, datum.uid) for datum in task.state.effects]

    def restored(self, number: int | None, tuples: int, since: int | None = None) -> None:
        """A state of so many tuples, which a fault had taken, is back."""
        if number is not None:
            outage = self.all[number]
            outage.restored += tuples
            since = self.now if since is None else since
            outage.restored_at = since if outage.restored_at is None else max(since, outage.restored_at)

    def timed_out(self, number: int | None) -> None:
        """A root is given up, of which a fault (None: no fault) had destroyed something."""
        if number is not None and self.all[number].timed_out_at is None:
            self.all[number].timed_out_at = self.now

    def replayed(self, task: Task, number: int | None, there: int) -> None:
        """A task is done with a tuple that was replayed because of a fault (None: it was not)."""
        if number is not None and task in self.all[number].tasks:
            outage = self.all[number]
            outage.replayed += 1
            outage.last_replay = max(there, outage.last_replay or 0)

    def dropped(self) -> None:
        """A tuple is filtered out that will come again, or has been here: it counts for the newest fault."""
        if self.all:
            self.all[-1].dropped += 1

    def repeated(self, task: Task) -> None:
        """The same of what replicas send twice, fault or not: it counts for the fault that its task is
        recovering from until the state is back.
        """
        if task.fault is not None:
            outage = self.all[task.fault]
            outage.dropped += outage.restored_at is None or outage.restored_at >= self.now

    def extra(self) -> None:
        """An effect has taken place again."""
        if self.all:
            self.all[-1].extra += 1

    def moments(self) -> list[Moments]:
        """Of the faults that have hit anything."""
        return [(o.number, o.noticed, o.back) for o in self.all if o.hit]


@dataclass(frozen=True)
class Done:
    """A tuple that the measured component was done with. ``because``: of which fault it was replayed."""

    time: int
    born: int
    first: int  # first emission of its root
    because: int | None


class Record(Part):
    """Which roots are there, what was measured and put out, and what each task did with its time."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.first: dict[int, int] = {}
        self.done: list[Done] = []
        self.tuples: Counter[int] = (
            Counter()
        )  # by root: those queued, in service, on a wire, waiting for a retry
        self.moves: list[tuple[int, int, int]] = []  # time, root, 1 (comes) or -1 (goes)
        self.windows_out: dict[tuple[str, int, int], int] = {}  # where nobody reads them: the first time
        self.tuples_out: list[int] = []
        self.window_times: dict[tuple[str, int, int], tuple[int, int]] = {}  # first emission: time, replica
        self.busy: Counter[Task] = Counter()  # a part of a core's time, where tasks share them
        self.blocked: Counter[Task] = Counter()
        self.up: Counter[Task] = Counter()
        self.control_bytes = 0
        self.most_kept = 0

    def all_there(self, messages: Iterable[Message]) -> None:
        """These are on their way, or kept to be sent."""
        for message in messages:
            self.there(message.datum)

    def all_gone(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.gone(message.datum)

    def there(self, datum: Datum | None) -> None:
        """One more tuple (or retry) of a root is on its way."""
        if datum is not None and datum.anchored:
            self.tuples[datum.root] += 1
            if self.tuples[datum.root] == 1:
                self.moves.append((self.now, datum.root, 1))

    def gone(self, datum: Datum | None) -> None:
        """One less."""
        if datum is not None and datum.anchored:
            self.tuples[datum.root] -= 1
            assert self.tuples[datum.root] >= 0
            if self.tuples[datum.root] == 0:
                self.moves.append((self.now, datum.root, -1))

    def emitted(self, datum: Datum) -> None:
        """A root leaves its spout; ``gone`` follows when its tuples have left."""
        self.first.setdefault(datum.root, datum.born)
        self.there(datum)

    def served(self, task: Task, datum: Datum, arrived: int, because: int | None) -> None:
        """A bolt is done with a tuple."""
        now = self.now
        if not datum.anchored:
            return
        self.world.outages.replayed(task, because, now if self.layout.needs.log else arrived)
        if task is self.lead(task) and task.component == self.layout.measured:
            self.done.append(Done(now, datum.born, self.first[datum.root], because))

    def applied(self, task: Task, datum: Datum) -> None:
        """An effect has taken place: in a count, or for whoever reads what leaves."""
        if not datum.anchored:
            return
        if self.world.ledger.times((task.component, datum.uid), task.replica) > 1:
            self.world.outages.extra()
        left = not task.stateful and not self.world.sinks.withholds(task)
        if left and task is self.lead(task):
            self.tuples_out.append(self.now)

    def window(self, task: Task, number: int) -> None:
        """A window is emitted."""
        place, now = (task.component, task.index, number), self.now
        self.window_times[place] = min((now, task.replica), self.window_times.get(place, (now, task.replica)))
        if not task.readers and not self.world.sinks.withholds(task):
            self.windows_out.setdefault(place, now)

    def lead(self, task: Task) -> Task:
        """The replica that is measured: the live one with the lowest number, of those that say anything."""
        replicas = self.world.replicas[task.logical]
        heard = [one for one in replicas if not one.silent] or replicas
        return next((one for one in heard if one.live), heard[0])

    def passes(self, until: int) -> None:
        """All events of this instant are over, and the next is at ``until``."""
        span, is_busy = until - self.now, self.world.protocol.is_busy
        for task in self.world.tasks:
            if is_busy(task):  # with tuples, for as long as it has a core
                shares = task.cores is not None and task in task.cores.jobs
                self.busy[task] += span * task.cores.share if shares else span
            if task.line.full:
                self.blocked[task] += span
            if not task.down:
                self.up[task] += span
        self.looks()

    def looks(self) -> None:
        """How much is kept at this moment."""
        self.most_kept = max(self.most_kept, self.world.protocol.kept_for_replay())


Effect = tuple[str, int]


class Ledger(Part):
    """Kept along the way, settled at the end."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.effects: dict[int, set[Effect]] = {}
        self.out: dict[tuple, dict[int | None, list[Effect]]] = {}  # by physical task and window
        self.replayed: set[int] = set()
        self.damaged: dict[tuple[int, int], int] = {}  # root and attempt: number of the newest fault
        self.dropped: set[tuple[int, int]] = set()  # root and attempt of what found a queue full
        self.false_timeouts: set[int] = set()
        self.late: set[int] = set()

    def emitted(self, datum: Datum) -> None:
        spout = self.layout.owner(datum.root)[0]
        self.effects[datum.root] = self.layout.effects(spout, datum)

    def left(self, task: Task, datum: Datum) -> None:
        """A tuple has left through a last bolt."""
        left = self.out.setdefault(task.physical, {}).setdefault(None, [])
        known = self.layout.needs.paths and (task.component, datum.uid) in left
        if not known:  # else its reader drops it
            left.append((task.component, datum.uid))

    def not_left(self, task: Task, datum: Datum) -> None:
        """It has not, after all."""
        self.out[task.physical][None].remove((task.component, datum.uid))

    def came_late(self, task: Task, datum: Datum) -> None:
        """It is in no window; put aside, it has left."""
        if datum.anchored:
            self.late.add(datum.root)
            if self.layout.config[task.component].bolt.window.late == "aside":
                effect = task.component, datum.uid
                self.out.setdefault(task.physical, {}).setdefault(None, []).append(effect)
                self.world.record.applied(task, datum)

    def emitted_window(self, task: Task, number: int, data: list[Datum]) -> bool:
        """The same window once more, out of a replay, is void; returns whether it is that."""
        windows = self.out.setdefault(task.physical, {})
        again = number in windows
        windows.setdefault(number, [(task.component, datum.uid) for datum in data])
        return again

    def reopened(self, task: Task, number: int) -> None:
        """A window will be emitted again, with the same tuples: until then they are not out."""
        self.out[task.physical].pop(number, None)

    def _applied(self, task: Task) -> list[Effect]:
        """What is in the task's counts, or has left it for good; twice if it is there twice."""
        live = [(task.component, datum.uid) for datum in task.state.effects]
        return live + [effect for window in self.out.get(task.physical, {}).values() for effect in window]

    def times(self, effect: Effect, replica: int) -> int:
        """How often an effect is in the counts of these replicas, or has left them, whichever the task: after
        a change of parallelism it can be another one.
        """
        like = (task for task in self.world.tasks if (task.component, task.replica) == (effect[0], replica))
        return sum(self._applied(task).count(effect) for task in like)

    def missing(self, effects: list[Effect]) -> int:
        """How many of these nowhere are."""
        there = {effect for task in self.world.tasks for effect in self._applied(task)}
        return sum(effect not in there for effect in effects)

    def _duplicated(self) -> set[int]:
        times = Counter((task.replica, effect) for task in self.world.tasks for effect in self._applied(task))
        return {uid >> self.layout.bits[component] for (_, (component, uid)), n in times.items() if n > 1}

    def hurt(self, data: list[Datum], fault: int | None) -> None:
        """A fault has destroyed these, or their acks."""
        self.hurt_trees({(datum.root, datum.attempt) for datum in data if datum.anchored}, fault)

    def hurt_trees(self, trees: set[tuple[int, int]], fault: int | None) -> None:
        for tree in trees:
            self.damaged[tree] = max(fault, self.damaged.get(tree, fault))

    def overflowed(self, datum: Datum) -> None:
        """A queue was full."""
        if datum.anchored:
            self.dropped.add((datum.root, datum.attempt))

    def timed_out(self, datum: Datum) -> int | None:
        """A root is given up; because of which fault."""
        tree = datum.root, datum.attempt
        because = self.damaged.get(tree)
        if because is None and tree not in self.dropped:
            self.false_timeouts.add(datum.root)
        self.world.outages.timed_out(because)
        return because

    def read_again(self, messages: Iterable[Message]) -> None:
        """Their roots are replayed."""
        self.replayed |= {message.datum.root for message in messages if message.anchored}

    def moving(self) -> list[Message]:
        """Everything anchored in queues, in service or on the wire."""
        found = []
        for task in self.world.tasks:
            entries = [*([task.serving] if task.serving else []), *task.queue]
            messages = (
                [entry.what for entry in entries if isinstance(entry.what, Message)]
                + task.inbox
                + task.memory
                + self.world.protocol.unreadable(task)
            )
            for channel in task.inputs.values():
                messages += channel.wire
            found += [*messages, *task.line.messages]
        return [message for message in found if message.anchored]

    def settle(self) -> dict[str, int]:
        """Every root is completed, in flight or lost."""
        world, layout = self.world, self.layout
        there = {effect for task in world.tasks for effect in self._applied(task)}
        copies: set[Effect] = set()
        buffered = [m for task in world.tasks for channel in task.inputs.values() for m in channel.buffer]
        for message in (*self.moving(), *buffered, *world.protocol.elsewhere()):
            if message.anchored:
                copies |= layout.effects(message.channel.down.component, message.datum)
        for task, datum in world.protocol.kept_data():
            copies.add((task.component, datum.uid))
        kept = world.protocol.kept_roots()
        kept |= {root for spout in world.spouts if spout.log is not None for root in spout.log.kept()}
        completed = {root for root, effects in self.effects.items() if effects <= there}
        lost = {
            root
            for root, effects in self.effects.items()
            if root not in kept and not effects <= there | copies
        }
        return {
            "emitted": len(self.effects),
            "completed": len(completed),
            "in_flight": len(self.effects) - len(completed) - len(lost),
            "lost": len(lost),
            "replayed": len(self.replayed),
            "duplicated": len(self._duplicated()),
            "false_timeouts": len(self.false_timeouts),
            "late": len(self.late),
        }
