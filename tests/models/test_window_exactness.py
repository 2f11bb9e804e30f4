"""Windows that slide, and windows by event: the engine against the per-tuple reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.models.test_exactness import CAPS, QUICK, SHARED, differences
from tests.oracle.random_worlds import (
    arrival_sessions,
    aside_windows,
    batch_event_windows,
    batch_sessions,
    event_windows,
    ids_windows,
    marked_windows,
    session_windows,
    sliding_windows,
    worlds,
)
from tideover.models.config import Scenario
from tideover.models.strategies.base import STRATEGIES

ENDINGS = {
    "sliding": sliding_windows,
    "event": event_windows,
    "ids": ids_windows,
    "session": session_windows,
    "arrival session": arrival_sessions,
    "aside": aside_windows,
}


OTHERS = {
    ("upstream_backup", "sliding"): marked_windows,
    ("micro_batch", "event"): batch_event_windows,
    ("micro_batch", "session"): batch_sessions,
    ("batch_rerun", "event"): batch_event_windows,
    ("batch_rerun", "session"): batch_sessions,
}
"""Where not all of a sort go with a strategy."""


def of(strategy: str) -> dict[str, Callable[[int, bool], SearchStrategy[dict[str, Any]]]]:
    """Windows of each sort that go with a strategy."""
    sorts = [sort for sort in ENDINGS if sort in STRATEGIES[strategy].windows]
    return {sort: OTHERS.get((strategy, sort), ENDINGS[sort]) for sort in sorts}


def those_with(sort: str) -> list[str]:
    """The strategies that such windows go with."""
    return [name for name, strategy in STRATEGIES.items() if sort in strategy.windows]


@pytest.mark.parametrize("strategy", those_with("sliding"))
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @QUICK
    @given(st.one_of([worlds((strategy,), endings) for endings in of(strategy).values()]))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario, CAPS[-1:])

    check()


@pytest.mark.long
@pytest.mark.parametrize("sort", ENDINGS)
@pytest.mark.parametrize("strategy", those_with("sliding"))
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str, sort: str) -> None:
    if sort not in of(strategy):
        pytest.skip(f"{strategy} does not go with them")

    @SHARED
    @given(worlds((strategy,), of(strategy)[sort]), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, (cap,))

    check()
