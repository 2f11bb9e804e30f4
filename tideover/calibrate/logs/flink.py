"""Flink: a JobManager's logs, REST's checkpoints and exceptions, and its configuration, read together.

REST's are ``/jobs/ID/checkpoints`` (``CheckpointingStatistics``) and ``/jobs/ID/exceptions``
(``JobExceptionsInfoWithHistory``, of Flink 1.13 and later; before, ``JobExceptionsInfo``), as files with the
JSON that was answered. The configuration is ``config.yaml``, or ``flink-conf.yaml`` of Flink 1, which is no
strict YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import MOST_KEPT, Failure, Findings, Mark, Setting, Stage
from tideover.calibrate.logs.flink_log import Job, Log, first_time
from tideover.calibrate.logs.flink_quantities import A_FAILURE, MOST_HELP, as_profile, predictions, quantities

WHAT = "a Flink JobManager's log, with REST's checkpoints and exceptions and config.yaml beside it"

_CONFIGURED = re.compile(rb"^(jobmanager|taskmanager)(\.[\w.-]+)?\s*:", re.MULTILINE)
_OURS = re.compile(rb"flink|switched from state")
_TASKMANAGERS = re.compile(rb"TaskManagerRunner|runtime\.(taskexecutor|taskmanager)\.")
_JOBMANAGERS = re.compile(rb"ClusterEntrypoint|runtime\.(jobmaster|executiongraph|dispatcher)\.")
_TOGETHER_S = 60.0
"""Exceptions of one failure follow each other at most so far apart."""
_MATTERS = ("heartbeat.", "execution.checkpointing.interval", "restart-strategy.")
"""Settings that a recovery hangs on begin so."""
NO_JOB = "is of Flink, but nothing here tells of a job; give a JobManager's log, or what REST answered"
_NEAR_S = 2.0
"""An exception of REST is that of a line of the log so near."""
_KEY = re.compile(r"^(\s*)(-\s|[\w.\-]+\s*:(?:\s|$))(.*)$")
_JOB = re.compile(r"/([0-9a-f]{32})/(?:chk|savepoint)-")

Rows = dict[int, dict[str, float]]
"""Checkpoints by number: ``triggered``, ``completed`` (s since 1970), ``duration`` (s), ``size`` (bytes)."""


def recognises(file: LogFile) -> str:
    """``log``, ``checkpoints``, ``exceptions``, ``configuration`` or ``taskmanager``; empty: no part."""
    head = file.head
    begin = head.lstrip()[:1]
    if begin == b"{" and (b'"exceptionHistory"' in head or b'"root-exception"' in head):
        return "exceptions"
    if begin == b"{" and b'"counts"' in head and b'"restored"' in head and b'"in_progress"' in head:
        return "checkpoints"
    if first_time(head) is not None and _OURS.search(head):
        tasks = _TASKMANAGERS.search(head) and not _JOBMANAGERS.search(head)
        return "taskmanager" if tasks else "log"
    return "configuration" if _CONFIGURED.search(head) else ""


class _Thrown(NamedTuple):
    """An exception of a job: when (s since 1970), and where it was read, with what it says."""

    at: float
    mark: Mark


class _Beside(NamedTuple):
    """What lies beside logs: settings by key; checkpoints, and whose; exceptions, the oldest first."""

    settings: Mapping[str, Setting] = {}
    job: str = ""
    checkpoints: Mapping[int, dict[str, float]] = {}
    thrown: Sequence[_Thrown] = ()


def read(files: Sequence[tuple[str, LogFile]]) -> list[Findings]:
    """What they say, job by job. Other files go with the logs that are nearest, by their folders."""
    logs: dict[Path, list[LogFile]] = {}
    beside: list[tuple[Path, _Beside]] = []
    for part, file in files:
        folder = file.path.parent
        if part == "log":
            logs.setdefault(folder, []).append(file)
        elif part in _READ:
            beside.append((folder, _READ[part](file)))
    found = []
    for folder, those in logs.items():
        near = [one for place, one in beside if folder in _nearest(place, logs)]
        found += [_findings(log, job, near) for log in _chained(those) for job in log.jobs.values()]
    told = [one for _, one in beside]
    if not found and any(one.checkpoints or one.thrown for one in told):
        return [_without_log(told)]
    if not found:
        files[0][1].refuse(None, NO_JOB, "(file)")
    return found


def _nearest(folder: Path, others: Iterable[Path]) -> set[Path]:
    """Those of the other folders that have most of their path in common with this one."""
    alike = {other: len(Path(os.path.commonpath([folder, other])).parts) for other in others}
    return {other for other, parts in alike.items() if parts == max(alike.values())}


def _chained(files: Sequence[LogFile]) -> list[Log]:
    """Logs of one folder follow each other; one that begins before the other ends is another JobManager's."""
    logs: list[Log] = []
    for file in sorted(files, key=lambda f: (first_time(f.head) or 0.0, f.name)):
        if not logs or (first_time(file.head) or 0.0) < logs[-1].last - 1:
            logs.append(Log())
        logs[-1].feed(file)
    return logs


# What lies beside logs.


def _answer(file: LogFile) -> Mapping[str, Any]:
    """What REST answered; empty if the file does not tell."""
    found = file.document()
    if found is not None and not isinstance(found, dict):
        file.refuse(1, "must be a JSON object, as REST answers it; the file is left out")
    return found if isinstance(found, dict) else {}


_MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError, OverflowError)


def _lacks(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _checkpoints(file: LogFile) -> _Beside:
    data = _answer(file)
    latest = data.get("latest") or {}
    kinds = ("completed", "failed", "savepoint")
    rows = [*(data.get("history") or []), *(latest.get(kind) for kind in kinds), latest.get("restored")]
    jobs = (_JOB.search(str(row.get("external_path"))) for row in rows if isinstance(row, dict))
    found: Rows = {}
    for row in rows[:-1]:
        if not isinstance(row, dict):
            continue
        try:
            number, one = int(row["id"]), {"triggered": int(row["trigger_timestamp"]) / 1000}
            if row.get("status") == "COMPLETED":
                one["completed"] = int(row["latest_ack_timestamp"]) / 1000
                one["duration"] = int(row["end_to_end_duration"]) / 1000
                one["size"] = float(row.get("checkpointed_size") or row.get("state_size") or 0)
        except _MISSHAPEN as error:
            file.refuse(None, f"a checkpoint is passed over: {_lacks(error)}", "history")
            continue
        found[number] = one
    restored = rows[-1]
    if isinstance(restored, dict) and isinstance(restored.get("id"), int):
        found.setdefault(restored["id"], {})["restored"] = 1.0
    return _Beside(job=next((job[1] for job in jobs if job), ""), checkpoints=found)


def _exceptions(file: LogFile) -> _Beside:
    data = _answer(file)
    history = data.get("exceptionHistory")
    rows = history.get("entries") if isinstance(history, dict) else data.get("all-exceptions")
    found = []
    for row in rows if isinstance(rows, list) else []:
        try:
            trace = str(row.get("stacktrace") or row.get("exception") or "")
            at = int(row["timestamp"]) / 1000
        except _MISSHAPEN as error:
            file.refuse(None, f"an exception is passed over: {_lacks(error)}", "exceptionHistory")
            continue
        name, _, said = trace.split("\n", 1)[0].partition(": ")
        name = str(row.get("exceptionName") or name).rsplit(".", 1)[-1]
        found.append(_Thrown(at, Mark(file.name, 0, f"{name}: {said}"[:MOST_KEPT])))
    return _Beside(thrown=sorted(found, key=lambda thrown: thrown.at))


def _configuration(file: LogFile) -> _Beside:
    """The settings, with the line of each; keys of nested blocks are joined by dots."""
    found: dict[str, Setting] = {}
    above: list[tuple[int, str]] = []
    for number, line in enumerate((file.text() or "").splitlines(), 1):
        bare = line.rstrip()
        if not bare.strip() or bare.lstrip().startswith(("#", "---", "- ")):
            continue
        if (parts := _KEY.match(bare)) is None:
            file.refuse(number, "is no setting (key: value): it is passed over")
            continue
        depth, key, value = len(parts[1]), parts[2].rstrip()[:-1].rstrip(), parts[3].strip()
        while above and above[-1][0] >= depth:
            above.pop()
        if value and not value.startswith("#"):
            whole = ".".join([*(name for _, name in above), key])
            found[whole] = Setting(whole, _plain(value), Mark(file.name, number, bare.strip()[:MOST_KEPT]))
        else:
            above.append((depth, key))
    return _Beside(found)


def _plain(value: str) -> str:
    """A value without quotes, and without what comes after a #."""
    if value[:1] in "\"'" and (end := value.find(value[0], 1)) > 0:
        return value[1:end]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()


_READ = {"checkpoints": _checkpoints, "exceptions": _exceptions, "configuration": _configuration}


# What all of it says.


def _findings(log: Log, job: Job, beside: Sequence[_Beside]) -> Findings:
    configured = {key: setting for one in beside for key, setting in one.settings.items()}
    mine = job.id in {one.job for one in beside}
    alone = len(log.jobs) == 1
    rows: Rows = {}
    for one in beside:
        if one.job == job.id or (alone and not mine):
            rows |= one.checkpoints
    for number, row in job.checkpoints.items():  # the log's own times stay
        ended = {"completed": log.clock.utc(row["completed"])} if "completed" in row else {}
        rows[number] = {**rows.get(number, {}), **row, **ended}
    thrown = [one for other in beside for one in other.thrown] if alone else []
    failures = tuple(_caused(failure, thrown) for failure in log.failures(job))
    name = f"{job.name} ({job.id[:8]})" if job.name else job.id
    span = (log.clock.utc(log.first), log.clock.utc(log.last))
    settings = {**configured, **log.settings, **job.settings}
    return _of(name, span, failures, _table(rows), settings, tuple(_remarks(log, configured)))


def _of(
    source: str,
    span: tuple[float, float],
    failures: tuple[Failure, ...],
    checkpoints: pd.DataFrame,
    settings: Mapping[str, Setting],
    remarks: tuple[str, ...],
) -> Findings:
    told = failures, checkpoints, settings
    return Findings(
        engine="flink",
        source=source,
        span=span,
        failures=failures,
        settings=settings,
        quantities=tuple(quantities(*told)),
        predictions=tuple(predictions(*told)),
        tables={"checkpoints": checkpoints},
        profile=as_profile(source, *told),
        most_help=MOST_HELP if failures else A_FAILURE,
        remarks=remarks,
    )


def _table(by_number: Rows) -> pd.DataFrame:
    rows = [{"checkpoint": number, **row} for number, row in sorted(by_number.items())]
    named = {"triggered": "triggered_at_s", "completed": "completed_at_s", "duration": "duration_s"}
    named |= {"size": "size_bytes", "restored": "restored"}
    frame = pd.DataFrame(rows, columns=["checkpoint", *named]).rename(columns=named)
    return frame.fillna({"restored": 0.0})


def _remarks(log: Log, configured: Mapping[str, Setting]) -> Iterator[str]:
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


def _caused(failure: Failure, thrown: Iterable[_Thrown]) -> Failure:
    """With what REST says of its exception, if the log does not."""
    if not failure.cause.startswith("no exception"):
        return failure
    detected = failure.at("detected") or failure.began
    near = [(abs(one.at - detected), i, one.mark.text) for i, one in enumerate(thrown)]
    off, _, text = min(near, default=(_NEAR_S + 1, 0, ""))
    return replace(failure, cause=text) if off <= _NEAR_S else failure


def _without_log(beside: Sequence[_Beside]) -> Findings:
    """REST alone: exceptions close to each other are one failure, over at the next checkpoint."""
    name = next((one.job for one in beside if one.job), "Flink")
    table = _table({number: row for one in beside for number, row in one.checkpoints.items()})
    completed = table.dropna(subset=["completed_at_s"])
    thrown = sorted((one for other in beside for one in other.thrown), key=lambda one: one.at)
    groups: list[list[_Thrown]] = []
    for one in thrown:
        if not groups or one.at - groups[-1][-1].at > _TOGETHER_S:
            groups.append([])
        groups[-1].append(one)
    failures = []
    for group in groups:
        names = ("failed", "detected", *("restart_failed" for _ in group[1:]))
        stages = [Stage(stage, *one) for stage, one in zip(names, (group[0], *group), strict=True)]
        after = completed[completed["triggered_at_s"] > group[-1].at]
        if len(after):
            first = after.iloc[0]
            mark = Mark("REST", 0, f"checkpoint {int(first['checkpoint'])} is complete")
            stages.append(Stage("snapshot", float(first["completed_at_s"]), mark))
        failures.append(Failure(name, group[0].mark.text, tuple(stages)))
    times = [*(one.at for one in thrown), *completed["completed_at_s"]]
    settings = {key: setting for one in beside for key, setting in one.settings.items()}
    said = (
        "there is no JobManager's log that names a job, so the stages between an exception and the next "
        "checkpoint are not known"
    )
    span = (min(times), max(times)) if times else (float("nan"), float("nan"))
    return _of(name, span, tuple(failures), table, settings, (said,))
