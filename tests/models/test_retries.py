"""What waits to be emitted again: when a spout reads it, how it counts. By hand; times in milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.counting import emitted
from tests.models.test_exactness import differences
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.evaluation.curves import curves
from tideover.models.job.sources import Kafka, Kestrel, Source
from tideover.models.mechanisms.acking import Acker
from tideover.models.simulation import simulate
from tideover.models.world import World

ONCE: dict[str, Any] = {"kind": "values", "values": (1,)}


def test_what_waits_already_is_read_while_more_is_put_behind_it() -> None:
    """Root 0 is given up by the sweep at 50, root 1 by the rotation at 52: the read of 0 has begun then."""
    source = Kestrel(poll_cost=5 * MS, timeout=30 * MS, sweep_interval=50 * MS)
    reads = spout("values", values=(1, 1)).model_copy(update={"source": source})
    topology = {"s": reads, "q": bolt("forward", {"s": "shuffle"}, 500)}
    more = {"message_timeout": 20 * MS, "timeout_phase": 12 * MS}
    scenario = world(topology, "source_replay", until=65, **more)
    assert not differences(scenario)
    found = emitted(simulate(scenario, trace=True))
    assert found == [(0, 0, 15), (1, 0, 25), (0, 1, 55), (1, 1, 60)]


def test_a_root_that_leaves_and_comes_back_at_once_is_one_root() -> None:
    """The root of 10 is counted at 15, where its ack waits for the end of the window, and given up at 16: it
    is not in the backlog in between, and one root in the 10 ms up to 20.
    """
    topology = {
        "s": spout(**ONCE),
        "q": bolt("windowed_count", {"s": "shuffle"}, 5, window={"length": 1000 * MS}),
    }
    more = {"message_timeout": 4 * MS, "timeout_phase": 0}
    run = World(world(topology, "source_replay", until=20, **more))
    run.run()
    assert curves(run).present.tolist() == [0, 1, 1]


def test_a_replay_counts_for_its_failure_though_its_root_was_emitted_once_more() -> None:
    """Root 0 is hit at 12, and given up at 24; its replay of 30 is in service from then to 90. It is given up
    as well, emitted again at 50, and another failure strikes at 55: the replay still is because of the first.
    """
    topology = {"s": spout(**ONCE), "q": bolt("forward", {"s": "shuffle"}, 60)}
    failures = (fault("crash_task", 12, component="q"), fault("crash_task", 55, component="s"))
    more = {"message_timeout": 10 * MS, "timeout_phase": 4 * MS}
    scenario = world(topology, "source_replay", failures, 100, **more)
    assert not differences(scenario)
    run = simulate(scenario, trace=True)
    assert emitted(run)[:3] == [(0, 0, 10), (0, 1, 30), (0, 2, 50)]
    assert [row["replayed"] for row in run.recoveries] == [1, 0]


@pytest.mark.parametrize("order", [("x", "p", "q"), ("q", "x", "p")])
def test_a_root_that_several_failures_hit_counts_for_the_newest(order: tuple[str, ...]) -> None:
    """s (50, 100, …) ─┬▶ x (5) ──▶ p     p is down from 60 to 160, q from 120 to 180.
                       └▶ q

    Root 1 (100) is lost at p, at 105. Root 2 (150) is lost at q, at 150, and then at p, at 155: by the older
    failure, but later, wherever the bolts stand in the file. Both fail at 400 (T = 200) and go out again at
    450 and 500: p has root 1 again at 455, 295 after it was ready, q has root 2 at 500, 320 after.
    """
    inputs = {"x": ("s", 5), "p": ("x", 1), "q": ("s", 1)}
    bolts = {name: bolt("forward", {inputs[name][0]: "shuffle"}, inputs[name][1]) for name in order}
    topology = {"s": spout("values", 50, values=(1,) * 5), **bolts}
    failures = (
        fault("crash_task", 60, component="p", restart=100),
        fault("crash_task", 120, component="q", restart=60),
    )
    more = {"message_timeout": 200 * MS, "timeout_phase": 0}
    scenario = world(topology, "source_replay", failures, 6000, **more)
    rows = simulate(scenario).recoveries
    assert [row["replayed"] for row in rows] == [1, 1]
    assert [row["state_recovery_s"] for row in rows] == pytest.approx([0.295, 0.32], abs=1e-9)
    assert not differences(scenario)


@pytest.mark.parametrize(
    ("source", "again"),
    [
        (Kestrel(poll_cost=5 * MS, timeout=1000 * MS, sweep_interval=50 * MS), 105),
        (Kafka(poll_cost=5 * MS, commit_interval=1000 * MS), 57),
    ],
)
def test_what_a_queue_gives_out_after_a_crash_is_because_of_no_failure(source: Source, again: int) -> None:
    """Root 0 is hit at 20 and given up at 50, because of that. The spout crashes at 52, before it has read it
    again: it is forgotten why, though the queue gives it out as the same attempt (at the first sweep, at 100:
    it was given up, however long the timeout is).
    """
    reads = spout(**ONCE).model_copy(update={"source": source})
    topology = {"s": reads, "q": bolt("forward", {"s": "shuffle"}, 20)}
    failures = (fault("crash_task", 20, component="q"), fault("crash_task", 52, component="s"))
    more = {"message_timeout": 30 * MS, "timeout_phase": 20 * MS}
    scenario = world(topology, "source_replay", failures, 130, **more)
    assert not differences(scenario)
    run = simulate(scenario, trace=True)
    assert emitted(run)[:2] == [(0, 0, 15), (0, 1, again)]
    assert [row["replayed"] for row in run.recoveries] == [0, 0]
    assert [row["wait_s"] for row in run.recoveries] == [0.03, 0]


def test_failures_are_followed_as_long_as_their_roots_are_kept() -> None:
    """A root each ms. The crash at 20 destroys one that is in service, which is given up at a rotation, and
    emitted again because of that. When it is done, and thousands of roots have come since, nobody follows
    the failure any more.
    """
    topology = {
        "s": spout("values", values=(1,), repeat=True, gap=1),
        "q": bolt("forward", {"s": "shuffle"}, 0.5),
    }
    crashed = fault("crash_task", 20.2, component="q")
    one = World(world(topology, "source_replay", (crashed,), 6000, message_timeout=50 * MS))
    (pending,) = (each.maps[0] for each in one.job.context.keepers if isinstance(each, Acker))
    one.start()
    one.kernel.run(150 * MS)
    assert pending.emitted_for(0)
    one.kernel.run(6000 * MS)
    assert not pending.emitted_for(0)
