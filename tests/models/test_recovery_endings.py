"""How recoveries end: what a failure changes, and what is lost for good."""

from __future__ import annotations

from typing import Any

import pytest

from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.schema import LOSSY, OPEN, RECOVERED, UNAFFECTED, ending
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.loader import load

STRATEGIES: dict[str, dict[str, Any]] = {
    "none": {},
    "rsm": {"checkpoint_interval": "5 s", "replay_cost": "1 ms"},
    "source_replay": {"message_timeout": "30 s", "timeout_phase": "10 s"},
    "active_replication": {"k": 1},
}
PAUSE = {"kind": "pause", "component": "count"}
CRASH = {"kind": "crash_task", "component": "count", "detection": "4 s", "restart": "3 s"}


def world(kind: str, *failures: dict[str, Any], end: float = 150, **more: Any) -> Scenario:
    """keys (50/s, on host 0) ──▶ split (host 1) ──▶ count (host 2, windows of 10 s); host 3 is empty."""
    topology = {
        "keys": {"spout": "keys", "keys": 10, "rate": "50/s", "offset": "0 s", "hosts": [0]},
        "split": {"bolt": "forward", "from": {"keys": "shuffle"}, "service": "1 ms", "hosts": [1]},
        "count": {
            "bolt": "windowed_count",
            "from": {"split": {"fields": ["key"]}},
            "service": "1 ms",
            "window": {"length": "10 s", "trigger": "tick"},
            "hosts": [2],
        },
    }
    data = {
        "topology": topology,
        "hosts": 4,
        "strategy": {"kind": kind, **STRATEGIES[kind]},
        "store": {"latency": "1 ms", "bandwidth": "100 MiB/s"},
        "failures": failures,
        "run": {"duration": f"{end} s", "warmup": "10 s"},
    }
    return load(data | more)


def run(kind: str, *failures: dict[str, Any], **more: Any) -> Replication:
    return simulate(world(kind, *failures, **more))


UNFELT = {
    "store_down": ("none", {"kind": "store_down", "duration": "20 s"}),
    "slow_store": ("active_replication", {"kind": "slow_store", "duration": "20 s"}),
    "host of spouts": ("rsm", {"kind": "slow_host", "host": 0, "factor": 0.1, "duration": "20 s"}),
    "empty host": ("rsm", {"kind": "crash_host", "host": 3, "detection": "10 s", "restart": "10 s"}),
    "no acker": ("none", {"kind": "crash_task", "component": "acker", "restart": "20 s"}),
    "no link": ("rsm", {"kind": "partition", "hosts": [0], "others": [2, 3], "duration": "20 s"}),
    "no slow link": (
        "none",
        {"kind": "slow_link", "hosts": [0], "others": [2], "latency_factor": 9, "duration": "20 s"},
    ),
}


@pytest.mark.parametrize("what", UNFELT)
def test_a_failure_that_nothing_has_to_do_with_has_no_recovery(what: str) -> None:
    """It lasts 20 s, and in them a task crashes: neither changes what is said of the other. What the one
    costs is what it costs alone, and the other is over at once; all else is as without it.
    """
    kind, failure = UNFELT[what]
    alone = run(kind, CRASH | {"at": "75 s"})
    both = run(kind, failure | {"at": "70 s"}, CRASH | {"at": "75 s"})
    unfelt, crash = both.recoveries
    assert (unfelt["time_to_recover_s"], unfelt["catch_up_s"], unfelt["ended"]) == (0, 0, UNAFFECTED)
    assert unfelt["roots_lost"] == 0
    assert crash == alone.recoveries[0]
    assert both.dependability == alone.dependability
    assert both.latency.summary(1) == alone.latency.summary(1)


@pytest.mark.parametrize("at", [69, 72])
def test_a_store_that_is_asked_for_something_is_felt(at: int) -> None:
    """Checkpoints are due at 70 and 75 s: one is asked for within 4 s from either moment, and waits."""
    (row,) = run("rsm", {"kind": "store_down", "at": f"{at} s", "duration": "4 s"}).recoveries
    assert row["time_to_recover_s"] == 4
    assert row["ended"] == RECOVERED


def test_each_failure_has_the_roots_that_it_cost() -> None:
    """Amnesia: a crash at 42 s takes what the window of 40 s has, and what comes in 7 s: 2 + 7 s of 50/s; one
    at 95 s has 5 s of a window. What the ledger has lost is what the two cost.
    """
    found = run("none", CRASH | {"at": "42 s"}, CRASH | {"at": "95 s"})
    assert [row["roots_lost"] for row in found.recoveries] == [9 * 50, 12 * 50]
    assert [row["ended"] for row in found.recoveries] == [LOSSY, LOSSY]
    assert found.ledger["lost"] == 21 * 50


@pytest.mark.parametrize("kind", ["rsm", "source_replay"])
def test_what_comes_again_is_no_loss(kind: str) -> None:
    """The same crash, of which these strategies send everything again."""
    (row,) = run(kind, CRASH | {"at": "42 s"}).recoveries
    assert (row["roots_lost"], row["ended"]) == (0, RECOVERED)


def test_what_is_lost_without_failures_too_is_put_down_to_none() -> None:
    """A split that is too slow drops what finds its queue full, all the time: 50/s come, 40/s are served.
    While it is paused nothing is served for 2 s: that costs 80 roots more, and no others.
    """
    topology = {
        "keys": {"spout": "keys", "keys": 1, "rate": "50/s", "offset": "0 s"},
        "split": {"bolt": "forward", "from": {"keys": "shuffle"}, "service": "25 ms"},
    }
    more = {"topology": topology, "queues": {"length": 10, "when_full": "drop"}}
    pause = {"kind": "pause", "component": "split", "at": "40 s", "duration": "2 s"}
    quiet, paused = run("none", end=60, **more), run("none", pause, end=60, **more)
    (row,) = paused.recoveries
    assert quiet.ledger["lost"] > 0
    assert row["ended"] == LOSSY
    assert 80 <= row["roots_lost"] < quiet.ledger["lost"]


def test_a_recovery_without_an_end_is_none() -> None:
    assert [ending(None, 5), ending(0, 0), ending(0, 1), ending(2.5, 0)] == [
        OPEN,
        UNAFFECTED,
        LOSSY,
        RECOVERED,
    ]


def test_a_pause_of_a_replica_with_a_live_peer_is_masked() -> None:
    """Nobody waits until it passes after 9 s: its peer counts and puts windows out. What waits at it is a
    backlog, as where nobody masks the pause, and all that is to be caught up with.
    """
    failure = PAUSE | {"at": "42 s", "duration": "9 s"}
    (masked,), (alone,) = (run(kind, failure).recoveries for kind in ("active_replication", "rsm"))
    assert (masked["passing_s"], alone["passing_s"]) == (0, 9)
    assert masked["catch_up_stage_s"] == pytest.approx(9 + alone["catch_up_stage_s"], abs=0.05)
    assert masked["output_gap_s"] == pytest.approx(10, abs=0.05)
    assert alone["output_gap_s"] > 10.9


def test_a_state_that_is_lost_again_is_restored_because_of_the_second_failure() -> None:
    """Down from 48 to 55 s, and again from 51 to 58 s. The checkpoint of 45 s has 5 s of the window: it is
    read once, for the second failure.
    """
    more = {"strategy": {"kind": "rsm", "checkpoint_interval": "15 s", "replay_cost": "1 ms"}}
    alone = run("none", CRASH | {"at": "48 s"}, **more).recoveries
    both = run("none", CRASH | {"at": "48 s"}, CRASH | {"at": "51 s"}, **more).recoveries
    assert alone[0]["restored"] == 5 * 50
    assert [row["restored"] for row in both] == [0, 5 * 50]
    assert both[0]["restore_s"] == 0


@pytest.mark.parametrize(("after", "known"), [(0.9, False), (1.1, True)])
def test_less_than_a_second_after_the_last_wrong_window_nothing_is_known(after: float, known: bool) -> None:
    """Amnesia at 42 s; the window that lacks it is put out at 50 s, and the run ends so long after that."""
    loss = {"kind": "lose_state", "component": "count", "at": "42 s"}
    (row,) = run("none", loss, end=50 + after).recoveries
    assert row["catch_up_s"] == 0
    assert (row["ended"] == LOSSY, row["ended"] == OPEN) == (known, not known)


@pytest.mark.parametrize(("later", "prolongs"), [(3.8, True), (4.2, False)])
def test_a_failure_prolongs_the_catch_up_before_it_within_four_seconds(later: float, prolongs: bool) -> None:
    """A pause from 42 to 47 s. What waited, 250 tuples of 1 ms, is worked off at 950/s more than comes; the
    second pause strikes so long after that.
    """
    (alone,) = run("none", PAUSE | {"at": "42 s", "duration": "5 s"}).recoveries
    over = 42 + alone["catch_up_s"]
    assert 47.2 < over < 47.4
    second = PAUSE | {"at": f"{over + later} s", "duration": "5 s"}
    first, _ = run("none", PAUSE | {"at": "42 s", "duration": "5 s"}, second).recoveries
    if prolongs:
        assert first["catch_up_s"] == pytest.approx(2 * alone["catch_up_s"] + later, abs=0.05)
    else:
        assert first["catch_up_s"] == alone["catch_up_s"]


@pytest.mark.parametrize(
    ("kind", "failure", "remarked"),
    [
        ("rsm", {"kind": "crash_host", "host": 0}, "crash_host"),
        ("rsm", {"kind": "cascade", "host": 0}, "crash_host"),
        ("rsm", {"kind": "crash_task", "component": "count"}, None),
        ("rsm", {"kind": "pause", "component": "count", "duration": "2 s"}, None),
        ("none", {"kind": "crash_host", "host": 0}, None),
        ("none", {"kind": "partition", "hosts": [0], "duration": "2 s", "messages": "lose"}, "partition"),
        ("none", {"kind": "partition", "hosts": [0], "duration": "2 s"}, None),
        ("rsm", {"kind": "lose_store"}, "lose_store"),
        ("none", {"kind": "lose_store"}, None),
    ],
)
def test_what_a_strategy_does_not_survive_is_remarked_on(
    kind: str, failure: dict[str, Any], remarked: str | None
) -> None:
    """What takes something, and is none of the kinds after which it promises something."""
    said = warnings(world(kind, failure | {"at": "50 s", "within": "0 s"}))
    found = [text for text in said if "does not promise to survive" in text]
    assert [text.split(":")[1].split()[-1] for text in found] == ([] if remarked is None else [remarked])
