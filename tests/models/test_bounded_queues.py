"""Bounded queues: the engine against the per-tuple reference, worlds worked out by hand; and where nothing
is ever full, bounds change nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Saturating
from tideover.models.job.components import BoltConfig, Links, QueueSettings, WhenFull
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

STRATEGIES = ("none", "source_replay")


@settings(QUICK, max_examples=15)
@given(queues(STRATEGIES, ("block",)))
def test_who_waits_for_room_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(STRATEGIES, ("block",)))
def test_many_that_wait(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@settings(QUICK, max_examples=20)
@given(queues((*STRATEGIES, "aligned_snapshots"), ("credits",)))
def test_who_waits_for_credit_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@pytest.mark.long
@settings(LONG)
@given(queues((*STRATEGIES, "aligned_snapshots"), ("credits", "credits", "block")))
def test_many_that_wait_for_credit(scenario: Scenario) -> None:
    assert differences(scenario) == {}


@settings(QUICK, max_examples=10)
@given(queues(STRATEGIES, ("block", "block", "credits")))
def test_who_waits_for_either_is_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario) == {}


def test_the_next_word_waits_until_the_first_has_come_and_begun() -> None:
    """q is idle when the words of a sentence leave p, so the first begins 2 later, and only then has the next
    one a place.
    """
    topology = {
        "s": spout("sentences", gap=8),
        "p": bolt("split_words", {"s": "shuffle"}, 3, hosts=(0,)),
        "q": queued(bolt("forward", {"p": "shuffle"}, 1, hosts=(1,)), 1),
    }
    slow = Links(latency=ms(2), local=ms(0))
    assert differences(world(topology, "none", until=400, hosts=2, links=slow)) == {}


SATURATED: dict[str, dict[str, Any]] = {
    "one task each": {
        "topology.sentences.rate": "4000/s",
        "queues.length": 100,
        "run.duration": "0.6 s",
    },
    "many tasks": {
        "topology.sentences.rate": "3000/s",
        "topology.split.parallelism": 3,
        "topology.split.service": {"kind": "exponential", "mean": "0.6 ms"},
        "topology.count.parallelism": 4,
        "topology.count.service": "0.3 ms",
        "queues.length": 70,
        "run.duration": "0.4 s",
    },
}


@pytest.mark.parametrize("of", SATURATED)
@pytest.mark.parametrize("when_full", ["block", "credits"])
@pytest.mark.parametrize("send", [0, 100])
def test_a_saturated_word_count_is_as_in_the_reference(of: str, when_full: str, send: int) -> None:
    """Queues of a hundred places that are full all the time, between one task each or between several."""
    changes = SATURATED[of] | {
        "topology.count.window": "100 ms",
        "queues.send": send,
        "queues.when_full": when_full,
        "strategy.kind": "source_replay",
        "failures": [],
        "run.warmup": "0 s",
        "run.seed": 3,
        "run.replications": 1,
    }
    scenario = load("wordcount", changes)
    assert differences(scenario) == {}
    offered = scenario.topology["sentences"].arrivals.expected(scenario.run.duration)  # type: ignore[union-attr]
    assert simulate(scenario).ledger["emitted"] < offered  # the spout was held back


def chain(length: int | None, when_full: WhenFull = "block", send: int = 0, **more: object) -> Scenario:
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


def test_credits_take_a_link_to_come_back() -> None:
    """Links take 2. q begins at 18, 33, 48, …, which p knows 2 later."""
    slow = Links(latency=ms(2), local=ms(0))
    assert done(chain(1, "credits", links=slow), "p") == [16, 26, 36, 46, 56, 69, 84]
    assert done(chain(1, "credits", links=slow), "q") == [33, 48, 63, 78, 93]


def test_a_channel_that_is_full_does_not_stop_others() -> None:
    """a sends every 2 and has a place of its own, so b's tuple of 20 does not wait; with one for both it
    waits.
    """

    def arrived(when_full: WhenFull) -> list[float]:
        topology = {
            "a": spout(**ONES, gap=2, hosts=(0,)),
            "b": spout(**ONES, gap=20, hosts=(1,)),
            "q": queued(bolt("forward", {"a": "global", "b": "global"}, 10, hosts=(2,)), 1, when_full),
        }
        found = simulate(world(topology, "none", hosts=3, until=60), trace=True)
        assert found.trace is not None
        return [row[5] / MS for row in found.trace.processed if row[3] & 3 == 3]

    assert arrived("credits")[0] == 20
    assert arrived("block") == [32]


def held_up_by_r(q: BoltConfig, until: float) -> Scenario:
    """a has a tuple every 5 from 5 on, for p and then for q. p needs 1 and has one place, as r, which is done
    at 31, 56, …: that of 15 waits in p's line since 16, that of 20 has p's place, and that of 25 waits in a's
    line, its copy for q behind it. When r is done one moves up everywhere, the copy goes to q, and a is
    called 5 later: at 36, and its copy for q goes at 56. So q has a's at 5, 10, 15, 20, 31, 56; and b's, if
    it reads them, at 31, 56.
    """
    topology = {
        "a": spout(**ONES, gap=5),
        "b": spout(**ONES, gap=25, offset=6),
        "p": queued(bolt("forward", {"a": "shuffle"}, 1), 1),
        "q": q,
        "r": queued(bolt("forward", {"p": "shuffle"}, 25), 1),
    }
    if "b" not in q.from_:
        del topology["b"]
    return world(topology, "none", until=until)


@pytest.mark.parametrize("length", [None, 1])
def test_an_idle_task_begins_with_what_comes_before_another_goes_on(length: int | None) -> None:
    """At 31 b's is at q, which begins it, before r is done and a goes on: though a's are ahead of b's, q has
    begun. At 56 it is the same. Whether q has places for all or for one: nobody waits for them.
    """
    q = queued(bolt("forward", {"a": "shuffle", "b": "shuffle"}, 1), length, "drop" if length else None)
    scenario = held_up_by_r(q, until=60)
    assert differences(scenario) == {}
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    came = [("ab"[row[3] & 1], row[6] / MS) for row in trace.processed if row[0] == "q"]
    assert came[:4] == [("a", 6), ("a", 11), ("a", 16), ("a", 21)]
    assert came[4:] == [("b", 32), ("a", 33), ("b", 57), ("a", 58)]


def test_a_departure_gives_its_place_to_what_comes_when_another_goes_on() -> None:
    """q serves a's tuple of 5 until 31, that of 10 has the place. At 31 it begins that, before r is done and
    a goes on: that of 25 has the place then, and the next, at 56, finds none.
    """
    scenario = held_up_by_r(queued(bolt("forward", {"a": "shuffle"}, 26), 1, "drop"), until=60)
    assert differences(scenario) == {}
    assert done(scenario, "q") == [31, 57]
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    assert [row[4] / MS for row in trace.overflowed] == [15, 20, 56]


def test_where_a_crash_empties_a_queue_its_senders_go_on() -> None:
    """q is down from 40 to 50 and loses what waits: p, which is blocked since 34, sends at 40."""
    crashed = fault("crash_task", 40, component="q", restart=10, while_down="hold")
    assert done(chain(1, failures=(crashed,)), "q")[:2] == [29, 65]


def test_what_was_in_service_waits_for_its_turn_without_a_place() -> None:
    """At 31 q loses its state while it serves tuple 1, which it serves anew from 91 on. None of its two
    places is taken then: p's tuples of 34 and 44 leave, that of 54 waits until that of 34 begins, at 106.
    """
    lost = fault("lose_state", 31, component="q", restart=60, while_down="hold")
    topology = {
        "s": spout(**ONES),
        "p": bolt("forward", {"s": "shuffle"}, 4),
        "q": queued(bolt("windowed_count", {"p": "shuffle"}, 15, window={"length": 1000 * MS}), 2),
    }
    scenario = world(topology, "none", (lost,), until=119)
    assert not differences(scenario)
    assert done(scenario, "p") == [14, 24, 34, 44, 54, 110]
    assert done(scenario, "q") == [29, 106]


def test_a_line_that_a_window_makes_too_long_holds_up_until_it_is_shorter() -> None:
    """p puts out a count for each one, q has one place, and takes 65. The count of 30 waits for the place,
    that of 40 is one too many for the line, until q begins at 75: then p counts what came at 50.
    """
    topology = {
        "s": spout(**ONES),
        "p": queued(bolt("windowed_count", {"s": "shuffle"}, window={"tuples": 1}), send=1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 65), 1),
    }
    scenario = world(topology, "none", until=139)
    assert not differences(scenario)
    assert done(scenario, "p") == [10, 20, 30, 40, 75]


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
