"""A job: its tasks, the channels between them, its stores; how it starts, and what it tells.

The world makes one for a run, and another as its reference; mechanisms and detectors act on it. What all
tasks use is in `context.py`, what one task does in `bolt_task.py` and `spout_task.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.cluster import Deployment
from tideover.models.job.components import BoltConfig
from tideover.models.job.stores import StoreKind
from tideover.models.job.topology import Component
from tideover.models.operators.kinds import FLAT, LENGTHS, STARTS, Filter, Generic, SplitWords
from tideover.models.runtime.announcements import Announcer, Step
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import SENDER, Network, Outlet, Wire, describe, is_given
from tideover.models.runtime.context import Context, seat, share_cores, without_markers
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.order import bind, steps_of
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.supervision import Supervisor
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Action, Kernel, Rank
from tideover.sim.plane.plane import Plane, Rows
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints, Train

BOLTS = frozenset({"split_words", "filter", "generic", "forward"})
"""Bolts without state that the data plane knows."""
Tasks = dict[str, list[list[SpoutTask | BoltTask]]]
"""By component: of each task its replicas."""


class Wired:
    """The tasks of a job, and the channels between them.

    ``fed``: its spouts emit what they are given. ``tasks`` and ``spouts`` are in physical order, ``bolts``
    the replicas of each (component, task), ``wires`` all channels.
    """

    def __init__(self, context: Context, deployment: Deployment, fed: bool = False) -> None:
        self.context, self.deployment = context, deployment
        self.kernel, self.topology, self.draws = context.kernel, context.topology, context.draws
        self.needs, self.hooks = context.needs, context.hooks
        self.spouts: list[SpoutTask] = []
        self.bolts: dict[tuple[str, int], list[BoltTask]] = {}
        self.tasks: list[SpoutTask | BoltTask] = []
        self.wires: list[Wire] = []
        topology = self.topology
        copies = {c.name: 1 if c.is_spout else deployment.replicas[c.name] for c in topology.components}
        places = {c.name: c.tasks * copies[c.name] for c in topology.components}
        channels = sum(places[e.up.name] * places[e.down.name] for e in topology.edges)
        outlets = sum(places[e.up.name] for e in topology.edges)
        self.plane = Plane(sum(places.values()), channels, outlets, [0] * channels, len(topology.components))
        self.kernel.plane = self.plane
        limits = () if self.needs.batches else deployment.cluster.hosts
        nics = {host.number: host.nic for host in limits if host.nic is not None}
        self.network = Network(self.plane, self.draws, deployment.links, nics, deployment.moves)
        self.plane.before_more.append(self.network.draw)
        tasks: Tasks = {
            c.name: [
                [self._task(c, i, replica, fed) for replica in range(copies[c.name])] for i in range(c.tasks)
            ]
            for c in topology.components
        }
        self.bolt_tasks = [task for row in self.bolts.values() for task in row]
        self._connect(tasks)
        for c in topology.components:
            self._describe(c, copies)

    def _task(self, c: Component, index: int, replica: int, fed: bool) -> SpoutTask | BoltTask:
        """Make a task, which comes behind all others that there are."""
        seat = len(self.tasks), self.deployment.hosts[c.name, index, replica], index, replica
        task: SpoutTask | BoltTask
        if c.is_spout:
            task = SpoutTask(self.context, c, seat, self.plane, len(self.spouts), fed)
            self.spouts.append(task)
        else:
            task = BoltTask(self.context, c, seat, self.plane)
            task.before = self.tell_of_emissions
            self.bolts.setdefault((c.name, index), []).append(task)
        self.tasks.append(task)
        return task

    def _connect(self, tasks: Tasks) -> None:
        """Make the channels, and let each task know its outlets, and the channels of each."""
        plane = self.plane
        for down in self.bolt_tasks:
            down.c.first_input = len(self.wires)
            for up in (up for edge in down.component.inputs for row in tasks[edge.up.name] for up in row):
                wire = Wire(plane, len(self.wires), up, down)
                wire.logged = self.needs.log and isinstance(up, SpoutTask)
                wire.c.placing = plane.lib.OF_LOG if wire.logged else plane.lib.NO_PLACES
                self._set_latency(wire)
                self.wires.append(wire)
                down.inputs.append(wire)
                down.windows.epochs[down.input_of(wire)] = 0
            down.c.inputs = len(down.inputs)
        self.network.connect(self.wires)
        wires = {(wire.up.number, wire.down.number): wire for wire in self.wires}
        outlet = route = 0
        for up in self.tasks:
            for c in (up.c, plane.components[up.component.index]):
                c.first_outlet, c.outlets = outlet, len(up.component.outputs)
            for edge in up.component.outputs:
                rows = [[wires[up.number, down.number] for down in row] for row in tasks[edge.down.name]]
                up.outlets.append(Outlet(plane, plane.outlets[outlet], edge, rows, route, self.draws))
                outlet += 1
                for each in (each for row in rows for each in row):
                    plane.p.routes[route] = each.number
                    route += 1

    def _describe(self, component: Component, replicas: Mapping[str, int]) -> None:
        """Tell the data plane what all tasks of a component do."""
        plane, lib, c = self.plane, self.plane.lib, self.plane.components[component.index]
        c.bits, c.anchored, c.replicas = component.bits, component.anchored, replicas[component.name]
        if component.is_spout:
            return
        config = component.config
        assert isinstance(config, BoltConfig)
        bolt = config.bolt
        if self.needs.batches:  # in which all has been done when a task hands it on
            c.serves_at_once = 1
        else:
            describe(plane, config.service, c.service)
        if c.service.kind not in (lib.DRAW_CONSTANT, lib.DRAW_ELSEWHERE):
            due = plane.ffi.new("draws_due *")
            plane.keep(due)
            c.due = due
        c.service_key = int(self.draws.key(component.name, Purpose.SERVICE))
        if component.window is not None:
            c.operator = lib.TAKES_IN
        elif bolt.kind not in BOLTS or any(is_given(edge) for edge in component.outputs):
            c.operator = lib.MADE_ELSEWHERE
            plane.make_elsewhere()
        elif isinstance(bolt, SplitWords):
            c.operator, c.sentences = lib.TABLE, len(LENGTHS)
            for name, table in (("starts", STARTS), ("lengths", LENGTHS), ("words", FLAT)):
                plane.array(c, name, np.ascontiguousarray(table, np.int64))
        elif isinstance(bolt, Filter | Generic):
            c.select = int(self.draws.key(component.name, Purpose.SELECT))
            if isinstance(bolt, Filter):
                c.operator, c.part = lib.KEEPS, bolt.keep
            else:
                c.operator, c.whole = lib.MULTIPLIES, math.floor(bolt.selectivity)
                c.part = bolt.selectivity - c.whole
        else:
            c.operator = lib.FORWARDS
        copies = sum(e.down.tasks * replicas[e.down.name] for e in component.outputs)
        plane.p.most_made = max(plane.p.most_made, 2 * component.fan_out * max(1, copies))

    def _set_latency(self, wire: Wire) -> None:
        latency, c = self._latency_of(wire), wire.c
        self.plane.p.changed = 1
        describe(self.plane, latency, c.latency)
        if c.latency.kind != self.plane.lib.DRAW_CONSTANT:
            c.key = int(self.draws.key(wire.name, Purpose.LATENCY))
        self.network.follow(wire, latency)

    def _latency_of(self, wire: Wire) -> Distribution:
        """By where the tasks at its ends are now (ns)."""
        links, up, down = self.deployment.links, wire.up.host, wire.down.host
        if self.needs.batches and isinstance(wire.up, BoltTask):
            return Constant(value=0)
        if up == down:
            return links.local
        return links.pairs.get(f"{up}-{down}", links.pairs.get(f"{down}-{up}", links.latency))

    def tell_of_emissions(self) -> None:
        rows = self.plane.read(self.plane.p.emitted)
        for spout in self.spouts if len(rows) else ():
            mine = rows[rows["task"] == spout.number] if len(self.spouts) > 1 else rows
            if len(mine):
                spout.emitted(mine)

    def bolt(self, task: TaskView) -> BoltTask:
        return self._bolt(task.number)

    def _bolt(self, number: int) -> BoltTask:
        bolt = self.tasks[number]
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


class Storage:
    """A store of the scenario: one server for all, or one on each of ``hosts`` hosts.

    servers   in the order of their hosts
    """

    def __init__(self, servers: list[StoreServer], copies: int = 1) -> None:
        self.servers = servers
        self._copies = min(copies, len(servers))

    @classmethod
    def of(cls, kind: StoreKind, name: str, kernel: Kernel, hosts: int) -> Storage:
        places = range(hosts) if kind.per_host else (None,)
        return cls([kind.server(kernel, name, host) for host in places], kind.copies)

    @property
    def bytes(self) -> int:
        return sum(server.bytes for server in self.servers)

    def server(self, host: int) -> StoreServer:
        """The one that a task on ``host`` reads from."""
        return self.servers[host % len(self.servers)]

    def read(self, host: int, size: int, rank: int, done: Action, order: int = 0, operations: int = 1) -> int:
        """A task on ``host`` reads ``size`` bytes in so many ``operations``: see ``StoreServer.request``."""
        return self.server(host).request(size, rank, done, order, operations)

    def write(
        self, host: int, size: int, rank: int, done: Action, order: int = 0, operations: int = 1
    ) -> int:
        """It writes; ``done`` is called when the last copy is there."""
        left = self._copies

        def one_more() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        servers = [self.server(host + i) for i in range(self._copies)]
        return max(server.request(size, rank, one_more, order, operations) for server in servers)


class Job(Wired):
    """What runs in one simulation, without those who look at it. Plug a protocol in (mechanisms do it
    themselves), ``start`` it, and run its kernel.

    used       hosts that have, or have had, a task
    settlers   called when accounts are to know all that has happened
    store      where state goes of those who name no store
    """

    def __init__(self, context: Context, deployment: Deployment, fed: bool = False) -> None:
        super().__init__(context, deployment, fed)
        self.settlers: list[Callable[[], None]] = []
        self.used = set(deployment.hosts.values())
        self._shows = False
        for c in self.topology.components:
            if c.backend is not None:
                context.overhead[c.name] += c.backend.accesses * c.backend.access_cost
        context.cores = share_cores(self.plane, deployment, self.bolt_tasks, unshared=self.needs.batches)
        notices = {each: round(self._latency_of(each).mean_ns) for each in self.wires}
        bind(self.plane, self.tasks, deployment.bounds, notices)
        self.lay()
        store, kernel = deployment.store, context.kernel
        self.store = Storage([StoreServer(kernel, store.latency, store.bandwidth)])
        machines = len(deployment.cluster.hosts) if deployment.moves else 1 + max(self.used, default=0)
        self.stores = {n: Storage.of(kind, n, kernel, machines) for n, kind in deployment.stores.items()}
        context.servers = {None: self.store.servers} | {n: s.servers for n, s in self.stores.items()}
        context.resources += self.network.cards
        context.resources += [cores for cores in context.cores.values() if cores.cores is not None]
        context.resources += [server for each in self.stores.values() for server in each.servers]
        self.supervisor = Supervisor(context, deployment, self.tasks)
        plane, lib = self.plane, self.plane.lib
        plane.p.spout_bits = self.topology.spout_bits
        spout_of = {spout.number: spout for spout in self.spouts}
        plane.asked |= {
            lib.NEED_CALLS: lambda t: spout_of[t].look_ahead(),
            lib.NEED_CONTENT: lambda t: spout_of[t].make_contents(),
            lib.NEED_ROWS: self._read_log,
            lib.EXPIRED: lambda t: spout_of[t].expire(),
            lib.HAS_LOST: self._read_losses,
            lib.NEED_DRAWS: lambda t: self._bolt(t).draw_services(),
            lib.NEED_CHILDREN: lambda t: self._bolt(t).make_children(),
            lib.NEED_VERDICT: lambda t: self._bolt(t).judge(),
            lib.NEED_LATENCY: lambda _: self.network.draw(0),
        }
        self.kernel.handlers |= {
            lib.TURN: lambda t, when: self.tasks[t].turn(when),
            # a barrier has come that overtakes: a control action of this instant lets it
            lib.HURRY: lambda t, when: self.kernel.at_turn(when, Rank.CHECKPOINT, self._bolt(t).hurry, t),
            lib.MARK: lambda t, when: self._bolt(t).served_mark(when),
            lib.WINDOW_FULL: lambda t, when: self._bolt(t).window_is_full(when),
        }
        self.kernel.listeners.append(self._tell)

    @property
    def say(self) -> Announcer:
        return self.context.say

    def lay(self) -> None:
        """Say in which order tasks and cards move, and in which steps, by where tasks are now."""
        self.network.lay()
        marks = self.plane.p.n_cards and self.topology.marker_length is not None
        capped = any(spout.in_flight.most is not None for spout in self.spouts)
        at_once = bool(marks or capped)  # a marker passes a card in no time, and an ack the hosts
        rate = sum(1 / spout.arrivals.mean_gap_ns for spout in self.spouts)
        wired = self.plane, self.network, self.wires, self.bolt_tasks, self.deployment
        groups, self.plane.p.step = steps_of(*wired, rate, at_once)
        self.plane.group(groups)

    def lead(self, channels: Sequence[Wire], before: Sequence[tuple[int, int]]) -> None:
        """Ends of these channels, which were between those hosts, have moved."""
        for each, hosts in zip(channels, before, strict=True):
            self.network.lead(each, hosts)
            self._set_latency(each)
        self.network.draw(0)
        seat(self.context.cores, self.bolt_tasks)
        self.supervisor.links.moved(channels)
        self.lay()

    def plug(self, hooks: Hooks) -> None:
        self.hooks.plug(hooks)

    def start(self) -> None:
        needs, overhead = self.needs, self.context.overhead
        for component in self.topology.components:
            c = self.plane.components[component.index]
            c.charge = 0 if c.serves_at_once else overhead[component.name]
        for spout in self.spouts:
            spout.c.charge = 0 if spout.fed else overhead[spout.component.name]
        for task in self.bolt_tasks:
            c = self.plane.components[task.component.index]
            task.c.serialises = self.network.costs and not c.serves_at_once
            task.c.mute = task.mute
            window = task.component.window
            if window is None or window.beat is None or (needs.batches and window.by == "event"):
                continue
            if task.windows.trigger in ("tick", "watermark"):
                self.kernel.every(window.beat, window.beat, Rank.WINDOW, partial(_tick, task), task.number)
        length = self.topology.marker_length
        if length is not None:
            for spout in self.spouts:
                self.kernel.every(length, length, Rank.MARKER, partial(_send_marker, spout), spout.number)
        self.supervisor.start()
        self.kernel.listeners += [lambda now: self.hooks.moved(now), lambda now: self.say.moved(now)]
        self.hooks.start()
        capped = any(spout.in_flight.most is not None for spout in self.spouts)
        if capped or needs.look_ups:
            self.lay()  # some wait for what is done elsewhere
        for task in self.bolt_tasks if capped else ():
            if task.component.trigger == "watermark" or task.component.saves_ids:
                task.c.fills = 1  # Python acks at once what is late
        self.network.draw(0)

    def store_named(self, name: str | None) -> Storage:
        """The store of that name; None: that of those who name none."""
        return self.store if name is None else self.stores[name]

    def count(self, reach: Callable[[int], int]) -> None:
        """The data plane counts; ``reach`` says for how far there is room for that."""
        self.kernel.reach = reach
        measured, withheld = self.topology.measured, self.context.withheld
        for task in self.bolt_tasks:
            component = task.component
            ends = component.ends_roots and not component.window
            task.c.measures, task.c.outputs = component is measured, ends and task not in withheld
        several = [replicas for replicas in self.bolts.values() if len(replicas) > 1]
        self._leading = [
            (each[0].c.measures, each[0].c.outputs, each)
            for each in several
            if each[0].c.measures or each[0].c.outputs
        ]
        if several:
            self.kernel.before = self._choose_leads

    def _choose_leads(self) -> None:
        """Of several replicas one is measured, and puts out: who that is control actions may change."""
        for measures, outputs, replicas in self._leading:
            for task in replicas:
                leads = self.is_lead(task)
                task.c.measures, task.c.outputs = measures and leads, outputs and leads

    def log(self, emitted: bool, processed: bool, completed: bool = False) -> None:
        """What is logged, besides retries, and what states take in."""
        lib = self.plane.lib
        self.plane.log(self.plane.p.completed)
        self.plane.p.logs_completed = completed
        self.plane.p.logs_emitted = lib.ALL_LOGGED if emitted else lib.RETRIES_LOGGED
        for task in self.bolt_tasks:
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
            if isinstance(task, BoltTask):
                task.log_all(sent=True)
            else:
                task.shows_sent = True

    def note_senders(self, notes: Callable[[BoltView, int, Train], None]) -> None:
        """Let tuples say where they have come from, and tell ``notes`` of the end markers that have come."""
        self.plane.senders = SENDER, np.array([each.up.number + 1 for each in self.wires] or [0], np.int64)
        for task in self.bolt_tasks:
            task.notes = notes
            looks = task.c.seen or task.c.bounded & self.plane.lib.ISOLATES
            task.c.bounded |= self.plane.lib.SHOWS if looks else 0

    def catch_up(self) -> None:
        self.tell_of_emissions()
        for task in self.bolt_tasks:
            task.catch_up()
            if task.notes is not None:
                for train in (*task.queue.trains(every_marker=True), *task.gate.aside, *task.gate.held):
                    task.note_marks(train)
        for settle in self.settlers:
            settle()

    def show(self, see: Callable[[BoltView, Train, Ints], None], at_once: bool) -> None:
        """From now on tell ``see`` of all that bolts have done; ``at_once``: before any control action."""
        self._shows |= at_once
        for task in self.bolt_tasks:
            task.show(see)

    def _tell(self, now: int) -> None:
        """Data has moved: tell what control actions may have to know."""
        self.tell_of_losses()
        if self.hooks.has("emitted"):
            self.tell_of_emissions()
        if self._shows:
            self.catch_up()

    def _read_log(self, task: int) -> None:
        """The log of a task is full, or that of emissions."""
        p = self.plane.p
        if p.emitted.n < p.emitted.room:
            self._bolt(task).log_is_full()
        elif not self.plane.more_rows(p.emitted):
            self.tell_of_emissions()

    def _read_losses(self, _: int) -> None:
        p = self.plane.p
        logs = (p.lost, p.overflowed, p.discarded, p.resent)
        if not any(self.plane.more_rows(log) for log in logs if log.n >= log.room):
            self.tell_of_losses()

    def tell_of_losses(self) -> None:
        """Tuples that found their receiver down or full, or were lost on a wire; and those sent again."""
        p, context = self.plane.p, self.context
        if not (p.lost.n or p.overflowed.n or p.discarded.n or p.resent.n):
            return
        for task, train, outage in self._by_task(p.lost):
            context.destroy(task, [train], arrived=True, outage=outage)
        for task, train, _ in self._by_task(p.overflowed):
            context.overflow(task, train)
        rows = self.plane.read(p.discarded)
        for number in sorted(set(rows["task"].tolist())):
            self._tell_of_discarded(self._bolt(number), rows[rows["task"] == number])
        rows = self.plane.read(p.resent)
        for number, source in dict.fromkeys(zip(rows["task"].tolist(), rows["source"].tolist(), strict=True)):
            bolt, mine = self._bolt(number), (rows["task"] == number) & (rows["source"] == source)
            self.say.replayed(bolt, self.plane.train(rows[mine]), bolt.inputs[source])

    def _tell_of_discarded(self, task: BoltTask, rows: Rows) -> None:
        plane, say = self.plane, self.say
        task.note_marks(plane.train(rows, task.number))
        rows = rows[rows["mark"] == 0]
        repeated, gone = (rows["arrival"] == why for why in (plane.lib.REPEATED, plane.lib.COPY_GONE))
        for tell, which in ((say.discarded, ~repeated), (say.repeated, repeated)):
            if which.any():
                tell(task, plane.train(rows[which], task.number))
        if gone.any():
            say.copies_lost(task, rows["uid"][gone])

    def _by_task(self, log: Any) -> Iterator[tuple[BoltTask, Train, int | None]]:
        """What is in a log of lost tuples, which is empty then; and which outage lost them on their way."""
        rows = self.plane.read(log)
        for number, source in sorted({(row["task"], min(0, row["source"])) for row in rows}):
            found = (rows["task"] == number) & (np.minimum(rows["source"], 0) == source)
            train = self.plane.train(rows[found], number)
            self._bolt(number).note_marks(train)
            yield self._bolt(number), train, -source - 1 if source < 0 else None

    def step(self, who: str, what: str, detail: str = "", to: str = "") -> None:
        """Say what a control action does now (`tideover.models.runtime.announcements.Step`)."""
        if self.say.hears_steps:
            self.say.step(Step(self.kernel.now, who, what, detail, to, self.kernel.acting))


def _tick(task: BoltTask, i: int) -> None:
    task.windows.tick(i + 1)


def _send_marker(spout: SpoutTask, i: int) -> None:
    if spout.up:
        spout.enqueue(Rank.MARKER, lambda: spout.send_markers(i + 1))
