"""Series of lag, throughput or latency: failures, and what they say of rate, outage and catch-up capacity.

A lag and a throughput of the same time are read together, if their labels agree best: then the throughput
gives the rate, and the lag the moments. What a failure is, `series_fits` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from tideover.calibrate.logs import durations, series_files
from tideover.calibrate.logs.durations import ENDS, PROFILE_DRAWS, even, next_one, observed, spread_out
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Failure, Findings, Quantity, Stage, instant, unknown
from tideover.calibrate.logs.series_files import LAG, LATENCY, THROUGHPUT, Series, recognises
from tideover.calibrate.logs.series_fits import NONE, Estimate, Place, Shape, shapes
from tideover.calibrate.recoveries.profile import OUTAGE, RESTART, SERVICE

__all__ = ["WHAT", "read", "recognises"]

WHAT = "series of lag, throughput or latency (query_range of Prometheus, or CSV of times and values)"
MOST_ROWS = 20_000
"""So many points of a series are kept in its table: of longer ones every so manieth."""
_GOES_ON = 0.2
"""If more than this part of the rate is processed in an outage, only a part of the job has stopped."""
_APART = 0.15
"""Two ways to tell the same value that differ by more than this part of it are said to."""
_ONE = "one in which a process is killed on purpose"
_STEPS = 20
"""So many points before a failure tell the rate."""


def read(files: Sequence[tuple[str, LogFile]]) -> list[Findings]:
    """One finding a lag, with the throughput that goes with it; one for each of the other series."""
    found = [series for part, file in files for series in series_files.read(part, file)]
    lags = [one for one in found if one.kind == LAG]
    rates = [one for one in found if one.kind == THROUGHPUT]
    mates = {id(lag): _mate(lag, rates, len(lags)) for lag in lags}
    taken = {id(mate) for mate in mates.values()}
    return [_of(one, mates.get(id(one))) for one in found if id(one) not in taken]


def _mate(lag: Series, rates: Sequence[Series], lags: int) -> Series | None:
    """The throughput of the same time that has the most labels in common; None if that is not one."""
    near = [r for r in rates if min(lag.at[-1], r.at[-1]) - max(lag.at[0], r.at[0]) > 0.5 * np.ptp(lag.at)]
    alike = [len(lag.labels.items() & rate.labels.items()) for rate in near]
    best = [rate for rate, n in zip(near, alike, strict=True) if n == max(alike)]
    return best[0] if len(best) == 1 and (lags == 1 or max(alike) > 0) else None


@dataclass(frozen=True)
class _Seen:
    """A failure, its rate by the throughput, and which part of it was processed in the outage."""

    failure: Failure
    shape: Shape
    rate: Estimate = NONE
    went_on: float = float("nan")
    surge: float = float("nan")

    @property
    def outage(self) -> float:
        return self.shape.read.value - self.shape.began.value


def _of(series: Series, mate: Series | None) -> Findings:
    found = list(shapes(series))
    left_out = [place for place, shape in found if shape is None]
    seen = [_seen(series, shape, mate) for _, shape in found if shape is not None]
    failures = tuple(one.failure for one in seen)
    told = list(_quantities(series, seen, mate))
    by_name = {quantity.name: quantity for quantity in told}
    outages = [one.outage for one in seen if np.isfinite(one.outage)]
    return Findings(
        engine="series",
        source=series.name,
        span=(float(series.at[0]), float(series.at[-1])),
        failures=failures,
        quantities=tuple(told),
        predictions=tuple(durations.predictions("nothing is read", "outage", outages, by_name)),
        tables={"series": pd.concat([_table(one) for one in (series, mate) if one], ignore_index=True)},
        profile=_profile(series, outages, by_name),
        most_help=_most_help(series, seen, mate),
        remarks=tuple(_remarks(series, seen, left_out, mate)),
    )


def _seen(series: Series, shape: Shape, mate: Series | None) -> _Seen:
    named = {"failed": shape.began, "running": shape.read, "caught_up": shape.caught_up}
    stages = [Stage(name, e.value, series.mark(e.value)) for name, e in named.items() if np.isfinite(e.value)]
    unit = "s" if series.kind == LATENCY else "rows"
    verb = "is less by" if series.kind == THROUGHPUT else "rises by"
    about = f"{series.kind} is not normal, for too few points to tell how it rises"
    if np.isfinite(shape.rise.value):
        about = f"{series.kind} {verb} {shape.rise.value:.4g} {unit}/s"
    failure = Failure(series.name, about, tuple(stages), "gap")
    if series.kind == THROUGHPUT:
        went_on = 1 - shape.rise.value / shape.rate.value
        return _Seen(failure, shape, shape.rate, went_on)
    if mate is None:
        return _Seen(failure, shape)
    began, read, ended = shape.began.value, shape.read.value, shape.caught_up.value
    before = mate.value[(mate.at < began - mate.step) & (mate.at >= began - _STEPS * mate.step)]
    if len(before) < 3:
        return _Seen(failure, shape)
    rate, error = float(before.mean()), 1.645 * float(before.std(ddof=1)) / len(before) ** 0.5
    during = mate.value[(mate.at > began + mate.step) & (mate.at <= read)]
    after = mate.value[(mate.at > read + mate.step) & (mate.at <= ended)]
    return _Seen(
        failure,
        shape,
        Estimate(rate, rate - error, rate + error),
        float(during.mean()) / rate if len(during) and rate > 0 else float("nan"),
        float(after.mean()) if len(after) else float("nan"),
    )


def _rate(one: _Seen) -> Estimate:
    return one.rate if np.isfinite(one.rate.value) else one.shape.rate


def _capacity(one: _Seen) -> Estimate:
    """What is done while it catches up: the rate, and by how much the lag falls."""
    if not np.isfinite(one.rate.value) or not np.isfinite(one.shape.fall.value):
        return one.shape.capacity
    rate, fall = one.rate, one.shape.fall
    value = rate.value + fall.value
    below = float(np.hypot(rate.value - rate.low, fall.value - fall.low))
    above = float(np.hypot(rate.high - rate.value, fall.high - fall.value))
    return Estimate(value, value - below, value + above)


def _pooled(name: str, unit: str, values: Sequence[Estimate], meaning: str) -> Quantity:
    """The geometric mean, and the interval of the next one (Student's, of logarithms): by how much the values
    differ, and each of them may be anywhere in its own interval, too.
    """
    known = [one for one in values if one.value > 0]
    if not known:
        return unknown(name, unit, meaning)
    if len(known) == 1:
        return Quantity(name, unit, *known[0], 1, True, meaning)
    logs = np.log([one.value for one in known])
    widths = [np.log(max(one.high, one.value) / max(one.low, 0.01 * one.value)) for one in known]
    within = float(np.mean(np.square(widths))) / (2 * 1.645) ** 2
    n = len(known)
    scale = float(np.sqrt((logs.var(ddof=1) + within) * (1 + 1 / n)))
    low, middle, high = np.exp(logs.mean() + scale * student.ppf((ENDS[0], 0.5, ENDS[1]), n - 1)).tolist()
    return Quantity(name, unit, middle, low, high, n, True, meaning)


def _quantities(series: Series, seen: Sequence[_Seen], mate: Series | None) -> Iterator[Quantity]:
    step = series.step
    yield Quantity("resolution", "s", step, step, step, len(series.at), True, "time between two points")
    if not seen:
        yield unknown("outage", "s", f"no failure is in the series: {_ONE} would tell")
        return
    outages = [one.outage for one in seen if np.isfinite(one.outage)]
    back = [after for one in seen if (after := one.failure.after("caught_up")) is not None]
    yield observed("outage", outages, "from when nothing is read any more until it is read again")
    yield observed("caught_up", back, "from when nothing is read any more until nothing waits")
    if series.kind == LATENCY:
        yield from _of_latency(series, seen)
        return
    by = "as the lag rises, if nothing at all is read meanwhile (the throughput would tell)"
    if series.kind == THROUGHPUT or mate is not None:
        by = "as the throughput before each failure"
    yield _pooled("rate", "rows/s", [_rate(one) for one in seen], f"input rate, {by}")
    text = "rows per second while it catches up: the rate, and by how much more"
    yield _pooled("catch_up_capacity", "rows/s", [_capacity(one) for one in seen], text)
    again = [one.shape.again for one in seen]
    if series.kind == THROUGHPUT:
        text = "rows processed twice: what is done beyond the rate afterwards, less what was missed"
        known = [one for one in again if np.isfinite(one.value)]
        if known:
            low, high = min(one.low for one in known), max(one.high for one in known)
            middle = float(np.median([one.value for one in known]))
            yield Quantity("processed_again", "rows", middle, low, high, len(known), True, text)
        yield unknown("lag", "rows", "what waited before a failure: a throughput does not tell, a lag would")
    text = "a series tells when nothing is read, not when that was noticed: the engine's log would tell"
    yield unknown("detection", "s", text)


def _of_latency(series: Series, seen: Sequence[_Seen]) -> Iterator[Quantity]:
    """While a job catches up, the time of what comes out advances by capacity over rate a second."""
    scale = {"ms": 1e-3, "milliseconds": 1e-3, "millis": 1e-3, "s": 1.0, "seconds": 1.0, "sec": 1.0}
    words = [word for word in series.name.lower().replace("{", "_").split("_") if word in scale]
    if words:
        falls = [Estimate(*(1 + scale[words[-1]] * v for v in one.shape.fall)) for one in seen]
        text = "capacity while it catches up, over the rate: by how much latency falls per second, and one"
        yield _pooled("capacity_over_rate", "1", falls, text)
    text = "a latency tells no rates: a throughput, or a lag, of the same time would"
    yield unknown("rate", "rows/s", text)
    yield unknown("catch_up_capacity", "rows/s", text)


def _remarks(
    series: Series, seen: Sequence[_Seen], left_out: Sequence[Place], mate: Series | None
) -> Iterator[str]:
    if left_out:
        first = series.at[left_out[0].first]
        yield (
            f"{len(left_out)} more times it is not normal, first at {instant(first)}, but does not rise and "
            "fall in straight lines: taken for changes of load, or noise"
        )
    for one in seen:
        at = instant(one.failure.began)
        if one.went_on > _GOES_ON:
            yield (
                f"failure at {at}: {100 * one.went_on:.0f} % of the rate is still processed in it, so a part "
                "of the job went on"
            )
        capacity = _capacity(one).value
        if mate is not None and abs(one.surge - capacity) > _APART * capacity:
            yield (
                f"failure at {at}: {mate.name} is {one.surge:.4g}/s while it catches up, but the lag says "
                f"{capacity:.4g}/s: is it the same job, in the same unit?"
            )
        if one.shape.open:
            yield f"failure at {at}: the series ends before it has caught up"


def _most_help(series: Series, seen: Sequence[_Seen], mate: Series | None) -> str:
    if not seen:
        return "the hour of a failure, from a minute before it until what waited is worked off"
    if not any(np.isfinite(_capacity(one).value) for one in seen) and series.kind != LATENCY:
        shortest = min(one.failure.after("caught_up") or series.step for one in seen)
        every = max(1.0, round(shortest / 12))
        return f"the same with a point every {every:g} s: there are too few in a failure"
    if series.kind == LAG and mate is None:
        return "the throughput of the same time: it tells whether all of the job stops, and so the rate"
    if series.kind == LATENCY:
        return "the lag of the same time: it tells the rate, and what is done while it catches up"
    return "the engine's own log of the same time: it tells detection and restart apart"


def _table(series: Series) -> pd.DataFrame:
    every = -(-len(series.at) // MOST_ROWS)
    at, value = series.at[::every], series.value[::every]
    return pd.DataFrame({"series": series.name, "kind": series.kind, "at_s": at, "value": value})


def _profile(series: Series, outages: Sequence[float], told: Mapping[str, Quantity]) -> dict[str, Any] | None:
    """For the scenario ``flink-recovery``: the outage (its detection, with no restart after it), and the
    capacity, which is that of catching up. None unless both are told.
    """
    capacity = told.get("catch_up_capacity")
    if not outages or capacity is None or not capacity.identified:
        return None
    likely = next_one(outages, even(PROFILE_DRAWS)), 1 / spread_out(capacity)[:PROFILE_DRAWS]
    rate = f"{told['rate'].value:.6g}/s"
    provenance = {
        "measurements": len(outages),
        "method": "straight lines through a series; the next outage by Student's distribution",
        "not_identified": "detection apart from restart, and the checkpoint interval",
    }
    return durations.as_profile(
        series.name,
        {OUTAGE: float(np.median(outages)), SERVICE: 1 / capacity.value},
        dict(zip((OUTAGE, SERVICE), likely, strict=True)),
        {RESTART: "0 s"},
        durations.nanoseconds,
        provenance,
        ranges={"rate": {"low": rate, "high": rate}} if told["rate"].identified else {},
        scatter={"catch_up_s": 0.0},
    )
