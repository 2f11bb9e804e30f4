"""Windows by event: watermarks, late tuples, idle inputs; the example that Storm's windows are explained
with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.oracle import run as reference
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.advice import remarks_on_limits
from tideover.models.config import Scenario
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

S = 1000 * MS
HOUR = 3600
EXAMPLE = Path(__file__).parents[2] / "examples" / "event-windows.yaml"
FIRST, SECOND = (3, 5, 7, 18, 26, 36), (25, 26, 27, 39)


def put_out(
    windows: list[tuple[str, int, int, int, int, dict[int, int]]],
) -> list[tuple[int, int, list[int]]]:
    """(when in s, which end in s of the events' clock, the bits of what is in it), in order."""
    ends = [(time // S, number * 10, sum(sums.values())) for *_, number, time, sums in windows]
    return [(time, end, [i for i in range(64) if bits >> i & 1]) for time, end, bits in sorted(ends)]


@pytest.mark.parametrize("who", ["engine", "reference"])
def test_the_example_of_two_batches(who: str) -> None:
    """Length 20 s, slide 10 s, lag 5 s. The first batch, in the first second: 6:00:36 - 5 s = 6:00:31, so
    the windows that end at :10, :20 and :30 are put out at 1 s, and :36 waits. The second, by 2 s: 8:00:39
    - 5 s = 8:00:34; :40 and :50 still have tuples of the first, and the next that has any ends at 8:00:30.
    :39 waits.
    """
    scenario = load(EXAMPLE)
    trace = reference(scenario) if who == "reference" else simulate(scenario, trace=True).trace
    assert trace is not None
    names = [("6", second) for second in FIRST] + [("8", second) for second in SECOND]
    found = [(when, end, [names[i] for i in bits]) for when, end, bits in put_out(trace.windows)]
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
    trace = simulate(load(EXAMPLE), trace=True).trace
    assert trace is not None
    expected = [(root, 0, S) for root in (0, 1, 2)] + [(root, 0, 2 * S) for root in (3, 4, 5)]
    assert sorted(trace.completed) == expected


def events(
    stamps: tuple[float, ...],
    window: dict[str, Any],
    strategy: str = "none",
    until: float = 3000,
    **more: Any,
) -> Scenario:
    """events (one every 100 ms from 100 ms on, with these stamps in s, each its own bit) -> count."""
    failures = more.pop("failures", ())
    told = tuple(round(stamp * S) for stamp in stamps)
    values = tuple(1 << i for i in range(len(stamps)))
    settings = {"by": "event", "length": 10 * S, "watermark_interval": 500 * MS} | window
    topology = {
        "events": spout("values", 100, values=values, stamps=told),
        "count": bolt("windowed_count", {"events": "fields"}, window=Window(**settings)),
    }
    return world(topology, strategy, failures, until, **more)


@pytest.mark.parametrize(("late", "lost", "completed"), [("drop", 2, 7), ("aside", 0, 9)])
def test_what_is_late_is_dropped_or_put_aside(late: str, lost: int, completed: int) -> None:
    """At 0.5 s (tuples 1 to 5) the newest event is at 12 s: with a lag of 1 s the watermark is 11 s, and
    the window of 10 s is put out with 1 to 4. Of what comes then, 9 s and 11 s are late (at or before it),
    11.5 s is not.
    """
    stamps = (1, 5, 9, 10, 12, 9, 11, 11.5, 31)
    scenario = events(stamps, {"lag": S, "late": late}, "source_replay", ack_cost=0)
    found = simulate(scenario, trace=True)
    assert found.trace is not None
    assert put_out(found.trace.windows) == [(0, 10, [0, 1, 2, 3]), (1, 20, [4, 7])]
    assert {name: found.ledger[name] for name in ("late", "lost", "completed")} == {
        "late": 2,
        "lost": lost,
        "completed": completed,
    }
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
    window = {"by": "event", "length": 10 * S, "watermark_interval": 500 * MS, "idle_after": idle_after}
    topology = {
        "a": spout("values", 500, values=(1, 2, 4, 8), stamps=tuple(n * S for n in (5, 15, 25, 35))),
        "b": spout("values", 400, values=(16, 32), stamps=(7 * S, 17 * S)),
        "count": bolt("windowed_count", {"a": "fields", "b": "fields"}, window=Window(**window)),
    }
    found = simulate(world(topology, until=2900), trace=True)
    assert found.trace is not None
    got = [(time / S, number * 10) for *_, number, time, _ in found.trace.windows]
    assert got == expected


def test_a_retry_keeps_its_event_and_may_be_late() -> None:
    """The count loses its state at 0.45 s, and with it tuples 1 to 4 (events of 1 s to 4 s); tuples go on.
    They time out at 2 s, and come again with their events. By then the watermark, that began anew, is past
    them: all four are late, acked, and lost: at least once is not kept by windows that do not wait.
    """
    stamps = tuple(range(1, 41))
    times = {"message_timeout": S, "timeout_phase": 0, "ack_cost": 0}
    lost = fault("lose_state", 450, component="count")
    found = simulate(events(stamps, {}, "source_replay", 4500, failures=(lost,), **times), trace=True)
    assert found.trace is not None
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
    found = simulate(world(topology, until=2900), trace=True)
    assert found.trace is not None
    first = next(sums for *_, number, _, sums in found.trace.windows if number == 1)
    assert [i + 1 for i in range(20) if sum(first.values()) >> i & 1] == list(range(3, 13))


def test_sessions_end_with_a_gap_and_merge() -> None:
    """Gap 3 s, no lag. At 0.5 s events 1 s, 2.5 s, 9 s, 6.5 s and 4 s have come, in this order: 4 s lies
    within the gap of 2.5 s and of 6.5 s, and makes all of them one session, which ends at 12 s. The
    watermark is 9 s: it is open. At 1 s the newest event is 20 s: it is put out, and those of 14.5 s are
    another one (that ends at 17.5 s). Of what comes then, 16 s is within the gap of nothing that is open,
    and its own session would end at 19 s: late. That of 18 s ends at 21 s, and is not.
    """
    stamps = (1, 2.5, 9, 6.5, 4, 14.5, 20, 14.5, 14.5, 14.5, 16, 18, 40)
    found = simulate(events(stamps, {"length": None, "gap": 3 * S}), trace=True)
    assert found.trace is not None
    got = [
        (time / S, number / 1000, [i for i in range(20) if sum(sums.values()) >> i & 1])
        for *_, number, time, sums in found.trace.windows
    ]
    assert got == [(1.0, 12.0, [0, 1, 2, 3, 4]), (1.0, 17.5, [5, 7, 8, 9]), (1.5, 23.0, [6, 11])]
    assert found.ledger["late"] == 1


def test_a_tuple_joins_a_session_that_is_open_though_it_is_before_the_watermark() -> None:
    """Gap 3 s. At 0.5 s the watermark is 9 s, and the session of 7 s and 9 s ends at 12 s: an event of 5 s,
    that comes then, is within the gap of 7 s and no more late than the session is. That of 1 s is.
    """
    found = simulate(events((7, 9, 9, 9, 9, 5, 1, 30, 30, 30), {"length": None, "gap": 3 * S}), trace=True)
    assert found.trace is not None
    assert [number for *_, number, _, _ in found.trace.windows] == [12_000]
    assert found.trace.windows[0][-1] == {0: 0b111111}
    assert found.ledger["late"] == 1


def test_what_ends_at_the_watermark_is_over() -> None:
    """At 0.5 s the newest event is at 20 s, without lag the watermark too: the windows that end at 10 s (with
    the event at 10 s) and at 20 s are put out.

    Sessions with a gap of 3 s: events 3 s apart are within it, so those of 1 s to 10 s are one, which ends at
    13 s. That of 14 s is another. With a lag of 1 s the watermark is 13 s, and the first one is put out.
    """
    found = simulate(events((1, 5, 9, 10, 20), {}, until=900), trace=True)
    assert found.trace is not None
    assert put_out(found.trace.windows) == [(0, 10, [0, 1, 2, 3]), (0, 20, [4])]
    sessions = {"length": None, "gap": 3 * S, "lag": S}
    found = simulate(events((1, 4, 7, 10, 14), sessions, until=900), trace=True)
    assert found.trace is not None
    assert [(number, sums) for *_, number, _, sums in found.trace.windows] == [(13_000, {0: 0b1111})]
