"""Fits of all workloads of a file: what is shared is chosen together, and each point is left out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tideover.calibrate.recoveries import fluid
from tideover.calibrate.recoveries.law import LAG_WINDOW_S, Values, recovery
from tideover.calibrate.recoveries.measurements import Floats, Measurements, Points
from tideover.calibrate.recoveries.posterior import Posterior, Setting, fit

SETTINGS = tuple(Setting(window, late) for window in (None, LAG_WINDOW_S) for late in (1.0, 4.0))
"""Was the end of the backlog seen at once, or through Kafka's metric; did failures strike anywhere in the
interval, or rather at its end.
"""

_NORMAL_95 = 1.6449
"""95 % of a standard normal distribution lie below it."""
_UNLIKELY = 8.0
"""A setting with so much less log evidence in the whole file is not tried again when points are left out."""

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

Mask = npt.NDArray[np.bool_]


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


@dataclass(frozen=True)
class Fitted:
    """What was found for one workload.

    held_out     by kind (``leave_one_out``, ``leave_interval_out``, ``leave_top_rate_out``)
    window_gain  by how much the chosen reading of the instrument has more log evidence than the other, in
                 the whole file
    """

    points: Points
    posterior: Posterior
    fluid: Values
    held_out: dict[str, HeldOut]
    window_gain: float

    def predict(self, interval: float, rate: float) -> float:
        """Median over the draws, s."""
        return float(np.median(self.posterior.predictions(interval, rate)))

    @cached_property
    def point(self) -> int:
        """The draw that comes nearest to the medians of all draws: values that go together.

        Over intervals and rates around the measured ones, and a little above the highest rate.
        """
        intervals = np.geomspace(self.points.interval.min() / 3, self.points.interval.max() * 4 / 3, 6)
        rates = np.linspace(self.points.rate.min(), 1.2 * self.points.rate.max(), 9)
        off = np.zeros(len(self.posterior.v))
        for interval in intervals:
            for rate in rates:
                found = recovery(self.posterior.values, interval, rate, self.posterior.prior.setting.window)
                logs = np.log(np.minimum(found, 1e9))
                off += np.abs(logs - np.median(logs))
        return int(np.argmin(off))

    @cached_property
    def scatter(self) -> float:
        """Relative scatter of what is measured around what is the case in a run.

        The standard deviation of the normal distribution that has the same middle 90 % of logarithms.
        """
        rng = np.random.default_rng(1)
        logs = []
        for interval, rate in zip(self.points.interval, self.points.rate, strict=True):
            clean = self.posterior.predictions(interval, rate)
            ends = np.isfinite(clean)
            logs.append(np.log(self.posterior.noisy(interval, rate, rng)[ends] / clean[ends]))
        low, high = np.quantile(np.concatenate(logs), [0.05, 0.95])
        return float(high - low) / (2 * _NORMAL_95)


def fit_all(measured: Measurements, seed: int = 1, report: Report | None = None) -> dict[str, Fitted]:
    """A fit for each workload; what is shared (``Setting``) is what the whole file speaks for most."""
    work = [(name, kind, mask) for name, p in measured.workloads.items() for kind, mask in _folds(p)]
    total = len(work) + len(measured.workloads)
    whole: dict[str, dict[Setting, Posterior]] = {}
    for done, (name, points) in enumerate(measured.workloads.items()):
        if report is not None:
            report(f"fitting {name}", done, total)
        whole[name] = {setting: fit(points, setting, seed=seed) for setting in SETTINGS}
    setting, gain = _chosen(whole), _window_gain(whole)
    most = _evidence(whole, setting)
    likely = [s for s in SETTINGS if _evidence(whole, s) > most - _UNLIKELY]
    parts: dict[str, dict[str, list[tuple[Mask, Floats]]]] = {name: {} for name in whole}
    for done, (name, kind, mask) in enumerate(work, len(whole)):
        if report is not None:
            report(f"leaving points of {name} out", done, total)
        points = measured.workloads[name]
        seen, unseen = points.without(mask), points.without(~mask)
        fits = {s: fit(seen, s, draws=1500, seed=seed + 1 + done) for s in likely}
        best = fits[_chosen(whole | {name: fits})]
        plain = fluid.predict(fluid.fit(seen), unseen.interval, unseen.rate)
        told = np.vstack([_told(best, unseen), plain])
        parts[name].setdefault(kind, []).append((mask, told))
    return {
        name: Fitted(
            points,
            whole[name][setting],
            fluid.fit(points),
            {kind: _joined(points, found) for kind, found in parts[name].items()},
            gain,
        )
        for name, points in measured.workloads.items()
    }


def _chosen(fits: dict[str, dict[Setting, Posterior]]) -> Setting:
    """The setting under which all workloads together are likeliest, of those that all were fitted with."""
    known = [setting for setting in SETTINGS if all(setting in found for found in fits.values())]
    return max(known, key=lambda setting: _evidence(fits, setting))


def _evidence(fits: dict[str, dict[Setting, Posterior]], setting: Setting) -> float:
    return sum(found[setting].evidence for found in fits.values())


def _window_gain(fits: dict[str, dict[Setting, Posterior]]) -> float:
    """How much better the chosen reading of the instrument is than the other (difference of log evidence)."""
    best: dict[float | None, float] = {}
    for setting in SETTINGS:
        best[setting.window] = max(_evidence(fits, setting), best.get(setting.window, -np.inf))
    return float(max(best.values()) - min(best.values()))


def _folds(points: Points) -> Iterator[tuple[str, Mask]]:
    """Which points are left out together: each, each interval, and the highest rates of every interval."""
    for i in range(len(points)):
        yield "leave_one_out", np.arange(len(points)) == i
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


def _told(posterior: Posterior, points: Points) -> Floats:
    """Median, low and high end at 90 % for each point, s."""
    rng = np.random.default_rng(1)
    found = []
    for interval, rate in zip(points.interval, points.rate, strict=True):
        low, high = posterior.interval(interval, rate, rng)
        found.append((np.median(posterior.predictions(interval, rate)), low, high))
    return np.array(found).T


def _joined(points: Points, found: list[tuple[Mask, Floats]]) -> HeldOut:
    """Predictions of several folds, in the order of the points."""
    places = np.concatenate([np.flatnonzero(mask) for mask, _ in found])
    told = np.concatenate([part for _, part in found], axis=1)[:, np.argsort(places, kind="stable")]
    chosen = np.isin(np.arange(len(points)), places)
    return HeldOut(points.without(~chosen), *told)
