"""How a job is wired: its tasks, the channels between them, and what each task sends over each edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tideover.models.job.cluster import Deployment
from tideover.models.job.topology import Component
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Latencies, Network, Outlet, Wire, describe
from tideover.models.runtime.components import describe_component
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.node import Seat
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Purpose
from tideover.sim.plane.plane import Plane
from tideover.sim.train import Ints, Train

Rows = Sequence[Sequence[SpoutTask | BoltTask]]
"""The tasks of a component, with their replicas."""


class Wired:
    """The tasks of a job, and the channels between them.

    ``fed``: its spouts emit what they are given.

    kernel     the clock, and control events
    plane      what moves its data
    spouts     tasks of spouts, in physical order
    bolts      replicas of each (component, task)
    tasks      all physical tasks, in physical order
    wires      all channels
    network    the cards of hosts
    latencies  those that Python draws
    """

    def __init__(self, context: Context, deployment: Deployment, fed: bool = False) -> None:
        self.context, self.deployment = context, deployment
        self.kernel, self.topology, self.draws = context.kernel, context.topology, context.draws
        self.needs, self.hooks = context.needs, context.hooks
        self.spouts: list[SpoutTask] = []
        self.bolts: dict[tuple[str, int], list[BoltTask]] = {}
        self.tasks: list[SpoutTask | BoltTask] = []
        topology, replicas = self.topology, deployment.replicas
        copies = {c.name: 1 if c.is_spout else replicas[c.name] for c in topology.components}
        places = {c.name: c.tasks * copies[c.name] for c in topology.components}
        channels = sum(places[e.up.name] * places[e.down.name] for e in topology.edges)
        outlets = sum(places[e.up.name] for e in topology.edges)
        self.plane = Plane(sum(places.values()), channels, outlets, [0] * channels, len(topology.components))
        self.kernel.plane = self.plane
        self.latencies = Latencies(self.plane, self.draws)
        self.plane.before_more.append(self.latencies.have)
        limits = () if self.needs.batches else deployment.cluster.hosts
        nics = {host.number: host.nic for host in limits if host.nic is not None}
        self.network = Network(self.plane, deployment.links, nics, deployment.moves)
        senders = {c.name: _make_tasks(self, c, copies[c.name], fed) for c in topology.components}
        self.wires = _connect(self, senders)
        self.network.connect(self.wires)
        _lead_to(self, senders, {(wire.up.number, wire.down.number): wire for wire in self.wires})
        for c in topology.components:
            describe_component(context, self.plane, c, copies)
        self.bolt_tasks = [task for row in self.bolts.values() for task in row]

    def tell_of_emissions(self) -> None:
        """Tell of the roots that were emitted."""
        raise NotImplementedError

    def bolt(self, task: TaskView) -> BoltTask:
        """The task that a view of a bolt's task shows."""
        bolt = self.tasks[task.number]
        assert isinstance(bolt, BoltTask)
        return bolt

    def is_lead(self, task: BoltView) -> bool:
        """Whether ``task`` is the replica that is measured: the live one with the lowest number."""
        replicas = self.bolts[task.component.name, task.index]
        if len(replicas) == 1:
            return True
        heard = [r for r in replicas if not r.silent] or replicas
        return next((r for r in heard if r.available), heard[0]) is self.tasks[task.number]

    def on_the_way(self) -> dict[str, list[Train]]:
        """Tuples of roots in queues, in service and on the wire, by the component they are at or go to."""
        at: dict[str, list[Train]] = {c.name: [] for c in self.topology.components}
        for component, train in self._under_way():
            if component.anchored:
                at[component.name].append(without_markers(train))
        return at

    def end_markers(self) -> set[int]:
        """Numbers of the windows of which a marker is in a queue or on the wire."""
        marks = (train.mark for _, train in self._under_way() if train.mark is not None)
        return {number for mark in marks for number in mark[mark > 0].tolist()}

    def _under_way(self) -> Iterator[tuple[Component, Train]]:
        """All that is in queues, in service and on the wire, with the component that it is at or goes to."""
        for task in self.bolt_tasks:
            gate, coming = task.gate, self.plane.coming(task.number)
            for train in (*task.queue.trains(), *gate.aside, *gate.held, *gate.unreadable(), coming):
                yield task.component, train
        for sender in self.tasks:
            for channel, train in sender.line.trains() if sender.line is not None else ():
                yield channel.down.component, train

    def can_be_emitted(self) -> Ints:
        """Roots that wait for a retry, or that a holder can still emit again."""
        waiting = [roots for spout in self.spouts for roots, _ in spout.retries]
        kept = [holder.roots() for holder in self.context.holders]
        return np.concatenate([np.zeros(0, np.int64), *waiting, *kept])


def _make_tasks(job: Wired, c: Component, copies: int, fed: bool) -> Rows:
    """The tasks of a component, which come behind all others that there are."""
    hosts, context = job.deployment.hosts, job.context
    rows: list[list[SpoutTask | BoltTask]] = []
    for index in range(c.tasks):
        row: list[SpoutTask | BoltTask] = []
        for replica in range(copies):
            seat = Seat(len(job.tasks), hosts[c.name, index, replica], index, replica)
            if c.is_spout:
                spout = SpoutTask(context, c, seat, job.plane, len(job.spouts), fed)
                job.spouts.append(spout)
                row.append(spout)
            else:
                bolt = BoltTask(context, c, seat, job.plane)
                bolt.before = job.tell_of_emissions
                job.bolts.setdefault((c.name, index), []).append(bolt)
                row.append(bolt)
            job.tasks.append(row[-1])
        rows.append(row)
    return rows


def _connect(job: Wired, senders: dict[str, Rows]) -> list[Wire]:
    wires: list[Wire] = []
    for c in job.topology.components:
        for down in [task for row in senders[c.name] for task in row] if c.inputs else ():
            assert isinstance(down, BoltTask)
            down.c.first_input = len(wires)
            for edge in c.inputs:
                for up in (task for row in senders[edge.up.name] for task in row):
                    wires.append(_make_wire(job, up, down, len(wires)))
            down.c.inputs = len(down.inputs)
    return wires


def _make_wire(job: Wired, up: SpoutTask | BoltTask, down: BoltTask, number: int) -> Wire:
    wire = Wire(job.plane, number, up, down, len(down.inputs), up.host != down.host)
    wire.message_bytes = job.network.message_bytes(wire)
    c = wire.c
    c.up, c.down, c.position, c.stretch = up.number, down.number, wire.position, 1.0
    wire.logged = job.needs.log and isinstance(up, SpoutTask)
    c.placing = job.plane.lib.OF_LOG if wire.logged else job.plane.lib.NO_PLACES
    set_latency(job, wire)
    down.inputs.append(wire)
    down.windows.epochs[down.input_of(wire)] = 0
    return wire


def _lead_to(job: Wired, senders: dict[str, Rows], wires: dict[tuple[int, int], Wire]) -> None:
    outlet = route = 0
    for up in job.tasks:
        up.c.first_outlet, up.c.outlets = outlet, len(up.component.outputs)
        c = job.plane.components[up.component.index]
        c.first_outlet, c.outlets = outlet, len(up.component.outputs)
        for edge in up.component.outputs:
            rows = [[wires[up.number, down.number] for down in row] for row in senders[edge.down.name]]
            up.outlets.append(Outlet(edge, rows))
            up.outlets[-1].describe(job.plane, job.plane.outlets[outlet], route, job.draws)
            outlet += 1
            for each in (each for row in rows for each in row):
                job.plane.p.routes[route] = each.number
                route += 1


def set_latency(job: Wired, wire: Wire) -> None:
    latency, c = latency_of(job, wire.up, wire.down), wire.c
    job.plane.p.changed = 1
    describe(job.plane, latency, c.latency)
    if c.latency.kind != job.plane.lib.DRAW_CONSTANT:
        c.key = int(job.draws.key(f"{wire.up.name}->{wire.down.name}", Purpose.LATENCY))
    job.latencies.follow(wire, latency)


def latency_of(job: Wired, up: SpoutTask | BoltTask, down: BoltTask) -> Distribution:
    """Of messages from one task to another, by where they are now (ns)."""
    links = job.deployment.links
    if job.needs.batches and isinstance(up, BoltTask):
        return Constant(value=0)
    if up.host == down.host:
        return links.local
    pair = links.pairs.get(f"{up.host}-{down.host}", links.pairs.get(f"{down.host}-{up.host}"))
    return links.latency if pair is None else pair
