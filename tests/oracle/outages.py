"""What came of each fault: when it was noticed, when all that it had hit was back, what was brought back."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from .clock import Rank, control

if TYPE_CHECKING:
    from tideover.sim.faults import Fault

    from .ledger import Effect
    from .program import World
    from .tasks import Task

Moments = tuple[int, int | None, int | None]  # number of the fault; noticed, back (None: not before the end)


@dataclass(eq=False)
class Outage:
    """A fault; what of all that it hit is not yet noticed, and not yet back; and what was done about it."""

    number: int
    fault: Fault
    at: int
    done_before: int  # tuples that were measured before it struck
    tasks: list[Task] = field(default_factory=list)
    unseen: set[Hashable] = field(default_factory=set)
    gone: set[Hashable] = field(default_factory=set)
    unordered: set[Hashable] = field(default_factory=set)  # a process in its place, with heartbeats
    unlaunched: set[Hashable] = field(default_factory=set)
    noticed: int | None = None
    ordered: int | None = None
    launched: int | None = None
    back: int | None = None
    hit: bool = False
    masked: bool = False
    unfelt: bool = False  # nothing that runs has to do with what it hit
    passes: bool = False
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


class Outages:
    """What is hit again is noticed, and back, when it is so from the newest fault."""

    def __init__(self, world: World) -> None:
        self.world, self.clock = world, world.clock
        self.all: list[Outage] = []
        self.newest: dict[Hashable, Outage] = {}

    def strikes(self, fault: Fault) -> Outage:
        """A fault strikes now."""
        outage = Outage(len(self.all), fault, self.clock.now, len(self.world.record.done))
        settled = self.world.protocol.settled
        outage.found_open = [old for old in self.all if old.back is None or not settled(old)]
        self.all.append(outage)
        return outage

    def struck(self, outage: Outage, things: list[Hashable]) -> None:
        """It has hit these: they are down."""
        detection = outage.fault.detection
        outage.unseen, outage.gone, outage.hit = set(things), set(things), bool(things)
        if not things:
            self.clock.at(self.clock.now + detection, control(Rank.READY, -1), partial(self._told, outage))
            over = self.clock.now + outage.fault.lasts
            self.clock.at(over, control(Rank.READY, -1), partial(self._over, outage))
        for thing in things:
            self.newest[thing] = outage
        if self.world.listener is not None:
            outage.unordered, outage.unlaunched = set(things), set(things)
            return
        noticed = partial(self._seen, things, outage)
        self.clock.at(self.clock.now + detection, control(Rank.READY, -1), noticed)

    def stops(self, outage: Outage) -> None:
        """It stops its task for a while: nobody notices, and it ends by itself."""
        outage.noticed, outage.passes = outage.at, True
        over = self.clock.now + outage.fault.lasts
        self.clock.at(over, control(Rank.READY, -1), partial(self._over, outage))

    def _told(self, outage: Outage) -> None:
        outage.noticed = self.clock.now

    def _over(self, outage: Outage) -> None:
        outage.back = self.clock.now

    def _seen(self, things: list[Hashable], by: Outage) -> None:
        for thing in things:
            if self.newest[thing] is by:
                self.notice(thing)

    def again(self, thing: Hashable) -> None:
        """Its process dies; what was done to bring it back was in vain."""
        for outage in self.all:
            if thing in outage.gone:
                outage.unordered.add(thing)
                outage.unlaunched.add(thing)

    def order(self, thing: Hashable, now: bool = True) -> None:
        """A process in its place is ordered (unless that is not ``now``)."""
        for outage in self.all:
            if now and thing in outage.unordered:
                outage.unordered.remove(thing)
                outage.ordered = None if outage.unordered else self.clock.now

    def launch(self, thing: Hashable, now: bool = True) -> None:
        """That process runs (unless ...)."""
        for outage in self.all:
            if now and thing in outage.unlaunched:
                outage.unlaunched.remove(thing)
                outage.launched = None if outage.unlaunched else self.clock.now

    def notice(self, thing: Hashable, now: bool = True) -> None:
        """It is gone, and somebody knows (unless ...)."""
        for outage in self.all:
            if now and thing in outage.unseen:
                outage.unseen.remove(thing)
                outage.noticed = None if outage.unseen else self.clock.now

    def back(self, thing: Hashable) -> None:
        """It is back, and whoever had not noticed that it was gone will not wait for it any more."""
        self.notice(thing)
        self.order(thing)
        self.launch(thing)
        for outage in self.all:
            if thing in outage.gone:
                outage.gone.remove(thing)
                outage.back = None if outage.gone else self.clock.now

    # -- what is done about them ---------------------------------------------------------------------------

    def state_lost(self, task: Task) -> None:
        """The newest fault of a task takes its state."""
        if task.fault is not None:
            self.all[task.fault].lost += [(task.component, datum.uid) for datum in task.state.effects]

    def restored(self, number: int | None, tuples: int, since: int | None = None) -> None:
        """A state of so many tuples, which a fault had taken, is back."""
        if number is not None:
            outage = self.all[number]
            outage.restored += tuples
            since = self.clock.now if since is None else since
            outage.restored_at = since if outage.restored_at is None else max(since, outage.restored_at)

    def timed_out(self, number: int | None) -> None:
        """A root is given up, of which a fault (None: no fault) had destroyed something."""
        if number is not None and self.all[number].timed_out_at is None:
            self.all[number].timed_out_at = self.clock.now

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
            outage.dropped += outage.restored_at is None or outage.restored_at >= self.clock.now

    def extra(self) -> None:
        """An effect has taken place again."""
        if self.all:
            self.all[-1].extra += 1

    def moments(self) -> list[Moments]:
        """Of the faults that have hit anything."""
        return [(o.number, o.noticed, o.back) for o in self.all if o.hit]
