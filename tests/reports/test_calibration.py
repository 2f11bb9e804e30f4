"""A calibration's page, its pictures, and what the terminal shows: every failure is in all of them."""

import re

import pytest

from tests.reports.made_up import EVIL, episodes, every_table, pair, shown, table
from tideover.reports import figures
from tideover.reports.calibration.page import calibration_page, calibration_view, chosen
from tideover.reports.calibration.tables import judged
from tideover.reports.columns import CALIBRATION
from tideover.reports.html import render


@pytest.fixture(scope="module")
def frames():
    return every_table()


# Pictures


def test_pairs_are_drawn_where_they_are_and_failures_have_a_ring(frames):
    found = judged(frames["pairs"])
    drawn = figures.predictions(found)
    assert [ax.get_title(loc="left") for ax in drawn] == ["batch duration", "output gap"]
    gap = drawn[1]
    marks = [line.get_xydata()[0].tolist() for line in gap.lines if line.get_marker() == "D"]
    assert marks == [[4.0, 4.4], [4.0, 6.0], [4.0, 4.8]]
    rings = [line.get_xydata()[0].tolist() for line in gap.lines if line.get_markersize() > 9]
    assert rings == [[4.0, 6.0], [4.0, 4.8]]
    assert gap.get_xscale() == gap.get_yscale() == "log"
    assert gap.get_xlim() == gap.get_ylim()
    identity = next(line for line in gap.lines if line.get_label() == "identity")
    assert list(identity.get_xdata()) == list(identity.get_ydata())


def test_a_wide_interval_does_not_drive_the_axes():
    """Figures from 4 to 5; an interval from 0.001 to 1000 leaves the axes on both sides."""
    (ax,) = figures.predictions(judged(table(pair(4.0, 5.0, 0.001, 1000.0))))
    low, high = ax.get_ylim()
    assert 1.9 < low < 4.0
    assert 5.0 < high < 11.0
    bar = next(line for line in ax.lines if list(line.get_xdata()) == [4.0, 4.0])
    assert list(bar.get_ydata()) == [low, high]


@pytest.mark.parametrize(("first", "last"), [(1.0, 1.2), (1.0, 5.0), (0.01, 900.0)])
def test_axes_have_a_few_ticks_whatever_they_span(first, last):
    """From 20 % to five powers of ten: enough to read a figure off, and few enough not to touch."""
    for ax in figures.predictions(judged(table(pair(first, first), pair(last, last)))):
        low, high = ax.get_xlim()
        assert 2 <= len([tick for tick in ax.get_xticks() if low <= tick <= high]) <= 5


def test_what_the_fit_has_seen_is_told_apart(frames):
    batch = figures.predictions(judged(frames["pairs"]))[0]
    faces = [line.get_markerfacecolor() for line in batch.lines if line.get_marker() == "D"]
    assert len(set(faces)) == 2
    assert faces[0] == faces[1] != faces[2]


def test_residuals_are_percent_and_huge_ones_stay_on_the_axes():
    drawn = figures.residuals(judged(table(pair(4.0, 5.0), pair(1.0, 90.0, rate_per_s=10.0))), "rate_per_s")
    heights = {float(line.get_ydata()[0]) for line in drawn[0].lines if line.get_marker() in ("D", "^")}
    assert heights == {25.0, 200.0}
    assert drawn[0].get_ylim()[1] >= 200.0


def test_backlogs_have_a_panel_for_each_strategy_and_fault_with_both_lines(frames):
    typical, _ = chosen(frames["timelines"], judged(frames["pairs"]))
    drawn = figures.backlogs(typical)
    titles = [ax.get_title(loc="left") for ax in drawn]
    assert titles == ["micro-batches\nexecutor killed", "source replay\ndriver killed"]
    for ax in drawn:
        assert {"measured", "simulated"} <= {line.get_label() for line in ax.lines}
        assert ax.get_xlabel() == "time from the fault (s)"


def test_the_typical_episode_has_the_median_error_and_the_worst_one_the_greatest():
    """Errors of 40, 10 and 20 % on held-out episodes 0 to 2, and 90 % on one that the fit has seen."""
    predicted = [(6.0, True), (11.0, True), (8.0, True), (19.0, False)]
    rows = [pair(10.0, p, episode=n, held_out=unseen) for n, (p, unseen) in enumerate(predicted)]
    typical, worst = chosen(episodes(4), judged(table(*rows)))
    assert typical["episode"].unique().tolist() == [2]
    assert worst["episode"].unique().tolist() == [0]


# The page and the terminal


def test_the_page_has_its_sections_and_every_failure(frames):
    html = render(calibration_page(frames, {"Machine": "two cores"}))
    text = re.sub(r"<[^>]+>", " ", html)
    for heading in (
        "What was measured, and where",
        "Measured beside predicted",
        "What the model does not explain",
        "Real and simulated runs on one axis",
        "Which strategy is ahead",
        "Are the counts right?",
        "What the simulator takes from it",
        "Every pair",
    ):
        assert f">{heading}</h2>" in html, heading
    assert "two cores" in text
    assert [text.count(f"NO ({why})") for why in ("outside", "error", "nothing")] == [1, 1, 1]
    for column in (c for columns in CALIBRATION.values() for c in columns):
        assert column.name in text


def test_failed_predictions_stand_under_one_heading_each():
    mixed = table(*(pair(4.0, 9.0, measure=m, rate_per_s=r) for r in (2.0, 1.0) for m in ("a_s", "b_s")))
    text = shown(calibration_view({"pairs": mixed}), width=160)
    assert text.count("micro-batches: a") == text.count("micro-batches: b") == 1


def test_everything_is_escaped(frames):
    texts = ("session", "strategy", "meaning", "fault")
    evil = {name: t.assign(**{c: EVIL for c in texts if c in t.columns}) for name, t in frames.items()}
    html = render(calibration_page(evil, {EVIL: EVIL}, title=EVIL, warnings=[EVIL]))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 10


def test_empty_sections_are_left_out(frames):
    html = render(calibration_page({"pairs": frames["pairs"]}, {}))
    assert "Measured beside predicted" in html
    for heading in ("Which strategy is ahead", "Are the counts right?", "one axis", "Results"):
        assert f"{heading}</h2>" not in html
    assert "<figure>" in html
    assert shown(calibration_view({"pairs": frames["pairs"]}))
    assert "<figure>" not in render(calibration_page({}, {}))
    assert "aims met" in render(calibration_page({"pairs": table(pair(4.0, 4.4, 3.0, 5.0))}, {}))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "pairs" else pytest.mark.long) for name in CALIBRATION]
)
def test_each_table_may_be_missing_or_alone(frames, name):
    others = {other: found for other, found in frames.items() if other != name}
    alone = () if name == "pairs" else ({name: frames[name]},)  # they are alone in the test before this one
    for part in (*alone, others, {**others, name: frames[name].head(0)}):
        assert "</html>" in render(calibration_page(part, {}))
        assert shown(calibration_view(part))


def test_the_terminal_shows_aims_failures_ranking_counts_and_parameters(frames):
    text = shown(calibration_view(frames))
    for part in (
        "NO (coverage)",
        "Held-out predictions that failed",
        "source replay: catch-up",
        "Ranking by output gap",
        "Counts against the truth",
        "output_time",
        "broke the promise",
    ):
        assert part in text, part


def test_without_held_out_episodes_the_terminal_shows_those_of_the_fit(frames):
    text = shown(calibration_view({"pairs": frames["pairs"].assign(held_out=False)}))
    assert "Episodes that the fit has seen" in text
    assert "Held-out episodes" not in text
