"""Spouts that read from a queue do what they do in the per-tuple reference: to the nanosecond."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import QUICK, SHARED, differences
from tests.oracle.random_logs import READERS, logs
from tideover.models.config import Scenario


@pytest.mark.parametrize("strategy", READERS)
def test_the_engine_equals_the_reference_with_a_queue(strategy: str) -> None:
    slow = strategy in ("source_replay", "storm_checkpoint")

    @settings(QUICK, max_examples=4 if slow else 10)
    @given(logs((strategy,)))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()


@pytest.mark.long
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("strategy", READERS)
def test_the_engine_equals_the_reference_with_many_queues(strategy: str, overlap: bool) -> None:
    @SHARED
    @given(logs((strategy,), overlap))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()
