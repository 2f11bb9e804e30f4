"""``tideover interval`` and ``tideover detector``: what they print and write, and what they refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tideover
from tideover.cli import main

STREAM = """
name: stream
topology:
  log: {spout: keys, keys: 1, rate: 10/s}
  count: {bolt: windowed_count, from: {log: shuffle}, service: 50 ms, window: {length: 5 s, trigger: marker}}
strategy: {kind: aligned_snapshots, checkpoint_interval: 10 s, snapshot_time: 100 ms}
detector: {kind: heartbeats, interval: 2 s, timeout: 4 s, launch: 5 s}
failures: [{kind: crash_task, at: 30 s, component: count}]
run: {duration: 90 s, warmup: 10 s}
"""
MTBF = ["--mtbf", "failures.0=1h"]
PAUSES = ["--pauses", "3 s", "--every", "1h"]


@pytest.fixture
def stream(tmp_path: Path) -> str:
    path = tmp_path / "stream.yaml"
    path.write_text(STREAM, "utf-8")
    return str(path)


def called(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tideover", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_the_best_interval_is_said_and_drawn(monkeypatch, capsys, stream: str, tmp_path: Path) -> None:
    """Terminal, record and page say what the function finds, and the formulas beside it."""
    out, asked = tmp_path / "out", ["--intervals", "10s,20s,40s", "--replications", "4"]
    assert called(monkeypatch, "interval", stream, *MTBF, *asked, "--out", str(out)) == 0
    told = " ".join(capsys.readouterr().out.split())
    times = ["10 s", "20 s", "40 s"]
    found = tideover.interval(stream, {"failures.0": "1 h"}, intervals=times, replications=4)
    best = f"The best checkpoint interval is {found.least.seconds:.1f} s (95 % interval "
    assert best in told
    assert "10 s (now)" in told
    assert f"Young (1974) {found.formulas['young']:.1f}" in told
    assert f"tideover run {stream} --set strategy.checkpoint_interval=" in told
    assert json.loads((out / "result.json").read_text("utf-8"))["best"]["seconds"] == found.least.seconds
    page = (out / "report.html").read_text("utf-8")
    assert best in page
    assert page.count("<svg") == 1


def test_two_intervals_are_compared(monkeypatch, capsys, stream: str) -> None:
    """Through two points goes no curve: the better one is said, though the other is nearer to what is set."""
    asked = ["--intervals", "8s,24s", "--replications", "4"]
    assert called(monkeypatch, "interval", stream, *MTBF, *asked) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Of the intervals that were tried 24 s is the best" in told
    assert f"tideover run {stream} --set strategy.checkpoint_interval=24s" in told


def test_pauses_that_are_no_yaml_are_refused_by_their_option(monkeypatch, capsys, stream: str) -> None:
    broken = ["--pauses", "{kind: exponential", "--every", "1h"]
    assert called(monkeypatch, "detector", stream, *MTBF, *broken) == 2
    assert capsys.readouterr().err.startswith("--pauses: (option): is not valid YAML")


def test_false_restarts_are_said_and_drawn(monkeypatch, capsys, stream: str, tmp_path: Path) -> None:
    """Pauses of 3 s once an hour are missed half of the time at 4 s, and never at 5 s or more."""
    out, asked = tmp_path / "out", ["--timeouts", "4s,6s", "--replications", "4"]
    more = [*MTBF, *PAUSES, *asked, "--json", "--out", str(out)]
    assert called(monkeypatch, "detector", stream, *more) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["false_restarts_per_day"] for one in found["timeouts"]] == [pytest.approx(12.0), 0]
    assert (found["own_s"], found["hardly_any_false_from_s"], found["processes"]) == (4, 5, 1)
    page = (out / "report.html").read_text("utf-8")
    assert "1 that pause, each 24.0 times a day, for 3.00 s on average" in page
    assert "From 5 s on there is less than one false restart a year." in page
    assert page.count("<svg") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["interval"], "--mtbf: (option): is needed"),
        (["interval", *MTBF, *MTBF], "given twice"),
        (["interval", *MTBF, "--intervals", "10s,0s"], "--intervals: '0s': more than 0 s is needed"),
        (["interval", *MTBF, "--intervals", ","], "--intervals: ',': name at least one time"),
        (
            ["interval", *MTBF, "--set", "strategy.snapshot_time=0s"],
            "strategy.checkpoint_interval: checkpoints keep",
        ),
        (
            ["interval", *MTBF, "--intervals", "900d"],
            "900 d would need too long a run",
        ),
        (["detector", *MTBF, *PAUSES, "--timeouts", "1s"], "detector: interval (2 s) must not be longer"),
        (["detector", *MTBF, "--pauses", "soon", "--every", "1h"], "--pauses: (option): 'soon'"),
        (["detector", *MTBF, "--pauses", "3s", "--every", "often"], "--every: 'often'"),
        (["detector", *MTBF, "--pauses", "3s", "--every", "0s"], "--every: '0s': more than 0 s is needed"),
        (["detector", *MTBF, *PAUSES, "--set", "detector=null"], "detector: there is none"),
    ],
)
def test_bad_input_is_named(monkeypatch, capsys, stream: str, arguments: list[str], said: str) -> None:
    command, *more = arguments
    assert called(monkeypatch, command, stream, *more) == 2
    assert said in capsys.readouterr().err
