"""Windows that slide: what is in them, when a tuple leaves, and what that means for acks."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.operators.window import Window
from tideover.models.simulation import Replication, simulate

S = 1000 * MS


def counted(window: dict[str, Any], strategy: str = "none", until: float = 6000, **more: Any) -> Scenario:
    """numbers (each its own bit, one every 400 ms from 400 ms on) -> count."""
    failures = more.pop("failures", ())
    topology = {
        "numbers": spout("values", 400, values=tuple(1 << i for i in range(40))),
        "count": bolt("windowed_count", {"numbers": "fields"}, window=Window(**window)),
    }
    return world(topology, strategy, failures, until, **more)


def contents(run: Replication) -> dict[int, list[int]]:
    """{number of the window: which of the numbers, from 1, are in it; once more if twice}."""
    assert run.trace is not None
    found = {}
    for *_, number, _, sums in sorted(run.trace.windows, key=lambda row: row[3]):
        found[number] = [i + 1 for i in range(40) if sum(sums.values()) >> i & 1]
    return found


def test_a_tuple_is_in_all_windows_that_overlap_it() -> None:
    """Tuple i comes at 400 ms * i. Windows of 2 s end each 1 s: that of 3 s has what came in (1 s, 3 s]:
    tuples 3 (1.2 s) to 7 (2.8 s), and so has that of 2 s all from 1 to 5 (2 s, before the tick).
    """
    run = simulate(counted({"length": 2 * S, "slide": S}, until=4000), trace=True)
    assert contents(run) == {1: [1, 2], 2: [1, 2, 3, 4, 5], 3: [3, 4, 5, 6, 7], 4: [6, 7, 8, 9, 10]}
    assert run.ledger["duplicated"] == 0
    assert run.ledger["completed"] == 10


def test_length_need_not_be_a_multiple_of_slide() -> None:
    """Windows of 2.5 s end each 1 s: panes of 0.5 s. That of 3 s has (0.5 s, 3 s]: tuples 2 to 7; that of
    4 s has (1.5 s, 4 s]: 4 (1.6 s) to 10.
    """
    run = simulate(counted({"length": 2500 * MS, "slide": S}, until=4000), trace=True)
    assert contents(run) == {
        1: [1, 2],
        2: [1, 2, 3, 4, 5],
        3: [2, 3, 4, 5, 6, 7],
        4: [4, 5, 6, 7, 8, 9, 10],
    }


def test_windows_of_tuples_slide() -> None:
    """Each third tuple ends a window of the last 4: panes of one tuple."""
    run = simulate(counted({"tuples": 4, "slide_tuples": 3}, until=4000), trace=True)
    assert contents(run) == {1: [1, 2, 3], 2: [3, 4, 5, 6], 3: [6, 7, 8, 9]}


def test_a_tuple_is_acked_with_the_first_window_without_it() -> None:
    """Windows of 2 s end each 1 s. Tuples 1 and 2 (0.4 s, 0.8 s) are in those of 1 s and 2 s, and leave
    with that of 3 s; 3 to 5 (1.2 s to 2 s) with that of 4 s, and so on: up to length + slide after they
    came. Without slide a window of 2 s acks at its end.
    """
    acked = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 4500, ack_cost=0), trace=True)
    assert acked.trace is not None
    assert acked.trace.completed == [(0, 0, 3 * S), (1, 0, 3 * S), *((i, 0, 4 * S) for i in (2, 3, 4))]
    tumbling = simulate(counted({"length": 2 * S}, "source_replay", 2500, ack_cost=0), trace=True)
    assert tumbling.trace is not None
    assert tumbling.trace.completed == [(i, 0, 2 * S) for i in range(5)]


@pytest.mark.parametrize(("timeout", "replayed"), [(1500, True), (3000, False)])
def test_a_timeout_shorter_than_length_and_slide_replays(timeout: int, replayed: bool) -> None:
    """Tuple 3 (1.2 s) leaves with the window of 4 s, 2.8 s later; length and slide are 3 s. A timeout of T
    fails a tuple between T and 2 T after its emission: one of 3 s none, one of 1.5 s some, at 3 s and 4.5
    s, which are counted twice though nothing failed.
    """
    times = {"message_timeout": timeout * MS, "timeout_phase": 0, "ack_cost": 0}
    run = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 9000, **times))
    assert (run.ledger["false_timeouts"] > 0) == replayed
    assert (run.ledger["duplicated"] > 0) == replayed
    assert (run.windows["wrong"] > 0) == replayed


def test_a_state_takes_what_has_not_left_with_it() -> None:
    """The state is lost at 2.1 s: tuples 1 to 5 were in the windows of 1 s or 2 s, and have not left: their
    effects are gone, for those of 3 s and 4 s lack them. Then all goes on.
    """
    lost = fault("lose_state", 2100, component="count")
    run = simulate(counted({"length": 2 * S, "slide": S}, until=6000, failures=(lost,)), trace=True)
    found = contents(run)
    assert found[2] == [1, 2, 3, 4, 5]
    assert (found[3], found[4], found[5]) == ([6, 7], [6, 7, 8, 9, 10], [8, 9, 10, 11, 12])
    assert run.ledger["lost"] == 5
    assert run.windows == {"emitted": 6, "correct": 5, "wrong": 1, "missing": 0}


def test_a_replay_after_some_windows_is_in_too_many() -> None:
    """As above under source replay: tuples 1 to 5 time out, and come again; those that were in windows
    before are in later ones too. For the ledger each takes effect once; the windows tell.
    """
    lost = fault("lose_state", 2100, component="count")
    times = {"message_timeout": 4 * S, "timeout_phase": 0, "ack_cost": 0, "failures": (lost,)}
    run = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 16000, **times), trace=True)
    found = contents(run)
    assert run.trace is not None
    assert {root for root, _, _ in run.trace.failed} == {0, 1, 2, 3, 4}
    assert sum(1 in window for window in found.values()) == 4
    assert run.ledger["lost"] == run.ledger["duplicated"] == 0
    assert run.windows["wrong"] > 1


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({"length": 2 * S, "slide": 3 * S}, "at most length: else tuples are in no window"),
        ({"tuples": 2, "slide_tuples": 3}, "at most tuples: else tuples are in no window"),
        ({"tuples": 2, "slide": S}, "slide is of a window of time"),
        ({"length": S, "slide_tuples": 3}, "slide_tuples is of a window of tuples"),
        ({"length": S, "slide": MS // 2}, "slide must be at least 1 ms"),
        ({"length": S, "lag": S}, "lag is of windows by event: add by: event"),
        ({"tuples": 2, "by": "event"}, "windows of tuples go by arrival"),
        ({"length": S, "by": "event", "trigger": "marker"}, "what ends windows by event is their watermark"),
    ],
)
def test_what_makes_no_sense_is_refused(window: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Window(**window)
