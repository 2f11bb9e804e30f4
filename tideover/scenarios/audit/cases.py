"""What an audit lets fail: each kind of fault, on each victim, beside each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tideover.models import config
from tideover.models.world import World
from tideover.scenarios.audit.moments import Strike
from tideover.sim.faults.base import FAULTS, Fault

KINDS = ("lose_state", "crash_task", "crash_worker", "crash_host", "crash_rack", "pause", "partition")
"""What is let happen if nothing else is asked for: what can lose, or delay, tuples and state."""


class Victim(NamedTuple):
    """What a fault hits: its kind, the keys that say where, and the same in words."""

    kind: str
    where: tuple[tuple[str, Any], ...]
    name: str

    @property
    def place(self) -> str:
        """Its component, without the number of the task; a host, a rack."""
        return self.name.partition(".")[0].partition(" ")[0]


class Downtime(NamedTuple):
    """How long it takes until a failure is noticed, and what failed restarted (ns); None: the scenario's
    detector finds out.
    """

    detection: int
    restart: int
    detector: bool = False

    @property
    def keys(self) -> dict[str, int]:
        """As keys of a failure."""
        return {} if self.detector else {"detection": self.detection, "restart": self.restart}


class Case(NamedTuple):
    """Faults of one run, and the steps beside which they strike."""

    faults: tuple[Fault, ...]
    strikes: tuple[Strike, ...]
    victims: tuple[Victim, ...]

    @property
    def kinds(self) -> str:
        """The kinds of its faults."""
        return ", then ".join(victim.kind for victim in self.victims)

    def scenario(self, scenario: config.Scenario) -> config.Scenario:
        """The scenario with these faults, in one replication."""
        run = scenario.run.model_copy(update={"replications": 1})
        return scenario.model_copy(update={"failures": self.faults, "run": run})


def victims(world: World, kinds: Sequence[str], most: int) -> list[Victim]:
    """What each kind can hit: tasks (of each component the first ``most``, with their replicas), the roles of
    the strategy, and of workers, hosts and racks those that are more than one task.
    """
    job, deployment = world.job, world.job.deployment
    tasks = [task for task in job.tasks if task.index < most]
    found: list[Victim] = []
    for task in tasks:
        where = {"component": task.component.name, "task": task.index}
        replica = getattr(task, "replica", 0)
        if replica:
            where["replica"] = replica
        for kind in ("lose_state", "crash_task", "pause"):
            if kind != "lose_state" or task.component.keeps_state:
                found.append(Victim(kind, tuple(where.items()), task.name))
    found += [Victim("crash_task", (("component", role),), role) for role in _roles(world)]
    hosts = sorted({task.host for task in tasks})
    shared = [host for host in hosts if sum(task.host == host for task in job.tasks) > 1]
    found += [Victim("crash_host", (("host", host),), f"host {host}") for host in shared]
    found += [
        Victim("crash_worker", (("host", host), ("worker", 0)), f"worker 0 of host {host}") for host in shared
    ]
    racks = {deployment.cluster.hosts[host].rack for host in hosts if host < len(deployment.cluster.hosts)}
    if len(racks) > 1:
        found += [Victim("crash_rack", (("rack", rack),), f"rack {rack}") for rack in sorted(racks)]
    if len(hosts) > 1:
        found += [Victim("partition", (("hosts", (host,)),), f"host {host}") for host in hosts]
    return [victim for victim in found if victim.kind in kinds]


def _roles(world: World) -> list[str]:
    return sorted(world.scenario.strategy.roles)


def fault(victim: Victim, strike: Strike, downtime: Downtime) -> Fault:
    """The failure of a victim at a moment."""
    cls = FAULTS[victim.kind]
    lasts = downtime.keys if cls.kills else {"duration": downtime.detection + downtime.restart}
    turn = {} if strike.turn is None else {"turn": strike.turn}
    return cls.model_validate({"at": strike.at} | turn | dict(victim.where) | lasts)


def different(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Of cases with the same faults the first: a place after one step can be that before the next."""
    found: dict[tuple[Fault, ...], Case] = {}
    for case in cases:
        found.setdefault(case.faults, case)
    return tuple(found.values())


def single(strikes: Iterable[Strike], hit: Sequence[Victim], downtime: Downtime) -> Iterator[Case]:
    """Each victim, beside each step."""
    for strike in strikes:
        for victim in hit:
            yield Case((fault(victim, strike, downtime),), (strike,), (victim,))


def second(
    first: Case, strikes: Iterable[Strike], hit: Sequence[Victim], downtime: Downtime
) -> Iterator[Case]:
    """The same once more, during the recovery from a first fault."""
    for strike in strikes:
        for victim in hit:
            faults = (*first.faults, fault(victim, strike, downtime))
            yield Case(faults, (*first.strikes, strike), (*first.victims, victim))
