"""Tasks that have moved use the links and cards of where they are: the engine against the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK, differences
from tests.models.test_schedules_exactness import HAPPENED
from tests.oracle.random_moves import moved, regrouped, reseated
from tideover.models.config import Scenario
from tideover.sim.registry import kind_of

TOLD = ("failed_at_s", "detected_at_s", "ready_at_s", "cost hosts", " busy", " up")


def check(scenario: Scenario) -> None:
    """What happens, and where: lists, times, how busy tasks were, and bytes between hosts (but for those of
    copies of states).
    """
    found = differences(scenario)
    copies = kind_of(scenario.strategy) == "active_replication"
    told = TOLD if copies else (*TOLD, "network_bytes")
    assert not {name: both for name, both in found.items() if name in HAPPENED or name.endswith(told)}


@settings(QUICK, max_examples=6)
@given(moved())
def test_moved_tasks_equal_the_reference(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@LONG
@given(moved())
def test_moved_tasks_equal_the_reference_in_many_worlds(scenario: Scenario) -> None:
    check(scenario)


@settings(QUICK, max_examples=6)
@given(st.one_of(reseated(), regrouped()))
def test_free_slots_equal_the_reference(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@LONG
@given(st.one_of(reseated(), regrouped()))
def test_free_slots_equal_the_reference_in_many_worlds(scenario: Scenario) -> None:
    check(scenario)
