"""Supervision: faults strike, are detected, and what they hit is restarted.

A job has one supervisor; faults (`sim/faults.py`) tell it what to do to what they hit, and a detector, its
``watch``, when that is noticed and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from tideover.models.job.cluster import Deployment
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.channels import Wire
from tideover.models.runtime.context import Context
from tideover.models.runtime.planned_stops import PlannedStop
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import NEVER, Machine, Outage, OutageView, Return, TaskView
from tideover.sim.fault_kinds import CrashHost, PlannedRestart, Stop
from tideover.sim.faults import Between, Fault, Site
from tideover.sim.kernel import Kernel, Process, Rank, Turn
from tideover.sim.store import StoreServer

Action = Callable[[], None]


class Plans:
    """Control actions of one process, at the kernel's ranks and its own ``order`` among them."""

    def __init__(self, kernel: Kernel, order: int = 0) -> None:
        self._kernel, self._order, self._life = kernel, order, 0

    def at(self, when: int, rank: Rank, action: Action) -> None:
        """Call ``action`` at ``when`` (ns), unless the plans are void by then."""
        self._kernel.at(when, rank, self.unless_void(action), self._order)

    def after(self, delay: int, rank: Rank, action: Action) -> None:
        self.at(self._kernel.now + delay, rank, action)

    def unless_void(self, action: Action) -> Action:
        """The action, which does nothing once what is planned now is void."""
        wanted = self.watch()
        return lambda: action() if wanted() else None

    def watch(self) -> Callable[[], bool]:
        """Says whether what is planned now is still wanted."""
        life = self._life
        return lambda: life == self._life

    def void(self) -> None:
        self._life += 1


class Watch:
    """By itself, each fault says how long it takes until it is noticed, and how long the restart takes."""

    is_told: ClassVar[bool] = True
    """Whether it is told when a host is stopped on purpose; if not, that is a crash for it."""

    def start(self) -> None: ...

    def taken_down(self, struck: list[Any], fault: Fault) -> list[Any]:
        """Those that a fault has struck, and what dies with them."""
        return struck

    def returns(
        self, struck: Sequence[Any], job: Sequence[Any], fault: Fault, outage: Outage
    ) -> dict[Any, Return]:
        """When those ``struck``, and tasks of the ``job`` that stop with them, are noticed, and back."""
        return dict.fromkeys([*struck, *job], Return(outage.detected_at, outage.ready_at))

    def stopped(self, victims: Sequence[Any], outage: Outage, gone: Fault | None) -> dict[Any, Return]:
        """The same for what goes down on purpose, of which everybody knows; with it a whole host is ``gone``,
        as if it had crashed (None: the job is stopped).
        """
        return dict.fromkeys(victims, Return(outage.detected_at, outage.ready_at))

    def paused(self, victim: Any, until: int) -> None:
        """A process does nothing until then (ns), and lives."""

    def unheard(self, victim: Any, until: int, between: Between) -> None:
        """It lives, on one of these sides, which are cut off; what it sends across waits until then (ns)."""

    def back(self, victim: Any) -> None:
        """Something is up again, or something else is in its place."""

    def fenced(self, task: BoltTask) -> None:
        """A broker has aborted its transaction, and its process will learn that others may have its tasks."""


Act = Callable[[Wire], None]


@dataclass(eq=False)
class _Fault:
    """What befalls links between two sides: ``begin`` for each channel hit, and ``end`` (None: nothing)."""

    outage: Outage
    between: Between
    begin: Act
    end: Act | None
    holds: bool
    hit: dict[Wire, None]


class LinkFaults:
    """Lets faults hit the channels between two sides."""

    def __init__(self, kernel: Kernel, bolts: Sequence[BoltTask], batches: bool) -> None:
        """``batches``: what bolts send one another goes over no wires: who needs it asks ``parted_until``."""
        self._kernel, self._bolts, self._batches = kernel, bolts, batches
        self._faults: list[_Fault] = []

    def strike(self, outage: Outage, between: Between, begin: Act, end: Act | None, holds: bool) -> None:
        """Do this with the channels between the sides now; at the outage's end that."""
        fault = _Fault(outage, between, begin, end, holds, {})
        self._faults.append(fault)
        for channel in (channel for bolt in self._bolts for channel in bolt.inputs):
            on_wires = not self._batches or not isinstance(channel.up, BoltTask)
            if on_wires and between.part(channel.up.host, channel.down.host):
                fault.hit[channel] = None
        outage.unfelt = not fault.hit
        for channel in fault.hit:
            begin(channel)
        if end is not None:
            self._kernel.at(outage.ready_at, Rank.READY, partial(self._over, fault, end))

    def parted_until(self, one: int, other: int) -> int:
        """Until when (ns) nothing gets from the one host to the other; which it does if that is past."""
        faults = (fault for fault in self._faults if fault.holds and fault.between.part(one, other))
        return max((fault.outage.ready_at for fault in faults), default=0)

    def _over(self, fault: _Fault, end: Act) -> None:
        self._faults = [each for each in self._faults if each is not fault]
        for channel in fault.hit:
            end(channel)

    def moved(self, channels: Iterable[Wire]) -> None:
        """Ends of these channels have moved: faults that go on hit those that are between the sides now."""
        self._faults = [fault for fault in self._faults if fault.outage.ready_at > self._kernel.now]
        for channel in channels:
            free = False
            for fault in self._faults:
                between = fault.between.part(channel.up.host, channel.down.host)
                if between and channel not in fault.hit:
                    fault.hit[channel] = None
                    fault.outage.unfelt = False
                    fault.begin(channel)
                elif not between and channel in fault.hit:
                    del fault.hit[channel]
                    free |= fault.holds
                    if fault.end is not None:
                        fault.end(channel)
            if free:
                channel.let_go(self._kernel.now)
                for fault in self._faults:
                    if fault.holds and channel in fault.hit:
                        channel.hold(fault.outage.ready_at)


Task = SpoutTask | BoltTask
Victim = Task | Machine
Planned = dict[Any, Return]


class Supervisor:
    """Lets faults strike a job, and restarts what they hit when its ``watch`` has noticed and launched it."""

    def __init__(self, context: Context, deployment: Deployment, tasks: Sequence[Task]) -> None:
        self._context, self._kernel, self._deployment = context, context.kernel, deployment
        self._tasks = tasks
        self._bolts = [task for task in tasks if isinstance(task, BoltTask)]
        self._replicas: dict[tuple[str, int], list[Task]] = {}
        for task in tasks:
            self._replicas.setdefault((task.component.name, task.index), []).append(task)
        self.links = LinkFaults(context.kernel, self._bolts, context.needs.batches)
        self.workers: dict[Task, int] = {}
        """Worker, on its host, of each task that does not live where it was deployed."""
        self.watch = Watch()
        self.outages: list[Outage] = []
        self.asked_to_stop = False
        """Whether a planned stop was asked for: something may be saved for it though nothing is down yet."""
        self._watched: list[Outage] = []
        """Outages whose recovery may go on; what is not ready yet may still take something."""
        self._down: dict[Any, int] = {}
        """Number of the newest outage of each task or machine that is down."""
        self._slowed: dict[StoreServer, Outage] = {}
        self._awaited: dict[Any, list[Outage]] = {}
        """All outages that each of them is not yet back from."""
        self._since: dict[BoltTask, int] = {}
        """Of the bolt tasks that are down: when they went down."""
        self._was_down: dict[BoltTask, int] = {}
        """For how long others have been (ns)."""

    def start(self) -> None:
        self.watch.start()
        for index, fault in enumerate(self._deployment.failures):
            self._kernel.process(self._faults(index, fault))

    def _faults(self, index: int, fault: Fault) -> Process:
        d = self._deployment
        site = Site(d.run.duration, len(d.cluster.hosts), d.cycle)
        rank, order = Rank.FAULT, float(index)
        if fault.turn is not None:
            turn = Turn.parse(fault.turn)
            rank, order = turn.rank, turn.order({task.name: task.number for task in self._tasks})
        for moment, struck in fault.strikes(index, self._context.draws, site):
            yield self._kernel.until(moment, rank, order)
            self._strike(struck)

    # -- a fault strikes -------------------------------------------------------------------------------------

    def _strike(self, fault: Fault) -> None:
        if isinstance(fault, PlannedRestart):
            self.asked_to_stop = True
            PlannedStop(self, self._context, fault, fault.stops).ask()
            return
        outage = self._begin(fault.kind, fault.where, fault.detection, fault.lasts)
        if not fault.kills:
            stays_up = [v for v in fault.victims(self) if not isinstance(v, Machine)]
            tasks = [v for v in stays_up if not isinstance(v, StoreServer)]
            outage.passes, outage.tasks = True, list(tasks)
            outage.unfelt = len(tasks) < len(stays_up)  # until a store is asked for something
            fault.begin(self, stays_up, outage)
            outage.masked = bool(tasks) and all(map(self._has_live_replica, tasks))
            return
        if fault.out_of_order:
            hosts = self._deployment.cluster.hosts
            outage.broken = frozenset(h.number for h in hosts if fault.breaks(h.rack, h.number))
        self._crashes(fault, outage)

    def _crashes(self, fault: Fault, outage: Outage) -> None:
        """What such a fault hits goes down, and is brought back by who notices."""
        struck = self.watch.taken_down(fault.victims(self), fault)
        victims, job = self._with_the_job(struck)
        self._kill(fault, outage, victims, job, self.watch.returns(struck, job, fault, outage))

    def _kill(
        self, fault: Fault, outage: Outage, victims: list[Victim], job: Sequence[Victim], planned: Planned
    ) -> None:
        def strike(victim: Task) -> None:
            if victim in job:
                self.crash(victim, outage)
            else:
                fault.strike(self, victim, outage)
            if isinstance(victim, BoltTask) and not victim.up:
                victim.gate.hold(fault.while_down == "hold")

        self._hit(outage, victims, planned, strike)

    def restart(self, kind: str, where: str, tasks: Sequence[TaskView], planned: Planned) -> None:
        """Kill processes and launch them anew, as after a fault of this ``kind`` now, back as ``planned``."""
        latest, now = max(back.ready for back in planned.values()), self._kernel.now
        outage = self._begin(kind, where, 0, latest - now)
        victims, _ = self._with_the_job([self._tasks[task.number] for task in tasks])
        every = dict.fromkeys(victims, max(planned.values(), key=lambda back: back.ready)) | planned
        self._hit(outage, victims, every, lambda victim: self.crash(victim, outage))

    def stop(self, fault: PlannedRestart, stop: Stop, victims: list[Victim]) -> None:
        host, down = stop
        outage = self._begin(fault.kind, fault.where if host is None else f"host {host}", 0, down)
        gone = None if host is None else CrashHost(at=0, host=host, repair=down, while_down=fault.while_down)
        if gone is not None and not self.watch.is_told:
            self._crashes(gone, outage)
            return
        planned = self.watch.stopped(victims, outage, gone)
        waiting = [] if gone is None else self.watch.taken_down([], gone)
        if gone is not None and (waiting := [each for each in waiting if each not in victims]):
            more, job = self._with_the_job(waiting)
            planned |= self.watch.returns(waiting, job, gone, outage)
            victims = sorted([*victims, *more], key=lambda v: (isinstance(v, Machine), v.number))
        self._kill(fault, outage, victims, [], planned)

    def stopped_with(self, host: int | None) -> list[Victim]:
        """Of the job it is the process that runs its tasks, if one does, and never an acker."""
        if host is not None:
            there = self.tasks_in(lambda _, number, __: number == host)
            return self._with_the_job([each for each in there if not isinstance(each, SpoutTask)])[0]
        runners = [machine for machine in self._context.machines if machine.host is None and machine.tasks()]
        return list(runners or self._bolts)

    def spouts_of(self, host: int | None) -> list[SpoutTask]:
        spouts = [task for task in self._tasks if isinstance(task, SpoutTask)]
        return [spout for spout in spouts if host in (None, spout.host)]

    def is_down(self, victims: Sequence[Victim]) -> bool:
        bolts = [victim for victim in victims if isinstance(victim, BoltTask)]
        return any(victim in self._awaited for victim in victims) or not all(t.available for t in bolts)

    def _begin(self, kind: str, where: str, detection: int, lasts: int) -> Outage:
        now = self._kernel.now
        outage = Outage(len(self.outages), kind, where, now, now + detection, now + lasts)
        on = [old for old in self._watched if self._context.goes_on(old)]
        self._watched = [old for old in self._watched if old in on or old.ready_at >= now]
        outage.overtakes, outage.watched = tuple(on), tuple(self._watched)
        settled = self._context.settled
        outage.unsettled = tuple(old for old in outage.watched if old.ready_at >= now or not settled(old))
        outage.late = not self._kernel.is_later(Rank.READY, -1)
        self._watched.append(outage)
        self.outages.append(outage)
        self._context.say.struck(outage)
        return outage

    def _hit(
        self, outage: Outage, victims: list[Victim], planned: Planned, strike: Callable[[Task], None]
    ) -> None:
        outage.tasks = [task for v in victims for task in (v.tasks() if isinstance(v, Machine) else [v])]
        outage.hit(planned)
        for victim in victims:
            self._down[victim] = outage.number
            for older in self._awaited.setdefault(victim, []):
                older.struck_again(victim, outage)
            self._awaited[victim].append(outage)
            if isinstance(victim, Machine):
                victim.failed(outage)
                continue
            self._context.newest[victim] = outage.number
            strike(victim)
        outage.masked = bool(outage.tasks) and all(map(self._has_live_replica, outage.tasks))
        outage.unfelt = not victims
        for victim in victims:
            if isinstance(victim, BoltTask) and not victim.up:
                self._since.setdefault(victim, outage.failed_at)
            ready = partial(self._ready, outage, victim)
            # as planned: something else may have changed by now what is expected
            if planned[victim].ready < NEVER:
                self._kernel.at(planned[victim].ready, Rank.READY, ready, victim.number)

    def _with_the_job(self, victims: list[Victim]) -> tuple[list[Victim], list[BoltTask]]:
        """All that fail because these do, and the tasks of the job among them (none: it goes on)."""
        if not self._context.needs.one_job or not any(v in self._bolts for v in victims):
            return victims, []
        others = [v for v in victims if v not in self._bolts]
        return sorted([*others, *self._bolts], key=lambda v: v.number), self._bolts

    def _has_live_replica(self, task: Task) -> bool:
        replicas = self._replicas[task.component.name, task.index]
        return any(r.available and not r.silent for r in replicas if r is not task)

    # -- what it hit is ready --------------------------------------------------------------------------------

    def _ready(self, outage: Outage, victim: Victim) -> None:
        if self._down.get(victim) != outage.number:
            return  # a newer fault has struck it meanwhile, or it was taken over
        if isinstance(victim, Machine):
            victim.ready(outage)
            return
        self.back(victim)
        was_down, now = not victim.up, self._kernel.now
        if was_down:
            victim.revive()
            if isinstance(victim, BoltTask) and victim in self._since:
                since = self._since.pop(victim)
                self._was_down[victim] = self._was_down.get(victim, 0) + now - since
        self._context.hooks.ready(victim, outage)
        length = self._deployment.topology.marker_length
        if was_down and isinstance(victim, SpoutTask) and length is not None:
            victim.send_markers((now - 1) // length)

    def down_ns(self, task: BoltTask) -> int:
        now = self._kernel.now
        return self._was_down.get(task, 0) + now - self._since.get(task, now)

    def take_over(self, task: TaskView, outage: OutageView) -> None:
        """A standby is in its place, ready and empty, if it is not ready yet and has not failed again."""
        if self._down.get(task) != outage.number or self._kernel.now >= outage.ready_at:
            return
        self._ready(self.outages[outage.number], self._tasks[task.number])
        del self._down[task]

    def back(self, victim: object) -> None:
        """It is back, or what it did is done by others: nobody waits for it any more."""
        self.expect(victim, self._kernel.now)
        self._awaited.pop(victim, None)
        self.watch.back(victim)

    def expect(self, victim: object, ready: int) -> None:
        """If it is down, it will be back at ``ready`` (ns), and not when it was planned."""
        for outage in self._awaited.get(victim, []):
            outage.expect(victim, ready)

    def restart_failed(self, victims: Sequence[Victim]) -> None:
        """A restart of these has come to nothing."""
        for outage in dict.fromkeys(each for victim in victims for each in self._awaited.get(victim, [])):
            outage.failed_restarts += 1

    # -- what faults ask -------------------------------------------------------------------------------------

    def tasks_of(self, component: str, task: int, replica: int) -> list[Any]:
        """The task that a fault names: of a component, or a machine."""
        if (component, task) in self._replicas:
            found = [each for each in self._replicas[component, task] if not each.idle]
            return found if found and isinstance(found[0], SpoutTask) else found[replica : replica + 1]
        return [m for m in self._context.machines if m.name == component and m.replica == replica]

    def tasks_in(self, there: Callable[[int, int, int], bool]) -> list[Any]:
        """All in such a rack, host and worker: tasks, in physical order, and machines. Tasks of batches live
        in executors.
        """
        hosts = self._deployment.cluster.hosts

        def is_there(thing: Victim) -> bool:
            host = thing.host
            if isinstance(thing, BoltTask) and thing.idle:
                return False  # a slot that nobody has
            return host is not None and there(hosts[host].rack, host, self.worker(thing))

        elsewhere = self._bolts if self._context.needs.batches else []
        tasks = [task for task in self._tasks if is_there(task) and task not in elsewhere]
        return [*tasks, *(machine for machine in self._context.machines if is_there(machine))]

    def worker(self, thing: Victim) -> int:
        if isinstance(thing, Machine):
            return thing.worker
        if thing in self.workers:
            return self.workers[thing]
        return self._deployment.cluster.worker_of[thing.component.name, thing.index, thing.replica].number

    def lose_state(self, task: Task, outage: Outage, keep: bool) -> None:
        """A task loses its state; ``keep``: it goes on at once, else its queue waits until it is ready."""
        if isinstance(task, BoltTask) and self._context.runner is None:
            if not keep:
                task.crash(keep_queue=True)
            self._forget(task, outage)
        self._context.hooks.failed(task, outage)

    def crash(self, task: Task, outage: Outage) -> None:
        for channel, train in task.line.clear(self._kernel.now) if task.line is not None else ():
            self._context.destroy(channel.down, [train], outage=outage.number)
        if isinstance(task, BoltTask):
            if self._context.runner is None:
                self._context.destroy(task, task.crash())
                self._forget(task, outage)
        else:
            waiting = [roots for roots, _ in task.retries]
            task.crash()
            for roots in waiting:
                self._context.say.retries_lost(task, roots)
        self._context.hooks.failed(task, outage)

    def pause(self, task: Task, outage: Outage) -> None:
        if isinstance(task, BoltTask) and self._context.runner is not None:
            self._context.runner.paused(task, outage)
        elif task.up:
            task.stop_until(outage.ready_at)
            self.watch.paused(task, outage.ready_at)

    def cut(self, outage: Outage, between: Between, lose: bool) -> None:
        def begin(channel: Wire) -> None:
            if lose:
                self._context.destroy(channel.down, channel.lose(outage.number), outage=outage.number)
            channel.hold(outage.ready_at)

        end = (lambda channel: channel.keep(outage.number)) if lose else None
        self.links.strike(outage, between, begin, end, holds=True)
        for task in self._tasks:
            if task.up and not task.idle:
                self.watch.unheard(task, outage.ready_at, between)

    def slow_links(self, outage: Outage, between: Between, factors: tuple[float, float]) -> None:
        def slow(factors: tuple[float, float] | None, channel: Wire) -> None:
            channel.slow_down(outage.number, factors)

        self.links.strike(outage, between, partial(slow, factors), partial(slow, None), holds=False)

    def servers_of(self, store: str | None) -> list[StoreServer]:
        return self._context.servers[store]

    def slow_store(self, server: StoreServer, outage: Outage, factor: float) -> None:
        """Requests take so many times as long until the outage's end, or a newer one's."""
        self._slowed[server] = outage
        server.tell(partial(setattr, outage, "unfelt", False), outage.ready_at)
        server.slow(factor)

        def well() -> None:
            if self._slowed[server] is outage:
                server.slow(1.0)

        self._kernel.at(outage.ready_at, Rank.READY, well)

    def stop_store(self, server: StoreServer, outage: Outage) -> None:
        server.tell(partial(setattr, outage, "unfelt", False), outage.ready_at)
        server.stop(outage.ready_at)

    def empty_store(self, store: str | None) -> None:
        for holder in self._context.holders:
            holder.store_lost(store)

    def slow_down(self, host: int, outage: Outage, factor: float) -> None:
        """Cores of a host work at this part of their speed until the outage's end."""
        cores, there = self._context.cores.get(host), [t.number for t in self._bolts if t.host == host]
        outage.unfelt = not there or self._context.runner is not None
        if cores is None or self._context.runner is not None:
            return  # nobody works there who would be slower
        cores.slow_down(outage.number, factor, self._kernel.now)
        well = partial(cores.slow_down, outage.number, 1.0, outage.ready_at)
        self._kernel.at(outage.ready_at, Rank.READY, well, min(there, default=0))

    def _forget(self, task: BoltTask, outage: Outage) -> None:
        if task.state is None:
            return
        gone = task.state.effects()
        task.state = task.state.fresh()
        if task.component.anchored and len(gone.uid):
            self._context.say.void(task.component, gone.uid, task.replica)
            self._context.say.forgotten(task, outage.number, gone.uid)
            self._context.hooks.destroyed(outage.number, gone.uid >> task.component.bits, gone.attempt)
