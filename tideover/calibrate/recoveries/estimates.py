"""Fits of all workloads of a file: what is shared is chosen together, and each point is left out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tideover.calibrate.recoveries.measurements import Measurements, Points, Setting
from tideover.calibrate.recoveries.posterior import Posterior, fit
from tideover.calibrate.recoveries.recovery_time import LAG_WINDOW_S, Values, fit_fluid, fluid
from tideover.calibrate.recoveries.restarts import Restart, fit_restarts
from tideover.calibrate.recoveries.scatter import alike, run_to_run
from tideover.calibrate.types import Floats, Mask
from tideover.scenarios.prediction import least_relative

WINDOWS = (None, LAG_WINDOW_S)
"""How the end of the backlog was seen: at once, or through windows of Kafka's metric (s)."""
_UNLIKELY = 8.0
"""A window with so much less log evidence in the whole file is not tried again when points are left out."""

_USUAL_INTERVAL_S = 60.0
_WORST = 10.0

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

_Fits = dict[float | None, Posterior]
"""Of one workload, by window."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions for points that their fits have not seen, s.

    By the mechanism, with both ends of its interval at 90 %, and by the plain fluid law.
    """

    points: Points
    mechanism: Floats
    low: Floats
    high: Floats
    fluid: Floats

    @property
    def coverage(self) -> float:
        """Share of the points that lie in their intervals."""
        return float(np.mean((self.low <= self.points.recovery) & (self.points.recovery <= self.high)))

    @property
    def width(self) -> float:
        """Mean width of the intervals, in estimates; NaN if one has no end."""
        with np.errstate(invalid="ignore"):
            return float(np.mean((self.high - self.low) / self.mechanism))

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """|predicted / measured - 1| of the mechanism and of the plain fluid law, point by point; at most
        ``_WORST``, which what is predicted never to end has.
        """
        mine, plain = (
            np.minimum(np.abs(predicted / self.points.recovery - 1), _WORST)
            for predicted in (self.mechanism, self.fluid)
        )
        return mine, plain

    @property
    def better(self) -> str:
        """The model that errs less, ``mechanism`` or ``fluid``, by more than the standard error of the
        difference; else ``""``.
        """
        mine, plain = self.errors
        gain = plain - mine
        if len(gain) < 2 or not abs(gain.mean()) > gain.std(ddof=1) / np.sqrt(len(gain)):
            return ""
        return "mechanism" if gain.mean() > 0 else "fluid"


@dataclass(frozen=True)
class Fitted:
    """What was found for one workload.

    fluid        values of the plain fluid law
    held_out     by kind (``leave_one_out``, ``leave_setting_out`` if some are repetitions,
                 ``leave_interval_out``, ``leave_top_rate_out``; ``outage_end``: each point left out, and its
                 recovery is the end of its outage)
    window_gain  by how much the chosen window has more log evidence than the other, in the whole file
    restart      of the job, once a failure is noticed; None: ends of outages were not measured
    """

    points: Points
    posterior: Posterior
    fluid: Values
    held_out: dict[str, HeldOut]
    window_gain: float
    restart: Restart | None = None

    @property
    def judged(self) -> HeldOut | None:
        """The predictions by which mechanism and plain fluid law are compared: of settings left out."""
        return self.held_out.get("leave_setting_out", self.held_out.get("leave_one_out"))

    def usual(self, interval: float, rate: float) -> Setting:
        """With the heartbeats that most points have."""
        return Setting(interval, rate, *self.points.heartbeats)

    @cached_property
    def intervals(self) -> dict[str, Floats]:
        """Low and high end of each value at 90 %, by its name."""
        values = self.posterior.values._asdict()
        return {name: np.quantile(np.asarray(draws), [0.05, 0.95]) for name, draws in values.items()}

    @cached_property
    def point(self) -> int:
        """The draw that comes nearest to the estimates: values that go together, each in its interval.

        Over intervals and rates around the measured ones, up to the interval that ``flink-recovery`` has by
        itself, and a little above the highest rate.
        """
        longest = max(self.points.interval.max() * 4 / 3, _USUAL_INTERVAL_S)
        intervals = np.geomspace(self.points.interval.min() / 3, longest, 8)
        rates = np.linspace(self.points.rate.min(), 1.2 * self.points.rate.max(), 9)
        off = np.zeros(len(self.posterior.v))
        for interval in intervals:
            for rate in rates:
                place = self.usual(float(interval), float(rate))
                found = self.posterior.typical(place)
                wanted = min(self.posterior.estimate(place), 1e9)
                off += np.abs(np.log(np.minimum(found, 1e9) / wanted))
        for name, (low, high) in self.intervals.items():
            value = np.asarray(getattr(self.posterior.values, name))
            off[(value < low) | (value > high)] = np.inf
        return int(np.argmin(off))


def fit_all(measured: Measurements, seed: int, report: Report) -> dict[str, Fitted]:
    """A fit for each workload. The window is the one that the whole file speaks for most."""
    folds = [(name, kind, mask) for name, p in measured.workloads.items() for kind, mask in _folds(p)]
    total = len(folds) + len(measured.workloads)
    windows = (None,) if measured.latencies else WINDOWS
    whole: dict[str, _Fits] = {}
    scatter = run_to_run(measured.workloads.values())
    for done, (name, points) in enumerate(measured.workloads.items()):
        report(f"fitting {name}", done, total)
        whole[name] = {window: fit(points, window, scatter=scatter, seed=seed) for window in windows}
    evidence = {window: _evidence(whole.values(), window) for window in windows}
    most, least = max(evidence.values()), min(evidence.values())
    likely = [window for window in windows if evidence[window] > most - _UNLIKELY]
    left_out: dict[str, dict[str, list[tuple[Mask, Floats]]]] = {name: {} for name in whole}
    for done, (name, kind, mask) in enumerate(folds, len(whole)):
        report(f"leaving points of {name} out", done, total)
        points = measured.workloads[name]
        seen, unseen = points.without(mask), points.without(~mask)
        scatter = run_to_run((measured.workloads | {name: seen}).values())
        fits = {
            window: fit(seen, window, scatter=scatter, draws=1500, seed=seed + 1 + done) for window in likely
        }
        every = (whole | {name: fits}).values()
        best = fits[max(likely, key=lambda window: _evidence(every, window))]
        plain = fluid(fit_fluid(seen), unseen)
        left_out[name].setdefault(kind, []).append((mask, np.vstack([_predicted(best, unseen), plain])))
    chosen = max(windows, key=lambda window: evidence[window])
    restarts = fit_restarts(measured.workloads)
    return {
        name: Fitted(
            points,
            whole[name][chosen],
            fit_fluid(points),
            {kind: _joined(points, found) for kind, found in left_out[name].items()}
            | _outages_left_out(measured, name),
            most - least,
            restarts.get(name),
        )
        for name, points in measured.workloads.items()
    }


def _evidence(fits: Iterable[_Fits], window: float | None) -> float:
    """Log evidence of all workloads together."""
    return sum(found[window].evidence for found in fits)


def _folds(points: Points) -> Iterator[tuple[str, Mask]]:
    """Which points are left out together: each, each with its repetitions, each interval, and the highest
    rates of every interval.
    """
    for i in range(len(points)):
        yield "leave_one_out", np.arange(len(points)) == i
    settings = alike(points)
    if len(settings) < len(points) and all(_enough(points, setting) for setting in settings):
        for setting in settings:
            yield "leave_setting_out", setting
    intervals = np.unique(points.interval)
    if len(intervals) > 1:
        for interval in intervals:
            if _enough(points, points.interval == interval):
                yield "leave_interval_out", points.interval == interval
    highest = {t: points.rate[points.interval == t].max() for t in intervals}
    top = np.array([r == highest[t] for t, r in zip(points.interval, points.rate, strict=True)])
    if _enough(points, top):
        yield "leave_top_rate_out", top


def _enough(points: Points, left_out: Mask) -> bool:
    """Whether what is seen still has three points, at two rates or more."""
    seen = points.without(left_out)
    return len(seen) >= 3 and len(np.unique(seen.rate)) > 1


def _predicted(posterior: Posterior, points: Points) -> Floats:
    """Estimate, low and high end at 90 % for each point, s."""
    ends = [posterior.interval(place) for place in points.settings]
    return np.vstack([posterior.estimates(points), np.transpose(ends)])


def _outages_left_out(measured: Measurements, name: str) -> dict[str, HeldOut]:
    """Ends of outages, each predicted by a fit that has not seen it; none if they were not measured."""
    points = measured.workloads[name]
    if points.outage is None:
        return {}
    predicted = []
    for i, place in enumerate(points.settings):
        seen = points.without(np.arange(len(points)) == i)
        outages = fit_restarts(measured.workloads | {name: seen})[name].outages(place)
        predicted.append((least_relative(outages), *np.quantile(outages, [0.05, 0.95]), np.nan))
    ends = replace(points, recovery=points.outage)
    return {"outage_end": HeldOut(ends, *np.transpose(predicted))}


def _joined(points: Points, folds: list[tuple[Mask, Floats]]) -> HeldOut:
    """Predictions of several folds, in the order of the points."""
    places = np.concatenate([np.flatnonzero(mask) for mask, _ in folds])
    order = np.argsort(places, kind="stable")
    predicted = np.concatenate([of_fold for _, of_fold in folds], axis=1)[:, order]
    chosen = np.isin(np.arange(len(points)), places)
    return HeldOut(points.without(~chosen), *predicted)
