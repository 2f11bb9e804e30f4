"""A calibration's report: errors as defined, aims that are missed said, failed predictions never left out."""

import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from tideover.reports import figures
from tideover.reports.calibration import calibration_page, calibration_view, summary
from tideover.reports.columns import CALIBRATION
from tideover.reports.fits.pairs import frame, judged
from tideover.reports.fits.pictures import chosen
from tideover.reports.fits.tables import kept, missed_aims, parameters_table, same_ranking, summary_table
from tideover.reports.fits.words import MOST_NAMED, unexplained, verdict
from tideover.reports.html import render
from tideover.reports.output import write_all
from tideover.reports.parquet import read_tables

EVIL = "<script>alert(1)</script>"
NAN = float("nan")


def pair(measured, predicted, low=NAN, high=NAN, **more):
    """One row of pairs: by default an output gap after a killed executor, held out."""
    row = {
        "session": "s1",
        "episode": 0,
        "purpose": "recovery",
        "held_out": True,
        "strategy": "micro_batch",
        "pipeline": "word_count",
        "master": "local-cluster[2,1,1024]",
        "fault": "kill_executor",
        "rate_per_s": 1000.0,
        "keys": NAN,
        "moment_s": 0.5,
        "measure": "output_gap_s",
        "measured": measured,
        "predicted": predicted,
        "low": low,
        "high": high,
        "error": predicted / measured - 1 if measured else NAN,
    }
    return row | more


def steady(measured, predicted, **more):
    quiet = {"purpose": "steady", "fault": "none", "measure": "batch_duration_s", "moment_s": NAN}
    return pair(measured, predicted, **(quiet | more))


def table(*rows):
    return pd.DataFrame(list(rows))


def ranks(measured, simulated):
    names = ["micro_batch", "source_replay", "active_replication"]
    gaps = {"measured_gap_s": 2.0, "simulated_gap_s": 2.0, "n": 3, "fault": "kill_driver"}
    return table(
        *(
            {"strategy": name, "measured_rank": m, "simulated_rank": s, **gaps}
            for name, m, s in zip(names, measured, simulated, strict=False)
        )
    )


def counts(**more):
    row = {
        "strategy": "micro_batch",
        "fault": "kill_driver",
        "kills": 6,
        "exact": 6,
        "missing": 0,
        "extra": 0,
        "simulated_lost": 0,
        "simulated_duplicated": 0,
        "promise": "exactly once",
    }
    return row | more


def episodes(count, strategy="micro_batch", fault="kill_executor"):
    """Backlogs of several episodes, real and simulated: a triangle of an episode's own height."""
    at = np.arange(-2.0, 6.0)
    return pd.concat(
        pd.DataFrame(
            {
                "session": "s1",
                "episode": number,
                "strategy": strategy,
                "fault": fault,
                "kind": kind,
                "at_s": at,
                "backlog": (number + 1) * 100.0 * np.clip(3 - np.abs(at - 2), 0, None),
            }
        )
        for number in range(count)
        for kind in ("measured", "simulated")
    )


@pytest.fixture
def frames():
    """Every table, with one failed prediction for each reason that there is."""
    rows = [
        steady(1.0, 1.1, episode=1, keys=100.0),
        steady(2.0, 1.8, episode=2, keys=1000.0, rate_per_s=4000.0),
        steady(2.0, 2.1, episode=3, keys=1000.0, held_out=False),
        pair(4.0, 4.4, 3.5, 5.5, episode=4),
        pair(4.0, 6.0, 3.0, 9.0, episode=5, rate_per_s=2000.0),
        pair(4.0, 4.8, 4.2, 5.4, episode=6, moment_s=0.2),
        pair(8.0, NAN, episode=7, strategy="source_replay", measure="catch_up_s"),
        pair(NAN, 5.0, 4.0, 6.0, episode=8, strategy="source_replay", measure="catch_up_s"),
    ]
    parameter = {
        "strategy": "micro_batch",
        "parameter": "output_time",
        "value": 0.12,
        "low": 0.10,
        "high": 0.15,
        "unit": "s",
        "identified": False,
        "meaning": "end of a batch until the sink has it",
    }
    timelines = pd.concat([episodes(6), episodes(2, "source_replay", "kill_driver")])
    return {
        "pairs": table(*rows),
        "parameters": table(parameter),
        "timelines": timelines,
        "ranking": ranks([1, 2, 3], [1, 3, 2]),
        "correctness": table(counts(), counts(strategy="source_replay", exact=5, extra=31)),
    }


def shown(view, width=100) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(view)
    return console.file.getvalue()


# Pairs


def test_the_error_is_relative_to_what_was_measured():
    assert judged(table(pair(4.0, 5.0)))["error"].tolist() == [0.25]


def test_a_prediction_fails_outside_its_interval_or_beyond_thirty_percent():
    """Outside by a little; inside an interval that is too wide to say anything; just within; no interval."""
    found = judged(table(pair(4, 4.4, 4.1, 5), pair(4, 5.3, 1, 9), pair(4, 5.1, 4, 6), pair(4, 2.7)))
    assert found["covered"].tolist() == [False, True, True, None]
    assert found["failed"].tolist() == [True, True, False, True]


def test_what_the_simulation_never_ends_is_infinitely_far_off():
    found = judged(table(pair(4.0, NAN), pair(0.0, 1.0), pair(0.0, 0.0)))
    assert found["error"].tolist() == [math.inf, math.inf, 0.0]
    assert found["failed"].tolist() == [True, True, False]
    assert found["covered"].tolist() == [False, None, None]


def test_an_interval_may_have_no_upper_end():
    """Some draws never catch up: whatever is longer than the lower end is inside. And it is drawn."""
    found = judged(table(pair(4.0, 4.4, 3.0, math.inf), pair(2.0, 2.2, 3.0, math.inf)))
    assert found["covered"].tolist() == [True, False]
    assert "3.00 to ∞" in render(calibration_page({"pairs": found}, {}))
    assert judged(table(pair(4.0, math.inf)))["error"].tolist() == [math.inf]


def test_what_was_cut_off_in_the_real_run_is_not_judged_but_counted():
    """Two pairs, one of them without a measured figure."""
    found = summary(table(pair(4.0, 5.0, 3.0, 6.0), pair(NAN, 5.0, 3.0, 6.0)))
    assert found[["n", "unmeasured", "failed", "intervals"]].values.tolist() == [[1, 1, 0, 1]]
    assert not judged(table(pair(NAN, 5.0, 3.0, 6.0)))["failed"].any()
    assert summary_table(summary(table(pair(NAN, 5.0))), "").rows[1][-1] == "–"  # neither met nor missed


def test_the_summary_is_of_absolute_errors_by_group():
    """Errors −50 %, +10 % and +20 %: median 20 %, worst 50 %; two of three inside."""
    rows = [pair(4.0, 2.0, 1.0, 3.0), pair(10.0, 11.0, 9.0, 12.0), pair(10.0, 12.0, 9.0, 13.0)]
    found = summary(table(*rows, steady(1.0, 1.5)))
    assert found["purpose"].tolist() == ["steady", "recovery"]
    last = found.iloc[1]
    assert (last["n"], last["intervals"], last["failed"]) == (3, 3, 1)
    assert last["median_error"] == pytest.approx(0.2)
    assert last["worst_error"] == pytest.approx(0.5)
    assert last["coverage"] == pytest.approx(2 / 3)


def test_the_summary_keeps_what_the_fit_has_seen_apart():
    pairs = table(pair(4.0, 5.0), pair(4.0, 4.0, held_out=False))
    assert summary(pairs)["median_error"].tolist() == [0.25]
    assert summary(pairs, held_out=False)["median_error"].tolist() == [0.0]
    assert summary(table()).empty


def test_the_summary_can_be_by_fault():
    """One strategy: 10 % after two killed executors, 30 % after a killed driver, on both sides of it."""
    rows = [pair(10.0, 11.0), pair(10.0, 13.0, fault="kill_driver"), pair(10.0, 9.0)]
    found = summary(table(*rows), by_fault=True)
    assert found["fault"].tolist() == ["kill_executor", "kill_driver"]
    assert found["n"].tolist() == [2, 1]
    assert found["median_error"].tolist() == pytest.approx([0.1, 0.3])
    cells = summary_table(found, "By fault").rows
    assert [row[0] for row in cells if len(row) == 1] == ["driver killed", "executor killed"]


@pytest.mark.parametrize(
    ("row", "missed"),
    [
        (steady(1.0, 1.10), []),
        (steady(1.0, 1.16), ["median above 15 %"]),
        (steady(1.0, 0.65), ["median above 15 %", "worst above 30 %"]),
        (pair(1.0, 1.19, 0.9, 1.5), []),
        (pair(1.0, 1.21), ["median above 20 %"]),
        (pair(1.0, 1.05, 1.01, 1.09), ["coverage below 75 %"]),
    ],
)
def test_missed_aims_are_named(row, missed):
    assert missed_aims(summary(table(row)).iloc[0]) == missed


def test_a_missing_table_and_missing_columns_are_filled():
    assert frame({}, "pairs").columns.tolist() == [column.name for column in CALIBRATION["pairs"]]
    short = table(pair(4.0, 5.0)).drop(columns=["moment_s", "low", "high", "held_out"])
    found = judged(short)
    assert found["held_out"].tolist() == [False]
    assert found["covered"].tolist() == [None]


def test_a_fixed_set_of_words_has_no_number_of_keys():
    assert math.isnan(judged(table(pair(4.0, 5.0, keys=0)))["keys"].iloc[0])


@pytest.mark.parametrize(
    ("figures_s", "written"),
    [
        ((2.0, 1.0, 3.0), ("s", "2.00", "1.00 to 3.00")),
        ((0.12, 0.10, 0.15), ("ms", "120", "100 to 150")),
        ((3e-7, 1e-7, 4e-7), ("ns", "300", "100 to 400")),
        ((0.0, 0.0, 2.5), ("s", "0", "0 to 2.50")),
        ((2e-11, 0.0, 3e-11), ("ns", "0.0200", "0 to 0.0300")),
        ((0.0, 0.0, 0.0), ("s", "0", "0 to 0")),
    ],
)
def test_short_durations_are_written_in_small_units(figures_s, written):
    row = dict(zip(("value", "low", "high"), figures_s, strict=True)) | {"strategy": "rsm", "unit": "s"}
    assert parameters_table(frame({"parameters": table(row)}, "parameters")).rows[1][2:5] == written


def test_parameters_are_grouped_by_profile_where_there_are_profiles(frames):
    several = [frames["parameters"].assign(profile=name) for name in ("first", "second")]
    html = render(calibration_page({"parameters": pd.concat(several)}, {}))
    for name in ("first", "second"):
        assert f'scope="rowgroup">{name}</th>' in html


# Ranking and counts


def test_the_ranking_is_the_same_only_if_every_place_is():
    assert same_ranking(ranks([1, 2, 3], [1, 2, 3])) is True
    assert same_ranking(ranks([1, 2, 3], [1, 3, 2])) is False
    assert same_ranking(ranks([1], [1])) is None
    assert same_ranking(ranks([1, NAN, 2], [1, 2, NAN])) is None


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (counts(), True),
        (counts(exact=5), False),
        (counts(extra=1), False),
        (counts(extra=1, exact=5, promise="at least once"), True),
        (counts(missing=1, exact=5, promise="at least once"), False),
        (counts(missing=1, exact=5, promise="at most once"), True),
        (counts(promise="best effort"), None),
        (counts(kills=0, exact=0), None),
    ],
)
def test_a_promise_is_kept_or_broken_by_the_real_counts(row, wanted):
    assert kept(row) is wanted


# Words


def test_the_verdict_says_every_part(frames):
    lines = verdict(frames["pairs"], frames["ranking"], frames["correctness"]).splitlines()
    assert lines == [
        "Without faults (2 held-out episodes a measure), predictions are off in the median by: "
        "batch duration 10 % (worst 10 %); aims met.",
        "Micro-batches after 3 held-out faults: off in the median by output gap 20 %; 2 of 3 figures "
        "lie in their 90 % interval; aims missed: output gap (coverage below 75 %).",
        "Source replay after 1 held-out fault: off in the median by catch-up ∞; 0 of 1 figures lie in "
        "their 90 % interval; aims missed: catch-up (median above 20 %, coverage below 75 %).",
        "3 of 6 held-out predictions failed; they are marked below.",
        "The simulation ranks the strategies by output gap otherwise than the real runs do: driver killed.",
        "The real counts broke the promise: source replay, driver killed (0 missing, 31 extra).",
    ]


def test_a_good_calibration_gets_a_good_verdict():
    text = verdict(table(steady(1.0, 1.05), pair(4.0, 4.1, 3.0, 5.0)), ranks([1, 2], [1, 2]), table(counts()))
    assert "aims missed" not in text
    assert "None of 2 held-out predictions failed." in text
    assert "is the same in the real runs and in the simulation" in text
    assert "exact after 6 of 6 faults where the strategy promises exactly once" in text


def test_without_held_out_pairs_the_verdict_says_so():
    text = verdict(table(pair(4.0, 4.1, held_out=False)), frame({}, "ranking"), frame({}, "correctness"))
    assert text.splitlines() == [
        "No held-out episode without a fault was compared.",
        "No held-out fault was compared.",
    ]


def test_a_leaning_of_the_residuals_is_said():
    """Five errors of −20 % at any rate: a bias, no trend."""
    told = unexplained(table(*(pair(10.0, 8.0, rate_per_s=100.0 * n) for n in range(1, 6))))
    assert told == (
        "Micro-batches, output gap: predicted too short in 5 of 5 episodes, by 20 % in the median.",
    )


def test_a_leaning_is_of_what_is_predicted_at_all():
    """Five errors of −20 %, and six episodes in which nothing is predicted."""
    rows = [pair(10.0, 8.0 if n < 5 else NAN, rate_per_s=100.0 * n, episode=n) for n in range(1, 12)]
    told = unexplained(table(*rows, pair(10.0, 8.0)))
    assert told == (
        "Micro-batches, output gap: nothing is predicted in 7 of 12 episodes: s1 #5, s1 #6, s1 #7, s1 #8, "
        "s1 #9, s1 #10 and 1 more.",
        "Micro-batches, output gap: predicted too short in 5 of 5 episodes, by 20 % in the median.",
    )


def test_a_trend_of_the_residuals_is_said():
    """Errors −2, −1, 0, 1, 2 % that rise with the rate: no bias, a rank correlation of 1."""
    told = unexplained(table(*(pair(100.0, 98.0 + n, rate_per_s=100.0 * (n + 1)) for n in range(5))))
    assert told == (
        "Micro-batches, output gap: the relative error rises with the input rate (rank correlation 1.00, "
        "n = 5).",
    )


def test_the_largest_residuals_come_first_and_small_ones_not_at_all(frames):
    told = unexplained(frames["pairs"])
    assert told == (
        "Source replay, catch-up: nothing is predicted in 1 of 1 episode: s1 #7.",
        "Micro-batches, executor killed at 2,000 rows/s (s1 #5, held out): output gap predicted 6.00 s, "
        "measured 4.00 s (+50 %).",
        "Micro-batches, executor killed at 1,000 rows/s (s1 #6, held out): output gap predicted 4.80 s, "
        "measured 4.00 s (+20 %), outside its interval of 4.20 to 5.40 s.",
    )
    many = table(*(pair(10.0, 20.0 + n * (-1) ** n, episode=n) for n in range(MOST_NAMED + 4)))
    assert sum("#" in text for text in unexplained(many)) == MOST_NAMED


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
    html = render(calibration_page(frames, {"Machine": "two cores"}, profile="name: mine"))
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
        "The profile",
    ):
        assert f">{heading}</h2>" in html, heading
    assert "two cores" in text
    assert text.count("NO (outside)") == 1
    assert text.count("NO (error)") == 1
    assert text.count("NO (nothing)") == 1
    assert re.findall(r"Figure (\d+)\.", text) == [str(n) for n in range(1, html.count("<figure>") + 1)]
    for column in (c for columns in CALIBRATION.values() for c in columns):
        assert column.name in text


def test_the_page_loads_nothing_and_is_the_same_every_time(frames):
    def draw():
        return render(calibration_page(frames, {"Seed": "1"}))

    html = draw()
    assert "http:" not in html
    assert "https:" not in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert html == draw()


def test_failed_predictions_stand_under_one_heading_each():
    mixed = table(*(pair(4.0, 9.0, measure=m, rate_per_s=r) for r in (2.0, 1.0) for m in ("a_s", "b_s")))
    text = shown(calibration_view({"pairs": mixed}), width=160)
    assert text.count("micro-batches: a") == text.count("micro-batches: b") == 1


def test_everything_is_escaped(frames):
    evil = {
        name: found.assign(
            **{c: EVIL for c in found.columns if c in ("session", "strategy", "meaning", "fault")}
        )
        for name, found in frames.items()
    }
    html = render(calibration_page(evil, {EVIL: EVIL}, title=EVIL, profile=EVIL, warnings=[EVIL]))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 10


def test_empty_sections_are_left_out(frames):
    html = render(calibration_page({"pairs": frames["pairs"]}, {}))
    assert "Measured beside predicted" in html
    for heading in ("Which strategy is ahead", "Are the counts right?", "one axis", "The profile", "Results"):
        assert f"{heading}</h2>" not in html
    assert "<figure>" in html
    assert "<figure>" not in render(calibration_page({}, {}))


@pytest.mark.parametrize("name", CALIBRATION)
def test_each_table_may_be_missing_or_alone(frames, name):
    others = {other: found for other, found in frames.items() if other != name}
    for part in ({name: frames[name]}, others, {**others, name: frames[name].head(0)}):
        assert "</html>" in render(calibration_page(part, {}))
        assert shown(calibration_view(part))


def test_one_strategy_and_one_pair_are_enough():
    html = render(calibration_page({"pairs": table(pair(4.0, 4.4, 3.0, 5.0))}, {}))
    assert "aims met" in html


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
    assert max(map(len, text.splitlines())) <= 100


def test_without_held_out_episodes_the_terminal_shows_those_of_the_fit(frames):
    text = shown(calibration_view({"pairs": frames["pairs"].assign(held_out=False)}))
    assert "Episodes that the fit has seen" in text
    assert "Held-out episodes" not in text


def test_the_tables_are_written_with_units_and_read_back(tmp_path, frames):
    write_all(tmp_path / "out", tables=frames, page=calibration_page(frames, {}))
    found = read_tables(tmp_path / "out")
    assert list(found) == list(CALIBRATION)
    assert found["pairs"]["held_out"].tolist() == frames["pairs"]["held_out"].tolist()
    assert found["pairs"]["measured"].tolist()[:3] == [1.0, 2.0, 2.0]
    pd.testing.assert_frame_equal(summary(found["pairs"]), summary(frames["pairs"]))
