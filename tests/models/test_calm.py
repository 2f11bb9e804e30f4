"""When the latency is normal again, second by second, in worlds of one server by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load


def told(*settings: str, **second: str) -> dict[str, Any]:
    """100/s for a server of 400/s that stands still from 50.5 s to 60.5 s, what comes meanwhile waiting;
    and that fails a ``second`` time.
    """
    held = {"kind": "crash_task", "component": "job", "while_down": "hold"}
    failures = [held | {"at": "50.5 s", "detection": "4 s", "restart": "6 s"}]
    found = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": "100/s", "offset": "0 s"},
                "job": {"bolt": "forward", "from": {"log": "shuffle"}, "service": "2.5 ms"},
            },
            "strategy": "none",
            "failures": [*failures, held | second] if second else failures,
            "run": {"duration": "100 s", "warmup": "5 s", "calm": "5 s"},
        },
        settings,
    )
    return Result(found, [simulate(found)]).to_dict()


def row(*settings: str, **second: str) -> dict[str, Any]:
    found: dict[str, Any] = told(*settings, **second)["recoveries"][0]
    return found


def test_the_latency_falls_with_the_backlog() -> None:
    """1000 tuples wait, a tuple done t s after the restart is 10 - 3 t s late: below 300 ms from 63.73 s on.

    So the mean of second 63 is not normal yet (all that is done in it counts, and at its start it is 2.5 s
    late), and second 64 is the first: 13.5 s after the failure. The outage ends after 10 s.
    """
    found = row()
    assert found["outage_end_s"] == 10.0
    assert found["latency_recovered_s"] == 13.5


def test_it_has_to_stay_normal() -> None:
    """A second failure like the first, 16 s later, strikes before 5 s are over: it is normal 16 s later."""
    second = {"at": "66.5 s", "detection": "10 s"}
    assert row(**second)["latency_recovered_s"] == 13.5 + 16
    assert row("run.calm=2 s", **second)["latency_recovered_s"] == 13.5


def test_what_is_not_over_is_undefined() -> None:
    """The run ends before 5 s are normal, or before the restart."""
    assert row("run.duration=68 s")["latency_recovered_s"] is None
    assert row("run.duration=68 s")["outage_end_s"] == 10.0
    assert row("run.duration=60 s")["outage_end_s"] is None
    assert row("run.duration=60 s")["latency_recovered_s"] is None


def test_a_second_without_a_tuple_is_not_normal() -> None:
    """Nothing is processed while the server is down: with a fault that leaves nothing behind, it is as if the
    outage had lasted to the second that it ends in.
    """
    found = row("failures.0.while_down=drop", "failures.0.at=50 s", "failures.0.restart=6.5 s")
    assert found["outage_end_s"] == 10.5
    assert (
        found["latency_recovered_s"] == 10.0
    )  # the second in which it ends has tuples, and these are prompt


@pytest.mark.parametrize(("service", "recovered"), [("2.5 ms", 13.5), ("9 ms", None)])
def test_only_who_asks_is_told(service: str, recovered: float | None) -> None:
    """Without run.calm a result has neither key; at 0.9 of the capacity the run is over first."""
    plain = told("run.calm=null", f"topology.job.service={service}")
    assert "calm" not in str(plain)
    assert not {"outage_end_s", "latency_recovered_s"} & set(plain["recoveries"][0])
    asked = told(f"topology.job.service={service}")
    assert asked["recoveries"][0]["latency_recovered_s"] == recovered
    assert asked["scenario"]["run"]["calm"] == 5 * 10**9
