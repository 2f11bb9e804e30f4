"""What logs say of failures: stages, the lines they were taken from, settings, values, and what is not known.

Every reader of logs (`calibrate.logs`) makes ``Findings`` of its files; tables, figures and pages are made of
these, whatever engine wrote them. Times are seconds since 1970 in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from tideover.scenarios.errors import Problem, shorten

STAGES = {
    "failed": "the first sign of a failure; the failure itself was before it",
    "detected": "the engine counts a task, a batch or a process as failed",
    "restart_tried": "a restart begins",
    "restart_failed": "that restart has failed",
    "given_up": "the lost process is given up",
    "slots": "there are processes for all tasks again",
    "deployed": "every task has started, and loads its state",
    "restored": "the state is back",
    "running": "every task runs again",
    "snapshot": "the first snapshot after it is complete",
    "caught_up": "what had waited is worked off",
}
"""Stages of a recovery, in their usual order; those of a restart may come several times."""
SHARED = ("sources", "failures", "stages", "quantities", "predicted", "settings")
"""Tables that all readers fill; `tideover.reports.columns` has their columns."""
_REPEATED = ("failed", "restart_tried", "restart_failed")
MOST_KEPT = 240
"""Characters of a line that a mark keeps."""
MOST_TOLD = 5
"""So many broken lines are told one by one."""


class Mark(NamedTuple):
    """Where something was read: the file as it was named, the line from 1 (0: of no line), and its text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Stage(NamedTuple):
    """One stage of a recovery: its name in ``STAGES``, when (s since 1970), and where that was read."""

    name: str
    at: float
    mark: Mark


@dataclass(frozen=True)
class Failure:
    """One failure and its recovery.

    job       the job's name
    cause     what the source says of it, in a few words
    stages    in the order of their times; the last is missing if the source ends before it
    kind      ``kill``: a process or a machine was lost; ``task``: a task threw an exception; ``batch``,
              ``gap``: what the reader of another source calls it
    """

    job: str
    cause: str
    stages: tuple[Stage, ...]
    kind: str = "task"

    @property
    def began(self) -> float:
        return self.stages[0].at

    @property
    def attempts(self) -> int:
        return sum(stage.name == "restart_tried" for stage in self.stages)

    def at(self, name: str) -> float | None:
        """When a stage was reached for the last time; None if it was not."""
        return next((stage.at for stage in reversed(self.stages) if stage.name == name), None)

    def after(self, name: str) -> float | None:
        """The same in seconds after the first sign of the failure."""
        at = self.at(name)
        return None if at is None else at - self.began


class Setting(NamedTuple):
    """A setting that a source names: its key as the engine calls it, its value as text, and where."""

    key: str
    value: str
    mark: Mark


class Quantity(NamedTuple):
    """A value that the logs identify, or say nothing of.

    value, low, high    the estimate and its interval at 90 %; NaN where it is not known
    n                   from how many observations
    identified          whether the logs tell it
    meaning             what it is, and if it is not identified, what would tell it
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    n: int
    identified: bool
    meaning: str


class Prediction(NamedTuple):
    """What follows for a failure that was not seen: of what, of which measure, and its interval at 90 %."""

    what: str
    measure: str
    unit: str
    estimate: float
    low: float
    high: float


def unknown(name: str, unit: str, meaning: str) -> Quantity:
    """A quantity that the logs do not identify; ``meaning`` says why, and what would tell it."""
    return Quantity(name, unit, float("nan"), float("nan"), float("nan"), 0, False, meaning)


@dataclass
class Problems:
    """Lines that could not be read: the first few by name, and how many by kind of message."""

    told: list[Problem] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, file: str, line: int | None, key: str, message: str) -> None:
        count = self.counts[file, message] = self.counts.get((file, message), 0) + 1
        if count <= MOST_TOLD:
            self.told.append(Problem(file, line, key, message))

    def __bool__(self) -> bool:
        return bool(self.told)

    def lines(self) -> Iterator[str]:
        """One text for each that is told, and one for each kind of which there are more."""
        yield from map(str, self.told)
        for (file, message), count in self.counts.items():
            if count > MOST_TOLD:
                yield f"{file}: {count - MOST_TOLD} more such lines: {shorten(message, 120)}"


@dataclass(frozen=True)
class Findings:
    """What one source (a job's logs, an application's event log, a series) says.

    engine      ``flink``, ``spark``, ``series``
    source      the job, the application or the file
    span        when it begins and ends
    failures    in the order of their times
    settings    by key, each with the line that says it
    quantities  what can be learnt from it, and what cannot
    predictions of failures and settings that were not seen
    tables      tidy tables of the reader's own, as ``checkpoints``, ``batches``, ``series``
    profile     what of it scenarios can use, as a profile's plain data (`tideover.scenarios.profiles`)
    most_help   the one measurement that would tell most of what is not identified
    remarks     what makes it say less than it seems
    """

    engine: str
    source: str
    span: tuple[float, float]
    failures: tuple[Failure, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    profile: Mapping[str, Any] | None = None
    most_help: str = ""
    remarks: tuple[str, ...] = ()


def instant(at: float) -> str:
    """A time as text, UTC with milliseconds.

    >>> instant(1795547720.72)
    '2026-11-24 19:15:20.720'
    """
    return datetime.fromtimestamp(round(at, 3), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def frames(found: Iterable[Findings]) -> dict[str, pd.DataFrame]:
    """Tidy tables of all sources, ``SHARED`` and the readers' own; ``source`` tells whose a row is."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in SHARED}
    own: dict[str, list[pd.DataFrame]] = {}
    for one in found:
        whose: dict[str, object] = {"source": one.source}
        begins, ends = (instant(at) if math.isfinite(at) else "" for at in one.span)
        spans = {"begins": begins, "ends": ends, "failures": len(one.failures)}
        rows["sources"].append(whose | {"engine": one.engine} | spans | {"most_help": one.most_help})
        for number, failure in enumerate(one.failures, 1):
            rows["failures"].append(whose | {"failure": number} | _failure(failure))
            for name, at, mark in failure.stages:
                read = {"file": mark.file, "line": mark.line, "text": mark.text}
                when = {"at": instant(at), "after_s": round(at - failure.began, 6)}
                rows["stages"].append(whose | {"failure": number, "stage": name} | when | read)
        rows["quantities"] += [whose | quantity._asdict() for quantity in one.quantities]
        rows["predicted"] += [whose | prediction._asdict() for prediction in one.predictions]
        rows["settings"] += [
            whose | {"key": key, "value": value, "file": mark.file, "line": mark.line}
            for key, value, mark in one.settings.values()
        ]
        for name, table in one.tables.items():
            own.setdefault(name, []).append(table.assign(source=one.source))
    made = {name: pd.DataFrame(those) for name, those in rows.items()}
    return made | {name: pd.concat(those, ignore_index=True) for name, those in own.items()}


def _failure(failure: Failure) -> dict[str, object]:
    times = {f"{name}_s": failure.after(name) for name in STAGES if name not in _REPEATED}
    told = {"job": failure.job, "kind": failure.kind, "cause": failure.cause}
    return told | {"began": instant(failure.began), "restarts": failure.attempts} | times
