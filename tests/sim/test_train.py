"""The order of tuples in time, where trains are merged."""

from __future__ import annotations

import numpy as np

from tideover.sim.train import Train, merge

S = 1_000_000_000


def test_of_many_trains_a_tie_goes_to_the_earlier_one() -> None:
    """100 trains of 10 tuples each at 1, 2, …, 10 s: first all that come at 1 s, in the trains' order, and so
    on.
    """
    time = np.arange(1, 11, dtype=np.int64) * S
    trains = [Train(time, np.full(10, number), time, time) for number in range(100)]
    merged = merge(trains)
    assert merged.time.tolist() == np.repeat(time, 100).tolist()
    assert merged.uid.tolist() == list(range(100)) * 10
