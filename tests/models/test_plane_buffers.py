"""Upstream buffers in the compiled data plane, against the reference."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.models.test_exactness import FEW, LONG, QUICK, SHARED, agree
from tests.models.test_moved_exactness import check as check_moves
from tests.models.test_partition import partitioned
from tests.models.test_slow_link import slowed
from tests.oracle.random_cores import crowded_and_failing
from tests.oracle.random_moves import moved, sharing
from tests.oracle.random_networks import networks
from tests.oracle.random_queues import queues
from tests.oracle.random_together import together
from tests.oracle.random_worlds import overlapping, worlds

BUFFERS = ("rsm",)
WORLDS = pytest.mark.parametrize("scenarios", [worlds(BUFFERS), overlapping(BUFFERS)], ids=["any", "overlap"])
BESIDES = {
    "shared cores": crowded_and_failing(BUFFERS),
    "cards": networks(BUFFERS, overlap=True),
    "partitions, cards": partitioned(True, BUFFERS),
    "slow links, cards": slowed(True, BUFFERS),
    "bounded queues": queues(BUFFERS),
    "bounded queues, overlap": queues(BUFFERS, overlap=True),
    "all of it": together(BUFFERS),
}
EACH = pytest.mark.parametrize("besides", BESIDES)


@WORLDS
def test_buffers_equal_the_reference(scenarios) -> None:  # type: ignore[no-untyped-def]
    agree(scenarios, QUICK)


@EACH
def test_buffers_equal_the_reference_with(besides: str) -> None:
    agree(BESIDES[besides], FEW)


def test_buffers_of_tasks_that_move_equal_the_reference() -> None:
    FEW(given(sharing(moved(BUFFERS)))(check_moves))()


@pytest.mark.long
@WORLDS
def test_buffers_equal_the_reference_in_many_worlds(scenarios) -> None:  # type: ignore[no-untyped-def]
    agree(scenarios, LONG)


@pytest.mark.long
@EACH
def test_buffers_equal_the_reference_in_many_worlds_with(besides: str) -> None:
    agree(BESIDES[besides], SHARED)


@pytest.mark.long
def test_buffers_of_tasks_that_move_equal_the_reference_in_many_worlds() -> None:
    SHARED(given(sharing(moved(BUFFERS)))(check_moves))()
