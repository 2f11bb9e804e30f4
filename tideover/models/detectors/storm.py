"""Storm: supervisors restart workers in place, Nimbus moves tasks, and both wait for the same death.

`Supervisor` asks it who notices what, and when. Timings are settings; the race of the two is changed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from tideover.models.detectors.base import DETECTORS, Detector, Watcher, in_order, last_beat, phase
from tideover.models.detectors.heartbeats import relocate
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import Machine, Outage, Return
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Purpose
from tideover.sim.faults import Fault
from tideover.sim.kernel import Action, Rank
from tideover.sim.registry import setting
from tideover.sim.units import Duration, Positive, S

_LOOKS = 1 << 19
"""Nimbus looks when all that is ready at that instant has reported."""
_HOME, _SILENT = 1 << 18, 1 << 19
"""Order of what it does in one round: tasks go home before others move."""


@DETECTORS.register("storm")
class Storm(Detector):
    """A supervisor launches a silent worker anew on its host; Nimbus moves silent tasks to another worker.

    With equal timeouts they race. A worker whose tasks change is killed and launched anew. So if no worker is
    free, a task that Nimbus moves takes its new neighbours down, once as it comes, and once as it goes home:
    in Nimbus's next round, when its own worker is free again. What dies of a fault is the whole worker. A
    pause is not noticed. A host that is stopped on purpose has crashed, for all that Nimbus knows, and its
    supervisor is back after ``down``; a job that is stopped is killed, and submitted again.

    Apache Storm 0.9: `nimbus.clj` (mk-assignments, alive-executors), `supervisor.clj` (sync-processes,
    matches-an-assignment?), and `defaults.yaml`; Stableford (2015), phase 1.
    """

    supervisor_worker_timeout: Positive = setting(
        "silence after which a supervisor launches a worker anew", 30 * S
    )
    nimbus_task_timeout: Positive = setting(
        "silence after which Nimbus moves a task to another worker", 30 * S
    )
    worker_heartbeat: Positive = setting("distance of a worker's heartbeats to its supervisor", S)
    task_heartbeat: Positive = setting("distance of the heartbeats of tasks to Nimbus", 3 * S)
    supervisor_round: Positive = setting("distance of a supervisor's looks at its workers", 3 * S)
    nimbus_round: Positive = setting("distance of Nimbus's looks at all tasks", 10 * S)
    worker_start_timeout: Positive = setting(
        "the supervisor's patience with a worker that is being launched", 120 * S
    )
    task_launch: Duration = setting("Nimbus's patience with tasks that it has just assigned", 120 * S)
    launch: Distribution = setting("from the order until a worker runs", Constant(value=0))
    prepare: Distribution = setting("from then until a task in it is ready", Constant(value=0))

    @property
    def moves_tasks(self) -> bool:
        return True

    def watch(self, job: Job) -> Workers:
        return Workers(job, self)


@dataclass(eq=False)
class _Slot:
    """A place for a worker: its process may come and go, and so may the tasks in it (times in ns).

    number    of the worker on its host
    place     among all slots
    home      tasks that it has while nothing fails
    back      the newest restart; None: the process has run from the start
    heard     the newest heartbeat of its tasks that Nimbus has got
    assigned  when Nimbus has last changed its tasks
    life      counts the restarts
    outage    number of that for which it was restarted last
    """

    host: int
    number: int
    name: str
    place: int
    home: tuple[Any, ...] = ()
    tasks: list[Any] = field(default_factory=list)
    back: Return | None = None
    heard: int = 0
    assigned: int | None = None
    life: int = 0
    outage: int = 0


class Workers(Watcher):
    is_told = False

    def __init__(self, job: Job, detector: Storm) -> None:
        super().__init__(job)
        self._detector = detector
        at = {(task.component.name, task.index, task.replica): task for task in job.tasks}
        cluster = job.deployment.cluster
        homes: dict[tuple[int, int], tuple[Any, ...]] = {
            (worker.host, worker.number): tuple(at[place] for place in worker.places)
            for worker in cluster.workers.values()
        }
        for host, number in itertools.product(self._hosts, range(cluster.workers_per_host)):
            homes.setdefault((host.number, number), ())
        self._slots = [
            _Slot(host, number, f"worker {host}.{number}", place, home, list(home))
            for place, ((host, number), home) in enumerate(homes.items())
        ]
        self._machines: dict[Any, _Slot] = {}
        self._due: dict[int, list[tuple[int, Action]]] = {}
        """What Nimbus does in its rounds, by moment, with its order there."""
        self._submitted = 0
        """When the topology was, or will be, submitted last (ns)."""

    def taken_down(self, struck: list[Any], fault: Fault) -> list[Any]:
        if fault.process_lives:
            return struck
        return in_order({victim: None for each in struck for victim in self._slot(each).tasks or [each]})

    def returns(
        self, struck: Sequence[Any], job: Sequence[Any], fault: Fault, outage: Outage
    ) -> dict[Any, Return]:
        now = self._kernel.now
        self._repairs.struck(fault, now)
        slots = dict.fromkeys(map(self._slot, struck))
        backs: dict[_Slot, Return] = {}
        for slot in slots:
            if not fault.process_lives:
                backs[slot] = self._dies(slot, outage)
            else:
                down = slot.back is not None and now < slot.back.ready
                backs[slot] = slot.back if slot.back is not None and down else Return(now, now, now, now)
        found = {each: backs[slot] for slot in slots for each in struck if self._slot(each) is slot}
        if job:  # it begins again when all its workers are there
            pending = [slot.back for slot in self._slots if slot.back is not None]
            found |= dict.fromkeys(job, max([*found.values(), *pending], key=lambda back: back.ready))
        return found

    def stopped(self, victims: Sequence[Any], outage: Outage, gone: Fault | None) -> dict[Any, Return]:
        """The topology is killed, and submitted again: until then Nimbus has nothing to do with it."""
        self._submitted = there = outage.ready_at
        back = Return(self._kernel.now, there, there, there)
        for slot in dict.fromkeys(map(self._slot, victims)):
            self._hear(slot)
            slot.back, slot.assigned, slot.outage = back, there, outage.number
            slot.life += 1
        return dict.fromkeys(victims, back)

    def _dies(self, slot: _Slot, outage: Outage) -> Return:
        """When its supervisor launches a worker anew that dies now. Nimbus may be quicker."""
        now, d, back = self._kernel.now, self._detector, slot.back
        repaired = self._repairs.over(slot.host)
        if back is not None and now <= (back.ordered or 0):  # it is dead already
            if (back.ordered or 0) < repaired:
                return self._launch(slot, self._supervised(slot, repaired), slot.outage)
            return back
        patience = d.supervisor_worker_timeout
        if back is None:
            sign = last_beat(now, phase(self._draws, slot.name, d.worker_heartbeat), d.worker_heartbeat)
        elif now < (back.launched or 0):
            sign, patience = back.ordered or 0, d.worker_start_timeout
        else:
            sign = last_beat(now, back.launched or 0, d.worker_heartbeat)
        self._hear(slot)
        return self._launch(slot, self._supervised(slot, max(now, repaired, sign + patience)), outage.number)

    def _hear(self, slot: _Slot) -> None:
        """A worker with tasks is killed: note when Nimbus has heard from these, if they were ready."""
        now, period = self._kernel.now, self._detector.task_heartbeat
        if slot.back is None:
            slot.heard = last_beat(now, phase(self._draws, slot.name, period, 1), period)
        elif now >= slot.back.ready:
            slot.heard = last_beat(now, slot.back.ready, period)

    def _supervised(self, slot: _Slot, least: int) -> int:
        """The first look at a worker by its supervisor at or after a moment (ns)."""
        return self._round(f"supervisor {slot.host}", self._detector.supervisor_round, least)

    def _launch(self, slot: _Slot, ordered: int, number: int) -> Return:
        """A worker is launched then, in an outage of this number; Nimbus listens. Returns when it is back."""
        slot.life += 1
        slot.outage = number
        d = self._detector
        launched = ordered + self._drawn(d.launch, slot.name, Purpose.LAUNCH, number)
        names = [each.name for each in slot.tasks] or [slot.name]
        prepared = max(self._drawn(d.prepare, name, Purpose.PREPARE, number) for name in names)
        slot.back = Return(ordered, launched + prepared, ordered, launched)
        silent = slot.heard + d.nimbus_task_timeout
        if slot.assigned is not None:
            silent = max(silent, slot.assigned + d.task_launch)
        self._listen(slot, silent)
        return slot.back

    def _listen(self, slot: _Slot, silent: int) -> None:
        """Nimbus misses its tasks in the first round from this moment on, if they are not back before."""
        silent = self._nimbus(silent)
        if slot.tasks and slot.back is not None and silent < slot.back.ready:
            self._in_round(silent, _SILENT + slot.place, partial(self._silent, slot, slot.life))

    def _nimbus(self, least: int) -> int:
        """Nimbus's first round at or after a moment (ns), after the present one, in which there is a job."""
        least = max(least, self._kernel.now + 1, self._submitted)
        return self._round("nimbus", self._detector.nimbus_round, least)

    def _in_round(self, at: int, order: int, act: Action) -> None:
        """Nimbus does this in its round at this moment (ns), all of it before a task is ready."""
        due = self._due.setdefault(at, [])
        if not due:
            self._kernel.at(at, Rank.READY, self._look, _LOOKS)
        due.append((order, act))

    def _look(self) -> None:
        for _, act in sorted(self._due.pop(self._kernel.now), key=itemgetter(0)):
            act()

    def _silent(self, slot: _Slot, life: int) -> None:
        """Nimbus has not heard from the tasks of a worker: they go elsewhere, as soon as there is a place."""
        if life != slot.life:
            return
        target = None if self._kernel.now < self._submitted else self._elsewhere(slot)
        if target is None:
            self._listen(slot, 0)
            return
        moved, slot.tasks = slot.tasks, []
        crowded = bool(target.tasks)
        target.tasks += moved
        if crowded:
            self._hear(target)
        else:  # there they stay
            target.home, slot.home = slot.home, ()
        slot.life += 1  # what there was of its worker is killed
        slot.back = None if slot.back is None else slot.back._replace(ready=self._kernel.now)
        self._relaunch([target], f"{slot.name} to {target.name.removeprefix('worker ')}")
        if crowded:
            self._let_home(slot)

    def _let_home(self, slot: _Slot) -> None:
        home = self._nimbus(self._repairs.over(slot.host))
        self._in_round(home, _HOME + slot.place, partial(self._go_home, slot))

    def _go_home(self, slot: _Slot) -> None:
        """A worker's place is free, and if its host lives, its tasks go back."""
        if self._kernel.now < max(self._repairs.over(slot.host), self._submitted):  # it is down again
            self._let_home(slot)
            return
        changed = [other for other in self._slots if any(task in slot.home for task in other.tasks)]
        if slot in changed:
            return
        for other in changed:
            self._hear(other)
            other.tasks = [task for task in other.tasks if task not in slot.home]
        slot.tasks = list(slot.home)
        self._relaunch([*changed, slot], f"back to {slot.name}")

    def _relaunch(self, slots: list[_Slot], where: str) -> None:
        """Workers whose tasks have changed are killed, and launched at once, or when their host is there."""
        now, number = self._kernel.now, len(self._job.supervisor.outages)
        planned: dict[Any, Return] = {}
        for slot in slots:
            slot.assigned = now
            if slot.tasks:
                repaired = self._repairs.over(slot.host)
                ordered = now if repaired <= now else self._supervised(slot, repaired)
                planned |= dict.fromkeys(slot.tasks, self._launch(slot, ordered, number))
        self._job.supervisor.restart("reassigned", where, in_order([*planned]), planned)
        relocate(self._job, {task: (slot.host, slot.number) for slot in slots for task in slot.tasks})

    def _elsewhere(self, slot: _Slot) -> _Slot | None:
        """A free worker, else one with the fewest tasks, then with a sender of theirs; on hosts in order."""
        now = self._kernel.now
        others = [o for o in self._slots if o is not slot and self._repairs.over(o.host) <= now]
        near = {edge.up.name for task in slot.tasks for edge in task.component.inputs}

        def rank(other: _Slot) -> tuple[int, bool, int, int]:
            apart = not any(task.component.name in near for task in other.tasks)
            return len(other.tasks), apart, other.host, other.number

        return min(others, key=rank, default=None)

    def _slot(self, victim: Any) -> _Slot:
        """Where a task is now; a machine, such as the acker, has a place of its own."""
        if isinstance(victim, Machine):
            own = _Slot(victim.host or 0, -1, victim.name, 0, (victim,))
            return self._machines.setdefault(victim, own)
        return next(slot for slot in self._slots if victim in slot.tasks)

    def _round(self, name: str, period: int, least: int) -> int:
        """The first look at or after a moment (ns)."""
        first = phase(self._draws, name, period)
        return first + max(0, -(-(least - first) // period)) * period
