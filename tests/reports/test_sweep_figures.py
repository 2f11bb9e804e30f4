"""Figures over many points: what is drawn is what the table has, in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from tests.reports.made_up import NAN, points_of
from tideover.reports import figures
from tideover.reports.figures import style
from tideover.reports.sweeps.page import effects, main_effects
from tideover.reports.sweeps.points import cells, layout

TIME = "time_to_recover_s"


def summarised(rows):
    """``rows``: swept values, and the times of the replications of that point."""
    runs, recoveries = [], []
    for point, (swept, times) in enumerate(rows):
        for replication, time in enumerate(times):
            head = {"point": point, "replication": replication, "strategy": "rsm", **swept}
            runs.append(head | {"error": None, "lost": 0, "duplicated": 0, "run_ends_at_s": 41.0})
            failure = {"failed_at_s": 1.0, "kind": "k", "component": "c"}
            recoveries.append(head | failure | {TIME: time})
    return points_of(pd.DataFrame(recoveries), pd.DataFrame(runs), list(rows[0][0]))


def offsets(axes):
    """Where the marks of each scatter are."""
    return [np.asarray(one.get_offsets()).tolist() for one in axes.collections if len(one.get_offsets())]


def test_a_cell_of_several_points_is_their_mean_and_its_ends_are_the_means_of_theirs():
    """With two replications 2 apart each half-width is t(1) = 12.706 times 1, and so is that of the mean of
    two points: they share their luck. A point of one replication has no interval, so neither has its cell;
    what does not recover in the 40 s that are left counts with these: (5 + (7 + 40) / 2) / 2.
    """
    times = ([9.0, 11.0], [19.0, 21.0], [5.0], [7.0, NAN])
    swept = [{"a.x": x, "a.name": name} for x in (1, 2) for name in "nm"]
    found = summarised([*zip(swept, times, strict=True)])
    x = next(key for key in found.keys if key.name == "a.x")
    table = cells(found, [x])
    assert table["a.x"].tolist() == [1.0, 2.0]
    assert table[["mean", "points", "late"]].to_numpy().tolist() == [[15.0, 2, 0], [14.25, 2, 1]]
    assert table["low"].iloc[0] == pytest.approx(15 - 12.7062, abs=1e-4)
    assert table["high"].iloc[0] == pytest.approx(15 + 12.7062, abs=1e-4)
    assert np.isnan(table["low"].iloc[1])
    assert table[["min", "p50", "max"]].iloc[0].tolist() == [10.0, 15.0, 20.0]


@settings(max_examples=25)
@given(st.lists(st.lists(st.floats(0.1, 100), min_size=2, max_size=4), min_size=1, max_size=6))
def test_an_interval_of_a_mean_is_as_wide_as_if_all_errors_added_up(times):
    """The standard error of a mean of points is at most the mean of theirs, whatever they have in common."""
    found = summarised([({"a.x": n}, one) for n, one in enumerate(times)])
    (cell,) = cells(found, []).to_dict("records")
    of = found.metric(TIME)
    errors = of.std / np.sqrt(of.n)
    independent = np.sqrt((errors**2).sum()) / len(errors)
    assert (cell["high"] - cell["low"]) / 2 >= 1.95 * independent - 1e-9
    assert (cell["high"] - cell["low"]) / 2 == pytest.approx(of.half_width.mean(), abs=1e-6)


def test_cells_of_one_point_each_have_its_quantiles_in_the_order_of_the_numbers():
    found = summarised([({"a.x": x}, [x, x + 1.0, x + 5.0]) for x in (30, 10, 20)])
    table = cells(found, [found.keys[1]])
    assert table["a.x"].tolist() == [10.0, 20.0, 30.0]
    assert table["p50"].tolist() == [11.0, 21.0, 31.0]


def test_of_too_many_values_those_are_shown_that_have_a_place():
    """Of 20 numbers three, evenly from the least to the greatest; of 30 names, the first eight lines."""
    rows = [
        ({"a.name": f"n{n}", "a.x": x, "a.y": y, "a.z": z}, [100.0 * y + 10 * x + z + 0.01 * n])
        for n in range(2)
        for y in range(3)
        for x in range(3)
        for z in range(20)
    ]
    found = summarised(rows)
    at = layout(found)
    assert (at.x.short, at.y.short, at.columns.short, at.rows.short) == ("y", "x", "z", "name")
    shown = at.chosen(found)
    z = at.columns.of_point[shown]
    assert sorted(set(z.tolist())) == [0, 10, 19]
    assert at.left_out() == ["of z, 3 of 20 values are shown"]
    lines = summarised([({"a.name": f"n{n}", "a.x": x}, [float(x)]) for n in range(30) for x in (1, 2)])
    assert layout(lines).left_out() == ["of name, the first 8 of 30 values are shown"]


def test_main_effects_are_the_means_over_the_other_factors():
    """Time = 10 a + b: the effects of a are 15 and 25 (b adds 5 on average), those of b 17.5 and 22.5."""
    added = {"p": 2.5, "q": 7.5}
    found = summarised([({"k.a": a, "k.b": b}, [10.0 * a + added[b]] * 2) for a in (1, 2) for b in added])
    keys = [key for key in found.keys if key.name != "strategy"]
    table = effects(found, keys)
    assert table["mean"].tolist() == [15.0, 25.0, 17.5, 22.5]
    assert set(table["grand_mean"]) == {20.0}
    numbers, names = figures.main_effects(table)
    assert numbers.lines[0].get_xydata().tolist() == [[1, 15], [2, 25]]
    assert [label.get_text() for label in names.get_xticklabels()] == ["p", "q"]
    assert names.containers[1].lines[0].get_xydata().tolist() == [[1, 22.5]]
    (picture,) = main_effects(found)
    assert picture.title == "Main effects of a and b"
    # One factor alone needs none.
    assert main_effects(summarised([({"k.a": a}, [1.0 * a]) for a in (1, 2)])) == ()


def test_a_range_has_the_quantiles_below_the_mean():
    """A line from the least to the greatest, one from the 5th to the 95th percentile, the middle half."""
    found = summarised([({"a.name": "n"}, list(range(101))), ({"a.name": "m"}, [NAN])])
    (axes,) = figures.ranges(cells(found, [], [found.keys[1]]), "a.name")
    spans = [line.get_xdata().tolist() for line in axes.lines if len(line.get_xdata()) == 2]
    assert spans[:3] == [[0, 100], [5, 95], [25, 75]]
    assert axes.containers[0].lines[0].get_xydata().tolist() == [[50, 0]]
    (triangle,) = (line for line in axes.lines if line.get_marker() == ">")
    assert np.column_stack(triangle.get_data()).tolist() == [[40, 1]]  # at least


def test_differences_are_filled_where_the_interval_leaves_out_nought():
    head = {"factor": "strategy", "first": "a", "second": "b", "n": 5, "undefined": 0}
    table = pd.DataFrame(
        [
            head | {"rate": "1/s", "mean": 3.0, "low": 1.0, "high": 5.0},
            head | {"rate": "2/s", "mean": 1.0, "low": -1.0, "high": 3.0, "undefined": 2},
            head | {"rate": "3/s", "mean": -2.0, "low": -3.0, "high": -1.0},
            head | {"rate": "4/s", "mean": NAN, "low": NAN, "high": NAN},
        ]
    )
    axes = figures.paired_differences(table, ["rate"])
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["strategy: a − b", "1/s", "2/s", "3/s", "4/s"]
    marks = [bar.lines[0] for bar in axes.containers]
    assert [mark.get_xydata().tolist() for mark in marks] == [[[3, 1]], [[1, 2]], [[-2, 3]]]
    fills = [mark.get_markerfacecolor() for mark in marks]
    assert fills == [style.VERMILION, "none", style.BLUE]
    said = [text.get_text() for text in axes.texts]
    assert "– no pairs" in said
    assert [text.partition("(")[2] for text in said if "(" in text] == ["n = 5)", "n = 5 of 7)", "n = 5)"]


def test_a_tornado_has_the_factor_that_matters_most_on_top():
    table = pd.DataFrame({"factor": ["x", "y"], "first_order": [0.1, 0.5], "total": [0.2, 0.7]})
    with_ends = table.assign(total_low=[0.1, 0.6], total_high=[0.3, NAN])
    axes = figures.tornado(with_ends)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["y", "x"]
    assert [bar.get_width() for bar in axes.patches] == [0.7, 0.2, 0.5, 0.1]
    assert [round(bar.get_y() + bar.get_height() / 2) for bar in axes.patches] == [0, 1, 0, 1]
    morris = figures.tornado(pd.DataFrame({"factor": ["x", "y"], "mu_star": [1.0, 4.0], "sigma": [3.0, 2.0]}))
    assert [bar.get_width() for bar in morris.patches] == [4.0, 1.0, 2.0, 3.0]


# Plans.

CANDIDATES = pd.DataFrame(
    {
        "cost_per_month": [300.0, 100.0, 200.0, 250.0, 50.0],
        "recovery": [5.0, 30.0, 10.0, 20.0, NAN],
        "latency": [50.0, 20.0, 40.0, 10.0, 5.0],
        "feasible": [True, False, True, True, False],
        "on_front": [True, True, True, True, False],
        "replications": [4, 2, 5, 5, 1],
        "lossy": [False, True, False, False, False],
        "chosen": [False, False, True, False, False],
    }
)


def test_the_front_is_a_stair_of_what_is_cheaper_or_quicker():
    """The candidate of 250 is slower than that of 200 and on the front for its latency only, so it is off the
    stair; the one that never recovers is not drawn; that of 100, which loses roots, has a mark of its own.
    """
    axes = figures.pareto_front(CANDIDATES)
    crosses, discs, front, lossy, ring = offsets(axes)
    assert lossy == [[100, 30]]
    assert crosses == [[100, 30]]
    assert discs == [[300, 5], [200, 10], [250, 20]]
    assert sorted(front) == [[100, 30], [200, 10], [250, 20], [300, 5]]
    assert ring == [[200, 10]]
    assert axes.lines[0].get_xydata().tolist() == [[100, 30], [200, 10], [300, 5]]
    assert [text.get_text() for text in axes.texts] == ["1", "2", "3", "4"]
    assert axes.get_xlabel() == "cost per month"


def test_a_race_has_a_bar_for_each_candidate_the_cheapest_first():
    axes = figures.race(CANDIDATES, most=5)
    bars = {round(bar.get_x() + bar.get_width() / 2): bar for bar in axes.patches[5:]}
    assert [bars[place].get_height() for place in range(1, 6)] == [1, 2, 5, 5, 4]
    green = [to_hex(bars[place].get_facecolor()) == style.GREEN for place in range(1, 6)]
    assert green == [False, False, True, True, True]
    assert axes.lines[0].get_xdata().tolist() == [3]


def test_formulas_are_lines_among_what_intervals_cost():
    """A candidate without checkpoints is left out; those that meet all objectives are discs."""
    table = CANDIDATES.assign(interval_s=[1.0, 2.0, 4.0, NAN, 8.0])
    axes = figures.checkpoint_intervals(table, {"Young": 3.0, "Daly": 2.5})
    crosses, discs, ring = offsets(axes)
    assert (crosses, discs, ring) == ([[2, 100], [8, 50]], [[1, 300], [4, 200]], [[4, 200]])
    lines = {line.get_label(): line.get_xdata()[0] for line in axes.lines}
    assert lines == {"Young: 3.00 s": 3.0, "Daly: 2.50 s": 2.5}
