"""A filter of one's own is asked of each tuple that arrives at a task, once, when it comes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LISTS, QUICK, TRIED, few_and_many, in_order
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import MS, bolt, spout, world
from tideover.models.config import Scenario
from tideover.models.runtime.verbs import Verbs
from tideover.models.world import World
from tideover.sim.train import Train


def done(scenario: Scenario, asks: bool) -> list[Any]:
    """What happens; ``asks``: if all tasks ask somebody who agrees."""
    run = World(scenario, trace=True)
    for task in run.job.bolt_tasks if asks else ():
        Verbs(run.job).admit(task, lambda train: train.n == 1)
    run.run()
    return [in_order(name, getattr(run.trace, name)) for name in LISTS]


@few_and_many(settings(QUICK, max_examples=30))
def test_who_agrees_to_all_changes_nothing(how: settings) -> None:
    @how
    @given(st.one_of(worlds(TRIED), overlapping(TRIED)))
    def tried(scenario: Scenario) -> None:
        assert done(scenario, asks=True) == done(scenario, asks=False)

    tried()


def test_what_is_turned_away_is_not_processed_and_all_are_asked_of_in_order() -> None:
    """s emits a root every 10; p takes 25, so tuples wait: each is asked of when it comes, not when it is
    served. What is turned away is lost.
    """
    topology = {"s": spout("keys", 10), "p": bolt("forward", {"s": "shuffle"}, 25)}
    run = World(world(topology, "none", until=95), trace=True)
    asked: list[tuple[int, int]] = []

    def admits(train: Train) -> bool:
        asked.append((int(train.uid[0]), int(train.time[0])))
        return int(train.uid[0]) % 3 != 1

    (task,) = run.job.bolt_tasks
    Verbs(run.job).admit(task, admits)
    run.run()
    emitted = [(row[2], row[-1]) for row in run.trace.emitted]
    latency = asked[0][1] - emitted[0][1]
    assert asked == [(root, time + latency) for root, time in emitted if time + latency <= 95 * MS]
    assert [row[3] for row in run.trace.processed] == [root for root, _ in asked if root % 3 != 1][:3]
    away = sum(root % 3 == 1 for root, _ in asked)
    assert run.balance()["lost"] == away
