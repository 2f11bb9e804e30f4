"""Bounded queues of the engine against closed forms (R. B. Cooper, *Introduction to Queueing Theory*,
section 3.4).
"""

from __future__ import annotations

import pytest

from tests.theory.queues import SERVICE, bolt, queue
from tideover.models.job.queues import QueueSettings
from tideover.models.world import World
from tideover.sim.distributions.exponential import Exponential


@pytest.mark.parametrize(("load", "places"), [(1.0, 4), (0.5, 1)])
def test_what_a_full_queue_loses(load: float, places: int) -> None:
    """M/M/1/K, with K - 1 places to wait: of Poisson arrivals (1 - r) r^K / (1 - r^(K+1)) are lost."""
    most = places + 1
    lost = 1 / (most + 1) if load == 1 else (1 - load) * load**most / (1 - load ** (most + 1))
    server = bolt("source", Exponential(mean=SERVICE))
    bounded = server.model_copy(update={"queue": QueueSettings(length=places, when_full="drop")})
    world = World(queue(round(SERVICE / load), {"b": bounded}, 0.4, seed=3))
    world.run()
    balance = world.balance()
    done = balance["completed"] / balance["emitted"]
    assert done == pytest.approx(1 - lost, rel=0.01)
    assert balance["emitted"] == balance["completed"] + balance["in_flight"] + balance["lost"]
