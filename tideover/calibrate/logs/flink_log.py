"""A Flink JobManager's log, line by line: jobs, their failures with stages, checkpoints, settings.

The messages are those of Flink 1.11 to 2.3: ``DefaultExecutionGraph.transitionState`` and
``Execution.transitionState`` (a job, or a task, "switched from"), ``DefaultScheduler`` ("tasks will be
restarted", "global failure"), ``ResourceManager`` and ``JobMaster`` (TaskManagers that register, time out or
are "no longer reachable"), ``CheckpointCoordinator`` and ``GlobalConfiguration``. Pekko, or Akka, says when a
connection is lost ("Association with remote system"). The adaptive scheduler cancels its execution graph and
makes a new one, where the default scheduler says RESTARTING.

A log has local times. "Triggering checkpoint … @ …" has the milliseconds since 1970 too, which tells the
time zone.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import MOST_KEPT, Failure, Mark, Setting, Stage

# When a line was written: a date and a time in its first bytes (Flink: `%d{yyyy-MM-dd HH:mm:ss,SSS}`), with
# or without a zone; JSON layouts have milliseconds, or seconds and nanoseconds, since 1970.

_TIME = re.compile(rb"(\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d)[.,](\d{3,9})( ?(?:Z|UTC|GMT)\b|[+-]\d\d:?\d\d)?")
_WITHIN = 64
_JSON = re.compile(rb'"(?:epochSecond":(\d{9,10}),"nanoOfSecond":(\d{1,9})|timeMillis":(\d{12,13}))\b')
_FIRST_LINES = 200
"""Among so many lines one has a time: a log may begin with a banner, or in a stack trace."""
_QUARTER = 900
"""Time zones differ by quarters of an hour."""


class NoTime(ValueError):
    """A line has no time; ``said`` is what stands there in its place, if anything does."""

    def __init__(self, said: str = "") -> None:
        super().__init__(said)
        self.said = said


class Clock:
    """Reads times of lines as if the log's clock showed UTC; ``utc`` mends them when ``anchor`` has told the
    zone. Of an hour that comes twice, when clocks are set back, the later one is taken.
    """

    def __init__(self) -> None:
        self._zones: list[tuple[float, float]] = []
        self._second, self._epoch = b"", 0.0

    @property
    def knows_zone(self) -> bool:
        return bool(self._zones)

    def at(self, line: bytes) -> float:
        """Seconds since 1970, local unless the line says its zone; raises NoTime."""
        found = _TIME.search(line, 0, _WITHIN)
        if found is None:
            return self._of_json(line)
        second, fraction, zone = found.groups()
        if second != self._second:
            try:
                moment = datetime.fromisoformat(second.decode().replace("_", "T") + "+00:00")
            except ValueError:
                raise NoTime(found[0].decode()) from None
            self._second, self._epoch = second, moment.timestamp()
        at = self._epoch + float(b"0." + fraction)
        if zone is None:
            return at
        if zone[:1] in b"+-":
            at -= (1 if zone[:1] == b"+" else -1) * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
        return self._in_utc(at)

    def _of_json(self, line: bytes) -> float:
        found = _JSON.search(line) if line[:1] == b"{" else None
        if found is None:
            raise NoTime
        seconds, nanoseconds, milliseconds = found.groups()
        at = int(milliseconds) / 1000 if milliseconds else int(seconds) + int(nanoseconds) / 1e9
        return self._in_utc(at)

    def _in_utc(self, at: float) -> float:
        if not self._zones:
            self._zones.append((at, 0.0))
        return at

    def anchor(self, local: float, epoch: float) -> None:
        """A line with this time says what it is in UTC, give or take some minutes."""
        offset = float(_QUARTER * round((local - epoch) / _QUARTER))
        if not self._zones or self._zones[-1][1] != offset:
            self._zones.append((local, offset))

    def utc(self, local: float) -> float:
        """A time of the log in UTC; the same if nothing has told its zone."""
        if not self._zones:
            return local
        place = bisect_right(self._zones, (local, float("inf"))) - 1
        return local - self._zones[max(place, 0)][1]


def first_time(head: bytes) -> float | None:
    """The first time in the first bytes of a log, local; None if there is none: it is no log."""
    clock = Clock()
    for line in head.split(b"\n")[:_FIRST_LINES]:
        with suppress(NoTime):
            return clock.at(line)
    return None


# What lines say.

_STATE = re.compile(rb"Job (.*) \((\w{32})\) switched from state (\w+) to (\w+)\.")
_TASK = re.compile(rb"/(\d+)\) \((\w+)\) switched from (\w+) to (\w+)(?: on (\S+))?")
_DEPLOYING = re.compile(rb"with attempt id (\w+)(?: and vertex id \w+)? to (\S+) @")
_GRAPH = re.compile(rb"Created execution graph (\w{32}) for job (\w{32})")
_REGISTERED = re.compile(rb"Registering TaskManager with ResourceID (\S+) \((\S+?)/user/")
_ADDRESS = re.compile(rb"remote system \[([^\]]+)\]")
_LOST = re.compile(rb"TaskManager with id (\S+?)(?:\([^)]*\))? +(?:timed out|is no longer reachable)")
_TRIGGERED = re.compile(rb"Triggering (?:checkpoint|savepoint) (\d+) \(.*\) @ (\d{13}) for job (\w{32})")
_COMPLETED = re.compile(
    rb"Completed checkpoint (\d+) for job (\w{32}) \((\d+) bytes(?:, checkpointDuration=|, | in )(\d+) ms"
)
_RESTORING = re.compile(rb"Restoring job (\w{32}) from (?:latest valid checkpoint: )?(\w+) (\d+) @ (\d+)")
_PROPERTY = re.compile(rb"Loading (?:dynamic )?configuration property: ([\w.-]+), (.*)")
_STRATEGY = re.compile(rb"Using restart back ?off time strategy (.*) for (.*) \((\w{32})\)")
_STARTED = re.compile(rb"(Starting \w+(?= \(Version: [\w.-]))? \(Version: ")
_FAILED_CHECKPOINT = re.compile(rb"Failed to trigger (?:or complete )?checkpoint .*?for job (\w{32})")

_STATES = frozenset(b"CREATED SCHEDULED DEPLOYING INITIALIZING RECOVERING RUNNING RECONCILING".split())
_STATES |= frozenset(b"CANCELING CANCELLING CANCELED FAILING FAILED FINISHED RESTARTING SUSPENDED".split())
"""Of tasks (``ExecutionState``) and jobs (``JobStatus``)."""
_RANK = {b"CREATED": 0, b"SCHEDULED": 0, b"DEPLOYING": 1, b"INITIALIZING": 2, b"RECOVERING": 2, b"RUNNING": 3}
_LAYOUT = 256
"""Bytes of what a layout puts before a message: time, level, thread, logger."""
_OF_A_TRACE = re.compile(rb"\s|Caused by: |Suppressed: |[\w.$]+(?:Exception|Error)\b")
"""What belongs to the record before it, and has no time of its own."""
_STILL_S = 60.0
"""A connection that has been silent about its loss for so long was well in between."""


@dataclass
class _Recovery:
    """A failure under way. ``stages``: with local times; ``reached``: of the newest restart."""

    stages: list[Stage]
    cause: str
    lost: set[bytes] = field(default_factory=set)
    reached: dict[str, Stage] = field(default_factory=dict)
    tried: bool = False
    over: bool = False


@dataclass
class Job:
    """What the log says of one job. ``checkpoints``: by number; times are local until ``Clock.utc``."""

    id: str
    name: str = ""
    tasks: dict[bytes, int] = field(default_factory=dict)
    placed: dict[bytes, bytes] = field(default_factory=dict)
    by_rank: Counter[int] = field(default_factory=Counter)
    parallelism: int = 0
    under_way: _Recovery | None = None
    ended: list[_Recovery] = field(default_factory=list)
    checkpoints: dict[int, dict[str, float]] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)
    runs: bool = False

    def ranked(self, attempt: bytes, rank: int | None) -> None:
        """A task has reached a rank; None: it is no more."""
        before = self.tasks.pop(attempt, None)
        if before is not None:
            self.by_rank[before] -= 1
        if rank is None:
            self.placed.pop(attempt, None)
        else:
            self.tasks[attempt] = rank
            self.by_rank[rank] += 1

    def close(self) -> None:
        if self.under_way is not None:
            self.ended.append(self.under_way)
            self.under_way = None


def _mark(file: str, number: int, line: bytes) -> Mark:
    """A line, and what it says, without what its layout puts before a message."""
    _, dash, said = line[:_LAYOUT].partition(b" - ")
    text = (said + line[_LAYOUT:][: 2 * MOST_KEPT] if dash else line).decode("utf-8", "replace")
    return Mark(file, number, " ".join(text.split())[:MOST_KEPT])


_Found = re.Match[bytes]
_Take = Callable[["Log", _Found, float], bool | None]


class Log:
    """Reads logs of one JobManager in the order of their times; ``jobs`` and ``settings`` are what it found;
    ``registered``: when TaskManagers did so last, by their ids; ``freed``: when the ResourceManager gave them
    up, and counts their slots no more.

    ``feed`` takes the files, one after the other.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.settings: dict[str, Setting] = {}
        self.clock = Clock()
        self.first = self.last = float("nan")
        self._graphs: dict[bytes, str] = {}
        self._unnamed: dict[bytes, str] = {}
        self.registered: dict[str, float] = {}
        self.freed: dict[str, float] = {}
        self._address: dict[bytes, bytes] = {}
        self._broken: dict[bytes, tuple[float, float, Mark]] = {}
        self._newest = ""
        self._cause_of: _Recovery | None = None
        self._here = "", 0, b""
        self._before = self.last, self._here
        self._gap: tuple[Stage, Stage] | None = None

    # One line after the other.

    def feed(self, file: LogFile) -> None:
        number, line = 0, b""
        for number, line in file.lines():
            if self._cause_of is not None:
                self._cause(line)
            if line[:1] == b"\t":  # of a stack trace
                continue
            for phrase, pattern, take in _PHRASES:
                if phrase in line:
                    self._line(file, number, line, pattern, take)
                    break
        self._tail(line)
        if file.is_cut():
            file.refuse(number, "has no end: the file is cut off, or was being written")

    def _line(self, file: LogFile, number: int, line: bytes, pattern: re.Pattern[bytes], take: _Take) -> None:
        try:
            at = self.clock.at(line)
        except NoTime as error:
            if error.said:
                file.refuse(number, f"{error.said} is no time: the line is passed over")
            elif not _OF_A_TRACE.match(line):
                file.refuse(number, "says what happened, but not when: it is passed over")
            return
        if not self.first <= at:
            self.first = at
        self._before, self._here, self.last = (self.last, self._here), (file.name, number, line), at
        found = pattern.search(line)
        if found is None or take(self, found, at) is False:
            file.refuse(number, "is cut off, or of a form that is not known: it is passed over")

    def _tail(self, line: bytes) -> None:
        """The last time of the file, if its last line has one."""
        with suppress(NoTime):
            at = self.clock.at(line)
            self.last = at if math.isnan(self.last) else max(self.last, at)

    def _stage(self, name: str, at: float) -> Stage:
        return Stage(name, at, _mark(*self._here))

    # What lines say; False: the line is not whole.

    def _switched(self, of: _Found, at: float) -> bool:
        line = of.string
        if b"switched from state" in line:
            found = _STATE.search(line)
            if found is None or found[4] not in _STATES:
                return b"Application" in line
            name, id, old, new = found.groups()
            self._job_switched(name, id, old, new, at)
            return True
        if (found := _TASK.search(line)) and found[4] in _STATES:
            number, attempt, _, after, where = found.groups()
            if job := self._job_of(attempt):
                job.parallelism = max(job.parallelism, int(number))
                self._task_switched(job, attempt, after, where or b"", at)
            return True
        return b")#" in line  # a TaskManager's

    def _job_switched(self, name: bytes, id: bytes, before: bytes, after: bytes, at: float) -> None:
        job = self._job(id)
        job.name = name.decode("utf-8", "replace")
        recovery = job.under_way
        if after == b"RUNNING":
            self._newest = job.id
            if (recovery is None or recovery.over) and before == b"CREATED" and job.runs:
                job.tasks.clear()
                job.by_rank.clear()
                recovery = self._fails(job, at, "the JobManager has started again")
                if self._gap is not None:
                    recovery.stages[:] = self._gap
            job.runs = True
            if recovery is not None:
                recovery.stages.append(self._stage("restart_tried", at))
                recovery.tried, recovery.over = True, False
        elif after in (b"RESTARTING", b"FAILING"):
            self._struck(job, at, "the job restarts" if after == b"RESTARTING" else "the job fails")
        elif after in (b"FAILED", b"CANCELED", b"FINISHED") and (recovery is None or after != b"CANCELED"):
            job.runs = False
            job.close()

    def _task_switched(self, job: Job, attempt: bytes, after: bytes, where: bytes, at: float) -> None:
        rank, recovery = _RANK.get(after), job.under_way
        if where:
            job.placed[attempt] = where
        if after == b"FAILED":
            self._struck(job, at, "")
        job.ranked(attempt, rank)
        if rank is None:
            self._unnamed.pop(attempt, None)
        if recovery is None or not recovery.tried or rank is None:
            return
        if after == b"SCHEDULED":
            recovery.reached.clear()
            recovery.over = False
        for stage, least in (("slots", 1), ("deployed", 2), ("running", 3)):
            if not any(job.by_rank[below] for below in range(least)):
                recovery.reached.setdefault(stage, self._stage(stage, at))
        recovery.over = "running" in recovery.reached

    def _deploying(self, found: _Found, at: float) -> None:
        if job := self._job_of(found[1]):
            job.placed[found[1]] = found[2]

    def _graph(self, found: _Found, at: float) -> None:
        self._graphs[found[1]] = found[2].decode()

    def _registered(self, found: _Found, at: float) -> None:
        self._address[found[2]] = found[1]
        self.registered[found[1].decode()] = at
        self._broken.pop(found[1], None)

    def _association(self, found: _Found, at: float) -> None:
        """The connection to a TaskManager is broken; what counts is when that began."""
        if name := self._address.get(found[1]):
            since, last, mark = self._broken.get(name, (at, at, _mark(*self._here)))
            if at - last > _STILL_S:
                since, mark = at, _mark(*self._here)
            self._broken[name] = (since, at, mark)

    def _gone(self, found: _Found, at: float) -> None:
        """A TaskManager is given up, by the JobMaster or the ResourceManager."""
        name = found[1]
        if b"ResourceManager" in self._here[2]:
            self.freed[name.decode()] = at
        since = self._broken.get(name, (at, at, _mark(*self._here)))
        self._broken[name] = (since[0], at, since[2])
        for recovery in (job.under_way for job in self.jobs.values()):
            if recovery and not recovery.over and all(stage.name != "given_up" for stage in recovery.stages):
                recovery.stages.append(self._stage("given_up", at))
                recovery.lost.add(name)

    def _global(self, found: _Found, at: float) -> None:
        job = self.jobs.get(self._newest) if len(self.jobs) == 1 else None
        if job is not None and (job.under_way is None or job.under_way.over):
            self._fails(job, at, "a global failure")

    def _triggered(self, found: _Found, at: float) -> None:
        epoch = int(found[2]) / 1000
        self.clock.anchor(at, epoch)
        job = self._job(found[3])
        job.checkpoints[int(found[1])] = {"triggered": epoch}

    def _completed(self, found: _Found, at: float) -> None:
        job = self._job(found[2])
        row = job.checkpoints.setdefault(int(found[1]), {})
        row |= {"completed": at, "size": float(found[3]), "duration": int(found[4]) / 1000}
        recovery = job.under_way
        if recovery is not None and recovery.over:
            recovery.reached["snapshot"] = self._stage("snapshot", at)
            job.close()

    def _no_checkpoint(self, found: _Found, at: float) -> None:
        self._job(found[1])

    def _restoring(self, found: _Found, at: float) -> None:
        job = self._job(found[1])
        row = job.checkpoints.setdefault(int(found[3]), {"triggered": int(found[4]) / 1000})
        row["restored"] = row.get("restored", 0.0) + 1

    def _property(self, found: _Found, at: float) -> None:
        key, value = found[1].decode(), found[2].decode("utf-8", "replace").strip()
        self.settings[key] = Setting(key, value, _mark(*self._here))

    def _strategy(self, found: _Found, at: float) -> None:
        job = self._job(found[3])
        job.name = job.name or found[2].decode("utf-8", "replace")
        value = found[1].decode("utf-8", "replace")
        job.settings["restart-strategy"] = Setting("restart-strategy", value, _mark(*self._here))

    def _started(self, found: _Found, at: float) -> None:
        before, here = self._before
        if found[1] and any(job.runs for job in self.jobs.values()):
            self._gap = Stage("failed", before, _mark(*here)), self._stage("detected", at)

    # Jobs and their failures.

    def _job(self, id: bytes) -> Job:
        name = id.decode()
        if name not in self.jobs:
            self.jobs[name] = Job(name)
            self._newest = name
        return self.jobs[name]

    def _job_of(self, attempt: bytes) -> Job | None:
        """Whose task it is: by its execution graph (Flink 1.16 and later), or by who was scheduled then."""
        id = self._graphs.get(attempt.split(b"_", 1)[0])
        if id is None:
            id = self._unnamed.setdefault(attempt, self._newest)
        return self._job(id.encode()) if id else None

    def _fails(self, job: Job, at: float, cause: str) -> _Recovery:
        job.close()
        placed = set(job.placed.values())
        signs = {
            name: (since, mark)
            for name, (since, last, mark) in self._broken.items()
            if name in placed and at - last <= _STILL_S
        }
        stages = [self._stage("detected", at)]
        if signs:
            stages.insert(0, Stage("failed", *min(signs.values(), key=lambda sign: sign[0])))
        job.under_way = _Recovery(stages, cause, set(signs))
        self._cause_of = job.under_way if not cause else None
        return job.under_way

    def _struck(self, job: Job, at: float, cause: str) -> None:
        """A failure begins; or if one is under way, the restart after it has failed."""
        recovery = job.under_way
        if recovery is None or recovery.over:
            self._fails(job, at, cause)
        elif recovery.tried:
            recovery.stages.append(self._stage("restart_failed", at))
            recovery.reached.clear()
            recovery.tried = False

    def _cause(self, line: bytes) -> None:
        """The line after a failure begins with the exception."""
        recovery, self._cause_of = self._cause_of, None
        with suppress(NoTime):
            self.clock.at(line)
            return
        text = line.decode("utf-8", "replace").strip()
        name, _, said = text.partition(": ")
        if recovery is not None and text:
            recovery.cause = f"{name.rsplit('.', 1)[-1]}: {said}"[:MOST_KEPT] if said else text[:MOST_KEPT]

    def failures(self, job: Job) -> list[Failure]:
        """The failures of a job, with times in UTC."""
        found = []
        for one in [*job.ended, *([job.under_way] if job.under_way else [])]:
            if not any(stage.name == "failed" for stage in one.stages):
                one.stages.insert(0, one.stages[0]._replace(name="failed"))
            ordered = sorted([*one.stages, *one.reached.values()], key=lambda stage: stage.at)
            stages = tuple(stage._replace(at=self.clock.utc(stage.at)) for stage in ordered)
            kind = "kill" if one.lost else "task"
            found.append(Failure(job.name or job.id, one.cause or "no exception is told", stages, kind))
        return found


_PHRASES: tuple[tuple[bytes, re.Pattern[bytes], _Take], ...] = (
    (b"switched from", re.compile(rb"switched from"), Log._switched),
    (b"Completed checkpoint", _COMPLETED, Log._completed),
    (b"Triggering checkpoint", _TRIGGERED, Log._triggered),
    (b"Triggering savepoint", _TRIGGERED, Log._triggered),
    (b" with attempt id ", _DEPLOYING, Log._deploying),
    (b"Association with remote", _ADDRESS, Log._association),
    (b"no longer reachable", _LOST, Log._gone),
    (b"timed out.", _LOST, Log._gone),
    (b"Registering TaskManager", _REGISTERED, Log._registered),
    (b"Created execution graph", _GRAPH, Log._graph),
    (b"Restoring job", _RESTORING, Log._restoring),
    (b"Failed to trigger", _FAILED_CHECKPOINT, Log._no_checkpoint),
    (b"configuration property:", _PROPERTY, Log._property),
    (b"time strategy", _STRATEGY, Log._strategy),
    (b"from a global failure", re.compile(rb"global failure"), Log._global),
    (b" (Version: ", _STARTED, Log._started),
)
"""What a line says that is of use, what is read off it, and what takes that."""
