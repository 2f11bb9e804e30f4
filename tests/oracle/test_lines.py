"""Bounded queues of the reference, against worlds worked out by hand (in milliseconds), recursions, and
Markov chains.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.oracle import Trace, run
from tests.oracle.layout import Layout
from tests.oracle.test_oracle import departures, windows
from tests.oracle.worlds import MS, ONES, bolt, fault, ms, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.components import Links
from tideover.sim.distributions import Exponential
from tideover.sim.draws import Draws, Purpose


def arrivals(trace: Trace, component: str, task: int = 0, replica: int = 0) -> list[tuple[int, float]]:
    """(uid, arrival) at one task."""
    rows = [row for row in trace.processed if row[:3] == (component, task, replica)]
    return [(row[3], row[5] / MS) for row in rows]


def overflowed(trace: Trace) -> list[tuple[int, float]]:
    return [(row[3], row[4] / MS) for row in trace.overflowed]


def emissions(trace: Trace) -> list[float]:
    return [row[4] / MS for row in trace.emitted]


def numbered(*times: float) -> list[tuple[int, float]]:
    return list(enumerate(times))


def tandem(length: int = 1, when_full: str = "block", send: int = 0, **more: Any) -> Trace:
    """A tuple every 10; 4 at p, 15 at q, which has so many places."""
    topology = {
        "s": spout(**ONES),
        "p": queued(bolt("forward", {"s": "shuffle"}, 4), send=send),
        "q": queued(bolt("forward", {"p": "shuffle"}, 15), length, when_full),
    }
    return run(world(topology, **{"until": 95, **more}))


def into_one(length: int, every: float, **b: Any) -> Trace:
    """Two spouts, the first with a call ``every`` so often, and a bolt that takes 10 for each tuple.

    Names of tuples: 4 n of the first, 4 n + 3 of the second.
    """
    topology = {
        "a": spout(**ONES, gap=every, hosts=(0,)),
        "b": spout(**ONES, **b, hosts=(1,)),
        "p": queued(bolt("forward", {"a": "global", "b": "global"}, 10, hosts=(2,)), length),
    }
    slow = Links(latency=ms(0), local=ms(0), pairs={"1-2": ms(5)}) if length == 2 else None
    return run(world(topology, hosts=3, until=65, **({"links": slow} if slow else {})))


def test_who_finds_no_place_waits_and_begins_nothing_else() -> None:
    """A place of q is free when a service begins there: at 14, 29, 44, …"""
    trace = tandem()
    assert departures(trace, "p") == numbered(14, 24, 34, 44, 54, 64, 78, 93)
    assert arrivals(trace, "q") == numbered(14, 24, 34, 44, 59)
    assert departures(trace, "q") == numbered(29, 44, 59, 74, 89)
    assert trace.ledger["in_flight"] == trace.ledger["emitted"] - 5 == 4


def test_with_more_places_it_waits_later() -> None:
    assert departures(tandem(2), "p") == numbered(14, 24, 34, 44, 54, 64, 74, 84, 94)
    assert arrivals(tandem(2), "q") == numbered(14, 24, 34, 44, 54)


def test_a_send_queue_lets_the_next_begin() -> None:
    trace = tandem(send=1)
    assert departures(trace, "p") == numbered(14, 24, 34, 44, 54, 64, 74, 84, 94)
    assert departures(trace, "q") == numbered(29, 44, 59, 74, 89)


def test_calls_of_a_blocked_spout_are_late() -> None:
    topology = {"s": spout(**ONES), "p": queued(bolt("forward", {"s": "shuffle"}, 25), 1)}
    trace = run(world(topology, until=111))
    assert emissions(trace) == [10, 20, 30, 45, 70, 95]
    assert arrivals(trace, "p") == numbered(10, 20, 35, 60)


def test_a_spout_with_a_send_queue_is_called_meanwhile() -> None:
    topology = {"s": queued(spout(**ONES), send=1), "p": queued(bolt("forward", {"s": "shuffle"}, 25), 1)}
    trace = run(world(topology, until=85))
    # 30 waits until 35; with that of 50 there are two, until p begins its next at 60
    assert emissions(trace) == [10, 20, 30, 40, 50, 70]
    assert arrivals(trace, "p") == numbered(10, 20, 35)


def test_places_go_to_who_has_asked_first() -> None:
    """a asks at 20 and has the place of 20; b at 23, and is before a, who asks again at 30."""
    trace = into_one(1, 10, offset=3)
    assert arrivals(trace, "p") == [(0, 10), (3, 13), (4, 20), (7, 30), (8, 40)]


def test_of_two_who_ask_at_once_the_first_task_is_first() -> None:
    trace = into_one(1, 10)
    assert arrivals(trace, "p") == [(0, 10), (3, 10), (4, 20), (7, 30), (8, 40)]


def test_what_comes_at_once_is_in_order_of_tasks() -> None:
    """At 13 b's tuple comes over the wire, and a's third one has the place that was freed at that instant."""
    trace = into_one(2, 3, gap=8)
    assert arrivals(trace, "p")[:4] == [(0, 3), (4, 6), (8, 13), (3, 13)]


def test_who_waits_holds_up_all_that_is_behind() -> None:
    topology = {
        "s": spout(**ONES),
        "slow": queued(bolt("forward", {"s": "shuffle"}, 25), 1),
        "fast": bolt("forward", {"s": "shuffle"}),
    }
    assert arrivals(run(world(topology, until=90)), "fast") == numbered(10, 20, 35, 60, 85)
    first = {name: topology[name] for name in ("s", "fast", "slow")}
    assert arrivals(run(world(first, until=90)), "fast") == numbered(10, 20, 30, 45, 70)


def test_a_queue_that_drops_loses_what_finds_it_full() -> None:
    """At 60 a tuple comes before the one in service leaves."""
    topology = {"s": spout(**ONES), "p": queued(bolt("forward", {"s": "shuffle"}, 25), 1, "drop")}
    trace = run(world(topology, until=105))
    assert departures(trace, "p") == [(0, 35), (1, 60), (3, 85)]
    assert overflowed(trace) == [(2, 30), (4, 50), (5, 60), (7, 80), (9, 100)]
    assert trace.ledger == trace.ledger | {"emitted": 10, "completed": 3, "in_flight": 2, "lost": 5}


def test_what_a_queue_drops_times_out_and_not_falsely() -> None:
    topology = {"s": spout(**ONES), "p": queued(bolt("forward", {"s": "shuffle"}, 25), 1, "drop")}
    trace = run(world(topology, "source_replay", until=105, message_timeout=45 * MS, timeout_phase=0))
    assert [row[:2] for row in trace.failed] == [(2, 0)]  # emitted at 30; the rotation of 45 was the first
    assert trace.ledger["false_timeouts"] == 0


def test_credits_take_a_link_to_come_back() -> None:
    trace = tandem(when_full="credits", links=Links(latency=ms(2), local=ms(0)))
    assert departures(trace, "p") == numbered(16, 26, 36, 46, 56, 69, 84)
    assert arrivals(trace, "q") == numbered(18, 28, 38, 52, 67)


def test_credits_are_of_each_channel() -> None:
    """Both tuples of 10 have a place; b's of 20 waits until the first has begun, at 20."""
    topology = {
        "a": spout(**ONES),
        "b": spout(**ONES),
        "p": queued(bolt("forward", {"a": "global", "b": "global"}, 10), 1, "credits"),
    }
    trace = run(world(topology, until=65))
    assert arrivals(trace, "p") == [(0, 10), (3, 10), (4, 20), (7, 20), (8, 30)]


def crash(component: str, at: float, restart: float, while_down: str) -> dict[str, Any]:
    return {
        "failures": (fault("crash_task", at, component=component, restart=restart, while_down=while_down),)
    }


def destroyed(trace: Trace) -> list[tuple[str, int, float]]:
    return [(row[0], row[3], row[4] / MS) for row in trace.destroyed]


def test_a_receiver_that_crashes_has_room() -> None:
    trace = tandem(**crash("q", 50, 20, "drop"))
    assert destroyed(trace) == [("q", 2, 50), ("q", 3, 50), ("q", 4, 54), ("q", 5, 64)]
    assert departures(trace, "p") == numbered(14, 24, 34, 44, 54, 64, 74, 84, 94)
    assert departures(trace, "q") == [(0, 29), (1, 44), (6, 89)]


def test_what_is_held_for_a_receiver_keeps_its_place() -> None:
    trace = tandem(**crash("q", 50, 20, "hold"))
    assert destroyed(trace) == [("q", 2, 50), ("q", 3, 50)]
    assert departures(trace, "p") == numbered(14, 24, 34, 44, 54, 64, 74, 89)
    assert departures(trace, "q") == [(0, 29), (1, 44), (4, 85)]


def test_what_waits_to_be_sent_is_lost_with_its_task() -> None:
    trace = tandem(**crash("p", 70, 5, "drop"))
    assert destroyed(trace) == [("p", 6, 70), ("q", 5, 70)]
    assert departures(trace, "p")[5:] == [(5, 64), (7, 84), (8, 94)]
    assert trace.ledger["lost"] == 2


def test_who_is_stopped_sends_nothing() -> None:
    """It has room at 74, and is stopped until 90."""
    trace = tandem(failures=(fault("pause", 70, component="p", duration=20 * MS),), until=110)
    assert departures(trace, "p") == numbered(14, 24, 34, 44, 54, 64, 94, 98, 109)
    assert arrivals(trace, "q")[5:] == [(5, 90)]


def test_a_window_of_who_waits_ends_later() -> None:
    """q takes 60 and has a place: the window of 100 waits there until 145, and so does that of 125."""
    topology = {
        "s": spout(**ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"length": 25 * MS}),
        "q": queued(bolt("forward", {"count": "shuffle"}, 60), 1),
    }
    trace = run(world(topology, until=149))
    ends = [(1, 25, {0: 2}), (2, 50, {0: 3}), (3, 75, {0: 2}), (4, 100, {0: 3}), (5, 145, {0: 2})]
    assert windows(trace) == ends
    assert departures(trace, "count") == numbered(10, 20, 30, 40, 50, 60, 70, 85, 90, 100, 145, 145)


SERVICE = 10 * MS


def series(places: tuple[int, ...], until: float) -> Scenario:
    """Servers one after the other, each with a bounded queue; the first always has something to do."""
    topology = {"s": spout(**ONES, gap=0.000_001)}
    up = "s"
    for number, length in enumerate(places):
        topology[f"b{number}"] = queued(bolt("forward", {up: "shuffle"}, Exponential(mean=SERVICE)), length)
        up = f"b{number}"
    return world(topology, until=until)


def services(scenario: Scenario, roots: int) -> npt.NDArray[np.int64]:
    """Of each server, for each tuple."""
    layout = Layout(scenario, Draws(scenario.run.seed, 0))
    names = [name for name in layout.order if name != "s"]
    configs = [layout.config[name] for name in names]
    return np.array(
        [
            [layout.sample(config.service, name, Purpose.SERVICE, n) for n in range(roots)]
            for name, config in zip(names, configs, strict=True)
        ]
    )


@pytest.mark.parametrize("places", [(1, 1), (3, 2), (2, 3, 1), (1, 1, 4)])
def test_blocking_after_service_is_a_recursion(places: tuple[int, ...]) -> None:
    """Tuple n leaves server i when it is done there, and tuple n - B has begun at server i + 1.

    H. G. Perros, *Queueing Networks with Blocking*, Oxford 1994, section 2 ("blocking after service").
    """
    scenario, last = series(places, 1000), len(places) - 1
    found = [row[6] for row in run(scenario).processed if row[0] == f"b{last}"]
    roots = len(found)
    assert roots > 40
    times = services(scenario, roots)
    begun, left = np.zeros((2, len(places), roots), np.int64)
    came_first = 0
    for n in range(roots):
        came_first += 1  # a nanosecond after the call before has left
        if n >= places[0]:
            came_first = max(came_first, begun[0, n - places[0]])
        came = came_first
        for i in range(len(places)):
            begun[i, n] = max(came, left[i, n - 1] if n else 0)
            left[i, n] = begun[i, n] + times[i, n]
            if i < last and n >= places[i + 1]:
                left[i, n] = max(left[i, n], begun[i + 1, n - places[i + 1]])
            came = left[i, n]
    assert found == left[last].tolist()


def stationary(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the Markov chain with these rates from row to column."""
    n = len(rates)
    balance = rates.T - np.diag(rates.sum(axis=1))
    found, *_ = np.linalg.lstsq(np.vstack([balance, np.ones(n)]), np.append(np.zeros(n), 1.0), rcond=None)
    return np.asarray(found)


def within(counted: int, expected: float, per_tuple: float = 1.0) -> None:
    """Four standard deviations; a count of independent events has the variance of its mean."""
    assert abs(counted - expected) <= 4 * math.sqrt(expected * per_tuple), (counted, expected)


@pytest.mark.parametrize("places", [1, 4])
def test_loss_of_a_queue_that_drops(places: int) -> None:
    """M/M/1/K, where K has the one in service: p(K) of the arrivals are lost."""
    load, until = 0.9, 20
    rate = load * 1e9 / SERVICE
    topology = {
        "s": spout("values", values=(1,), repeat=True, arrivals=Poisson(rate=rate)),
        "p": queued(bolt("forward", {"s": "shuffle"}, Exponential(mean=SERVICE)), places, "drop"),
    }
    trace = run(world(topology, until=until * 1000))
    births = np.diag(np.full(places + 1, load), 1) + np.diag(np.full(places + 1, 1.0), -1)
    lost = stationary(births)[-1]
    assert lost == pytest.approx((1 - load) * load ** (places + 1) / (1 - load ** (places + 2)))
    within(len(trace.overflowed), rate * until * lost, per_tuple=places + 1)


@pytest.mark.parametrize("places", [1, 3])
def test_throughput_of_two_servers(places: int) -> None:
    """The first always has something to do: at the second there are up to B + 1, or one more is blocked."""
    until = 20
    trace = run(series((1, places), until * 1000))
    states = places + 3
    births = np.diag(np.ones(states - 1), 1) + np.diag(np.ones(states - 1), -1)
    rate = (1 - stationary(births)[0]) * 1e9 / SERVICE
    assert rate == pytest.approx((places + 2) / (places + 3) * 1e9 / SERVICE)
    within(sum(row[0] == "b1" and row[6] > 1e9 for row in trace.processed), rate * (until - 1))


def test_places_are_shared_alike() -> None:
    """Of three that always have something to send each gets one place after the other, in turn."""
    topology = {name: spout(**ONES, gap=1) for name in "abc"}
    inputs = dict.fromkeys(topology, "global")
    topology["p"] = queued(bolt("forward", inputs, 10), 2)
    trace = run(world(topology, until=1000))
    edges = [row[3] & 3 for row in trace.processed]  # two digits: the spout, and the edge
    assert max(Counter(edges).values()) - min(Counter(edges).values()) <= 1
    assert all(len(set(edges[i : i + 3])) == 3 for i in range(3, len(edges) - 3))
