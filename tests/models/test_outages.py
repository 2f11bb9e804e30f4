"""Failures that overlap: when each of them is noticed, and over. Times in ms.

The small world of most tests: s ──▶ p.0, p.1 ──▶ count.0, count.1 in micro-batches, as in test_micro_batch:
p.i and count.i on host i, s on host 2, triggers every 100.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import chain, crashed, lost
from tests.models.test_micro_batch import driver_lost, executor_lost, run
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.job.components import Links
from tideover.models.simulation import Replication, simulate


def moments(done: Replication) -> list[tuple[float, float]]:
    """(detected, ready) of each failure."""
    return [
        (round(row["detected_at_s"] * 1000, 6), round(row["ready_at_s"] * 1000, 6)) for row in done.recoveries
    ]


# -- executors -----------------------------------------------------------------------------------------------


def test_the_executor_that_is_back_first_serves_both() -> None:
    """Host 0 dies at 110 and is noticed at 113, when host 1 lives: it takes over. Host 1 dies at 120, noticed
    at 123, when nobody lives; what stood on both goes on with host 0, at 113 + 57 = 170, and not with host 1,
    which is back at 123 + 200.

    p.0 and p.1 run on host 0 until 200, then count.0 (load, 34 more) and count.1 (load, 14 more): 260.
    """
    done = run((executor_lost(110, restart=57), executor_lost(120, host=1, restart=200)), until=290)
    assert moments(done) == [(113, 113), (123, 170)]
    second = done.recoveries[1]
    assert second["state_recovery_s"] == pytest.approx(0.262 - 0.170)
    assert second["restore_s"] >= 0


def test_an_executor_that_is_back_before_another_is_missed() -> None:
    """Host 1 dies at 110, and that is noticed at 160 only. Host 0 dies at 112, is noticed at 115, when nobody
    lives, and back at 140: its own outage is over then, that of host 1 when it is noticed.
    """
    late = executor_lost(110, host=1, detection=50, restart=100)
    done = run((late, executor_lost(112, restart=25)), until=400)
    assert moments(done) == [(160, 160), (140 - 25, 140)]


def test_a_new_driver_brings_new_executors() -> None:
    """Host 0 dies at 110, and would be noticed at 160. The driver dies at 120 and is back at 150, with new
    executors: nobody waits for the old one any more.
    """
    done = run((executor_lost(110, detection=50), driver_lost(120, restart=30)), until=400)
    assert moments(done) == [(150, 150), (120, 150)]


def test_without_a_driver_no_executor_serves() -> None:
    """Both hosts die at 110 (noticed at 113), the driver at 120. Host 0 would be back at 140, the driver is
    at 180: all are ready then.
    """
    both = (executor_lost(110, restart=27), executor_lost(110, host=1))
    done = run((*both, driver_lost(120, restart=60)), until=400)
    assert moments(done) == [(113, 180), (113, 180), (120, 180)]


def test_a_new_driver_starts_a_task_that_waited() -> None:
    """count.0 fails at 130, and would run again at 300; the new driver of 170 submits all tasks anew."""
    alone = fault("crash_task", 130, component="count", restart=170)
    done = run((alone, driver_lost(140, restart=30)), until=400)
    assert moments(done) == [(130, 170), (140, 170)]


def test_a_state_that_is_lost_as_it_is_loaded_was_not_restored_before() -> None:
    """count.0 lost its state at 50, and has it loaded from 125 to 131. At 140 it loses it again: the load
    gave back what the first loss had taken, and nothing of the second, for which the next batch loads.
    """
    twice = (fault("lose_state", 50, component="count"), fault("lose_state", 140, component="count"))
    first, second = run(twice, until=290).recoveries
    assert first["restore_s"] == pytest.approx(0.131 - 0.050)
    assert second["restore_s"] == pytest.approx(0.231 - 0.140)


# -- tasks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("detection", "restart", "first"),
    [
        pytest.param(10, 20, (70, 90), id="noticed with the second"),
        pytest.param(0, 2, (60, 62), id="back earlier than planned"),
    ],
)
def test_a_task_that_fails_while_it_is_down_is_back_from_both(
    detection: float, restart: float, first: Any
) -> None:
    """count fails at 50, to be noticed at 65 and back at 85; at 60 it fails again, and detection and restart
    begin anew.
    """
    again = crashed(60, restart, detection=detection)
    done = simulate(chain((crashed(50, 20, detection=15), again), until=150))
    assert moments(done) == [first, first]


def test_what_was_noticed_before_stays_so() -> None:
    """count fails at 50, is noticed at 55, and fails again at 60 while it is restarted."""
    done = simulate(chain((crashed(50, 20, detection=5), crashed(60, 20, detection=5)), until=150))
    assert moments(done) == [(55, 85), (65, 85)]


def test_a_task_that_was_back_is_not_waited_for_again() -> None:
    """count is ready at 55; what strikes at 55.5 is another failure."""
    done = simulate(chain((crashed(50, 5), lost(55.5, restart=30)), until=150))
    assert moments(done) == [(50, 55), (55.5, 85.5)]


def test_a_host_is_back_with_the_last_of_its_tasks() -> None:
    """Both bolts are on host 0, which dies at 50, to be back at 70. p fails again at 60, until 90."""
    both = chain((fault("crash_host", 50, host=0, restart=20), crashed(60, 30, "p")), until=150)
    topology = {
        name: config.model_copy(update={"hosts": (1,) if name == "s" else (0,)})
        for name, config in both.topology.items()
    }
    done = simulate(both.model_copy(update={"topology": topology, "hosts": 2}))
    assert moments(done) == [(50, 90), (60, 90)]
    assert done.recoveries[0]["restore_s"] == 0  # count had its state back at 70: nothing was left to do


# -- replays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [(), (fault("pause", 52, component="s", duration=1_000_000),)])
def test_a_replay_that_is_on_its_way_when_another_failure_strikes_counts(then: tuple[Any, ...]) -> None:
    """s (one root, at 10) ──10──▶ p (5), which loses it in service at 22. It times out at 30, is sent again
    at 40, and done at 55, for the first failure, also if another one strikes at 52.
    """
    topology = {"s": spout("values", values=(1,)), "p": bolt("forward", {"s": "shuffle"}, 5)}
    crash = fault("crash_task", 22, component="p")
    links = Links(latency=ms(10), local=ms(10))
    more = {"message_timeout": 20 * MS, "timeout_phase": 10 * MS}
    run = simulate(world(topology, "source_replay", (crash, *then), 100, links=links, **more))
    first = run.recoveries[0]
    assert (first["replayed"], first["state_recovery_s"]) == (1, 0.028)
