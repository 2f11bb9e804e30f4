"""Puts the world together, strikes it with faults, and lets it run."""

from __future__ import annotations

from functools import partial
from itertools import count

from tideover.models.bolts.windowed_count import Window
from tideover.models.config import Scenario
from tideover.sim.draws import Draws
from tideover.sim.faults.base import Fault
from tideover.sim.registry import kind_of

from .acks import SourceReplay
from .bolts import Bolt
from .buffers import UpstreamBuffer
from .channels import Channel, Message
from .clock import Clock, Rank, control
from .layout import Layout
from .ledger import Ledger
from .outages import Outages
from .protocol import Protocol
from .replicas import Replication
from .snapshots import Snapshots
from .spouts import SpoutTask
from .starting_anew import micro_batches
from .tasks import Task
from .trace import Trace

PROTOCOLS = {
    "none": Protocol,
    "source_replay": SourceReplay,
    "rsm": UpstreamBuffer,
    "active_replication": Replication,
    "aligned_snapshots": Snapshots,
    "micro_batch": micro_batches,
}


class World:
    """All tasks and channels of one replication."""

    def __init__(self, scenario: Scenario, replication: int) -> None:
        self.scenario = scenario
        self.clock = Clock()
        self.layout = Layout(scenario, Draws(scenario.run.seed, replication))
        self.trace = Trace()
        self.ledger = Ledger(self)
        self.outages = Outages(self.clock)
        self.struck = 0  # faults so far
        self._idents = count(1)
        self.marker_length: int | None = None
        self.protocol = PROTOCOLS[kind_of(scenario.strategy)](self)
        self.tasks: list[Task] = []
        for rank, physical in enumerate(self.layout.physical):
            kind = SpoutTask if physical[0] in self.layout.spouts else Bolt
            self.tasks.append(kind(self, physical, rank))
        self.spouts = [task for task in self.tasks if isinstance(task, SpoutTask)]
        for up in self.tasks:
            for down in self.tasks:
                if down.component in self.layout.down[up.component]:
                    up.outputs[down.physical] = down.inputs[up.physical] = Channel(self, up, down)

    def new_ident(self) -> int:
        return next(self._idents)

    def destroyed(self, task: Task, message: Message) -> None:
        """A fault has taken a message."""
        if message.datum is not None:
            self.trace.destroyed.append((*task.physical, message.datum.uid, self.clock.now))
            self.ledger.hurt([message.datum])

    # -- what happens by the clock -------------------------------------------------------------------------

    def start(self) -> None:
        cycle = self.scenario.strategy.cycle()
        for index, fault in enumerate(self.scenario.failures):
            for moment in fault.moments(index, self.layout.draws, self.scenario.run.duration, cycle):
                self.clock.at(moment, control(Rank.FAULT, index), partial(self._strike, fault))
        for task in self.tasks:
            if isinstance(task, Bolt) and self.layout.stateful(task.component):
                self._start_windows(task.window, task)
        self.protocol.start()
        for spout in self.spouts:
            spout.plan_call()

    def _start_windows(self, window: Window, task: Bolt) -> None:
        """Ticks for the task; or markers, once for all tasks (they agree on the length)."""
        by_marker = self.layout.by_marker(task.component)
        if by_marker and self.marker_length is None:
            self.marker_length = window.length
            for spout in self.spouts:
                self._mark(spout, 1, window.length)
        elif not by_marker and window.length is not None:
            self._tick(task, 1)

    def _tick(self, task: Bolt, number: int) -> None:
        def tick() -> None:
            task.tick(number)
            self._tick(task, number + 1)

        self.clock.at(number * task.window.length, control(Rank.WINDOW, task.rank), tick)

    def _mark(self, spout: SpoutTask, number: int, length: int) -> None:
        def mark() -> None:
            spout.place(Rank.MARKER, partial(spout.send_marker, number))
            self._mark(spout, number + 1, length)

        self.clock.at(number * length, control(Rank.MARKER, spout.rank), mark)

    def _strike(self, fault: Fault) -> None:
        """Hit a task, a host with all that is on it, or the acker."""
        self.struck += 1
        if kind_of(fault) == "pause":
            for task in self.tasks:
                if self._is_hit(task, fault, False) and not self.protocol.spares(task):
                    task.stop(self.clock.now + fault.duration)
            self.protocol.struck(fault)
            return
        kind, down_for = kind_of(fault), fault.detection + fault.restart
        on_host = kind == "crash_host"
        found = [task for task in self.tasks if self._is_hit(task, fault, on_host)]
        hit = [task for task in found if not self.protocol.spares(task)]
        job = [task for task in hit if isinstance(task, Bolt)] and self.scenario.strategy.fails_together
        hit = [task for task in self.tasks if task in hit or (job and isinstance(task, Bolt))]
        self.outages.struck(self.struck - 1, [*hit, *self.protocol.hit(fault)], fault.detection)
        for task in hit:
            crash = on_host or (job and isinstance(task, Bolt))
            task.fail("crash_task" if crash else kind, down_for, fault.while_down)
        if on_host:
            self.protocol.host_failed(fault.host, down_for)
        elif fault.component == "acker":
            self.protocol.acker_failed(down_for)
        self.protocol.struck(fault)

    def _is_hit(self, task: Task, fault: Fault, on_host: bool) -> bool:
        if on_host:
            return self.layout.host[task.physical] == fault.host
        return task.physical == (fault.component, fault.task, fault.replica)

    # -- the end -------------------------------------------------------------------------------------------

    def finish(self) -> Trace:
        trace = self.trace
        for task in self.tasks:
            if self.layout.stateful(task.component):
                trace.final_state[task.physical] = task.state.keys()
        roots = {datum.root for _, datum in self.ledger.moving()}
        trace.in_flight = len(roots | self.protocol.waiting_roots())
        trace.ledger = self.ledger.settle()
        trace.outages = self.outages.moments()
        return trace.normal()


def run(scenario: Scenario, replication: int = 0) -> Trace:
    """One replication, one tuple at a time."""
    world = World(scenario, replication)
    world.start()
    world.clock.run(scenario.run.duration)
    return world.finish()
