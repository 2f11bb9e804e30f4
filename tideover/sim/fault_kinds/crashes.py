"""Crashes of tasks, workers, hosts and racks.

Scenarios name them, `Supervisor` lets them strike. A kind that crashes what none does is a class here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults import (
    FAULTS,
    Fault,
    HostFault,
    MachineFault,
    Site,
    Target,
    TaskFault,
)
from tideover.sim.registry import setting
from tideover.sim.units import Duration


@FAULTS.register("crash_host")
class CrashHost(HostFault, MachineFault):
    """Every task on the host crashes at once, the acker too if it lives there."""

    def breaks(self, host: int, rack: int) -> bool:
        return host == self.host


@FAULTS.register("cascade")
class Cascade(CrashHost):
    """A host crashes, and each of the ``others`` does too, with a ``probability``, some time within ``span``.

    Failures that come together: D. Ford et al., *Availability in globally distributed storage systems*, OSDI
    2010, section 4 (about 37 % of the failures of nodes were parts of bursts).
    """

    others: tuple[int, ...] | None = setting("hosts that may follow; default: all others")
    probability: float = setting("that one of them follows", 0.5, ge=0, le=1)
    span: Duration = setting("those that follow do so within this time", 0)

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


@FAULTS.register("crash_rack")
class CrashRack(MachineFault):
    """Every host of the rack crashes at once: its switch or its power is gone."""

    rack: Annotated[int, Field(ge=0, description="number of the rack")]

    @property
    def where(self) -> str:
        return f"rack {self.rack}"

    def breaks(self, host: int, rack: int) -> bool:
        return rack == self.rack

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in_rack(self.rack)


@FAULTS.register("crash_task")
class CrashTask(TaskFault):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.
    """

    omitted: ClassVar[frozenset[str]] = TaskFault.omitted | {"together"}

    together: int = setting("so many tasks of the component die at once, from `task` on", 1, ge=1, le=1024)

    @property
    def numbers(self) -> range:
        return range(self.task, self.task + self.together)


@FAULTS.register("crash_worker")
class CrashWorker(HostFault):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host)."""

    worker: int = setting("number of the worker on that host", 0, ge=0)

    @property
    def where(self) -> str:
        return f"worker {self.worker} of host {self.host}"

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in(self.host, self.worker)
