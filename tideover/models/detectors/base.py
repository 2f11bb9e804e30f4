"""How failures are noticed: what a detector is, and the simplest one.

The supervisor (`tideover.models.runtime.supervision`) asks a detector's ``watch`` when what a fault has hit
is noticed, and back. A new detector is a file here, with a subclass of `Detector` and one of `Watcher`.
`heartbeats` asks a restart strategy how long to wait before a restart: a new one is a class in this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import model_validator

from tideover.models.job.components import Host
from tideover.models.runtime.job import Job
from tideover.models.runtime.supervision import Watch
from tideover.models.runtime.views import Outage, Return
from tideover.sim.distributions import Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.faults import Fault
from tideover.sim.registry import Part, Registry, setting
from tideover.sim.units import Duration, Positive, S, format_duration

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
    rescales: ClassVar[bool] = False
    """Whether planned stops may change numbers of tasks."""
    false_detections: ClassVar[bool] = False
    """Whether it can take for dead what lives: a failure of the kind ``false_detection``."""

    @property
    def tries_again(self) -> bool:
        """Whether a restart may fail itself."""
        return False

    @property
    def moves_tasks(self) -> bool:
        """Whether tasks may be restarted on other hosts than they were on."""
        return False

    def watch(self, job: Job) -> Watch:
        raise NotImplementedError


@DETECTORS.register("given")
class Given(Detector):
    """Each fault's own ``detection`` and ``restart``: what a scenario without ``detector`` has."""

    by_fault = rescales = True

    def watch(self, job: Job) -> Watch:
        return Watch()


class Watcher(Watch):
    """What watches that notice by heartbeats have in common."""

    def __init__(self, job: Job) -> None:
        self._job, self._kernel, self._draws = job, job.kernel, job.draws
        self._hosts = job.deployment.cluster.hosts
        self._repairs = Repairs(self._hosts)

    def stopped(self, victims: Sequence[Any], outage: Outage, gone: Fault | None) -> dict[Any, Return]:
        if gone is not None:
            self._repairs.struck(gone, self._kernel.now)
        return super().stopped(victims, outage, gone)

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
            if fault.breaks(host.rack, host.number):
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


RESTARTS: Registry[RestartStrategy] = Registry("restart strategy")


class Earlier(NamedTuple):
    """A restart: when its failure was noticed, and when it was over, or the next one noticed (ns)."""

    noticed: int
    ready: int


class RestartStrategy(Part):
    """How long a restart waits after a failure was noticed.

    Subclasses register themselves with ``@RESTARTS.register(name)`` and give ``wait``.
    """

    kind: ClassVar[str]

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        """How long to wait after a failure ``noticed`` then (ns), and ``earlier`` ones; None: give up."""
        raise NotImplementedError


@RESTARTS.register("exponential_delay")
class ExponentialDelay(RestartStrategy):
    """The first restart waits for ``initial``, each one after it ``factor`` times as long, at most ``most``.

    Once it has run for ``reset_after`` without a failure, the next restart is a first one. Apache Flink,
    ``restart-strategy.type: exponential-delay``, with its defaults, without jitter.
    """

    initial: Positive = setting("how long the first restart waits", S)
    factor: float = setting("by which each wait is longer", 1.5, ge=1, le=1000)
    most: Positive = setting("longest wait; at least initial", 60 * S)
    reset_after: Positive = setting("time without a failure after which waits begin anew", 3600 * S)

    @model_validator(mode="after")
    def _in_order(self) -> ExponentialDelay:
        if self.initial > self.most:
            longest = format_duration(self.most)
            raise ValueError(
                f"initial ({format_duration(self.initial)}) must not be longer than most ({longest})"
            )
        return self

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        in_a_row, later = 0, noticed
        for one in reversed(earlier):
            if later - one.ready >= self.reset_after:
                break
            in_a_row, later = in_a_row + 1, one.noticed
        delay = float(self.initial)
        for _ in range(in_a_row):
            delay = min(delay * self.factor, self.most)
        return round(delay)


@RESTARTS.register("failure_rate")
class FailureRate(RestartStrategy):
    """Each restart waits for ``delay``, unless more than ``most_failures`` were noticed ``within`` a span.

    Apache Flink, ``restart-strategy.type: failure-rate``, with its defaults.
    """

    delay: Duration = setting("how long each restart waits", S)
    most_failures: int = setting("most failures in the span", 1, ge=1, le=10**9)
    within: Positive = setting("the span", 60 * S)

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        recent = sum(noticed - one.noticed < self.within for one in earlier)
        return self.delay if recent < self.most_failures else None


@RESTARTS.register("fixed_delay")
class FixedDelay(RestartStrategy):
    """Each restart waits for ``delay``; after ``attempts`` of them there is no other.

    Apache Flink, ``restart-strategy.type: fixed-delay``.
    """

    delay: Duration = setting("how long each restart waits", 10**9)
    attempts: int | None = setting("most restarts; default: any number", ge=0)

    def wait(self, noticed: int, earlier: Sequence[Earlier]) -> int | None:
        if self.attempts is not None and len(earlier) >= self.attempts:
            return None
        return self.delay
