"""Cores that tasks share, on the compiled data plane: the same as the reference, to the nanosecond."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.models.crowded import machines
from tests.models.test_cores import two
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, fault
from tideover.models.config import Scenario
from tideover.models.runtime.order import groups
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.kernel import Rank


def occupied(scenario: Scenario, *when: float) -> dict[str, list[float]]:
    """When a and b are done (ms), if an action keeps a for 2 ms at each of these moments (ms)."""
    run = World(scenario, trace=True)
    (a,) = run.job.bolts["a", 0]
    for moment in when:
        run.job.kernel.at(round(moment * MS), Rank.SAMPLE, lambda: a.occupy(2 * MS))
    run.run()
    return {name: sorted(row[6] / MS for row in run.trace.processed if row[0] == name) for name in ("a", "b")}


def test_an_action_takes_a_core_as_a_tuple_does() -> None:
    """From 8 on a is kept for 2 ms, alone until b (2 ms) comes at 10, when a's tuple (4 ms) does too. Both at
    half speed: b is done at 14. a has 2 ms left, and is done at 16.
    """
    assert occupied(two(4, 2, 1, until=19), 8) == {"a": [16], "b": [14]}


def test_an_action_begins_when_the_tuple_in_service_is_done() -> None:
    """a (2 ms) and b (5 ms) at half speed from 10: a is done at 14. Then it is kept for twice 2 ms, until b
    has done its other 3 ms, at 20; the next tuples come. a has 1 ms left, at half speed until 22; its tuple
    takes 2 ms, until 26, and b's, of which 3 ms are done then, is alone for 2 more.
    """
    assert occupied(two(2, 5, 1, until=29), 11, 12) == {"a": [14, 26], "b": [20, 28]}


def test_an_action_that_lasts_longer_is_one() -> None:
    """a is kept from 5 to 9: its tuple and b's begin together at 10."""
    assert occupied(two(2, 2, 1, until=19), 5, 6) == {"a": [14], "b": [14]}


def test_an_action_waits_for_a_stopped_process() -> None:
    """a is stopped from 11 to 15, with 1.5 of the 2 ms of its tuple left: done at 16.5. It is kept until 18.5
    then, before its next tuple. b (2 ms) has done 0.5 by 11, and the rest at 12.5.
    """
    stop = fault("pause", 11, component="a", duration=4 * MS)
    assert occupied(two(2, 2, 1, stop, until=29), 13) == {"a": [16.5, 24], "b": [12.5, 24]}


def test_a_crash_ends_what_keeps_a_task() -> None:
    """a is kept from 8 on, and crashes at 9: b (2 ms) is alone at 10."""
    crash = fault("crash_task", 9, component="a", restart=20)
    assert occupied(two(2, 2, 1, crash, until=19), 8) == {"a": [], "b": [12]}


def test_a_core_that_nobody_shares_is_slow_too() -> None:
    """a and b have a host each: a (2 ms) is at half speed from 11 on, and done at 13."""
    slow = fault("slow_host", 11, host=1, factor=0.5, duration=5 * MS)
    scenario = two(2, 2, 1, slow, until=19).model_copy(update={"hosts": machines(3, None)})
    assert occupied(scenario) == {"a": [13], "b": [12]}
    run = World(scenario)
    run.run()
    assert [task.busy.until(19 * MS) / MS for task in run.job.bolt_tasks] == [3, 2]


def test_a_host_may_be_well_again_at_the_end_of_the_run() -> None:
    """16.6 s are 16 600 000 000 ns, but times 10^9 they are a little more."""
    slow = fault("slow_host", 16_500, host=0, factor=0.5, duration=100 * MS)
    scenario = two(2, 2, 1, slow, until=16_600)
    check(scenario)
    (row,) = simulate(scenario).recoveries
    assert row["ready_at_s"] == 16.6


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_what_is_on_a_circle_in_topological_order(seed: int) -> None:
    """Who shares a host and all between them move together."""
    chance, n = random.Random(seed), 12
    ways = [(i, j) for i in range(n) for j in range(i + 1, n) if chance.random() < 0.15]
    feel = [chance.sample(range(n), 3) for _ in range(chance.randrange(3))]
    reaches = [[i == j for j in range(n)] for i in range(n)]
    for i, j in (*ways, *(pair for each in feel for pair in pairwise((*each, each[0])))):
        reaches[i][j] = True
    for k in range(n):
        for i in range(n):
            for j in range(n):
                reaches[i][j] |= reaches[i][k] and reaches[k][j]
    found = groups(n, ways, feel)
    assert sorted(task for group in found for task in group) == list(range(n))
    for place, group in enumerate(found):
        assert group == [j for j in range(n) if reaches[group[0]][j] and reaches[j][group[0]]]
        assert not any(reaches[later[0]][group[0]] for later in found[place + 1 :])
