"""Where heartbeats are missed too the engine equals the per-tuple reference, in which each is an event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, QUICK, SHARED, differences
from tests.oracle.random_detectors import HEARD, heard
from tideover.models.config import Scenario

TOLD = ("detected_at_s", "ready_at_s", "detect_s", "delay_s", "launch_s", "prepare_s", "restart_s")
"""Of each failure; figures that ask when it was over are compared where faults say how long they last."""


def otherwise(scenario: Scenario, cap: int) -> dict[str, Any]:
    """What has not happened as in the reference."""
    found = differences(scenario, (cap,)).get(cap, {})
    over = {name for name in found if name[0].isdigit() or name.startswith(("latency ", "end_to_end "))}
    return {name: both for name, both in found.items() if name not in over or name.endswith(TOLD)}


@pytest.mark.parametrize("strategy", HEARD)
def test_the_engine_equals_the_reference_with_heartbeats(strategy: str) -> None:
    @settings(QUICK, max_examples=6)
    @given(heard((strategy,)))
    def check(scenario: Scenario) -> None:
        assert not otherwise(scenario, CAPS[-1])

    check()


@pytest.mark.long
@pytest.mark.parametrize("strategy", HEARD)
def test_the_engine_equals_the_reference_with_heartbeats_in_many_worlds(strategy: str) -> None:
    @SHARED
    @given(heard((strategy,)), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not otherwise(scenario, cap)

    check()
