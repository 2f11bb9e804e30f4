"""Puts the world together, strikes it with faults, and lets it run."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from pkgutil import iter_modules

from tideover.models.config import Scenario, timed
from tideover.sim.draws import Draws
from tideover.sim.faults import Fault, Site
from tideover.sim.registry import kind_of

from .bolts import Bolt
from .channels import Arrivals, Card, Channel, Cuts, Message
from .clock import LAST, Clock, Cores, Priority, Rank, control
from .coordinators import Group, Nimbus
from .faults import strike
from .figures import Figures, figures
from .heartbeats import Listener
from .layout import Layout, Logical, Physical
from .planned import PlannedStop
from .protocol import PROTOCOLS, Protocol
from .record import Ledger, Outage, Outages, Record, Trace
from .sinks import Sinks
from .spouts import SpoutTask
from .tasks import Task
from .windows import Twin, verdict

for module in iter_modules([str(Path(__file__).parent)]):
    if not module.name.startswith(("test_", "random_")):
        import_module(f"{__package__}.{module.name}")  # protocols register themselves

LISTENERS: dict[str, type[Listener] | type[Nimbus] | type[Group]] = {
    "heartbeats": Listener,
    "storm": Nimbus,
    "consumer_group": Group,
}


class World:
    """All tasks and channels of one replication."""

    def __init__(
        self,
        scenario: Scenario,
        replication: int,
        protocol: type[Protocol] | None = None,
        fed: dict[Logical, list[tuple[int, int]]] | None = None,
        logged: bool = False,
        events: dict[int, int] | None = None,
    ) -> None:
        """``protocol``: in place of the scenario's; ``fed``: when each spout task emits, not being called;
        ``logged``: what spouts send waits in a log, whatever the strategy says; ``events``: when those that
        roots tell of took place, if it is known.
        """
        self.scenario = scenario
        self.events = {} if events is None else dict(events)
        self.fed = fed
        self.at_once: tuple[str, ...] = ()
        """Components that take no time."""
        self.clock = Clock()
        self.layout = Layout(scenario, Draws(scenario.run.seed, replication))
        if logged:
            self.layout.needs = self.layout.needs._replace(log=True)
        self.trace = Trace()
        self.ledger = Ledger(self)
        self.record = Record(self)
        self.sinks = Sinks(self)
        self.outages = Outages(self)
        detector = "given" if scenario.detector is None else kind_of(scenario.detector)
        self.listener = LISTENERS[detector](self) if detector in LISTENERS else None
        self._idents = count(1)
        self.marker_length: int | None = None
        self.protocol = (protocol or PROTOCOLS[kind_of(scenario.strategy)].of(scenario.strategy))(self)
        self.arrivals = Arrivals(self.clock)
        self.cards: dict[tuple[str, int], Card] = {}
        self.cores = {host: Cores(self.clock, number) for host, number in self.layout.cores.items()}
        self.cuts = Cuts(self)
        self.used = set(self.layout.host.values())
        """Hosts that have, or have had, a task."""
        self.repaired: dict[int, int] = {}
        """Until when each host that has failed is."""
        self.tasks: list[Task] = []
        for rank, physical in enumerate(self.layout.physical):
            kind = SpoutTask if physical[0] in self.layout.spouts else Bolt
            self.tasks.append(kind(self, physical, rank))
        self.replicas: dict[Logical, list[Task]] = {}
        for task in self.tasks:
            self.replicas.setdefault(task.logical, []).append(task)
        self.spouts = [task for task in self.tasks if isinstance(task, SpoutTask)]
        self.bolts = [task for task in self.tasks if isinstance(task, Bolt)]
        for up in self.tasks:
            for down in self.tasks:
                if down.component in up.readers:
                    up.outputs[down.physical] = down.inputs[up.physical] = Channel(self, up, down)

    def card(self, way: str, task: Task) -> Card | None:
        """The card, out or in, of a task's host; None: it is no limit, or nothing is sent (in batches)."""
        bandwidth = self.layout.nic(task.physical)
        if bandwidth is None:
            return None
        return self.cards.setdefault((way, task.host), Card(bandwidth))

    def cores_of(self, physical: Physical) -> Cores | None:
        """Those of its host, which spouts do not use."""
        spout = physical[0] in self.layout.spouts
        return None if spout else self.cores.get(self.layout.host[physical])

    def is_masked(self, outage: Outage) -> bool:
        """Whether all that it hit has a live replica that goes on."""
        others = [[r for r in self.replicas[t.logical] if r is not t] for t in outage.tasks]
        return bool(others) and all(any(r.live and not r.silent for r in each) for each in others)

    def move(self, task: Task, host: int, worker: int) -> None:
        """A task that is down lives elsewhere from now on."""
        layout = self.layout
        layout.worker[task.physical] = worker
        if task.host == host:
            return
        layout.host[task.physical] = host
        self.used.add(host)
        task.cores = self.cores_of(task.physical)
        for channel in [*task.inputs.values(), *task.outputs.values()]:
            channel.lead()
        self.cuts.moved(task)

    def at_home(self) -> dict[tuple[int, int], list[Task]]:
        """The tasks of each worker, by host and number."""
        at: dict[tuple[int, int], list[Task]] = {}
        for task in self.tasks:
            at.setdefault(task.home, []).append(task)
        return at

    def emissions(self) -> dict[Logical, list[tuple[int, int]]]:
        """When each spout task has emitted its roots for the first time, and their numbers."""
        spouts, bits = self.layout.spout_tasks, self.layout.spout_bits
        return {
            spout: [
                (time, root >> bits)
                for *who, root, attempt, time in self.trace.emitted
                if (*who,) == spout and attempt == 0
            ]
            for spout in spouts
        }

    def moves(self) -> bool:
        """Whether anything is in a queue, in service or on a wire."""
        return any(
            task.queue or task.serving or task.line.messages or any(c.wire for c in task.inputs.values())
            for task in self.tasks
        )

    def new_ident(self) -> int:
        return next(self._idents)

    def destroyed(self, task: Task, message: Message, fault: int | None) -> None:
        """A fault has taken a message, at a task or on its way there."""
        datum = message.datum
        task.give_back(message)
        self.record.gone(datum)
        if datum is not None:
            self.trace.destroyed.append((*task.physical, datum.uid, self.clock.now))
            self.ledger.hurt([datum], fault)

    def overflows(self, task: Task, message: Message) -> None:
        """It has come to a queue that is full."""
        self.record.gone(message.datum)
        self.trace.overflowed.append((*task.physical, message.datum.uid, self.clock.now))
        self.ledger.overflowed(message.datum)

    def start(self) -> None:
        scenario = self.scenario
        site = Site(scenario.run.duration, len(self.layout.every_host), scenario.strategy.cycle())
        for index, fault in enumerate(scenario.failures):
            for moment, struck in fault.strikes(index, self.layout.draws, site):
                act = partial(strike, self, struck)
                if kind_of(struck) == "planned_restart":
                    act = PlannedStop(self, struck).ask
                self.clock.at(moment, self._turn(index, fault), act)
        for task in self.tasks:
            if isinstance(task, Bolt) and task.stateful:
                self._start_windows(task)
        self.protocol.start()
        if self.listener is not None:
            self.listener.start()
        for spout in self.spouts:
            if spout.log is not None:
                spout.log.start()
            if self.fed is None:
                spout.plan_call()
            else:
                spout.feed(self.fed[spout.logical])

    def _turn(self, index: int, fault: Fault) -> Priority:
        """When in its instant a fault strikes."""
        if fault.turn is None:
            return control(Rank.FAULT, index)
        side, rank, *of = fault.turn.replace(" of ", " ").split()
        ranks = {each.name.lower(): each for each in Rank}
        behind = 1 if side == "after" else -1
        if not of:
            return (1, ranks[rank], LAST * behind, 0)
        names = {
            f"{c}.{i}/{r}" if r else f"{c}.{i}": task for task in self.tasks for c, i, r in [task.physical]
        }
        task = names[of[0]]
        return (1, ranks[rank], task.rank, behind)

    def _start_windows(self, task: Bolt) -> None:
        """Ticks for the task; or markers, once for all tasks (they agree on the length)."""
        by_marker, beat = self.layout.by_marker(task.component), self.layout.beat(task.component)
        if by_marker and self.marker_length is None:
            self.marker_length = beat
            for spout in self.spouts:
                self.clock.each(beat, control(Rank.MARKER, spout.rank), partial(self._mark, spout, beat))
        elif self.layout.needs.batches and self.layout.by_event(task.component):
            return  # batches end them
        elif not by_marker and beat is not None:
            tick = partial(self._tick, task, beat)
            self.clock.each(beat, control(Rank.WINDOW, task.rank), tick)

    def _tick(self, task: Bolt, beat: int) -> None:
        task.tick(self.clock.now // beat)

    def _mark(self, spout: SpoutTask, beat: int) -> None:
        spout.place(Rank.MARKER, partial(spout.send_marker, self.clock.now // beat))

    def finish(self) -> Trace:
        trace = self.trace
        for task in self.tasks:
            if task.stateful:
                trace.final_state[task.physical] = task.state.keys()
        roots = {message.datum.root for message in self.ledger.moving()}
        trace.in_flight = len(roots | self.protocol.waiting_roots())
        trace.ledger = self.ledger.settle()
        trace.outages = self.outages.moments()
        return trace.normal()


def play(scenario: Scenario, replication: int = 0) -> World:
    """One replication, one tuple at a time, to its end."""
    world = World(timed(scenario, Draws(scenario.run.seed, replication)), replication)
    world.start()
    world.clock.run(scenario.run.duration, world.record.passes, world.record.looks)
    return world


def run(scenario: Scenario, replication: int = 0) -> Trace:
    """What happens in one replication."""
    return play(scenario, replication).finish()


def judge(scenario: Scenario, replication: int = 0) -> tuple[Trace, Figures]:
    """The same, and what is to be said of it beside a run without failures (itself, if nothing fails)."""
    world = quiet = play(scenario, replication)
    twin = Twin.of(world, replication)
    mine = other = verdict(world, twin)
    if scenario.failures:
        quiet = play(world.scenario.model_copy(update={"failures": ()}), replication)
        other = verdict(quiet, Twin.of(quiet, replication, twin))
    return world.finish(), figures(world, quiet, mine, other)
