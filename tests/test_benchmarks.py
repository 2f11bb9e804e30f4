"""What is timed is a run like any other."""

import json

import pytest

from benchmarks import cluster
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


def test_the_cluster_is_what_it_says(capsys):
    """A million roots a second, of 100 spouts; each host has a card each way."""
    cluster.measure(0.02, cluster.GIGABIT)
    found = json.loads(capsys.readouterr().out)
    assert found["emitted"] == pytest.approx(20_000, rel=0.05)
    assert found["cards"] == 2 * cluster.HOSTS
