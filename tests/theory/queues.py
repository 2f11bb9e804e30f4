"""Queues as worlds of the engine, and what they say about the mean time in the system.

Means come from independent replications: each starts empty, its warm-up is cut off, and its mean over the
rest is one observation. Replications share nothing (their draws have different keys), so Student's t holds
for the observations whatever the correlation within a run; batch means would need batches longer than the
correlation, which at a load of 0.95 is thousands of services (A. M. Law, *Simulation Modeling and Analysis*,
section 9.5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.stats

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.components import BoltConfig, Links, Run, SpoutConfig
from tideover.models.job.groupings import GROUPINGS
from tideover.models.job.spouts import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.kernel import standing
from tideover.sim.units import S

SERVICE = 10_000
"""Mean service, ns: a second holds tens of thousands of tuples, and rounding to a nanosecond is nothing."""
REPLICATIONS = 20


class Estimate(NamedTuple):
    """A mean, and half the width of its 99.9 % confidence interval."""

    mean: float
    half: float

    def covers(self, value: float) -> bool:
        return abs(self.mean - value) <= self.half


def estimate(observations: list[float]) -> Estimate:
    """Student's interval of independent observations."""
    n = len(observations)
    t = float(scipy.stats.t.isf(0.0005, n - 1))
    return Estimate(float(np.mean(observations)), t * float(np.std(observations, ddof=1)) / math.sqrt(n))


def bolt(source: str, service: Distribution, grouping: str = "shuffle", tasks: int = 1) -> BoltConfig:
    how = GROUPINGS[grouping](**({"fields": ("key",)} if grouping == "fields" else {}))
    return BoltConfig(bolt=BOLTS["forward"](), from_={source: how}, service=service, parallelism=tasks)


def queue(gap: int, bolts: dict[str, BoltConfig], seconds: float, seed: int, keys: int = 1) -> Scenario:
    """Poisson arrivals with a mean gap of ``gap`` ns; no failures, no strategy, links that take no time."""
    source = SpoutConfig(spout=SPOUTS["keys"](keys=keys), arrivals=Poisson(rate=1e9 / gap))
    return Scenario(
        name="queue",
        topology={"source": source, **bolts},
        strategy=STRATEGIES["none"](),
        links=Links(latency=Constant(value=0), local=Constant(value=0)),
        run=Run(duration=round(seconds * S), seed=seed),
    )


def sojourn(scenario: Scenario, warmup: int = 1) -> Estimate:
    """Mean time (ns) from emission to the end of the last service, without the first ``warmup`` seconds."""
    return estimate([_mean_of_one(scenario, number, warmup) for number in range(REPLICATIONS)])


@standing()  # the world goes when it ends: twenty of them take gigabytes
def _mean_of_one(scenario: Scenario, replication: int, warmup: int) -> float:
    world = World(scenario, replication)
    world.run()
    last = scenario.run.duration // S
    part = world.recorder.latency.over(np.ones(last - warmup, np.bool_), warmup)
    assert part.mean is not None
    balance = world.balance()
    assert balance["lost"] == 0
    assert balance["emitted"] == balance["completed"] + balance["in_flight"]
    return part.mean
