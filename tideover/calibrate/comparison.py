"""Measured beside predicted, episode by episode, as tidy tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from tideover.calibrate.costs import CostFit, fit_costs
from tideover.calibrate.episodes import PRE, Episode, Figures, figures
from tideover.calibrate.faults import Condition, FaultFit, Kind, fit_faults, median
from tideover.calibrate.scatter import STEADY, Scatter, scatter
from tideover.calibrate.worlds import Costs, Faults, likely, predicted, simulated

Progress = Callable[[float, str], None]

SIMULATED_DRAWS = 12
"""Draws of the parameters that a prediction's interval rests on."""
TIMELINE = (-5.0, 30.0)
"""Seconds around the fault that timelines show."""


@dataclass(frozen=True)
class Fits:
    """All that was fitted: costs by condition, faults by strategy and kind, scatter of steady measures.

    seed   of the bootstrap, and of the luck that predictions are made with
    """

    costs: Mapping[Condition, CostFit]
    faults: Mapping[Kind, FaultFit]
    scatter: Mapping[str, Scatter]
    seed: int

    def of(self, episode: Episode) -> tuple[Costs, Faults | None] | None:
        """The estimates for an episode; None: there are none for its condition or its fault."""
        if episode.condition not in self.costs:
            return None
        if episode.fault == "none":
            return self.costs[episode.condition].costs, None
        fault = self.faults.get((episode.strategy, episode.fault))
        return None if fault is None else (self.costs[episode.condition].costs, fault.faults)


def fit(episodes: Sequence[Episode], seed: int, progress: Progress) -> Fits:
    """Fit everything on the episodes that are not held out; ``seed`` is the bootstrap's."""
    bits = np.random.Generator(np.random.PCG64(seed))
    costs = fit_costs(episodes, bits)
    estimates = {condition: found.costs for condition, found in costs.items()}
    faults = fit_faults(episodes, estimates, bits, progress)
    return Fits(costs, faults, _steady_scatter(episodes, costs), seed)


def _steady_scatter(episodes: Sequence[Episode], costs: Mapping[Condition, CostFit]) -> dict[str, Scatter]:
    """Of each steady measure, over the episodes of the fit."""
    left: dict[str, list[float]] = {}
    known = [e for e in episodes if e.fitted and e.fault == "none" and e.condition in costs]
    for e in known:
        made = predicted(e, costs[e.condition].costs, None)
        for measure, value in figures(e).items():
            left.setdefault(measure, []).append(float(np.log(made[measure] / value)))
    told = sum(costs[condition].told for condition in {e.condition for e in known})
    return {measure: scatter(np.array(values), told, STEADY) for measure, values in left.items()}


def pairs(episodes: Sequence[Episode], fits: Fits, progress: Progress) -> pd.DataFrame:
    """One row an episode and measure: measured, predicted, 90 % interval, error (predicted/measured - 1).

    After a fault, times shorter than the trigger interval count as that long: the sink can't tell them apart.

    What was measured and can't be predicted has no ``predicted``; it is not left out.
    """
    rows = []
    for i, episode in enumerate(episodes):
        progress(i / len(episodes), f"predicting episode {i + 1} of {len(episodes)}")
        measured, (made, spread) = figures(episode), _predictions(episode, fits, i)
        for measure in sorted({*measured, *made}):
            rows.append(_pair(episode, fits, measure, measured, made, spread))
    return pd.DataFrame(rows)


def _predictions(episode: Episode, fits: Fits, number: int) -> tuple[Figures, list[Figures]]:
    """What is predicted; and for held-out episodes, with drawn parameters and luck. Empty: no fit."""
    found = fits.of(episode)
    if found is None:
        return {}, []
    costs, faults = found
    drawn = fits.costs[episode.condition].draws[:SIMULATED_DRAWS] if episode.held_out else ()
    if faults is None:
        return predicted(episode, costs, None), [predicted(episode, c, None) for c in drawn]
    bits = np.random.Generator(np.random.PCG64([fits.seed, number]))
    made, ways = median(likely(episode, costs, faults, bits)), []
    for k, (c, f) in enumerate(zip(drawn, fits.faults[episode.strategy, episode.fault].draws, strict=False)):
        luck = float(norm.ppf((k + 0.5) / SIMULATED_DRAWS))
        ways += likely(_further(episode, c.unsteady * luck), c, f, bits)
    return made, ways


def _further(episode: Episode, luck: float) -> Episode:
    """Struck as if the batch that was running had got further than it has in this time, by so much (log): it
    is a race which task meets which executor, and batches vary.
    """
    if np.isnan(episode.moment_s):
        return episode
    return replace(episode, at_s=episode.at_s + episode.moment_s * float(np.expm1(luck)))


def _scatter(episode: Episode, fits: Fits, measure: str) -> Scatter | None:
    if episode.fault == "none":
        return fits.scatter.get(measure)
    fault = fits.faults.get((episode.strategy, episode.fault))
    return None if fault is None else fault.scatter[measure]


def _pair(
    episode: Episode, fits: Fits, measure: str, measured: Figures, made: Figures, spread: list[Figures]
) -> dict[str, Any]:
    nan = float("nan")
    seen, said = measured.get(measure, nan), made.get(measure, nan)
    floor = 0.0 if episode.fault == "none" else episode.trigger_s  # less is not seen at the sink
    known = _scatter(episode, fits, measure)
    ways = np.nan_to_num([way[measure] for way in spread], nan=np.inf)
    low, high = (nan, nan) if known is None else known.interval(ways, floor)
    return {
        "session": episode.session,
        "episode": episode.number,
        "purpose": episode.purpose,
        "held_out": episode.held_out,
        "strategy": episode.strategy,
        "pipeline": episode.pipeline,
        "master": episode.master,
        "fault": episode.fault,
        "rate_per_s": episode.rate_per_s,
        "keys": episode.keys,
        "moment_s": episode.moment_s,
        "measure": measure,
        "measured": seen,
        "predicted": said,
        "low": low,
        "high": high,
        "error": max(said, floor) / max(seen, floor) - 1 if np.isfinite(said + seen) else nan,
    }


def ranking(found: pd.DataFrame) -> pd.DataFrame:
    """Strategies by their median output gap after the same fault, measured and simulated (1: shortest)."""
    gaps = found[
        (found["measure"] == "output_gap_s") & found["measured"].notna() & found["predicted"].notna()
    ]
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
    faulted = [e for e in episodes if e.fault != "none" and fits.of(e) is not None]
    shown = [e for e in faulted if e.held_out] or faulted
    rows = [_timeline(e, fits) for e in shown]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _timeline(episode: Episode, fits: Fits) -> pd.DataFrame:
    found = fits.of(episode)
    assert found is not None
    made = simulated(episode, *found)
    last = min(TIMELINE[1], episode.end_s - episode.at_s)  # then comes another rate
    at = np.arange(max(TIMELINE[0], -PRE), last, 0.05)
    parts = [
        {"kind": "measured", "at_s": at, "backlog": episode.course.backlog(episode.at_s + at)},
        {"kind": "simulated", "at_s": at, "backlog": made.course().backlog(made.failed_s + at)},
    ]
    who = {
        "session": episode.session,
        "episode": episode.number,
        "strategy": episode.strategy,
        "fault": episode.fault,
    }
    return pd.concat([pd.DataFrame({**who, **part}) for part in parts], ignore_index=True)


def correctness(episodes: Sequence[Episode], counts: pd.DataFrame, fits: Fits) -> pd.DataFrame:
    """By strategy and fault: kills after which all counts were exact, rows missing and in excess, and what
    the simulated ledgers say. ``counts``: the table of episodes, with the columns missing and extra.
    """
    rows = []
    faulted = [e for e in episodes if e.fault != "none"]
    for strategy, fault in sorted({(e.strategy, e.fault) for e in faulted}):
        mine = [e for e in faulted if (e.strategy, e.fault) == (strategy, fault)]
        names = {(e.session, e.number) for e in mine}
        seen = counts[[pair in names for pair in zip(counts["session"], counts["episode"], strict=True)]]
        made = [simulated(e, *found) for e in mine if (found := fits.of(e)) is not None]
        rows.append(
            {
                "strategy": strategy,
                "fault": fault,
                "kills": len(mine),
                "exact": int(((seen["missing"] == 0) & (seen["extra"] == 0)).sum()),
                "missing": int(seen["missing"].sum()),
                "extra": int(seen["extra"].sum()),
                "simulated_lost": sum(run.lost for run in made),
                "simulated_duplicated": sum(run.duplicated for run in made),
                "promise": "exactly once",
            }
        )
    return pd.DataFrame(rows)
