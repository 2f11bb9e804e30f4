"""The report of a fit to somebody else's recoveries: errors of unseen points, what is not identified."""

import re

import pandas as pd
import pytest

from tests.reports.made_up import NAN, fluid, point, recovery_fit, shown
from tideover.reports import figures
from tideover.reports.calibration.recoveries import (
    points_table,
    recoveries_page,
    recoveries_verdict,
    recoveries_view,
    unidentified,
)
from tideover.reports.columns import RECOVERY_FITS
from tideover.reports.html import render


@pytest.fixture
def frames():
    return recovery_fit()


def test_the_verdict_is_of_unseen_points_and_names_the_plain_law(frames):
    assert recoveries_verdict(frames["errors"]) == (
        "mine: predictions of points that the fit has not seen are off by 20 % in the mean (worst 40 %, "
        "n = 3); those of the plain fluid law by 100 %."
    )
    only_seen = frames["errors"].query("kind == 'fit'")
    assert recoveries_verdict(only_seen) == "No point was predicted by a fit that had not seen it."
    assert "No point was predicted" in render(recoveries_page({}, {}))


@pytest.mark.parametrize(
    ("mine", "law", "says"),
    [
        (True, False, ": the mechanism is the better one."),
        (False, True, ": the plain fluid law is the better one."),
        (False, False, ": neither is better beyond chance."),
    ],
)
def test_the_verdict_names_the_better_model(frames, mine, law, says):
    """By settings left out, where there are repetitions; else by points."""
    errors = frames["errors"].assign(better=[None, mine, law])
    assert recoveries_verdict(errors).endswith(f"those of the plain fluid law by 100 %{says}")
    apart = errors.query("kind == 'leave_one_out'").assign(kind="leave_setting_out", better=[law, mine])
    told = recoveries_verdict(pd.concat([errors, apart]))
    other = {True: "plain fluid law", False: "mechanism"}
    assert "(with repetitions left out together by 20 %, and by 100 %)" in told
    assert told.endswith("chance." if mine == law else f"the {other[mine]} is the better one.")


def test_points_say_what_differs_among_them():
    """Heartbeats and parallelism, if there are several."""
    one = point(30, 100.0, 1.0, heartbeat_timeout_s=50.0, parallelism=8.0)
    other = one | {"heartbeat_timeout_s": 5.0}
    rows = points_table(pd.DataFrame([one, other])).rows
    assert [row[0] for row in rows[1:]] == ["every 30 s, 50 s timeout", "every 30 s, 5 s timeout"]


def test_each_point_has_its_error_and_misses_are_marked(frames):
    rows = [row for row in points_table(frames["points"]).rows if len(row) > 1]
    assert [row[5:] for row in rows] == [
        ("+10 %", "yes", "+100 %"),
        ("+40 %", "NO", "+100 %"),
        ("−10 %", "yes", "∞"),
    ]


def test_a_recovery_that_is_predicted_never_to_end_is_a_miss_and_a_law_that_there_is_not_undefined():
    rows = points_table(pd.DataFrame([point(30, 100.0, NAN, fluid_s=NAN, fluid_left_out_s=NAN)])).rows
    assert rows[1][5:] == ("∞", "NO", "–")


def test_what_the_data_do_not_determine_is_named(frames):
    (text,) = unidentified(frames["fit_parameters"])
    assert text.startswith("mine: the measurements do not determine restart and reload.")


def test_the_terminal_tells_once_what_a_parameter_means(frames):
    twice = pd.concat([frames["fit_parameters"].assign(workload=name) for name in ("one", "two")])
    assert shown(recoveries_view({"fit_parameters": twice})).count("what restart is") == 1


def test_lines_are_the_predictions_and_marks_the_measurements(frames):
    """And the legend shows them as they are drawn."""
    (ax,) = figures.recoveries_over_rate(frames["points"], frames["curves"])
    lines = [line for line in ax.lines if len(line.get_xdata()) == 4]
    assert [list(line.get_ydata())[:3] for line in lines] == [
        [fluid(t, r) for r in (100.0, 500.0, 900.0)] for t in (30.0, 60.0, 90.0)
    ]
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-"]  # nothing was measured at 60 s
    marks = {tuple(line.get_xydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1}
    assert (100.0, fluid(30, 100.0)) in marks
    assert (500.0, 1.4 * fluid(30, 500.0)) in marks
    assert len(ax.collections) == 2
    assert ax.get_ylim()[0] == 0
    (legend,) = ax.figure.legends
    looks = {
        text.get_text(): (line.get_linestyle(), line.get_marker() not in ("", "None"))
        for text, line in zip(legend.get_texts(), legend.legend_handles, strict=True)
        if text.get_text().startswith("every")
    }
    assert looks == {"every 30 s": ("-", True), "every 60 s": ("--", False), "every 90 s": ("-", True)}


def test_the_caption_says_where_lines_get_steep(frames):
    """One workload up to saturation, one at low rates only, or only the latter."""
    steep = frames["curves"]
    flat = steep[steep["rate_per_s"] < 300].assign(workload="flat")
    cases = ((steep, "the right end:"), (pd.concat([steep, flat]), "the right end of mine:"))
    for curves, says in (*cases, (flat, "No line gets steep")):
        html = render(recoveries_page(frames | {"curves": curves}, {}))
        assert says in html
        assert ("Look at the right end" in html) is (curves is not flat)


def test_the_page_says_everything(frames):
    """Intervals of a posterior are not called a bootstrap."""
    html = render(recoveries_page(frames, {"Source": "a study"}, profiles={"mine.yaml": "name: <mine>"}))
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    for part in (
        "a study",
        "Off by more than 30 % when left out, 1 of 3 points: mine every 30 s at 500/s",
        "do not determine restart and reload",
        "mine.yaml",
        "name: &lt;mine&gt;",
        "Figure 1.",
    ):
        assert part in text, part
    assert "bootstrap" not in text.lower()
    for column in (c for columns in RECOVERY_FITS.values() for c in columns):
        assert column.name in text


@pytest.mark.parametrize(("window", "said"), [(30.0, True), (0.0, False)])
def test_steps_of_the_curves_are_explained_if_there_are_any(frames, window, said):
    row = frames["fit_parameters"].head(1).assign(parameter="lag_window", value=window)
    html = render(recoveries_page(frames | {"fit_parameters": row}, {}))
    assert ("windows of 30 s" in html) is said


def test_the_terminal_shows_the_verdict_then_parameters(frames):
    text = shown(recoveries_view(frames, ["take care"]))
    missed = "Off by more than 30 % when left out, 1 of 3 points: mine every 30 s at 500/s (measured "
    for part in ("restart", "by 100 %", "Warning: take care", missed):
        assert part in " ".join(text.split()), part
    assert " ".join(text.split()).startswith(" ".join(recoveries_verdict(frames["errors"]).split()))
    assert "Every point  " not in text
