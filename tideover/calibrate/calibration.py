"""A calibration on real runs, once they are measured: fit, predict what was held out, write profiles.

``tideover calibrate`` calls ``analyse``. A new table is named in ``frames``, and documented in
`tideover.reports.columns`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tideover import __version__
from tideover.calibrate import comparison, profile
from tideover.calibrate.comparison import Fits
from tideover.calibrate.episodes import CAUGHT_UP, DISTURBED, Episode, Progress, episodes
from tideover.calibrate.fits import LEAST_BATCHES
from tideover.calibrate.real.processes import PRINTED

SEED = 1
"""Of the bootstrap."""


class NothingToFit(RuntimeError):
    """What was measured is too little; the message says what there is, and what to do."""


@dataclass(frozen=True)
class Calibration:
    """What came of a calibration: tidy tables, texts of the profiles by file name without suffix, where, when
    and on what it was measured, and warnings of what could not be used.
    """

    frames: dict[str, pd.DataFrame]
    profiles: dict[str, str]
    provenance: dict[str, Any]
    warnings: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        shown = {name: frame for name, frame in self.frames.items() if name != "timelines"}
        return {
            "schema": 1,
            "provenance": self.provenance,
            "warnings": list(self.warnings),
            "profiles": sorted(self.profiles),
            **{name: json.loads(frame.to_json(orient="records")) for name, frame in shown.items()},
        }


def analyse(tables: Mapping[str, pd.DataFrame], progress: Progress) -> Calibration:
    """Fit the tables of a campaign, and compare what the fits predict with what was measured; raises
    NothingToFit if no episode has batches enough.
    """
    every = episodes(tables)
    found = [e for e in every if e.caught_up]
    fits = comparison.fit(found, SEED, lambda done, what: progress(0.4 * done, what))
    if not fits.costs:
        raise NothingToFit(_too_few(tables, every))
    pairs = comparison.pairs(found, fits, lambda done, what: progress(0.4 + 0.5 * done, what))
    progress(0.9, "comparing")
    sessions = tables["sessions"]
    first = sessions.iloc[0]
    same = ("machine", "os", "java", "jvm", "python", "spark")
    provenance = {
        "source": "real PySpark runs, processes really killed",
        "measured": str(sessions["t0"].min()),
        **{name: str(first[name]) for name in same if name in sessions},
        "tideover": __version__,
        "sessions": len(sessions),
        "episodes": len(every),
        "kills": sum(e.fault.kind.startswith("kill") for e in every),
        "seed": int(first["seed"]),
    }
    frames = {
        "pairs": pairs,
        "parameters": profile.parameters(fits),
        "timelines": comparison.timelines(found, fits),
        "ranking": comparison.ranking(pairs),
        "correctness": comparison.correctness(every, tables["episodes"], fits),
    }
    wait = float(sessions["locality_wait_s"].max())
    texts = {}
    for name, condition in profile.profiles(fits).items():
        data = profile.profile(name, condition, fits, provenance, wait)
        measured = {f.__name__: f(condition, found) for f in (profile.ranges, profile.conditions)}
        texts[name] = profile.text(data | measured, width=110)
    return Calibration(frames, texts, provenance, tuple(_warnings(tables, every, fits)))


def _too_few(tables: Mapping[str, pd.DataFrame], found: list[Episode]) -> str:
    """How many batches each episode of the fit has, which sessions failed, and what to do."""
    lines = [
        f"nothing can be fitted: no episode has {LEAST_BATCHES} batches of normal operation.",
        *(f"  {e.name} (with {e.rate_per_s:.0f} rows/s): {len(e.settled())}" for e in found if e.fitted),
        *(f"  {failure}" for failure in failures(tables)),
        "The machine is too slow, or has other work to do. Give another --out to measure anew, or a greater "
        "--pace if it is slow; with the same ones only sessions that failed are tried again.",
    ]
    return "\n".join(lines)


def failures(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Why sessions failed; what they printed, after the first line of the reason, is in the tables."""
    sessions = tables["sessions"]
    reasons = sessions["error"][sessions["error"].fillna("") != ""]
    return [f"left out: {str(reason).splitlines()[0].removesuffix(PRINTED)}" for reason in reasons]


def _warnings(tables: Mapping[str, pd.DataFrame], every: list[Episode], fits: Fits) -> list[str]:
    said = failures(tables)
    if behind := [e.name for e in every if not e.caught_up]:
        said.append(
            f"left out, as the rows of more than {CAUGHT_UP:g} triggers waited before the fault, so the "
            f"query had not caught up: {', '.join(behind)}"
        )
        if len(behind) == sum(e.fault.kind != "none" for e in every):
            said.append("no fault is left: this machine is too slow for its --pace, or was busy")
    disturbed = [e.name for e in every if e.others_cores > DISTURBED]
    if disturbed:
        said.append(
            f"other programs were at work in {', '.join(disturbed)}: the fit leaves them out, if others of "
            "their kind were not disturbed"
        )
    for strategy, fault in sorted({e.kind for e in every if fits.of(e) is None}):
        said.append(f"{fault} under {strategy} has no episode to be fitted on: it is not predicted")
    return said
