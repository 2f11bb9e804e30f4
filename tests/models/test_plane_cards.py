"""Links, cards and tasks that move on the compiled data plane: as in the per-tuple reference, to the ns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.test_exactness import FEW, SHARED, agree
from tests.models.test_moved_exactness import check as check_moves
from tests.models.test_partition import partitioned
from tests.models.test_slow_link import slowed
from tests.oracle.random_moves import moved, regrouped, reseated, sharing
from tests.oracle.random_networks import networks
from tideover.models.config import Scenario

NONE = ("none",)
WORLDS: dict[str, st.SearchStrategy[Scenario]] = {
    "cards": networks(NONE),
    "cards, overlapping": networks(NONE, overlap=True),
    "partitions": partitioned(strategies=NONE),
    "partitions, cards": partitioned(True, NONE),
    "slow links": slowed(False, NONE),
    "slow links, cards": slowed(True, NONE),
}
MOVES: dict[str, st.SearchStrategy[Scenario]] = {
    "moved": moved(NONE),
    "reseated": reseated(NONE),
    "regrouped": regrouped(NONE),
    "moved, shared cores": sharing(moved(NONE)),
    "reseated, shared cores": sharing(reseated(NONE)),
    "regrouped, shared cores": sharing(regrouped(NONE)),
}


@pytest.mark.parametrize("kind", WORLDS)
def test_the_data_plane_equals_the_reference(kind: str) -> None:
    agree(WORLDS[kind], FEW)


@pytest.mark.parametrize("kind", MOVES)
def test_the_data_plane_equals_the_reference_where_tasks_move(kind: str) -> None:
    FEW(given(MOVES[kind])(check_moves))()


@pytest.mark.long
@pytest.mark.parametrize("kind", WORLDS)
def test_the_data_plane_equals_the_reference_in_many_worlds(kind: str) -> None:
    agree(WORLDS[kind], SHARED)


@pytest.mark.long
@pytest.mark.parametrize("kind", MOVES)
def test_the_data_plane_equals_the_reference_in_many_worlds_where_tasks_move(kind: str) -> None:
    SHARED(given(MOVES[kind])(check_moves))()
