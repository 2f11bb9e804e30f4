"""Errors of predictions as defined, aims that are missed said, failed predictions never left out."""

import math

import pandas as pd
import pytest

from tests.reports.made_up import NAN, counts, every_table, pair, ranks, steady, table
from tideover.reports.calibration.page import MOST_NAMED, calibration_page, unexplained, verdict
from tideover.reports.calibration.tables import (
    frame,
    judged,
    kept,
    missed_aims,
    parameters_table,
    same_ranking,
    summary,
    summary_table,
)
from tideover.reports.columns import CALIBRATION
from tideover.reports.html import render


@pytest.fixture
def frames():
    return every_table()


# Pairs


def test_a_prediction_fails_outside_its_interval_or_beyond_thirty_percent():
    """Outside by a little; inside an interval that is too wide to say anything; just within; no interval."""
    found = judged(table(pair(4, 4.4, 4.1, 5), pair(4, 5.3, 1, 9), pair(4, 5.1, 4, 6), pair(4, 2.7)))
    assert found["covered"].tolist() == [False, True, True, None]
    assert found["failed"].tolist() == [True, True, False, True]


def test_what_the_simulation_never_ends_is_infinitely_far_off():
    """Others are off relative to what was measured."""
    found = judged(table(pair(4.0, NAN), pair(0.0, 1.0), pair(0.0, 0.0), pair(4.0, 5.0)))
    assert found["error"].tolist() == [math.inf, math.inf, 0.0, 0.25]
    assert found["failed"].tolist() == [True, True, False, False]
    assert found["covered"].tolist() == [False, None, None, None]


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
    always = [column.name for column in CALIBRATION["pairs"] if not column.optional]
    assert frame({}, "pairs").columns.tolist() == always
    short = table(pair(4.0, 5.0)).drop(columns=["moment_s", "low", "high", "held_out"])
    found = judged(short)
    assert found["held_out"].tolist() == [False]
    assert found["covered"].tolist() == [None]
    # A fixed set of words has no number of keys.
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


def test_a_good_calibration_gets_a_good_verdict_and_one_without_held_out_pairs_none():
    text = verdict(table(steady(1.0, 1.05), pair(4.0, 4.1, 3.0, 5.0)), ranks([1, 2], [1, 2]), table(counts()))
    assert "aims missed" not in text
    assert "None of 2 held-out predictions failed." in text
    assert "is the same in the real runs and in the simulation" in text
    assert "exact after 6 of 6 faults where the strategy promises exactly once" in text

    seen = verdict(table(pair(4.0, 4.1, held_out=False)), frame({}, "ranking"), frame({}, "correctness"))
    without = ["No held-out episode without a fault was compared.", "No held-out fault was compared."]
    assert seen.splitlines() == without


def test_a_leaning_of_the_residuals_is_said_of_what_is_predicted_at_all():
    """Five errors of −20 % at any rate: a bias, no trend; also beside seven episodes without a prediction."""
    leaning = "Micro-batches, output gap: predicted too short in 5 of 5 episodes, by 20 % in the median."
    rows = [pair(10.0, 8.0, rate_per_s=100.0 * n, episode=n) for n in range(5)]
    assert unexplained(table(*rows)) == (leaning,)
    more = [pair(10.0, NAN, rate_per_s=100.0 * n, episode=n) for n in range(5, 12)]
    assert unexplained(table(*rows, *more)) == (
        "Micro-batches, output gap: nothing is predicted in 7 of 12 episodes: s1 #5, s1 #6, s1 #7, s1 #8, "
        "s1 #9, s1 #10 and 1 more.",
        leaning,
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
