"""Somebody else's measurements: a CSV with one recovery a row.

Columns: ``workload``, ``checkpoint_interval_s``, ``rate_per_s`` (input rate when the failure struck),
``recovery_s`` (from the failure until the backlog was gone); ``latency_before_failure_ms`` may be there.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tideover.scenarios import yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, shorten, suggest

Floats = npt.NDArray[np.float64]

NUMBERS = ("checkpoint_interval_s", "rate_per_s", "recovery_s")
COLUMNS = ("workload", *NUMBERS)
OPTIONAL = ("latency_before_failure_ms",)
FEWEST = 5
"""Points of a workload below which nothing is fitted."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class Points:
    """The recoveries of one workload: intervals (s), rates (1/s) and times of recovery (s), row by row."""

    workload: str
    interval: Floats
    rate: Floats
    recovery: Floats

    def without(self, left_out: npt.NDArray[np.bool_]) -> Points:
        """Those that are not left out."""
        kept = ~left_out
        return Points(self.workload, self.interval[kept], self.rate[kept], self.recovery[kept])

    def __len__(self) -> int:
        return len(self.recovery)


@dataclass(frozen=True)
class Measurements:
    """A file of recoveries: its name without the folder, the SHA-256 of its bytes, its points by workload."""

    file: str
    sha256: str
    workloads: dict[str, Points]


def read(path: Path) -> Measurements:
    """The recoveries in a file; raises ScenarioError, which says line and column of what cannot be used."""
    text = yaml_source.text_of(path, "give a CSV file of measured recoveries")
    rows = list(csv.reader(text.splitlines()))
    problems: list[Problem] = []

    def refuse(line: int, column: str, message: str) -> None:
        problems.append(Problem(str(path), line, column, message))

    header = [name.strip() for name in rows[0]] if rows else []
    for name in COLUMNS:
        if name not in header:
            hint = suggest(name, [other for other in header if other not in (*COLUMNS, *OPTIONAL)])
            refuse(1, name, f"is missing; the columns are {', '.join(COLUMNS)} ({hint})")
    for name in sorted({name for name in header if header.count(name) > 1}):
        refuse(1, name or "(row)", "is the name of two columns; give each name once")
    if problems:
        raise ScenarioError(problems)
    found: dict[str, list[tuple[float, ...]]] = {}
    first: dict[str, int] = {}
    for line, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            refuse(line, "(row)", f"has {len(row)} cells; the first line has {len(header)}")
            continue
        cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
        name = cells["workload"]
        if not _NAME.fullmatch(name):
            message = f"{shorten(name, 40)!r} cannot be the name of a file; letters, digits, _, - and . can"
            refuse(line, "workload", message)
        values = [_positive(cells[column]) for column in NUMBERS]
        for column, value in zip(NUMBERS, values, strict=True):
            if value is None:
                shown = shorten(cells[column], 40)
                refuse(line, column, f"must be a number above 0, not {shown!r}")
        found.setdefault(name, []).append(tuple(value or 0.0 for value in values))
        first.setdefault(name, line)
    if not found and not problems:
        refuse(1, "(file)", "has no measurement; one recovery a line is needed")
    for name in found:
        same = [other for other in found if other.casefold() == name.casefold()]
        if same[0] != name:
            message = f"{name} and {same[0]} differ in capitals only, and are one file on some systems"
            refuse(first[name], "workload", message)
    for name, points in found.items():
        if len(points) < FEWEST or len({rate for _, rate, _ in points}) < 2:
            message = f"{name} has {len(points)} points; at least {FEWEST}, at two rates or more, are needed"
            refuse(first[name], "workload", message)
    if problems:
        raise ScenarioError(problems)
    return Measurements(
        path.name,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        {name: Points(name, *np.array(points, np.float64).T) for name, points in found.items()},
    )


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
