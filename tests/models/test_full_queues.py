"""Snapshots of jobs whose queues are full, by hand. Triggers come each second, from 1000 ms on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import ONES
from tests.models.test_exactness import check, checked
from tests.models.traced import assert_same_tuples, trace_of
from tests.oracle.worlds import MS, bolt, fault, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Store
from tideover.models.simulation import simulate
from tideover.scenarios.errors import ScenarioError
from tideover.scenarios.loader import load_text


def saturated(length: int, send: int = 0, **more: Any) -> Scenario:
    """A tuple every 5 ms; 1 at p, which reads the log, 10 at q, which has so many places; ``send``: of p."""
    topology = {
        "s": spout(**ONES, gap=5),
        "p": queued(bolt("forward", {"s": "shuffle"}, 1), send=send),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), length),
    }
    strategy = {"checkpoint_interval": 1000 * MS, "until": 9990, **more}
    return world(topology, "aligned_snapshots", **strategy)


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


def two_ways(**more: Any) -> Scenario:
    """Two ways to r: by q with 10 places and 10 ms a tuple, and by a bolt that has nothing to do."""
    topology = {
        "s": spout(**ONES, gap=5),
        "p": bolt("forward", {"s": "shuffle"}, 1),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), 10),
        "fast": bolt("filter", {"s": "shuffle"}, 0, keep=0.0),
        "r": bolt("forward", {"q": "shuffle", "fast": "shuffle"}),
    }
    strategy = {"checkpoint_interval": 1000 * MS, "until": 5990, **more}
    return world(topology, "aligned_snapshots", **strategy)


def test_a_barrier_overtakes_what_comes_at_its_instant() -> None:
    """Triggers come 2 ms after a tuple, which p and r serve until 3 ms later. fast's barrier waits for r
    then, p's comes as r is done, with a tuple of p ahead of it: all are there before r begins with that.
    """
    topology = {
        "s": spout(**ONES, gap=20),
        "p": bolt("forward", {"s": "shuffle"}, 5),
        "fast": bolt("filter", {"s": "shuffle"}, 0, keep=0.0),
        "r": queued(bolt("forward", {"s": "shuffle", "p": "shuffle", "fast": "shuffle"}, 5), 100),
    }
    settings = {"checkpoint_interval": 1000 * MS, "checkpoint_phase": 1002 * MS, "until": 2990}
    scenario = world(topology, "aligned_snapshots", unaligned=True, **settings)
    check(scenario)
    assert simulate(scenario).cost["snapshot_max_s"] == pytest.approx(0.003)


def test_a_task_waits_for_the_barrier_that_comes_through_the_full_queue() -> None:
    found = simulate(two_ways()).cost
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


@pytest.mark.parametrize("send", [0, 3])
@pytest.mark.parametrize(("timeout", "served"), [(0, 0), (3, 0), (30, 3), (70, 7), (116, 12), (1000, 14)])
def test_barriers_wait_until_the_timeout_and_then_overtake(send: int, timeout: int, served: int) -> None:
    """Law: q ends a service at 1006, 1016, …; after 1006 p has taken part, aligned, and its barrier waits for
    as many as there are places, and 1 + ``send``. Of these q has served so many by the end of the service in
    which the timeout comes, when it takes part; the rest, in its queue and p's line, is stored. If there
    is no rest, the snapshot was aligned.
    """
    cost = simulate(saturated(10, send, unaligned=True, aligned_timeout=timeout * MS)).cost
    served = min(served, 10 + 1 + send)
    assert cost["snapshots"] == 9
    assert cost["snapshot_s"] == cost["snapshot_max_s"] == pytest.approx(0.006 + 0.01 * served)
    assert cost["store_bytes"] == 9 * (10 + 1 + send - served) * 256


def test_a_task_that_aligns_takes_part_at_the_timeout() -> None:
    """r has had the barrier that came by the fast way; at 1030, when it is idle, it takes part. q's barrier
    overtakes 8 tuples of its queue when it ends a service, at 1036; the tuple that was served comes to r
    ahead of it.
    """
    found = simulate(two_ways(unaligned=True, aligned_timeout=30 * MS)).cost
    assert found["alignment_s"] == pytest.approx(0.030)
    assert found["snapshot_s"] == pytest.approx(0.036)
    assert found["store_bytes"] == found["snapshots"] * (8 + 1) * 256


def a_timeout_of_3(send: int | None = None) -> Any:
    """The trace of a snapshot triggered at 29; q has one place. ``send``: of p."""
    topology = {
        "s": spout(**ONES, gap=5),
        "p": queued(bolt("forward", {"s": "shuffle"}, 1), send=send),
        "fast": bolt("forward", {"s": "shuffle"}),
        "q": queued(bolt("forward", {"p": "shuffle"}, 10), 1),
        "r": bolt("forward", {"p": "shuffle", "fast": "shuffle"}, 1),
    }
    times = {"checkpoint_interval": 1000 * MS, "checkpoint_phase": 29 * MS, "aligned_timeout": 3 * MS}
    return checked(world(topology, "aligned_snapshots", unaligned=True, until=50, **times))


def acknowledged(trace: Any) -> list[tuple[str, int]]:
    return [(step.who, step.at) for step in trace.steps if step.what == "part acknowledged"]


def test_at_the_timeout_a_barrier_meets_what_was_set_aside() -> None:
    """fast's barrier has its turn at r at 29, and sets aside the tuple of 30. p is blocked from 27 to 36. At
    32 it is p's turn before r's: p takes part, and r, idle, finds p's barrier there when it does so too. The
    tuple that was set aside begins behind that, so r acknowledges at 32, and not after it, at 33. q ends a
    service at 36. What p and q store of their line and queue takes 1 ns to write.
    """
    safe = acknowledged(a_timeout_of_3())
    assert sorted(safe) == [("fast.0", 29 * MS), ("p.0", 32 * MS + 1), ("q.0", 36 * MS + 1), ("r.0", 32 * MS)]


def test_a_timeout_that_never_comes_changes_nothing() -> None:
    """Law: as long as all barriers come in time, a snapshot is an aligned one, failures and all."""
    failures = (fault("crash_task", 2500, component="q", detection=100, restart=50),)
    late = saturated(10, 3, failures=failures, unaligned=True, aligned_timeout=500 * MS)
    assert_same_tuples(saturated(10, 3, failures=failures), late, "cost")


def test_what_is_overtaken_in_a_line_comes_back() -> None:
    """At 1030 the barrier overtakes 1 tuple in p's line, and at 1036 the 10 in q's queue: after a failure
    these come first, and are not read again.
    """
    failures = (fault("crash_task", 1500, component="q", detection=50, restart=50),)
    late = {"unaligned": True, "aligned_timeout": 30 * MS}
    trace = trace_of(saturated(10, 3, failures=failures, until=1990, **late))
    before = [row[3] for row in trace.processed if row[0] == "q" and row[6] < 1040 * MS]
    again = [row[3] for row in trace.processed if row[0] == "q" and row[6] > 1600 * MS]
    assert again == list(range(before[-1] + 1, before[-1] + 1 + len(again)))
    read = [row[3] for row in trace.processed if row[0] == "p" and row[6] > 1600 * MS]
    assert read == list(range(before[-1] + 12, before[-1] + 12 + len(read)))


def test_a_barrier_that_leaves_the_line_at_the_timeout_comes_before_the_next_task_looks() -> None:
    """p and fast take part at 29; p's barrier stands in its line behind tuple 4, for which q has no place
    until 36. r has fast's, and sets aside fast's tuple of 30. At 32 it is p's turn: its barrier is sent
    ahead. Then r, idle, takes part; it has p's barrier ahead of what was set aside, and is done before it
    serves that until 33. What p and q store of their line and queue takes 1 ns to write.
    """
    trace = a_timeout_of_3(send=2)
    safe = acknowledged(trace)
    assert safe[:3] == [("p.0", 29 * MS), ("fast.0", 29 * MS), ("r.0", 32 * MS)]
    assert safe[3:] == [("p.0", 32 * MS + 1), ("q.0", 36 * MS + 1)]
    assert [row[6] for row in trace.processed if row[0] == "r" and row[5] == 32 * MS] == [33 * MS]


def test_a_timeout_of_snapshots_that_stay_aligned_is_refused() -> None:
    text = (
        "topology:\n  s: {spout: keys, rate: 100}\n  b: {bolt: forward, from: s}\n"
        "strategy:\n  kind: aligned_snapshots\n  checkpoint_interval: 1 s\n  aligned_timeout: 1 s\n"
    )
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "late.yaml")
    assert "late.yaml:4: strategy: aligned_timeout needs `unaligned: true`" in str(caught.value)


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
    more: Any = {"checkpoint_interval": 400 * MS, "upload_time": 20 * MS, "unaligned": unaligned}
    found = simulate(world(topology, "aligned_snapshots", failures, 9000, **more))
    ledger, windows = found.ledger, found.windows
    assert ledger["emitted"] == ledger["completed"] + ledger["in_flight"]
    assert ledger["lost"] == ledger["duplicated"] == windows["wrong"] == windows["missing"] == 0
    assert ledger["replayed"] > 0
    assert windows["emitted"] == windows["correct"] > 5
