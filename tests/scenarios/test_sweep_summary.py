"""Summaries of a sweep's points: each figure as numpy and scipy have it, whatever the grouping and order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tideover.scenarios.sweeps.rows import AT_LEAST, COLUMNS, QUANTILES, summarise, summarise_points

ENDS = "run_ends_at_s"
TIME = "time_to_recover_s"


def frames(values):
    """``values[point][replication]`` are the times of its recoveries; lost roots are ten times the first."""
    runs, recoveries = [], []
    for point, replications in enumerate(values):
        for replication, times in enumerate(replications):
            head = {"point": point, "replication": replication, "strategy": "rsm", "a.key": 2 * point}
            runs.append(head | {"error": None, "lost": 10 * len(times), "latency_p99_ms": 7.0, ENDS: 60.0})
            for place, time in enumerate(times):
                more = {"failed_at_s": 10.0 * place, "kind": "k", "component": "c", "latency_p99_ms": 9.0}
                recoveries.append(head | more | {TIME: time})
    columns = ["point", "replication", "strategy", "a.key", "failed_at_s", "kind", "component", TIME]
    return pd.DataFrame(recoveries, columns=[*columns, "latency_p99_ms"]), pd.DataFrame(runs)


def row_of(summary, point, metric):
    (row,) = summary[(summary["point"] == point) & (summary["metric"] == metric)].to_dict("records")
    return row


def test_recoveries_of_a_replication_are_one_value():
    """Two recoveries of 1 and 3 s are a replication of 2 s; with one of 4 s the mean is 3 s of n = 2, and the
    interval that of scipy with one degree of freedom.
    """
    recoveries, runs = frames([[[1.0, 3.0], [4.0]]])
    points, summary = summarise(recoveries, runs, ["a.key"])
    row = row_of(summary, 0, TIME)
    low, high = stats.t.interval(0.95, 1, 3.0, 1.0)
    assert (row["n"], row["undefined"], row["mean"], row["p50"]) == (2, 0, 3.0, 3.0)
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert points.to_dict("records") == [{"point": 0, "a.key": 0, "strategy": "rsm", "runs": 2, "failed": 0}]


def test_a_replication_that_does_not_always_recover_is_undefined():
    recoveries, runs = frames([[[1.0, np.nan], [4.0]], [[np.nan]]])
    _, summary = summarise(recoveries, runs, [])
    found = [row_of(summary, point, TIME) for point in (0, 1)]
    assert [(row["n"], row["undefined"]) for row in found] == [(1, 1), (0, 1)]
    assert found[0]["mean"] == 4.0
    assert np.isnan([found[0]["std"], found[0]["low"], found[1]["mean"], found[1]["max"]]).all()


def test_failed_runs_are_counted_and_have_no_values():
    recoveries, runs = frames([[[1.0], [2.0]], [[3.0]]])
    runs.loc[1, ["error", "lost"]] = ["it broke", np.nan]
    points, summary = summarise(recoveries[recoveries["replication"] == 0], runs, [])
    assert points[["runs", "failed"]].to_numpy().tolist() == [[2, 1], [1, 0]]
    assert row_of(summary, 0, "lost")["n"] == 1
    assert row_of(summary, 0, "lost")["undefined"] == 0


def test_a_name_that_both_tables_have_is_two_metrics():
    _, summary = summarise(*frames([[[1.0]]]), [])
    assert row_of(summary, 0, "latency_p99_ms")["mean"] == 7.0
    assert row_of(summary, 0, "recoveries.latency_p99_ms")["mean"] == 9.0


def test_without_failures_there_is_nothing_of_recoveries():
    _, summary = summarise(*frames([[[], []]]), [])
    assert set(summary["metric"]) == {"lost", "latency_p99_ms"}


times = st.one_of(st.floats(0.001, 1e4), st.just(float("nan")))
sweeps = st.lists(st.lists(st.lists(times, max_size=3), min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=25)
@given(sweeps, st.randoms(use_true_random=False))
def test_figures_are_those_of_numpy_and_of_no_other_point(values, random):
    """Bit for bit the same whether points are summarised together or one at a time, in any order of rows."""
    recoveries, runs = frames(values)
    whole = summarise_points(recoveries, runs)
    assert list(whole) == list(COLUMNS)
    mixed = [frame.iloc[random.sample(range(len(frame)), len(frame))] for frame in (recoveries, runs)]
    pd.testing.assert_frame_equal(summarise_points(*mixed), whole, check_exact=True)
    alone = [
        summarise_points(recoveries[recoveries["point"] == n], runs[runs["point"] == n])
        for n in range(len(values))
    ]
    pd.testing.assert_frame_equal(pd.concat(alone, ignore_index=True), whole, check_exact=True)
    for point, replications in enumerate(values):
        means = np.array([np.mean(one) for one in replications if one])
        known = means[~np.isnan(means)]
        if not len(means):
            continue
        row = row_of(whole, point, TIME)
        assert (row["n"], row["undefined"]) == (len(known), len(means) - len(known))
        if len(known):
            assert row["mean"] == pytest.approx(known.mean())
            found = [row[name] for name in QUANTILES]
            assert found == pytest.approx(np.quantile(known, list(QUANTILES.values())))
        if len(known) > 1:
            assert row["std"] == pytest.approx(known.std(ddof=1), abs=1e-9)


@pytest.mark.parametrize("end", [5.0, 20.0, 100.0])
def test_what_has_not_ended_counts_with_the_time_until_the_run_did(end):
    """Law: of times T, seen until the end of the run, the mean of ``AT_LEAST`` is that of min(T, seen): never
    more than the mean of T, and that where all have ended.
    """
    times = np.random.default_rng(1).exponential(12.0, 200)
    seen = [time if time <= end else float("nan") for time in times]
    recoveries, runs = frames([[[time] for time in seen]])
    _, summary = summarise(recoveries, runs.assign(run_ends_at_s=end), [])
    found = row_of(summary, 0, AT_LEAST)
    assert (found["n"], found["undefined"]) == (200, 0)
    assert found["mean"] == pytest.approx(np.minimum(times, end).mean())
    assert found["mean"] <= times.mean() + 1e-9
    assert row_of(summary, 0, TIME)["undefined"] == (times > end).sum()
