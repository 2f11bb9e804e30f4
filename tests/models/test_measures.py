"""What a recovery is measured against: the time before it, without what earlier failures have left."""

from __future__ import annotations

from typing import Any

import pytest

from tideover.models.config import Scenario
from tideover.models.results.result import Result
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

OUTAGE = {
    "kind": "crash_task",
    "component": "job",
    "detection": "20 s",
    "restart": "5 s",
    "while_down": "hold",
}

RATE, CAPACITY = 900, 2000
DOWN = 25


def scenario(*moments: int, duration: int = 300) -> Scenario:
    """log -> job, 900/s at a capacity of 2000/s; at these moments (s) the job is down for 25 s, and the log
    waits.
    """
    return load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
                "job": {"bolt": "forward", "from": {"log": "shuffle"}, "service": f"{1000 / CAPACITY} ms"},
            },
            "strategy": "none",
            "failures": [OUTAGE | {"at": f"{at} s"} for at in moments],
            "run": {"duration": f"{duration} s", "warmup": "5 s"},
        },
    )


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
