"""Which values fit the measurements: draws from their posterior, by sequential Monte Carlo.

A recovery is ``outage + shown(catch_up)``. From run to run the capacity varies (lognormal, ``spread``), which
matters most near saturation, and so does the outage (Student's t with three degrees of freedom, ``jitter``).
Where heartbeats are known, a loss is noticed evenly between the timeout and an interval earlier, and what
varies so is the restart after that: no run ends before its failure is noticed. The outage has to vary:
windows begin with the restart, so a recovery that is seen through them can be off their grid in no other way;
and a longer outage leaves a longer backlog. One point in twenty may be anything (within a factor of about
two). The lag window makes the likelihood a staircase, which an optimiser cannot climb; draws can. P. Del
Moral, A. Doucet and A. Jasra, *Sequential Monte Carlo samplers*, JRSS B 68(3), 2006; moves by C. ter Braak,
*A Markov chain Monte Carlo version of the genetic algorithm Differential Evolution*, Statistics and Computing
16, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from tideover.calibrate.recoveries.measurements import Points, Setting
from tideover.calibrate.recoveries.recovery_time import Quantity, Values, catch_up, recovery
from tideover.calibrate.types import Floats
from tideover.scenarios.prediction import least_relative

OUTLIERS = 0.05
_WILD = 0.5
"""Standard deviation of the logarithm of a point that may be anything."""
_MOVES = 6
_INSTANT_S = 1e-6
_MOST_NUMBERS = 50_000
"""In an array: 400 kB, which a processor's cache holds, and which need not come from the system each time."""
_NORMAL = ndtri((np.arange(15) + 0.5) / 15)
SHORTEST_S, LONGEST_S = 0.5, 300.0
"""Range of detection and restart that is thought possible, and more if the shortest recovery says so."""
LEAST_CAPACITY, MOST_CAPACITY = 1.02, 8.0
"""Range of the capacity, in highest measured rates: at that rate a recovery did end."""


@dataclass(frozen=True)
class Prior:
    """From standard normal coordinates, one row a draw, to values; wide, and scaled by the data's range.

    ``window``: the metric's, s; None: the end of the backlog was seen at once. ``shortest`` and ``longest``:
    range of the outage, s; of the restart alone where heartbeats tell the detection.
    """

    window: float | None
    top_rate: float
    interval: float
    recovery: float
    shortest: float = SHORTEST_S
    longest: float = LONGEST_S

    @classmethod
    def of(cls, points: Points, window: float | None) -> Prior:
        """For these points: their highest rate, their shortest interval, their median recovery, and the
        shortest one: it holds the outage.
        """
        least = float(points.recovery.min())
        return cls(
            window,
            float(points.rate.max()),
            float(points.interval.min()),
            float(np.median(points.recovery)),
            min(SHORTEST_S, least / 10),
            max(LONGEST_S, 1.5 * least),
        )

    def values(self, v: Floats) -> Values:
        """What the closed form needs.

        Failures strike anywhere in the interval, or, just as likely, always at its end: a test of the worst
        case kills just before the next snapshot counts.
        """
        u = ndtr(v)
        return Values(
            outage=self.shortest * (self.longest / self.shortest) ** u[..., 0],
            capacity=self.top_rate * LEAST_CAPACITY * (MOST_CAPACITY / LEAST_CAPACITY) ** u[..., 1],
            fraction=np.minimum(2 * u[..., 2], 1),
            snapshot=-0.01 * self.interval * np.log1p(-np.minimum(u[..., 3], 1 - 1e-12)),
        )

    def spread(self, v: Floats) -> Floats:
        """Standard deviation of the logarithm of a run's capacity: about 3 %, by a factor of two."""
        return 0.03 * np.exp(0.7 * v[..., 4])

    def jitter(self, v: Floats) -> Floats:
        """Scale of what a run's outage is off by, s: about 2 % of the median, by a factor of three."""
        return 0.02 * self.recovery * np.exp(v[..., 5])


DIMENSIONS = 6


@dataclass(frozen=True)
class Posterior:
    """Draws in normal coordinates, and how likely the data are as a whole (log evidence).

    ``scatter``: standard deviation of the logarithm by which a run differs from what any draw says of it.
    """

    prior: Prior
    v: Floats
    evidence: float
    scatter: float = 0.0

    @cached_property
    def values(self) -> Values:
        """The draws as values of the closed form."""
        return self.prior.values(self.v)

    @cached_property
    def runs(self) -> Values:
        """The same, each draw with the outage and the capacity of one run."""
        rng, n = np.random.default_rng(2), len(self.v)
        values = self.values
        off = self.prior.jitter(self.v) * rng.standard_t(3, n)
        return values._replace(
            outage=_lasts(np.asarray(values.outage), off),
            capacity=values.capacity * np.exp(self.prior.spread(self.v) * rng.standard_normal(n)),
        )

    def typical(self, place: Setting) -> Floats:
        """Recovery by each draw if nothing differs from run to run, s."""
        values = self.values._replace(outage=self.values.outage + place.detected)
        return recovery(values, place.interval, place.rate, self.prior.window)

    def predictions(self, place: Setting) -> Floats:
        """Recovery in a run by each draw, scattered, s; infinite where it never ends. Scatter or not, none is
        over before its failure is noticed.
        """
        detected = place.timeout - place.beat * self._even(4)
        runs = self.runs._replace(outage=self.runs.outage + detected)
        found = recovery(runs, place.interval, place.rate, self.prior.window) * self._scattered
        return np.maximum(found, detected)

    def _even(self, seed: int) -> Floats:
        """From 0 to 1, evenly spread over the draws in an order of its own."""
        n = len(self.v)
        return np.asarray((np.random.default_rng(seed).permutation(n) + 0.5) / n)

    @cached_property
    def _scattered(self) -> Floats:
        """A factor for each draw."""
        return np.asarray(np.exp(self.scatter * ndtri(self._even(3))))

    def estimate(self, place: Setting) -> float:
        """The prediction with the least expected relative error, s; infinite if most draws never end."""
        return least_relative(self.predictions(place))

    def estimates(self, points: Points) -> Floats:
        """The estimate for each point, s."""
        return np.array([self.estimate(place) for place in points.settings])

    def interval(self, place: Setting) -> tuple[float, float]:
        """Both ends of the interval of prediction at 90 %, s; infinite if it has no end."""
        low, high = np.quantile(self.predictions(place), [0.05, 0.95], method="inverted_cdf")
        return float(low), float(high)


def fit(
    points: Points, window: float | None, *, scatter: float = 0.0, draws: int = 3000, seed: int = 1
) -> Posterior:
    """Draws from the posterior, equally likely each; the same seed gives the same draws."""
    rng = np.random.default_rng(seed)
    prior = Prior.of(points, window)
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
    return Posterior(prior, v, evidence, scatter)


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
    """Of all points together, for each draw; so many draws at a time that they fit into memory."""
    cases = len(_NORMAL) if prior.window is None else max(1, int(points.recovery.max() / prior.window))
    size = max(1, _MOST_NUMBERS // (cases * len(points)))
    return np.concatenate([_log_likelihoods(prior, points, v[i : i + size]) for i in range(0, len(v), size)])


def _log_likelihoods(prior: Prior, points: Points, v: Floats) -> Floats:
    values = prior.values(v[:, None])
    values = values._replace(outage=values.outage + np.mean(points.detection, axis=0))
    middle = values.outage + catch_up(values, points.interval, points.rate)
    values = prior.values(v[:, None, None])
    spread, jitter = prior.spread(v)[:, None, None], prior.jitter(v)[:, None, None]
    if prior.window is None:
        share, outage = _at_once(values, points, spread)
    else:
        share, outage = _through_windows(values, points, spread, prior.window)
        middle += 1.5 * prior.window
    usual = (share * _density(outage, np.asarray(values.outage), jitter, points)).sum(2)
    wild = np.exp(-0.5 * (np.log(points.recovery / middle) / _WILD) ** 2) / (_WILD * np.sqrt(2 * np.pi))
    mixed = (1 - OUTLIERS) * usual + OUTLIERS * wild / points.recovery
    return np.asarray(np.log(mixed + 1e-300).sum(1))


def _at_once(values: Values, points: Points, spread: Floats) -> tuple[Floats, Floats]:
    """Outages by which runs of several capacities end when they did, and the density of each run there.

    What the capacity leaves idle of the whole time works off what came in the rest of it, and before.
    """
    interval, rate, seen = points.interval[:, None], points.rate[:, None], points.recovery[:, None]
    idle = np.maximum(1 - rate / (_left(values, interval) * np.exp(spread * _NORMAL)), 0)
    return idle / len(_NORMAL), idle * seen - (1 - idle) * values.fraction * interval


def _through_windows(values: Values, points: Points, spread: Floats, window: float) -> tuple[Floats, Floats]:
    """Outages by which runs end when they did, window by window, and the share of runs that end there.

    A run ends within window number i if its capacity is enough for the backlog by then, and was not before.
    """
    steps = np.arange(max(int(points.recovery.max() / window) - 1, 1), dtype=np.float64)
    outage = points.recovery[:, None] - window * (steps + 2)
    point, step = np.nonzero(outage > 0)  # no other counts: most of the time goes into what follows
    number, rate = steps[step], points.rate[point]
    backlog = rate * (values.fraction * points.interval[point] + outage[point, step])
    left = np.log(_left(values, points.interval))[..., point]

    def enough(end: Floats) -> Floats:
        return np.asarray(ndtr((left - np.log(rate + backlog / end)) / spread))

    before = np.where(number > 0, enough(window * np.maximum(number, 1)), 0)
    share = np.zeros((len(spread), *outage.shape))
    share[:, point, step] = (enough(window * (number + 1)) - before)[:, 0]
    return share, np.broadcast_to(outage, share.shape)


def _left(values: Values, interval: Floats) -> Quantity:
    """What capacity the snapshots leave, 1/s."""
    return np.maximum(values.capacity * (1 - np.minimum(values.snapshot / interval, 1)), 1e-9)


def _lasts(usual: Floats, off: Floats) -> Floats:
    """How long a run's outage (or restart) lasts, s, off by so much. Below half of what is usual it only
    comes nearer to nothing the more it is off: such runs are few, but were they over at once each would weigh
    more in an estimate than all others.
    """
    half = usual / 2
    return np.where(off < -half, half**2 / np.maximum(-off, half), usual + off)


def _off(lasts: Floats, usual: Floats) -> Floats:
    """By how much it is off then; the inverse of ``_lasts``."""
    half = usual / 2
    return np.where(lasts < half, -(half**2) / lasts, lasts - usual)


def _density(outage: Floats, usual: Floats, jitter: Floats, points: Points) -> Floats:
    """Of runs whose outage is this, 1/s: Student's t, as ``_lasts`` has it, after a detection evenly between
    two times.
    """
    early, late = (ends[:, None] for ends in points.detection)
    if (early < late).any():
        share = _ended(outage - early, usual, jitter) - _ended(outage - late, usual, jitter)
        return np.asarray(share / (late - early))
    lasts = np.maximum(outage, _INSTANT_S)
    steep = np.maximum(usual / 2 / lasts, 1) ** 2 / jitter
    off = _off(lasts, usual) / jitter
    return np.where(outage > _INSTANT_S, 6 * np.sqrt(3) / np.pi / (3 + off * off) ** 2 * steep, 0)


def _ended(time: Floats, usual: Floats, jitter: Floats) -> Floats:
    """Share of the runs whose restart is over by then: Student's t with three degrees of freedom."""
    off = _off(np.maximum(time, _INSTANT_S), usual) / jitter / np.sqrt(3)
    return np.where(time > _INSTANT_S, 0.5 + (off / (1 + off * off) + np.arctan(off)) / np.pi, 0)
