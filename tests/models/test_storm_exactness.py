"""The race of supervisors and Nimbus: the engine against the reference, in which each round is an event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK, differences
from tests.models.test_schedules_exactness import HAPPENED
from tests.oracle.random_times import TICK
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import ms
from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.sim.registry import kind_of


def usable(scenario: Scenario) -> bool:
    acker = getattr(scenario.strategy, "acker_host", None) is not None
    kinds = {kind_of(fault) for fault in scenario.failures}
    named = {getattr(fault, "component", "") for fault in scenario.failures}
    dies = kinds & {"crash_task", "crash_host"}
    return bool(isinstance(scenario.hosts, int) and dies and not acker and "acker" not in named)


@st.composite
def raced(draw: st.DrawFn) -> Scenario:
    """A world in which something dies, with timeouts that race."""
    found = draw(worlds(("none", "source_replay", "rsm", "active_replication")).filter(usable))
    times = st.sampled_from

    def ticks(*some: float) -> int:
        return round(draw(times(some)) * TICK)

    detector: Any = DETECTORS["storm"](
        supervisor_worker_timeout=ticks(5, 10, 20),
        nimbus_task_timeout=ticks(5, 10, 20),
        worker_heartbeat=ticks(1, 2),
        task_heartbeat=ticks(1, 3),
        supervisor_round=ticks(1, 3),
        nimbus_round=ticks(4, 7),
        worker_start_timeout=ticks(10, 30),
        task_launch=ticks(0, 10, 30),
        launch=ms(draw(times((0, 150, 700, 1500)))),
        prepare=ms(draw(times((0, 130, 900)))),
    )
    failures = tuple(
        fault.model_copy(update={"detection": 0, "restart": 0})
        for fault in found.failures
        if kind_of(fault) != "pause"
    )
    longer = found.run.model_copy(update={"duration": found.run.duration + 100 * TICK})
    return found.model_copy(update={"failures": failures, "run": longer, "detector": detector})


def check(scenario: Scenario) -> None:
    found = differences(scenario)
    told = ("failed_at_s", "detected_at_s", "ready_at_s")
    assert not {name: both for name, both in found.items() if name in HAPPENED or name.endswith(told)}


@settings(QUICK, max_examples=12)
@given(raced())
def test_the_race_equals_the_reference(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@LONG
@given(raced())
def test_the_race_equals_the_reference_in_many_worlds(scenario: Scenario) -> None:
    check(scenario)
