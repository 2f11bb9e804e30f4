"""Spark's event logs and the progress of its streaming queries: batches, failures, what a batch costs.

A failure is an executor that was lost (`SparkListenerExecutorRemoved`), a query that ended with an exception
and began again, or a driver whose log ends while another run of the same query follows: a query keeps its id
in the checkpoint, and gets a new run id whenever it is started (`StreamingQuery.runId`). Executors that Spark
itself took away are none.

stage                lost executor                       new run of a query
``failed``           first task that failed with it      its exception; or the last line of its driver
``detected``         it is removed
``restart_tried``                                        the application, and the query, begins
``slots``            another one is added
``restored``         first batch that ends after it      first batch of the new run
``caught_up``        batches are on time again, as `_late` says
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs import spark_batches as batches_of
from tideover.calibrate.logs import spark_events
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import (
    MOST_KEPT,
    Failure,
    Findings,
    Mark,
    Quantity,
    Setting,
    Stage,
    unknown,
)
from tideover.calibrate.logs.spark_events import LISTENER, Batch, Event, Line
from tideover.models.results import counted

WHAT = "Spark's event logs, StreamingQueryProgress as JSON lines, and drivers' logs that print it"

_EVENTS, _PROGRESS, _DRIVER, _STATUS = "events", "progress", "driver", "status"
_ROLLED = re.compile(r"(?P<folder>.*/)?events_(?P<index>\d+)_[^/]*")
_PLANNED = re.compile(r"killed by driver|decommission", re.IGNORECASE)
"""What Spark says of executors that it took away itself (`ExecutorKilled`, `ExecutorDecommission`)."""
_SETTINGS = (
    *("spark.app.name", "spark.master"),
    *(f"spark.executor.{key}" for key in ("instances", "cores", "memory", "heartbeatInterval")),
    *("spark.network.timeout", "spark.executor.extraJavaOptions", "spark.driver.extraJavaOptions"),
    *("spark.task.maxFailures", "spark.locality.wait", "spark.sql.shuffle.partitions"),
    *("spark.sql.streaming.stateStore.providerClass", "java.version"),
)


def recognises(file: LogFile) -> str:
    name = file.name.rpartition("/")[2]
    if name.startswith((".", "appstatus_")) and len(file.head) < MOST_KEPT:
        return _STATUS if "appstatus_" in name or name.startswith(".events_") else ""
    if file.head.startswith(spark_events.BEGIN) or (not file.head and name.endswith(".lzf")):
        return _EVENTS
    if b'"batchId"' in file.head and b'"durationMs"' in file.head and file.head.startswith(b"{"):
        return _PROGRESS
    driver = (b"made progress: {", b"MicroBatchExecution", b"SparkContext: Running Spark version")
    return _DRIVER if any(word in file.head for word in driver) else ""


def read(files: Sequence[tuple[str, LogFile]]) -> list[Findings]:
    """One finding a query with more than a few batches (a driver may warm up), or application without one."""
    apps: dict[str, Application] = {}
    for part, file in sorted(files, key=lambda one: _place(one[1])):
        if part != _STATUS:
            folder, _ = _place(file)
            apps.setdefault(folder, Application(file.name)).take(part, file)
    batches = Counter(b.query for app in apps.values() for b in app.batches.values())
    batches.update({query: 0 for app in apps.values() for query in app.queries})
    found = [_of_query(query, [app for app in apps.values() if query in app.queries]) for query in batches]
    told = [one for one, n in zip(found, batches.values(), strict=True) if n >= batches_of.FEWEST]
    return (told or found) + [_of_query("", [app]) for app in apps.values() if not app.queries]


def _place(file: LogFile) -> tuple[str, int]:
    """Folder and number of a rolled log (a compacted one has what is needed of those before), or the file."""
    rolled = _ROLLED.fullmatch(file.name)
    return (rolled["folder"] or "", int(rolled["index"])) if rolled else (file.name, 0)


class _Moment(NamedTuple):
    """When an executor, an application or a run of a ``query`` began, failed or ended; its name, and why."""

    at: float
    name: str
    why: str
    mark: Mark
    query: str = ""


@dataclass
class Application:
    """What the log of one application says; ``last``: the last moment that it names, and where; ``alive``:
    when an executor's last task succeeded.
    """

    file: str
    began: _Moment | None = None
    last: tuple[float, Mark] = (float("nan"), Mark("", 0, ""))
    over: bool = False
    batches: dict[tuple[str, int], Batch] = field(default_factory=dict)
    joined: list[_Moment] = field(default_factory=list)
    lost: list[_Moment] = field(default_factory=list)
    planned: list[_Moment] = field(default_factory=list)
    failed: list[_Moment] = field(default_factory=list)
    alive: dict[str, float] = field(default_factory=dict)
    starts: list[_Moment] = field(default_factory=list)
    ends: list[_Moment] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)

    @property
    def queries(self) -> set[str]:
        return {b.query for b in self.batches.values()} | {start.query for start in self.starts}

    @property
    def runs(self) -> set[str]:
        return {b.run for b in self.batches.values()} | {start.name for start in self.starts}

    def take(self, part: str, file: LogFile) -> None:
        last: Line | None = None
        for line in spark_events.lines(file):
            if line.kind.startswith("SparkListener"):
                last = line
            if line.kind == "SparkListenerTaskEnd" and self._succeeded(line.text):
                continue
            if (known := _KNOWN.get(line.kind)) is not None:
                if line.kind.startswith(LISTENER) and last is not None:
                    self._until(file, last)
                if (event := spark_events.parsed(file, line)) is not None:
                    try:
                        known(self, event, file, line)
                    except (KeyError, TypeError, ValueError, AttributeError) as error:
                        lacks = f"has no {error}" if isinstance(error, KeyError) else "has another value"
                        kind = line.kind.rpartition("$")[2]
                        file.refuse(line.number, f"{lacks}, and is not as Spark writes it", kind)
            elif not line.kind and part != _DRIVER and line.text.strip():
                file.refuse(line.number, "is neither an event of Spark nor a progress of a query")
        if last is not None:
            self._until(file, last)

    def _until(self, file: LogFile, line: Line) -> None:
        at = line.time()
        if not at <= self.last[0] and at == at:
            self.last = at, _mark(file, line)

    def _succeeded(self, text: bytes) -> bool:
        """Whether a task succeeded, which is noted without parsing it."""
        if b'"Reason":"Success"' not in text[:300]:
            return False
        executor, finish = text.find(b'"Executor ID":"'), text.find(b'"Finish Time":')
        if min(executor, finish) < 0:
            return False
        name = text[executor + 15 : text.find(b'"', executor + 15)].decode("utf-8", "replace")
        end = text.find(b",", finish)
        try:
            self.alive[name] = max(self.alive.get(name, 0.0), int(text[finish + 14 : end]) / 1000)
        except ValueError:
            return False
        return True

    def application(self, event: Event, file: LogFile, line: Line) -> None:
        self.began = _Moment(event["Timestamp"] / 1000, str(event.get("App ID")), "", _mark(file, line))

    def ended(self, event: Event, file: LogFile, line: Line) -> None:
        self.over = True

    def environment(self, event: Event, file: LogFile, line: Line) -> None:
        told = event["Spark Properties"]
        told |= {"java.version": event.get("JVM Information", {}).get("Java Version")}
        for key in _SETTINGS:
            if told.get(key) is not None:
                self.settings[key] = Setting(key, str(told[key]), _mark(file, line))

    def version(self, event: Event, file: LogFile, line: Line) -> None:
        self.settings["spark.version"] = Setting("spark.version", event["Spark Version"], _mark(file, line))

    def executor(self, event: Event, file: LogFile, line: Line) -> None:
        """One that was added, or removed."""
        at, name, why = event["Timestamp"] / 1000, str(event["Executor ID"]), str(event.get("Removed Reason"))
        lost = self.planned if _PLANNED.search(why) else self.lost
        known = self.joined if line.kind.endswith("Added") else lost
        known.append(_Moment(at, name, why, _mark(file, line)))

    def task(self, event: Event, file: LogFile, line: Line) -> None:
        """A task that did not succeed; of a fetch that failed, the executor is the one that had the data."""
        info, why = event["Task Info"], event["Task End Reason"]
        at = (info["Finish Time"] or info["Launch Time"]) / 1000
        executor = (why.get("Block Manager Address") or info)["Executor ID"]
        self.failed.append(_Moment(at, str(executor), str(why["Reason"]), _mark(file, line)))

    def query_started(self, event: Event, file: LogFile, line: Line) -> None:
        at = spark_events.stamp(event["timestamp"]) if event.get("timestamp") else self.last[0]
        self.starts.append(_Moment(at, str(event["runId"]), "", _mark(file, line), str(event["id"])))

    def query_ended(self, event: Event, file: LogFile, line: Line) -> None:
        """The event has no time: it is that of the last line before it."""
        error = event.get("errorClassOnException") or event.get("exception") or ""
        run, query = str(event["runId"]), str(event["id"])
        self.ends.append(_Moment(self.last[0], run, str(error), _mark(file, line), query))

    def progress(self, event: Event, file: LogFile, line: Line) -> None:
        found = spark_events.batch(event["progress"], _short(file), line.number)
        if found is not None:
            self.batches[found.run, found.number] = found


_KNOWN = {
    "SparkListenerLogStart": Application.version,
    "SparkListenerApplicationStart": Application.application,
    "SparkListenerApplicationEnd": Application.ended,
    "SparkListenerEnvironmentUpdate": Application.environment,
    "SparkListenerExecutorAdded": Application.executor,
    "SparkListenerExecutorRemoved": Application.executor,
    "SparkListenerTaskEnd": Application.task,
    f"{LISTENER}QueryStartedEvent": Application.query_started,
    f"{LISTENER}QueryTerminatedEvent": Application.query_ended,
    spark_events.PROGRESS: Application.progress,
}
"""What is read, by kind of event; all others are passed over."""


def _mark(file: LogFile, line: Line) -> Mark:
    text = line.text[:MOST_KEPT].decode("utf-8", "replace").replace(',"', ', "')  # so that it can be wrapped
    return Mark(_short(file), line.number, text)


def _short(file: LogFile) -> str:
    """A file of a rolled log has the application in its name, as its folder does."""
    return file.name.rpartition("/")[2] if _ROLLED.fullmatch(file.name) else file.name


# Failures
#
# What struck is found first: losses of executors, and runs of the query that follow each other. Then batches
# tell when results came again, and when batches were on time again.


class _Hit(NamedTuple):
    """What struck: its stages until batches tell more; ``run``: the run that comes after it, if it is new."""

    kind: str
    cause: str
    stages: tuple[Stage, ...]
    run: str = ""


def _of_query(query: str, apps: Sequence[Application]) -> Findings:
    unique = {(b.run, b.number): b for app in apps for b in app.batches.values() if b.query == query}
    mine = sorted(unique.values(), key=lambda b: (b.start, b.number))
    began, ended = _life(query, apps, mine)
    losses = [hit for hit in _losses(apps) if began <= hit.stages[-1].at and hit.stages[0].at < ended]
    hits = sorted([*losses, *_runs(query, apps, mine)], key=lambda hit: hit.stages[0].at)
    late = batches_of.lateness(mine)
    told = tuple(_recovered(hits, mine, late))
    failures = tuple(sorted([*told, *_gaps(mine, late, told)], key=lambda failure: failure.began))
    settings = {key: one for app in apps for key, one in app.settings.items()}
    name = settings["spark.app.name"].value if "spark.app.name" in settings else apps[0].file
    source = f"{name} ({query[:8]})" if query else name
    times = [at for app in apps for at in (app.last[0], *(j.at for j in app.joined)) if at == at]
    times += [at for b in mine for at in (b.start, b.end)]
    span = (min(times), max(times)) if times else (float("nan"), float("nan"))
    quiet = batches_of.quiet(mine, late, [(f.began, f.at("caught_up") or span[1]) for f in failures])
    costs = batches_of.fit(mine, failures)
    values = (*batches_of.quantities(mine, quiet, failures, costs), _detection(apps, failures))
    by_name = {quantity.name: quantity for quantity in values}
    return Findings(
        engine="spark",
        source=source,
        span=span,
        failures=failures,
        settings=settings,
        quantities=values,
        predictions=tuple(batches_of.predictions(failures, by_name)),
        tables={"batches": batches_of.table(mine, late)} if mine else {},
        profile=batches_of.as_profile(source, failures, costs, by_name, settings),
        most_help="" if not mine else batches_of.most_help(by_name),
        remarks=tuple(_planned(apps)),
    )


def _life(query: str, apps: Sequence[Application], mine: Sequence[Batch]) -> tuple[float, float]:
    """When a query first began, and when it ended for ever: what strikes before or after does not hit it."""
    starts = [(s.at, s.name) for app in apps for s in app.starts if s.query == query]
    starts += [(b.start, b.run) for b in mine]
    last = max(starts, default=(0.0, ""))[1]
    over = [end.at for app in apps for end in app.ends if end.name == last]
    return min(starts, default=(0.0, ""))[0], max(over, default=np.inf)


def _planned(apps: Sequence[Application]) -> Iterator[str]:
    planned = [loss for app in apps for loss in app.planned]
    if planned:
        executors = counted(len(planned), "executor")
        yield f"Spark took {executors} away itself (first at {planned[0].mark}), which is no failure"


def _losses(apps: Iterable[Application]) -> Iterator[_Hit]:
    """Executors that were lost, each with the first sign of it and the next one that was added."""
    for app in apps:
        added = sorted(app.joined)
        for loss in app.lost:
            since = app.alive.get(loss.name, -np.inf)
            signs = [f for f in app.failed if f.name == loss.name and since <= f.at <= loss.at]
            first = min(signs, default=loss)
            stages = [Stage("failed", first.at, first.mark), Stage("detected", loss.at, loss.mark)]
            if (new := next((one for one in added if one.at >= loss.at), None)) is not None:
                added.remove(new)
                stages.append(Stage("slots", new.at, new.mark))
            yield _Hit("kill", f"executor {loss.name} was lost: {loss.why}", tuple(stages))


def _runs(query: str, apps: Sequence[Application], mine: Sequence[Batch]) -> Iterator[_Hit]:
    """Runs of a query that follow another one, of which at least one batch has ended."""
    of_run = {run: app for app in apps for run in app.runs}
    begun = {start.name: start for app in apps for start in app.starts if start.query == query}
    first = {b.run: b for b in reversed(mine)}
    last = {b.run: b for b in mine}
    order = sorted({*begun, *first}, key=lambda run: begun[run].at if run in begun else first[run].start)
    for before, run in pairwise(order):
        if before not in last:
            continue
        old, new = of_run[before], of_run[run]
        end = next((e for app in apps for e in app.ends if e.name == before), None)
        left = last[before]
        sign = Stage("failed", left.end, _of_batch(left))
        kind, cause = "kill", "the driver is gone: its log ends here, and another run of the query follows"
        if end is not None and end.at == end.at:
            sign = Stage("failed", end.at, end.mark)
            kind = "task" if end.why else "stop"
            cause = f"the query ended: {end.why}" if end.why else "the query was stopped, and begun again"
        elif old is not new and old.last[0] == old.last[0]:
            sign = Stage("failed", *old.last)
            if old.over:
                kind, cause = "stop", "the application ended, and another one goes on with the query"
        elif old is new:
            cause = "another run of the query follows; what ended this one is not in the log"
        stages = [sign]
        if old is not new and new.began is not None:
            stages.append(Stage("restart_tried", new.began.at, new.began.mark))
        if run in begun:
            name = "deployed" if len(stages) > 1 else "restart_tried"
            stages.append(Stage(name, begun[run].at, begun[run].mark))
        yield _Hit(kind, cause, tuple(stages), run)


def _recovered(hits: Sequence[_Hit], mine: Sequence[Batch], late: Floats) -> Iterator[Failure]:
    """Failures with the stages of batches. What strikes before results are back belongs to the one before."""
    waiting = list(hits)
    while waiting:
        hit, *waiting = waiting
        stages, causes = list(hit.stages), [hit.cause]
        run = hit.run
        while True:
            began = stages[0].at
            place = batches_of.first_after(mine, max(s.at for s in stages if s.name != "slots"), run)
            until = mine[place].end if place is not None else np.inf
            if not waiting or waiting[0].stages[0].at > until:
                break
            more, *waiting = waiting
            stages += more.stages
            causes.append(more.cause)
            run = more.run or run
        if place is not None:
            stages.append(Stage("restored", mine[place].end, _of_batch(mine[place])))
            before = waiting[0].stages[0].at if waiting else np.inf
            back = batches_of.caught_up(mine, late, began, place, before)
            if back is not None:
                stages.append(Stage("caught_up", mine[back].end, _of_batch(mine[back])))
        stages.sort(key=lambda stage: stage.at)
        yield Failure("query", "; ".join(causes), tuple(stages), hit.kind)


def _gaps(mine: Sequence[Batch], late: Floats, known: Sequence[Failure]) -> Iterator[Failure]:
    """Batches far later than usual, of which no event says why: of progress alone, all that can be seen."""
    spans = [(f.began, f.at("caught_up") or np.inf) for f in known]
    place = 0
    while (found := batches_of.next_gap(mine, late, place)) is not None:
        slow, place = mine[found], found + 1
        if any(slow.end >= began and slow.start <= ended for began, ended in spans):
            continue
        stages = [Stage("failed", slow.start, _of_batch(slow)), Stage("restored", slow.end, _of_batch(slow))]
        back = batches_of.caught_up(mine, late, slow.start, found)
        if back is not None:
            stages.append(Stage("caught_up", mine[back].end, _of_batch(mine[back])))
            place = back + 1
        cause = f"results of batch {slow.number} were {late[found]:.3g} s late, and no event says why"
        yield Failure("query", cause, tuple(stages), "gap")
        if back is None:
            return


def _of_batch(b: Batch) -> Mark:
    return Mark(b.file, b.line, f"batch {b.number}: {b.rows} rows in {b.end - b.start:.3f} s")


def _detection(apps: Sequence[Application], failures: Sequence[Failure]) -> Quantity:
    """Bounds: between the last task that succeeded on an executor and its removal."""
    bounds = [loss.at - app.alive[loss.name] for app in apps for loss in app.lost if loss.name in app.alive]
    text = (
        "from the end of an executor until Spark notices; its end is in no log of Spark. The moment of the "
        "kill, by Kubernetes, YARN or the machine, would tell"
    )
    if not bounds:
        return unknown("detection", "s", text)
    return unknown("detection", "s", text)._replace(low=0.0, high=float(np.median(bounds)), n=len(bounds))
