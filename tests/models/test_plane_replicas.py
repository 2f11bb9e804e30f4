"""Replicas on the compiled data plane, against the per-tuple reference: equal to the nanosecond."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree
from tests.models.test_moved_exactness import check as check_moves
from tests.oracle.random_cores import crowded
from tests.oracle.random_moves import moved
from tests.oracle.random_networks import networks
from tests.oracle.random_queues import queues
from tests.oracle.random_worlds import overlapping, worlds

REPLICAS = ("active_replication", "active_standby")
BESIDES = {
    "queues": queues(REPLICAS),
    "full queues where failures overlap": queues(REPLICAS, overlap=True),
    "cards": networks(REPLICAS),
    "shared cores": crowded(REPLICAS),
    "checkpoints, where failures overlap": overlapping(("hybrid",)),
}
EACH = pytest.mark.parametrize("besides", BESIDES)


def test_replicas_are_as_in_the_reference() -> None:
    agree(worlds(REPLICAS), QUICK)


def test_replicas_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(REPLICAS), QUICK)


@EACH
def test_replicas_are_as_in_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], FEW)


@pytest.mark.long
def test_many_replicas_are_as_in_the_reference() -> None:
    agree(worlds(REPLICAS), LONG)


@pytest.mark.long
def test_many_replicas_whose_failures_overlap_are_as_in_the_reference() -> None:
    agree(overlapping(REPLICAS), LONG)


@pytest.mark.long
@EACH
def test_many_replicas_are_as_in_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], SHARED)


def test_replicas_that_move_are_as_in_the_reference() -> None:
    FEW(given(moved(("active_replication",)))(check_moves))()


@pytest.mark.long
def test_many_replicas_that_move_are_as_in_the_reference() -> None:
    SHARED(given(moved(("active_replication",)))(check_moves))()
