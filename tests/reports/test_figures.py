"""Figures: units on every axis, stages shaded in place, undefined values said, the same bytes each time."""

import math
from itertools import combinations, pairwise
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.reports.made_up import fake_result, joined
from tideover.models.schema import block
from tideover.reports import figures
from tideover.reports.figures import style
from tideover.reports.figures.strategies import baseline
from tideover.reports.figures.style import to_svg
from tideover.reports.figures.timeline import stages
from tideover.reports.pages import failure_by_failure
from tideover.reports.published import pair_recoveries
from tideover.scenarios.statistics.intervals import estimate

LATE = ["time_to_recover_s", "catch_up_stage_s", "windows_stage_s"]
"""What is undefined of a recovery that has not ended."""
STAGES = [column.key for column in block("recoveries", "stages_s")]


def texts(axes) -> str:
    items = [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label, axes._left_title]
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    return "\n".join(item.get_text() for item in [*items, *labels])


def bands(axes) -> dict[str, tuple[float, float]]:
    found = {}
    for patch in axes.patches:
        if str(patch.get_label()).startswith("stage: "):
            box = patch.get_extents().transformed(axes.transData.inverted())
            found[patch.get_label().removeprefix("stage: ")] = (box.x0, box.x1)
    return found


@pytest.fixture
def replay():
    return fake_result("source_replay")


@pytest.fixture
def drawn(replay):
    return figures.timeline(replay.timeline, replay.recoveries)


@pytest.fixture(scope="module")
def recoveries(four):
    """Of four strategies."""
    return joined(four, "recoveries")


@pytest.fixture(scope="module")
def timeline(four):
    return joined(four, "timeline")


def test_the_stages_are_shaded_where_they_are(drawn):
    """25 s of the 60 s of state recovery are a wait for the source's timeout, and not shaded as a replay."""
    for axes in drawn:
        shaded = bands(axes)
        assert shaded["wait"] == pytest.approx((0, 25), abs=0.1)
        assert shaded["replay"] == pytest.approx((25, 60), abs=0.1)
        assert shaded["catch_up"] == pytest.approx((60, 74), abs=0.1)
        assert shaded["windows"] == pytest.approx((74, 75), abs=0.1)
        assert len(shaded) == 4  # the others took no time


def test_stages_follow_one_another_and_undefined_ones_are_left_out(replay):
    found = stages(replay.recoveries)
    assert [stage.name for stage in found] == STAGES
    assert all(a.end_s == b.start_s for a, b in pairwise(found))
    cut_off = replay.recoveries.assign(catch_up_stage_s=None, windows_stage_s=None)
    assert [stage.name for stage in stages(cut_off)] == STAGES[:5]


def test_latency_is_end_to_end_and_that_of_retries_stands_beside_it(replay, drawn):
    """Second 125 is 50 s after the failure, amid the retries: 30 s late since their first emission, and some
    60 ms since their creation stamp. The backlog has that of the reference run beside it.
    """
    _, latency, backlog = drawn
    second = replay.timeline.query("second == 125")
    lines = {line.get_label(): line for line in [*latency.lines, *backlog.lines]}
    for column in ("end_to_end_mean_ms", "latency_mean_ms", "backlog_without_failures"):
        at = list(lines[column].get_xdata()).index(50.5)
        assert lines[column].get_ydata()[at] == pytest.approx(second[column].mean())
    assert latency.lines[0].get_label() == "end_to_end_mean_ms"
    assert latency.lines[0].get_linewidth() > lines["latency_mean_ms"].get_linewidth()
    assert lines["backlog_without_failures"].is_dashed()


# Colours, as Machado, Oliveira and Fernandes (2009) simulate full colour blindness, in linear light.
SEEN = {
    "by most": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deutan": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
    "in grey": [[0.2126, 0.7152, 0.0722]] * 3,
}


def lab(rgb, seen) -> np.ndarray:
    """CIE L*a*b* (D65) of an sRGB colour as somebody sees it."""
    rgb = np.asarray(rgb)
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = np.clip(np.array(seen) @ light, 0, 1)
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    part = to_xyz @ light / to_xyz.sum(axis=1)
    x, y, z = np.where(part > 216 / 24389, np.cbrt(part), (24389 / 27 * part + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def drawn_over_white(figure) -> dict[str, np.ndarray]:
    """The colour of each stage on paper: what is not opaque lets white through."""
    found = {}
    for patch in (patch for axes in figure.axes for patch in axes.patches):
        *rgb, alpha = patch.get_facecolor()
        found[str(patch.get_label())] = alpha * np.array(rgb) + (1 - alpha)
    return {name: colour for name, colour in found.items() if name.startswith("stage: ")}


@pytest.mark.parametrize("figure", ["timeline", "recovery_stages"])
def test_stages_are_told_apart_in_grey_and_by_the_colour_blind(replay, figure):
    """All 21 pairs as drawn, by their distance in L*a*b*, where 2.3 is just noticeable: with distances of at
    least 10 areas of a few millimetres that do not touch are told apart.
    """
    recoveries = replay.recoveries.assign(detect_s=5.0, restart_s=5.0, restore_s=5.0)
    if figure == "timeline":
        drawn = drawn_over_white(figures.timeline(replay.timeline, recoveries)[0].figure)
    else:
        drawn = drawn_over_white(figures.recovery_stages(recoveries).figure)
    assert len(drawn) == len(STAGES)
    for name, seen in SEEN.items():
        for a, b in combinations(drawn.values(), 2):
            assert np.linalg.norm(lab(a, seen) - lab(b, seen)) >= 10, name


# Time to recover, in stages


def bars(axes) -> list[dict[str, tuple[float, float]]]:
    """For each row, from the top, where each stage begins and ends."""
    rows: dict[int, dict[str, tuple[float, float]]] = {}
    for patch in axes.patches:
        row = rows.setdefault(round(patch.get_y()), {})
        begin = patch.get_x()
        row[str(patch.get_label()).removeprefix("stage: ")] = (begin, begin + patch.get_width())
    return [rows[row] for row in sorted(rows)]


def test_the_stages_of_a_bar_add_up_to_the_mean_time_to_recover():
    """R+SM: 0.05 + 0.37 + 0.48 = 0.9 s, and the mean wobble of the replays; without a gap between them."""
    recoveries = fake_result("rsm").recoveries
    axes = figures.recovery_stages(recoveries)
    (row,) = bars(axes)
    assert list(row) == ["restore", "replay", "catch_up"]
    assert all(a[1] == pytest.approx(b[0]) for a, b in pairwise(row.values()))
    assert row["restore"][0] == 0
    assert row["catch_up"][1] == pytest.approx(recoveries["time_to_recover_s"].mean())
    assert axes.get_xlabel() == "time from the failure (s)"


def test_every_recovery_and_the_interval_of_the_mean_are_drawn():
    recoveries = fake_result("source_replay", replications=10, spread=3.0).recoveries
    axes = figures.recovery_stages(recoveries)
    dots = next(line for line in axes.lines if line.get_linestyle() == "None")
    assert sorted(dots.get_xdata()) == sorted(recoveries["time_to_recover_s"])
    interval = next(line for line in axes.lines if line.get_label() == "interval")
    assert tuple(interval.get_xdata()) == estimate(recoveries["time_to_recover_s"]).bootstrap
    low, high = interval.get_xdata()
    mean = recoveries["time_to_recover_s"].mean()
    assert f"{mean:.1f} s ({low:.1f} to {high:.1f})" in texts(axes)


def test_the_legend_of_a_figure_that_stands_alone_is_not_cut():
    figure = figures.recovery_stages(fake_result("rsm").recoveries).figure
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_who_has_not_recovered_is_counted_and_in_no_mean():
    """One of five: the bar is the mean of the four. All five: the known stages, 25 + 35 s."""
    recoveries = fake_result("source_replay", spread=0.0).recoveries
    recoveries.loc[0, LATE] = None
    recoveries.loc[0, "replay_s"] = 100.0
    axes = figures.recovery_stages(recoveries)
    assert bars(axes)[0]["windows"] == pytest.approx((74.0, 75.0))
    assert "75.0 s; 1 of 5 not recovered" in texts(axes)
    recoveries[LATE] = None
    recoveries["replay_s"] = 35.0
    axes = figures.recovery_stages(recoveries)
    assert bars(axes)[0]["replay"] == pytest.approx((25.0, 60.0))
    assert "source replay: not recovered by the end of the run (5 of 5)" in texts(axes)


# The recovery from each failure


@pytest.fixture
def several():
    """Three failures in each of two replications, given out of order: at 50 s (crash_task, 75 s), at 80 s
    (lose_state, not recovered from) and at 200 s (crash_host, 75 s).
    """
    one = fake_result("source_replay", replications=2, spread=0.0).recoveries
    late = one.assign(failed_at_s=200.0, kind="crash_host", component="host 3")
    early = one.assign(failed_at_s=50.0, kind="crash_task")
    never = one.assign(failed_at_s=80.0, **dict.fromkeys(LATE, np.nan))
    return pd.concat([late, early, never], ignore_index=True)


def test_each_failure_of_the_first_replication_has_a_bar_of_its_stages(several):
    """The later one is marked where it struck, 30 s after the first, whose recovery took 75 s; the third came
    when the bars were over.
    """
    axes = figures.waterfall(several)
    first, second, third = bars(axes)
    whole = {"wait": (0, 25), "replay": (25, 60), "catch_up": (60, 74), "windows": (74, 75)}
    assert first == third == {name: pytest.approx(ends) for name, ends in whole.items()}
    assert second == {name: pytest.approx(whole[name]) for name in ("wait", "replay")}  # as far as it came
    assert [text for text in texts(axes).split("\n") if " of " in text] == [
        "50.0 s  crash_task of count: 75.0 s",
        "80.0 s  lose_state of count: not recovered",
        "200.0 s  crash_host of host 3: 75.0 s",
    ]
    assert [list(line.get_xdata()) for line in axes.lines] == [[30.0, 30.0]]


def test_a_page_has_failures_one_by_one_if_there_are_several(several):
    assert failure_by_failure(fake_result("rsm").recoveries) == ()
    (picture,) = failure_by_failure(several)
    assert "first replication" in picture.caption
    assert "are drawn" not in picture.caption
    many = pd.concat([several.assign(failed_at_s=float(at)) for at in range(21)], ignore_index=True)
    (picture,) = failure_by_failure(many[many["kind"] == "crash_host"])
    assert "Of 21 failures the first 20 are drawn" in picture.caption


def test_a_stage_too_short_to_see_is_still_there_and_written_out():
    result = fake_result("rsm")
    top = figures.timeline(result.timeline, result.recoveries)[0]
    low, high = bands(top)["restore"]
    assert 0.05 < high - low < 1.0
    assert "restore 50 ms" in texts(top)


def test_every_axis_of_a_timeline_has_its_unit_and_the_failure_at_zero(drawn):
    labels = [axes.get_ylabel() for axes in drawn]
    assert labels == ["throughput\n(tuples/s)", "latency\n(ms)", "backlog\n(roots)"]
    assert drawn[-1].get_xlabel() == "time from the failure (s)"
    for axes in drawn:
        lines = [line for line in axes.lines if line.get_label() == "failure"]
        assert [list(line.get_xdata()) for line in lines] == [[0.0, 0.0]]


def test_what_is_drawn_is_the_mean_over_replications_from_the_failure(replay, drawn):
    line = drawn[0].lines[0]
    at = list(line.get_xdata()).index(0.5)
    wanted = replay.timeline.query("second == 75")["throughput_per_s"].mean()
    assert line.get_ydata()[at] == pytest.approx(wanted)


def test_no_value_and_no_title_is_cut_off_in_any_column(recoveries, timeline):
    names = ["source_replay", "rsm", "active_replication"]
    figure = figures.timelines(timeline, recoveries, names)
    figure.draw_without_rendering()
    for axes in figure.axes:
        top = max(max(line.get_ydata()) for line in axes.lines if line.get_label() != "failure")
        assert axes.get_ylim()[1] >= top
    for axes in figure.axes[:3]:
        assert axes._left_title.get_window_extent().y1 < figure.bbox.y1 - 0.05 * figure.dpi


def test_a_run_without_a_failure_is_shown_whole():
    result = fake_result(failed_at=None)
    drawn = figures.timeline(result.timeline, result.recoveries)
    assert drawn[-1].get_xlabel() == "time (s)"
    assert drawn[-1].get_xlim() == (0.0, 240.0)
    assert not bands(drawn[0])


def test_failures_at_other_moments_in_each_replication_are_aligned(replay):
    recoveries = replay.recoveries.assign(failed_at_s=lambda f: 75.0 + f["replication"] * 7.25)
    axes = figures.timeline(replay.timeline, recoveries)[0]
    assert axes.lines[0].get_xdata()[0] < 0


def test_a_timeline_shows_one_strategy(recoveries, timeline):
    with pytest.raises(ValueError, match="one strategy"):
        figures.timeline(timeline, recoveries)


def test_recovery_times_intervals_and_published_marks(recoveries):
    published = {("source_replay",): 60.0, ("rsm",): 0.0}
    axes = figures.recovery(recoveries, column="state_recovery_s", published=published)
    assert axes.get_xlabel() == "state recovery (s)"
    shown = texts(axes)
    for word in ("source replay", "R+SM", "60.0 s", "0.424 s"):
        assert word in shown
    assert shown.count("undefined: nothing was replayed") == 2
    marks = next(c for c in axes.collections if c.get_label() == "published")
    assert marks.get_offsets().tolist() == [[60.0, 0.0], [0.0, 1.0]]


def test_the_interval_drawn_is_the_bootstrap_interval():
    recoveries = fake_result("source_replay", replications=10, spread=3.0).recoveries
    axes = figures.recovery(recoveries)
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) > 1]
    widest = max(ends, key=lambda xs: max(xs) - min(xs))
    wanted = estimate(recoveries["time_to_recover_s"]).bootstrap
    assert (min(widest), max(widest)) == pytest.approx(wanted, abs=0.15)


def test_rows_by_further_columns_name_them_with_units(reproduction):
    axes = figures.recovery(reproduction.cells, by=["tuples_per_s", "fail_at_s"])
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 18
    assert labels[0] == "source replay, 10/s, 5 s"


def test_costs_are_relative_to_none(four):
    drawn = figures.cost(joined(four, "runs"))
    titles = [axes.get_title(loc="left") for axes in drawn]
    assert titles == ["CPU time (s)", "network (bytes)", "store (bytes)", "peak of buffered tuples", "hosts"]
    network = texts(drawn[1])
    assert "1.25×" in network
    assert "1.00×" in network
    assert "×" not in texts(drawn[2])  # nothing can be a multiple of zero
    assert "96.0 kB" in texts(drawn[2])


def test_without_none_the_cheapest_is_the_base():
    assert baseline(pd.Series({"rsm": 3.0, "source_replay": 2.0})) == ("source_replay", 2.0)
    assert baseline(pd.Series({"rsm": 3.0, "none": 4.0})) == ("none", 4.0)


def test_published_beside_simulated_has_an_axes_for_each_strategy(reproduction):
    drawn = figures.published(pair_recoveries(reproduction.cells))
    assert [axes.get_title(loc="left") for axes in drawn] == ["source replay", "R+SM"]
    for axes in drawn:
        assert axes.get_xlabel() == "recovery time (s)"
        assert len(axes.patches) == 6


def test_drawing_leaves_nothing_open_and_no_setting_changed(four, recoveries, timeline):
    before, settings = plt.get_fignums(), dict(plt.rcParams)
    figures.timelines(timeline, recoveries, ["rsm"])
    figures.cost(joined(four, "runs"))
    figures.recovery(recoveries)
    assert plt.get_fignums() == before
    assert dict(plt.rcParams) == settings


def test_strategies_are_told_apart():
    """Six, two from outside, by colour and by marker; all there are, and one more, by both together."""
    names = ["source_replay", "rsm", "active_replication", "none", "mine", "yours"]
    assert len(set(style.colours(names).values())) == len(set(style.markers(names).values())) == len(names)
    every = [*style._STRATEGIES, "mine"]
    looks = {(style.colours(every)[name], style.markers(every)[name]) for name in every}
    assert len(looks) == len(every)


# SVG


def test_svg_holds_no_reference_and_no_markup_of_ours():
    name = '<script>alert(1)</script> $x^{ & "quoted"'
    frame = fake_result().recoveries.assign(strategy=name)
    text = to_svg(figures.recovery(frame).figure, prefix="f", alt=name)
    assert text.startswith("<svg")
    for forbidden in ("http", "xmlns", "<!", "<?", "<script", "<metadata", "//"):
        assert forbidden not in text
    assert 'aria-label="&lt;script&gt;alert(1)&lt;/script&gt; $x^{ &amp; &quot;quoted&quot;"' in text


def test_svg_is_well_formed_and_its_ids_are_prefixed(four):
    figure = figures.cost(joined(four, "runs"))[0].figure
    root = ElementTree.fromstring(to_svg(figure, prefix="cost", alt="a"))
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert ids
    assert len(ids) == len(set(ids))
    assert all(name.startswith("cost-") for name in ids)
    used = [element.attrib["href"] for element in root.iter() if "href" in element.attrib]
    assert {name.removeprefix("#") for name in used} <= set(ids)


def test_the_same_frame_gives_the_same_svg_whose_ink_follows_the_page(recoveries):
    text, again = (to_svg(figures.recovery(recoveries).figure, prefix="f", alt="a") for _ in range(2))
    assert text == again
    assert f"var(--ink, {style.INK})" in text
    assert f"fill: {style.INK}" not in text


def test_a_figure_without_spread_or_with_one_replication_is_drawn():
    result = fake_result(replications=1)
    axes = figures.recovery(result.recoveries)
    assert math.isfinite(axes.get_xlim()[1])
    assert len(figures.timeline(result.timeline, result.recoveries)) == 3
