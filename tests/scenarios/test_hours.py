"""A failure at hour after hour: what is said of each, of the day, of the worst."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tideover
from tests.models.test_day import CURVE, world
from tideover.reports import figures
from tideover.reports.hours import answer, hours_table
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import Scenario, load
from tideover.scenarios.part_builder import to_data

ROOT = Path(__file__).parents[2]
STEPS: dict[str, Any] = {"peak": "72/s", "by_hour": [*CURVE], "interpolation": "steps"}


def scenario(**run: Any) -> Scenario:
    """12 s down, and 1.5 s since the last checkpoint, at a capacity of 100/s; see tests/models/test_day."""
    return Scenario.of(world(STEPS, [{"at": "21.5 s"}], **{"duration": "90 s", "starts_at": "03:00"} | run))


def law(hour: int) -> float:
    """Catch-up: D + (D + 1.5) r / (C - r)."""
    rate = 72 * CURVE[hour] / 24
    return 12 + 13.5 * rate / (100 - rate)


def test_each_hour_is_a_run_with_its_load_and_the_day_their_weighted_mean():
    """At 4, 12 and 18 o'clock: the parts of the day that are nearest to each are 9, 7 and 8 hours."""
    found = tideover.hours(scenario(), ["18:00", "4:00", "12:00"])
    assert [each.time for each in found.every] == ["04:00", "12:00", "18:00"]
    assert [each.rate for each in found.every] == [pytest.approx(3.0 * CURVE[h]) for h in (4, 12, 18)]
    for each, one in zip(found.every, found.estimates("catch_up_s"), strict=True):
        assert one.mean == pytest.approx(law(int(each.hour)), rel=0.03)
        alone = tideover.run(scenario(starts_at=None, fails_at=each.time))
        assert each.result.to_dict()["recoveries"] == alone.to_dict()["recoveries"]
    assert found.weights.tolist() == pytest.approx([9 / 24, 7 / 24, 8 / 24])
    means = [one.mean for one in found.estimates("catch_up_s")]
    assert found.mean("catch_up_s").mean == pytest.approx(np.average(means, weights=[9, 7, 8]))
    assert (found.worst.time, found.best.time) == ("18:00", "04:00")
    assert answer(found).startswith("A failure at 18:00 takes ")


def test_the_greatest_backlog_is_what_comes_while_nobody_works():
    """What came in 12 s, and in the 1.5 s since the checkpoint; a tuple of it waits 13.5 s and longer."""
    found = tideover.hours(scenario(), ["18:00"])
    (backlog,), (latency,) = found.estimates("peak_backlog"), found.estimates("end_to_end_max_ms")
    assert backlog.mean == pytest.approx(72 * 13.5, rel=0.05)
    assert latency.mean == pytest.approx(13_500, rel=0.05)
    assert found.weights.tolist() == [1.0]


def test_of_hours_on_one_side_of_the_day_there_is_no_mean_of_the_day():
    """At 12 and 18 o'clock: of the night nothing is known, so both count alike, and the day is not named; at
    12 and 24 o'clock half of it is nearest to each.
    """
    found = tideover.hours(scenario(), ["12:00", "18:00"])
    means = [one.mean for one in found.estimates("catch_up_s")]
    assert found.mean("catch_up_s").mean == pytest.approx(np.mean(means))
    assert "day" not in found.to_dict()
    assert hours_table(found).rows[-1][0] == "mean of these hours"
    assert "in these hours" in answer(found)
    assert tideover.hours(scenario(), ["12:00", "0:00"]).of_the_day


def test_the_interval_of_the_day_is_that_of_its_replications():
    """Each replication's mean over the day, and the interval of those: hours have their luck in common."""
    found = tideover.hours(scenario(), ["6:00", "18:00"], ["run.replications=4", "failures.0.within=5 s"])
    days = found.values("catch_up_s").mean(axis=0)
    day = found.mean("catch_up_s")
    assert (day.n, day.mean, day.std) == (4, pytest.approx(days.mean()), pytest.approx(days.std(ddof=1)))


def test_an_hour_that_is_not_over_is_the_worst():
    """45 s are left: enough for 23 s at 4 o'clock and 37 s at 12, not for 47 s at 18."""
    found = tideover.hours(scenario(duration="66 s"), ["12:00", "18:00"])
    assert [one.undefined for one in found.estimates("time_to_recover_s")] == [0, 1]
    assert found.mean("time_to_recover_s").mean is None
    assert found.worst.time == "18:00"
    assert answer(found).startswith("A failure at 18:00 is not over at the end of 1 of 1 runs, one at 12:00 ")


def test_what_has_no_hours_is_refused():
    constant = load(scenario(starts_at=None), {"topology.log.arrivals": {"kind": "constant", "rate": "10/s"}})
    with pytest.raises(ScenarioError, match=r"run.fails_at: has no effect: the load follows the time of day"):
        tideover.hours(constant)
    with pytest.raises(ScenarioError, match=r"run.fails_at: needs a failure with at"):
        tideover.hours(scenario(), settings={"failures": []})
    with pytest.raises(ValueError, match="'25:00' is not a time of day"):
        tideover.hours(scenario(), ["25:00"])
    with pytest.raises(ValueError, match="no time of day is given"):
        tideover.hours(scenario(), [])


def written(folder: Path) -> Path:
    path = folder / "day.yaml"
    path.write_text(json.dumps(to_data(scenario(duration="66 s"))))
    return path


def test_the_command_prints_and_writes(tideover, tmp_path):
    """The same as Python, as a table, as JSON and as files; other orders and repetitions change nothing."""
    file = written(tmp_path)
    code, out, _ = tideover("hours", file, "--at", "18,4:00")
    assert code == 0
    assert "A failure at 18:00 is not over at the end of 1 of 1 runs, one at 04:00 " in out
    assert out.index("A failure at") < out.index("───")  # the answer comes before the table
    where = ("--at", "4,18", "--replications", "2", "--json", "--out", tmp_path / "out")
    code, out, err = tideover("hours", file, *where)
    record = json.loads(out)
    assert (code, record["worst"], record["best"], record["replications"]) == (0, "18:00", "04:00", 2)
    assert [each["time"] for each in record["hours"]] == ["04:00", "18:00"]
    assert record == json.loads((tmp_path / "out" / "result.json").read_text())
    table = pd.read_parquet(tmp_path / "out" / "recoveries.parquet")
    assert table["run.fails_at"].tolist() == [4, 4, 18, 18] == table["hour_of_day"].tolist()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Time to recover by hour of the day" in page
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--at", "25"), "--at: '25:00' is not a time of day; write a time of day, such as 18:00"),
        (("--at", "noon"), "--at: 'noon' is not a time of day"),
        (("--every", "5"), "--every: '5' has no unit"),
        (("--every", "10 s"), "--every: must be 1 min to 1 d, not 10 s"),
        (("--set", "topology.log.arrivals.peak=5"), "--set: topology.log.arrivals.peak: 5 has no unit"),
    ],
)
def test_what_the_command_refuses(tideover, given, said, tmp_path):
    code, out, err = tideover("hours", written(tmp_path), *given)
    assert (code, out) == (2, "")
    assert err.startswith(said)


def test_the_figure_has_a_mark_for_each_hour_over_the_load():
    points = pd.DataFrame(
        {
            "hour": [4.0, 12.0, 18.0],
            "mean": [10.0, 20.0, np.nan],
            "low": [8.0, 19.0, np.nan],
            "high": [12.0, 21.0, np.nan],
            "undefined": [0, 1, 3],
            "ended": ["2 recovered, 1 recovered with loss", "2 recovered, 1 not recovered", "not recovered"],
        }
    )
    load_of_day = pd.DataFrame({"hour": [0.0, 18.0, 24.0], "rate_per_s": [10.0, 50.0, 10.0]})
    ax = figures.by_hour(points, load_of_day, "time to recover (s)")
    (container,) = ax.containers
    marks, _, (bars,) = container
    assert marks.get_xydata().tolist() == [[4, 10], [12, 20]]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[8, 12], [19, 21]]
    dots, crosses = ax.lines[-2:]
    assert dots.get_xydata().tolist() == [[4, 10]]
    assert crosses.get_xydata().tolist() == [[12, 20], [18, 20]]
    behind = next(other for other in ax.figure.axes if other is not ax)
    assert behind.get_ylim()[1] >= 50
    assert (ax.get_xlim(), ax.get_zorder() > behind.get_zorder()) == ((0, 24), True)


def test_the_example_says_what_the_page_shows():
    """Two rows of the table in docs/day.md."""
    shown = (ROOT / "docs" / "day.md").read_text()
    found = tideover.hours(ROOT / "examples" / "shop.yaml", ["4:00", "18:00"])
    for each, one in zip(found.every, found.estimates("time_to_recover_s"), strict=True):
        (row,) = (line.split() for line in shown.splitlines() if line.startswith(each.time))
        assert row[1] == f"{each.rate:,.0f}"
        assert row[2] == f"{one.mean:.1f}"
        # 14 s in which nobody works, 15.3 s since the last snapshot, and what snapshots leave of 80,000/s.
        assert one.mean == pytest.approx(14 + 29.3 * each.rate / (79_600 - each.rate), rel=0.02)


def test_a_sweep_over_the_hour_says_the_same():
    times = ["04:00", "18:00"]
    swept = tideover.sweep(scenario(starts_at=None), {"run.fails_at": times}, master=None).recoveries
    assert swept["run.fails_at"].tolist() == [4, 18]
    found = tideover.hours(scenario(), times).estimates("time_to_recover_s")
    assert swept["time_to_recover_s"].tolist() == [one.mean for one in found]
