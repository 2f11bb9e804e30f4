"""What the fits say, as tidy tables; their columns are documented in ``tideover.reports.columns``.

points          every measured recovery beside the fits, and beside fits that had not seen it
fit_parameters  what was found for each workload, with intervals at 90 %
errors          how far off the mechanism and the plain fluid law are, on points seen and not seen
curves          recovery over the rate, by interval, with the interval of prediction
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.recoveries import fluid
from tideover.calibrate.recoveries.fits import Fitted
from tideover.calibrate.recoveries.measurements import Floats
from tideover.calibrate.recoveries.parameters import parameters

_RATES = 28


def frames(fitted: Mapping[str, Fitted]) -> dict[str, pd.DataFrame]:
    """The four tables, workload by workload."""
    rows: dict[str, list[dict[str, Any]]] = {"points": [], "fit_parameters": [], "errors": [], "curves": []}
    for name, found in fitted.items():
        rows["points"] += [{"workload": name} | row for row in _points(found)]
        rows["fit_parameters"] += [{"workload": name} | p.row() for p in parameters(found)]
        rows["errors"] += [{"workload": name} | row for row in errors(found)]
        rows["curves"] += [{"workload": name} | row for row in _curves(found)]
    return {table: pd.DataFrame(part) for table, part in rows.items()}


def _points(found: Fitted) -> Iterator[dict[str, Any]]:
    points, alone = found.points, found.held_out["leave_one_out"]
    plain = fluid.predict(found.fluid, points.interval, points.rate)
    for i in range(len(points)):
        interval, rate = float(points.interval[i]), float(points.rate[i])
        yield {
            "checkpoint_interval_s": interval,
            "rate_per_s": rate,
            "measured_s": float(points.recovery[i]),
            "fitted_s": _finite(found.posterior.estimate(interval, rate)),
            "left_out_s": _finite(alone.mechanism[i]),
            "fluid_s": _finite(plain[i]),
            "fluid_left_out_s": _finite(alone.fluid[i]),
        }


def errors(found: Fitted) -> list[dict[str, Any]]:
    """Mean, median and worst of |predicted / measured - 1|, by model and by what was left out."""
    points = found.points
    ours = np.array(
        [found.posterior.estimate(t, r) for t, r in zip(points.interval, points.rate, strict=True)]
    )
    plain = fluid.predict(found.fluid, points.interval, points.rate)
    kinds = [("fit", points.recovery, ours, plain)]
    kinds += [(k, h.points.recovery, h.mechanism, h.fluid) for k, h in found.held_out.items()]
    rows = []
    for kind, measured, mechanism, law in kinds:
        for model, predicted in (("mechanism", mechanism), ("fluid", law)):
            off = np.abs(predicted / measured - 1)
            rows.append(
                {
                    "model": model,
                    "kind": kind,
                    "n": len(off),
                    "mean_error": float(off.mean()),
                    "median_error": float(np.median(off)),
                    "worst_error": float(off.max()),
                }
            )
    return rows


def _curves(found: Fitted) -> Iterator[dict[str, Any]]:
    points = found.points
    capacity = float(np.median(found.posterior.values.capacity))
    rates = np.linspace(points.rate.min() / 2, min(1.2 * points.rate.max(), 0.97 * capacity), _RATES)
    for interval in _intervals(points.interval):
        for rate in rates:
            low, high = found.posterior.interval(interval, float(rate))
            yield {
                "checkpoint_interval_s": interval,
                "rate_per_s": float(rate),
                "predicted_s": _finite(found.posterior.estimate(interval, float(rate))),
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
