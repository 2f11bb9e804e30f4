"""Failures in series: where they are, and straight lines through each.

While a job reads nothing its lag rises by the input rate; then it falls by what the job can do beyond that
rate. So a failure is a triangle, whose corners tell when it began, when it read again and when it had caught
up. A throughput is the same seen from the other side: the rate, less or nothing, then all that the job can
do, and the rate again. Each is fitted to the points between, by robust least squares; the corners lie between
scrapes, where the lines meet. Intervals come from the fit's covariance, with the distance of two points added
to that of each moment.

What rises and falls otherwise is none: a curved rise (a raised cosine fits it better) is a change of load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from tideover.calibrate.episodes import Floats, Mask
from tideover.calibrate.logs.series_files import THROUGHPUT, Series

Law = Callable[[Floats, Floats], Floats]
"""Values over time (s) by parameters."""

_SPAN_S = 7200.0
"""What is normal is told by points at most so far away (s), if there are enough of them."""
_NEAR = 20
_LOW = 0.3
"""Quantile of a lag that is normal: it is where nothing fails, and a failure may take most of the time."""
_SIGMAS = 6.0
_ABOVE = 0.5
"""A lag is not normal if it is half as high again as usual, and beyond the noise."""
_LITTLE = 0.02
"""Of the greatest failure in a series, what is lower than this part is noise."""
_DIP = 0.5
"""A throughput that falls below this part of what is usual is a dip."""
FEWEST = 3
"""Points that a failure must have."""
MOST_BUSY = 20
"""What was missed is made up for in so many times as long, or never."""
LEAST_POINTS = 5
"""Points within a triangle that tell where its corners are."""
CLEAR, CLEAR_OF_MANY = 10.0, 2.0
"""How many times as high as what counts as not normal a failure of few points must be, and one of many."""
MOST_FITTED = 400
MOST_STARTS = 2
"""The nearest of the starts of a fit are gone on from."""
MOST_PLACES = 100
"""The highest of all in a series are looked at."""
VAGUE = 0.6
"""A slope whose interval is wider than this part of it says nothing."""
DRAWS = 200


class Place(NamedTuple):
    """Where a series is not normal: the first and the last such point, by number."""

    first: int
    last: int


class Estimate(NamedTuple):
    """A value and its interval at 90 %."""

    value: float
    low: float
    high: float


NONE = Estimate(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Shape:
    """What straight lines say of one failure: moments in s since 1970, rates in units per s.

    rise       by how much the lag rises, or the rate that is missed
    fall       by how much it falls, or what is done beyond the rate
    rate       input rate; of a lag, the rise: if nothing is read
    again      rows that were processed twice, less those that never were; NaN from a lag
    open       the series ends before it has caught up
    """

    began: Estimate = NONE
    read: Estimate = NONE
    caught_up: Estimate = NONE
    rise: Estimate = NONE
    fall: Estimate = NONE
    rate: Estimate = NONE
    capacity: Estimate = NONE
    again: Estimate = NONE
    open: bool = False


def places(series: Series) -> list[Place]:
    """Where a series is not normal for at least ``FEWEST`` points (a throughput: at least two)."""
    if series.kind == THROUGHPUT:
        return _dips(series)
    usual = _usual(series, _LOW)
    over = series.value - usual
    sigma = _roughness(series.value)
    least = np.maximum(np.maximum(_SIGMAS * sigma, _ABOVE * np.abs(usual)), _LITTLE * float(over.max()))
    found = []
    for place in _runs(over > least, 2):
        height = float((over / least)[place.first : place.last + 1].max())
        points = place.last - place.first + 1
        if points >= FEWEST and height > (CLEAR if points < LEAST_POINTS else CLEAR_OF_MANY):
            found.append((height, place))
    highest = [place for _, place in sorted(found, reverse=True)[:MOST_PLACES]]
    return sorted(highest)


def _usual(series: Series, quantile: float) -> Floats:
    """What is usual around each point."""
    n = len(series.at)
    width = int(np.clip(_SPAN_S / max(series.step, 1e-9), _NEAR, max(_NEAR, n)))
    rolling = pd.Series(series.value).rolling(2 * width + 1, center=True, min_periods=1)
    return np.asarray(rolling.quantile(quantile), float)


def _noise(values: Floats) -> float:
    """Standard deviation of most values, whatever the others are (median absolute deviation)."""
    calm = values[values <= np.quantile(values, 0.75)]
    return 1.4826 * float(np.median(np.abs(calm - np.median(calm))))


def _roughness(values: Floats) -> float:
    """Standard deviation of what no line explains, by second differences: noise alone, but at corners."""
    return 1.4826 * float(np.median(np.abs(np.diff(values, 2)))) / 6**0.5


def _runs(mask: Mask, bridged: int) -> list[Place]:
    """Stretches in which a mask holds, over at most so many points in which it does not."""
    held = np.flatnonzero(mask)
    if not len(held):
        return []
    cuts = np.flatnonzero(np.diff(held) > bridged + 1)
    firsts = held[np.concatenate(([0], cuts + 1))]
    lasts = held[np.concatenate((cuts, [len(held) - 1]))]
    return [Place(int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)]


def _dips(series: Series) -> list[Place]:
    """Stretches with less than half of the usual throughput, until as much was done beyond it after them
    (equal areas), or until no more than usual is done.

    A job that puts out its results in batches has no output between them: as many points are taken together
    as it takes until one in ten of them is no less than half the usual.
    """
    together, smooth = 1, series.value
    while together < len(series.at) // 8:
        smooth = np.asarray(pd.Series(series.value).rolling(together, min_periods=1).mean(), float)
        if np.quantile(smooth, 0.1) >= _DIP * np.median(smooth) or together > 16:
            break
        together *= 2
    if together > 16:
        together, smooth = 1, series.value
    usual = _usual(replace(series, value=smooth), 0.5)
    gaps = np.diff(series.at, prepend=series.at[0] - series.step)
    found = []
    for first, last in _runs(smooth < _DIP * usual, 1):
        if last - first + 1 < 2:
            continue
        most = min(len(smooth) - last - 1, MOST_BUSY * (last - first + 1) + together)
        missing = np.cumsum((usual - smooth)[first : last + 1 + most] * gaps[first : last + 1 + most])
        made_up = np.flatnonzero(missing[last - first + 1 :] <= _LITTLE * missing[last - first])
        beyond = int(made_up[0]) if len(made_up) else _surge(smooth, usual, last, most)
        found.append(Place(max(0, first - together + 1), min(len(smooth) - 1, last + 1 + beyond)))
    return found


def _surge(smooth: Floats, usual: Floats, last: int, most: int) -> int:
    """For how many points after a dip more than usual is processed, of at most so many."""
    over = smooth[last + 1 : last + 1 + most] > usual[last + 1 : last + 1 + most] + 2 * _noise(smooth - usual)
    begin = int(np.argmax(over))  # in the first point after a dip it may still last
    ends = np.flatnonzero(~over[begin:])
    return begin + int(ends[0]) if len(ends) else most


# Straight lines


def triangle(x: Floats, at: Floats) -> Floats:
    """A lag over time: level, rise from ``began`` for ``silence``, fall to the level ``after``."""
    level, began, silence, rise, fall, after = x
    since = at - began
    top = level + rise * silence
    up = level + rise * np.clip(since, 0, silence)
    down = np.maximum(top - fall * np.maximum(since - silence, 0), min(after, top))
    return np.where(since <= silence, up, down)


def processed(x: Floats, at: Floats) -> Floats:
    """Processed since ``began``: little for ``silence``, ``capacity`` for ``busy``, else the rate."""
    rate, began, silence, left, capacity, busy = x
    since = at - began
    return np.asarray(
        rate * np.minimum(since, 0)
        + left * np.clip(since, 0, silence)
        + capacity * np.clip(since - silence, 0, busy)
        + rate * np.maximum(since - silence - busy, 0)
    )


def fitted(series: Series, place: Place, before: int, after: int) -> Shape | None:
    """Lines through a failure, of the points in [before, after); None: it is none, or too short to tell."""
    length = place.last - place.first + 1
    low = max(before, place.first - max(8, length))
    high = min(after, place.last + max(8, length) + 1)
    if place.first - low < 2:
        return None
    at, value = series.at[low:high], series.value[low:high]
    if series.kind == THROUGHPUT:
        return _fit_throughput(at, value, slice(place.first - low, place.last - low + 1), series.step)
    every = -(-len(at) // MOST_FITTED)
    return _fit_lag(at[::every], value[::every], place, low, every, series, high == len(series.at))


def _fit_lag(
    at: Floats, value: Floats, place: Place, low: int, every: int, series: Series, ends: bool
) -> Shape | None:
    peak = place.first + int(np.argmax(series.value[place.first : place.last + 1]))
    if peak - place.first < 1:
        return None
    open_ = ends and place.last >= len(series.at) - 2
    t0, span, height = at[0], at[-1] - at[0], float(value.max())
    level = float(np.median(value[: max(2, (place.first - low) // every)]))
    moments = [(series.at[i] - t0) / span for i in (place.first - 1, peak, place.last)]
    silence = max(moments[1] - moments[0], 1e-3)
    rise = (height - level) / height / silence
    fall = (height - level) / height / max(moments[2] - moments[1], 1e-3)
    begin = np.array([level / height, moments[0], silence, rise, fall, level / height])
    least, most = np.array([-1, 0, 1e-4, 0, 0, -1.0]), np.array([2, 1, 1, np.inf, np.inf, 2.0])
    if open_:  # nothing tells how far it will fall; a fit that is free to say ends in a false corner
        most[5] = begin[5] + 1e-3
    starts = [begin + np.array([0, shift * silence, 0, 0, 0, 0]) for shift in (0.0, -0.5, 0.5)]
    x, covariance, residuals = _solve(triangle, starts, (at - t0) / span, value / height, (least, most))
    if _bends(value / height, residuals):
        return None
    drawn = _draws(x, covariance, least, most)
    after = np.minimum(drawn[:, 5], drawn[:, 0] + drawn[:, 3] * drawn[:, 2])
    began, read = t0 + span * drawn[:, 1], t0 + span * (drawn[:, 1] + drawn[:, 2])
    down = span * (drawn[:, 0] + drawn[:, 3] * drawn[:, 2] - after) / np.maximum(drawn[:, 4], 1e-12)
    up, fall_ = drawn[:, 3] * height / span, drawn[:, 4] * height / span
    rises = int(((at > began[0]) & (at < read[0])).sum())
    falls = int(((at > read[0]) & (at < read[0] + down[0])).sum())
    if rises + falls < LEAST_POINTS or rises < 2:
        return _too_short(series, place, open_)
    slopes = [_estimate(up), _estimate(fall_) if falls > 1 else NONE]
    if any(one.high - one.low > VAGUE * one.value for one in slopes):
        return None
    return Shape(
        began=_moment(began, series.step),
        read=_moment(read, series.step) if falls > 1 else NONE,
        caught_up=NONE if open_ or falls < 2 else _moment(read[0] + down, series.step),
        rise=slopes[0],
        fall=slopes[1],
        rate=slopes[0],
        capacity=_estimate(up + fall_) if falls > 1 else NONE,
        open=open_,
    )


def _too_short(series: Series, place: Place, open_: bool) -> Shape:
    """Corners that lie between two points each; slopes are not told."""
    ends = [series.at[i - 1 : i + 1] for i in (place.first, min(place.last + 1, len(series.at) - 1))]
    began, ended = (Estimate(float(e.mean()), float(e[0]), float(e[-1])) for e in ends)
    return Shape(began=began, caught_up=NONE if open_ else ended, open=open_)


def _fit_throughput(at: Floats, value: Floats, inside: slice, step: float) -> Shape | None:
    """Points are means since the one before."""
    t0, span = at[0], at[-1] - at[0]
    rate = float(np.median(value[: max(2, inside.start)]))
    if rate <= 0:
        return None
    dip = np.flatnonzero(value[inside] < _DIP * rate) + inside.start
    if not len(dip):
        return None
    began, read = (at[max(0, dip[0] - 1)] - t0) / span, (at[dip[-1]] - t0) / span
    silence = max(read - began, 1e-3)
    starts = [  # with equal areas: what was missed is made up for in so many times as long
        np.array([1.0, began, silence, 0.05, 1 + 1 / times, min(times * silence, 0.9)])
        for times in (0.5, 1, 2, 4, 8)
    ]
    least, most = np.array([0.2, 0, 1e-4, 0, 0.5, 0.0]), np.array([5, 1, 1, 1, np.inf, 1.0])
    scaled = (at - t0) / span

    def means(x: Floats, times: Floats) -> Floats:
        return np.asarray(np.diff(processed(x, times)) / np.diff(times))

    x, covariance, residuals = _solve(means, starts, scaled, value[1:] / rate, (least, most))
    if x[3] > _DIP or residuals.std() > (1 - x[3]) / 2:
        return None
    drawn = _draws(x, covariance, least, most)
    missed = rate * (drawn[:, 0] - drawn[:, 3])
    more = rate * (drawn[:, 4] - drawn[:, 0])
    read_ = t0 + span * (drawn[:, 1] + drawn[:, 2])
    surges = bool(np.quantile(more, 0.05) > 0) and x[5] * span > step
    return Shape(
        began=_moment(t0 + span * drawn[:, 1], step),
        read=_moment(read_, step),
        caught_up=_moment(read_ + span * drawn[:, 5], step) if surges else NONE,
        rise=_estimate(missed),
        fall=_estimate(more) if surges else NONE,
        rate=_estimate(rate * drawn[:, 0]),
        capacity=_estimate(rate * drawn[:, 4]) if surges else NONE,
        again=_estimate(span * (more * drawn[:, 5] - missed * drawn[:, 2])) if surges else NONE,
    )


def _solve(
    law: Law, starts: list[Floats], at: Floats, value: Floats, bounds: tuple[Floats, Floats]
) -> tuple[Floats, Floats, Floats]:
    """The parameters, their covariance, and residuals. From several starts, as corners have local minima."""
    noise = max(_noise(np.abs(np.diff(value))) / 2, 1e-4)
    low, high = bounds

    def residuals(x: Floats) -> Floats:
        return np.asarray(law(x, at) - value)

    options: dict[str, Any] = {"bounds": bounds, "loss": "soft_l1", "f_scale": 3 * noise, "x_scale": "jac"}
    inside = [np.clip(start, low + 1e-9, high - 1e-9) for start in starts]
    nearest = sorted(inside, key=lambda x: float(np.abs(residuals(x)).sum()))[:MOST_STARTS]
    best = min((least_squares(residuals, x, **options) for x in nearest), key=lambda found: float(found.cost))
    left = residuals(best.x)
    freedom = max(1, len(value) - len(low))
    variance = float((left**2).sum()) / freedom
    jacobian = np.asarray(best.jac)
    covariance = variance * np.linalg.pinv(jacobian.T @ jacobian)
    return np.asarray(best.x), covariance, left


def _bends(value: Floats, residuals: Floats) -> bool:
    """Whether a raised cosine fits better than straight lines, or lines hardly fit at all."""
    spread = float(((value - value.mean()) ** 2).sum())
    straight = float((residuals**2).sum())
    if straight > 0.3 * spread:
        return True
    at = np.linspace(0, 1, len(value))
    middle = float(at[int(np.argmax(value))])

    def bump(x: Floats) -> Floats:
        phase = np.clip((at - x[0]) / max(abs(x[1]), 1e-6), -0.5, 0.5)
        return np.asarray(x[2] + x[3] * (1 + np.cos(2 * np.pi * phase)) / 2 - value)

    begin = np.array([middle, 0.5, float(value.min()), float(np.ptp(value))])
    curved = least_squares(bump, begin).fun
    return float((curved**2).sum()) < straight


def _draws(x: Floats, covariance: Floats, low: Floats, high: Floats) -> Floats:
    """The estimate, and parameters that fit as well."""
    rng = np.random.default_rng(1)
    drawn = rng.multivariate_normal(x, covariance, DRAWS, check_valid="ignore", method="svd")
    return np.clip(np.vstack([x, drawn]), low, high)


def _estimate(drawn: Floats) -> Estimate:
    low, high = np.quantile(drawn[1:], (0.05, 0.95)).tolist()
    return Estimate(float(drawn[0]), low, high)


def _moment(drawn: Floats, step: float) -> Estimate:
    """With half of the distance of two points on either side."""
    value, low, high = _estimate(drawn)
    below, above = np.hypot([value - low, high - value], step / 2).tolist()
    return Estimate(value, value - below, value + above)


def shapes(series: Series) -> Iterator[tuple[Place, Shape | None]]:
    """Every place that is not normal, and what lines say of it."""
    found = places(series)
    befores, afters = [place.last + 1 for place in found], [place.first for place in found]
    for place, before, after in zip(found, [0, *befores], [*afters[1:], len(series.at)], strict=False):
        yield place, fitted(series, place, before, after)
