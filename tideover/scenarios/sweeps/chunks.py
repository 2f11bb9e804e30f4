"""A sweep's runs in chunks: what is written, and kept, at once.

Which runs a chunk has depends on what is to be run alone, not on machines, on time, or on what is there
already. So a chunk has the same name and the same rows whoever makes it, and however often; making it twice
is harmless.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tideover.scenarios.sweeps.survey import Surveyed

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
        return sum(unit.cost_s for unit in self.units)


def units(points: Iterable[Surveyed], wanted: Iterable[tuple[int, int]]) -> Iterator[Unit]:
    """The runs of points, for each from one replication up to another; those that share a reference follow
    one another: a process keeps it for the next of them.
    """
    groups: dict[str, list[tuple[Surveyed, int, int]]] = {}
    for point, (first, last) in zip(points, wanted, strict=True):
        if last > first:
            groups.setdefault(point.reference, []).append((point, first, last))
    for reference, members in groups.items():
        begin, end = min(first for _, first, _ in members), max(last for *_, last in members)
        for n in range(begin, end):
            for point, first, last in members:
                if first <= n < last:
                    yield Unit(
                        point.number, n, point.run(n), point.document, f"{reference} {n}", point.cost_s
                    )


def chunks(every: Iterable[Unit], timeline: bool) -> Iterator[Chunk]:
    """The runs in chunks of about the same cost; ``timeline``: whether their rows per second are kept."""
    mine: list[Unit] = []
    cost = 0.0
    for unit in every:
        if mine and (cost + unit.cost_s > CHUNK_S or len(mine) >= MOST_RUNS):
            yield _chunk(mine, timeline)
            mine, cost = [], 0.0
        mine.append(unit)
        cost += unit.cost_s
    if mine:
        yield _chunk(mine, timeline)


def _chunk(mine: Sequence[Unit], timeline: bool) -> Chunk:
    digest = hashlib.sha256()
    for unit in mine:
        digest.update(f" {unit.point} {unit.run} {unit.document}".encode())
    kept = WITH_SECONDS if timeline else WITHOUT_SECONDS
    return Chunk(f"{kept}-{digest.hexdigest()[:24]}", tuple(mine))


def shares(todo: Sequence[Unit], count: int) -> list[list[Unit]]:
    """The runs in at most ``count`` shares of about equal cost, the most costly first.

    Runs of one reference stay together, unless they are more than half a share. The longest go first, each to
    whoever has least (Graham 1969, Bounds on Multiprocessing Timing Anomalies, section 3: at most 4/3 of the
    best).
    """
    total = sum(unit.cost_s for unit in todo)
    pieces = sorted(_pieces(todo, total / count / 2), key=_cost, reverse=True)
    found: list[list[Unit]] = [[] for _ in range(count)]
    free = [(0.0, number) for number in range(count)]
    for piece in pieces:
        cost, number = heapq.heappop(free)
        found[number] += piece
        heapq.heappush(free, (cost + _cost(piece), number))
    return sorted(filter(None, found), key=_cost, reverse=True)


def _pieces(todo: Iterable[Unit], most_s: float) -> Iterator[list[Unit]]:
    """Runs that stay together."""
    piece: list[Unit] = []
    cost = 0.0
    for unit in todo:
        if piece and (piece[0].reference != unit.reference or cost + unit.cost_s > most_s):
            yield piece
            piece, cost = [], 0.0
        piece.append(unit)
        cost += unit.cost_s
    if piece:
        yield piece


def _cost(piece: Iterable[Unit]) -> float:
    return sum(unit.cost_s for unit in piece)
