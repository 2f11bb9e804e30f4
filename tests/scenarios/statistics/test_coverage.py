"""Intervals cover what they should as often as they say: 95 %, within 93 and 97 %, in 1,000 experiments."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tideover.scenarios.statistics.availability import conditioned
from tideover.scenarios.statistics.intervals import (
    estimate,
    paired,
    quantile_interval,
)

EXPERIMENTS = 1_000


def covered(intervals: Iterable[tuple[float, float]], truth: float, of: int = EXPERIMENTS) -> float:
    """The part of the intervals that have the truth in them; nearly all experiments have one."""
    ends = np.array(list(intervals))
    assert len(ends) >= 0.97 * of
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())


@pytest.mark.parametrize(
    ("draw", "truth", "n"),
    [
        (lambda rng, shape: rng.normal(60, 5, shape), 60.0, 5),
        (lambda rng, shape: rng.uniform(0, 30, shape), 15.0, 10),
        (lambda rng, shape: rng.gamma(4, 5, shape), 20.0, 20),
    ],
    ids=["normal", "uniform", "gamma"],
)
def test_of_means(draw, truth, n):
    values = draw(np.random.default_rng(1), (EXPERIMENTS, n))
    found = (estimate(row, resample=False).t for row in values)
    assert 0.93 <= covered(found, truth) <= 0.97


@pytest.mark.parametrize("q", [0.1, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("name", ["expon", "norm", "uniform", "lognorm"])
def test_of_quantiles(name, q):
    """Of 40 replications; ends are interpolated, or more than 97 % would be covered."""
    law = stats.lognorm(1.0) if name == "lognorm" else getattr(stats, name)()
    rows = law.ppf(np.random.default_rng(2).uniform(size=(EXPERIMENTS, 40)))
    found = (quantile_interval(row, q) for row in rows)
    assert 0.93 <= covered(found, float(law.ppf(q))) <= 0.97


def test_of_a_high_quantile():
    """The 95 % quantile of 100 replications."""
    rows = np.random.default_rng(3).exponential(20, (EXPERIMENTS, 100))
    found = (quantile_interval(row, 0.95) for row in rows)
    assert 0.93 <= covered(found, -20 * math.log(0.05)) <= 0.97


def pairs(experiments: int, replications: int) -> Iterator[pd.DataFrame]:
    """Two settings that share most of their luck; the second takes 3 s longer."""
    rng = np.random.default_rng(6)
    luck = rng.gamma(4, 10, (experiments, replications))
    names = {"strategy": np.repeat(["a", "b"], replications), "replication": [*range(replications)] * 2}
    for shared in luck:
        own = rng.normal([[0.0], [3.0]], 2, (2, replications))
        yield pd.DataFrame(names | {"seed": 1, "cpu_s": (shared + own).ravel()})


@pytest.mark.parametrize(
    ("n", "slack"), [(200, 0.02), pytest.param(EXPERIMENTS, 0.0, marks=pytest.mark.long)], ids=["few", "all"]
)
def test_of_paired_differences(n, slack):
    found = (paired(frame, "b", "a", "cpu_s", resample=False)[0].difference.t for frame in pairs(n, 10))
    assert 0.93 - slack <= covered(found, 3.0, n) <= 0.97 + slack


def test_of_availability():
    """Two kinds of failures with recoveries of gamma and uniform length, 15 and 25 replications."""
    rng = np.random.default_rng(7)
    hosts, racks = rng.gamma(4, 15, (EXPERIMENTS, 15)), rng.uniform(0, 400, (EXPERIMENTS, 25))
    rates = {"host": 1e-4, "rack": 2e-5}
    found = (conditioned({"host": h, "rack": r}, rates) for h, r in zip(hosts, racks, strict=True))
    truth = math.exp(-60e-4 - 200 * 2e-5)
    assert 0.93 <= covered(((one.low, one.high) for one in found), truth) <= 0.97
