"""A log and a series of the same job: the log has the parts of an outage, the series what came after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibrate.made_logs import EPOCH, SAMPLE, checkpoint, deployed, job, line, read, running, task
from tideover.calibrate import logs
from tideover.scenarios.loader import load
from tideover.sim.units import S

RATE, CAPACITY = 100.0, 300.0
LOG = [
    *running(),
    line(60, "Association with remote system [akka.tcp://flink@h1:1] has failed, address is now gated"),
    task(60.25, 0, 0, "RUNNING", "FAILED", "tm1"),
    job(60.25, "RUNNING", "RESTARTING"),
    task(60.25, 1, 0, "RUNNING", "CANCELED"),
    job(61.25, "RESTARTING", "RUNNING"),
    *deployed(77.75, 1),
    *checkpoint(2, 121, 122),
    *checkpoint(3, 180, 181),
]
"""Nothing is read from 60 s to 80 s."""


def lag(at: float) -> float:
    """It rises by the rate for 20 s, and falls by what the capacity leaves, so it is gone after 10 s more."""
    if at <= 80:
        return 10 + RATE * max(0.0, at - 60)
    return max(10.0, 10 + RATE * 20 - (CAPACITY - RATE) * (at - 80))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{EPOCH + at:.3f},{lag(at)}" for at in range(-60, 200)]
    (tmp_path / "lag.csv").write_text("timestamp,records_lag\n" + "\n".join(rows) + "\n")
    read(tmp_path, LOG)
    return tmp_path


def test_the_series_tells_when_it_had_caught_up(folder: Path) -> None:
    flink = next(one for one in logs.read(folder).found if one.engine == "flink")
    (failure,) = flink.failures
    assert failure.after("running") == 20
    assert failure.after("caught_up") == pytest.approx(30, abs=0.5)
    assert next(stage for stage in failure.stages if stage.name == "caught_up").mark.file == "lag.csv"
    told = {one.name: one for one in flink.quantities}
    assert told["rate"].value == pytest.approx(RATE, rel=0.02)
    assert told["capacity"].value == pytest.approx(CAPACITY, rel=0.02)
    assert told["catch_up"].value == pytest.approx(10, abs=0.5)
    assert not any(
        one.name in ("rate", "capacity", "catch_up") for one in flink.quantities if not one.identified
    )


def test_so_catch_ups_are_predicted_at_its_rate(folder: Path) -> None:
    """At a third of the capacity what waits is worked off in half the time that it took to come."""
    flink = next(one for one in logs.read(folder).found if one.engine == "flink")
    waits = {one.what: one.estimate for one in flink.predictions if one.measure == "backlog"}
    after = {one.what: one.estimate for one in flink.predictions if one.what.endswith("rows/s")}
    assert len(after) == len(waits) > 0
    for what, backlog in waits.items():
        (found,) = [estimate for name, estimate in after.items() if name.startswith(f"{what},")]
        assert found == pytest.approx(backlog / 2, rel=0.1)


def test_and_the_profile_has_its_capacity(folder: Path) -> None:
    evidence = logs.read(folder)
    (name,) = [name for name in evidence.profiles if name.startswith("count")]
    (folder / "out.yaml").write_text(evidence.profiles[name])
    scenario = load("flink-recovery", [f"profile={folder / 'out.yaml'}"])
    service = scenario.topology["job"].service
    assert service.mean_ns == pytest.approx(S / CAPACITY, rel=0.02)


def test_a_series_of_another_hour_tells_nothing(folder: Path) -> None:
    text = (folder / "lag.csv").read_text().splitlines()
    later = [f"{float(row.split(',')[0]) + 3600},{row.split(',')[1]}" for row in text[1:]]
    (folder / "lag.csv").write_text("\n".join([text[0], *later]) + "\n")
    flink = next(one for one in logs.read(folder).found if one.engine == "flink")
    assert flink.failures[0].after("caught_up") is None
    assert {one.name for one in flink.quantities if not one.identified} >= {"rate", "capacity", "catch_up"}


def test_of_two_jobs_that_fail_at_once_it_is_neither_s(folder: Path) -> None:
    """Whose lag it is cannot be told."""
    other = [one.replace("Job count (aaaa", "Job other (aaaa") for one in LOG]
    (folder / "two.log").write_text("".join(f"{one}\n" for one in other))
    found = [one for one in logs.read(folder).found if one.engine == "flink"]
    assert len(found) == 2
    assert all(one.failures[0].after("caught_up") is None for one in found)


def test_without_a_series_nothing_changes() -> None:
    (found,) = logs.read(SAMPLE).found
    assert found.failures[0].after("caught_up") is None
