"""From fits to profiles: YAML that any scenario takes by ``profile: path``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.comparison import Fits
from tideover.calibrate.costs import CostFit
from tideover.calibrate.episodes import Episode
from tideover.calibrate.faults import Condition, FaultFit
from tideover.calibrate.worlds import Costs, Faults

SERVICE = {"word_count": "bolts.split_words.service", "running_count": "bolts.forward.service"}
"""The bolt that reads the rows, by pipeline."""
PLACES = {"kill_executor": "failures.crash_host", "kill_driver": "failures.driver"}
"""What a real fault is to a scenario."""
STRATEGY = "strategy.micro_batch"

MEANING = {
    "plan_time": "offsets are found and logged, the batch is planned",
    "task_time": "a task, besides its rows",
    "state_time": "a stateful task takes so much longer",
    "state_cost": "the same for each row of state",
    "output_time": "the driver and the sink: what neither tasks nor rows explain",
    "commit_time": "the commit log is written",
    "service": "a row, in the task that reads it",
    "executor_cold": "first task of an executor that has started",
    "state_cold": "first stateful task of an executor that has started",
    "recovery_time": "a query without state starts anew",
    "cold_time": "first batch of a driver that has started",
    "detection": "from the fault until it is noticed",
    "restart": "from then until it is there again",
}

Flat = dict[str, float]
"""Values in s by dotted key."""

NANOSECOND = 1e-9
"""Shorter durations (s) are none."""
TRIFLE = 1e-6
"""A relative width that is but rounding."""


def profiles(fits: Fits) -> dict[str, Condition]:
    """File names (without suffix) and the condition that each is for: those measured on executors apart, if
    there are such, since only there executors can be lost.
    """
    found: dict[str, Condition] = {}
    for strategy, pipeline, master in sorted(fits.costs, key=lambda c: c[2].startswith("local-cluster")):
        found[f"{strategy}-{pipeline}".replace("_", "-")] = (strategy, pipeline, master)
    return found


def profile(
    name: str, condition: Condition, fits: Fits, provenance: Mapping[str, Any], locality_wait_s: float
) -> dict[str, Any]:
    """A profile as plain data, ready to be written as YAML. ``locality_wait_s``: as it was set."""
    cost = fits.costs[condition]
    faults = _faults(condition, fits)
    estimate = _flat(condition, cost.costs, {f: fit.faults for f, fit in faults.items()})
    draws = _draws(condition, cost, faults)
    scatter: dict[str, float] = {}
    for fit in faults.values():
        for measure, value in fit.scatter.items():
            scatter[measure] = max(round(value.normal, 4), scatter.get(measure, 0.0))
    kept = {"locality_wait": _written(locality_wait_s)}
    if condition[0] == "source_replay":
        kept["recovery"] = "replay"
    return {
        "name": name,
        "provenance": dict(provenance) | {"pipeline": condition[1], "master": condition[2]},
        "values": _nested({key: _written(value) for key, value in estimate.items()}, kept),
        "intervals": {
            key: {
                "low": _written(low),
                "high": _written(high),
                "identified": identified(key, (low, high), condition, cost, faults),
            }
            for key, (low, high) in _intervals(draws).items()
        },
        "draws": {
            "keys": list(estimate),
            "rows": [[_written(draw[key]) for key in estimate] for draw in draws],
        },
        "scatter": scatter,
    }


def ranges(condition: Condition, episodes: Iterable[Episode]) -> dict[str, dict[str, str]]:
    """Lowest and highest rate and trigger interval that were measured under a strategy and a pipeline."""
    mine = [e for e in episodes if (e.strategy, e.pipeline) == condition[:2]]
    rates, triggers = [e.rate_per_s for e in mine], [e.trigger_s for e in mine]
    return {
        "rate": {"low": f"{min(rates):.12g}/s", "high": f"{max(rates):.12g}/s"},
        "interval": {"low": _written(min(triggers)), "high": _written(max(triggers))},
    }


def _faults(condition: Condition, fits: Fits) -> dict[str, FaultFit]:
    return {
        fault: fit for (who, fault), fit in fits.faults.items() if who == condition[0] and fault in PLACES
    }


def _flat(condition: Condition, costs: Costs, faults: Mapping[str, Faults]) -> Flat:
    """All values of one condition by dotted key, in s."""
    found = {
        f"{STRATEGY}.plan_time": costs.plan_s,
        f"{STRATEGY}.task_time": costs.task_s,
        f"{STRATEGY}.state_time": costs.state_s,
        f"{STRATEGY}.state_cost": costs.state_row_s,
        f"{STRATEGY}.output_time": costs.output_s,
        f"{STRATEGY}.commit_time": costs.commit_s,
        SERVICE[condition[1]]: costs.row_s,
    }
    for fault, values in faults.items():
        found[f"{PLACES[fault]}.detection"] = values.detection_s
        found[f"{PLACES[fault]}.restart"] = values.restart_s
    if "kill_executor" in faults:
        found[f"{STRATEGY}.executor_cold"] = faults["kill_executor"].executor_cold_s
        found[f"{STRATEGY}.state_cold"] = faults["kill_executor"].state_cold_s
    lost, driver = faults.get("kill_executor", Faults()), faults.get("kill_driver", Faults())
    if condition[0] == "source_replay" and "kill_executor" in faults:
        found[f"{STRATEGY}.recovery_time"] = lost.recovery_s
        found[f"{STRATEGY}.cold_time"] = lost.cold_s
        if "kill_driver" in faults:
            # a query that starts anew in a driver that lives is less cold than one in a new driver
            late = driver.restart_s + driver.cold_s - lost.recovery_s - lost.cold_s - lost.executor_cold_s
            found[f"{PLACES['kill_driver']}.restart"] = max(0.0, late)
    elif "kill_driver" in faults:
        # a driver's executors are new, too, and cold as any: only what its first batch takes beyond that
        new = lost.executor_cold_s + lost.state_cold_s
        found[f"{STRATEGY}.cold_time"] = max(0.0, driver.cold_s - new)
    return found


def _draws(condition: Condition, cost: CostFit, faults: Mapping[str, FaultFit]) -> list[Flat]:
    """Values that go together, draw by draw."""
    return [
        _flat(condition, costs, {f: fit.draws[i] for f, fit in faults.items()})
        for i, costs in enumerate(cost.draws)
    ]


def _intervals(draws: list[Flat]) -> dict[str, tuple[float, float]]:
    """Both ends of each value's 90 % interval, s."""
    ends = {key: np.quantile([draw[key] for draw in draws], (0.05, 0.95)) for key in draws[0]}
    return {key: (float(low), float(high)) for key, (low, high) in ends.items()}


def identified(
    key: str,
    interval: tuple[float, float],
    condition: Condition,
    cost: CostFit,
    faults: Mapping[str, FaultFit],
) -> bool:
    """Whether the measurements tell a value from its bounds and from others.

    Not if its interval reaches to 0, nor if it has no width: one episode says nothing of others.
    """
    low, high = interval
    match key.rsplit(".", 1)[-1]:
        case "service":
            told = cost.rows_vary
        case "state_cost":
            told = cost.state_varies
        case "cold_time" if condition[0] != "source_replay" and "kill_driver" in faults:
            told = faults["kill_driver"].cold_told
        case _:
            told = True
    return told and low >= NANOSECOND and high - low > TRIFLE * high


def _written(seconds: float) -> str:
    """A duration as scenarios write it, in four digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{max(0, round(seconds * 1e9))} ns"


def _nested(flat: Mapping[str, str], strategy: Mapping[str, str]) -> dict[str, Any]:
    """Dotted keys as nested mappings; ``strategy``: further keys of the strategy."""
    found: dict[str, Any] = {}
    more = {f"{STRATEGY}.{key}": value for key, value in strategy.items()}
    for key, value in {**flat, **more}.items():
        *path, last = key.split(".")
        place = found
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return found


def parameters(fits: Fits) -> pd.DataFrame:
    """One row a profile and value: strategy, parameter, value, low, high, unit, identified, meaning."""
    rows = []
    for name, condition in profiles(fits).items():
        cost, faults = fits.costs[condition], _faults(condition, fits)
        estimate = _flat(condition, cost.costs, {f: fit.faults for f, fit in faults.items()})
        for key, (low, high) in _intervals(_draws(condition, cost, faults)).items():
            rows.append(
                {
                    "strategy": condition[0],
                    "profile": name,
                    "parameter": key,
                    "value": estimate[key],
                    "low": low,
                    "high": high,
                    "unit": "s",
                    "identified": identified(key, (low, high), condition, cost, faults),
                    "meaning": MEANING[key.rsplit(".", 1)[-1]],
                }
            )
    return pd.DataFrame(rows)


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a profile."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 110
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(dict(data), stream)
