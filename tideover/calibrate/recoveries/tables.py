"""What the fits say, as tidy tables; their columns are documented in ``tideover.reports.columns``.

points          every measured recovery, what the fits say of it, and what fits say that had not seen it
fit_parameters  what was found for each workload, with intervals at 90 %
errors          how far off the mechanism and the plain fluid law are, on points seen and not seen
curves          recovery over the rate, by interval, with the interval of prediction
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.recoveries.estimates import Fitted
from tideover.calibrate.recoveries.posterior import DIMENSIONS
from tideover.calibrate.recoveries.recovery_time import Values, fluid
from tideover.calibrate.types import Floats

_RATES = 28
NARROWER = 0.5
"""A parameter is identified if the data make its interval at least this much narrower than it was before."""
_TAIL = 1.6449
"""5 % of a standard normal distribution lie beyond it."""

MEANING = {
    "outage": ("s", "detection and restart together; such data cannot tell them apart"),
    "capacity": ("tuples/s", "most tuples per second that the job can process"),
    "fraction": ("ratio", "part of the interval that had passed when failures struck"),
    "snapshot": ("s", "time that a snapshot keeps the job from working"),
}
_ON_A_LOG_SCALE = ("outage", "capacity")


@dataclass(frozen=True)
class Parameter:
    """One line of the table: value, ends of the interval at 90 %, whether the data determine it."""

    parameter: str
    value: float
    low: float
    high: float
    unit: str
    identified: bool
    meaning: str


def frames(fitted: Mapping[str, Fitted]) -> dict[str, pd.DataFrame]:
    """The four tables, workload by workload."""
    tables = {"points": _points, "fit_parameters": _parameters, "errors": errors, "curves": _curves}
    return {
        table: pd.DataFrame([{"workload": name, **row} for name, one in fitted.items() for row in rows(one)])
        for table, rows in tables.items()
    }


def _parameters(found: Fitted) -> Iterator[dict[str, Any]]:
    return map(asdict, parameters(found))


def parameters(found: Fitted) -> list[Parameter]:
    """Those of the mechanism, and last the window of the metric in which the backlog was seen, or where
    latencies were measured, the restart. The outage is that with the usual heartbeats.
    """
    posterior = found.posterior
    point = Values(*(np.asarray(draws)[found.point] for draws in posterior.values))
    before = posterior.prior.values(np.array([[-_TAIL] * DIMENSIONS, [_TAIL] * DIMENSIONS]))
    rows = []
    for name, (unit, meaning) in MEANING.items():
        low, high = found.intervals[name]
        known = _width(name, low, high) < NARROWER * _width(name, *getattr(before, name))
        value = float(getattr(point, name))
        rows.append(Parameter(name, value, float(low), float(high), unit, bool(known), meaning))
    outage, capacity = rows[:2]
    if detected := found.usual(0, 0).detected:
        then = "restart" if found.restart is None else "restart and loading of the state"
        rows[0] = replace(
            outage,
            value=outage.value + detected,
            low=outage.low + detected,
            high=outage.high + detected,
            meaning=f"detection, {detected:g} s in the mean by its heartbeats, {then} together",
        )
    if found.points.tasks is not None:
        rows[1] = replace(capacity, meaning=f"{capacity.meaning}, with {found.points.usual_tasks} tasks")
    if (restart := found.restart) is not None:
        low, value, high = (restart.mean + side * _TAIL * restart.error for side in (-1, 0, 1))
        text = "from the detection of a failure until the job reads again"
        return [*rows, Parameter("restart", value, low, high, "s", True, text)]
    window = posterior.prior.window or 0.0
    text = "window of the metric in which the backlog was seen; 0: it was seen at once"
    rows.append(Parameter("lag_window", window, window, window, "s", found.window_gain > 1, text))
    return rows


def _width(name: str, low: Floats, high: Floats) -> float:
    return float(np.log(high / low) if name in _ON_A_LOG_SCALE else high - low)


def _points(found: Fitted) -> Iterator[dict[str, Any]]:
    points, alone = found.points, found.held_out["leave_one_out"]
    fitted = found.posterior.estimates(points)
    plain = fluid(found.fluid, points)
    settings = {
        name: values
        for name, values in (
            ("heartbeat_interval_s", points.beat),
            ("heartbeat_timeout_s", points.timeout),
            ("parallelism", points.tasks),
            ("usual_rate_per_s", None if points.tasks is None else points.rate),
        )
        if values is not None
    }
    for i in range(len(points)):
        yield {
            "checkpoint_interval_s": float(points.interval[i]),
            "rate_per_s": float(points.measured_rate[i]),
            "measured_s": float(points.recovery[i]),
            "fitted_s": _finite(fitted[i]),
            "left_out_s": _finite(alone.mechanism[i]),
            "fluid_s": _finite(plain[i]),
            "fluid_left_out_s": _finite(alone.fluid[i]),
        } | {name: float(values[i]) for name, values in settings.items()}


def errors(found: Fitted) -> list[dict[str, Any]]:
    """Mean, median and worst of |predicted / measured - 1|, by model and by what was left out."""
    points = found.points
    plain = fluid(found.fluid, points)
    kinds = [("fit", points.recovery, found.posterior.estimates(points), plain)]
    kinds += [(k, h.points.recovery, h.mechanism, h.fluid) for k, h in found.held_out.items()]
    rows = []
    for kind, measured, mechanism, law in kinds:
        held_out = found.held_out.get(kind)
        for model, predicted in (("mechanism", mechanism), ("fluid", law)):
            if np.isnan(predicted).all():
                continue
            off = np.abs(predicted / measured - 1)
            row = {
                "model": model,
                "kind": kind,
                "n": len(off),
                "mean_error": float(off.mean()),
                "median_error": float(np.median(off)),
                "worst_error": float(off.max()),
                "mean_error_s": _finite(np.abs(predicted - measured).mean()),
            }
            if model == "mechanism" and held_out:
                row |= {"coverage": held_out.coverage, "mean_width": _finite(held_out.width)}
            if held_out and not np.isnan(law).all():
                row["better"] = held_out.better == model
            rows.append(row)
    return rows


def warned(name: str, found: Fitted) -> Iterator[str]:
    """A remark if the plain fluid law is nearer on settings that were left out."""
    judged = found.judged
    if judged is None or judged.better != "fluid":
        return
    law, detected = found.fluid, found.usual(0, 0).detected
    mine, plain = (100 * float(errors.mean()) for errors in judged.errors)
    yield (
        f"{name}: on points left out the plain fluid law errs by {plain:.2g} % in the mean and the mechanism "
        f"by {mine:.2g} %, so the law is the better one here: tideover run flink-recovery "
        f"--set detection={detected + float(law.outage):.4g}s --set restart=0s "
        f"--set capacity={float(law.capacity):.5g}/s --set in_interval={max(float(law.fraction), 1e-6):.4g} "
        "--set snapshot_time=0s --set upload_time=0s"
    )


def _curves(found: Fitted) -> Iterator[dict[str, Any]]:
    points = found.points
    capacity = float(np.median(found.posterior.values.capacity))
    rates = np.linspace(points.rate.min() / 2, min(1.2 * points.rate.max(), 0.97 * capacity), _RATES)
    for interval in _intervals(points.interval):
        for rate in rates:
            place = found.usual(interval, float(rate))
            low, high = found.posterior.interval(place)
            yield {
                "checkpoint_interval_s": interval,
                "rate_per_s": float(rate),
                "predicted_s": _finite(found.posterior.estimate(place)),
                "low_s": _finite(low),
                "high_s": _finite(high),
            }


def _intervals(measured: Floats) -> list[float]:
    """Those that were measured, and one on either side, in two digits."""
    known = np.unique(measured)
    below, above = (float(f"{value:.2g}") for value in (known[0] / 3, known[-1] * 4 / 3))
    return [below, *map(float, known), above]


def _finite(value: Any) -> float:
    """A number; NaN for what never ends."""
    return float(value) if np.isfinite(value) else float("nan")
