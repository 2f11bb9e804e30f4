"""A job, wired and running, and its stores at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tideover.models.job.cluster import Deployment
from tideover.models.job.stores import StoreKind
from tideover.models.runtime.announcements import Announcer, Step
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import SENDER, Wire
from tideover.models.runtime.components import make_children
from tideover.models.runtime.context import Context, seat, share_cores, sharing
from tideover.models.runtime.hooks import Hooks
from tideover.models.runtime.order import bind, lay
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.supervision import Supervisor
from tideover.models.runtime.views import BoltView
from tideover.models.runtime.wiring import Wired, latency_of, set_latency
from tideover.sim.draws import Purpose
from tideover.sim.kernel import Action, Kernel, Rank
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints, Train


class Storage:
    """A store of the scenario: one server for all, or one on each of ``hosts`` hosts.

    servers   in the order of their hosts
    """

    def __init__(self, servers: list[StoreServer], copies: int = 1) -> None:
        self.servers = servers
        self._copies = min(copies, len(servers))

    @classmethod
    def of(cls, kind: StoreKind, name: str, kernel: Kernel, hosts: int) -> Storage:
        """A store of this kind, in a cluster of so many hosts."""
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

        call = done if self._copies == 1 else one_more
        servers = [self.server(host + i) for i in range(self._copies)]
        return max(server.request(size, rank, call, order, operations) for server in servers)


class Job(Wired):
    """What runs in one simulation, without those who look at it.

    ``fed``: its spouts emit what they are given. Plug a protocol in (mechanisms do it themselves), ``start``
    it, and run its kernel.

    used       hosts that have, or have had, a task
    settlers   called when accounts are to know all that has happened
    """

    def __init__(self, context: Context, deployment: Deployment, fed: bool = False) -> None:
        super().__init__(context, deployment, fed)
        self.settlers: list[Callable[[], None]] = []
        self.used = set(deployment.hosts.values())
        self._shows = False
        self._answer()
        for c in self.topology.components:
            if c.backend is not None and c.backend.accesses * c.backend.access_cost:
                charged = context.overhead.get(c.name, 0)
                context.overhead[c.name] = charged + c.backend.accesses * c.backend.access_cost
        self._bring_together()
        context.resources += self.network.cards
        context.resources += [cores for cores in context.cores.values() if cores.cores is not None]
        store = deployment.store
        self.store = Storage([StoreServer(context.kernel, store.latency, store.bandwidth)])
        """Where state goes of those who name no store."""
        machines = 1 + max(deployment.hosts.values(), default=0)
        if deployment.moves:
            machines = len(deployment.cluster.hosts)
        self.stores = {
            name: Storage.of(kind, name, context.kernel, machines) for name, kind in deployment.stores.items()
        }
        context.servers = {None: self.store.servers} | {n: s.servers for n, s in self.stores.items()}
        context.resources += [server for each in self.stores.values() for server in each.servers]
        self.supervisor = Supervisor(context, deployment, self.tasks)

    @property
    def say(self) -> Announcer:
        return self.context.say

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
            lib.NEED_VERDICT: lambda t: self._bolt(t).judge(),
            lib.NEED_LATENCY: lambda _: self.latencies.have(0),
        }
        self.kernel.handlers |= {
            lib.TURN: lambda t, when: self.tasks[t].turn(when),
            lib.HURRY: lambda t, when: self._bolt(t).barrier_has_come(when),
            lib.MARK: lambda t, when: self._bolt(t).served_mark(when),
            lib.WINDOW_FULL: lambda t, when: self._bolt(t).window_is_full(when),
        }
        self.kernel.listeners.append(self._tell)

    def _spout(self, number: int) -> SpoutTask:
        task = self.tasks[number]
        assert isinstance(task, SpoutTask)
        return task

    def _bolt(self, number: int) -> BoltTask:
        task = self.tasks[number]
        assert isinstance(task, BoltTask)
        return task

    def _bring_together(self) -> None:
        """Tasks feel one another that share cores, or wait for room in queues."""
        plane, bolts = self.plane, self.bolt_tasks
        shared = frozenset() if self.needs.batches else sharing(self.deployment)
        self.context.cores = share_cores(plane, self.deployment, bolts, shared)
        notices = {each: round(latency_of(self, each.up, each.down).mean_ns) for each in self.wires}
        bind(plane, self.tasks, self.deployment.bounds, notices)
        self.lay()

    def lay(self) -> None:
        """Say in which order tasks and cards move, and in which steps, by where tasks are now."""
        self.network.lay()
        lay(self)

    def lead(self, channels: Sequence[Wire], before: Sequence[tuple[int, int]]) -> None:
        """Ends of these channels, which were between those hosts, have moved."""
        for each, hosts in zip(channels, before, strict=True):
            self.network.lead(each, hosts)
            set_latency(self, each)
        self.latencies.have(0)
        seat(self.context.cores, self.bolt_tasks)
        self.supervisor.links.moved(channels)
        self.lay()

    def plug(self, hooks: Hooks) -> None:
        self.hooks.plug(hooks)

    def start(self) -> None:
        for component in self.topology.components:
            c = self.plane.components[component.index]
            c.charge = 0 if c.serves_at_once else self.context.overhead.get(component.name, 0)
        for spout in self.spouts:
            charged = self.context.overhead.get(spout.component.name, 0)
            spout.c.charge = charged if spout.feed is None else 0
        for task in self.bolt_tasks:
            c = self.plane.components[task.component.index]
            task.c.serialises = self.network.costs and not c.serves_at_once
            task.c.mute = task.mute
            task.gate.from_log = self.needs.log
            window = task.component.window
            if (
                task.windows.trigger in ("tick", "watermark")
                and window is not None
                and window.beat is not None
                and not (self.needs.batches and window.by == "event")
            ):
                tick = partial(_tick, task)
                self.kernel.every(window.beat, window.beat, Rank.WINDOW, tick, task.number)
        length = self.topology.marker_length
        if length is not None:
            for spout in self.spouts:
                send = partial(_send_marker, spout)
                self.kernel.every(length, length, Rank.MARKER, send, spout.number)
        self.supervisor.start()
        self.kernel.listeners.append(self._moved)
        self.hooks.start()
        capped = any(spout.in_flight.most is not None for spout in self.spouts)
        if capped or self.needs.look_ups:
            self.lay()  # some wait for what is done elsewhere
        for task in self.bolt_tasks if capped else ():
            if task.component.trigger == "watermark" or task.component.saves_ids:
                task.c.fills = 1  # Python acks at once what is late
        self.latencies.have(0)

    def _moved(self, now: int) -> None:
        self.supervisor.moved()
        self.hooks.moved(now)
        self.say.moved(now)

    def store_named(self, name: str | None) -> Storage:
        """The store of that name; None: that of those who name none."""
        return self.store if name is None else self.stores[name]

    def count(self, reach: Callable[[int], int]) -> None:
        """The data plane counts; ``reach`` says for how far there is room for that."""
        self.kernel.reach = reach
        self._leading = [
            (component is self.topology.measured, self._puts_out(replicas[0]), replicas)
            for replicas in self.bolts.values()
            for component in [replicas[0].component]
        ]
        if any(len(replicas) > 1 for replicas in self.bolts.values()):
            self.kernel.before = self._choose_leads
        for task in self.bolt_tasks:
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
        numbers = np.zeros(max(1, len(self.wires)), np.int64)
        for each in self.wires:
            numbers[each.number] = each.up.number + 1
        self.plane.senders = SENDER, numbers
        for task in self.bolt_tasks:
            task.notes = notes
            looks = task.c.seen or task.c.bounded & self.plane.lib.ISOLATES
            task.c.bounded |= self.plane.lib.SHOWS if looks else 0

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
            task.catch_up()
            if task.notes is not None:
                for train in (*task.queue.trains(), *task.gate.aside, *task.gate.held):
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

    def tell_of_emissions(self) -> None:
        """Tell of the roots that were emitted."""
        if not self.plane.p.emitted.n:
            return
        rows = self.plane.read(self.plane.p.emitted)
        for spout in self.spouts:
            mine = rows[rows["task"] == spout.number] if len(self.spouts) > 1 else rows
            if len(mine):
                spout.emitted(mine)

    def _read_losses(self) -> None:
        """A log of tuples that are lost, or sent again, is full."""
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
            self.context.say.replayed(task, self.plane.train(rows[mine]), task.inputs[source])

    def _by_task(self, log: Any) -> Iterator[tuple[BoltTask, Train, int | None]]:
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
        plane, task = self.plane, self._bolt(number)
        train, which = plane.waiting(number)
        bits = self.draws.bits(task.component.name, Purpose.SERVICE, train.uid, train.attempt)
        plane.work[which] = task.service.sample(bits)

    def step(self, who: str, what: str, detail: str = "", to: str = "") -> None:
        """Say what a control action does now (`tideover.models.runtime.announcements.Step`)."""
        if self.context.say.hears_steps:
            self.say.step(Step(self.kernel.now, who, what, detail, to, self.kernel.acting))


def _tick(task: BoltTask, i: int) -> None:
    task.windows.tick(i + 1)


def _send_marker(spout: SpoutTask, i: int) -> None:
    if spout.up:
        spout.enqueue(Rank.MARKER, lambda: spout.send_markers(i + 1))
