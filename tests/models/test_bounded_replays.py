"""Bounded queues under R+SM: a replay takes its way through the line of its sender, as all else does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_bounded_queues import done
from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import queues
from tests.oracle.random_worlds import overlapping
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import QueueSettings
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate

RSM = ("rsm",)


@settings(QUICK, max_examples=12)
@given(queues(RSM, ("block",)))
def test_replays_wait_for_room_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(RSM, ("block",)))
def test_many_replays_that_wait(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(RSM, ("block",), overlap=True))
def test_many_replays_after_failures_that_overlap(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@settings(QUICK, max_examples=5)
@given(overlapping(RSM))
def test_bounds_that_are_never_reached_change_no_replay(scenario: Scenario) -> None:
    """Law: results are those of queues without bounds, if no queue is ever full."""
    bounded = scenario.model_copy(update={"queues": QueueSettings(length=1_000_000)})
    one, other = simulate(scenario, trace=True), simulate(bounded, trace=True)
    assert one.trace is not None
    assert other.trace is not None
    assert sorted(one.trace.processed) == sorted(other.trace.processed)
    assert (one.ledger, one.recoveries) == (other.ledger, other.recoveries)


def chain(*failures: object) -> Scenario:
    """A tuple every 10 ms; 4 at p, 5 at q, which counts, has one place, and dies at 32 for 10."""
    count = bolt("windowed_count", {"p": "shuffle"}, 5, window=Window(length=1000 * MS))
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(count, 1, "block"),
    }
    died = fault("crash_task", 32, component="q", restart=10, while_down="hold")
    return world(topology, "rsm", (died, *failures), 75, checkpoint_interval=1000 * MS)


def test_a_replay_fills_the_line_and_blocks_its_sender() -> None:
    """At 44 p sends four tuples again; two wait in its line until services begin at q at 49 and 54. What has
    come to p at 50 is begun at 54, done at 58, and leaves at 59.
    """
    assert done(chain(), "p") == [14, 24, 34, 44, 58, 64, 74]
    assert done(chain(), "q") == [19, 29, 49, 54, 59, 64, 69, 74]


def test_an_end_of_replay_that_dies_in_the_line_is_asked_for_again() -> None:
    """p dies at 50 with the last of the replay, and its end, in its line: when it is back, q learns that no
    more is to come, and takes what is new.
    """
    crashed = fault("crash_task", 50, component="p", restart=5, while_down="hold")
    assert done(chain(crashed), "q") == [19, 29, 49, 54, 59, 69]
