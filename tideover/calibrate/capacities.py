"""How much a job can process, by parallelism, cores, memory and slots: a law fitted to runs of others.

A CSV with one run a row (the profiles of Demeter): ``workload``, ``parallelism``, ``cpu_per_tm``,
``mem_mb_per_tm``, ``slots_per_tm``, ``rate_msgs_s``, ``saturated``: where it is 1, the rate is the capacity.

Slots make TaskManagers, and these have the cores: ``cores = ceil(parallelism / slots) cpu``. A core carries
so much, less the more slots share it, and less where a slot has so little memory that collecting garbage and
reading state take its time: ``capacity = cores a (slots / cpu)^-b min(memory / slots / knee, 1)^c``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from tideover.calibrate.csv_rows import Rows, lines_of
from tideover.calibrate.types import Floats, Mask

NUMBERS = ("parallelism", "cpu_per_tm", "mem_mb_per_tm", "slots_per_tm", "rate_msgs_s", "saturated")
ALLOWED = {
    "parallelism": (1.0, 100_000.0),
    "cpu_per_tm": (0.01, 1024.0),
    "mem_mb_per_tm": (1.0, 10_000_000.0),
    "slots_per_tm": (1.0, 1024.0),
    "rate_msgs_s": (0.01, 1e9),
    "saturated": (0.0, 1.0),
}
FEWEST = 8
"""Saturated runs of a workload: the law has four values."""
_KNEES = (256.0, 384.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0)
"""Memory of a slot (MB) below which it is scarce: the one that fits best."""


@dataclass(frozen=True)
class Profiles:
    """Runs of one workload, row by row: cores of the job, slots per core, memory of a slot (MB), rates (1/s),
    and which were saturated.
    """

    cores: Floats
    sharing: Floats
    memory: Floats
    rate: Floats
    saturated: Mask

    def only(self, chosen: Mask) -> Profiles:
        """Some of them."""
        return Profiles(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.rate)


@dataclass(frozen=True)
class Law:
    """What a job carries.

    values   logarithm of what a core carries alone (1/s), and the exponents of sharing and of scarce memory
    knee     memory of a slot below which it is scarce, MB
    squares  of what is left of the logarithms, summed; ``freedom``: degrees of freedom that it has
    inverse  of the design's squares
    """

    values: Floats
    knee: float
    squares: float
    inverse: Floats
    freedom: int

    def capacity(self, runs: Profiles) -> Floats:
        """Most tuples per second."""
        return np.asarray(runs.cores * np.exp(_design(runs, self.knee) @ self.values))

    @property
    def ends(self) -> Floats:
        """Both ends of each of the ``values`` at 90 %."""
        reach = student.ppf(0.95, self.freedom) * np.sqrt(
            self.squares / self.freedom * self.inverse.diagonal()
        )
        return np.stack((self.values - reach, self.values + reach))

    def interval(self, runs: Profiles) -> tuple[Floats, Floats]:
        """Both ends of the interval of prediction at 90 %."""
        design = _design(runs, self.knee)
        known = np.einsum("ij,jk,ik->i", design, self.inverse, design)
        reach = student.ppf(0.95, self.freedom) * np.sqrt(self.squares / self.freedom * (1 + known))
        middle = self.capacity(runs)
        return middle * np.exp(-reach), middle * np.exp(reach)


def fit(runs: Profiles) -> Law:
    """Least squares of the logarithms, for the knee that fits best."""
    return min((_fit(runs, knee) for knee in _KNEES), key=lambda law: law.squares)


def _fit(runs: Profiles, knee: float) -> Law:
    design, seen = _design(runs, knee), np.log(runs.rate / runs.cores)
    values = np.asarray(np.linalg.lstsq(design, seen, rcond=None)[0], np.float64)
    squares = float(((seen - design @ values) ** 2).sum())
    inverse = np.asarray(np.linalg.pinv(design.T @ design), np.float64)
    return Law(values, knee, squares, inverse, len(runs) - 4)


def _design(runs: Profiles, knee: float) -> Floats:
    scarce = np.log(np.maximum(knee / runs.memory, 1))
    return np.column_stack((np.ones(len(runs)), -np.log(runs.sharing), -scarce))


def left_out(runs: Profiles) -> Floats:
    """Capacity, and both ends of its interval, by a law that has not seen the run, run by run."""
    found = []
    for i in range(len(runs)):
        unseen = np.arange(len(runs)) == i
        law, one = fit(runs.only(~unseen)), runs.only(unseen)
        found.append((law.capacity(one)[0], *(end[0] for end in law.interval(one))))
    return np.array(found)


@dataclass(frozen=True)
class Measured:
    """A file of profiles: its name, the SHA-256 of its bytes, its runs by workload."""

    file: str
    sha256: str
    workloads: dict[str, Profiles]


def is_one(path: Path) -> bool:
    """Whether a file has capacities, by its columns; raises ScenarioError if it cannot be read."""
    lines = lines_of(path)
    return bool(lines) and "saturated" in lines[0][1]


def read(path: Path) -> Measured:
    """The runs in a file; raises ScenarioError, which says line and column of what cannot be used."""
    lines = lines_of(path)
    reader = Rows(str(path), NUMBERS, ALLOWED)
    header = reader.header(lines)
    found: dict[str, list[tuple[float, ...]]] = {}
    for line, cells in lines[1:]:
        if any(cells):
            name, values = reader.row(line, header, cells)
            found.setdefault(name, []).append(values)
    reader.check()
    workloads = {name: _profiles(np.array(rows)) for name, rows in found.items()}
    for name, runs in workloads.items():
        if (n := int(runs.saturated.sum())) < FEWEST:
            reader.refuse(
                lines[0][0], "saturated", f"{name} has {n} saturated runs; at least {FEWEST} are needed"
            )
    if not workloads:
        reader.refuse(1, "(file)", "has no measurement; one run a line is needed")
    reader.check()
    return Measured(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), workloads)


def _profiles(rows: Floats) -> Profiles:
    parallelism, cpu, memory, slots, rate, saturated = rows.T
    managers = np.ceil(parallelism / slots)
    return Profiles(managers * cpu, slots / cpu, memory / slots, rate, saturated == 1)
