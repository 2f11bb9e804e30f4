"""Where somebody can say which tuples are replays, recoveries see all that bolts do, on either data plane."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tideover.models.config import Scenario
from tideover.models.runtime.keeper import Keeper, Mask
from tideover.models.runtime.views import BoltView
from tideover.models.world import World
from tideover.sim.train import Train


class Claims(Keeper):
    """Says of some tuples that they were sent again because of an outage."""

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return None if task.index == 1 else train.uid % 3 == outage % 3


def seen(scenario: Scenario) -> list[Any]:
    """What is known of the recoveries of a run."""
    world = World(scenario)
    world.job.context.keepers.append(Claims())
    world.run()
    found = []
    for recovery in world.recoveries.all:
        spans = [recovery.span, *([] if recovery.from_first is None else [recovery.from_first])]
        for span in spans:
            span.committed.flush()
        state = [span.committed.state() for span in spans]
        found.append((recovery.last_replay, recovery.replayed, recovery.done_at, state))
    return found


def agree(how: settings) -> None:
    """Recoveries are the same whatever moves the data."""

    @how
    @given(st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",))))
    def tried(scenario: Scenario) -> None:
        found = seen(scenario)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIDEOVER_TRAINS", "1")
            assert seen(scenario) == found

    tried()


def test_recoveries_see_replays() -> None:
    agree(QUICK)


@pytest.mark.long
def test_recoveries_see_replays_in_many_worlds() -> None:
    agree(LONG)
