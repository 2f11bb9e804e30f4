"""Sessions by arrival: what ends one is that a task has got nothing of its key for a while.

    a (each 700 ms) ──┐
                      ├──▶ count, gap 350 ms     tuple i of a (from 0) is bit i, tuple j of b bit 10 + j
    b (each 1 s) ─────┘

Tuples come at 700, 1000 | 1400 | 2000, 2100 | 2800, 3000 | 3500 | 4000, 4200 | 4900, 5000 ms: more than 350
ms lie between two only where a bar is.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.oracle import run as reference
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate

GAP = 350 * MS


def counted(strategy: str = "none", failures: tuple[Any, ...] = (), **more: Any) -> Scenario:
    """``through``: what is between the spouts and the count."""
    topology = {
        "a": spout("values", 700, values=tuple(1 << i for i in range(7))),
        "b": spout("values", 1000, values=tuple(1 << 10 + j for j in range(5))),
        **{name: bolt("forward", {"a": "fields", "b": "fields"}) for name in more.get("through", ())},
        "count": bolt(
            "windowed_count",
            dict.fromkeys(more.pop("through", ("a", "b")), "fields"),
            ms(more.pop("service", 0)),
            window=Window(gap=GAP, **more.pop("window", {})),
        ),
    }
    return world(topology, strategy, failures, more.pop("until", 6000), **more)


def put_out(windows: list[tuple[str, int, int, int, int, dict[int, int]]]) -> list[tuple[int, float, int]]:
    """(number of the look, when it has its turn (ms), what is in it), where there is something."""
    found = [(number, time / MS, sums[0]) for *_, number, time, sums in windows if sums]
    return sorted(found)


def bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


SESSIONS = [
    (4, 1400, bits(0, 10)),  # it has ended at 1350
    (5, 1750, bits(1)),  # at 1750
    (7, 2450, bits(2, 11)),
    (10, 3500, bits(3, 12)),  # at 3350
    (11, 3850, bits(4)),
    (13, 4550, bits(5, 13)),
    (16, 5600, bits(6, 14)),  # at 5350
]


@pytest.mark.parametrize("who", ["engine", "reference"])
def test_a_gap_ends_a_session(who: str) -> None:
    """The task looks each 350 ms, for that is less than the 1 s of `watermark_interval`: a session of which
    the last tuple came at t is put out by the first look at or after t + 350. What comes at the moment of a
    look (1400, 2100, 2800, 3500, 4200, 4900) comes before it.
    """
    scenario = counted()
    trace = reference(scenario) if who == "reference" else simulate(scenario, trace=True).trace
    assert trace is not None
    assert put_out(trace.windows) == SESSIONS


def test_a_longer_interval_is_the_gap_and_a_shorter_one_is_taken() -> None:
    """Each 100 ms: 1350 is seen to be over at 1400, 1750 at 1800, 2450 at 2500."""
    found = simulate(counted(window={"watermark_interval": 100 * MS}), trace=True)
    assert found.trace is not None
    assert put_out(found.trace.windows)[:3] == [
        (14, 1400, SESSIONS[0][2]),
        (18, 1800, SESSIONS[1][2]),
        (25, 2500, SESSIONS[2][2]),
    ]


@pytest.mark.parametrize("strategy", ["none", "source_replay"])
def test_neither_a_queue_nor_a_pause_moves_a_tuple_to_another_session(strategy: str) -> None:
    """Service takes 200 ms, and the task is stopped from 950 to 2150: tuples wait, and looks behind them,
    but what counts is when they came. All is put out under its look's number as before, at a later moment.
    """
    stop = fault("pause", 950, component="count", duration=1200 * MS)
    found = simulate(counted(strategy, (stop,), service=200, until=7000), trace=True)
    assert found.trace is not None
    got = put_out(found.trace.windows)
    assert [(number, sums) for number, _, sums in got] == [(number, sums) for number, _, sums in SESSIONS]
    assert got[0][1] > 2150 > SESSIONS[0][1]
    assert (found.windows["wrong"], found.windows["missing"]) == (0, 0)


def test_what_comes_again_comes_at_another_time() -> None:
    """The count crashes at 2050 with the tuple of 2000, and is back at 2450; what comes meanwhile is dropped.
    The checkpoint of the look of 1750 has nothing open. Who sends to it has the tuples of 2000 and 2100, and
    sends them again, 1 ms each: they arrive at 2451 and 2452. That of 2800 comes 348 ms later: four tuples
    are one session, that ends at 3350, instead of two. Window 7 is missing, window 10 (of 3500) is wrong, and
    each tuple counts once.
    """
    crash = fault("crash_task", 2050, component="count", detection=400)
    keys = {"checkpoint_interval": 60_000 * MS, "replay_cost": MS, "through": ("p",)}
    found = simulate(counted("rsm", (crash,), **keys), trace=True)
    assert found.trace is not None
    got = put_out(found.trace.windows)
    assert got == [*SESSIONS[:2], (10, 3500, bits(2, 11, 3, 12)), *SESSIONS[4:]]
    assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 0)
    assert (found.windows["wrong"], found.windows["missing"]) == (1, 1)


def test_replicas_disagree_where_a_tuple_comes_to_them_at_different_moments() -> None:
    """The first replica is on a's host, the second on b's, 100 ms away. The tuples of 700 and 1000 come to
    the first at 700 and 1100, which are two sessions, and to the second at 800 and 1000, which is one: who
    reads both has the first tuple in window 3 and in window 4. That is what k-safety is with a timer, and
    what it is told before the run.
    """
    links = Links(latency=ms(100), local=ms(0))
    scenario = counted("active_replication", k=1, links=links, hosts=2)
    found = simulate(scenario, trace=True)
    assert found.trace is not None
    first = {row[2]: (row[3], row[5]) for row in reversed(found.trace.windows) if row[5]}
    assert first == {0: (3, {0: bits(0)}), 1: (4, {0: bits(0, 10)})}
    assert any("use window: {gap: …, by: event}" in text for text in warnings(scenario))


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({"gap": GAP, "trigger": "marker"}, "what ends sessions by arrival is their task's clock"),
        ({"gap": GAP + 1}, "gap and watermark_interval must be whole milliseconds"),
        ({"gap": GAP, "lag": MS}, "lag is of windows by event"),
        ({"length": GAP, "watermark_interval": MS}, "watermark_interval is of windows by event"),
    ],
)
def test_what_makes_no_sense_is_refused(window: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Window(**window)
