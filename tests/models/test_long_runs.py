"""What long runs forget must not be missed: old roots are settled and dropped, and no figure changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models import world as engine
from tideover.models.accounts import reference_run as twin
from tideover.models.config import Scenario
from tideover.models.evaluation.curves import curves
from tideover.models.simulation import simulate


def figures(scenario: Scenario) -> list[Any]:
    run = simulate(scenario, trace=True)
    assert run.world is not None
    found = curves(run.world)
    over_time = [getattr(found, name).tolist() for name in ("backlog", "present", "done", "outputs")]
    whole = [histogram.summary(1) for histogram in (run.latency, run.end_to_end)]
    return [run.ledger, run.windows, run.recoveries, run.cost, *whole, over_time, found.beat, found.bad]


def figures_if_always_settled(scenario: Scenario) -> list[Any]:
    """The same, if roots are settled, and twins followed, at every step of the data plane."""
    close = engine.World._close

    def always(world: Any) -> None:
        close(world)
        world._close_at = 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CLOSE_AT", 0)
        patch.setattr(engine.World, "_close", always)
        patch.setattr(twin, "STEP", 5)
        return figures(scenario)


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_settling_roots_at_every_step_changes_nothing(strategy: str) -> None:
    """A run of hours settles its oldest roots now and then, and follows its twin in strides.

    Any small world has to come out the same if both are done at every step of the data plane.
    """

    @settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        assert figures_if_always_settled(scenario) == figures(scenario)

    check()


def test_roots_are_settled_as_soon_as_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root each ms, windows of 100: at most 500 roots and those of one window are kept."""
    most, close = [], engine.World._close

    def note(world: Any) -> None:
        most.append(world.backlog.size)
        close(world)

    monkeypatch.setattr(engine, "CLOSE_AT", 500)
    monkeypatch.setattr(engine.World, "_close", note)
    topology = {
        "s": spout("keys", 1, keys=1),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"length": 100 * MS}),
    }
    engine.World(world(topology, until=5_000)).run()
    assert len(most) > 5
    assert max(most) <= 600
