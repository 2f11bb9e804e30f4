"""Look-ups that wait for one another in the store: engine beside the reference, operation by operation."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from tests.oracle.look_ups import Chain
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.config import Scenario
from tideover.models.job.arrivals.poisson import Poisson
from tideover.models.job.backends.memory import Memory
from tideover.models.job.components import BoltConfig
from tideover.models.job.stores.redis import Redis
from tideover.models.world import World
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.kernel import Rank
from tideover.sim.look_ups import wait

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


class Figures(NamedTuple):
    """Of the time from a tuple's arrival at a task to its departure (ns)."""

    mean: float
    p99: float
    count: int
    store: float
    """How busy the store was with look-ups."""


def figures(times: np.ndarray, store: float) -> Figures:
    return Figures(float(times.mean()), float(np.percentile(times, 99)), len(times), store)


def both(scenario: Scenario, levels: int, tasks: int) -> tuple[Figures, Figures]:
    """The same tuples on the same tasks, in the reference and in the engine."""
    ours = World(scenario, trace=True)
    ours.run()
    assert ours.trace is not None
    done = ours.trace.processed
    draws = Draws(scenario.run.seed, 0)
    place = {(row[0], row[3]): row[1] for row in done}
    state = scenario.topology["b0"].state
    assert state is not None
    entries: dict[tuple[int, int], list[int]] = {}

    def entry(level: int, root: int, i: int) -> int:
        if (level, root) not in entries:
            index = root * ACCESSES + np.arange(ACCESSES, dtype=np.int64)
            bits = draws.bits(f"b{level}", Purpose.ACCESS, index)
            entries[level, root] = below(bits, state.entries).tolist()
        return entries[level, root][i]

    strategy = scenario.strategy
    reference = Chain(
        levels=levels,
        tasks=tasks,
        service=SERVICE,
        accesses=ACCESSES,
        access_cost=ACCESS_COST,
        round_trip=ROUND_TRIP,
        work=strategy.look_up_work,
        entry=entry,
        target=lambda level, root: place.get((f"b{level}", root), root % tasks),
        until=scenario.run.duration,
        interval=strategy.checkpoint_interval,
        per_entry=1_000_000_000 // OPERATIONS,
    )
    reference.play(sorted((time, root) for _, _, root, _, time in ours.trace.emitted))
    duration = scenario.run.duration
    theirs = np.array([left - came for _, _, came, left in reference.done])
    mine = np.array([row[6] - row[5] for row in done])
    (server,) = ours.job.stores["redis"].servers
    return figures(theirs, reference.asked * strategy.look_up_work / duration), figures(
        mine, server.busy_ns(duration) / duration
    )


def close(scenario: Scenario, levels: int, tasks: int) -> None:
    """Mean and 99th percentile of the latency, throughput, and the store's load are within 2 %."""
    expected, found = both(scenario, levels, tasks)
    assert found.mean == pytest.approx(expected.mean, rel=0.02)
    assert found.p99 == pytest.approx(expected.p99, rel=0.02)
    assert found.count == pytest.approx(expected.count, rel=0.005)
    assert found.store == pytest.approx(expected.store, rel=0.02)


def test_one_level_is_within_two_percent() -> None:
    """Twenty tasks that keep the store busy for 0.6 of the time."""
    close(chain(0.6, 1, 20, until=80), 1, 20)


@pytest.mark.long
@pytest.mark.parametrize(
    ("load", "levels", "tasks"), [(0.3, 2, 12), (0.7, 2, 12), (0.9, 2, 17), (0.9, 1, 30)]
)
def test_levels_are_within_two_percent(load: float, levels: int, tasks: int) -> None:
    close(chain(load, levels, tasks, until=300), levels, tasks)


def test_who_looks_up_alone_waits_for_nobody() -> None:
    """Law: one task has the store to itself, to the nanosecond."""
    scenario = chain(0.02, 1, 1, until=300)
    alone = scenario.strategy.model_copy(update={"look_up_work": 0})
    ours, theirs = (
        World(each, trace=True) for each in (scenario, scenario.model_copy(update={"strategy": alone}))
    )
    for run in (ours, theirs):
        run.run()
    assert ours.trace is not None
    assert theirs.trace is not None
    assert len(ours.trace.processed) > 100
    assert ours.trace.processed == theirs.trace.processed


def test_the_store_does_no_more_than_it_can() -> None:
    """Twenty tasks that could do 1.6 operations in the time of one: the store's rate is what comes out."""
    scenario = chain(3, 1, 20, until=60, work=10 * US)
    run = World(scenario)
    run.run()
    (server,) = run.job.stores["redis"].servers
    assert server.busy_ns(60 * MS) == pytest.approx(60 * MS, rel=0.02)


@pytest.mark.parametrize(("servers", "around"), [(8, 4), (8, 8), (100, 20)])
def test_a_store_that_is_full_serves_one_after_the_other(servers: int, around: float) -> None:
    """Law: n that go round in c + w, with an operation of 1 each, are served once each in n."""
    assert around + wait(servers, servers / around, 1, 1) >= servers


def test_a_write_holds_up_look_ups() -> None:
    """A write of 20 ms comes at 10: tuples in service then go on at 30, and all others are done as before."""
    found = []
    for entries in (0, 20_000):
        run = World(chain(0.02, 1, 1, until=80), trace=True)
        (server,) = run.job.stores["redis"].servers
        ask = partial(server.request, 0, Rank.TRIM, lambda: None, operations=entries)
        run.kernel.at(10 * MS, Rank.TRIM, lambda ask=ask: ask() and None)  # type: ignore[misc]
        run.run()
        assert run.trace is not None
        found.append({row[3]: row[5:] for row in run.trace.processed})
    before, after = found
    early = [uid for uid, (_, left) in before.items() if left < 10 * MS]
    held = [uid for uid, (came, left) in before.items() if came < 30 * MS and left > 10 * MS]
    assert early
    assert held
    assert all(after[uid] == before[uid] for uid in early)
    assert all(after[uid][1] > 30 * MS for uid in held)
