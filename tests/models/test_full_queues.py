"""Snapshots of jobs whose queues are full: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import queues
from tideover.models.config import Scenario

SNAPSHOTS = ("aligned_snapshots",)


@settings(QUICK, max_examples=40)
@given(queues(SNAPSHOTS, ("block",)))
def test_snapshots_in_full_queues_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


@settings(QUICK, max_examples=10)
@given(queues(SNAPSHOTS, ("block",), overlap=True))
def test_jobs_that_fail_with_full_queues_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (7,)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(SNAPSHOTS, ("block",)))
def test_many_snapshots_in_full_queues(scenario: Scenario) -> None:
    assert differences(scenario, (1, 20_000)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(SNAPSHOTS, ("block",), overlap=True))
def test_many_jobs_that_fail_with_full_queues(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}
