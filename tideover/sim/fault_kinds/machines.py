"""Machines that fail and are repaired all the time.

Scenarios name the kind, `Supervisor` asks it for crashes. How lives and repairs are drawn is changed here.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import model_validator

from tideover.sim.distributions import Constant, Distribution, Exponential
from tideover.sim.draws import Draws, Purpose
from tideover.sim.fault_kinds.crashes import CrashHost
from tideover.sim.faults import FAULTS, Fault, Site
from tideover.sim.registry import setting
from tideover.sim.units import DAY, MS

LIFETIME = 200 * DAY
"""Ten failures a day in 2,000 machines."""
_BLOCK = 32
"""Draws of a host at a time."""


@FAULTS.register("machines_fail")
class MachinesFail(Fault):
    """Every host crashes after a ``lifetime`` of its own, and begins another when it is repaired.

    By default a machine fails once in 200 days on average: ten failures a day in 2,000 machines. Lives are
    exponential (a rate) or what else there is; ``crews`` repair one machine each, first come, first served.
    A machine is down for detection and restart, and for as long as it waits and is repaired.
    """

    expands: ClassVar[bool] = True

    lifetime: Distribution = setting(
        "from a repair, or the start, to the next failure of a host", Exponential(mean=LIFETIME)
    )
    repair: Distribution = setting("how long the repair of a host takes", Constant(value=0))
    crews: int | None = setting("machines that are repaired at a time; default: any number", ge=1)

    @model_validator(mode="after")
    def _lives(self) -> MachinesFail:
        if self.lifetime.mean_ns < MS:
            raise ValueError("a lifetime must be at least 1 ms on average")
        return self

    @property
    def where(self) -> str:
        return "machines"

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        def drawn(spread: Distribution, what: str, host: int) -> Iterator[int]:
            for first in itertools.count(0, _BLOCK):
                numbers = np.arange(first, first + _BLOCK, dtype=np.int64)
                bits = draws.bits(f"failures.{index}.{what}.{host}", Purpose.FAULT, numbers)
                yield from np.maximum(spread.sample(bits), 1).tolist()

        lives = [drawn(self.lifetime, "lifetime", host) for host in range(site.hosts)]
        none = self.repair.mean_ns == 0
        repairs = [
            itertools.repeat(0) if none else drawn(self.repair, "repair", h) for h in range(site.hosts)
        ]
        coming = [(next(life), host) for host, life in enumerate(lives)]
        heapq.heapify(coming)
        free = [0] * (self.crews or site.hosts)  # when each crew is
        fields = {name: getattr(self, name) for name in ("detection", "restart", "while_down")}
        while coming and coming[0][0] <= site.end:
            moment, host = heapq.heappop(coming)
            begun = max(moment, heapq.heappop(free))
            over = begun + next(repairs[host])
            heapq.heappush(free, over)
            yield moment, CrashHost(at=moment, host=host, repair=over - moment, **fields)
            heapq.heappush(coming, (over + next(lives[host]), host))
