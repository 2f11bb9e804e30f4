"""Bounded queues of the engine against closed forms."""

from __future__ import annotations

import pytest

from tests.theory.closed_forms import full, two_in_series
from tests.theory.queues import SERVICE, bolt, queue
from tideover.models.job.arrivals import Saturating
from tideover.models.job.components import QueueSettings
from tideover.models.world import World
from tideover.sim.distributions import Exponential


@pytest.mark.parametrize(("load", "places"), [(1.0, 4), (0.5, 1)])
def test_what_a_full_queue_loses(load: float, places: int) -> None:
    """M/M/1/K, with K - 1 places to wait: Poisson arrivals that find them taken are lost."""
    lost = full(load, places + 1)
    server = bolt("source", Exponential(mean=SERVICE))
    bounded = server.model_copy(update={"queue": QueueSettings(length=places, when_full="drop")})
    world = World(queue(round(SERVICE / load), {"b": bounded}, 0.4, seed=3))
    world.run()
    balance = world.balance()
    done = balance["completed"] / balance["emitted"]
    assert done == pytest.approx(1 - lost, rel=0.01)
    assert balance["emitted"] == balance["completed"] + balance["in_flight"] + balance["lost"]


@pytest.mark.parametrize(("places", "first"), [(1, 1.0), (3, 1.0), (2, 0.8), (2, 1.25)])
def test_two_servers_with_a_buffer_between_them(places: int, first: float) -> None:
    """The first always has work, and is blocked after service; alike, with one place, they do 3/4 of what
    either does alone. ``first``: its mean service, by that of the second.
    """
    seconds, runs = 0.25, 3
    bolts = {
        "one": bolt("source", Exponential(mean=round(first * SERVICE))),
        "two": bolt("one", Exponential(mean=SERVICE)),
    }
    for name, length in (("one", 1), ("two", places)):
        bolts[name] = bolts[name].model_copy(update={"queue": QueueSettings(length=length)})
    scenario = queue(SERVICE, bolts, seconds, seed=3)
    source = scenario.topology["source"].model_copy(update={"arrivals": Saturating(emit_cost=1)})
    busy = scenario.model_copy(update={"topology": {"source": source, **bolts}})
    done = 0
    for replication in range(runs):
        world = World(busy, replication)
        world.run()
        balance = world.balance()
        assert balance["lost"] == 0
        # one in service, one waiting and one that the spout holds, at the first; the others at the second
        assert balance["in_flight"] <= places + 4
        done += balance["completed"]
    expected = two_in_series(first * SERVICE, SERVICE, places) * 1e9
    assert done / (runs * seconds) == pytest.approx(expected, rel=0.01)
