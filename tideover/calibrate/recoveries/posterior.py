"""Which values fit the measurements: draws from their posterior, by sequential Monte Carlo.

A recovery is ``outage + shown(catch_up)``. The capacity varies from run to run (lognormal, ``spread``), which
matters most near saturation; what is measured is off by a few seconds (Student's t with three degrees of
freedom, ``jitter``), and one point in twenty may be anything (within a factor of about two). The lag window
makes the likelihood a staircase, which an optimiser cannot climb; draws can. P. Del Moral, A. Doucet and A.
Jasra, *Sequential Monte Carlo samplers*, JRSS B 68(3), 2006; moves by C. ter Braak, *A Markov chain Monte
Carlo version of the genetic algorithm Differential Evolution*, Statistics and Computing 16, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from tideover.calibrate.recoveries.law import Values, catch_up, recovery
from tideover.calibrate.recoveries.measurements import Floats, Points

OUTLIERS = 0.05
_WILD = 0.5
"""Standard deviation of the logarithm of a point that may be anything."""
_MOVES = 6
_NORMAL = ndtri((np.arange(15) + 0.5) / 15)
SHORTEST_S, LONGEST_S = 0.5, 300.0
"""Range of detection and restart that is thought possible."""
LEAST_CAPACITY, MOST_CAPACITY = 1.02, 8.0
"""Range of the capacity, in highest measured rates: at that rate a recovery did end."""


@dataclass(frozen=True)
class Setting:
    """What is assumed to be the same for all workloads of a file.

    window      the metric's window, s; None: the end of the backlog was seen at once
    lateness    failures struck at a fraction of the interval whose density goes with its power
                ``lateness`` - 1: anywhere for 1, rather at the end for more
    """

    window: float | None
    lateness: float


@dataclass(frozen=True)
class Prior:
    """From standard normal coordinates, one row a draw, to values; wide, and scaled by the data's range."""

    setting: Setting
    top_rate: float
    interval: float
    recovery: float

    @classmethod
    def of(cls, points: Points, setting: Setting) -> Prior:
        """For these points: their highest rate, their shortest interval, their median recovery."""
        return cls(
            setting,
            float(points.rate.max()),
            float(points.interval.min()),
            float(np.median(points.recovery)),
        )

    def values(self, v: Floats) -> Values:
        """What the law needs."""
        u = ndtr(v)
        return Values(
            outage=SHORTEST_S * (LONGEST_S / SHORTEST_S) ** u[..., 0],
            capacity=self.top_rate * LEAST_CAPACITY * (MOST_CAPACITY / LEAST_CAPACITY) ** u[..., 1],
            fraction=u[..., 2] ** (1 / self.setting.lateness),
            snapshot=-0.01 * self.interval * np.log1p(-np.minimum(u[..., 3], 1 - 1e-12)),
        )

    def spread(self, v: Floats) -> Floats:
        """Standard deviation of the logarithm of a run's capacity: about 3 %, by a factor of two."""
        return 0.03 * np.exp(0.7 * v[..., 4])

    def jitter(self, v: Floats) -> Floats:
        """Scale of what is added to a measurement, s: about 2 % of the median, by a factor of three."""
        return 0.02 * self.recovery * np.exp(v[..., 5])


DIMENSIONS = 6


@dataclass(frozen=True)
class Posterior:
    """Draws in normal coordinates, and how likely the data are as a whole (log evidence)."""

    prior: Prior
    v: Floats
    evidence: float

    @cached_property
    def values(self) -> Values:
        """The draws as values of the law."""
        return self.prior.values(self.v)

    @cached_property
    def runs(self) -> Values:
        """The same with the capacity of a run each."""
        z = np.random.default_rng(2).standard_normal(len(self.v))
        return self.values._replace(capacity=self.values.capacity * np.exp(self.prior.spread(self.v) * z))

    def predictions(self, interval: float, rate: float) -> Floats:
        """Recovery in a run by each draw, s; infinite where it never ends."""
        return recovery(self.runs, interval, rate, self.prior.setting.window)

    def noisy(self, interval: float, rate: float, rng: np.random.Generator) -> Floats:
        """The same as it would be measured, s: with jitter, and now and then anything."""
        clean = self.predictions(interval, rate)
        n = len(clean)
        usual = np.maximum(clean + self.prior.jitter(self.v) * rng.standard_t(3, n), 0.5 * self.values.outage)
        wild = clean * np.exp(_WILD * rng.standard_normal(n))
        return np.where(rng.random(n) < OUTLIERS, wild, usual)

    def interval(self, interval: float, rate: float, rng: np.random.Generator) -> tuple[float, float]:
        """Both ends of the interval of prediction at 90 %, s; infinite if it has no end."""
        ends = np.quantile(self.noisy(interval, rate, rng), [0.05, 0.95], method="inverted_cdf")
        return float(ends[0]), float(ends[1])


def fit(points: Points, setting: Setting, *, draws: int = 3000, seed: int = 1) -> Posterior:
    """Draws from the posterior, equally likely each; the same seed gives the same draws."""
    rng = np.random.default_rng(seed)
    prior = Prior.of(points, setting)
    v = rng.standard_normal((draws, DIMENSIONS))
    likelihood = _log_likelihood(prior, points, v)
    power, evidence = 0.0, 0.0
    while power < 1:
        step = _next_power(likelihood, power)
        top = likelihood.max()
        weights = np.exp((step - power) * (likelihood - top))
        evidence += float(np.log(weights.mean()) + (step - power) * top)
        power = step
        places = (np.arange(draws) + rng.random()) / draws
        chosen = np.minimum(np.searchsorted(np.cumsum(weights) / weights.sum(), places), draws - 1)
        v, likelihood = v[chosen], likelihood[chosen]
        for _ in range(_MOVES):
            _move(prior, points, v, likelihood, power, rng)
    return Posterior(prior, v, evidence)


def _next_power(likelihood: Floats, power: float) -> float:
    """The greatest power of the likelihood at which half of the draws still count."""

    def enough(step: float) -> bool:
        weights = np.exp((step - power) * (likelihood - likelihood.max()))
        return bool(weights.sum() ** 2 >= len(weights) / 2 * (weights**2).sum())

    if enough(1.0):
        return 1.0
    low, high = power, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return high


def _move(
    prior: Prior, points: Points, v: Floats, likelihood: Floats, power: float, rng: np.random.Generator
) -> None:
    """Metropolis moves along differences of other draws, in place."""
    n = len(v)
    first, second = rng.permutation(n), rng.permutation(n)
    stride = rng.choice([0.2, 0.5, 0.7], n)[:, None]
    moved = v + stride * (v[first] - v[second]) + 0.02 * rng.standard_normal(v.shape)
    new = _log_likelihood(prior, points, moved)
    gain = power * (new - likelihood) - ((moved**2).sum(1) - (v**2).sum(1)) / 2
    better = np.log(rng.random(n)) < gain
    v[better], likelihood[better] = moved[better], new[better]


def _log_likelihood(prior: Prior, points: Points, v: Floats) -> Floats:
    """Of all points together, for each draw."""
    values = prior.values(v[:, None, :])
    outage, after = values.outage, catch_up(values, points.interval, points.rate)
    spread, jitter = prior.spread(v)[:, None, None], prior.jitter(v)[:, None, None]
    window = prior.setting.window
    if window is None:
        share, seen = _at_once(values, points, spread)
    else:
        share, seen = _through_windows(values, points, spread, window)
    off = (points.recovery[:, None] - np.asarray(outage)[..., None] - seen) / jitter
    usual = (share * _student(off) / jitter).sum(2)
    middle = outage + after + (0 if window is None else 1.5 * window)
    wild = np.exp(-0.5 * (np.log(points.recovery / middle) / _WILD) ** 2) / (_WILD * np.sqrt(2 * np.pi))
    mixed = (1 - OUTLIERS) * usual + OUTLIERS * wild / points.recovery
    return np.asarray(np.log(mixed + 1e-300).sum(1))


def _at_once(values: Values, points: Points, spread: Floats) -> tuple[Floats, Floats]:
    """Catch-up in runs of several capacities, and the share of each of them."""
    runs = Values(*(np.asarray(part)[..., None] for part in values))
    runs = runs._replace(capacity=runs.capacity * np.exp(spread * _NORMAL))
    share = np.full(len(_NORMAL), 1 / len(_NORMAL))
    return share, catch_up(runs, points.interval[:, None], points.rate[:, None])


def _through_windows(values: Values, points: Points, spread: Floats, window: float) -> tuple[Floats, Floats]:
    """When the end is seen, window by window, and the share of runs that end there.

    A run ends within window number i if its capacity is enough for the backlog by then, and was not before.
    """
    steps = np.arange(int(points.recovery.max() / window) + 3)
    backlog = points.rate * (values.fraction * points.interval + values.outage)
    left = np.maximum(values.capacity * (1 - np.minimum(values.snapshot / points.interval, 1)), 1e-9)
    need = points.rate[:, None] + backlog[..., None] / (window * (steps + 1.0))
    share = np.diff(ndtr((np.log(left)[..., None] - np.log(need)) / spread), axis=2, prepend=0)
    return share, np.broadcast_to(window * (steps + 2.0), share.shape)


def _student(x: Floats) -> Floats:
    """Density of Student's t with three degrees of freedom."""
    return 6 * np.sqrt(3) / np.pi / (3 + x * x) ** 2
