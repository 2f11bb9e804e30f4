"""Which values fit the measurements: draws from their posterior, workload by workload.

`tideover.calibrate.recoveries.fit` calls ``fit_all``. Equal seeds give equal draws: the order in which a
generator is asked is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from tideover.calibrate.episodes import Floats, Mask
from tideover.calibrate.recoveries import recovery_time
from tideover.calibrate.recoveries.measurements import Measurements, Points, Setting
from tideover.calibrate.recoveries.recovery_time import Values, Window, fluid, recovery
from tideover.scenarios.prediction import least_relative

# A few points cannot tell: six values are fitted to eight of them, so what is left over looks smaller than
# it is. Repetitions can, and need no law. So a law's draws are given the scatter of repetitions on top: of
# the file's own if it has enough, else of those that were published.

PUBLISHED = 0.115
"""Standard deviation of the logarithm: twelve recoveries of a Flink job (CARS) in four groups of three, at
rates that differ by 1 % at most, have 0.102. With 8 degrees of freedom that is known roughly: an interval at
90 % is 1.13 times as wide as if it were known (Student's t), and so is this. M. Geldenhuys et al., *Demeter*,
2024, arXiv 2403.02129, repository dos-group/demeter."""
FEWEST = 6
"""Degrees of freedom below which the file's own repetitions are not taken: with so many, 90 % of
the estimates are within 0.52 and 1.45 times the truth."""
_SAME = 0.02
"""Rates that differ by less are the same."""


def run_to_run(workloads: Iterable[Points]) -> float:
    """Standard deviation of the logarithm of recoveries under the same conditions, all workloads together."""
    squares, freedom = 0.0, 0
    for points in workloads:
        for setting in alike(points):
            logs = np.log(points.recovery[setting])
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(logs) - 1
    return float(np.sqrt(squares / freedom)) if freedom >= FEWEST else PUBLISHED


def alike(points: Points) -> list[Mask]:
    """Settings: points alike in interval, heartbeats and parallelism, at rates that are nearly the same."""
    tasks = np.ones(len(points)) if points.tasks is None else points.tasks
    others = np.stack((points.interval, *points.detection, tasks), axis=1)
    found: list[Mask] = []
    for other in np.unique(others, axis=0):
        here = np.flatnonzero((others == other).all(1))
        first = 0.0
        for i in here[np.argsort(points.rate[here], kind="stable")]:
            if points.rate[i] > (1 + _SAME) * first:
                first = float(points.rate[i])
                found.append(np.zeros(len(points), bool))
            found[-1][i] = True
    return found


# Draws from the posterior by sequential Monte Carlo. A recovery is ``outage + shown(catch_up)``. From run to
# run the capacity varies (lognormal, ``spread``), which matters most near saturation, and so does the outage
# (Student's t with three degrees of freedom, ``jitter``). Where heartbeats are known, a loss is noticed
# evenly between the timeout and an interval earlier, and what varies so is the restart after that: no run
# ends before its failure is noticed. The outage has to vary: windows begin with the restart, so a recovery
# that is seen through them can be off their grid in no other way; and a longer outage leaves a longer
# backlog. One point in twenty may be anything (within a factor of about two). The lag window makes the
# likelihood a staircase, which an optimiser cannot climb; draws can. P. Del Moral, A. Doucet and A. Jasra,
# *Sequential Monte Carlo samplers*, JRSS B 68(3), 2006; moves by C. ter Braak, *A Markov chain Monte Carlo
# version of the genetic algorithm Differential Evolution*, Statistics and Computing 16, 2006.

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

    window: Window
    top_rate: float
    interval: float
    recovery: float
    shortest: float = SHORTEST_S
    longest: float = LONGEST_S

    @classmethod
    def of(cls, points: Points, window: Window) -> Prior:
        """For these points; the shortest recovery holds the outage."""
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

    ``prior``: a `Prior`, or that of `catch_up`. ``scatter``: standard deviation of the logarithm by which a
    run differs from what any draw says of it.
    """

    prior: Any
    v: Floats
    evidence: float
    scatter: float = 0.0

    @cached_property
    def values(self) -> Values:
        values: Values = self.prior.values(self.v)
        return values

    @cached_property
    def runs(self) -> Values:
        """The same, each draw with the outage and the capacity of one run."""
        return of_one_run(self.values, self.prior.spread(self.v), self.prior.jitter(self.v))

    def predictions(self, place: Setting) -> Floats:
        """Recovery in a run by each draw, scattered, s; infinite where it never ends. None ends unnoticed."""
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
        return np.asarray(np.exp(self.scatter * ndtri(self._even(3))))

    def estimate(self, place: Setting) -> float:
        """The prediction with the least expected relative error, s; infinite if most draws never end."""
        return least_relative(self.predictions(place))

    def estimates(self, points: Points) -> Floats:
        return np.array([self.estimate(place) for place in points.settings])

    def interval(self, place: Setting) -> tuple[float, float]:
        """Both ends of the interval of prediction at 90 %, s; infinite if it has no end."""
        low, high = np.quantile(self.predictions(place), [0.05, 0.95], method="inverted_cdf")
        return float(low), float(high)


def of_one_run(values: Values, spread: Floats, jitter: Floats) -> Values:
    """Draws, each with the outage and the capacity of one run."""
    rng, n = np.random.default_rng(2), len(spread)
    typical = np.asarray(values.outage)
    off = jitter * rng.standard_t(3, n)
    # Below half of the typical one an outage only comes nearer to nothing the more it is off: such runs
    # are few, but were they over at once each would weigh more in an estimate than all others.
    half = typical / 2
    outage = np.where(off < -half, half**2 / np.maximum(-off, half), typical + off)
    capacity = values.capacity * np.exp(spread * rng.standard_normal(n))
    return values._replace(outage=outage, capacity=capacity)


def fit(
    points: Points, window: Window, *, scatter: float = 0.0, draws: int = 3000, seed: int = 1
) -> Posterior:
    """Draws from the posterior, equally likely each; the same seed gives the same draws."""
    prior = Prior.of(points, window)
    most = at_a_time(points, window)
    v, evidence = sample(lambda v: _log_likelihood(prior, points, v), DIMENSIONS, draws, seed, most)
    return Posterior(prior, v, evidence, scatter)


Likelihood = Callable[[Floats], Floats]
"""Its logarithm for each draw: a row of standard normal coordinates."""


def sample(law: Likelihood, dimensions: int, draws: int, seed: int, most: int) -> tuple[Floats, float]:
    """Equally likely draws whose prior is standard normal, ``most`` at a time, and the log evidence."""

    def log_likelihood(v: Floats) -> Floats:
        return np.concatenate([law(v[i : i + most]) for i in range(0, len(v), most)])

    rng = np.random.default_rng(seed)
    v = rng.standard_normal((draws, dimensions))
    likelihood = log_likelihood(v)
    power, evidence = 0.0, 0.0

    def enough(step: float) -> bool:
        """Whether half of the draws still count at this power of the likelihood."""
        weights = np.exp((step - power) * (likelihood - likelihood.max()))
        return bool(weights.sum() ** 2 >= len(weights) / 2 * (weights**2).sum())

    while power < 1:
        low, step = power, 1.0
        for _ in range(0 if enough(1.0) else 30):
            middle = (low + step) / 2
            low, step = (middle, step) if enough(middle) else (low, middle)
        top = likelihood.max()
        weights = np.exp((step - power) * (likelihood - top))
        evidence += float(np.log(weights.mean()) + (step - power) * top)
        power = step
        places = (np.arange(draws) + rng.random()) / draws
        chosen = np.minimum(np.searchsorted(np.cumsum(weights) / weights.sum(), places), draws - 1)
        v, likelihood = v[chosen], likelihood[chosen]
        for _ in range(_MOVES):
            _move(log_likelihood, v, likelihood, power, rng)
    return v, evidence


def _move(law: Likelihood, v: Floats, likelihood: Floats, power: float, rng: np.random.Generator) -> None:
    """Metropolis moves along differences of other draws, in place."""
    n = len(v)
    first, second = rng.permutation(n), rng.permutation(n)
    stride = rng.choice([0.2, 0.5, 0.7], n)[:, None]
    moved = v + stride * (v[first] - v[second]) + 0.02 * rng.standard_normal(v.shape)
    new = law(moved)
    gain = power * (new - likelihood) - ((moved**2).sum(1) - (v**2).sum(1)) / 2
    better = np.log(rng.random(n)) < gain
    v[better], likelihood[better] = moved[better], new[better]


def at_a_time(points: Points, window: Window) -> int:
    """So many draws that the arrays of their densities fit into memory."""
    cases = len(_NORMAL) if window is None else max(1, int(points.recovery.max() / window))
    return max(1, _MOST_NUMBERS // (cases * len(points)))


def _log_likelihood(prior: Prior, points: Points, v: Floats) -> Floats:
    """Of all points together, for each draw."""
    parts = prior.values(v[:, None]), prior.spread(v)[:, None], prior.jitter(v)[:, None]
    return np.asarray(log_density(*parts, points, prior.window).sum(1))


def log_density(values: Values, spread: Floats, jitter: Floats, points: Points, window: Window) -> Floats:
    """Of each point under each draw, a row a draw; so are the values, of all points or of each."""
    typical = values._replace(outage=values.outage + np.mean(points.detection, axis=0))
    middle = typical.outage + recovery_time.catch_up(typical, points.interval, points.rate)
    if window is None:
        share, outage = _at_once(values, points, spread)
    else:
        share, outage = _through_windows(values, points, spread, window)
        middle += 1.5 * window
    lasts, off = (np.asarray(each)[..., None] for each in (values.outage, jitter))
    likely = (share * _density(outage, lasts, off, points)).sum(2)
    wild = np.exp(-0.5 * (np.log(points.recovery / middle) / _WILD) ** 2) / (_WILD * np.sqrt(2 * np.pi))
    mixed = (1 - OUTLIERS) * likely + OUTLIERS * wild / points.recovery
    return np.asarray(np.log(mixed + 1e-300))


def _at_once(values: Values, points: Points, spread: Floats) -> tuple[Floats, Floats]:
    """Outages by which runs of several capacities end when they did, and the density of each run there.

    What the capacity leaves idle of the whole time works off what came in the rest of it, and before.
    """
    left = _left(values, points.interval)[..., None] * np.exp(spread[..., None] * _NORMAL)
    idle = np.maximum(1 - points.rate[:, None] / left, 0)
    since = np.asarray(values.fraction * points.interval)[..., None]
    return idle / len(_NORMAL), idle * points.recovery[:, None] - (1 - idle) * since


def _through_windows(values: Values, points: Points, spread: Floats, window: float) -> tuple[Floats, Floats]:
    """Outages by which runs end when they did, window by window, and the share of runs that end there.

    A run ends within window number i if its capacity is enough for the backlog by then, and was not before.
    """
    steps = np.arange(max(int(points.recovery.max() / window) - 1, 1), dtype=np.float64)
    outage = points.recovery[:, None] - window * (steps + 2)
    point, step = np.nonzero(outage > 0)  # no other counts: most of the time goes into what follows
    number, rate = steps[step], points.rate[point]
    backlog = rate * (values.fraction * points.interval[point] + outage[point, step])
    left = np.log(_left(values, points.interval))[:, point]

    def enough(end: Floats) -> Floats:
        return np.asarray(ndtr((left - np.log(rate + backlog / end)) / spread))

    before = np.where(number > 0, enough(window * np.maximum(number, 1)), 0)
    share = np.zeros((len(spread), *outage.shape))
    share[:, point, step] = enough(window * (number + 1)) - before
    return share, np.broadcast_to(outage, share.shape)


def _left(values: Values, interval: Floats) -> Floats:
    return np.maximum(values.capacity * (1 - np.minimum(values.snapshot / interval, 1)), 1e-9)


def _off(lasts: Floats, typical: Floats) -> Floats:
    """By how much an outage (or restart) that lasts so long is off, s; the inverse of what ``runs`` does."""
    half = typical / 2
    return np.where(lasts < half, -(half**2) / lasts, lasts - typical)


def _density(outage: Floats, typical: Floats, jitter: Floats, points: Points) -> Floats:
    """Of runs whose outage is this, 1/s: Student's t, after a detection evenly between two times."""
    early, late = (ends[:, None] for ends in points.detection)
    if (early < late).any():
        share = _ended(outage - early, typical, jitter) - _ended(outage - late, typical, jitter)
        return np.asarray(share / (late - early))
    lasts = np.maximum(outage, _INSTANT_S)
    steep = np.maximum(typical / 2 / lasts, 1) ** 2 / jitter
    off = _off(lasts, typical) / jitter
    return np.where(outage > _INSTANT_S, 6 * np.sqrt(3) / np.pi / (3 + off * off) ** 2 * steep, 0)


def _ended(time: Floats, typical: Floats, jitter: Floats) -> Floats:
    """Share of the runs whose restart is over by then: Student's t with three degrees of freedom."""
    off = _off(np.maximum(time, _INSTANT_S), typical) / jitter / np.sqrt(3)
    return np.where(time > _INSTANT_S, 0.5 + (off / (1 + off * off) + np.arctan(off)) / np.pi, 0)


WINDOWS = (None, recovery_time.LAG_WINDOW_S)
"""How the end of the backlog was seen: at once, or through windows of Kafka's metric (s)."""
UNLIKELY = 8.0
"""A window with so much less log evidence in the whole file is not tried again when points are left out."""

_USUAL_INTERVAL_S = 60.0
_WORST = 10.0

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

_Fits = dict[Window, Posterior]
"""Of one workload, by window."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions for points that fits have not seen, s, with both ends at 90 %; and the fluid law's."""

    points: Points
    mechanism: Floats
    low: Floats
    high: Floats
    fluid: Floats

    @property
    def coverage(self) -> float:
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
        """The model that errs less by more than the standard error of the difference; else ``""``."""
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
    restart: recovery_time.Restart | None = None

    @property
    def judged(self) -> HeldOut | None:
        """The predictions by which mechanism and plain fluid law are compared: of settings left out."""
        return self.held_out.get("leave_setting_out", self.held_out.get("leave_one_out"))

    def typical(self, interval: float, rate: float) -> Setting:
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
        off, values = np.zeros(len(self.posterior.v)), self.posterior.values
        for interval in intervals:
            for rate in rates:
                place = self.typical(float(interval), float(rate))
                # By each draw if nothing differed from run to run.
                mine = values._replace(outage=values.outage + place.detected)
                found = recovery(mine, place.interval, place.rate, self.posterior.prior.window)
                wanted = min(self.posterior.estimate(place), 1e9)
                off += np.abs(np.log(np.minimum(found, 1e9) / wanted))
        for name, (low, high) in self.intervals.items():
            value = np.asarray(getattr(values, name))
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

    def evidence_of(fits: Iterable[_Fits], window: Window) -> float:
        return sum(found[window].evidence for found in fits)

    evidence = {window: evidence_of(whole.values(), window) for window in windows}
    most, least = max(evidence.values()), min(evidence.values())
    likely = [window for window in windows if evidence[window] > most - UNLIKELY]
    left_out: dict[str, dict[str, list[tuple[Mask, Floats]]]] = {name: {} for name in whole}
    for done, (name, kind, mask) in enumerate(folds, len(whole)):
        report(f"leaving points of {name} out", done, total)
        points = measured.workloads[name]
        seen, unseen = points.without(mask), points.without(~mask)
        scatter = run_to_run((measured.workloads | {name: seen}).values())
        fits = {w: fit(seen, w, scatter=scatter, draws=1500, seed=seed + 1 + done) for w in likely}
        every = (whole | {name: fits}).values()
        best = fits[max(likely, key=lambda window: evidence_of(every, window))]
        plain = fluid(recovery_time.fit_fluid(seen), unseen)
        ends = np.transpose([best.interval(place) for place in unseen.settings])
        predicted = np.vstack([best.estimates(unseen), ends, plain])
        left_out[name].setdefault(kind, []).append((mask, predicted))
    chosen = max(windows, key=lambda window: evidence[window])
    restarts = recovery_time.fit_restarts(measured.workloads)
    return {
        name: Fitted(
            points,
            whole[name][chosen],
            recovery_time.fit_fluid(points),
            {kind: _joined(points, found) for kind, found in left_out[name].items()}
            | _outages_left_out(measured, name),
            most - least,
            restarts.get(name),
        )
        for name, points in measured.workloads.items()
    }


def _folds(points: Points) -> Iterator[tuple[str, Mask]]:
    """Which points are left out together: each, its repetitions, each interval, the highest rates."""
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
    seen = points.without(left_out)
    return len(seen) >= 3 and len(np.unique(seen.rate)) > 1


def _outages_left_out(measured: Measurements, name: str) -> dict[str, HeldOut]:
    """Ends of outages, each predicted by a fit that has not seen it; none if they were not measured."""
    points = measured.workloads[name]
    if points.outage is None:
        return {}
    predicted = []
    for i, place in enumerate(points.settings):
        seen = points.without(np.arange(len(points)) == i)
        outages = recovery_time.fit_restarts(measured.workloads | {name: seen})[name].outages(place)
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
