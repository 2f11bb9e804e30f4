"""Rates from a file."""

from __future__ import annotations

import csv
import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from tideover.models.job.arrivals.base import ARRIVALS
from tideover.models.job.arrivals.schedule import Pieces, Scheduled, per_ns
from tideover.sim.units import S

COLUMNS = ("time_s", "rate_per_s")


@ARRIVALS.register("trace")
class TraceOfRates(Scheduled):
    """Rates from a CSV file with the columns ``time_s`` (rising, the first 0) and ``rate_per_s`` (>= 0).

    Each rate holds from its time to the next; the last one for ever, unless ``repeat`` is the distance in
    seconds at which all of it begins again. In a scenario a relative path starts from the scenario's folder.
    """

    rate_factors: ClassVar[frozenset[str]] = frozenset({"scale"})

    file: Annotated[str, Field(description="CSV file with the columns time_s, rate_per_s")]
    repeat: Annotated[float | None, Field(gt=0, description="seconds after which the trace begins again")] = (
        None
    )
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
    path = Path(file)
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ValueError(f"cannot read {path.name!r}: {reason}; a CSV file is needed") from None
    if not rows or tuple(c.strip() for c in rows[0]) != COLUMNS:
        raise ValueError(f"{path.name}:1: the first line must be {','.join(COLUMNS)}")
    times: list[float] = []
    rates: list[float] = []
    for number, row in enumerate(rows[1:], 2):
        try:
            time, rate = (float(cell) for cell in row)
        except ValueError:
            raise ValueError(
                f"{path.name}:{number}: two numbers are needed, found {','.join(row)[:40]!r}"
            ) from None
        if not (math.isfinite(time) and math.isfinite(rate)) or rate < 0:
            raise ValueError(f"{path.name}:{number}: time and rate must be finite, and the rate at least 0")
        if (times and time <= times[-1]) or (not times and time != 0):
            raise ValueError(f"{path.name}:{number}: times must rise, from 0 in the first row")
        times.append(time)
        rates.append(rate)
    if not times or max(rates) <= 0:
        raise ValueError(f"{path.name}: at least one row with a rate above 0 is needed")
    return tuple(times), tuple(rates)
