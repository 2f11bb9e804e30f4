"""What was measured and what is predicted, episode by episode, as tidy tables.

`calibration.analyse` calls all of it; the columns of the tables are documented in `tideover.reports.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from tideover.calibrate.counterpart import Costs, Faults, noisy, predicted, simulated
from tideover.calibrate.episodes import NAN, PRE, BacklogCurve, Condition, Episode, Figures, Kind, Progress
from tideover.calibrate.fits import (
    STEADY,
    CostFit,
    FaultFit,
    Law,
    Spread,
    fit_costs,
    fit_faults,
    fluid_law,
    median,
    spread_of,
)

SIMULATED_DRAWS = 12
"""Draws of the parameters that a prediction's interval rests on."""
TIMELINE = (-5.0, 30.0)
"""Seconds around the fault that timelines show."""


@dataclass(frozen=True)
class Fits:
    """All that was fitted: costs by condition, faults and the fluid law by kind, spread of steady measures.
    ``seed``: of the bootstrap, and of the noise of predictions.
    """

    costs: Mapping[Condition, CostFit]
    faults: Mapping[Kind, FaultFit]
    laws: Mapping[Kind, Law]
    spread: Mapping[str, Spread]
    seed: int

    def of(self, episode: Episode) -> tuple[Costs, Faults | None] | None:
        """The estimates for an episode; None: there are none for its condition or its fault."""
        if episode.condition not in self.costs:
            return None
        costs = self.costs[episode.condition].costs
        if episode.fault.kind == "none":
            return costs, None
        fault = self.faults.get(episode.kind)
        return None if fault is None else (costs, fault.faults)

    def spread_of(self, episode: Episode, measure: str) -> Spread | None:
        """The spread of the residuals of an episode's measure; None: not known."""
        if episode.fault.kind == "none":
            return self.spread.get(measure)
        fault = self.faults.get(episode.kind)
        return None if fault is None else fault.spread[measure]


def fit(episodes: Sequence[Episode], seed: int, progress: Progress) -> Fits:
    """Fit everything on the episodes that are not held out; ``seed`` is the bootstrap's."""
    rng = np.random.Generator(np.random.PCG64(seed))
    costs = fit_costs(episodes, rng)
    estimates = {condition: found.costs for condition, found in costs.items()}
    faults = fit_faults(episodes, estimates, rng, progress)
    residuals: dict[str, list[float]] = {}
    known = [e for e in episodes if e.fitted and e.fault.kind == "none" and e.condition in costs]
    for e in known:
        made = predicted(e, costs[e.condition].costs, None)
        for measure, value in e.figures().items():
            residuals.setdefault(measure, []).append(float(np.log(made[measure] / value)))
    found = [costs[condition] for condition in {e.condition for e in known}]
    parameters = sum(1 + one.rows_vary + one.state_varies for one in found)
    spread = {name: spread_of(np.array(values), parameters, STEADY) for name, values in residuals.items()}
    return Fits(costs, faults, _laws(episodes), spread, seed)


def _laws(episodes: Sequence[Episode]) -> dict[Kind, Law]:
    """The fluid law of each kind of fault; what is gone back to is the begin of the batch under way (source
    replay goes back further, which C has to make up for).
    """
    struck: dict[Kind, list[Episode]] = {}
    for e in episodes:
        if e.fitted and e.fault.kind != "none" and "output_gap_s" in e.figures():
            struck.setdefault(e.kind, []).append(e)
    return {
        kind: fluid_law([_point(e) for e in mine], mine[0].setup.trigger_s) for kind, mine in struck.items()
    }


def _point(episode: Episode) -> tuple[float, float, Figures]:
    return episode.rate_per_s, float(np.nan_to_num(episode.fault.in_batch_s)), episode.figures()


def pairs(episodes: Sequence[Episode], fits: Fits, progress: Progress) -> pd.DataFrame:
    """One row an episode and measure: measured, predicted, 90 % interval, error (predicted/measured - 1), and
    after a fault that of the fluid law.

    After a fault, times shorter than the trigger interval count as that long: the sink can't tell them apart.
    What was measured and can't be predicted has no ``predicted``; it is not left out.
    """
    rows = []
    for i, episode in enumerate(episodes):
        progress(i / len(episodes), f"predicting episode {i + 1} of {len(episodes)}")
        measured, (made, likely) = episode.figures(), _predictions(episode, fits, i)
        setup, fault = episode.setup, episode.fault
        floor = 0.0 if fault.kind == "none" else setup.trigger_s  # the sink cannot see less
        law = fits.laws.get(episode.kind)
        plain = {} if law is None else law(*_point(episode)[:2])
        for measure in sorted({*measured, *made}):
            seen, said = measured.get(measure, NAN), made.get(measure, NAN)
            spread = fits.spread_of(episode, measure)
            values = np.nan_to_num([figures[measure] for figures in likely], nan=np.inf)
            low, high = (NAN, NAN) if spread is None else spread.interval(values, floor)
            rows.append(
                {
                    "session": setup.session,
                    "episode": episode.number,
                    "purpose": episode.purpose,
                    "held_out": episode.held_out,
                    "strategy": setup.strategy,
                    "pipeline": setup.pipeline,
                    "master": setup.master,
                    "fault": fault.kind,
                    "rate_per_s": episode.rate_per_s,
                    "keys": setup.keys,
                    "moment_s": fault.in_batch_s,
                    "measure": measure,
                    "measured": seen,
                    "predicted": said,
                    "low": low,
                    "high": high,
                    "error": _error(said, seen, floor),
                    "fluid_error": _error(plain.get(measure, NAN), seen, floor),
                }
            )
    return pd.DataFrame(rows)


def _error(said: float, seen: float, floor: float) -> float:
    return max(said, floor) / max(seen, floor) - 1 if np.isfinite(said + seen) else NAN


def _predictions(episode: Episode, fits: Fits, number: int) -> tuple[Figures, list[Figures]]:
    """What is predicted; and, for held-out episodes, equally likely predictions with drawn parameters and
    noise. Empty: no fit.
    """
    found = fits.of(episode)
    if found is None:
        return {}, []
    costs, faults = found
    drawn = fits.costs[episode.condition].draws[:SIMULATED_DRAWS] if episode.held_out else ()
    if faults is None:
        return predicted(episode, costs, None), [predicted(episode, c, None) for c in drawn]
    rng = np.random.Generator(np.random.PCG64([fits.seed, number]))
    made, likely = median(noisy(episode, costs, faults, rng)), []
    for k, (c, f) in enumerate(zip(drawn, fits.faults[episode.kind].draws, strict=False)):
        z = float(norm.ppf((k + 0.5) / SIMULATED_DRAWS))
        likely += noisy(_struck_later(episode, c.noise * z), c, f, rng)
    return made, likely


def _struck_later(episode: Episode, noise: float) -> Episode:
    """Struck as if the batch that was running had got further by then: by a factor whose log is ``noise``.
    Which task meets which executor is a race, and batches vary.
    """
    fault = episode.fault
    if np.isnan(fault.in_batch_s):
        return episode
    return replace(episode, fault=replace(fault, at_s=fault.at_s + fault.in_batch_s * float(np.expm1(noise))))


def ranking(found: pd.DataFrame) -> pd.DataFrame:
    """Strategies by their median output gap after the same fault, measured and simulated (1: shortest)."""
    gaps = found[found["measure"] == "output_gap_s"].dropna(subset=["measured", "predicted"])
    table = gaps.groupby(["fault", "strategy"], as_index=False).agg(
        measured_gap_s=("measured", "median"), simulated_gap_s=("predicted", "median"), n=("measured", "size")
    )
    for kind in ("measured", "simulated"):
        table[f"{kind}_rank"] = table.groupby("fault")[f"{kind}_gap_s"].rank().astype(int)
    return table


def timelines(episodes: Sequence[Episode], fits: Fits) -> pd.DataFrame:
    """Backlogs around the fault, measured and simulated, of the held-out episodes with one; of all if none is
    held out.
    """
    known = [(e, found) for e in episodes if e.fault.kind != "none" and (found := fits.of(e)) is not None]
    shown = [(e, found) for e, found in known if e.held_out] or known
    frames = []
    for episode, found in shown:
        made, failed = simulated(episode, *found), episode.fault.at_s
        both = (episode.curve, failed), (made.curve(), made.failed_s)
        frames.append(timeline(_about(episode), *both, episode.end_s - failed))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def timeline(
    about: Mapping[str, Any],
    measured: tuple[BacklogCurve, float],
    made: tuple[BacklogCurve, float],
    until_s: float,
) -> pd.DataFrame:
    """Backlogs around one fault; of each curve, when it struck (s). ``until_s``: then comes another rate."""
    at = np.arange(max(TIMELINE[0], -PRE), min(TIMELINE[1], until_s), 0.05)
    curves = {"measured": measured, "simulated": made}
    return pd.concat(
        pd.DataFrame({**about, "kind": kind, "at_s": at, "backlog": curve.backlog(zero + at)})
        for kind, (curve, zero) in curves.items()
    )


def _about(episode: Episode) -> dict[str, Any]:
    return {
        "session": episode.setup.session,
        "episode": episode.number,
        "strategy": episode.setup.strategy,
        "fault": episode.fault.kind,
    }


def correctness(episodes: Sequence[Episode], counts: pd.DataFrame, fits: Fits) -> pd.DataFrame:
    """By strategy and fault: kills after which all counts were exact, rows missing and in excess, and what
    the simulated ledgers say. ``counts``: the table of episodes, with the columns missing and extra.
    """
    rows = []
    for e in (e for e in episodes if e.fault.kind != "none"):
        found = fits.of(e)
        made = None if found is None else simulated(e, *found)
        wrong = {"lost": made.lost if made else 0, "duplicated": made.duplicated if made else 0}
        rows.append(_about(e) | wrong)
    if not rows:
        return pd.DataFrame()
    same = ["session", "episode"]
    table = pd.DataFrame(rows).merge(counts[[*same, "missing", "extra"]], on=same)
    table["exact"] = (table["missing"] == 0) & (table["extra"] == 0)
    return (
        table.groupby(["strategy", "fault"], as_index=False)
        .agg(
            kills=("episode", "size"),
            exact=("exact", "sum"),
            missing=("missing", "sum"),
            extra=("extra", "sum"),
            simulated_lost=("lost", "sum"),
            simulated_duplicated=("duplicated", "sum"),
        )
        .assign(promise="exactly once")
    )
