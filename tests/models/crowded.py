"""Worlds whose hosts have more tasks than cores, the same in the engine and in the per-tuple reference."""

from __future__ import annotations

import random
from typing import Any

from tests.models.chain import ONES as ONES  # the tests of such worlds take it from here
from tests.oracle.program import play
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.job.arrivals import Poisson
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.world import World
from tideover.sim.distributions import Exponential

Row = tuple[str, int, int, int, int, int, int]


def machines(count: int, cores: int | None) -> Hosts:
    """So many hosts with so many cores."""
    return Hosts(machines={"m": MachineType(count=count, cores=cores)})


def chain(
    rate: float,
    levels: int = 1,
    tasks: int = 2,
    hosts: Hosts | None = None,
    failures: tuple[Any, ...] = (),
    until: float = 2000,
    latency: float = 0,
    seed: int = 1,
) -> Scenario:
    """s ──▶ b0 ──▶ b1 ──▶ …: so many levels of ``tasks`` each that take 1 ms on average (exponential), fed by
    ``rate`` tuples/s (Poisson). ``latency``: between hosts (ms).
    """
    topology: dict[str, Any] = {"s": spout("keys", keys=10, arrivals=Poisson(rate=rate), hosts=(0,))}
    up = "s"
    for level in range(levels):
        topology[f"b{level}"] = bolt("forward", {up: "shuffle"}, Exponential(mean=MS), parallelism=tasks)
        up = f"b{level}"
    links = Links(latency=ms(latency), local=ms(0))
    return world(topology, "none", failures, until, seed, hosts=hosts or machines(1, 1), links=links)


def processed(scenario: Scenario) -> tuple[list[Row], list[Row]]:
    """(component, task, replica, uid, attempt, arrival, departure) of all tuples, in the reference and in the
    engine.
    """
    ours = World(scenario, trace=True)
    ours.run()
    return sorted(play(scenario).trace.processed), sorted(ours.trace.processed)


def troubled(seed: int) -> Scenario:
    """One level on one or two cores, with a crash, pauses, a loss of state, a crash of the host, or a time in
    which it is slow.
    """
    chance = random.Random(seed)
    cores = chance.choice((1, 1, 2))
    tasks = cores + chance.choice((1, 1, 2, 3))
    hit = {"component": "b0", "task": chance.randrange(tasks)}
    down = {"detection": chance.choice((0, 20)), "restart": 30, "while_down": chance.choice(("drop", "hold"))}
    kinds = {
        "crash_task": hit | down,
        "lose_state": hit | down,
        "crash_host": {"host": 0} | down,
        "pause": hit | {"duration": chance.choice((5, 120)) * MS},
        "slow_host": {"host": 0, "factor": chance.choice((0.3, 0.5)), "duration": 150 * MS},
    }
    chosen = [(kind, chance.uniform(20, 300)) for kind in chance.choices(sorted(kinds), k=3)]
    failures = tuple(fault(kind, at, **kinds[kind]) for kind, at in chosen)
    rate = chance.choice((0.5, 0.9, 1.2)) * 1000 * cores
    return chain(rate, 1, tasks, machines(1, cores), failures, until=450, seed=seed)


def moving(seed: int) -> Scenario:
    """One level on three hosts with a core or two each, of which some crash, or are slow for a while:
    tasks are restarted in free slots.
    """
    chance = random.Random(seed)
    cores = chance.choice((1, 1, 2))
    slots = chance.choice((None, 3, 4))
    hosts = Hosts(machines={"m": MachineType(count=3, cores=cores, slots=slots)})
    found = []
    for _ in range(chance.choice((1, 2, 3))):
        at, host = chance.uniform(20, 250), chance.randrange(3)
        repair = chance.choice((0, 60, 1000)) * MS
        more = {"while_down": chance.choice(("drop", "hold")), "repair": repair}
        slow = {"factor": 0.4, "duration": 100 * MS}
        kind = chance.choice(("crash_host", "crash_host", "slow_host"))
        found.append(fault(kind, at, host=host, **(slow if kind == "slow_host" else more)))
    rate = chance.choice((0.5, 0.8)) * 3000 * cores
    latency = chance.choice((0, 0.3))
    scenario = chain(rate, 1, chance.choice((4, 5)), hosts, tuple(found), 350, latency, seed)
    detector = Heartbeats(interval=5 * MS, timeout=20 * MS, launch=ms(3), restart_on="free_slot")
    return scenario.model_copy(update={"detector": detector})
