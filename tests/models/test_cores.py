"""Tasks that share the cores of their host: min(1, cores / busy tasks) of a core's speed for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.models.crowded import ONES, chain, machines, moving, processed, troubled
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World


def a_few(cases: Iterable[Any], few: int) -> list[Any]:
    """All of them, but only so many in short runs."""
    return [pytest.param(case, marks=[pytest.mark.long] * (n >= few)) for n, case in enumerate(cases)]


def done(scenario: Scenario, component: str) -> list[float]:
    """When tuples were done there (ms)."""
    trace = simulate(scenario, trace=True).trace
    assert trace is not None
    return sorted(row[6] / MS for row in trace.processed if row[0] == component)


def two(a: float, b: float, cores: int, *failures: Any, until: float = 35, copies: int = 1) -> Scenario:
    """s (every 10 ms, at 10, 20, …) ──▶ a, and s ──▶ b, with these services (ms), on one host."""
    topology = {
        "s": spout(**ONES),
        "a": bolt("forward", {"s": "all"}, a, parallelism=copies),
        "b": bolt("forward", {"s": "all"}, b),
    }
    return world(topology, "none", failures, until, hosts=machines(1, cores))


def test_two_busy_tasks_on_a_core_have_half_of_it_each() -> None:
    """a (2 ms) and b (3 ms) begin at 10. Until 14 both are busy, at half speed: a is done. b has 1 ms left,
    and the core to itself: 15.
    """
    assert done(two(2, 3, 1), "a") == [14, 24, 34]
    assert done(two(2, 3, 1), "b") == [15, 25, 35]


def test_as_many_cores_as_tasks_are_as_good_as_any_number() -> None:
    """Then each has one of its own, and nothing is different from a host without a number."""
    for hosts, scenario in ((1, two(2, 3, 2)), (1, chain(1500, 2, 2, machines(1, 4)))):
        plain = scenario.model_copy(update={"hosts": machines(hosts, None)})
        ours, theirs = simulate(scenario, trace=True), simulate(plain, trace=True)
        assert ours.trace is not None
        assert theirs.trace is not None
        assert sorted(ours.trace.processed) == sorted(theirs.trace.processed)
        assert ours.timeline == theirs.timeline


def test_three_busy_tasks_on_two_cores_have_two_thirds_each() -> None:
    """Three of 4 ms at 10: 6 ms for each of them."""
    scenario = two(4, 4, 2, copies=2)
    assert done(scenario, "a") == [16, 16, 26, 26]
    assert done(scenario, "b") == [16, 26]


def test_a_task_that_crashes_uses_no_core() -> None:
    """a (6 ms) and b (3 ms) at half speed from 10 on; a dies at 12, when b has 2 ms left: 14. From 20 on a is
    up again: b needs 6 ms for its 3, until 26, and then a has 3 of its 6 left.
    """
    scenario = two(6, 3, 1, fault("crash_task", 12, component="a", restart=4))
    assert done(scenario, "b") == [14, 26]
    assert done(scenario, "a") == [29]


def test_a_task_that_is_stopped_uses_no_core() -> None:
    """a is stopped from 12 to 18, with 5 of its 6 ms left: b has the core, and is done at 14. a goes on at
    18; at 20 it has 3 left, and shares with b (3 ms) until 26.
    """
    scenario = two(6, 3, 1, fault("pause", 12, component="a", duration=6 * MS), until=29)
    assert done(scenario, "b") == [14, 26]
    assert done(scenario, "a") == [26]


@pytest.mark.parametrize("cores", [1, 2, None])
def test_a_slow_host_works_at_a_part_of_its_speed(cores: int | None) -> None:
    """a and b take 2 ms, from 10 and from 20 on; the host is at half speed from 11 to 23. With a core each: 1
    ms is left at 11, done at 13; those of 20 have done 1.5 ms at 23, and are done at 23.5. With one core:
    half of that speed; 1.5 ms is left at 11, done at 17; 0.75 ms is done by 23, and 1.25 ms takes 2.5 more.
    """
    scenario = two(2, 2, cores or 1, fault("slow_host", 11, host=0, factor=0.5, duration=12 * MS), until=29)
    if cores is None:
        scenario = scenario.model_copy(update={"hosts": machines(1, None)})
    expected = [17, 25.5] if cores == 1 else [13, 23.5]
    assert done(scenario, "a") == expected
    assert done(scenario, "b") == expected


def test_of_two_reasons_to_be_slow_the_slower_one_holds() -> None:
    """a alone (4 ms), from 10 on: at half speed until 12, at a quarter until 16, at half until 18: 3 ms done
    by 18, and done at 19.
    """
    scenario = two(
        4,
        0,
        1,
        fault("slow_host", 10, host=0, factor=0.5, duration=8 * MS),
        fault("slow_host", 12, host=0, factor=0.25, duration=4 * MS),
        until=19.5,
    )
    assert done(scenario, "a") == [19]


@pytest.mark.parametrize("seed", a_few(range(12), 4))
def test_one_level_equals_the_reference(seed: int) -> None:
    """Poisson arrivals, exponential services, three faults: every tuple."""
    equal(troubled(seed))


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_one_level_equals_the_reference_in_many_worlds(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        equal(troubled(seed))


@pytest.mark.parametrize("seed", a_few(range(12), 4))
def test_tasks_that_move_share_the_cores_of_where_they_are(seed: int) -> None:
    """Hosts crash, or are slow; their tasks are restarted on others: every tuple."""
    equal(moving(seed))


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_tasks_that_move_share_the_cores_of_where_they_are_in_many_worlds(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        equal(moving(seed))


def equal(scenario: Scenario) -> None:
    expected, found = processed(scenario)
    assert found == expected


LAYERED = {
    "one core, two levels": (450, 2, 1, machines(1, 1), 0),
    "two cores, three levels of two": (600, 3, 2, machines(1, 2), 0),
    "three hosts": (1350, 2, 3, machines(3, 1), 0.5),
}
"""Rate, levels, tasks of each, hosts, latency; cores are busy for nine tenths of the time."""


@pytest.mark.parametrize("case", LAYERED)
def test_several_levels_equal_the_reference(case: str) -> None:
    rate, levels, tasks, hosts, latency = LAYERED[case]
    equal(chain(rate, levels, tasks, hosts, until=1_000, latency=latency))


def test_levels_that_a_link_keeps_apart_equal_the_reference() -> None:
    """b0 and b1 share a host, but what b0 sends takes 1 ms to get there."""
    scenario = chain(450, 2, 1, until=1000)
    equal(scenario.model_copy(update={"links": scenario.links.model_copy(update={"local": ms(1)})}))


def test_cores_never_do_more_than_they_can() -> None:
    """Four tasks on two levels ask for 1.5 times what the core has: it is busy all the time, and what is done
    at the end is a second's work, all told.
    """
    scenario = chain(750, 2, 2, machines(1, 1), until=1000)
    run = World(scenario)
    run.run()
    (cores,) = run.job.context.cores.values()
    assert cores.busy_ns(1000 * MS) == pytest.approx(1000 * MS, rel=0.005)
    assert cores.busy_ns(1000 * MS) <= 1000 * MS
    tasks = sum(task.busy.until(1000 * MS) for task in run.job.bolt_tasks)
    assert tasks == pytest.approx(cores.busy_ns(1000 * MS), abs=4)  # each is rounded
    assert simulate(scenario).cost["cpu_s"] == pytest.approx(1.0, rel=0.005)


def test_a_slow_core_is_busy_for_longer() -> None:
    """a and b do 1 ms of work each every 10 ms, on one core at half its speed: busy for 4 ms of ten."""
    scenario = two(1, 1, 1, fault("slow_host", 0, host=0, factor=0.5, duration=1000 * MS), until=200)
    run = World(scenario)
    run.run()
    (cores,) = run.job.context.cores.values()
    assert cores.busy_ns(200 * MS) == 19 * 4 * MS


@pytest.mark.parametrize("name", a_few(sorted(STRATEGIES, reverse=True), 3))
def test_roots_add_up_on_crowded_hosts(name: str) -> None:
    """Whatever the strategy sends, acks, saves and restores with the cores that three levels share. Of
    batches that begin every 100 each is over before the next one, also the one that is run again at 333: so
    all roots are done that had come by 900, one every 4.
    """
    rsm = {"checkpoint_interval": 100 * MS, "serialise_time": 2 * MS, "replay_cost": MS // 10}
    settings: dict[str, dict[str, Any]] = {
        "source_replay": {"message_timeout": 300 * MS, "ack_cost": MS // 10},
        "rsm": rsm,
        "hybrid": {
            "rest": STRATEGIES["rsm"](**rsm),
            "stateless": STRATEGIES["active_replication"](),
        },
        "passive_standby": {"checkpoint_interval": 100 * MS, "checkpoint_time": 2 * MS},
        "aligned_snapshots": {"checkpoint_interval": 100 * MS, "snapshot_time": 2 * MS},
        "trident": {"batch_interval": 50 * MS, "message_timeout": 300 * MS},
        "micro_batch": {"trigger_interval": 100 * MS},
        "batch_rerun": {"trigger_interval": 100 * MS},
    }
    topology = {
        "s": spout(gap=4, keys=5),
        "p": bolt("forward", {"s": "shuffle"}, 1, parallelism=2),
        "count": bolt("windowed_count", {"p": "fields"}, 1, parallelism=2, window={"length": 100 * MS}),
        "sink": bolt("forward", {"count": "global"}, 0.5),
    }
    failures = (
        fault("crash_task", 333, component="count", restart=20),
        fault("lose_state", 555, component="p"),
    )
    more = settings.get(name, {})
    scenario = world(topology, name, failures, 1000, hosts=machines(2, 1), **more)
    ledger = simulate(scenario).ledger
    assert ledger["completed"] > 200
    if name in ("micro_batch", "batch_rerun"):
        assert ledger["completed"] == 225
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"] + ledger["lost"]
