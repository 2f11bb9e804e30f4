"""Bounded queues under Storm's transactions and E-Storm, and with state in a backend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.test_bounded_queues import done
from tests.models.test_exactness import LONG, QUICK, check, differences
from tests.oracle.random_queues import backed, queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate

STORM = ("storm_checkpoint",)


@settings(QUICK, max_examples=4)
@given(queues(STORM, ("block", "credits", "drop")))
def test_transactions_wait_for_room_as_in_the_reference(scenario: Scenario) -> None:
    check(scenario)


@settings(QUICK, max_examples=2)
@given(queues(("estorm",)))
def test_fleets_wait_for_room_as_in_the_reference(scenario: Scenario) -> None:
    check(scenario)


@settings(QUICK, max_examples=5)
@given(backed(("none", "source_replay", "rsm", *STORM), ("block", "drop")))
def test_who_waits_for_state_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(STORM, ("block", "credits", "drop")))
def test_many_transactions_that_wait(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@settings(LONG)
@given(queues(("estorm",)).filter(lambda found: len(found.failures) < 2))
def test_many_fleets_that_wait(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@settings(LONG)
@given(backed(("none", "source_replay", "rsm", *STORM), ("block", "drop")))
def test_many_that_wait_for_state(scenario: Scenario) -> None:
    assert differences(scenario) == {}


def test_a_prepare_waits_for_its_sender_in_a_full_queue() -> None:
    """A tuple every 10; 4 at p, and 15 at q, which counts and has one place. The prepare of 50 waits at p for
    the tuple that is done there at 54, and has no room at q before 59. Behind that one it comes to q, which
    takes part at 89, and is kept for 7. The commit of 96 is behind what has come to p by then (at 80 and
    90): q is kept for it at 156.
    """
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(
            bolt("windowed_count", {"p": "shuffle"}, 15, window=Window(length=1000 * MS)), 1, "block"
        ),
    }
    more = {"checkpoint_interval": 50 * MS, "write_time": 7 * MS, "message_timeout": 1000 * MS}
    scenario = world(topology, "storm_checkpoint", (), 180, **more)
    assert [round(when) for when in done(scenario, "q")] == [29, 44, 59, 74, 89, 111, 126, 141, 156, 178]


def test_what_an_action_lets_go_comes_before_the_markers_that_it_puts_elsewhere() -> None:
    """A tuple every 10; p drops it, and q and r have one place each. The prepare of 10 is at r at 51, behind
    what r has served for 40: the commit is put into the queues of p and q. r goes on, and q can, which has
    been blocked since 31; so a's tuple of 50 comes to q, and behind it the commit from p. Blocked again, q
    is done with that tuple at 92, and kept for the commit from 131 to 138.
    """
    topology = {
        "a": spout(**ONES),
        "p": bolt("generic", {"a": "shuffle"}, selectivity=0),
        "q": queued(bolt("windowed_count", {"a": "shuffle", "p": "shuffle"}, 1, window=Window(tuples=1)), 1),
        "r": queued(bolt("forward", {"q": "shuffle"}, 40), 1),
    }
    more = {"checkpoint_interval": 10 * MS, "write_time": 7 * MS, "message_timeout": 1000 * MS}
    scenario = world(topology, "storm_checkpoint", (), 140, **more)
    assert done(scenario, "q") == [11, 21, 31, 52, 92, 139]


def test_who_acks_begins_nothing_though_there_is_room_again() -> None:
    """p counts two tuples, 5 each, and acks them, 20 each. The window of 75 is put out when q has room at
    once: p goes on at 115 all the same.
    """
    topology = {
        "s": spout(**ONES),
        "p": bolt("windowed_count", {"s": "shuffle"}, 5, window=Window(tuples=2)),
        "q": queued(bolt("forward", {"p": "shuffle"}), 1, "credits"),
    }
    scenario = world(topology, "source_replay", (), 130, ack_cost=20 * MS, message_timeout=1000 * MS)
    assert done(scenario, "p") == [15, 25, 70, 75, 120, 125]


def test_what_follows_on_a_trigger_is_in_order_with_what_came_before_it() -> None:
    """r has one place, and ends a window with each tuple: at 25 it does, and lets a's tuple of 15 in, behind
    which a's of 20 for q waits. b's comes to q at 25 too, before that; but a's is ahead.
    """
    window = Window(tuples=1)
    topology = {
        "a": spout(**ONES, gap=5),
        "b": spout(**ONES, gap=20, offset=5),
        "p": bolt("forward", {"b": "shuffle"}),
        "q": queued(bolt("forward", {"a": "shuffle", "p": "shuffle"}, 8), 100),
        "r": queued(bolt("windowed_count", {"a": "shuffle"}, 20, window=window), 1),
    }
    topology["a"] = queued(topology["a"], send=1)
    scenario = world(topology, "none", until=45)
    assert differences(scenario) == {}
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    assert [row[3] & 1 for row in trace.processed if row[0] == "q" and row[5] == 25 * MS] == [0, 1]


def test_a_window_that_makes_a_line_too_long_blocks_its_task() -> None:
    """r has one place, and takes 100; q puts out each of its tuples. What it puts out at 31 waits for room,
    which does not keep it; with that of 41 too much waits. At 111 one leaves, and q begins what has come at
    50.
    """
    topology = {
        "s": spout("values", values=(1, 1, 1, 1, 1)),
        "q": queued(bolt("windowed_count", {"s": "shuffle"}, 1, window=Window(tuples=1)), 10, send=1),
        "r": queued(bolt("forward", {"q": "shuffle"}, 100), 1),
    }
    assert done(world(topology, "none", until=300), "q") == [11, 21, 31, 41, 112]


def test_behind_a_prepare_too_what_comes_at_one_instant_is_in_order() -> None:
    """q has two places, takes 25, and ends a window with each tuple: at 36 it does, and lets a's tuple of 31
    in. b's of 28 comes at 36 too, before that; but a's is ahead. Both are behind the prepare of 23.
    """
    count = bolt("windowed_count", {"a": "shuffle", "b": "shuffle"}, 25, window=Window(tuples=1), hosts=(0,))
    topology = {
        "a": spout(**ONES, offset=1, hosts=(0,)),
        "b": spout(**ONES, gap=28, hosts=(1,)),
        "q": queued(count, 2, "block"),
    }
    far = Links(latency=ms(8), local=ms(0))
    more: dict[str, Any] = {"checkpoint_interval": 23 * MS, "message_timeout": 1000 * MS}
    scenario = world(topology, "storm_checkpoint", until=120, hosts=2, links=far, **more)
    assert differences(scenario) == {}
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    came = [(row[3] & 1, row[5] / MS) for row in trace.processed]
    assert came[:4] == [(0, 11), (0, 21), (0, 36), (1, 36)]
