"""A fit to recoveries as a profile, and as tidy tables.

`tideover.calibrate.recoveries.fit` calls it. A profile's keys are those of the scenario ``flink-recovery``;
the tables' columns are documented in `tideover.reports.columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.capacities import errors_of
from tideover.calibrate.episodes import Floats
from tideover.calibrate.recoveries.measurements import Measurements
from tideover.calibrate.recoveries.posterior import DIMENSIONS, Fitted
from tideover.calibrate.recoveries.recovery_time import READ_S, Values, fluid
from tideover.sim.train import Ints
from tideover.sim.units import S, format_duration

DRAWS = 120
_GOLDEN, _SILVER = (5**0.5 - 1) / 2, 2**0.5 - 1
"""Steps of two sequences that fill the unit interval evenly, and have nothing to do with each other."""
_GROUPS = 5
BOLT = "windowed_count"
"""The stateful bolt of ``flink-recovery``."""

OUTAGE = "failures.crash_task.detection"
RESTART = "failures.crash_task.restart"
UPLOAD = "strategy.aligned_snapshots.upload_time"
FRACTION = "failures.crash_task.in_interval"
SERVICE = f"bolts.{BOLT}.service"
SNAPSHOT = "strategy.aligned_snapshots.snapshot_time"
LAUNCH = "detector.heartbeats.launch"
LOADING = "strategy.aligned_snapshots.restore_time"
KEYS = {"outage": OUTAGE, "catch_up_capacity": SERVICE, "fraction": FRACTION, "snapshot": SNAPSHOT}
CALM_S = 15


def as_profile(name: str, found: Fitted, measured: Measurements, seed: int) -> dict[str, Any]:
    """A profile as plain data, ready to be written as YAML."""
    restart, place, points = found.restart, found.typical(0, 0), found.points
    window = found.posterior.prior.window
    values = as_text(_parts(found, by_key(found.posterior.values, found.point), 0.5, 0.5))
    rows = [
        as_text(_parts(found, by_key(found.posterior.runs, draw), (i * _GOLDEN) % 1, (i * _SILVER) % 1))
        for i, draw in enumerate(_spread_over(found), 1)
    ]
    known = {row["parameter"]: row["identified"] for row in parameters(found)}
    identified = {key: known[parameter] for parameter, key in KEYS.items()}
    if place.timeout:  # what is fitted is the rest of the outage
        for key in (RESTART, LAUNCH) if restart is None else (LOADING,):
            identified[key] = identified[OUTAGE]
        identified[OUTAGE] = True
    fixed = {UPLOAD: "0 s"} if place.timeout else {RESTART: "0 s", UPLOAD: "0 s"}
    if restart is not None:
        fixed["run.calm"] = f"{CALM_S} s"
        told: dict[str, Any] = {"chosen": "recovery is that of the latency, which shows at once"}
        # By how much a reading differs from what is read: standard deviation of the logarithm.
        scatter = {"outage_end_s": round(READ_S / (place.detected + restart.mean), 4)}
    else:
        if window is not None:
            fixed["run.lag_window"] = format_duration(round(window * S))
        how = "at once" if window is None else f"in a metric over windows of {window:g} s"
        told = {
            "chosen": f"the end of the backlog was seen {how}, by the evidence of all workloads of the file",
            "evidence": round(found.window_gain, 1),
            "evidence_is": "gain of the log likelihood over the other reading of the instrument",
        }
        if not points.heartbeats[1]:
            told["restart"] = "0 s: part of detection; such data cannot tell them apart"
        scatter = {}
    measure = "catch_up_s" if restart is None else "latency_recovered_s"
    provenance = {
        "source": measured.file,
        "sha256": measured.sha256,
        "measurements": len(points),
        "method": "posterior of the law of aligned snapshots, by sequential Monte Carlo",
        **told,
        "version": f"tideover {__version__}",
        "seed": seed,
    }
    ends = _intervals(found).items()
    return profile.data(
        name,
        provenance,
        dict(sorted((values | fixed).items())),
        {key: (low, high, identified.get(key, True)) for key, (low, high) in ends},
        (values, (row.values() for row in rows)),
        ranges=ranges(points.rate, points.interval),
        scatter=scatter | {measure: round(found.posterior.scatter, 4)},
        errors=_errors(found),
    )


def ranges(rate: Floats, interval: Floats) -> dict[str, dict[str, str]]:
    """Lowest and highest rate and interval that were measured, in four digits at least."""
    rates = [f"{float(f'{each:.4g}'):.15g}/s" for each in (rate.min(), rate.max())]
    times = [format_duration(round(s * S)) for s in (interval.min(), interval.max())]
    return {
        what: dict(zip(("low", "high"), ends, strict=True))
        for what, ends in (("rate", rates), ("interval", times))
    }


def too_coarse(name: str, found: Fitted) -> Iterator[str]:
    capacity = float(np.asarray(found.posterior.values.capacity)[found.point])
    off = 0.5 * capacity / S
    if off > 0.001:
        yield (
            f"{name}: a profile holds the time for a tuple in whole nanoseconds, so a capacity of "
            f"{capacity:,.0f}/s may be off by {100 * off:.2g} %; count tuples in thousands"
        )


def by_key(values: Values, draw: int) -> dict[str, float]:
    """Values of one draw by key: durations in s, the fraction as it is."""
    outage, capacity, fraction, snapshot = (float(np.asarray(draws)[draw]) for draws in values)
    return {OUTAGE: outage, SERVICE: 1 / capacity, FRACTION: fraction, SNAPSHOT: snapshot}


def _parts(found: Fitted, values: dict[str, float], beat: float, luck: float) -> dict[str, float]:
    """The values with their outage in parts, if heartbeats tell when it was noticed: detection, restart, and
    what is left until the job works, if that was measured, which is the time to load the state. A detector
    finds out the first by itself.

    ``beat``, ``luck``: how old the last heartbeat was, and how long the restart took, as quantiles.
    """
    place = found.typical(0, 0)
    if not place.timeout:
        return values
    parts = {OUTAGE: place.timeout - beat * place.beat}
    if found.restart is None:
        return values | parts | {RESTART: values[OUTAGE], LAUNCH: values[OUTAGE]}
    restarted = float(found.restart.lasts(luck))
    loading = max(values[OUTAGE] - restarted, 0.0)
    return values | parts | {RESTART: restarted, LAUNCH: restarted, LOADING: loading}


def _intervals(found: Fitted) -> dict[str, tuple[Any, Any]]:
    ends = []
    for end, beat, luck in ((0, 1, 0.05), (1, 0, 0.95)):
        values = by_key(Values(**found.intervals), end)
        parts = _parts(found, values, beat, luck)
        if found.restart is not None:  # what is left is known as well as the whole
            parts[LOADING] = _parts(found, values, 0.5, 0.5)[LOADING]
        ends.append(as_text(parts))
    low, high = ends
    return {key: (low[key], high[key]) if key != SERVICE else (high[key], low[key]) for key in low}


def as_text(flat: dict[str, float]) -> dict[str, Any]:
    """Values as a file has them."""
    return {
        key: float(f"{max(value, 1e-6):.6g}") if key == FRACTION else profile.six_digits(value)
        for key, value in flat.items()
    }


def _errors(found: Fitted) -> dict[str, Row]:
    """Of the mechanism, by what was left out: errors, and what lies in intervals at 90 % and their width."""
    rounded = {}
    for row in errors(found):
        if row["model"] == "mechanism":
            mine = {"n": row["n"]}
            for name in ("mean_error", "median_error", "worst_error"):
                mine[name] = round(float(row[name]), 4) if np.isfinite(row[name]) else None
            if (held_out := found.held_out.get(row["kind"])) is not None:
                mine |= {"coverage": round(held_out.coverage, 4), "mean_width": round(held_out.width, 4)}
            rounded[row["kind"]] = mine
    return rounded


def _spread_over(found: Fitted) -> Ints:
    """Draws that stand for all: by how slow they are at a long interval and a high rate, in a few groups, and
    by their outage in each of them, up and down in turn; every so manieth on that way.
    """
    points, runs = found.points, found.posterior.runs
    place = found.typical(float(points.interval.max()), 1.1 * float(points.rate.max()))
    slow = found.posterior.predictions(place)
    n = min(len(slow), DRAWS)
    group = np.argsort(np.argsort(slow, kind="stable")) * _GROUPS // len(slow)
    way = np.lexsort((np.asarray(runs.outage) * (-1) ** group, group))
    return np.asarray(way[(2 * np.arange(n) + 1) * len(slow) // (2 * n)])


# What the fits say, as tidy tables; their columns are documented in ``tideover.reports.columns``.
#
# points          every measured recovery, what the fits say of it, and what fits say that had not seen it
# fit_parameters  what was found for each workload, with intervals at 90 %
# errors          how far off the mechanism and the plain fluid law are, on points seen and not seen
# curves          recovery over the rate, by interval, with the interval of prediction

_RATES = 28
NARROWER = 0.5
"""A parameter is identified if the data make its interval at least this much narrower than it was before."""
_TAIL = 1.6449
"""5 % of a standard normal distribution lie beyond it."""

MEANING = {
    "outage": ("s", "detection and restart together; such data cannot tell them apart"),
    "capacity": ("tuples/s", "most tuples per second that the job can process while it catches up"),
    "fraction": ("ratio", "part of the interval that had passed when failures struck"),
    "snapshot": ("s", "time that a snapshot keeps the job from working"),
}

TOLD = {"capacity": "catch_up_capacity"}
"""What is told of values under another name: only catching up shows a capacity here."""
Row = dict[Any, Any]


def frames(fitted: Mapping[str, Fitted]) -> dict[str, pd.DataFrame]:
    tables = {"points": _points, "fit_parameters": parameters, "errors": errors, "curves": _curves}
    return {
        table: pd.DataFrame([{"workload": name, **row} for name, one in fitted.items() for row in rows(one)])
        for table, rows in tables.items()
    }


def parameters(found: Fitted) -> list[Row]:
    """Those of the mechanism, and last the window of the metric in which the backlog was seen, or where
    latencies were measured, the restart. The outage is that with the usual heartbeats.
    """
    posterior, restart, detected = found.posterior, found.restart, found.typical(0, 0).detected
    before = posterior.prior.values(np.array([[-_TAIL] * DIMENSIONS, [_TAIL] * DIMENSIONS]))
    rows: list[tuple[Any, ...]] = []
    for name, (unit, meaning) in MEANING.items():
        low, high = found.intervals[name]
        width, at_first = (
            np.log(b / a) if name in ("outage", "capacity") else b - a
            for a, b in ((low, high), getattr(before, name))
        )
        more = detected if name == "outage" else 0.0
        value = float(np.asarray(getattr(posterior.values, name))[found.point])
        if more:
            rest = "restart" if restart is None else "restart and loading of the state"
            meaning = f"detection, {detected:g} s in the mean by its heartbeats, {rest} together"
        if name == "capacity" and found.points.tasks is not None:
            meaning += f", with {found.points.usual_tasks} tasks"
        known = bool(width < NARROWER * at_first)
        ends = (float(low) + more, float(high) + more)
        rows.append((TOLD.get(name, name), value + more, *ends, unit, known, meaning))
    if restart is not None:
        low, value, high = (restart.mean + side * _TAIL * restart.error for side in (-1, 0, 1))
        text = "from the detection of a failure until the job reads again"
        rows.append(("restart", value, low, high, "s", True, text))
    else:
        window = posterior.prior.window or 0.0
        text = "window of the metric in which the backlog was seen; 0: it was seen at once"
        rows.append(("lag_window", window, window, window, "s", found.window_gain > 1, text))
    columns = ("parameter", "value", "low", "high", "unit", "identified", "meaning")
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _points(found: Fitted) -> list[Row]:
    points, alone = found.points, found.held_out["leave_one_out"]
    columns = {
        "checkpoint_interval_s": points.interval,
        "rate_per_s": points.measured_rate,
        "measured_s": points.recovery,
        "fitted_s": found.posterior.estimates(points),
        "left_out_s": alone.mechanism,
        "fluid_s": fluid(found.fluid, points),
        "fluid_left_out_s": alone.fluid,
        "heartbeat_interval_s": points.beat,
        "heartbeat_timeout_s": points.timeout,
        "parallelism": points.tasks,
        "usual_rate_per_s": None if points.tasks is None else points.rate,
    }
    known = {name: values for name, values in columns.items() if values is not None}
    return pd.DataFrame(known).replace([np.inf, -np.inf], np.nan).to_dict("records")


def errors(found: Fitted) -> list[Row]:
    """Mean, median and worst of |predicted / measured - 1|, by model and by what was left out."""
    points = found.points
    kinds = [("fit", points.recovery, found.posterior.estimates(points), fluid(found.fluid, points))]
    kinds += [(k, h.points.recovery, h.mechanism, h.fluid) for k, h in found.held_out.items()]
    rows = []
    for kind, measured, mechanism, law in kinds:
        held_out = found.held_out.get(kind)
        for model, predicted in (("mechanism", mechanism), ("fluid", law)):
            if np.isnan(predicted).all():
                continue
            row = {"model": model, "kind": kind, **errors_of(predicted, measured)}
            row["mean_error_s"] = _finite(np.abs(predicted - measured).mean())
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
    law, detected = found.fluid, found.typical(0, 0).detected
    mine, plain = (100 * float(errors.mean()) for errors in judged.errors)
    yield (
        f"{name}: on points left out the plain fluid law errs by {plain:.2g} % in the mean and the mechanism "
        f"by {mine:.2g} %, so the law is the better one here: tideover run flink-recovery "
        f"--set detection={detected + float(law.outage):.4g}s --set restart=0s "
        f"--set capacity={float(law.capacity):.5g}/s --set in_interval={max(float(law.fraction), 1e-6):.4g} "
        "--set snapshot_time=0s --set upload_time=0s"
    )


def _curves(found: Fitted) -> list[Row]:
    points = found.points
    capacity = float(np.median(found.posterior.values.capacity))
    rates = np.linspace(points.rate.min() / 2, min(1.2 * points.rate.max(), 0.97 * capacity), _RATES)
    measured = np.unique(points.interval)
    # Those that were measured, and one on either side, in two digits.
    below, above = (float(f"{value:.2g}") for value in (measured[0] / 3, measured[-1] * 4 / 3))
    rows = []
    for interval in (below, *map(float, measured), above):
        for rate in rates.tolist():
            place = found.typical(interval, rate)
            low, high = found.posterior.interval(place)
            said = {"predicted_s": found.posterior.estimate(place), "low_s": low, "high_s": high}
            finite = {name: _finite(value) for name, value in said.items()}
            rows.append({"checkpoint_interval_s": interval, "rate_per_s": rate} | finite)
    return rows


def _finite(value: Any) -> float:
    return float(value) if np.isfinite(value) else float("nan")
