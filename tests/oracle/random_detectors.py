"""Random small worlds in which heartbeats are missed."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.models.detectors.restarts import RESTARTS
from tideover.sim.registry import kind_of

from .random_times import TICK, times
from .random_worlds import overlapping, worlds
from .worlds import ms

HEARD = ("none", "source_replay", "rsm", "active_replication", "aligned_snapshots")
"""Strategies whose tasks are processes."""


@st.composite
def _restarts(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from((None, "fixed_delay", "exponential_delay", "failure_rate")))
    if kind is None:
        return None
    more: dict[str, Any] = {"delay": draw(st.sampled_from((0, 3, 8))) * TICK}
    if kind == "fixed_delay":
        more["attempts"] = draw(st.sampled_from((None, None, 0, 1, 2)))
    if kind == "failure_rate":
        more |= {"most_failures": draw(st.integers(1, 3)), "within": draw(st.sampled_from((20, 60))) * TICK}
    if kind == "exponential_delay":
        initial, factor = draw(st.sampled_from((1, 4))) * TICK, draw(st.sampled_from((1.0, 1.5, 2.0)))
        most, reset = draw(st.sampled_from((4, 7))) * TICK, draw(st.sampled_from((5, 30, 500))) * TICK
        more = {"initial": initial, "factor": factor, "most": most, "reset_after": reset}
    return RESTARTS[kind](**more)


@st.composite
def heard(draw: st.DrawFn, strategies: tuple[str, ...] = HEARD) -> Scenario:
    """A random world with a listener, in which nothing is merely stopped, and with time to recover."""
    failing = worlds(strategies).filter(lambda found: found.failures)
    scenario = draw(st.one_of(failing, overlapping(strategies)))
    others = [fault for fault in scenario.failures if kind_of(fault) != "pause"]
    failures = tuple(fault.model_copy(update={"detection": 0, "restart": 0}) for fault in others)
    longer = scenario.run.model_copy(update={"duration": scenario.run.duration + 50 * TICK})
    changes = {"failures": failures, "run": longer, "detector": draw(listening())}
    return scenario.model_copy(update=changes)


@st.composite
def listening(draw: st.DrawFn) -> Any:
    """Heartbeats."""
    ties = draw(st.booleans())
    interval = draw(st.sampled_from((3, 5, 10)))
    timeout = interval + draw(st.sampled_from((0, 1, 10, 20)))

    def spread(*small: float) -> Any:
        return ms(draw(times(ties, *small)))

    return DETECTORS["heartbeats"](
        interval=interval * TICK,
        timeout=timeout * TICK,
        launch=spread(0, 2, 9, 30),
        prepare=spread(0, 1, 5),
        restarts=draw(_restarts()),
    )
