"""Time that a request to a service outside takes, with its time-outs and attempts."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.distributions.law import Law
from tideover.sim.draws import Bits, mix
from tideover.sim.plane.library import lib
from tideover.sim.units import MAX_DURATION, Duration, Rate

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

    >>> import numpy as np
    >>> from tideover.sim.distributions import Constant
    >>> waits = Request(answer=Constant(value=30), timeout=10, retries=2, backoff=5)
    >>> waits.sample(np.zeros(1, np.uint64)).tolist()  # 10, 5, 10, 5, 10
    [40]
    """

    answer: Annotated[Distribution, Field(description="time until the service answers")]
    timeout: Annotated[
        Duration | None,
        Field(gt=0, description="an attempt is given up then; default: it is waited for"),
    ] = None
    retries: Annotated[
        int, Field(ge=0, le=100, description="attempts after the first; goes with timeout")
    ] = 0
    backoff: Annotated[Duration, Field(description="pause before each of them; goes with timeout")] = 0
    limit: Annotated[
        Rate | None,
        Field(description="requests per second that the service allows each task; default: any number"),
    ] = None

    @model_validator(mode="after")
    def _without_timeout(self) -> Request:
        if self.timeout is None and (self.retries or self.backoff):
            raise ValueError("retries and backoff go with a timeout")
        return self

    def law(self) -> Law:
        answer = self.answer.law()
        if not answer.compiled:
            return answer
        return _law(answer, self.timeout, self.retries, self.backoff, self._at_least)

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
        """The mean (ns), of the answer's distribution in 65,536 cells."""
        return _mean(self)


@lru_cache(maxsize=256)
def _law(answer: Law, timeout: int | None, retries: int, backoff: int, at_least: int) -> Law:
    return Law(
        lib.DRAW_REQUEST,
        kept=(answer,),
        answer=answer.struct,
        timeout=_NEVER if timeout is None else timeout,
        retries=retries,
        backoff=backoff,
        at_least=at_least,
    )


@lru_cache(maxsize=256)
def _mean(request: Request) -> float:
    if request.timeout is None and request.limit is None:
        return request.answer.mean_ns
    cells = (np.arange(_CELLS, dtype=np.uint64) << np.uint64(48)) + np.uint64(1 << 47)
    took, failed = request._attempt(request.answer.sample(cells))
    each, fails = float(took.mean()), float(failed.mean())
    attempts = sum(fails**number for number in range(request.retries + 1))
    return attempts * each + (attempts - 1) * request.backoff
