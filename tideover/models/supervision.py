"""Supervision: faults strike, are detected, and what they hit is restarted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tideover.models.machine import Machine
from tideover.models.outage import Outage
from tideover.models.task import BoltTask, SpoutTask
from tideover.sim.faults.base import Fault
from tideover.sim.kernel import Rank
from tideover.sim.recorder import Span

if TYPE_CHECKING:
    from tideover.models.world import World

ACKER = "acker"
DRIVER = "driver"


class Supervisor:
    """Lets the scenario's faults strike a world, and restarts what they hit after detection and restart."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._down: dict[Any, int] = {}
        """Number of the newest outage of each task (or machine, or of the acker)."""
        self._awaited: dict[Any, list[Outage]] = {}
        """All outages that each of them is not yet back from."""
        self._since: dict[BoltTask, int] = {}
        """Of the bolt tasks that are down: when they went down."""
        self._was_down: dict[BoltTask, int] = {}
        """For how long others have been (ns)."""

    def start(self) -> None:
        """Start a process for each fault of the scenario."""
        for index, fault in enumerate(self._world.scenario.failures):
            self._world.kernel.process(self._faults(index, fault))

    def _faults(self, index: int, fault: Fault) -> Any:
        cycle = self._world.strategy.cycle()
        for moment in fault.moments(index, self._world.draws, self._world.scenario.run.duration, cycle):
            yield self._world.kernel.until(moment, Rank.FAULT, index)
            self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        now = self._world.kernel.now
        detected = now + fault.detection
        span = Span(self._world.scenario.run.log_resolution)
        outage = Outage(
            len(self._world.outages), fault.kind, fault.where, now, detected, now + fault.lasts, span
        )
        world = self._world
        world.outages.append(outage)
        # an older one that has recovered gets no more replays
        world.watched = [*(old for old in world.watched if not world.protocol.settled(old)), outage]
        if not fault.kills:
            self._stop(fault, outage)
            return
        victims, job = self._with_the_job(fault.victims(self))
        outage.tasks = [task for victim in victims for task in _tasks_of(victim)]
        outage.hit(victims)
        for victim in victims:
            self._down[victim] = outage.number
            for older in self._awaited.setdefault(victim, []):
                older.struck_again(victim, outage)
            self._awaited[victim].append(outage)
            if victim is ACKER:
                self._world.protocol.acker_failed()
            elif isinstance(victim, Machine):
                victim.failed(outage)
            else:
                victim.fault = outage.number
                victim.hold = fault.while_down == "hold"
                if victim in job:
                    self.crash(victim, outage)
                else:
                    fault.strike(self, victim, outage)
        outage.masked = bool(outage.tasks) and all(self._has_live_replica(task) for task in outage.tasks)
        for victim in victims:
            if isinstance(victim, BoltTask) and not victim.up:
                self._since.setdefault(victim, now)
            ready = partial(self._ready, outage, victim)
            # as planned: the outage's own moment may be a later one by now, for one of its victims
            self._world.kernel.at(now + fault.lasts, Rank.READY, ready, max(0, _place(victim)))

    def _stop(self, fault: Fault, outage: Outage) -> None:
        """Strike without killing: what is hit stays up."""
        victims = [v for v in fault.victims(self) if isinstance(v, BoltTask | SpoutTask)]
        outage.tasks = list(victims)
        for victim in victims:
            fault.strike(self, victim, outage)
        outage.masked = bool(victims) and all(self._has_live_replica(task) for task in victims)

    def _with_the_job(self, victims: list[Any]) -> tuple[list[Any], list[BoltTask]]:
        """All that fail because these do, and the tasks of the job among them (none: it goes on)."""
        bolts = self._world.bolt_tasks
        if not self._world.strategy.fails_together or not any(v in bolts for v in victims):
            return victims, []
        others = [v for v in victims if v not in bolts]
        return sorted(others + bolts, key=_place), bolts

    def _has_live_replica(self, task: BoltTask | SpoutTask) -> bool:
        replicas = self._world.bolts.get((task.component.name, task.task), [])
        return any(r.available for r in replicas if r is not task)

    def _ready(self, outage: Outage, victim: Any) -> None:
        if self._down.get(victim) != outage.number:
            return  # a newer fault has struck it meanwhile, or it was taken over
        if isinstance(victim, Machine):
            victim.ready(outage)
            return
        self.back(victim)
        if victim is ACKER:
            self._world.protocol.acker_ready()
            return
        was_down = not victim.up
        if was_down:
            victim.revive()
            if victim in self._since:
                since = self._since.pop(victim)
                self._was_down[victim] = self._was_down.get(victim, 0) + self._world.kernel.now - since
        self._world.protocol.ready(victim, outage)
        if was_down and isinstance(victim, SpoutTask):
            victim.send_missed_markers()

    def down_ns(self, task: BoltTask) -> int:
        """For how long a task has been down up to now (ns)."""
        now = self._world.kernel.now
        return self._was_down.get(task, 0) + now - self._since.get(task, now)

    def take_over(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """From now on ``task`` is something that was waiting for its failure (a standby): it is ready, empty,
        and its restart is off. Nothing happens if it is ready already, or has failed again.
        """
        if self._down.get(task) != outage.number or self._world.kernel.now >= outage.ready_at:
            return
        self._ready(outage, task)
        del self._down[task]

    def back(self, victim: Any) -> None:
        """It is back, or what it did is done by others: nobody waits for it any more."""
        self.expect(victim, self._world.kernel.now)
        self._awaited.pop(victim, None)

    def expect(self, victim: Any, ready: int) -> None:
        """If it is down, it will be back at ``ready`` (ns), and not when it was planned."""
        for outage in self._awaited.get(victim, []):
            outage.expect(victim, ready)

    def tasks_of(self, component: str, task: int, replica: int) -> list[Any]:
        if component == ACKER:
            return [ACKER]
        if component == DRIVER:
            return [m for m in self._machines if m.name == DRIVER and m.replica == replica]
        if (component, task) in self._world.bolts:
            replicas = self._world.bolts[component, task]
            return replicas[replica : replica + 1]
        return [s for s in self._world.spouts if s.component.name == component and s.task == task]

    def tasks_on(self, host: int) -> list[Any]:
        acker: list[Any] = [ACKER] if self._world.strategy.acker_at == host else []
        world = self._world
        own = world.spouts if world.strategy.batched else world.tasks  # batches run in executors
        machines = [m for m in self._machines if m.host == host]
        return [t for t in own if t.host == host] + machines + acker

    @property
    def _machines(self) -> list[Machine]:
        return self._world.protocol.machines()

    @property
    def _by_protocol(self) -> bool:
        """Whether the protocol itself says what a fault does to a bolt."""
        return self._world.strategy.batched

    def lose_state(self, task: BoltTask | SpoutTask, outage: Outage, keep: bool) -> None:
        if isinstance(task, BoltTask) and not self._by_protocol:
            if not keep:
                task.pause()
            self._forget(task, outage)
        self._world.protocol.failed(task, outage)

    def crash(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask):
            if not self._by_protocol:
                self._world.destroyed(task, task.crash())
                self._forget(task, outage)
        else:
            waiting = [roots for roots, _ in task.retries]
            task.crash()
            for roots in waiting:
                self._world.backlog.change(roots, np.full(len(roots), self._world.kernel.now, np.int64), -1)
                self._world.ledger.destroy(roots)
        self._world.protocol.failed(task, outage)

    def pause(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        if isinstance(task, BoltTask) and self._by_protocol:
            self._world.protocol.paused(task, outage)
        elif task.up:
            task.stop_until(outage.ready_at)

    def _forget(self, task: BoltTask, outage: Outage) -> None:
        gone = task.forget()
        if task.component.anchored and gone is not None and len(gone.uid):
            self._world.ledger.destroy_effects(task.component, gone.uid, task.replica)
            outage.lost_effects.append((task, gone.uid))
            self._world.protocol.destroyed(outage.number, gone.uid >> task.component.bits, gone.attempt)


def _tasks_of(victim: Any) -> list[Any]:
    """The tasks that fail with a victim."""
    if victim is ACKER:
        return []
    return victim.tasks() if isinstance(victim, Machine) else [victim]


def _place(victim: Any) -> int:
    """Place in the physical order; the acker has none."""
    return -1 if victim is ACKER else victim.number
