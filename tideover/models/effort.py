"""How long a simulation takes, roughly: what there is to do, and what each of it costs. Asked before a run,
by the command line, sweeps and searches; ``COSTS`` are fitted anew by `benchmarks/effort.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache

import numpy as np

from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario, deployment_of, heaviest, topology_of
from tideover.models.evaluation.undisturbed import without_failures
from tideover.models.job.components import SpoutConfig
from tideover.models.job.topology import traffic
from tideover.models.runtime.context import crowded
from tideover.models.strategies.base import given
from tideover.models.world import SAMPLES
from tideover.sim.units import S

MOST_ROOTS = 10**10
"""Most roots that one run emits: an hour or more. A root's number has room for a hundred times as many."""

COSTS: Mapping[str, float] = {
    "flows": 0.12e-6,
    "events": 0.34e-6,
    "actions": 28e-6,
    "built": 26e-6,
}
"""What one of each takes (s), on a machine that does ``slowness``'s probe in ``_PROBE_S``: fitted by
`python -m benchmarks.effort --fit`.
"""

_BASE, _OF_A_FAULT = 10, 10
"""Moments of every run (its start, its end, and what is read then), and of each fault."""
_ITSELF = 80
"""A run, as so many tasks that are built."""
_PROBE_S = 0.0062


@dataclass(frozen=True)
class Effort:
    """Of one replication; with failures that of the run without them, too, which it is held against.

    flows      tuples that tasks emit or work on, each replica for itself, task after task
    events     the same, in one order of events, as tasks feel one another
    actions    snapshots, ends of windows, triggers and faults, task by task, and looks at what is shared
    built      tasks and channels, and the run itself
    """

    flows: float = 0.0
    events: float = 0.0
    actions: float = 0.0
    built: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: float) -> Effort:
        return Effort(*(times * each for each in astuple(self)))

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by what they go into, on one core of the machine of ``COSTS``."""
        return {field.name: COSTS[field.name] * getattr(self, field.name) for field in fields(self)}

    @property
    def moved(self) -> float:
        return self.flows + self.events

    @property
    def seconds(self) -> float:
        """How long it takes on one core of that machine: the same wherever it is asked."""
        return sum(self.parts.values())


@cache
def slowness() -> float:
    """How many times as long as on the machine of ``COSTS`` things take here, by a probe of some ms."""
    took = []
    for _ in range(3):
        begun = time.process_time()
        numbers = np.arange(20_000, dtype=np.int64)
        for i in range(20):
            np.cumsum(np.sort(numbers * 7919 % 20_011 + i))
        seen: dict[int, int] = {}
        for i in range(30_000):
            seen[i % 1_000] = seen.get(i % 1_000, 0) + i
        took.append(time.process_time() - begun)
    return min(took) / _PROBE_S


def roots(config: SpoutConfig, scenario: Scenario) -> float:
    """How many roots a component emits in a run, lumps taken as one each."""
    limit = config.spout.limit
    each = config.arrivals.expected(scenario.run.duration) / coarseness(scenario) * config.processes
    return each if limit is None else min(each, config.parallelism * float(limit))


def effort(scenario: Scenario) -> Effort:
    """What a replication has to do; where the time of day is drawn, the one with the most."""
    scenario = heaviest(scenario)
    found = _of_a_run(scenario)
    return found + _of_a_run(without_failures(scenario)) if scenario.failures else found


def _of_a_run(scenario: Scenario) -> Effort:
    strategy, duration = scenario.strategy, scenario.run.duration
    topology, deployment = topology_of(coarsened(scenario)), deployment_of(scenario)
    rates = traffic(topology, duration)
    copies, hosts = deployment.replicas, deployment.cluster.hosts
    tasks = {c.name: c.tasks * copies[c.name] for c in topology.components}
    every = sum(tasks.values())

    tuples = ends = channels = 0.0
    moments: float = _BASE
    for c in topology.components:
        config = scenario.topology[c.name]
        channels += sum(tasks[edge.up.name] * tasks[c.name] for edge in c.inputs)
        if isinstance(config, SpoutConfig):
            tuples += roots(config, scenario)
            continue
        rate = sum(float(rates[edge.name].sum()) for edge in c.inputs)
        tuples += rate * copies[c.name] * duration / S
        if c.window and c.window.beat:  # those of ticks end at the same moments
            each = duration / c.window.beat
            ends += each * tasks[c.name]
            moments += each * (1 if c.trigger == "tick" else tasks[c.name])

    cycle = strategy.cycle()
    cycles = 0.0 if cycle is None else duration / cycle[1]
    cards = any(host.nic is not None for host in hosts)
    moments += cycles + SAMPLES * (cards or any(host.cores is not None for host in hosts))
    timeouts = given(strategy, strategy.gives_up).values()
    if timeouts:  # the maps in which spouts keep what may time out rotate two times or so in each timeout
        moments += 2 * sum(tasks[c.name] for c in topology.spouts) * duration / min(timeouts)
    faults = sum(1 if f.every is None else duration / f.every.mean_ns for f in scenario.failures)

    bounded = any(bound.holds_back for bound in deployment.bounds.values())
    feel = bounded or cards or bool(given(strategy, strategy.spouts_wait)) or bool(crowded(deployment))
    return Effort(
        flows=tuples * (not feel),
        events=tuples * feel,
        actions=moments + ends + cycles * every + _OF_A_FAULT * faults,
        built=_ITSELF + every + channels,
    )
