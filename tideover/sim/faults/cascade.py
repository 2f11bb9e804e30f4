"""A host dies, and others with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults.base import FAULTS, Fault, Site
from tideover.sim.faults.crash_host import CrashHost
from tideover.sim.units import Duration


@FAULTS.register("cascade")
class Cascade(CrashHost):
    """A host crashes, and each of the ``others`` does too, with a ``probability``, some time within ``span``.

    Failures that come together: D. Ford et al., *Availability in globally distributed storage systems*, OSDI
    2010, section 4 (about 37 % of the failures of nodes were parts of bursts).
    """

    others: Annotated[
        tuple[int, ...] | None, Field(description="hosts that may follow; default: all others")
    ] = None
    probability: Annotated[float, Field(ge=0, le=1, description="that one of them follows")] = 0.5
    span: Annotated[Duration, Field(description="those that follow do so within this time")] = 0

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        others = self.others if self.others is not None else range(site.hosts)
        shared = ("detection", "restart", "while_down", "repair")
        fields = {name: getattr(self, name) for name in shared}
        found: list[tuple[int, Fault]] = []
        for n, moment in enumerate(self.moments(index, draws, site.end, site.cycle)):
            found.append((moment, CrashHost(at=moment, host=self.host, **fields)))
            for host in others:
                bits = draws.bits(f"failures.{index}.{host}", Purpose.FAULT, np.array([2 * n, 2 * n + 1]))
                follows, delay = uniform01(bits).tolist()
                if host != self.host and follows < self.probability:
                    later = moment + int(delay * self.span)
                    found.append((later, CrashHost(at=later, host=host, **fields)))
        yield from sorted(found, key=lambda strike: strike[0])
