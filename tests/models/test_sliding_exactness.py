"""Windows that slide: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.test_exactness import CAPS, QUICK, SHARED, differences
from tests.oracle.random_worlds import STORM, STRATEGY_NAMES, sliding_windows, worlds
from tideover.models.config import Scenario

STRATEGIES = tuple(name for name in (*STRATEGY_NAMES, *STORM) if name != "micro_batch")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_engine_equals_the_reference(strategy: str) -> None:
    @QUICK
    @given(worlds((strategy,), sliding_windows))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario, CAPS[-1:])

    check()


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_engine_equals_the_reference_in_many_worlds(strategy: str) -> None:
    @SHARED
    @given(worlds((strategy,), sliding_windows), st.sampled_from(CAPS))
    def check(scenario: Scenario, cap: int) -> None:
        assert not differences(scenario, (cap,))

    check()
