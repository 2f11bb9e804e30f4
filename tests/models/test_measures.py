"""What a recovery is measured against: the time before it, without what earlier failures have left."""

from __future__ import annotations

from typing import Any

import pytest

from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

RATE, CAPACITY = 900, 2000
DOWN = 25


def told(*moments: int, duration: int = 300) -> dict[str, Any]:
    """log -> job, 900/s at a capacity of 2000/s; at these moments (s) the job is down for 25 s, and the log
    waits.
    """
    outage = {"kind": "crash_task", "component": "job", "detection": "20 s", "restart": "5 s"}
    scenario = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
                "job": {"bolt": "forward", "from": {"log": "shuffle"}, "service": f"{1000 / CAPACITY} ms"},
            },
            "strategy": "none",
            "failures": [outage | {"at": f"{at} s", "while_down": "hold"} for at in moments],
            "run": {"duration": f"{duration} s", "warmup": "5 s"},
        },
    )
    return Result(scenario, [simulate(scenario)]).to_dict()


def test_each_of_several_failures_is_measured_as_if_it_were_alone() -> None:
    """The same outage three times, each after the backlog of the one before is gone: D + r D / (C - r)."""
    recoveries = told(30, 110, 190)["recoveries"]
    (alone,) = told(30)["recoveries"]
    for recovery in recoveries:
        assert recovery["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)
        assert recovery["throughput_90_s"] == pytest.approx(alone["throughput_90_s"], abs=0.02)


def test_one_that_strikes_during_catch_up_is_measured_against_the_time_before_both() -> None:
    """What waits in the job at 60 s is lost with it. The first is never caught up with; the second takes as
    long as if it were alone, and a backlog of 17,000 before it is not taken for usual.
    """
    first, second = told(30, 60)["recoveries"]
    assert first["catch_up_s"] is None
    assert second["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)


@pytest.mark.parametrize("moments", [(), (30,), (30, 110, 190), (30, 60)])
def test_latency_otherwise_knows_nothing_of_failures(moments: tuple[int, ...]) -> None:
    """Arrivals are evenly spaced and none waits, except for an outage: each takes its service time."""
    latency = told(*moments)["latency_ms"]
    assert latency["max"] == pytest.approx(1000 / CAPACITY)
    assert latency["mean"] == pytest.approx(1000 / CAPACITY)


def test_after_a_failure_that_is_not_caught_up_with_nothing_is_usual() -> None:
    """Down to the end, or with a backlog to the end: what is otherwise measured ends at the failure."""
    assert told(30, duration=70)["latency_ms"]["max"] == pytest.approx(1000 / CAPACITY)
