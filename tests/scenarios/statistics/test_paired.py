"""Paired differences: the luck that both sides share is gone, and a pair is one replication."""

import numpy as np
import pandas as pd
import pytest

from tideover.scenarios.statistics.paired import paired

DRAWS = np.random.default_rng(7).normal(57.8, 1.0, 10)


def frame(values: dict[str, list[float]]) -> pd.DataFrame:
    fault = {"seed": 1, "kind": "lose_state", "component": "count", "failed_at_s": 75.0}
    rows = [
        {"strategy": strategy, "replication": replication, "time_to_recover_s": value} | fault
        for strategy, series in values.items()
        for replication, value in enumerate(series)
    ]
    return pd.DataFrame(rows)


def test_swapping_the_strategies_swaps_the_sign():
    data = frame({"rsm": list(DRAWS * 0), "source_replay": list(DRAWS)})
    there = paired(data, "rsm", "source_replay", "time_to_recover_s").difference
    back = paired(data, "source_replay", "rsm", "time_to_recover_s").difference
    assert there.mean == -back.mean
    assert there.t == (-back.t[1], -back.t[0])
    assert there.bootstrap == (-back.bootstrap[1], -back.bootstrap[0])


def test_pairs_remove_the_luck_that_both_share():
    data = frame({"rsm": list(DRAWS - 57.8), "source_replay": list(DRAWS)})
    found = paired(data, "rsm", "source_replay", "time_to_recover_s").difference
    assert found.mean == pytest.approx(-57.8)
    assert found.std == pytest.approx(0.0, abs=1e-9)


def test_the_order_of_rows_does_not_matter():
    data = frame({"rsm": list(DRAWS * 0.01), "source_replay": list(DRAWS)})
    shuffled = data.sample(frac=1, random_state=3)
    pair = paired(data, "rsm", "source_replay", "time_to_recover_s")
    assert paired(shuffled, "rsm", "source_replay", "time_to_recover_s") == pair


def test_several_failures_of_a_replication_make_one_pair():
    first, later = (
        frame({"rsm": [1.0, 2.0], "none": [3.0, 5.0]}),
        frame({"rsm": [2.0, 2.0], "none": [4.0, 7.0]}),
    )
    data = pd.concat([first, later.assign(failed_at_s=105.0)])
    found = paired(data, "rsm", "none", "time_to_recover_s").difference
    assert (found.n, found.mean) == (2, pytest.approx((-2.0 - 4.0) / 2))


def test_what_has_no_partner_is_counted_and_left_out():
    data = frame({"rsm": [1.0, 1.0, 1.0], "none": [2.0, 2.0]})
    found = paired(data, "rsm", "none", "time_to_recover_s")
    assert (found.difference.n, found.unmatched) == (2, 1)
