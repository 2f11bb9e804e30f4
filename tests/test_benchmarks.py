"""What is timed is a run like any other."""

import pytest

from benchmarks.worlds import small
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World

BUILT_IN = [name for name, part in STRATEGIES.items() if part.__module__.startswith("tideover.")]


@pytest.mark.parametrize("strategy", BUILT_IN)
def test_the_small_scenario_knows_every_strategy(strategy):
    world = World(small(strategy))
    world.run()
    balance = world.balance()
    assert balance["emitted"] > 2000
    assert balance["emitted"] == balance["completed"] + balance["in_flight"] + balance["lost"]
