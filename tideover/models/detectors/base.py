"""How failures are noticed: what a detector is, and the simplest one.

The supervisor (`tideover.models.runtime.supervision`) asks a detector's ``watch`` when what a fault has hit
is noticed, and back. A new detector is a file here, with a subclass of `Detector` and one of `Watcher`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from tideover.models.job.components import Host
from tideover.models.runtime.job import Job
from tideover.models.runtime.supervision import Watch
from tideover.sim.distributions import Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.faults import Fault
from tideover.sim.registry import Part, Registry

DETECTORS: Registry[Detector] = Registry("detector")


class Detector(Part):
    """How failures are noticed, and what they hit is restarted.

    Subclasses register themselves with ``@DETECTORS.register(name)`` and give ``watch``, which does it in
    one simulation.
    """

    kind: ClassVar[str]
    by_fault: ClassVar[bool] = False
    """Whether each fault says itself how long detection and restart take."""
    each_alone: ClassVar[bool] = False
    """Whether it brings tasks back one by one: it does not go with a job that fails as one."""
    false_detections: ClassVar[bool] = False
    """Whether it launches what it takes for dead anew, as after a failure of the kind ``false_detection``."""

    @property
    def moves_tasks(self) -> bool:
        """Whether tasks may be restarted on other hosts than they were on."""
        return False

    def watch(self, job: Job) -> Watch:
        raise NotImplementedError


@DETECTORS.register("given")
class Given(Detector):
    """Each fault's own ``detection`` and ``restart``: what a scenario without ``detector`` has."""

    by_fault: ClassVar[bool] = True

    def watch(self, job: Job) -> Watch:
        return Watch()


class Watcher(Watch):
    """What watches that notice by heartbeats have in common."""

    def __init__(self, job: Job) -> None:
        self._job, self._kernel, self._draws = job, job.kernel, job.draws
        self._hosts = job.deployment.cluster.hosts
        self._repairs = Repairs(self._hosts)

    def _drawn(self, spread: Distribution, name: str, purpose: Purpose, number: int) -> int:
        """The draw for the outage, or rebalance, of that number (ns)."""
        return int(spread.sample(self._draws.bits(name, purpose, np.array([number])))[0])


class Repairs:
    """Until when nothing can be launched on each host, because it has failed and is repaired."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._until: dict[int, int] = {}

    def struck(self, fault: Fault, now: int) -> None:
        for host in self._hosts if fault.out_of_order else ():
            if fault.breaks(host.number, host.rack):
                self._until[host.number] = max(self.over(host.number), now + fault.out_of_order)

    def over(self, host: int) -> int:
        """When its newest repair is over (ns); 0: it has had none."""
        return self._until.get(host, 0)


def phase(draws: Draws, name: str, period: int, number: int = 0) -> int:
    """When something that comes every ``period`` comes first: uniform in [0, period), by name (ns)."""
    return draws.moment(name, Purpose.HEARTBEAT, period, number)


def last_beat(now: int, first: int, period: int, before: int = 0) -> int:
    """The newest of the moments ``first`` + k * ``period`` (ns); ``before`` there is one: that."""
    return before if now < first else first + (now - first) // period * period


def in_order(tasks: Iterable[Any]) -> list[Any]:
    """Tasks and machines in physical order."""
    return sorted(tasks, key=lambda task: task.number)
