"""A store that serves one request after the other. Mechanisms read and write there (`job.store_named`); what
it takes is set by its kind (`tideover.models.job.stores`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tideover.sim.kernel import Kernel
from tideover.sim.units import MAX_DURATION


@dataclass
class Pace:
    """What a store and those who look things up there have in common.

    free_at      when it has done all that it has been asked for (ns)
    asked_until  and all that look-ups have asked for
    busy         for how long, all in all, with what it has been asked for (ns)
    factor       how many times as long a request takes as things are
    """

    free_at: int = 0
    asked_until: int = 0
    busy: int = 0
    factor: float = 1.0


@dataclass(eq=False)
class _Request:
    """``work``: how long it keeps an undisturbed store (ns); ``plan``: of its plans the newest holds."""

    work: int
    rank: int
    done: Callable[[], None]
    order: int
    begin: int = 0
    end: int = 0
    plan: int = 0


class StoreServer:
    """A store, or one machine of it: first in, first out.

    latency     time of each request (ns) besides its bytes and operations
    bandwidth   bytes/s
    operations  it does so many a second; None: they take no time
    aside       the latency is that of the way there and back: it does not keep the store
    looked_up   somebody asks it for entries all the time, and does not tell it of each

    Requests come from control events only, so they come in order of time.
    """

    kind: Literal["store"] = "store"

    def __init__(
        self,
        kernel: Kernel,
        latency: int,
        bandwidth: int,
        operations: float | None = None,
        aside: bool = False,
        name: str = "store",
        host: int | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.bytes = 0
        self._kernel = kernel
        self._kept, self._away = (0, latency) if aside else (latency, 0)
        self._bandwidth = bandwidth
        self._operations = operations
        self.pace: Any = Pace()
        """A struct with the same fields, where the data plane looks things up here."""
        self._planned: deque[_Request] = deque()
        self._told: list[tuple[Callable[[], None], int]] = []
        self.looked_up = False

    def request(
        self, size: int, rank: int, done: Callable[[], None], order: int = 0, operations: int = 1
    ) -> int:
        """Read or write ``size`` bytes in so many ``operations``; ``done`` is called at the end, at ``rank``
        and ``order``. Returns when that is, if nothing disturbs the store until then.
        """
        self.bytes += size
        work = self._kept + -(-size * 1_000_000_000 // self._bandwidth)
        if self._operations is not None:
            work += round(operations * 1_000_000_000 / self._operations)
        while self._planned and self._planned[0].end <= self._kernel.now:
            self._planned.popleft()
        for asked, until in self._told:
            if self._kernel.now < until:
                asked()
        self._told.clear()
        request = _Request(work, rank, done, order)
        self._planned.append(request)
        self._plan(request)
        return request.end + self._away

    def tell(self, asked: Callable[[], None], until: int) -> None:
        """Call this once it is asked for something before ``until`` (ns), or now if it has to do."""
        if self.looked_up or any(request.end > self._kernel.now for request in self._planned):
            asked()
        else:
            self._told.append((asked, until))

    def _plan(self, request: _Request) -> None:
        request.begin = max(self.pace.free_at, self._kernel.now)
        takes = min(round(request.work * self.pace.factor), MAX_DURATION)
        request.end = self.pace.free_at = request.begin + takes
        self.pace.busy += takes
        request.plan += 1
        plan = request.plan

        def end() -> None:
            if request.plan == plan:
                request.done()

        self._kernel.at(request.end + self._away, request.rank, end, request.order)

    def _plan_anew(self, requests: list[_Request]) -> None:
        for request in requests:
            self.pace.busy -= request.end - request.begin
        for request in requests:
            self._plan(request)

    def slow(self, factor: float) -> None:
        """From now on a request that begins takes ``factor`` times as long; the one in service goes on."""
        now = self._kernel.now
        self.pace.factor = factor
        waiting = [request for request in self._planned if request.begin >= now and request.end > now]
        begun = (r.end for r in self._planned if r.begin < now)
        self.pace.free_at = max([now, self.pace.asked_until, *begun])
        self._plan_anew(waiting)

    def stop(self, until: int) -> None:
        """It is down until then: all requests wait, and the one in service begins anew."""
        now = self._kernel.now
        waiting = [request for request in self._planned if request.end > now]
        self.pace.busy += sum(now - request.begin for request in waiting if request.begin < now)  # in vain
        self.pace.free_at = max(until, self.pace.asked_until if waiting else self.pace.free_at)
        self._plan_anew(waiting)

    def busy_ns(self, now: int) -> int:
        """How long it has been busy up to ``now`` (ns)."""
        left = sum(r.end - max(r.begin, now) for r in self._planned if r.end > now)
        left += max(0, int(self.pace.asked_until) - now)
        return int(self.pace.busy - max(0, min(self.pace.free_at - now, left)))
