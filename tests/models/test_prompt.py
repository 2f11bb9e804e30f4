"""A run without failures of which nobody looks at all takes less: no roots are followed, nothing is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

from tests.oracle.random_worlds import worlds
from tests.oracle.worlds import MS, bolt, queued, spout, world
from tideover.models.config import Scenario
from tideover.models.evaluation import undisturbed
from tideover.models.evaluation.curves import curves
from tideover.models.job.components import BoltConfig, SpoutConfig
from tideover.models.world import World


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
    topology: dict[str, SpoutConfig | BoltConfig] = {
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
    assert (prompt is not None) == (whole.ledger.replayed == 0) == in_time
    if prompt is not None:
        assert shown(prompt) == shown(whole)


def test_what_is_destroyed_without_a_failure_is_known() -> None:
    """A count that takes 30 ms for a root each 10 ms, with room for one that waits: most find none."""
    topology: dict[str, SpoutConfig | BoltConfig] = {
        "s": spout("keys", gap=10, keys=3),
        "count": queued(bolt("windowed_count", {"s": "fields"}, 30, window={"length": 100 * MS}), 1, "drop"),
    }
    quiet = world(topology, "none", (), 400)
    found = shown(undisturbed._run(quiet, 0))
    assert found == shown(full(quiet))
    assert len(full(quiet).ledger.destroyed) > 10
