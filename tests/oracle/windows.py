"""Which windows are right: those of a run, beside a twin in which nothing fails and nothing is replayed.

The twin emits each root when the run has emitted it for the first time. It has no replicas, timeouts or
recovery; of the strategy it keeps what acks cost, and that markers end windows. Its spouts are never held up:
they send end markers in time, so a root counts to the window to which it counts in the run. A window that a
tick ends is due at its tick, and what is in it depends on arrivals only: where nothing reads it, the twin
takes no time, but where tasks share cores (there are more of them than cores) or have bounded queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.registry import kind_of

from .channels import Message
from .protocol import PROTOCOLS
from .tasks import Control

if TYPE_CHECKING:
    from .program import World
    from .tasks import Task

Place = tuple[str, int, int]  # component, task, number
First = tuple[int, int, dict[int, int]]  # time, replica, sums


@dataclass
class Verdict:
    """emitted, correct, wrong, missing; and from when to when the content of each bad window was bad."""

    counts: dict[str, int]
    bad: dict[Place, tuple[int, int]]


def firsts(world: World) -> dict[Place, First]:
    """Each window as its readers first see it; of replicas the first counts, as for one who drops copies."""
    found: dict[Place, First] = {}
    for place, seen in world.sinks.seen.items():
        found |= pieces(world, place, seen)
    held = {task.component for task in world.tasks if world.sinks.withholds(task)}
    for component, task, replica, number, time, sums in world.trace.windows:
        if component in held:
            continue
        for place, seen in pieces(world, (component, task, number), (time, replica, sums), time).items():
            if place not in found or seen[:2] < found[place][:2]:
                found[place] = seen
    return found


def pieces(world: World, place: Place, seen: First, time: int | None = None) -> dict[Place, First]:
    """A window, put out at that time (None: when it was last); where the number of tasks may change, it by
    groups of keys.
    """
    layout, (component, task, number) = world.layout, place
    groups = layout.config[component].max_parallelism
    if groups is None:
        return {place: seen}
    then = layout.working_at[place]
    working = then[max(then) if time is None else time]
    return {
        (component, group, number): (*seen[:2], {k: n for k, n in seen[2].items() if k % groups == group})
        for group in range(groups)
        if layout.owner_of(component, group, working) == task
    }


def verdict(world: World, twin: Twin | None) -> Verdict:
    """Of a run that has ended; ``twin``: None if nothing has windows."""
    truth, due = (twin.windows(world), twin.due) if twin is not None else ({}, set[Place]())
    mine = firsts(world)
    counts = {"emitted": len(mine), "correct": 0, "wrong": 0, "missing": 0}
    bad: dict[Place, tuple[int, int]] = {}

    def since(place: Place, time: int) -> int:
        if world.layout.by_event(place[0]):
            moments = [first[0] for other, first in truth.items() if other[:2] == place[:2]]
            return max((moment for moment in moments if moment < time), default=0)
        before = truth.get((*place[:2], place[2] - 1))
        return 0 if before is None else before[0]

    for place, (time, _, sums) in mine.items():
        right = sums == truth[place][2] if place in truth else not sums
        counts["correct" if right else "wrong"] += 1
        if not right:
            bad[place] = since(place, time), time
    if world.sinks.withhold:
        counts["expired"] = len(world.sinks.lost)
    ended = _end_markers(world)
    gone, hidden = (
        {one for place in some for one in pieces(world, place, (0, 0, {}))}
        for some in (world.sinks.lost, world.sinks.hidden())
    )
    for place in due - mine.keys() - hidden:
        lost = place in gone
        panes = world.layout.panes(place[0])
        beat = place[2] * (1 if panes is None else panes.slide)
        owed = beat in ended or any(spout.state.handed < beat for spout in _above(world, place[0]))
        if not lost and owed and world.layout.by_marker(place[0]):
            continue
        if truth[place][2] and (lost or not any(_to_come(world, task, place) for task in world.tasks)):
            counts["missing"] += 1
            bad[place] = since(place, truth[place][0]), truth[place][0]
    return Verdict(counts, bad)


def _end_markers(world: World) -> set[int | None]:
    """Numbers of the windows of which a marker waits somewhere, or is on a wire."""
    messages = [
        message for task in world.tasks for channel in task.inputs.values() for message in channel.wire
    ]
    for task in world.tasks:
        entries = [*task.queue, *([task.serving] if task.serving else [])]
        messages += [entry.what for entry in entries if isinstance(entry.what, Message)]
        messages += [*task.inbox, *task.memory, *task.line.messages, *world.protocol.unreadable(task)]
    return {message.marker for message in messages}


def _above(world: World, component: str) -> list[Task]:
    """The spouts of which something comes to it: what they have not said yet is still to come."""
    above = {component}
    for name in reversed(world.layout.order):
        above |= {name} if above & set(world.layout.down[name]) else set()
    return [spout for spout in world.spouts if spout.component in above]


def _to_come(world: World, task: Task, place: Place) -> bool:
    """Whether a task has a tick of this window in its queue; or will read all that it needs in a log."""
    groups, index = world.layout.config[place[0]].max_parallelism, place[1]
    if groups is not None:
        index = index * world.layout.working[place[0]] // groups
    if task.logical != (place[0], index):
        return False
    panes = task.panes
    if place[2] in world.protocol.to_be_said(task):
        return True
    if panes is not None and world.layout.by_event(task.component):
        known = task.state.ended if world.layout.needs.batches else task.state.watermark
        return known < place[2] * panes.slide * panes.length
    entries = [*task.queue, *([task.serving] if task.serving else [])]
    ticks = [entry.what.window for entry in entries if isinstance(entry.what, Control)]
    ended = place[2] if panes is None else place[2] * panes.slide
    if ended in ticks or not world.layout.needs.log:
        return ended in ticks
    if world.layout.by_tuples(task.component):
        return place[2] > task.windows_closed
    return ended > min(task.state.markers.get(channel.up.logical, 0) for channel in task.inputs.values())


class Twin:
    """The twin of a run, and of others in which the same was emitted first."""

    def __init__(self, world: World, replication: int) -> None:
        from .program import World as Program

        kind = PROTOCOLS[kind_of(world.scenario.strategy)].undisturbed()
        self.told = world.emissions(), world.events
        fed, events = self.told
        self.world = Program(_quiet(world.scenario), replication, kind, fed, world.layout.needs.log, events)
        self.world.at_once = tuple(n for n in self.world.layout.order if _takes_no_time(self.world, n))
        self.world.protocol.params = world.scenario.strategy
        self.world.start()
        self.world.clock.run(world.scenario.run.duration)  # only its windows are wanted
        self.due = set(firsts(self.world))
        """Those that it has at the run's end."""

    @classmethod
    def of(cls, world: World, replication: int, other: Twin | None = None) -> Twin | None:
        """That of a run: the ``other`` if it is that, too; None if nothing has windows."""
        if not any(world.layout.stateful(name) for name in world.layout.order):
            return None
        if other is not None and other.told == (world.emissions(), world.events):
            return other
        return cls(world, replication)

    def windows(self, world: World) -> dict[Place, First]:
        """All of it; it goes on as long as something moves, and a window of the run is not there."""
        mine = firsts(world).keys()
        while mine - firsts(self.world).keys() and self.world.moves():
            self.world.clock.step()
        return firsts(self.world)


def _takes_no_time(world: World, component: str) -> bool:
    """Whether what is in a component's windows depends on arrivals only, and nobody feels how long it works:
    how long it takes decides when others may send, or how fast they are.
    """
    layout, tasks = world.layout, [task for task in world.tasks if task.component == component]
    alone = layout.stateful(component) and layout.by_tick(component) and not layout.down[component]
    return alone and layout.limit(component).length is None and not any(map(_shares, tasks))


def _shares(task: Task) -> bool:
    """Whether the host of a task has fewer cores than tasks."""
    cores = task.cores
    return cores is not None and sum(each.cores is cores for each in task.world.tasks) > cores.number


def _quiet(scenario: Scenario) -> Scenario:
    """Without failures and strategy; windows that the strategy would end by markers are ended so."""
    topology = dict(scenario.topology)
    for name, config in topology.items():
        window = getattr(config.bolt, "window", None) if isinstance(config, BoltConfig) else None
        if window is not None and window.length is not None and scenario.strategy.needs.log:
            marked = config.bolt.model_copy(
                update={"window": window.model_copy(update={"trigger": "marker"})}
            )
            topology[name] = config.model_copy(update={"bolt": marked})
    changes = {"topology": topology, "failures": (), "strategy": STRATEGIES["none"]()}
    return scenario.model_copy(update=changes)
