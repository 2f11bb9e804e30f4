"""Secondaries on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree
from tests.oracle.random_cores import crowded, crowded_and_failing
from tests.oracle.random_networks import networks
from tests.oracle.random_together import troubled
from tests.oracle.random_worlds import overlapping, worlds

BESIDES = {
    "cards": networks,
    "shared cores": crowded,
    "shared cores, where failures overlap": crowded_and_failing,
    "all of these": lambda names: troubled(st.one_of(worlds(names), overlapping(names))),
}
EACH = pytest.mark.parametrize("strategy", ["passive_standby", "upstream_backup"])
EACH_BESIDES = pytest.mark.parametrize("besides", BESIDES)


@EACH
def test_secondaries_are_as_in_the_reference(strategy: str) -> None:
    agree(worlds((strategy,)), QUICK)


@EACH
def test_secondaries_of_tasks_whose_failures_overlap_are_as_in_the_reference(strategy: str) -> None:
    agree(overlapping((strategy,)), QUICK)


@pytest.mark.long
@EACH
def test_many_secondaries_are_as_in_the_reference(strategy: str) -> None:
    agree(worlds((strategy,)), LONG)


@pytest.mark.long
@EACH
def test_many_secondaries_of_tasks_whose_failures_overlap_are_as_in_the_reference(strategy: str) -> None:
    agree(overlapping((strategy,)), LONG)


@EACH
@EACH_BESIDES
def test_secondaries_are_as_in_the_reference_with(strategy: str, besides: str) -> None:
    agree(BESIDES[besides]((strategy,)), FEW)


@pytest.mark.long
@EACH
@EACH_BESIDES
def test_many_secondaries_are_as_in_the_reference_with(strategy: str, besides: str) -> None:
    agree(BESIDES[besides]((strategy,)), SHARED)
