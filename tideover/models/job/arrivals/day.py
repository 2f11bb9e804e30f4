"""A load that follows the time of day, and grows from month to month."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from tideover.models.job.arrivals.base import ARRIVALS
from tideover.models.job.arrivals.rate_files import rows_of
from tideover.models.job.arrivals.schedule import Floats, Pieces, Scheduled, per_ns
from tideover.sim.time_of_day import parse_time_of_day
from tideover.sim.units import DAY, HOUR, MAX_RATE, Percent, Rate

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
        str | None,
        Field(description="CSV file with the columns hour (0 to 23) or time (HH:MM), and rate_per_s"),
    ] = None
    peak: Annotated[
        Rate | None,
        Field(description="rate of each task, or partition, where the curve is highest; default: the file's"),
    ] = None
    interpolation: Annotated[
        Literal["linear", "steps"],
        Field(description="a straight line from one value to the next, or steps"),
    ] = "linear"
    growth: Annotated[Percent, Field(description="by how much every rate grows in a month")] = 0.0
    months: Annotated[float, Field(ge=0, le=1200, description="how many months of growth have passed")] = 0.0
    scale: Annotated[float, Field(gt=0, le=1e6, description="every rate is multiplied by it")] = 1.0

    _start: int = PrivateAttr(0)
    """Time of day (ns) at simulated time 0."""

    @field_validator("file")
    @classmethod
    def _from_the_scenarios_folder(cls, file: str | None, info: ValidationInfo) -> str | None:
        return None if file is None else str((info.context or {}).get("directory", Path()) / file)

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
        """The times of day (ns) that the curve has values for."""
        return self._curve()[0]

    def rate_at(self, time: float) -> float:
        """The rate (tuples/s) at a time of day (ns)."""
        pieces = self.starting(0).pieces()
        since = time % DAY
        i = int(np.searchsorted(pieces.start, since, "right")) - 1
        return float(pieces.rate[i] + pieces.slope[i] * (since - pieces.start[i])) / per_ns(1)

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
        return Pieces(start, rate * per_ns(1), slope * per_ns(1), float(DAY))

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
    name = Path(file).name
    header, rows = rows_of(file, [BY_HOUR, BY_TIME])
    times: list[float] = []
    for number, cell, _ in rows:
        place = f"{name}:{number}"
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
        raise ValueError(f"{name}: has {len(times)} hours; a day has {HOURS}, from 0 to 23")
    return tuple(times), tuple(rate for _, _, rate in rows)
