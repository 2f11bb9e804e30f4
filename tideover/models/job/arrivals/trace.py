"""Rates from a file."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from tideover.models.job.arrivals.base import ARRIVALS
from tideover.models.job.arrivals.rate_files import rows_of
from tideover.models.job.arrivals.schedule import Pieces, Scheduled, per_ns
from tideover.sim.units import MAX_DURATION, S

COLUMNS = ("time_s", "rate_per_s")


@ARRIVALS.register("trace")
class TraceOfRates(Scheduled):
    """Rates from a CSV file with the columns ``time_s`` (rising, the first 0) and ``rate_per_s`` (>= 0).

    Each rate holds from its time to the next; the last one for ever, unless ``repeat`` is the distance in
    seconds at which all of it begins again. In a scenario a relative path starts from the scenario's folder.
    """

    rate_factors: ClassVar[frozenset[str]] = frozenset({"scale"})

    file: Annotated[str, Field(description="CSV file with the columns time_s, rate_per_s")]
    repeat: Annotated[
        float | None,
        Field(gt=0, le=MAX_DURATION / S, description="seconds after which the trace begins again"),
    ] = None
    scale: Annotated[
        float, Field(gt=0, le=1e6, description="every rate of the trace is multiplied by it")
    ] = 1.0

    @field_validator("file")
    @classmethod
    def _from_the_scenarios_folder(cls, file: str, info: ValidationInfo) -> str:
        return str((info.context or {}).get("directory", Path()) / file)

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
        per = np.array([per_ns(rate * self.scale) for rate in rates])
        return Pieces(np.array(times) * S, per, np.zeros(len(rates)), length)


@lru_cache(maxsize=64)
def read_rates(file: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times (s) and rates (1/s) of a trace; ValueError says which line is wrong."""
    name = Path(file).name
    times: list[float] = []
    rates: list[float] = []
    for number, cell, rate in rows_of(file, [COLUMNS])[1]:
        time = _number(cell)
        if (times and not time > times[-1]) or (not times and time != 0):
            raise ValueError(
                f"{name}:{number}: times must rise, from 0 in the first row, to {MAX_DURATION // S} s at most"
            )
        times.append(time)
        rates.append(rate)
    return tuple(times), tuple(rates)


def _number(cell: str) -> float:
    """A number of seconds in range, or else NaN, which is no time."""
    try:
        number = float(cell)
    except ValueError:
        return math.nan
    return number if abs(number) <= MAX_DURATION / S else math.nan
