"""Sweeps of any size fit a screen and a page, and swept numbers are numbers on the axes."""

import base64
import hashlib
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest

from tests.reports.made_up import points_of, shown
from tideover.reports import figures
from tideover.reports.html import render
from tideover.reports.sweeps.page import (
    costs,
    effects,
    main_effects,
    recovery,
    recovery_times,
    sweep_page,
    sweep_view,
)
from tideover.reports.sweeps.points import cells, effects_table, key_tables, layout, quantities, summary
from tideover.reports.tables import point_record

AT, RATE, KIND = "failures.0.at", "topology.sentences.rate", "strategy.kind"


def frames(grid, headline, replications=1, **columns):
    """A sweep over ``grid`` (key: values). ``headline`` and ``columns`` (of the runs): functions of a point's
    values and a replication, or constants.
    """
    combinations = list(itertools.product(*grid.values()))
    rows = [
        {"point": n, "replication": r, **dict(zip(grid, values, strict=True))}
        for n, values in enumerate(combinations)
        for r in range(replications)
    ]
    swept = pd.DataFrame(rows)
    head = {"scenario": "made up", "seed": 1, "strategy": swept.get(KIND, "rsm")}

    def of(value):
        return [value(row) if callable(value) else value for row in rows]

    usual = dict.fromkeys(("lost", "duplicated", "windows_wrong", "store_bytes"), 0)
    usual |= {"cpu_s": 1.0, "network_bytes": 1000, "peak_buffered_tuples": 5, "hosts": 3, "error": None}
    text = json.dumps({"name": "made up", "topology": {}, "run": {"duration": "1 min"}})
    runs = swept.assign(**head, scenario_json=text, **{k: of(v) for k, v in (usual | columns).items()})
    failure = {"kind": "lose_state", "component": "count", "failed_at_s": 10.0}
    recoveries = swept.assign(**head, **failure, time_to_recover_s=of(headline), catch_up_s=1.0)
    return recoveries, runs


def summarised(grid, headline, replications=1, **columns):
    return points_of(*frames(grid, headline, replications, **columns), list(grid))


def page_of(grid, headline, columns=(), **more):
    made = frames(grid, headline, **dict(columns))
    return render(sweep_page(points_of(*made, list(grid)), point_record(0, *made), **more))


def seconds(count):
    return [f"{10 + n} s" for n in range(count)]


def number_of(row, key=AT):
    return float(row[key].split()[0].split("/")[0])


# Swept values as numbers.


@pytest.mark.parametrize(
    ("values", "numbers", "unit"),
    [
        (["30 s", "1m30s", "200 ms"], [30.0, 90.0, 0.2], "s"),
        (["10/s", "600/min"], [10.0, 10.0], "1/s"),
        (["1 kB", "2 KiB"], [1000.0, 2048.0], "B"),
        (["1 kB/s"], [1000.0], "B/s"),
        ([1, 2.5], [1.0, 2.5], ""),
        (np.array([1, 2]), [1.0, 2.0], ""),
    ],
)
def test_quantities_are_numbers_in_one_unit(values, numbers, unit):
    found, named = quantities(list(values))
    assert (found.tolist(), named) == (numbers, unit)


@pytest.mark.parametrize("values", [["rsm", "none"], ["30 s", "10/s"], ["30 s", 3], [None, "1 s"], [True]])
def test_what_is_not_all_of_one_kind_is_a_name(values):
    assert quantities(values) is None


def test_columns_of_numbers_with_a_unit_read_as_texts_do():
    """A table may hold 30 s as the text or as the number 30.0 whose unit is known."""
    recoveries, runs = frames({AT: seconds(3)}, number_of)
    as_text = points_of(recoveries, runs, [AT]).keys[1]
    held = [
        frame.assign(**{AT: [number_of(row) for row in frame.to_dict("records")]})
        for frame in (recoveries, runs)
    ]
    as_number = points_of(*held, {AT: "s"}).keys[1]
    assert as_number.numbers.tolist() == as_text.numbers.tolist() == [10.0, 11.0, 12.0]
    assert as_number.labels == as_text.labels
    assert as_number.about == as_text.about == "at (s)"


# The terminal.


def test_few_points_are_listed_with_the_headline_first():
    """Two points, each with recoveries of 9, 10 and 11 s more than its moment: t(2) is 4.303, and the
    standard deviation 1, so the half-width is 4.303/√3 = 2.48.
    """
    grid = {AT: ["20 s", "30 s"]}
    found = summarised(grid, lambda row: number_of(row) + 9 + row["replication"], 3, duplicated=2)
    (table,) = key_tables(found)
    assert table.columns[:4] == ("strategy", "at", "time to recover, s", "roots lost")
    assert table.rows[0] == ("R+SM", "20 s", "30.0 ± 2.5", "0", "6", "0", "1.00 kB", "0/3")


def test_the_best_are_right_and_the_worst_are_wrong_or_never_recover():
    """Point n recovers in n s. Those of even number lose roots, number 1 does not recover: the best are 3, 5,
    7, …; the worst lose roots, the slowest of them first.
    """
    times = [0.0, np.nan, *map(float, range(2, 100))]
    lost = {"lost": lambda row: int(row["point"] % 2 == 0)}
    found = summarised({AT: seconds(100)}, lambda row: times[row["point"]], **lost)
    best, worst, _ = key_tables(found)
    slower = [f"{n}.0" for n in range(11, 23, 2)]
    assert [row[2] for row in best.rows] == ["3.00", "5.00", "7.00", "9.00", *slower]
    assert [row[2] for row in worst.rows] == [f"{n}.0" for n in range(98, 88, -2)]
    assert found.ranked[49] == 1  # the last of the fifty that are right
    assert summary(found) == (
        "Mean time to recover of a point: 0 s (at 10 s) to 99.0 s (at 109 s). In 1 point not every run "
        "recovers by its end. 50 points lose roots or count some twice. 100 points of the grid, 100 runs; "
        "none failed."
    )


def test_a_point_that_does_not_always_recover_is_behind_those_that_do():
    """Point 0 recovers in 1 s in one of two runs and not within the 50 s that are left in the other; point 1
    in 9 s in both.
    """
    times = {(0, 0): 1.0, (0, 1): np.nan, (1, 0): 9.0, (1, 1): 9.0}
    found = summarised({AT: seconds(2)}, lambda row: times[row["point"], row["replication"]], 2)
    assert found.headline.tolist() == [25.5, 9.0]
    assert found.late.tolist() == [True, False]
    assert found.ranked.tolist() == [1, 0]
    (table,) = key_tables(found)
    assert [row[2] for row in table.rows] == ["≥ 25.5 (1 of 2)", "9.00"]
    assert any("≥ … (n of m)" in note for note in table.notes)


def test_the_effect_of_a_key_is_the_mean_over_the_others():
    """With a time of (moment) + 100 (rate) the means over the other key are moment + 150 and 100 (rate) + 22,
    so their spans are 24 s and 100 s: the rate comes first.
    """
    grid = {AT: seconds(25), RATE: ["1/s", "2/s"]}
    found = summarised(grid, lambda row: number_of(row) + 100 * number_of(row, RATE))
    rows = effects_table(found).rows
    assert rows[0] == ("rate (means 100 s apart)",)
    assert rows[1] == ("1/s", "122", "25", "0", "0")
    assert rows[3] == ("at (means 24.0 s apart, 8 of 25 values)",)
    assert (rows[4], rows[-1]) == (("10 s", "160", "2", "0", "0"), ("34 s", "184", "2", "0", "0"))


@pytest.mark.parametrize("count", [25, 2_000])
def test_many_points_fit_a_screen_or_two(count):
    found = summarised({AT: seconds(count)}, number_of)
    text = shown(sweep_view(found, [f"remark {n}" for n in range(1000)], kept=True))
    assert len(text.splitlines()) < 100
    assert f"{count:,} points of the grid" in text
    assert "report.html" in text


# Figures.


def size_of(svg):
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()
    return float(height) / float(width)


GRIDS = [
    {AT: 1_000},
    pytest.param({KIND: 4, AT: 500}, marks=pytest.mark.long),
    pytest.param({AT: 100, RATE: 50}, marks=pytest.mark.long),
    {KIND: 4, AT: 20, RATE: 20, "failures.0.restart": 2},
    pytest.param({KIND: 4, "a.name": 9}, marks=pytest.mark.long),
    {"a.name": 300},
]


def values_of(key, count):
    if key == KIND:
        return ["rsm", "none", "source_replay", "micro_batch"][:count]
    if key == "a.name":
        return [f"n{n}" for n in range(count)]
    return [f"{n + 1}/s" for n in range(count)] if key == RATE else seconds(count)


@pytest.mark.parametrize("sizes", GRIDS, ids=str)
def test_no_figure_grows_with_the_values(sizes):
    """No figure is higher than 1.3 times its width, and none has a shape for each of thousands of cells."""
    grid = {key: values_of(key, count) for key, count in sizes.items()}
    found = summarised(grid, lambda row: float(row["point"]))
    for picture in (*recovery_times(found), *main_effects(found), *costs(found)):
        assert size_of(picture.svg) < 1.3
        assert len(picture.svg) < 400_000


def test_one_numeric_key_is_an_axis_with_a_line_each():
    """Means at 10, 11, 12 s are those moments, five times as long for the other strategy."""
    grid = {KIND: ["rsm", "none"], AT: ["12 s", "10 s", "11 s"]}
    found = summarised(grid, lambda row: number_of(row) * (5 if row[KIND] == "none" else 1), 2)
    (axes,) = recovery(found, layout(found))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("at (s)", "time to recover (s)")
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines if len(line.get_xdata())}
    assert lines == {
        "R+SM": [[10, 10], [11, 11], [12, 12]],
        "none (amnesia)": [[10, 50], [11, 55], [12, 60]],
    }


def test_what_never_recovers_is_drawn_as_what_it_takes_at_least():
    """The failure at 10 s, the end of the run at 60: at least 50 s; said on the page, too."""
    made = {AT: seconds(3)}, lambda row: np.nan if number_of(row) == 11 else 4.0
    found = summarised(*made)
    (axes,) = recovery(found, layout(found))
    line, triangles = axes.lines
    assert line.get_xydata().tolist() == [[10, 4], [11, 50], [12, 4]]
    assert (triangles.get_xydata().tolist(), triangles.get_marker()) == ([[11, 50]], "^")
    assert "A hollow triangle: at least so much. 1 of 3 points have runs" in page_of(*made)
    assert "(at 10 s) to at least 50.0 s (at 11 s). In 1 point not every run recovers" in summary(found)
    assert "hollow triangle" not in page_of({AT: seconds(3)}, 4.0)


def test_cells_that_do_not_recover_are_striped():
    """In a run that ends 50 s after the failure; the others take 5 s, and none is without a colour."""
    grid = {AT: ["20 s", "30 s"], RATE: ["1/s", "2/s"]}
    found = summarised(grid, lambda row: np.nan if number_of(row, RATE) == 2 else 5.0)
    (axes,) = recovery(found, layout(found))  # the rate, which matters, is across
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(0, 0): "5.00", (0, 1): "5.00", (1, 0): "≥ 50.0", (1, 1): "≥ 50.0"}
    striped = [(patch.get_x(), patch.get_y(), patch.get_width()) for patch in axes.patches]
    assert striped == [(0.5, -0.5, 1), (0.5, 0.5, 1)]


def test_a_mean_over_what_does_not_recover_says_so():
    """Of the rate 2/s half the points do not recover within 50 s: (5 + 50) / 2 at least, and 1 of 2."""
    grid = {AT: ["20 s", "30 s"], RATE: ["1/s", "2/s"]}
    found = summarised(grid, lambda row: np.nan if (row[AT], row[RATE]) == ("30 s", "2/s") else 5.0)
    rows = effects_table(found).rows
    assert ("2/s", "≥ 27.5", "2", "1", "0") in rows
    assert ("1/s", "5.00", "2", "0", "0") in rows
    drawn = effects(found, list(found.varying))
    assert drawn["late"].tolist().count(1) == 2
    marks = [line for axes in figures.main_effects(drawn) for line in axes.lines if line.get_marker() == "^"]
    assert [line.get_ydata().tolist() for line in marks] == [[27.5], [27.5]]


def test_a_sweep_is_called_by_its_name_and_what_it_has_found_is_said_before_its_table():
    made = {AT: seconds(3)}, number_of
    page = page_of(*made, name="the great sweep")
    assert "<h1>the great sweep</h1>" in page
    assert "<dt>Scenario</dt><dd>made up</dd>" in page
    name, said, *_ = shown(sweep_view(summarised(*made), name="the great sweep")).splitlines()
    assert name == "the great sweep"
    assert said.startswith("Mean time to recover of a point: 10.0 s (at 10 s) to 12.0 s (at 12 s).")


def test_two_numeric_keys_are_a_heat_map_and_others_are_panels():
    """Time = moment + 10 · rate + (0 or 2, by a third key): that is what the cells of the panels have."""
    grid = {AT: ["20 s", "30 s"], RATE: ["1/s", "2/s", "4/s"], "strategy.replay_cost": ["1 ms", "2 ms"]}

    def time(row):
        return number_of(row) + 10 * number_of(row, RATE) + 2 * (row["strategy.replay_cost"] == "2 ms")

    found = summarised(grid, time)
    at = layout(found)
    assert (at.x.short, at.y.short, at.columns.short, at.averaged) == ("rate", "at", "replay_cost", ())
    drawn = recovery(found, at)
    assert [axes.get_title(loc="left") for axes in drawn] == ["replay_cost 1 ms", "replay_cost 2 ms"]
    for axes, more in zip(drawn, (0, 2), strict=True):
        (mesh,) = axes.collections
        expected = np.array([[30, 40, 60], [40, 50, 70]]) + more
        np.testing.assert_allclose(mesh.get_array(), expected)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert [label.get_text() for label in drawn[0].get_yticklabels()] == ["20", "30"]


def test_four_keys_are_shown_and_a_fifth_is_averaged_and_said():
    """Time = 100 a + 10 b + c + 0.1 d + 0.01 e with five numbers of 1 and 2: a and b are axes, c and d
    panels, and the mean over e is 0.015 more.
    """
    grid = {f"k.{name}": [1, 2] for name in "abcde"}
    weights = dict(zip(grid, (100, 10, 1, 0.1, 0.01), strict=True))
    found = summarised(grid, lambda row: sum(weight * row[key] for key, weight in weights.items()))
    at = layout(found)
    assert [key.short for key in (*at.used, *at.averaged)] == list("abcde")
    drawn = recovery(found, at)
    assert [axes.get_title(loc="left") for axes in drawn] == ["c 1", "c 2", "", ""]
    assert [axes.texts[0].get_text() for axes in drawn[1::2]] == ["d 1", "d 2"]
    expected = [[112.115, 212.115], [122.115, 222.115]]
    np.testing.assert_allclose(drawn[1].collections[0].get_array(), expected)
    (picture,) = recovery_times(found)
    assert picture.caption.endswith("Averaged over e.")


def test_further_names_are_small_multiples_on_one_scale():
    grid = {KIND: ["rsm", "none"], AT: seconds(3), RATE: ["1/s", "2/s"]}
    found = summarised(grid, lambda row: number_of(row) + (90 if row[KIND] == "none" else 0))
    drawn = recovery(found, layout(found))
    assert [axes.get_title(loc="left") for axes in drawn[:2]] == ["R+SM", "none (amnesia)"]
    assert drawn[0].collections[0].get_clim() == drawn[1].collections[0].get_clim() == (0.0, 102.0)


def test_costs_have_the_swept_axis():
    """Network is 1000 B times the rate: a line through (1, 1000), (2, 2000), (4, 4000); not its mean."""
    grid = {AT: seconds(2), RATE: ["1/s", "2/s", "4/s"]}
    found = summarised(grid, 1.0, network_bytes=lambda row: 1000 * number_of(row, RATE))
    (picture,) = costs(found)
    assert (picture.title, picture.caption.endswith("Averaged over at.")) == ("Cost over rate", True)
    table = cells(found, [found.keys[2]], metric="network_bytes")
    network = figures.costs_over(table.assign(**dict.fromkeys(figures.RESOURCES, table["mean"])), RATE)[1]
    assert network.get_title(loc="left") == "network (bytes)"
    assert network.lines[0].get_xydata().tolist() == [[1, 1000], [2, 2000], [4, 4000]]


@pytest.mark.parametrize(
    ("rates", "scale"), [([1, 10, 100, 1000], "log"), (list(range(1, 51)), "linear"), ([5, 10, 20], "linear")]
)
def test_an_axis_is_logarithmic_if_its_values_are_and_its_ticks_are_numbers(rates, scale):
    """Values that grow by a factor: most of them are near the least; even steps stay linear however many."""
    found = summarised({RATE: [f"{rate}/s" for rate in rates]}, 1.0)
    (axes,) = recovery(found, layout(found))
    axes.figure.draw_without_rendering()
    assert axes.get_xscale() == scale
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert not [text for text in shown if "$" in text]
    assert "10" in shown


# The page.


@pytest.fixture(scope="module")
def large():
    """Ten thousand points, and a name that would end the script if it could."""
    grid = {KIND: ["rsm", "</script><b>"], AT: seconds(100), RATE: [f"{n + 1}/s" for n in range(50)]}
    rng = np.random.default_rng(1)
    times = rng.gamma(2.0, 10.0, 10_000)
    columns = {"network_bytes": 123_456_789}
    warnings = [f"a remark on point {n}" for n in range(10_000)]
    return page_of(grid, lambda row: times[row["point"]], columns, warnings=warnings), times


def test_ten_thousand_points_are_a_page_of_less_than_three_megabytes(large):
    page, _ = large
    assert len(page.encode()) < 3_000_000
    assert page.count("<figure>") == page.count("<svg") == 3
    assert page.count("<tr>") < 400


def test_the_page_holds_every_point_to_four_digits(large):
    page, times = large
    data = json.loads(re.search(r'id="grid-data">(.*?)</script>', page, re.DOTALL)[1])
    names = [column["name"] for column in data["columns"]]
    assert names[:5] == ["point", "strategy", "at", "rate", "time to recover, s"]
    assert [row[0] for row in data["rows"]] == list(range(10_000))
    assert [row[4] for row in data["rows"]] == pytest.approx(times, rel=5e-4)
    at, last = data["columns"][2], data["rows"][9_999]
    assert (at["values"][last[2]], at["numbers"][last[2]]) == ("109 s", 109.0)


def test_only_our_script_may_run(large):
    """The page's policy names the hash of its one script, and no text of a scenario is markup."""
    page, _ = large
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert [f"script-src 'sha256-{one}'" in page for one in hashes] == [True]
    assert page.count("</script>") == 2
    assert "<b>" not in re.sub(r"<figcaption>.*?</figcaption>", "", page, flags=re.DOTALL)
    assert "unsafe-eval" not in page
    assert not re.search(r"https?://", page)


def test_a_few_points_need_no_script():
    page = page_of({AT: seconds(24)}, number_of)
    assert "<script" not in page
    assert "script-src" not in page


def test_the_page_says_what_was_swept_and_not_one_value_of_it():
    page = page_of({AT: seconds(30), "run.seed": [1, 2]}, number_of)
    assert "failures.0.at: 30 values from 10 s to 39 s; run.seed: 1, 2" in page
    assert "<dt>Seed</dt>" not in page
    assert "<dt>Failures</dt>" not in page
    assert "<dt>Simulated time</dt>" in page
