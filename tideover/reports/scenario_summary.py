"""What was simulated, in a few words: scenario, strategies, failures, length, seed; and its warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tideover.models.results.headline import counted
from tideover.reports.formatting import strategy_name
from tideover.reports.tables import Record

if TYPE_CHECKING:
    import pandas as pd


def scenario_name(result: Record) -> str:
    """The scenario's name; empty if it has none."""
    return str(result["scenario"].get("name", ""))


def point_record(point: int, recoveries: pd.DataFrame, runs: pd.DataFrame) -> dict[str, Any]:
    """Of a point of a sweep what a page needs of a result's record, from the sweep's tables."""
    mine, failures = runs[runs["point"] == point], recoveries[recoveries["point"] == point]
    first = mine.iloc[0]
    return {
        "point": point,
        "scenario": json.loads(first["scenario_json"]),
        "strategy": str(first["strategy"]),
        "seed": int(first["seed"]),
        "replications": len(mine),
        "warnings": [],
        "recoveries": failures[["kind", "component", "failed_at_s"]].to_dict("records"),
    }


def headline(result: Record) -> str:
    """Name, seed and replications in one line."""
    return f"{scenario_name(result)}: seed {result['seed']}, {counted(result['replications'], 'replication')}"


def setup(results: Sequence[Record]) -> list[tuple[str, str]]:
    """What was simulated, as pairs of a label and a text; what differs between the results is listed."""
    scenarios = [result["scenario"] for result in results]
    runs = [one["run"] for one in scenarios if isinstance(one.get("run"), Mapping)]
    topologies = [one["topology"] for one in scenarios if isinstance(one.get("topology"), Mapping)]
    said = {
        "Scenario": _each(map(scenario_name, results)),
        "Description": _each(str(one.get("description") or "") for one in scenarios),
        "Components": _each(" → ".join(map(str, topology)) for topology in topologies),
        "Strategies" if len(results) > 1 else "Strategy": _each(
            strategy_name(result["strategy"]) for result in results
        ),
        "Failures": _failures(results),
        "Simulated time": _each(str(run.get("duration") or "") for run in runs),
        "Replications": _each(str(result["replications"]) for result in results),
        "Seed": _each(str(result["seed"]) for result in results),
    }
    return [(label, text) for label, text in said.items() if text]


def _failures(results: Sequence[Record], most: int = 6) -> str:
    every = (recovery for result in results for recovery in result["recoveries"])
    texts = (f"{one['kind']} of {one['component']} at {one['failed_at_s']:,.6g} s" for one in every)
    found = list(dict.fromkeys(texts))
    rest = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + rest if found else "none"


def _each(texts: Any) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def collected_warnings(results: Sequence[Record]) -> list[str]:
    """Every warning once; with the strategies that it holds for, if it does not hold for all."""
    found: dict[str, list[str]] = {}
    for result in results:
        for text in result["warnings"]:
            names = found.setdefault(str(text), [])
            name = strategy_name(result["strategy"])
            if name not in names:
                names.append(name)
    everyone = {strategy_name(result["strategy"]) for result in results}
    return [t if len(names) == len(everyone) else f"{', '.join(names)}: {t}" for t, names in found.items()]
