"""What a recovery is measured against: the time before it, without what earlier failures have left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tideover.models.config import Scenario
from tideover.models.evaluation.measures import longest_silence
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load
from tideover.sim.units import S

OUTAGE = {
    "kind": "crash_task",
    "component": "job",
    "detection": "20 s",
    "restart": "5 s",
    "while_down": "hold",
}

RATE, CAPACITY = 900, 2000
DOWN = 25


def scenario(*moments: int, duration: int = 300, **more: Any) -> Scenario:
    """log -> job, 900/s at a capacity of 2000/s; at these moments (s) the job is down for 25 s, and the log
    waits.
    """
    data: dict[str, Any] = {
        "topology": {
            "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
            "job": {"bolt": "forward", "from": {"log": "shuffle"}, "service": f"{1000 / CAPACITY} ms"},
        },
        "strategy": "none",
        "failures": [OUTAGE | {"at": f"{at} s"} for at in moments],
        "run": {"duration": f"{duration} s", "warmup": "5 s"},
    }
    return load(data | more)


def told(*moments: int, duration: int = 300) -> dict[str, Any]:
    found = scenario(*moments, duration=duration)
    return Result(found, [simulate(found)]).to_dict()


def test_each_of_several_failures_is_measured_as_if_it_were_alone() -> None:
    """The same outage three times, each after the backlog of the one before is gone: D + r D / (C - r)."""
    recoveries = told(30, 110, 190)["recoveries"]
    (alone,) = told(30)["recoveries"]
    for recovery in recoveries:
        assert recovery["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)
        assert recovery["throughput_90_s"] == pytest.approx(alone["throughput_90_s"], abs=0.02)


def test_one_that_strikes_during_catch_up_prolongs_it() -> None:
    """What waits in the job at 60 s is lost with it. The second takes as long as if it were alone, and a
    backlog of 17,000 before it is not taken for normal; the first is over when the second is.
    """
    first, second = told(30, 60)["recoveries"]
    assert second["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)
    assert 30 + first["catch_up_s"] == pytest.approx(60 + second["catch_up_s"])


@pytest.mark.parametrize("moments", [(), (30,), (30, 110, 190), (30, 60)])
def test_latency_otherwise_knows_nothing_of_failures(moments: tuple[int, ...]) -> None:
    """Arrivals are evenly spaced and none waits, except for an outage: each takes its service time."""
    latency = told(*moments)["latency_ms"]
    assert latency["max"] == pytest.approx(1000 / CAPACITY)
    assert latency["mean"] == pytest.approx(1000 / CAPACITY)


def test_after_a_failure_that_is_not_caught_up_with_nothing_is_usual() -> None:
    """Down to the end, or with a backlog to the end: what is otherwise measured ends at the failure."""
    assert told(30, duration=70)["latency_ms"]["max"] == pytest.approx(1000 / CAPACITY)


def test_a_second_of_the_timeline_has_its_first_instant_and_not_its_last() -> None:
    """Backlogs are read every 10 ms: the last reading of second 30 + n is 0.99 s after its beginning."""
    backlogs = [row["backlog"] for row in simulate(scenario(30, duration=60)).timeline]
    assert max(backlogs[:30]) <= 1
    assert backlogs[30:55] == [pytest.approx(RATE * (n + 0.99), abs=1) for n in range(25)]


SNAPSHOTS = {"kind": "aligned_snapshots", "checkpoint_interval": "40 s", "snapshot_time": "10 ms"}


@pytest.mark.parametrize("at", [20, 50, 90])
@pytest.mark.parametrize("strategy", ["none", SNAPSHOTS])
def test_throughput_is_back_however_early_a_failure_strikes(strategy: Any, at: int) -> None:
    """From 25 s on the job serves what the log has kept (of snapshots: since the last one) at 2000/s:
    the last 10 s have 90 % of 9,000 after 4.05 s. What is normal is asked within two intervals, 80 s, and not
    of the 10 s with which the run begins.
    """
    (row,) = simulate(scenario(at, strategy=strategy)).recoveries
    assert row["throughput_90_s"] == pytest.approx(DOWN + 0.9 * 10 * RATE / CAPACITY, abs=0.05)


def test_throughput_that_is_nothing_now_and_then_cannot_be_back() -> None:
    """Batches of 30 s: without a failure, too, some 10 s have no tuple, and 90 % of none is no measure."""
    batches = {"kind": "micro_batch", "trigger_interval": "30 s", "task_time": "50 ms"}
    failure = OUTAGE | {"at": "75 s"}
    (row,) = simulate(scenario(strategy=batches, failures=[failure], duration=240)).recoveries
    assert row["time_to_recover_s"] is not None
    assert row["throughput_90_s"] is None


def test_a_silence_that_begins_when_recovery_is_over_is_none_of_it() -> None:
    """13/s into one count with windows of 7 s. A pause from 33.3 to 38.3 s puts the window of 35 s out late,
    at 38.3 s and what waited takes to serve; the state that is lost at 38.5 s is healed at 42 s, with the
    window's end. So the second silence is the one from there to 42 s, and not the next one, of 7 s.
    """
    found = load(
        {
            "topology": {
                "keys": {"spout": "keys", "keys": 10, "rate": "13/s", "offset": "0 s"},
                "count": {
                    "bolt": "windowed_count",
                    "from": {"keys": {"fields": ["key"]}},
                    "service": "0.5 ms",
                    "window": {"length": "7 s", "trigger": "tick"},
                },
            },
            "strategy": "none",
            "failures": [
                {"kind": "pause", "component": "count", "at": "33.3 s", "duration": "5 s"},
                {"kind": "lose_state", "component": "count", "at": "38.5 s"},
            ],
            "run": {"duration": "70 s", "warmup": "5 s"},
        }
    )
    second = simulate(found).recoveries[1]
    assert second["time_to_recover_s"] == pytest.approx(3.5)
    assert second["output_gap_s"] == pytest.approx(42 - 38.3, abs=0.05)


def test_a_silence_that_begins_at_the_failure_is_of_it() -> None:
    """Outputs at 0, 3 and 10 s: of a failure at 3 s that is over at once, and of one that is over at 3 s."""
    outputs = np.array([0, 3, 10]) * S
    assert longest_silence(outputs, 3 * S, 3 * S) == 7
    assert longest_silence(outputs, 2 * S, 3 * S) == 3
