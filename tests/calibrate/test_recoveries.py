"""Fits to somebody else's recoveries: the law is the simulator's, and known values are found again."""

import itertools
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import tideover
from tideover.calibrate import recoveries
from tideover.calibrate.recoveries import posterior
from tideover.calibrate.recoveries.measurements import COLUMNS, Points, Setting, read
from tideover.calibrate.recoveries.posterior import Posterior, Prior, _log_likelihood, fit
from tideover.calibrate.recoveries.recovery_time import Values, catch_up, fit_fluid, recovery, shown
from tideover.reports.columns import RECOVERY_FITS
from tideover.scenarios import profiles

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "published" / "khaos_flink_recovery_calibration.csv"
TRUTH = Values(outage=40.0, capacity=5000.0, fraction=0.8, snapshot=0.1)
GRID = tuple(itertools.product((30.0, 90.0), (600.0, 1800.0, 2700.0, 3300.0, 3700.0)))


def measured(folder: Path, window: float | None, truth: Values = TRUTH, first: int = len(GRID)) -> Path:
    """A file of recoveries as the law has them, catch-up off by 3 % and outages by half a second."""
    rng = np.random.default_rng(3)
    found = [",".join(COLUMNS)]
    for interval, rate in GRID:
        run = truth._replace(outage=truth.outage + 0.5 * rng.standard_normal())
        after = catch_up(run, interval, rate) * np.exp(0.03 * rng.standard_normal())
        found.append(f"mine,{interval:g},{rate:g},{float(run.outage + shown(after, window)):.1f}")
    path = folder / f"{window}.csv"
    path.write_text("\n".join(found[: 1 + first]) + "\n")
    return path


@pytest.fixture(scope="module", params=[30.0, pytest.param(None, marks=pytest.mark.long)])
def window(request):
    """Through which the end was seen; the windows are the harder ones to fit."""
    return request.param


@pytest.fixture(scope="module")
def fitted(window, tmp_path_factory):
    return recoveries.fit(read(measured(tmp_path_factory.mktemp("recoveries"), window)))


# -- the law -------------------------------------------------------------------------------------------------


def cases() -> list[dict[str, float]]:
    rng = np.random.default_rng(11)
    return [
        {
            "outage": rng.uniform(5, 80),
            "load": rng.uniform(0.3, 0.93),
            "fraction": rng.uniform(0.05, 1),
            "interval": float(rng.choice([10, 30, 60, 120])),
            "snapshot": float(rng.choice([0, 0.2])),
        }
        for _ in range(12)
    ]


WINDOWS = pytest.mark.parametrize("window", [None, 30.0])


@pytest.mark.parametrize("case", cases())
@WINDOWS
def test_the_law_is_what_the_simulator_does(case, window):
    """``flink-recovery`` at a capacity of 1000/s: within 2 % of the law, stalls by snapshots included.

    Through a window both are whole numbers of windows after the restart, so they are equal unless the
    catch-up ends within 2 % of a boundary.
    """
    rate = 1000 * case["load"]
    values = Values(case["outage"], 1000.0, case["fraction"], case["snapshot"])
    after = float(catch_up(values, case["interval"], rate))
    ends = [float(shown(after * factor, window)) + case["outage"] for factor in (0.98, 1, 1.02)]
    settings = {
        "capacity": "1000/s",
        "rate": f"{rate:.3f}/s",
        "checkpoint_interval": f"{case['interval']} s",
        "detection": f"{case['outage']:.3f} s",
        "restart": "0 s",
        "in_interval": f"{case['fraction']:.4f}",
        "snapshot_time": f"{case['snapshot']} s",
        "upload_time": "0 s",
        "run.duration": f"{450 + 1.1 * ends[1]:.0f} s",  # it strikes by 270 s
    } | ({} if window is None else {"run.lag_window": f"{window} s"})
    result = tideover.run("flink-recovery", [f"{key}={value}" for key, value in settings.items()])
    (row,) = result.to_dict()["recoveries"]
    if window is None:
        assert row["catch_up_s"] == pytest.approx(ends[1], rel=0.02)
    else:
        assert any(row["catch_up_s"] == pytest.approx(end, abs=0.01) for end in ends)


def test_what_never_ends_is_infinite():
    """Snapshots of 1 s every 10 s leave 900/s of 1000/s."""
    values = Values(10.0, 1000.0, 0.5, 1.0)
    assert np.isfinite(recovery(values, 10.0, 899.0, 30.0))
    assert np.isinf(recovery(values, 10.0, 900.0, 30.0))
    assert np.isinf(recovery(values, 10.0, 950.0, None))
    assert np.isfinite(recovery(values, 120.0, 950.0, None))


# -- the fit -------------------------------------------------------------------------------------------------


@WINDOWS
@pytest.mark.parametrize("load", [0.4, 0.7, 0.85])
def test_the_likelihood_is_the_density_of_what_runs_show(window, load, monkeypatch):
    """Its integral up to any time is the share of simulated runs that end by then, outliers aside."""
    monkeypatch.setattr(posterior, "OUTLIERS", 0.0)
    prior = Prior(window, top_rate=1000.0, interval=30.0, recovery=200.0)
    v = np.array([0.5, -1.0, 0.2, 0.0, 0.0, -0.5])
    rate = load * float(prior.values(v).capacity)
    runs = Posterior(prior, np.tile(v, (20_000, 1)), 0.0).predictions(Setting(60.0, rate))
    times = np.arange(0.125, float(np.quantile(runs, 0.95)), 0.25)
    density = [
        np.exp(_log_likelihood(prior, Points("", *(np.array([x]) for x in (60.0, rate, time))), v[None]))
        for time in times
    ]
    wanted = np.searchsorted(np.sort(runs), times + 0.125) / len(runs)
    assert np.cumsum(density) * 0.25 == pytest.approx(wanted, abs=0.02)


@WINDOWS
def test_many_points_are_taken_a_few_draws_at_a_time(window, monkeypatch):
    """The likelihood of each draw is its own: in parts it is what it is at once."""
    interval, rate = np.array(GRID).T
    points = Points("mine", interval, rate, recovery(TRUTH, interval, rate, window))
    whole = fit(points, window, draws=50)
    monkeypatch.setattr(posterior, "_MOST_NUMBERS", 15 * 20 * len(points))
    assert posterior.at_a_time(points, window) < 50
    assert fit(points, window, draws=50).v == pytest.approx(whole.v, rel=1e-12)


def test_known_values_are_found_again(fitted, window):
    """The way in which the end was seen is told apart by itself; the draws reach around the truth."""
    found = fitted.fitted["mine"]
    assert found.posterior.prior.window == window
    for name in ("outage", "capacity", "fraction"):
        low, high = np.quantile(getattr(found.posterior.values, name), [0.005, 0.995])
        assert low <= getattr(TRUTH, name) <= high, name
    for name in ("outage", "capacity"):
        estimate = getattr(found.posterior.values, name)[found.point]
        assert estimate == pytest.approx(getattr(TRUTH, name), rel=0.1)


def test_points_that_were_left_out_are_predicted(fitted, window):
    """With the mechanism in the data, errors of unseen points are of the order of the noise.

    Through the window they are no more than a step, where the catch-up ends near a boundary; the plain fluid
    law, which knows of no window, is further off.
    """
    errors = fitted.frames["errors"].set_index(["model", "kind"])["mean_error"]
    assert errors["mechanism", "leave_one_out"] < (0.08 if window else 0.05)
    assert errors["mechanism", "fit"] < (0.04 if window else 0.03)
    if window:
        assert errors["mechanism", "leave_one_out"] < errors["fluid", "leave_one_out"]


def test_intervals_of_unseen_points_hold_what_was_measured(fitted):
    """At 90 % of 10 points, fewer than 7 in their intervals would come about once in a hundred times."""
    alone = fitted.fitted["mine"].held_out["leave_one_out"]
    assert len(alone.points) == 10
    assert round(alone.coverage * len(alone.points)) >= 7
    assert (alone.low < alone.mechanism).all()
    assert (alone.mechanism < alone.high).all()


def test_what_the_data_cannot_say_is_said(fitted):
    """Snapshots of 0.1 s every 30 s cost 0.3 % of the capacity, less than the scatter."""
    known = fitted.frames["fit_parameters"].set_index("parameter")["identified"]
    assert known["catch_up_capacity"]
    assert known["outage"]
    assert not known["snapshot"]


@pytest.mark.parametrize(("outage", "intervals"), [(0.3, (0.5, 2.0)), (600.0, (30.0, 90.0))])
def test_very_short_and_very_long_outages_are_found_again(outage, intervals):
    """Recoveries of a second, and of hours, off by 2 %: each is fitted to a tenth."""
    truth = Values(outage, 1000.0, 0.5, 0.0)
    interval, rate = (part.ravel() for part in np.meshgrid(intervals, (200.0, 400.0, 600.0, 800.0)))
    noise = np.exp(0.02 * np.random.default_rng(1).standard_normal(len(rate)))
    points = Points("mine", interval, rate, noise * recovery(truth, interval, rate, None))
    found = fit(points, None)
    low, high = np.quantile(np.asarray(found.values.outage), [0.005, 0.995])
    assert low <= outage <= high
    for place, load, seen in zip(interval, rate, points.recovery, strict=True):
        assert found.estimate(Setting(place, load)) == pytest.approx(seen, rel=0.1)


@pytest.mark.parametrize(("fraction", "low", "high"), [(1.0, 0.6, 1.0), (0.5, 0.0, 0.1)])
def test_failures_at_the_end_of_the_interval_are_told_from_earlier_ones(fraction, low, high, tmp_path):
    """Half of the prior is on the very end: more than that if failures struck there, else next to nothing."""
    path = measured(tmp_path, None, TRUTH._replace(fraction=fraction))
    found = fit(read(path).workloads["mine"], None)
    assert low <= np.mean(np.asarray(found.values.fraction) == 1) <= high


def test_tables_have_the_columns_that_are_documented(fitted):
    frames = fitted.frames
    for name, columns in RECOVERY_FITS.items():
        wanted = [column.name for column in columns if column.name == "better" or not column.optional]
        assert list(frames[name].columns) == wanted
        assert len(frames[name])
    assert len(frames["points"]) == len(GRID)


def test_the_same_seed_gives_the_same_draws(tmp_path):
    points = read(measured(tmp_path, 30.0)).workloads["mine"]
    first, second, other = (fit(points, 30.0, draws=200, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.v, second.v)
    assert first.evidence == second.evidence
    assert not np.array_equal(first.v, other.v)


def test_the_plain_law_finds_its_own_values_again():
    interval, rate = np.array(GRID).T
    truth = Values(40.0, 5000.0, 0.8, 0.0)
    points = Points("mine", interval, rate, recovery(truth, interval, rate, None))
    assert fit_fluid(points) == pytest.approx(truth, rel=0.001)


# -- from the profile to predictions -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("window", [None], indirect=True)
def test_a_profile_predicts_unseen_rates_and_intervals(fitted, tmp_path):
    """Between and beyond the measured intervals, the truth lies in the interval of prediction."""
    path = tmp_path / "mine.yaml"
    path.write_text(fitted.profiles["mine"])
    law = fitted.fitted["mine"].posterior
    profile = profiles.read(path)
    assert profile.intervals["strategy.aligned_snapshots.snapshot_time"]["identified"] is False
    assert profile.provenance["measurements"] == len(GRID)
    assert profile.provenance["source"] == "None.csv"  # no folder of the machine that it was fitted on
    for interval, rate in ((60, 2200), (120, 3000), (20, 1000)):
        settings = [f"profile={path}", f"rate={rate}/s", f"checkpoint_interval={interval} s"]
        found = tideover.run("flink-recovery", settings).to_dict()
        inside = min(i for i, _ in GRID) <= interval <= max(i for i, _ in GRID)
        assert any("extrapolates" in text for text in found["warnings"]) is not inside
        predicted = found["prediction"]["catch_up_s"]
        truth = float(recovery(TRUTH, interval, rate, None))
        assert predicted["low"] <= truth <= predicted["high"]
        assert predicted["estimate"] == pytest.approx(truth, rel=0.05)
        assert predicted["estimate"] == pytest.approx(law.estimate(Setting(interval, rate)), rel=0.02)
        assert found["recoveries"][0]["catch_up_s"] == pytest.approx(truth, rel=0.05)
        assert found["scenario"]["profile"]["sha256"] == profile.sha256


def test_beyond_the_capacity_there_is_no_recovery(fitted, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(fitted.profiles["mine"])
    settings = [f"profile={path}", "rate=5500/s", "run.duration=900 s"]
    found = tideover.run("flink-recovery", settings).to_dict()
    assert found["recoveries"][0]["catch_up_s"] is None
    assert found["prediction"]["catch_up_s"]["estimate"] is None
    assert any("cannot keep up" in text for text in found["warnings"])
    assert any("its backlog is not gone at the end of the run" in text for text in found["warnings"])


# -- the command line ----------------------------------------------------------------------------------------


def _after(start: str, shown: str) -> str:
    """What follows in the line that begins so."""
    (line,) = (line for line in shown.splitlines() if line.startswith(start))
    return line.removeprefix(start)


@pytest.mark.long
def test_the_command_writes_profiles_tables_and_a_page(tideover, tmp_path):
    """Twice into the same directory, and then the run with what was written that it says to try."""
    path, out = measured(tmp_path, None, first=6), tmp_path / "my results"
    code, shown, err = tideover("calibrate", "--from", path, "--out", out)
    assert code == 0, err
    code, told, _ = tideover("calibrate", "--from", path, "--out", out, "--json")
    assert code == 0
    assert json.loads(told)["profiles"] == ["mine"]
    assert {"report.html", "mine.yaml", "points.parquet", "result.json"} <= {p.name for p in out.iterdir()}
    code, told, _ = tideover(*shlex.split(_after("Try: tideover ", shown)))
    assert code == 0
    assert "extrapolates" not in told
    assert "Predicted from the profile (90 % interval)" in told
    code, _, err = tideover("run", "wordcount", "--out", out)
    assert code == 2
    assert err.startswith(f"--out: {out}: holds what tideover calibrate --from wrote; name another directory")


# -- a published study ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published measurements are not here")
def test_a_published_study_is_predicted_better_than_by_the_fluid_law():
    """16 Flink recoveries of two workloads (Geldenhuys et al., 2022), each predicted without having seen it.

    It looks as if their lag was read from Kafka's records-lag-max, with its windows of 30 s. So the mechanism
    errs by less than half as much as the plain fluid law on one workload, and by two thirds on the other.
    """
    found = recoveries.fit(read(PUBLISHED))
    errors = found.frames["errors"].set_index(["workload", "model", "kind"])["mean_error"]
    for workload, most in (("iot", 0.15), ("ysb", 0.06)):
        for kind in ("leave_one_out", "leave_interval_out"):
            assert errors[workload, "mechanism", kind] < 0.8 * errors[workload, "fluid", kind]
        assert errors[workload, "mechanism", "leave_one_out"] < most
        assert errors[workload, "mechanism", "fit"] < 0.12
        assert found.fitted[workload].posterior.prior.window == 30
    assert found.fitted["iot"].window_gain > 10
