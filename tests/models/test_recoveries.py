"""How long recoveries take, what they are measured against, and how they end.

Time to recover: from the fault until output, state and backlog are as they would have been without it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.models.chain import ONES
from tests.models.test_exactness import check
from tests.oracle.random_worlds import STRATEGY_NAMES, worlds
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.advice import warnings
from tideover.models.config import Scenario
from tideover.models.evaluation.curves import (
    CALM,
    SLACK,
    curves,
    first_calm,
    greatest_near,
    least_near,
    reach_of,
    too_high,
)
from tideover.models.evaluation.measures import longest_silence
from tideover.models.results import Result
from tideover.models.schema import LOSSY, OPEN, RECOVERED, UNAFFECTED, block, ending
from tideover.models.simulation import Replication, simulate
from tideover.scenarios.loader import load
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

STRATEGIES: dict[str, dict[str, Any]] = {
    "none": {},
    "source_replay": {"message_timeout": "30 s", "timeout_phase": "10 s"},
    "rsm": {"checkpoint_interval": "5 s", "replay_cost": "1 ms"},
    "aligned_snapshots": {"checkpoint_interval": "5 s"},
    "micro_batch": {"trigger_interval": "1 s", "task_time": "50 ms"},
    "active_replication": {"k": 1},
}
PAUSE = {"kind": "pause", "component": "count"}
CRASH = {"kind": "crash_task", "component": "count", "detection": "4 s", "restart": "3 s"}


def job(kind: str, *failures: dict[str, Any], end: float = 150, window: int = 10, **more: Any) -> Scenario:
    """keys (50/s, on host 0) ──▶ split (host 1) ──▶ count (host 2, such windows in s); host 3 is empty."""
    topology = {
        "keys": {"spout": "keys", "keys": 10, "rate": "50/s", "offset": "0 s", "hosts": [0]},
        "split": {"bolt": "forward", "from": {"keys": "shuffle"}, "service": "1 ms", "hosts": [1]},
        "count": {
            "bolt": "windowed_count",
            "from": {"split": {"fields": ["key"]}},
            "service": "1 ms",
            "window": {"length": f"{window} s", "trigger": "tick"},
            "hosts": [2],
        },
    }
    data = {
        "topology": topology,
        "hosts": 4,
        "strategy": {"kind": kind, **STRATEGIES[kind]},
        "store": {"latency": "1 ms", "bandwidth": "100 MiB/s"},
        "failures": failures,
        "run": {"duration": f"{end} s", "warmup": "10 s"},
    }
    return load(data | more)


def run(kind: str, *failures: dict[str, Any], **more: Any) -> Replication:
    return simulate(job(kind, *failures, **more))


UNFELT = {
    "store_down": ("none", {"kind": "store_down", "duration": "20 s"}),
    "slow_store": ("active_replication", {"kind": "slow_store", "duration": "20 s"}),
    "host of spouts": ("rsm", {"kind": "slow_host", "host": 0, "factor": 0.1, "duration": "20 s"}),
    "empty host": ("rsm", {"kind": "crash_host", "host": 3, "detection": "10 s", "restart": "10 s"}),
    "no acker": ("none", {"kind": "crash_task", "component": "acker", "restart": "20 s"}),
    "no link": ("rsm", {"kind": "partition", "hosts": [0], "others": [2, 3], "duration": "20 s"}),
    "no slow link": (
        "none",
        {"kind": "slow_link", "hosts": [0], "others": [2], "latency_factor": 9, "duration": "20 s"},
    ),
}


@pytest.mark.parametrize("what", UNFELT)
def test_a_failure_that_nothing_has_to_do_with_has_no_recovery(what: str) -> None:
    """It lasts 20 s, and in them a task crashes: neither changes what is said of the other. What the one
    costs is what it costs alone, and the other is over at once; all else is as without it.
    """
    kind, failure = UNFELT[what]
    alone = run(kind, CRASH | {"at": "75 s"})
    both = run(kind, failure | {"at": "70 s"}, CRASH | {"at": "75 s"})
    unfelt, crash = both.recoveries
    assert (unfelt["time_to_recover_s"], unfelt["catch_up_s"], unfelt["ended"]) == (0, 0, UNAFFECTED)
    assert unfelt["roots_lost"] == 0
    assert crash == alone.recoveries[0]
    assert both.dependability == alone.dependability
    assert both.latency.summary(1) == alone.latency.summary(1)


@pytest.mark.parametrize("at", [69, 72])
def test_a_store_that_is_asked_for_something_is_felt(at: int) -> None:
    """Checkpoints are due at 70 and 75 s: one is asked for within 4 s from either moment, and waits."""
    (row,) = run("rsm", {"kind": "store_down", "at": f"{at} s", "duration": "4 s"}).recoveries
    assert row["time_to_recover_s"] == 4
    assert row["ended"] == RECOVERED


def test_each_failure_has_the_roots_that_it_cost() -> None:
    """Amnesia: a crash at 42 s takes what the window of 40 s has, and what comes in 7 s: 2 + 7 s of 50/s; one
    at 95 s has 5 s of a window. What the ledger has lost is what the two cost.
    """
    found = run("none", CRASH | {"at": "42 s"}, CRASH | {"at": "95 s"})
    assert [row["roots_lost"] for row in found.recoveries] == [9 * 50, 12 * 50]
    assert [row["ended"] for row in found.recoveries] == [LOSSY, LOSSY]
    assert found.ledger["lost"] == 21 * 50


@pytest.mark.parametrize("kind", ["rsm", "source_replay"])
def test_what_comes_again_is_no_loss(kind: str) -> None:
    """The same crash, of which these strategies send everything again."""
    (row,) = run(kind, CRASH | {"at": "42 s"}).recoveries
    assert (row["roots_lost"], row["ended"]) == (0, RECOVERED)


def test_what_is_lost_without_failures_too_is_put_down_to_none() -> None:
    """A split that is too slow drops what finds its queue full, all the time: 50/s come, 40/s are served.
    While it is paused nothing is served for 2 s: that costs 80 roots more, and no others.
    """
    topology = {
        "keys": {"spout": "keys", "keys": 1, "rate": "50/s", "offset": "0 s"},
        "split": {"bolt": "forward", "from": {"keys": "shuffle"}, "service": "25 ms"},
    }
    more = {"topology": topology, "queues": {"length": 10, "when_full": "drop"}}
    pause = {"kind": "pause", "component": "split", "at": "40 s", "duration": "2 s"}
    quiet, paused = run("none", end=60, **more), run("none", pause, end=60, **more)
    (row,) = paused.recoveries
    assert quiet.ledger["lost"] > 0
    assert row["ended"] == LOSSY
    assert 80 <= row["roots_lost"] < quiet.ledger["lost"]


def test_a_recovery_without_an_end_is_none() -> None:
    endings = [ending(*one) for one in ((None, 5), (0, 0), (0, 1), (2.5, 0))]
    assert endings == [OPEN, UNAFFECTED, LOSSY, RECOVERED]


def test_a_pause_of_a_replica_with_a_live_peer_is_masked() -> None:
    """Nobody waits until it passes after 9 s: its peer counts and puts windows out. What waits at it is a
    backlog, as where nobody masks the pause, and all that is to be caught up with.
    """
    failure = PAUSE | {"at": "42 s", "duration": "9 s"}
    (masked,), (alone,) = (run(kind, failure).recoveries for kind in ("active_replication", "rsm"))
    assert (masked["passing_s"], alone["passing_s"]) == (0, 9)
    assert masked["catch_up_stage_s"] == pytest.approx(9 + alone["catch_up_stage_s"], abs=0.05)
    assert masked["output_gap_s"] == pytest.approx(10, abs=0.05)
    assert alone["output_gap_s"] > 10.9


def test_a_state_that_is_lost_again_is_restored_because_of_the_second_failure() -> None:
    """Down from 48 to 55 s, and again from 51 to 58 s. The checkpoint of 45 s has 5 s of the window: it is
    read once, for the second failure.
    """
    more = {"strategy": {"kind": "rsm", "checkpoint_interval": "15 s", "replay_cost": "1 ms"}}
    alone = run("none", CRASH | {"at": "48 s"}, **more).recoveries
    both = run("none", CRASH | {"at": "48 s"}, CRASH | {"at": "51 s"}, **more).recoveries
    assert alone[0]["restored"] == 5 * 50
    assert [row["restored"] for row in both] == [0, 5 * 50]
    assert both[0]["restore_s"] == 0


@pytest.mark.parametrize(("after", "known"), [(0.9, False), (1.1, True)])
def test_less_than_a_second_after_the_last_wrong_window_nothing_is_known(after: float, known: bool) -> None:
    """Amnesia at 42 s; the window that lacks it is put out at 50 s, and the run ends so long after that."""
    (row,) = run("none", lost(42), end=50 + after).recoveries
    assert row["catch_up_s"] == 0
    assert (row["ended"] == LOSSY, row["ended"] == OPEN) == (known, not known)


@pytest.mark.parametrize(("later", "prolongs"), [(3.8, True), (4.2, False)])
def test_a_failure_prolongs_the_catch_up_before_it_within_four_seconds(later: float, prolongs: bool) -> None:
    """A pause from 42 to 47 s. What waited, 250 tuples of 1 ms, is worked off at 950/s more than comes; the
    second pause strikes so long after that.
    """
    (alone,) = run("none", PAUSE | {"at": "42 s", "duration": "5 s"}).recoveries
    over = 42 + alone["catch_up_s"]
    assert 47.2 < over < 47.4
    second = PAUSE | {"at": f"{over + later} s", "duration": "5 s"}
    first, _ = run("none", PAUSE | {"at": "42 s", "duration": "5 s"}, second).recoveries
    if prolongs:
        assert first["catch_up_s"] == pytest.approx(2 * alone["catch_up_s"] + later, abs=0.05)
    else:
        assert first["catch_up_s"] == alone["catch_up_s"]


@pytest.mark.parametrize(
    ("kind", "failure", "remarked"),
    [
        ("rsm", {"kind": "crash_host", "host": 0}, "crash_host"),
        ("rsm", {"kind": "cascade", "host": 0}, "crash_host"),
        ("rsm", {"kind": "crash_task", "component": "count"}, None),
        ("rsm", {"kind": "pause", "component": "count", "duration": "2 s"}, None),
        ("none", {"kind": "crash_host", "host": 0}, None),
        ("none", {"kind": "partition", "hosts": [0], "duration": "2 s", "messages": "lose"}, "partition"),
        ("none", {"kind": "partition", "hosts": [0], "duration": "2 s"}, None),
        ("rsm", {"kind": "lose_store"}, "lose_store"),
        ("none", {"kind": "lose_store"}, None),
    ],
)
def test_what_a_strategy_does_not_survive_is_remarked_on(
    kind: str, failure: dict[str, Any], remarked: str | None
) -> None:
    """What takes something, and is none of the kinds after which it promises something."""
    said = warnings(job(kind, failure | {"at": "50 s", "within": "0 s"}))
    found = [text for text in said if "does not promise to survive" in text]
    assert [text.split(":")[1].split()[-1] for text in found] == ([] if remarked is None else [remarked])


# -- time to recover: until output, state and backlog are as they would have been ----------------------------

STAGES = block("recoveries", "stages_s")


minutes = partial(run, end=240, window=30)


def lost(at: float, **more: Any) -> dict[str, Any]:
    return {"kind": "lose_state", "component": "count", "at": f"{at} s", **more}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_without_a_failure_there_is_no_recovery(kind: str) -> None:
    """And the reference of such a run is the run itself."""
    found = minutes(kind)
    assert found.recoveries == []
    assert all(row["backlog"] == row["backlog_without_failures"] for row in found.timeline)


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_failure_that_changes_nothing_takes_no_time(kind: str) -> None:
    """A spout that keeps nothing loses its state: nobody has it, nobody waits."""
    failure = {"kind": "lose_state", "component": "keys", "at": "75 s"}
    (recovery,) = minutes("none" if kind == "source_replay" else kind, failure).recoveries
    assert recovery["time_to_recover_s"] == 0
    assert recovery["catch_up_s"] == 0
    assert recovery["throughput_90_s"] == 0
    assert recovery["output_gap_s"] == recovery["sink_spacing_s"]


def test_lost_state_is_healed_when_its_window_ends() -> None:
    """Amnesia at 75 s: what the window of 60 to 90 s should hold is gone; the next one is right again."""
    (recovery,) = minutes("none", lost(75)).recoveries
    assert recovery["time_to_recover_s"] == 15
    assert recovery["windows_stage_s"] == 15
    assert recovery["catch_up_s"] == 0


def test_state_that_no_window_clears_is_lost_for_good() -> None:
    """The same with a window that ends after the run: a count that lacks something is never as it would
    be.
    """
    (recovery,) = run("none", lost(75), end=240, window=1000).recoveries
    assert recovery["catch_up_s"] == 0
    assert recovery["missing"] > 0
    assert recovery["time_to_recover_s"] is None


def test_waiting_for_the_timeout_is_a_stage_of_its_own() -> None:
    """Rotations at 10, 40, 70, 100, 130 s; the state is lost at 75 s. Its oldest root, of 60 s, was in the
    bucket of (40, 70] and fails at 100 s; the newest, of 75 s, was in that of (70, 100] and fails at 130 s.
    250 roots of (70, 75] are emitted again in 5 s, one a call: all have arrived by 135 s. They are in the
    window of 120 to 150 s, which is wrong for it.
    """
    (recovery,) = minutes("source_replay", lost(75)).recoveries
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
    (recovery,) = minutes("rsm", CRASH | {"at": "75 s"}).recoveries
    assert (recovery["detect_s"], recovery["restart_s"]) == (4, 3)
    assert recovery["time_to_recover_s"] > 7 + recovery["state_recovery_s"] - 1e-9


def test_what_replicas_mask_takes_no_time() -> None:
    """One of two replicas is down for 7 s; the other goes on, and nothing that comes out is late."""
    (recovery,) = minutes("active_replication", CRASH | {"at": "75 s"}).recoveries
    assert recovery["time_to_recover_s"] == 0
    assert [recovery[stage.name] for stage in STAGES] == [0] * len(STAGES)


def test_two_that_overlap_are_over_together() -> None:
    """Down 75 to 95 s, and again from 85 to 105 s: none is over before the other."""
    down = CRASH | {"detection": "10 s", "restart": "10 s"}
    first, second = minutes("rsm", down | {"at": "75 s"}, down | {"at": "85 s"}).recoveries
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
    alone, both = minutes(kind, lost(61)), minutes(kind, lost(61), lost(239, detection="30 s"))
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
    there, quiet = (curves(run.world).present.tolist() for run in (found, never_served(())))
    assert [there[slot] for slot in (99, 100, 399, 400)] == [9, 10, 39, 40]
    assert there == quiet
    assert found.recoveries[0]["catch_up_s"] == found.recoveries[0]["time_to_recover_s"] == 0


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


# -- what it is measured against: the time before it, without what earlier failures have left ----------------

OUTAGE = CRASH | {"component": "job", "detection": "20 s", "restart": "5 s", "while_down": "hold"}

RATE, CAPACITY = 900, 2000
DOWN = 25


def scenario(*moments: int, duration: int = 300, **more: Any) -> Scenario:
    """log -> job, 900/s at a capacity of 2000/s; at these moments (s) the job is down for 25 s, and the log
    waits.
    """
    data: dict[str, Any] = {
        "topology": {
            "log": {"spout": "keys", "keys": 10, "rate": f"{RATE}/s"},
            "job": {"bolt": "forward", "from": {"log": "shuffle"}, "service": f"{1000 / CAPACITY} ms"},
        },
        "strategy": "none",
        "failures": [OUTAGE | {"at": f"{at} s"} for at in moments],
        "run": {"duration": f"{duration} s", "warmup": "5 s"},
    }
    return load(data | more)


def told(*moments: int, duration: int = 300) -> dict[str, Any]:
    found = scenario(*moments, duration=duration)
    return Result(found, [simulate(found)]).to_dict()


def test_each_of_several_failures_is_measured_as_if_it_were_alone() -> None:
    """The same outage three times, each after the backlog of the one before is gone: D + r D / (C - r)."""
    recoveries = told(30, 110, 190)["recoveries"]
    (alone,) = told(30)["recoveries"]
    for recovery in recoveries:
        assert recovery["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)
        assert recovery["throughput_90_s"] == pytest.approx(alone["throughput_90_s"], abs=0.02)


def test_one_that_strikes_during_catch_up_prolongs_it() -> None:
    """What waits in the job at 60 s is lost with it. The second takes as long as if it were alone, and a
    backlog of 17,000 before it is not taken for normal; the first is over when the second is.
    """
    first, second = told(30, 60)["recoveries"]
    assert second["catch_up_s"] == pytest.approx(DOWN + RATE * DOWN / (CAPACITY - RATE), rel=0.01)
    assert 30 + first["catch_up_s"] == pytest.approx(60 + second["catch_up_s"])


@pytest.mark.parametrize("moments", [(), (30,), (30, 110, 190), (30, 60)])
def test_latency_otherwise_knows_nothing_of_failures(moments: tuple[int, ...]) -> None:
    """Arrivals are evenly spaced and none waits, except for an outage: each takes its service time."""
    latency = told(*moments)["latency_ms"]
    assert latency["max"] == pytest.approx(1000 / CAPACITY)
    assert latency["mean"] == pytest.approx(1000 / CAPACITY)


def test_after_a_failure_that_is_not_caught_up_with_nothing_is_usual() -> None:
    """Down to the end, or with a backlog to the end: what is otherwise measured ends at the failure."""
    assert told(30, duration=70)["latency_ms"]["max"] == pytest.approx(1000 / CAPACITY)


def test_a_second_of_the_timeline_has_its_first_instant_and_not_its_last() -> None:
    """Backlogs are read every 10 ms: the last reading of second 30 + n is 0.99 s after its beginning."""
    backlogs = [row["backlog"] for row in simulate(scenario(30, duration=60)).timeline]
    assert max(backlogs[:30]) <= 1
    assert backlogs[30:55] == [pytest.approx(RATE * (n + 0.99), abs=1) for n in range(25)]


SNAPSHOTS = {"kind": "aligned_snapshots", "checkpoint_interval": "40 s", "snapshot_time": "10 ms"}


@pytest.mark.parametrize("at", [20, 50, 90])
@pytest.mark.parametrize("strategy", ["none", SNAPSHOTS])
def test_throughput_is_back_however_early_a_failure_strikes(strategy: Any, at: int) -> None:
    """From 25 s on the job serves what the log has kept (of snapshots: since the last one) at 2000/s:
    the last 10 s have 90 % of 9,000 after 4.05 s. What is normal is asked within two intervals, 80 s, and not
    of the 10 s with which the run begins.
    """
    (row,) = simulate(scenario(at, strategy=strategy)).recoveries
    assert row["throughput_90_s"] == pytest.approx(DOWN + 0.9 * 10 * RATE / CAPACITY, abs=0.05)


def test_throughput_that_is_nothing_now_and_then_cannot_be_back() -> None:
    """Batches of 30 s: without a failure, too, some 10 s have no tuple, and 90 % of none is no measure."""
    batches = {"kind": "micro_batch", "trigger_interval": "30 s", "task_time": "50 ms"}
    failure = OUTAGE | {"at": "75 s"}
    (row,) = simulate(scenario(strategy=batches, failures=[failure], duration=240)).recoveries
    assert row["time_to_recover_s"] is not None
    assert row["throughput_90_s"] is None


def test_a_silence_that_begins_when_recovery_is_over_is_none_of_it() -> None:
    """13/s into one count with windows of 7 s. A pause from 33.3 to 38.3 s puts the window of 35 s out late,
    at 38.3 s and what waited takes to serve; the state that is lost at 38.5 s is healed at 42 s, with the
    window's end. So the second silence is the one from there to 42 s, and not the next one, of 7 s.
    """
    count = {"bolt": "windowed_count", "from": {"keys": {"fields": ["key"]}}, "service": "0.5 ms"}
    topology = {
        "keys": {"spout": "keys", "keys": 10, "rate": "13/s", "offset": "0 s"},
        "count": count | {"window": {"length": "7 s", "trigger": "tick"}},
    }
    pause = PAUSE | {"at": "33.3 s", "duration": "5 s"}
    second = simulate(scenario(topology=topology, failures=[pause, lost(38.5)], duration=70)).recoveries[1]
    assert second["time_to_recover_s"] == pytest.approx(3.5)
    assert second["output_gap_s"] == pytest.approx(42 - 38.3, abs=0.05)


def test_a_silence_that_begins_at_the_failure_is_of_it() -> None:
    """Outputs at 0, 3 and 10 s: of a failure at 3 s that is over at once, and of one that is over at 3 s."""
    outputs = np.array([0, 3, 10]) * S
    assert longest_silence(outputs, 3 * S, 3 * S) == 7
    assert longest_silence(outputs, 2 * S, 3 * S) == 3


# -- what is normal: the band around what would have been, and the first calm stretch in it ------------------

COUNTS = arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 50))
FOUR = CALM // SLOT


@given(COUNTS, st.integers(0, 70))
def test_greatest_and_least_near_are_those_of_the_neighbours(values: np.ndarray, reach: int) -> None:
    """Element by element, by the plain definition."""
    near = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    assert greatest_near(values, reach).tolist() == [part.max() for part in near]
    assert least_near(values, reach).tolist() == [part.min() for part in near]


@given(COUNTS, st.integers(0, 10**11), st.integers(1, 3))
def test_what_would_have_been_is_never_too_high(backlog: np.ndarray, beat: int, spouts: int) -> None:
    """A run that its failures do not change is normal all the time."""
    assert not too_high(backlog, backlog, beat, spouts).any()


@pytest.mark.parametrize(("usual", "most"), [(0, 2), (4, 6), (8, 10), (100, 125), (1000, 1250)])
def test_a_quarter_more_is_normal_and_so_is_a_root_for_each_spout(usual: int, most: int) -> None:
    """Two spouts: up to 2 more, or a quarter more, whichever is the greater."""
    without = np.full(3, usual)
    assert too_high(np.array([most, most + 1, most]), without, 0, 2).tolist() == [False, True, False]


def test_what_recurs_may_come_at_another_moment() -> None:
    """A stall of 100 once in 60 s: normal anywhere if it is the job's own beat; else within 4 s of it
    only.
    """
    without = np.zeros(12_000, np.int64)
    without[6000] = 100
    shifted = np.roll(without, 4000)
    assert too_high(shifted, without, 0, 1)[10_000]
    assert not too_high(shifted, without, 60 * S, 1).any()
    near = np.roll(without, 400)
    assert not too_high(near, without, 0, 1).any()
    assert reach_of(0) == CALM
    assert reach_of(60 * S) == 120 * S


@given(arrays(np.bool_, st.integers(1, 2000), elements=st.booleans()), st.integers(0, 1999))
def test_before_the_first_calm_there_is_none(noise: np.ndarray, begin: int) -> None:
    """By the plain definition, on abnormal slots that are spread so thinly that calm stretches occur."""
    abnormal = np.repeat(noise, 7)
    abnormal[::3] = False
    begin = min(begin, len(abnormal) - 1)
    end = len(abnormal)

    def calm(at: int) -> bool:
        need = FOUR + 1 if at + FOUR < end else S // SLOT + 1
        return end - at >= need and not abnormal[at : at + FOUR + 1].any()

    expected = next((at for at in range(begin, end) if calm(at)), None)
    assert first_calm(abnormal, begin, 0) == expected


def test_calm_lasts_for_a_batch_at_least() -> None:
    """Ten seconds of calm are not enough where a batch takes 20 s: its backlog may still rise too high."""
    abnormal = np.zeros(6000, np.bool_)
    abnormal[1000] = True
    assert first_calm(abnormal, 0, 0) == 0
    assert first_calm(abnormal, 0, 20 * S) == 1001
    assert first_calm(abnormal, 0, 60 * S) is None


def test_the_tolerance_is_the_one_that_is_told() -> None:
    """docs/semantics.md states it in these words."""
    assert (SLACK, CALM) == (1.25, 4 * S)
