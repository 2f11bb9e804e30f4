"""Histograms: bins at most 1 % wide; mean and standard deviation exact."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim import recorder
from tideover.sim.histogram import Histogram
from tideover.sim.recorder import SLOT, LatencyLog, Series, Span
from tideover.sim.units import S

latencies = st.lists(st.integers(0, 2**41), min_size=1, max_size=200)


def filled(*parts: list[int]) -> Histogram:
    histogram = Histogram()
    for part in parts:
        histogram.add(np.array(part, np.int64))
    return histogram


@given(latencies)
def test_mean_and_standard_deviation_are_exact(values: list[int]) -> None:
    """Law: those of Python's integers, to the last rounding of a float."""
    histogram = filled(values)
    n = len(values)
    mean = Fraction(sum(values), n)
    variance = Fraction(sum(v * v for v in values), n) - mean**2
    assert histogram.mean == float(mean)
    assert histogram.std == pytest.approx(math.sqrt(variance), rel=1e-14)
    assert histogram.std == pytest.approx(float(np.std(np.array(values, float))), rel=1e-6, abs=1e-3)
    assert (histogram.count, histogram.max) == (n, max(values))


def test_squares_do_not_overflow() -> None:
    values = [2**42 + i for i in range(70_000)]  # over an hour
    histogram = filled(values)
    assert histogram.sum == sum(values)
    assert histogram.squares == sum(v * v for v in values)
    assert histogram.std == pytest.approx(statistics.pstdev(range(70_000)), rel=1e-9)


@given(latencies, st.floats(0, 1))
def test_quantiles_are_within_one_percent(values: list[int], q: float) -> None:
    """Law: the value of rank ceil(q n) and what is said of it lie in one bin, which is at most 1 % wide."""
    true = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    found = filled(values).quantile(q)
    assert abs(found - true) <= max(0.01 * true, 1)


@given(st.integers(0, 10_000), st.integers(1, 2**41))
def test_bins_are_at_most_one_percent_wide(low: int, value: int) -> None:
    """Law: two values that are more than 1 % apart are told apart (below 100 ns: more than 1 ns)."""
    for smaller in (low, value):
        larger = smaller + max(2, math.ceil(smaller * 0.0101))
        histogram = filled([smaller] * 3 + [larger])
        median, most = histogram.quantile(0.5), histogram.quantile(1)
        assert median is not None
        assert most is not None
        assert median < most


@given(latencies, st.lists(st.integers(0, 200), max_size=4))
def test_summaries_do_not_depend_on_parts_or_order(values: list[int], cuts: list[int]) -> None:
    parts = [part.tolist() for part in np.split(np.array(values, np.int64), sorted(cuts))]
    whole = filled(values)
    merged = Histogram()
    for part in reversed(parts):
        merged.merge(filled(part))
    assert filled(*parts).summary() == merged.summary() == whole.summary()


def test_empty_and_cleared() -> None:
    histogram = Histogram()
    names = ("median", "mean", "std", "p95", "p99", "max")
    assert histogram.summary() == dict.fromkeys(names)
    histogram.add(np.array([5], np.int64))
    histogram.clear()
    assert histogram.summary() == dict.fromkeys(names)
    assert filled([3]).summary(unit=2)["mean"] == 1.5


def logged(done: list[tuple[int, int]], gathered: int, cuts: list[int]) -> LatencyLog:
    """A log that bins what it has got after so many latencies."""
    log = LatencyLog()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "GATHERED", gathered)
        for part in np.split(np.array(done, np.int64), sorted(cuts)):
            log.add(part[:, 0], part[:, 1])
    return log


@given(
    st.lists(st.tuples(st.integers(0, 3 * S), st.integers(0, 10**9)), min_size=1, max_size=60),
    st.sampled_from((1, 8, 16, 1 << 16)),
    st.lists(st.integers(0, 60), max_size=20),
)
def test_latencies_are_kept_by_second(done: list[tuple[int, int]], gathered: int, cuts: list[int]) -> None:
    """Law: whether they are binned as they come, later, or when they are read."""
    done.sort()
    log = logged(done, gathered, cuts)
    by_second = [[v for t, v in done if t // S == second] for second in range(5)]
    for seconds in ([], [0, 1], [1, 3, 4], [0, 1, 2, 3, 4]):
        means, most = log.by_second(np.array(seconds, np.int64))
        assert means == [filled(by_second[second]).mean for second in seconds]
        assert most == [max(by_second[second], default=None) for second in seconds]
    chosen = [v for t, v in done if t // S in (1, 3)]
    mask = np.array([True, False, True])
    assert log.over(mask, 1).summary() == filled(chosen).summary()
    copy = log.copy()
    log.add(np.array([S], np.int64), np.array([7], np.int64))
    assert copy.over(mask, 1).summary() == filled(chosen).summary()
    assert log.over(mask, 1).summary() == filled([*chosen, 7]).summary()


def test_what_comes_late_is_binned_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second that was over is packed again: no latencies stay as they are for good."""
    monkeypatch.setattr(recorder, "GATHERED", 8)
    log = LatencyLog()
    for second in (*range(10), 2, 3, 4, *range(10, 20)):
        log.add(np.arange(4, dtype=np.int64) + second * S, np.arange(4, dtype=np.int64))
    parts = [log._seconds[second] for second in range(16)]  # the last ones are gathered, or being filled
    assert [part.count for part in parts] == [8 if second in (2, 3, 4) else 4 for second in range(16)]
    assert not any(part._buffer for part in parts)


@given(
    st.lists(st.lists(st.integers(0, 2000 * SLOT), max_size=30), max_size=5),
    st.booleans(),
    st.sampled_from((1, 8, 16, 1 << 16)),
)
def test_series_count_up_to_each_boundary(parts: list[list[int]], rising: bool, gathered: int) -> None:
    """Law: an event at x shows at the first multiple of 10 ms at or after x; nothing else shows; whether
    events are counted as they come, later, or when they are read.
    """
    series = Series()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "GATHERED", gathered)
        for part in parts:
            series.add(np.array(sorted(part) if rising else part, np.int64))
    counts = series.until(2000 * SLOT)
    times = [t for part in parts for t in part]
    assert len(counts) == 2001
    assert counts.sum() == len(times)
    for boundary in {-(-t // SLOT) for t in times}:
        assert counts[: boundary + 1].sum() == sum(t <= boundary * SLOT for t in times)


@pytest.mark.parametrize(("resolution", "inside"), [(None, 4), (S, 5)])
def test_a_span_ends_with_the_last_replayed_tuple(resolution: int | None, inside: int) -> None:
    """What is done after it is outside; with a resolution of 1 s, what is done in its second is inside."""
    span = Span(resolution)
    for i, tenth in enumerate((1, 2, 3, 4, 9, 15)):
        time, latency = np.array([S // 10 * tenth], np.int64), np.array([100 + i], np.int64)
        span.add(time, latency, np.array([i in (1, 3)]))
        span.settle()
    assert span.committed.mean == 100 + (inside - 1) / 2
    assert span.committed.count == inside


@given(latencies, latencies, st.integers(1, 400))
def test_packing_changes_nothing(before: list[int], after: list[int], times: int) -> None:
    """Law: a packed histogram holds the same, and can still be added to, also beyond what its bins could
    count.
    """
    packed, plain = filled(before), filled(before)
    packed.pack()
    assert packed.state() == plain.state()
    merged, expected = Histogram(), Histogram()
    merged.merge(packed)
    expected.merge(plain)
    for histogram in (packed, plain, merged, expected):
        histogram.add(np.tile(np.array(after, np.int64), times))
    assert packed.state() == plain.state() == merged.state() == expected.state()
    assert packed.summary() == plain.summary()


done_tuples = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 2), st.booleans()), min_size=1, max_size=30, unique=True
)
"""(time, task, whether it was replayed)."""


@given(done_tuples, st.integers(1, 50), st.one_of(st.none(), st.integers(1, 20)))
def test_a_span_does_not_depend_on_steps(
    done: list[tuple[int, int, bool]], step: int, resolution: int | None
) -> None:
    """Law: inside is what was done up to the last replayed tuple, however the data plane is moved.

    In a step the tasks report one after the other, each all that it has done.
    """
    span = Span(resolution)
    for begin in range(0, 41, step):
        for task in range(3):
            rows = sorted(row for row in done if row[1] == task and begin <= row[0] < begin + step)
            if rows:
                times = np.array([row[0] for row in rows], np.int64)
                span.add(times, times * 7, np.array([row[2] for row in rows]))
        span.settle()
    last = max((row[0] for row in done if row[2]), default=-1)
    if resolution is not None and last >= 0:
        last = (last // resolution + 1) * resolution - 1
    inside = [row[0] * 7 for row in done if row[0] <= last]
    assert span.committed.summary() == (filled(inside) if inside else Histogram()).summary()
    assert span.committed.count == len(inside)
