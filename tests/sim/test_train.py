"""The order of tuples in time: where trains are merged, and before cards."""

from __future__ import annotations

import numpy as np
import pytest

from tideover.sim.train import ROWS, RUNS, Ints, Train, merge, rising

S = 1_000_000_000


def runs(number: int, each: int, span: int, seed: int) -> list[Ints]:
    """So many rising runs of times in ``span`` (ns), far from 0."""
    draw = np.random.default_rng(seed)
    return [np.sort(draw.integers(0, span, each)) + 3_000 * S for _ in range(number)]


@pytest.mark.parametrize("span", [0, 40, 65_535, 65_536, 1 << 20, (1 << 32) - 1, 1 << 32, 1 << 40])
@pytest.mark.parametrize(("number", "each"), [(1, ROWS), (2, ROWS), (RUNS + 2, 3), (3 * RUNS, ROWS // 8)])
def test_rows_rise_and_ties_stand(number: int, each: int, span: int) -> None:
    """By time, then by place: what Python's own stable sort gives, for few runs and many, for ties in all of
    the bits or in the upper half alone, and for spans with more bits than two radix sorts have.
    """
    time = np.concatenate(runs(number, each, span + 1, seed=span % 1000 + number))
    assert rising(time).tolist() == sorted(range(len(time)), key=time.tolist().__getitem__)


def test_of_many_trains_a_tie_goes_to_the_earlier_one() -> None:
    """100 trains of 10 tuples each at 1, 2, …, 10 s: first all that come at 1 s, in the trains' order, and so
    on.
    """
    time = np.arange(1, 11, dtype=np.int64) * S
    trains = [Train(time, np.full(10, number), time, time) for number in range(100)]
    merged = merge(trains)
    assert merged.time.tolist() == np.repeat(time, 100).tolist()
    assert merged.uid.tolist() == list(range(100)) * 10
