"""Small worlds: a short way to write one down."""

from __future__ import annotations

from typing import Any

from tideover.models.config import Scenario
from tideover.models.job.arrivals import Periodic
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Run, SpoutConfig, Store, WhenFull
from tideover.models.job.groupings import GROUPINGS
from tideover.models.job.spouts import SPOUTS
from tideover.models.operators.base import BOLTS
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.faults import FAULTS

MS = 1_000_000
ONES = {"kind": "values", "values": (1,), "repeat": True}
"""A spout whose tuples have the value 1, for good."""
_OUTER = ("parallelism", "max_parallelism", "hosts")


def ms(value: float) -> Constant:
    """Always so many milliseconds."""
    return Constant(value=round(value * MS))


def spout(kind: str = "keys", gap: float = 10, offset: float | None = 0, **more: Any) -> SpoutConfig:
    """A spout that is called every ``gap`` ms, from ``offset`` ms."""
    outer = {name: more.pop(name) for name in (*_OUTER, "arrivals", "event_delay") if name in more}
    fixed = None if offset is None else round(offset * MS)
    outer.setdefault("arrivals", Periodic(pause=round(gap * MS), fixed_offset=fixed))
    return SpoutConfig(spout=SPOUTS[kind](**more), **outer)


def bolt(kind: str, inputs: dict[str, str], service: Distribution | float = 0, **more: Any) -> BoltConfig:
    """A bolt; ``inputs``: {upstream: name of the grouping}; ``service``: a distribution, or milliseconds."""
    outer = {name: more.pop(name) for name in _OUTER if name in more}
    from_ = {
        up: GROUPINGS[kind](**({"fields": ("key",)} if kind == "fields" else {}))
        for up, kind in inputs.items()
    }
    time = service if isinstance(service, Distribution) else ms(service)
    return BoltConfig(bolt=BOLTS[kind](**more), from_=from_, service=time, **outer)


def queued(
    config: Any, length: int | None = None, when_full: WhenFull | None = None, send: int | None = None
) -> Any:
    """The component with a queue of its own."""
    given = QueueSettings(length=length, when_full=when_full, send=send)
    return config.model_copy(update={"queue": given})


def fault(kind: str, at: float, **more: Any) -> Any:
    """A fault ``at`` milliseconds; ``detection`` and ``restart`` too are in milliseconds."""
    times = {name: round(more.pop(name) * MS) for name in ("detection", "restart") if name in more}
    return FAULTS[kind](at=round(at * MS), **times, **more)


def world(
    topology: dict[str, SpoutConfig | BoltConfig],
    strategy: str = "none",
    failures: tuple[Any, ...] = (),
    until: float = 100,
    seed: int = 1,
    **more: Any,
) -> Scenario:
    """``until``: milliseconds; links without latency, an instant store; ``more`` goes to the strategy."""
    outer = {name: more.pop(name) for name in ("hosts", "links", "store") if name in more}
    outer.setdefault("links", Links(latency=ms(0), local=ms(0)))
    outer.setdefault("store", Store(latency=0, bandwidth=2**50))
    return Scenario(
        name="small",
        topology=topology,
        strategy=STRATEGIES[strategy](**more),
        failures=failures,
        run=Run(duration=round(until * MS), seed=seed),
        **outer,
    )
