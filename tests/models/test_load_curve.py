"""A failure under a load that changes is measured against that load, not against the load before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tideover.models.simulation import simulate
from tideover.scenarios.loader import load

HOUR = 90
"""An hour of this day has so many seconds; a recovery takes less."""
PEAK = 18
RATES = [
    round(20 + 40 * float(np.exp(-((min(abs(h - PEAK), 24 - abs(h - PEAK)) / 4) ** 2)))) for h in range(24)
]
"""20/s in the morning, 60/s at 18 h, of a capacity of 83/s."""
INTO = 31

STRATEGIES: dict[str, dict[str, Any]] = {
    "none": {},
    "source_replay": {"message_timeout": "10 s", "timeout_phase": "3 s"},
    "rsm": {"checkpoint_interval": "5 s", "replay_cost": "1 ms", "spout_buffer": True},
    "aligned_snapshots": {"checkpoint_interval": "5 s", "snapshot_time": "50 ms"},
    "micro_batch": {"trigger_interval": "2 s", "task_time": "50 ms", "plan_time": "50 ms"},
}


def recovery(kind: str, arrivals: dict[str, Any], at: float, duration: float) -> dict[str, Any]:
    """log ──▶ parse ──▶ count, down for 14 s while its input waits; windows of 5 s, ended by markers."""
    scenario = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, **arrivals},
                "parse": {"bolt": "forward", "from": {"log": "shuffle"}, "service": "1 ms"},
                "count": {
                    "bolt": "windowed_count",
                    "from": {"parse": {"fields": ["key"]}},
                    "service": "12 ms",
                    "window": {"length": "5 s", "trigger": "marker"},
                },
            },
            "strategy": {"kind": kind, **STRATEGIES[kind]},
            "failures": [
                {
                    "kind": "crash_task",
                    "component": "count",
                    "at": f"{at} s",
                    "detection": "10 s",
                    "restart": "4 s",
                    "while_down": "hold",
                }
            ],
            "run": {"duration": f"{duration} s"},
        }
    )
    (row,) = simulate(scenario).recoveries
    return row


def trace(folder: Path, rates: list[float]) -> dict[str, Any]:
    file = folder / "rates.csv"
    rows = "".join(f"{hour * HOUR},{rate}\n" for hour, rate in enumerate(rates))
    file.write_text("time_s,rate_per_s\n" + rows, encoding="utf-8")
    return {"arrivals": {"kind": "trace", "file": str(file)}}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind in ("none", "rsm") else pytest.mark.long) for kind in STRATEGIES],
)
def test_the_worst_hour_is_the_peak_and_each_is_as_a_constant_load(kind: str, tmp_path: Path) -> None:
    """Hours before, at and after the peak; each has the rate of the hour for longer than the recovery takes,
    and so the recovery of a constant load of that rate.
    """
    day = trace(tmp_path, [float(rate) for rate in RATES])
    hours = (9, 17, PEAK, 19)
    found = {h: recovery(kind, day, h * HOUR + INTO, (h + 2) * HOUR) for h in hours}
    times = {h: row["time_to_recover_s"] for h, row in found.items()}
    assert max(times, key=lambda h: times[h]) == PEAK
    for hour in hours:
        constant = recovery(kind, {"rate": f"{RATES[hour]}/s"}, HOUR + INTO, 3 * HOUR)
        for measure in ("time_to_recover_s", "catch_up_s"):
            assert found[hour][measure] == pytest.approx(constant[measure], rel=0.1)


def test_as_a_curve_gets_flat_its_answer_becomes_that_of_a_constant_load(tmp_path: Path) -> None:
    """A step of the rate at the middle of the recovery, from 40/s to 40/s and a little more: less and
    less.
    """
    constant = recovery("rsm", {"rate": "40/s"}, HOUR + 65, 4 * HOUR)["time_to_recover_s"]
    apart = [
        abs(
            recovery("rsm", trace(tmp_path / name, [40, 40, 40 + more, 40 + more]), HOUR + 65, 4 * HOUR)[
                "time_to_recover_s"
            ]
            - constant
        )
        for more, name in ((16, "a"), (4, "b"), (1, "c"), (0, "d"))
        if (tmp_path / name).mkdir() is None
    ]
    assert apart[0] > apart[1] > apart[2] >= apart[3]
    assert apart[3] <= 0.02


def stalled(phase: float) -> dict[str, Any]:
    """A job at 0.6 of its capacity that each second stands still for 0.1 s, killed ``phase`` into a
    second.
    """
    scenario = load(
        {
            "topology": {
                "log": {"spout": "keys", "keys": 10, "rate": "300/s"},
                "job": {
                    "bolt": "windowed_count",
                    "from": {"log": {"fields": ["key"]}},
                    "service": "2 ms",
                    "window": {"length": "10 s", "trigger": "marker"},
                },
            },
            "strategy": {
                "kind": "aligned_snapshots",
                "checkpoint_interval": "1 s",
                "snapshot_time": "100 ms",
            },
            "failures": [
                {
                    "kind": "crash_task",
                    "component": "job",
                    "at": f"{40 + phase} s",
                    "detection": "5 s",
                    "restart": "1 s",
                }
            ],
            "run": {"duration": "120 s"},
        }
    )
    (row,) = simulate(scenario).recoveries
    return row


@pytest.mark.parametrize("phase", [0.25, 0.5, 0.75])
def test_a_job_that_snapshots_stall_catches_up_all_the_same(phase: float) -> None:
    """D + r (D + f T) / (C - r) with what the snapshots leave of the capacity, 0.9 x 500/s; a snapshot that
    is under way takes the backlog no further than one stall of normal operation does (0.1 s of input).
    """
    down, rate, capacity = 6.0, 300.0, 0.9 * 500
    law = down + rate * (down + phase) / (capacity - rate)
    assert stalled(phase)["catch_up_s"] == pytest.approx(law, abs=0.5)
