"""Faults between two actions of one instant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import chain, counted, crashed
from tests.models.test_exactness import QUICK, SHARED, differences
from tests.models.test_micro_batch import query, whole
from tests.oracle.random_parameters import STRATEGY_NAMES
from tests.oracle.random_worlds import worlds
from tideover.models.config import Scenario
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.kernel import ORDER, Rank


def text(turn: float, side: str, names: list[str]) -> str:
    """A place beside that of a step."""
    rank, order = divmod(int(turn), ORDER)
    of = f" of {names[order]}" if order < len(names) else ""
    return f"{side} {Rank(rank).name.lower()}{of}"


@st.composite
def struck_at_steps(draw: st.DrawFn, strategy: str) -> Scenario:
    """A random world whose failures strike just before or just after steps of its protocol: those that it
    takes while nothing fails, or, for a second failure, with the first.
    """
    scenario = draw(worlds((strategy,)))
    struck: tuple[Any, ...] = ()
    for fault in scenario.failures:
        world = World(scenario.model_copy(update={"failures": struck}), trace=True)
        names = [task.name for task in world.job.tasks]
        world.run()
        assert world.trace is not None
        steps = [
            s for s in world.trace.steps if s.at < scenario.run.duration and s.turn // ORDER > Rank.FAULT
        ]
        if steps and fault.at is not None:
            step = steps[draw(st.integers(0, 1 << 12)) % len(steps)]
            turn = text(step.turn, draw(st.sampled_from(("before", "after"))), names)
            moment = {"at": step.at, "turn": turn, "within": None, "in_interval": None}
            struck = (*struck, fault.model_copy(update=moment))
    return scenario.model_copy(update={"failures": struck})


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


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_the_engine_equals_the_reference_where_faults_strike_at_steps(strategy: str) -> None:
    @settings(QUICK, max_examples=12)
    @given(struck_at_steps(strategy))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_the_engine_equals_the_reference_at_steps_of_many_worlds(strategy: str) -> None:
    @SHARED
    @given(struck_at_steps(strategy))
    def check(scenario: Scenario) -> None:
        assert not differences(scenario)

    check()
