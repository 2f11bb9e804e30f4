"""Where heartbeats are missed too the engine equals the per-tuple reference, in which each is an event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.chain import chain, crashed, lost
from tests.models.test_exactness import QUICK, SHARED, differences
from tests.oracle.random_detectors import HEARD, heard
from tests.oracle.worlds import MS, ms
from tideover.models.config import Scenario
from tideover.models.detectors.consumer_group import ConsumerGroup
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.models.detectors.restarts import ExponentialDelay
from tideover.models.strategies.base import STRATEGIES

TOLD = ("detected_at_s", "ready_at_s", "detect_s", "delay_s", "launch_s", "prepare_s", "restart_s")
"""Of each failure; figures that ask when it was over are compared where faults say how long they last."""


def otherwise(scenario: Scenario) -> dict[str, Any]:
    """What has not happened as in the reference."""
    found = differences(scenario)
    over = {name for name in found if name[0].isdigit() or name.startswith(("latency ", "end_to_end "))}
    return {name: both for name, both in found.items() if name not in over or name.endswith(TOLD)}


@pytest.mark.parametrize("strategy", HEARD)
def test_the_engine_equals_the_reference_with_heartbeats(strategy: str) -> None:
    @settings(QUICK, max_examples=6)
    @given(heard((strategy,)))
    def check(scenario: Scenario) -> None:
        assert not otherwise(scenario)

    check()


AT_ONCE = {
    "lost and dead": (lost(30), crashed(30, 0)),
    "lost twice and dead": (lost(30), lost(30), crashed(30, 0)),
    "lost, dead, lost": (lost(30), crashed(30, 0), lost(30)),
    "lost, dead, and dead again": (lost(30, "p"), crashed(30, 0), crashed(30, 0)),
    "noticed together": (crashed(30, 0), crashed(31, 0, "p")),
}


WAITS = ExponentialDelay(initial=8 * MS, factor=2, most=64 * MS)
AGAIN = {
    "heartbeats": (
        "rsm",
        Heartbeats(interval=20 * MS, timeout=50 * MS, launch=ms(6), prepare=ms(9), restarts=WAITS),
    ),
    "consumer_group": ("rsm", ConsumerGroup(heartbeat_interval=3 * MS, session_timeout=10 * MS)),
}
AGAIN["heartbeats of a job"] = ("aligned_snapshots", AGAIN["heartbeats"][1])


@pytest.mark.parametrize("failures", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize(("strategy", "detector"), AGAIN.values(), ids=AGAIN)
def test_the_engine_equals_the_reference_when_failures_come_together(
    strategy: str, detector: Any, failures: tuple[Any, ...]
) -> None:
    """p and the count are in one worker: who dies between the same heartbeats of it is missed together. A
    state that is lost at the instant of a death is noticed with that.
    """
    small = chain(failures, 200)
    hosts = {"s": (0,), "p": (1,), "count": (1,)}
    topology = {name: each.model_copy(update={"hosts": hosts[name]}) for name, each in small.topology.items()}
    changes = {"strategy": STRATEGIES[strategy](checkpoint_interval=20 * MS), "detector": detector}
    assert not differences(small.model_copy(update=changes | {"topology": topology}))


@pytest.mark.long
@pytest.mark.parametrize("strategy", HEARD)
def test_the_engine_equals_the_reference_with_heartbeats_in_many_worlds(strategy: str) -> None:
    @SHARED
    @given(heard((strategy,)))
    def check(scenario: Scenario) -> None:
        assert not otherwise(scenario)

    check()
