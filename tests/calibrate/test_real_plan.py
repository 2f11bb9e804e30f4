"""What is to be measured, on which machine, and what there is to read if it cannot be."""

import dataclasses
import json
import platform
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from pydantic import TypeAdapter

from tideover.calibrate.real import processes, sessions
from tideover.calibrate.real.plan import (
    CLUSTER,
    LOCAL,
    DriverSpec,
    Episode,
    Fault,
    SessionPlan,
    executors_of,
    full,
    quick,
    spark_settings,
    tiny,
)
from tideover.calibrate.real.processes import NotPossible, SessionFailed
from tideover.calibrate.real.supervisor import ENGINE
from tideover.calibrate.real.tables import TABLES
from tideover.scenarios.java import Java

PLANS = [tiny(), quick(), full()]


def session(*episodes, **changes):
    details = {"strategy": "micro_batch", "pipeline": "word_count", "master": CLUSTER, "seed": 1}
    return SessionPlan("a", **{**details, **changes}, episodes=episodes)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_session_survives_a_file(plan, tmp_path):
    """What is written of a plan has all that a session needs to be carried out."""
    sessions.write(plan, tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())["sessions"]
    assert tuple(TypeAdapter(SessionPlan).validate_python(one) for one in written) == plan.sessions


def test_stock_settings_leave_java_as_it_comes(tmp_path):
    """A plan's sessions say how Java is set, so those of another setting are measured anew."""
    plan = tiny().with_jvm("stock")
    (mine,) = plan.sessions
    assert mine != tiny().sessions[0]
    for one, told in ((mine, False), (tiny().sessions[0], True)):
        options = spark_settings(DriverSpec(one, 0, 0, "tag", tmp_path, tmp_path))[
            "spark.executor.extraJavaOptions"
        ]
        assert ("TieredStopAtLevel" in options) is told
        assert ("UseSerialGC" in options) is told
        assert "-Dtideover.tag=tag" in options.split()


def test_recoveries_have_more_time_with_stock_settings():
    """What is asked of each episode is the same; those with a fault last longer, the others do not."""
    for mine, shipped in zip(full().with_jvm("stock").sessions, full().sessions, strict=True):
        for one, other in zip(mine.episodes, shipped.episodes, strict=True):
            longer = (one.end_s - one.begin_s) - (other.end_s - other.begin_s)
            assert longer >= 10 if one.fault else longer == 0
            assert dataclasses.replace(one, begin_s=0.0, end_s=0.0) == dataclasses.replace(
                other, begin_s=0.0, end_s=0.0
            )
    assert full().with_jvm("shipped") == full()


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_slow_machine_has_the_same_work_and_more_time_for_it(plan):
    """Trigger by trigger as many rows, and faults in the same places; whoever sees no clock sees one plan."""
    assert plan.at_pace(1) == plan
    assert plan.at_pace(2).at_pace(3) == plan.at_pace(6)
    for slow, planned in zip(plan.at_pace(2).sessions, plan.sessions, strict=True):
        assert dataclasses.replace(slow, episodes=planned.episodes, trigger_s=1.0, window_s=2) == planned
        for one, other in zip(slow.episodes, planned.episodes, strict=True):
            assert (one.begin_s, one.end_s) == (2 * other.begin_s, 2 * other.end_s)
            assert slow.trigger_s * one.rate_per_s == planned.trigger_s * other.rate_per_s
            assert slow.window_s / slow.trigger_s == planned.window_s / planned.trigger_s
            assert (one.fault is None) is (other.fault is None)
            if one.fault:
                assert one.fault.at_s / slow.trigger_s == other.fault.at_s / planned.trigger_s
                assert one.fault.stop_s / slow.trigger_s == other.fault.stop_s / planned.trigger_s
                assert (one.fault.kind, one.fault.query) == (other.fault.kind, other.fault.query)
            assert (one.purpose, one.held_out) == (other.purpose, other.held_out)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_the_input_has_the_rate_of_each_episode(plan):
    for planned in plan.sessions:
        schedule = planned.schedule(1000)
        for episode in planned.episodes:
            begin, end = (schedule.rows_before(round(s * 1e6)) for s in (episode.begin_s, episode.end_s))
            assert end - begin == episode.rate_per_s * (episode.end_s - episode.begin_s)


def test_before_the_first_episode_each_key_has_been_seen():
    for planned in full().sessions:
        if planned.pipeline == "running_count":
            warm = planned.schedule(1000).rows_before(round(planned.episodes[0].begin_s * 1e6))
            assert warm >= planned.keys


def test_names_are_unique():
    for plan in PLANS:
        assert len({planned.name for planned in plan.sessions}) == len(plan.sessions)


def test_quick_leaves_time_for_the_fit_in_its_eight_minutes():
    assert quick().seconds <= 400


def test_quick_has_all_strategies_and_holds_out_a_kill_of_each():
    held_out = Counter(
        planned.strategy for planned in quick().sessions for e in planned.episodes if e.held_out and e.fault
    )
    assert set(held_out) == {"micro_batch", "source_replay", "active_replication"}


def test_full_holds_out_what_is_promised():
    """At least 6 steady states at rates or sizes that the fit does not see, and 8 for the fit; of each
    strategy at least 6 kills, of executors and drivers, at rates and moments that the fit does not see, and 5
    for the fit.
    """
    episodes = [(planned, e) for planned in full().sessions for e in planned.episodes]
    steady = [(e.held_out, (p.pipeline, p.master, p.keys, e.rate_per_s)) for p, e in episodes if not e.fault]
    unseen, seen = ({where for held_out, where in steady if held_out is held} for held in (True, False))
    assert len(unseen) >= 6
    assert len(seen) >= 8
    assert not unseen & seen
    for strategy in ("micro_batch", "source_replay", "active_replication"):
        kills = [
            e for p, e in episodes if p.strategy == strategy and e.fault and e.fault.kind != "stop_executor"
        ]
        held_out = [e for e in kills if e.held_out]
        assert len(held_out) >= 6
        assert {e.fault.kind for e in held_out} == {"kill_executor", "kill_driver"}
        fitted = {e.fault.at_s % 1 for e in kills if not e.held_out}
        assert len(kills) - len(held_out) >= 5
        assert not {e.fault.at_s % 1 for e in held_out} & fitted


def test_what_cannot_be_is_refused():
    steady = Episode(10.0, 20.0, 100, "steady")
    kill = Episode(20.0, 30.0, 100, "recovery", fault=Fault("kill_executor", 3.0))
    assert session(steady, kill).end_s == 30.0
    late = dataclasses.replace(kill, fault=Fault("kill_driver", 10.0))
    other = dataclasses.replace(kill, fault=Fault("kill_driver", 1.0, query=1))
    for episodes, master, says in (
        ((kill, steady), CLUSTER, "without gaps"),
        ((), CLUSTER, "without gaps"),
        ((steady, kill), LOCAL, "no executors"),
        ((late,), CLUSTER, "inside its episode"),
        ((other,), CLUSTER, "query"),
    ):
        with pytest.raises(ValueError, match=says):
            session(*episodes, master=master)


def test_masters():
    assert executors_of("local[3]") == (0, 3)
    assert executors_of("local-cluster[2,3,1024]") == (2, 6)
    with pytest.raises(ValueError, match="neither"):
        executors_of("yarn")


def test_a_machine_that_has_all_of_it(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**33, total=2**34))
    assert processes.requirements() == []


@pytest.mark.parametrize("lacks", ["memory", "java", "system"])
def test_what_is_missing_is_named_and_nothing_is_started(lacks, monkeypatch, tmp_path):
    available = 2**30 if lacks == "memory" else 2**33
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available, total=2**34))
    if lacks == "java":
        monkeypatch.setattr(processes, "find_java", lambda: None)
    if lacks == "system":
        monkeypatch.setattr(platform, "system", lambda: "Windows")
    (problem,) = processes.requirements()
    says = {
        "memory": "3 GiB of free memory, and there are 1.0 GiB",
        "java": "Java 17 or newer",
        "system": "Windows",
    }
    assert says[lacks] in problem
    with pytest.raises(NotPossible, match=says[lacks].split(",")[0]):
        sessions.run(ENGINE, tiny(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_calibrations_do_not_share_a_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(sessions, "requirements", list)
    with processes.locked(tmp_path), pytest.raises(NotPossible, match="another calibration"):
        sessions.run(ENGINE, tiny(), tmp_path)


def test_a_path_at_which_lists_of_paths_are_cut_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sessions, "requirements", list)
    with pytest.raises(NotPossible, match=r"--out: .*a,b: its path must not have ',' in it"):
        sessions.run(ENGINE, tiny(), tmp_path / "a,b")
    assert not (tmp_path / "a,b").exists()


class NoSpark:
    """Stands for a supervisor whose drivers do not start."""

    def __init__(self, plan, directory, *rest):
        assert directory.is_absolute()  # Spark's processes work elsewhere
        self.reason = f"session {plan.name}: not ready"

    def run(self):
        raise SessionFailed(self.reason)


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """(plan, directory, tables) of a calibration of which no session begins; the directory is relative."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "requirements", list)
    monkeypatch.setattr(sessions, "find_java", lambda: Java(Path("/java"), 17, "PATH"))
    engine = dataclasses.replace(ENGINE, supervisor=NoSpark)
    left = Path("measured", "sessions", quick().sessions[0].name, "scratch")
    left.mkdir(parents=True)  # by a command that was killed
    return quick(), Path("measured"), sessions.run(engine, quick(), Path("measured"))


def test_a_session_that_never_began_has_its_reason_in_the_tables(failed):
    plan, _, tables = failed
    assert tables["sessions"].error.tolist() == [f"session {s.name}: not ready" for s in plan.sessions]
    assert tables["sessions"].strategy.tolist() == [s.strategy for s in plan.sessions]
    assert all(tables[name].empty for name in TABLES if name != "sessions")


def test_it_is_not_done_and_its_tables_can_be_read_again(failed):
    plan, out, tables = failed
    assert not list(out.glob("sessions/*/scratch"))
    assert not any(sessions.is_done(out / "sessions" / s.name, s) for s in plan.sessions)
    again = sessions.collect(ENGINE, plan, out)
    assert all(table.equals(again[name]) for name, table in tables.items())


def test_law_others_are_what_is_left(monkeypatch):
    """In 2 s the cores spend 3 s; one of ours spends 1.0, and a new one 0.4: others 1.6 s, so 0.8 cores."""
    now, busy, ours = [0.0], [100.0], [{}]
    monkeypatch.setattr(processes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(processes, "_busy", lambda: busy[0])
    monkeypatch.setattr(processes, "_spent", lambda roots: dict(ours[0]))
    others = processes.OtherWork()
    now[0], ours[0] = 1.0, {(7, 0.0): 5.0}
    assert others.look([7]) is None  # what ours had spent before is not known
    now[0], busy[0], ours[0] = 3.0, 103.0, {(7, 0.0): 6.0, (8, 2.0): 0.4}
    assert round(others.look([7]), 9) == 0.8
    now[0] = 3.9
    assert others.look([7]) is None  # too early
    now[0], ours[0] = 4.0, {(8, 2.0): 0.4}
    assert others.look([7]) == 0.0  # 7 has ended
