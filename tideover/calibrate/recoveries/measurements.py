"""Somebody else's measurements: a CSV with one recovery a row.

Columns: ``workload``, ``checkpoint_interval_s``, ``rate_per_s`` (input rate when the failure struck),
``recovery_s`` (from the failure until the backlog was gone); ``latency_before_failure_ms`` may be there.

Or, where latencies were looked at, as in the failures of Demeter (``LATENCIES``): ``workload``,
``checkpoint_interval_s``, ``rate_before_msgs_s``, ``outage_end_s`` (from the failure until the job reads
again), ``latency_recovered_at_s`` (until its latency is normal); ``outages_in_300s`` may be there. Lines that
begin with # are passed over.

Either may say how a failure was noticed, ``heartbeat_interval_s`` and ``heartbeat_timeout_s``, and how many
tasks shared the rate, ``parallelism``.

``read`` is public (`tideover.calibrate.recoveries`); what it refuses, it says with line and column.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tideover.calibrate.capacities import Rows, lines_of
from tideover.calibrate.episodes import Floats, Mask
from tideover.scenarios.errors import shorten

NUMBERS = ("checkpoint_interval_s", "rate_per_s", "recovery_s")
COLUMNS = ("workload", *NUMBERS)
LATENCIES = ("checkpoint_interval_s", "rate_before_msgs_s", "latency_recovered_at_s", "outage_end_s")
OUTAGES = "outages_in_300s"
OPTIONAL = ("latency_before_failure_ms",)
HEARTBEATS = ("heartbeat_interval_s", "heartbeat_timeout_s")
PARALLELISM = "parallelism"
SETTINGS = (*HEARTBEATS, PARALLELISM)
"""Columns that may be there; a workload has them in every row, or in none."""
DEMETER = (5.0, 20.0)
"""Flink's ``heartbeat.interval`` and ``heartbeat.timeout`` in Demeter (M. Geldenhuys et al., 2024), which a
file with latencies has unless it says otherwise."""
ALLOWED = {
    "checkpoint_interval_s": (0.001, 86_400.0),
    "rate_per_s": (0.01, 10_000_000.0),
    "rate_before_msgs_s": (0.01, 10_000_000.0),
    "recovery_s": (0.1, 36_000.0),
    "latency_recovered_at_s": (0.1, 36_000.0),
    "outage_end_s": (0.1, 36_000.0),
    "heartbeat_interval_s": (0.001, 3_600.0),
    "heartbeat_timeout_s": (0.001, 3_600.0),
    "parallelism": (1.0, 100_000.0),
}
"""Lowest and highest number of a column; beyond it is a slip of the pen, or another unit."""
_READ_S = 1.0
"""Times may have been read in whole seconds."""
FEWEST, MOST = 5, 100
"""Points of a workload: nothing is fitted to fewer, and to leave each of more out once takes hours."""


class Setting(NamedTuple):
    """Under which a recovery was measured, or is predicted.

    interval    time between snapshots, s
    rate        input rate, 1/s, as of a job with the workload's usual parallelism
    beat        a heartbeat's interval, s; 0: nothing is known of how failures were noticed
    timeout     silence after which a process counts as lost, s
    """

    interval: float
    rate: float
    beat: float = 0.0
    timeout: float = 0.0

    @property
    def detected(self) -> float:
        return self.timeout - self.beat / 2


@dataclass(frozen=True)
class Points:
    """The recoveries of one workload: intervals (s), rates (1/s) and times of recovery (s), row by row.

    ``outage``: when the job read again (s), where that was measured; then recovery is that of its latency.
    ``beat``, ``timeout``: intervals and timeouts of heartbeats (s), where they are known. ``tasks``: the
    parallelism; tasks share the rate evenly, so ``rate`` is as of a job with ``usual_tasks`` of them.
    """

    workload: str
    interval: Floats
    rate: Floats
    recovery: Floats
    outage: Floats | None = None
    beat: Floats | None = None
    timeout: Floats | None = None
    tasks: Floats | None = None
    usual_tasks: int = 1

    def without(self, left_out: Mask) -> Points:
        rows = ((f.name, getattr(self, f.name)) for f in fields(self))
        kept: dict[str, Any] = {name: of[~left_out] for name, of in rows if isinstance(of, np.ndarray)}
        return replace(self, **kept)

    @property
    def measured_rate(self) -> Floats:
        return self.rate if self.tasks is None else self.rate * self.tasks / self.usual_tasks

    @property
    def _heard(self) -> tuple[Floats, Floats]:
        """Intervals and timeouts of heartbeats, s; 0 where nothing is known of them."""
        if self.beat is None or self.timeout is None:
            return np.zeros(len(self)), np.zeros(len(self))
        return self.beat, self.timeout

    @property
    def settings(self) -> list[Setting]:
        rows = zip(self.interval, self.rate, *self._heard, strict=True)
        return [Setting(*map(float, row)) for row in rows]

    @property
    def detection(self) -> tuple[Floats, Floats]:
        """Earliest and latest time at which each failure was noticed, s; 0 where nothing is known of it."""
        beat, timeout = self._heard
        return timeout - beat, timeout

    @property
    def heartbeats(self) -> tuple[float, float]:
        """Interval and timeout of most rows, s; of those as frequent the longest."""
        beat, timeout = self._heard
        return most_frequent(zip(beat.tolist(), timeout.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.recovery)


@dataclass(frozen=True)
class Measurements:
    """A file of recoveries: its name without the folder, the SHA-256 of its bytes, its points by workload.

    ``remarks``: what makes the measurements say less than it seems. ``latencies``: recovery is that of the
    latency, which shows at once.
    """

    file: str
    sha256: str
    workloads: dict[str, Points]
    remarks: tuple[str, ...] = ()
    latencies: bool = False


Row = tuple[float, ...]
"""The numbers of a row; last its ``SETTINGS``, 0 where nothing is known."""
_One = TypeVar("_One")


def read(path: Path, heartbeats: tuple[float, float] | None = None) -> Measurements:
    """The recoveries in a file; raises ScenarioError, which says line and column of what cannot be used.

    ``heartbeats``: interval and timeout (s) of a file with latencies that has no columns of them.
    """
    lines = lines_of(path)
    latencies = bool(lines) and "latency_recovered_at_s" in lines[0][1]
    reader = _Reader(str(path), LATENCIES if latencies else NUMBERS, ALLOWED, SETTINGS)
    header = reader.header(lines, (*SETTINGS, *((OUTAGES,) if latencies else OPTIONAL)))
    found: dict[str, list[tuple[int, Row]]] = {}
    remarks = []
    for line, cells in lines[1:]:
        if any(cells):
            if aside := reader.set_aside(header, cells):
                remarks.append(f"{path.name}:{line}: {aside}; it is set aside")
                continue
            name, values = reader.row(line, header, cells)
            found.setdefault(name, []).append((line, values))
    reader.check()
    assumed = [name for name, lines in found.items() if latencies and not any(lines[0][1][-3:-1])]
    for name in assumed:
        found[name] = [(n, (*row[:-3], *(heartbeats or DEMETER), row[-1])) for n, row in found[name]]
    reader.workloads(found)
    reader.check()
    points = {}
    for name, those in found.items():
        interval, rate, recovery, *outage, beat, timeout, tasks = np.array([row for _, row in those]).T
        known = {"beat": beat, "timeout": timeout} if timeout.any() else {}
        points[name] = Points(name, interval, rate, recovery, *outage, **known)
        if tasks.any():
            usual = most_frequent(tasks.tolist())
            rate = rate * usual / tasks
            points[name] = replace(points[name], rate=rate, tasks=tasks, usual_tasks=round(usual))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    remarks += _remarks(path.name, found, [] if heartbeats else assumed)
    return Measurements(path.name, digest, points, tuple(remarks), latencies)


def most_frequent(values: Iterable[_One]) -> _One:
    """Of those as frequent the greatest."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], value))


class _Reader(Rows):
    """Reads recoveries."""

    def set_aside(self, header: list[str], row: list[str]) -> str | None:
        """Why a row is no recovery from one failure, in words; None: it is."""
        cells = dict(zip(header, row, strict=False))
        if "outage_end_s" not in self.numbers:
            return None
        if cells.get(OUTAGES, "") not in ("", "0", "1"):
            return f"{shorten(cells[OUTAGES], 20)} outages within 300 s are no recovery from one failure"
        empty = [name for name in LATENCIES[2:] if cells.get(name) == ""]
        return f"{' and '.join(empty)}: not reached" if empty else None

    def _settings(self, lines: list[tuple[int, Row]]) -> None:
        """What is known of one row is known of all, and no recovery ends before its failure is noticed."""
        known = [value > 0 for value in lines[0][1][-3:]]
        for line, values in lines:
            beat, timeout, _ = values[-3:]
            for column, value, others in zip(SETTINGS, values[-3:], known, strict=True):
                if (value > 0) != others:
                    message = "is given in some rows of a workload only; give it in all, or in none"
                    self.refuse(line, column, message)
                    return
            if (beat > 0) != (timeout > 0):
                lacks = HEARTBEATS[0] if timeout else HEARTBEATS[1]
                self.refuse(line, lacks, "is missing; an interval and a timeout go together")
                return
            if beat > timeout:
                self.refuse(line, HEARTBEATS[0], f"must be at most {HEARTBEATS[1]}, {timeout:g} s")
            elif (ended := values[len(self.numbers) - 1]) < timeout - beat - _READ_S:
                message = (
                    f"{ended:g} s is before a failure can be noticed, {timeout - beat:g} s after it: "
                    f"with heartbeats every {beat:g} s and a timeout of {timeout:g} s. Were these others, "
                    f"{' and '.join(HEARTBEATS)} say so; if something else noticed it, leave them out"
                )
                self.refuse(line, self.numbers[-1], message)

    def workloads(self, found: dict[str, list[tuple[int, Row]]]) -> None:
        """Each has enough points, and a name that no other file system takes for another's."""
        if not found:
            self.refuse(1, "(file)", "has no measurement; one recovery a line is needed")
        alike: dict[str, str] = {}
        for name, lines in found.items():
            self._settings(lines)
            rates = {values[1] / (values[-1] or 1) for _, values in lines}
            line, n = lines[0][0], len(lines)
            other = alike.setdefault(name.casefold(), name)
            if other != name:
                message = f"{name} and {other} differ only in case, and so would their files; rename one"
                self.refuse(line, "workload", message)
            has = f"{name} has {n} point{'s' if n > 1 else ''}"
            if n < FEWEST or len(rates) < 2:
                has += ", all at one rate" if n >= FEWEST else ""
                self.refuse(line, "workload", f"{has}; at least {FEWEST}, at two rates or more, are needed")
            elif n > MOST:
                self.refuse(line, "workload", f"{has}; at most {MOST} are fitted")


def _remarks(file: str, found: dict[str, list[tuple[int, Row]]], assumed: list[str]) -> Iterator[str]:
    """What makes them say less than it seems; ``assumed``: workloads that do not tell their heartbeats."""
    for name, lines in found.items():
        if name in assumed:
            yield (
                f"{name}: heartbeats every {DEMETER[0]:g} s and a timeout of {DEMETER[1]:g} s are assumed, "
                f"as in Demeter; the columns {' and '.join(HEARTBEATS)} can say what they were"
            )
        first: dict[Row, int] = {}
        for line, values in lines:
            if first.setdefault(values, line) != line:
                yield (
                    f"{file}:{line}: says the same as line {first[values]}, so this recovery counts twice; "
                    "take it out unless it was measured twice"
                )
        intervals = {values[0] for _, values in lines}
        if len(intervals) == 1:
            yield (
                f"{name}: every recovery was measured at an interval of {intervals.pop():g} s: what is lost "
                "at a failure cannot be told from what a restart costs, so predictions at other intervals "
                "are guesses"
            )
