"""Transactional sinks and local recovery: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, LONG, QUICK, differences
from tests.oracle.random_queues import overtaken
from tests.oracle.random_sinks import copied, transactional
from tests.oracle.random_states import saved
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario

SNAPSHOTS = ("aligned_snapshots",)
ANY = st.one_of(worlds(SNAPSHOTS), overlapping(SNAPSHOTS), overtaken(), overtaken(overlap=True))


@settings(QUICK, max_examples=26)
@given(copied(transactional(worlds(SNAPSHOTS))))
def test_the_engine_equals_the_reference(scenario: Scenario) -> None:
    assert not differences(scenario, CAPS[1:])


@settings(QUICK, max_examples=18)
@given(saved(copied(transactional(overlapping(SNAPSHOTS)))))
def test_it_does_where_failures_overlap(scenario: Scenario) -> None:
    assert not differences(scenario, CAPS[-1:])


@settings(QUICK, max_examples=8)
@given(saved(copied(transactional(overtaken(overlap=True)))))
def test_it_does_where_barriers_overtake(scenario: Scenario) -> None:
    assert not differences(scenario, CAPS[-1:])


@pytest.mark.long
@LONG
@given(transactional(ANY), st.sampled_from(CAPS))
def test_sinks_equal_the_reference_in_many_worlds(scenario: Scenario, cap: int) -> None:
    assert not differences(scenario, (cap,))


@pytest.mark.long
@LONG
@given(saved(copied(transactional(ANY))), st.sampled_from(CAPS))
def test_local_recovery_equals_the_reference_in_many_worlds(scenario: Scenario, cap: int) -> None:
    assert not differences(scenario, (cap,))
