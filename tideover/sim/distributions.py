"""Distributions of durations and of keys, each registered under its name. Parts have them as settings; the
data plane draws from their ``law``. A new one is a class here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.sim.draws import Bits, mix, uniform01
from tideover.sim.plane.library import ffi, lib
from tideover.sim.registry import Part, Registry, setting
from tideover.sim.units import MAX_DURATION, Duration, Rate

DISTRIBUTIONS: Registry[Distribution] = Registry("distribution")


class Distribution(Part):
    """A distribution of durations in nanoseconds.

    Subclasses give ``law`` or ``sample``, and ``mean_ns``, and register themselves with
    ``@DISTRIBUTIONS.register(name)``.
    """

    kind: ClassVar[str]

    def law(self) -> Law:
        """As the data plane has it; by default it is drawn in Python, by ``sample``."""
        return _law(lib.DRAW_ELSEWHERE)

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One duration (ns, >= 0, rounded with rint) for each of the 64-bit words; may overwrite ``bits``."""
        return self.law().sample(bits)

    @property
    def mean_ns(self) -> float:
        """The mean (ns): by default its setting ``mean``."""
        if "mean" not in type(self).model_fields:
            raise NotImplementedError(f"distribution {self.kind} has neither mean_ns nor a setting mean")
        return float(self.mean)  # type: ignore[attr-defined]


@DISTRIBUTIONS.register("constant")
class Constant(Distribution):
    """Always ``value``. In a scenario the value alone is enough: ``service: 0.2 ms``."""

    value: Annotated[Duration, Field(description="the duration")]

    def law(self) -> Law:
        return _law(lib.DRAW_CONSTANT, low=self.value)

    @property
    def mean_ns(self) -> float:
        return float(self.value)


Weight = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


@DISTRIBUTIONS.register("empirical")
class Empirical(Distribution):
    """One of the measured ``values``, each as likely as its weight says; nothing in between."""

    values: Annotated[
        tuple[Duration, ...], Field(min_length=1, max_length=10_000, description="the measured durations")
    ]
    weights: tuple[Weight, ...] | None = setting(
        "how much each value counts; as many as values, not all 0; default: all the same"
    )

    @model_validator(mode="after")
    def _usable(self) -> Empirical:
        if self.weights is not None:
            if len(self.weights) != len(self.values):
                raise ValueError(
                    f"{len(self.weights)} weights for {len(self.values)} values; give one for each"
                )
            if not any(self.weights):
                raise ValueError("at least one weight must be positive")
        return self

    def law(self) -> Law:
        return _empirical(self.values, self.weights)

    @property
    def mean_ns(self) -> float:
        return float(np.average(np.asarray(self.values, np.float64), weights=self.weights))


@lru_cache(maxsize=64)
def _empirical(values: tuple[int, ...], weights: tuple[float, ...] | None) -> Law:
    table = AliasTable(weights or (1.0,) * len(values))
    durations = ffi.new("int64_t[]", values)
    return Law(lib.DRAW_EMPIRICAL, kept=(table, durations), values=durations, table=table.struct[0])


@DISTRIBUTIONS.register("exponential")
class Exponential(Distribution):
    """Exponential with the given mean: the service of an M/M/1 queue, the gaps of a Poisson process.

    By inversion of the upper 32 bits: -mean * log(u), u at the centre of 2**32 cells, so at most 22.9 means
    (and at most the longest duration).
    """

    mean: Annotated[Duration, Field(description="mean; the standard deviation is the same")]

    def law(self) -> Law:
        return _law(lib.DRAW_EXPONENTIAL, mean=self.mean)


@DISTRIBUTIONS.register("gamma")
class Gamma(Distribution):
    """Gamma with the given mean, and its ``shape`` or coefficient of variation ``cv`` = 1 / sqrt(shape).

    cv = 1 is exponential, cv = 1 / sqrt(n) is the sum of n equal exponential stages (Erlang), cv > 1 is
    burstier. By inversion: the regularised incomplete gamma function (DiDonato and Morris: *Computation of
    the incomplete gamma function ratios and their inverse*, ACM TOMS 12, 1986), as scipy has it.
    """

    mean: Annotated[Duration, Field(description="mean")]
    shape: float | None = setting("shape k; give this or cv", ge=1e-3, le=1e6)
    cv: float | None = setting("standard deviation / mean", ge=1e-3, le=30)

    @model_validator(mode="after")
    def _one_way(self) -> Gamma:
        if (self.shape is None) == (self.cv is None):
            raise ValueError("give either shape or cv")
        return self

    @property
    def k(self) -> float:
        """The shape, however it was given."""
        return self.shape if self.cv is None else self.cv**-2  # type: ignore[return-value]

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        from scipy.special import gammaincinv

        return _whole(gammaincinv(self.k, uniform01(bits)) * (self.mean / self.k))


@DISTRIBUTIONS.register("lognormal")
class Lognormal(Distribution):
    """Exp of a normal variable, given by ``mean`` and ``cv``, or by ``median`` and ``sigma`` of the log.

    sigma**2 = log(1 + cv**2), median = mean * exp(-sigma**2 / 2). By inversion, with scipy's ``ndtri``.
    Measured service and restart times often look like this (Limpert, Stahel, Abbt: *Log-normal
    distributions across the sciences*, BioScience 51, 2001).
    """

    mean: Duration | None = setting("mean; goes with cv")
    cv: float | None = setting("standard deviation / mean", ge=0, le=30)
    median: Duration | None = setting("median; goes with sigma")
    sigma: float | None = setting("standard deviation of the logarithm", ge=0, le=3)

    @model_validator(mode="after")
    def _one_way(self) -> Lognormal:
        given = tuple(value is not None for value in (self.mean, self.cv, self.median, self.sigma))
        if given not in ((True, True, False, False), (False, False, True, True)):
            raise ValueError("give either mean and cv, or median and sigma")
        return self

    @property
    def log_sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return self.sigma if self.cv is None else math.sqrt(math.log1p(self.cv**2))  # type: ignore[return-value]

    @property
    def median_ns(self) -> float:
        if self.mean is None:
            return float(self.median)  # type: ignore[arg-type]
        return self.mean * math.exp(-(self.log_sigma**2) / 2)

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        from scipy.special import ndtri

        return _whole(np.exp(ndtri(uniform01(bits)) * self.log_sigma) * self.median_ns)

    @property
    def mean_ns(self) -> float:
        if self.mean is not None:
            return float(self.mean)
        return self.median_ns * math.exp(self.log_sigma**2 / 2)


_NEXT = 0xA0761D6478BD642F
"""Odd, and no other draw's: attempts of one request are as good as independent."""
_CELLS = 1 << 16
_NEVER = 2**63 - 1


@DISTRIBUTIONS.register("request")
class Request(Distribution):
    """As the service of a bolt that looks something up outside, in a database that enriches tuples, say: the
    task sends a request and waits for its answer. Is there none by ``timeout``, it pauses for ``backoff`` and
    tries again, up to ``retries`` times; then the tuple goes on without an answer.

    ``limit``: each task may send so many requests a second, as clients share a service's limit (Flink's
    ``RateLimiterStrategy.perSecond`` gives each subtask its part). A task that had its answer sooner stays
    occupied until it may send again.

    All of it takes at most the longest duration. Its own load does not slow the service; give ``answer`` as
    it is under that load.
    """

    answer: Annotated[Distribution, Field(description="time until the service answers")]
    timeout: Duration | None = setting("an attempt is given up then; default: it is waited for", gt=0)
    retries: int = setting("attempts after the first; goes with timeout", 0, ge=0, le=100)
    backoff: Duration = setting("pause before each of them; goes with timeout", 0)
    limit: Rate | None = setting("requests per second that the service allows each task; default: any number")

    @model_validator(mode="after")
    def _without_timeout(self) -> Request:
        if self.timeout is None and (self.retries or self.backoff):
            raise ValueError("retries and backoff go with a timeout")
        return self

    def law(self) -> Law:
        answer = self.answer.law()
        if not answer.compiled:
            return answer
        return _law(
            lib.DRAW_REQUEST,
            kept=(answer,),
            answer=answer.struct,
            timeout=_NEVER if self.timeout is None else self.timeout,
            retries=self.retries,
            backoff=self.backoff,
            at_least=self._at_least,
        )

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        law = self.law()
        return law.sample(bits) if law.compiled else self._sample(bits)

    def _sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        """Of answers that are drawn in Python."""
        total = np.zeros(len(bits), np.int64)
        rows = np.arange(len(bits))
        for attempt in range(self.retries + 1):
            again = bits[rows]
            if attempt:
                again = mix(again + np.uint64(attempt * _NEXT % 2**64))
                total[rows] += self.backoff
            took, failed = self._attempt(self.answer.sample(again))
            total[rows] += took
            np.minimum(total, MAX_DURATION, out=total)
            rows = rows[failed]
        return total

    def _attempt(self, took: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """How long attempts keep a task, and which have had no answer."""
        failed = np.zeros(len(took), bool)
        if self.timeout is not None:
            failed = took > self.timeout
            took = np.minimum(took, self.timeout)
        return np.maximum(took, self._at_least), failed

    @property
    def _at_least(self) -> int:
        """How long an attempt keeps a task, even if it is answered sooner."""
        return 0 if self.limit is None else round(1e9 / self.limit)

    @property
    def mean_ns(self) -> float:
        return _mean(self)


@lru_cache(maxsize=256)
def _mean(request: Request) -> float:
    """Of the answer's distribution in 65,536 cells (ns)."""
    if request.timeout is None and request.limit is None:
        return request.answer.mean_ns
    cells = (np.arange(_CELLS, dtype=np.uint64) << np.uint64(48)) + np.uint64(1 << 47)
    took, failed = request._attempt(request.answer.sample(cells))
    each, fails = float(took.mean()), float(failed.mean())
    attempts = sum(fails**number for number in range(request.retries + 1))
    return attempts * each + (attempts - 1) * request.backoff


@DISTRIBUTIONS.register("uniform")
class Uniform(Distribution):
    """Any duration from ``low`` to ``high`` is equally likely."""

    low: Annotated[Duration, Field(description="shortest duration")]
    high: Annotated[Duration, Field(description="longest duration; at least low")]

    @model_validator(mode="after")
    def _in_order(self) -> Uniform:
        if self.low > self.high:
            raise ValueError("low must not be greater than high")
        return self

    def law(self) -> Law:
        return _law(lib.DRAW_UNIFORM, low=self.low, spread=self.high - self.low)

    @property
    def mean_ns(self) -> float:
        return (self.low + self.high) / 2


@DISTRIBUTIONS.register("weibull")
class Weibull(Distribution):
    """Weibull with the given mean and ``shape``: below 1 failures come in bursts, above 1 with age.

    shape = 1 is exponential. Schroeder and Gibson (*A large-scale study of failures in high-performance
    computing systems*, DSN 2006) found 0.7 to 0.8 for the times between failures of a cluster's nodes. By
    inversion: scale * (-log(1 - u))^(1/shape), u at the centre of 2**53 cells.
    """

    mean: Annotated[Duration, Field(description="mean")]
    shape: Annotated[float, Field(ge=0.2, le=100, description="shape k; 1 is exponential")]

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        scale = self.mean / math.gamma(1 + 1 / self.shape)
        return _whole((-np.log1p(-uniform01(bits))) ** (1 / self.shape) * scale)


def _whole(x: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Durations in whole nanoseconds, the longest that there is at most; overwrites them."""
    np.minimum(x, float(MAX_DURATION), out=x)
    return np.rint(x, out=x).astype(np.int64)


_COIN_BITS = 32


class AliasTable:
    """Draws indexes in [0, n) with probabilities proportional to ``weights``.

    The table has 2**k >= n cells. The upper k bits of a draw choose a cell, the lower 32 toss a coin
    between the cell's own index and its alias. All of it is done in integers: ``units`` holds how many of
    the 2**(k + 32) equally likely draws give each index, so the probabilities are known exactly; they
    differ from the weights given by the rounding to such units only.

    Alastair J. Walker: *An efficient method for generating discrete random variables with general
    distributions*, ACM TOMS 3, 1977; Michael D. Vose: *A linear algorithm for generating random numbers
    with a given distribution*, IEEE TSE 17, 1991.
    """

    def __init__(self, weights: Sequence[float] | npt.NDArray[np.float64]) -> None:
        p = np.asarray(weights, np.float64)
        cells_log2 = max(1, (len(p) - 1).bit_length())
        self.total = 1 << (cells_log2 + _COIN_BITS)
        self.units = np.rint(p / p.sum() * self.total).astype(np.int64)
        # What rounding adds or takes goes to the heaviest outcome, where it matters least.
        self.units[np.argmax(self.units)] += self.total - int(self.units.sum())
        self._own, self._alias = _pair_up(self.units, 1 << cells_log2)
        self.struct = ffi.new("alias_table *", {"log2_cells": cells_log2})
        """As the data plane has it, for as long as this table lives."""
        self.struct.own = ffi.from_buffer("uint32_t[]", self._own)
        self.struct.alias = ffi.from_buffer("int64_t[]", self._alias)

    def index(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One index for each 64-bit word."""
        bits = np.ascontiguousarray(bits)
        found = np.empty(bits.shape, np.int64)
        into = ffi.from_buffer("int64_t[]", found)
        lib.draw_index_array(self.struct, ffi.from_buffer("uint64_t[]", bits), bits.size, into)
        return found


def _pair_up(
    units: npt.NDArray[np.int64], cells: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """For each cell how many of its 2**32 coins are its own, and the index that gets the others."""
    full = 1 << _COIN_BITS
    rest = units.tolist() + [0] * (cells - len(units))
    own = np.zeros(cells, np.uint32)
    alias = np.arange(cells, dtype=np.int64)
    small = [i for i, r in enumerate(rest) if r < full]
    large = [i for i, r in enumerate(rest) if r > full]
    while small:
        i, j = small.pop(), large[-1]
        own[i], alias[i] = rest[i], j
        rest[j] -= full - rest[i]
        if rest[j] <= full:
            large.pop()
            if rest[j] < full:
                small.append(j)
    return own, alias


class Zipf(Part):
    """Zipf's law over ``keys`` keys: key i (from 0) has a probability proportional to 1 / (i + 1)**exponent.

    exponent 0 is uniform; words of a language have about 1. Not a duration: it draws the index of a key.

    George K. Zipf: *Human behavior and the principle of least effort*, 1949.
    """

    keys: Annotated[int, Field(ge=1, le=2**22, description="number of keys")]
    exponent: float = setting("skew; 0 is uniform", 1.0, ge=0, le=20)

    def index(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One key in [0, keys) for each 64-bit word."""
        return _table(self).index(bits)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability of each key."""
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.exponent
        return weights / weights.sum()


@lru_cache(maxsize=16)
def _table(zipf: Zipf) -> AliasTable:
    return AliasTable(zipf.probabilities)


_BITS, _INTEGERS = ffi.typeof("uint64_t[]"), ffi.typeof("int64_t[]")


class Law:
    """A ``distribution`` of ``plane.h``: its kind, and the fields that the kind uses.

    ``kept`` are the objects whose memory its pointers point to.
    """

    def __init__(self, kind: int, kept: tuple[object, ...] = (), **fields: Any) -> None:
        self.struct = ffi.new("distribution *", {"kind": kind, **fields})
        self.compiled = kind != lib.DRAW_ELSEWHERE
        self._kept = kept

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One duration (ns) for each of the 64-bit words, in their place if they are contiguous."""
        if not self.compiled:
            raise NotImplementedError("a distribution gives sample or law")
        bits = np.ascontiguousarray(bits)
        drawn = bits.view(np.int64)
        into = ffi.from_buffer(_INTEGERS, drawn, require_writable=True)
        lib.draw_duration_array(self.struct, ffi.from_buffer(_BITS, bits), bits.size, into)
        return drawn


_law = lru_cache(maxsize=1024)(Law)
