"""Windows that slide, windows by event, sessions and joins: the engine against the per-tuple reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.strategies import SearchStrategy

from tests.models.test_exactness import LONG, QUICK, agree
from tests.oracle.random_windows import (
    arrival_sessions,
    aside_windows,
    batch_event_windows,
    batch_sessions,
    event_windows,
    ids_windows,
    joined_windows,
    marked_windows,
    session_windows,
    sliding_windows,
)
from tests.oracle.random_worlds import worlds
from tideover.models.strategies.base import STRATEGIES

ENDINGS = {
    "sliding": sliding_windows,
    "event": event_windows,
    "session": session_windows,
    "arrival session": arrival_sessions,
    "join": joined_windows,
    "aside": aside_windows,
    "ids": ids_windows,
}
BATCHES = {"event": batch_event_windows, "session": batch_sessions, "join": batch_event_windows}
ENDINGS_OF = {
    "upstream_backup": {"sliding": marked_windows, "join": marked_windows},
    "micro_batch": BATCHES,
    "batch_rerun": BATCHES,
    "trident": {"join": sliding_windows},
}
"""Where not all windows of a sort go with a strategy."""
PAIRS = [(name, sort) for name in STRATEGIES for sort in ENDINGS if sort in STRATEGIES[name].windows]
"""Strategies, and windows that they go with."""


def endings(strategy: str, sort: str) -> Callable[[int, bool], SearchStrategy[dict[str, Any]]]:
    """Windows of a sort that go with a strategy."""
    return ENDINGS_OF.get(strategy, ENDINGS).get(sort, ENDINGS[sort])


def share(sort: str, whole: int) -> int:
    """Of the worlds of a sort of window: as many with each strategy that each sort has the whole, and each
    strategy (these go with four sorts that most go with).
    """
    return -(-whole // min(4, sum(one == sort for _, one in PAIRS)))


@pytest.mark.parametrize(("strategy", "sort"), PAIRS)
def test_the_engine_equals_the_reference(strategy: str, sort: str) -> None:
    agree(worlds((strategy,), endings(strategy, sort)), settings(QUICK, max_examples=share(sort, 12)))


@pytest.mark.long
@pytest.mark.parametrize(("strategy", "sort"), PAIRS)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str, sort: str) -> None:
    how = settings(LONG, max_examples=share(sort, 1000))
    agree(worlds((strategy,), endings(strategy, sort)), how)
