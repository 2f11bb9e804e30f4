"""Fits of all workloads of a file: what is shared is chosen together, and each point is left out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tideover.calibrate.recoveries import fluid
from tideover.calibrate.recoveries.law import LAG_WINDOW_S, Values, recovery
from tideover.calibrate.recoveries.measurements import Floats, Measurements, Points
from tideover.calibrate.recoveries.posterior import Posterior, fit

WINDOWS = (None, LAG_WINDOW_S)
"""Was the end of the backlog seen at once, or through Kafka's metric."""
_UNLIKELY = 8.0
"""A reading with so much less log evidence in the whole file is not tried again when points are left out."""

_USUAL_INTERVAL_S = 60.0

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

Mask = npt.NDArray[np.bool_]
_Fits = dict[str, dict[float | None, Posterior]]
"""By workload and window."""


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

    @cached_property
    def intervals(self) -> dict[str, Floats]:
        """Low and high end of each value at 90 %, by its name."""
        values = self.posterior.values._asdict()
        return {name: np.quantile(np.asarray(part), [0.05, 0.95]) for name, part in values.items()}

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
                found = recovery(self.posterior.values, interval, rate, self.posterior.prior.window)
                wanted = min(self.posterior.estimate(interval, rate), 1e9)
                off += np.abs(np.log(np.minimum(found, 1e9) / wanted))
        for name, (low, high) in self.intervals.items():
            value = np.asarray(getattr(self.posterior.values, name))
            off[(value < low) | (value > high)] = np.inf
        return int(np.argmin(off))


def fit_all(measured: Measurements, seed: int = 1, report: Report | None = None) -> dict[str, Fitted]:
    """A fit for each workload; how the end was seen is what the whole file speaks for most."""
    work = [(name, kind, mask) for name, p in measured.workloads.items() for kind, mask in _folds(p)]
    total = len(work) + len(measured.workloads)
    whole: _Fits = {}
    for done, (name, points) in enumerate(measured.workloads.items()):
        if report is not None:
            report(f"fitting {name}", done, total)
        whole[name] = {window: fit(points, window, seed=seed) for window in WINDOWS}
    evidence = {window: _evidence(whole, window) for window in WINDOWS}
    most, least = max(evidence.values()), min(evidence.values())
    likely = [window for window in WINDOWS if evidence[window] > most - _UNLIKELY]
    parts: dict[str, dict[str, list[tuple[Mask, Floats]]]] = {name: {} for name in whole}
    for done, (name, kind, mask) in enumerate(work, len(whole)):
        if report is not None:
            report(f"leaving points of {name} out", done, total)
        points = measured.workloads[name]
        seen, unseen = points.without(mask), points.without(~mask)
        fits = {window: fit(seen, window, draws=1500, seed=seed + 1 + done) for window in likely}
        best = fits[_chosen(whole | {name: fits}, likely)]
        plain = fluid.predict(fluid.fit(seen), unseen.interval, unseen.rate)
        told = np.vstack([_told(best, unseen), plain])
        parts[name].setdefault(kind, []).append((mask, told))
    return {
        name: Fitted(
            points,
            whole[name][_chosen(whole, likely)],
            fluid.fit(points),
            {kind: _joined(points, found) for kind, found in parts[name].items()},
            most - least,
        )
        for name, points in measured.workloads.items()
    }


def _chosen(fits: _Fits, windows: Sequence[float | None]) -> float | None:
    """The window under which all workloads together are likeliest."""
    return max(windows, key=lambda window: _evidence(fits, window))


def _evidence(fits: _Fits, window: float | None) -> float:
    return sum(found[window].evidence for found in fits.values())


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
    """Estimate, low and high end at 90 % for each point, s."""
    places = list(zip(points.interval, points.rate, strict=True))
    return np.array([(posterior.estimate(*place), *posterior.interval(*place)) for place in places]).T


def _joined(points: Points, found: list[tuple[Mask, Floats]]) -> HeldOut:
    """Predictions of several folds, in the order of the points."""
    places = np.concatenate([np.flatnonzero(mask) for mask, _ in found])
    told = np.concatenate([part for _, part in found], axis=1)[:, np.argsort(places, kind="stable")]
    chosen = np.isin(np.arange(len(points)), places)
    return HeldOut(points.without(~chosen), *told)
