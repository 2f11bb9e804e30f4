"""What is to be measured: sessions of episodes, planned beforehand.

Cold processes are slow, so one start serves for much: a *session* is the lifetime of one query (restarts of
its driver included), and an *episode* of it has one rate and at most one fault.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from tideover.calibrate.real.pipelines import Pipeline
from tideover.calibrate.real.schedule import Schedule

StrategyName = Literal["micro_batch", "source_replay", "active_replication"]
FaultName = Literal["kill_executor", "kill_driver", "stop_executor"]
Purpose = Literal["steady", "recovery"]

PRELOAD_S = 10.0
"""For so long a session's first rows come fast, until each key has been seen."""


@dataclass(frozen=True)
class Fault:
    """One thing that is done to a process.

    at_s: s after the episode's beginning. query: whose process, 0 or 1. stop_s: for ``stop_executor``, how
    long it is stopped, in s.
    """

    kind: FaultName
    at_s: float
    query: int = 0
    stop_s: float = 0.0


@dataclass(frozen=True)
class Episode:
    """A part of a session with one rate; begin_s and end_s in s since the session's t0.

    held_out: not for the fit, but for the comparison with what is predicted.
    """

    begin_s: float
    end_s: float
    rate_per_s: int
    purpose: Purpose
    held_out: bool = False
    fault: Fault | None = None


@dataclass(frozen=True)
class SessionPlan:
    """One lifetime of a query, or of two queries on the same input (active replication).

    keys: of a running count (a word count has its 19 words). work: extra work per row, see ``counts``.
    Episodes follow each other without gaps; before the first, the query has time to settle.
    """

    name: str
    strategy: StrategyName
    pipeline: Pipeline
    master: str
    seed: int
    episodes: tuple[Episode, ...]
    keys: int = 0
    work: int = 0
    trigger_s: float = 1.0
    window_s: int = 2
    partitions: int = 2

    def __post_init__(self) -> None:
        executors, _ = executors_of(self.master)
        if not self.episodes or any(a.end_s != b.begin_s for a, b in pairwise(self.episodes)):
            raise ValueError(f"session {self.name}: episodes: must follow each other without gaps")
        for episode in self.episodes:
            fault = episode.fault
            if fault is None:
                continue
            if not 0 <= fault.at_s < episode.end_s - episode.begin_s:
                raise ValueError(f"session {self.name}: at_s: the fault must lie inside its episode")
            if fault.kind != "kill_driver" and not executors:
                raise ValueError(f"session {self.name}: master: {self.master} has no executors to be killed")
            if fault.query >= self.queries:
                raise ValueError(f"session {self.name}: query: there are {self.queries}")

    @property
    def queries(self) -> int:
        """How many queries read the input."""
        return 2 if self.strategy == "active_replication" else 1

    @property
    def end_s(self) -> float:
        """When the input ends, in s since t0."""
        return self.episodes[-1].end_s

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """The rates: at first such that every key is seen, then those of the episodes."""
        first = self.episodes[0]
        keys = self.keys if self.pipeline == "running_count" else 0
        preload = max(first.rate_per_s, round(keys / PRELOAD_S))
        pieces = [(0.0, preload)]
        if preload > first.rate_per_s:
            pieces.append((PRELOAD_S, first.rate_per_s))
        for episode in self.episodes:
            if episode.rate_per_s != pieces[-1][1]:
                pieces.append((episode.begin_s, episode.rate_per_s))
        return tuple(pieces)

    def schedule(self, t0: int) -> Schedule:
        """The input, if it begins at this unix time."""
        return Schedule(t0, self.pieces, self.end_s)


@dataclass(frozen=True)
class Plan:
    """All sessions of a calibration."""

    name: str
    sessions: tuple[SessionPlan, ...]

    @property
    def seconds(self) -> float:
        """About how long it takes, in s."""
        return sum(session.end_s + OVERHEAD_S for session in self.sessions)

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class DriverSpec:
    """One life of one query's driver.

    plan: of its session. query: 0, or 1 for the second of two. life: how often the driver was started before.
    tag: in the environment of every process that descends from it. directory: the session's. scratch: for
    Spark's own files.
    """

    plan: SessionPlan
    query: int
    life: int
    tag: str
    directory: Path
    scratch: Path

    @property
    def events(self) -> Path:
        """The file of this life's events."""
        return self.directory / f"driver-{self.query}-{self.life}.jsonl"

    @property
    def spark_events(self) -> Path:
        """The directory of Spark's own record of this life."""
        return self.directory / "spark-events" / f"{self.query}-{self.life}"


SPEC = TypeAdapter(DriverSpec)
"""Reads a spec from JSON, and writes it."""

OVERHEAD_S = 24.0
"""Start, warm-up and end of a session take about this long."""


def executors_of(master: str) -> tuple[int, int]:
    """(executors, cores) of a master: ``local[2]`` has (0, 2), ``local-cluster[2,1,1024]`` has (2, 2).

    Raises:
        ValueError: neither of the two forms
    """
    if found := re.fullmatch(r"local\[(\d+)\]", master):
        return 0, int(found[1])
    if found := re.fullmatch(r"local-cluster\[(\d+),(\d+),\d+\]", master):
        return int(found[1]), int(found[1]) * int(found[2])
    raise ValueError(f"master: {master!r} is neither local[N] nor local-cluster[N,C,M]")
