"""What a driver has to know, as it is written into a file for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tideover.calibrate.real.pipelines import Pipeline

StrategyName = Literal["micro_batch", "source_replay", "active_replication"]


@dataclass(frozen=True)
class DriverSpec:
    """One life of one query's driver.

    query: 0, or 1 for the second of two. life: how often the driver was started before. tag: in the
    environment of every process that descends from it. directory: the session's. scratch: for what Spark
    writes beside. executors: how many to wait for; the rest is as in ``SessionPlan``.
    """

    query: int
    life: int
    tag: str
    directory: Path
    scratch: Path
    strategy: StrategyName
    pipeline: Pipeline
    master: str
    executors: int
    keys: int
    work: int
    trigger_s: float
    window_s: int
    partitions: int
    seed: int
    pieces: tuple[tuple[float, int], ...]
    end_s: float

    @property
    def events(self) -> Path:
        """The file of this life's events."""
        return self.directory / f"driver-{self.query}-{self.life}.jsonl"

    @property
    def spark_events(self) -> Path:
        """The directory of Spark's own record of this life."""
        return self.directory / "spark-events" / f"{self.query}-{self.life}"

    def to_json(self) -> dict[str, Any]:
        """As it goes into the file."""
        found = asdict(self)
        return {**found, "directory": str(self.directory), "scratch": str(self.scratch)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DriverSpec:
        """The inverse of to_json."""
        pieces = tuple((float(start), int(rate)) for start, rate in data["pieces"])
        paths = {name: Path(data[name]) for name in ("directory", "scratch")}
        return cls(**{**data, **paths, "pieces": pieces})
