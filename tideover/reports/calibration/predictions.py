"""Pairs of a measured and a predicted figure: how far apart they are, and which predictions failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tideover.reports.columns import DOCUMENTED, conform

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

FAILED_BEYOND = 0.30
"""A prediction that is further off than this has failed, whatever its interval says."""

MEASURES = {
    "batch_duration_s": "batch duration",
    "latency_p50_s": "median latency",
    "latency_p95_s": "p95 latency",
    "output_gap_s": "output gap",
    "catch_up_s": "catch-up",
}

FAULTS = {
    "none": "nothing failed",
    "kill_executor": "executor killed",
    "kill_driver": "driver killed",
    "stop_executor": "executor stopped",
}

PURPOSES = {"steady": "Steady", "recovery": "After a fault"}


def measure_name(measure: Any) -> str:
    """How a measure is called in a sentence.

    >>> measure_name("output_gap_s"), measure_name("my_own_s")
    ('output gap', 'my own')
    """
    return MEASURES.get(measure, str(measure).removesuffix("_s").replace("_", " "))


def fault_name(fault: Any) -> str:
    """How a fault is called in a sentence.

    >>> fault_name("kill_driver"), fault_name("pull_plug")
    ('driver killed', 'pull plug')
    """
    return FAULTS.get(fault, str(fault).replace("_", " "))


def frame(frames: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """The frame of this name with every documented column, optional ones if it has them; without rows if it
    is missing.
    """
    import pandas as pd

    found = conform(name, frames.get(name, pd.DataFrame()))
    known = [column for column in DOCUMENTED[name] if column.name in found]
    truths = [column.name for column in known if column.dtype == "bool"]
    numbers = [column.name for column in known if column.dtype in ("int64", "float64")]
    found[numbers] = found[numbers].astype(float)
    found[truths] = found[truths].eq(True)  # what is missing is not true
    return found


def judged(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs with ``error``, ``covered`` and ``failed``. An error that the
    calibration gives is kept: there, times too short to be told apart count as equal.

    What was not over by the end of a real episode cannot be judged: its error is NaN. What is not predicted
    (the simulation never ends it), or predicted although 0 was measured, is off by infinitely much.
    ``covered``: the measured figure lies in the interval of prediction, whose upper end may be infinite; None
    without an interval, but False for a held-out episode of which nothing is predicted. ``failed``: outside
    of it, or off by more than ``FAILED_BEYOND``.
    """
    import numpy as np

    found = frame({"pairs": pairs}, "pairs")
    found["keys"] = found["keys"].where(found["keys"] > 0)
    for name in ("measured", "predicted"):
        found[name] = found[name].where(np.isfinite(found[name]))
    measured, predicted = (found[name].to_numpy(dtype=float) for name in ("measured", "predicted"))
    low, high = (found[name].to_numpy(dtype=float) for name in ("low", "high"))
    given = found["error"].to_numpy(dtype=float)
    errors = np.where(np.isfinite(given + measured + predicted), given, _errors(measured, predicted))
    bounded = ~np.isnan(low) & ~np.isnan(high) & np.isfinite(measured)
    inside = (low <= measured) & (measured <= high)
    silent = np.isfinite(measured) & np.isnan(predicted) & found["held_out"].to_numpy(dtype=bool)
    known = bounded | silent
    covered = [bool(i and b) if k else None for i, b, k in zip(inside, bounded, known, strict=True)]
    outside = bounded & ~inside
    failed = ~np.isnan(errors) & (outside | (np.abs(errors) > FAILED_BEYOND))
    return found.assign(error=errors, failed=failed).assign(covered=_objects(covered, found))


def _errors(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        errors = predicted / measured - 1
    errors[(measured == 0) & (predicted == 0)] = 0.0
    errors[np.isfinite(measured) & ~np.isfinite(predicted)] = np.inf
    errors[np.isnan(measured)] = np.nan
    return errors


def _objects(values: list[bool | None], like: pd.DataFrame) -> pd.Series[Any]:
    """Truths and None side by side, which pandas would otherwise make numbers of."""
    import pandas as pd

    return pd.Series(values, index=like.index, dtype=object)


def summary(pairs: pd.DataFrame, *, held_out: bool = True, by_fault: bool = False) -> pd.DataFrame:
    """One row for each purpose, strategy and measure (and fault): how far the predictions are off.

    Of the held-out episodes, or of those that the fit has seen. ``median_error`` and ``worst_error`` are of
    the absolute error; ``coverage``: the part of the ``intervals`` (predictions that have one, or should)
    that hold the measured figure, NaN if there are none; ``failed``: how many failed (see ``judged``);
    ``unmeasured``: pairs that cannot be judged, and are not in ``n``.
    """
    every = judged(pairs)
    known = every["error"].notna()
    every = every.assign(_size=every["error"].abs(), _covered=every["covered"].where(known).astype(float))
    keys = ["purpose", "strategy", *(["fault"] if by_fault else []), "measure"]
    found = (
        every[every["held_out"] == held_out]
        .groupby(keys, sort=False, as_index=False)
        .agg(
            n=("error", "count"),
            median_error=("_size", "median"),
            worst_error=("_size", "max"),
            coverage=("_covered", "mean"),
            intervals=("_covered", "count"),
            failed=("failed", "sum"),
            unmeasured=("error", lambda errors: int(errors.isna().sum())),
        )
    )
    order = {name: place for place, name in enumerate(PURPOSES)}
    return found.sort_values(
        "purpose", key=lambda names: names.map(order).fillna(len(order)), kind="stable", ignore_index=True
    )
