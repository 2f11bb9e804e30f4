"""Repetitions tell how much runs differ; heartbeats tell when a job reads again; both go into predictions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tideover
from tideover.calibrate.recoveries import fit, recovery_time
from tideover.calibrate.recoveries.measurements import DEMETER, LATENCIES, Points, Setting, read
from tideover.calibrate.recoveries.posterior import (
    DIMENSIONS,
    FEWEST,
    PUBLISHED,
    Posterior,
    Prior,
    _outages_left_out,
    run_to_run,
)
from tideover.calibrate.recoveries.recovery_time import Values, recovery
from tideover.scenarios import profiles
from tideover.scenarios.errors import ScenarioError
from tideover.sim.units import S, parse_duration

FAILURES = Path(__file__).parents[2].parent / "shared" / "published" / "demeter_flink_failures.csv"
TRUTH = Values(outage=40.0, capacity=180_000.0, fraction=0.5, snapshot=0.0)


def repeated(times: int, factor: float, workload: str = "mine") -> Points:
    """At each of three rates, ``times`` pairs of recoveries, 100 s and ``factor`` times that."""
    rate = np.repeat([1000.0, 2000.0, 3000.0], 2 * times) * (1 + 0.0001 * np.arange(6 * times))
    return Points(workload, np.full(len(rate), 10.0), rate, np.tile([100.0, 100.0 * factor], 3 * times))


def test_repetitions_have_the_scatter_of_their_logarithms() -> None:
    """Four recoveries at each of three rates, all 0.1 from their mean: 12 squares, 9 degrees of freedom."""
    points = repeated(2, np.exp(0.2))
    assert run_to_run([points]) == pytest.approx(0.1 * np.sqrt(12 / 9))
    still = repeated(2, 1.0, "still")
    assert run_to_run([points, still]) == pytest.approx(0.1 * np.sqrt(12 / 18))  # both count alike


def test_few_repetitions_are_not_believed() -> None:
    """Three pairs have three degrees of freedom; other intervals and rates 2 % apart are no repetitions."""
    pairs = repeated(1, 1.5)
    assert run_to_run([pairs]) == PUBLISHED
    assert run_to_run([pairs, pairs]) != PUBLISHED
    assert FEWEST == 6
    apart = dataclasses.replace(repeated(2, 1.5), interval=np.arange(12.0) + 1)
    assert run_to_run([apart]) == PUBLISHED
    steps = Points("mine", np.full(20, 10.0), 1000 * 1.021 ** np.arange(20.0), np.arange(20.0) + 50)
    assert run_to_run([steps]) == PUBLISHED


def test_predictions_scatter_by_as_much() -> None:
    """Whatever a draw says, by a factor of its own. Where draws agree, the interval is that of the scatter
    alone: 1.645 deviations to either side.
    """
    prior = Prior.of(repeated(1, 1.0), None)
    v = np.random.default_rng(1).standard_normal((2000, DIMENSIONS))
    plain, scattered = Posterior(prior, v, 0.0), Posterior(prior, v, 0.0, 0.1)
    one, other = (np.log(found.predictions(Setting(10.0, 500.0))) for found in (plain, scattered))
    assert np.std(other - one) == pytest.approx(0.1, rel=0.01)
    assert abs(np.corrcoef(other - one, one)[0, 1]) < 0.1
    same = np.tile(v[:1], (2000, 1))
    same[:, 4:] = -20.0  # runs do not differ
    low, high = Posterior(prior, same, 0.0, 0.1).interval(Setting(10.0, 500.0))
    assert np.log(high / low) == pytest.approx(2 * 1.645 * 0.1, rel=0.02)


# -- when a job reads again ----------------------------------------------------------------------------------


def failures(seed: int, spread: float, restart: float = 12.0, n: int = 40) -> Points:
    """Failures by the law, with ends of outages as exact times."""
    rng = np.random.default_rng(seed)
    outage = 20 - 5 * rng.random(n) + restart + spread * rng.standard_normal(n)
    rate = rng.uniform(30_000, 90_000, n)
    recovered = recovery(TRUTH, 10.0, rate, None) * np.exp(0.05 * rng.standard_normal(n))
    beat, timeout = (np.full(n, value) for value in DEMETER)
    return Points("mine", np.full(n, 10.0), rate, recovered, outage, beat, timeout)


def test_a_loss_is_noticed_within_an_interval_before_the_timeout() -> None:
    """Restarts that take no time: evenly from the timeout less an interval to the timeout, 15 to 20 s, but
    for a reading in whole seconds.
    """
    outages = recovery_time.Restart(0.0, 0.0, 0.0).outages(Setting(10.0, 1.0, *DEMETER))
    assert np.quantile(outages, [0.1, 0.5, 0.9]) == pytest.approx([15.5, 17.5, 19.5], abs=0.1)
    assert Setting(10.0, 1.0, *DEMETER).detected == 17.5


def test_what_heartbeats_do_not_explain_is_the_restarts() -> None:
    """Restarts of 12 s: without a spread of their own none is found, else the one that they have."""
    for spread in (0.0, 3.0):
        named = {str(seed): failures(seed, spread, n=400) for seed in range(5)}
        found = recovery_time.fit_restarts(named)["0"]
        assert found.mean == pytest.approx(12.0, abs=4 * found.error)
        assert found.error == pytest.approx(np.sqrt(25 / 12 + spread**2) / 20, rel=0.1)
        assert found.spread == pytest.approx(spread, rel=0.1, abs=0.35)


@pytest.mark.parametrize("spread", [pytest.param(0.0, marks=pytest.mark.long), 2.0])
def test_intervals_of_outages_hold_nine_in_ten(spread: float) -> None:
    """Of 400 ends of outages, each left out in turn, nine in ten; three standard deviations are 4.5 %."""
    workloads = {"mine": failures(7, spread, n=400)}
    measured = dataclasses.replace(_nothing(), workloads=workloads)
    held_out = _outages_left_out(measured, "mine")["outage_end"]
    assert held_out.coverage == pytest.approx(0.9, abs=0.045)


def _nothing() -> Any:
    from tideover.calibrate.recoveries.measurements import Measurements

    return Measurements("a.csv", "", {}, latencies=True)


# -- files with latencies ------------------------------------------------------------------------------------


def written(folder: Path, points: Points, more: str = "") -> Path:
    rows = zip(points.interval, points.rate, points.recovery, points.outage, strict=True)  # type: ignore[arg-type]
    lines = ["# made up", ",".join(("workload", *LATENCIES, "outages_in_300s"))]
    lines += [f"mine,{t:g},{r:.1f},{y:.2f},{o:.2f},1" for t, r, y, o in rows]
    path = folder / "mine.csv"
    path.write_text("\n".join(lines) + "\n" + more)
    return path


def test_a_second_outage_and_an_open_end_are_set_aside(tmp_path: Path) -> None:
    """And said, with their lines; the others are read as they are."""
    more = "mine,10,5000,99,30,2\nmine,10,5000,,30,1\n"
    found = read(written(tmp_path, failures(1, 0.0, n=8), more))
    assert found.latencies
    assert len(found.workloads["mine"]) == 8
    assert found.remarks[:2] == (
        "mine.csv:11: 2 outages within 300 s are no recovery from one failure; it is set aside",
        "mine.csv:12: latency_recovered_at_s: not reached; it is set aside",
    )
    broken = tmp_path / "broken.csv"
    broken.write_text((tmp_path / "mine.csv").read_text().replace("outage_end_s", "outage"))
    with pytest.raises(ScenarioError, match=r"broken.csv:2: outage_end_s: is missing; the columns are"):
        read(broken)


@pytest.mark.long
def test_a_profile_predicts_both_ends(tmp_path: Path) -> None:
    """At a rate that was not measured: the outage of the truth, 29.5 s, and its recovery; the run, too."""
    points = failures(3, 0.0, n=7)
    found = fit(read(written(tmp_path, points)))
    path = tmp_path / "mine.yaml"
    path.write_text(found.profiles["mine"])
    assert list(profiles.read(path).scatter) == ["outage_end_s", "latency_recovered_s"]
    settings = [f"profile={path}", "rate=60000/s", "checkpoint_interval=10 s", "run.duration=400 s"]
    result = tideover.run("flink-recovery", settings).to_dict()
    wanted = {"outage_end_s": 29.5, "latency_recovered_s": float(recovery(TRUTH, 10.0, 60_000.0, None))}
    row = result["recoveries"][0]
    for name, value in wanted.items():
        predicted = result["prediction"][name]
        assert predicted["low"] < value < predicted["high"]
        assert predicted["estimate"] == pytest.approx(value, rel=0.06)
        assert row[name] == pytest.approx(value, rel=0.06)


@pytest.mark.long
def test_a_detector_finds_out_by_itself() -> None:
    """The built-in profile gives the restart alone; detection is a timeout less the age of a heartbeat. With
    one that is 40 s longer so is the outage, and the latency is late by more.
    """
    usual, slow = (
        tideover.run("demeter-cars", ["profile=demeter-cars", *more]).to_dict()["recoveries"][0]
        for more in ((), ("heartbeat_timeout=60 s",))
    )
    profile = profiles.again("demeter-cars")
    launch = profile.values["detector.heartbeats.launch"].plain()
    assert usual["stages_s"]["launch"] == parse_duration(launch) / S
    assert 15 < usual["stages_s"]["detect"] <= 20
    assert slow["stages_s"]["detect"] == pytest.approx(usual["stages_s"]["detect"] + 40)
    assert slow["outage_end_s"] == pytest.approx(usual["outage_end_s"] + 40)
    assert slow["latency_recovered_s"] > usual["latency_recovered_s"] + 40


@pytest.mark.long
@pytest.mark.skipif(not FAILURES.exists(), reason="the measurements are not here")
def test_demeter_is_predicted() -> None:
    """The end of the outage within 2 s and latency within 12 % in the mean, for each workload; all but one of
    eleven, and of twelve, in their intervals.
    """
    found = fit(read(FAILURES))
    errors = found.frames["errors"].query("model == 'mechanism'").set_index(["workload", "kind"])
    inside = []
    for workload in ("ADS", "CARS"):
        assert errors.loc[(workload, "outage_end"), "mean_error_s"] < 2
        assert errors.loc[(workload, "leave_one_out"), "mean_error"] < 0.12
        inside += [errors.loc[(workload, kind), "coverage"] for kind in ("outage_end", "leave_one_out")]
    assert all(0.85 <= share <= 0.95 for share in inside)
