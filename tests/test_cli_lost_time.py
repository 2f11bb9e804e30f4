"""``tideover availability``, ``interval`` and ``detector``: what they print and write."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import tideover as library
from tests.cli_worlds import STREAM

MTBF = ["--mtbf", "failures.0=1h"]
PAUSES = ["--pauses", "3 s", "--every", "1h"]


@pytest.fixture
def stream(tmp_path: Path) -> str:
    path = tmp_path / "stream.yaml"
    path.write_text(STREAM, "utf-8")
    return str(path)


def test_the_best_interval_is_said_and_drawn(tideover, stream: str, tmp_path: Path) -> None:
    """Terminal, record and page say what the function finds, and the formulas beside it."""
    out, asked = tmp_path / "out", ["--intervals", "10s,20s,40s", "--replications", "4"]
    code, printed, _ = tideover("interval", stream, *MTBF, *asked, "--out", str(out))
    assert code == 0
    told = " ".join(printed.split())
    times = ["10 s", "20 s", "40 s"]
    found = library.interval(stream, {"failures.0": "1 h"}, intervals=times, replications=4)
    best = f"The best checkpoint interval is {found.least.seconds:.1f} s (95 % interval "
    assert best in told
    assert "10 s (now)" in told
    assert f"Young (1974) {found.formulas['young']:.1f}" in told
    assert f"tideover run {stream} --set strategy.checkpoint_interval=" in told
    assert json.loads((out / "result.json").read_text("utf-8"))["best"]["seconds"] == found.least.seconds
    page = (out / "report.html").read_text("utf-8")
    assert best in page
    assert page.count("<svg") == 1


def test_two_intervals_are_compared(tideover, stream: str) -> None:
    """Through two points goes no curve: the better one is said, though the other is nearer to what is set."""
    asked = ["--intervals", "8s,24s", "--replications", "4"]
    code, printed, _ = tideover("interval", stream, *MTBF, *asked)
    assert code == 0
    told = " ".join(printed.split())
    assert "Of the intervals that were tried 24 s is the best" in told
    assert f"tideover run {stream} --set strategy.checkpoint_interval=24s" in told


def test_false_restarts_are_said_and_drawn(tideover, stream: str, tmp_path: Path) -> None:
    """Pauses of 3 s once an hour are missed half of the time at 4 s, and never at 5 s or more."""
    out, asked = tmp_path / "out", ["--timeouts", "4s,6s", "--replications", "4"]
    more = [*MTBF, *PAUSES, *asked, "--json", "--out", str(out)]
    code, printed, _ = tideover("detector", stream, *more)
    assert code == 0
    found = json.loads(printed)
    assert [one["false_restarts_per_day"] for one in found["timeouts"]] == [pytest.approx(12.0), 0]
    assert (found["own_s"], found["hardly_any_false_from_s"], found["processes"]) == (4, 5, 1)
    page = (out / "report.html").read_text("utf-8")
    assert "1 that pause, each 24.0 times a day, for 3.00 s on average" in page
    assert "From 5 s on there is less than one false restart a year." in page
    assert page.count("<svg") == 1


SCENARIO = ["wordcount", "--set", "strategy.kind=aligned_snapshots", "--set", "run.replications=2"]


def test_the_answer_follows_from_its_parts(tideover) -> None:
    """JSON and the function say the same, and the budget is what the objective leaves of 30 days."""
    more = ["--mtbf", "failures.0=2h", "--slo", "99.95%", "--over", "30d", "--json"]
    code, out, _ = tideover("availability", *SCENARIO, "--set", "failures.0.restart=6s", *more)
    assert code == 0
    found = json.loads(out)["availability"]
    mean = found["failures"]["failures.0 (lose_state)"]["recovery_s"]["mean"]
    assert mean > 6
    assert found["value"] == pytest.approx(math.exp(-mean / 7200))
    assert found["budget_s"] == pytest.approx(0.0005 * 30 * 86_400)
    assert found["burnt"] == pytest.approx((1 - found["value"]) / 0.0005)
    settings = {"strategy.kind": "aligned_snapshots", "run.replications": 2, "failures.0.restart": "6 s"}
    same = library.availability("wordcount", {"failures.0": "2 h"}, settings, slo=0.9995, over="30 d")
    assert same.to_dict()["availability"] == found


@pytest.mark.parametrize(
    ("slo", "verdict"), [("99%", "is met on average"), ("99.9%", "is broken on average")]
)
def test_the_terminal_says_whether_the_objective_is_met(tideover, slo, verdict) -> None:
    more = ["--mtbf", "task=2h", "--slo", slo, "--set", "failures.0.restart=20s"]
    code, out, _ = tideover("availability", *SCENARIO, *more)
    assert code == 0
    told = " ".join(out.split())
    assert 0 < told.index(verdict) < told.index("───")  # the answer comes before the table
    assert "1 task 4,383" in told  # a year of 365.25 days has so many times 2 h
