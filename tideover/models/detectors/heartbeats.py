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
from dataclasses import dataclass, field, replace
from functools import partial
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
from tideover.models.runtime.announcements import Step
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.spout_task import SpoutTask
from tideover.models.runtime.views import NEVER, Machine, Outage, Return
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.faults import Between, Fault
from tideover.sim.kernel import Rank
from tideover.sim.registry import setting
from tideover.sim.units import MS, Positive, format_duration

Task = SpoutTask | BoltTask


@DETECTORS.register("heartbeats")
class Heartbeats(Detector):
    """A process sends a heartbeat each ``interval``, and counts as dead ``timeout`` after the last one.

    So what fails is noticed after the timeout less the age of its last heartbeat: evenly spread over
    (timeout - interval, timeout], as each process has a phase of its own. Then a process is launched in its
    place, and its tasks are prepared. A failure meanwhile takes the new process with it: its last sign of
    life is the order to launch it, or its own heartbeat. Heartbeats take no time on the wire.

    With ``connection`` a process that dies alone is noticed sooner: peers see its connections closed. Until
    silence, or requests that nobody answers, have told whoever gives out slots, restarts are deployed on
    those of the dead, and fail: each is a failure of its own for ``restarts``. The job's own requests may
    tell sooner, but then whoever gives out slots still counts those of the dead, and gives out no others,
    free ones or those of a ``replacement``, until its own requests, or silence, have told it.

    A process that is stopped on purpose says so: nobody misses it, and ``restarts`` begin anew then (Flink:
    ``disconnectTaskManager`` of `TaskExecutor`; a job that was stopped is submitted as another one). If its
    host is stopped, free slots elsewhere are taken at once.

    Chandra and Toueg: *Unreliable failure detectors for reliable distributed systems*, JACM 43, 1996; Flink's
    ``heartbeat.interval`` and ``heartbeat.timeout`` have these defaults. Flink's closed connections:
    `RemoteTransportException` of `CreditBasedPartitionRequestClientHandler`; its ``rpc-failure-threshold``:
    `DefaultHeartbeatMonitor`, which counts requests that do not reach their recipient; slots of the dead that
    count: `FineGrainedSlotManager`, whose ``ResourceManager`` tells the `JobMaster` of the dead, and hears
    nothing from it; restarts that another failure overtakes: `ExecutionVertexVersioner`.
    """

    omitted: ClassVar[frozenset[str]] = frozenset(
        {"restart_on", "connection", "rpc_failure_threshold", "failed_deployment", "replacement"}
    )
    false_detections: ClassVar[bool] = True
    rescales: ClassVar[bool] = True

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
    connection: Distribution | None = setting(
        "from the death of a process whose host lives until its peers see their connections to it closed; "
        "none: only silence tells"
    )
    rpc_failure_threshold: int | None = setting(
        "so many heartbeat requests in a row that do not reach a dead process end the use of its slots; "
        "none: only the timeout does; needs connection",
        ge=1,
    )
    failed_deployment: Distribution = setting(
        "from the deployment of a restart on slots of a dead process until it fails; at least 1 ms",
        Constant(value=50 * MS),
    )
    replacement: Distribution | None = setting(
        "from the death of a process, or the repair of its host, until another has registered in its place, "
        "which restarts then wait for; none: their orders launch it"
    )

    @model_validator(mode="after")
    def _in_time(self) -> Heartbeats:
        if self.interval > self.timeout:
            raise ValueError(
                f"interval ({format_duration(self.interval)}) must not be longer than timeout "
                f"({format_duration(self.timeout)}): a process that lives would count as dead"
            )
        if self.rpc_failure_threshold is not None and self.connection is None:
            raise ValueError("rpc_failure_threshold needs connection: give 0 s if peers notice at once")
        return self

    @property
    def tries_again(self) -> bool:
        return self.connection is not None

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


def _later(back: Return, late: int) -> Return:
    """The same, launched and ready so much (ns) later."""
    late = max(0, late)
    launched = min((back.launched or 0) + late, NEVER)
    return back._replace(ready=min(back.ready + late, NEVER), launched=launched)


class _Death(NamedTuple):
    """Of a process (ns).

    dropped  from when on nothing is deployed on its slots any more
    there    from when on its tasks have another place
    """

    detected: int
    dropped: int
    there: int


@dataclass(eq=False)
class _Restart:
    """The newest restart of a process, and those before it. Until it is ``ordered`` nothing can fail (ns).

    noticed   the failure after which it was ordered: the death, or that of the deployment before; None:
              none, it was stopped on purpose
    there     from when on it has a place to be launched in (ns)
    """

    back: Return
    noticed: int | None
    earlier: Sequence[Earlier] = ()
    there: int = 0

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
    killed   whose processes died of the fault, and are launched anew: from when on there is a place (ns)
    again    what it follows is no fault, but a deployment that has failed
    ordered  when it is deployed (ns)
    waiting  who is launched by it, or was to be: also those that failed deployments have left
    left     those that it does not launch
    over     when the job was back (ns); None: it is not yet, or another failure came before
    """

    number: int
    detected: int
    killed: Mapping[Any, int]
    again: bool = False
    ordered: int = NEVER
    waiting: Mapping[Any, int] = field(default_factory=dict)
    left: Mapping[Any, int] = field(default_factory=dict)
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
        self._cuts = Cuts(job, detector.listener)
        self._slots = FreeSlots(job, self._cuts) if detector.moves_tasks else None
        self._late: dict[Any, int] = {}
        """Of those whose new slot is not given out yet, or was lost before they were launched: from when on
        they have a place (ns).
        """
        self._dead: dict[Any, tuple[int, int]] = {}
        """Of the job: when each process last died, and when its slots were dropped (ns)."""
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
            lost = self._slots.struck(
                fault,
                [each for each in struck if each not in given_up],
                {} if fault.process_lives else self._replaced(filter(self._lives, struck), outage.number),
            )
            for victim in lost:
                self._waits_for_its_host(victim, self._slots.works_from(victim.host))
        for victim in struck if self._slots is None and fault.out_of_order else ():
            if not self._lives(victim) and self._known[victim].noticed is not None:
                self._waits_for_its_host(victim, self._there_at(victim, fault, outage))
        found = {each: self._process_fails(each, fault, outage) for each in struck if each not in job}
        if job:
            hit = [each for each in struck if each in job]
            found |= dict.fromkeys(job, self._all_fail(hit, fault, outage))
        if not fault.process_lives:
            self._launch_elsewhere(struck)
        return found

    def _waits_for_its_host(self, victim: Any, there: int) -> None:
        """It has no slot, or no host, any more: there is a place for it from ``there`` on (ns)."""
        known, of_job = self._known[victim], self._one_job and victim in self._bolts
        if known.noticed is None and not of_job:  # whoever has stopped it brings it back
            known.back = Return(known.back.detected, there, there, there)
            return
        begins, known.there = max(known.ordered, known.there), max(known.there, there)
        known.back = _later(known.back, known.there - begins)
        if of_job and self._job_back is not None:
            self._late[victim] = known.there
            self._job_back = _later(self._job_back, known.launched - (self._job_back.launched or 0))

    def _launch_elsewhere(self, victims: Iterable[Any]) -> None:
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
            self._known[victim] = replace(known, back=Return(now, now, now, now))
            if self._slots is not None:
                self._slots.forget([victim])

    def stopped(self, victims: Sequence[Any], outage: Outage, gone: Fault | None) -> dict[Any, Return]:
        """They say that they go, and are launched by whoever stopped them, or at once in free slots (of a job
        all that has to be, or nothing); then restarts are counted anew.
        """
        now, number, job, slots = self._kernel.now, outage.number, self._one_job, self._slots
        back = Return(now, outage.ready_at, outage.ready_at, outage.ready_at)
        working = [victim for victim in victims if isinstance(victim, Machine) or not victim.idle]
        if slots is not None and gone is not None:
            slots.struck(gone, working, {})
        if slots is not None and job and (gone is None or any(map(self._has_to_wait, working))):
            slots.forget(victims)
        moved: dict[Any, Return] = {}
        for victim in working:
            if slots is not None and slots.keeps(victim):
                launched = self._launched(victim, now, 0, number)
                moved[victim] = Return(now, self._prepared(victim, launched, number), now, launched)
        if job and victims:
            if moved:
                launched = max(one.launched or 0 for one in moved.values())
                ready = max(self._prepared(each, launched, number) for each in self._bolts)
                back = Return(now, ready, now, launched)
            self._restarts.clear()
            self._job_back = back
        for victim in moved if job and moved else victims:
            self._pauses.pop(victim, None)
            self._known[victim] = _Restart(moved.get(victim, back), None)
        self._launch_elsewhere(moved)
        return {victim: back if job else self._known[victim].back for victim in victims}

    def _has_to_wait(self, victim: Any) -> bool:
        """For its host, or for whoever has stopped it at this instant, too."""
        now = self._kernel.now
        waits = self._slots is not None and self._slots.there_at(victim) > now
        return waits or (victim in self._known and self._known[victim].ordered > now)

    def paused(self, victim: Any, until: int) -> None:
        """It is missed if it is silent for too long, though it lives."""
        now = self._kernel.now
        since, earlier = self._pauses.get(victim, (now, 0))
        self._pauses[victim] = pause = (since if now < earlier else now, max(until, earlier))
        missed = self._missed_at(victim)
        if missed < pause[1]:
            self._kernel.at(missed, Rank.READY, partial(self._missed, victim, pause), victim.number)

    def unheard(self, victim: Any, until: int, between: Between) -> None:
        self._cuts.add(between, until)
        if self._detector.listener is not None and between.part(victim.host, self._detector.listener):
            self.paused(victim, until)

    def _missed(self, victim: Any, pause: tuple[int, int]) -> None:
        """Another process takes its place; what it still sends, nobody listens to."""
        now, number = self._kernel.now, len(self._supervisor.outages)
        if self._pauses.get(victim) != pause or not victim.up:
            return
        del self._pauses[victim]
        replaced = self._replaced([victim], number)
        if self._slots is not None and (replaced or not self._cuts.hears(victim.host)):
            self._slots.away(replaced)
            self._slots.find([victim])
        death = _Death(now, now, self._registered(victim, 0, number))
        self._late.pop(victim, None)
        if self._one_job and victim in self._bolts:
            back = self._job_fails(_JobRestart(number, now, {victim: death.there}))
        else:
            back = self._dies(victim, death, number)
        self._supervisor.restart("false_detection", victim.name, [victim], {victim: back})
        self._launch_elsewhere([victim])

    def _process_fails(self, victim: Any, fault: Fault, outage: Outage) -> Return:
        """Of those that are brought back one by one."""
        now, known = self._kernel.now, self._known.get(victim)
        if known is not None and now <= (known.back.ready if fault.process_lives else known.ordered):
            return known.back  # there is no process that could fail, or it is none yet
        if fault.process_lives:
            return Return(now, now, now, now)
        return self._dies(victim, self._death(victim, fault, outage), outage.number)

    def _dies(self, victim: Any, death: _Death, number: int) -> Return:
        """A process dies, or counts as dead: when it is back, but for other faults."""
        earlier: list[Earlier] = []
        last = self._known.get(victim)
        if last is not None and last.noticed is not None:
            ran = last.back.ready < self._kernel.now
            earlier = [*last.earlier, Earlier(last.noticed, last.back.ready if ran else death.detected)]
        noticed, failed = death.detected, []
        while (ordered := self._ordered(noticed, earlier, death.there)) < death.dropped:
            failed.append(self._fails_at(ordered, victim.name, len(earlier)))
            earlier.append(Earlier(noticed, failed[-1]))
            noticed = failed[-1]
        there = max(death.there, self._late.get(victim, 0))
        launched = self._launched(victim, ordered, there, number)
        back = Return(death.detected, self._prepared(victim, launched, number), ordered, launched)
        restart = self._known[victim] = _Restart(back, noticed, earlier, there)

        def has_failed() -> None:
            if self._known[victim] is restart:
                self._deployment_failed([victim], victim)

        for moment in failed:
            self._kernel.at(moment, Rank.READY, has_failed, -1)
        return back

    def _fails_at(self, deployed: int, name: str, number: int) -> int:
        """When a deployment on slots of a dead process fails; ``number``: of failures before it."""
        return deployed + max(MS, self._drawn(self._detector.failed_deployment, name, Purpose.DEPLOY, number))

    def _deployment_failed(self, victims: Sequence[Any], dead: Any) -> None:
        """It has, of a restart of these, on slots of that one's process."""
        self._supervisor.restart_failed(victims)
        what = "restart failed on slots of a dead process"
        self._job.context.say.step(Step(self._kernel.now, dead.name, what))

    def _lives(self, victim: Any) -> bool:
        """Whether there is a process that could fail."""
        return victim not in self._known or self._kernel.now > self._known[victim].ordered

    def _death(self, victim: Any, fault: Fault, outage: Outage) -> _Death:
        """A process dies of a fault now."""
        self._late.pop(victim, None)
        detected = dropped = self._missed_at(victim)
        detector, host = self._detector, victim.host
        broken = host is not None and fault.breaks(self._hosts[host].rack, host)
        if detector.connection is not None and not broken and self._cuts.hears(host):
            process = self._process(victim)
            if detector.rpc_failure_threshold is not None:
                freed, master = self._refused_at(victim, detector.rpc_failure_threshold)
                moves = self._slots is not None and self._slots.keeps(victim)
                if moves or detector.replacement is not None:
                    self._late[victim] = min(dropped, freed)
                dropped = min(dropped, freed, master)
            closed = self._drawn(detector.connection, process, Purpose.CONNECTION, outage.number)
            detected = min(dropped, self._kernel.now + closed)
        return _Death(detected, dropped, self._there_at(victim, fault, outage))

    def _all_fail(self, struck: Sequence[Any], fault: Fault, outage: Outage) -> Return:
        """Of a job that begins again when all its processes are launched, and all its tasks are prepared."""
        now, lives = self._kernel.now, fault.process_lives
        alive = [each for each in struck if self._lives(each)]
        if not alive:
            assert self._job_back is not None
            return self._job_back
        if lives:
            return self._job_fails(_JobRestart(outage.number, now, {}))
        deaths = {each: self._death(each, fault, outage) for each in alive}
        self._dead |= {each: (now, death.dropped) for each, death in deaths.items()}
        noticed = max if self._detector.connection is None else min
        detected = noticed(death.detected for death in deaths.values())
        killed = {each: death.there for each, death in deaths.items()}
        return self._job_fails(_JobRestart(outage.number, detected, killed))

    def _job_fails(self, newest: _JobRestart) -> Return:
        """Counts failures as they are noticed: those that struck before, and are noticed later, wait anew."""
        now, restarts = self._kernel.now, self._restarts
        if restarts and self._job_back is not None and self._job_back.ready < now:
            restarts[-1].over = self._job_back.ready
        restarts[:] = [one for one in restarts if not one.again or one.detected < now]
        insort(restarts, newest, key=lambda restart: (restart.detected, restart.number))
        first = place = restarts.index(newest)
        if self._detector.connection is not None:  # what is under way may fail now, or is overtaken
            first = place = max(0, min(first, sum(one.detected < now for one in restarts) - 1))
        earlier = [self._before(later) for later in range(1, first + 1)]
        while place < len(restarts):  # each may add the next
            self._order(place, earlier)
            place += 1
            if place < len(restarts):
                earlier.append(self._before(place))
        last = newest if self._detector.connection is None else restarts[-1]
        for restart in restarts[first:]:
            self._launch_elsewhere(restart.waiting)
        processes = (self._known[each] for each in self._bolts if each in self._known)
        launched = max([last.ordered, *(known.launched for known in processes)])
        ready = max(self._prepared(each, launched, newest.number) for each in self._bolts)
        self._job_back = Return(newest.detected, ready, last.ordered, launched)
        return self._job_back

    def _before(self, place: int) -> Earlier:
        """The restart of the job before this one."""
        one, following = self._restarts[place - 1 : place + 1]
        return Earlier(one.detected, following.detected if one.over is None else one.over)

    def _order(self, place: int, earlier: Sequence[Earlier]) -> None:
        """Launch anew who has died of this fault of the job, with the wait that its place asks for."""
        restart = self._restarts[place]
        restart.waiting = {**self._restarts[place - 1].left, **restart.killed} if place else restart.killed
        usable = max(restart.waiting.values(), default=0)
        restart.ordered = ordered = self._ordered(restart.detected, earlier, usable)
        restart.left = restart.waiting if self._comes_to_nothing(place) else {}
        for each, usable in restart.waiting.items():
            there = max(usable, self._late.get(each, 0))
            launched = self._launched(each, ordered, there, restart.number)
            back = Return(restart.detected, launched, ordered, launched)
            self._known[each] = _Restart(back, restart.detected, there=there)

    def _comes_to_nothing(self, place: int) -> bool:
        """Whether this restart of the job is overtaken by the next failure, or fails itself: then that is the
        next, unless another comes before.
        """
        if self._detector.connection is None:
            return False
        restart, ordered = self._restarts[place], self._restarts[place].ordered
        if ordered == NEVER:
            return False
        following = self._restarts[place + 1].detected if place + 1 < len(self._restarts) else None
        if following is not None and following <= ordered:
            return True
        dead = [each for each, (since, dropped) in self._dead.items() if since <= ordered < dropped]
        if not dead:
            return False
        failed = self._fails_at(ordered, "job", place)
        if following is None or failed < following:
            again = _JobRestart(restart.number, failed, {}, again=True)
            self._restarts.insert(place + 1, again)

            def has_failed() -> None:
                if again in self._restarts:
                    self._deployment_failed(self._bolts, dead[0])

            self._kernel.at(failed, Rank.READY, has_failed, -1)
        return True

    def _replaced(self, victims: Iterable[Any], number: int) -> dict[Any, int]:
        """By process, how long it takes until another has registered (ns), if one does by itself."""
        takes = self._detector.replacement
        if takes is None:
            return {}
        return {e: self._drawn(takes, self._process(e), Purpose.REPLACEMENT, number) for e in victims}

    def _registered(self, victim: Any, usable: int, number: int) -> int:
        """From when on there is a place for its tasks, if nothing can run there before ``usable`` (ns)."""
        kept = self._slots is not None and self._slots.keeps(victim)
        for takes in () if kept else self._replaced([victim], number).values():
            return max(self._kernel.now, usable) + takes
        return usable

    def _there_at(self, victim: Any, fault: Fault, outage: Outage) -> int:
        return self._registered(victim, self._usable_at(victim, fault, outage), outage.number)

    def _usable_at(self, victim: Any, fault: Fault, outage: Outage) -> int:
        """When its host is repaired, or one in reserve takes its number (and is in reserve then)."""
        if self._slots is not None:
            return self._slots.there_at(victim)
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
        """When a restart is launched, not before ``usable`` (ns) if that is by its order; it may never be."""
        restarts = self._detector.restarts
        wait = 0 if restarts is None else restarts.wait(detected, earlier)
        if wait is None:
            return NEVER
        return max(detected + wait, usable if self._detector.replacement is None else 0)

    # What never comes has no end either.

    def _launched(self, victim: Any, ordered: int, there: int, number: int) -> int:
        takes = self._drawn(self._detector.launch, self._process(victim), Purpose.LAUNCH, number)
        return min(max(ordered, there) + takes, NEVER)

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

    def _refused_at(self, victim: Any, threshold: int) -> Sequence[int]:
        """When each of two has sent it so many requests in vain: who gives out slots, as its heartbeats would
        come, and the job's master (ns).
        """
        now, interval, known = self._kernel.now, self._detector.interval, self._known.get(victim)
        first = self._detector.phase(self._draws, self._process(victim)) if known is None else known.launched
        begun = 0 if known is None else known.ordered
        masters = self._detector.phase(self._draws, "job master")
        lasts = last_beat(now, first, interval, begun), last_beat(now, masters, interval, masters - interval)
        return [last + ((now - last) // interval + threshold) * interval for last in lasts]


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


class Cuts:
    """Which hosts the ``listener``, a host, hears; None: all."""

    def __init__(self, job: Job, listener: int | None) -> None:
        self._job, self._listener = job, listener
        self._until: dict[Between, int] = {}
        """Until when (ns) the network is cut between these."""

    def add(self, between: Between, until: int) -> None:
        self._until[between] = max(until, self._until.get(between, 0))

    def hears(self, host: int | None) -> bool:
        now, listener = self._job.kernel.now, self._listener
        if listener is None or host is None:
            return True
        return not any(until > now and cut.part(host, listener) for cut, until in self._until.items())


class FreeSlots:
    """Finds a slot for each task whose host fails, and keeps it until the task is launched there.

    ``cuts``: hosts that are not heard are out of the question.
    """

    def __init__(self, job: Job, cuts: Cuts) -> None:
        self._job, self._cuts = job, cuts
        self._hosts = job.deployment.cluster.hosts
        self._repairs = Repairs(self._hosts)
        self._kept: dict[Task, tuple[int, int]] = {}
        """Host and worker of those that are to be launched elsewhere."""
        self._away: dict[int, int] = {}
        """Until when (ns) a host waits for a process that registers in the place of one that has died."""

    def keeps(self, victim: Any) -> bool:
        """Whether a slot is kept for it."""
        return victim in self._kept

    def waiting_on(self, fault: Fault) -> list[Task]:
        """Those whose slots a fault takes, before they were launched there."""
        kept = self._kept.items()
        return [task for task, (host, _) in kept if fault.breaks(self._hosts[host].rack, host)]

    def struck(self, fault: Fault, victims: Iterable[Any], replaced: Mapping[Any, int]) -> list[Task]:
        """A fault strikes these now: tasks of hosts that fail get slots elsewhere, one after the other; and
        so do those of processes that are ``replaced`` by themselves, after so long (ns). Returns those that
        have lost a slot, and found no other.
        """
        self._repairs.struck(fault, self._job.kernel.now)
        self.away(replaced)
        broken = {host.number for host in self._hosts if fault.breaks(host.rack, host.number)}
        lost = [each for each in victims if each in replaced or self._seat(each)[0] in broken]
        had = [each for each in lost if each in self._kept]
        self.find([task for task in self._job.tasks if task in lost], broken)
        return [task for task in had if task not in self._kept]

    def away(self, replaced: Mapping[Any, int]) -> None:
        """Their hosts have no free slots until others have registered in their place."""
        now = self._job.kernel.now
        for victim, takes in replaced.items():
            if not isinstance(victim, Machine):
                there = max(now, self._repairs.over(victim.host)) + takes
                self._away[victim.host] = max(there, self._away.get(victim.host, 0))

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

    def works_from(self, host: int) -> int:
        """When a host is back, and whoever has to register there has (ns)."""
        return max(self._repairs.over(host), self._away.get(host, 0))

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
            and self.works_from(host.number) <= now
            and self._cuts.hears(host.number)
            and (host.slots is None or taken.count(host.number) < host.slots)
        ]
        if not free:
            return None
        found = min(free, key=lambda host: (host in fleet, taken.count(host), host))
        workers = range(self._job.deployment.cluster.workers_per_host)
        there = [worker for host, worker in seats.values() if host == found]
        return found, min(workers, key=lambda worker: (there.count(worker), worker))
