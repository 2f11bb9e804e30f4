"""Windows that slide, and windows by event: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, QUICK, SHARED, differences
from tests.oracle.random_worlds import (
    arrival_sessions,
    aside_windows,
    event_windows,
    ids_windows,
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


def those_with(sort: str) -> list[str]:
    """The strategies that such windows go with."""
    return [name for name, strategy in STRATEGIES.items() if sort in strategy.windows]


@pytest.mark.parametrize("strategy", those_with("sliding"))
def test_the_engine_equals_the_reference(strategy: str) -> None:
    sorts = [ENDINGS[sort] for sort in ENDINGS if sort in STRATEGIES[strategy].windows]

    @QUICK
    @given(st.one_of([worlds((strategy,), endings) for endings in sorts]))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario, CAPS[-1:])

    check()


@pytest.mark.long
@pytest.mark.parametrize("sort", ENDINGS)
@pytest.mark.parametrize("strategy", those_with("sliding"))
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str, sort: str) -> None:
    if sort not in STRATEGIES[strategy].windows:
        pytest.skip(f"{strategy} does not go with them")

    @SHARED
    @given(worlds((strategy,), ENDINGS[sort]), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, (cap,))

    check()
