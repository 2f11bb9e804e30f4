"""Replications until an interval is narrow enough: how many are needed next, and how a file says it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.sweeps.recipe import Fixed, Recipe, Until
from tideover.scenarios.sweeps.sweep_file import read


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
def test_the_next_number_is_the_least_that_is_enough(
    n: int, mean: float, std: float, width: float, relative: bool, level: float
) -> None:
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


def test_known_numbers() -> None:
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


def test_values_that_are_missing_are_made_up_for() -> None:
    """If every second replication has no value, twice as many are needed; without values, more are tried."""
    until = Until("x", 1.0, False, 5, 1000)
    assert until.further(640, 320, 50.0, 10.0) == 2 * 387
    assert until.further(5, 0, math.nan, math.nan) == 10
    assert until.further(5, 1, 3.0, math.nan) == 10
    assert until.further(5, 5, 0.0, 0.0) == 5
    assert Until("x", 0.05, True, 5, 7).further(5, 5, 0.0, 1.0) == 7


def test_it_ends_with_an_interval_that_is_narrow_enough() -> None:
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


UNTIL = "time_to_recover_s"


def test_what_a_file_says() -> None:
    for width, wanted in (("5 %", (0.05, True)), ("2 s", (2.0, False)), ("500 ms", (0.5, False))):
        found = recipe({"until": UNTIL, "half_width": width})
        assert found.replications == Until(UNTIL, *wanted, least=5, most=200, level=0.95)
    assert recipe({"until": "latency_p99_ms", "half_width": "0.5 s"}).replications.half_width == 500.0
    assert recipe({"until": "network_bytes", "half_width": "1 MB"}).replications.half_width == 10**6
    assert recipe({"until": "lost", "half_width": 0.5}).replications == Until("lost", 0.5, False)
    block = {"until": UNTIL, "half_width": "1 s", "least": 3, "most": 9, "level": "90 %"}
    found = recipe(block)
    assert found.replications == Until(UNTIL, 1.0, False, 3, 9, 0.9)
    assert found.point(0).scenario.run.replications == 3
    assert recipe(block, "run.replications=4").replications == Fixed(4)


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
    ("  until: time_to_recover_s\n", "", 2, "until", "is missing"),
    ("time_to_recover_s", "time_to_recover", 3, "until", "did you mean 'time_to_recover_s'"),
    ("time_to_recover_s", "kind", 3, "until", "is no number of a run"),
    ("  half_width: 2 s\n", "", 2, "half_width", "is missing"),
    ("2 s", "2", 4, "half_width", "has no unit"),
    ("2 s", "0 s", 4, "half_width", "must be more than 0"),
    ("2 s", "2 s/s", 4, "half_width", "not a duration"),
    (
        "time_to_recover_s\n  half_width: 2 s",
        "lost\n  half_width: 2 s",
        4,
        "half_width",
        "not a number (roots)",
    ),
    ("least: 5", "least: 1", 5, "least", "from 2 to"),
    ("most: 20", "most: 4", 6, "most", "from 5 to"),
    ("95 %", "0.95", 7, "level", "must be a confidence"),
    ("95 %", "100 %", 7, "level", "must be a confidence"),
    ("most:", "moost:", 6, "moost", "did you mean 'most'"),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "says"), BROKEN)
def test_broken_replications_are_refused_in_their_line(
    old: str, new: str, line: int, key: str, says: str, tmp_path: Path
) -> None:
    assert FILE.count(old) == 1
    path = tmp_path / "sweep.yaml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read(path)
    found = caught.value.problems
    wanted = (line, f"replications.{key}")
    assert any((p.line, p.key) == wanted and says in p.message for p in found), str(caught.value)
