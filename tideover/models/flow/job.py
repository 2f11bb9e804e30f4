"""A job whose tuples the compiled data plane moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tideover.models.flow.bolt import FlowBolt
from tideover.models.flow.clock import Clock
from tideover.models.flow.components import describe_component
from tideover.models.flow.cores import seat, share_cores, sharing
from tideover.models.flow.latencies import Latencies
from tideover.models.flow.laws import describe
from tideover.models.flow.line import bind
from tideover.models.flow.network import FlowNetwork
from tideover.models.flow.order import lay
from tideover.models.flow.outlet import FlowOutlet
from tideover.models.flow.outside import make_children
from tideover.models.flow.spout import FlowSpout
from tideover.models.flow.wire import SENDER, Wire
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train


class FlowJob(Job):
    """A job, wired: its tasks, channels and tables are in ``plane``."""

    plane: Plane
    _shows = False

    def _wire(self, fed: bool) -> None:
        assert isinstance(self.kernel, Clock)
        topology, replicas = self.topology, self.deployment.replicas
        copies = {c.name: 1 if c.is_spout else replicas[c.name] for c in topology.components}
        places = {c.name: c.tasks * copies[c.name] for c in topology.components}
        channels = sum(places[e.up.name] * places[e.down.name] for e in topology.edges)
        outlets = sum(places[e.up.name] for e in topology.edges)
        self.plane = Plane(sum(places.values()), channels, outlets, [0] * channels, len(topology.components))
        self.kernel.plane = self.plane
        self.latencies = Latencies(self.plane, self.draws)
        self.plane.before_more.append(self.latencies.have)
        limits = () if self.needs.batches else self.deployment.cluster.hosts
        nics = {host.number: host.nic for host in limits if host.nic is not None}
        moves = self.deployment.moves
        self.ways = FlowNetwork(self.plane, self.deployment.links, nics, moves)
        self.network = self.ways  # type: ignore[assignment]
        senders = self._make_tasks(copies, fed)
        self._connect(senders)
        for c in topology.components:
            describe_component(self, self.plane, c, copies[c.name])
        self._answer()

    def _make_tasks(self, copies: dict[str, int], fed: bool) -> dict[str, list[list[Any]]]:
        """All tasks in physical order; returns them by component, task and replica."""
        hosts, found = self.deployment.hosts, {}
        spouts = number = 0
        for c in self.topology.components:
            rows: list[list[Any]] = []
            for index in range(c.tasks):
                row: list[Any] = []
                for replica in range(copies[c.name]):
                    host = hosts[c.name, index, replica]
                    if c.is_spout:
                        task: Any = FlowSpout(self.context, c, index, spouts, host, fed, self.plane, number)
                        self.spouts.append(task)
                        spouts += 1
                    else:
                        task = FlowBolt(self.context, c, index, replica, host, self.plane, number)
                        task.c.spout = -1
                        task.before = self.tell_of_emissions
                    task.c.component, task.c.replica = c.index, replica
                    row.append(task)
                    number += 1
                if not c.is_spout:
                    self.bolts[c.name, index] = row
                rows.append(row)
            found[c.name] = rows
        return found

    def _connect(self, senders: dict[str, list[list[Any]]]) -> None:
        """All channels, input by input of each task, and what each task sends over each edge."""
        lib, number = self.plane.lib, 0
        wires: dict[tuple[Any, Any], Wire] = {}
        for c in self.topology.components:
            for down in [task for row in senders[c.name] for task in row] if c.inputs else ():
                down.c.first_input = number
                for edge in c.inputs:
                    for up in (task for row in senders[edge.up.name] for task in row):
                        wires[up, down] = self._make_wire(up, down, number)
                        number += 1
                down.c.inputs = len(down.inputs)
        self.wires = list(wires.values())
        """All channels."""
        self.ways.connect(self.wires)
        outlet = route = 0
        for up in (task for c in self.topology.components for row in senders[c.name] for task in row):
            up.c.first_outlet, up.c.outlets = outlet, len(up.component.outputs)
            c = self.plane.components[up.component.index]
            c.first_outlet, c.outlets = outlet, len(up.component.outputs)
            for edge in up.component.outputs:
                rows = [[wires[up, down] for down in row] for row in senders[edge.down.name]]
                up.outlets.append(FlowOutlet(edge, rows))
                up.outlets[-1].describe(self.plane, self.plane.outlets[outlet], route, self.draws)
                outlet += 1
                for wire in (wire for row in rows for wire in row):
                    self.plane.p.routes[route] = wire.number
                    route += 1
        assert lib is not None

    def _make_wire(self, up: Any, down: FlowBolt, number: int) -> Wire:
        wire = Wire(self.plane, number, up, down, len(down.inputs), 0, up.host != down.host)
        wire.message_bytes = self.ways.message_bytes(wire)
        c = wire.c
        c.up, c.down, c.position, c.stretch = up.number, down.number, wire.position, 1.0
        wire.logged = self.needs.log and isinstance(up, FlowSpout)
        c.placing = self.plane.lib.OF_LOG if wire.logged else self.plane.lib.NO_PLACES
        self._set_latency(wire)
        down.inputs.append(wire)
        down.windows.epochs[down._input(wire)] = 0  # type: ignore[arg-type]
        return wire

    def _set_latency(self, wire: Wire) -> None:
        """By where its ends are."""
        latency, c = self._latency(wire.up, wire.down), wire.c
        self.plane.p.changed = 1
        describe(self.plane, latency, c.latency)
        if c.latency.kind != self.plane.lib.DRAW_CONSTANT:
            c.key = int(self.draws.key(f"{wire.up.name}->{wire.down.name}", Purpose.LATENCY))
        self.latencies.follow(wire, latency)

    def _answer(self) -> None:
        """Who sees to what the data plane asks for."""
        plane, lib = self.plane, self.plane.lib
        plane.p.spout_bits = self.topology.spout_bits
        plane.asked |= {
            lib.NEED_CALLS: lambda t: self._spout(t).look_ahead(),
            lib.NEED_CONTENT: lambda t: self._spout(t).make_contents(),
            lib.NEED_ROWS: self._read_log,
            lib.EXPIRED: lambda t: self._spout(t).expire(),
            lib.HAS_LOST: lambda _: self._read_losses(),
            lib.NEED_DRAWS: self._draw_services,
            lib.NEED_CHILDREN: lambda t: make_children(self._bolt(t), plane, self.draws),
            lib.NEED_LATENCY: lambda _: self.latencies.have(0),
        }
        assert isinstance(self.kernel, Clock)
        self.kernel.handlers |= {
            lib.TURN: lambda t, when: self.tasks[t].turn(when),  # type: ignore[union-attr]
            lib.HURRY: lambda t, when: self._bolt(t).barrier_has_come(when),
            lib.MARK: lambda t, when: self._bolt(t).served_mark(when),
            lib.WINDOW_FULL: lambda t, when: self._bolt(t).window_is_full(when),
        }
        self.kernel.listeners.append(self._tell)

    def _spout(self, number: int) -> FlowSpout:
        task = self.tasks[number]
        assert isinstance(task, FlowSpout)
        return task

    def _bolt(self, number: int) -> FlowBolt:
        task = self.tasks[number]
        assert isinstance(task, FlowBolt)
        return task

    def _bring_together(self) -> None:
        """Tasks feel one another that share cores, or wait for room in queues."""
        plane, bolts = self.plane, self.bolt_tasks
        shared = frozenset() if self.needs.batches else sharing(self.deployment)
        self.context.cores = share_cores(plane, self.deployment, bolts, shared)  # type: ignore[assignment, arg-type]
        notices = {wire: self._notice(wire) for wire in self.wires}
        bind(plane, self.tasks, self.deployment.bounds, notices)
        self.lay()

    def lay(self) -> None:
        """Say in which order tasks and cards move, and in which steps, by where tasks are now."""
        self.ways.lay()
        lay(self, self.plane, self.wires, self.ways)

    def lead(self, channels: Sequence[Any], before: Sequence[tuple[int, int]]) -> None:
        for wire, hosts in zip(channels, before, strict=True):
            self.ways.lead(wire, hosts)
            self._set_latency(wire)
        self.latencies.have(0)
        seat(self.context.cores, self.bolt_tasks)  # type: ignore[arg-type]
        self.supervisor.links.moved(channels)
        self.lay()

    def _notice(self, wire: Wire) -> int:
        """When the sender learns that there is room for what goes by this channel (ns)."""
        return round(self._latency(wire.up, wire.down).mean_ns)

    def count(self, reach: Callable[[int], int]) -> None:
        """The data plane counts; ``reach`` says for how far there is room for that."""
        assert isinstance(self.kernel, Clock)
        self.kernel.reach = reach
        self._leading = [
            (component is self.topology.measured, self._puts_out(replicas[0]), replicas)
            for replicas in self.bolts.values()
            for component in [replicas[0].component]
        ]
        if any(len(replicas) > 1 for replicas in self.bolts.values()):
            self.kernel.before = self._choose_leads
        for task in self.bolt_tasks:
            assert isinstance(task, FlowBolt)
            task.c.measures = task.component is self.topology.measured
            task.c.outputs = self._puts_out(task)

    def _puts_out(self, task: BoltView) -> bool:
        """Whether readers see at once what a task is done with."""
        component = task.component
        return component.ends_roots and not component.window and task not in self.context.withheld

    def _choose_leads(self) -> None:
        """Of several replicas one is measured, and puts out: who that is control actions may change."""
        for measures, outputs, replicas in self._leading:
            if (measures or outputs) and len(replicas) > 1:
                for task in replicas:
                    leads = self.is_lead(task)
                    assert isinstance(task, FlowBolt)
                    task.c.measures, task.c.outputs = measures and leads, outputs and leads

    def log(self, emitted: bool, processed: bool, completed: bool = False) -> None:
        """What is logged, besides retries, and what states take in."""
        lib = self.plane.lib
        self.plane.log(self.plane.p.completed)
        self.plane.p.logs_completed = completed
        self.plane.p.logs_emitted = lib.ALL_LOGGED if emitted else lib.RETRIES_LOGGED
        for task in self.bolt_tasks:
            assert isinstance(task, FlowBolt)
            task.sum_up()
            if task in self.context.withheld and not task.component.window:
                task.log_all(sent=False)
        if processed:
            self.log_all()

    def log_all(self) -> None:
        """From now on log all that spouts and bolts do, and tell what they send."""
        self.plane.p.logs_emitted = self.plane.lib.ALL_LOGGED
        if not self.plane.p.acks.room:
            self.plane.log(self.plane.p.acks)
        for task in self.tasks:
            if isinstance(task, FlowBolt):
                task.log_all(sent=True)
            else:
                task.shows_sent = True  # type: ignore[union-attr]

    def note_senders(self, notes: Callable[[BoltView, int, Train], None]) -> None:
        """Let tuples say where they have come from, and tell ``notes`` of the end markers that have come."""
        wires: list[Any] = [wire for task in self.bolt_tasks for wire in task.inputs]
        numbers = np.zeros(max(1, len(wires)), np.int64)
        for wire in wires:
            numbers[wire.number] = wire.up.number + 1
        self.plane.senders = SENDER, numbers
        for task in self.bolt_tasks:
            assert isinstance(task, FlowBolt)
            task.notes = notes
            task.c.bounded |= self.plane.lib.SHOWS if task.c.bounded else 0

    def start(self) -> None:
        for component in self.topology.components:
            c = self.plane.components[component.index]
            c.charge = 0 if c.serves_at_once else self.context.overhead.get(component.name, 0)
            for task in self.bolt_tasks:
                if task.component is component:
                    task.c.serialises = self.ways.costs and not c.serves_at_once  # type: ignore[attr-defined]
                    task.c.mute = task._mute  # type: ignore[attr-defined]
        super().start()
        if self.needs.look_ups or any(spout.in_flight.most is not None for spout in self.spouts):
            self.lay()  # some wait for what is done elsewhere
        self.latencies.have(0)

    # -- what the data plane asks for ------------------------------------------------------------------------

    def _read_log(self, task: int) -> None:
        """The log of a task is full, or that of emissions."""
        p = self.plane.p
        if p.emitted.n >= p.emitted.room:
            if not self.plane.more_rows(p.emitted):
                self.tell_of_emissions()
        else:
            self._bolt(task).log_is_full()

    def catch_up(self) -> None:
        """Tell all that the data plane has logged."""
        self.tell_of_emissions()
        for task in self.bolt_tasks:
            assert isinstance(task, FlowBolt)
            task.catch_up()
            for train in task.queue.trains() if task.notes is not None else ():
                task.note_marks(train)
            for train in (*task.gate.aside, *task.gate.held) if task.notes is not None else ():
                task.note_marks(train)
        for settle in self.settlers:
            settle()

    def show(self, see: Callable[[BoltView, Train, Ints], None]) -> None:
        """From now on tell ``see`` of all that bolts have done, before any control action."""
        self._shows = True
        for task in self.bolt_tasks:
            assert isinstance(task, FlowBolt)
            task.show(see)

    def _tell(self, now: int) -> None:
        """Data has moved: tell what control actions may have to know."""
        self.tell_of_losses()
        if self.hooks.has("emitted"):
            self.tell_of_emissions()
        if self._shows:
            self.catch_up()

    def tell_of_emissions(self) -> None:
        """Tell of the roots that were emitted."""
        if not self.plane.p.emitted.n:
            return
        rows = self.plane.read(self.plane.p.emitted)
        for spout in self.spouts:
            mine = rows[rows["task"] == spout.number] if len(self.spouts) > 1 else rows
            if len(mine):
                assert isinstance(spout, FlowSpout)
                spout.emitted(mine)

    def _read_losses(self) -> None:
        """A log of tuples that are lost, or sent again, is full."""
        p = self.plane.p
        logs = (p.lost, p.overflowed, p.discarded, p.resent)
        if not any(self.plane.more_rows(log) for log in logs if log.n >= log.room):
            self.tell_of_losses()

    def tell_of_losses(self) -> None:
        """Tell of the tuples that found their receiver down, a wire that loses them, or a queue full; and of
        those that were sent again.
        """
        p, context = self.plane.p, self.context
        if not (p.lost.n or p.overflowed.n or p.discarded.n or p.resent.n):
            return
        for task, train, outage in self._by_task(p.lost):
            context.destroy(task, [train], arrived=True, outage=outage)
        for task, train, _ in self._by_task(p.overflowed):
            context.overflow(task, train)
        self._tell_of_discarded()
        self._tell_of_resent()

    def _tell_of_discarded(self) -> None:
        plane, say = self.plane, self.context.say
        if not plane.p.discarded.n:
            return
        rows = plane.read(plane.p.discarded)
        for number in sorted(set(rows["task"].tolist())):
            task, mine = self._bolt(number), rows[rows["task"] == number]
            task.note_marks(plane.train(mine, number))
            mine = mine[mine["mark"] == 0]
            repeated = mine["arrival"] == plane.lib.REPEATED
            for tell, which in ((say.discarded, ~repeated), (say.repeated, repeated)):
                if which.any():
                    tell(task, plane.train(mine[which], number))
            gone = mine["uid"][mine["arrival"] == plane.lib.COPY_GONE]
            if len(gone):
                say.copies_lost(task, gone)

    def _tell_of_resent(self) -> None:
        if not self.plane.p.resent.n:
            return
        rows = self.plane.read(self.plane.p.resent)
        for number, source in dict.fromkeys(zip(rows["task"].tolist(), rows["source"].tolist(), strict=True)):
            task, mine = self._bolt(number), (rows["task"] == number) & (rows["source"] == source)
            wire: Any = task.inputs[source]
            self.context.say.replayed(task, self.plane.train(rows[mine]), wire)

    def _by_task(self, log: Any) -> Iterator[tuple[FlowBolt, Train, int | None]]:
        """What is in a log of lost tuples, which is empty then; and which outage lost them on their way."""
        if not log.n:
            return
        rows = self.plane.read(log)
        for number, source in sorted({(row["task"], min(0, row["source"])) for row in rows}):
            found = (rows["task"] == number) & (np.minimum(rows["source"], 0) == source)
            train = self.plane.train(rows[found], number)
            self._bolt(number).note_marks(train)
            yield self._bolt(number), train, -source - 1 if source < 0 else None

    def _draw_services(self, number: int) -> None:
        """Draw the services of all that waits at a task, or comes to it."""
        plane, task = self.plane, self._bolt(number)
        train, which = plane.waiting(number)
        bits = self.draws.bits(task.component.name, Purpose.SERVICE, train.uid, train.attempt)
        plane.work[which] = task._service.sample(bits)
