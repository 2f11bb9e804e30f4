"""Calibration on Flink, without Flink: what is planned, what outputs mean, what is fitted and predicted."""

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports.made_up import shown
from tideover.calibrate.calibration import NothingToFit
from tideover.calibrate.episodes import NAN, BacklogCurve
from tideover.calibrate.flink import analysis, cluster
from tideover.calibrate.flink.analysis import Prediction
from tideover.calibrate.flink.kills import Costs, Kill, fit, fluid, simulated, without_trickle
from tideover.calibrate.flink.plan import Episode, SessionPlan, configuration, full, quick, tiny
from tideover.calibrate.flink.supervisor import Supervisor
from tideover.calibrate.flink.tables import TABLES, Output, put_out, read_outputs, tables
from tideover.calibrate.real.processes import NotPossible, Registry, SessionFailed
from tideover.calibrate.real.sessions import frame
from tideover.models.detectors.heartbeats import Heartbeats
from tideover.reports.calibration.page import calibration_view
from tideover.reports.columns import CALIBRATION
from tideover.scenarios.java import Java
from tideover.scenarios.loader import load
from tideover.sim.distributions import Constant

EPISODE = Episode(10.0, 40.0, 1000, 12.0)


def session(*episodes, **changes):
    return SessionPlan("a", 2.0, episodes or (EPISODE,), **changes)


# What is planned.


def test_the_full_plan_is_what_was_asked_for():
    """30 kills over three intervals and three rates, a third held out, under an hour; the quick one under
    eight minutes. Moments differ, and each lies within one interval behind the same time of quiet.
    """
    kills = [(s.interval_s, e) for s in full().sessions for e in s.episodes]
    assert len(kills) >= 30
    assert len({interval for interval, _ in kills}) == len({e.rate_per_s for _, e in kills}) == 3
    assert sum(e.held_out for _, e in kills) == len(kills) / 3
    assert full().seconds < 3600
    assert quick().seconds < 480
    ages = [e.kill_s - min(e.kill_s for _, e in kills) for _, e in kills]
    assert len(set(ages)) == len(kills)
    assert all(age <= interval for age, (interval, _) in zip(ages, kills, strict=True))
    assert quick(1) == quick(1) != quick(2)


@pytest.mark.parametrize(
    ("episodes", "changes", "says"),
    [
        ((), {}, "without gaps"),
        ((EPISODE, replace(EPISODE, begin_s=41.0, end_s=60.0)), {}, "without gaps"),
        ((replace(EPISODE, kill_s=30.0),), {}, "inside its episode"),
        ((EPISODE,), {"taskmanagers": 0}, "there are 0 TaskManagers"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(episodes, changes, says):
    with pytest.raises(ValueError, match=says):
        SessionPlan("a", 2.0, episodes, **changes)


def test_law_a_split_has_the_rows_of_its_share_of_the_rates():
    """1000/s for 40 s, as the first rate holds from the start, then 500/s for 10 s, in two splits."""
    plan = session(EPISODE, Episode(40.0, 50.0, 500, 1.0))
    assert plan.pieces == ((0.0, 1000), (40.0, 500))
    assert plan.split_rows == 22_500


def test_nothing_listens_beyond_the_loopback():
    """Hosts and addresses are 127.0.0.1, ports are free ones; each place is the session's own."""
    made = configuration(session(), "/scratch")
    hosts = {value for key, value in made.items() if key.endswith(("host", "address"))}
    assert hosts == {"127.0.0.1"}
    assert {key for key in made if key.endswith(("bind-host", "bind-address"))} == {
        "jobmanager.bind-host",
        "taskmanager.bind-host",
        "rest.bind-address",
    }
    assert {value for key, value in made.items() if key.endswith("port")} == {"0"}
    assert made["io.tmp.dirs"].startswith("/scratch/")
    assert made["execution.checkpointing.dir"] == "file:///scratch/checkpoints"


# What the sink noted.


def output(subtask, *lines):
    """Of (moment, newest row of each split)."""
    at, newest = zip(*lines, strict=True)
    none = np.zeros(len(at))
    return Output(subtask, np.array(at, float), none, none, none, np.array(newest, float))


def test_rows_are_out_up_to_the_slowest_channel():
    """Rows 0 to 4 of both splits are out for both subtasks at 30, as subtask 1 has split 1 up to there; after
    its end a new writer of subtask 0 begins below, which takes nothing back, and then brings all to row 7.
    """
    noted = [
        output(0, (10, (5, 6)), (25, (9, 9))),
        output(1, (20, (8, -1)), (30, (8, 4)), (50, (9, 7))),
        output(0, (40, (2, 1))),
    ]
    moments, rows = put_out(noted, 2)
    assert moments.tolist() == [10, 20, 25, 30, 40, 50]
    assert rows.tolist() == [0, 0, 0, 10, 10, 16]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.tuples(*[st.integers(-1, 9)] * 3))))
def test_law_outputs_are_the_least_of_the_most(lines):
    """By definition: at each moment, the least over channels of the most that each has noted until then."""
    noted = [output(subtask, (at, newest)) for subtask, at, newest in lines]
    moments, rows = put_out(noted, 3)
    assert moments.tolist() == sorted({at for _, at, _ in lines})
    for moment, done in zip(moments, rows, strict=True):
        channels = {
            (subtask, split): max(
                (n[split] for s, at, n in lines if s == subtask and at <= moment), default=-1
            )
            for subtask in range(3)
            for split in range(3)
        }
        assert done == 3 * (1 + min(channels.values()))


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    (tmp_path / "out-1-0.csv").write_text("1000,5,0,1,7,-1\n1020,9,0,2,8,3\n1040,1")
    (tmp_path / "out-0-3.csv").write_text("")
    empty, found = read_outputs(tmp_path, 2)
    assert (empty.subtask, len(empty.at)) == (0, 0)
    assert found.subtask == 1
    assert found.at.tolist() == [1000, 1020]
    assert found.many.tolist() == [1, 2]
    assert found.newest.tolist() == [[7, -1], [8, 3]]


def test_a_trickle_ends_no_silence():
    """After 1.0 the next rows come at 3.0, but only 5; with 3.4 it is 60, counted from before. At 3.5 rows
    come at once, however few.
    """
    moments, rows = np.array([0.9, 1.0, 3.0, 3.4, 3.5]), np.array([90.0, 100.0, 105.0, 160.0, 161.0])
    kept = without_trickle(moments, rows, 50.0)
    assert kept[0].tolist() == [0.9, 1.0, 3.4, 3.5]
    assert kept[1].tolist() == [90.0, 100.0, 160.0, 161.0]


# Tables of a session, of files as Flink, the sink and the supervisor write them.

T0 = 1_795_905_908
TASK = "count -> out: Writer ({}/1) (61d5b6c31d09868355fcaf89e738fd51_20ba6b65f97481d5570070de90e4e791_0_{})"
JOB = "Job count (52bdb600503f458877184b51c917d241)"


def log(*lines):
    """Lines of a JobManager's log: s since t0, logger, text."""
    at = (np.datetime64(T0, "s") + np.timedelta64(round(1000 * s), "ms") for s, *_ in lines)
    texts = (f"{who:60} [] - {text}" for _, who, text in lines)
    stamps = (str(moment).replace("T", " ").replace(".", ",") for moment in at)
    return "".join(f"{stamp} INFO  {text}\n" for stamp, text in zip(stamps, texts, strict=True))


def recorded(directory, outputs):
    graph, coordinator = (
        f"org.apache.flink.runtime.{name}"
        for name in ("executiongraph.ExecutionGraph", "checkpoint.CheckpointCoordinator")
    )
    id, first, second = JOB[11:-1], TASK.format(1, 0), TASK.format(1, 1)
    who, other = (
        "org.apache.flink.runtime.resourcemanager",
        "ResourceID taskmanager-0-1 (pekko.tcp://x/user/y)",
    )
    gone = "TaskManager with id taskmanager-0-0 is no longer reachable."
    trigger = f"(type=CheckpointType{{name='Checkpoint'}}) @ {T0 * 1000 + 20_000}"
    restored = f"Restoring job {id} from Checkpoint 9 @ {T0 * 1000 + 20_000} for {id} located at file:/x."
    (directory / "jobmanager.log").write_text(
        log(
            (0.1, graph, f"Created execution graph 61d5b6c31d09868355fcaf89e738fd51 for job {id}."),
            (0.2, graph, f"{JOB} switched from state CREATED to RUNNING."),
            (0.3, graph, f"{first} switched from CREATED to SCHEDULED."),
            (0.4, graph, f"{first} switched from SCHEDULED to DEPLOYING."),
            (0.5, graph, f"{first} switched from DEPLOYING to INITIALIZING."),
            (0.6, graph, f"{first} switched from INITIALIZING to RUNNING."),
            (20.0, coordinator, f"Triggering checkpoint 9 {trigger} for job {id}."),
            (
                20.3,
                coordinator,
                f"Completed checkpoint 9 for job {id} (3 bytes, checkpointDuration=300 ms).",
            ),
            (22.2, graph, f"{first} switched from RUNNING to FAILED on taskmanager-0-0 @ localhost."),
            (22.2, graph, f"{JOB} switched from state RUNNING to RESTARTING."),
            (23.2, graph, f"{JOB} switched from state RESTARTING to RUNNING."),
            (23.2, coordinator, restored),
            (23.2, graph, f"{second} switched from CREATED to SCHEDULED."),
            (24.5, "org.apache.flink.runtime.jobmaster.JobMaster", gone),
            (25.0, f"{who}.StandaloneResourceManager", gone),
            (28.5, f"{who}.StandaloneResourceManager", f"Registering TaskManager with {other}"),
            (29.0, graph, f"{second} switched from SCHEDULED to DEPLOYING."),
            (29.5, graph, f"{second} switched from DEPLOYING to INITIALIZING."),
            (30.0, graph, f"{second} switched from INITIALIZING to RUNNING."),
        )
    )
    plan = session(taskmanagers=1)
    begun = {"t0": T0, "java": "17", "plan": asdict(plan)}
    (directory / "session.json").write_text(json.dumps(begun))
    events = [{"event": "kill", "at": T0 + 22.0, "episode": 0, "victim": "taskmanager-0-0"}]
    events += [{"event": "replaced", "at": T0 + 23.0, "episode": 0, "name": "taskmanager-0-1"}]
    events += [
        {"event": "others", "at": T0 + at, "cores": cores} for at, cores in [(9, 9.0), (11, 0.5), (39, 1.5)]
    ]
    (directory / "supervisor.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    one = {"id": 9, "status": "COMPLETED", "trigger_timestamp": T0 * 1000 + 20_000}
    one |= {"end_to_end_duration": 300, "state_size": 300}
    (directory / "checkpoints.json").write_text(json.dumps({"history": [one]}))
    for name, lines in outputs.items():
        text = "".join(f"{T0 * 1000 + round(1000 * s)},{','.join(map(str, cells))}\n" for s, *cells in lines)
        (directory / name).write_text(text)


def test_a_session_is_read_off_its_files(tmp_path, monkeypatch):
    """Stages are those of the log's lines; the kill is the supervisor's. Of the wrong counts those since the
    kill count, one too small before it does not.
    """
    monkeypatch.setattr("tideover.calibrate.flink.tables.version", lambda name: "2.3.0")
    recorded(
        tmp_path,
        {
            "out-0-0.csv": [(5.0, 100, 1, 0, 99), (22.0, 500, 1, 0, 499)],
            "out-0-1.csv": [(30.2, 1, 0, 0, 450), (31.0, 200, 2, 3, 649)],
        },
    )
    found = tables(tmp_path)
    assert {name: list(table.columns) for name, table in found.items()} == {
        name: [column.name for column in columns] for name, columns in TABLES.items()
    }
    (kill,) = found["kills"].round(6).to_dict("records")
    assert kill == {
        "session": "a",
        "episode": 0,
        "held_out": False,
        "begin_s": 10.0,
        "end_s": 40.0,
        "rate_per_s": 1000,
        "victim": "taskmanager-0-0",
        "at_s": 22.0,
        "triggered_s": 20.0,
        "detected_s": 22.2,
        "restarts": 1,
        "refused_s": pytest.approx(NAN, nan_ok=True),
        "given_up_s": 24.5,
        "freed_s": 25.0,
        "registered_s": 28.5,
        "ordered_s": 23.2,
        "slots_s": 29.0,
        "running_s": 30.0,
        "output_s": 30.2,
        "few": 2,
        "many": 3,
        "others_cores": 1.0,
    }
    assert found["outputs"][["at_s", "rows"]].to_numpy().tolist() == [
        [5, 100],
        [22, 500],
        [30.2, 500],
        [31, 650],
    ]
    assert found["checkpoints"].duration_s.tolist() == [0.3]
    assert found["sessions"].rows.tolist() == [40_000]


# What is fitted, and predicted.


def kill(outage=8.0, age=2.0, capacity=3000.0, rate=1000.0, **changes):
    """A kill at 50 s after which all is as a fluid: nothing for the outage, then rows at the capacity from
    where the checkpoint was, and at the rate again from when the backlog is gone.
    """
    at, end = 50.0, 50.0 + outage + rate * (age + outage) / (capacity - rate) + 15
    moments = np.arange(0, end, 0.02)
    after = rate * (at - age) + capacity * (moments - at - outage)
    rows = np.where(moments < at, rate * moments, np.minimum(np.maximum(after, rate * at), rate * moments))
    new = np.concatenate(([False], np.diff(rows) > 1e-9))
    stages = {
        "detected_s": at + 0.2,
        "given_up_s": at + 3,
        "freed_s": at + 3,
        "registered_s": at + outage - 1,
        "ordered_s": at + 4,
        "slots_s": at + outage - 1,
        "running_s": at + outage,
    }
    given = {
        **{"session": "a", "episode": 0, "held_out": False, "interval_s": 5.0, "rate_per_s": rate},
        **{"heartbeat_s": 2.0, "timeout_s": 10.0, "restart_delay_s": 1.0, "refused_s": 0.05},
        **{"begin_s": 30.0, "end_s": end, "at_s": at, "triggered_s": at - age, "restarts": 3, **stages},
        **{"output_s": at + outage, "few": 0, "many": 0, "others_cores": 0.0, "snapshot_s": 0.2},
        "curve": BacklogCurve(moments[new], rows[new], (np.array([0, end]), np.array([0, rate * end]))),
    }
    return Kill(**given | changes)


def law(outage, age, capacity, rate):
    """Silent until the rows since the checkpoint are there again; then the backlog of age and outage goes."""
    return outage + rate * age / capacity, outage + rate * (age + outage) / (capacity - rate)


CASES = st.tuples(
    st.floats(7, 15), st.floats(0.1, 5), st.floats(2000, 9000), st.sampled_from([500.0, 1500.0])
)


@settings(max_examples=20, deadline=None)
@given(CASES)
def test_law_what_is_measured_of_a_fluid(case):
    """Silence, catch-up and capacity in closed form: within the sink's 20 ms, and the backlog's tolerance of
    a quarter of what is normal there (20 ms of rows).
    """
    found = kill(*case)
    gap, back = law(*case)
    assert found.figures()["output_gap_s"] == pytest.approx(gap, abs=0.06)
    assert found.figures()["catch_up_s"] == pytest.approx(back, abs=0.15)
    rows, lasted = found.work()
    assert rows / lasted == pytest.approx(case[2], rel=0.25 / (back - found.outage_s))


@settings(max_examples=15, deadline=None)
@given(CASES)
def test_law_the_simulated_counterpart_does_the_same(case):
    """What is simulated of a kill has the figures of its closed form, and loses nothing: the replacement has
    registered, 6 s after the kill or later, when the lost TaskManager has been given up, after two heartbeats
    of 2 s, and the next restart is due.
    """
    outage, _, capacity, _ = case
    found = simulated(kill(*case), Costs(0.2, 0.05, 3.0, outage - 1, 1.0, 0.05, capacity, outage))
    gap, back = law(*case)
    assert found.figures()["output_gap_s"] == pytest.approx(gap, abs=0.05)
    assert found.figures()["catch_up_s"] == pytest.approx(back, abs=0.1)
    assert (found.lost, found.duplicated) == (0, 0)


def test_law_a_prediction_is_not_the_luck_of_one_run():
    """Restarts are tried each 1.02 s, and there are slots 3.46 s after the kill. The third restart, 3.11 s
    after it, waits for them, unless it, too, fails on the lost TaskManager, as heartbeats have it.
    """
    found = Prediction.of(kill(), Costs(0.07, 0.02, 2.6, 3.46, 0.59, 0.06, 14_000.0, 4.05))
    gaps = {run.restarts: run.figures()["output_gap_s"] for run in found.runs}
    assert gaps[4] - gaps[3] == pytest.approx(0.07 + 1 + 3 * 1.02 - 3.46, abs=0.02)
    assert found.figures["output_gap_s"] == gaps[3] == found.typical.figures()["output_gap_s"]


def test_a_silence_that_is_not_over_is_not_measured():
    """The episode ends 9 s after the kill; rows beyond those before it come after 8.67 s, or 10.67 s."""
    assert "output_gap_s" in kill(8.0, end_s=59.0).figures()
    late = kill(10.0, end_s=59.0, at_s=49.8)  # who survives goes on for 0.2 s
    assert late.figures() == {}
    assert np.isnan(late.work()).all()


def test_what_a_kill_costs_is_the_mean_of_its_stages():
    """Until another has registered it takes 7 and 9 s: 63 ** 0.5, the geometric mean. At 3000/s 10 s of rows
    take 5 s, at 6000/s 12 s of rows 2.4 s: together (15,000 + 14,400) / 7.4 s. Weights count.
    """
    found = [kill(8.0), kill(10.0, capacity=6000.0)]
    costs = fit(found)
    assert (costs.connection, costs.given_up, costs.prepare) == pytest.approx((0.2, 3.0, 1.0))
    assert costs.replacement == pytest.approx(63**0.5)
    assert costs.capacity == pytest.approx(29_400 / 7.4, rel=0.03)
    assert fit(found, np.array([2.0, 0.0])).outage == pytest.approx(8.0)
    assert fit([kill(8.0, ordered_s=57.4)]).prepare == pytest.approx(0.6)  # the restart is ordered last
    assert fit([kill(8.0, freed_s=57.7)]).prepare == pytest.approx(0.3)  # the slots of the lost one are


def test_law_the_fluid_law_finds_its_own_constants():
    """Kills whose figures are the law's own tell D and C."""

    class Exact:
        def __init__(self, rate, age):
            self.rate_per_s, self.age_s, self.outage_s = rate, age, 7.0

        def figures(self):
            back = 9.0 + self.rate_per_s * (self.age_s + 9.0) / (4000 - self.rate_per_s)
            return {"output_gap_s": 9.0, "catch_up_s": back}

    found = [Exact(rate, age) for rate in (500, 1500, 2500) for age in (0.5, 4.0)]
    assert fluid(found)(2000, 2.0) == pytest.approx(Exact(2000, 2.0).figures(), rel=1e-4)


MADE = [(8.0, 1.0, 1000.0), (9.0, 3.0, 1500.0), (10.0, 4.0, 1000.0), (8.5, 2.0, 1500.0), (9.5, 0.5, 1000.0)]
"""Outage, age and rate."""


@pytest.fixture(scope="module")
def measured():
    """Tables of five kills as of a fluid with 3000 rows/s, one of them held out; outages differ."""
    sessions, struck, noted, told = [], [], [], []
    for i, (outage, age, rate) in enumerate(MADE):
        one = kill(outage, age, 3000.0, rate, session=f"s{i}", held_out=i == 4, end_s=90.0)
        sessions.append({"session": one.session, "interval_s": 5.0, "end_s": one.end_s, "t0": "2026"})
        sessions[-1] |= {"heartbeat_s": 2.0, "timeout_s": 10.0, "restart_delay_s": 1.0}
        sessions[-1] |= {"pieces": json.dumps([[0.0, rate]]), "machine": "m", "os": "Linux", "java": "17"}
        sessions[-1] |= {c.name: 0 for c in TABLES["sessions"] if c.dtype == "int64"}
        struck.append({c.name: getattr(one, c.name) for c in TABLES["kills"] if c.name != "victim"})
        rows = zip(one.curve.outputs, one.curve.done.round(), strict=True)
        noted += [{"session": one.session, "at_s": at, "rows": n} for at, n in rows]
        told.append(
            {"session": one.session, "checkpoint": 1, "status": "COMPLETED", "duration_s": 0.2, "bytes": 1}
        )
    rows = {"sessions": sessions, "kills": struck, "checkpoints": told, "outputs": noted}
    return {name: frame(columns, rows[name]) for name, columns in TABLES.items()}


@pytest.fixture(scope="module")
def calibrated(measured):
    return analysis.analyse(measured, lambda done, what: None)


def test_a_calibration_of_made_up_kills(calibrated):
    """Predictions of kills that the mechanism describes are off by what their own outages differ from the
    mean, since nothing else is left; its profile gives ``flink-recovery`` what was fitted.
    """
    found = calibrated
    pairs = found.frames["pairs"].set_index(["session", "measure"])
    assert pairs.groupby("session").held_out.first().tolist() == [False] * 4 + [True]
    mean = 1 + np.exp(np.mean([np.log(outage - 1) for outage, *_ in MADE[:-1]]))
    gaps = pairs.xs("output_gap_s", level="measure")
    for (outage, age, rate), row in zip(MADE, gaps.itertuples(), strict=True):
        assert row.predicted == pytest.approx(mean + age * rate / 3000, abs=0.15)
        assert row.measured == pytest.approx(outage + age * rate / 3000, abs=0.08)
    held_out = pairs[pairs.held_out]
    assert (held_out.low < held_out.measured).all()
    assert (held_out.measured < held_out.high).all()
    assert np.isfinite(held_out.fluid_error).all()
    assert {*found.frames["pairs"]} == {column.name for column in CALIBRATION["pairs"]}
    (row,) = found.frames["correctness"].to_dict("records")
    assert (row["kills"], row["exact"], row["missing"], row["simulated_lost"]) == (5, 5, 0, 0)
    assert set(found.frames["timelines"].session) == {"s4"}
    text = shown(calibration_view(found.frames, found.warnings))
    assert "fluid law" in text


def test_its_profile_is_one_that_scenarios_take(calibrated, tmp_path):
    path = tmp_path / "flink.yaml"
    path.write_text(calibrated.profiles["flink-running-count"])
    scenario = load("flink-recovery", [f"profile={path}", "rate=1000/s", "checkpoint_interval=5s"])
    (failure,) = scenario.failures
    assert failure.detection == pytest.approx(0.2e9, rel=1e-3)
    assert (failure.detection + failure.restart) / 1e9 == pytest.approx(
        1 + (7 * 8 * 9 * 7.5) ** 0.25, rel=1e-3
    )
    assert 1e9 / scenario.topology["job"].service.value == pytest.approx(3000, rel=0.05)


def test_its_profile_gives_a_detector_its_stages(calibrated, tmp_path):
    """By the same keys, a job whose detector finds out by itself has the outage that was measured."""
    path = tmp_path / "flink.yaml"
    path.write_text(calibrated.profiles["flink-running-count"])
    scenario = {
        "topology": {
            "log": {"spout": "keys", "keys": 1, "rate": "1000/s"},
            "job": {"bolt": "windowed_count", "from": {"log": "shuffle"}, "window": "60 s"},
        },
        "strategy": {"kind": "aligned_snapshots", "checkpoint_interval": "5 s"},
        "detector": {"kind": "heartbeats"},
        "failures": [{"kind": "crash_task", "component": "job", "at": "20 s"}],
        "profile": str(path),
        "run": {"duration": "60 s"},
    }
    detector = load(scenario).detector
    assert isinstance(detector, Heartbeats)
    assert detector.connection == Constant(value=round(0.2e9))
    assert detector.replacement.value / 1e9 == pytest.approx((7 * 8 * 9 * 7.5) ** 0.25, rel=1e-3)


def test_what_is_not_known_of_some_kills_stops_nothing(measured):
    """No restart failed, one kill had no checkpoint, one session failed, and one job was silent."""
    changed = {name: table.copy() for name, table in measured.items()}
    struck, sessions = changed["kills"], changed["sessions"]
    struck["refused_s"] = struck["given_up_s"] = struck["freed_s"] = NAN
    struck.loc[struck.session == "s0", "triggered_s"] = NAN
    struck.loc[struck.session == "s1", ["output_s", "end_s"]] = NAN, 57.0
    sessions.loc[sessions.session == "s2", "error"] = "session s2: a reason"
    more = {name: table.assign(session=table.session + "+") for name, table in measured.items()}
    changed = {name: pd.concat([table, more[name]], ignore_index=True) for name, table in changed.items()}
    found = analysis.analyse(changed, lambda done, what: None)
    assert set(found.frames["pairs"].session) == {"s1", "s3", "s4", *(f"s{i}+" for i in range(5))}
    silent = found.frames["pairs"].set_index(["session", "measure"]).loc["s1"]
    assert silent.measured.isna().all()
    assert silent.predicted.notna().all()
    assert any("s0 #0" in one and "no checkpoint" in one for one in found.warnings)
    assert any("a reason" in one for one in found.warnings)


def test_too_few_kills_are_named(measured):
    some = {name: table[table.session.isin(["s0", "s4"])] for name, table in measured.items()}
    with pytest.raises(NothingToFit, match="1 kills were recovered from, 3 are needed") as told:
        analysis.analyse(some, lambda done, what: None)
    assert "s0 #0" in str(told.value)


# What may be missing, or go wrong.


def test_a_machine_without_flink_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(NotPossible, match=r'pip install "tideover\[flink\]"'):
        cluster.jars()


def java(directory, script):
    """A stand-in for Java."""
    path = directory / "bin" / "java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Java(directory, 17, "PATH")


def test_a_cluster_that_does_not_start_says_what_it_printed(monkeypatch, tmp_path):
    """And nothing is left of it."""
    monkeypatch.setattr(cluster, "jars", lambda: "/jars/*")
    registry = Registry(tmp_path / "processes.json")
    compiles = 'case "$*" in *SimpleCompiler*) for jar in "$@"; do :; done; touch "$jar"; exit 0;; esac; '
    fake = java(tmp_path, compiles + "sleep 100 & echo no memory for the heap >&2; exit 3")
    (tmp_path / "logs").mkdir()
    plan = tiny().sessions[0]
    with pytest.raises(SessionFailed, match="jobmanager ended by itself with code 3") as told:
        Supervisor(plan, tmp_path / "logs", registry, fake, lambda at: None).run()
    assert "no memory for the heap" in str(told.value)
    assert registry.entries() == []


def test_a_job_that_does_not_compile_says_why(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "jars", lambda: "/jars/*")
    with pytest.raises(NotPossible, match="no such compiler"):
        cluster.build_job(java(tmp_path, "echo no such compiler >&2; exit 1"), tmp_path / "job.jar")
