"""A job, wired: its tasks on hosts, the channels between them, its store, who supervises it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from tideover.models.job.deployment import Deployment
from tideover.models.job.topology import Component, Topology
from tideover.models.runtime.announcements import Announcer
from tideover.models.runtime.bolt_task import BoltTask, connect
from tideover.models.runtime.context import Context, without_markers
from tideover.models.runtime.core_sharing import CoresResource, companies, crowded, fit_in, host_cores
from tideover.models.runtime.coupling import couple_tasks
from tideover.models.runtime.hooks import Dispatcher, Hooks, Needs
from tideover.models.runtime.network import Network
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.steps import Step
from tideover.models.runtime.storage import Storage
from tideover.models.runtime.stream import Outlet
from tideover.models.runtime.supervision import Supervisor
from tideover.models.runtime.views import BoltView, TaskView
from tideover.sim.distributions.base import Distribution
from tideover.sim.distributions.constant import Constant
from tideover.sim.draws import Draws, Purpose
from tideover.sim.kernel import Rank
from tideover.sim.link import Channel, Latency
from tideover.sim.plane.plane import Plane
from tideover.sim.store import StoreServer
from tideover.sim.train import Ints, Train


class Job:
    """What runs in one simulation, without those who look at it.

    ``fed``: its spouts emit what they are given. Plug a protocol in (mechanisms do it themselves), ``start``
    it, and run its kernel.
    """

    def __init__(self, context: Context, deployment: Deployment, fed: bool = False) -> None:
        self.context = context
        self.plane: Plane | None = None
        """What moves its data, if that is compiled."""
        self.settlers: list[Callable[[], None]] = []
        """Called when accounts are to know all that has happened."""
        self.kernel = context.kernel
        """The clock, and control events."""
        self.deployment = deployment
        self.spouts: list[SpoutTask] = []
        self.bolts: dict[tuple[str, int], list[BoltTask]] = {}
        """Replicas of each (component, task)."""
        nics = {host.number: host.nic for host in deployment.cluster.hosts if host.nic is not None}
        self.network = Network(deployment.links, nics, nothing=self.needs.batches, moves=deployment.moves)
        self.used = set(deployment.hosts.values())
        """Hosts that have, or have had, a task."""
        self._wire(fed)
        for c in self.topology.components:
            if c.backend is not None and c.backend.accesses * c.backend.access_cost:
                charged = context.overhead.get(c.name, 0)
                context.overhead[c.name] = charged + c.backend.accesses * c.backend.access_cost
        self.bolt_tasks = [task for replicas in self.bolts.values() for task in replicas]
        """All bolt tasks and their replicas, in physical order."""
        every: list[SpoutTask | BoltTask] = [*self.spouts, *self.bolt_tasks]
        self.tasks = sorted(every, key=lambda task: task.number)
        """All physical tasks, in physical order."""
        self._coupled = False
        self._bring_together()
        context.resources += self.network.cards
        every_core = context.cores.values()
        context.resources += [CoresResource(cores) for cores in every_core if cores.cores is not None]
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

    # -- for short -------------------------------------------------------------------------------------------

    @property
    def topology(self) -> Topology:
        """Components and edges."""
        return self.context.topology

    @property
    def draws(self) -> Draws:
        """The random draws of this replication."""
        return self.context.draws

    @property
    def needs(self) -> Needs:
        """What the mechanisms need, together."""
        return self.context.needs

    @property
    def hooks(self) -> Dispatcher:
        """Calls the protocol and its mechanisms."""
        return self.context.hooks

    @property
    def say(self) -> Announcer:
        """Tells the accounts what happens."""
        return self.context.say

    # -- wiring ----------------------------------------------------------------------------------------------

    def _wire(self, fed: bool) -> None:
        topology, hosts = self.topology, self.deployment.hosts
        shared = frozenset() if self.needs.batches else crowded(self.deployment)
        senders: dict[str, list[list[SpoutTask | BoltTask]]] = {}
        number = 0
        for c in topology.components:
            rows: list[list[SpoutTask | BoltTask]] = []
            for task in range(c.tasks):
                if c.is_spout:
                    spout = SpoutTask(self.context, c, task, number, hosts[c.name, task, 0], fed)
                    number += 1
                    self.spouts.append(spout)
                    rows.append([spout])
                else:
                    copies = range(self.deployment.replicas[c.name])
                    at = [hosts[c.name, task, r] for r in copies]
                    paced = self.needs.look_ups and c.backend is not None
                    shares = [paced or host in shared for host in at]
                    row = [BoltTask(self.context, c, task, r, at[r], shares[r]) for r in copies]
                    self.bolts[c.name, task] = row
                    rows.append([*row])
            senders[c.name] = rows
        for c in topology.components:
            for edge in c.inputs:
                for task, replicas in enumerate(senders[edge.up.name]):
                    path = topology.first_path(edge, task) if self.needs.paths and c.paths > 1 else None
                    for sender in replicas:
                        receivers = [self.bolts[c.name, index] for index in range(c.tasks)]
                        wires = [[self._channel(sender, each) for each in row] for row in receivers]
                        outlet = Outlet(edge, self.draws, wires, path)
                        if isinstance(sender, BoltTask):
                            outlet.packing = self.network.packing(wires)
                        sender.outlets.append(outlet)

    def _bring_together(self) -> None:
        """Let tasks feel one another that share cores, cards, or queues with a bound."""
        context, deployment = self.context, self.deployment
        context.cores = host_cores(deployment, self.bolt_tasks, context.step)
        self._coupled = couple_tasks(context.kernel, deployment, self.tasks, self.network, context.cores)
        if not self._coupled:
            self.lay()
            fit_in(context.kernel, self.topology, self.bolt_tasks, context.cores, context.step)

    def lay(self) -> None:
        """Lay the network, by where tasks are now."""
        together = companies(self.topology, self.bolt_tasks)
        duration, step = self.deployment.run.duration, self.context.step
        self.network.lay(self.kernel, self.topology, self.tasks, duration, step, together)

    def lead(self, channels: Sequence[Channel], before: Sequence[tuple[int, int]]) -> None:
        """Ends of these channels, which were between those hosts, have moved."""
        senders = [task for task in self.bolt_tasks if any(channel.up is task for channel in channels)]
        for task in senders:
            if task.state is None and any(outlet.packing is not None for outlet in task.outlets):
                task.queue.take_back()  # what waits is served by the new ways
        for channel, hosts in zip(channels, before, strict=True):
            up, down = self.tasks[channel.up.number], self.tasks[channel.down.number]
            assert isinstance(down, BoltTask)
            self.network.lead(channel, self.latency(up, down), hosts)
        for task in senders:
            for outlet in task.outlets:
                outlet.packing = self.network.packing(outlet.channels)
        self.supervisor.links.moved(channels)
        self.lay()
        fit_in(self.kernel, self.topology, self.bolt_tasks, self.context.cores, self.context.step)
        for task in senders:
            task.queue.serve_markers()

    def latency(self, up: SpoutTask | BoltTask, down: BoltTask) -> int | Latency:
        """Of messages from one task to another, by where they are now (ns)."""
        spread, name, draws = self._latency(up, down), f"{up.name}->{down.name}", self.draws
        if isinstance(spread, Constant):
            return spread.value

        def latency(number: Ints) -> Ints:
            return spread.sample(draws.bits(name, Purpose.LATENCY, number))

        return latency

    def _channel(self, up: SpoutTask | BoltTask, down: BoltTask) -> Channel:
        channel = self.network.channel(up, down, self.latency(up, down))
        channel.notice = round(self._latency(up, down).mean_ns)
        channel.logged = self.needs.log and isinstance(up, SpoutTask)
        connect(down, channel)
        return channel

    def _latency(self, up: SpoutTask | BoltTask, down: BoltTask) -> Distribution:
        links = self.deployment.links
        if self.needs.batches and isinstance(up, BoltTask):
            return Constant(value=0)
        if up.host == down.host:
            return links.local
        pair = links.pairs.get(f"{up.host}-{down.host}", links.pairs.get(f"{down.host}-{up.host}"))
        return links.latency if pair is None else pair

    # -- running ---------------------------------------------------------------------------------------------

    def plug(self, hooks: Hooks) -> None:
        """From now on these hooks are called."""
        self.hooks.plug(hooks)

    def start(self) -> None:
        """Start ticks, markers, faults and the protocol."""
        for task in self.bolt_tasks:
            task.gate.from_log = self.needs.log
            window = task.component.window
            if (
                task.windows.trigger in ("tick", "watermark")
                and window is not None
                and window.beat is not None
                and not (self.needs.batches and window.by == "event")
            ):
                tick = partial(_tick, task)
                # what leaves now comes behind all that arrives now at who reads it
                reads = None if task.outlets else (task,)
                self.kernel.every(window.beat, window.beat, Rank.WINDOW, tick, task.number, reads)
        length = self.topology.marker_length
        if length is not None:
            for spout in self.spouts:
                send = partial(_send_marker, spout)
                self.kernel.every(length, length, Rank.MARKER, send, spout.number)
        self.supervisor.start()
        self.kernel.listeners.append(self._moved)
        self.hooks.start()
        self.kernel.feedback |= self._coupled
        self.kernel.feedback |= any(spout.in_flight.most is not None for spout in self.spouts)
        # what is sent may arrive at once wherever tasks go
        self.kernel.feedback |= self.deployment.moves
        # tasks that share cores move together: whatever an action reads
        self.kernel.feedback |= any(task.shares for task in self.bolt_tasks)

    def _moved(self, now: int) -> None:
        self.supervisor.moved()
        self.hooks.moved(now)
        self.say.moved(now)

    def store_named(self, name: str | None) -> Storage:
        """The store of that name; None: that of those who name none."""
        return self.store if name is None else self.stores[name]

    def tell_of_emissions(self) -> None:
        """Tell accounts and mechanisms of the roots that were emitted."""

    def tell_of_losses(self) -> None:
        """Tell them of the tuples that were lost while data moved."""

    def catch_up(self) -> None:
        """Tell accounts and mechanisms all that tasks have done."""

    def step(self, who: str, what: str, detail: str = "", to: str = "") -> None:
        """Say what a control action does now (`tideover.models.runtime.steps.Step`)."""
        if self.context.say.hears_steps:
            self.say.step(Step(self.kernel.now, who, what, detail, to, self.kernel.acting))

    # -- what is where ---------------------------------------------------------------------------------------

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
            wires = (train for channel in task.inputs for train in channel.on_the_way)
            gate = task.gate
            for train in (*task.queue.trains(), *gate.aside, *gate.held, *gate.unreadable(), *wires):
                yield task.component, train
        for sender in self.tasks:
            for channel, train in sender.line.trains() if sender.line is not None else ():
                assert isinstance(channel.down, BoltTask)
                yield channel.down.component, train

    def can_be_emitted(self) -> Ints:
        """Roots that wait for a retry, or that a keeper can still emit again."""
        waiting = [roots for spout in self.spouts for roots, _ in spout.retries]
        kept = [keeper.roots() for keeper in self.context.keepers]
        return np.concatenate([np.zeros(0, np.int64), *waiting, *kept])


def _tick(task: BoltTask, i: int) -> None:
    task.windows.tick(i + 1)


def _send_marker(spout: SpoutTask, i: int) -> None:
    if spout.up:
        spout.enqueue(Rank.MARKER, lambda: spout.send_markers(i + 1))
