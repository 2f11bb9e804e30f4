"""Heartbeats: a process that has not been heard of for a timeout counts as dead; where its tasks then go.

`Supervisor` asks it who is noticed, and when; `storm` and `consumer_group` move tasks by its `relocate`.
What is a sign of life, and what a restart waits for, is changed here. Tasks that are restarted on other hosts
(tests/models/test_nimbus.py, test_exact_mechanisms.py):

- A task moves behind all data of that instant. From then on it is on its new host: faults there hit it, it
  uses the cores there, and reads from the disk there what it has written to one.
- What is sent to it, and by it, goes over the links between the hosts of both ends. What is on a wire
  arrives when it would have; what has come to a card goes on; nothing overtakes it.
- A partition or a slow link acts on the channels between its sides now; what it held up on others arrives.
- Where a queue is bounded, links, cards and cores stay those of the start.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from tideover.models.detectors.base import (
    DETECTORS,
    Detector,
    Earlier,
    Repairs,
    RestartStrategy,
    Watcher,
    in_order,
    last_beat,
    phase,
)
from tideover.models.job.cluster import Worker
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import NEVER, Machine, Outage, Return
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.faults import Between, Fault
from tideover.sim.kernel import Rank
from tideover.sim.registry import setting
from tideover.sim.units import Positive, format_duration

Task = SpoutTask | BoltTask


@DETECTORS.register("heartbeats")
class Heartbeats(Detector):
    """A process sends a heartbeat each ``interval``, and counts as dead ``timeout`` after the last one.

    So what fails is noticed after the timeout less the age of its last heartbeat: evenly spread over
    (timeout - interval, timeout], as each process has a phase of its own. Then a process is launched in its
    place, and its tasks are prepared. A failure meanwhile takes the new process with it: its last sign of
    life is the order to launch it, or its own heartbeat. Heartbeats take no time on the wire.

    Chandra and Toueg: *Unreliable failure detectors for reliable distributed systems*, JACM 43, 1996; Flink's
    ``heartbeat.interval`` and ``heartbeat.timeout`` have these defaults.
    """

    omitted: ClassVar[frozenset[str]] = frozenset({"restart_on"})
    false_detections: ClassVar[bool] = True

    interval: Positive = setting("distance of two heartbeats of a process", 10 * 10**9)
    timeout: Positive = setting("silence after which a process counts as dead; at least interval", 50 * 10**9)
    launch: Distribution = setting("from the order until the new process runs", Constant(value=0))
    prepare: Distribution = setting("from then until a task in it is ready", Constant(value=0))
    listener: int | None = setting(
        "host of who listens; none: it hears all hosts, however the network is cut", ge=0
    )
    restart_on: Literal["same_host", "free_slot"] = setting(
        "where tasks of a host that fails are restarted: in its place, once it is repaired "
        "or one in reserve has taken it; or in free slots of other hosts",
        "same_host",
    )
    restarts: RestartStrategy | None = setting("how long a restart waits; default: not at all")

    @model_validator(mode="after")
    def _in_time(self) -> Heartbeats:
        if self.interval > self.timeout:
            raise ValueError(
                f"interval ({format_duration(self.interval)}) must not be longer than timeout "
                f"({format_duration(self.timeout)}): a process that lives would count as dead"
            )
        return self

    @property
    def moves_tasks(self) -> bool:
        return self.restart_on == "free_slot"

    def missed(self, pauses: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Probability that a pause (ns) and the last heartbeat's age, in [0, interval), pass the timeout."""
        return np.clip((pauses + float(self.interval - self.timeout)) / self.interval, 0.0, 1.0)

    def phase(self, draws: Draws, process: str) -> int:
        """When a process sends its first heartbeat: uniform in [0, interval) (ns)."""
        return phase(draws, process, self.interval)

    def watch(self, job: Job) -> Listener:
        return Listener(job, self)


def process_name(worker: Worker) -> str:
    return f"worker {worker.host}.{worker.number}"


class _Restart(NamedTuple):
    """The newest restart of a process, and those before it. Until it is ``ordered`` nothing can fail (ns)."""

    back: Return
    earlier: tuple[Earlier, ...]

    @property
    def ordered(self) -> int:
        return self.back.ordered or 0

    @property
    def launched(self) -> int:
        return self.back.launched or 0


@dataclass(eq=False)
class _JobRestart:
    """A restart of a job.

    number   of the fault
    usable   nothing can be launched before (ns)
    killed   whose processes died of the fault, and are launched anew
    over     when the job was back (ns); None: it is not yet, or another failure came before
    """

    number: int
    detected: int
    usable: int
    killed: Sequence[Any]
    ordered: int = NEVER
    over: int | None = None


class Listener(Watcher):
    """Who listens to the heartbeats of all processes, and has them launched anew."""

    def __init__(self, job: Job, detector: Heartbeats) -> None:
        super().__init__(job)
        self._supervisor, self._bolts, self._one_job = job.supervisor, job.bolt_tasks, job.needs.one_job
        self._detector = detector
        self._known: dict[Any, _Restart] = {}
        """By process; those that never failed are not among them."""
        self._job_back: Return | None = None
        """When the job is back from the newest fault that has stopped it."""
        self._restarts: list[_JobRestart] = []
        """Of the job, in the order in which they are noticed."""
        self._reserve = [0 for host in self._hosts if host.reserve]
        """From when on each host in reserve can take another's place (ns)."""
        self._usable: dict[tuple[int, int | None], int] = {}
        """By outage and host: from when on something can be launched there."""
        self._slots = FreeSlots(job, detector.listener) if detector.moves_tasks else None
        self._pauses: dict[Any, tuple[int, int]] = {}
        """From when to when the newest pause of each process lasts (ns)."""

    def taken_down(self, struck: list[Any], fault: Fault) -> list[Any]:
        if self._slots is None:
            return struck
        more = [task for task in self._slots.waiting_on(fault) if task not in struck]
        tasks = [victim for victim in struck if not isinstance(victim, Machine)]
        return in_order([*tasks, *more]) + struck[len(tasks) :]

    def returns(
        self, struck: Sequence[Any], job: Sequence[Any], fault: Fault, outage: Outage
    ) -> dict[Any, Return]:
        if self._slots is not None:
            known, now = self._known, self._kernel.now
            given_up = {e for e in known if known[e].ordered == NEVER and known[e].back.detected < now}
            self._slots.struck(fault, [each for each in struck if each not in given_up])
        found = {each: self._process_fails(each, fault, outage) for each in struck if each not in job}
        if job:
            hit = [each for each in struck if each in job]
            found |= dict.fromkeys(job, self._all_fail(hit, fault, outage))
        if not fault.process_lives:
            self._launch_elsewhere(struck)
        return found

    def _launch_elsewhere(self, victims: Sequence[Any]) -> None:
        """Those that go to other hosts do so when they are ordered; who is given up needs no slot."""
        slots, now = self._slots, self._kernel.now
        if slots is None:
            return
        moments: dict[tuple[int, bool], list[Any]] = {}
        for victim in victims:
            if victim in self._known:
                back, given_up = self._known[victim].back, self._known[victim].ordered == NEVER
                moment = back.detected if given_up else back.ordered or 0
                moments.setdefault((moment, given_up), []).append(victim)

        def act(moment: int, given_up: bool, tasks: list[Any]) -> None:
            if given_up:
                slots.forget(task for task in tasks if self._known[task].ordered == NEVER)
            else:
                slots.launch(task for task in tasks if self._known[task].ordered == moment)

        for (moment, given_up), tasks in moments.items():
            if moment >= now:
                self._kernel.at(moment, Rank.READY, partial(act, moment, given_up, tasks), -1)

    def back(self, victim: Any) -> None:
        now, known = self._kernel.now, self._known.get(victim)
        if known is not None and known.back.ready > now:
            self._known[victim] = known._replace(back=Return(now, now, now, now))
            if self._slots is not None:
                self._slots.forget([victim])

    def paused(self, victim: Any, until: int) -> None:
        """It is missed if it is silent for too long, though it lives."""
        now = self._kernel.now
        since, earlier = self._pauses.get(victim, (now, 0))
        self._pauses[victim] = pause = (since if now < earlier else now, max(until, earlier))
        missed = self._missed_at(victim)
        if missed < pause[1]:
            self._kernel.at(missed, Rank.READY, partial(self._missed, victim, pause), victim.number)

    def unheard(self, victim: Any, until: int, between: Between) -> None:
        if self._slots is not None:
            self._slots.cut(between, until)
        if self._detector.listener is not None and between.part(victim.host, self._detector.listener):
            self.paused(victim, until)

    def _missed(self, victim: Any, pause: tuple[int, int]) -> None:
        """Another process takes its place; what it still sends, nobody listens to."""
        now, number = self._kernel.now, len(self._supervisor.outages)
        if self._pauses.get(victim) != pause or not victim.up:
            return
        del self._pauses[victim]
        if self._slots is not None and not self._slots.hears(victim.host):
            self._slots.find([victim])
        if self._one_job and victim in self._bolts:
            back = self._job_fails(_JobRestart(number, now, 0, [victim]))
        else:
            back = self._dies(victim, now, 0, number)
        self._supervisor.restart("false_detection", victim.name, [victim], {victim: back})
        self._launch_elsewhere([victim])

    def _process_fails(self, victim: Any, fault: Fault, outage: Outage) -> Return:
        """Of those that are brought back one by one."""
        now, known = self._kernel.now, self._known.get(victim)
        if known is not None and now <= (known.back.ready if fault.process_lives else known.ordered):
            return known.back  # there is no process that could fail, or it is none yet
        if fault.process_lives:
            return Return(now, now, now, now)
        usable = self._there_at(victim, fault, outage)
        return self._dies(victim, self._missed_at(victim), usable, outage.number)

    def _dies(self, victim: Any, detected: int, usable: int, number: int) -> Return:
        """A process dies, or counts as dead: when it is back, but for other faults."""
        earlier: tuple[Earlier, ...] = ()
        if victim in self._known:
            last = self._known[victim]
            ran = last.back.ready < self._kernel.now
            earlier = (*last.earlier, Earlier(last.back.detected, last.back.ready if ran else detected))
        ordered = self._ordered(detected, earlier, usable)
        launched = self._launched(victim, ordered, number)
        back = Return(detected, self._prepared(victim, launched, number), ordered, launched)
        self._known[victim] = _Restart(back, earlier)
        return back

    def _all_fail(self, struck: Sequence[Any], fault: Fault, outage: Outage) -> Return:
        """Of a job that begins again when all its processes are launched, and all its tasks are prepared."""
        now, lives = self._kernel.now, fault.process_lives
        alive = [each for each in struck if each not in self._known or now > self._known[each].ordered]
        if not alive:
            assert self._job_back is not None
            return self._job_back
        detected = now if lives else max(self._missed_at(each) for each in alive)
        usable = max(self._there_at(each, fault, outage) for each in alive)
        return self._job_fails(_JobRestart(outage.number, detected, usable, [] if lives else alive))

    def _job_fails(self, newest: _JobRestart) -> Return:
        """Counts failures as they are noticed: those that struck before, and are noticed later, wait anew."""
        if self._job_back is not None and self._job_back.ready < self._kernel.now:
            self._restarts[-1].over = self._job_back.ready
        insort(self._restarts, newest, key=lambda restart: (restart.detected, restart.number))
        first = self._restarts.index(newest)
        for place in range(first, len(self._restarts)):
            self._order(place)
        for restart in self._restarts[first + 1 :]:
            self._launch_elsewhere(restart.killed)
        processes = (self._known[each] for each in self._bolts if each in self._known)
        launched = max([newest.ordered, *(known.launched for known in processes)])
        ready = max(self._prepared(each, launched, newest.number) for each in self._bolts)
        self._job_back = Return(newest.detected, ready, newest.ordered, launched)
        return self._job_back

    def _order(self, place: int) -> None:
        """Launch anew who has died of this fault of the job, with the wait that its place asks for."""
        restart = self._restarts[place]
        earlier = [
            Earlier(one.detected, following.detected if one.over is None else one.over)
            for one, following in pairwise(self._restarts[: place + 1])
        ]
        restart.ordered = ordered = self._ordered(restart.detected, earlier, restart.usable)
        for each in restart.killed:
            launched = self._launched(each, ordered, restart.number)
            self._known[each] = _Restart(Return(restart.detected, launched, ordered, launched), ())

    def _there_at(self, victim: Any, fault: Fault, outage: Outage) -> int:
        """When its host is repaired, or one in reserve takes its number (and is in reserve then)."""
        if self._slots is not None:
            return 0 if fault.process_lives else self._slots.there_at(victim)
        now, place = self._kernel.now, (outage.number, victim.host)
        repaired = now + fault.out_of_order
        if not fault.out_of_order or not self._reserve:
            return repaired
        if place not in self._usable:
            self._reserve.sort()
            self._usable[place] = min(repaired, max(now, self._reserve[0]))
            if self._reserve[0] < repaired:
                self._reserve[0] = repaired
        return self._usable[place]

    def _ordered(self, detected: int, earlier: Sequence[Earlier], usable: int) -> int:
        """When a restart is launched, not before ``usable`` (ns); it may never be."""
        restarts = self._detector.restarts
        wait = 0 if restarts is None else restarts.wait(detected, earlier)
        return NEVER if wait is None else max(detected + wait, usable)

    # What never comes has no end either.

    def _launched(self, victim: Any, ordered: int, number: int) -> int:
        takes = self._drawn(self._detector.launch, self._process(victim), Purpose.LAUNCH, number)
        return min(ordered + takes, NEVER)

    def _prepared(self, victim: Any, launched: int, number: int) -> int:
        takes = self._drawn(self._detector.prepare, victim.name, Purpose.PREPARE, number)
        return min(launched + takes, NEVER)

    def _process(self, victim: Any) -> str:
        """The name of the worker that a task runs in; of a machine, its own."""
        if isinstance(victim, Machine):
            return f"{victim.name}.{victim.replica}"
        workers = self._job.deployment.cluster.worker_of
        return process_name(workers[victim.component.name, victim.index, victim.replica])

    def _missed_at(self, victim: Any) -> int:
        """When it is missed if it is silent now: a timeout after its newest heartbeat, or its order (ns)."""
        now, interval, known = self._kernel.now, self._detector.interval, self._known.get(victim)
        first = self._detector.phase(self._draws, self._process(victim)) if known is None else known.launched
        begun = 0 if known is None else known.ordered
        since, until = self._pauses.get(victim, (0, 0))
        if until > begun and now < until:
            last = last_beat(since, first, interval, begun)
        else:
            last = last_beat(now, first, interval, begun)
            last = max(until, last) if until > begun else last
        return max(now, last + self._detector.timeout)


def relocate(job: Job, places: Mapping[Task, tuple[int, int]]) -> None:
    """From now on these tasks, which are down, live elsewhere: {task: (host, worker there)}.

    Their messages take other ways, through other cards, and they share other cores; with bounded queues they
    keep their links (see `Deployment.moves`). All data have been moved to the present.
    """
    for task, (_, worker) in places.items():
        job.supervisor.workers[task] = worker
    moved = {task: host for task, (host, _) in places.items() if host != task.host}
    outlets = (outlet for task in job.tasks for outlet in task.outlets)
    outputs = (channel for outlet in outlets for row in outlet.channels for channel in row)
    channels = [channel for channel in outputs if channel.up in moved or channel.down in moved]
    before = [(channel.up.host, channel.down.host) for channel in channels]
    for task, host in moved.items():
        task.host = host
    job.used.update(moved.values())
    if moved and job.deployment.moves:
        job.lead(channels, before)


class FreeSlots:
    """Finds a slot for each task whose host fails, and keeps it until the task is launched there.

    ``listener``: host of who has them launched; hosts that it does not hear are out of the question.
    """

    def __init__(self, job: Job, listener: int | None) -> None:
        self._job, self._listener = job, listener
        self._hosts = job.deployment.cluster.hosts
        self._repairs = Repairs(self._hosts)
        self._kept: dict[Task, tuple[int, int]] = {}
        """Host and worker of those that are to be launched elsewhere."""
        self._cuts: dict[Between, int] = {}
        """Until when (ns) the network is cut between these."""

    def cut(self, between: Between, until: int) -> None:
        self._cuts[between] = max(until, self._cuts.get(between, 0))

    def hears(self, host: int) -> bool:
        now, listener = self._job.kernel.now, self._listener
        if listener is None:
            return True
        return not any(until > now and cut.part(host, listener) for cut, until in self._cuts.items())

    def waiting_on(self, fault: Fault) -> list[Task]:
        """Those whose slots a fault takes, before they were launched there."""
        kept = self._kept.items()
        return [task for task, (host, _) in kept if fault.breaks(self._hosts[host].rack, host)]

    def struck(self, fault: Fault, victims: Iterable[Any]) -> None:
        """A fault strikes these now: tasks of hosts that fail get slots elsewhere, one after the other."""
        self._repairs.struck(fault, self._job.kernel.now)
        broken = {host.number for host in self._hosts if fault.breaks(host.rack, host.number)}
        if broken:
            lost = [victim for victim in victims if self._seat(victim)[0] in broken]
            self.find([task for task in self._job.tasks if task in lost], broken)

    def find(self, tasks: Sequence[Task], broken: Iterable[int] = ()) -> None:
        """Find slots for these, on none of the ``broken`` hosts; who finds none is launched where it was."""
        self.forget(tasks)
        for task in tasks:
            place = self._place(task, {task.host, *broken})
            if place is not None:
                self._kept[task] = place

    def there_at(self, victim: Any) -> int:
        """From when on it can be launched: at once elsewhere, or when its host is repaired (ns)."""
        elsewhere = victim in self._kept or victim.host is None
        return 0 if elsewhere else self._repairs.over(victim.host)

    def forget(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._kept.pop(task, None)

    def launch(self, tasks: Iterable[Task]) -> None:
        going = {task: self._kept.pop(task) for task in tasks if task in self._kept}
        if going:
            relocate(self._job, going)

    def _seat(self, task: Any) -> tuple[int | None, int]:
        """Host and worker of a task, or of the slot that is kept for it."""
        if task in self._kept:
            return self._kept[task]
        return task.host, self._job.supervisor.worker(task)

    def _place(self, task: Task, broken: set[int]) -> tuple[int, int] | None:
        """Host and worker: if possible no replica there, then the fewest tasks."""
        now = self._job.kernel.now
        seats = {other: self._seat(other) for other in self._job.tasks if other is not task}
        taken = [host for host, _ in seats.values()]
        fleet = {
            seats[other][0]
            for other in seats
            if (other.component, other.index) == (task.component, task.index)
        }
        free = [
            host.number
            for host in self._hosts
            if host.number not in broken
            and self._repairs.over(host.number) <= now
            and self.hears(host.number)
            and (host.slots is None or taken.count(host.number) < host.slots)
        ]
        if not free:
            return None
        found = min(free, key=lambda host: (host in fleet, taken.count(host), host))
        workers = range(self._job.deployment.cluster.workers_per_host)
        there = [worker for host, worker in seats.values() if host == found]
        return found, min(workers, key=lambda worker: (there.count(worker), worker))
