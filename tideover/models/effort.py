"""How long a simulation takes, roughly: what there is to do, and what each of it costs."""

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
from tideover.models.job.topology import Floats, traffic
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

_BASE = 10
"""Moments of every run: its start, its end, and what is read then."""
_OF_A_FAULT = 10
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
        """Tuples that tasks emit or work on."""
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
    each = config.arrivals.expected(scenario.run.duration) / coarseness(scenario)
    each *= config.processes
    return each if limit is None else min(each, config.parallelism * float(limit))


def effort(scenario: Scenario) -> Effort:
    """What one replication has to do."""
    scenario = heaviest(scenario)
    found = _Run(scenario).effort
    return found + _Run(without_failures(scenario)).effort if scenario.failures else found


class _Run:
    """What is to be done in one run."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._strategy = scenario, scenario.strategy
        self._seconds = scenario.run.duration / S
        self._topology = topology_of(coarsened(scenario, coarseness(scenario)))
        self._deployment = deployment_of(scenario, topology=self._topology)
        self._rates: Mapping[str, Floats] = traffic(self._topology, scenario.run.duration)
        self._copies = self._deployment.replicas
        self._tasks = sum(c.tasks * self._copies[c.name] for c in self._topology.components)

    @property
    def effort(self) -> Effort:
        """All of it."""
        cycle, tuples = self._strategy.cycle(), self._tuples()
        cycles = 0.0 if cycle is None else self._scenario.run.duration / cycle[1]
        ends, beats = self._windows()
        moments = _BASE + cycles + beats + self._timeouts() + self._looks()
        feel = self._feel_one_another()
        return Effort(
            flows=tuples * (not feel),
            events=tuples * feel,
            actions=moments + ends + cycles * self._tasks + self._faults(),
            built=_ITSELF + self._tasks + self._channels(),
        )

    def _feel_one_another(self) -> bool:
        """Whether tasks share cores or cards, or wait for one another."""
        deployment = self._deployment
        bounded = any(bound.holds_back for bound in deployment.bounds.values())
        cards = any(host.nic is not None for host in deployment.cluster.hosts)
        capped = bool(given(self._strategy, self._strategy.spouts_wait))
        return bounded or cards or capped or bool(crowded(deployment))

    def _tuples(self) -> float:
        found = 0.0
        for c in self._topology.components:
            config = self._scenario.topology[c.name]
            if isinstance(config, SpoutConfig):
                found += roots(config, self._scenario)
            else:
                rate = sum(float(self._rates[edge.name].sum()) for edge in c.inputs)
                found += rate * self._copies[c.name] * self._seconds
        return found

    def _channels(self) -> int:
        edges = [edge for c in self._topology.components for edge in c.inputs]
        ends = [
            (e.up.tasks * self._copies[e.up.name], e.down.tasks * self._copies[e.down.name]) for e in edges
        ]
        return sum(up * down for up, down in ends)

    def _windows(self) -> tuple[float, float]:
        """Ends of windows, and the moments at which they are: those of ticks are at the same."""
        ends = beats = 0.0
        for c in self._topology.components:
            if c.window and c.window.beat:
                each = self._scenario.run.duration / c.window.beat
                tasks = c.tasks * self._copies[c.name]
                ends += each * tasks
                beats += each * (1 if c.trigger == "tick" else tasks)
        return ends, beats

    def _faults(self) -> float:
        found = 0.0
        for fault in self._scenario.failures:
            found += 1 if fault.every is None else self._scenario.run.duration / fault.every.mean_ns
        return _OF_A_FAULT * found

    def _timeouts(self) -> float:
        """Rotations of the maps in which spouts keep what may time out: two or so in each timeout."""
        outs = given(self._strategy, self._strategy.gives_up).values()
        spouts = sum(c.tasks for c in self._topology.components if c.is_spout)
        return 2 * spouts * self._scenario.run.duration / min(outs) if outs else 0.0

    def _looks(self) -> int:
        """Looks at how busy everything is, if anything is shared."""
        hosts = self._deployment.cluster.hosts
        return SAMPLES * any(host.nic is not None or host.cores is not None for host in hosts)
