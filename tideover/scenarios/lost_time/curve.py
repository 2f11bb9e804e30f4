"""Time that is lost at each value of a setting, and at which value it is least."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tideover.models.config import Scenario
from tideover.models.schema.endings import remark
from tideover.scenarios.statistics.estimates import BOOTSTRAP_SEED, LEVEL, Estimate, estimate
from tideover.sim.units import DAY, S

Floats = npt.NDArray[np.float64]
Report = Callable[[str, int, int], None]
"""Called with what is being done, how many runs are done, and of how many."""

_LEAST_REPLICATIONS = 10
"""So many runs at each value, if the scenario does not ask for more."""
FLAT = 1.05
"""Values at which so many times the least is lost are as good."""
_NEAR = 4.5
"""The curve is fitted up to so many times, and down to such a part of, the best value that was tried."""
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Part:
    """Time that is lost to one sort of event.

    rate_per_s   how many come in a second
    seconds      how long one is felt, in each replication (see `strikes.spread`); None: it was until the end
                 of the run
    ended        how each recovery ended (`tideover.models.schema.endings`)
    """

    name: str
    rate_per_s: float
    seconds: tuple[float | None, ...]
    ended: tuple[str, ...] = ()

    @property
    def felt(self) -> Floats:
        """Its mean in pairs of replications, whose moments mirror each other; NaN where it is not known."""
        known = np.array([math.nan if s is None else s for s in self.seconds])
        return np.asarray(known.reshape(-1, 2).mean(axis=1))

    @property
    def lost(self) -> Floats:
        """Part of the time, by pair; NaN where it is not known."""
        return self.rate_per_s * self.felt if self.rate_per_s else np.zeros(len(self.seconds) // 2)

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        return {
            "per_day": self.rate_per_s * DAY / S,
            "felt_s": estimate(self.felt, resample=False).record(),
            "ended": remark(self.ended),
        }


@dataclass(frozen=True)
class Point:
    """What is lost at one value (ns) of a setting: to events, and always (a part of the time)."""

    value: int
    parts: tuple[Part, ...]
    always: float = 0.0

    @property
    def lost(self) -> Floats:
        """Part of the time, by pair; NaN where it is not known."""
        return np.asarray(self.always + np.sum([part.lost for part in self.parts], axis=0))

    @property
    def estimate(self) -> Estimate:
        """The mean; None where a pair does not know it: the mean of the others would be too low."""
        found = estimate(self.lost, resample=False)
        return Estimate(found.n, found.undefined, None, None, None, None) if found.undefined else found

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        parts = {part.name: part.to_dict() for part in self.parts}
        return {"value_s": self.value / S, "lost": self.estimate.record(), "events": parts}


PointT = TypeVar("PointT", bound=Point)


def even(replications: int | None, scenario: Scenario) -> int:
    """How many replications, if so many are asked for (None: as the scenario has it, at least 10)."""
    asked = replications or max(scenario.run.replications, _LEAST_REPLICATIONS)
    return max(4, asked + asked % 2)


def as_good(points: Sequence[PointT]) -> list[PointT]:
    """The point at which the least is lost, and those that cannot be told from it: 0 is in the 95 % interval
    of the paired difference. In the order in which they are given.
    """
    best = best_of(points)
    return [
        point
        for point in known(points)
        if point is best or (best and (t := estimate(point.lost - best.lost, resample=False).t) and t[0] <= 0)
    ]


def best_of(points: Sequence[PointT]) -> PointT | None:
    """The point at which the least is lost; None: none is known."""
    return min(known(points), key=lambda point: float(point.lost.mean()), default=None)


def known(points: Sequence[PointT]) -> list[PointT]:
    """Those of which it is known in all replications what is lost."""
    return [point for point in points if np.isfinite(point.lost).all()]


@dataclass(frozen=True)
class Least:
    """Where the least time is lost, by a curve a + b / value + c value through the points around it.

    seconds, low, high          the value, with its 95 % interval; values are in it that cannot be told from
                                the best that was tried
    lost, lost_low, lost_high   part of the time that is lost there
    flat                        from where to where at most `FLAT` times as much is, as far as it was tried
    edge                        the least (``shortest``) or greatest (``longest``) value that was tried is the
                                best; None: the best is between two
    """

    seconds: float
    low: float
    high: float
    lost: float
    lost_low: float
    lost_high: float
    flat: tuple[float, float]
    edge: str | None

    def at(self, seconds: float, points: Sequence[Point]) -> float:
        """What is lost at a value, by the points that were tried: straight lines between them, over the
        logarithm of the value.
        """
        every = known(points)
        values = [math.log(point.value / S) for point in every]
        return float(np.interp(math.log(seconds), values, [point.lost.mean() for point in every]))


def least(points: Sequence[Point]) -> Least | None:
    """Where the least is lost; None if fewer than three values are known.

    Young's curve, b / T + c T, has this form; others are near it around their optimum. The intervals are
    percentiles of resampled pairs of replications (with a fixed seed), all values with the same ones, as they
    have their luck in common.
    """
    every = sorted(known(points), key=lambda point: point.value)
    best = best_of(every)
    if best is None or len(every) < 3:
        return None
    near = [point for point in every if best.value / _NEAR <= point.value <= best.value * _NEAR]
    near = near if len(near) >= 3 else every
    curve = _Curve(np.array([point.value / S for point in near]), np.array([point.lost for point in near]))
    (value,), (lost,) = curve.fitted(curve.lost.mean(axis=1, keepdims=True))
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = rng.integers(0, curve.lost.shape[1], (_RESAMPLES, curve.lost.shape[1]))
    resampled = curve.fitted(curve.lost[:, drawn].mean(axis=2))
    (low, high), (lost_low, lost_high) = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1).T
    alike = [point.value / S for point in as_good(every)]
    if len(alike) > 1:
        low, high = min(low, alike[0]), max(high, alike[-1])
    edge = "shortest" if value <= every[0].value / S else "longest" if value >= every[-1].value / S else None
    return Least(
        float(value),
        float(min(low, value)),
        float(max(high, value)),
        float(lost),
        float(max(0.0, min(lost_low, lost))),
        float(max(lost_high, lost)),
        curve.flat(FLAT * float(lost)),
        edge,
    )


class _Curve:
    """a + b / x + c x through what is lost at some values ``x`` (s): one row a value, one column a
    pair of replications. Values weigh less the more is lost at them.
    """

    def __init__(self, x: Floats, lost: Floats) -> None:
        self.x, self.lost = x, lost
        weights = 1 / np.maximum(lost.mean(axis=1), 1e-300)
        self._fit = np.linalg.pinv(self._form(x) * weights[:, None]) * weights

    def _form(self, x: Floats) -> Floats:
        scaled = x / self.x[0]
        return np.stack([np.ones_like(x), 1 / scaled, scaled], axis=1)

    def fitted(self, lost: Floats) -> tuple[Floats, Floats]:
        """For each column of ``lost`` the best value within those of the curve, and what is lost there."""
        a, b, c = self._fit @ lost
        ends = self._form(self.x[[0, -1]]) @ np.stack([a, b, c])
        at_end = self.x[[0, -1]][np.argmin(ends, axis=0)]
        valley = (b > 0) & (c > 0)
        inner = self.x[0] * np.sqrt(np.where(valley, b, 1.0) / np.where(valley, c, 1.0))
        best = np.where(valley, np.clip(inner, self.x[0], self.x[-1]), at_end)
        return best, np.sum(self._form(best).T * np.stack([a, b, c]), axis=0)

    def flat(self, most: float) -> tuple[float, float]:
        """From where to where no more than ``most`` is lost."""
        x = np.geomspace(self.x[0], self.x[-1], 1_000)
        inside = x[self._form(x) @ self._fit @ self.lost.mean(axis=1) <= most]
        return float(inside[0]), float(inside[-1])
