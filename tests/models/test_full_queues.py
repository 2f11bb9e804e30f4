"""Snapshots of jobs whose queues are full: the engine against the per-tuple reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.models.test_exactness import LONG, QUICK, differences
from tests.oracle.random_queues import overtaken, queues
from tests.oracle.test_oracle import ONES
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Store
from tideover.models.simulation import simulate

SNAPSHOTS = ("aligned_snapshots",)


@settings(QUICK, max_examples=25)
@given(queues(SNAPSHOTS, ("block",)))
def test_snapshots_in_full_queues_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


@settings(QUICK, max_examples=3)
@given(queues(SNAPSHOTS, ("block",), overlap=True))
def test_jobs_that_fail_with_full_queues_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (7,)) == {}


@settings(QUICK, max_examples=30)
@given(overtaken())
def test_barriers_that_overtake_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


@settings(QUICK, max_examples=3)
@given(overtaken(overlap=True))
def test_queues_that_come_back_are_as_in_the_reference(scenario: Scenario) -> None:
    assert differences(scenario, (7,)) == {}


@pytest.mark.long
@settings(LONG)
@given(overtaken())
def test_many_barriers_that_overtake(scenario: Scenario) -> None:
    assert differences(scenario, (1, 20_000)) == {}


@pytest.mark.long
@settings(LONG)
@given(overtaken(overlap=True))
def test_many_queues_that_come_back(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(SNAPSHOTS, ("block",)))
def test_many_snapshots_in_full_queues(scenario: Scenario) -> None:
    assert differences(scenario, (1, 20_000)) == {}


@pytest.mark.long
@settings(LONG)
@given(queues(SNAPSHOTS, ("block",), overlap=True))
def test_many_jobs_that_fail_with_full_queues(scenario: Scenario) -> None:
    assert differences(scenario, (20_000,)) == {}


def saturated(length: int, **more: object) -> Scenario:
    """A tuple every 5 ms; 1 at p, which reads the log, 10 at q, which has so many places."""
    topology = {
        "s": spout(**ONES, gap=5),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), length),
    }
    strategy = {"checkpoint_interval": 1000 * MS, "until": 9990, **more}
    return world(topology, "aligned_snapshots", **strategy)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [1, 10, 40])
def test_a_snapshot_takes_as_long_as_the_queue_that_its_barriers_wait_in(length: int) -> None:
    """Law: p is blocked; when q begins, at 1006, 1016, …, p's barrier comes behind the tuple that takes the
    place, so q serves one tuple for each place, and the one that it has begun. Triggers come 6 ms before.
    """
    cost = simulate(saturated(length)).cost
    assert cost["snapshots"] == 9
    assert cost["snapshot_s"] == pytest.approx(0.006 + 0.01 * (length + 1))
    assert cost["snapshot_max_s"] == pytest.approx(cost["snapshot_s"])
    assert cost["alignment_s"] == 0


def test_a_task_waits_for_the_barrier_that_comes_through_the_full_queue() -> None:
    """Two ways to r: by q with 10 places and 10 ms a tuple, and by a bolt that has nothing to do."""
    topology = {
        "s": spout(**ONES, gap=5),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), 10),
        "fast": bolt("filter", {"s": "shuffle"}, 0, keep=0.0),
        "r": bolt("forward", {"q": "shuffle", "fast": "shuffle"}),
    }
    found = simulate(world(topology, "aligned_snapshots", checkpoint_interval=1000 * MS, until=5990)).cost
    assert found["alignment_s"] == pytest.approx(found["snapshot_s"]) == pytest.approx(0.116)


@pytest.mark.parametrize("length", [1, 10, 40])
def test_barriers_that_overtake_do_not_wait_for_queues(length: int) -> None:
    """Law: whatever waits, they wait for the tuple in service, until 1006. Stored is what they overtake: the
    full queue, and the tuple for which p has no place.
    """
    cost = simulate(saturated(length, unaligned=True)).cost
    assert cost["snapshots"] == 9
    assert cost["snapshot_s"] == cost["snapshot_max_s"] == pytest.approx(0.006)
    assert cost["store_bytes"] == 9 * (length + 1) * 256


def test_what_barriers_have_overtaken_is_stored_in_its_time() -> None:
    """10 places and a tuple that p could not send, 2,816 B: the store takes 1 ms for 256."""
    store = Store(latency=0, bandwidth=256_000)
    cost = simulate(saturated(10, unaligned=True, store=store)).cost
    assert cost["snapshot_s"] == pytest.approx(0.006 + 0.010)


def test_what_barriers_have_overtaken_comes_back() -> None:
    """At 1006 q was to serve tuples 100, 101 and 102, and p held 103: after a failure at 1500 these come
    first, and are not read again. To read both parts from the store takes 1 ns each.
    """
    failures = (fault("crash_task", 1500, component="q", detection=50, restart=50),)
    trace = simulate(saturated(3, unaligned=True, failures=failures, until=1699), trace=True).trace
    assert trace is not None
    again = [(row[3], (row[6] - 2) / MS) for row in trace.processed if row[0] == "q" and row[6] > 1600 * MS]
    assert again == [(100 + i, 1610 + 10 * i) for i in range(9)]
    read = [row[3] for row in trace.processed if row[0] == "p" and row[6] > 1600 * MS]
    assert read == list(range(104, 104 + len(read)))


@pytest.mark.parametrize("unaligned", [False, True])
def test_what_fails_with_full_queues_is_counted_once(unaligned: bool) -> None:
    """Law: exactly once. Each root that is not on its way at the end is in exactly one window."""
    topology = {
        "s": spout(**ONES, gap=8),
        "p": queued(bolt("forward", {"s": "shuffle"}, 1), 3),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), 5),
        "count": bolt("windowed_count", {"q": "shuffle"}, window={"length": 500 * MS}),
    }
    failures = tuple(fault("crash_task", at, component="q", detection=100, restart=50) for at in (2500, 4700))
    scenario = world(
        topology,
        "aligned_snapshots",
        failures,
        until=9000,
        checkpoint_interval=400 * MS,
        upload_time=20 * MS,
        unaligned=unaligned,
    )
    found = simulate(scenario)
    ledger, windows = found.ledger, found.windows
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"]
    assert ledger["lost"] == ledger["duplicated"] == windows["wrong"] == windows["missing"] == 0
    assert ledger["replayed"] > 0
    assert windows["emitted"] == windows["correct"] > 5
