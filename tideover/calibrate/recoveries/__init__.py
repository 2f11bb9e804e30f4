"""Fits to recoveries that somebody else has measured: from a CSV to profiles, without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tideover.calibrate import profile as profile_yaml
from tideover.calibrate.recoveries import profile
from tideover.calibrate.recoveries.measurements import Measurements, read
from tideover.calibrate.recoveries.posterior import Fitted, Report, fit_all

__all__ = ["Calibration", "fit", "read"]


@dataclass(frozen=True)
class Calibration:
    """What a file of recoveries comes to: fits and texts of profiles by workload, tidy tables (see
    `profile`), where the measurements come from, and what makes them, or the profiles, say less than it
    seems.
    """

    fitted: Mapping[str, Fitted]
    profiles: Mapping[str, str]
    frames: Mapping[str, pd.DataFrame]
    provenance: Mapping[str, str]
    warnings: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        rows = {name: frame.to_dict("records") for name, frame in self.frames.items() if name != "curves"}
        more = {"profiles": list(self.profiles), "warnings": list(self.warnings)}
        return {"schema": 1, "provenance": dict(self.provenance), **more, **rows}


def fit(measured: Measurements, *, seed: int = 1, report: Report = lambda *_: None) -> Calibration:
    """Fit every workload of a file of recoveries. Equal seeds give equal draws."""
    fitted = fit_all(measured, seed, report)
    texts = {
        name: profile_yaml.text(profile.as_profile(name, found, measured, seed), width=120)
        for name, found in fitted.items()
    }
    provenance = {
        "File": measured.file,
        "SHA-256": measured.sha256,
        "Recoveries": ", ".join(f"{name}: {len(points)}" for name, points in measured.workloads.items()),
        "Seed": str(seed),
    }
    more = (
        text
        for name, found in fitted.items()
        for text in (*profile.too_coarse(name, found), *profile.warned(name, found))
    )
    return Calibration(fitted, texts, profile.frames(fitted), provenance, (*measured.remarks, *more))
