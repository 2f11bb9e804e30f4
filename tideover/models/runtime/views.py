"""Tasks, outages and machines as strategies and detectors see them: read only. Times are in ns.

What a view shows a strategy may read; whoever adds to one lets all strategies see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tideover.models.job.topology import Component


class TaskView(Protocol):
    """A physical task: a spout's, or a bolt's or one replica of it.

    number      place among all tasks: the order in which tasks act at one instant
    index       number of the task in its component
    available   up, and taking in what arrives
    life        counts its interruptions: what was planned in an earlier life is void
    """

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def host(self) -> int: ...
    @property
    def component(self) -> Component: ...
    @property
    def index(self) -> int: ...
    @property
    def up(self) -> bool: ...
    @property
    def available(self) -> bool: ...
    @property
    def life(self) -> int: ...


class SpoutView(TaskView, Protocol):
    """A spout task. ``spout_number``: its number among all spout tasks."""

    @property
    def spout_number(self) -> int: ...


class StateView(Protocol):
    """The state of a task.

    entries   what a store has to hold
    size      tuples whose effects live there
    tuples    tuples that were taken in since the last window
    """

    @property
    def entries(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def tuples(self) -> int: ...


class BoltView(TaskView, Protocol):
    """A bolt task, or one replica of it. ``state``: None if its bolt has none."""

    @property
    def replica(self) -> int: ...
    @property
    def state(self) -> StateView | None: ...


class OutageView(Protocol):
    """A fault that has struck, the ``number``-th; the rest as of an ``Outage``."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def failed_at(self) -> int: ...
    @property
    def detected_at(self) -> int: ...
    @property
    def ready_at(self) -> int: ...
    @property
    def overtakes(self) -> Sequence[OutageView]: ...
    @property
    def tasks(self) -> Sequence[TaskView]: ...


class Runner:
    """A mechanism that runs bolts in batches is their runner (``job.runner``)."""

    def paused(self, task: BoltView, outage: OutageView) -> None:
        """A fault stops ``task`` until the outage's end."""

    def busy_since(self, task: BoltView) -> int | None:
        """Since when ``task`` runs in a batch (ns); None: it does not run now."""
        return None


class Stop(Protocol):
    """A planned stop that waits until what it takes is saved: then it may ``go_down``, or it has to
    ``give_up``, and is asked for again. ``victims``: what goes down with it, and ``down``: for how long (ns).
    """

    victims: list[Any]
    down: int

    def go_down(self) -> None: ...
    def give_up(self) -> None: ...


class Saver:
    """A mechanism that saves what is there before a planned stop is the job's saver (``context.saver``)."""

    _stops: tuple[Stop, ...] = ()
    """Those that wait for one savepoint, or for the batch under way, and go down together."""

    def save_to_stop(self, stop: Stop) -> bool:
        """Save, and let it go down then; returns whether that is possible now."""
        raise NotImplementedError

    def stop_all(self) -> None:
        """All go down now: a task that several stops take is back with the longest."""
        stops, self._stops = self._stops, ()
        for stop in sorted(stops, key=lambda stop: stop.down):
            stop.go_down()

    def stop_none(self) -> None:
        stops, self._stops = self._stops, ()
        for stop in stops:
            stop.give_up()

    def rescale(self, component: Component, working: int) -> None:
        """The job is down, and so many tasks of a component are to go on from what was saved."""
        raise NotImplementedError


class Grouped:
    """A mechanism whose tasks belong to members of a consumer group is the job's ``context.grouped``."""

    def rebalances(self, task: BoltView, begins: bool, stops: bool) -> None:
        """The member that has a task has joined a rebalance (``begins``), and waits for the others
        (``stops``: its tasks are to do nothing meanwhile). Or else tasks are assigned.
        """
        raise NotImplementedError

    def closes(self, task: BoltView) -> bool:
        """Whether a task commits to go down, or has, and is up still."""
        raise NotImplementedError

    def warm_up(self, hosts: Mapping[BoltView, int]) -> None:
        """Copies of the state of these tasks, and of no others, follow them on these hosts."""
        raise NotImplementedError

    def is_warm(self, task: BoltView) -> bool:
        """Whether a copy of a task's state has all of it."""
        raise NotImplementedError


class Machine:
    """A process that is no task: an acker, a driver, an executor in which tasks run. ``name``: as
    ``component`` of a fault says it; ``number``: its place in the order in which machines come back at one
    instant.
    """

    def __init__(self, name: str, host: int | None, replica: int, number: int, worker: int = 0) -> None:
        self.name, self.host, self.worker = name, host, worker
        self.replica, self.number = replica, number

    def tasks(self) -> Sequence[BoltView]:
        return ()

    def failed(self, outage: OutageView) -> None:
        raise NotImplementedError

    def ready(self, outage: OutageView) -> None:
        """Detection and restart of its newest fault are over; when it is back, it tells the supervisor."""
        raise NotImplementedError


NEVER = 1 << 62
"""The moment at which something that is given up is back."""


class Return(NamedTuple):
    """When something that was hit is noticed, and when it is back (ns), as it is expected.

    ordered     a process in its place is to be launched, after a delay or when there is room for it
    launched    that process runs; from here on its tasks are prepared
    (None: nobody tells the stages of the restart apart)
    """

    detected: int
    ready: int
    ordered: int | None = None
    launched: int | None = None


@dataclass(eq=False)
class Outage:
    """A fault that struck (moments in ns).

    detected_at   all that it hit is noticed, or back
    ready_at      all that it hit is back; as planned, until something else changes it
    tasks         the physical tasks that it hit
    returns       the same two moments for each thing that it hit: tasks and machines
    passes        nothing is down: nobody notices, and it passes by itself when all would be back
    broken        hosts whose machines it has broken: they are repaired, and what was on their disks is gone
    masked        each of them had a live replica that went on
    unfelt        nothing that runs has anything to do with what it hit
    written_at    live replicas have written all the state that it took (ns); None: they have not, or need not
    overtakes     older outages of which not all had been sent again, or was there, when it struck
    watched       these, and older ones that were not over by then: they may take what is sent again later
    late          it has struck when what comes back at this instant was back, and what is noticed was
    failed_restarts  restarts that were tried since, of what it hit, and failed themselves
    unsettled     older ones of which something was not back by then, or waited to be sent again
    """

    number: int
    kind: str
    component: str
    failed_at: int
    detected_at: int
    ready_at: int
    tasks: list[Any] = field(default_factory=list)
    returns: dict[Any, Return] = field(default_factory=dict)
    passes: bool = False
    broken: frozenset[int] = frozenset()
    masked: bool = False
    unfelt: bool = False
    overtakes: tuple[Outage, ...] = ()
    watched: tuple[Outage, ...] = ()
    unsettled: tuple[Outage, ...] = ()
    written_at: int | None = None
    late: bool = False
    failed_restarts: int = 0

    def hit(self, returns: dict[Any, Return]) -> None:
        """It has hit these, or they are back then, and not when it was expected."""
        self.returns |= returns
        if self.returns:
            noticed = max(min(back.detected, back.ready) for back in self.returns.values())
            self.detected_at = max(self.failed_at, noticed)  # what is known to be down may be struck again
            self.ready_at = max(back.ready for back in self.returns.values())

    @property
    def stages(self) -> tuple[int, int] | None:
        """When all that it hit was ordered anew, and when all of it was launched (ns); None: nobody tells."""
        found = [back for back in self.returns.values() if back.ordered is not None]
        if not found:
            return None
        ordered = max(min(back.ordered or 0, back.ready) for back in found)
        return ordered, max(min(back.launched or 0, back.ready) for back in found)

    def struck_again(self, victim: Any, newer: Outage) -> None:
        """It is back when it is from the newer fault; detection begins anew if nobody has noticed yet."""
        detected, again = self.returns[victim].detected, newer.returns[victim]
        noticed = detected < newer.failed_at + newer.late
        self.hit({victim: again._replace(detected=detected) if noticed else again})

    def expect(self, victim: Any, ready: int) -> None:
        self.hit({victim: self.returns[victim]._replace(ready=ready)})
