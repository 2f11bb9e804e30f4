"""A calibration on Flink, once it is measured: fit, predict the kills that were held out, write a profile.

``tideover calibrate --engine flink`` calls ``analyse``. The tables are those of a calibration on PySpark, and
are documented in `tideover.reports.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tideover import __version__
from tideover.calibrate import profile
from tideover.calibrate.calibration import SEED, Calibration, NothingToFit, failures
from tideover.calibrate.comparison import timeline
from tideover.calibrate.episodes import DISTURBED, NAN, Figures, Floats, Progress
from tideover.calibrate.fits import DRAWS, LEAST, MEASURES, NEVER, Spread, spread_beside_luck
from tideover.calibrate.flink.kills import Costs, Kill, Simulated, fit, fluid, kills, simulated

ABOUT = {
    "purpose": "recovery",
    "strategy": "aligned_snapshots",
    "pipeline": "running_count",
    "master": "flink",
    "fault": "kill_taskmanager",
}
"""What all pairs have in common."""
LUCK = 12
"""Times that a kill is simulated, each with other phases of the heartbeats: they decide whether the last
restart but one still finds the lost TaskManager, which costs a delay more. The median is what is predicted.
"""
SIMULATED_DRAWS = 40
"""Draws of the parameters, each with phases of its own, that a prediction's interval rests on."""
LEAST_KILLS = 3
"""So many kills tell a spread."""
_PARAMETERS = 2
"""Of each measure: an outage, and a capacity."""


@dataclass(frozen=True)
class Prediction:
    """A kill, simulated in as many ways as chance may have it."""

    kill: Kill
    runs: tuple[Simulated, ...]

    @classmethod
    def of(cls, kill: Kill, costs: Costs) -> Prediction:
        return cls(kill, tuple(simulated(kill, costs, seed) for seed in range(1, LUCK + 1)))

    @cached_property
    def each(self) -> tuple[Figures, ...]:
        """The figures of all runs."""
        return tuple(run.figures() for run in self.runs)

    @cached_property
    def figures(self) -> Figures:
        """The medians; what is not over in half of the runs is missing."""
        found = {m: float(np.median([one.get(m, np.inf) for one in self.each])) for m in MEASURES}
        return {measure: value for measure, value in found.items() if np.isfinite(value)}

    @cached_property
    def typical(self) -> Simulated:
        """The run whose silence is nearest to the median."""
        said = self.figures.get("output_gap_s", np.inf)
        off = [abs(one.get("output_gap_s", np.inf) - said) for one in self.each]
        return self.runs[int(np.argmin(off))]


@dataclass(frozen=True)
class Fits:
    """The estimate, draws of it, and the spread of each measure's residuals."""

    costs: Costs
    draws: tuple[Costs, ...]
    spread: Mapping[str, Spread]


def analyse(tables: Mapping[str, pd.DataFrame], progress: Progress) -> Calibration:
    """Fit a campaign, and compare what the fit predicts with what was measured; raises NothingToFit."""
    found = kills(tables)
    costs, draws = _estimates(found, tables)
    made = []
    for i, kill in enumerate(found):
        progress(0.4 * i / len(found), f"simulating kill {i + 1} of {len(found)}")
        made.append(Prediction.of(kill, costs))
    fits = Fits(costs, draws, _spread(made))
    pairs = _pairs(made, fits, lambda done, what: progress(0.4 + 0.5 * done, what))
    progress(0.9, "comparing")
    sessions = tables["sessions"]
    first = sessions[sessions["error"] == ""].iloc[0]
    provenance = {
        "source": "real Flink, TaskManagers really killed",
        "measured": str(first["t0"]),
        **{name: str(first[name]) for name in ("machine", "os", "java", "python", "flink")},
        "tideover": __version__,
        "sessions": len(sessions),
        "kills": len(found),
        "restarts_after_a_kill": f"measured {_spanned([k.restarts for k in found])}, "
        f"simulated {_spanned([run.restarts for one in made for run in one.runs])}",
    }
    frames = {
        "pairs": pairs,
        "parameters": _parameters(fits),
        "timelines": _timelines(made),
        "correctness": _correctness(found, made),
    }
    text = profile.text(_profile(found, fits, provenance), width=110)
    return Calibration(frames, {PROFILE: text}, provenance, tuple(_warnings(tables, found)))


def _estimates(found: Sequence[Kill], tables: Mapping[str, pd.DataFrame]) -> tuple[Costs, tuple[Costs, ...]]:
    """The fit, and draws of it by the Bayesian bootstrap (see `tideover.calibrate.fits`)."""
    mine = [k for k in found if k.fitted]
    known = [k for k in mine if np.isfinite(k.work()[0])]
    if len(known) < LEAST_KILLS:
        told = (f"  {k.session} #{k.episode}: {k.figures() or 'nothing came out again'}" for k in mine)
        said = f"nothing can be fitted: {len(known)} kills were recovered from, {LEAST_KILLS} are needed."
        raise NothingToFit("\n".join([said, *told, *(f"  {one}" for one in failures(tables))]))
    rng = np.random.Generator(np.random.PCG64(SEED))
    weights = rng.dirichlet(np.ones(len(known)), DRAWS) * len(known)
    return fit(known), tuple(fit(known, w) for w in weights)


def _spread(made: Sequence[Prediction]) -> dict[str, Spread]:
    """Of each measure's residuals that are not luck, over the kills of the fit."""

    def residuals(measure: str) -> Floats:
        figures = [(one.each, one.kill.figures().get(measure, NAN)) for one in made if one.kill.fitted]
        return np.array([[_residual(run.get(measure, NAN), seen) for run in runs] for runs, seen in figures])

    return {measure: spread_beside_luck(residuals(measure), _PARAMETERS, LEAST) for measure in MEASURES}


def _residual(made: float, seen: float) -> float:
    """Log of predicted over measured; NaN: not measured, or nothing to catch up with."""
    if not seen > 0:
        return NAN
    return NEVER if np.isnan(made) else float(np.log(made / seen))


def _pairs(made: Sequence[Prediction], fits: Fits, progress: Progress) -> pd.DataFrame:
    """One row a kill and measure: measured, predicted, 90 % interval, error, and what the fluid law says."""
    law = fluid([one.kill for one in made if one.kill.fitted])
    rows = []
    for i, one in enumerate(made):
        progress(i / len(made), f"predicting kill {i + 1} of {len(made)}")
        kill, predicted = one.kill, one.figures
        measured, plain = kill.figures(), law(kill.rate_per_s, kill.age_s)
        draws = fits.draws[:SIMULATED_DRAWS] if kill.held_out else ()
        likely = [simulated(kill, costs, seed).figures() for seed, costs in enumerate(draws, LUCK + 1)]
        about = ABOUT | {"session": kill.session, "episode": kill.episode, "held_out": kill.held_out}
        about |= {"rate_per_s": kill.rate_per_s, "keys": NAN, "moment_s": kill.age_s}
        for measure in MEASURES:
            seen, said = measured.get(measure, NAN), predicted.get(measure, NAN)
            values = np.array([figures.get(measure, np.inf) for figures in likely])
            low, high = fits.spread[measure].interval(values)
            error, plainly = ((each / seen - 1 if seen else NAN) for each in (said, plain[measure]))
            figures = {"measured": seen, "predicted": said, "low": low, "high": high}
            rows.append(about | {"measure": measure} | figures | {"error": error, "fluid_error": plainly})
    return pd.DataFrame(rows)


def _spanned(counts: Sequence[int]) -> str:
    return f"{min(counts)} to {max(counts)}, {np.mean(counts):.1f} on average"


def _timelines(predictions: Sequence[Prediction]) -> pd.DataFrame:
    """Backlogs around the kill, measured and simulated, of the kills that are held out; of all if none is."""
    frames = []
    for one in [one for one in predictions if one.kill.held_out] or predictions:
        kill, made = one.kill, one.typical
        about: dict[str, Any] = {"session": kill.session, "episode": kill.episode}
        about |= {name: ABOUT[name] for name in ("strategy", "fault")}
        both = (kill.curve, kill.at_s), (made.curve, made.failed_s)
        frames.append(timeline(about, *both, kill.end_s - kill.at_s))
    return pd.concat(frames, ignore_index=True)


def _correctness(found: Sequence[Kill], made: Sequence[Prediction]) -> pd.DataFrame:
    """Kills after which all counts were exact, rows missing and in excess, and what the ledger says."""
    row = {
        "strategy": ABOUT["strategy"],
        "fault": ABOUT["fault"],
        "kills": len(found),
        "exact": sum(k.few == k.many == 0 for k in found),
        "missing": sum(k.few for k in found),
        "extra": sum(k.many for k in found),
        "simulated_lost": sum(one.typical.lost for one in made),
        "simulated_duplicated": sum(one.typical.duplicated for one in made),
        "promise": "exactly once",
    }
    return pd.DataFrame([row])


PROFILE = "flink-running-count"
_CRASH, _HEARTBEATS = "failures.crash_task", "detector.heartbeats"
_KEYS = {
    f"{_CRASH}.detection": "the first task fails, as its connection is lost",
    f"{_CRASH}.restart": "from then until every task has put out a row again",
    "bolts.windowed_count.service": "a row, while the job catches up, all tasks together",
    "strategy.aligned_snapshots.upload_time": "a checkpoint, until it is complete",
    f"{_HEARTBEATS}.connection": "as detection",
    f"{_HEARTBEATS}.failed_deployment": "from a restart on the lost TaskManager until it fails",
    f"{_HEARTBEATS}.replacement": "from the kill until another TaskManager has registered",
    f"{_HEARTBEATS}.prepare": "from then, the last restart's order, and the end of the lost one's slots, "
    "until all tasks put out rows",
}
"""Keys of scenarios with or without a detector, and what they stand for."""


def _flat(costs: Costs) -> dict[str, float]:
    """The values of the profile, s, in the order of ``_KEYS``."""
    crash = (costs.connection, costs.outage - costs.connection, 1 / costs.capacity, costs.snapshot)
    detector = (costs.connection, costs.refused, costs.replacement, costs.prepare)
    return dict(zip(_KEYS, (*crash, *detector), strict=True))


def _bounds(fits: Fits) -> dict[str, tuple[float, float]]:
    drawn = pd.DataFrame([_flat(costs) for costs in fits.draws])
    low, high = drawn.quantile(0.05), drawn.quantile(0.95)
    return {key: (float(low[key]), float(high[key])) for key in _flat(fits.costs)}


def _parameters(fits: Fits) -> pd.DataFrame:
    """One row a value of the profile, and when a lost TaskManager was given up, which is only measured."""
    about = {"strategy": ABOUT["strategy"], "profile": PROFILE, "unit": "s", "identified": True}
    flat, bounds = _flat(fits.costs), _bounds(fits)
    rows = [
        about | {"parameter": key, "value": flat[key], "low": low, "high": high, "meaning": _KEYS[key]}
        for key, (low, high) in bounds.items()
    ]
    low, high = np.nanquantile([costs.given_up for costs in fits.draws], (0.05, 0.95)).tolist()
    told = {"parameter": "given_up", "value": fits.costs.given_up, "low": low, "high": high}
    meaning = "from the kill until the lost TaskManager is no longer reachable; not a value of the profile"
    return pd.DataFrame([*rows, about | told | {"meaning": meaning}])


def _profile(found: Sequence[Kill], fits: Fits, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """A profile for ``flink-recovery`` as plain data."""
    written, flat = profile.written, _flat(fits.costs)
    rates, intervals = [k.rate_per_s for k in found], [k.interval_s for k in found]
    values = {key: written(value) for key, value in flat.items()}
    return profile.data(
        PROFILE,
        provenance,
        values | {"strategy.aligned_snapshots.snapshot_time": "0 s"},
        {key: (written(low), written(high), True) for key, (low, high) in _bounds(fits).items()},
        (flat, (map(written, _flat(costs).values()) for costs in fits.draws)),
        ranges={
            "rate": {"low": f"{min(rates):.12g}/s", "high": f"{max(rates):.12g}/s"},
            "interval": {"low": written(min(intervals)), "high": written(max(intervals))},
        },
        scatter={"catch_up_s": round(fits.spread["catch_up_s"].normal, 4)},
    )


def _warnings(tables: Mapping[str, pd.DataFrame], found: Sequence[Kill]) -> list[str]:
    said = failures(tables)
    known = {(k.session, k.episode) for k in found}
    every = tables["kills"][["session", "episode"]].itertuples(index=False, name=None)
    if unsettled := ", ".join(f"{session} #{n}" for session, n in every if (session, n) not in known):
        why = "as the job had not caught up, or had no checkpoint, before the kill"
        said.append(f"left out, {why}: {unsettled}")
    if disturbed := [f"{k.session} #{k.episode}" for k in found if k.others_cores > DISTURBED]:
        left_out = "the fit leaves them out"
        if not any(k.disturbed for k in found):
            left_out = "the fit takes them all the same, as there are no others"
        said.append(f"other programs were at work in {', '.join(disturbed)}: {left_out}")
    return said
