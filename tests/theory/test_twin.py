"""A twin that counts at arrival finds the windows of one that serves tuple by tuple."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.theory.queues import bolt
from tideover.models import twin
from tideover.models.arrivals.poisson import Poisson
from tideover.models.config import (
    BOLTS,
    GROUPINGS,
    SPOUTS,
    STRATEGIES,
    BoltConfig,
    Links,
    Run,
    Scenario,
    SpoutConfig,
)
from tideover.models.windowlog import WindowLog
from tideover.models.world import World
from tideover.sim.distributions.base import Distribution
from tideover.sim.distributions.constant import Constant
from tideover.sim.distributions.exponential import Exponential
from tideover.sim.distributions.uniform import Uniform
from tideover.sim.faults.crash_task import CrashTask
from tideover.sim.faults.lose_state import LoseState
from tideover.sim.units import MS, S

RATE = 2_000.0
US = 1_000
ZERO = Constant(value=0)


def word_count(load: float, latency: Distribution, grouping: str = "fields", ack_cost: int = 0) -> Scenario:
    """Sentences to two splitters to three counts; a count loses its state, and one crashes near the end."""
    split = bolt("sentences", Exponential(mean=round(0.5 * 2e9 / RATE)), tasks=2)
    how = GROUPINGS[grouping](**({"fields": ("word",)} if grouping == "fields" else {}))
    count = BoltConfig(
        bolt=BOLTS["windowed_count"](window={"length": 250 * MS}),
        from_={"split": how},
        service=Exponential(mean=round(load * 3e9 / RATE / 4.4)),
        parallelism=3,
    )
    return Scenario(
        name="words",
        topology={
            "sentences": SpoutConfig(spout=SPOUTS["sentences"](), arrivals=Poisson(rate=RATE)),
            "split": split.model_copy(update={"bolt": BOLTS["split_words"]()}),
            "count": count,
        },
        strategy=STRATEGIES["source_replay"](message_timeout=S, ack_cost=ack_cost),
        links=Links(latency=latency, local=latency),
        failures=(
            LoseState(at=4 * S, component="count", task=1),
            CrashTask(at=9_800 * MS, component="count", task=0, restart=100 * MS),
        ),
        run=Run(duration=10 * S),
    )


def windows(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[Any, Any], dict[str, int]]:
    """What the twin's windows hold, and how the run's compare with them."""
    found: dict[Any, Any] = {}
    emitted = WindowLog.emitted

    def note(self: WindowLog, place: Any, replica: int, now: int, keys: Any, sums: Any) -> bool:
        if world.twin is not None and self is world.twin._world.windows:
            found[place] = (keys.tolist(), sums.tolist())
        return emitted(self, place, replica, now, keys, sums)

    monkeypatch.setattr(WindowLog, "emitted", note)
    world = World(scenario)
    world.run()
    monkeypatch.undo()
    assert world.twin is not None
    return found, world.twin.counts()


@pytest.mark.parametrize(
    ("load", "latency", "grouping", "ack_cost"),
    [
        (0.5, ZERO, "fields", 0),
        (0.5, Constant(value=3 * MS), "fields", 0),
        (0.5, Constant(value=400 * MS), "fields", 0),
        (0.5, Uniform(low=0, high=MS), "fields", 0),
        (0.3, ZERO, "shuffle", 0),
        (0.5, ZERO, "fields", 20 * US),
        (1.6, ZERO, "fields", 0),
    ],
    ids=["no latency", "latency", "long latency", "random latency", "shuffle", "ack cost", "overload"],
)
def test_a_twin_counts_early_what_it_would_count(
    load: float, latency: Distribution, grouping: str, ack_cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = word_count(load, latency, grouping, ack_cost)
    early, verdict = windows(scenario, monkeypatch)
    monkeypatch.setattr(twin, "count_early", lambda _: None)
    served, expected = windows(scenario, monkeypatch)
    assert len(served) > 50
    both = early.keys() & served.keys()
    assert {place: early[place] for place in both} == {place: served[place] for place in both}
    if load < 1:
        assert early.keys() == served.keys()
        assert verdict == expected
    else:  # how far a queue that never empties has come is known to within its randomness
        assert len(early.keys() ^ served.keys()) <= 2
        assert np.abs([verdict[name] - expected[name] for name in expected]).max() <= 2


def test_early_counting_happens() -> None:
    world = World(word_count(0.5, ZERO))
    assert world.twin is not None
    tasks = [task for tasks in world.twin._world.bolts.values() for task in tasks]
    assert {task.count_early_until for task in tasks} == {-1, 8_250 * MS}
    assert sum(task.hand_on_sums is not None for task in tasks) == 2
    assert all(task.hand_on_sums is None for tasks in world.bolts.values() for task in tasks)
