"""Replications until an interval is narrow enough: round by round, for each point as many as it needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from tests.sweeps import SHORT, content, done
from tideover.scenarios.sweeps import sweep_file
from tideover.scenarios.sweeps.recipe import Fixed, Until, rounds, too_wide

UNTIL = {"until": "time_to_recover_s", "half_width": "10 %", "least": 3, "most": 24}
SPEC = {
    "scenario": "wordcount",
    "set": SHORT | {"run.duration": "60s"},
    "grid": {"strategy.kind": ["rsm"], "topology.sentences.rate": ["10/s", "40/s"]},
    "replications": UNTIL,
}


def half_width(values: np.ndarray) -> float:
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return (high - low) / 2


def test_a_fixed_number_is_one_round() -> None:
    assert list(rounds(Fixed(4), 2, lambda metric: pytest.fail(metric))) == [[(0, 4), (0, 4)]]


def test_each_point_has_as_many_as_it_needs() -> None:
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

    for wanted in rounds(Until("lost", 0.5, False, least=4, most=200), 3, estimates):
        assert [first for first, _ in wanted] == counts
        counts = [last for _, last in wanted]
    assert counts[0] == 4
    assert counts[2] == 200
    assert half_width(luck[: counts[1]]) <= 0.5
    assert counts[1] == pytest.approx((1.96 * 2 / 0.5) ** 2, rel=0.4)


def test_an_interval_that_stays_too_wide_is_told() -> None:
    """Law: the same condition that asks for more; a point without a mean is too wide as well."""
    rows = [{"point": n, "n": 4, "mean": 10.0, "std": std} for n, std in enumerate((0.0, 0.6, 0.7))]
    limit = stats.t.ppf(0.975, 3) * 0.65 / 2  # between the second and the third
    table = pa.Table.from_pylist(rows)
    (said,) = too_wide(Until("lost", limit, False, least=4, most=4), 4, lambda metric: table)
    assert said.endswith("wider than was asked for 2 of 4 points, with all 4 replications")
    assert too_wide(Until("lost", 5.0, False), 3, lambda metric: table) == []


def test_a_sweep_goes_on_until_all_are_narrow_and_again_from_where_it_was(tmp_path: Path) -> None:
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
