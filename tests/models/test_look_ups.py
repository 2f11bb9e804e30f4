"""State that lies in a store, and is looked up there: engine beside the reference, operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.models.test_exactness import check
from tests.models.traced import assert_same_tuples
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals import Poisson
from tideover.models.job.components import BoltConfig
from tideover.models.job.stores import Memory, Redis
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.kernel import Rank

US = 1000
SERVICE, ACCESSES, ACCESS_COST, ROUND_TRIP, WORK = 50 * US, 8, 20 * US, 100 * US, 5 * US
OPERATIONS = 1_000_000
ENTRIES = 1 << 20


def chain(
    load: float,
    levels: int,
    tasks: int,
    until: float,
    entries: int = ENTRIES,
    interval: float = 1e6,
    work: int = WORK,
    seed: int = 1,
) -> Scenario:
    """s ──▶ b0 ──▶ …: each tuple accesses 8 entries at each level, 120 us each if not at hand, of which the
    store spends ``work`` ns; ``load``: of the store, if none is at hand; times in ms.
    """
    rate = load / (levels * ACCESSES * WORK * 1e-9)
    topology = {"s": spout("keys", keys=1000, arrivals=Poisson(rate=rate))}
    up = "s"
    for level in range(levels):
        each = bolt("forward", {up: "shuffle"}, SERVICE / MS, parallelism=tasks)
        state = Memory(entries=entries, accesses=ACCESSES)
        topology[f"b{level}"] = BoltConfig(**{**dict(each), "state": state})
        up = f"b{level}"
    scenario = world(
        topology,
        "storm_checkpoint",
        until=until,
        seed=seed,
        checkpoint_interval=round(interval * MS),
        round_trip=ROUND_TRIP,
        look_up_work=work,
        access_cost=ACCESS_COST,
        message_timeout=10**13,
    )
    redis = Redis(latency=0, bandwidth=2**50, operations=OPERATIONS)
    strategy = scenario.strategy.model_copy(update={"store": "redis"})
    return scenario.model_copy(update={"stores": {"redis": redis}, "strategy": strategy})


def test_many_tasks_at_one_store_are_as_in_the_reference() -> None:
    """Twenty tasks that keep the store busy for 0.6 of the time, and write there now and then."""
    check(chain(0.6, 1, 20, until=40, interval=15))


def test_more_entries_than_there_was_room_for_are_as_in_the_reference() -> None:
    """Some of them at hand, of a state with a number of entries that no table could have."""
    check(chain(0.1, 2, 1, until=200, entries=1000, interval=30))
    check(chain(0.1, 2, 1, until=100, entries=2**30))


def test_who_looks_up_alone_waits_for_nobody() -> None:
    """Law: one task has the store to itself, to the nanosecond."""
    scenario = chain(0.02, 1, 1, until=300)
    alone = scenario.strategy.model_copy(update={"look_up_work": 0})
    assert_same_tuples(scenario, scenario.model_copy(update={"strategy": alone}))
    assert simulate(scenario).ledger["completed"] > 100


def idle(server: Any) -> None:
    """Nothing is done to it."""


def played(
    scenario: Scenario, action: Callable[[Any], Any] = idle, at: int = 0, rank: Rank = Rank.FAULT
) -> tuple[list[Any], Any]:
    """What was processed, and the server of the store, to which that is done at a moment (ms)."""
    run = World(scenario, trace=True)
    (server,) = run.job.stores["redis"].servers
    run.kernel.at(at * MS, rank, lambda: action(server) and None)
    run.run()
    return run.trace.processed, server


def test_the_store_does_no_more_than_it_can() -> None:
    """Twenty tasks that could do 1.6 operations in the time of one: the store's rate is what comes out."""
    _, server = played(chain(3, 1, 20, until=60, work=10 * US))
    assert server.busy_ns(60 * MS) == pytest.approx(60 * MS, rel=0.02)


def test_a_write_holds_up_look_ups() -> None:
    """A write of 20 ms comes at 10: tuples in service then go on at 30, and all others are done as before."""

    def writing(entries: int) -> dict[int, tuple[int, int]]:
        def ask(server: Any) -> None:
            server.request(0, Rank.TRIM, lambda: None, operations=entries)

        rows, _ = played(chain(0.02, 1, 1, until=80), ask, 10, Rank.TRIM)
        return {row[3]: row[5:] for row in rows}

    before, after = writing(0), writing(20_000)
    early = [uid for uid, (_, left) in before.items() if left < 10 * MS]
    held = [uid for uid, (came, left) in before.items() if came < 30 * MS and left > 10 * MS]
    assert early
    assert held
    assert all(after[uid] == before[uid] for uid in early)
    assert all(after[uid][1] > 30 * MS for uid in held)


def test_a_slow_store_takes_longer_from_then_on() -> None:
    """Three times as long from 20 ms on: who looks up alone waits 10 us longer for each operation."""

    def slowed(factor: float) -> dict[int, int]:
        rows, _ = played(chain(0.02, 1, 1, until=40), lambda server: server.slow(factor), 20)
        return {row[3]: row[6] - row[5] for row in rows if row[5] > 20 * MS}

    before, after = slowed(1.0), slowed(3.0)
    alone = [uid for uid in after if before[uid] == SERVICE + ACCESSES * (ACCESS_COST + ROUND_TRIP)]
    assert alone
    assert all(after[uid] == before[uid] + ACCESSES * 2 * WORK for uid in alone)


def test_what_look_ups_have_asked_for_is_done_ahead_of_a_stop() -> None:
    """The store stops from 10 to 20 ms: who is there by then has an answer, all others wait."""
    rows, server = played(chain(0.5, 1, 4, until=40), lambda server: server.stop(20 * MS), 10)
    late = [row for row in rows if row[5] > 11 * MS]
    assert late
    assert all(row[6] > 20 * MS for row in late)
    assert not [row for row in rows if 10.3 * MS < row[6] < 20 * MS]
    assert server.busy_ns(40 * MS) < 31 * MS
