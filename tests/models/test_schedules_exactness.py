"""Faults that come again, together, or by rate: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LISTS, LONG, QUICK, differences
from tests.oracle.random_schedules import schedules
from tideover.models.config import Scenario

HAPPENED = {*LISTS, "final_state", "ledger"}


def check(scenario: Scenario) -> None:
    """What happens is the same, tuple for tuple."""
    found = differences(scenario)
    assert not {name: both for name, both in found.items() if name in HAPPENED}


@settings(QUICK, max_examples=12)
@given(schedules())
def test_schedules_equal_the_reference(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@LONG
@given(schedules())
def test_schedules_equal_the_reference_in_many_worlds(scenario: Scenario) -> None:
    check(scenario)
