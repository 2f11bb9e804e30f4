"""What a simulation is told: one frozen object, the whole scenario.

Durations are integer nanoseconds, sizes integer bytes, rates tuples per second: units are parsed at the border.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tideover.models.arrivals.base import ARRIVALS, Arrivals
from tideover.models.bolts.base import BOLTS, Bolt
from tideover.models.groupings.base import GROUPINGS, Grouping
from tideover.models.spouts.base import SPOUTS, Spout
from tideover.models.strategies.base import STRATEGIES, Strategy
from tideover.sim.distributions.base import DISTRIBUTIONS, Distribution
from tideover.sim.faults.base import FAULTS, Fault
from tideover.sim.registry import Part
from tideover.sim.units import Bandwidth, Duration, Size

__all__ = ["ARRIVALS", "BOLTS", "DISTRIBUTIONS", "FAULTS", "GROUPINGS", "SPOUTS", "STRATEGIES"]


class SpoutConfig(Part):
    """A component that emits roots."""

    spout: Spout
    arrivals: Arrivals
    parallelism: Annotated[int, Field(ge=1, le=1024)] = 1
    tuple_size: Size = 256
    hosts: tuple[int, ...] | None = None


class BoltConfig(Part):
    """A component that consumes streams: what it does, from where, and how long a tuple takes."""

    bolt: Bolt
    from_: dict[str, Grouping]
    service: Distribution
    parallelism: Annotated[int, Field(ge=1, le=1024)] = 1
    tuple_size: Size = 256
    hosts: tuple[int, ...] | None = None


class Links(Part):
    """Latency between hosts. A pair is written ``"0-1"`` and holds for both directions.

    ``latency``: between different hosts (a distribution with spread is jitter); ``local``: within one host.
    """

    latency: Distribution
    local: Distribution
    pairs: dict[str, Distribution] = {}


class Store(Part):
    """The store for checkpoints: one request after the other, each ``latency`` plus bytes / ``bandwidth`` (bytes/s)."""

    latency: Duration = 1_000_000
    bandwidth: Bandwidth = 100 * 2**20


class Run(Part):
    """How long, how often, with which luck."""

    duration: Duration
    warmup: Duration = 0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    replications: Annotated[int, Field(ge=1, le=100_000)] = 1
    log_resolution: Duration | None = None


class Scenario(Part):
    """Everything that one simulation depends on."""

    name: str
    description: str = ""
    topology: dict[str, SpoutConfig | BoltConfig]
    strategy: Strategy
    failures: tuple[Fault, ...] = ()
    hosts: Annotated[int, Field(ge=1, le=100_000)] | None = None
    links: Links
    store: Store = Store()
    run: Run

    def with_strategy(self, strategy: Strategy) -> Scenario:
        """The same scenario under another strategy."""
        return self.model_copy(update={"strategy": strategy})


def dump(scenario: Scenario) -> dict[str, Any]:
    """The scenario as plain data, for a result that stores its whole configuration."""
    return scenario.model_dump(mode="json")
