"""What is normal: the band around what would have been, and the first calm stretch in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tideover.models.evaluation.curves import (
    CALM,
    SLACK,
    first_calm,
    greatest_near,
    least_near,
    reach_of,
    too_high,
)
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

COUNTS = arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 50))
FOUR = CALM // SLOT


@given(COUNTS, st.integers(0, 70))
def test_greatest_and_least_near_are_those_of_the_neighbours(values: np.ndarray, reach: int) -> None:
    """Element by element, by the plain definition."""
    near = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    assert greatest_near(values, reach).tolist() == [part.max() for part in near]
    assert least_near(values, reach).tolist() == [part.min() for part in near]


@given(COUNTS, st.integers(0, 10**11), st.integers(1, 3))
def test_what_would_have_been_is_never_too_high(backlog: np.ndarray, beat: int, spouts: int) -> None:
    """A run that its failures do not change is normal all the time."""
    assert not too_high(backlog, backlog, beat, spouts).any()


@pytest.mark.parametrize(("usual", "most"), [(0, 2), (4, 6), (8, 10), (100, 125), (1000, 1250)])
def test_a_quarter_more_is_normal_and_so_is_a_root_for_each_spout(usual: int, most: int) -> None:
    """Two spouts: up to 2 more, or a quarter more, whichever is the greater."""
    without = np.full(3, usual)
    assert too_high(np.array([most, most + 1, most]), without, 0, 2).tolist() == [False, True, False]


def test_what_recurs_may_come_at_another_moment() -> None:
    """A stall of 100 once in 60 s: normal anywhere if it is the job's own beat; else within 4 s of it
    only.
    """
    without = np.zeros(12_000, np.int64)
    without[6000] = 100
    shifted = np.roll(without, 4000)
    assert too_high(shifted, without, 0, 1)[10_000]
    assert not too_high(shifted, without, 60 * S, 1).any()
    near = np.roll(without, 400)
    assert not too_high(near, without, 0, 1).any()
    assert reach_of(0) == CALM
    assert reach_of(60 * S) == 120 * S


@given(arrays(np.bool_, st.integers(1, 2000), elements=st.booleans()), st.integers(0, 1999))
def test_before_the_first_calm_there_is_none(noise: np.ndarray, begin: int) -> None:
    """By the plain definition, on abnormal slots that are spread so thinly that calm stretches occur."""
    abnormal = np.repeat(noise, 7)
    abnormal[::3] = False
    begin = min(begin, len(abnormal) - 1)
    end = len(abnormal)

    def calm(at: int) -> bool:
        need = FOUR + 1 if at + FOUR < end else S // SLOT + 1
        return end - at >= need and not abnormal[at : at + FOUR + 1].any()

    expected = next((at for at in range(begin, end) if calm(at)), None)
    assert first_calm(abnormal, begin, 0) == expected


def test_calm_lasts_for_a_batch_at_least() -> None:
    """Ten seconds of calm are not enough where a batch takes 20 s: its backlog may still rise too high."""
    abnormal = np.zeros(6000, np.bool_)
    abnormal[1000] = True
    assert first_calm(abnormal, 0, 0) == 0
    assert first_calm(abnormal, 0, 20 * S) == 1001
    assert first_calm(abnormal, 0, 60 * S) is None


def test_the_tolerance_is_the_one_that_is_told() -> None:
    """docs/semantics.md states it in these words."""
    assert (SLACK, CALM) == (1.25, 4 * S)
