"""Queues of which what finds no room is lost: the engine against the per-tuple reference, and by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links, Store
from tideover.models.simulation import simulate
from tideover.models.world import World

STRATEGIES = ("none", "source_replay", "rsm")


@settings(QUICK, max_examples=10)
@given(queues(STRATEGIES, ("drop",)))
def test_what_finds_no_room_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(STRATEGIES, ("drop",)))
def test_many_that_find_no_room(scenario: Scenario) -> None:
    assert differences(scenario) == {}


# -- by hand: a root every 10 ms from 0 on -------------------------------------------------------------------


def lost_at_q(scenario: Scenario) -> list[tuple[int, float]]:
    """Which roots q's queue had no room for, and when (ms); in the reference as well."""
    assert not differences(scenario)
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    assert {row[0] for row in trace.overflowed} == {"q"}
    return sorted((row[3], row[4] / MS) for row in trace.overflowed)


def counting(sender: str) -> Any:
    """25 for each tuple."""
    return bolt("windowed_count", {sender: "shuffle"}, 25, window={"length": 1000 * MS})


def test_what_has_no_place_is_lost_and_counted() -> None:
    """Arrivals at 14, 24, …; services begin at 14, 29, 44, 59, 74, 89: 44 and 74 find one waiting."""
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(bolt("forward", {"p": "shuffle"}, 15), 1, "drop"),
    }
    run = World(world(topology, "none", until=95), trace=True)
    run.run()
    assert run.trace is not None
    assert [row[4] / MS for row in run.trace.overflowed] == [44, 74]
    balance = run.balance()
    assert balance["lost"] == 2
    assert balance["emitted"] == sum(balance[name] for name in ("completed", "in_flight", "lost"))


def test_who_comes_when_acks_end_comes_before_that() -> None:
    """q has one place, is done at 11, and acks until 30; in its place waits the root of 20 when that of 30
    comes, at an instant at which a window ends at x. So it is with the root of 50.
    """
    topology = {
        "s": spout(**ONES, gap=29),
        "t": spout(**ONES),
        "x": bolt("windowed_count", {"s": "shuffle"}, 1, window={"tuples": 1}),
        "q": queued(bolt("windowed_count", {"t": "shuffle"}, 1, window={"tuples": 1}), 1, "drop"),
        "r": queued(bolt("forward", {"x": "shuffle", "q": "shuffle"}), 1),
    }
    more: dict[str, Any] = {"ack_cost": 19 * MS, "message_timeout": 1000 * MS}
    assert [when for _, when in lost_at_q(world(topology, "source_replay", until=55, **more))] == [30, 50]


def test_what_was_in_service_takes_no_place_when_it_waits_again() -> None:
    """q has two places, and loses its state at 15, for 40, with root 0 in service: at 55 that one begins
    again, so of roots 1 to 4, which were held, two have a place.
    """
    topology = {"s": spout(**ONES), "q": queued(bolt("forward", {"s": "shuffle"}, 25), 2, "drop")}
    lost = fault("lose_state", 15, component="q", restart=40, while_down="hold")
    assert lost_at_q(world(topology, "none", (lost,), until=65)) == [(3, 55), (4, 55), (5, 60)]


def test_of_what_was_held_until_the_restore_the_first_begins_at_once() -> None:
    """q counts, has two places, crashes at 15, is up at 25 with root 1 held for it, and has its state at 55:
    of roots 1 to 4, which were held, one begins and two have a place.
    """
    topology = {"s": spout(**ONES), "q": queued(counting("s"), 2, "drop")}
    crash = fault("crash_task", 15, component="q", restart=10, while_down="hold")
    read = Store(latency=30 * MS, bandwidth=2**50)
    more: dict[str, Any] = {"spout_buffer": False, "store": read, "checkpoint_interval": 1000 * MS}
    assert lost_at_q(world(topology, "rsm", (crash,), until=57, **more)) == [(4, 55)]


def test_what_a_replay_brings_again_gives_no_place_back() -> None:
    """q has one place, and loses its state at 35. What p sent at 40 comes at 60, when q waits for its replay,
    which brings it again.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, hosts=(0,)),
        "q": queued(counting("p").model_copy(update={"hosts": (1,)}), 1, "drop"),
    }
    lost = fault("lose_state", 35, component="q", restart=10, while_down="hold")
    far = Links(latency=ms(20), local=ms(0))
    more: dict[str, Any] = {"hosts": 2, "links": far, "replay_cost": 2 * MS, "checkpoint_interval": 1000 * MS}
    assert lost_at_q(world(topology, "rsm", (lost,), until=200, **more))


def test_a_marker_that_was_held_begins_before_what_was_held_behind_it() -> None:
    """q has one place, and is down from 18 to 38. The marker of 20 is ahead of the roots of 25 and 35: it is
    served first, so one of them has the place, and the other finds none.
    """
    count = bolt("windowed_count", {"s": "shuffle"}, 25, window={"length": 20 * MS, "trigger": "marker"})
    topology = {"s": spout(**ONES, offset=15), "q": queued(count, 1, "drop")}
    lost = fault("lose_state", 18, component="q", restart=20, while_down="hold")
    scenario = world(topology, "none", (lost,), until=45)
    assert not differences(scenario)
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    assert [(row[3], row[4] / MS) for row in trace.overflowed] == [(1, 38)]


def test_what_comes_to_a_task_that_is_done_begins_at_once() -> None:
    """r has one place, and takes no time. At 30 it serves what p sends it, then q's window ends with a tuple
    for each of two keys: the first begins, the second has the place.
    """
    topology = {
        "s": spout("keys", keys=3),
        "p": bolt("windowed_count", {"s": "shuffle"}, window={"tuples": 1}),
        "q": bolt("windowed_count", {"s": "shuffle"}, window={"length": 30 * MS}),
        "r": queued(bolt("forward", {"p": "shuffle", "q": "shuffle"}), 1, "drop"),
    }
    scenario = world(topology, "none", until=35)
    assert not differences(scenario)
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    at_30 = [row for row in trace.processed if row[0] == "r" and row[6] == 30 * MS]
    assert (len(at_30), trace.overflowed) == (3, [])
