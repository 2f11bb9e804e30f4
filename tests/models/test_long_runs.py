"""What long runs forget must not be missed: old roots are settled and dropped, time in which nothing happens
is left out, and no figure changes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.models.loaded import log_and_job, markers
from tests.oracle.random_worlds import STRATEGY_NAMES, worlds
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models import world as engine
from tideover.models.accounts import reference_run as twin
from tideover.models.accounts.ledger import Applied
from tideover.models.config import Scenario
from tideover.models.evaluation import undisturbed
from tideover.models.evaluation.curves import SECOND, Axis, curves
from tideover.models.simulation import Replication, simulate
from tideover.sim import recorder
from tideover.sim.units import DAY, S


def figures(scenario: Scenario) -> list[Any]:
    run = simulate(scenario, trace=True)
    found = curves(run.world)
    over_time = [getattr(found, name).tolist() for name in ("backlog", "present", "done", "outputs")]
    whole = [histogram.summary(1) for histogram in (run.latency, run.end_to_end)]
    return [run.ledger, run.windows, run.recoveries, run.cost, *whole, over_time, found.beat, found.bad]


def figures_if_always_settled(scenario: Scenario) -> list[Any]:
    """The same, if roots are settled, and twins followed, at every step of the data plane."""
    close = engine.World._close

    def always(world: Any) -> None:
        close(world)
        world._close_at = 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CLOSE_AT", 0)
        patch.setattr(engine.World, "_close", always)
        patch.setattr(twin, "STEP", 5)
        return figures(scenario)


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_settling_roots_at_every_step_changes_nothing(strategy: str) -> None:
    """A run of hours settles its oldest roots now and then, and follows its twin in strides.

    Any small world has to come out the same if both are done at every step of the data plane.
    """

    @settings(max_examples=6, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(worlds((strategy,)))
    def check(scenario: Scenario) -> None:
        assert figures_if_always_settled(scenario) == figures(scenario)

    check()


def test_roots_are_settled_as_soon_as_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root each ms, windows of 100: at most 500 roots and those of one window are kept."""
    most, close = [], engine.World._close

    def note(world: Any) -> None:
        most.append(world.backlog.size)
        close(world)

    monkeypatch.setattr(engine, "CLOSE_AT", 500)
    monkeypatch.setattr(engine.World, "_close", note)
    topology = {
        "s": spout("keys", 1, keys=1),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"length": 100 * MS}),
    }
    engine.World(world(topology, until=5_000)).run()
    assert len(most) > 5
    assert max(most) <= 600


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=7), max_size=5))
def test_a_repetition_counts_once_in_whatever_trains_it_comes(trains: list[list[int]]) -> None:
    """Law: of an effect that is applied n times, n - 1 are repetitions, in one train or in several."""
    component: Any = SimpleNamespace(bits=0)
    applied = Applied(component, replicas=1, once=False)
    repeated = sum(applied.apply(np.array(train, np.int64), 0) for train in trains)
    every = [uid for train in trains for uid in train]
    assert repeated == len(every) - len(set(every))


# -- time in which nothing happens ---------------------------------------------------------------------------

OFTEN = {"kind": "aligned_snapshots", "checkpoint_interval": "20 s"}
STRATEGIES = ["none", "active_replication", {"kind": "source_replay", "message_timeout": "9 s"}, OFTEN]


def seldom(strategy: Any) -> Scenario:
    """A call a minute and bursts of 30; two failures, of which one strikes a burst."""
    calls = {"kind": "burst", "rate": "1/min", "peak": "20/s", "length": "1500 ms", "every": "400 s"}
    failures = (
        {"at": "399.5 s", "restart": "50 s"},
        {"kind": "pause", "at": "900 s", "duration": "3 s"},
    )
    counts = {"service": "40 ms", "window": markers(90)}
    log = {"keys": 3, "arrivals": calls}
    return log_and_job(log, counts, failures, strategy, duration="1210.5 s", warmup="61 s")


def found(scenario: Scenario) -> Replication:
    undisturbed.forget()
    return simulate(scenario)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_kept_of_a_long_run_gives_the_same_figures(
    strategy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same run, once with all of its slots, once with those near to what happens: equal in every figure;
    and the seconds that are left out are like those before them.
    """
    scenario = seldom(strategy)
    whole = found(scenario)
    monkeypatch.setattr(recorder, "LONG", 0)
    few = found(scenario)
    for name in ("recoveries", "throughput", "ledger", "windows", "cost", "dependability"):
        assert getattr(few, name) == getattr(whole, name), name
    assert few.latency.state() == whole.latency.state()
    assert few.end_to_end.state() == whole.end_to_end.state()
    kept = {row["second"]: row for row in few.timeline}
    empty = {"throughput_per_s": 0.0, "latency_mean_ms": None, "latency_max_ms": None}
    empty |= {"end_to_end_mean_ms": None, "end_to_end_max_ms": None}
    before = dict(whole.timeline[0])
    for row in whole.timeline:
        before = kept.get(row["second"], before | {"second": row["second"]} | empty)
        assert row == before
    assert len(kept) < len(whole.timeline) or strategy == OFTEN


def test_two_hundred_days_keep_what_happens() -> None:
    """A call in 10 h, 480 in 200 d: 17 million seconds, of which those near the calls are kept."""
    one = simulate(log_and_job({"rate": "0.1/h"}, {"service": "1 ms"}, duration="200 d"))
    assert one.ledger["completed"] == pytest.approx(480, abs=1)
    assert len(one.timeline) < 50 * 480
    assert one.throughput["mean"] == one.ledger["completed"] / (200 * DAY // S)


def test_an_axis_keeps_whole_seconds() -> None:
    """Something happens in the slots at 5.00 s and 5.01 s, and at 12.3 s, of 20.05 s: with a margin of a
    second the seconds 3 to 6 (5.00 s ends second 4) and 11 to 13 are kept.
    """
    axis = Axis.near(2006, np.array([500, 501, 1230]), 1)
    assert axis.kept.tolist() == [3, 4, 5, 6, 11, 12, 13]
    assert axis.at.tolist() == [0, *range(301, 701), *range(1101, 1401), *range(2001, 2006)]
    assert [axis.slot(axis.place(slot)) for slot in (0, 301, 800, 1230)] == [0, 301, 1101, 1230]
    assert axis.seconds(4, 13).tolist() == [4, 5, 6, 11, 12]
    assert axis.at[axis.slots_of(4, 13)].tolist() == [*range(401, 701), *range(1101, 1301)]
    assert Axis(2006).at[Axis(2006).slots_of(4, 13)].tolist() == [*range(4 * SECOND + 1, 13 * SECOND + 1)]
