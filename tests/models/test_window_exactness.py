"""Windows that slide, windows by event, sessions and joins: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.models.test_exactness import CAPS, LONG, QUICK, agree
from tests.oracle.random_windows import (
    aside_windows,
    event_windows,
    ids_windows,
    joined_windows,
    session_windows,
    sliding_windows,
)
from tests.oracle.random_worlds import worlds
from tideover.models.strategies.base import STRATEGIES

ENDINGS = {
    "sliding": sliding_windows,
    "event": event_windows,
    "session": session_windows,
    "join": joined_windows,
    "aside": aside_windows,
    "ids": ids_windows,
}
PAIRS = [(name, sort) for name in STRATEGIES for sort in ENDINGS if sort in STRATEGIES[name].windows]
"""Strategies, and windows that they go with."""


def share(sort: str, whole: int) -> int:
    """Of the worlds of a sort of window: as many with each strategy that each sort has the whole, and each
    strategy (these go with four sorts that most go with).
    """
    return -(-whole // min(4, sum(one == sort for _, one in PAIRS)))


@pytest.mark.parametrize(("strategy", "sort"), PAIRS)
def test_the_engine_equals_the_reference(strategy: str, sort: str) -> None:
    agree(worlds((strategy,), ENDINGS[sort]), settings(QUICK, max_examples=share(sort, 50)))


@pytest.mark.long
@pytest.mark.parametrize(("strategy", "sort"), PAIRS)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str, sort: str) -> None:
    how = settings(LONG, max_examples=share(sort, 1000))
    agree(worlds((strategy,), ENDINGS[sort]), how, CAPS)
