"""Paired differences: the luck that both sides share is gone, and a pair is one replication."""

import numpy as np
import pandas as pd
import pytest

from tideover.scenarios.statistics import intervals as module
from tideover.scenarios.statistics.intervals import paired, paired_columns, paired_in_groups, paired_quantiles

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


RATE, INTERVAL = "topology.sentences.rate", "strategy.checkpoint_interval"


def swept(n: int = 12) -> pd.DataFrame:
    """Two rates and two intervals: the longer interval costs 4 s more, at the high rate 9 s more."""
    luck = np.random.default_rng(3).gamma(4, 10, n)
    rows = [
        {RATE: rate, INTERVAL: interval, "strategy": "rsm", "seed": 1, "replication": r, "kind": "crash_task"}
        | {"component": "count", "failed_at_s": 70.0 + r, "time_to_recover_s": luck[r] + more}
        for rate, interval, more in [("5/s", 1, 0), ("5/s", 2, 4), ("50/s", 1, 20), ("50/s", 2, 29)]
        for r in range(n)
    ]
    return pd.DataFrame(rows)


def test_pairs_of_any_factor_share_all_others() -> None:
    """Both rates make pairs: half of the replications differ by 4 s, half by 9 s."""
    found = paired(swept(), 2, 1, "time_to_recover_s", key=INTERVAL)
    assert (found.difference.n, found.unmatched, found.difference.mean) == (24, 0, pytest.approx(6.5))
    back = paired(swept(), 1, 2, "time_to_recover_s", key=INTERVAL).difference
    assert back.t == (-found.difference.t[1], -found.difference.t[0])
    alone = swept().query(f"`{RATE}` == '50/s'")
    assert paired(alone, 2, 1, "time_to_recover_s", key=INTERVAL).difference.mean == pytest.approx(9)
    assert paired(swept(), "50/s", "5/s", "time_to_recover_s", key=RATE).difference.mean == pytest.approx(
        22.5
    )


def test_without_the_bootstrap_the_rest_is_the_same() -> None:
    one, other = (
        paired(swept(), 2, 1, "time_to_recover_s", key=INTERVAL, resample=way).difference
        for way in (True, False)
    )
    assert (one.t, one.mean, other.bootstrap) == (other.t, other.mean, None)


def test_a_shift_of_all_values_is_a_shift_of_their_quantiles() -> None:
    """All of a side are 9 s longer, whatever their luck: so is each quantile, and nothing is uncertain."""
    alone = swept(80).query(f"`{RATE}` == '50/s'")
    for q in (0.5, 0.9):
        found = paired_quantiles(alone, 2, 1, "time_to_recover_s", q, key=INTERVAL)
        assert (found.n, found.value, found.low, found.high) == pytest.approx((80, 9, 9, 9))
        back = paired_quantiles(alone, 1, 2, "time_to_recover_s", q, key=INTERVAL)
        assert (back.value, back.low, back.high) == pytest.approx((-9, -9, -9))


def test_quantiles_of_few_pairs_have_no_interval() -> None:
    alone = swept(30).query(f"`{RATE}` == '50/s'")
    found = paired_quantiles(alone, 2, 1, "time_to_recover_s", 0.95, key=INTERVAL)
    assert (found.value, found.low, found.high) == (pytest.approx(9), None, None)


def test_what_is_undefined_on_one_side_is_left_out_of_both() -> None:
    alone = swept(40).query(f"`{RATE}` == '50/s'")
    alone.loc[(alone[INTERVAL] == 2) & (alone["replication"] < 3), "time_to_recover_s"] = float("nan")
    found = paired_quantiles(alone, 2, 1, "time_to_recover_s", 0.5, key=INTERVAL)
    assert (found.n, found.undefined, found.value) == (37, 3, pytest.approx(9))


def grouped(groups: int) -> pd.DataFrame:
    """Two failures in each of four replications of each group, under two strategies; some are undefined, some
    have no partner, and the last group has one strategy alone.
    """
    rng = np.random.default_rng(groups)
    rows = [
        {"group": group, "strategy": kind, "seed": 1, "replication": number, "kind": "crash", "x": x}
        for group in range(groups)
        for kind in ("a", "b")
        for number in range(4)
        for x in np.where(rng.random(2) < 0.1, np.nan, rng.random(2))
    ]
    frame = pd.DataFrame(rows)[rng.random(len(rows)) < 0.9]
    return frame[(frame["group"] < groups - 1) | (frame["strategy"] == "a")]


@pytest.mark.parametrize("pair", [("a", "b"), ("b", "a")])
def test_many_groups_at_once_are_each_by_itself(pair: tuple[str, str]) -> None:
    """The same figures to the last bit as ``paired`` has of the rows of each group."""
    every = grouped(20)
    found = paired_in_groups(every, *pair, "x", "group", key="strategy")
    alone = {number: paired(rows, *pair, "x", resample=False) for number, rows in every.groupby("group")}
    assert found == alone
    assert {one.difference.undefined > 0 for one in found.values()} == {True, False}
    assert found[19].unmatched > 0


def test_groups_without_any_pair_have_no_difference() -> None:
    alone = grouped(3)
    alone = alone[alone["strategy"] == "a"]
    found = paired_in_groups(alone, "a", "b", "x", "group", key="strategy")
    assert [(one.difference.n, one.difference.mean, one.unmatched) for one in found.values()] == [
        (0, None, 4)
    ] * 3


def test_groups_are_not_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matching rows is what takes time: a sweep of a thousand pairs of points stood still for minutes."""
    calls = []
    matched = module._matched
    monkeypatch.setattr(module, "_matched", lambda *given: calls.append(1) or matched(*given))
    for groups in (2, 40):
        paired_in_groups(grouped(groups), "a", "b", "x", "group", key="strategy")
    assert len(calls) == 2


def test_columns_that_are_matched_together_come_out_as_each_alone() -> None:
    """Also where a value is missing in one column, and another in the other."""
    data = frame({"rsm": [1.0, np.nan, 3.0, 0.5], "none": [4.0, 5.0, 7.0, 6.0]})
    data["catch_up_s"] = [2.0, 3.0, np.nan, 1.0, 2.5, 1.0, 4.0, np.nan]
    columns = ["time_to_recover_s", "catch_up_s"]
    for first, second in (("rsm", "none"), ("none", "rsm")):
        together = paired_columns(data, first, second, columns)
        assert together == [paired(data, first, second, column) for column in columns]
        assert [pair.difference.undefined for pair in together] == [1, 2]
