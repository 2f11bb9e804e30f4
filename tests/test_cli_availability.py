"""``tideover availability``: what it prints, and what it refuses."""

import json
import math
import sys

import pytest

import tideover
from tideover.cli import main

SCENARIO = ["wordcount", "--set", "strategy.kind=aligned_snapshots", "--set", "run.replications=2"]


def called(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tideover", "availability", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_the_answer_follows_from_its_parts(monkeypatch, capsys) -> None:
    """JSON and the function say the same, and the budget is what the objective leaves of 30 days."""
    more = ["--mtbf", "failures.0=2h", "--slo", "99.95%", "--over", "30d", "--json"]
    assert called(monkeypatch, *SCENARIO, "--set", "failures.0.restart=6s", *more) == 0
    found = json.loads(capsys.readouterr().out)["availability"]
    mean = found["failures"]["failures.0 (lose_state)"]["recovery_s"]["mean"]
    assert mean > 6
    assert found["value"] == pytest.approx(math.exp(-mean / 7200))
    assert found["budget_s"] == pytest.approx(0.0005 * 30 * 86_400)
    assert found["burnt"] == pytest.approx((1 - found["value"]) / 0.0005)
    settings = {"strategy.kind": "aligned_snapshots", "run.replications": 2, "failures.0.restart": "6 s"}
    same = tideover.availability("wordcount", {"failures.0": "2 h"}, settings, slo=0.9995, over="30 d")
    assert same.to_dict()["availability"] == found


def test_the_terminal_says_whether_the_objective_is_met(monkeypatch, capsys) -> None:
    for slo, verdict in [("99%", "is met on average"), ("99.9%", "is broken on average")]:
        more = ["--mtbf", "task=2h", "--slo", slo, "--set", "failures.0.restart=20s"]
        assert called(monkeypatch, *SCENARIO, *more) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert 0 < told.index(verdict) < told.index("───")  # the answer comes before the table
        assert "1 task 4,383" in told  # a year of 365.25 days has so many times 2 h


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--mtbf", "host"], "--mtbf: 'host' is not WHAT=TIME"),
        (["--mtbf", "failures.0=1h", "--mtbf", "failures.0=2h"], "given twice"),
        (["--mtbf", "hots=1h"], "--mtbf: hots: unknown; did you mean 'host'"),
        (["--mtbf", "failures.0=1h", "--slo", "100%"], "--slo: '100%'"),
        (["--mtbf", "failures.0=1h", "--over", "0s"], "--over: '0s'"),
        ([], "host=30d"),
    ],
)
def test_bad_input_is_named(monkeypatch, capsys, arguments: list[str], said: str) -> None:
    assert called(monkeypatch, *SCENARIO, *arguments) == 2
    assert said in capsys.readouterr().err
