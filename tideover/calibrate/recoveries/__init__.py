"""Fits to recoveries that somebody else has measured: from a CSV to profiles, without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tideover.calibrate.recoveries.fits import Fitted, Report, fit_all
from tideover.calibrate.recoveries.measurements import Measurements, read

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Calibration:
    """What a file of recoveries comes to.

    fitted      by workload
    profiles    texts of the profiles by workload
    frames      tidy tables, see ``tideover.calibrate.recoveries.tables``
    provenance  where the measurements come from, label by label
    warnings    what makes the measurements, or the profiles, say less than it seems
    """

    measured: Measurements
    fitted: Mapping[str, Fitted]
    profiles: Mapping[str, str]
    frames: Mapping[str, pd.DataFrame]
    provenance: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tables and the profiles' names, for ``--json``."""
        tables = {name: frame.to_dict("records") for name, frame in self.frames.items() if name != "curves"}
        more = {"profiles": list(self.profiles), "warnings": list(self.warnings)}
        return {"schema": 1, "provenance": dict(self.provenance), **more, **tables}


def calibrate(path: str | Path, *, seed: int = 1, report: Report | None = None) -> Calibration:
    """Fit every workload of a CSV of recoveries (``measurements``).

    ``seed``: equal seeds give equal draws. ``report``: called with what is being done, how much of it is
    done, and of how much. Raises ScenarioError for a file that cannot be used.
    """
    return fit(read(Path(path)), seed=seed, report=report)


def fit(measured: Measurements, *, seed: int = 1, report: Report | None = None) -> Calibration:
    """The same for measurements that have been read."""
    from tideover.calibrate.recoveries import profile, tables

    fitted = fit_all(measured, seed, report)
    texts = {
        name: profile.text(profile.profile(name, found, measured, seed)) for name, found in fitted.items()
    }
    provenance = {
        "File": measured.file,
        "SHA-256": measured.sha256,
        "Recoveries": ", ".join(f"{name}: {len(points)}" for name, points in measured.workloads.items()),
        "Seed": str(seed),
    }
    coarse = (text for name, found in fitted.items() for text in profile.too_coarse(name, found))
    return Calibration(
        measured, fitted, texts, tables.frames(fitted), provenance, (*measured.remarks, *coarse)
    )
