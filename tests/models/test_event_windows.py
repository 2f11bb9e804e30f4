"""Windows by event: watermarks, late tuples, idle inputs, batches; the example that Storm's windows are
explained with. And sessions by arrival, which end when a task has got nothing of their key for a while.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.models.traced import trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import remarks_on_limits, warnings
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load, load_text

S = 1000 * MS
HOUR = 3600
EXAMPLE = Path(__file__).parents[2] / "examples" / "event-windows.yaml"
FIRST, SECOND = (3, 5, 7, 18, 26, 36), (25, 26, 27, 39)


def bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


def members(sums: dict[int, int]) -> list[int]:
    """The tuples whose bits are in the sums of a window."""
    return [i for i in range(64) if sum(sums.values()) >> i & 1]


def put_out(trace: Any) -> list[tuple[int, int, list[int]]]:
    """(when in s, which end in s of the events' clock, what is in it), in order."""
    return sorted((time // S, number * 10, members(sums)) for *_, number, time, sums in trace.windows)


@pytest.mark.parametrize("who", ["engine", "reference"])
def test_the_example_of_two_batches(who: str) -> None:
    """Length 20 s, slide 10 s, lag 5 s. The first batch, in the first second: 6:00:36 - 5 s = 6:00:31, so
    the windows that end at :10, :20 and :30 are put out at 1 s, and :36 waits. The second, by 2 s: 8:00:39
    - 5 s = 8:00:34; :40 and :50 still have tuples of the first, and the next that has any ends at 8:00:30.
    :39 waits.
    """
    names = [("6", second) for second in FIRST] + [("8", second) for second in SECOND]
    windows = put_out(trace_of(load(EXAMPLE), who))
    found = [(when, end, [names[i] for i in inside]) for when, end, inside in windows]
    six = 6 * HOUR
    assert found == [
        (1, six + 10, [("6", 3), ("6", 5), ("6", 7)]),
        (1, six + 20, [("6", 3), ("6", 5), ("6", 7), ("6", 18)]),
        (1, six + 30, [("6", 18), ("6", 26)]),
        (2, six + 40, [("6", 26), ("6", 36)]),
        (2, six + 50, [("6", 36)]),
        (2, 8 * HOUR + 30, [("8", 25), ("8", 26), ("8", 27)]),
    ]


def test_the_example_acks_what_leaves() -> None:
    """At 1 s :03, :05 and :07 leave with the window that ends at :30 (they are not in (:10, :30]); at 2 s
    :18 with that of :40, :26 with that of :50, and :36 with the end at 6:01:00, which has nothing and is
    put out by nobody. The watermark of 8:00:34 ends no window without the second batch.
    """
    expected = [(root, 0, S) for root in (0, 1, 2)] + [(root, 0, 2 * S) for root in (3, 4, 5)]
    assert sorted(trace_of(load(EXAMPLE)).completed) == expected


def events(
    stamps: tuple[float, ...],
    window: dict[str, Any],
    strategy: str = "none",
    until: float = 3000,
    grouping: str = "fields",
    tasks: int = 1,
    **more: Any,
) -> Scenario:
    """events (one every 100 ms from 100 ms on, with these stamps in s, each its own bit) -> count."""
    told, values = tuple(round(stamp * S) for stamp in stamps), tuple(map(bits, range(len(stamps))))
    window = Window(**{"by": "event", "length": 10 * S} | window)
    topology = {
        "events": spout("values", 100, values=values, stamps=told),
        "count": bolt("windowed_count", {"events": grouping}, window=window, parallelism=tasks),
    }
    return world(topology, strategy, more.pop("failures", ()), until, **more)


OFTEN = {"watermark_interval": 500 * MS}
SESSIONS_OF_3 = OFTEN | {"length": None, "gap": 3 * S}


@pytest.mark.parametrize(("late", "lost", "completed"), [("drop", 2, 7), ("aside", 0, 9)])
def test_what_is_late_is_dropped_or_put_aside(late: str, lost: int, completed: int) -> None:
    """At 0.5 s (tuples 1 to 5) the newest event is at 12 s: with a lag of 1 s the watermark is 11 s, and
    the window of 10 s is put out with 1 to 4. Of what comes then, 9 s and 11 s are late (at or before it),
    11.5 s is not.
    """
    stamps = (1, 5, 9, 10, 12, 9, 11, 11.5, 31)
    scenario = events(stamps, OFTEN | {"lag": S, "late": late}, "source_replay", ack_cost=0)
    found = simulate(scenario, trace=True)
    assert put_out(found.trace) == [(0, 10, [0, 1, 2, 3]), (1, 20, [4, 7])]
    assert [found.ledger[name] for name in ("late", "lost", "completed")] == [2, lost, completed]
    said = "late: 2 of 9 roots (22 %) came too late for a window by event; "
    assert any(text.startswith(said) for text in remarks_on_limits(scenario, [found]))
    acked = {root: time for root, _, time in found.trace.completed}
    assert (acked[5], acked[6]) == (600 * MS, 700 * MS)  # at once, not with a window


@pytest.mark.parametrize(
    ("idle_after", "expected"), [(None, [(1.0, 10)]), (700 * MS, [(1.0, 10), (1.5, 20), (2.0, 30)])]
)
def test_the_least_input_counts_unless_it_is_idle(
    idle_after: int | None, expected: list[tuple[float, int]]
) -> None:
    """a tells of 5 s, 15 s, 25 s, 35 s at 0.5 s, 1 s, 1.5 s and 2 s; b of 7 s and 17 s at 0.4 s and 0.8 s,
    and then of nothing. At 1 s the watermark is 15 s, at 1.5 s it is 17 s: b holds it back. If that is for
    at most 0.7 s b does not count from 1.5 s on: the watermark is 25 s then, and 35 s at 2 s.
    """
    window = OFTEN | {"by": "event", "length": 10 * S, "idle_after": idle_after}
    topology = {
        "a": spout("values", 500, values=(1, 2, 4, 8), stamps=tuple(n * S for n in (5, 15, 25, 35))),
        "b": spout("values", 400, values=(16, 32), stamps=(7 * S, 17 * S)),
        "count": bolt("windowed_count", {"a": "fields", "b": "fields"}, window=Window(**window)),
    }
    windows = trace_of(world(topology, until=2900)).windows
    assert [(time / S, number * 10) for *_, number, time, _ in windows] == expected


def test_a_retry_keeps_its_event_and_may_be_late() -> None:
    """The count loses its state at 0.45 s, and with it tuples 1 to 4 (events of 1 s to 4 s); tuples go on.
    They time out at 2 s, and come again with their events. By then the watermark, that began anew, is past
    them: all four are late, acked, and lost: at least once is not kept by windows that do not wait.
    """
    stamps = tuple(range(1, 41))
    times = {"message_timeout": S, "timeout_phase": 0, "ack_cost": 0}
    lost = fault("lose_state", 450, component="count")
    found = simulate(events(stamps, OFTEN, "source_replay", 4500, failures=(lost,), **times), trace=True)
    again = sorted({root for root, attempt, _ in found.trace.failed if attempt == 0})
    assert again[:4] == [0, 1, 2, 3]
    assert found.ledger["late"] == found.ledger["lost"] == 4
    assert found.windows["wrong"] == 1


def test_events_lie_before_the_emission() -> None:
    """Tuple i is emitted at 100 ms * i, and its event was 250 ms before, but not before 0: that of tuples 1
    and 2 is 0, in the window that ends at 0, and tuples 3 (50 ms) to 12 (950 ms) are in that of 1 s.
    """
    window = Window(by="event", length=S, watermark_interval=100 * MS)
    topology = {
        "numbers": spout("values", 100, values=tuple(1 << i for i in range(20)), event_delay=ms(250)),
        "count": bolt("windowed_count", {"numbers": "fields"}, window=window),
    }
    windows = trace_of(world(topology, until=2900)).windows
    first = next(sums for *_, number, _, sums in windows if number == 1)
    assert [i + 1 for i in members(first)] == list(range(3, 13))


def test_sessions_end_with_a_gap_and_merge() -> None:
    """Gap 3 s, no lag. At 0.5 s events 1 s, 2.5 s, 9 s, 6.5 s and 4 s have come, in this order: 4 s lies
    within the gap of 2.5 s and of 6.5 s, and makes all of them one session, which ends at 12 s. The
    watermark is 9 s: it is open. At 1 s the newest event is 20 s: it is put out, and those of 14.5 s are
    another one (that ends at 17.5 s). Of what comes then, 16 s is within the gap of nothing that is open,
    and its own session would end at 19 s: late. That of 18 s ends at 21 s, and is not.
    """
    stamps = (1, 2.5, 9, 6.5, 4, 14.5, 20, 14.5, 14.5, 14.5, 16, 18, 40)
    found = simulate(events(stamps, SESSIONS_OF_3), trace=True)
    got = [(time / S, number / 1000, members(sums)) for *_, number, time, sums in found.trace.windows]
    assert got == [(1.0, 12.0, [0, 1, 2, 3, 4]), (1.0, 17.5, [5, 7, 8, 9]), (1.5, 23.0, [6, 11])]
    assert found.ledger["late"] == 1


def test_a_tuple_joins_a_session_that_is_open_though_it_is_before_the_watermark() -> None:
    """Gap 3 s. At 0.5 s the watermark is 9 s, and the session of 7 s and 9 s ends at 12 s: an event of 5 s,
    that comes then, is within the gap of 7 s and no more late than the session is. That of 1 s is.
    """
    found = simulate(events((7, 9, 9, 9, 9, 5, 1, 30, 30, 30), SESSIONS_OF_3), trace=True)
    ((*_, number, _, sums),) = found.trace.windows
    assert (number, sums) == (12_000, {0: 0b111111})
    assert found.ledger["late"] == 1


def test_what_ends_at_the_watermark_is_over() -> None:
    """At 0.5 s the newest event is at 20 s, without lag the watermark too: the windows that end at 10 s (with
    the event at 10 s) and at 20 s are put out.

    Sessions with a gap of 3 s: events 3 s apart are within it, so those of 1 s to 10 s are one, which ends at
    13 s. That of 14 s is another. With a lag of 1 s the watermark is 13 s, and the first one is put out.
    """
    plain = trace_of(events((1, 5, 9, 10, 20), OFTEN, until=900))
    assert put_out(plain) == [(0, 10, [0, 1, 2, 3]), (0, 20, [4])]
    sessions = trace_of(events((1, 4, 7, 10, 14), SESSIONS_OF_3 | {"lag": S}, until=900))
    assert [(number, sums) for *_, number, _, sums in sessions.windows] == [(13_000, {0: 0b1111})]


# -- batches -------------------------------------------------------------------------------------------------

STAMPS = (1, 5, 9, 10, 12, 9, 11, 11.5, 31, 32, 33, 45, 46, 47, 48, 60, 61, 62, 63, 64)
WINDOW, PATIENT = {"lag": S}, {"lag": 4 * S}


def batches(strategy: str = "micro_batch", window: dict[str, Any] = WINDOW, **more: Any) -> Scenario:
    """A batch each 500 ms, which takes no time: one watermark for a bolt, that moves between batches."""
    times = {} if strategy == "none" else {"trigger_interval": 500 * MS}
    return events(STAMPS, window, strategy, 5000, **times, **more)


ENDED = [(1.0, 10, [0, 1, 2, 3]), (1.5, 20, [4, 7]), (2.0, 40, [8, 9, 10])]
"""(when in s, end of the window in s of events, what is in it)."""


@pytest.mark.parametrize("strategy", ["micro_batch", "batch_rerun"])
@pytest.mark.parametrize("who", ["engine", "reference"])
def test_a_window_is_put_out_by_the_batch_after_that_of_its_end(who: str, strategy: str) -> None:
    """The batch of 0.5 s has events up to 12 s: the watermark is 11 s from then on. In that of 1 s 9 s and
    11 s are late, 11.5 s is not, and the window of 10 s is put out, though its end had come half a second
    before. Events go up to 32 s: the batch of 1.5 s, with a watermark of 31 s, puts out that of 20 s, and
    45 s to 48 s in it are no help to that of 40 s until 2 s. Then the watermark is 62 s, but no batch
    follows: there is nothing to read.
    """
    windows = trace_of(batches(strategy), who).windows
    assert sorted((time / S, 10 * number, members(sums)) for *_, number, time, sums in windows) == ENDED
    ledger = simulate(batches(strategy)).ledger
    assert (ledger["late"], ledger["lost"]) == (2, 2)


@pytest.mark.parametrize("seed", range(1, 5))
def test_all_tasks_of_a_bolt_have_one_watermark(seed: int) -> None:
    """Tuples go to one of two tasks at random. Outside of batches a task waits until such an event comes to
    itself; here both put out a window with the same batch, that which a single task would: whichever of them
    has the newest event, all know it.
    """

    def moments(strategy: str, **keys: Any) -> dict[int, set[int]]:
        both: dict[int, set[int]] = {}
        found = trace_of(batches(strategy, grouping="shuffle", tasks=2, seed=seed, **keys))
        for *_, number, time, _ in found.windows:
            both.setdefault(number, set()).add(time)
        return both

    single = {end // 10: {round(time * S)} for time, end, _ in ENDED}
    assert moments("micro_batch") == single
    alone = {**WINDOW, "watermark_interval": 100 * MS}
    assert any(len(times) > 1 for times in moments("none", window=alone).values())


@pytest.mark.parametrize("recovery", ["checkpoint", "lineage", "replay"])
@pytest.mark.parametrize("window", [{}, {"slide": 5 * S}, {"length": None, "gap": S}])
def test_a_batch_that_is_run_again_puts_out_the_same(window: dict[str, Any], recovery: str) -> None:
    """The driver dies at 1.6 s, when the batch of 1.5 s is out, and not committed: it is undone, and run
    again with the watermark that it had. The readers have had what it puts out. Batches are others from then
    on, and so is the last one with a window; no event is late.
    """
    keys = {"recovery": recovery, "commit_time": 200 * MS}
    died = fault("crash_task", 1600, component="driver", detection=100, restart=200)
    quiet, found = (
        simulate(batches(window=PATIENT | window, failures=failures, **keys), trace=True)
        for failures in ((), (died,))
    )
    ends = {number: sums for *_, number, _, sums in quiet.trace.windows}
    assert len(ends) >= 3
    first: dict[int, dict[int, int]] = {}
    for *_, number, _, sums in sorted(found.trace.windows, key=lambda row: row[4]):
        first.setdefault(number, sums)
    assert {number: first[number] for number in ends} == ends
    assert (found.windows["wrong"], found.windows["missing"]) == (0, 0)
    assert found.ledger["duplicated"] == 0


def test_idle_inputs_are_refused() -> None:
    """What is idle is told by a clock, and a batch is the same whenever it runs."""
    text = """
topology:
  a: {spout: keys, keys: 3, rate: 10/s}
  count:
    bolt: windowed_count
    from: {a: {fields: [key]}}
    service: 1 ms
    window: {length: 5 s, by: event, idle_after: 5 s}
strategy: {kind: micro_batch}
run: {duration: 20 s}
"""
    with pytest.raises(ScenarioError, match="leave idle_after out"):
        load_text(text)


# -- sessions by arrival -------------------------------------------------------------------------------------

GAP = 350 * MS
"""
    a (each 700 ms) ──┐
                      ├──▶ count, gap 350 ms     tuple i of a (from 0) is bit i, tuple j of b bit 10 + j
    b (each 1 s) ─────┘

Tuples come at 700, 1000 | 1400 | 2000, 2100 | 2800, 3000 | 3500 | 4000, 4200 | 4900, 5000 ms: more than 350
ms lie between two only where a bar is.
"""


def by_arrival(strategy: str = "none", failures: tuple[Any, ...] = (), **more: Any) -> Scenario:
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


def looks(trace: Any) -> list[tuple[int, float, int]]:
    """(number of the look, when it has its turn (ms), what is in it), where there is something."""
    return sorted((number, time / MS, sums[0]) for *_, number, time, sums in trace.windows if sums)


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
    assert looks(trace_of(by_arrival(), who)) == SESSIONS


def test_a_longer_interval_is_the_gap_and_a_shorter_one_is_taken() -> None:
    """Each 100 ms: 1350 is seen to be over at 1400, 1750 at 1800, 2450 at 2500."""
    assert looks(trace_of(by_arrival(window={"watermark_interval": 100 * MS})))[:3] == [
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
    found = simulate(by_arrival(strategy, (stop,), service=200, until=7000), trace=True)
    got = looks(found.trace)
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
    found = simulate(by_arrival("rsm", (crash,), **keys), trace=True)
    got = looks(found.trace)
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
    scenario = by_arrival("active_replication", k=1, links=links, hosts=2)
    found = simulate(scenario, trace=True)
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
def test_sessions_that_make_no_sense_are_refused(window: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Window(**window)
