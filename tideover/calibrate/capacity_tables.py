"""What a fit to capacities says, as tidy tables (columns: ``tideover.reports.columns``).

capacities      every run: measured, and for saturated ones what a law says that had not seen it
fit_parameters  the law of each workload, with intervals at 90 %
errors          how far off it is, on runs seen and not seen
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.capacities import Law, Measured, Profiles, fit, left_out
from tideover.calibrate.types import Floats


def frames(measured: Measured) -> dict[str, pd.DataFrame]:
    """The three tables, workload by workload."""
    tables: dict[str, list[dict[str, Any]]] = {"capacities": [], "fit_parameters": [], "errors": []}
    for name, runs in measured.workloads.items():
        saturated = runs.only(runs.saturated)
        law, unseen = fit(saturated), left_out(saturated)
        found = {
            "capacities": _runs(runs, law, unseen),
            "fit_parameters": _parameters(law),
            "errors": _errors(saturated.rate, law.capacity(saturated), unseen),
        }
        for table, rows in found.items():
            tables[table] += [{"workload": name, **row} for row in rows]
    return {table: pd.DataFrame(rows) for table, rows in tables.items()}


def _runs(runs: Profiles, law: Law, unseen: Floats) -> Iterator[dict[str, Any]]:
    capacity, left = law.capacity(runs), iter(unseen.tolist())
    for i in range(len(runs)):
        saturated = bool(runs.saturated[i])
        predicted, low, high = next(left) if saturated else (np.nan,) * 3
        yield {
            "cores": float(runs.cores[i]),
            "slots_per_core": float(runs.sharing[i]),
            "memory_per_slot_mb": float(runs.memory[i]),
            "rate_per_s": float(runs.rate[i]),
            "saturated": saturated,
            "fitted_per_s": float(capacity[i]),
            "left_out_per_s": predicted,
            "low_per_s": low,
            "high_per_s": high,
        }


def _parameters(law: Law) -> Iterator[dict[str, Any]]:
    (alone, sharing, scarce), (low, high) = law.values, law.ends
    rows = (
        ("per_core", *np.exp((alone, low[0], high[0])), "tuples/s", True, "what a core carries for one slot"),
        (
            "sharing",
            sharing,
            low[1],
            high[1],
            "",
            low[1] > 0,
            "exponent by which slots that share a core slow it",
        ),
        ("scarcity", scarce, low[2], high[2], "", low[2] > 0, "exponent by which too little memory slows it"),
        (
            "knee",
            law.knee,
            law.knee,
            law.knee,
            "MB",
            low[2] > 0,
            "memory of a slot below which it is too little",
        ),
    )
    names = ("parameter", "value", "low", "high", "unit", "identified", "meaning")
    for row in rows:
        found = dict(zip(names, row, strict=True))
        yield (
            found
            | {name: float(found[name]) for name in names[1:4]}
            | {"identified": bool(found["identified"])}
        )


def _errors(rate: Floats, fitted: Floats, unseen: Floats) -> Iterator[dict[str, Any]]:
    middle, low, high = unseen.T
    for kind, predicted in (("fit", fitted), ("leave_one_out", middle)):
        off = np.abs(predicted / rate - 1)
        row = {
            "model": "mechanism",
            "kind": kind,
            "n": len(rate),
            "mean_error": float(off.mean()),
            "median_error": float(np.median(off)),
            "worst_error": float(off.max()),
        }
        if kind == "leave_one_out":
            row["coverage"] = float(np.mean((low <= rate) & (rate <= high)))
            row["mean_width"] = float(np.mean((high - low) / middle))
        yield row
