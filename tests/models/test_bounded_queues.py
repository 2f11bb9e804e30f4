"""Bounded queues by hand; and where nothing is ever full, bounds change nothing. Times in milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import ONES
from tests.models.test_exactness import QUICK, check, checked
from tests.models.traced import assert_same_tuples, done, trace_of
from tests.oracle.random_changes import queues, reading
from tests.oracle.random_worlds import overlapping
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Saturating
from tideover.models.job.components import BoltConfig, Links, QueueSettings, Store, WhenFull
from tideover.models.job.spouts import Kafka
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

EACH_ONE = {"tuples": 1}
LONG = {"length": 1000 * MS}
SELDOM: dict[str, Any] = {"checkpoint_interval": 1000 * MS}
PATIENT: dict[str, Any] = {"message_timeout": 1000 * MS}


def counts(senders: str, service: float = 0, window: dict[str, Any] = LONG, **more: Any) -> BoltConfig:
    """Of senders with names of a letter each."""
    return bolt("windowed_count", dict.fromkeys(senders, "shuffle"), service, window=window, **more)


def through(q: BoltConfig, send: int | None = None, **more: Any) -> dict[str, Any]:
    """A tuple every 10 ──▶ p (4) ──▶ q"""
    p = queued(bolt("forward", {"s": "shuffle"}, 4), send=send)
    return {"s": spout(**ONES), "p": p, "q": q}


# -- who waits -----------------------------------------------------------------------------------------------


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
    check(world(topology, "none", until=400, hosts=2, links=slow))


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
    check(scenario)
    offered = scenario.topology["sentences"].arrivals.expected(scenario.run.duration)
    assert simulate(scenario).ledger["emitted"] < offered  # the spout was held back


def chain(length: int, when_full: WhenFull = "block", **more: Any) -> Scenario:
    """q takes 15, and has so many places."""
    q = queued(bolt("forward", {"p": "shuffle"}, 15), length, when_full)
    return world(through(q, send=0), "none", **{"until": 95, **more})


def test_who_finds_no_place_waits_and_begins_nothing_else() -> None:
    """A place of q is free when a service begins there: at 14, 29, 44, …"""
    assert done(chain(1), "p") == [14, 24, 34, 44, 54, 64, 78, 93]
    assert done(chain(1), "q") == [29, 44, 59, 74, 89]


def test_credits_take_a_link_to_come_back() -> None:
    """Links take 2. q begins at 18, 33, 48, …, which p knows 2 later."""
    scenario = chain(1, "credits", links=Links(latency=ms(2), local=ms(0)))
    assert done(scenario, "p") == [16, 26, 36, 46, 56, 69, 84]
    assert done(scenario, "q") == [33, 48, 63, 78, 93]


@pytest.mark.parametrize(("when_full", "first"), [("credits", 20), ("block", 32)])
def test_a_channel_that_is_full_does_not_stop_others(when_full: WhenFull, first: float) -> None:
    """a sends every 2 and has a place of its own, so b's tuple of 20 does not wait; with one for both it
    waits.
    """
    topology = {
        "a": spout(**ONES, gap=2, hosts=(0,)),
        "b": spout(**ONES, gap=20, hosts=(1,)),
        "q": queued(bolt("forward", {"a": "global", "b": "global"}, 10, hosts=(2,)), 1, when_full),
    }
    rows = trace_of(world(topology, "none", hosts=3, until=60)).processed
    arrived = [row[5] / MS for row in rows if row[3] & 3 == 3]
    assert arrived[0] == first
    assert len(arrived) == 1 or when_full == "credits"


def held_up_by_r(q: BoltConfig) -> Scenario:
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
    return world(topology, "none", until=60)


@pytest.mark.parametrize("length", [None, 1])
def test_an_idle_task_begins_with_what_comes_before_another_goes_on(length: int | None) -> None:
    """At 31 b's is at q, which begins it, before r is done and a goes on: though a's are ahead of b's, q has
    begun. At 56 it is the same. Whether q has places for all or for one: nobody waits for them.
    """
    q = queued(bolt("forward", {"a": "shuffle", "b": "shuffle"}, 1), length, "drop" if length else None)
    rows = checked(held_up_by_r(q)).processed
    came = [("ab"[row[3] & 1], row[6] / MS) for row in rows if row[0] == "q"]
    assert came[:4] == [("a", 6), ("a", 11), ("a", 16), ("a", 21)]
    assert came[4:] == [("b", 32), ("a", 33), ("b", 57), ("a", 58)]


def test_a_departure_gives_its_place_to_what_comes_when_another_goes_on() -> None:
    """q serves a's tuple of 5 until 31, that of 10 has the place. At 31 it begins that, before r is done and
    a goes on: that of 25 has the place then, and the next, at 56, finds none.
    """
    scenario = held_up_by_r(queued(bolt("forward", {"a": "shuffle"}, 26), 1, "drop"))
    assert done(scenario, "q") == [31, 57]
    assert [row[4] / MS for row in checked(scenario).overflowed] == [15, 20, 56]


def test_where_a_crash_empties_a_queue_its_senders_go_on() -> None:
    """q is down from 40 to 50 and loses what waits: p, which is blocked since 34, sends at 40."""
    crashed = fault("crash_task", 40, component="q", restart=10, while_down="hold")
    assert done(chain(1, failures=(crashed,)), "q")[:2] == [29, 65]


def test_what_was_in_service_waits_for_its_turn_without_a_place() -> None:
    """At 31 q loses its state while it serves tuple 1, which it serves anew from 91 on. None of its two
    places is taken then: p's tuples of 34 and 44 leave, that of 54 waits until that of 34 begins, at 106.
    """
    lost = fault("lose_state", 31, component="q", restart=60, while_down="hold")
    scenario = world(through(queued(counts("p", 15), 2)), "none", (lost,), until=119)
    check(scenario)
    assert done(scenario, "p") == [14, 24, 34, 44, 54, 110]
    assert done(scenario, "q") == [29, 106]


def test_a_line_that_a_window_makes_too_long_holds_up_until_it_is_shorter() -> None:
    """p puts out a count for each one, q has one place, and takes 65. The count of 30 waits for the place,
    that of 40 is one too many for the line, until q begins at 75: then p counts what came at 50.
    """
    topology = {
        "s": spout(**ONES),
        "p": queued(counts("s", window=EACH_ONE), send=1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 65), 1),
    }
    scenario = world(topology, "none", until=139)
    check(scenario)
    assert done(scenario, "p") == [10, 20, 30, 40, 75]


def test_what_follows_on_a_trigger_is_in_order_with_what_came_before_it() -> None:
    """r has one place, and ends a window with each tuple: at 25 it does, and lets a's tuple of 15 in, behind
    which a's of 20 for q waits. b's comes to q at 25 too, before that; but a's is ahead.
    """
    topology = {
        "a": queued(spout(**ONES, gap=5), send=1),
        "b": spout(**ONES, gap=20, offset=5),
        "p": bolt("forward", {"b": "shuffle"}),
        "q": queued(bolt("forward", {"a": "shuffle", "p": "shuffle"}, 8), 100),
        "r": queued(counts("a", 20, EACH_ONE), 1),
    }
    rows = checked(world(topology, "none", until=45)).processed
    assert [row[3] & 1 for row in rows if row[0] == "q" and row[5] == 25 * MS] == [0, 1]


def test_a_window_that_makes_a_line_too_long_blocks_its_task() -> None:
    """r has one place, and takes 100; q puts out each of its tuples. What it puts out at 31 waits for room,
    which does not keep it; with that of 41 too much waits. At 111 one leaves, and q begins what has come at
    50.
    """
    topology = {
        "s": spout("values", values=(1, 1, 1, 1, 1)),
        "q": queued(counts("s", 1, EACH_ONE), 10, send=1),
        "r": queued(bolt("forward", {"q": "shuffle"}, 100), 1),
    }
    assert done(world(topology, "none", until=300), "q") == [11, 21, 31, 41, 112]


@pytest.mark.parametrize(
    ("spout_is", "emitted"),
    [
        # one place and 15 a tuple: after the first two and the one in service, a call every 15
        ({"arrivals": Saturating(emit_cost=1 * MS)}, [1, 2, 3, 17, 32, 47, 62]),
        # a record every 10, read in 1: from 51 on each read waits in the log for the place
        ({"source": Kafka(poll_cost=1 * MS)}, [11, 21, 31, 41, 51, 61, 72, 87, 102]),
    ],
    ids=["saturating", "log"],
)
def test_a_spout_emits_when_there_is_room(spout_is: dict[str, Any], emitted: list[float]) -> None:
    topology = {
        "s": spout(**ONES).model_copy(update=spout_is),
        "q": queued(bolt("forward", {"s": "shuffle"}, 15), 1, "block"),
    }
    trace = trace_of(world(topology, "none", until=70 if "arrivals" in spout_is else 110))
    assert [row[4] / MS for row in trace.emitted] == emitted


# -- bounds that are never reached ---------------------------------------------------------------------------


def nothing_changes(scenario: Scenario) -> None:
    """Law: results are those of queues without bounds, if no queue is ever full."""
    topology = {name: each.model_copy(update={"queue": None}) for name, each in scenario.topology.items()}
    free = scenario.model_copy(update={"topology": topology})
    bounded = free.model_copy(update={"queues": QueueSettings(length=1_000_000)})
    assert_same_tuples(free, bounded, "recoveries")


def test_bounds_that_are_never_reached_change_nothing() -> None:
    nothing_changes(load("wordcount", {"run.replications": 1}))


@pytest.mark.parametrize(
    ("scenarios", "few"),
    [(overlapping(("rsm",)), 5), (reading(queues(("none", "source_replay"), ("block",))), 3)],
    ids=["replays", "reads"],
)
def test_bounds_that_are_never_reached_change_none(scenarios: st.SearchStrategy[Scenario], few: int) -> None:
    settings(QUICK, max_examples=few)(given(scenarios)(nothing_changes))()


# -- replays take their way through the line of their sender -------------------------------------------------


def replayed(*failures: Any) -> Scenario:
    """5 at q, which counts, has one place, and dies at 32 for 10."""
    died = fault("crash_task", 32, component="q", restart=10, while_down="hold")
    return world(through(queued(counts("p", 5), 1, "block")), "rsm", (died, *failures), 75, **SELDOM)


def test_a_replay_fills_the_line_and_blocks_its_sender() -> None:
    """At 44 p sends four tuples again; two wait in its line until services begin at q at 49 and 54. What has
    come to p at 50 is begun at 54, done at 58, and leaves at 59.
    """
    assert done(replayed(), "p") == [14, 24, 34, 44, 58, 64, 74]
    assert done(replayed(), "q") == [19, 29, 49, 54, 59, 64, 69, 74]


def test_an_end_of_replay_that_dies_in_the_line_is_asked_for_again() -> None:
    """p dies at 50 with the last of the replay, and its end, in its line: when it is back, q learns that no
    more is to come, and takes what is new.
    """
    crashed = fault("crash_task", 50, component="p", restart=5, while_down="hold")
    assert done(replayed(crashed), "q") == [19, 29, 49, 54, 59, 69]


# -- transactions and acks -----------------------------------------------------------------------------------


def test_a_prepare_waits_for_its_sender_in_a_full_queue() -> None:
    """15 at q, which counts and has one place. The prepare of 50 waits at p for the tuple that is done there
    at 54, and has no room at q before 59. Behind that one it comes to q, which takes part at 89, and is kept
    for 7. The commit of 96 is behind what has come to p by then (at 80 and 90): q is kept for it at 156.
    """
    more = PATIENT | {"checkpoint_interval": 50 * MS, "write_time": 7 * MS}
    scenario = world(through(queued(counts("p", 15), 1, "block")), "storm_checkpoint", (), 180, **more)
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
        "q": queued(counts("ap", 1, EACH_ONE), 1),
        "r": queued(bolt("forward", {"q": "shuffle"}, 40), 1),
    }
    more = PATIENT | {"checkpoint_interval": 10 * MS, "write_time": 7 * MS}
    assert done(world(topology, "storm_checkpoint", (), 140, **more), "q") == [11, 21, 31, 52, 92, 139]


def test_who_acks_begins_nothing_though_there_is_room_again() -> None:
    """p counts two tuples, 5 each, and acks them, 20 each. The window of 75 is put out when q has room at
    once: p goes on at 115 all the same.
    """
    topology = {
        "s": spout(**ONES),
        "p": counts("s", 5, {"tuples": 2}),
        "q": queued(bolt("forward", {"p": "shuffle"}), 1, "credits"),
    }
    scenario = world(topology, "source_replay", (), 130, ack_cost=20 * MS, **PATIENT)
    assert done(scenario, "p") == [15, 25, 70, 75, 120, 125]


def test_behind_a_prepare_too_what_comes_at_one_instant_is_in_order() -> None:
    """q has two places, takes 25, and ends a window with each tuple: at 36 it does, and lets a's tuple of 31
    in. b's of 28 comes at 36 too, before that; but a's is ahead. Both are behind the prepare of 23.
    """
    topology = {
        "a": spout(**ONES, offset=1, hosts=(0,)),
        "b": spout(**ONES, gap=28, hosts=(1,)),
        "q": queued(counts("ab", 25, EACH_ONE, hosts=(0,)), 2, "block"),
    }
    far = Links(latency=ms(8), local=ms(0))
    more = PATIENT | {"checkpoint_interval": 23 * MS}
    scenario = world(topology, "storm_checkpoint", until=120, hosts=2, links=far, **more)
    came = [(row[3] & 1, row[5] / MS) for row in checked(scenario).processed]
    assert came[:4] == [(0, 11), (0, 21), (0, 36), (1, 36)]


# -- what finds no room is lost ------------------------------------------------------------------------------


def lost_at_q(scenario: Scenario) -> list[tuple[int, float]]:
    """Which roots q's queue had no room for, and when; in the reference as well."""
    rows = checked(scenario).overflowed
    assert {row[0] for row in rows} == {"q"}
    return sorted((row[3], row[4] / MS) for row in rows)


def test_what_has_no_place_is_lost_and_counted() -> None:
    """Arrivals at 14, 24, …; services begin at 14, 29, 44, 59, 74, 89: 44 and 74 find one waiting."""
    assert [when for _, when in lost_at_q(chain(1, "drop"))] == [44, 74]
    ledger = simulate(chain(1, "drop")).ledger
    assert ledger["lost"] == 2
    assert ledger["emitted"] == sum(ledger[name] for name in ("completed", "in_flight", "lost"))


def test_who_comes_when_acks_end_comes_before_that() -> None:
    """q has one place, is done at 11, and acks until 30; in its place waits the root of 20 when that of 30
    comes, at an instant at which a window ends at x. So it is with the root of 50.
    """
    topology = {
        "s": spout(**ONES, gap=29),
        "t": spout(**ONES),
        "x": counts("s", 1, EACH_ONE),
        "q": queued(counts("t", 1, EACH_ONE), 1, "drop"),
        "r": queued(bolt("forward", {"x": "shuffle", "q": "shuffle"}), 1),
    }
    scenario = world(topology, "source_replay", until=55, ack_cost=19 * MS, **PATIENT)
    assert [when for _, when in lost_at_q(scenario)] == [30, 50]


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
    topology = {"s": spout(**ONES), "q": queued(counts("s", 25), 2, "drop")}
    crash = fault("crash_task", 15, component="q", restart=10, while_down="hold")
    read = Store(latency=30 * MS, bandwidth=2**50)
    more = SELDOM | {"spout_buffer": False, "store": read}
    assert lost_at_q(world(topology, "rsm", (crash,), until=57, **more)) == [(4, 55)]


def test_what_a_replay_brings_again_gives_no_place_back() -> None:
    """q has one place, and loses its state at 35. What p sent at 40 comes at 60, when q waits for its replay,
    which brings it again.
    """
    topology = {
        "s": spout(**ONES, hosts=(0,)),
        "p": bolt("forward", {"s": "shuffle"}, hosts=(0,)),
        "q": queued(counts("p", 25, hosts=(1,)), 1, "drop"),
    }
    lost = fault("lose_state", 35, component="q", restart=10, while_down="hold")
    more = SELDOM | {"hosts": 2, "links": Links(latency=ms(20), local=ms(0)), "replay_cost": 2 * MS}
    assert lost_at_q(world(topology, "rsm", (lost,), until=200, **more))


def test_a_marker_that_was_held_begins_before_what_was_held_behind_it() -> None:
    """q has one place, and is down from 18 to 38. The marker of 20 is ahead of the roots of 25 and 35: it is
    served first, so one of them has the place, and the other finds none.
    """
    count = counts("s", 25, {"length": 20 * MS, "trigger": "marker"})
    topology = {"s": spout(**ONES, offset=15), "q": queued(count, 1, "drop")}
    lost = fault("lose_state", 18, component="q", restart=20, while_down="hold")
    assert lost_at_q(world(topology, "none", (lost,), until=45)) == [(1, 38)]


def test_what_comes_to_a_task_that_is_done_begins_at_once() -> None:
    """r has one place, and takes no time. At 30 it serves what p sends it, then q's window ends with a tuple
    for each of two keys: the first begins, the second has the place.
    """
    topology = {
        "s": spout("keys", keys=3),
        "p": counts("s", window=EACH_ONE),
        "q": counts("s", window={"length": 30 * MS}),
        "r": queued(bolt("forward", {"p": "shuffle", "q": "shuffle"}), 1, "drop"),
    }
    trace = checked(world(topology, "none", until=35))
    at_30 = [row for row in trace.processed if row[0] == "r" and row[6] == 30 * MS]
    assert (len(at_30), trace.overflowed) == (3, [])


# -- what is not over yet ------------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", [(), (fault("crash_task", 70, component="s"),)])
def test_a_window_that_a_spout_could_not_end_yet_is_not_missing(failures: tuple[Any, ...]) -> None:
    """s ──▶ q, which a checkpoint keeps from 12 to 3012. It has one place, so s is held up with the root of
    30, and says that 40 is over when it has got rid of it. Without checkpoints the window would be out at 40.
    """
    q = queued(counts("s", window={"length": 40 * MS, "trigger": "marker"}), 1, "block")
    settings = {"checkpoint_interval": 12 * MS, "serialise_time": 3000 * MS, "spout_buffer": True}
    scenario = world({"s": queued(spout(**ONES), send=0), "q": q}, "rsm", failures, until=2000, **settings)
    run = simulate(scenario)
    assert run.windows == {"emitted": 0, "correct": 0, "wrong": 0, "missing": 0}
    assert [row["time_to_recover_s"] for row in run.recoveries] == [0] * len(failures)
    check(scenario)
