"""Heartbeats tell when a failure is noticed: they are columns, and no prediction lies below that."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from tideover.calibrate.recoveries import profile as profiles_of
from tideover.calibrate.recoveries.measurements import COLUMNS, SETTINGS, Measurements, Points, Setting, read
from tideover.calibrate.recoveries.posterior import DIMENSIONS, Fitted, HeldOut, Posterior, Prior, fit
from tideover.calibrate.recoveries.profile import frames, warned
from tideover.calibrate.recoveries.recovery_time import Values, fluid, recovery
from tideover.sim.units import S, parse_duration

TRUTH = Values(outage=8.0, capacity=1000.0, fraction=0.9, snapshot=0.0)
"""The outage after detection: the restart."""
LONG, SHORT = (10.0, 50.0), (1.0, 5.0)
"""Intervals and timeouts of heartbeats, s."""


def points(*heartbeats: tuple[float, float], noise: float = 0.02) -> Points:
    """Under each of the heartbeats, recoveries by the formula, after detections between two times."""
    rng = np.random.default_rng(4)
    rows = [(t, r, *h) for h in heartbeats for t in (10.0, 60.0) for r in (200.0, 400.0, 600.0, 800.0)]
    interval, rate, beat, timeout = np.array(rows).T
    outage = timeout - beat * rng.random(len(rows)) + TRUTH.outage
    seen = recovery(TRUTH._replace(outage=outage), interval, rate, None)
    seen = np.maximum(seen * np.exp(noise * rng.standard_normal(len(rows))), timeout - beat)
    return Points("mine", interval, rate, seen, beat=beat, timeout=timeout)


@pytest.mark.parametrize("window", [None, 30.0])
@pytest.mark.parametrize("scatter", [0.0, 0.3])
def test_no_prediction_lies_below_the_detection(window: float | None, scatter: float) -> None:
    """Whatever a draw of the prior says, and however runs scatter: 40 s with a timeout of 50 s and an
    interval of 10 s.
    """
    v = np.random.default_rng(1).standard_normal((4000, DIMENSIONS))
    found = Posterior(Prior.of(points(LONG), window), v, 0.0, scatter)
    for interval, rate in ((1.0, 1.0), (10.0, 300.0), (60.0, 800.0)):
        place = Setting(interval, rate, *LONG)
        assert found.predictions(place).min() >= 40
        assert found.estimate(place) >= found.interval(place)[0] >= 40


def test_a_few_short_outages_do_not_decide_an_estimate() -> None:
    """Outages of 50 s that differ by 12 s or so, three degrees of freedom, and next to nothing to catch up
    with: one run in a hundred would be over before it began. If such runs counted as next to nothing each
    would weigh a hundred times as much as another; the estimate stays near what most runs take.
    """
    prior = Prior(None, top_rate=1000.0, interval=10.0, recovery=60.0)
    where = np.log(50 / prior.shortest) / np.log(prior.longest / prior.shortest)
    v = np.array([ndtri(where), 3.0, -3.0, -3.0, -3.0, np.log(12 / (0.02 * prior.recovery))])
    found = Posterior(prior, np.tile(v, (3000, 1)), 0.0)
    runs = found.predictions(Setting(10.0, 1.0))
    assert float(prior.values(v).outage) == pytest.approx(50)
    assert (runs > 0).all()
    assert np.mean(runs < 10) > 0.005
    assert found.estimate(Setting(10.0, 1.0)) == pytest.approx(np.median(runs), rel=0.15)


def test_rows_may_differ_in_their_heartbeats() -> None:
    """Half of the jobs had 50 s of silence to wait for, half 5 s: one restart is found for both, and each is
    predicted with its own.
    """
    mine = points(LONG, SHORT)
    found = fit(mine, None, draws=500)
    low, high = np.quantile(np.asarray(found.values.outage), [0.005, 0.995])
    assert low <= TRUTH.outage <= high
    for beat, timeout in (LONG, SHORT):
        place = Setting(60.0, 500.0, beat, timeout)
        wanted = recovery(TRUTH._replace(outage=TRUTH.outage + place.detected), 60.0, 500.0, None)
        assert found.estimate(place) == pytest.approx(float(wanted), rel=0.1)
    assert mine.heartbeats == LONG  # as frequent as the others, and longer


def test_the_plain_law_knows_of_them_too() -> None:
    """Its outage is the rest, after the mean detection: 45 s or 4.5 s."""
    mine = points(LONG, SHORT, noise=0.0)
    wanted = recovery(TRUTH._replace(outage=8 + np.repeat([45.0, 4.5], 8)), mine.interval, mine.rate, None)
    assert fluid(TRUTH, mine) == pytest.approx(wanted)


def test_a_profile_has_the_restart_by_itself() -> None:
    """Detections of its draws lie evenly from 40 to 50 s, and a detector is given the restart alone."""
    mine = points(LONG)
    v = np.random.default_rng(2).standard_normal((400, DIMENSIONS))
    found = Fitted(mine, Posterior(Prior.of(mine, None), v, 0.0), TRUTH, {}, 0.0)
    written = profiles_of.as_profile("mine", found, Measurements("a.csv", "", {}), seed=1)
    keys = written["draws"]["keys"]
    detections, restarts, launches = (
        [parse_duration(row[keys.index(key)]) / S for row in written["draws"]["rows"]]
        for key in (profiles_of.OUTAGE, profiles_of.RESTART, profiles_of.LAUNCH)
    )
    assert np.quantile(detections, [0, 0.5, 1]) == pytest.approx([40, 45, 50], abs=0.2)
    assert restarts == launches
    assert min(restarts) >= 0
    crash = written["values"]["failures"]["crash_task"]
    assert crash["detection"] == "45 s"
    assert crash["restart"] == written["values"]["detector"]["heartbeats"]["launch"] != "0 s"


# -- parallelism ---------------------------------------------------------------------------------------------


def test_tasks_share_the_rate(tmp_path: Path) -> None:
    """4 tasks at 400/s are as 8 at 800/s. Most rows have 8, so rates and the capacity are as of these; tables
    show what was measured.
    """
    path = tmp_path / "mine.csv"
    rows = ["30,400,100,4", "30,800,101,8", "60,400,90,8", "60,600,95,8", "60,700,99,8"]
    head = ",".join((*COLUMNS, "parallelism"))
    path.write_text("\n".join((head, *(f"mine,{row}" for row in rows))) + "\n")
    mine = read(path).workloads["mine"]
    assert mine.usual_tasks == 8
    assert mine.rate.tolist() == [800, 800, 400, 600, 700]
    assert mine.measured_rate.tolist() == [400, 800, 400, 600, 700]
    nothing = HeldOut(mine, mine.recovery, mine.recovery, mine.recovery, mine.recovery)
    posterior = Posterior(Prior.of(mine, None), np.zeros((3, DIMENSIONS)), 0.0)
    found = frames({"mine": Fitted(mine, posterior, TRUTH, {"leave_one_out": nothing}, 0.0)})
    assert found["points"]["rate_per_s"].tolist() == [400, 800, 400, 600, 700]
    assert found["points"]["parallelism"].tolist() == [4, 8, 8, 8, 8]
    assert "with 8 tasks" in found["fit_parameters"].set_index("parameter").loc["capacity", "meaning"]


# -- which model is nearer -----------------------------------------------------------------------------------


def judged(mine: float, plain: float, apart: float = 0.0) -> HeldOut:
    """Predictions that are off by these, relative; every other one by ``apart`` more, or less."""
    seen = points(LONG)
    sign = apart * (-1) ** np.arange(len(seen))
    errors = (1 + mine + sign, 1 + plain - sign)
    one, other = (seen.recovery * error for error in errors)
    return HeldOut(seen, one, one, one, other)


@pytest.mark.parametrize(
    ("mine", "plain", "apart", "better"),
    [
        (0.1, 0.2, 0.0, "mechanism"),
        (0.2, 0.1, 0.01, "fluid"),
        (0.2, 0.19, 0.08, ""),
        (np.inf, 0.1, 0, "fluid"),
    ],
)
def test_the_nearer_model_is_named_if_it_is_beyond_chance(
    mine: float, plain: float, apart: float, better: str
) -> None:
    """The mean difference of the errors beside its standard error: 0.01 beside 0.16 / sqrt(7), with 8 points
    that differ by 0.16 to either side, says nothing. What never ends is off by ten times at most.
    """
    assert judged(mine, plain, apart).better == better


def test_where_the_law_is_nearer_the_user_is_told() -> None:
    """With settings that run it: 45 s of detection and its outage of 8 s."""
    mine = points(LONG)
    posterior = Posterior(Prior.of(mine, None), np.zeros((3, DIMENSIONS)), 0.0)
    found = Fitted(mine, posterior, TRUTH, {"leave_one_out": judged(0.2, 0.05)}, 0.0)
    (text,) = warned("mine", found)
    assert "errs by 5 % in the mean and the mechanism by 20 %, so the law is the better one here" in text
    assert "--set detection=53s --set restart=0s --set capacity=1000/s --set in_interval=0.9" in text
    apart = dataclasses.replace(found, held_out=found.held_out | {"leave_setting_out": judged(0.05, 0.2)})
    assert not [*warned("mine", apart)]  # repetitions are left out together


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "line", "column", "says"),
    [
        (["10,50,", ",,"], 3, "heartbeat_interval_s", "is given in some rows of a workload only"),
        (["10,,"] * 2, 2, "heartbeat_timeout_s", "is missing; an interval and a timeout go together"),
        (["60,50,"] * 2, 2, "heartbeat_interval_s", "must be at most heartbeat_timeout_s, 50 s"),
        (["10,120,"] * 2, 2, "recovery_s", "78.1 s is before a failure can be noticed, 110 s after it"),
        (["10,-5,"] * 2, 2, "heartbeat_timeout_s", "must be a number above 0, not '-5'"),
        (["10,50,-1"] * 2, 2, "parallelism", "must be a number above 0"),
    ],
)
def test_broken_settings(rows: list[str], line: int, column: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    measured = ("30,600,78.1", "30,900,82", "30,1800,102.3", "90,600,87.4", "90,1800,140.2")
    more = [rows[0], *rows[1:], *([rows[0]] * 3)]
    lines = [f"mine,{one},{setting}" for one, setting in zip(measured, more, strict=True)]
    path.write_text("\n".join((",".join((*COLUMNS, *SETTINGS)), *lines)) + "\n")
    with pytest.raises(ValueError, match="mine") as caught:
        read(path)
    assert f"{path}:{line}: {column}: {says}" in str(caught.value)
