"""Flink: a JobManager's logs, REST's checkpoints and exceptions, and its configuration, read together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tideover.calibrate.logs import flink_rest as rest
from tideover.calibrate.logs.clock import first_time
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Failure, Findings, Mark, Setting, Stage
from tideover.calibrate.logs.flink_log import Job, Log
from tideover.calibrate.logs.flink_profile import as_profile
from tideover.calibrate.logs.flink_quantities import A_FAILURE, MOST_HELP, predictions, quantities
from tideover.calibrate.logs.flink_rest import Thrown

WHAT = "a Flink JobManager's log, with REST's checkpoints and exceptions and config.yaml beside it"

_CONFIGURED = re.compile(rb"^(jobmanager|taskmanager)(\.[\w.-]+)?\s*:", re.MULTILINE)
_OURS = (b"org.apache.flink.", b"flink", b"switched from state")
_TASKMANAGERS = (b"runtime.taskexecutor.", b"TaskManagerRunner", b"runtime.taskmanager.")
_JOBMANAGERS = (
    b"runtime.jobmaster.",
    b"ClusterEntrypoint",
    b"runtime.executiongraph.",
    b"runtime.dispatcher.",
)
_TOGETHER_S = 60.0
"""Exceptions of one failure follow each other at most so far apart."""
_MATTERS = ("heartbeat.", "execution.checkpointing.interval", "restart-strategy.")
"""Settings that a recovery hangs on begin so."""
NO_JOB = "is of Flink, but nothing here tells of a job; give a JobManager's log, or what REST answered"
_NEAR_S = 2.0
"""An exception of REST is that of a line of the log so near."""


def recognises(file: LogFile) -> str:
    """``log``, ``checkpoints``, ``exceptions``, ``configuration`` or ``taskmanager``; empty: no part."""
    head = file.head
    begin = head.lstrip()[:1]
    if begin == b"{" and (b'"exceptionHistory"' in head or b'"root-exception"' in head):
        return "exceptions"
    if begin == b"{" and b'"counts"' in head and b'"restored"' in head and b'"in_progress"' in head:
        return "checkpoints"
    if first_time(head) is not None and any(word in head for word in _OURS):
        jobs = any(word in head for word in _JOBMANAGERS)
        return "taskmanager" if not jobs and any(word in head for word in _TASKMANAGERS) else "log"
    return "configuration" if _CONFIGURED.search(head) else ""


class _Beside(NamedTuple):
    """What lies beside logs: settings, checkpoints (the job, and rows by number), exceptions."""

    settings: Mapping[str, Setting] = {}
    answered: tuple[str, Mapping[int, Mapping[str, float]]] = ("", {})
    thrown: Sequence[Thrown] = ()


def read(files: Sequence[tuple[str, LogFile]]) -> list[Findings]:
    """What they say, job by job. Logs of one folder follow each other; one that begins before the other ends
    is of another JobManager. Other files go with the logs that are nearest, by their folders.
    """
    logs: dict[Path, list[LogFile]] = {}
    beside: list[tuple[Path, _Beside]] = []
    for part, file in files:
        folder = file.path.parent
        if part == "log":
            logs.setdefault(folder, []).append(file)
        elif part == "configuration":
            beside.append((folder, _Beside({one.key: one for one in rest.configuration(file)})))
        elif part in ("checkpoints", "exceptions") and (data := rest.document(file)):
            checkpoints = part == "checkpoints"
            answered = rest.checkpoints(file, data) if checkpoints else ("", {})
            beside.append(
                (folder, _Beside({}, answered, () if checkpoints else [*rest.exceptions(file, data)]))
            )
    found = []
    for folder, those in logs.items():
        near = [one for place, one in beside if folder in _nearest(place, logs)]
        found += [_findings(log, job, near) for log in _chained(those) for job in log.jobs.values()]
    told = [one for _, one in beside]
    if not found and any(one.answered[1] or one.thrown for one in told):
        return [_without_log(told)]
    if not found:
        files[0][1].refuse(None, NO_JOB, "(file)")
    return found


def _nearest(folder: Path, others: Iterable[Path]) -> set[Path]:
    """Those of the other folders that have most of their path in common with this one."""
    alike = {other: len(Path(os.path.commonpath([folder, other])).parts) for other in others}
    return {other for other, parts in alike.items() if parts == max(alike.values())}


def _chained(files: Sequence[LogFile]) -> list[Log]:
    logs: list[Log] = []
    for file in sorted(files, key=lambda f: (first_time(f.head) or 0.0, f.name)):
        if not logs or (first_time(file.head) or 0.0) < logs[-1].last - 1:
            logs.append(Log())
        logs[-1].feed(file)
    return logs


def _findings(log: Log, job: Job, beside: Sequence[_Beside]) -> Findings:
    configured = {key: setting for one in beside for key, setting in one.settings.items()}
    mine = job.id in {one.answered[0] for one in beside}
    alone = len(log.jobs) == 1
    rows: dict[int, Mapping[str, float]] = {}
    for whose, answered in (one.answered for one in beside):
        if whose == job.id or (alone and not mine):
            rows |= answered
    for number, row in job.checkpoints.items():  # the log's own times stay
        ended = {"completed": log.utc(row["completed"])} if "completed" in row else {}
        rows[number] = {**rows.get(number, {}), **row, **ended}
    thrown = [one for other in beside for one in other.thrown] if alone else []
    failures = tuple(_caused(failure, thrown) for failure in log.failures(job))
    table = _table(rows)
    name = f"{job.name} ({job.id[:8]})" if job.name else job.id
    span = (log.utc(log.first), log.utc(log.last))
    settings = {**configured, **log.settings, **job.settings}
    return _of(name, span, failures, table, settings, tuple(_remarks(log, configured)))


def _of(
    source: str,
    span: tuple[float, float],
    failures: tuple[Failure, ...],
    checkpoints: pd.DataFrame,
    settings: Mapping[str, Setting],
    remarks: tuple[str, ...],
) -> Findings:
    return Findings(
        engine="flink",
        source=source,
        span=span,
        failures=failures,
        settings=settings,
        quantities=tuple(quantities(failures, checkpoints, settings)),
        predictions=tuple(predictions(failures, checkpoints, settings)),
        tables={"checkpoints": checkpoints},
        profile=as_profile(source, failures, checkpoints, settings),
        most_help=MOST_HELP if failures else A_FAILURE,
        remarks=remarks,
    )


def _table(by_number: Mapping[int, Mapping[str, float]]) -> pd.DataFrame:
    rows = [{"checkpoint": number, **row} for number, row in sorted(by_number.items())]
    columns = ("checkpoint", "triggered", "completed", "duration", "size", "restored")
    named = {"triggered": "triggered_at_s", "completed": "completed_at_s", "duration": "duration_s"}
    frame = pd.DataFrame(rows, columns=list(columns)).rename(columns={**named, "size": "size_bytes"})
    return frame.fillna({"restored": 0.0})


def _remarks(log: Log, configured: Mapping[str, Setting]) -> Iterable[str]:
    if not log.clock.knows_zone:
        yield (
            "no line tells the log's time zone (“Triggering checkpoint … @ …” would): its times are taken "
            "for UTC"
        )
    for key, setting in configured.items():
        loaded = log.settings.get(key)
        if loaded is not None and loaded.value != setting.value and key.startswith(_MATTERS):
            yield (
                f"{setting.mark}: {key} is {setting.value}, but the JobManager had loaded {loaded.value} "
                f"({loaded.mark}), which counts"
            )


def _caused(failure: Failure, thrown: Iterable[Thrown]) -> Failure:
    """With what REST says of its exception, if the log does not."""
    if not failure.cause.startswith("no exception"):
        return failure
    detected = failure.at("detected") or failure.began
    near = [one for one in thrown if abs(one.at - detected) <= _NEAR_S]
    told = min(near, key=lambda one: abs(one.at - detected), default=None)
    if told is None:
        return failure
    return Failure(failure.job, told.mark.text, failure.stages, failure.kind)


def _without_log(beside: Sequence[_Beside]) -> Findings:
    """REST alone: exceptions that follow each other closely are one failure, which is over at the first
    checkpoint that completes.
    """
    rows = {number: row for one in beside for number, row in one.answered[1].items()}
    name = next((one.answered[0] for one in beside if one.answered[0]), "Flink")
    table = _table(rows)
    completed = table.dropna(subset=["completed_at_s"])
    groups: list[list[Thrown]] = []
    for one in sorted((one for other in beside for one in other.thrown), key=lambda one: one.at):
        if not groups or one.at - groups[-1][-1].at > _TOGETHER_S:
            groups.append([])
        groups[-1].append(one)
    failures = []
    for group in groups:
        stages = [Stage("failed", group[0].at, group[0].mark), Stage("detected", group[0].at, group[0].mark)]
        stages += [Stage("restart_failed", one.at, one.mark) for one in group[1:]]
        after = completed[completed["triggered_at_s"] > group[-1].at]
        if len(after):
            first = after.iloc[0]
            mark = Mark("REST", 0, f"checkpoint {int(first['checkpoint'])} is complete")
            stages.append(Stage("snapshot", float(first["completed_at_s"]), mark))
        failures.append(Failure(name, group[0].mark.text, tuple(stages)))
    times = [one.at for group in groups for one in group] + completed["completed_at_s"].tolist()
    settings = {key: setting for one in beside for key, setting in one.settings.items()}
    said = (
        "there is no JobManager's log that names a job, so the stages between an exception and the next "
        "checkpoint are not known"
    )
    span = (min(times), max(times)) if times else (float("nan"), float("nan"))
    return _of(name, span, tuple(failures), table, settings, (said,))
