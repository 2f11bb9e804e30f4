"""What a job catches up with, beside what it processes when it is saturated: known values are found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from tideover import run
from tideover.calibrate import capacities
from tideover.calibrate.capacities import NUMBERS, RECOVERIES
from tideover.calibrate.recoveries import catch_up
from tideover.calibrate.recoveries.catch_up import (
    DIMENSIONS,
    Prior,
    Profiled,
    fits,
    parameters,
    predicted,
)
from tideover.calibrate.recoveries.measurements import Points
from tideover.calibrate.recoveries.recovery_time import Values, recovery
from tideover.reports.calibration.recoveries import catch_up_verdict
from tideover.reports.columns import CAPACITY_FITS
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load
from tideover.scenarios.prediction import _other_conditions
from tideover.scenarios.profiles import read

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "published" / "demeter_profile_recoveries.csv"
RATIO, LIMIT, OUTAGE, SPREAD, CAP = 0.6, 60_000.0, 30.0, 0.05, 360.0


def measured(n: int, window: float | None = 30.0, seed: int = 1) -> Profiled:
    """Runs of jobs of many sizes that catch up at 0.6 of their profiled capacity, and at no more than
    60,000/s.

    They strike at the end of the interval; who is not back after 360 s is left there.
    """
    rng = np.random.default_rng(seed)
    profiled = np.exp(rng.uniform(np.log(5_000), np.log(100_000), n))
    able = 1 / (1 / (RATIO * profiled) + 1 / LIMIT)
    rate, interval = able * rng.uniform(0.3, 0.95, n), rng.choice([10.0, 30.0, 60.0], n)
    run = Values(
        OUTAGE + 0.5 * rng.standard_t(3, n), able * np.exp(SPREAD * rng.standard_normal(n)), 1.0, 0.0
    )
    took = recovery(run, interval, rate, window)
    return Profiled(Points("mine", interval, rate, np.minimum(took, CAP)), profiled, took <= CAP)


@pytest.fixture(scope="module")
def fitted():
    return fits(measured(40), (None, 30.0), draws=300)[0]


def test_known_values_are_found_again(fitted):
    """Within twice their 90 % intervals (3.3 standard deviations); the windows are told, too."""
    truth = {"catch_up_ratio": RATIO, "catch_up_limit": LIMIT, "outage": OUTAGE}
    for name, value in truth.items():
        low, high = np.quantile(parameters(fitted.prior, fitted.v)[name], [0.05, 0.95])
        assert low - (high - low) / 2 <= value <= high + (high - low) / 2, name
    assert np.median(fitted.prior.ratio(fitted.v)) == pytest.approx(RATIO, rel=0.2)
    assert fitted.prior.window == 30.0


def test_intervals_of_unseen_runs_hold_nine_in_ten(fitted):
    """Of 100 others, of other sizes; three standard deviations of the share are 9 %. Estimates of those
    that end within the cap are off by a tenth in the median: 5 % of the capacity at loads up to 0.95 are
    far more there.
    """
    others = measured(100, seed=2)
    middle, low, high = predicted(fitted, others)
    took = np.where(others.ended, others.points.recovery, np.inf)
    inside = np.where(others.ended, (low <= took) & (took <= high), high > CAP)
    assert 0.81 <= inside.mean() <= 0.99
    ended = others.ended & np.isfinite(middle)
    assert np.median(np.abs(middle[ended] / took[ended] - 1)) < 0.1


@pytest.mark.parametrize("window", [None, 30.0])
def test_who_was_left_counts_as_being_late(window):
    """Its likelihood is the share of runs that take longer, outliers aside: quantiles of the capacity, one
    by one.
    """
    prior = Prior(greatest=20_000.0, recovery=100.0, window=window)
    v = np.array([[0.3, 1.0, -0.5, 1.0, 0.0, -9.0]])
    assert v.shape == (1, DIMENSIONS)
    profiled = np.array([12_000.0])
    values, spread = prior.values(v[0], 12_000.0), prior.spread(v[0])
    runs = values._replace(
        capacity=values.capacity * np.exp(spread * ndtri((np.arange(20_000) + 0.5) / 20_000))
    )
    for part in (0.7, 0.8, 0.9):
        rate = part * float(values.capacity)
        cap = np.array([float(np.median(recovery(runs, 60.0, rate, window))) * 1.1])
        left = Profiled(Points("", np.array([60.0]), np.array([rate]), cap), profiled, np.zeros(1, bool))
        likely = np.exp(catch_up._log_of_open(prior, left, v[:, None], spread[None, None]))
        wanted = (recovery(runs, 60.0, rate, window) > cap).mean()
        assert 0.05 < wanted < 0.95
        assert (float(likely[0, 0]) - 0.025) / 0.95 == pytest.approx(wanted, abs=0.001)


def test_a_run_that_was_left_speaks_against_much_capacity():
    """Beside one that ended, one of a job of 1000/s that was left after 360 s at 500/s: where it catches up
    at 250/s it is sure to be late, at 4000/s it is an outlier, as one run in twenty is, and half of these
    are late.
    """
    points = Points("", np.array([10.0, 10.0]), np.array([100.0, 500.0]), np.array([40.0, 360.0]))
    both = Profiled(points, np.array([1000.0, 1000.0]), np.array([True, False]))
    prior = Prior(greatest=1000.0, recovery=40.0, window=None)
    v = np.array([[0.3, 1.0, ratio, 8.0, -5.0, 0.0] for ratio in (-2.0, 2.0)])
    ended, left = both.only(both.ended), both.only(~both.ended)
    alone = catch_up._log_likelihood(prior, ended, ended.only(~ended.ended), v)
    assert catch_up._log_likelihood(prior, ended, left, v) - alone == pytest.approx(np.log([0.975, 0.025]))


def caught_up(restart: str, *more: dict[str, Any]) -> float:
    """Catch-up of a job of 1000/s that 800/s come for, struck 5 s after a snapshot and noticed after 25 s."""
    window = {"length": "60 s", "trigger": "marker"}
    job = {"bolt": "windowed_count", "from": {"log": "shuffle"}, "service": "1 ms", "window": window}
    crash = {"kind": "crash_task", "component": "job", "at": "105 s", "detection": "25 s", "restart": restart}
    log = {"spout": "keys", "keys": 1, "rate": "800/s", "offset": "0 s", "hosts": [0]}
    result = run(
        {
            "topology": {"log": log, "job": job | {"hosts": [1]}},
            "hosts": 2,
            "strategy": {"kind": "aligned_snapshots", "checkpoint_interval": "10 s"},
            "failures": [crash, *more],
            "run": {"duration": "400 s", "warmup": "10 s", "seed": 1},
        }
    )
    return float(result.to_dict()["recoveries"][0]["catch_up_s"])


def test_a_warm_up_is_a_longer_restart():
    """A host that does half of what it can for the first 20 s is as one that comes back 20 (1 - 1/2) s
    later; so is it by the law.
    """
    cold = {"kind": "slow_host", "host": 1, "at": "135 s", "duration": "20 s", "factor": 0.5}
    law = float(recovery(Values(40.0, 1000.0, 0.5, 0.0), 10.0, 800.0, None))
    assert law == pytest.approx(40 + 45 * 800 / 200)
    assert caught_up("5 s", cold) == pytest.approx(law, abs=0.02)
    assert caught_up("15 s") == pytest.approx(law, abs=0.02)
    assert caught_up("5 s") == pytest.approx(30 + 35 * 800 / 200, abs=0.02)


def rows_of(n: int) -> list[str]:
    """Saturated runs of 1000/s a core, and as many with recoveries as the law has them of 1200/s a core."""
    rng = np.random.default_rng(3)
    cores, off, loads = rng.integers(1, 9, n) * 2, rng.normal(0, 0.05, n), rng.uniform(0.3, 0.9, n)
    rows = [",".join(("workload", *NUMBERS[:-1], *RECOVERIES, "saturated"))]
    rows += [f"mine,{c},1,2048,1,{1000 * c * np.exp(x):.0f},,,,1" for c, x in zip(cores, off, strict=True)]
    for c, part in zip(cores, loads, strict=True):
        took = recovery(Values(20.0, 1200.0 * c, 1.0, 0.0), 30.0, 1000 * c * part, None)
        rows.append(f"mine,{c},1,2048,1,{1000 * c * part:.0f},30,{took:.1f},0,0")
    return rows


def test_the_command_answers_what_a_row_without_recovery_asks(tmp_path, tideover, monkeypatch):
    """20,000/s on 20 cores, which carry 24,000/s: 20 + 50 x 20 / (24 - 20) = 270 s; saturated they carry no
    more than what comes. The profile's settings are those of the row.
    """
    monkeypatch.setattr(catch_up.fits, "__defaults__", (1, 100))
    path, out = tmp_path / "a.csv", tmp_path / "out"
    path.write_text("\n".join([*rows_of(16), "mine,20,1,2048,1,20000,30,,,0"]) + "\n")
    code, told, err = tideover("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0, err
    (asked,) = [row for row in json.loads(told)["catch_up"] if not row["ended"]]
    assert asked["cores"] == 20
    assert asked["profiled_per_s"] == pytest.approx(20_000, rel=0.05)
    assert asked["predicted_s"] == pytest.approx(270, rel=0.25)
    assert asked["low_s"] < 270 < asked["high_s"]
    for table in ("catch_up", "fit_parameters", "errors"):
        known = {column.name for column in CAPACITY_FITS[table]}
        assert {name for row in json.loads(told)[table] for name in row} <= known
    page = (out / "report.html").read_text()
    assert "after a failure a small job catches up at" in page
    assert "What you asked for" in page
    settings = [f"profile={out / 'mine.yaml'}", "rate=20000/s", "checkpoint_interval=30 s"]
    result = load("flink-recovery", settings)
    assert result.topology["job"].service.mean_ns == pytest.approx(1e9 / 24_000, rel=0.1)
    other = load("flink-recovery", [*settings, "conditions.cores=24"])
    told = list(_other_conditions(other, read(out / "mine.yaml")))
    assert told == ["profile mine: cores is 24, but measured was 20: the profile may not hold"]


def test_one_size_tells_no_limit_and_leaves_none_out(tmp_path, monkeypatch):
    """Recoveries of jobs of 8 cores: the limit is open, and no settings could be predicted by others."""
    monkeypatch.setattr(catch_up.fits, "__defaults__", (1, 100))
    path = tmp_path / "a.csv"
    header, *rows = rows_of(60)
    path.write_text("\n".join([header, *rows[:60], *(row for row in rows[60:] if row.startswith("mine,8,"))]))
    measured = capacities.read(path)
    found = catch_up.fit(measured)
    frames = catch_up.added(capacities.frames(measured), found)
    known = frames["fit_parameters"].set_index("parameter")["identified"]
    assert not known["catch_up_limit"]
    assert "leave_third_out" not in set(frames["errors"]["kind"])
    assert "with more settings, some could be left out" in catch_up_verdict(
        frames["fit_parameters"], frames["errors"]
    )
    assert catch_up.as_profile("mine", found["mine"], measured, 1)["errors"] == {}


BROKEN = [
    (",30,", ",,", r"a.csv:18: checkpoint_interval_s: is missing; a recovery depends on it"),
    (",30,", ",-1,", r"a.csv:18: checkpoint_interval_s: must be a number above 0, not '-1'"),
    (",0,0", ",2,0", r"a.csv:18: censored: must be from 0 to 1, not '2'"),
]


def test_a_misspelt_column_is_not_passed_over(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows_of(8)).replace("recovery_s", "recvery_s", 1) + "\n")
    with pytest.raises(ScenarioError, match=r"a.csv:1: recvery_s: unknown column; did you mean 'recovery_s'"):
        capacities.read(path)


@pytest.mark.parametrize(("old", "new", "says"), BROKEN)
def test_broken_recoveries(tmp_path, old, new, says):
    path = tmp_path / "a.csv"
    rows = rows_of(16)
    rows[17] = rows[17].replace(old, new, 1)
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(ScenarioError, match=says):
        capacities.read(path)


@pytest.mark.long
@pytest.mark.skipif(not PUBLISHED.exists(), reason="the measurements are not here")
def test_recoveries_of_demeter_are_predicted():
    """Settings that a fit has not seen: nearer than the fluid law with the profiled capacity, 80 % and more
    of the recoveries in their intervals.
    """
    for found in catch_up.fit(capacities.read(PUBLISHED)).values():
        mine, plain = (errors.mean() for errors in found.held_out.errors)
        assert mine < 0.75 * plain
        assert 0.8 <= found.held_out.coverage <= 0.97
