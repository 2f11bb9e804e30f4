"""How long a simulation takes, roughly: what there is to do, and what each of it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache

import numpy as np

from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario, deployment_of, topology_of
from tideover.models.engine import moves_compiled
from tideover.models.evaluation.undisturbed import without_failures
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.job.deployment import Deployment
from tideover.models.job.topology import Topology
from tideover.models.job.traffic import Floats, traffic
from tideover.models.runtime.core_sharing import PART, crowded, layered
from tideover.models.runtime.network import levels_of
from tideover.models.strategies.base import given
from tideover.models.time_of_day import heaviest
from tideover.models.world import SAMPLES
from tideover.sim.units import S

MOST_ROOTS = 10**10
"""Most roots that one run emits: an hour or more. A root's number has room for a hundred times as many."""

COSTS: Mapping[str, float] = {
    "tuples": 0.2e-6,
    "decisions": 1e-6,
    "moves": 70e-6,
    "trains": 6e-6,
    "turns": 23e-6,
    "singles": 1.8e-6,
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

    tuples     that tasks emit or work on, each replica for itself
    decisions  snapshots, ends of windows, rotations, triggers and faults, task by task and channel by channel
    moves      tasks that are moved to one of the moments at which something is decided or looked at
    trains     channels that have something to be moved then (queues that hold senders back: all of them)
    turns      tasks that are moved in short steps, as tasks of several levels of the topology share cores
    flows      tuples that the compiled data plane moves, task after task
    events     tuples that it moves in one order of events, as tasks feel one another
    actions    what is decided, or looked at, in a run that it moves
    built      tasks and channels of such a run, and the run itself
    singles    tuples that are moved one by one, as bounded queues meet cards or cores that are shared, times
               the tasks that are looked at for each
    """

    tuples: float = 0.0
    decisions: float = 0.0
    moves: float = 0.0
    trains: float = 0.0
    turns: float = 0.0
    singles: float = 0.0
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
        """Tuples that tasks emit or work on, whatever moves them."""
        return self.tuples + self.flows + self.events

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
        channels = self._channels()
        singly = one_by_one(self._deployment)
        cycle, tuples = self._strategy.cycle(), self._tuples()
        cycles = 0.0 if cycle is None else self._scenario.run.duration / cycle[1]
        ends, beats = self._windows()
        decisions = ends + cycles * (self._tasks + 2 * sum(n for n, _ in channels)) + self._faults()
        moments = _BASE + cycles + beats + self._timeouts() + self._looks()
        if moves_compiled(self._scenario):
            feel = self._feel_one_another()
            actions = moments + ends + cycles * self._tasks + self._faults()
            built = _ITSELF + self._tasks + sum(n for n, _ in channels)
            return Effort(flows=tuples * (not feel), events=tuples * feel, actions=actions, built=built)
        if singly:
            moments += decisions  # each of them moves everything
        return Effort(
            tuples=tuples,
            decisions=decisions,
            moves=moments * self._tasks,
            trains=sum(moments * n if singly else min(moments * n, sent) for n, sent in channels),
            turns=0.0 if singly else self._turns(),
            singles=tuples * self._tasks if singly else 0.0,
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

    def _channels(self) -> list[tuple[float, float]]:
        """How many there are of each stream, and how many tuples go over all of them."""
        found = []
        for edge in (edge for c in self._topology.components for edge in c.inputs):
            copies = self._copies[edge.up.name] * self._copies[edge.down.name]
            sent = float(self._rates[edge.name].sum()) * self._seconds * copies
            found.append((float(edge.up.tasks * edge.down.tasks * copies), sent))
        return found

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

    def _turns(self) -> float:
        """Tasks that share cores, times the short steps: one follows the other unless nothing happens."""
        hosts, topology = layered(self._deployment), self._topology
        places = self._deployment.hosts.items()
        here = [topology.by_name[name] for (name, _, _), host in places if host in hosts]
        bolts = [c for c in here if not c.is_spout]
        means = [mean for c in bolts if (mean := _service(topology, c.name)) > 0]
        if not means:
            return 0.0
        step = PART * min(means) / S
        events = 2 * sum(float(self._rates[e.name].sum()) / c.tasks for c in bolts for e in c.inputs)
        return len(bolts) * self._seconds / step * -math.expm1(-events * step)


def _service(topology: Topology, name: str) -> float:
    config = topology.by_name[name].config
    return config.service.mean_ns if isinstance(config, BoltConfig) else 0.0


def one_by_one(deployment: Deployment) -> bool:
    """Whether tuples may have to be moved one by one: queues that hold senders back, and cores that are
    shared, or a card for messages of several levels of the topology, so that what it has served may bring
    about what comes to it.
    """
    if not any(bound.holds_back for bound in deployment.bounds.values()):
        return False
    if crowded(deployment):
        return True
    topology, depth = deployment.topology, levels_of(deployment.topology)
    sending = {edge.up.name for c in topology.components for edge in c.inputs}
    levels: dict[tuple[int, bool], set[int]] = {}
    for (name, _, _), host in deployment.hosts.items():
        if deployment.cluster.hosts[host].nic is None:
            continue
        if name in sending:
            levels.setdefault((host, True), set()).add(depth[name])
        if not topology.by_name[name].is_spout:
            levels.setdefault((host, False), set()).add(depth[name])
    return any(len(found) > 1 for found in levels.values())
