"""The failure-free twin: its windows are those of the same run without failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

from tests.models.test_exactness import check
from tests.oracle.random_worlds import STRATEGY_NAMES, worlds
from tests.oracle.worlds import MS, bolt, fault, ms, queued, spout, world
from tideover.models.accounts import reference_run
from tideover.models.config import Scenario
from tideover.models.evaluation import undisturbed
from tideover.models.evaluation.curves import curves
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import Links, MachineType
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.distributions import Exponential

LATENCIES = {"none": ms(0), "constant": ms(3), "jitter": Exponential(mean=3 * MS)}


def sentences(grouping: str, latency: str, marked: bool) -> Scenario:
    """s x 2 ──shuffle──▶ split x 2 ──▶ count x 3, windows of 20 ms; a task of count loses its state at 55,
    one at 131 ms. ``marked``: a second count reads the sentences, over windows that markers end.
    """
    window = {"length": 20 * MS}
    topology = {
        "s": spout("sentences", gap=1.3, offset=None, parallelism=2),
        "split": bolt("split_words", {"s": "shuffle"}, Exponential(mean=MS // 3), parallelism=2),
        "count": bolt("windowed_count", {"split": grouping}, 0.1, parallelism=3, window=window),
    }
    if marked:
        topology["all"] = bolt("windowed_count", {"s": "global"}, window={**window, "trigger": "marker"})
    failures = [fault("lose_state", at, component="count", task=task) for at, task in ((55, 0), (131, 2))]
    links = Links(latency=LATENCIES[latency], local=LATENCIES[latency])
    return world(topology, "none", failures, 205, links=links)


def windows(scenario: Scenario) -> dict[Any, dict[int, int]]:
    trace = simulate(scenario, trace=True).trace
    return {(name, task, number): sums for name, task, _, number, _, sums in trace.windows}


def test_windows_are_judged_the_same_whatever_ran_before() -> None:
    """Other strategies, and the run without failures, which is kept, in the same process."""
    scenario = sentences("fields", "jitter", True)
    undisturbed.forget()
    first = simulate(scenario)
    assert first.windows["wrong"] > 0
    others = [world(scenario.topology, kind, scenario.failures, 205) for kind in ("micro_batch", "changelog")]
    for other in (*others, scenario.model_copy(update={"failures": ()})):
        simulate(other)
    again = simulate(scenario)
    assert (again.windows, again.recoveries) == (first.windows, first.recoveries)
    assert (again.timeline, again.ledger, again.cost) == (first.timeline, first.ledger, first.cost)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("grouping", ["fields", "direct", "global", "shuffle"])
def test_a_window_is_right_if_the_run_without_failures_has_it(
    grouping: str, latency: str, marked: bool
) -> None:
    """Nothing is replayed, so nothing but the sums differs between the two runs; whatever owns the keys, and
    however long the wires are: these decide how the twin counts.
    """
    scenario = sentences(grouping, latency, marked)
    found, truth = windows(scenario), windows(scenario.model_copy(update={"failures": ()}))
    right = sum(truth[window] == sums for window, sums in found.items())
    assert found.keys() == truth.keys()
    assert right < len(found)
    audited = simulate(scenario).windows
    assert audited == {"emitted": len(found), "correct": right, "wrong": len(found) - right, "missing": 0}


@pytest.mark.parametrize("latency", LATENCIES)
def test_a_burst_of_acks_longer_than_a_window_moves_no_tuple_to_the_next(latency: str) -> None:
    """s ──fields──▶ count x 2: some five tuples a window of 20 ms, an ack takes 5 ms. Nothing fails: all
    windows are right. A twin that let its next tick wait for the acks would count what has arrived meanwhile.
    """
    topology = {
        "s": spout("keys", gap=2, offset=0, keys=5),
        "count": bolt("windowed_count", {"s": "fields"}, 0.1, parallelism=2, window={"length": 20 * MS}),
    }
    links = Links(latency=LATENCIES[latency], local=LATENCIES[latency])
    late = world(topology, "source_replay", (), 400, links=links, message_timeout=5000 * MS, ack_cost=5 * MS)
    audited = simulate(late).windows
    assert audited["emitted"] > 0
    assert audited["correct"] == audited["emitted"]


def test_a_checkpoint_that_keeps_the_sender_moves_a_tuple_to_the_next_window() -> None:
    """s ──▶ p (1) ──▶ count, windows of 1000 ms; a root each 995 ms, checkpoints each 1985 ms for 20 ms.

    p is kept from 1985 to 2005, so the tuple of 1990 is counted at 2006: window 2 is empty, and 3 has two
    tuples. Without the strategy each window has one: 2 and 3 are wrong, though nothing fails. The next one
    keeps p from 3970 to 3990, the tuple of 3980 is counted at 3991. If count loses its state at 2100 it has
    at 2101 again what was sent since its checkpoint, and nothing that comes later is wrong because of it.
    """
    topology = {
        "s": spout(gap=995, keys=1),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "count": bolt("windowed_count", {"p": "global"}, window={"length": 1000 * MS}),
    }
    checkpoints = {"checkpoint_interval": 1985 * MS, "checkpoint_time": 20 * MS}
    quiet = world(topology, "passive_standby", (), 4500, **checkpoints)
    lost = fault("lose_state", 2100, component="count", detection=1)
    failing = quiet.model_copy(update={"failures": (lost,)})
    sums = {("count", 0, 1): {0: 1}, ("count", 0, 2): {}, ("count", 0, 3): {0: 2}, ("count", 0, 4): {0: 1}}
    for scenario in (quiet, failing):
        check(scenario)
        assert windows(scenario) == sums
        assert simulate(scenario).windows == {"emitted": 4, "correct": 2, "wrong": 2, "missing": 0}
    (row,) = simulate(failing).recoveries
    assert (row["time_to_recover_s"], row["windows_stage_s"]) == (0.001, 0)


def test_a_checkpoint_moves_a_tuple_that_shares_a_card_with_what_it_keeps() -> None:
    """s ──▶ count, and beside it t ──▶ p (1) ──▶ r; count and r are on another host, a card takes 4 ms for a
    tuple. Windows of 1000 ms, checkpoints each 1970 ms for 18 ms.

    p is kept from 1970 to 1988, so what came to it at 1979 is at the card at 1989, before the tuple of s of
    1990: that goes out until 1997, and is in at 2001, in window 3. Without the strategy it is in window 2, at
    1998. That of 3980 finds no other (p's is out at 3963), and is in at 3988.
    """
    here, there = {"hosts": (0,)}, {"hosts": (1,)}
    topology = {
        "s": spout(gap=1990, keys=1, **here),
        "t": spout(gap=1979, keys=1, **here),
        "p": bolt("forward", {"t": "shuffle"}, 1, **here),
        "r": bolt("forward", {"p": "shuffle"}, **there),
        "count": bolt("windowed_count", {"s": "global"}, window={"length": 1000 * MS}, **there),
    }
    hosts = Hosts(machines={"small": MachineType(count=2, nic=64_000)})
    checkpoints = {"checkpoint_interval": 1970 * MS, "checkpoint_time": 18 * MS}
    scenario = world(topology, "passive_standby", (), 4100, hosts=hosts, **checkpoints)
    check(scenario)
    assert list(windows(scenario).values()) == [{}, {}, {0: 1}, {0: 1}]
    assert simulate(scenario).windows == {"emitted": 4, "correct": 2, "wrong": 2, "missing": 0}


def test_a_spout_of_the_twin_ends_its_windows_in_time_though_there_is_no_room() -> None:
    """s ──▶ count, which takes 15 for a tuple and has one place; a root each 10, markers each 50.

    Down from 55 to 100, count loses what comes, so there is room: s emits at 65, 75, 85 and 95, and goes on
    at 105, 115, 125, 135, 145, 160, 175 and 190. The twin emits at these moments though it has no room, and
    its windows have what was emitted in 50 each all the same: so 3 and 4 are right. 2 lacks what was lost,
    and 1 is missing.
    """
    window = {"length": 50 * MS, "trigger": "marker"}
    topology = {
        "s": spout("values", values=(1,), repeat=True),
        "count": queued(bolt("windowed_count", {"s": "shuffle"}, 15, window=window), 1, "block"),
    }
    crash = fault("crash_task", 55, component="count", detection=40, restart=5)
    scenario = world(topology, "none", (crash,), 240)
    check(scenario)
    assert list(windows(scenario).values()) == [{}, {0: 5}, {0: 3}]
    assert simulate(scenario).windows == {"emitted": 3, "correct": 2, "wrong": 1, "missing": 1}


@pytest.mark.parametrize(("hosts", "cores", "missing"), [(3, None, 1), (3, 1, 1), (1, 2, 1), (1, 1, 0)])
def test_a_window_is_due_at_its_tick_unless_its_task_shares_a_core(
    hosts: int, cores: int | None, missing: int
) -> None:
    """s ──▶ count, which takes 30 for a tuple, and s ──▶ p; a root each 10, windows of 50.

    Down from 45 to 55, count never ends window 1: the twin has it at 50. If p is on the same core the twin
    takes as long as count does, and its tick waits behind 150 of work.
    """
    topology = {
        "s": spout("values", values=(1,), repeat=True),
        "count": bolt("windowed_count", {"s": "shuffle"}, 30, window={"length": 50 * MS}),
        "p": bolt("forward", {"s": "shuffle"}),
    }
    crash = fault("crash_task", 45, component="count", restart=10)
    machines = Hosts(machines={"m": MachineType(count=hosts, cores=cores)})
    scenario = world(topology, "none", (crash,), 140, hosts=machines)
    check(scenario)
    assert simulate(scenario).windows == {"emitted": 0, "correct": 0, "wrong": 0, "missing": missing}


# -- windows are judged alike, however far the reference run is moved at a time ------------------------------


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_windows_are_judged_alike_whenever_the_reference_is_moved(strategy: str) -> None:
    """Law: any world, whether its roots are handed over every few, or all at the end."""

    def judged(scenario: Scenario) -> list[Any]:
        run = World(scenario)
        run.run()
        return [] if run.reference is None else [run.reference.counts, run.reference.bad]

    @settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        alone = judged(scenario)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference_run, "STEP", 5)
            assert judged(scenario) == alone

    check()


# -- a run without failures of which nobody looks at all: no roots are followed, nothing is kept ------------


def shown(run: Any) -> list[Any]:
    found = curves(run)._asdict()
    found["axis"] = found["axis"].at
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in found.values()]


def full(quiet: Scenario) -> World:
    run = World(quiet, looks=0)
    run.run()
    return run


@settings(max_examples=90, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(worlds(("source_replay", "rsm", "active_replication", "aligned_snapshots", "micro_batch")))
def test_what_is_left_out_of_the_run_without_failures_does_not_show(scenario: Scenario) -> None:
    """Law: any world, without its failures, has the curves and costs of a world of which all is kept."""
    quiet = undisturbed.without_failures(scenario)
    prompt = undisturbed._promptly(quiet, 0)
    event(f"in time: {prompt is not None}")
    assert shown(prompt or undisturbed._run(quiet, 0)) == shown(full(quiet))


def counted(timeout: float, window: float, length: float = 400, ack_cost: float = 0) -> Scenario:
    """s ──▶ count, a root each 10 ms from 5 ms on, first rotation at 0."""
    topology = {
        "s": spout("keys", gap=10, offset=5, keys=3),
        "count": bolt("windowed_count", {"s": "fields"}, 1, window={"length": round(window * MS)}),
    }
    times = {"message_timeout": round(timeout * MS), "timeout_phase": 0, "ack_cost": round(ack_cost * MS)}
    return world(topology, "source_replay", (), length, **times)


@pytest.mark.parametrize(
    ("scenario", "in_time"),
    [
        # acked when a window of 60 ms ends; given up at a rotation, 100 ms later at the earliest
        (counted(100, 60), True),
        # no root is emitted at a rotation, so all are acked when a window ends with the next, or before
        (counted(100, 100), True),
        # the root of 105 ms is acked at 200 ms, after the rotation of 180, which gives up those up to 120
        (counted(60, 100), False),
        # the root of 5 ms is acked at 160 ms, after the rotations of 100 and 150, of which the second gives
        # up what was emitted at 100 or before
        (counted(50, 160), False),
        # the first window ends at 60 ms, and its last ack is sent at 60 + 6 * 30, after the rotation of 200
        (counted(100, 60, ack_cost=30), False),
        # the window of 300 ms has not ended, and the root of 5 ms has been given up at 120 ms
        (counted(60, 300, 200), False),
    ],
)
def test_a_root_that_may_time_out_is_noticed(scenario: Scenario, in_time: bool) -> None:
    """Without a failure; the run is then simulated root by root, and emits them again."""
    prompt = undisturbed._promptly(scenario, 0)
    whole = full(scenario)
    assert (prompt is not None) == (len(whole.losses.replayed) == 0) == in_time
    if prompt is not None:
        assert shown(prompt) == shown(whole)


def test_what_is_destroyed_without_a_failure_is_known() -> None:
    """A count that takes 30 ms for a root each 10 ms, with room for one that waits: most find none."""
    topology = {
        "s": spout("keys", gap=10, keys=3),
        "count": queued(bolt("windowed_count", {"s": "fields"}, 30, window={"length": 100 * MS}), 1, "drop"),
    }
    quiet = world(topology, "none", (), 400)
    found = shown(undisturbed._run(quiet, 0))
    assert found == shown(full(quiet))
    assert len(full(quiet).losses.destroyed) > 10
