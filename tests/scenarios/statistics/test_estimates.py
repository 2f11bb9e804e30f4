"""Means, paired differences and quantiles, and their intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import stdtrit

from tideover.scenarios.statistics import intervals as module
from tideover.scenarios.statistics.intervals import (
    AT_95,
    estimate,
    paired,
    paired_in_groups,
    quantile_interval,
    t_quantile,
)

NAN = float("nan")
DRAWS = np.random.default_rng(7).normal(57.8, 1.0, 10)


def test_the_t_interval_is_scipys():
    wanted = stats.ttest_1samp(DRAWS, 0).confidence_interval(0.95)
    assert estimate(DRAWS).t == pytest.approx((wanted.low, wanted.high), rel=1e-12)


def test_the_bootstrap_interval_is_near_scipys():
    wanted = stats.bootstrap(
        (DRAWS,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert estimate(DRAWS).bootstrap == pytest.approx((wanted.low, wanted.high), abs=0.03)


def test_the_bootstrap_is_the_same_each_time():
    assert estimate(DRAWS) == estimate(list(DRAWS))


@pytest.mark.parametrize(("values", "n", "undefined"), [([], 0, 0), ([NAN, None], 0, 2), ([3.0], 1, 0)])
def test_too_few_values_have_no_interval(values, n, undefined):
    found = estimate(values)
    assert (found.n, found.undefined, found.t, found.bootstrap) == (n, undefined, None, None)


def test_a_large_sample_is_not_too_much():
    found = estimate(np.arange(200_000.0))
    assert found.bootstrap == pytest.approx(found.t, rel=1e-5)


def test_what_is_said_of_students_t_is_what_scipy_finds():
    """Also for what is not written down: more degrees of freedom, another level, an array of them."""
    for freedom in range(1, len(AT_95) + 3):
        assert t_quantile(freedom, 0.95) == stdtrit(freedom, 0.975)
    assert t_quantile(4, 0.9) == stdtrit(4, 0.95)
    assert t_quantile(np.array([1, 2]), 0.95).tolist() == stdtrit([1, 2], 0.975).tolist()


TIME = "time_to_recover_s"


def frame(values: dict[str, list[float]]) -> pd.DataFrame:
    fault = {"seed": 1, "kind": "lose_state", "component": "count", "failed_at_s": 75.0}
    rows = [
        {"strategy": strategy, "replication": replication, TIME: value} | fault
        for strategy, series in values.items()
        for replication, value in enumerate(series)
    ]
    return pd.DataFrame(rows)


def test_swapping_the_strategies_swaps_the_sign():
    data = frame({"rsm": list(DRAWS * 0), "source_replay": list(DRAWS)})
    there = paired(data, "rsm", "source_replay", TIME)[0].difference
    back = paired(data, "source_replay", "rsm", TIME)[0].difference
    assert there.mean == -back.mean
    assert there.t == (-back.t[1], -back.t[0])
    assert there.bootstrap == (-back.bootstrap[1], -back.bootstrap[0])


def test_pairs_remove_the_luck_that_both_share():
    data = frame({"rsm": list(DRAWS - 57.8), "source_replay": list(DRAWS)})
    found = paired(data, "rsm", "source_replay", TIME)[0].difference
    assert found.mean == pytest.approx(-57.8)
    assert found.std == pytest.approx(0.0, abs=1e-9)


def test_the_order_of_rows_does_not_matter():
    data = frame({"rsm": list(DRAWS * 0.01), "source_replay": list(DRAWS)})
    shuffled = data.sample(frac=1, random_state=3)
    pair = paired(data, "rsm", "source_replay", TIME)[0]
    assert paired(shuffled, "rsm", "source_replay", TIME)[0] == pair


def test_several_failures_of_a_replication_make_one_pair():
    first = frame({"rsm": [1.0, 2.0], "none": [3.0, 5.0]})
    later = frame({"rsm": [2.0, 2.0], "none": [4.0, 7.0]}).assign(failed_at_s=105.0)
    data = pd.concat([first, later])
    found = paired(data, "rsm", "none", TIME)[0].difference
    assert (found.n, found.mean) == (2, pytest.approx((-2.0 - 4.0) / 2))


def test_what_has_no_partner_is_counted_and_left_out():
    data = frame({"rsm": [1.0, 1.0, 1.0], "none": [2.0, 2.0]})
    found = paired(data, "rsm", "none", TIME)[0]
    assert (found.difference.n, found.unmatched) == (2, 1)


RATE, INTERVAL = "topology.sentences.rate", "strategy.checkpoint_interval"


def swept(n: int = 12) -> pd.DataFrame:
    """Two rates and two intervals: the longer interval costs 4 s more, at the high rate 9 s more."""
    luck = np.random.default_rng(3).gamma(4, 10, n)
    rows = [
        {RATE: rate, INTERVAL: interval, "strategy": "rsm", "seed": 1, "replication": r, "kind": "crash_task"}
        | {"component": "count", "failed_at_s": 70.0 + r, TIME: luck[r] + more}
        for rate, interval, more in [("5/s", 1, 0), ("5/s", 2, 4), ("50/s", 1, 20), ("50/s", 2, 29)]
        for r in range(n)
    ]
    return pd.DataFrame(rows)


def test_pairs_of_any_factor_share_all_others():
    """Both rates make pairs: half of the replications differ by 4 s, half by 9 s."""
    found = paired(swept(), 2, 1, TIME, key=INTERVAL)[0]
    assert (found.difference.n, found.unmatched, found.difference.mean) == (24, 0, pytest.approx(6.5))
    back = paired(swept(), 1, 2, TIME, key=INTERVAL)[0].difference
    assert back.t == (-found.difference.t[1], -found.difference.t[0])
    alone = swept().query(f"`{RATE}` == '50/s'")  # the high rate: 9 s apart
    assert paired(alone, 2, 1, TIME, key=INTERVAL)[0].difference.mean == pytest.approx(9)
    assert paired(swept(), "50/s", "5/s", TIME, key=RATE)[0].difference.mean == pytest.approx(22.5)


def test_without_the_bootstrap_the_rest_is_the_same():
    one, other = (
        paired(swept(), 2, 1, TIME, key=INTERVAL, resample=way)[0].difference for way in (True, False)
    )
    assert (one.t, one.mean, other.bootstrap) == (other.t, other.mean, None)


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
def test_many_groups_at_once_are_each_by_itself(pair):
    """The same figures to the last bit as ``paired`` has of the rows of each group."""
    every = grouped(20)
    found = paired_in_groups(every, *pair, "x", "group", key="strategy")
    alone = {number: paired(rows, *pair, "x", resample=False)[0] for number, rows in every.groupby("group")}
    assert found == alone
    assert {one.difference.undefined > 0 for one in found.values()} == {True, False}
    assert found[19].unmatched > 0


def test_groups_without_any_pair_have_no_difference():
    alone = grouped(3)
    alone = alone[alone["strategy"] == "a"]
    found = paired_in_groups(alone, "a", "b", "x", "group", key="strategy")
    assert [(one.difference.n, one.difference.mean, one.unmatched) for one in found.values()] == [
        (0, None, 4)
    ] * 3


def test_groups_are_not_matched_one_by_one(monkeypatch):
    """Matching rows is what takes time: a sweep of a thousand pairs of points stood still for minutes."""
    calls = []
    matched = module._matched
    monkeypatch.setattr(module, "_matched", lambda *given: calls.append(1) or matched(*given))
    for groups in (2, 40):
        paired_in_groups(grouped(groups), "a", "b", "x", "group", key="strategy")
    assert len(calls) == 2


def test_columns_that_are_matched_together_come_out_as_each_alone():
    """Also where a value is missing in one column, and another in the other."""
    data = frame({"rsm": [1.0, np.nan, 3.0, 0.5], "none": [4.0, 5.0, 7.0, 6.0]})
    data["catch_up_s"] = [2.0, 3.0, np.nan, 1.0, 2.5, 1.0, 4.0, np.nan]
    columns = [TIME, "catch_up_s"]
    for first, second in (("rsm", "none"), ("none", "rsm")):
        together = paired(data, first, second, *columns)
        assert together == [paired(data, first, second, column)[0] for column in columns]
        assert [pair.difference.undefined for pair in together] == [1, 2]


@given(st.integers(2, 150), st.sampled_from([0.05, 0.25, 0.5, 0.9, 0.95, 0.99]))
def test_limits_lie_between_two_neighbours_of_which_one_covers_enough(n, q):
    """Values 1 … n are their own ranks. That the r-th is below the quantile has the chance of at least r
    successes; the limit is at or above the last rank for which that is 97.5 %, and below the next.
    """
    low, high = quantile_interval(range(1, n + 1), q)
    enough = [r for r in range(1, n + 1) if stats.binom.sf(r - 1, n, q) >= 0.975]
    assert (low is None) == (not enough)
    if low is not None:
        assert enough[-1] <= low <= enough[-1] + 1
    above = [r for r in range(1, n + 1) if stats.binom.cdf(r - 1, n, q) >= 0.975]
    assert (high is None) == (not above)
    if high is not None:
        assert above[0] - 1 <= high <= above[0]


@given(st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=40), st.sampled_from([0.3, 0.5, 0.8]))
def test_negative_values_mirror_the_interval(values, q):
    (low, _), (_, high) = quantile_interval(values, q), quantile_interval([-v for v in values], 1 - q)
    assert low == (None if high is None else pytest.approx(-high))


def test_the_median_is_interpolated_as_hettmansperger_and_sheather_do():
    """n = 10: the 2nd to the 9th value cover 1 - 2 * 11/1024, the 3rd to the 8th 1 - 2 * 56/1024. With
    I = (0.97852 - 0.95) / (0.97852 - 0.89063) the weight of the 3rd is (10 - 2) I / (2 + (10 - 4) I).
    """
    part = ((1 - 22 / 1024) - 0.95) / (90 / 1024)
    weight = 8 * part / (2 + 6 * part)
    found = quantile_interval(np.arange(1, 11), 0.5)
    assert found == pytest.approx((2 + weight, 9 - weight))


@pytest.mark.parametrize(("q", "least"), [(0.5, 6), (0.9, 36), (0.95, 72)])
def test_fewer_values_than_it_takes_have_no_upper_limit(q, least):
    """q to the power n is the chance that all values are below the quantile: it must not exceed 2.5 %."""
    assert quantile_interval(range(least - 1), q)[1] is None
    assert quantile_interval(range(least), q)[1] is not None


def test_a_quantile_is_of_a_part():
    with pytest.raises(ValueError, match="less than 1"):
        quantile_interval([1.0], 1.0)


@given(st.lists(st.floats(-10, 10), min_size=6, max_size=90), st.integers(0, 90), st.sampled_from([0.5, 0.9]))
def test_infinite_values_are_only_the_last(values, never, q):
    """As many very late ones in their place give the same figures, until these are very late or infinite."""
    never = min(never, len(values))
    late, infinite = ([*values[never:], *[end] * never] for end in (1e9, np.inf))
    there, here = quantile_interval(late, q, 0.9), quantile_interval(infinite, q, 0.9)
    for one, other in zip(there, here, strict=True):
        assert other == (one if one is None or one <= 10 else pytest.approx(one) if other < 1e9 else np.inf)


def test_a_higher_level_takes_a_wider_interval():
    """n = 10 and the median: the 2nd to the 9th value cover 97.9 %, the 1st and the last 99.8 %."""
    found = [quantile_interval(range(1, 11), 0.5, level) for level in (0.9, 0.95, 1 - 22 / 1024, 0.99)]
    assert [low for low, _ in found] == sorted((low for low, _ in found), reverse=True)
    assert found[2] == pytest.approx((2, 9))
