"""Storm's transactions and E-Storm's fleets against the per-tuple reference: waves, acks, the way back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, LONG, QUICK, differences
from tests.oracle.random_parameters import STORM
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario

STRATEGIES = tuple(STORM)


def check(scenario: Scenario, cap: int = CAPS[-1]) -> None:
    assert not differences(scenario, (cap,))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @QUICK
    @given(worlds((strategy,)))
    def equals(scenario: Scenario) -> None:
        check(scenario)

    equals()


@settings(QUICK, max_examples=10)
@given(worlds(STRATEGIES), st.sampled_from(CAPS[:2]))
def test_trains_of_any_length_make_no_difference(scenario: Scenario, cap: int) -> None:
    check(scenario, cap)


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str) -> None:
    @LONG
    @given(worlds((strategy,)), st.sampled_from(CAPS))
    def equals(scenario: Scenario, cap: int) -> None:
        check(scenario, cap)

    equals()


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_engine_equals_the_reference_where_failures_overlap(strategy: str) -> None:
    @LONG
    @given(overlapping((strategy,)))
    def equals(scenario: Scenario) -> None:
        check(scenario)

    equals()
