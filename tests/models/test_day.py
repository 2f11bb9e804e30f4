"""A load that follows the time of day: how much comes, when, and at which hour a run and its failure are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.loaded import log_and_job, markers
from tests.models.test_exactness import QUICK
from tests.models.traced import trace_of
from tideover.models.coarsening import coarsened
from tideover.models.config import Scenario, begins_at, busiest, first_failure, rate_at, timed
from tideover.models.effort import effort
from tideover.models.job.arrivals import HOURS, Day
from tideover.models.simulation import simulate
from tideover.scenarios.loader import load
from tideover.sim.draws import Draws, Purpose
from tideover.sim.units import DAY, HOUR, MINUTE, S, format_time_of_day, parse_time_of_day

CURVE = (3, 2, 2, 2, 3, 4, 6, 10, 14, 16, 17, 18, 18, 17, 17, 18, 20, 23, 24, 22, 18, 12, 8, 5)
PEAK_24 = {"peak": "24/s", "by_hour": [*CURVE]}
HOLD: dict[str, Any] = {"detection": "10 s", "restart": "2 s", "while_down": "hold"}
days = st.builds(
    Day,
    by_hour=st.lists(st.integers(0, 9), min_size=HOURS, max_size=HOURS).filter(any).map(tuple),
    peak=st.sampled_from((0.05, 0.2)),
    interpolation=st.sampled_from(("linear", "steps")),
    growth=st.sampled_from((0.0, 0.05)),
    months=st.sampled_from((0, 7.5)),
)


def phase(seed: int, replication: int = 0) -> float:
    """The part of a call that the first one is early by, as every schedule has it."""
    bits = Draws(seed, replication).bits("log.0", Purpose.OFFSET, np.zeros(1, np.int64))
    return float(bits[0] >> np.uint64(11)) * 2.0**-53


def world(arrivals: dict[str, Any], failures: list[dict[str, Any]] = [], **run: Any) -> Scenario:  # noqa: B006
    """log ──▶ job, of a capacity of 100/s; windows of 5 s, ended by markers."""
    log = {"arrivals": {"kind": "day", **arrivals}}
    rsm = {"kind": "rsm", "checkpoint_interval": "5 s", "spout_buffer": True}
    count = {"service": "10 ms", "window": markers(5)}
    held = [HOLD | one for one in failures]
    return log_and_job(log, count, held, rsm, **{"duration": "20 s", **run})


def like(scenario: Scenario, arrivals: Day, tasks: int = 1) -> Any:
    """The log with other arrivals."""
    return scenario.topology["log"].model_copy(update={"arrivals": arrivals, "parallelism": tasks})


def emissions(scenario: Scenario) -> list[int]:
    return sorted(time for *_, time in trace_of(scenario).emitted)


def test_who_comes_when_over_a_step_of_the_curve() -> None:
    """4/s until ten o'clock, and 2/s from then on; the run begins 2 s before. Call i is where 4 t comes to
    i + u, and from t = 2 s on where 8 + 2 (t - 2) does.
    """
    by_hour = [4.0] * 10 + [2.0] * 14
    curve = {"peak": "4/s", "by_hour": by_hour, "interpolation": "steps"}
    scenario = world(curve, starts_at="09:59:58", duration="5 s")
    u = Fraction(phase(1))
    counts = [i + u for i in range(14)]
    moments = [n / 4 if n < 8 else 2 + (n - 8) / 2 for n in counts]
    assert emissions(scenario) == [round(t * S) for t in moments if 0 < t <= 5]


def test_who_comes_when_on_a_slope() -> None:
    """From 0 at midnight, in a straight line, to 3,600/s at one o'clock: a second brings 1/s more. Calls come
    where t**2 / 2 is i + u; two hours earlier the same comes back.
    """
    by_hour = [0.0, 1.0, *[0.0] * 22]
    scenario = world({"peak": "3600/s", "by_hour": by_hour}, starts_at="00:00", duration="8 s")
    moments = np.sqrt(2 * (np.arange(40) + phase(1)))
    assert emissions(scenario) == np.rint(moments[(moments > 0) & (moments <= 8)] * S).astype(int).tolist()
    falling = world({"peak": "3600/s", "by_hour": by_hour}, starts_at="01:59:52", duration="20 s")
    end = 8 - np.sqrt(64 - 2 * (np.arange(32) + phase(1)))
    assert emissions(falling) == pytest.approx((end * S).tolist(), abs=2)


@settings(QUICK)
@given(days, st.integers(0, DAY - 1), st.integers(1, 2 * DAY))
def test_as_many_come_as_the_integral_says(day: Day, start: int, duration: int) -> None:
    """By the trapezoidal rule between the knots, where it is exact; counted, within the one of the phase."""
    placed = day.starting(start)
    whole = np.arange(0, 4 * HOURS) * HOUR
    inside = whole[(whole > start) & (whole < start + duration)]
    knots = np.concatenate(([start], inside, [start + duration])).astype(float)
    # A step's value is that of the moment after it: so the ends of each piece are looked at from inside.
    left, right = (np.array([day.rate_at(t) for t in ends]) for ends in (knots[:-1], knots[1:] - 1))
    integral = float(((left + right) / 2 * np.diff(knots)).sum()) / S
    assert placed.expected(duration) == pytest.approx(integral, rel=1e-6, abs=1e-6)
    calls = placed.next_calls("log.0", Draws(1), 0, 0, int(integral) + 10)
    assert np.count_nonzero(calls <= duration) == pytest.approx(integral, abs=1.001)


@settings(QUICK)
@given(days, st.integers(0, DAY - 1), st.integers(0, 3 * DAY))
def test_calls_do_not_depend_on_how_they_are_asked_for(day: Day, start: int, since: int) -> None:
    """All at once, or one after the other."""
    placed = day.starting(start)
    together = placed.next_calls("log.0", Draws(7), since, 0, 30).tolist()
    single: list[int] = []
    while len(single) < 30:
        single += placed.next_calls("log.0", Draws(7), single[-1] if single else since, 0, 1).tolist()
    assert single == together == sorted(set(together))


@settings(QUICK)
@given(days, st.integers(0, DAY - 1))
def test_every_day_brings_the_same(day: Day, start: int) -> None:
    assert day.starting(start).expected(3 * DAY) == pytest.approx(3 * day.expected(DAY))


def test_growth_is_compounded() -> None:
    """5 % a month are 79.6 % a year, in every hour."""
    then = Day(by_hour=CURVE, peak=100, growth=0.05, months=12)
    assert 1e9 / then.mean_gap_ns == pytest.approx(100 * 1.795856)
    assert then.rate_at(4 * HOUR) == pytest.approx(100 * 3 / 24 * 1.795856)


@pytest.mark.parametrize("arrivals", [{"peak": "600/s", "by_hour": [*CURVE]}, {"file": "load.csv"}])
def test_lumps_come_so_many_times_less_often(arrivals: dict[str, Any], tmp_path: Path) -> None:
    rows = "".join(f"{hour},{25 * rate}\n" for hour, rate in enumerate(CURVE))
    (tmp_path / "load.csv").write_text(f"hour,rate_per_s\n{rows}")
    if "file" in arrivals:
        arrivals = {"file": str(tmp_path / "load.csv")}
    scenario = world(arrivals, fails_at="17:30", failures=[{"at": "3 s"}])
    whole, lumps = rate_at(scenario, 17.5 * HOUR), rate_at(coarsened(scenario, 10), 17.5 * HOUR)
    assert (whole, lumps) == (pytest.approx(25 * 23.5), pytest.approx(25 * 23.5 / 10))
    emitted = simulate(world(arrivals, starts_at="17:30", lump=10)).ledger["emitted"]
    assert emitted == pytest.approx(20 * 25 * 23.5, rel=0.01)


@pytest.mark.parametrize(
    ("rows", "at", "rate"),
    [
        ("06:00,10\n18:00:00.5,70\n", "12:00", 39.99965),
        ("06:00,10\n18:00:00.5,70\n", "00:00", 40.00035),
        ("06:00,10\n", "23:00", 10),
    ],
)
def test_a_file_of_times_goes_on_over_midnight(rows: str, at: str, rate: float, tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text(f"time,rate_per_s\n{rows}")
    day = Day(file=str(tmp_path / "load.csv"))
    assert day.rate_at(parse_time_of_day(at)) == pytest.approx(rate, abs=1e-5)


@pytest.mark.parametrize(
    ("run", "ats", "begins"),
    [
        ({}, ["3 s"], "00:00"),
        ({"starts_at": "17:50"}, ["3 s"], "17:50"),
        ({"fails_at": "18:00"}, ["3 s"], "17:59:57"),
        ({"fails_at": "18:00"}, ["12 s", "3.5 s"], "17:59:56.5"),
        ({"fails_at": "0:00"}, ["3 s"], "23:59:57"),
        ({"fails_at": "peak"}, ["3 s"], "17:59:57"),
    ],
)
def test_when_a_run_begins(run: dict[str, str], ats: list[str], begins: str) -> None:
    scenario = world(PEAK_24, [{"at": at} for at in ats], **run)
    begin = begins_at(scenario, Draws(1))
    assert begin == parse_time_of_day(begins)
    once = timed(scenario, Draws(1))
    assert (once.run.starts_at, once.run.fails_at) == (begins, None)
    assert timed(once, Draws(1)) == once
    rows = simulate(scenario).recoveries
    assert [row["hour_of_day"] * 3600 for row in rows] == pytest.approx(
        [(begin / S + row["failed_at_s"]) % 86_400 for row in rows]
    )


def test_the_peak_is_that_of_all_spouts_together() -> None:
    """One is highest at 6 o'clock, at 30/s in each of two tasks; the other at 18, at 50/s."""
    early, late = ([1.0] * 24 for _ in range(2))
    early[6], late[18] = 3.0, 5.0
    found = {"log": (early, "30/s", 2), "other": (late, "50/s", 1)}
    scenario = world({"peak": "1/s", "by_hour": [*CURVE]})
    spouts = {
        name: like(scenario, Day(by_hour=tuple(curve), peak=peak), tasks)
        for name, (curve, peak, tasks) in found.items()
    }
    both = scenario.model_copy(update={"topology": scenario.topology | spouts})
    assert (busiest(both), rate_at(both, 6 * HOUR)) == (6 * HOUR, pytest.approx(2 * 30 + 10))
    without = both.model_copy(update={"topology": both.topology | {"log": spouts["other"]}})
    assert busiest(without) == 18 * HOUR


def test_a_plateau_counts_from_its_first_moment_and_a_step_up_to_its_last() -> None:
    flat = world({"peak": "5/s", "by_hour": [1.0] * 9 + [5.0] * 3 + [1.0] * 12, "interpolation": "steps"})
    assert busiest(flat) == 9 * HOUR
    rising = Day(by_hour=(0.0,) * 9 + (1.0,) + (9.0,) + (0.0,) * 13, peak=9)
    falling = Day(by_hour=(9.0,) * 10 + (0.0,) * 14, peak=9, interpolation="steps")
    spouts = {f"s{n}": like(flat, one) for n, one in enumerate((rising, falling))}
    assert busiest(flat.model_copy(update={"topology": spouts})) == 10 * HOUR - 1


def test_a_drawn_hour_is_uniform_and_the_same_under_every_strategy() -> None:
    """1,000 replications: no hour is far from its 41.7 (chi-square with 23 degrees of freedom: 49.7 in one of
    1,000 cases); another strategy, and other lengths of the run, change nothing.
    """
    scenario = world(PEAK_24, [{"at": "3 s"}], fails_at="drawn")
    moments = np.array([begins_at(scenario, Draws(5, n)) for n in range(1000)])
    fails = (moments + first_failure(scenario)) % DAY
    counts = np.bincount(fails // HOUR, minlength=24)
    assert ((counts - 1000 / 24) ** 2 / (1000 / 24)).sum() < 49.7
    renamed = scenario.model_copy(update={"name": "other"})
    other = load(renamed, {"strategy.kind": "source_replay", "run.duration": "30 s"})
    assert [begins_at(other, Draws(5, n)) for n in range(9)] == moments[:9].tolist()
    rows = [row for n in range(2) for row in simulate(scenario, n).recoveries]
    assert len({row["hour_of_day"] for row in rows}) == 2


def test_a_load_without_a_day_says_no_hour() -> None:
    scenario = world(PEAK_24, [{"at": "3 s"}])
    constant = load(scenario, {"topology.log.arrivals": {"kind": "constant", "rate": "20/s"}})
    assert "hour_of_day" not in simulate(constant).recoveries[0]
    assert begins_at(constant, Draws(1)) is None


def test_effort_is_that_of_the_hour() -> None:
    """200 s at 4 o'clock bring a ninth of those around 18; a drawn hour may be the peak."""
    times = ("4:00", "18:00", "peak", "drawn")
    worlds = (world(PEAK_24, [{"at": "3 s"}], duration="200 s", fails_at=when) for when in times)
    many = dict(zip(times, map(effort, worlds), strict=True))
    assert many["peak"] == many["drawn"] == many["18:00"]
    # A spout and a bolt, with the failure and without it.
    moved = [many["4:00"].moved, many["18:00"].moved]
    assert moved == pytest.approx([4 * 200 * 3, 4 * 200 * 24], rel=0.01)


@pytest.mark.parametrize("hour", [4, 12, 18])
def test_catching_up_takes_what_the_load_of_the_hour_says(hour: int) -> None:
    """Steps: the load of an hour is constant, r of a capacity C. What came while it was down for D, and in
    the 1.5 s since the last checkpoint, is done at C - r: D + (D + 1.5) r / (C - r), as with a constant rate.
    """
    down, capacity, rate = 12.0, 100.0, 72.0 * CURVE[hour] / 24
    steps = {"peak": "72/s", "by_hour": [*CURVE], "interpolation": "steps"}
    scenario = world(steps, [{"at": "21.5 s"}], fails_at=f"{hour}:20", duration="120 s")
    (row,) = simulate(scenario).recoveries
    assert row["catch_up_s"] == pytest.approx(down + (down + 1.5) * rate / (capacity - rate), rel=0.03)
    log = {"topology.log.arrivals": {"kind": "constant", "rate": f"{rate}/s"}, "run.fails_at": None}
    (constant,) = simulate(load(scenario, log)).recoveries
    assert row["time_to_recover_s"] == pytest.approx(constant["time_to_recover_s"], abs=0.5)


def test_a_failure_before_the_peak_is_caught_up_with_during_it() -> None:
    """Steps: 20/s, and 80/s from 18:00 on. What came in 12 s until 17:59:58, and in the 1.5 s since the last
    checkpoint, is done at 100 - 80 from 18:00 on; at 17:00 it is done at 100 - 20.
    """
    steps = {"peak": "80/s", "by_hour": [20.0] * 18 + [80.0] * 6, "interpolation": "steps"}
    left = 13.5 * 20 - 2 * 80
    for when, law in (("17:00", 12 + 13.5 * 20 / 80), ("17:59:46", 14 + left / 20)):
        (row,) = simulate(world(steps, [{"at": "21.5 s"}], fails_at=when, duration="90 s")).recoveries
        assert row["catch_up_s"] == pytest.approx(law, abs=0.3)


@pytest.mark.parametrize("time", [0, 64_800 * S, 64_801 * S, 5 * MINUTE + 1, DAY - 1])
def test_times_of_day_are_read_back(time: int) -> None:
    assert parse_time_of_day(format_time_of_day(time)) == time


@pytest.mark.parametrize(
    "text", ["", "24:00", "18", "18:60", "6 pm", "18:00:60", "-1:00", "12:00:00.0000000001"]
)
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of day; write a time of day, such as 18:00"):
        parse_time_of_day(text)
