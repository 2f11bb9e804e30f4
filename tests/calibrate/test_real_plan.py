"""What is to be measured: plans are sound, survive a file, and hold enough out."""

import dataclasses
import json
from collections import Counter

import pytest
from pydantic import TypeAdapter

from tideover.calibrate.real.plan import (
    CLUSTER,
    LOCAL,
    Episode,
    Fault,
    SessionPlan,
    executors_of,
    full,
    quick,
    tiny,
)

PLANS = [tiny(), quick(), full()]


def session(*episodes, **changes):
    details = {"strategy": "micro_batch", "pipeline": "word_count", "master": CLUSTER, "seed": 1}
    return SessionPlan("a", **{**details, **changes}, episodes=episodes)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_session_survives_a_file(plan, tmp_path):
    """What is written of a plan has all that a session needs to be carried out."""
    plan.write(tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())["sessions"]
    assert tuple(TypeAdapter(SessionPlan).validate_python(one) for one in written) == plan.sessions


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
    steady = {
        held: {
            (p.pipeline, p.master, p.keys, e.rate_per_s)
            for p, e in episodes
            if not e.fault and e.held_out is held
        }
        for held in (True, False)
    }
    assert len(steady[True]) >= 6
    assert len(steady[False]) >= 8
    assert not steady[True] & steady[False]
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
    with pytest.raises(ValueError, match="without gaps"):
        session(kill, steady)
    with pytest.raises(ValueError, match="without gaps"):
        session()
    with pytest.raises(ValueError, match="no executors"):
        session(steady, kill, master=LOCAL)
    with pytest.raises(ValueError, match="inside its episode"):
        session(dataclasses.replace(kill, fault=Fault("kill_driver", 10.0)))
    with pytest.raises(ValueError, match="query"):
        session(dataclasses.replace(kill, fault=Fault("kill_driver", 1.0, query=1)))


def test_masters():
    assert executors_of("local[3]") == (0, 3)
    assert executors_of("local-cluster[2,3,1024]") == (2, 6)
    with pytest.raises(ValueError, match="neither"):
        executors_of("yarn")
