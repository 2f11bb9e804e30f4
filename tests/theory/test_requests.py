"""A bolt that asks a service outside: what the service allows decides how long catching up takes."""

from __future__ import annotations

import pytest

from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

RATE, DOWN = 30, 20


@pytest.mark.parametrize("limit", [40, 50])
def test_catching_up_goes_at_the_pace_that_the_service_allows(limit: int) -> None:
    """log -> ask: the task is down for 20 s, and the log, 30/s, waits; then it catches up at limit - 30, as
    fluid does, though an answer takes 1 ms.
    """
    service = {"kind": "request", "answer": "1 ms", "limit": f"{limit}/s"}
    down = {"detection": f"{DOWN} s", "while_down": "hold"}
    scenario = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
                "ask": {"bolt": "forward", "from": {"log": "shuffle"}, "service": service},
            },
            "strategy": "none",
            "failures": [{"kind": "crash_task", "at": "50 s", "component": "ask", **down}],
            "run": {"duration": "250 s", "warmup": "10 s"},
        }
    )
    (recovery,) = simulate(scenario).recoveries
    assert recovery["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (limit - RATE), rel=0.01)
