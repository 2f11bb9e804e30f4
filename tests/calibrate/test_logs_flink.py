"""What a JobManager's log says of a recovery: the stages are those of its lines, whatever else is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calibrate.made_logs import (
    EPOCH,
    JOB,
    SAMPLE,
    checkpoint,
    deployed,
    job,
    line,
    read,
    running,
    task,
    told,
)
from tideover.calibrate import logs
from tideover.calibrate.logs.findings import Findings
from tideover.calibrate.logs.flink_log import Clock, NoTime
from tideover.calibrate.logs.flink_quantities import heartbeats, seconds
from tideover.scenarios.errors import ScenarioError

# Of a real Flink 2.3.0 whose TaskManager tm1 was killed: stage, when, and what its line says. The first two
# restarts deploy to the dead one.
REAL = [
    (
        "failed",
        "19:15:20,517",
        "Association with remote system [pekko.tcp://flink@127.0.0.1:39497] has failed",
    ),
    ("detected", "19:15:20,720", "(1/3) .* switched from RUNNING to FAILED on tm2"),
    ("restart_tried", "19:15:21,816", "switched from state RESTARTING to RUNNING"),
    ("restart_failed", "19:15:21,886", "(2/3) .* switched from DEPLOYING to FAILED on tm1"),
    ("restart_tried", "19:15:22,906", "switched from state RESTARTING to RUNNING"),
    ("restart_failed", "19:15:22,940", "(2/3) .* switched from DEPLOYING to FAILED on tm1"),
    ("given_up", "19:15:23,180", "TaskManager with id tm1 is no longer reachable"),
    ("restart_tried", "19:15:23,971", "switched from state RESTARTING to RUNNING"),
    ("slots", "19:15:30,179", "(3/3) .* switched from SCHEDULED to DEPLOYING"),
    ("deployed", "19:15:31,160", "(2/3) .* switched from DEPLOYING to INITIALIZING"),
    ("running", "19:15:32,857", "(2/3) .* switched from INITIALIZING to RUNNING"),
    ("snapshot", "19:15:34,649", "Completed checkpoint 17"),
]


@pytest.fixture(scope="module")
def sample() -> Findings:
    (found,) = logs.read(SAMPLE).found
    return found


def test_a_real_failure_stage_by_stage(sample: Findings) -> None:
    """Every stage is at the time of the line that it names, and that line says so."""
    (failure,) = sample.failures
    lines = (SAMPLE / "jm.log").read_text().splitlines()
    assert [stage.name for stage in failure.stages] == [name for name, _, _ in REAL]
    for stage, (_, time, says) in zip(failure.stages, REAL, strict=True):
        written = lines[stage.mark.line - 1]
        assert written.startswith(f"2026-11-24 {time}")
        assert re.search(says.replace("[", r"\[").replace("(", r"\(").replace(")", r"\)"), written)
        minutes, rest = divmod(
            stage.at - 1795547700, 60
        )  # 19:15:00 UTC, by the checkpoint's own milliseconds
        assert (minutes, round(rest, 3)) == (0, float(time[6:].replace(",", ".")))
    assert (failure.kind, failure.attempts) == ("kill", 3)
    assert failure.cause.startswith("RemoteTransportException: Connection unexpectedly closed")


def test_values_of_the_real_one(sample: Findings) -> None:
    """Parts of its recovery are differences of the times above; the delay is 1 s, as configured, and a
    little: 21.816 - 20.720, 22.906 - 21.886 and 23.971 - 22.940.
    """
    found = {quantity.name: quantity for quantity in sample.quantities}
    assert found["detected"].value == pytest.approx(0.203)
    assert found["restart_delay"].value == pytest.approx(1.031)
    assert (found["restart_delay"].n, found["restarts"].value) == (3, 3)
    assert found["replacement"].value == pytest.approx(30.179 - 20.517)
    assert found["deployment"].value == pytest.approx(31.160 - 30.179)
    assert found["state_load"].value == pytest.approx(32.857 - 31.160)
    assert found["outage"].value == pytest.approx(32.857 - 20.517)
    assert found["checkpoint_interval"].value == 2.0
    assert "jm.log" in found["checkpoint_interval"].meaning
    assert {name for name, one in found.items() if not one.identified} == {
        *("unseen", "rate", "capacity", "catch_up"),
    }
    assert sample.settings["state.backend.type"].value == "rocksdb"  # only config.yaml has it
    assert sample.settings["state.backend.type"].mark.line == 22
    assert heartbeats(sample.settings) == (2.0, 10.0)
    checkpoints = sample.tables["checkpoints"].set_index("checkpoint")
    assert checkpoints.loc[15, "restored"] == 3
    assert checkpoints.loc[29, "size_bytes"] == 1396086  # of REST's answer alone


def test_a_task_throws(tmp_path: Path) -> None:
    """No process is lost: there are slots at once. All run when the last task does, 2.25 s after the restart;
    the checkpoint that completes before says nothing of it.
    """
    after = [
        task(10, 0, 0, "RUNNING", "FAILED", "tm1"),
        "java.lang.RuntimeException: a bad row",
        job(10.25, "RUNNING", "RESTARTING"),
        task(10.5, 1, 0, "RUNNING", "CANCELING"),
        task(10.75, 1, 0, "CANCELING", "CANCELED"),
        job(20, "RESTARTING", "RUNNING"),
        *deployed(20, 1),
        *checkpoint(2, 23, 24),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    (failure,) = found.failures
    assert told(failure) == [
        *(("failed", 10), ("detected", 10), ("restart_tried", 20)),
        *(("slots", 20.25), ("deployed", 21.25), ("running", 22.25), ("snapshot", 24)),
    ]
    assert (failure.kind, failure.cause) == ("task", "RuntimeException: a bad row")
    values = {quantity.name: quantity.value for quantity in found.quantities}
    assert (values["restart_delay"], values["slots"], values["state_load"]) == (10, 0.25, 1)


def test_a_lost_process_of_others_is_no_sign(tmp_path: Path) -> None:
    """None of the job's tasks is on tm2, so it is by chance that its connection has just broken."""
    log = [
        line(-61, "Registering TaskManager with ResourceID tm2 (akka.tcp://flink@h2:1/user/rpc/tm) at R"),
        *running(),
        line(9.9, "Association with remote system [akka.tcp://flink@h2:1] has failed, address is now gated"),
        task(10, 0, 0, "RUNNING", "FAILED", "tm1"),
    ]
    (found,) = read(tmp_path, log)
    assert (found.failures[0].kind, told(found.failures[0])) == ("task", [("failed", 10), ("detected", 10)])


def test_heartbeats_end(tmp_path: Path) -> None:
    """A machine is lost: no connection breaks. The first sign is that its heartbeat has timed out."""
    after = [
        line(50, "The heartbeat of TaskManager with id tm1 timed out."),
        task(50.1, 0, 0, "RUNNING", "FAILED", "tm1"),
        job(50.2, "RUNNING", "RESTARTING"),
        line(50.3, "Heartbeat of TaskManager with id tm1 timed out."),
        task(50.4, 1, 0, "RUNNING", "CANCELED"),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    (failure,) = found.failures
    assert told(failure) == [("failed", 50), ("detected", 50.1), ("given_up", 50.3)]
    assert failure.kind == "kill"
    assert not found.predictions  # no recovery was seen whole
    assert found.profile is None


def test_a_failed_restart_begins_no_new_failure(tmp_path: Path) -> None:
    """But a failure after all tasks have run does, even before a checkpoint is complete."""
    again = [job(11, "RUNNING", "RESTARTING"), job(12, "RESTARTING", "RUNNING"), *deployed(12, 2)]
    after = [
        *(task(10, sub, 0, "RUNNING", "FAILED") for sub in (0, 1)),
        job(10, "RUNNING", "RESTARTING"),
        job(10.5, "RESTARTING", "RUNNING"),
        *deployed(10.5, 1)[:2],
        task(10.75, 0, 1, "DEPLOYING", "FAILED"),
        task(10.75, 1, 1, "SCHEDULED", "CANCELED"),
        *again,
        task(20, 0, 2, "RUNNING", "FAILED"),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    first, second = found.failures
    assert [name for name, _ in told(first)] == [
        *("failed", "detected", "restart_tried", "restart_failed", "restart_tried"),
        *("slots", "deployed", "running"),
    ]
    assert told(second) == [("failed", 20), ("detected", 20)]


def test_the_adaptive_scheduler_makes_a_new_graph(tmp_path: Path) -> None:
    """It cancels the job's graph where the default scheduler says RESTARTING, and makes another one."""
    other = "c" * 32
    after = [
        task(10, 0, 0, "RUNNING", "FAILED", "tm1"),
        job(10, "RUNNING", "CANCELLING"),
        task(10, 1, 0, "RUNNING", "CANCELED"),
        job(10.25, "CANCELLING", "CANCELED"),
        line(15, f"Created execution graph {other} for job {JOB}."),
        job(15, "CREATED", "RUNNING"),
        *deployed(15, 0, graph=other),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    (failure,) = found.failures
    assert told(failure)[1:] == [
        *(("detected", 10), ("restart_tried", 15), ("slots", 15.25), ("deployed", 16.25), ("running", 17.25)),
    ]


def test_cancelling_is_no_failure(tmp_path: Path) -> None:
    after = [
        job(10, "RUNNING", "CANCELLING"),
        task(10, 0, 0, "RUNNING", "CANCELED"),
        job(11, "CANCELLING", "CANCELED"),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    assert found.failures == ()


def test_two_jobs_in_one_log(tmp_path: Path) -> None:
    """A task belongs to the job of its execution graph: the other job's failure is its own."""
    other = {"name": "other", "id": "d" * 32, "graph": "e" * 32}
    both = [one for pair in zip(running(), running(**other), strict=True) for one in pair]
    (count, second) = read(tmp_path, [*both, task(10, 0, 0, "RUNNING", "FAILED", graph="e" * 32)])
    assert (count.source, count.failures) == (f"count ({JOB[:8]})", ())
    assert told(second.failures[0]) == [("failed", 10), ("detected", 10)]


def test_flink_1_13_in_another_time_zone(tmp_path: Path) -> None:
    """No INITIALIZING, attempts without a graph, other words for checkpoints, thread names, ISO times two
    hours ahead of UTC: the checkpoint's milliseconds tell so.
    """

    def old(at: float, text: str) -> str:
        layout = "INFO  {time} [flink-akka.actor.default-dispatcher-2] o.a.flink.X - {text}"
        return re.sub(r"(\d\d) (\d\d:)", r"\1T\2", line(at + 7200, text, layout), count=1)

    def switch(at: float, attempt: str, before: str, after: str) -> str:
        return old(at, f"Source: in (1/1) ({attempt}) switched from {before} to {after}.")

    epoch = round(1000 * (EPOCH + 5))
    text = [
        old(0, f"Job old ({JOB}) switched from state CREATED to RUNNING."),
        *(switch(0, "1" * 32, *states) for states in (("CREATED", "SCHEDULED"), ("SCHEDULED", "DEPLOYING"))),
        switch(1, "1" * 32, "DEPLOYING", "RUNNING"),
        old(5, f"Triggering checkpoint 1 (type=CHECKPOINT) @ {epoch} for job {JOB}."),
        old(6, f"Completed checkpoint 1 for job {JOB} (3500 bytes in 1000 ms)."),
        switch(10, "1" * 32, "RUNNING", "FAILED"),
        old(10, f"Job old ({JOB}) switched from state RUNNING to RESTARTING."),
        old(11, f"Job old ({JOB}) switched from state RESTARTING to RUNNING."),
        old(11, f"Restoring job {JOB} from latest valid checkpoint: Checkpoint 1 @ {epoch} for {JOB}."),
        *(switch(11, "2" * 32, *states) for states in (("CREATED", "SCHEDULED"), ("SCHEDULED", "DEPLOYING"))),
        switch(13, "2" * 32, "DEPLOYING", "RUNNING"),
    ]
    (found,) = read(tmp_path, text)
    assert told(found.failures[0])[1:] == [
        *(("detected", 10), ("restart_tried", 11), ("slots", 11), ("deployed", 13), ("running", 13)),
    ]
    (row,) = found.tables["checkpoints"].to_dict("records")
    assert (row["duration_s"], row["restored"], row["completed_at_s"]) == (1.0, 1.0, EPOCH + 6)


def test_rolled_logs_go_by_their_times(tmp_path: Path) -> None:
    """jm.log.1 is older than jm.log, and a failure may go on in the next file; its marks name the file."""
    first = [*running(), task(10, 0, 0, "RUNNING", "FAILED")]
    then = [
        job(10, "RUNNING", "RESTARTING"),
        task(11, 1, 0, "RUNNING", "CANCELED"),
        job(12, "RESTARTING", "RUNNING"),
    ]
    (found,) = read(tmp_path, [*then, *deployed(12, 1)], first, names=("jm.log", "jm.log.1"))
    (failure,) = found.failures
    assert [stage.mark.file for stage in failure.stages] == ["jm.log.1"] * 2 + ["jm.log"] * 4
    assert failure.after("running") == 4.25


def test_logs_of_two_jobmanagers_are_apart(tmp_path: Path) -> None:
    """A log that begins before the other ends is of another process: its job has its own findings."""
    other = running("other", "d" * 32, "e" * 32)
    found = read(tmp_path, running(), other, names=("one.log", "two.log"))
    assert [one.source for one in found] == [f"count ({JOB[:8]})", "other (dddddddd)"]


def test_each_log_has_the_configuration_that_is_nearest(tmp_path: Path) -> None:
    """Two clusters, each in a folder of its own; what lies above both is of both."""
    (tmp_path / "flink-conf.yaml").write_text("jobmanager.rpc.port: 6123\nheartbeat.timeout: 9 s\n")
    for name in ("one", "two"):
        (tmp_path / name / "conf").mkdir(parents=True)
        (tmp_path / name / "jm.log").write_text("".join(f"{each}\n" for each in running()))
    (tmp_path / "one" / "conf" / "config.yaml").write_text(
        "jobmanager:\n  x: 1\nheartbeat:\n  interval: 3 s\n"
    )
    first, second = logs.read(tmp_path).found
    assert (first.source, second.source) == (f"count ({JOB[:8]})", f"count ({JOB[:8]}) #2")
    assert [heartbeats(one.settings) for one in (first, second)] == [(3.0, 9.0), (10.0, 9.0)]
    assert first.settings["heartbeat.interval"].mark.line == 4


def test_the_jobmanager_comes_back(tmp_path: Path) -> None:
    """With the same job, which it starts anew: that is a failure, seen when the job runs again."""
    after = [
        line(30, "Starting StandaloneSessionClusterEntrypoint (Version: 2.3.0, Scala: 2.12)"),
        line(40, f"Created execution graph {'c' * 32} for job {JOB}."),
        job(41, "CREATED", "RUNNING"),
        *deployed(41, 0, graph="c" * 32),
    ]
    (found,) = read(tmp_path, [*running(), *after])
    (failure,) = found.failures
    assert failure.cause == "the JobManager has started again"
    assert told(failure)[:2] == [("failed", 3.5), ("detected", 30)]
    assert failure.after("running") == pytest.approx(43.25 - 3.5)


BROKEN = st.one_of(
    st.binary(max_size=60).map(lambda junk: junk.replace(b"\n", b"")),
    st.sampled_from((SAMPLE / "jm.log").read_bytes().splitlines()).flatmap(
        lambda whole: st.integers(0, max(whole.find(b" to "), 24)).map(lambda end: whole[:end])
    ),
)
"""Bytes, or a line of the log itself that is cut off before it has said what happened."""


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), BROKEN), max_size=30))
def test_broken_lines_change_no_stage(
    sample: Findings, tmp_path_factory: pytest.TempPathFactory, junk: list[tuple[int, bytes]]
) -> None:
    """Wherever they are, the stages have the same times, and name the same lines, which have moved down."""
    lines = [(place, one) for place, one in enumerate((SAMPLE / "jm.log").read_bytes().splitlines())]
    mixed = [*lines]
    for place, broken in junk:
        mixed.insert(place % (len(mixed) + 1), (-1, broken))
    folder = tmp_path_factory.mktemp("broken")
    (folder / "jm.log").write_bytes(b"".join(one + b"\n" for _, one in mixed))
    (found,) = logs.read(folder).found
    now = [(s.name, s.at, mixed[s.mark.line - 1][0] + 1) for f in found.failures for s in f.stages]
    assert now == [(s.name, s.at, s.mark.line) for f in sample.failures for s in f.stages]


@settings(max_examples=12, deadline=None)
@given(st.floats(0, 1))
def test_cut_off_anywhere(tmp_path_factory: pytest.TempPathFactory, part: float) -> None:
    """What is read of a log that ends too soon is what the whole one says until there, and it is said."""
    text = (SAMPLE / "jm.log").read_bytes()
    cut = text[: round(part * len(text))]
    folder = tmp_path_factory.mktemp("cut")
    (folder / "jm.log").write_bytes(cut)
    (folder / "config.yaml").write_bytes((SAMPLE / "config.yaml").read_bytes())
    try:
        evidence = logs.read(folder)
    except ScenarioError:
        assert cut.count(b"\n") < 13  # where the job is named first
        return
    stages = [stage for one in evidence.found for failure in one.failures for stage in failure.stages]
    lines = text.splitlines()
    for stage in stages:
        assert stage.mark.line <= cut.count(b"\n") + 1
        assert lines[stage.mark.line - 1][:23].decode().endswith(f"{stage.at % 1:.3f}"[2:])
    fixed = [s.name for s in stages if s.name in ("failed", "detected", "restart_tried", "restart_failed")]
    assert fixed == [name for name, _, _ in REAL if name in set(fixed)][: len(fixed)]
    if cut and not cut.endswith(b"\n") and b"Version" in cut:
        assert any("has no end" in said for said in evidence.problems.lines())


@pytest.mark.parametrize(
    "written",
    [
        b"2026-03-01 12:00:10,250 UTC INFO  org.x - text",
        b"INFO  2026-03-01T12:00:10.250Z [main] org.x - text",
        b"2026-03-01T14:00:10.250+02:00 INFO text",
        b'{"@timestamp":"2026-03-01T12:00:10.250Z","log.level":"INFO","message":"text"}',
        b'{"thread":"main","message":"text","instant":{"epochSecond":1772366410,"nanoOfSecond":250000000}}',
        b'{"timeMillis":1772366410250,"thread":"main","message":"text"}',
        b'{"log":"2026-03-01 12:00:10,250 INFO  org.x - text\\n","stream":"stdout"}',
    ],
)
def test_times_of_usual_layouts(written: bytes) -> None:
    clock = Clock()
    assert clock.utc(clock.at(written)) == EPOCH + 10.25


@pytest.mark.parametrize(
    "written", [b"", b"\tat java.lang.Thread", b"12:00:10,250 INFO", b"{", b"2026-13-01 00:00:00,000"]
)
def test_lines_without_a_time(written: bytes) -> None:
    with pytest.raises(NoTime):
        Clock().at(written)


def test_a_clock_that_is_set_back() -> None:
    """At the end of daylight saving time an hour comes twice; the next checkpoint tells from when on."""
    clock = Clock()
    clock.anchor(7200.0 + 100.5, 100.0)
    clock.anchor(3600.0 + 8000.25, 8000.0)
    assert [clock.utc(local) for local in (7200.0, 7400.0, 3600 + 8000.25, 3600 + 9000.0)] == [
        0,
        200,
        8000.25,
        9000,
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("10000", 10.0), ("10 s", 10.0), ("2min", 120.0), ("1 h", 3600.0), ("500 ms", 0.5), ("x", None)],
)
def test_durations_of_the_configuration(text: str, value: float | None) -> None:
    assert seconds(text) == value
