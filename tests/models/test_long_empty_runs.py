"""Long runs in which seldom something happens: what is kept of them; nothing is measured otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tideover
from tideover.models.evaluation import undisturbed
from tideover.models.evaluation.curves import SECOND, Axis
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.scenario import Scenario
from tideover.sim import recorder
from tideover.sim.units import DAY, S

SNAPSHOTS = {"kind": "aligned_snapshots", "checkpoint_interval": "20 s"}
STRATEGIES = ["none", "active_replication", {"kind": "source_replay", "message_timeout": "9 s"}, SNAPSHOTS]


def world(strategy: Any, **run: Any) -> Scenario:
    """log -> count, a call a minute and bursts of 30; two failures, of which one strikes a burst."""
    calls = {"kind": "burst", "rate": "1/min", "peak": "20/s", "length": "1500 ms", "every": "400 s"}
    return tideover.load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 3, "arrivals": calls},
                "count": {
                    "bolt": "windowed_count",
                    "from": {"log": {"fields": ["key"]}},
                    "service": "40 ms",
                    "window": {"length": "90 s", "trigger": "marker"},
                },
            },
            "strategy": strategy,
            "failures": [
                {"kind": "crash_task", "component": "count", "at": "399.5 s", "restart": "50 s"},
                {"kind": "pause", "component": "count", "at": "900 s", "duration": "3 s"},
            ],
            "run": {"duration": "1210.5 s", "warmup": "61 s", **run},
        }
    )


def found(scenario: Scenario) -> Replication:
    undisturbed.forget()
    return simulate(scenario)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_kept_of_a_long_run_gives_the_same_figures(
    strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run, once with all of its slots, once with those near to what happens: equal in every figure;
    and the seconds that are left out are like those before them.
    """
    scenario = world(strategy)
    whole = found(scenario)
    monkeypatch.setattr(recorder, "LONG", 0)
    few = found(scenario)
    for name in ("recoveries", "throughput", "ledger", "windows", "cost", "dependability"):
        assert getattr(few, name) == getattr(whole, name), name
    assert few.latency.state() == whole.latency.state()
    assert few.end_to_end.state() == whole.end_to_end.state()
    kept = {row["second"]: row for row in few.timeline}
    empty = {"throughput_per_s": 0.0, "latency_mean_ms": None, "latency_max_ms": None}
    empty |= {"end_to_end_mean_ms": None, "end_to_end_max_ms": None}
    before = dict(whole.timeline[0])
    for row in whole.timeline:
        before = kept.get(row["second"], before | {"second": row["second"]} | empty)
        assert row == before
    assert len(kept) < len(whole.timeline) or strategy == SNAPSHOTS


def test_two_hundred_days_keep_what_happens() -> None:
    """A call in 10 h, 480 in 200 d: 17 million seconds, of which those near the calls are kept."""
    scenario = tideover.load(
        {
            "topology": {
                "s": {"spout": "keys", "rate": "0.1/h"},
                "b": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms"},
            },
            "strategy": "none",
            "run": {"duration": "200 d"},
        }
    )
    one = simulate(scenario)
    assert one.ledger["completed"] == pytest.approx(480, abs=1)
    assert len(one.timeline) < 50 * 480
    assert one.throughput["mean"] == one.ledger["completed"] / (200 * DAY // S)


def test_an_axis_keeps_whole_seconds() -> None:
    """Something happens in the slots at 5.00 s and 5.01 s, and at 12.3 s, of 20.05 s: with a margin of a
    second the seconds 3 to 6 (5.00 s ends second 4) and 11 to 13 are kept.
    """
    axis = Axis.near(2006, np.array([500, 501, 1230]), 1)
    assert axis.kept is not None
    assert axis.kept.tolist() == [3, 4, 5, 6, 11, 12, 13]
    assert axis.at.tolist() == [0, *range(301, 701), *range(1101, 1401), *range(2001, 2006)]
    assert [axis.slot(axis.place(slot)) for slot in (0, 301, 800, 1230)] == [0, 301, 1101, 1230]
    assert axis.seconds(4, 13).tolist() == [4, 5, 6, 11, 12]
    assert axis.at[axis.slots_of(4, 13)].tolist() == [*range(401, 701), *range(1101, 1301)]
    assert Axis(2006).at[Axis(2006).slots_of(4, 13)].tolist() == [*range(4 * SECOND + 1, 13 * SECOND + 1)]
