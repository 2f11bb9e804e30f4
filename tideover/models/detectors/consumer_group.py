"""Kafka's consumer group: a coordinator removes who is silent, and the others take over its tasks.

`Supervisor` asks it who notices what, and who gets which task. Rules of rebalances are changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pydantic import model_validator

from tideover.models.detectors.base import DETECTORS, Detector, Watcher, in_order, last_beat, phase
from tideover.models.detectors.heartbeats import relocate
from tideover.models.runtime.bolt_task import BoltTask
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import NEVER, Grouped, Outage, Return
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.draws import Purpose
from tideover.sim.faults import Fault
from tideover.sim.kernel import Action, Rank
from tideover.sim.registry import setting
from tideover.sim.units import Positive, S, format_duration

_GROUP = -1
"""Order of what the coordinator does at one instant: before what is ready by itself."""

_PROBING = 600 * S
"""Kafka Streams' `probing.rebalance.interval.ms`."""


@DETECTORS.register("consumer_group")
class ConsumerGroup(Detector):
    """Members that are silent for ``session_timeout`` are thrown out, and the others take over their tasks.

    They learn of it by their next heartbeats, and only when all have joined anew are the tasks assigned. So a
    handover takes the timeout, less the age of the last heartbeat, and the time until the last member's next
    one. A process that comes back before the timeout is a new member all the same, for which the old one is
    waited for; unless it is a static member. One that stands still for too long is thrown out, too; when it
    goes on its next heartbeat says so, and it joins anew, without its tasks.

    Who has joined anew commits nothing until tasks are assigned. So where readers see what is committed
    they see nothing of any member while the dead one is waited for.

    Kafka Streams does not leave when it is closed, unless it is told to (`internal.leave.group.on.close`;
    `KafkaStreams.CloseOptions.leaveGroup`, KIP-812).

    Apache Kafka: the classic group protocol (`GroupCoordinator`, `AbstractCoordinator`), with its defaults;
    KIP-62 and KIP-735 for the timeouts, KIP-345 for static members, KIP-429 for those who work on meanwhile;
    `TaskManager.commit` and `rebalanceInProgress` of Kafka Streams for commits that wait; for `eager`
    `ConsumerCoordinator.onJoinPrepare` and `TaskManager.handleRevocation`, which `onJoinComplete`
    calls, too, before a member that hands over tasks joins again; `HeartbeatResponseHandler` (with
    `UNKNOWN_MEMBER_ID`) and `TaskManager.handleLostAll` for who was thrown out, and lives; KIP-441
    (`TaskMovement`) for tasks that move.
    """

    each_alone = True
    false_detections = True

    heartbeat_interval: Positive = setting("distance of two heartbeats of a member", 3 * S)
    session_timeout: Positive = setting(
        "silence after which a member is removed; at least the interval", 45 * S
    )
    rebalance: Distribution = setting(
        "from when all members have joined until tasks are assigned", Constant(value=0)
    )
    restart: Distribution | None = setting(
        "from the death of a process until another joins on its host; none: it stays away"
    )
    static: bool = setting("a process that is back before the session timeout is the same member", False)
    leaves: bool = setting(
        "a member that is stopped on purpose leaves the group; else it is removed as if it had died", False
    )
    protocol: Literal["cooperative", "eager"] = setting(
        "eager: who joins a rebalance commits, and does nothing until tasks are assigned (of `changelog`)",
        "cooperative",
    )
    warmup_replicas: int = setting(
        "so many tasks at once warm up where they are to move, so that members have equally many (of "
        "`changelog`; Kafka: 2); 0: none moves",
        0,
        ge=0,
        le=100,
    )
    probing_interval: Positive | None = setting(
        "from when tasks are assigned, and some are to move, until a rebalance asks whether they are warm; "
        "600 s if not given"
    )

    @model_validator(mode="after")
    def _in_time(self) -> ConsumerGroup:
        if self.heartbeat_interval > self.session_timeout:
            raise ValueError(
                f"heartbeat_interval ({format_duration(self.heartbeat_interval)}) must not be longer than "
                f"session_timeout ({format_duration(self.session_timeout)}): all members would be removed"
            )
        if self.static and self.restart is None:
            raise ValueError("static needs restart: without it no process comes back")
        if self.probing_interval is not None and not self.warmup_replicas:
            raise ValueError("probing_interval needs warmup_replicas: without them no task moves")
        return self

    @property
    def moves_tasks(self) -> bool:
        return True

    def watch(self, job: Job) -> Group:
        return Group(job, self)


@dataclass(eq=False)
class _Member:
    """A process that has joined (times in ns).

    joined   when; its first sign of life
    first    when it sends its first heartbeat
    removed  when it will be, or was; None: it lives
    waits    it has joined a rebalance, and waits for the others
    pause    from when to when its process stands still
    """

    host: int
    worker: int
    joined: int
    first: int
    tasks: list[BoltTask] = field(default_factory=list)
    removed: int | None = None
    waits: bool = False
    pause: tuple[int, int] = (0, 0)


@dataclass
class _Move:
    """Of tasks that are warm elsewhere: they commit, and are revoked."""

    group: Group
    victims: list[BoltTask]
    down: int = 0

    def go_down(self) -> None:
        self.group.revoke(self.victims)

    def give_up(self) -> None:
        """They stay until tasks are assigned next."""


class Group(Watcher):
    def __init__(self, job: Job, detector: ConsumerGroup) -> None:
        super().__init__(job)
        self._detector = detector
        bolts = {(task.host, job.supervisor.worker(task)) for task in job.bolt_tasks}
        spouts = {(spout.host, job.supervisor.worker(spout)) for spout in job.spouts}
        workers = range(job.deployment.cluster.workers_per_host)
        places = [(host.number, worker) for host in self._hosts for worker in workers]
        at = {
            place: _Member(*place, 0, phase(self._draws, _name(*place), detector.heartbeat_interval))
            for place in places
            if place in bolts or place not in spouts
        }
        self._members = list(at.values())
        for task in job.bolt_tasks:
            at[task.host, job.supervisor.worker(task)].tasks.append(task)
        self._without: list[BoltTask] = []
        self._awaited: set[_Member] = set()
        """Whom the rebalance under way waits for."""
        self._rebalances = 0
        self._outages: dict[Any, Outage] = {}
        """The newest of each task that is down."""
        self._moves: dict[BoltTask, _Member] = {}
        """Where tasks are to move."""

    def taken_down(self, struck: list[Any], fault: Fault) -> list[Any]:
        if fault.process_lives:
            return struck
        found = dict.fromkeys(struck)
        for member in self._members:
            if member.removed is None and any(task in found for task in member.tasks):
                found |= dict.fromkeys(member.tasks)
        return in_order(found)

    def returns(
        self, struck: Sequence[Any], job: Sequence[Any], fault: Fault, outage: Outage
    ) -> dict[Any, Return]:
        now = self._kernel.now
        self._repairs.struck(fault, now)
        for member in () if fault.process_lives else self._members:
            host = self._hosts[member.host]
            hit = any(task in struck for task in member.tasks) or fault.breaks(host.rack, host.number)
            if hit and member.removed is None:
                self._dies(member, outage)
        found: dict[Any, Return] = {}
        for victim in struck:
            found[victim] = Return(now, now, now, now)
            if isinstance(victim, BoltTask) and (not fault.process_lives or not victim.up):
                detected = next((m.removed for m in self._members if victim in m.tasks), None)
                if detected is None:
                    detected = self._outages[victim].returns[victim].detected
                found[victim] = Return(detected, NEVER, NEVER, NEVER)
                self._outages[victim] = outage
        return found

    def stopped(self, victims: Sequence[Any], outage: Outage, gone: Fault | None) -> dict[Any, Return]:
        now, back, found = self._kernel.now, outage.ready_at, super().stopped(victims, outage, gone)
        for member in self._members:
            host = self._hosts[member.host]
            # with tasks or without
            hit = gone is None or gone.breaks(host.rack, host.number)
            if hit and member.removed is None:
                self._away(member, now if self._detector.leaves else self._runs_out(member))
                self._at(back, partial(self._runs, member))
                found |= dict.fromkeys(member.tasks, Return(now, NEVER, NEVER, NEVER))
                self._outages |= dict.fromkeys(member.tasks, outage)
        return found

    def paused(self, victim: Any, until: int) -> None:
        """Its process: it sends no heartbeats, and hears of no rebalance."""
        now = self._kernel.now
        for member in self._members:
            if victim in member.tasks and member.removed is None:
                since, earlier = member.pause if now < member.pause[1] else (now, now)
                member.pause = pause = (since, max(until, earlier))
                for task in member.tasks:
                    if task is not victim and task.up:
                        task.stop_until(until)
                removed = self._runs_out(member)
                if removed < pause[1]:
                    self._at(removed, partial(self._is_missed, member, pause))
                self._kernel.at(pause[1], Rank.FAULT, partial(self._goes_on, member, pause), _GROUP)

    def _is_missed(self, member: _Member, pause: tuple[int, int]) -> None:
        """It is thrown out, though it lives. Nobody listens to it, and it does not know until it goes on."""
        if member.pause == pause and member.removed is None:
            member.removed = self._kernel.now
            if member.tasks:
                self._taken("false_detection", _name(member.host, member.worker), in_order(member.tasks))
            self._at(pause[1], partial(self._runs, member))
            self._remove(member)

    def _goes_on(self, member: _Member, pause: tuple[int, int]) -> None:
        """With the heartbeat that is overdue."""
        if member.pause == pause and member.removed is None:
            member.pause, member.first = (0, 0), self._kernel.now
            member.joined = member.first
            self._at(member.first, partial(self._hears, member, self._rebalances))

    def _hears(self, member: _Member, number: int) -> None:
        """What there was to learn while it stood still, and which tasks it was assigned."""
        if member.removed is None:
            self._learns(member, number, member.joined)
            self._ready(member.tasks)

    def fenced(self, task: BoltTask) -> None:
        """Its member gives up all that it has, and joins anew: this takes place during a rebalance."""
        member = next(member for member in self._members if task in member.tasks)
        self._taken("fenced", _name(member.host, member.worker), in_order(member.tasks))

    def _taken(self, kind: str, where: str, tasks: list[BoltTask]) -> None:
        """From members that live."""
        supervisor, back = self._job.supervisor, Return(self._kernel.now, NEVER, NEVER, NEVER)
        for member in self._members:
            member.tasks = [task for task in member.tasks if task not in tasks]
        supervisor.restart(kind, where, tasks, dict.fromkeys(tasks, back))
        self._outages |= dict.fromkeys(tasks, supervisor.outages[-1])
        self._without = in_order([*self._without, *tasks])

    def _at(self, when: int, act: Action) -> None:
        self._kernel.at(when, Rank.READY, act, _GROUP)

    def _runs_out(self, member: _Member) -> int:
        """When a member that falls silent now is removed (ns)."""
        now, d = self._kernel.now, self._detector
        silent = member.pause[0] if now < member.pause[1] else now
        last = last_beat(silent, member.first, d.heartbeat_interval, member.joined)
        return max(now, last + d.session_timeout)

    def _away(self, member: _Member, removed: int) -> None:
        """Its process ends; it will be ``removed`` then (ns)."""
        member.removed, member.waits, member.pause = removed, False, (0, 0)
        self._at(removed, partial(self._remove, member))

    def _dies(self, member: _Member, outage: Outage) -> None:
        now, d = self._kernel.now, self._detector
        self._away(member, self._runs_out(member))
        if d.restart is not None:
            name = _name(member.host, member.worker)
            back = self._drawn(d.restart, name, Purpose.LAUNCH, outage.number)
            self._at(now + back, partial(self._runs, member))

    def _remove(self, member: _Member) -> None:
        if member not in self._members or member.removed != self._kernel.now:
            return  # it is back
        self._members.remove(member)
        self._without = in_order([*self._without, *member.tasks])
        if member in self._awaited:
            self._rejoined(member)
        elif not self._awaited:
            self._rebalance()

    def _runs(self, old: _Member) -> None:
        """A process runs on the host of one that died."""
        now, first = self._kernel.now, self._kernel.now + self._detector.heartbeat_interval
        if self._repairs.over(old.host) > now:
            self._at(self._repairs.over(old.host), partial(self._runs, old))
        elif self._detector.static and old in self._members:
            old.removed, old.joined, old.first = None, now, first
            if old in self._awaited:
                self._rejoined(old)
            self._ready(old.tasks)
        else:
            member = _Member(old.host, old.worker, now, first)
            self._members.append(member)
            if not self._awaited:
                self._rebalance(member)

    def _rebalance(self, joined: _Member | None = None) -> None:
        """All others have to learn of it, by their next heartbeat, and join again."""
        now, interval = self._kernel.now, self._detector.heartbeat_interval
        self._rebalances += 1
        self._awaited = {member for member in self._members if member is not joined}
        for member in self._members:
            if member.removed is None and member is not joined:
                beats = max(0, (now - member.first) // interval + 1)
                learns = partial(self._learns, member, self._rebalances, member.joined)
                self._at(member.first + beats * interval, learns)
        self._look()

    def _learns(self, member: _Member, number: int, joined: int) -> None:
        same = member.joined == joined and number == self._rebalances
        same &= not member.pause[0] < self._kernel.now < member.pause[1]
        if not same or member.removed is not None or member not in self._awaited:
            return
        grouped = self._job.context.grouped
        if grouped is not None and any(map(grouped.closes, member.tasks)):  # it joins behind that
            again = self._kernel.now + self._detector.heartbeat_interval
            self._at(again, partial(self._learns, member, number, joined))
        else:
            self._rejoined(member)

    def _rejoined(self, member: _Member) -> None:
        self._awaited.discard(member)
        if member.removed is None:
            member.waits = True
            self._tell(member.tasks, begins=True)
        self._look()

    def _tell(self, tasks: list[BoltTask], begins: bool) -> None:
        grouped, eager = self._job.context.grouped, self._detector.protocol == "eager"
        if grouped is not None:
            for task in tasks:
                grouped.rebalances(task, begins, begins and eager)

    def _look(self) -> None:
        """If nobody is waited for, tasks are assigned soon."""
        if not self._awaited:
            number = self._rebalances
            takes = self._drawn(self._detector.rebalance, "group", Purpose.LAUNCH, number - 1)
            self._at(self._kernel.now + takes, partial(self._assign, number))

    def _assign(self, number: int) -> None:
        if number != self._rebalances or not self._members:
            return  # another one has begun
        waiting = [member for member in self._members if member.waits]
        for member in waiting:
            member.waits = False
        self._tell(in_order(task for member in waiting for task in member.tasks), begins=False)
        chosen: dict[BoltTask, _Member] = {}
        for task in self._without:
            to, newest_first = self._moves.get(task), reversed(self._members)
            if to is None or to.removed is not None:
                to = min(newest_first, key=lambda m: (len(m.tasks), m.host, m.worker))
            chosen[task] = to
            chosen[task].tasks.append(task)
        self._without = []
        relocate(self._job, {task: (member.host, member.worker) for task, member in chosen.items()})
        now = self._kernel.now
        self._ready(t for t, m in chosen.items() if m.removed is None and m.pause[1] <= now)
        if self._detector.warmup_replicas and self._job.context.grouped is not None:
            # behind it: who has just been assigned may have begun with a tuple
            self._at(now, partial(self._balance, self._job.context.grouped, number))

    def _balance(self, grouped: Grouped, number: int) -> None:
        """Who lives is to have as many tasks as others. Those that are warm move, the others warm up."""
        if number != self._rebalances:
            return
        tasks = {member: list(member.tasks) for member in self._members if member.removed is None}
        self._moves = {}
        while tasks and len(self._moves) < self._detector.warmup_replicas:
            ranked = sorted(tasks, key=lambda m: (len(tasks[m]), m.host, m.worker))
            fewest, most = ranked[0], ranked[-1]
            if len(tasks[most]) < len(tasks[fewest]) + 2:
                break
            task = tasks[most].pop()
            tasks[fewest].append(task)
            self._moves[task] = fewest
        grouped.warm_up({task: member.host for task, member in self._moves.items()})
        warm = [task for task in self._moves if task.available and grouped.is_warm(task)]
        if warm and self._job.context.saver is not None:
            self._job.context.saver.save_to_stop(_Move(self, in_order(warm)))
        if self._moves:
            probing = self._detector.probing_interval or _PROBING
            self._at(self._kernel.now + probing, partial(self._probe, self._rebalances))

    def _probe(self, number: int) -> None:
        if number == self._rebalances:
            self._rebalance()

    def revoke(self, tasks: list[BoltTask]) -> None:
        """They are closed; who had them joins anew, and they are assigned with the others."""
        had = [member for member in self._members if any(task in tasks for task in member.tasks)]
        self._taken("reassigned", "group", tasks)
        if not self._awaited:
            self._rebalance()
        for member in had:
            if member in self._awaited and member.pause[1] <= self._kernel.now:
                self._rejoined(member)

    def _ready(self, tasks: Iterable[BoltTask]) -> None:
        for task in in_order(tasks):
            if task in self._outages:
                self._job.supervisor.take_over(task, self._outages.pop(task))


def _name(host: int, worker: int) -> str:
    return f"worker {host}.{worker}"
