"""When a failure is over: back in a steady state, be it another one; calm, second by second; and under a load
that changes, against which it is measured, not against the load before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.loaded import log_and_job, markers
from tideover.models.results import Result
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load


def told(scenario: Any) -> Result:
    return Result(scenario, [simulate(scenario)])


def over(scenario: Any) -> dict[str, Any]:
    """When its failure is."""
    (row,) = simulate(scenario).recoveries
    return row


def moved(state_time: float) -> Result:
    """Two executors with a partition of the state each, batches every 2 s; one is killed, and the other
    serves both partitions from then on, one after the other (it has one core), ``state_time`` s each.
    """
    batches = {"kind": "micro_batch", "trigger_interval": "2 s", "state_time": f"{state_time} s"}
    killed = {"kind": "crash_host", "host": 0, "at": "30.1 s", "detection": "1 s", "restart": "9 s"}
    count = {"service": "0 s", "window": markers(10), "parallelism": 2, "hosts": [0, 1]}
    log = {"rate": "100/s", "offset": "0 s", "hosts": [2]}
    more = {"hosts": 3, "failures": [killed]}
    strategy = batches | {"locality_wait": "0 s"}
    return told(log_and_job(log, count, strategy=strategy, more=more, duration="90 s"))


def ending(found: Result) -> str:
    (text,) = [text for text in found.warnings if text.startswith("failure at")]
    return text


def peak(found: Result, column: str) -> int:
    """Of the saw, in the last seconds: what came in 2 s, and while the batch ran."""
    return max(row[column] for row in found.replications[0].timeline[-10:])


def test_a_little_slower_for_good_is_recovered() -> None:
    """A batch of 0.5 s, then of 1.0 s: backlogs of 250, then of 300, a fifth more, are normal."""
    found = moved(0.5)
    assert peak(found, "backlog") == pytest.approx(300, abs=2)
    assert peak(found, "backlog_without_failures") == pytest.approx(250, abs=2)
    (row,) = found.replications[0].recoveries
    assert 0 < row["time_to_recover_s"] < 15
    assert not [text for text in found.warnings if text.startswith("failure at")]


def test_much_slower_for_good_is_not_and_a_remark_says_so() -> None:
    """A batch of 0.9 s, then of 1.8 s: backlogs of 290, then of 380, three tenths more."""
    found = moved(0.9)
    (row,) = found.replications[0].recoveries
    assert row["time_to_recover_s"] is None
    assert row["catch_up_s"] is None
    assert "goes on more slowly" in ending(found)


def crashed(*at: float, **more: Any) -> Result:
    """A queue at 0.9 of its capacity, down for 10 s each time."""
    failures = [{"at": f"{each} s", "restart": "10 s", **more} for each in at]
    job = {"service": "10 ms", "window": {"length": "1000 s"}}
    return told(log_and_job({"rate": "90/s"}, job, failures, duration="60 s"))


@pytest.mark.parametrize(
    ("at", "more", "said"),
    [
        (20, {"while_down": "hold"}, "its backlog is not gone"),
        (20, {"while_down": "drop"}, "a state lacks something"),
        (55, {"while_down": "drop"}, "is not known at the end"),
    ],
)
def test_why_a_failure_is_not_over_is_said(at: float, more: dict[str, Any], said: str) -> None:
    """900 tuples need 90 s at what is left of the capacity; dropped, they are missing from a count that no
    window clears; still down at the end, nobody knows.
    """
    found = crashed(at, **more)
    assert found.replications[0].recoveries[0]["time_to_recover_s"] is None
    assert said in ending(found)


def test_a_failure_in_the_last_second_is_remarked_on() -> None:
    """There is more in the queue than there would be, of the failure before, and no second to look at."""
    found = crashed(20, 59.5, while_down="hold")
    assert found.replications[0].recoveries[1]["time_to_recover_s"] is None
    assert ending(found).startswith("failure at 59.5 s: its backlog is not gone")


# -- calm ----------------------------------------------------------------------------------------------------


def calm(*settings: str, **second: str) -> dict[str, Any]:
    """100/s for a server of 400/s that stands still from 50.5 s to 60.5 s, what comes meanwhile waiting;
    and that fails a ``second`` time.
    """
    failures = [{"at": "50.5 s", "detection": "4 s", "restart": "6 s"}, *([second] if second else [])]
    held = [{"while_down": "hold", **one} for one in failures]
    log, run = {"rate": "100/s", "offset": "0 s"}, {"duration": "100 s", "warmup": "5 s", "calm": "5 s"}
    return told(log_and_job(log, {"service": "2.5 ms"}, held, settings=settings, **run)).to_dict()


def row(*settings: str, **second: str) -> dict[str, Any]:
    found: dict[str, Any] = calm(*settings, **second)["recoveries"][0]
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


@pytest.mark.parametrize(("duration", "outage_end"), [("68 s", 10.0), ("60 s", None)])
def test_what_is_not_over_is_undefined(duration: str, outage_end: float | None) -> None:
    """The run ends before 5 s are normal, or before the restart."""
    found = row(f"run.duration={duration}")
    assert (found["outage_end_s"], found["latency_recovered_s"]) == (outage_end, None)


def test_a_second_without_a_tuple_is_not_normal() -> None:
    """Nothing is processed while the server is down: with a fault that leaves nothing behind, it is as if the
    outage had lasted to the second that it ends in.
    """
    found = row("failures.0.while_down=drop", "failures.0.at=50 s", "failures.0.restart=6.5 s")
    assert found["outage_end_s"] == 10.5
    # the second in which it ends has tuples, and these are prompt
    assert found["latency_recovered_s"] == 10.0


@pytest.mark.parametrize(("service", "recovered"), [("2.5 ms", 13.5), ("9 ms", None)])
def test_only_who_asks_is_told(service: str, recovered: float | None) -> None:
    """Without run.calm a result has neither key; at 0.9 of the capacity the run is over first."""
    plain = calm("run.calm=null", f"topology.job.service={service}")
    assert "calm" not in str(plain)
    assert not {"outage_end_s", "latency_recovered_s"} & set(plain["recoveries"][0])
    asked = calm(f"topology.job.service={service}")
    assert asked["recoveries"][0]["latency_recovered_s"] == recovered
    assert asked["scenario"]["run"]["calm"] == 5 * 10**9


# -- a load that changes -------------------------------------------------------------------------------------

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
    down = {"detection": "10 s", "restart": "4 s", "while_down": "hold"}
    counts = {"bolt": "windowed_count", "from": {"parse": {"fields": ["key"]}}, "service": "12 ms"}
    topology = {
        "log": {"spout": "keys", "keys": 10, **arrivals},
        "parse": {"bolt": "forward", "from": {"log": "shuffle"}, "service": "1 ms"},
        "count": counts | {"window": markers(5)},
    }
    crash = {"kind": "crash_task", "component": "count", "at": f"{at} s", **down}
    scenario = {
        "topology": topology,
        "strategy": {"kind": kind, **STRATEGIES[kind]},
        "failures": [crash],
        "run": {"duration": f"{duration} s"},
    }
    return over(load(scenario))


def trace(folder: Path, rates: list[float]) -> dict[str, Any]:
    file = folder / f"to_{rates[-1]}.csv"  # a file is read once
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

    def recovered(arrivals: dict[str, Any]) -> float:
        found: float = recovery("rsm", arrivals, HOUR + 65, 4 * HOUR)["time_to_recover_s"]
        return found

    constant = recovered({"rate": "40/s"})
    steps = (trace(tmp_path, [40, 40, 40 + more, 40 + more]) for more in (16, 4, 1, 0))
    apart = [abs(recovered(step) - constant) for step in steps]
    assert apart[0] > apart[1] > apart[2] >= apart[3]
    assert apart[3] <= 0.02


@pytest.mark.parametrize("phase", [0.25, 0.5, 0.75])
def test_a_job_that_snapshots_stall_catches_up_all_the_same(phase: float) -> None:
    """It stands still for 0.1 s each second, and is killed ``phase`` into one: D + r (D + f T) / (C - r) with
    what the snapshots leave of the capacity, 0.9 x 500/s; a snapshot that is under way takes the backlog no
    further than one stall of normal operation does (0.1 s of input).
    """
    down, rate, capacity = 6.0, 300.0, 0.9 * 500
    law = down + rate * (down + phase) / (capacity - rate)
    snapshots = {"kind": "aligned_snapshots", "checkpoint_interval": "1 s", "snapshot_time": "100 ms"}
    crash = {"at": f"{40 + phase} s", "detection": "5 s", "restart": "1 s"}
    job = {"service": "2 ms", "window": markers(10)}
    stalled = over(log_and_job({"rate": "300/s"}, job, [crash], snapshots, duration="120 s"))
    assert stalled["catch_up_s"] == pytest.approx(law, abs=0.5)
