"""Queues before spouts: who reads which record when, by hand and in closed form."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Burst
from tideover.models.job.spouts import Kafka, Kestrel, Source
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.units import S


def reading(until: float, failures: tuple[Any, ...] = (), gap: float = 10, **more: Any) -> Scenario:
    """A record each ``gap`` ms; times in ms."""
    other = {name: more.pop(name) for name in ("strategy", "max_spout_pending") if name in more}
    spouts = {name: more.pop(name) for name in ("parallelism", "arrivals") if name in more}
    times = ("poll_cost", "commit_interval", "retention")
    source = Kafka(**{name: round(v * MS) if name in times else v for name, v in more.items()})
    reader = spout("keys", gap, 0, **spouts).model_copy(update={"source": source})
    service = 7 if "max_spout_pending" in other else 1
    return world(
        {"s": reader, "b": bolt("forward", {"s": "shuffle"}, service)},
        until=until,
        failures=failures,
        **other,
    )


def emitted(found: Replication) -> list[tuple[int, int, float]]:
    """Root, attempt, ms."""
    return [(root, attempt, time / MS) for _, _, root, attempt, time in found.trace.emitted]


def crash(at: float, down: float) -> Any:
    return fault("crash_task", at, component="s", restart=down)


def test_a_spout_goes_on_from_the_committed_offset() -> None:
    found = simulate(reading(80, (crash(35, 20),), poll_cost=3, commit_interval=25), trace=True)
    # records 0 and 1 were read by the commit at 25 ms; 2 is read again when the spout is back at 55 ms
    again = [(2, 1, 58), (3, 0, 61), (4, 0, 64), (5, 0, 67), (6, 0, 73)]
    assert emitted(found) == [(0, 0, 13), (1, 0, 23), (2, 0, 33), *again]
    assert found.ledger["lost"] == 0
    assert (found.ledger["replayed"], found.ledger["duplicated"]) == (1, 1)


@pytest.mark.parametrize("commit_interval", [25, 1000])
def test_what_was_deleted_before_it_was_read_is_lost(commit_interval: int) -> None:
    """Whether an offset behind it was committed or not: who comes back could not read it either."""
    scenario = reading(200, (crash(35, 50),), poll_cost=3, commit_interval=commit_interval, retention=20)
    check(scenario)
    found = simulate(scenario, trace=True)
    # at 85 ms the oldest record that is there is that of 70 ms; 3, 4 and 5 were never read; 2 is done
    assert emitted(found)[3:6] == [(6, 0, 88), (7, 0, 91), (8, 0, 94)]
    assert found.ledger["lost"] == 3
    assert found.ledger["emitted"] == sum(found.ledger[name] for name in ("completed", "in_flight", "lost"))


def test_what_a_slow_spout_has_come_past_is_not_kept() -> None:
    """Each read takes 25 ms, and records are there for 15: at 60 ms those of 30 and 40 ms are deleted. No
    offset is committed, but that keeps none in flight: who went back to it would not find it.
    """
    scenario = reading(90, poll_cost=25, commit_interval=1000, retention=15)
    check(scenario)
    found = simulate(scenario, trace=True)
    assert emitted(found) == [(0, 0, 35), (1, 0, 60), (4, 0, 85)]
    assert (found.ledger["completed"], found.ledger["in_flight"], found.ledger["lost"]) == (3, 0, 2)


@pytest.mark.parametrize(("until", "kept"), [(50, 1), (50.001, 0)])
def test_what_a_log_has_deleted_it_does_not_keep(until: float, kept: int) -> None:
    """Law: a copy in a log keeps a root from being lost as long as it can be read. Record 2, of 30 ms, is
    destroyed in the bolt at 33.5, and nothing is committed: it is in flight until it is older than 20 ms.
    """
    broken = fault("crash_task", 33.5, component="b", restart=1)
    scenario = reading(until, (broken,), poll_cost=3, commit_interval=1000, retention=20)
    check(scenario)
    ledger = simulate(scenario).ledger
    assert [ledger[name] for name in ("emitted", "completed", "in_flight", "lost")] == [4, 3, kept, 1 - kept]


def test_stamps_are_those_of_the_log() -> None:
    """Record n is appended at 2 (n + 1) ms, read at 2 + 3 (n + 1) ms, and served 1 ms later."""
    found = simulate(reading(3000, gap=2, poll_cost=3))
    last = 997  # the one after is served as the run ends
    for latency in (found.latency, found.end_to_end):
        assert latency.max == (last + 4) * MS


def test_what_the_spout_may_not_emit_waits_in_the_queue() -> None:
    more = {"strategy": "source_replay", "max_spout_pending": 1}
    found = simulate(reading(100, poll_cost=3, gap=5, **more), trace=True)
    # a record each 3 + 7 ms, though one is appended each 5 ms
    assert emitted(found) == [(n, 0, 8 + 10 * n) for n in range(10)]


def open_items(until: float, failures: tuple[Any, ...], strategy: str, storm: int = 100_000) -> Replication:
    """An item each 10 ms, read in 1; the sweeps are each 5 ms, and give out again after 30. ``storm``: the
    distance of Storm's own rotations.
    """
    base = reading(until, failures, poll_cost=1, strategy=strategy)
    kestrel = Kestrel(poll_cost=MS, timeout=30 * MS, sweep_interval=5 * MS)
    config = base.topology["s"].model_copy(update={"source": kestrel})
    update: dict[str, Any] = {"topology": {**base.topology, "s": config}}
    if strategy == "source_replay":
        never = {"message_timeout": storm * MS, "timeout_phase": 0}
        update["strategy"] = base.strategy.model_copy(update=never)
    return simulate(base.model_copy(update=update), trace=True)


def test_what_is_not_done_in_time_is_given_out_again() -> None:
    """The bolt crashes at 31.5, with root 2, which was read at 31: given up in the sweep at 65, read at 66.
    Storm's own timeout never comes.
    """
    found = open_items(100, (fault("crash_task", 31.5, component="b"),), "source_replay")
    assert [row for row in emitted(found) if row[0] == 2] == [(2, 0, 31), (2, 1, 66)]
    assert (found.ledger["lost"], found.ledger["replayed"]) == (0, 1)


def test_it_is_given_out_again_though_the_spout_has_forgotten_it() -> None:
    """The spout crashes at 31.5, with root 2 in flight, and is back at 40: its ack comes to nobody."""
    found = open_items(100, (crash(31.5, 8.5),), "source_replay")
    assert [row for row in emitted(found) if row[0] in (2, 3)] == [(2, 0, 31), (3, 0, 41), (2, 1, 66)]
    assert (found.ledger["lost"], found.ledger["duplicated"]) == (0, 1)


def test_what_waits_to_be_given_out_again_survives_another_crash() -> None:
    """The same; the spout crashes again at 65.5, before it has read root 2 once more, and is back at 72."""
    found = open_items(100, (crash(31.5, 8.5), crash(65.5, 6.5)), "source_replay")
    assert [row for row in emitted(found) if row[0] == 2] == [(2, 0, 31), (2, 1, 76)]


def test_what_was_given_up_is_given_out_in_the_next_sweep() -> None:
    """Storm gives root 2 up in its rotation at 50; the spout crashes before it has read it again, and is back
    at 52: in the sweep at 55 the queue does not wait until 61, for it has had it back.
    """
    failures = (fault("crash_task", 31.5, component="b"), crash(50.5, 1.5))
    found = open_items(100, failures, "source_replay", storm=10)
    assert [row for row in emitted(found) if row[0] == 2] == [(2, 0, 31), (2, 1, 56)]


def test_without_acks_what_was_read_is_done() -> None:
    found = open_items(100, (fault("crash_task", 31.5, component="b"),), "none")
    assert [row[0] for row in emitted(found)] == list(range(9))
    assert found.ledger["lost"] == 1


@pytest.mark.parametrize(
    "source", [Kafka(commit_interval=20 * MS), Kestrel(timeout=30 * MS, sweep_interval=MS)]
)
def test_fleets_read_from_queues(source: Source) -> None:
    """E-Storm's shadows keep the counts; what the spout had in flight as it crashed is given out again."""
    base = reading(400, (crash(100.5, 20),))
    config = base.topology["s"].model_copy(update={"source": source})
    count = bolt("running_count", {"s": "shuffle"}, 1, window={"length": 50 * MS})
    update = {"topology": {"s": config, "count": count}, "strategy": STRATEGIES["estorm"](members=2)}
    found = simulate(base.model_copy(update=update))
    emitted = sum(found.ledger[name] for name in ("completed", "in_flight", "lost"))
    assert (found.ledger["emitted"], found.ledger["lost"]) == (emitted, 0)
    assert found.ledger["replayed"] > 0


@pytest.mark.parametrize("partitions", [2, 3, 5])
def test_each_partition_is_read_by_one_task(partitions: int) -> None:
    found = simulate(reading(100, poll_cost=0.001, parallelism=2, partitions=partitions), trace=True)
    by_task = [sum(task == mine for _, task, *_ in found.trace.emitted) for mine in (0, 1)]
    of_task = [len(range(task, partitions, 2)) for task in (0, 1)]
    assert by_task == [9 * n for n in of_task]


@pytest.mark.parametrize(("down", "until"), [(5, 40), (5, 12), (0, 20)])
def test_a_crash_of_the_spout_is_drained_at_the_rate_that_is_left(down: int, until: int) -> None:
    """100 records/s are appended, 200/s are read: what comes in 5 s takes 5 s more. Nobody acks, and what was
    read since the last commit, 0.1 s ago at most, is read again.
    """
    crashed = crash(6_000.5, 1e3 * down)
    (row,) = simulate(reading(1e3 * until, (crashed,), gap=10, poll_cost=5, commit_interval=100)).recoveries
    if down:
        assert row["max_lag"] == pytest.approx(down * 100, abs=20)
        assert row["drain_s"] == (pytest.approx(2 * down, abs=1.1) if until == 40 else None)
    else:
        assert (row["max_lag"] <= 10, row["drain_s"]) == (True, 0)


def test_a_queue_drains_at_the_rate_that_is_left() -> None:
    """Fluid: r - C for d seconds is worked off in d (r - C) / (C - r0)."""
    rate, peak, capacity, length = 100, 300, 200, 5
    begin = 15
    burst = Burst(rate=rate, peak=peak, length=length * S, every=(begin + length) * S)
    found = simulate(reading(34_000, arrivals=burst, poll_cost=1e3 / capacity))
    lag = [row["lag"] for row in found.timeline]
    assert max(lag) == pytest.approx(length * (peak - capacity), abs=2)
    drained = next(second for second in range(begin + length, 34) if lag[second] <= 2)
    assert drained == begin + length + length * (peak - capacity) // (capacity - rate)
    assert found.ledger["lost"] == 0


def test_a_record_is_there_until_it_is_older_than_what_is_kept() -> None:
    """The spout is back at 85 ms, when that of 60 ms is 25 ms old, and those of 40 and 50 ms are older."""
    scenario = reading(100, (crash(35, 50),), poll_cost=3, commit_interval=25, retention=25)
    assert [row[::2] for row in emitted(simulate(scenario, trace=True))][3:5] == [(5, 88), (6, 91)]
