"""A time to recover in which something was lost stands nowhere alone."""

from __future__ import annotations

import json

import pytest
from matplotlib.text import Text

import tideover
from tideover.reports import checks, figures, hours, plans, rates, tables
from tideover.reports.conclusions import of_record, run_sentence
from tideover.reports.sweeps.page import recovery_times
from tideover.reports.sweeps.points import points, points_table
from tideover.scenarios.planning.search import judged
from tideover.scenarios.planning.spec import read

SCENARIO = {
    "topology": {
        "keys": {"spout": "keys", "keys": 10, "rate": "20/s", "offset": "0 s"},
        "count": {
            "bolt": "windowed_count",
            "from": {"keys": {"fields": ["key"]}},
            "service": "1 ms",
            "window": {"length": "10 s", "trigger": "tick"},
        },
    },
    "strategy": "none",
    "strategies": {"none": {}, "aligned_snapshots": {"checkpoint_interval": "5 s"}},
    "failures": [
        {"kind": "crash_task", "component": "count", "at": "42 s", "within": "0 s", "restart": "3 s"}
    ],
    "slo": ["recovery <= 20 s"],
    "run": {"duration": "80 s", "warmup": "10 s", "replications": 2},
}
"""A crash at 42 s, for 3 s: amnesia loses what comes until 45 s and the window from 40 s, which ends at 50 s
(and is out in the 10 ms that begin then).
"""


@pytest.fixture(scope="module")
def lossy():
    return tideover.run(SCENARIO)


def test_it_is_in_the_record_and_where_a_result_shows_itself(lossy):
    for recovery in json.loads(lossy.to_json())["recoveries"]:
        assert (recovery["ended"], recovery["roots_lost"]) == ("recovered with loss", 5 * 20)
    assert "8.01 s (recovered with loss)" in repr(lossy)
    assert lossy.headline()["ended"] == "recovered with loss"


def test_it_is_in_every_table_with_a_time_to_recover(lossy):
    rows = {row[0].strip(): row for row in tables.overview([lossy.to_dict()]).rows}
    assert rows["time to recover, s"][1] == "8.01 (loss)"
    assert rows["roots lost by it"][1] == "100"
    (judgement,) = tideover.check(SCENARIO).judgements
    assert checks.value(judgement) == "8.01 s (loss) (mean)"
    assert "2 of 2 recoveries have lost roots" in judgement.notes[0]
    assert tideover.check(SCENARIO).to_dict()["objectives"][0]["ended"] == "recovered with loss"


@pytest.mark.parametrize("draw", [figures.recovery, figures.recovery_stages, figures.waterfall])
def test_it_is_in_every_figure_with_a_time_to_recover(lossy, draw):
    figure = draw(lossy.recoveries).figure
    assert any("(loss)" in text.get_text() for text in figure.findobj(Text))


def test_it_is_in_the_verdict(lossy):
    assert "has lost roots for good in both recoveries" in run_sentence(of_record(lossy.to_dict()))
    found = tideover.compare(SCENARIO).verdict
    assert "none (amnesia) has lost roots for good in both recoveries" in found.text
    assert found.lossy == ("none",)
    table = tables.pairs_table(found.pairs, found.lossy)
    assert table.rows[0] == ("aligned snapshots − none (amnesia) (loss)",)


def test_it_is_in_what_is_said_of_hours():
    day = {"kind": "day", "peak": "20/s", "by_hour": [1] * 24}
    topology = SCENARIO["topology"] | {"keys": {"spout": "keys", "keys": 10, "arrivals": day}}
    found = tideover.hours(SCENARIO | {"topology": topology}, ["06:00", "18:00"])
    assert found.endings == [["recovered with loss"] * 2] * 2
    assert "(loss)" in hours.answer(found)
    assert [row[2].endswith("(loss)") for row in hours.hours_table(found).rows] == [True] * 3
    assert found.to_dict()["day"]["ended"] == "recovered with loss"
    assert set(found.frame["ended"]) == {"recovered with loss"}


def test_it_is_in_what_is_said_of_a_plan(lossy):
    plan = {"scenario": SCENARIO, "prices": {"store_per_gb": 1}, "objectives": ["recovery <= 20 s"]}
    spec = read(plan | {"choices": {"strategy.kind": ["none"]}})
    one = judged(spec.wanted, {}, spec.space.at({"strategy.kind": "none"}), lossy.runs, lossy.recoveries)
    assert plans._value(one.judgements[0]) == "8.01 s (loss)"


def test_it_is_in_what_is_said_of_a_sweep():
    asked = {"scenario": SCENARIO, "grid": {"strategy.kind": ["none", "aligned_snapshots"]}}
    found = tideover.sweep(asked, master=None)
    swept = points(found.points, found.summary, {"strategy.kind": ""})
    rows = {row[0]: row[1] for row in points_table(swept, range(2), "").rows}
    assert rows["none (amnesia)"] == "8.01 (loss)"
    assert not rows["aligned snapshots"].endswith("(loss)")
    (picture,) = recovery_times(swept)
    assert "In 1 of 2 points roots are lost for good" in picture.caption


def test_it_is_in_what_is_said_of_rare_failures():
    found = tideover.availability(SCENARIO, {"failures.0": "24 h"})
    assert [*found.to_dict()["ended"].values()] == ["recovered with loss"]
    table = rates.causes_table(found)
    assert table.rows[0][2].endswith("(loss)")
    assert tables.WITH_LOSS in table.notes
