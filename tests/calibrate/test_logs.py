"""Logs of any kind are found by what is in them, read whole or as far as they can be, and shown."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from tests.calibrate.made_logs import (
    SAMPLE,
    checkpoint,
    deployed,
    failures_and_memory,
    job,
    line,
    read,
    running,
    task,
)
from tideover.calibrate import logs
from tideover.calibrate.logs import files
from tideover.calibrate.logs.durations import PRIOR, USUAL, next_one
from tideover.calibrate.logs.files import LogFile
from tideover.calibrate.logs.findings import Problems
from tideover.reports.columns import LOG_FINDINGS
from tideover.scenarios.loader import load
from tideover.sim.units import S

Called = Callable[..., tuple[int, str, str]]


@given(
    st.lists(st.binary(max_size=9).map(lambda one: one.replace(b"\n", b" ")), max_size=12), st.integers(1, 7)
)
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], block: int
) -> None:
    """However it is cut into blocks, a file has its lines, each with its number."""
    path = tmp_path_factory.mktemp("lines") / "x"
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK", block)
        patch.setattr(files, "COMPRESSED", {})  # random bytes may begin as an archive does
        assert list(LogFile(path, "x", Problems()).lines()) == list(enumerate(lines, 1))


def test_a_line_that_is_too_long_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LINE", 4)
    monkeypatch.setattr(files, "_BLOCK", 3)
    problems = Problems()
    (tmp_path / "x").write_bytes(b"abcdefghij\nok\n")
    assert list(LogFile(tmp_path / "x", "x", problems).lines()) == [(1, b"abcd"), (2, b"ok")]
    assert [(p.line, "longer than" in p.message) for p in problems.told] == [(1, True)]


BROKEN = [
    (
        "ck.json",
        '{"counts":{"restored":1,"in_progress":0},\n"history":[{,',
        "ck.json:2: (line): is no JSON at",
    ),
    (
        "ck.json",
        '{"counts":{"restored":1,"in_progress":0},\n"history":[{"id":1',
        "ck.json:2: (line): is no JSON",
    ),
    (
        "ck.json",
        '{"counts":{"restored":1,"in_progress":0},"history":[{"id":1}, 7]}',
        "ck.json: history: a checkpoint is passed over: trigger_timestamp is missing",
    ),
    ("ex.json", '{"exceptionHistory":{"entries":[{"stacktrace":"x"}]}}', "timestamp is missing"),
    ("config.yaml", "jobmanager:\n  rpc\n", "config.yaml:2: (line): is no setting (key: value)"),
    (
        "other.log",
        "2026-01-01 00:00:00,000 flink Job x switched from state RUN\n",
        "other.log:1: (line): is cut",
    ),
    (
        "other.log",
        "2026-01-01 00:00:00,000 flink\n x switched from state A\nJob x switched from state A\n",
        ":3:",
    ),
    ("other.log", "2026-01-01 00:00:00,000 flink\n2026-19-41 00:00:00,000 x switched from\n", "is no time"),
    ("notes.txt", "what we did on Friday\n", "not read, as of no known kind: notes.txt"),
]


@pytest.mark.parametrize(("name", "text", "says"), BROKEN)
def test_what_is_broken_is_named_and_the_rest_is_read(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / "jm.log").write_bytes((SAMPLE / "jm.log").read_bytes())
    (tmp_path / name).write_text(text)
    evidence = logs.read(tmp_path)
    assert [one.source for one in evidence.found if one.failures] == ["count (da371103)"]
    assert any(says in said for said in evidence.warnings), evidence.warnings


def test_many_broken_lines_are_counted(tmp_path: Path) -> None:
    broken = [line(0, "Completed checkpoint 7 for j")] * 30
    (tmp_path / "jm.log").write_text("\n".join([running()[2], *broken]) + "\n")
    said = list(logs.read(tmp_path).problems.lines())
    assert said[0].startswith("jm.log:2: (line): is cut off")
    assert said[5].startswith("jm.log: 25 more such lines")


def test_rest_alone(tmp_path: Path) -> None:
    """Without a log: exceptions that follow each other are one failure; it is over when a checkpoint is."""
    for name in ("ck.json", "ex.json"):
        (tmp_path / name).write_bytes((SAMPLE / name).read_bytes())
    (found,) = logs.read(tmp_path).found
    (failure,) = found.failures
    assert [stage.name for stage in failure.stages] == [
        *("failed", "detected", "restart_failed", "restart_failed", "snapshot"),
    ]
    assert failure.began == 1795547720.74
    assert failure.cause.startswith("RemoteTransportException: Connection unexpectedly closed")


@pytest.mark.long
def test_a_gigabyte_in_bounded_memory(tmp_path: Path) -> None:
    """18,000 times the same log, packed: each has a failure, and from the second on the JobManager has
    started again with its job, which is one more. Kept are the stages of these, in less than 400 MB.
    """
    text = (SAMPLE / "jm.log").read_bytes()
    (tmp_path / "jm.log.gz").write_bytes(gzip.compress(text * 4, 1) * 4500)
    failures, kilobytes = failures_and_memory(tmp_path)
    assert 18_000 * len(text) > 9.9e8
    assert failures == 2 * 18_000 - 1
    assert kilobytes < 400_000


def test_configuration_alone_tells_of_no_job(tideover: Called, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes((SAMPLE / "config.yaml").read_bytes())
    code, printed, said = tideover("calibrate", "--from", str(tmp_path))
    assert (code, printed) == (2, "")
    assert said.startswith("config.yaml: (file): is of Flink, but nothing here tells of a job; give a JobMan")


def test_a_log_without_failures_asks_for_one(tmp_path: Path) -> None:
    """Checkpoints 1, 2 and 5: the interval is that of those that follow each other."""
    more = [*checkpoint(2, 13, 14), *checkpoint(5, 93, 94), *checkpoint(6, 103, 104)]
    (found,) = read(tmp_path, [*running(), *more])
    told = {one.name: one for one in found.quantities}
    assert told["checkpoint_interval"].value == 10
    assert [one.name for one in found.quantities if not one.identified] == ["outage"]
    assert found.most_help.startswith("one failure: kill a TaskManager")


# Durations, and what comes next.


def test_after_one_observation_the_prior_tells() -> None:
    """Student's distribution with ``PRIOR`` degrees of freedom, about the one that was seen."""
    low, high = next_one([10.0], (0.05, 0.95))
    factor = math.exp(USUAL * math.sqrt(2) * student.ppf(0.95, PRIOR))
    assert (low, high) == (pytest.approx(10 / factor), pytest.approx(10 * factor))


def test_after_many_the_data_tell() -> None:
    """Then it is nearly that of the logarithm's normal distribution: the prior widens it by 2 %."""
    logarithms = norm.ppf((np.arange(4000) + 0.5) / 4000, 1.0, 0.05)
    low, high = next_one(np.exp(logarithms).tolist(), (0.05, 0.95))
    assert math.log(high / low) == pytest.approx(2 * 0.05 * norm.ppf(0.95), rel=0.03)


def test_intervals_hold_what_comes_next() -> None:
    """Of durations that differ by ``USUAL``, three are seen: the fourth lies in the interval 9 times of 10.

    3,000 trials have a standard error of 0.5 %.
    """
    drawn = np.exp(np.random.default_rng(1).normal(2.0, USUAL, (3000, 4)))
    ends = [next_one(row[:3].tolist(), (0.05, 0.95)) for row in drawn]
    inside = np.mean([low <= row[3] <= high for row, (low, high) in zip(drawn, ends, strict=True)])
    assert 0.88 < inside < 0.95


def recovered(at: float, slots: float, first: float = 10) -> list[str]:
    """tm1 is lost at ``first``, a restart comes a second later, and slots are there after ``slots``."""
    states = deployed(first + 1 + slots, 1)
    waits = [one for one in states if "CREATED to SCHEDULED" in one]
    return [
        line(
            first, "Association with remote system [akka.tcp://flink@h1:1] has failed, address is now gated"
        ),
        task(first + at, 0, 0, "RUNNING", "FAILED", "tm1"),
        job(first + at, "RUNNING", "RESTARTING"),
        task(first + at, 1, 0, "RUNNING", "CANCELED"),
        job(first + 1, "RESTARTING", "RUNNING"),
        *(waits and [task(first + 1, sub, 1, "CREATED", "SCHEDULED") for sub in (0, 1)]),
        *(one for one in states if one not in waits),
        *checkpoint(2, first + 20, first + 21),
    ]


def test_a_machine_that_is_silent_is_found_out_by_its_heartbeats(tmp_path: Path) -> None:
    """Heartbeats of Flink's default: nothing shows for 40 to 50 s, so no outage is shorter than that, the
    restart's delay and the start of the tasks; where a replacement is there by then, that is all it takes.
    """
    (found,) = read(tmp_path, [*running(), *recovered(0.5, 3.0)])
    told = {one.what: one for one in found.predictions if one.measure == "outage"}
    start = 0.5 + 2.25  # the delay, and tasks
    lost = told["a machine is lost, and replaced as before"]
    assert 40 + start - 1 < lost.low < lost.estimate < lost.high < 50 + 2 * start
    assert lost.estimate == pytest.approx(45 + start, abs=1)
    assert told["a process is killed, and replaced as before"].estimate == pytest.approx(1 + 3.25 + 2, abs=1)
    assert told["a task throws an exception"].estimate == pytest.approx(start, abs=0.5)


def test_catch_up_by_load(tmp_path: Path) -> None:
    """What waits is worked off at the capacity that the input leaves: at a load of a half as long as it took
    to come, at 80 % four times as long.
    """
    (found,) = read(tmp_path, [*running(), *recovered(0.5, 3.0), *checkpoint(3, 41, 42)])
    told = {(one.what, one.measure): one.estimate for one in found.predictions}
    every = "checkpoints every 19 s"
    waits = told[every, "backlog"]
    assert told[f"{every}, load 50 %", "catch_up"] == pytest.approx(waits)
    assert told[f"{every}, load 80 %", "catch_up"] == pytest.approx(4 * waits)


# On the command line.


def test_the_command_shows_stages_and_writes_a_profile(tideover: Called, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, printed, _ = tideover("calibrate", "--from", str(SAMPLE), "--out", str(out))
    assert code == 0
    assert "count (da371103): 1 failure" in printed
    assert "jm.log:60" in printed
    assert "The one measurement that would help most" in printed
    page = (out / "report.html").read_text()
    assert "jm.log:60" in page
    assert "restart fails" in page
    record = json.loads((out / "result.json").read_text())
    assert [row["stage"] for row in record["stages"]][:2] == ["failed", "detected"]
    assert record["predicted"]
    for name, frame in logs.read(SAMPLE).frames.items():
        assert set(frame.columns) == {column.name for column in LOG_FINDINGS[name]}
    scenario = load("flink-recovery", [f"profile={out / 'count-da371103.yaml'}"])
    assert scenario.failures[0].detection == pytest.approx(0.203 * S, rel=0.01)
    assert scenario.strategy.cycle() == (2 * S, 2 * S)


def test_the_command_refuses_a_folder_without_logs(tideover: Called, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    code, printed, said = tideover("calibrate", "--from", str(tmp_path))
    assert (code, printed) == (2, "")
    assert "none of its 1 files is of a kind that is known. Known are: a Flink JobManager's log" in said
