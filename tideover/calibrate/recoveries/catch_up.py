"""How fast a job catches up, beside how much it was seen to process when it was saturated.

`tideover.cli.calibrate` calls ``fit`` with a file of profiling runs (`capacities`) in which processes were
killed, too: its saturated runs say what the job processes by cores, slots and memory (the *profiled*
capacity), its recoveries what it processes while it has a backlog (the *catch-up* capacity). Neither
follows from the other: a saturated run may be cold, or take its checkpoints more often; a job that catches
up shares log and network among all its tasks. So

    catch-up capacity = 1 / (1 / (ratio x profiled capacity) + 1 / limit)

whose second part is what does not grow with the job: contention in G. Amdahl (1967), and in N. Gunther,
*Guerrilla Capacity Planning*, 2007, chapter 4. A warm-up, in which a job does a part w of its capacity for
a time t, is no value of its own: it lengthens a recovery exactly as ``t (1 - w)`` more of restart does, if
it ends before the backlog (`test_a_warm_up_is_a_longer_restart`), so it is part of the outage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares
from scipy.special import ndtr

from tideover import __version__
from tideover.calibrate import capacities, profile
from tideover.calibrate.capacities import Law, Measured, Runs
from tideover.calibrate.episodes import Floats, Mask
from tideover.calibrate.recoveries import posterior, recovery_time
from tideover.calibrate.recoveries import profile as profiles
from tideover.calibrate.recoveries.measurements import Points
from tideover.calibrate.recoveries.posterior import LONGEST_S, SHORTEST_S, WINDOWS, HeldOut, Posterior, Report
from tideover.calibrate.recoveries.profile import FRACTION, OUTAGE, SERVICE
from tideover.calibrate.recoveries.recovery_time import Values, Window
from tideover.sim.units import S, format_duration

FEWEST = 8
"""Recoveries of a workload: five values are fitted to them."""
THIRDS = 3
"""Settings are left out in so many parts, each predicted by a fit to the others."""
DIMENSIONS = 6
_OUTLIERS = 0.05
_VALUES = 4
"""Of the law of capacities."""
_OF_POINTS = ("checkpoint_interval_s", "rate_per_s", "recovery_s")
SETTINGS = ("cores", "slots_per_core", "memory_per_slot_mb")
"""What the profiled capacity depends on."""

MEANING = {
    "catch_up_ratio": ("", "catch-up capacity of a small job, in profiled capacities"),
    "catch_up_limit": ("tuples/s", "what all tasks together catch up with, however many they are"),
    "outage": ("s", "from the failure until the job works as it can; a warm-up is part of it"),
    "fraction": ("ratio", "part of the interval that had passed when failures struck"),
    "run_to_run": ("ratio", "standard deviation of the logarithm of the catch-up capacity, run by run"),
    "lag_window": ("s", "window of the metric in which the backlog was seen; 0: it was seen at once"),
}


@dataclass(frozen=True)
class Profiled:
    """Recoveries of a workload, profiled capacities (1/s), and which ended; others lasted longer."""

    points: Points
    capacity: Floats
    ended: Mask

    @classmethod
    def of(cls, name: str, runs: Runs, law: Law) -> Profiled:
        interval, rate, recovery = (runs[column].to_numpy(np.float64) for column in _OF_POINTS)
        ended = runs["censored"].to_numpy() != 1
        return cls(Points(name, interval, rate, recovery), law.capacity(runs), ended)

    def only(self, those: Mask) -> Profiled:
        return Profiled(self.points.without(~those), self.capacity[those], self.ended[those])


@dataclass(frozen=True)
class Prior:
    """From standard normal coordinates, one row a draw, to values.

    The ratio is within a factor of two in two of three draws; the limit even on a log scale, from half of the
    greatest profiled capacity to a hundred of it. Outage and fraction are as in `posterior.Prior`.
    ``profiled``: capacity (1/s) of the job that is asked for.
    """

    greatest: float
    recovery: float
    window: Window
    profiled: float = 1.0

    @classmethod
    def of(cls, profiled: Profiled, window: Window) -> Prior:
        middle = float(np.median(profiled.points.recovery[profiled.ended]))
        return cls(float(profiled.capacity.max()), middle, window)

    def ratio(self, v: Floats) -> Floats:
        return np.asarray(2.0 ** v[..., 2])

    def limit(self, v: Floats) -> Floats:
        return np.asarray(self.greatest / 2 * 200 ** ndtr(v[..., 3]))

    def spread(self, v: Floats) -> Floats:
        """Standard deviation of the logarithm of a run's catch-up capacity, with the profiled one's."""
        return np.asarray(0.1 * np.exp(0.7 * v[..., 4]))

    def jitter(self, v: Floats) -> Floats:
        return np.asarray(0.02 * self.recovery * np.exp(v[..., 5]))

    def values(self, v: Floats, profiled: Floats | None = None) -> Values:
        """What the closed form needs, for runs with these profiled capacities (1/s), or for that job."""
        known = self.profiled if profiled is None else profiled
        outage = SHORTEST_S * (LONGEST_S / SHORTEST_S) ** ndtr(v[..., 0])
        capacity = 1 / (1 / (self.ratio(v) * known) + 1 / self.limit(v))
        return Values(outage, capacity, np.minimum(2 * ndtr(v[..., 1]), 1), 0.0)


def of_job(found: Posterior, profiled: float) -> Posterior:
    """The same of a job with this profiled capacity (1/s)."""
    return replace(found, prior=replace(found.prior, profiled=profiled))


def predicted(found: Posterior, of: Profiled) -> Floats:
    """The estimate and both ends of the interval of prediction at 90 %, s, in a row each."""
    places = zip(of.points.settings, of.capacity, strict=True)
    mine = [(of_job(found, float(capacity)), place) for place, capacity in places]
    rows = [(one.estimate(place), *one.interval(place)) for one, place in mine]
    return np.transpose(np.reshape(rows, (-1, 3)))


def parameters(prior: Prior, v: Floats) -> dict[str, Floats]:
    """Draws of each value, by its name."""
    values = prior.values(v)
    found = {"catch_up_ratio": prior.ratio(v), "catch_up_limit": prior.limit(v)}
    found |= {"outage": np.asarray(values.outage), "fraction": np.asarray(values.fraction)}
    return found | {"run_to_run": prior.spread(v)}


def fits(profiled: Profiled, windows: Sequence[Window], seed: int = 1, draws: int = 1000) -> list[Posterior]:
    """Posteriors of recoveries seen at once (None) or through windows (s) of a metric, likeliest first."""
    found, both = [], (profiled.only(profiled.ended), profiled.only(~profiled.ended))
    for window in windows:
        prior = Prior.of(profiled, window)
        law, most = partial(_log_likelihood, prior, *both), posterior.at_a_time(profiled.points, window)
        found.append(Posterior(prior, *posterior.sample(law, DIMENSIONS, draws, seed, most)))
    return sorted(found, key=lambda one: -one.evidence)


def _log_likelihood(prior: Prior, ended: Profiled, open_: Profiled, v: Floats) -> Floats:
    """Of all runs together, those that ended and those that were left, for each draw."""
    spread, jitter = prior.spread(v)[:, None], prior.jitter(v)[:, None]
    values = prior.values(v[:, None], ended.capacity)
    found = posterior.log_density(values, spread, jitter, ended.points, prior.window)
    return np.asarray(found.sum(1) + _log_of_open(prior, open_, v[:, None], spread).sum(1))


def _log_of_open(prior: Prior, runs: Profiled, v: Floats, spread: Floats) -> Floats:
    """Of runs that were not recovered from when they were left: their capacity was too little for that."""
    values, points = prior.values(v, runs.capacity), runs.points
    left = points.recovery - values.outage
    if prior.window is not None:  # what ends before this is seen by then
        left = prior.window * (np.floor(left / prior.window) - 1)
    backlog = points.rate * (values.fraction * points.interval + values.outage)
    needed = points.rate + backlog / np.maximum(left, 1e-6)
    late = ndtr((np.log(needed) - np.log(values.capacity)) / spread)
    return np.asarray(np.log((1 - _OUTLIERS) * late + _OUTLIERS / 2))


# What is asked of a fit, and how far off it is.


@dataclass(frozen=True)
class Found:
    """What was found for one workload.

    asked      runs with a rate, and neither saturated nor with a recovery: to be predicted
    unseen     estimate and both ends at 90 % (s) of each recovery, by a fit that has not seen its settings
    fluid      the same by the plain fluid law with the profiled capacity
    """

    runs: Runs
    profiled: Profiled
    posterior: Posterior
    law: Law
    asked: Runs
    unseen: Floats
    fluid: Floats

    @property
    def held_out(self) -> HeldOut:
        """Of recoveries that did end."""
        those = self.profiled.ended & ~np.isnan(self.unseen[0])
        middle, low, high = self.unseen[:, those]
        return HeldOut(self.profiled.points.without(~those), middle, low, high, self.fluid[those])


def _failed(runs: Runs) -> Mask:
    """Which runs have a recovery; one of a saturated run says nothing."""
    if "recovery_s" not in runs:
        return np.zeros(len(runs), bool)
    return np.asarray((runs["recovery_s"] > 0) & ~runs["saturated"])


def _ended(runs: Runs) -> int:
    return int((runs[_failed(runs)]["censored"] != 1).sum()) if _failed(runs).any() else 0


def warned(measured: Measured) -> Iterator[str]:
    """Which workloads have recoveries, but too few of them."""
    for name, runs in measured.workloads.items():
        if _failed(runs).sum() > 0 and (n := _ended(runs)) < FEWEST:
            yield (
                f"{name}: recoveries that ended, of runs not saturated: {n}; with {FEWEST} of them, "
                "how fast it catches up is fitted, too"
            )


def fit(measured: Measured, seed: int = 1, report: Report = lambda what, done, of: None) -> dict[str, Found]:
    """The workloads whose runs have enough recoveries; equal seeds give equal draws."""
    mine = {name: runs for name, runs in measured.workloads.items() if _ended(runs) >= FEWEST}
    found = {}
    for done, (name, runs) in enumerate(mine.items()):
        report(f"fitting {name}", done, len(mine))
        law, failed = capacities.fit(runs[runs["saturated"]]), runs[_failed(runs)]
        profiled = Profiled.of(name, failed, law)
        asked = runs[(runs["recovery_s"] == 0) & ~runs["saturated"] & (runs["checkpoint_interval_s"] > 0)]
        best, *others = fits(profiled, WINDOWS, seed)
        likely = [best, *(one for one in others if one.evidence > best.evidence - posterior.UNLIKELY)]
        windows = [one.prior.window for one in likely]
        unseen, fluid = _left_out(name, runs, failed, windows, seed)
        found[name] = Found(failed, profiled, best, law, asked, unseen, fluid)
    return found


def _left_out(
    name: str, runs: Runs, failed: Runs, windows: Sequence[Window], seed: int
) -> tuple[Floats, Floats]:
    """Predictions of each recovery by a fit that has not seen its settings: neither their recoveries nor
    what they carry when saturated. NaN where too little is left to fit.
    """
    place = runs.groupby(list(SETTINGS)).ngroup().to_numpy()
    third = np.random.default_rng(seed).permutation(int(place.max()) + 1)[place] % THIRDS
    unseen, fluid = np.full((3, len(failed)), np.nan), np.full(len(failed), np.nan)
    for part in range(THIRDS):
        saturated, here = runs[runs["saturated"] & (third != part)], third[_failed(runs)] == part
        if len(saturated) <= _VALUES:
            continue
        every = Profiled.of(name, failed, capacities.fit(saturated))
        seen, others = every.only(~here), every.only(here)
        if here.any() and seen.ended.sum() >= FEWEST // 2:
            unseen[:, here] = predicted(fits(seen, windows, seed)[0], others)
            fluid[here] = _fluid(seen, others)
    return unseen, fluid


def _fluid(seen: Profiled, others: Profiled) -> Floats:
    """The plain fluid law with the profiled capacity, D + r (f T + D) / (C - r): outage D and fraction f of
    the interval T are fitted to what was seen, by robust least squares of the logarithms.
    """
    ended = seen.only(seen.ended & (seen.points.rate < seen.capacity))

    def law(x: Floats, of: Profiled) -> Floats:
        values = Values(float(x[0]), of.capacity, float(x[1]), 0.0)
        return recovery_time.recovery(values, of.points.interval, of.points.rate, None)

    def residuals(x: Floats) -> Floats:
        return np.log(law(x, ended) / ended.points.recovery)

    if not len(ended.points):
        return np.full(len(others.points), np.nan)
    bounds = ([0.01, 0.0], [LONGEST_S, 1.0])
    best = least_squares(residuals, [20.0, 0.7], bounds=bounds, loss="soft_l1", f_scale=0.1)
    return law(best.x, others)


def as_profile(name: str, found: Found, measured: Measured, seed: int) -> dict[str, Any]:
    """A profile as plain data, for the scenario ``flink-recovery``: of the job that is asked for, if all
    that is asked has the same settings, else of that with most recoveries.
    """
    mine = found.asked if found.asked.groupby(list(SETTINGS)).ngroups == 1 else found.runs
    job = mine.loc[[mine.groupby(list(SETTINGS))["rate_per_s"].transform("size").idxmax()]]
    profiled = float(found.law.capacity(job)[0])
    likely = of_job(found.posterior, profiled)
    runs = likely.runs
    order = np.lexsort((np.asarray(runs.outage), np.asarray(runs.capacity)))  # evenly over all there is
    n = min(len(order), profiles.DRAWS)
    draws = np.asarray(runs[:3], np.float64).T[order[(2 * np.arange(n) + 1) * len(order) // (2 * n)]]
    values = np.asarray(likely.values[:3], np.float64)
    middle, low, high = (_keys(*np.quantile(values, q, axis=1).tolist()) for q in (0.5, 0.05, 0.95))
    low[SERVICE], high[SERVICE] = high[SERVICE], low[SERVICE]  # of more capacity it is less
    known = {row["parameter"]: row["identified"] for row in _parameters(found)}
    known = {OUTAGE: known["outage"], SERVICE: known["catch_up_ratio"], FRACTION: known["fraction"]}
    fixed = dict.fromkeys((profiles.RESTART, profiles.UPLOAD, profiles.SNAPSHOT), "0 s")
    if found.posterior.prior.window is not None:
        fixed["run.lag_window"] = format_duration(round(found.posterior.prior.window * S))
    judged = [row for row in _errors(found) if row["model"] == "mechanism"]
    provenance = {
        "source": measured.file,
        "sha256": measured.sha256,
        "measurements": len(found.runs),
        "method": "catch-up capacity beside the profiled one, by sequential Monte Carlo",
        "profiled_capacity": f"{profiled:,.0f}/s",
        "version": f"tideover {__version__}",
        "seed": seed,
    }
    return profile.data(
        name,
        provenance,
        dict(sorted((middle | fixed).items())),
        {key: (low[key], high[key], known[key]) for key in middle},
        (middle, (_keys(*draw).values() for draw in draws.tolist())),
        ranges=profiles.ranges(found.profiled.points.rate, found.profiled.points.interval),
        conditions={column: float(f"{job[column].iloc[0]:.6g}") for column in SETTINGS},
        scatter={"catch_up_s": 0.0},
        errors={
            row["kind"]: {"n": row["n"]} | {name: round(row[name], 4) for name in ("mean_error", "coverage")}
            for row in judged
        },
    )


def _keys(outage: float, capacity: float, fraction: float) -> dict[str, Any]:
    """Values by a profile's key, as texts."""
    return profiles.as_text({OUTAGE: outage, SERVICE: 1 / capacity, FRACTION: fraction})


def added(frames: Mapping[str, pd.DataFrame], found: Mapping[str, Found]) -> dict[str, pd.DataFrame]:
    """The tables of a fit to capacities with those of the recoveries, whose columns
    ``tideover.reports.columns`` documents: ``catch_up``, every recovery and what a fit says that has not
    seen its settings, and what was asked; more rows of ``fit_parameters`` and ``errors``.
    """
    tables: dict[str, Any] = {"catch_up": _rows, "fit_parameters": _parameters, "errors": _errors}
    new = {
        table: pd.DataFrame([{"workload": name, **row} for name, one in found.items() for row in rows(one)])
        for table, rows in tables.items()
        if found
    }
    order = {name: i for i, name in enumerate(dict.fromkeys(frames["errors"]["workload"]))}
    return {
        table: pd.concat([part[table] for part in (frames, new) if table in part]).sort_values(
            "workload", key=lambda names: names.map(order), kind="stable", ignore_index=True
        )
        for table in dict.fromkeys((*frames, *new))
    }


def _rows(found: Found) -> list[dict[Any, Any]]:
    asked = Profiled.of("", found.asked, found.law)
    told_s = np.concatenate((found.unseen, predicted(found.posterior, asked)), axis=1)
    open_ = len(found.asked)
    told = {
        "profiled_per_s": np.append(found.profiled.capacity, asked.capacity),
        "measured_s": np.append(found.profiled.points.recovery, np.full(open_, np.nan)),
        "ended": np.append(found.profiled.ended, np.zeros(open_, bool)),
        **dict(zip(("predicted_s", "low_s", "high_s"), told_s, strict=True)),
        "fluid_s": np.append(found.fluid, _fluid(found.profiled, asked)),
    }
    rows = pd.concat([found.runs, found.asked])[[*SETTINGS, "checkpoint_interval_s", "rate_per_s"]]
    return rows.assign(**told).replace([np.inf, -np.inf], np.nan).to_dict("records")


def _parameters(found: Found) -> Iterator[dict[str, Any]]:
    """Each with its interval at 90 %; identified is what the data make half as wide as it was before, at
    least, and the limit from sizes only of which the greatest is twice the least.
    """
    sizes = found.profiled.capacity
    wide = np.random.default_rng(1).standard_normal((4000, DIMENSIONS))
    prior = found.posterior.prior
    window = prior.window or 0.0
    draws = parameters(prior, found.posterior.v) | {"lag_window": np.full(2, window)}
    before = parameters(prior, wide)
    for name, (unit, meaning) in MEANING.items():
        value, *ends = np.quantile(draws[name], [0.5, 0.05, 0.95]).tolist()
        known = name == "lag_window"
        if not known:
            both = np.array([ends, np.quantile(before[name], [0.05, 0.95])])
            now, at_first = np.diff(both if name == "fraction" else np.log(both), axis=1)[:, 0]
            known = bool(now < profiles.NARROWER * at_first)
            known &= name != "catch_up_limit" or bool(sizes.max() >= 2 * sizes.min())
        row = {"parameter": name, "value": value, "low": ends[0], "high": ends[1]}
        yield row | {"unit": unit, "identified": known, "meaning": meaning}


def _errors(found: Found) -> Iterator[dict[str, Any]]:
    """Of recoveries that did end, by fits that had not seen their settings, if there could be any."""
    held_out = found.held_out
    if not len(held_out.points):
        return
    for model, errors in zip(("mechanism", "fluid"), held_out.errors, strict=True):
        known = errors[~np.isnan(errors)]
        row = {"model": model, "kind": "leave_third_out", "n": len(known)}
        row |= {"mean_error": float(known.mean()), "median_error": float(np.median(known))}
        row["worst_error"] = float(known.max())
        if model == "mechanism":
            width = held_out.width
            row |= {"coverage": held_out.coverage, "mean_width": width if np.isfinite(width) else np.nan}
        yield row | {"better": held_out.better == model}
