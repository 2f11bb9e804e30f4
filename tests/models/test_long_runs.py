"""What long runs forget must not be missed: old roots are settled and dropped, and no figure changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.oracle.random_worlds import STRATEGY_NAMES, worlds
from tideover.models import twin
from tideover.models import world as engine
from tideover.models.config import Scenario
from tideover.models.simulation import simulate


def figures(scenario: Scenario) -> list[Any]:
    run = simulate(scenario, train_cap=7)
    return [run.ledger, run.windows, run.recoveries, run.throughput, run.latency.summary(1)]


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_settling_roots_at_every_step_changes_nothing(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of hours settles its oldest roots now and then, and follows its twin in strides.

    Any small world has to come out the same if both are done at every step of the data plane.
    """
    close, rarely, stride = engine.World._close, engine.CLOSE_AT, twin.STEP

    def always(world: Any) -> None:
        close(world)
        world._close_at = 0

    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        expected = figures(scenario)
        monkeypatch.setattr(engine, "CLOSE_AT", 0)
        monkeypatch.setattr(engine.World, "_close", always)
        monkeypatch.setattr(twin, "STEP", 5)
        try:
            assert figures(scenario) == expected
        finally:
            monkeypatch.setattr(engine, "CLOSE_AT", rarely)
            monkeypatch.setattr(engine.World, "_close", close)
            monkeypatch.setattr(twin, "STEP", stride)

    check()
