"""Bounded queues: the engine against the per-tuple reference, worlds worked out by hand; and where nothing
is ever full, bounds change nothing.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals.saturating import Saturating
from tideover.models.job.queues import QueueSettings
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.scenarios.loader import load

STRATEGIES = ("none", "source_replay")


@settings(QUICK, max_examples=15)
@given(queues(STRATEGIES, ("block",)))
def test_who_waits_for_room_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


@settings(QUICK, max_examples=10)
@given(queues(("none",), ("drop",)))
def test_what_finds_no_room_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (7,)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(STRATEGIES, ("block",)))
def test_many_that_wait(scenario: Scenario) -> None:
    assert differences(scenario, (1, 20_000)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(("none",), ("drop",)))
def test_many_that_find_no_room(scenario: Scenario) -> None:
    assert differences(scenario, (1, 20_000)) == {}


def chain(length: int | None, when_full: str = "block", send: int = 0, **more: object) -> Scenario:
    """A tuple every 10 ms; 4 at p, 15 at q, which has so many places."""
    topology = {
        "s": spout(**ONES),
        "p": queued(bolt("forward", {"s": "shuffle"}, 4), send=send),
        "q": queued(bolt("forward", {"p": "shuffle"}, 15), length, when_full),
    }
    return world(topology, "none", **{"until": 95, **more})  # type: ignore[arg-type]


def done(scenario: Scenario, component: str) -> list[float]:
    """When tuples were done (ms)."""
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    return [row[6] / MS for row in trace.processed if row[0] == component]


def test_who_finds_no_place_waits_and_begins_nothing_else() -> None:
    """A place of q is free when a service begins there: at 14, 29, 44, …"""
    assert done(chain(1), "p") == [14, 24, 34, 44, 54, 64, 78, 93]
    assert done(chain(1), "q") == [29, 44, 59, 74, 89]


def test_where_a_crash_empties_a_queue_its_senders_go_on() -> None:
    """q is down from 40 to 50 and loses what waits: p, which is blocked since 34, sends at 40."""
    crashed = fault("crash_task", 40, component="q", restart=10, while_down="hold")
    assert done(chain(1, failures=(crashed,)), "q")[:2] == [29, 65]


def test_what_has_no_place_is_lost_and_counted() -> None:
    """Arrivals at 14, 24, …; services begin at 14, 29, 44, 59, 74, 89: 44 and 74 find one waiting."""
    run = World(chain(1, "drop"), trace=True)
    run.run()
    assert run.trace is not None
    assert [row[4] / MS for row in run.trace.overflowed] == [44, 74]
    balance = run.balance()
    assert balance["lost"] == 2
    assert balance["emitted"] == sum(balance[name] for name in ("completed", "in_flight", "lost"))


def test_bounds_that_are_never_reached_change_nothing() -> None:
    """Law: results are those of queues without bounds, if no queue is ever full."""
    free = load("wordcount", {"run.replications": 1})
    bounded = free.model_copy(update={"queues": QueueSettings(length=10_000)})
    one, other = simulate(free, 0, trace=True), simulate(bounded, 0, trace=True)
    assert one.trace is not None
    assert other.trace is not None
    assert sorted(one.trace.processed) == sorted(other.trace.processed)
    assert one.ledger == other.ledger


def test_a_saturating_spout_emits_when_there_is_room() -> None:
    """One place and 15 a tuple: after the first two and the one in service, a call every 15."""
    topology = {
        "s": spout(**ONES).model_copy(update={"arrivals": Saturating(emit_cost=1 * MS)}),
        "q": queued(bolt("forward", {"s": "shuffle"}, 15), 1),
    }
    trace = simulate(world(topology, "none", until=70), trace=True).trace
    assert trace is not None
    assert [row[4] / MS for row in trace.emitted] == [1, 2, 3, 17, 32, 47, 62]
