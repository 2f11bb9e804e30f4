"""Transactions of `storm_checkpoint` against the per-tuple reference: waves, acks, the way back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, LONG, QUICK, differences
from tests.models.test_schedules_exactness import HAPPENED
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario

TRANSACTIONS = ("storm_checkpoint",)


def check(scenario: Scenario, cap: int = CAPS[-1]) -> None:
    """All that happens; and what is told of it, where no failure strikes while another's replays are on their
    way (the engine counts these for the newer one or for none).
    """
    found = differences(scenario, (cap,)).get(cap, {})
    alone = len(scenario.failures) <= 1
    assert not {name: both for name, both in found.items() if alone or name in HAPPENED}


@QUICK
@given(worlds(TRANSACTIONS))
def test_transactions_equal_the_reference(scenario: Scenario) -> None:
    check(scenario)


@settings(QUICK, max_examples=10)
@given(worlds(TRANSACTIONS), st.sampled_from(CAPS[:2]))
def test_trains_of_any_length_make_no_difference(scenario: Scenario, cap: int) -> None:
    check(scenario, cap)


@pytest.mark.long
@LONG
@given(worlds(TRANSACTIONS), st.sampled_from(CAPS))
def test_transactions_equal_the_reference_in_many_worlds(scenario: Scenario, cap: int) -> None:
    check(scenario, cap)


@pytest.mark.long
@LONG
@given(overlapping(TRANSACTIONS))
def test_transactions_equal_the_reference_where_failures_overlap(scenario: Scenario) -> None:
    check(scenario)
