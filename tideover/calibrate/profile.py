"""From fits to profiles, and how profiles are written as YAML.

`calibration` calls ``profiles``, ``profile`` and ``parameters``, `recoveries.profile` ``nested`` and
``text``. A value has its key in ``_flat`` and its meaning in ``MEANING``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.comparison import Fits
from tideover.calibrate.counterpart import Costs, Faults
from tideover.calibrate.episodes import Condition, Episode
from tideover.calibrate.fits import FaultFit
from tideover.sim.units import S, format_duration


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place = found
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return found


def data(
    name: str,
    provenance: Mapping[str, Any],
    values: Mapping[str, Any],
    intervals: Mapping[str, tuple[Any, Any, bool]],
    draws: tuple[Iterable[str], Iterable[Iterable[Any]]],
    **more: Any,
) -> dict[str, Any]:
    """A profile as plain data, ready to be written as YAML. ``values``: texts by dotted key; ``intervals``:
    both ends at 90 %, and whether the measurements identify it; ``draws``: keys, and a row of texts a draw.
    """
    parts = ("low", "high", "identified")
    keys, rows = draws
    return {
        "name": name,
        "provenance": dict(provenance),
        "values": nested(values),
        "intervals": {key: dict(zip(parts, told, strict=True)) for key, told in intervals.items()},
        "draws": {"keys": list(keys), "rows": [list(row) for row in rows]},
        **more,
    }


def text(plain: Mapping[str, Any], width: int) -> str:
    """Plain data as YAML; ``width``: of a line."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = width
    stream = io.StringIO()
    yaml.dump(dict(plain), stream)
    return stream.getvalue()


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
    "worker_cold": "part of executor_cold: the worker that reads starts",
    "recovery_time": "a query without state starts anew",
    "cold_time": "first batch of a driver that has started",
    "detection": "from the fault until it is noticed",
    "restart": "from then until it is there again",
}

NANOSECOND = 1e-9
"""Shorter durations (s) are none."""
TRIFLE = 1e-6
"""A relative width that is but rounding."""


@dataclass(frozen=True)
class Value:
    """A value of a profile, in s: the estimate, draws of it, both ends of its 90 % interval, and whether the
    measurements tell it from its bounds and from others.
    """

    estimate: float
    draws: list[float]
    low: float
    high: float
    identified: bool


def profiles(fits: Fits) -> dict[str, Condition]:
    """File names (without suffix) and the condition that each is for: those measured on executors apart, if
    there are such, since only there executors can be lost.
    """
    last = sorted(fits.costs, key=lambda condition: condition.master.startswith("local-cluster"))
    return {f"{c.strategy}-{c.pipeline}".replace("_", "-"): c for c in last}


def profile(
    name: str, condition: Condition, fits: Fits, provenance: Mapping[str, Any], locality_wait_s: float
) -> dict[str, Any]:
    """A profile as plain data, ready to be written as YAML. ``locality_wait_s``: as it was set."""
    values = _values(condition, fits)
    scatter: dict[str, float] = {}
    for fit in _faults(condition, fits).values():
        for measure, spread in fit.spread.items():
            scatter[measure] = max(round(spread.normal, 4), scatter.get(measure, 0.0))
    texts = {key: written(value.estimate) for key, value in values.items()}
    texts[f"{STRATEGY}.locality_wait"] = written(locality_wait_s)
    if condition.strategy == "source_replay":
        texts[f"{STRATEGY}.recovery"] = "replay"
    draws = zip(*(map(written, value.draws) for value in values.values()), strict=True)
    return data(
        name,
        {**provenance, "pipeline": condition.pipeline, "master": condition.master},
        texts,
        {key: (written(v.low), written(v.high), v.identified) for key, v in values.items()},
        (values, draws),
        scatter=scatter,
    )


def ranges(condition: Condition, episodes: Iterable[Episode]) -> dict[str, dict[str, str]]:
    """Lowest and highest rate and trigger interval that were measured under a strategy and a pipeline."""
    mine = [e for e in episodes if e.condition[:2] == condition[:2]]
    rates, triggers = [e.rate_per_s for e in mine], [e.setup.trigger_s for e in mine]
    return {
        "rate": {"low": f"{min(rates):.12g}/s", "high": f"{max(rates):.12g}/s"},
        "interval": {"low": written(min(triggers)), "high": written(max(triggers))},
    }


def conditions(condition: Condition, episodes: Iterable[Episode]) -> dict[str, Any]:
    """What else they were measured under: Java's settings, cores, tasks of a stage, and keys of a count."""
    setups = [e.setup for e in episodes if e.condition[:2] == condition[:2]]
    found: dict[str, Any] = {"jvm": sorted({setup.jvm for setup in setups})}
    columns = {"cores": "cores", "parallelism": "partitions"}
    if condition.pipeline == "running_count":
        columns["keys"] = "keys"
    for name, column in columns.items():
        low, *more = sorted({getattr(setup, column) for setup in setups})
        found[name] = {"low": low, "high": more[-1]} if more else low
    return found


def _faults(condition: Condition, fits: Fits) -> dict[str, FaultFit]:
    """The fits of faults that a profile of this condition has, by kind of fault."""
    found = {kind.fault: fit for kind, fit in fits.faults.items() if kind.strategy == condition.strategy}
    return {fault: fit for fault, fit in found.items() if fault in PLACES}


def _values(condition: Condition, fits: Fits) -> dict[str, Value]:
    cost, faults = fits.costs[condition], _faults(condition, fits)
    estimates = _flat(condition, cost.costs, {f: fit.faults for f, fit in faults.items()})
    draws = [
        _flat(condition, costs, {f: fit.draws[i] for f, fit in faults.items()})
        for i, costs in enumerate(cost.draws)
    ]
    # Whether the measurements differ in what tells a value from others.
    told = {"service": cost.rows_vary, "state_cost": cost.state_varies}
    if condition.strategy != "source_replay" and "kill_driver" in faults:
        told["cold_time"] = faults["kill_driver"].cold_identified
    found = {}
    for key, estimate in estimates.items():
        drawn = [draw[key] for draw in draws]
        low, high = np.quantile(drawn, (0.05, 0.95)).tolist()
        wide = low >= NANOSECOND and high - low > TRIFLE * high
        found[key] = Value(estimate, drawn, low, high, told.get(key.rsplit(".", 1)[-1], True) and wide)
    return found


def _flat(condition: Condition, costs: Costs, faults: Mapping[str, Faults]) -> dict[str, float]:
    """All values of one condition by dotted key, in s."""
    found = {
        f"{STRATEGY}.plan_time": costs.plan_s,
        f"{STRATEGY}.task_time": costs.task_s,
        f"{STRATEGY}.state_time": costs.state_s,
        f"{STRATEGY}.state_cost": costs.state_row_s,
        f"{STRATEGY}.output_time": costs.output_s,
        f"{STRATEGY}.commit_time": costs.commit_s,
        SERVICE[condition.pipeline]: costs.row_s,
    }
    for fault, values in faults.items():
        found[f"{PLACES[fault]}.detection"] = values.detection_s
        found[f"{PLACES[fault]}.restart"] = values.restart_s
    if "kill_executor" in faults:
        found[f"{STRATEGY}.executor_cold"] = faults["kill_executor"].executor_cold_s
        found[f"{STRATEGY}.state_cold"] = faults["kill_executor"].state_cold_s
        if np.isfinite(faults["kill_executor"].worker_cold_s):
            found[f"{STRATEGY}.worker_cold"] = faults["kill_executor"].worker_cold_s
    lost, driver = faults.get("kill_executor", Faults()), faults.get("kill_driver", Faults())
    if condition.strategy == "source_replay" and "kill_executor" in faults:
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


def written(seconds: float) -> str:
    """A duration as scenarios write it, in four digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{max(0, round(seconds * 1e9))} ns"


def six_digits(seconds: float) -> str:
    """A duration in six digits, as far as whole nanoseconds have them: a little less capacity may mean no
    recovery.
    """
    nanoseconds = round(seconds * S)
    return format_duration(round(nanoseconds, min(6 - len(str(nanoseconds)), 0)))


def parameters(fits: Fits) -> pd.DataFrame:
    """One row a profile and value: strategy, parameter, value, low, high, unit, identified, meaning."""
    return pd.DataFrame(
        {"strategy": condition.strategy, "profile": name, "parameter": key}
        | {"value": value.estimate, "low": value.low, "high": value.high}
        | {"unit": "s", "identified": value.identified, "meaning": MEANING[key.rsplit(".", 1)[-1]]}
        for name, condition in profiles(fits).items()
        for key, value in _values(condition, fits).items()
    )
