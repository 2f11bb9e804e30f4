"""The runs of a sweep: how many replications, in which chunks, and how they are summed up."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import t as student

from tests.scenarios.refused import broken_file
from tests.sweeps import SHORT, content, done
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.sweeps.rows import AT_LEAST, COLUMNS, QUANTILES, summarise, summarise_points
from tideover.scenarios.sweeps.survey import CHUNK_S, MOST_RUNS, Surveyed, Unit, chunks, shares, units
from tideover.scenarios.sweeps.sweep_file import Recipe, Until, fixed, read

TIME = "time_to_recover_s"


def half(n: int, std: float, level: float) -> float:
    return float(student.ppf((1 + level) / 2, n - 1)) * std / math.sqrt(n)


@given(
    st.integers(2, 300),
    st.floats(-1e3, 1e3),
    st.floats(0, 1e3),
    st.floats(1e-3, 1e3),
    st.booleans(),
    st.sampled_from([0.9, 0.95, 0.99]),
)
def test_the_next_number_is_the_least_that_is_enough(n, mean, std, width, relative, level):
    """Law: m replications are asked for if the interval of m values of this deviation is narrow enough, and
    that of m - 1 is not; but never fewer than there are, nor more than twice as many.
    """
    until = Until("x", width, relative, 2, 10**6, level)
    target = width * abs(mean) if relative else width
    found = until.further(n, n, mean, std)
    assert n <= found <= 2 * n
    if found < 2 * n:
        assert half(found, std, level) <= target * (1 + 1e-9)
    if found > n:
        assert half(found - 1, std, level) > target * (1 - 1e-9)


def test_known_numbers():
    """A deviation of 10 and an interval of 1 to each side: the normal's 1.96² · 100 = 384.1 would be 385, and
    Student's quantile of 386 degrees of freedom, 1.9661, makes it 387. It takes doublings to get there.
    """
    until = Until("x", 1.0, False, 5, 1000)
    asked, done = [], 0
    while (more := until.further(done, done, 50.0, 10.0)) > done:
        asked.append(done := more)
    assert asked == [5, 10, 20, 40, 80, 160, 320, 387]
    assert Until("x", 0.02, True, 5, 1000).further(320, 320, 50.0, 10.0) == 387
    assert Until("x", 1.0, False, 5, 100).further(80, 80, 50.0, 10.0) == 100
    assert Until("x", 1.0, False, 5, 100).further(100, 100, 50.0, 10.0) == 100


def test_values_that_are_missing_are_made_up_for():
    """If every second replication has no value, twice as many are needed; without values, more are tried."""
    until = Until("x", 1.0, False, 5, 1000)
    assert until.further(640, 320, 50.0, 10.0) == 2 * 387
    assert until.further(5, 0, math.nan, math.nan) == 10
    assert until.further(5, 1, 3.0, math.nan) == 10
    assert until.further(5, 5, 0.0, 0.0) == 5
    assert Until("x", 0.05, True, 5, 7).further(5, 5, 0.0, 1.0) == 7


def test_it_ends_with_an_interval_that_is_narrow_enough():
    """Normal values, seed given: whatever the rounds, the last interval is as narrow as was asked for, and
    the number within a tenth of what the true deviation needs.
    """
    values = np.random.default_rng(1).normal(50, 10, 5000)
    until, n = Until("x", 0.5, False, 5, 5000), 0
    while (
        more := until.further(n, n, values[:n].mean() if n else 0, values[:n].std(ddof=1) if n > 1 else 0)
    ) > n:
        n = more
    assert half(n, values[:n].std(ddof=1), 0.95) <= 0.5
    assert n == pytest.approx((1.96 * 10 / 0.5) ** 2, rel=0.1)


def recipe(replications: Any, *settings: str) -> Recipe:
    return read({"scenario": "wordcount", "replications": replications}, settings)


def test_what_a_file_says():
    for width, wanted in (("5 %", (0.05, True)), ("2 s", (2.0, False)), ("500 ms", (0.5, False))):
        found = recipe({"until": TIME, "half_width": width})
        assert found.replications == Until(TIME, *wanted, least=5, most=200, level=0.95)
    assert recipe({"until": "latency_p99_ms", "half_width": "0.5 s"}).replications.half_width == 500.0
    assert recipe({"until": "network_bytes", "half_width": "1 MB"}).replications.half_width == 10**6
    assert recipe({"until": "lost", "half_width": 0.5}).replications == Until("lost", 0.5, False)
    block = {"until": TIME, "half_width": "1 s", "least": 3, "most": 9, "level": "90 %"}
    found = recipe(block)
    assert found.replications == Until(TIME, 1.0, False, 3, 9, 0.9)
    assert found.point(0).scenario.run.replications == 3
    assert recipe(block, "run.replications=4").replications == fixed(4)


FILE = """\
scenario: wordcount
replications:
  until: time_to_recover_s
  half_width: 2 s
  least: 5
  most: 20
  level: 95 %
"""
BROKEN = [
    ("  until: time_to_recover_s\n", "", 2, "replications.until", "is missing"),
    ("time_to_recover_s", "time_to_recover", 3, "replications.until", "did you mean 'time_to_recover_s'"),
    ("time_to_recover_s", "kind", 3, "replications.until", "is no number of a run"),
    ("  half_width: 2 s\n", "", 2, "replications.half_width", "is missing"),
    ("2 s", "2", 4, "replications.half_width", "has no unit"),
    ("2 s", "0 s", 4, "replications.half_width", "must be more than 0"),
    ("2 s", "2 s/s", 4, "replications.half_width", "not a duration"),
    (
        "time_to_recover_s\n  half_width: 2 s",
        "lost\n  half_width: 2 s",
        4,
        "replications.half_width",
        "not a number (roots)",
    ),
    ("least: 5", "least: 1", 5, "replications.least", "from 2 to"),
    ("most: 20", "most: 4", 6, "replications.most", "from 5 to"),
    ("95 %", "0.95", 7, "replications.level", "must be a confidence"),
    ("95 %", "100 %", 7, "replications.level", "must be a confidence"),
    ("most:", "moost:", 6, "replications.moost", "did you mean 'most'"),
]


@pytest.mark.parametrize("row", BROKEN)
def test_broken_replications_are_refused_in_their_line(row, tmp_path):
    broken_file(read, tmp_path / "sweep.yaml", FILE, row)


UNTIL = {"until": TIME, "half_width": "10 %", "least": 3, "most": 24}
SPEC = {
    "scenario": "wordcount",
    "set": SHORT | {"run.duration": "60s"},
    "grid": {"strategy.kind": ["rsm"], "topology.sentences.rate": ["10/s", "40/s"]},
    "replications": UNTIL,
}


def half_width(values: np.ndarray) -> float:
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return (high - low) / 2


def test_a_fixed_number_is_one_round():
    assert list(fixed(4).rounds(2, lambda metric: pytest.fail(metric))) == [[(0, 4), (0, 4)]]


def test_each_point_has_as_many_as_it_needs():
    """One point is constant, one has a known deviation, one is never defined and stops at the cap."""
    luck = np.random.default_rng(1).normal(10, 2, 400)
    counts = [0, 0, 0]

    def estimates(metric: str) -> pa.Table:
        assert metric == "lost"
        known = luck[: counts[1]]
        rows = [
            {"point": 0, "n": counts[0], "mean": 5.0, "std": 0.0},
            {"point": 1, "n": counts[1], "mean": known.mean(), "std": known.std(ddof=1)},
        ]
        return pa.Table.from_pylist(rows)

    for wanted in Until("lost", 0.5, False, least=4, most=200).rounds(3, estimates):
        assert [first for first, _ in wanted] == counts
        counts = [last for _, last in wanted]
    assert counts[0] == 4
    assert counts[2] == 200
    assert half_width(luck[: counts[1]]) <= 0.5
    assert counts[1] == pytest.approx((1.96 * 2 / 0.5) ** 2, rel=0.4)


def test_an_interval_that_stays_too_wide_is_told():
    """Law: the same condition that asks for more; a point without a mean is too wide as well."""
    rows = [{"point": n, "n": 4, "mean": 10.0, "std": std} for n, std in enumerate((0.0, 0.6, 0.7))]
    limit = stats.t.ppf(0.975, 3) * 0.65 / 2  # between the second and the third
    table = pa.Table.from_pylist(rows)
    (said,) = Until("lost", limit, False, least=4, most=4).too_wide(4, lambda metric: table)
    assert said.endswith("wider than was asked for 2 of 4 points, with all 4 replications")
    assert Until("lost", 5.0, False).too_wide(3, lambda metric: table) == []


def test_a_sweep_goes_on_until_all_are_narrow_and_again_from_where_it_was(tmp_path):
    found = done(sweep_file.read(SPEC), tmp_path / "whole")
    values = found.recoveries.groupby(["point", "replication"])["time_to_recover_s"].mean()
    for point, n in found.points[["point", "runs"]].itertuples(index=False):
        mine = values.loc[point].to_numpy()
        assert len(mine) == n
        assert n == UNTIL["most"] or half_width(mine) <= 0.1 * mine.mean()
    assert found.points["runs"].max() > 3
    whole = content(tmp_path / "whole")
    next((tmp_path / "whole" / "data").iterdir()).unlink()
    (tmp_path / "whole" / "manifest.json").unlink()
    done(sweep_file.read(SPEC), tmp_path / "whole")
    assert content(tmp_path / "whole") == whole


def surveyed(number: int, reference: str, cost_s: float) -> Surveyed:
    return Surveyed(
        number, f"identity {number} {reference} {cost_s}", "document", reference, cost_s, 1.0, (), ()
    )


POINTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.02, 0.5, 3.0, 20.0])), max_size=12)
COUNTS = st.integers(0, 6)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Surveyed], list[tuple[int, int]]]:
    points = [surveyed(i, reference, cost) for i, (reference, cost) in enumerate(draw(POINTS))]
    firsts = [draw(COUNTS) for _ in points]
    return points, [(first, first + draw(COUNTS)) for first in firsts]


@given(worlds())
def test_every_run_is_in_one_chunk_and_in_one_share(world):
    points, wanted = world
    asked = {(p.number, n) for p, (a, b) in zip(points, wanted, strict=True) for n in range(a, b)}
    made = list(chunks(units(points, wanted), timeline=True))
    found = [(unit.point, unit.replication) for chunk in made for unit in chunk.units]
    assert (len(found), set(found)) == (len(asked), asked)
    assert len({chunk.name for chunk in made}) == len(made)
    for chunk in made:
        assert len(chunk.units) == 1 or (chunk.cost_s <= CHUNK_S and len(chunk.units) <= MOST_RUNS)
        shared = shares(chunk.units, 3)
        assert sorted(unit for share in shared for unit in share) == sorted(chunk.units)


@given(worlds(), worlds())
def test_a_chunk_is_named_after_its_runs(one, other):
    """The same runs, the same name, whoever asks; with rows per second it is another."""
    first, second = (list(chunks(units(*world), timeline=True)) for world in (one, other))
    for a in first:
        for b in second:
            assert (a.name == b.name) == (a.units == b.units)
    again = list(chunks(units(*one), timeline=False))
    assert not {chunk.name for chunk in first} & {chunk.name for chunk in again}


def test_runs_of_one_reference_follow_one_another():
    points = [surveyed(i, reference, 0.1) for i, reference in enumerate("abab")]
    every = list(units(points, [(0, 2)] * 4))
    assert [(unit.point, unit.replication) for unit in every] == [
        *[(0, 0), (2, 0), (0, 1), (2, 1)],
        *[(1, 0), (3, 0), (1, 1), (3, 1)],
    ]
    assert [unit.reference for unit in every[:3]] == ["a 0", "a 0", "a 1"]


COSTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=40)


@given(COSTS, st.integers(1, 8))
def test_no_share_has_more_than_the_mean_and_one_run(costs, count):
    """As each run goes to whoever has least: Graham's bound. The shares come the most costly first."""
    todo = [Unit(i, 0, f"run {i}", "", f"reference {i}", cost) for i, cost in enumerate(costs)]
    loads = [sum(unit.cost_s for unit in share) for share in shares(todo, count)]
    assert loads == sorted(loads, reverse=True)
    assert loads[0] <= sum(costs) / count + max(costs) * (1 - 1 / count) + 1e-9


def test_a_run_a_hundred_times_as_long_has_a_share_of_its_own():
    costs = [10.0, *[0.1] * 100]
    todo = [Unit(i, 0, f"run {i}", "", f"reference {i}", cost) for i, cost in enumerate(costs)]
    first, *others = shares(todo, 2)
    assert {unit.cost_s for unit in first} == {10.0}
    assert sum(len(share) for share in others) == 100


ENDS = "run_ends_at_s"


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
