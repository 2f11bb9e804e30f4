"""What is known of a sweep before anything runs: its points, the runs that are there already, and chunks.

A sweep's recipe, plans and audits give `Points`, `Work` cuts their runs into chunks. Points are built where
the runs are, on executors, from the recipe and a number; the driver only learns a few numbers of each. Names
of runs and chunks are in the dataset: another way to make them does all runs again.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tideover.models.advice import warnings
from tideover.models.effort import effort
from tideover.models.evaluation.undisturbed import identity, without_failures
from tideover.scenarios.errors import MOST_SHOWN, Problem, ScenarioError
from tideover.scenarios.part_builder import to_data
from tideover.scenarios.runs import digest
from tideover.scenarios.sweeps.rows import FORMAT
from tideover.scenarios.sweeps.sweep_file import Points
from tideover.sim.units import S

LEAST_S = 0.02
"""What a run costs at least, beside what it simulates."""


@dataclass(frozen=True)
class Surveyed:
    """A point that can be simulated.

    identity       hash of all that its runs depend on, but for the replication
    document       hash of what their rows also say: the scenario's name, the swept values
    reference      hash of what they are without failures: runs of one reference and replication share a run
    cost_s         roughly how long one takes on one core of a common machine, with the run without failures
                   that it is held against, which others may share
    simulated_s    how long one is
    remarks        what an expert would remark before running
    idle           why its profile gives it nothing, if so
    """

    number: int
    identity: str
    document: str
    reference: str
    cost_s: float
    simulated_s: float
    remarks: tuple[str, ...]
    idle: tuple[Problem, ...]

    def run(self, replication: int) -> str:
        """The name of one run: whoever has it has the result."""
        return hashlib.sha256(f"{FORMAT} {self.identity} {replication}".encode()).hexdigest()[:32]


Found = tuple[int, "Surveyed | tuple[Problem, ...]"]
"""A point by its number, or why it cannot be built."""


def survey(points: Points, numbers: Iterable[int], model: str) -> Iterator[Found]:
    """Look at some points; ``model``: hash of the code that simulates them."""
    for number in numbers:
        try:
            point = points.point(number)
        except ScenarioError as error:
            yield number, tuple(error.problems)
            continue
        scenario = point.scenario
        said = json.dumps([to_data(scenario), dict(point.values)], default=str)
        yield (
            number,
            Surveyed(
                number,
                digest(scenario, model),
                hashlib.sha256(said.encode()).hexdigest()[:16],
                hashlib.sha256(identity(without_failures(scenario), 0).encode()).hexdigest()[:16],
                LEAST_S + effort(scenario).seconds,
                scenario.run.duration / S,
                tuple(map(sys.intern, warnings(scenario))),
                point.idle,
            ),
        )


def checked(found: Iterable[Found]) -> list[Surveyed]:
    """The points in their order; raises ScenarioError with what is wrong with those that were refused, up to
    a number of problems, or if a profile gives nothing to any point.
    """
    points: list[Surveyed] = []
    problems: dict[Problem, None] = {}
    for _, one in sorted(found, key=lambda one: one[0]):
        if isinstance(one, Surveyed):
            points.append(one)
        elif len(problems) < MOST_SHOWN:
            problems |= dict.fromkeys(one)
    if problems or (points and all(point.idle for point in points)):
        raise ScenarioError(list(problems) or [problem for point in points for problem in point.idle][:1])
    return points


# A sweep's runs in chunks: what is written, and kept, at once.
#
# Which runs a chunk has depends on what is to be run alone, not on machines, on time, or on what is there
# already. So a chunk has the same name and the same rows whoever makes it, and however often.

CHUNK_S = 8.0
"""What a chunk costs, roughly, in seconds of one core. That much is lost if the driver dies."""
MOST_RUNS = 2_000

WITH_SECONDS, WITHOUT_SECONDS = "seconds", "runs"
"""How the names of chunks begin."""


class Unit(NamedTuple):
    """One run: which replication of which point."""

    point: int
    replication: int
    run: str
    document: str
    reference: str
    cost_s: float


@dataclass(frozen=True)
class Chunk:
    """Runs that are kept together. ``name``: of what is in it, and of the shape of its rows."""

    name: str
    units: tuple[Unit, ...]

    @property
    def cost_s(self) -> float:
        """Seconds of one core, roughly."""
        return _cost(self.units)


def units(points: Iterable[Surveyed], wanted: Iterable[tuple[int, int]]) -> Iterator[Unit]:
    """The runs of points, for each from one replication up to another; those that share a reference follow
    one another: a process keeps it for the next of them.
    """
    groups: dict[str, list[tuple[Surveyed, int, int]]] = {}
    for point, (first, last) in zip(points, wanted, strict=True):
        if last > first:
            groups.setdefault(point.reference, []).append((point, first, last))
    for reference, members in groups.items():
        for n in range(min(first for _, first, _ in members), max(last for *_, last in members)):
            shared = f"{reference} {n}"
            for point, first, last in members:
                if first <= n < last:
                    yield Unit(point.number, n, point.run(n), point.document, shared, point.cost_s)


def chunks(every: Iterable[Unit], timeline: bool) -> Iterator[Chunk]:
    """The runs in chunks of about the same cost; ``timeline``: whether their rows per second are kept."""
    kept = WITH_SECONDS if timeline else WITHOUT_SECONDS
    for mine in _pieces(every, CHUNK_S, MOST_RUNS, by_reference=False):
        digest = hashlib.sha256()
        for unit in mine:
            digest.update(f" {unit.point} {unit.run} {unit.document}".encode())
        yield Chunk(f"{kept}-{digest.hexdigest()[:24]}", tuple(mine))


def shares(todo: Sequence[Unit], count: int) -> list[list[Unit]]:
    """The runs in at most ``count`` shares of about equal cost, the most costly first.

    Runs of one reference stay together, unless they are more than half a share. The longest go first, each to
    whoever has least (Graham 1969, Bounds on Multiprocessing Timing Anomalies, section 3: at most 4/3 of the
    best).
    """
    pieces = _pieces(todo, _cost(todo) / count / 2, len(todo), by_reference=True)
    found: list[list[Unit]] = [[] for _ in range(count)]
    free = [(0.0, number) for number in range(count)]
    for piece in sorted(pieces, key=_cost, reverse=True):
        cost, number = heapq.heappop(free)
        found[number] += piece
        heapq.heappush(free, (cost + _cost(piece), number))
    return sorted(filter(None, found), key=_cost, reverse=True)


def _pieces(todo: Iterable[Unit], most_s: float, most: int, by_reference: bool) -> Iterator[list[Unit]]:
    """Runs one after the other, cut where they cost too much or are too many; or the reference changes."""
    piece: list[Unit] = []
    cost = 0.0
    for unit in todo:
        other = by_reference and piece and piece[0].reference != unit.reference
        if piece and (other or cost + unit.cost_s > most_s or len(piece) >= most):
            yield piece
            piece, cost = [], 0.0
        piece.append(unit)
        cost += unit.cost_s
    if piece:
        yield piece


def _cost(piece: Iterable[Unit]) -> float:
    return sum(unit.cost_s for unit in piece)


def split(there: Mapping[str, str], units: Iterable[Unit]) -> tuple[dict[str, list[str]], list[Unit]]:
    """The runs that are ``there``, in a file by the run, by that file; and those that are to be done."""
    known: dict[str, list[str]] = {}
    todo = []
    for unit in units:
        if (path := there.get(unit.run)) is None:
            todo.append(unit)
        else:
            known.setdefault(path, []).append(unit.run)
    return known, todo
