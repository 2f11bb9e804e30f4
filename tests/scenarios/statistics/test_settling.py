"""Where the warm-up of a scenario ends."""

import json
import sys

import pytest

import tideover
from tideover.cli import main
from tideover.scenarios.statistics.warm_up import settling

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


def test_what_fills_up_for_twenty_seconds_has_settled_then() -> None:
    """Or a little later, as arrivals are drawn; failures are left out of it."""
    crash = {"kind": "crash_task", "at": "200 s", "component": "a", "restart": "50 s"}
    for failures in ([], [crash]):
        found = settling(tideover.load(FILLING | {"failures": failures}))
        assert found.found_s in range(20, 101)
        assert found.by_curve["throughput_per_s"] in range(20, 101)
        assert f"--set run.warmup={found.found_s}s" in found.sentence


def test_a_warm_up_that_is_long_enough_is_left_alone() -> None:
    assert "enough" in settling(tideover.load(FILLING, {"run.warmup": "100 s"})).sentence


def test_a_backlog_that_grows_never_settles() -> None:
    slow = {"topology.a.service": "60 ms", "run.duration": "300 s", "links.latency": "0.1 s"}
    found = settling(tideover.load(FILLING, slow))
    assert found.found_s is None
    assert "no end of the warm-up shows in backlog and mean latency" in found.sentence


def test_the_command_says_the_same(monkeypatch, capsys) -> None:
    arguments = ["wordcount", "--set", "run.replications=2", "--find-warmup"]
    for more in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["tideover", "run", *arguments, *more])
        with pytest.raises(SystemExit):
            main()
    told, _, found = capsys.readouterr().out.partition("{")
    assert json.loads("{" + found)["given_s"] == 60
    assert "run.warmup is 60 s" in " ".join(told.split())
