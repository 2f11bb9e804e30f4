"""Strategies that work in batches against the per-tuple reference, in worlds of their own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, LONG, QUICK, SHARED, differences
from tests.models.test_partition import check as check_what_happens
from tests.models.test_partition import partitioned
from tests.oracle.cluster_worlds import on_clusters
from tests.oracle.random_parameters import BATCHES
from tests.oracle.random_times import TICK
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario

FEW = settings(QUICK, max_examples=15)
EACH = pytest.mark.parametrize("strategy", BATCHES)


def _equal(scenario: Scenario) -> None:
    assert not differences(scenario, CAPS[-1:])


@EACH
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @QUICK
    @given(worlds((strategy,)), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, (cap,))

    check()


@EACH
def test_the_engine_equals_the_reference_where_failures_overlap(strategy: str) -> None:
    FEW(given(overlapping((strategy,)))(_equal))()


@pytest.mark.long
@EACH
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str) -> None:
    @LONG
    @given(st.one_of(worlds((strategy,)), overlapping((strategy,))), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, (cap,))

    check()


@EACH
def test_the_engine_equals_the_reference_on_clusters(strategy: str) -> None:
    """Workers, racks, and faults of theirs."""

    FEW(given(on_clusters((strategy,)))(_equal))()


@pytest.mark.long
@EACH
def test_the_engine_equals_the_reference_on_many_clusters(strategy: str) -> None:
    SHARED(given(on_clusters((strategy,)))(_equal))()


def test_partitions_equal_the_reference() -> None:
    """What hands on waits until it is cut off no more."""
    FEW(given(partitioned(strategies=("trident",)))(check_what_happens))()


@pytest.mark.long
def test_partitions_equal_the_reference_in_many_worlds() -> None:
    SHARED(given(partitioned(strategies=("trident",)))(check_what_happens))()


@st.composite
def lineages(draw: st.DrawFn, overlap: bool = False) -> Scenario:
    """Micro-batches whose states are saved now and then."""
    found = draw((overlapping if overlap else worlds)(("micro_batch",)))
    interval = draw(st.sampled_from((4, 15, 40, 100))) * TICK
    settings_ = {"recovery": "lineage", "checkpoint_interval": interval}
    return found.model_copy(update={"strategy": found.strategy.model_copy(update=settings_)})


@pytest.mark.parametrize("overlap", [False, True])
def test_lineage_equals_the_reference(overlap: bool) -> None:
    (FEW if overlap else QUICK)(given(lineages(overlap))(_equal))()


@pytest.mark.long
@pytest.mark.parametrize("overlap", [False, True])
def test_lineage_equals_the_reference_in_many_worlds(overlap: bool) -> None:
    LONG(given(lineages(overlap))(_equal))()
