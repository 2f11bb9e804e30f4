"""The result of a scenario: all its replications, as one record and as tidy tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import tideover
from tideover.models.accounts.trace import Trace
from tideover.models.advice import afterwards, endings, warnings
from tideover.models.config import Scenario, dump
from tideover.models.evaluation.measures import named
from tideover.models.results import headline
from tideover.models.results.columns import frame
from tideover.models.simulation import Replication
from tideover.sim.histogram import Histogram
from tideover.sim.registry import kind_of

if TYPE_CHECKING:
    import pandas as pd

LATENCIES = ("median", "mean", "std", "p95", "p99", "max")
STAGES = ("detect", "restart", "restore", "wait", "replay", "catch_up", "windows")
"""Of a recovery, in their order; they add up to ``time_to_recover_s``."""
STAGE_COLUMNS = {name: f"{name}_s" for name in STAGES} | {
    "catch_up": "catch_up_stage_s",
    "windows": "windows_stage_s",
}
STATE = ("restored", "replayed", "dropped", "missing", "extra")
MOMENTS = (
    "failed_at_s", "detected_at_s", "ready_at_s", "time_to_recover_s", "state_recovery_s", "catch_up_s",
    "throughput_90_s", "output_gap_s", "sink_spacing_s",
)  # fmt: skip


class Result:
    """What ``tideover run`` says of a scenario.

    recoveries, runs, timeline, tasks    tidy tables (columns: `tideover.models.results.columns`)
    warnings                             what an expert would remark before running, and then of the run
    replications                         the single replications, with their traces if they were asked for
    """

    def __init__(self, scenario: Scenario, replications: Sequence[Replication]) -> None:
        self.scenario = scenario
        self.replications = list(replications)
        self.version = tideover.__version__
        self.warnings = [
            *warnings(scenario),
            *afterwards.remarks(scenario, self.replications),
            *endings.remarks(scenario, self.replications),
        ]
        self.prediction: dict[str, Any] | None = None
        """Estimates with intervals, if the scenario was completed from a profile that allows them."""
        self.strategy = kind_of(scenario.strategy)

    def __repr__(self) -> str:
        found = headline.figures(self.replications)
        count = headline.counted(found["replications"], "replication")
        about = f"{self.strategy}, seed {self.scenario.run.seed}, {count}"
        return f"<Result {self.scenario.name!r}: {about}; {headline.sentence(found)}>"

    def _repr_html_(self) -> str:
        return headline.html([self.headline()])

    def headline(self) -> dict[str, Any]:
        """What a notebook shows: scenario, strategy, and the figures of its headline."""
        about = {"scenario": self.scenario.name, "strategy": self.strategy}
        return about | headline.figures(self.replications)

    @cached_property
    def recoveries(self) -> pd.DataFrame:
        """One row per fault and replication."""
        return frame("recoveries", self.rows("recoveries"))

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row per second and replication."""
        return frame("timeline", self.rows("timeline"))

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """One row per bolt task and replication."""
        return frame("tasks", self.rows("tasks"))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per replication."""
        return frame("runs", self.rows("runs"))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, in the order of the replications."""
        if table == "runs":
            return [self._run(r) for r in self.replications]
        return [self._identity(r) | row for r in self.replications for row in getattr(r, table)]

    def _identity(self, replication: Replication) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "strategy": self.strategy,
            "seed": self.scenario.run.seed,
            "replication": replication.number,
        }

    def _run(self, r: Replication) -> dict[str, Any]:
        return (
            self._identity(r)
            | {"error": None}
            | r.ledger
            | {f"windows_{name}": count for name, count in r.windows.items()}
            | r.cost
            | named("latency", r.latency)
            | named("end_to_end", r.end_to_end)
            | {f"throughput_{name}_per_s": value for name, value in r.throughput.items()}
            | {"scenario_json": json.dumps(dump(self.scenario), sort_keys=True), "version": self.version}
        )

    @property
    def traces(self) -> list[Trace]:
        """Traces of the replications that were traced."""
        return [r.trace for r in self.replications if r.trace is not None]

    def to_dict(self) -> dict[str, Any]:
        """The record that ``run --json`` prints. Undefined is None; no wall-clock time is in it."""
        per_s = [r.throughput for r in self.replications if r.throughput["mean"] is not None]
        return {
            "schema": 1,
            "scenario": self.scenario.name,
            "strategy": self.strategy,
            "seed": self.scenario.run.seed,
            "replications": len(self.replications),
            "warnings": self.warnings,
            "recoveries": [
                _recovery({"replication": r.number} | row) for r in self.replications for row in r.recoveries
            ],
            "latency_ms": _pooled(r.latency for r in self.replications),
            "end_to_end_ms": _pooled(r.end_to_end for r in self.replications),
            "throughput_per_s": {
                "mean": sum(t["mean"] for t in per_s) / len(per_s) if per_s else None,  # type: ignore[misc]
                "min": min((t["min"] for t in per_s), default=None),  # type: ignore[type-var]
                "max": max((t["max"] for t in per_s), default=None),  # type: ignore[type-var]
            },
            "ledger": _sum([r.ledger for r in self.replications]),
            "windows": _sum([r.windows for r in self.replications]),
            "cost": _mean([r.cost for r in self.replications]),
            "utilisation": _utilisation(self.replications),
            "prediction": self.prediction,
            "configuration": dump(self.scenario),
            "version": self.version,
        }

    def to_json(self) -> str:
        """``to_dict`` as text, the same bytes for the same seed."""
        return json.dumps(self.to_dict(), allow_nan=False)


def _recovery(row: dict[str, Any]) -> dict[str, Any]:
    return (
        {name: row[name] for name in ("replication", "kind", "component", *MOMENTS)}
        | {"stages_s": {name: row[column] for name, column in STAGE_COLUMNS.items()}}
        | {"state": {name: row[name] for name in STATE}}
        | {
            f"{what}_ms": {name: row[f"{what}_{name}_ms"] for name in LATENCIES}
            for what in ("latency", "end_to_end")
        }
    )


def _pooled(parts: Iterable[Histogram]) -> dict[str, float | None]:
    """The six figures (ms) of all together."""
    whole = Histogram()
    for part in parts:
        whole.merge(part)
    return whole.summary(1e6)


def _utilisation(replications: Sequence[Replication]) -> dict[str, Any]:
    """By task the mean over the replications, the task with the greatest of them, and the peak: the greatest
    of any task in any replication.
    """
    found: dict[str, list[float]] = {}
    for row in (row for r in replications for row in r.tasks if row["utilisation"] is not None):
        found.setdefault(row["task"], []).append(row["utilisation"])
    means = {task: sum(values) / len(values) for task, values in found.items()}
    return {
        "tasks": means,
        "busiest": max(means, key=lambda task: means[task], default=None),
        "peak": max((value for values in found.values() for value in values), default=None),
    }


def _sum(parts: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(part[name] for part in parts) for name in parts[0]} if parts else {}


def _mean(parts: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(part[name] for part in parts) / len(parts) for name in parts[0]} if parts else {}
