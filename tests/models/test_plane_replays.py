"""Where somebody can say which tuples are replays, recoveries see all that bolts do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK
from tests.oracle.program import run
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.accounts.recoveries import Recovery
from tideover.models.config import Scenario
from tideover.models.runtime.hooks import Keeper, Mask
from tideover.models.runtime.views import BoltView
from tideover.models.world import World
from tideover.sim.train import Train


class Claims(Keeper):
    """Says of some tuples that they were sent again because of an outage."""

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return None if task.index == 1 else train.uid % 3 == outage % 3


def newest(scenario: Scenario) -> Recovery | None:
    """What is known at the end of the newest recovery, which may see tuples up to there."""
    world = World(scenario)
    world.job.context.keepers.append(Claims())
    world.run()
    return world.recoveries.all[-1] if world.recoveries.all else None


def hold_against_the_reference(scenario: Scenario) -> None:
    """All such tuples count that the reference sees done after the fault, at tasks that it has hit and that
    anchor their tuples; and of its very instant some.
    """
    found = newest(scenario)
    if found is None:
        return
    outage, since = found.outage, found.outage.failed_at
    tasks = [task for task in outage.tasks if task.component.anchored]
    hit = {(task.component.name, task.index, getattr(task, "replica", 0)) for task in tasks}
    claimed = [
        (came, left)
        for component, task, replica, uid, _, came, left in run(scenario, 0).processed
        if (component, task, replica) in hit and task != 1 and uid % 3 == outage.number % 3 and left >= since
    ]
    later = [came for came, left in claimed if left > since]
    assert len(later) <= found.replayed <= len(claimed)
    if later:
        assert found.last_replay == max(later)


def agree(how: settings) -> None:
    """Law: recoveries count and date all tuples that somebody calls replays."""

    @how
    @given(st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",))))
    def tried(scenario: Scenario) -> None:
        hold_against_the_reference(scenario)

    tried()


def test_recoveries_see_replays() -> None:
    agree(QUICK)


@pytest.mark.long
def test_recoveries_see_replays_in_many_worlds() -> None:
    agree(LONG)
