"""Intervals, paired differences, and the sentence that is read off them."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tideover.reports.estimates import estimate
from tideover.reports.paired import paired
from tideover.reports.verdict import COMPARED, run_sentence, verdict

NAN = float("nan")


def frame(values: dict[str, list[float]], column: str = "catch_up_s") -> pd.DataFrame:
    rows = [
        {
            "strategy": s,
            "seed": 1,
            "replication": r,
            "kind": "lose_state",
            "component": "count",
            "failed_at_s": 75.0,
        }
        | dict.fromkeys(COMPARED, 1.0)
        | {column: value, "replayed": 10}
        for s, series in values.items()
        for r, value in enumerate(series)
    ]
    return pd.DataFrame(rows)


def runs(strategies: list[str], n: int, network=100, cpu=1.0, store=0, lost=0, wrong=0) -> pd.DataFrame:
    def of(value, strategy):
        return value[strategy] if isinstance(value, dict) else value

    rows = [
        {
            "strategy": s,
            "seed": 1,
            "replication": r,
            "error": None,
            "network_bytes": of(network, s),
            "cpu_s": of(cpu, s),
            "store_bytes": of(store, s),
            "lost": of(lost, s),
            "emitted": 1000,
            "windows_emitted": 8,
            "windows_wrong": of(wrong, s),
        }
        for s in strategies
        for r in range(n)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def draws():
    return np.random.default_rng(7).normal(57.8, 1.0, 10)


def test_the_t_interval_is_scipys(draws):
    wanted = stats.ttest_1samp(draws, 0).confidence_interval(0.95)
    assert estimate(draws).t == pytest.approx((wanted.low, wanted.high), rel=1e-12)


def test_the_bootstrap_interval_is_near_scipys(draws):
    wanted = stats.bootstrap(
        (draws,), np.mean, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert estimate(draws).bootstrap == pytest.approx((wanted.low, wanted.high), abs=0.03)


def test_the_bootstrap_is_the_same_each_time(draws):
    assert estimate(draws) == estimate(list(draws))


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    covered = sum(low <= 0 <= high for low, high in (estimate(rng.normal(size=8)).t for _ in range(400)))
    assert 0.92 < covered / 400 < 0.98


@pytest.mark.parametrize(("values", "n", "undefined"), [([], 0, 0), ([NAN, None], 0, 2), ([3.0], 1, 0)])
def test_too_few_values_have_no_interval(values, n, undefined):
    found = estimate(values)
    assert (found.n, found.undefined, found.t, found.bootstrap) == (n, undefined, None, None)


def test_a_large_sample_is_not_too_much():
    found = estimate(np.arange(200_000.0))
    assert found.bootstrap == pytest.approx(found.t, rel=1e-5)


# Pairs


def test_swapping_the_strategies_swaps_the_sign(draws):
    data = frame({"rsm": list(draws * 0), "source_replay": list(draws)})
    there = paired(data, "rsm", "source_replay", "catch_up_s").difference
    back = paired(data, "source_replay", "rsm", "catch_up_s").difference
    assert there.mean == -back.mean
    assert there.t == (-back.t[1], -back.t[0])
    assert there.bootstrap == (-back.bootstrap[1], -back.bootstrap[0])


def test_pairs_remove_the_luck_that_both_share(draws):
    data = frame({"rsm": list(draws - 57.8), "source_replay": list(draws)})
    found = paired(data, "rsm", "source_replay", "catch_up_s").difference
    assert found.mean == pytest.approx(-57.8)
    assert found.std == pytest.approx(0.0, abs=1e-9)


def test_the_order_of_rows_does_not_matter(draws):
    data = frame({"rsm": list(draws * 0.01), "source_replay": list(draws)})
    shuffled = data.sample(frac=1, random_state=3)
    pair = paired(data, "rsm", "source_replay", "catch_up_s")
    assert paired(shuffled, "rsm", "source_replay", "catch_up_s") == pair


def test_several_failures_of_a_replication_make_one_pair():
    first, later = (
        frame({"rsm": [1.0, 2.0], "none": [3.0, 5.0]}),
        frame({"rsm": [2.0, 2.0], "none": [4.0, 7.0]}),
    )
    data = pd.concat([first, later.assign(failed_at_s=105.0)])
    found = paired(data, "rsm", "none", "catch_up_s").difference
    assert (found.n, found.mean) == (2, pytest.approx((-2.0 - 4.0) / 2))


def test_what_has_no_partner_is_counted_and_left_out():
    data = frame({"rsm": [1.0, 1.0, 1.0], "none": [2.0, 2.0]})
    found = paired(data, "rsm", "none", "catch_up_s")
    assert (found.difference.n, found.unmatched) == (2, 1)


# The sentence


def test_the_sentence(draws):
    n = len(draws)
    data = frame({"source_replay": list(draws + 0.2), "rsm": [0.2] * n})
    network = {"source_replay": 100, "rsm": 130}
    found = verdict(data, runs(["source_replay", "rsm"], n, network=network))
    low, high = stats.ttest_1samp(draws, 0).confidence_interval(0.95)
    assert found.sentence == (
        f"R+SM has caught up {draws.mean():.1f} s sooner after a failure than source replay "
        f"(95 % interval {low:.1f} to {high:.1f} s, 10 pairs); it costs 1.3 times the network bytes."
    )
    assert (found.reference, found.best) == ("source_replay", "rsm")


def test_it_is_one_sentence(four, joined):
    text = verdict(joined(four, "recoveries"), joined(four, "runs")).sentence
    assert text.endswith(".")
    assert not re.search(r"[.!?]\s+[A-Z]", text)
    assert "\n" not in text


def test_too_few_pairs_are_admitted():
    one = verdict(frame({"source_replay": [60.0], "rsm": [0.5]}), runs(["source_replay", "rsm"], 1)).sentence
    assert "(1 pair, so no interval)" in one
    data = frame({"source_replay": [60.0, 61.0, 60.0], "rsm": [0.5, 0.4, 0.6]})
    assert "only 3 pairs" in verdict(data, runs(["source_replay", "rsm"], 3)).sentence


def test_zero_variance_is_said_and_not_dressed_as_an_interval():
    data = frame({"source_replay": [60.0] * 10, "rsm": [0.5] * 10})
    text = verdict(data, runs(["source_replay", "rsm"], 10)).sentence
    assert "59.5 s sooner after a failure than source replay (the same in all 10 pairs)" in text
    assert "interval" not in text


def test_no_difference_is_not_sold_as_one():
    rng = np.random.default_rng(5)
    same = rng.normal(10, 1, 10)
    data = frame({"source_replay": list(same), "rsm": list(same + rng.normal(0, 1, 10))})
    assert "cannot be told apart" in verdict(data, runs(["source_replay", "rsm"], 10)).sentence
    equal = frame({"source_replay": [60.0] * 10, "rsm": [60.0] * 10})
    sentence = verdict(equal, runs(["source_replay", "rsm"], 10)).sentence
    assert "have caught up equally soon in all 10 pairs" in sentence


def test_no_backlog_is_not_a_time_to_subtract():
    data = frame({"source_replay": [60.0] * 6, "active_replication": [0.0] * 6})
    text = verdict(data, runs(["source_replay", "active_replication"], 6)).sentence
    assert text.startswith(
        "Active replication has no backlog after a failure, where source replay has caught up 60.0 s after a "
        "failure (the same in all 6 replications)"
    )


def test_what_replays_nothing_is_judged_by_its_backlog():
    """Micro-batches stand still and work it off: that nothing is replayed is no recovery in no time."""
    data = frame({"rsm": [3.0] * 6, "micro_batch": [10.7] * 6})
    data.loc[data.strategy == "micro_batch", ["state_recovery_s", "replayed"]] = (NAN, 0)
    found = verdict(data, runs(["micro_batch", "rsm"], 6))
    assert found.best == "rsm"
    assert "R+SM has caught up 7.7 s sooner after a failure than micro-batches" in found.sentence


def test_undefined_pairs_are_counted():
    data = frame({"source_replay": [60.0, 61.0, NAN, 60.0, 59.0, 60.5], "rsm": [0.5] * 6})
    assert (
        "5 pairs, 1 more undefined and left out" in verdict(data, runs(["source_replay", "rsm"], 6)).sentence
    )


@pytest.mark.parametrize("never", [6, 1])
def test_who_has_not_caught_up_each_time_does_not_win(never):
    data = frame({"source_replay": [60.0] * 6, "rsm": [NAN] * never + [0.5] * (6 - never)})
    assert verdict(data, runs(["source_replay", "rsm"], 6)).best == "source_replay"


def test_who_never_catches_up_is_told():
    data = frame({"source_replay": [60.0] * 6, "rsm": [NAN] * 6})
    sentence = verdict(data, runs(["source_replay", "rsm"], 6)).sentence
    assert "R+SM has not caught up by the next failure or the end of the run" in sentence


def test_speed_bought_with_loss_does_not_win():
    data = frame({"none": [0.0] * 6, "rsm": [0.5] * 6})
    found = verdict(data, runs(["none", "rsm"], 6, lost={"none": 25, "rsm": 0}))
    assert found.best == "rsm"
    assert "it loses no root, none (amnesia) 150 roots" in found.sentence


def test_speed_bought_with_wrong_windows_is_admitted():
    data = frame({"source_replay": [60.0] * 6, "active_replication": [0.0] * 6})
    wrong = {"source_replay": 0, "active_replication": 2}
    text = verdict(data, runs(["source_replay", "active_replication"], 6, wrong=wrong)).sentence
    assert "12 of its 48 windows are wrong, of source replay's 0 of 48" in text


def test_cost_without_a_base_is_an_amount():
    data = frame({"source_replay": [60.0] * 6, "rsm": [0.5] * 6})
    store = {"source_replay": 0, "rsm": 96_000}
    text = verdict(data, runs(["source_replay", "rsm"], 6, store=store)).sentence
    assert "it costs 96.0 kB of store bytes per run where source replay needs none" in text


def test_without_a_failure_there_is_nothing_to_compare(make_result):
    results = [make_result(name, failed_at=None) for name in ("source_replay", "rsm")]
    data, done = results[0].recoveries, pd.concat([r.runs for r in results])
    assert verdict(data, done).sentence.startswith("No failure was simulated")
    assert "ran without a failure" in run_sentence(data, results[0].runs)


def test_failed_runs_are_left_out_and_named():
    done = runs(["source_replay", "rsm"], 6)
    done.loc[11, "error"] = "it broke"
    data = frame({"source_replay": [60.0] * 6, "rsm": [0.5] * 5})
    assert "1 of 12 runs failed and are left out" in verdict(data, done).sentence
    done["error"] = "it broke"
    assert verdict(data, done).sentence.startswith("No run ended without an error")


def test_one_strategy_alone_is_no_comparison():
    with pytest.raises(ValueError, match="at least two"):
        verdict(frame({"rsm": [1.0]}), runs(["rsm"], 1))


def test_one_run_in_a_sentence(make_result):
    result = make_result("none", replications=6)
    text = run_sentence(result.recoveries, result.runs)
    assert text == "None (amnesia) has no backlog after a failure; 900 roots of 14,385 are lost."


def test_where_neither_has_a_backlog_the_loss_comes_first():
    data = frame({"none": [0.0] * 6, "active_replication": [0.0] * 6})
    lost, wrong = {"none": 25, "active_replication": 0}, {"none": 1, "active_replication": 0}
    network = {"none": 100, "active_replication": 360}
    done = runs(["none", "active_replication"], 6, network=network, lost=lost, wrong=wrong)
    assert verdict(data, done).sentence == (
        "Active replication loses no root and emits no wrong window, none (amnesia) loses 150 roots and "
        "emits 6 wrong windows of 48; active replication costs 3.6 times the network bytes."
    )
    same = verdict(data, runs(["none", "active_replication"], 6)).sentence
    assert same.endswith("both lose no root and emit no wrong window; they cost the same to within 5 %.")
