"""Published figures, and what agrees with them."""

import math
import re

import numpy as np
import pytest

from tests.reports.made_up import fake_result
from tideover.reports.published import (
    agreeing,
    group,
    into_window,
    pair_recoveries,
    published,
    reproduction_table,
    required,
    uncut,
)


def test_every_table_names_its_source():
    assert len(published()) == 9
    for table in published():
        assert re.search(r"\d{4}", table.citation)
        assert table.where in table.source
        assert len(table.frame()) == len(table.rows)
    cell = group("stableford", "recovery").frame().query("strategy == 'rsm' and tuples_per_s == 20")
    assert cell[cell["fail_at_s"] == 30]["recovery_s"].item() == 1


def test_an_unknown_table_names_the_known_ones():
    with pytest.raises(ValueError, match=r"stableford\.recovery"):
        group("stableford", "speed")


@pytest.mark.parametrize(
    ("shown", "inside", "outside"),
    [(0, [0.0, 0.99], [1.0, 1.5]), (1, [0.01, 1.99], [0.0, 2.0]), (2, [1.01, 2.99], [1.0, 3.0])],
)
def test_what_agrees_at_the_logs_resolution(shown, inside, outside):
    assert all(value in agreeing(shown) for value in inside)
    assert not any(value in agreeing(shown) for value in outside)


def test_the_range_is_exactly_what_two_cut_stamps_can_show():
    """For any start and duration: the difference of the cut stamps is p if and only if some start gives p."""
    rng = np.random.default_rng(2)
    for start, length in zip(rng.uniform(0, 5, 2000), rng.uniform(0, 4, 2000), strict=True):
        shown = math.floor(start + length) - math.floor(start)
        assert length in agreeing(shown)


def test_source_replay_has_to_be_within_a_second_and_a_half():
    allowed = required("source_replay", 59)
    assert [seconds in allowed for seconds in (57.49, 57.5, 60.5, 60.51)] == [False, True, True, False]


@pytest.mark.parametrize(("at", "into"), [(65.0, 5.0), (90.0, 30.0), (60.000000001, 1e-9), (120.0, 30.0)])
def test_a_failure_at_a_windows_end_belongs_to_that_window(at, into):
    assert into_window(at, 30.0) == pytest.approx(into)


@pytest.fixture
def pairs(reproduction):
    return pair_recoveries(reproduction.cells)


def test_every_published_cell_has_a_row_and_so_has_every_simulated_one(pairs):
    assert len(pairs) == 18
    assert pairs["published_s"].notna().sum() == 12
    first = pairs.iloc[0]
    assert (first["strategy"], first["published_s"], first["n"]) == ("source_replay", 59, 10)
    assert first["error_s"] == pytest.approx(first["logged_s"] - 59)
    assert first["within"] is True


def test_a_wrong_figure_is_found_and_shown(reproduction):
    found = pair_recoveries(reproduction.cells.assign(state_recovery_s=30.0, restore_s=0.0, replay_s=30.0))
    assert not found["within"].dropna().any()
    table = reproduction_table(found, "t")
    assert table.rows[1][-1] == "NO 0/10"


def test_logs_cut_to_seconds_are_judged_by_what_they_hide(reproduction):
    """R+SM: 1.9 s, logged as 1, agrees with a published 2. Source replay: the logged figure itself counts."""
    cut = np.floor(reproduction.cells["state_recovery_s"])
    found = pair_recoveries(reproduction.cells.assign(state_recovery_s=cut))
    fast = found.query("strategy == 'rsm' and tuples_per_s == 20 and fail_at_s == 5").iloc[0]
    assert (fast["logged_s"], fast["published_s"], fast["within"]) == (1.0, 2.0, True)
    assert fast["simulated_s"] == pytest.approx(1.9, abs=0.1)
    slow = found.query("strategy == 'source_replay'")
    assert slow["logged_s"].between(59, 60).all()


def test_the_uncut_time_has_the_wait_for_the_timeout_in_it():
    """State recovery ends with the last replay, which the source's timeout is waited for: without cut logs it
    is what the stages restore, wait and replay add up to.
    """
    recoveries = fake_result("source_replay").recoveries
    assert (recoveries["wait_s"] > 0).all()
    assert uncut(recoveries).tolist() == pytest.approx(recoveries["state_recovery_s"].tolist(), abs=1e-9)


def test_what_was_not_simulated_is_undefined(reproduction):
    data = reproduction.cells
    found = pair_recoveries(data[data["strategy"] == "rsm"])
    missing = found[found["strategy"] == "source_replay"]
    assert missing["simulated_s"].isna().all()
    assert missing["within"].isna().all()
    assert missing["n"].eq(0).all()
