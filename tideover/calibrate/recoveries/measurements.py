"""Somebody else's measurements: a CSV with one recovery a row.

Columns: ``workload``, ``checkpoint_interval_s``, ``rate_per_s`` (input rate when the failure struck),
``recovery_s`` (from the failure until the backlog was gone); ``latency_before_failure_ms`` may be there.

Or, where latencies were looked at, as in the failures of Demeter (``LATENCIES``): ``workload``,
``checkpoint_interval_s``, ``rate_before_msgs_s``, ``outage_end_s`` (from the failure until the job reads
again), ``latency_recovered_at_s`` (until its latency is normal); ``outages_in_300s`` may be there. Lines that
begin with # are passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tideover.calibrate.csv_rows import Rows, lines_of
from tideover.calibrate.types import Floats, Mask
from tideover.scenarios.errors import shorten

NUMBERS = ("checkpoint_interval_s", "rate_per_s", "recovery_s")
COLUMNS = ("workload", *NUMBERS)
LATENCIES = ("checkpoint_interval_s", "rate_before_msgs_s", "latency_recovered_at_s", "outage_end_s")
OUTAGES = "outages_in_300s"
OPTIONAL = ("latency_before_failure_ms",)
ALLOWED = {
    "checkpoint_interval_s": (0.001, 86_400.0),
    "rate_per_s": (0.01, 10_000_000.0),
    "rate_before_msgs_s": (0.01, 10_000_000.0),
    "recovery_s": (0.1, 36_000.0),
    "latency_recovered_at_s": (0.1, 36_000.0),
    "outage_end_s": (0.1, 36_000.0),
}
"""Lowest and highest number of a column; beyond it is a slip of the pen, or another unit."""
FEWEST, MOST = 5, 100
"""Points of a workload: nothing is fitted to fewer, and to leave each of more out once takes hours."""


@dataclass(frozen=True)
class Points:
    """The recoveries of one workload: intervals (s), rates (1/s) and times of recovery (s), row by row.

    ``outage``: when the job read again (s), where that was measured; then recovery is that of its latency.
    """

    workload: str
    interval: Floats
    rate: Floats
    recovery: Floats
    outage: Floats | None = None

    def without(self, left_out: Mask) -> Points:
        """Those that are not left out."""
        kept = ~left_out
        outage = None if self.outage is None else self.outage[kept]
        return Points(self.workload, self.interval[kept], self.rate[kept], self.recovery[kept], outage)

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


def read(path: Path) -> Measurements:
    """The recoveries in a file; raises ScenarioError, which says line and column of what cannot be used."""
    lines = lines_of(path)
    latencies = bool(lines) and "latency_recovered_at_s" in lines[0][1]
    reader = _Reader(str(path), LATENCIES if latencies else NUMBERS, ALLOWED)
    header = reader.header(lines, (OUTAGES,) if latencies else OPTIONAL)
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
    reader.workloads(found)
    reader.check()
    points = {
        name: Points(name, *np.array([values for _, values in those], np.float64).T)
        for name, those in found.items()
    }
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    remarks += _remarks(path.name, found)
    return Measurements(path.name, digest, points, tuple(remarks), latencies)


class _Reader(Rows):
    """Reads recoveries."""

    def set_aside(self, header: list[str], row: list[str]) -> str | None:
        """Why a row is no recovery from one failure, in words; None: it is."""
        cells = dict(zip(header, row, strict=False))
        if self.numbers != LATENCIES:
            return None
        if cells.get(OUTAGES, "") not in ("", "0", "1"):
            return f"{shorten(cells[OUTAGES], 20)} outages within 300 s are no recovery from one failure"
        empty = [name for name in LATENCIES[2:] if cells.get(name) == ""]
        return f"{' and '.join(empty)}: not reached" if empty else None

    def workloads(self, found: dict[str, list[tuple[int, Row]]]) -> None:
        """Each has enough points, and a name that no other file system takes for another's."""
        if not found:
            self.refuse(1, "(file)", "has no measurement; one recovery a line is needed")
        alike: dict[str, str] = {}
        for name, lines in found.items():
            line, n, rates = lines[0][0], len(lines), {values[1] for _, values in lines if values}
            other = alike.setdefault(name.casefold(), name)
            if other != name:
                message = f"{name} and {other} differ only in case, and so would their files; rename one"
                self.refuse(line, "workload", message)
            needed = f"{name} has {n} point{'s' if n > 1 else ''}"
            if n < FEWEST or len(rates) < 2:
                needed += ", all at one rate" if n >= FEWEST else ""
                self.refuse(
                    line, "workload", f"{needed}; at least {FEWEST}, at two rates or more, are needed"
                )
            elif n > MOST:
                self.refuse(line, "workload", f"{needed}; at most {MOST} are fitted")


def _remarks(file: str, found: dict[str, list[tuple[int, Row]]]) -> Iterator[str]:
    """What makes the measurements say less than it seems."""
    for name, lines in found.items():
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
