"""Arrival processes: when a spout is called. One class a kind, registered under its name.

Spouts' tasks ask for calls, checks and advice for rates. A new kind is a class here, or in a plug-in.
"""

from __future__ import annotations

import csv
import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws, Purpose
from tideover.sim.registry import Part, Registry
from tideover.sim.text_files import Unreadable, read_text
from tideover.sim.units import (
    DAY,
    HOUR,
    MAX_DURATION,
    MAX_RATE,
    MIN_RATE,
    Duration,
    Percent,
    Rate,
    S,
    parse_time_of_day,
)

ARRIVALS: Registry[Arrivals] = Registry("arrival process")

FAR = 2.0**60
"""ns, 36 years: an eighth of what int64 holds, as gaps are random."""


class Arrivals(Part):
    """The moments at which a spout's ``nextTuple`` is called.

    Subclasses give ``next_calls`` and ``mean_gap_ns``.
    """

    kind: ClassVar[str]

    @property
    def mean_gap_ns(self) -> float:
        """Mean time between calls at the start, in nanoseconds: the range of the random offset."""
        raise NotImplementedError

    def expected(self, duration: int) -> float:
        return duration / self.mean_gap_ns

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        """The n calls (ns, rising) that follow ``last``; the first has the call number ``index``.

        ``last`` is the call before, or the moment at which the spout became free to go on. Fewer than n calls
        mean that the spout has no more.
        """
        raise NotImplementedError

    def at_once(self, n: int) -> int:
        """How many of n calls can be worked out at a time, so that none is later than time can tell."""
        return min(n, 1 + int(FAR / self.mean_gap_ns))

    def offset(self, task: str, draws: Draws) -> int:
        """Where the sequence of calls starts: uniform in [0, mean gap), drawn per replication."""
        return draws.moment(task, Purpose.OFFSET, round(self.mean_gap_ns))


Floats = npt.NDArray[np.float64]


class Pieces:
    """Rate over time: in piece i, from ``start[i]`` (ns), it goes from ``rate[i]`` by ``slope[i]`` per ns
    (tuples per ns).

    ``length``: ns after which it all begins again; None: the last piece goes on for ever.
    """

    def __init__(self, start: Floats, rate: Floats, slope: Floats, length: float | None = None) -> None:
        self.start, self.rate, self.slope, self._length = start, rate, slope, length
        spans = np.append(start[1:], np.inf if length is None else length) - start
        finite = np.where(np.isfinite(spans), spans, 0.0)
        whole = rate * finite + slope * finite**2 / 2
        self._at_start = np.cumsum(whole) - whole
        self._cycle = np.inf if length is None else float(whole.sum())

    def calls_before(self, time: float) -> float:
        """Calls expected before ``time`` (ns)."""
        cycles = 0.0
        if self._length is not None:
            cycles, time = divmod(time, self._length)
        i = int(np.searchsorted(self.start, time, "right")) - 1
        dt = time - self.start[i]
        done = float(self._at_start[i] + self.rate[i] * dt + self.slope[i] * dt**2 / 2)
        return done + (cycles * self._cycle if cycles else 0.0)

    def reach(self, count: Floats) -> npt.NDArray[np.int64]:
        """When the expected number of calls reaches ``count`` (ns, rounded); without what never does."""
        base = np.zeros(len(count))
        if self._length is not None:
            if self._cycle <= 0:
                return np.zeros(0, np.int64)
            cycles = np.floor(count / self._cycle)
            count = count - cycles * self._cycle
            base = cycles * self._length
        i = np.searchsorted(self._at_start, count, "right") - 1
        left, rate, slope = count - self._at_start[i], self.rate[i], self.slope[i]
        root = np.sqrt(np.maximum(rate**2 + 2 * slope * left, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            time = base + self.start[i] + np.where(left > 0, 2 * left / (rate + root), 0.0)
        return np.rint(time[np.isfinite(time) & (time < 2**62)]).astype(np.int64)


class Scheduled(Arrivals):
    """Call number i is where the cumulative rate reaches i + u, with u uniform in [0, 1), drawn per
    replication.

    Calls that fall into a time when the spout cannot go on are skipped. Subclasses give ``pieces``.
    """

    def pieces(self) -> Pieces:
        raise NotImplementedError

    def offset(self, task: str, draws: Draws) -> int:
        return 0

    def expected(self, duration: int) -> float:
        return self.pieces().calls_before(float(duration))

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        bits = draws.bits(task, Purpose.OFFSET, np.zeros(1, np.int64))
        phase = float(bits[0] >> np.uint64(11)) * 2.0**-53
        pieces = self.pieces()
        first = max(0, int(np.floor(pieces.calls_before(float(last)) - phase)) - 1)
        calls = pieces.reach(np.arange(first, first + n + 4, dtype=np.float64) + phase)
        return calls[calls > last][:n]


@ARRIVALS.register("burst")
class Burst(Scheduled):
    """``rate``, but ``peak`` for the last ``length`` of every ``every``.

    >>> round(1e9 / Burst(rate=10, peak=100, length=5_000_000_000, every=50_000_000_000).mean_gap_ns)
    19
    """

    rate: Annotated[Rate, Field(description="rate between the bursts")]
    peak: Annotated[Rate, Field(description="rate in a burst")]
    length: Annotated[Duration, Field(gt=0, description="length of a burst")]
    every: Annotated[Duration, Field(gt=0, description="distance of two bursts")] = 60 * S

    @model_validator(mode="after")
    def _fits(self) -> Burst:
        if self.length >= self.every:
            raise ValueError("length of a burst must be shorter than the distance of two (every)")
        return self

    @property
    def mean_gap_ns(self) -> float:
        in_bursts = self.length / self.every
        return 1e9 / (self.rate * (1 - in_bursts) + self.peak * in_bursts)

    def pieces(self) -> Pieces:
        start = np.array([0.0, float(self.every - self.length)])
        return Pieces(start, np.array([self.rate, self.peak]) / S, np.zeros(2), float(self.every))


def _from_the_scenarios_folder(file: str, info: ValidationInfo) -> str:
    return str((info.context or {}).get("directory", Path()) / file)


FileOfRates = Annotated[str, AfterValidator(_from_the_scenarios_folder)]
HOURS = 24
_MOST_GROWTH = 600.0
"""Logarithm of a factor that a float holds."""
BY_HOUR, BY_TIME = ("hour", "rate_per_s"), ("time", "rate_per_s")


@ARRIVALS.register("day")
class Day(Scheduled):
    """A rate by time of day, the same every day: ``by_hour`` with ``peak``, or a CSV ``file``.

    Value h is the rate at h o'clock; between two values it goes in a straight line, from the last one of a
    day to the first of the next, too; with ``interpolation: steps`` a value holds until the next one. The
    greatest value is ``peak``, before any growth: ``months`` of ``growth``, compounded. A file has the
    columns ``hour`` (0 to 23, all of them) or ``time`` (HH:MM, rising), and ``rate_per_s``; its path starts
    from the scenario's folder. ``run.starts_at`` or ``run.fails_at`` say at which time of day a run begins;
    without them it is midnight.

    >>> round(Day(peak=500, by_hour=(1,) * 12 + (2,) * 12, growth=0.05, months=12).rate_at(13 * HOUR), 3)
    897.928
    """

    rate_factors: ClassVar[frozenset[str]] = frozenset({"scale"})

    by_hour: Annotated[
        tuple[float, ...] | None,
        Field(description="24 numbers, the rates at 0 to 23 o'clock in proportion to one another"),
    ] = None
    file: Annotated[
        FileOfRates | None,
        Field(description="CSV file with the columns hour (0 to 23) or time (HH:MM), and rate_per_s"),
    ] = None
    peak: Annotated[
        Rate | None,
        Field(description="rate of each task, or partition, where the curve is highest; default: the file's"),
    ] = None
    interpolation: Annotated[
        Literal["linear", "steps"], Field(description="a straight line from one value to the next, or steps")
    ] = "linear"
    growth: Annotated[Percent, Field(description="by how much every rate grows in a month")] = 0.0
    months: Annotated[float, Field(ge=0, le=1200, description="how many months of growth have passed")] = 0.0
    scale: Annotated[float, Field(gt=0, le=1e6, description="every rate is multiplied by it")] = 1.0

    _start: int = PrivateAttr(0)
    """Time of day (ns) at simulated time 0."""

    @field_validator("by_hour")
    @classmethod
    def _of_a_day(cls, values: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if values is None:
            return None
        if len(values) != HOURS:
            raise ValueError(f"has {len(values)} values; give {HOURS}, one for each hour from 0 to 23")
        for hour, value in enumerate(values):
            if not 0 <= value < float("inf"):
                raise ValueError(
                    f"the value at {hour} o'clock is {value:g}; it must be finite, and at least 0"
                )
        if not any(values):
            raise ValueError("is 0 all day; at least one value must be above 0")
        return values

    @model_validator(mode="after")
    def _one_curve(self) -> Day:
        if (self.by_hour is None) == (self.file is None):
            raise ValueError("give either by_hour (with peak) or a file")
        if self.by_hour is not None and self.peak is None:
            raise ValueError("by_hour says what the rates are in proportion; give peak, the greatest of them")
        if self.months * math.log1p(self.growth) > _MOST_GROWTH:
            raise ValueError("grows beyond all numbers; give less growth, or fewer months")
        if self.file is not None:
            read_day(self.file)
        if (most := 1e9 / self.mean_gap_ns) > MAX_RATE:
            raise ValueError(f"comes to {most:.4g}/s at its highest; at most {MAX_RATE:g}/s are allowed")
        return self

    @property
    def mean_gap_ns(self) -> float:
        """Of the greatest rate in the day: the load that has to be borne."""
        return 1e9 / float(self._curve()[1].max())

    def starting(self, start: int) -> Day:
        """The same load in a run that begins at this time of day (ns after midnight)."""
        placed = self.model_copy()
        placed._start = start
        return placed

    def knots(self) -> Floats:
        """Times of day (ns) at which the slope changes."""
        return self._curve()[0]

    def rate_at(self, time: float) -> float:
        pieces = self.starting(0).pieces()
        since = time % DAY
        i = int(np.searchsorted(pieces.start, since, "right")) - 1
        return float(pieces.rate[i] + pieces.slope[i] * (since - pieces.start[i])) / (1 / S)

    def pieces(self) -> Pieces:
        times, rates = self._curve()
        slopes = np.zeros(len(times))
        if self.interpolation == "linear":
            after = np.append(times[1:], times[0] + DAY)
            slopes = (np.append(rates[1:], rates[0]) - rates) / (after - times)
        begins = (times - self._start) % DAY
        order = np.argsort(begins, kind="stable")
        start, rate, slope = begins[order], rates[order], slopes[order]
        if start[0] > 0:  # the piece that is under way
            now = max(0.0, rate[-1] + slope[-1] * (DAY - start[-1]))
            start, rate, slope = (
                np.append(first, rest) for first, rest in ((0.0, start), (now, rate), (slope[-1], slope))
            )
        return Pieces(start, rate * (1 / S), slope * (1 / S), float(DAY))

    def _curve(self) -> tuple[Floats, Floats]:
        """Times of day (ns, rising) and rates (tuples/s) there."""
        if self.by_hour is not None:
            times, rates = np.arange(HOURS, dtype=np.float64) * HOUR, np.array(self.by_hour, np.float64)
        else:
            assert self.file is not None
            times, rates = (np.array(values) for values in read_day(self.file))
        factor = self.scale * (1 + self.growth) ** self.months
        if self.peak is not None:
            factor *= self.peak / float(rates.max())
        return times, rates * factor


@lru_cache(maxsize=64)
def read_day(file: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times of day (ns) and rates (1/s) of a curve; ValueError says which line is wrong."""
    header, rows = rows_of(file, BY_HOUR, BY_TIME)
    times: list[float] = []
    for place, cell, _ in rows:
        if header == BY_HOUR:
            if cell != str(len(times)) or len(times) == HOURS:
                raise ValueError(f"{place}: hours must be 0 to 23, one after the other, not {cell[:40]!r}")
            times.append(float(len(times) * HOUR))
            continue
        try:
            time = parse_time_of_day(cell)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        if times and time <= times[-1]:
            raise ValueError(f"{place}: times must rise")
        times.append(float(time))
    if header == BY_HOUR and len(times) != HOURS:
        raise ValueError(f"{Path(file).name}: has {len(times)} hours; a day has {HOURS}, from 0 to 23")
    return tuple(times), tuple(rate for _, _, rate in rows)


class Evenly(Arrivals):
    """Calls that are all ``gap_ns`` apart."""

    @property
    def gap_ns(self) -> int:
        raise NotImplementedError

    @property
    def mean_gap_ns(self) -> float:
        return float(self.gap_ns)

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        return last + self.gap_ns * np.arange(1, n + 1, dtype=np.int64)


@ARRIVALS.register("constant")
class Periodic(Evenly):
    """Calls at a constant distance: 1 / ``rate``, or ``pause`` + ``emit_cost``.

    Stableford's spout sleeps 10 ms and then emits, which costs 0.53 ms: about 95 tuples/s.

    >>> Periodic(pause=10_000_000, emit_cost=530_000).gap_ns
    10530000
    """

    per_tuple: ClassVar[frozenset[str]] = frozenset({"pause", "emit_cost"})

    rate: Annotated[Rate | None, Field(description="calls per time, e.g. 10/s")] = None
    pause: Annotated[Duration | None, Field(description="sleep before each call; instead of rate")] = None
    emit_cost: Annotated[Duration, Field(description="time that a call takes, added to pause")] = 0
    fixed_offset: Annotated[
        Duration | None,
        Field(description="start of the calls; default: drawn within one period, per replication"),
    ] = None

    @model_validator(mode="after")
    def _one_way(self) -> Periodic:
        if (self.rate is None) == (self.pause is None):
            raise ValueError("give either rate or pause (with emit_cost)")
        if self.gap_ns <= 0:
            raise ValueError("calls must be at least 1 ns apart")
        return self

    @property
    def gap_ns(self) -> int:
        if self.rate is not None:
            return round(1e9 / self.rate)
        assert self.pause is not None
        return self.pause + self.emit_cost

    def offset(self, task: str, draws: Draws) -> int:
        return super().offset(task, draws) if self.fixed_offset is None else self.fixed_offset


@ARRIVALS.register("poisson")
class Poisson(Arrivals):
    """Independent exponential gaps with mean 1 / ``rate``, keyed by the call's number."""

    rate: Annotated[Rate, Field(description="calls per time on average, e.g. 100/s")]

    @property
    def mean_gap_ns(self) -> float:
        return 1e9 / self.rate

    def next_calls(self, task: str, draws: Draws, last: int, index: int, n: int) -> npt.NDArray[np.int64]:
        bits = draws.bits(task, Purpose.GAP, np.arange(index, index + n, dtype=np.int64))
        gaps = np.maximum(Exponential(mean=round(self.mean_gap_ns)).sample(bits), 1)
        return last + np.cumsum(gaps, out=gaps)


@ARRIVALS.register("ramp")
class Ramp(Scheduled):
    """``start`` until ``begin``, then in a straight line to ``end`` over ``over``, and ``end`` from then on.

    >>> Ramp(start=10, end=20, over=60_000_000_000).mean_gap_ns
    50000000.0
    """

    start: Annotated[Rate, Field(description="rate before the ramp")]
    end: Annotated[Rate, Field(description="rate after the ramp")]
    begin: Annotated[Duration, Field(description="when the ramp begins")] = 0
    over: Annotated[Duration, Field(gt=0, description="how long the ramp takes")] = 60 * S

    @property
    def mean_gap_ns(self) -> float:
        return 1e9 / max(self.start, self.end)  # the load that it has to bear

    def pieces(self) -> Pieces:
        low, high = self.start / S, self.end / S
        start = [float(self.begin), float(self.begin + self.over)]
        rate, slope = [low, high], [(high - low) / self.over, 0.0]
        if self.begin:
            start, rate, slope = [0.0, *start], [low, *rate], [0.0, *slope]
        return Pieces(np.array(start), np.array(rate), np.array(slope))


@ARRIVALS.register("saturating")
class Saturating(Evenly):
    """A call whenever the spout may make one: ``emit_cost`` after the last, or after what held it back.

    Something has to hold it back: bounded queues, or a cap on what is pending.

    >>> Saturating(emit_cost=5_000).mean_gap_ns
    5000.0
    """

    per_tuple: ClassVar[frozenset[str]] = frozenset({"emit_cost"})

    emit_cost: Annotated[Duration, Field(gt=0, description="time that a call takes")]

    @property
    def gap_ns(self) -> int:
        return self.emit_cost

    def offset(self, task: str, draws: Draws) -> int:
        return 0


Header = tuple[str, str]


def rows_of(file: str, *headers: Header) -> tuple[Header, list[tuple[str, str, float]]]:
    """Which of ``headers`` a CSV file of rates has, and its rows: where they stand, the first cell, and the
    rate (1/s) in the second. ValueError says which line is wrong.
    """
    path = Path(file)
    try:
        lines = list(csv.reader(read_text(path).splitlines()))
    except Unreadable as error:
        raise ValueError(f"cannot read {path.name!r}: it {error}; a CSV file is needed") from None
    except csv.Error as error:
        raise ValueError(f"{path.name}: is no CSV file: {error}") from None
    header = [cell.strip() for cell in lines[0]] if lines else []
    found = next((one for one in headers if [*one] == header), None)
    if found is None:
        wanted = " or ".join(",".join(one) for one in headers)
        raise ValueError(f"{path.name}:1: the first line must be {wanted}")
    rows = []
    for number, row in enumerate(lines[1:], 2):
        place = f"{path.name}:{number}"
        try:
            when, text = row
            rate = float(text)
        except ValueError:
            shown = ",".join(row)[:40]
            raise ValueError(f"{place}: a time and a rate are needed, found {shown!r}") from None
        if not (rate == 0 or MIN_RATE <= rate <= MAX_RATE):
            raise ValueError(f"{place}: a rate must be 0/s, or {MIN_RATE:.2g}/s to {MAX_RATE:g}/s")
        rows.append((place, when.strip(), rate))
    if not any(rate > 0 for _, _, rate in rows):
        raise ValueError(f"{path.name}: at least one row with a rate above 0 is needed")
    return found, rows


@ARRIVALS.register("trace")
class TraceOfRates(Scheduled):
    """Rates from a CSV file with the columns ``time_s`` (rising, the first 0) and ``rate_per_s`` (>= 0).

    Each rate holds from its time to the next; the last one for ever, unless ``repeat`` is the distance in
    seconds at which all of it begins again. In a scenario a relative path starts from the scenario's folder.
    """

    rate_factors: ClassVar[frozenset[str]] = frozenset({"scale"})

    file: Annotated[FileOfRates, Field(description="CSV file with the columns time_s, rate_per_s")]
    repeat: Annotated[
        float | None,
        Field(gt=0, le=MAX_DURATION / S, description="seconds after which the trace begins again"),
    ] = None
    scale: Annotated[
        float, Field(gt=0, le=1e6, description="every rate of the trace is multiplied by it")
    ] = 1.0

    @model_validator(mode="after")
    def _readable(self) -> TraceOfRates:
        times, _ = read_rates(self.file)
        if self.repeat is not None and self.repeat <= times[-1]:
            raise ValueError(f"repeat must be longer than the trace, whose last time is {times[-1]:g} s")
        return self

    @property
    def mean_gap_ns(self) -> float:
        _, rates = read_rates(self.file)
        return 1e9 / (max(rates) * self.scale)

    def pieces(self) -> Pieces:
        times, rates = read_rates(self.file)
        length = None if self.repeat is None else self.repeat * S
        return Pieces(np.array(times) * S, np.array(rates) * self.scale / S, np.zeros(len(rates)), length)


@lru_cache(maxsize=64)
def read_rates(file: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times (s) and rates (1/s) of a trace; ValueError says which line is wrong."""
    times: list[float] = []
    _, rows = rows_of(file, ("time_s", "rate_per_s"))
    for place, cell, _ in rows:
        try:
            time = float(cell)
        except ValueError:
            time = math.nan
        if not (time > times[-1] if times else time == 0) or time > MAX_DURATION / S:
            most = MAX_DURATION // S
            raise ValueError(f"{place}: times must rise, from 0 in the first row, to {most} s at most")
        times.append(time)
    return tuple(times), tuple(rate for _, _, rate in rows)
