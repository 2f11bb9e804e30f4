"""Where the warm-up of a run ends."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover import load
from tideover.scenarios.statistics.warm_up import mser5, settling


def slow(series: np.ndarray) -> int:
    """The rule as it is written: the least variance of the rest over how many are left."""
    means = [float(np.mean(series[i : i + 5])) for i in range(0, len(series) - 4, 5)]
    last = len(means) - 5
    errors = [np.var(means[d:]) / (len(means) - d) for d in range(last + 1)]
    return 5 * int(np.argmin(errors))


@given(st.integers(0, 10_000), st.integers(50, 300), st.floats(0, 50))
def test_the_rule_is_what_it_says(seed, n, bias):
    rng = np.random.default_rng(seed)
    series = rng.normal(size=n) + bias * np.exp(-np.arange(n) / 20)
    wanted = slow(series)
    assert mser5(series) == (wanted if wanted <= n // 5 // 2 * 5 else None)


def test_a_warm_up_is_found():
    """A queue that starts empty and needs 200 s to fill: the rest has mean 10."""
    rng = np.random.default_rng(3)
    series = rng.poisson(10 * np.minimum(1, np.arange(2_000) / 200))
    found = mser5(series)
    assert found is not None
    assert 120 <= found <= 300


def test_what_never_settles_is_too_short():
    assert mser5(np.arange(200.0)) is None
    assert mser5(np.ones(49)) is None
    with pytest.raises(ValueError, match="every place"):
        mser5([float("nan")] * 60)


FILLING = {
    "name": "filling",
    "topology": {
        "s": {"spout": "keys", "keys": 4, "arrivals": {"kind": "poisson", "rate": "20/s"}},
        "a": {"bolt": "forward", "from": {"s": "shuffle"}, "service": "1 ms"},
    },
    "strategy": {"kind": "none"},
    "links": {"latency": "20 s"},
    "run": {"duration": "1500 s", "warmup": "10 s", "replications": 3},
}
"""Tuples are on the wire for 20 s: until then the backlog grows, and nothing comes out."""


def test_what_fills_up_for_twenty_seconds_has_settled_then():
    """Or a little later, as arrivals are drawn; failures are left out of it."""
    crash = {"kind": "crash_task", "at": "200 s", "component": "a", "restart": "50 s"}
    for failures in ([], [crash]):
        found = settling(load(FILLING | {"failures": failures}))
        assert found.found_s in range(20, 101)
        assert found.by_curve["throughput_per_s"] in range(20, 101)
        assert f"--set run.warmup={found.found_s}s" in found.sentence


def test_the_warm_up_is_that_of_the_time_of_day_of_the_run():
    """20/s until noon, when something fails, at 1498 s; from then on nothing comes. Without failures the run
    begins so long before noon, too.
    """
    noon = {"kind": "day", "peak": "20/s", "by_hour": [0] * 11 + [1] + [0] * 12, "interpolation": "steps"}
    crash = {"kind": "crash_task", "at": "1498 s", "component": "a"}
    daily = {"topology.s.arrivals": noon, "failures": [crash], "run.fails_at": "12:00"}
    assert settling(load(FILLING, daily)).found_s in range(20, 101)


def test_a_warm_up_that_is_long_enough_is_left_alone():
    assert "enough" in settling(load(FILLING, {"run.warmup": "100 s"})).sentence


def test_a_backlog_that_grows_never_settles():
    slow = {"topology.a.service": "60 ms", "run.duration": "300 s", "links.latency": "0.1 s"}
    found = settling(load(FILLING, slow))
    assert found.found_s is None
    assert "no end of the warm-up shows in backlog and mean latency" in found.sentence


def test_the_command_says_the_same(tideover):
    asked = ("run", "wordcount", "--set", "run.replications=2", "--find-warmup")
    _, told, _ = tideover(*asked)
    _, found, _ = tideover(*asked, "--json")
    assert json.loads(found)["given_s"] == 60
    assert "run.warmup is 60 s" in " ".join(told.split())
