"""How much a job can process, by parallelism, cores, memory and slots: fitted to somebody's CSV.

``tideover calibrate --from`` and ``reproduce`` call ``read`` and ``frames``; `recoveries.measurements` reads
its files with `Rows`, too. What is asked of a file is in ``NUMBERS`` and ``ALLOWED``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from tideover.calibrate.episodes import Floats
from tideover.scenarios import yaml_source
from tideover.scenarios.errors import Problem, ScenarioError, is_misspelt, shorten, suggest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

Line = tuple[int, list[str]]
"""Where a row begins, and its cells, without blanks around them."""


def lines_of(path: Path) -> list[Line]:
    """The rows of a file without those that begin with #; raises ScenarioError if it cannot be read."""
    text = yaml_source.text_of(path, "give a CSV file of measurements")

    def refused(line: int, what: str) -> ScenarioError:
        return ScenarioError([Problem(str(path), line, "(row)", what)])

    if control := re.search(r"[^\t\n\r\x20-\x7e\x80-\U0010ffff]", text):
        line = text.count("\n", 0, control.start()) + 1
        raise refused(line, f"holds the control character {control[0]!r}; save it as UTF-8 text")
    lines = csv.reader(io.StringIO(text, newline=""))
    begins, found = 1, []
    try:
        for row in lines:
            if not (row and row[0].startswith("#")):
                found.append((begins, [cell.strip() for cell in row]))
            begins = lines.line_num + 1
    except csv.Error as error:
        raise refused(begins, f"is no row of a CSV file: {error}") from None
    return found


class Rows:
    """Reads rows of ``workload`` and numbers; what is wrong is collected.

    ``numbers``: the names of their columns; ``allowed``: the lowest and the highest of each. Beyond it is a
    slip of the pen, or another unit. ``settings``: columns that may lack, or be empty: 0.
    """

    def __init__(
        self,
        file: str,
        numbers: Sequence[str],
        allowed: Mapping[str, tuple[float, float]],
        settings: Sequence[str] = (),
    ) -> None:
        self.file, self.numbers, self.allowed, self.settings = file, tuple(numbers), allowed, settings
        self.problems: list[Problem] = []

    def refuse(self, line: int, column: str, message: str) -> None:
        self.problems.append(Problem(self.file, line, column, message))

    def check(self) -> None:
        if self.problems:
            raise ScenarioError(self.problems)

    def header(self, lines: Sequence[Line], optional: Sequence[str] = ()) -> list[str]:
        line, header = lines[0] if lines else (1, [])
        columns = ("workload", *self.numbers)
        if not any(name in columns or is_misspelt(name, columns) for name in header):
            self.refuse(line, "(file)", f"has none of the columns {', '.join(columns)}: it is no such table")
            self.check()
        for name in (*columns, *optional):
            if header.count(name) > 1:
                self.refuse(line, name, "is the name of two columns; each is needed once")
            elif name in columns and name not in header:
                hint = suggest(name, [other for other in header if other not in (*columns, *optional)])
                self.refuse(line, name, f"is missing; the columns are {', '.join(columns)} ({hint})")
        self.check()
        return header

    def row(self, line: int, header: list[str], row: list[str]) -> tuple[str, tuple[float, ...]]:
        if len(row) != len(header):
            self.refuse(line, "(row)", f"has {len(row)} cells; the first line has {len(header)}")
            return "", ()
        cells = dict(zip(header, row, strict=True))
        name = cells["workload"]
        if not _NAME.fullmatch(name):
            message = f"{shorten(name, 40)!r} cannot be the name of a file; letters, digits, _, - and . can"
            self.refuse(line, "workload", message)
        texts = [(column, cells.get(column, "")) for column in (*self.numbers, *self.settings)]
        return name, tuple(
            0.0 if column in self.settings and not text else self._number(line, column, text)
            for column, text in texts
        )

    def _number(self, line: int, column: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        low, high = self.allowed[column]
        if not math.isfinite(value) or value <= 0 < low:
            self.refuse(line, column, f"must be a number above 0, not {shorten(text, 40)!r}")
        elif not low <= value <= high:
            self.refuse(line, column, f"must be from {low:g} to {high:,.0f}, not {shorten(text, 40)!r}")
        return value


# A CSV with one run a row (the profiles of Demeter): ``workload``, ``parallelism``, ``cpu_per_tm``,
# ``mem_mb_per_tm``, ``slots_per_tm``, ``rate_msgs_s``, ``saturated``: where it is 1, the rate is the
# capacity.
#
# Slots make TaskManagers, and these have the cores: ``cores = ceil(parallelism / slots) cpu``. A core
# carries so much, less the more slots share it, and less where a slot has so little memory that collecting
# garbage and reading state take its time: ``capacity = cores a (slots / cpu)^-b min(memory / slots / knee,
# 1)^c``.

NUMBERS = ("parallelism", "cpu_per_tm", "mem_mb_per_tm", "slots_per_tm", "rate_msgs_s", "saturated")
ALLOWED = {
    "parallelism": (1.0, 100_000.0),
    "cpu_per_tm": (0.01, 1024.0),
    "mem_mb_per_tm": (1.0, 10_000_000.0),
    "slots_per_tm": (1.0, 1024.0),
    "rate_msgs_s": (0.01, 1e9),
    "saturated": (0.0, 1.0),
}
RECOVERIES = ("checkpoint_interval_s", "recovery_s", "censored")
"""Columns that may be there, and be empty: of a failure during the run. Where ``censored`` is 1, it had not
been recovered from by ``recovery_s``.
"""
FAILED = {
    "checkpoint_interval_s": (0.001, 86_400.0),
    "recovery_s": (0.1, 36_000.0),
    "censored": (0.0, 1.0),
}
FEWEST = 8
"""Saturated runs of a workload: the law has four values."""
Runs = pd.DataFrame
"""Of one workload, row by row: ``cores`` of the job, ``slots_per_core``, ``memory_per_slot_mb``,
``rate_per_s``, and which were ``saturated``; where a file has recoveries, the columns of ``RECOVERIES``, 0
where nothing is known, too.
"""
_KNEES = (256.0, 384.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0)
"""Memory of a slot (MB) below which it is scarce: the one that fits best."""


class Law:
    """What a job carries: least squares of the logarithms, for a ``knee`` (memory of a slot below which it is
    scarce, MB).

    values   logarithm of what a core carries for one slot (1/s), and the exponents of sharing and of scarce
             memory
    squares  of what is left of the logarithms, summed
    """

    def __init__(self, runs: Runs, knee: float) -> None:
        design, seen = _design(runs, knee), np.log((runs["rate_per_s"] / runs["cores"]).to_numpy())
        self.knee, self.freedom = knee, len(runs) - 4
        self.values = np.asarray(np.linalg.lstsq(design, seen, rcond=None)[0], np.float64)
        self.squares = float(((seen - design @ self.values) ** 2).sum())
        self._inverse = np.asarray(np.linalg.pinv(design.T @ design), np.float64)

    def capacity(self, runs: Runs) -> Floats:
        return np.asarray(runs["cores"] * np.exp(_design(runs, self.knee) @ self.values))

    @property
    def ends(self) -> Floats:
        """Both ends of each of the ``values`` at 90 %."""
        reach = self._reach(self._inverse.diagonal())
        return np.stack((self.values - reach, self.values + reach))

    def _reach(self, squares: Floats) -> Floats:
        """Half the width of an interval at 90 % for an error with so many times the variance of the rest."""
        return np.asarray(student.ppf(0.95, self.freedom) * np.sqrt(self.squares / self.freedom * squares))

    def interval(self, runs: Runs) -> tuple[Floats, Floats]:
        design = _design(runs, self.knee)
        reach = self._reach(1 + np.einsum("ij,jk,ik->i", design, self._inverse, design))
        middle = self.capacity(runs)
        return middle * np.exp(-reach), middle * np.exp(reach)


def fit(runs: Runs) -> Law:
    """The law with the knee that fits best."""
    return min((Law(runs, knee) for knee in _KNEES), key=lambda law: law.squares)


def _design(runs: Runs, knee: float) -> Floats:
    scarce = np.log(np.maximum(knee / runs["memory_per_slot_mb"], 1))
    return np.column_stack((np.ones(len(runs)), -np.log(runs["slots_per_core"]), -scarce))


def left_out(runs: Runs) -> Floats:
    """Capacity, and both ends of its interval, by a law that has not seen the run, run by run."""
    found = []
    for i in range(len(runs)):
        unseen = np.arange(len(runs)) == i
        law, one = fit(runs[~unseen]), runs[unseen]
        found.append((law.capacity(one)[0], *(end[0] for end in law.interval(one))))
    return np.array(found)


class Measured(NamedTuple):
    """A file of profiles: its name, the SHA-256 of its bytes, its runs by workload."""

    file: str
    sha256: str
    workloads: dict[str, Runs]


def is_one(path: Path) -> bool:
    """Whether a file has capacities, by its columns; raises ScenarioError if it cannot be read."""
    lines = lines_of(path)
    return bool(lines) and "saturated" in lines[0][1]


def read(path: Path) -> Measured:
    """The runs in a file; raises ScenarioError, which says line and column of what cannot be used."""
    lines = lines_of(path)
    reader = Rows(str(path), NUMBERS, ALLOWED | FAILED, RECOVERIES)
    header = reader.header(lines, RECOVERIES)
    for name in header:
        if name not in (*NUMBERS, *RECOVERIES) and is_misspelt(name, RECOVERIES):
            reader.refuse(lines[0][0], name, f"unknown column; {suggest(name, RECOVERIES)}")
    found: dict[str, list[tuple[float, ...]]] = {}
    for line, cells in lines[1:]:
        if any(cells):
            name, values = reader.row(line, header, cells)
            found.setdefault(name, []).append(values)
            if values and values[-2] > 0 and not values[-3] > 0:
                reader.refuse(line, RECOVERIES[0], "is missing; a recovery depends on it")
    reader.check()
    workloads = {}
    for name, rows in found.items():
        parallelism, cpu, memory, slots, rate, saturated, *failed = np.array(rows).T
        workloads[name] = pd.DataFrame(
            {
                "cores": np.ceil(parallelism / slots) * cpu,
                "slots_per_core": slots / cpu,
                "memory_per_slot_mb": memory / slots,
                "rate_per_s": rate,
                "saturated": saturated == 1,
                **(dict(zip(RECOVERIES, failed, strict=True)) if "recovery_s" in header else {}),
            }
        )
        if (n := int((saturated == 1).sum())) < FEWEST:
            said = f"{name} has {n} saturated runs; at least {FEWEST} are needed"
            reader.refuse(lines[0][0], "saturated", said)
    if not workloads:
        reader.refuse(1, "(file)", "has no measurement; one run a line is needed")
    reader.check()
    return Measured(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), workloads)


# What a fit to capacities says, as tidy tables (columns: ``tideover.reports.columns``).
#
# capacities      every run: measured, and for saturated ones what a law says that had not seen it
# fit_parameters  the law of each workload, with intervals at 90 %
# errors          how far off it is, on runs seen and not seen


def frames(measured: Measured) -> dict[str, pd.DataFrame]:
    tables: dict[str, list[pd.DataFrame]] = {"capacities": [], "fit_parameters": [], "errors": []}
    for name, runs in measured.workloads.items():
        saturated = runs[runs["saturated"]]
        law, unseen, rate = fit(saturated), left_out(saturated), saturated["rate_per_s"].to_numpy()
        predicted = pd.DataFrame(unseen, saturated.index, ["left_out_per_s", "low_per_s", "high_per_s"])
        of_rates = runs.drop(columns=list(RECOVERIES), errors="ignore")
        found = {
            "capacities": of_rates.assign(fitted_per_s=law.capacity(runs)).join(predicted),
            "fit_parameters": pd.DataFrame(_parameters(law)),
            "errors": pd.DataFrame(_errors(rate, law.capacity(saturated), unseen)),
        }
        for table, rows in found.items():
            rows.insert(0, "workload", name)
            tables[table].append(rows)
    return {table: pd.concat(parts, ignore_index=True) for table, parts in tables.items()}


def _parameters(law: Law) -> Iterator[dict[str, Any]]:
    one_slot, sharing, scarce = zip(law.values, *law.ends, strict=True)
    slows, short = sharing[1] > 0, scarce[1] > 0
    rows = (
        ("per_core", np.exp(one_slot), "tuples/s", True, "what a core carries for one slot"),
        ("sharing", sharing, "", slows, "exponent by which slots that share a core slow it"),
        ("scarcity", scarce, "", short, "exponent by which too little memory slows it"),
        ("knee", (law.knee,) * 3, "MB", short, "memory of a slot below which it is too little"),
    )
    for name, ends, unit, identified, meaning in rows:
        found = dict(zip(("value", "low", "high"), map(float, ends), strict=True))
        about = {"unit": unit, "identified": bool(identified), "meaning": meaning}
        yield {"parameter": name, **found, **about}


def errors_of(predicted: Floats, measured: Floats) -> dict[str, Any]:
    """How many there are; mean, median and worst of |predicted / measured - 1|."""
    off = np.abs(predicted / measured - 1)
    found = {"mean_error": off.mean(), "median_error": np.median(off), "worst_error": off.max()}
    return {"n": len(off)} | {name: float(value) for name, value in found.items()}


def _errors(rate: Floats, fitted: Floats, unseen: Floats) -> Iterator[dict[str, Any]]:
    middle, low, high = unseen.T
    for kind, predicted in (("fit", fitted), ("leave_one_out", middle)):
        row = {"model": "mechanism", "kind": kind, **errors_of(predicted, rate)}
        if kind == "leave_one_out":
            row["coverage"] = float(np.mean((low <= rate) & (rate <= high)))
            row["mean_width"] = float(np.mean((high - low) / middle))
        yield row
