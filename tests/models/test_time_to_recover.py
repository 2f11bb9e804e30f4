"""Time to recover: from the fault until output, state and backlog are as they would have been without it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import ONES
from tests.models.test_exactness import check
from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.evaluation.curves import curves
from tideover.models.schema import block
from tideover.models.simulation import Replication, simulate
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.units import S

WORD_COUNT = {
    "sentences": {"spout": "keys", "keys": 10, "rate": "50/s", "offset": "0 s"},
    "split": {"bolt": "forward", "from": {"sentences": "shuffle"}, "service": "1 ms"},
    "count": {
        "bolt": "windowed_count",
        "from": {"split": {"fields": ["key"]}},
        "service": "1 ms",
        "window": {"length": "30 s", "trigger": "tick"},
    },
}
STAGES = block("recoveries", "stages_s")
STRATEGIES: dict[str, dict[str, Any]] = {
    "none": {},
    "source_replay": {"message_timeout": "30 s", "timeout_phase": "10 s"},
    "rsm": {"checkpoint_interval": "5 s", "replay_cost": "1 ms"},
    "aligned_snapshots": {"checkpoint_interval": "5 s"},
    "micro_batch": {"trigger_interval": "1 s", "task_time": "50 ms"},
    "active_replication": {"k": 1},
}


def run(kind: str, failures: list[dict[str, Any]], duration: int = 240, **topology: Any) -> Replication:
    data = {
        "topology": WORD_COUNT | topology,
        "strategy": {"kind": kind, **STRATEGIES[kind]},
        "failures": failures,
        "run": {"duration": f"{duration} s", "warmup": "10 s"},
    }
    return simulate(load(data))


def lost(at: float, **more: Any) -> dict[str, Any]:
    return {"kind": "lose_state", "component": "count", "at": f"{at} s", **more}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_without_a_failure_there_is_no_recovery(kind: str) -> None:
    """And the reference of such a run is the run itself."""
    found = run(kind, [])
    assert found.recoveries == []
    assert all(row["backlog"] == row["backlog_without_failures"] for row in found.timeline)


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_failure_that_changes_nothing_takes_no_time(kind: str) -> None:
    """A spout that keeps nothing loses its state: nobody has it, nobody waits."""
    failure = {"kind": "lose_state", "component": "sentences", "at": "75 s"}
    (recovery,) = run("none" if kind == "source_replay" else kind, [failure]).recoveries
    assert recovery["time_to_recover_s"] == 0
    assert recovery["catch_up_s"] == 0
    assert recovery["throughput_90_s"] == 0
    assert recovery["output_gap_s"] == recovery["sink_spacing_s"]


def test_lost_state_is_healed_when_its_window_ends() -> None:
    """Amnesia at 75 s: what the window of 60 to 90 s should hold is gone; the next one is right again."""
    (recovery,) = run("none", [lost(75)]).recoveries
    assert recovery["time_to_recover_s"] == 15
    assert recovery["windows_stage_s"] == 15
    assert recovery["catch_up_s"] == 0


def test_state_that_no_window_clears_is_lost_for_good() -> None:
    """The same with a window that ends after the run: a count that lacks something is never as it would
    be.
    """
    endless = {**WORD_COUNT["count"], "window": {"length": "1000 s", "trigger": "tick"}}
    (recovery,) = run("none", [lost(75)], count=endless).recoveries
    assert recovery["catch_up_s"] == 0
    assert recovery["missing"] > 0
    assert recovery["time_to_recover_s"] is None


def test_waiting_for_the_timeout_is_a_stage_of_its_own() -> None:
    """Rotations at 10, 40, 70, 100, 130 s; the state is lost at 75 s. Its oldest root, of 60 s, was in the
    bucket of (40, 70] and fails at 100 s; the newest, of 75 s, was in that of (70, 100] and fails at 130 s.
    250 roots of (70, 75] are emitted again in 5 s, one a call: all have arrived by 135 s. They are in the
    window of 120 to 150 s, which is wrong for it.
    """
    (recovery,) = run("source_replay", [lost(75)]).recoveries
    stages = {stage.key: recovery[stage.name] for stage in STAGES}
    assert stages["wait"] == 25
    assert stages["replay"] == pytest.approx(35, abs=0.05)
    assert stages["windows"] == pytest.approx(15, abs=0.05)
    assert recovery["time_to_recover_s"] == 75
    assert sum(stages.values()) == pytest.approx(75)


def test_detection_and_restart_are_part_of_it() -> None:
    """Down from 75 to 82 s under R+SM: the stages say so, and the rest is the restore, replay and
    catch-up.
    """
    failure = {"kind": "crash_task", "component": "count", "at": "75 s", "detection": "4 s", "restart": "3 s"}
    (recovery,) = run("rsm", [failure]).recoveries
    assert (recovery["detect_s"], recovery["restart_s"]) == (4, 3)
    assert recovery["time_to_recover_s"] > 7 + recovery["state_recovery_s"] - 1e-9


def test_what_replicas_mask_takes_no_time() -> None:
    """One of two replicas is down for 7 s; the other goes on, and nothing that comes out is late."""
    failure = {"kind": "crash_task", "component": "count", "at": "75 s", "detection": "4 s", "restart": "3 s"}
    (recovery,) = run("active_replication", [failure]).recoveries
    assert recovery["time_to_recover_s"] == 0
    assert [recovery[stage.name] for stage in STAGES] == [0] * len(STAGES)


def test_two_that_overlap_are_over_together() -> None:
    """Down 75 to 95 s, and again from 85 to 105 s: none is over before the other."""
    down = {"kind": "crash_task", "component": "count", "detection": "10 s", "restart": "10 s"}
    first, second = run("rsm", [down | {"at": "75 s"}, down | {"at": "85 s"}]).recoveries
    assert first["time_to_recover_s"] == pytest.approx(second["time_to_recover_s"] + 10)
    assert second["time_to_recover_s"] > 20


def never_served(failures: tuple[Any, ...]) -> Replication:
    """s ──▶ p under snapshots: a root every 100 ms, and p is not done with the first before the run ends."""
    topology = {"s": spout(**ONES, gap=100), "p": bolt("forward", {"s": "shuffle"}, 10_000)}
    never: Any = {"checkpoint_interval": 10_000 * MS}
    return simulate(world(topology, "aligned_snapshots", failures, 4000, **never), trace=True)


def test_a_window_that_a_checkpoint_makes_wrong_is_not_the_failures() -> None:
    """p is kept for 20 ms from 95 ms on, and sends its window of 100 ms to q at 115: too late for that of q.
    So it is where nothing fails, too: a pause of 10 ms is over when it ends.
    """
    window = {"length": 100 * MS}
    topology: dict[str, Any] = {
        "s": spout("keys", gap=10, offset=5, keys=1),
        "p": bolt("windowed_count", {"s": "shuffle"}, window=window),
        "q": bolt("windowed_count", {"p": "shuffle"}, window=window),
    }
    pause = fault("pause", 85, component="q", duration=10 * MS)
    saved = {"checkpoint_interval": 95 * MS, "serialise_time": 20 * MS}
    scenario = world(topology, "rsm", (pause,), until=2000, **saved)
    check(scenario)
    found = simulate(scenario)
    assert found.windows["wrong"] > 0
    assert found.recoveries[0]["time_to_recover_s"] == 0.01


@pytest.mark.parametrize("kind", STRATEGIES)
def test_what_is_over_stays_over(kind: str) -> None:
    """Another failure of the same task, long after and not over when the run ends, changes nothing."""
    alone, both = run(kind, [lost(61)]), run(kind, [lost(61), lost(239, detection="30 s")])
    assert both.recoveries[1]["time_to_recover_s"] is None
    assert both.recoveries[0] == alone.recoveries[0]
    assert alone.recoveries[0]["time_to_recover_s"] is not None


@pytest.mark.parametrize("last", [3995, 4000])
def test_a_job_that_is_taken_back_is_there_once(last: int) -> None:
    """The loss of a state that nobody has changes nothing. What the crash destroys and opens again at its
    instant, the roots of 100, 200, …, is there once in its 10 ms, the 400th, and no more than it would be.
    """
    loss = fault("lose_state", 1010, component="s", detection=0, restart=0)
    crash = fault("crash_task", last, component="p", detection=0, restart=0)
    found = never_served((loss, crash))
    there, quiet = (curves(known(run.world)).present.tolist() for run in (found, never_served(())))
    assert [there[slot] for slot in (99, 100, 399, 400)] == [9, 10, 39, 40]
    assert there == quiet
    assert found.recoveries[0]["catch_up_s"] == found.recoveries[0]["time_to_recover_s"] == 0


def known(run: World | None) -> World:
    """Of a run with a trace."""
    assert run is not None
    return run


def times(row: dict[str, Any]) -> list[float | None]:
    """All that a recovery tells in seconds, but for moments of the run."""
    return [value for name, value in row.items() if name.endswith("_s") and not name.endswith("_at_s")]


@pytest.mark.parametrize("name", STRATEGY_NAMES)
@settings(max_examples=8)
@given(st.data())
def test_stages_add_up_and_no_time_is_negative(name: str, data: st.DataObject) -> None:
    """In any world, with any faults, which may overlap; it goes on for a while, so that some are recovered
    from.
    """
    scenario: Scenario = data.draw(worlds((name,)))
    run = scenario.run.model_copy(update={"duration": scenario.run.duration + 11 * S // 10})
    for row in simulate(scenario.model_copy(update={"run": run})).recoveries:
        assert all(value >= 0 for value in times(row) if value is not None), row
        stages = [row[stage.name] for stage in block("recoveries", "stages_s", row)]
        total = row["time_to_recover_s"]
        assert (total is None) == (stages[-1] is None)
        if total is not None:
            assert sum(stages) == pytest.approx(total, abs=1e-9)
            assert total >= row["catch_up_stage_s"]
