"""Spouts that read from a log, before bounded queues: what they cannot send waits in the log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, check, differences
from tests.oracle.random_logs import reading
from tests.oracle.random_queues import queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import QueueSettings
from tideover.models.job.sources import Kafka
from tideover.models.simulation import simulate

STRATEGIES = ("none", "source_replay")
OTHERS = ("rsm", "storm_checkpoint", "estorm")


@settings(QUICK, max_examples=6)
@given(reading(queues(STRATEGIES)))
def test_spouts_that_wait_read_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(reading(queues(STRATEGIES)))
def test_many_spouts_that_wait(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(reading(queues(OTHERS, ("block",))).filter(lambda found: len(found.failures) < 2))
def test_many_spouts_that_wait_under_other_strategies(scenario: Scenario) -> None:
    check(scenario)


def test_what_a_spout_cannot_send_waits_in_the_log() -> None:
    """A record every 10, read in 1; q has one place, and takes 15: from 51 on each read waits for it."""
    source = Kafka(poll_cost=1 * MS)
    topology = {
        "s": spout(**ONES).model_copy(update={"source": source}),
        "q": queued(bolt("forward", {"s": "shuffle"}, 15), 1, "block"),
    }
    trace = simulate(world(topology, "none", until=110), trace=True).trace
    assert trace is not None
    assert [row[4] / MS for row in trace.emitted] == [11, 21, 31, 41, 51, 61, 72, 87, 102]


@settings(QUICK, max_examples=3)
@given(reading(queues(STRATEGIES, ("block",))))
def test_bounds_that_are_never_reached_change_no_read(scenario: Scenario) -> None:
    """Law: results are those of queues without bounds, if no queue is ever full."""
    topology = {name: each.model_copy(update={"queue": None}) for name, each in scenario.topology.items()}
    free = scenario.model_copy(update={"topology": topology})
    bounded = free.model_copy(update={"queues": QueueSettings(length=1_000_000)})
    one, other = simulate(free, trace=True), simulate(bounded, trace=True)
    assert one.trace is not None
    assert other.trace is not None
    assert sorted(one.trace.emitted) == sorted(other.trace.emitted)
    assert sorted(one.trace.processed) == sorted(other.trace.processed)
    assert (one.ledger, one.recoveries) == (other.ledger, other.recoveries)
