"""Failures that overlap, and faults between two actions of an instant: when each is noticed, and over.

Times in ms. The small world of many tests: s ──▶ p.0, p.1 ──▶ count.0, count.1 in micro-batches, as in
test_micro_batch: p.i and count.i on host i, s on host 2, triggers every 100.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.chain import chain, counted, crashed, lost
from tests.models.test_micro_batch import driver_lost, executor_lost, query, run, whole
from tests.no_data import kernel_without_data
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.job.components import Links
from tideover.models.runtime.supervision import Plans
from tideover.models.simulation import Replication, simulate
from tideover.sim.kernel import Rank


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


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        # host 1 dies at 110, and that is noticed at 160 only; host 0 dies at 112, is noticed at 115, when
        # nobody lives, and back at 140: its own outage is over then, that of host 1 when it is noticed
        (
            (executor_lost(110, host=1, detection=50, restart=100), executor_lost(112, restart=25)),
            [(160, 160), (115, 140)],
        ),
        # host 0 would be noticed at 160; the driver dies at 120 and is back at 150, with new executors:
        # nobody waits for the old one any more
        ((executor_lost(110, detection=50), driver_lost(120, restart=30)), [(150, 150), (120, 150)]),
        # both hosts die at 110 (noticed at 113), the driver at 120; host 0 would be back at 140, the driver
        # is at 180: all are ready then
        (
            (executor_lost(110, restart=27), executor_lost(110, host=1), driver_lost(120, restart=60)),
            [(113, 180), (113, 180), (120, 180)],
        ),
        # count.0 fails at 130, and would run again at 300; the new driver of 170 submits all tasks anew
        ((crashed(130, 170), driver_lost(140, restart=30)), [(130, 170), (140, 170)]),
    ],
    ids=["an executor before another is missed", "a new driver", "no driver", "a task that waited"],
)
def test_when_executors_are_noticed_and_ready(failures: tuple[Any, ...], expected: Any) -> None:
    assert moments(run(failures, until=400)) == expected


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
    ("failures", "expected"),
    [
        # count fails at 50, to be noticed at 65 and back at 85; at 60 it fails again, and detection and
        # restart begin anew: it is noticed with the second, or is back earlier than planned
        ((crashed(50, 20, detection=15), crashed(60, 20, detection=10)), [(70, 90)] * 2),
        ((crashed(50, 20, detection=15), crashed(60, 2, detection=0)), [(60, 62)] * 2),
        # it is noticed at 55, and fails again at 60 while it is restarted: what was noticed stays so
        ((crashed(50, 20, detection=5), crashed(60, 20, detection=5)), [(55, 85), (65, 85)]),
        # it is ready at 55; what strikes at 55.5 is another failure, and nobody waits for the first again
        ((crashed(50, 5), lost(55.5, restart=30)), [(50, 55), (55.5, 85.5)]),
    ],
)
def test_a_task_that_fails_while_it_is_down_is_back_from_both(failures: Any, expected: Any) -> None:
    assert moments(simulate(chain(failures, until=150))) == expected


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


@pytest.mark.parametrize(
    ("turn", "kept"),
    [
        (None, 0),
        ("before checkpoint of count.0", 0),
        ("after checkpoint of count.0", 0),
        ("before trim of count.0", 0),
        ("after trim of count.0", 1),
        ("after rotation", 1),
    ],
)
def test_a_crash_beside_a_checkpoint(turn: str | None, kept: int) -> None:
    """s ──▶ p (1) ──▶ count (1), under R+SM: root 0 is counted at 12, at 20 a checkpoint is taken (rank
    CHECKPOINT) and, the store being instant, safe (rank TRIM). The crash at 20 finds it there, or not. What
    is not in it is replayed, and root 1, which p has sent at 21.
    """
    run = simulate(chain((crashed(20, 5, turn=turn),)), trace=True)
    assert run.recoveries[0]["restored"] == kept
    assert run.recoveries[0]["replayed"] == 2 - kept
    assert run.ledger["lost"] == 0


@pytest.mark.parametrize(("turn", "noticed"), [(None, 0.023), ("after rotation", 0.020)])
def test_who_is_noticed_at_an_instant_is_so_before_what_strikes_late_in_it(
    turn: str | None, noticed: float
) -> None:
    """Two crashes of one task at 20: the first would be noticed at once, the second takes 3. Both strike
    ahead of what is noticed at 20, and are noticed as one; or the second strikes when the first has been.
    """
    again = crashed(20, 5, turn=turn, detection=3)
    run = simulate(chain((crashed(20, 5), again)))
    assert [row["detected_at_s"] for row in run.recoveries] == [noticed, 0.023]


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        (None, [274]),
        ("before batch of count.0", [274]),
        ("after batch of count.0", [274]),
        ("after batch of count.1", [274]),
        ("after batch", [159, 274]),
    ],
)
def test_a_driver_is_lost_between_the_last_task_and_the_results(turn: str | None, shown: list[int]) -> None:
    """s ──▶ p.0, p.1 (1) ──▶ count.0, count.1 (2), in batches: that of 100 has roots 0 to 9, count.0 is the
    last task to end, at 159, and without an output time the results come out at 159, too, when the driver
    has its turn behind all tasks. One that is lost at 159 has not done so, unless it is lost behind its own
    turn. As nothing is committed the next one, which has read its logs at 214, runs the batch again: p.0
    until 234, count.0, which loads its state, until 274.
    """
    lost = crashed(159, 50, "driver", turn=turn)
    run = simulate(query((lost,), until=280, output_time=0), trace=True)
    assert counted(run) == [(root, at) for at in shown for root in range(10)]
    assert run.ledger["replayed"] == 10
    whole(run)


def test_what_strikes_behind_a_rank_does_so_ahead_of_what_strikes_before_the_next() -> None:
    """Two crashes of one task at 20: the one that comes last, noticed 1 later, is the newest of both, though
    it is the first in the list. (The other would be noticed at 23.)
    """
    last, first = (
        crashed(20, 5, turn=turn, detection=detection)
        for turn, detection in (("before trim", 1), ("after checkpoint", 3))
    )
    run = simulate(chain((last, first)))
    assert [row["detected_at_s"] for row in run.recoveries] == [0.021, 0.021]


# -- plans that a death voids, against a plain list ----------------------------------------------------------

STEPS = st.lists(st.one_of(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.none()), max_size=20)


@given(STEPS)
def test_what_is_done_was_planned_in_this_life(steps: list[tuple[int, int] | None]) -> None:
    """A step every 5 ns: something is planned (so long after now; so long after the last step), or (None) all
    that was planned is void. Done is, each at its moment, what no later death has voided before.
    """
    kernel, done = kernel_without_data(), list[tuple[int, int]]()
    plans, end = Plans(kernel), 5 * len(steps)

    def act(number: int) -> None:
        done.append((number, kernel.now))

    def step(number: int, what: tuple[int, int] | None) -> None:
        if what is None:
            plans.void()
        else:
            plans.after(what[0], Rank.CHECKPOINT, lambda: act(number))
            plans.at(end + what[1], Rank.CHECKPOINT, lambda: act(number))

    for number, what in enumerate(steps):
        kernel.at(5 * number, Rank.FAULT, lambda number=number, what=what: step(number, what))
    kernel.run(end + 20)

    deaths = [5 * number for number, what in enumerate(steps) if what is None] + [10**9]
    expected = []
    for number, what in enumerate(steps):
        if what is not None:
            died = min(death for death in deaths if death > 5 * number)
            expected += [(number, t) for t in (5 * number + what[0], end + what[1]) if t < died]
    assert sorted(done) == sorted(expected)
