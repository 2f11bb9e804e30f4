"""Tasks that share the cores of their host: min(1, cores / busy tasks) of a core's speed for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models.chain import ONES
from tests.models.crowded import chain, machines, moving, processed, troubled
from tests.models.traced import assert_same_tuples, done, trace_of
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.cluster import Hosts
from tideover.models.job.components import MachineType
from tideover.models.simulation import simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.scenarios.loader import load_text


def a_few(cases: Iterable[Any], few: int) -> list[Any]:
    """All of them, but only so many in short runs."""
    return [pytest.param(case, marks=[pytest.mark.long] * (n >= few)) for n, case in enumerate(cases)]


def two(a: float, b: float, cores: int, *failures: Any, until: float = 35, copies: int = 1) -> Scenario:
    """s (every 10 ms, at 10, 20, …) ──▶ a, and s ──▶ b, with these services (ms), on one host."""
    topology = {
        "s": spout(**ONES),
        "a": bolt("forward", {"s": "all"}, a, parallelism=copies),
        "b": bolt("forward", {"s": "all"}, b),
    }
    return world(topology, "none", failures, until, hosts=machines(1, cores))


def test_as_many_cores_as_tasks_are_as_good_as_any_number() -> None:
    """Then each has one of its own, and nothing is different from a host without a number."""
    for hosts, scenario in ((1, two(2, 3, 2)), (1, chain(1500, 2, 2, machines(1, 4)))):
        plain = scenario.model_copy(update={"hosts": machines(hosts, None)})
        assert_same_tuples(scenario, plain, "timeline")


@pytest.mark.parametrize(
    ("scenario", "of_a", "of_b"),
    [
        # a (2 ms) and b (3 ms) begin at 10. Until 14 both are busy, at half speed: a is done. b has 1 ms
        # left, and the core to itself: 15.
        (two(2, 3, 1), [14, 24, 34], [15, 25, 35]),
        # Three of 4 ms at 10 on two cores have two thirds each: 6 ms for each of them.
        (two(4, 4, 2, copies=2), [16, 16, 26, 26], [16, 26]),
        # a (6 ms) and b (3 ms) at half speed from 10 on; a dies at 12, when b has 2 ms left: 14. From 20 on a
        # is up again: b needs 6 ms for its 3, until 26, and then a has 3 of its 6 left.
        (two(6, 3, 1, fault("crash_task", 12, component="a", restart=4)), [29], [14, 26]),
        # a is stopped from 12 to 18, with 5 of its 6 ms left: b has the core, and is done at 14. a goes on at
        # 18; at 20 it has 3 left, and shares with b (3 ms) until 26.
        (two(6, 3, 1, fault("pause", 12, component="a", duration=6 * MS), until=29), [26], [14, 26]),
    ],
    ids=["a half each", "two thirds each", "one crashes", "one is stopped"],
)
def test_busy_tasks_have_the_same_part_of_the_cores(
    scenario: Scenario, of_a: list[float], of_b: list[float]
) -> None:
    """Who is down, or stopped, uses no core."""
    assert (done(scenario, "a"), done(scenario, "b")) == (of_a, of_b)


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
    slow = [
        fault("slow_host", at, host=0, factor=factor, duration=length * MS)
        for at, factor, length in ((10, 0.5, 8), (12, 0.25, 4))
    ]
    assert done(two(4, 0, 1, *slow, until=19.5), "a") == [19]


def equal(scenario: Scenario) -> None:
    expected, found = processed(scenario)
    assert found == expected


BLOCKS = [range(1000 + 100 * block, 1100 + 100 * block) for block in range(10)]


@pytest.mark.parametrize("made", [troubled, moving], ids=lambda made: made.__name__)
@pytest.mark.parametrize("seeds", a_few((*([n] for n in range(12)), *BLOCKS), 4), ids=lambda some: some[0])
def test_random_worlds_equal_the_reference(made: Callable[[int], Scenario], seeds: Iterable[int]) -> None:
    """Every tuple: with Poisson arrivals, exponential services and three faults; and where hosts crash, or
    are slow, and their tasks are restarted on others, whose cores they share.
    """
    for seed in seeds:
        equal(made(seed))


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


def cores_of(scenario: Scenario) -> tuple[World, Any]:
    """The world, when it has run, and the cores of its one host."""
    run = World(scenario)
    run.run()
    (cores,) = run.job.context.cores.values()
    return run, cores


def test_cores_never_do_more_than_they_can() -> None:
    """Four tasks on two levels ask for 1.5 times what the core has: it is busy all the time, and what is done
    at the end is a second's work, all told.
    """
    scenario = chain(750, 2, 2, machines(1, 1), until=1000)
    run, cores = cores_of(scenario)
    assert cores.busy_ns(1000 * MS) == pytest.approx(1000 * MS, rel=0.005)
    assert cores.busy_ns(1000 * MS) <= 1000 * MS
    tasks = sum(task.busy.until(1000 * MS) for task in run.job.bolt_tasks)
    assert tasks == pytest.approx(cores.busy_ns(1000 * MS), abs=4)  # each is rounded
    assert simulate(scenario).cost["cpu_s"] == pytest.approx(1.0, rel=0.005)


def test_a_slow_core_is_busy_for_longer() -> None:
    """a and b do 1 ms of work each every 10 ms, on one core at half its speed: busy for 4 ms of ten."""
    slow = fault("slow_host", 0, host=0, factor=0.5, duration=1000 * MS)
    _, cores = cores_of(two(1, 1, 1, slow, until=200))
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
        "hybrid": {"rest": STRATEGIES["rsm"](**rsm), "stateless": STRATEGIES["active_replication"]()},
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
    scenario = world(topology, name, failures, 1000, hosts=machines(2, 1), **settings.get(name, {}))
    ledger = simulate(scenario).ledger
    assert ledger["completed"] > 200
    if name in ("micro_batch", "batch_rerun"):
        assert ledger["completed"] == 225
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"] + ledger["lost"]


# -- with cards ----------------------------------------------------------------------------------------------

WORLD = """\
topology:
  src: {{spout: keys, arrivals: {{kind: poisson, rate: 150/s}}}}
  a: {{bolt: forward, from: {{src: shuffle}}, service: {{kind: exponential, mean: 4 ms}}, parallelism: 2}}
  b: {{bolt: forward, from: {{a: shuffle}}, service: {{kind: exponential, mean: 4 ms}}, parallelism: 2}}
{more}
strategy: {{kind: none}}
hosts: {{machines: {{m: {{count: {hosts}, cores: 1{nic}}}}}}}
links: {{latency: {latency}}}
run: {{duration: {duration}, seed: 3}}
"""
BACK = "  c: {bolt: forward, from: {b: shuffle}, service: 1 ms, parallelism: 2}"


@pytest.mark.parametrize(
    ("hosts", "latency", "duration", "more"),
    [
        (2, "5 ms", "6 s", ""),  # no card hands on what comes to it again
        (3, "1 ms", "3 s", BACK),  # one does, after 1 ms
        (2, "0 s", "3 s", BACK),  # and at once: a port for each level
    ],
)
def test_cards_that_take_no_time_change_nothing(hosts: int, latency: str, duration: str, more: str) -> None:
    """Latencies are what they are without cards, as nearly as several levels share cores (2 %): nothing waits
    for who looks, and the run's length does not matter.
    """
    kinds = ("", ", nic: 1000 Gbit/s")
    texts = [WORLD.format(hosts=hosts, latency=latency, duration=duration, more=more, nic=n) for n in kinds]
    (without, expected), (found, latencies) = map(ends, texts)
    assert abs(found - without) <= 2  # one at the end, at each level
    assert latencies.mean() == pytest.approx(expected.mean(), rel=0.02)
    assert np.quantile(latencies, 0.99) == pytest.approx(np.quantile(expected, 0.99), rel=0.02)


def ends(text: str) -> tuple[int, npt.NDArray[np.float64]]:
    """How many tuples were done anywhere; how long each root took until it was last seen (ns)."""
    rows = trace_of(load_text(text)).processed
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for *_, root, came, left in rows:
        first[root] = min(came, first.get(root, came))
        last[root] = max(left, last.get(root, left))
    return len(rows), np.array([last[root] - first[root] for root in last], float)


def test_a_task_waits_for_the_card_of_one_that_shares_its_core() -> None:
    """s ──▶ b on host 0, which begins with 2 ms of work at 11; z, on another host, ──▶ c, 3 ms of work that
    come through host 0's card at 11.5. Half a core each from then on: b is done at 14.5, c at 16.

    b could be moved before z is. The run is looked at every 5 ms only, so it would be done at 13.
    """
    topology = {
        "s": spout(**ONES, offset=1, hosts=(0,)),
        "b": bolt("forward", {"s": "shuffle"}, 2, hosts=(0,)),
        "z": spout(**ONES, offset=0.5, hosts=(1,)),
        "c": bolt("forward", {"z": "shuffle"}, 3, hosts=(0,)),
    }
    hosts = Hosts(machines={"one": MachineType(count=1, cores=1, nic=256_000), "other": MachineType(count=1)})
    scenario = world(topology, hosts=hosts, until=500)
    for component, first in (("b", 14.5), ("c", 16)):
        assert done(scenario, component) == [first + 10 * i for i in range(49)]
